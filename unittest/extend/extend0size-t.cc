/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "extend/policy/extend0size.h"

#include <gtest/gtest.h>

#include <vector>

namespace spw {
namespace {

constexpr uint64_t MIB = uint64_t{1} << 20;
constexpr uint64_t GIB = uint64_t{1} << 30;

constexpr uint64_t PAGE_BYTES = 16384;

/* A file with pages of 16 KiB. */
constexpr Extend_target_input INPUT{.requested = 64 * MIB,
                                    .is_pages = false,
                                    .page_bytes = PAGE_BYTES,
                                    .extent_bytes = MIB,
                                    .size = 10 * MIB,
                                    .size_max = 64 * 1024 * GIB};

TEST(ExtendTarget, RequestInBytesOrPages) {
  Extend_target target = decide_extend_target(INPUT);
  EXPECT_EQ(target.reason, Extend_target_reason::GROW);
  EXPECT_EQ(target.bytes, 64 * MIB);
  /* 64 - 10, the file's size */
  EXPECT_EQ(target.needed, 54 * MIB);

  Extend_target_input input = INPUT;
  /* 4096 pages * 16 KiB = 64 MiB */
  input.is_pages = true;
  input.requested = 4096;
  target = decide_extend_target(input);
  EXPECT_EQ(target.reason, Extend_target_reason::GROW);
  EXPECT_EQ(target.bytes, 64 * MIB);

  /* Compressed pages of 8 KiB: an extent has the same number of bytes.
  4096 * 8 KiB = 32 MiB */
  input.page_bytes = 8192;
  EXPECT_EQ(decide_extend_target(input).bytes, 32 * MIB);
}

TEST(ExtendTarget, IsWholeExtents) {
  Extend_target_input input = INPUT;
  for (const uint64_t extent : {MIB, 2 * MIB, 4 * MIB}) {
    input.extent_bytes = extent;
    for (const uint64_t requested : {11 * MIB, 11 * MIB + 1, 12 * MIB - 1}) {
      input.requested = requested;
      const Extend_target target = decide_extend_target(input);
      EXPECT_EQ(target.bytes % extent, 0u);
      EXPECT_GE(target.bytes, requested);
      EXPECT_LT(target.bytes - requested, extent);
    }
  }
}

TEST(ExtendTarget, LargeEnoughFileIsUnchanged) {
  Extend_target_input input = INPUT;
  for (const uint64_t requested : {uint64_t{1}, 9 * MIB + 1, 10 * MIB}) {
    input.requested = requested;
    const Extend_target target = decide_extend_target(input);
    EXPECT_EQ(target.reason, Extend_target_reason::LARGE_ENOUGH);
    EXPECT_EQ(target.bytes, INPUT.size);
    EXPECT_EQ(target.needed, 0u);
  }
}

TEST(ExtendTarget, Refusals) {
  Extend_target_input input = INPUT;
  input.requested = 0;
  EXPECT_EQ(decide_extend_target(input).reason, Extend_target_reason::ZERO);

  for (const uint64_t requested :
       {INPUT.size_max + 1, UINT64_MAX - 1, UINT64_MAX}) {
    input.requested = requested;
    EXPECT_EQ(decide_extend_target(input).reason,
              Extend_target_reason::BEYOND_LIMIT);
  }
  input.is_pages = true;
  for (const uint64_t requested :
       {INPUT.size_max / PAGE_BYTES + 1, UINT64_MAX / PAGE_BYTES,
        UINT64_MAX / PAGE_BYTES + 1, UINT64_MAX}) {
    input.requested = requested;
    EXPECT_EQ(decide_extend_target(input).reason,
              Extend_target_reason::BEYOND_LIMIT);
  }
  input.requested = INPUT.size_max / PAGE_BYTES;
  EXPECT_EQ(decide_extend_target(input).reason, Extend_target_reason::GROW);
}

/* Extend a file on a device with a rate in bytes/s.
@return duration of each step: seconds */
std::vector<double> steps(uint64_t size, uint64_t target, uint64_t extent,
                          double bytes_per_s) {
  Extend_pace pace{extent};
  std::vector<double> found;
  while (size < target) {
    const uint64_t next = pace.next(size, target);
    EXPECT_GT(next, size);
    EXPECT_LE(next, target);
    EXPECT_TRUE(next % extent == 0 || next == target);
    EXPECT_LE(next - size, EXTEND_STEP_MAX_BYTES);
    found.push_back(static_cast<double>(next - size) / bytes_per_s);
    pace.record_step(next - size, found.back());
    size = next;
  }
  return found;
}

TEST(ExtendPace, StepsTakeAbout100Ms) {
  /* Devices that write an extent in less than that. */
  for (const double bytes_per_s : {12e6, 30e6, 200e6, 600e6}) {
    const std::vector<double> found = steps(7 * MIB, 2 * GIB, MIB, bytes_per_s);
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_LE(found[i], 0.2) << bytes_per_s;
      if (i > 10 && i + 1 < found.size()) {
        EXPECT_GE(found[i], 0.04) << bytes_per_s;
      }
    }
  }
}

TEST(ExtendPace, StepSizeIsBounded) {
  /* An extent takes 1 s, ten times the target: one extent a step, 20 - 7 = 13
  steps. */
  const std::vector<double> slow = steps(7 * MIB, 20 * MIB, MIB, 1e6);
  EXPECT_EQ(slow.size(), 13u);
  /* 1 + 2 + 4 + 8 + 16 + 32 = 63 MiB, then 10 * 64 MiB: 6 + 10 = 16 steps. */
  const std::vector<double> fast =
      steps(0, 63 * MIB + 10 * 64 * MIB, MIB, 1e12);
  EXPECT_EQ(fast.size(), 16u);
}

TEST(ExtendPace, StepShrinksAtOnceOnSlowDevice) {
  Extend_pace pace{MIB};
  for (int i = 0; i < 10; ++i) {
    pace.record_step(64 * MIB, 0.01);
  }
  EXPECT_EQ(pace.next(0, GIB), 64 * MIB);
  /* 64 MiB / 6.4 s * 0.1 s = 1 MiB */
  pace.record_step(64 * MIB, 6.4);
  EXPECT_EQ(pace.next(0, GIB), MIB);
  /* A step at most doubles. */
  pace.record_step(MIB, 0.0);
  EXPECT_EQ(pace.next(0, GIB), 2 * MIB);
}

TEST(ExtendPace, FirstStepReachesExtentBoundary) {
  /* A new table has 7 pages. */
  const Extend_pace pace{MIB};
  EXPECT_EQ(pace.next(7 * PAGE_BYTES, GIB), MIB);
}

TEST(ExtendPause, OnlyWhileOthersUseTheDevice) {
  /* The redo of 12 steps, 2400 of 4096 bytes, and three pages read, 48 of 256
  KiB. */
  EXPECT_FALSE(extend_others_are_active(12 * 200, 3 * PAGE_BYTES));
  EXPECT_TRUE(extend_others_are_active(4096, 0));
  EXPECT_TRUE(extend_others_are_active(0, 16 * PAGE_BYTES));
}

TEST(ExtendPause, ShortStepsTakeAQuarterOfTheTime) {
  /* The pause is three times the step, and at most 1 s. */
  EXPECT_DOUBLE_EQ(pause_s(0.02), 0.06);
  EXPECT_DOUBLE_EQ(pause_s(0.1), 0.3);
  EXPECT_DOUBLE_EQ(pause_s(2.0), 1.0);
}

TEST(ExtendHeadroom, IsFivePercentUpTo10Gib) {
  /* 50 - 5 % of 100 = 45 */
  EXPECT_EQ(extend_disk_available(50 * GIB, 100 * GIB), 45 * GIB);
  EXPECT_EQ(extend_disk_available(5 * GIB, 100 * GIB), 0u);
  EXPECT_EQ(extend_disk_available(4 * GIB, 100 * GIB), 0u);
  /* 5 % of 1000 are 50, more than the maximum of 10: 500 - 10 = 490 */
  EXPECT_EQ(extend_disk_available(500 * GIB, 1000 * GIB), 490 * GIB);
  EXPECT_EQ(extend_disk_available(0, 0), 0u);
}

TEST(ParseSize, Units) {
  EXPECT_EQ(parse_size("1K"), uint64_t{1} << 10);
  EXPECT_EQ(parse_size("10g"), 10 * GIB);
  EXPECT_EQ(parse_size("007M"), 7 * MIB);
  /* 2^64 bytes are 2^24 = 16777216 TiB: one less is the largest. */
  EXPECT_EQ(parse_size("16777215T"), UINT64_MAX / (GIB << 10) * (GIB << 10));
  EXPECT_EQ(parse_size("0T"), 0u);
  for (const char *text :
       {"", "K", "5", "5P", "5KB", "5 M", "-5M", "5.5G", "M5", "16777216T",
        "18446744073709551616K", "99999999999999999999M", "5\xcb"}) {
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
  }
}

TEST(RoundUp, Overflow) {
  EXPECT_EQ(round_up(0, MIB), 0u);
  EXPECT_EQ(round_up(1, MIB), MIB);
  EXPECT_EQ(round_up(MIB, MIB), MIB);
  EXPECT_EQ(round_up(UINT64_MAX, MIB), UINT64_MAX - UINT64_MAX % MIB);
  EXPECT_EQ(round_up(UINT64_MAX, 1), UINT64_MAX);
}

}  // namespace
}  // namespace spw
