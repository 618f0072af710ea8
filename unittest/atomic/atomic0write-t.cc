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

constexpr uint32_t KIB = 1024;
constexpr uint32_t PAGE_BYTES = 16 * KIB;

/** ext4 on an ordinary disk without atomic writes, as detected on one. */
constexpr Storage_capabilities ORDINARY{.is_direct = true,
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

Storage_capabilities xfs_copies() {
  Storage_capabilities storage = ORDINARY;
  storage.unit_min_bytes = 4 * KIB;
  storage.unit_max_bytes = 2048 * KIB;
  return storage;
}

Storage_capabilities xfs_device() {
  Storage_capabilities storage = xfs_copies();
  storage.device_max_bytes = 64 * KIB;
  storage.unit_max_opt_bytes = 64 * KIB;
  return storage;
}

Atomic_output decide(Atomic_writes setting, const Storage_capabilities &storage,
                     uint32_t page_bytes = PAGE_BYTES,
                     bool accept_unverified = false) {
  return choose_atomic_method({.setting = setting,
                               .accept_unverified = accept_unverified,
                               .page_bytes = page_bytes,
                               .is_native_aio = true,
                               .is_synced = true,
                               .storage = storage});
}

void expect(const Atomic_output &output, Atomic_method method, bool is_refused,
            Atomic_reason reason) {
  EXPECT_EQ(output.method, method);
  EXPECT_EQ(output.is_refused, is_refused);
  EXPECT_EQ(output.reason, reason);
}

TEST(AtomicWrite, OrdinaryDiskUsesDoublewriteOrIsRefused) {
  expect(decide(Atomic_writes::AUTO, ORDINARY), Atomic_method::NONE, false,
         Atomic_reason::NOT_ATOMIC);
  expect(decide(Atomic_writes::ON, ORDINARY), Atomic_method::NONE, true,
         Atomic_reason::NOT_ATOMIC);
}

TEST(AtomicWrite, IoctlIsPreferred) {
  for (Storage_capabilities storage : {ORDINARY, xfs_copies(), xfs_device()}) {
    storage.ioctl_succeeds = true;
    for (const auto setting : {Atomic_writes::ON, Atomic_writes::AUTO}) {
      expect(decide(setting, storage), Atomic_method::IOCTL, false,
             Atomic_reason::ATOMIC);
    }
  }
}

TEST(AtomicWrite, DeviceWithUntornWritesUsesRwf) {
  for (const auto setting : {Atomic_writes::ON, Atomic_writes::AUTO}) {
    expect(decide(setting, xfs_device()), Atomic_method::RWF, false,
           Atomic_reason::ATOMIC);
  }
}

TEST(AtomicWrite, CopyOnWriteOnlyWithOn) {
  expect(decide(Atomic_writes::ON, xfs_copies()), Atomic_method::RWF_COPY,
         false, Atomic_reason::ATOMIC);
  expect(decide(Atomic_writes::AUTO, xfs_copies()), Atomic_method::NONE, false,
         Atomic_reason::COPIES_ARE_SLOW);

  /* The device writes up to 8 KiB atomically; larger pages are copied. */
  Storage_capabilities storage = xfs_device();
  storage.unit_max_opt_bytes = 8 * KIB;
  expect(decide(Atomic_writes::AUTO, storage), Atomic_method::NONE, false,
         Atomic_reason::COPIES_ARE_SLOW);
  expect(decide(Atomic_writes::AUTO, storage, 8 * KIB), Atomic_method::RWF,
         false, Atomic_reason::ATOMIC);

  storage = xfs_device();
  storage.device_max_bytes = 8 * KIB;
  expect(decide(Atomic_writes::AUTO, storage), Atomic_method::NONE, false,
         Atomic_reason::COPIES_ARE_SLOW);
}

TEST(AtomicWrite, RejectedTestWriteMeansNoMethod) {
  Storage_capabilities storage = xfs_device();
  for (const int error : {EINVAL, EOPNOTSUPP}) {
    storage.rwf_error = error;
    expect(decide(Atomic_writes::AUTO, storage), Atomic_method::NONE, false,
           Atomic_reason::REJECTED);
    expect(decide(Atomic_writes::ON, storage), Atomic_method::NONE, true,
           Atomic_reason::REJECTED);
  }
}

TEST(AtomicWrite, NoMethodWithoutSync) {
  Storage_capabilities sector = ORDINARY;
  sector.sector_bytes = PAGE_BYTES;
  Storage_capabilities ioctl = ORDINARY;
  ioctl.ioctl_succeeds = true;
  Storage_capabilities journal = ORDINARY;
  journal.file_system_bytes = PAGE_BYTES;
  for (const auto &storage :
       {xfs_copies(), xfs_device(), ioctl, journal, sector}) {
    for (const auto setting : {Atomic_writes::AUTO, Atomic_writes::ON}) {
      expect(choose_atomic_method({.setting = setting,
                                   .accept_unverified = true,
                                   .page_bytes = PAGE_BYTES,
                                   .is_native_aio = true,
                                   .is_synced = false,
                                   .storage = storage}),
             Atomic_method::NONE, setting == Atomic_writes::ON,
             Atomic_reason::NOT_SYNCED);
    }
  }
}

TEST(AtomicWrite, PageCompressedFileIsShownWithoutMethod) {
  const auto whole = decide(Atomic_writes::ON, xfs_device());
  expect(as_shown(whole, false), Atomic_method::RWF, false,
         Atomic_reason::ATOMIC);
  expect(as_shown(whole, true), Atomic_method::NONE, false,
         Atomic_reason::PAGE_COMPRESSED);
  const auto none = decide(Atomic_writes::AUTO, ORDINARY);
  expect(as_shown(none, true), Atomic_method::NONE, false,
         Atomic_reason::NOT_ATOMIC);
}

/** A full disk, missing descriptors or missing permissions say nothing about
the storage: no file is refused, and with ON no page goes through the
doublewrite buffer. */
TEST(AtomicWrite, FailedTestWriteDoesNotRefuseFile) {
  for (const int error : {ENOSPC, EMFILE, EACCES}) {
    Storage_capabilities storage = xfs_device();
    storage.rwf_error = error;
    expect(decide(Atomic_writes::AUTO, storage), Atomic_method::NONE, false,
           Atomic_reason::NOT_TRIED);
    expect(decide(Atomic_writes::ON, storage), Atomic_method::RWF, false,
           Atomic_reason::NOT_TRIED);
    storage = xfs_copies();
    storage.rwf_error = error;
    expect(decide(Atomic_writes::ON, storage), Atomic_method::RWF_COPY, false,
           Atomic_reason::NOT_TRIED);
  }
}

TEST(AtomicWrite, UnexaminedDeviceDoesNotRefuseFile) {
  Storage_capabilities storage = ORDINARY;
  storage.sector_bytes = 0;
  storage.error = EMFILE;
  for (const auto setting : {Atomic_writes::AUTO, Atomic_writes::ON}) {
    expect(decide(setting, storage), Atomic_method::NONE, false,
           Atomic_reason::NOT_EXAMINED);
  }
  /* XFS can copy each page, and whether the device needs it is unknown. */
  storage = xfs_copies();
  storage.error = EMFILE;
  expect(decide(Atomic_writes::AUTO, storage), Atomic_method::NONE, false,
         Atomic_reason::NOT_EXAMINED);
}

TEST(AtomicWrite, PageSizeOutsideUnitsHasNoMethod) {
  Storage_capabilities storage = xfs_device();
  storage.unit_min_bytes = 8 * KIB;
  storage.unit_max_bytes = 16 * KIB;
  EXPECT_EQ(decide(Atomic_writes::AUTO, storage, 4 * KIB).method,
            Atomic_method::NONE);
  EXPECT_EQ(decide(Atomic_writes::AUTO, storage, 8 * KIB).method,
            Atomic_method::RWF);
  EXPECT_EQ(decide(Atomic_writes::AUTO, storage, 16 * KIB).method,
            Atomic_method::RWF);
  EXPECT_EQ(decide(Atomic_writes::AUTO, storage, 32 * KIB).method,
            Atomic_method::NONE);
}

TEST(AtomicWrite, FileSystemJournalNeedsTheSetting) {
  Storage_capabilities storage = ORDINARY;
  storage.file_system_bytes = PAGE_BYTES;
  expect(decide(Atomic_writes::AUTO, storage), Atomic_method::NONE, false,
         Atomic_reason::FILE_SYSTEM_NOT_ALLOWED);
  expect(decide(Atomic_writes::ON, storage), Atomic_method::NONE, true,
         Atomic_reason::FILE_SYSTEM_NOT_ALLOWED);
  /* The file system's journal does not depend on direct I/O. */
  for (const bool is_direct : {true, false}) {
    storage.is_direct = is_direct;
    expect(decide(Atomic_writes::AUTO, storage, PAGE_BYTES, true),
           Atomic_method::FILE_SYSTEM, false, Atomic_reason::ATOMIC);
  }
  EXPECT_TRUE(
      decide(Atomic_writes::ON, storage, 2 * PAGE_BYTES, true).is_refused);
}

TEST(AtomicWrite, PageThatFitsIntoSectorIsAtomic) {
  Storage_capabilities storage = ORDINARY;
  storage.sector_bytes = 4 * KIB;
  expect(decide(Atomic_writes::AUTO, storage, 4 * KIB), Atomic_method::SECTOR,
         false, Atomic_reason::ATOMIC);
  EXPECT_EQ(decide(Atomic_writes::AUTO, storage, 8 * KIB).method,
            Atomic_method::NONE);
  storage.sector_is_trusted = false;
  expect(decide(Atomic_writes::AUTO, storage, 4 * KIB), Atomic_method::NONE,
         false, Atomic_reason::SECTOR_NOT_TRUSTED);
  expect(decide(Atomic_writes::ON, storage, 4 * KIB), Atomic_method::NONE, true,
         Atomic_reason::SECTOR_NOT_TRUSTED);
  expect(decide(Atomic_writes::AUTO, storage, 4 * KIB, true),
         Atomic_method::SECTOR, false, Atomic_reason::ATOMIC);
  /* A kernel before Linux 6.1 does not report direct I/O. */
  storage.sector_is_trusted = true;
  storage.direct_is_confirmed = false;
  expect(decide(Atomic_writes::AUTO, storage, 4 * KIB), Atomic_method::NONE,
         false, Atomic_reason::NOT_ATOMIC);
  storage.is_direct = false;
  expect(decide(Atomic_writes::AUTO, storage, 4 * KIB), Atomic_method::NONE,
         false, Atomic_reason::NOT_DIRECT);
}

/** If several methods hold, the first in the order is chosen. */
TEST(AtomicWrite, OrderOfMethods) {
  for (const auto setting : {Atomic_writes::ON, Atomic_writes::AUTO}) {
    Storage_capabilities storage = xfs_device();
    storage.ioctl_succeeds = true;
    storage.file_system_bytes = 2 * PAGE_BYTES;
    storage.sector_bytes = PAGE_BYTES;
    const auto method = [&storage, setting](bool accept_unverified) {
      return decide(setting, storage, PAGE_BYTES, accept_unverified).method;
    };
    EXPECT_EQ(method(true), Atomic_method::IOCTL);
    storage.ioctl_succeeds = false;
    EXPECT_EQ(method(true), Atomic_method::RWF);
    storage.device_max_bytes = 0;
    EXPECT_EQ(method(true), Atomic_method::FILE_SYSTEM);
    EXPECT_EQ(method(false), Atomic_method::SECTOR);
    storage.file_system_bytes = PAGE_BYTES / 2;
    EXPECT_EQ(method(true), Atomic_method::SECTOR);
    storage.sector_bytes = PAGE_BYTES / 2;
    EXPECT_EQ(method(true), setting == Atomic_writes::ON
                                ? Atomic_method::RWF_COPY
                                : Atomic_method::NONE);
    storage.unit_max_bytes = PAGE_BYTES / 2;
    EXPECT_EQ(method(true), Atomic_method::NONE);
  }
}

/* Invariants for every combination of settings and capabilities. */
TEST(AtomicWrite, InvariantsOfAllCombinations) {
  size_t n_atomic = 0, n_refused = 0, n_doublewrite = 0;
  const uint32_t sizes[] = {0, 4 * KIB, 16 * KIB, 64 * KIB};
  std::vector<std::pair<uint32_t, uint32_t>> others;
  for (const uint32_t file_system : sizes) {
    for (const uint32_t sector : sizes) {
      others.emplace_back(file_system, sector);
    }
  }

  for (const auto setting :
       {Atomic_writes::OFF, Atomic_writes::ON, Atomic_writes::AUTO}) {
    for (const uint32_t page_bytes : {KIB, 4 * KIB, 16 * KIB, 64 * KIB}) {
      for (uint32_t bits = 0; bits < 1 << 9; ++bits) {
        for (const uint32_t unit_min : sizes) {
          for (const uint32_t unit_max : sizes) {
            for (const uint32_t unit_max_opt : sizes) {
              for (const uint32_t device : sizes) {
                for (const auto &[file_system, sector] : others) {
                  Atomic_input input{};
                  input.setting = setting;
                  input.page_bytes = page_bytes;
                  input.accept_unverified = (bits & 1) != 0;
                  input.is_native_aio = (bits & 2) != 0;
                  input.is_synced = (bits & 32) != 0;
                  input.storage = {.is_direct = (bits & 4) != 0,
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
                  const auto output = choose_atomic_method(input);
                  const bool is_atomic = output.method != Atomic_method::NONE;
                  n_atomic += is_atomic;
                  n_refused += output.is_refused;
                  n_doublewrite += !is_atomic && !output.is_refused;

                  ASSERT_EQ(is_atomic, output.reason == Atomic_reason::ATOMIC);
                  if (is_atomic) {
                    ASSERT_FALSE(output.is_refused);
                    ASSERT_TRUE(input.is_native_aio);
                    ASSERT_NE(setting, Atomic_writes::OFF);
                  }
                  if (output.is_refused) {
                    ASSERT_EQ(setting, Atomic_writes::ON);
                    if (input.is_native_aio && input.is_synced) {
                      ASSERT_EQ(input.storage.error, 0);
                    }
                  }
                  switch (output.method) {
                    case Atomic_method::NONE:
                    case Atomic_method::N:
                      break;
                    case Atomic_method::IOCTL:
                      ASSERT_TRUE(input.storage.ioctl_succeeds);
                      break;
                    case Atomic_method::RWF:
                      ASSERT_LE(page_bytes, device);
                      [[fallthrough]];
                    case Atomic_method::RWF_COPY:
                      ASSERT_EQ(input.storage.rwf_error, 0);
                      ASSERT_GT(unit_min, 0u);
                      ASSERT_LE(unit_min, page_bytes);
                      ASSERT_LE(page_bytes, unit_max);
                      break;
                    case Atomic_method::FILE_SYSTEM:
                      ASSERT_TRUE(input.accept_unverified);
                      ASSERT_LE(page_bytes, file_system);
                      break;
                    case Atomic_method::SECTOR:
                      ASSERT_LE(page_bytes, sector);
                      ASSERT_TRUE(input.storage.direct_is_confirmed);
                      ASSERT_TRUE(input.storage.sector_is_trusted ||
                                  input.accept_unverified);
                  }
                  if (output.method == Atomic_method::RWF_COPY) {
                    ASSERT_EQ(setting, Atomic_writes::ON);
                    ASSERT_TRUE(sector < page_bytes ||
                                !input.storage.direct_is_confirmed ||
                                !input.storage.sector_is_trusted);
                  }
                  if (is_atomic) {
                    ASSERT_TRUE(input.is_synced);
                  }
                  if (output.method != Atomic_method::FILE_SYSTEM &&
                      is_atomic) {
                    ASSERT_TRUE(input.storage.is_direct);
                  }
                }
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(n_atomic, 0u);
  EXPECT_GT(n_refused, 0u);
  EXPECT_GT(n_doublewrite, 0u);
}

TEST(AtomicWrite, PageCompressedPageIsNotAtomic) {
  for (uint8_t i = 0; i < static_cast<uint8_t>(Atomic_method::N); ++i) {
    const auto method = static_cast<Atomic_method>(i);
    EXPECT_FALSE(is_written_atomically(method, true));
    EXPECT_EQ(is_written_atomically(method, false),
              method != Atomic_method::NONE);
    EXPECT_EQ(is_atomic_write(method, false, 16384, 16384),
              method != Atomic_method::NONE);
    EXPECT_FALSE(is_atomic_write(method, false, 4096, 16384));
    EXPECT_FALSE(is_atomic_write(method, true, 16384, 16384));
    EXPECT_EQ(needs_rwf(method), method == Atomic_method::RWF ||
                                     method == Atomic_method::RWF_COPY);
  }
}

/** With ON a page also bypasses the doublewrite buffer if its file is closed or
there are no copies: the write opens the file, or the server stops. */
TEST(AtomicWrite, PagesThatBypassDoublewrite) {
  for (const auto setting :
       {Atomic_writes::OFF, Atomic_writes::ON, Atomic_writes::AUTO}) {
    for (uint8_t i = 0; i < static_cast<uint8_t>(Atomic_method::N); ++i) {
      const auto method = static_cast<Atomic_method>(i);
      for (const bool expects_method : {false, true}) {
        for (const bool has_copies : {false, true}) {
          EXPECT_FALSE(may_bypass_doublewrite(setting, method, expects_method,
                                              has_copies, true));
          EXPECT_EQ(may_bypass_doublewrite(setting, method, expects_method,
                                           has_copies, false),
                    method != Atomic_method::NONE ||
                        (setting == Atomic_writes::ON &&
                         (expects_method || !has_copies)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace spw
