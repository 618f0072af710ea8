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

TEST(FlushUtil, TheBusiestDiskCountsAndTheWorkOfAll) {
  const std::vector<Disk_work> before{{1000, 50}, {7000, 100}};
  const std::vector<Disk_work> after{{2200, 150}, {7500, 400}};
  EXPECT_NEAR(disk_load(before, after, 2.0).busy_share, 0.6, 1e-9);
  EXPECT_NEAR(disk_load(before, after, 2.0).io_per_s, 200.0, 1e-9);
  /* A disk that is gone, and counters that were reset. */
  EXPECT_EQ(disk_load(before, {}, 2.0).busy_share, 0.0);
  EXPECT_EQ(disk_load(after, before, 2.0).io_per_s, 0.0);
}

TEST(FlushUtil, AddsWhatIsFreeWhileTheDeviceIsNotBusy) {
  EXPECT_EQ(flush_util_extra_per_s({0.79, 300.0}, 0.0, 200.0, 1000.0), 500.0);
  EXPECT_EQ(flush_util_extra_per_s({0.80, 300.0}, 0.0, 200.0, 1000.0), 0.0);
  EXPECT_EQ(flush_util_extra_per_s({0.10, 900.0}, 0.0, 200.0, 1000.0), 0.0);
  /* Pages that it has flushed itself do not count as the load of others. */
  EXPECT_EQ(flush_util_extra_per_s({0.10, 900.0}, 700.0, 200.0, 1000.0), 600.0);
}

TEST(FlushUtil, LooksOnceInAWindowAndAnewWhereTheDisksWereGone) {
  Flush_util util;
  EXPECT_TRUE(util.is_new());
  EXPECT_TRUE(util.is_due(1000.0));
  util.add_sample(1000.0, {{0, 0}}, 0, 200.0, 1000.0);
  EXPECT_EQ(util.extra_per_s(), 0.0);
  EXPECT_FALSE(util.is_due(1000.9));
  EXPECT_TRUE(util.is_due(1001.0));
  util.add_sample(1002.0, {{200, 1800}}, 1400, 200.0, 1000.0);
  EXPECT_EQ(util.extra_per_s(), 600.0);
  util.add_sample(1003.0, {}, 1400, 200.0, 1000.0);
  EXPECT_EQ(util.extra_per_s(), 0.0);
  EXPECT_TRUE(util.is_new());
  EXPECT_TRUE(util.is_due(1003.0));
  util.add_sample(1003.0, {{200, 1800}}, 1400, 200.0, 1000.0);
  EXPECT_EQ(util.extra_per_s(), 0.0);
}

}  // namespace
}  // namespace spw
