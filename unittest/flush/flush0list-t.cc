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

/** 6,400 pages, evenly spread over 50 MB of redo: 128 pages for each MB. The
sync age is 64 MB, so that a bucket is 64 MB / 64 = 1 MB. */
constexpr Dirty_page_sample SPREAD{.lsn = 1050 * MB,
                                   .oldest_lsn = 1000 * MB,
                                   .sync_age = 64 * MB,
                                   .n_dirty = 6400,
                                   .n_written = 0,
                                   .n_lru_flushed = 0};

TEST(FlushList, NoDirtyPagesNoLimit) {
  Dirty_page_ages list;
  EXPECT_EQ(list.bytes_per_page(1.0), INFINITE);
  Dirty_page_sample none = SPREAD;
  none.n_dirty = 0;
  list.add_sample(none);
  EXPECT_EQ(list.bytes_per_page(1.0), INFINITE);
}

TEST(FlushList, FirstSampleSpreadsPagesEvenly) {
  Dirty_page_ages list;
  list.add_sample(SPREAD);
  /* All pages have to be flushed before the youngest, whose age is 0, reaches
  the limit: limit / 6400. */
  EXPECT_NEAR(list.bytes_per_page(64e6), 64e6 / 6400, 1.0);
  EXPECT_NEAR(list.bytes_per_page(50e6), 50e6 / 6400, 1.0);
  /* The oldest bucket has 128 pages of at least 49 MB: 49.5 - 49 = 0.5 MB are
  left. */
  EXPECT_NEAR(list.bytes_per_page(49.5e6), 0.5e6 / 128, 1.0);
  /* They are beyond the limit. */
  EXPECT_EQ(list.bytes_per_page(48e6), 0.0);
}

TEST(FlushList, LsnDisorderAddsToAgesUpToTheOldest) {
  Dirty_page_sample sample = SPREAD;
  sample.lsn_disorder = 20 * MB;
  Dirty_page_ages list;
  list.add_sample(sample);
  /* The pages of the first 20 MB, 20 * 128, count as 50 MB old, as oldest_lsn:
  64 - 50 = 14 MB are left. */
  EXPECT_NEAR(list.bytes_per_page(64e6), 14e6 / (20 * 128), 1.0);
  /* oldest_lsn can be a checkpoint before all pages. It is 50 - 6 + 20 = 64 MB
  old, and so are the first 20 MB of pages. */
  sample.oldest_lsn -= 20 * MB;
  sample.lsn -= 6 * MB;
  list = {};
  list.add_sample(sample);
  EXPECT_EQ(list.bytes_per_page(63.5e6), 0.0);
}

/** A cluster: 5,000 pages became dirty within 1 MB of redo, and none in the 31
MB after that. Each function is a later event. */
class FlushListCluster : public testing::Test {
 protected:
  FlushListCluster() {
    m_list.add_sample(m_sample);
    m_sample.lsn += MB;
    m_sample.n_dirty = 5000;
    m_list.add_sample(m_sample);
    for (int i = 0; i < 31; ++i) {
      m_sample.lsn += MB;
      m_list.add_sample(m_sample);
    }
  }

  /** The oldest 2,000 pages are written, and become dirty again within 1 MB. */
  void write_2000_that_become_dirty_again() {
    m_sample.lsn += MB;
    m_sample.n_written = 2000;
    m_list.add_sample(m_sample);
  }

  /** LRU flushing writes 2,500 pages. */
  void lru_flush_2500() {
    m_sample.n_written += 2500;
    m_sample.n_lru_flushed = 2500;
    m_sample.n_dirty -= 2500;
    m_list.add_sample(m_sample);
  }

  /** A table with 1,250 dirty pages is dropped. */
  void drop_1250() {
    m_sample.n_dirty -= 1250;
    m_list.add_sample(m_sample);
  }

  /** 100 pages become dirty within 1 MB. */
  void make_100_dirty() {
    m_sample.lsn += MB;
    m_sample.n_dirty += 100;
    m_list.add_sample(m_sample);
  }

  Dirty_page_sample m_sample{.lsn = 1000 * MB,
                             .oldest_lsn = 1000 * MB,
                             .sync_age = 64 * MB,
                             .n_dirty = 0,
                             .n_written = 0,
                             .n_lru_flushed = 0};
  Dirty_page_ages m_list;
};

TEST_F(FlushListCluster, LimitIsThatOfTheCluster) {
  /* The cluster is at least 31 MB old: 64 - 31 = 33 MB are left. */
  EXPECT_NEAR(m_list.bytes_per_page(64e6), 33e6 / 5000, 1.0);
}

