/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "flush/policy/flush0util.h"

#include <gtest/gtest.h>

#include <vector>

namespace spw {
namespace {

TEST(FlushUtil, LoadIsBusyTimeOfBusiestDiskAndIosOfAll) {
  /* Of each disk, at the begin and 2 s later: busy time in ms, I/Os. */
  const std::vector<Disk_work> before{{1000, 50}, {7000, 100}};
  const std::vector<Disk_work> after{{2200, 150}, {7500, 400}};
  /* (2200 - 1000) ms / 2 s = 0.6 and (7500 - 7000) ms / 2 s = 0.25 */
  EXPECT_NEAR(disk_load(before, after, 2.0).busy_fraction, 0.6, 1e-9);
  /* (150 - 50 + 400 - 100) / 2 s = 200 I/Os/s */
  EXPECT_NEAR(disk_load(before, after, 2.0).io_per_s, 200.0, 1e-9);
  /* The disks are gone. */
  EXPECT_EQ(disk_load(before, {}, 2.0).busy_fraction, 0.0);
  /* The counters were reset. */
  EXPECT_EQ(disk_load(after, before, 2.0).io_per_s, 0.0);
}

TEST(FlushUtil, UsesSpareIoCapacityWhileDeviceIsNotBusy) {
  /* io_capacity - I/Os - pages of adaptive flushing: 1000 - 300 - 200 = 500 */
  EXPECT_EQ(flush_util_extra_per_s({0.79, 300.0}, 0.0, 200.0, 1000.0), 500.0);
  /* Busy for 0.8 of the time counts as busy. */
  EXPECT_EQ(flush_util_extra_per_s({0.80, 300.0}, 0.0, 200.0, 1000.0), 0.0);
  /* 1000 - 900 - 200 is negative. */
  EXPECT_EQ(flush_util_extra_per_s({0.10, 900.0}, 0.0, 200.0, 1000.0), 0.0);
  /* Flushed pages do not count as the load of others: 1000 - (900 - 700) - 200
  = 600. */
  EXPECT_EQ(flush_util_extra_per_s({0.10, 900.0}, 700.0, 200.0, 1000.0), 600.0);
}

TEST(FlushUtil, OneSampleInEachWindow) {
  Flush_util util;
  EXPECT_TRUE(util.is_new());
  EXPECT_TRUE(util.is_due(1000.0));
  util.add_sample(1000.0, {{0, 0}}, 0, 200.0, 1000.0);
  EXPECT_EQ(util.extra_per_s(), 0.0);
  EXPECT_FALSE(util.is_due(1000.9));
  EXPECT_TRUE(util.is_due(1001.0));
  /* In 2 s: busy for 200 ms, 1800 / 2 = 900 I/Os/s, 1400 / 2 = 700 pages/s:
  1000 - (900 - 700) - 200 = 600. */
  util.add_sample(1002.0, {{200, 1800}}, 1400, 200.0, 1000.0);
  EXPECT_EQ(util.extra_per_s(), 600.0);
}

TEST(FlushUtil, StartsOverAfterDisksCouldNotBeRead) {
  Flush_util util;
  /* 600 pages/s, as above. */
  util.add_sample(1000.0, {{0, 0}}, 0, 200.0, 1000.0);
  util.add_sample(1002.0, {{200, 1800}}, 1400, 200.0, 1000.0);
  util.add_sample(1003.0, {}, 1400, 200.0, 1000.0);
  EXPECT_EQ(util.extra_per_s(), 0.0);
  EXPECT_TRUE(util.is_new());
  EXPECT_TRUE(util.is_due(1003.0));
  util.add_sample(1003.0, {{200, 1800}}, 1400, 200.0, 1000.0);
  EXPECT_EQ(util.extra_per_s(), 0.0);
}

}  // namespace
}  // namespace spw
