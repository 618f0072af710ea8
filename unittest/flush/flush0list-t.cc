/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "flush/policy/flush0list.h"

#include <gtest/gtest.h>

namespace spw {
namespace {

constexpr uint64_t MB = 1'000'000;
constexpr double INFINITE = std::numeric_limits<double>::infinity();

/** 6,400 pages, evenly spread over 50 MB of redo. The sync age is 64 MB. */
constexpr Dirty_page_sample SPREAD{.lsn = 1050 * MB,
                                   .oldest_lsn = 1000 * MB,
                                   .sync_age = 64 * MB,
                                   .n_dirty = 6400,
                                   .n_written = 0,
                                   .n_lru_flushed = 0};

TEST(FlushList, WithoutDirtyPagesTheRedoLogMayBeFilledAtAnySpeed) {
  Dirty_page_ages list;
  EXPECT_EQ(list.bytes_per_page(1.0), INFINITE);
  Dirty_page_sample none = SPREAD;
  none.n_dirty = 0;
  list.add_sample(none);
  EXPECT_EQ(list.bytes_per_page(1.0), INFINITE);
}

TEST(FlushList, OfWhatIsThereAtFirstAllAgesHaveAsMuch) {
  Dirty_page_ages list;
  list.add_sample(SPREAD);
  EXPECT_NEAR(list.bytes_per_page(64e6), 64e6 / 6400, 1.0);
  EXPECT_NEAR(list.bytes_per_page(50e6), 50e6 / 6400, 1.0);
  /* The oldest bucket of 1 MB, 128 pages, has 0.5 MB left to the limit. */
  EXPECT_NEAR(list.bytes_per_page(49.5e6), 0.5e6 / 128, 1.0);
  EXPECT_EQ(list.bytes_per_page(48e6), 0.0);
}

TEST(FlushList, PagesAreSaidToBeOlderButNotBeforeTheOldest) {
  Dirty_page_sample sample = SPREAD;
  sample.lsn_disorder = 20 * MB;
  Dirty_page_ages list;
  list.add_sample(sample);
  /* The pages of the first 20 MB count as 50 MB old, as oldest_lsn. */
  EXPECT_NEAR(list.bytes_per_page(64e6), 14e6 / (20 * 128), 1.0);
  /* oldest_lsn may be a checkpoint before all pages. */
  sample.oldest_lsn -= 20 * MB;
  sample.lsn -= 6 * MB;
  list = {};
  list.add_sample(sample);
  EXPECT_EQ(list.bytes_per_page(63.5e6), 0.0);
}

TEST(FlushList, PagesThatLieThickAreSeen) {
  /* 5,000 pages within 1 MB, and then none for 31 MB. */
  Dirty_page_ages list;
  Dirty_page_sample sample{.lsn = 1000 * MB,
                           .oldest_lsn = 1000 * MB,
                           .sync_age = 64 * MB,
                           .n_dirty = 0,
                           .n_written = 0,
                           .n_lru_flushed = 0};
  list.add_sample(sample);
  sample.lsn += MB;
  sample.n_dirty = 5000;
  list.add_sample(sample);
  for (int i = 0; i < 31; ++i) {
    sample.lsn += MB;
    list.add_sample(sample);
  }
  EXPECT_NEAR(list.bytes_per_page(64e6), 33e6 / 5000, 1.0);
  /* 2,000 pages were written, and are dirty again. */
  sample.lsn += MB;
  sample.n_written = 2000;
  list.add_sample(sample);
  EXPECT_NEAR(list.bytes_per_page(64e6), 32e6 / 3000, 1.0);
  /* LRU flushing has written 2,500 of them, of any age. */
  sample.n_written += 2500;
  sample.n_lru_flushed = 2500;
  sample.n_dirty -= 2500;
  list.add_sample(sample);
  EXPECT_NEAR(list.bytes_per_page(64e6), 32e6 / 1500, 1.0);
  /* A table was dropped: pages that become dirty next do not have its age. */
  sample.n_dirty -= 1250;
  list.add_sample(sample);
  EXPECT_NEAR(list.bytes_per_page(64e6), 32e6 / 750, 1.0);
  sample.lsn += MB;
  sample.n_dirty += 100;
  list.add_sample(sample);
  EXPECT_NEAR(list.bytes_per_page(64e6), 31e6 / 750, 1.0);
  /* The cluster is written; the other pages are of the last MBs. */
  sample.lsn += MB;
  sample.oldest_lsn = sample.lsn - 3 * MB;
  sample.n_written += 750;
  sample.n_dirty -= 750;
  list.add_sample(sample);
  EXPECT_NEAR(list.bytes_per_page(64e6), 63e6 / 600, 1.0);
}

TEST(FlushList, WhatTheLruListsHandOverIsWrittenLater) {
  Dirty_page_ages list;
  Dirty_page_sample sample = SPREAD;
  list.add_sample(sample);
  sample.n_lru_flushed = 640;
  list.add_sample(sample);
  sample.n_written = 640;
  sample.n_dirty -= 640;
  list.add_sample(sample);
  /* A tenth of each bucket, and not the oldest 5 MB. */
  EXPECT_NEAR(list.bytes_per_page(49.5e6), 0.5e6 / 115.2, 1.0);
}

TEST(FlushList, WhatIsKeptFreeForThreadsIsNoOtherRedoLog) {
  Dirty_page_ages list;
  Dirty_page_sample sample = SPREAD;
  sample.n_dirty = 0;
  sample.oldest_lsn = sample.lsn;
  list.add_sample(sample);
  sample.n_dirty = 1000;
  list.add_sample(sample);
  sample.lsn += 32 * MB;
  sample.sync_age -= 4 * MB;
  list.add_sample(sample);
  EXPECT_NEAR(list.bytes_per_page(64e6), 33e6 / 1000, 1e3);
}

TEST(FlushList, AnotherRedoLogIsLookedAtAnew) {
  Dirty_page_ages list;
  list.add_sample(SPREAD);
  Dirty_page_sample sample = SPREAD;
  sample.sync_age = 640 * MB;
  list.add_sample(sample);
  EXPECT_NEAR(list.bytes_per_page(640e6), 640e6 / 6400, 1.0);
  sample.lsn += 10'000 * MB;
  sample.oldest_lsn = sample.lsn - 100 * MB;
  sample.n_dirty = 1000;
  list.add_sample(sample);
  EXPECT_NEAR(list.bytes_per_page(640e6), 640e6 / 1000, 1.0);
  /* The limits are not known yet. */
  sample.sync_age = 0;
  list.add_sample(sample);
  EXPECT_EQ(list.bytes_per_page(0.0), 0.0);
}

}  // namespace
}  // namespace spw