TEST_F(FlushListCluster, PagesThatBecomeDirtyAgainAreYoung) {
  write_2000_that_become_dirty_again();
  /* The cluster has 5000 - 2000 = 3000 pages, and 64 - 32 = 32 MB left. */
  EXPECT_NEAR(m_list.bytes_per_page(64e6), 32e6 / 3000, 1.0);
}

TEST_F(FlushListCluster, LruFlushingTakesPagesOfAllAges) {
  write_2000_that_become_dirty_again();
  lru_flush_2500();
  /* Half of the 5,000 pages, and so half of the cluster: 3000 / 2 = 1500. */
  EXPECT_NEAR(m_list.bytes_per_page(64e6), 32e6 / 1500, 1.0);
}

TEST_F(FlushListCluster, PagesDoNotGetTheAgeOfDroppedPages) {
  write_2000_that_become_dirty_again();
  lru_flush_2500();
  drop_1250();
  /* Half of the 2,500 pages: 1500 / 2 = 750. */
  EXPECT_NEAR(m_list.bytes_per_page(64e6), 32e6 / 750, 1.0);
  make_100_dirty();
  /* The cluster has 64 - 33 = 31 MB left, and no more pages. */
  EXPECT_NEAR(m_list.bytes_per_page(64e6), 31e6 / 750, 1.0);
}

TEST_F(FlushListCluster, WrittenClusterLeavesYoungPages) {
  write_2000_that_become_dirty_again();
  lru_flush_2500();
  drop_1250();
  make_100_dirty();
  m_sample.lsn += MB;
  m_sample.oldest_lsn = m_sample.lsn - 3 * MB;
  m_sample.n_written += 750;
  m_sample.n_dirty -= 750;
  m_list.add_sample(m_sample);
  /* 2000 / 2 / 2 + 100 = 600 pages. The last 100 are at least 1 MB old: 64 - 1
  = 63 MB are left. */
  EXPECT_NEAR(m_list.bytes_per_page(64e6), 63e6 / 600, 1.0);
}

TEST(FlushList, PagesOfLruListsLeaveAllAgesWhenWritten) {
  Dirty_page_ages list;
  Dirty_page_sample sample = SPREAD;
  list.add_sample(sample);
  sample.n_lru_flushed = 640;
  list.add_sample(sample);
  sample.n_written = 640;
  sample.n_dirty -= 640;
  list.add_sample(sample);
  /* 640 of 6,400 pages are a tenth of each bucket: 0.9 * 128 = 115.2 pages are
  left in the oldest. It would be empty if the 640 pages were the oldest. */
  EXPECT_NEAR(list.bytes_per_page(49.5e6), 0.5e6 / 115.2, 1.0);
}

TEST(FlushList, SmallChangeOfSyncAgeKeepsTheAges) {
  Dirty_page_ages list;
  Dirty_page_sample sample = SPREAD;
  sample.n_dirty = 0;
  sample.oldest_lsn = sample.lsn;
  list.add_sample(sample);
  sample.n_dirty = 1000;
  list.add_sample(sample);
  sample.lsn += 32 * MB;
  /* InnoDB keeps more redo space free for threads. */
  sample.sync_age -= 4 * MB;
  list.add_sample(sample);
  /* 4 / 64 = 6 % are less than a quarter. The bucket with all pages ends 31 MB
  before the end of the redo log: 64 - 31 = 33 MB are left. Evenly spread pages
  would have 64e6 / 1000. */
  EXPECT_NEAR(list.bytes_per_page(64e6), 33e6 / 1000, 1e3);
}

TEST(FlushList, PagesOfResizedRedoLogAreEvenlySpread) {
  Dirty_page_ages list;
  list.add_sample(SPREAD);
  Dirty_page_sample sample = SPREAD;
  sample.sync_age = 640 * MB;
  list.add_sample(sample);
  EXPECT_NEAR(list.bytes_per_page(640e6), 640e6 / 6400, 1.0);
}

TEST(FlushList, PagesAreEvenlySpreadAfterLeapOfTheLsn) {
  Dirty_page_ages list;
  Dirty_page_sample sample = SPREAD;
  sample.sync_age = 640 * MB;
  list.add_sample(sample);
  /* A bucket is 640 / 64 = 10 MB: the leap is 10000 / 10 = 1000 buckets, of
  which 2 * 64 = 128 are kept. */
  sample.lsn += 10'000 * MB;
  sample.oldest_lsn = sample.lsn - 100 * MB;
  sample.n_dirty = 1000;
  list.add_sample(sample);
  EXPECT_NEAR(list.bytes_per_page(640e6), 640e6 / 1000, 1.0);
  /* The sync age is not known. */
  sample.sync_age = 0;
  list.add_sample(sample);
  EXPECT_EQ(list.bytes_per_page(0.0), 0.0);
}

}  // namespace
}  // namespace spw
