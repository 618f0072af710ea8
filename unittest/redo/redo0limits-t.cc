/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "redo/policy/redo0limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace spw {
namespace {

TEST(RedoLimits, MarginReducesSyncAgeAndMaxAge) {
  const Redo_limits limits = redo_limits({.adaptive_flush_max_age = 700,
                                          .soft_logical_capacity = 800,
                                          .hard_logical_capacity = 900,
                                          .free_check_margin = 100});
  /* 700 - 100, 800 - 100, and the hard capacity without the margin. */
  EXPECT_EQ(limits.sync_age, 600u);
  EXPECT_EQ(limits.max_age, 700u);
  EXPECT_EQ(limits.hard_age, 900u);
}

TEST(RedoLimits, MarginAboveLimitsGivesZero) {
  for (const uint64_t margin : {uint64_t{700}, uint64_t{750}, UINT64_MAX}) {
    const Redo_limits limits = redo_limits({.adaptive_flush_max_age = 700,
                                            .soft_logical_capacity = 700,
                                            .hard_logical_capacity = 900,
                                            .free_check_margin = margin});
    EXPECT_EQ(limits.sync_age, 0u);
    EXPECT_EQ(limits.max_age, 0u);
    EXPECT_EQ(limits.hard_age, 900u);
  }
}

/** A redo log of 1000, with a soft capacity of 950. */
constexpr Redo_capacity NOW{.adaptive_flush_max_age = 890,
                            .soft_logical_capacity = 950,
                            .hard_logical_capacity = 1000,
                            .free_check_margin = 100};

TEST(RedoLoweredCapacity, IncreaseIsImmediate) {
  EXPECT_EQ(redo_lowered_capacity(1001, NOW, 0), 1001u);
  EXPECT_EQ(redo_lowered_capacity(5000, NOW, 1000), 5000u);
}

TEST(RedoLoweredCapacity, PresentCapacityIsUnchanged) {
  EXPECT_EQ(redo_lowered_capacity(1000, NOW, 0), 1000u);
  EXPECT_EQ(redo_lowered_capacity(1000, NOW, 5000), 1000u);
}

TEST(RedoLoweredCapacity, SmallDecreaseIsImmediate) {
  EXPECT_EQ(redo_lowered_capacity(990, NOW, 0), 990u);
}

TEST(RedoLoweredCapacity, NotBelowSoftCapacity) {
  EXPECT_EQ(redo_lowered_capacity(10, NOW, 0), 950u);
  /* Reserved are 850 + the margin of 100 = 950. */
  EXPECT_EQ(redo_lowered_capacity(10, NOW, 850), 950u);
}

TEST(RedoLoweredCapacity, NotBelowReservedRedo) {
  /* Age + margin: 860 + 100 = 960. */
  EXPECT_EQ(redo_lowered_capacity(10, NOW, 860), 960u);
  EXPECT_EQ(redo_lowered_capacity(970, NOW, 860), 970u);
}

TEST(RedoLoweredCapacity, NeverAbovePresentCapacity) {
  /* Age + margin: 950 + 100 = 1050, more than the hard capacity of 1000. */
  EXPECT_EQ(redo_lowered_capacity(10, NOW, 950), 1000u);
}

TEST(RedoLoweredCapacity, NoPresentCapacityAtStart) {
  EXPECT_EQ(redo_lowered_capacity(10, {}, 0), 10u);
}

/** A redo log that is resized down in steps, while threads reserve as much as
they are admitted with. The reserved redo fits at each step, and the target is
reached after the page cleaners have flushed. */
TEST(RedoLoweredCapacity, ReservedRedoFitsAtEachStep) {
  constexpr uint64_t WANTED = 100;
  constexpr uint64_t MARGIN = 20;
  uint64_t hard = 1000;
  uint64_t checkpoint_age = 0;
  for (int step = 0; step < 200; ++step) {
    const uint64_t soft = hard * 95 / 100;
    /* All threads that the margin is for passed the check when it was full. */
    const uint64_t reserved = std::max(checkpoint_age, soft);
    const uint64_t next = redo_lowered_capacity(WANTED,
                                                {.adaptive_flush_max_age = 0,
                                                 .soft_logical_capacity = soft,
                                                 .hard_logical_capacity = hard,
                                                 .free_check_margin = MARGIN},
                                                checkpoint_age);
    EXPECT_LE(next, hard);
    EXPECT_LE(reserved, next);
    hard = next;
    /* Full for a while, then flushed. */
    checkpoint_age =
        step < 50 ? reserved
                  : std::min(checkpoint_age, hard * 95 / 100 - MARGIN) * 9 / 10;
  }
  EXPECT_EQ(hard, WANTED);
}

}  // namespace
}  // namespace spw
