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

/** 6,400 pages, spread over 50 MB of a redo log of which 64 MB are the age of
sync flushing. */
constexpr Flush_list_look SPREAD{.lsn = 1050 * MB,
                                 .oldest_lsn = 1000 * MB,
                                 .sync_age = 64 * MB,
                                 .n_dirty = 6400,
                                 .n_written = 0,
                                 .n_lru_flushed = 0};

TEST(FlushList, WithoutDirtyPagesTheRedoLogMayBeFilledAtAnySpeed) {
  Flush_list_shape list;
  EXPECT_EQ(list.bytes_per_page(1.0), INFINITE);
  Flush_list_look none = SPREAD;
  none.n_dirty = 0;
  list.look(none);
  EXPECT_EQ(list.bytes_per_page(1.0), INFINITE);
}

TEST(FlushList, OfWhatIsThereAtFirstAllAgesHaveAsMuch) {
  Flush_list_shape list;
  list.look(SPREAD);
  EXPECT_NEAR(list.bytes_per_page(64e6), 64e6 / 6400, 1.0);
  EXPECT_NEAR(list.bytes_per_page(50e6), 50e6 / 6400, 1.0);
  /* The oldest part of 1 MB, 128 pages, has 0.5 MB left until it is. */
  EXPECT_NEAR(list.bytes_per_page(49.5e6), 0.5e6 / 128, 1.0);
  EXPECT_EQ(list.bytes_per_page(48e6), 0.0);
}

TEST(FlushList, PagesAreSaidToBeOlderButNotBeforeTheOldest) {
  Flush_list_look look = SPREAD;
  look.order_lag = 20 * MB;
  Flush_list_shape list;
  list.look(look);
  /* The first 20 MB of pages are said to be 50 MB old, as the checkpoint is. */
  EXPECT_NEAR(list.bytes_per_page(64e6), 14e6 / (20 * 128), 1.0);
  /* A checkpoint that was written may have been behind them. */
  look.oldest_lsn -= 20 * MB;
  look.lsn -= 6 * MB;
  list = {};
  list.look(look);
  EXPECT_EQ(list.bytes_per_page(63.5e6), 0.0);
}

TEST(FlushList, PagesThatLieThickAreSeen) {
  /* 5,000 pages within 1 MB, and then none for 31 MB. */
  Flush_list_shape list;
  Flush_list_look look{.lsn = 1000 * MB,
                       .oldest_lsn = 1000 * MB,
                       .sync_age = 64 * MB,
                       .n_dirty = 0,
                       .n_written = 0,
                       .n_lru_flushed = 0};
  list.look(look);
  look.lsn += MB;
  look.n_dirty = 5000;
  list.look(look);
  for (int i = 0; i < 31; ++i) {
    look.lsn += MB;
    list.look(look);
  }
  EXPECT_NEAR(list.bytes_per_page(64e6), 33e6 / 5000, 1.0);
  /* 2,000 have been written, and are dirty again. */
  look.lsn += MB;
  look.n_written = 2000;
  list.look(look);
  EXPECT_NEAR(list.bytes_per_page(64e6), 32e6 / 3000, 1.0);
  /* The LRU lists had 2,500 of them written, of any age. */
  look.n_written += 2500;
  look.n_lru_flushed = 2500;
  look.n_dirty -= 2500;
  list.look(look);
  EXPECT_NEAR(list.bytes_per_page(64e6), 32e6 / 1500, 1.0);
  /* A table has been dropped: what is made dirty next is not of its age. */
  look.n_dirty -= 1250;
  list.look(look);
  EXPECT_NEAR(list.bytes_per_page(64e6), 32e6 / 750, 1.0);
  look.lsn += MB;
  look.n_dirty += 100;
  list.look(look);
  EXPECT_NEAR(list.bytes_per_page(64e6), 31e6 / 750, 1.0);
  /* What was thick is written; the others are of the last MBs. */
  look.lsn += MB;
  look.oldest_lsn = look.lsn - 3 * MB;
  look.n_written += 750;
  look.n_dirty -= 750;
  list.look(look);
  EXPECT_NEAR(list.bytes_per_page(64e6), 63e6 / 600, 1.0);
}

TEST(FlushList, WhatTheLruListsHandOverIsWrittenLater) {
  Flush_list_shape list;
  Flush_list_look look = SPREAD;
  list.look(look);
  look.n_lru_flushed = 640;
  list.look(look);
  look.n_written = 640;
  look.n_dirty -= 640;
  list.look(look);
  /* A tenth of each part, and not the oldest 5 MB. */
  EXPECT_NEAR(list.bytes_per_page(49.5e6), 0.5e6 / 115.2, 1.0);
}

TEST(FlushList, WhatIsKeptFreeForThreadsIsNoOtherRedoLog) {
  Flush_list_shape list;
  Flush_list_look look = SPREAD;
  look.n_dirty = 0;
  look.oldest_lsn = look.lsn;
  list.look(look);
  look.n_dirty = 1000;
  list.look(look);
  look.lsn += 32 * MB;
  look.sync_age -= 4 * MB;
  list.look(look);
  EXPECT_NEAR(list.bytes_per_page(64e6), 33e6 / 1000, 1e3);
}

TEST(FlushList, AnotherRedoLogIsLookedAtAnew) {
  Flush_list_shape list;
  list.look(SPREAD);
  Flush_list_look look = SPREAD;
  look.sync_age = 640 * MB;
  list.look(look);
  EXPECT_NEAR(list.bytes_per_page(640e6), 640e6 / 6400, 1.0);
  look.lsn += 10'000 * MB;
  look.oldest_lsn = look.lsn - 100 * MB;
  look.n_dirty = 1000;
  list.look(look);
  EXPECT_NEAR(list.bytes_per_page(640e6), 640e6 / 1000, 1.0);
  /* No limits are known yet. */
  look.sync_age = 0;
  list.look(look);
  EXPECT_EQ(list.bytes_per_page(0.0), 0.0);
}

}  // namespace
}  // namespace spw
