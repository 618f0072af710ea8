/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "atomic/policy/atomic0write.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace spw {
namespace {

constexpr uint32_t PAGE_BYTES = 16384;

/** A disk without any promise: ext4 on it, as it was found. */
constexpr Atomic_findings ORDINARY{.is_direct = true,
                                   .direct_is_confirmed = true,
                                   .ioctl_succeeds = false,
                                   .unit_min_bytes = 0,
                                   .unit_max_bytes = 0,
                                   .unit_max_opt_bytes = 0,
                                   .device_max_bytes = 0,
                                   .rwf_error = 0,
                                   .file_system_bytes = 0,
                                   .sector_bytes = 512,
                                   .sector_is_trusted = true,
                                   .error = 0};

Atomic_findings xfs_copies() {
  Atomic_findings found = ORDINARY;
  found.unit_min_bytes = 4096;
  found.unit_max_bytes = 2097152;
  return found;
}

Atomic_findings xfs_device() {
  Atomic_findings found = xfs_copies();
  found.device_max_bytes = 65536;
  found.unit_max_opt_bytes = 65536;
  return found;
}

Atomic_output decide(Atomic_writes setting, const Atomic_findings &found,
                     uint32_t page_bytes = PAGE_BYTES,
                     bool file_system_is_enough = false) {
  return decide_atomic_means({.setting = setting,
                              .file_system_is_enough = file_system_is_enough,
                              .page_bytes = page_bytes,
                              .is_native_aio = true,
                              .is_synced = true,
                              .found = found});
}

void expect(const Atomic_output &output, Atomic_means means, bool is_refused,
            Atomic_reason reason) {
  EXPECT_EQ(output.means, means);
  EXPECT_EQ(output.is_refused, is_refused);
  EXPECT_EQ(output.reason, reason);
}

TEST(AtomicWrite, AnOrdinaryDiskKeepsDoublewriteOrIsRefused) {
  expect(decide(Atomic_writes::AUTO, ORDINARY), Atomic_means::NONE, false,
         Atomic_reason::NOTHING_FOUND);
  expect(decide(Atomic_writes::ON, ORDINARY), Atomic_means::NONE, true,
         Atomic_reason::NOTHING_FOUND);
}

TEST(AtomicWrite, TheIoctlComesFirst) {
  for (Atomic_findings found : {ORDINARY, xfs_copies(), xfs_device()}) {
    found.ioctl_succeeds = true;
    for (const auto setting : {Atomic_writes::ON, Atomic_writes::AUTO}) {
      expect(decide(setting, found), Atomic_means::IOCTL, false,
             Atomic_reason::WHOLE);
    }
  }
}

TEST(AtomicWrite, ADeviceThatWritesPagesWholeIsTaken) {
  for (const auto setting : {Atomic_writes::ON, Atomic_writes::AUTO}) {
    expect(decide(setting, xfs_device()), Atomic_means::RWF, false,
           Atomic_reason::WHOLE);
  }
}

TEST(AtomicWrite, CopiesAreTakenWhenToldToOnly) {
  expect(decide(Atomic_writes::ON, xfs_copies()), Atomic_means::RWF_COPY, false,
         Atomic_reason::WHOLE);
  expect(decide(Atomic_writes::AUTO, xfs_copies()), Atomic_means::NONE, false,
         Atomic_reason::COPIES_ARE_SLOW);

  /* The device does it up to 8 KiB: larger pages are copied. */
  Atomic_findings found = xfs_device();
  found.unit_max_opt_bytes = 8192;
  expect(decide(Atomic_writes::AUTO, found), Atomic_means::NONE, false,
         Atomic_reason::COPIES_ARE_SLOW);
  expect(decide(Atomic_writes::AUTO, found, 8192), Atomic_means::RWF, false,
         Atomic_reason::WHOLE);

  found = xfs_device();
  found.device_max_bytes = 8192;
  expect(decide(Atomic_writes::AUTO, found), Atomic_means::NONE, false,
         Atomic_reason::COPIES_ARE_SLOW);
}

TEST(AtomicWrite, WhatTheKernelSaysAndRejectsIsNotBelieved) {
  Atomic_findings found = xfs_device();
  for (const int error : {EINVAL, EOPNOTSUPP}) {
    found.rwf_error = error;
    expect(decide(Atomic_writes::AUTO, found), Atomic_means::NONE, false,
           Atomic_reason::REJECTED);
    expect(decide(Atomic_writes::ON, found), Atomic_means::NONE, true,
           Atomic_reason::REJECTED);
  }
}

TEST(AtomicWrite, NothingIsTakenWithoutSync) {
  Atomic_findings sector = ORDINARY;
  sector.sector_bytes = PAGE_BYTES;
  Atomic_findings ioctl = ORDINARY;
  ioctl.ioctl_succeeds = true;
  Atomic_findings journal = ORDINARY;
  journal.file_system_bytes = PAGE_BYTES;
  for (const auto &found :
       {xfs_copies(), xfs_device(), ioctl, journal, sector}) {
    for (const auto setting : {Atomic_writes::AUTO, Atomic_writes::ON}) {
      expect(decide_atomic_means({.setting = setting,
                                  .file_system_is_enough = true,
                                  .page_bytes = PAGE_BYTES,
                                  .is_native_aio = true,
                                  .is_synced = false,
                                  .found = found}),
             Atomic_means::NONE, setting == Atomic_writes::ON,
             Atomic_reason::NOT_SYNCED);
    }
  }
}

TEST(AtomicWrite, APageCompressedFileIsSeenAsOneWithoutMeans) {
  const auto whole = decide(Atomic_writes::ON, xfs_device());
  expect(as_seen(whole, false), Atomic_means::RWF, false, Atomic_reason::WHOLE);
  expect(as_seen(whole, true), Atomic_means::NONE, false,
         Atomic_reason::PAGE_COMPRESSED);
  const auto none = decide(Atomic_writes::AUTO, ORDINARY);
  expect(as_seen(none, true), Atomic_means::NONE, false,
         Atomic_reason::NOTHING_FOUND);
}

/** A full disk, no descriptor or no permission says nothing of the storage: no
file is refused for it, and with ON no page goes through the doublewrite
buffer. */
TEST(AtomicWrite, WhatCouldNotBeTriedIsNotRefused) {
  for (const int error : {ENOSPC, EMFILE, EACCES}) {
    Atomic_findings found = xfs_device();
    found.rwf_error = error;
    expect(decide(Atomic_writes::AUTO, found), Atomic_means::NONE, false,
           Atomic_reason::NOT_TRIED);
    expect(decide(Atomic_writes::ON, found), Atomic_means::RWF, false,
           Atomic_reason::NOT_TRIED);
    found = xfs_copies();
    found.rwf_error = error;
    expect(decide(Atomic_writes::ON, found), Atomic_means::RWF_COPY, false,
           Atomic_reason::NOT_TRIED);
  }
}

TEST(AtomicWrite, ADeviceThatCouldNotBeExaminedIsNotRefused) {
  Atomic_findings found = ORDINARY;
  found.sector_bytes = 0;
  found.error = EMFILE;
  for (const auto setting : {Atomic_writes::AUTO, Atomic_writes::ON}) {
    expect(decide(setting, found), Atomic_means::NONE, false,
           Atomic_reason::NOT_EXAMINED);
  }
}

TEST(AtomicWrite, PagesOutsideOfTheUnitsAreNotWhole) {
  Atomic_findings found = xfs_device();
  found.unit_min_bytes = 8192;
  found.unit_max_bytes = 16384;
  EXPECT_EQ(decide(Atomic_writes::AUTO, found, 4096).means, Atomic_means::NONE);
  EXPECT_EQ(decide(Atomic_writes::AUTO, found, 8192).means, Atomic_means::RWF);
  EXPECT_EQ(decide(Atomic_writes::AUTO, found, 16384).means, Atomic_means::RWF);
  EXPECT_EQ(decide(Atomic_writes::AUTO, found, 32768).means,
            Atomic_means::NONE);
}

TEST(AtomicWrite, AFileSystemIsEnoughWhereItIsSaidSo) {
  Atomic_findings found = ORDINARY;
  found.file_system_bytes = PAGE_BYTES;
  expect(decide(Atomic_writes::AUTO, found), Atomic_means::NONE, false,
         Atomic_reason::FILE_SYSTEM_NOT_ALLOWED);
  expect(decide(Atomic_writes::ON, found), Atomic_means::NONE, true,
         Atomic_reason::FILE_SYSTEM_NOT_ALLOWED);
  /* Direct I/O is not what makes it whole. */
  for (const bool is_direct : {true, false}) {
    found.is_direct = is_direct;
    expect(decide(Atomic_writes::AUTO, found, PAGE_BYTES, true),
           Atomic_means::FILE_SYSTEM, false, Atomic_reason::WHOLE);
  }
  EXPECT_TRUE(
      decide(Atomic_writes::ON, found, 2 * PAGE_BYTES, true).is_refused);
}

TEST(AtomicWrite, APageInASectorIsWhole) {
  Atomic_findings found = ORDINARY;
  found.sector_bytes = 4096;
  expect(decide(Atomic_writes::AUTO, found, 4096), Atomic_means::SECTOR, false,
         Atomic_reason::WHOLE);
  EXPECT_EQ(decide(Atomic_writes::AUTO, found, 8192).means, Atomic_means::NONE);
  found.sector_is_trusted = false;
  expect(decide(Atomic_writes::AUTO, found, 4096), Atomic_means::NONE, false,
         Atomic_reason::SECTOR_NOT_TRUSTED);
  expect(decide(Atomic_writes::ON, found, 4096), Atomic_means::NONE, true,
         Atomic_reason::SECTOR_NOT_TRUSTED);
  expect(decide(Atomic_writes::AUTO, found, 4096, true), Atomic_means::SECTOR,
         false, Atomic_reason::WHOLE);
  /* A kernel that does not tell of direct I/O, before Linux 6.1. */
  found.sector_is_trusted = true;
  found.direct_is_confirmed = false;
  expect(decide(Atomic_writes::AUTO, found, 4096), Atomic_means::NONE, false,
         Atomic_reason::NOTHING_FOUND);
  found.is_direct = false;
  expect(decide(Atomic_writes::AUTO, found, 4096), Atomic_means::NONE, false,
         Atomic_reason::NOT_DIRECT);
}

/** Where everything holds, what comes first is taken; without it the next. */
TEST(AtomicWrite, TheOrderOfTheMeans) {
  for (const auto setting : {Atomic_writes::ON, Atomic_writes::AUTO}) {
    Atomic_findings found = xfs_device();
    found.ioctl_succeeds = true;
    found.file_system_bytes = 2 * PAGE_BYTES;
    found.sector_bytes = PAGE_BYTES;
    const auto means = [&found, setting](bool file_system_is_enough) {
      return decide(setting, found, PAGE_BYTES, file_system_is_enough).means;
    };
    EXPECT_EQ(means(true), Atomic_means::IOCTL);
    found.ioctl_succeeds = false;
    EXPECT_EQ(means(true), Atomic_means::RWF);
    found.device_max_bytes = 0;
    EXPECT_EQ(means(true), Atomic_means::FILE_SYSTEM);
    EXPECT_EQ(means(false), Atomic_means::SECTOR);
    found.file_system_bytes = PAGE_BYTES / 2;
    EXPECT_EQ(means(true), Atomic_means::SECTOR);
    found.sector_bytes = PAGE_BYTES / 2;
    EXPECT_EQ(means(true), setting == Atomic_writes::ON ? Atomic_means::RWF_COPY
                                                        : Atomic_means::NONE);
    found.unit_max_bytes = PAGE_BYTES / 2;
    EXPECT_EQ(means(true), Atomic_means::NONE);
  }
}

/* Every combination of what can be found and asked for: what must hold
whatever else is so. */
TEST(AtomicWrite, WhateverIsFound) {
  size_t n_whole = 0, n_refused = 0, n_doublewrite = 0;
  const uint32_t sizes[] = {0, 4096, 16384, 65536};
  std::vector<std::pair<uint32_t, uint32_t>> others;
  for (const uint32_t file_system : sizes) {
    for (const uint32_t sector : sizes) {
      others.emplace_back(file_system, sector);
    }
  }

  for (const auto setting :
       {Atomic_writes::OFF, Atomic_writes::ON, Atomic_writes::AUTO}) {
    for (const uint32_t page_bytes : {1024u, 4096u, 16384u, 65536u}) {
      for (uint32_t bits = 0; bits < 512; ++bits) {
        for (const uint32_t unit_min : sizes) {
          for (const uint32_t unit_max : sizes) {
            for (const uint32_t unit_max_opt : sizes) {
              for (const uint32_t device : sizes) {
                for (const auto &[file_system, sector] : others) {
                  Atomic_input input{};
                  input.setting = setting;
                  input.page_bytes = page_bytes;
                  input.file_system_is_enough = (bits & 1) != 0;
                  input.is_native_aio = (bits & 2) != 0;
                  input.is_synced = (bits & 32) != 0;
                  input.found = {.is_direct = (bits & 4) != 0,
                                 .direct_is_confirmed = (bits & 64) != 0,
                                 .ioctl_succeeds = (bits & 8) != 0,
                                 .unit_min_bytes = unit_min,
                                 .unit_max_bytes = unit_max,
                                 .unit_max_opt_bytes = unit_max_opt,
                                 .device_max_bytes = device,
                                 .rwf_error = (bits & 16) != 0 ? 0 : EINVAL,
                                 .file_system_bytes = file_system,
                                 .sector_bytes = sector,
                                 .sector_is_trusted = (bits & 128) != 0,
                                 .error = (bits & 256) != 0 ? EMFILE : 0};
                  const auto output = decide_atomic_means(input);
                  const bool is_whole = output.means != Atomic_means::NONE;
                  n_whole += is_whole;
                  n_refused += output.is_refused;
                  n_doublewrite += !is_whole && !output.is_refused;

                  ASSERT_EQ(is_whole, output.reason == Atomic_reason::WHOLE);
                  if (is_whole) {
                    ASSERT_FALSE(output.is_refused);
                    ASSERT_TRUE(input.is_native_aio);
                    ASSERT_NE(setting, Atomic_writes::OFF);
                  }
                  if (output.is_refused) {
                    ASSERT_EQ(setting, Atomic_writes::ON);
                    if (input.is_native_aio && input.is_synced) {
                      ASSERT_EQ(input.found.error, 0);
                    }
                  }
                  switch (output.means) {
                    case Atomic_means::NONE:
                    case Atomic_means::N:
                      break;
                    case Atomic_means::IOCTL:
                      ASSERT_TRUE(input.found.ioctl_succeeds);
                      break;
                    case Atomic_means::RWF:
                      ASSERT_LE(page_bytes, device);
                      [[fallthrough]];
                    case Atomic_means::RWF_COPY:
                      ASSERT_EQ(input.found.rwf_error, 0);
                      ASSERT_GT(unit_min, 0u);
                      ASSERT_LE(unit_min, page_bytes);
                      ASSERT_LE(page_bytes, unit_max);
                      break;
                    case Atomic_means::FILE_SYSTEM:
                      ASSERT_TRUE(input.file_system_is_enough);
                      ASSERT_LE(page_bytes, file_system);
                      break;
                    case Atomic_means::SECTOR:
                      ASSERT_LE(page_bytes, sector);
                      ASSERT_TRUE(input.found.direct_is_confirmed);
                      ASSERT_TRUE(input.found.sector_is_trusted ||
                                  input.file_system_is_enough);
                  }
                  if (output.means == Atomic_means::RWF_COPY) {
                    ASSERT_EQ(setting, Atomic_writes::ON);
                    ASSERT_TRUE(sector < page_bytes ||
                                !input.found.direct_is_confirmed ||
                                !input.found.sector_is_trusted);
                  }
                  if (is_whole) {
                    ASSERT_TRUE(input.is_synced);
                  }
                  if (output.means != Atomic_means::FILE_SYSTEM && is_whole) {
                    ASSERT_TRUE(input.found.is_direct);
                  }
                }
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(n_whole, 0u);
  EXPECT_GT(n_refused, 0u);
  EXPECT_GT(n_doublewrite, 0u);
}

TEST(AtomicWrite, APageCompressedPageKeepsDoublewrite) {
  for (uint8_t i = 0; i < static_cast<uint8_t>(Atomic_means::N); ++i) {
    const auto means = static_cast<Atomic_means>(i);
    EXPECT_FALSE(page_is_written_whole(means, true));
    EXPECT_EQ(page_is_written_whole(means, false), means != Atomic_means::NONE);
    EXPECT_EQ(needs_rwf(means),
              means == Atomic_means::RWF || means == Atomic_means::RWF_COPY);
  }
}

/** With ON, where the file is closed, and where there are no copies: the write
opens the file, or ends the server. */
TEST(AtomicWrite, WhatGoesWithoutTheDoublewriteBuffer) {
  for (const auto setting :
       {Atomic_writes::OFF, Atomic_writes::ON, Atomic_writes::AUTO}) {
    for (uint8_t i = 0; i < static_cast<uint8_t>(Atomic_means::N); ++i) {
      const auto means = static_cast<Atomic_means>(i);
      for (const bool is_open : {false, true}) {
        for (const bool has_copies : {false, true}) {
          EXPECT_FALSE(
              page_goes_without(setting, means, is_open, has_copies, true));
          EXPECT_EQ(
              page_goes_without(setting, means, is_open, has_copies, false),
              means != Atomic_means::NONE ||
                  (setting == Atomic_writes::ON && !(is_open && has_copies)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace spw
