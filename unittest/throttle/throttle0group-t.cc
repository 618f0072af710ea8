/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file throttle0group-t.cc
Commit groups: their interval, and which commits go on together. */

#include "throttle/policy/throttle0group.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace spw {

namespace {

constexpr int64_t MS = 1'000'000;

TEST(CommitGroupInterval, NoneWhileNoSessionIsDelayed) {
  EXPECT_EQ(0, commit_group_interval_ns(0, 0.0, 1.0));
  EXPECT_EQ(0, commit_group_interval_ns(0, 0.9, 1.0));
}

/* One client of one connection is delayed for less than all of the time. */
TEST(CommitGroupInterval, DoublesEachSecondWhileASessionIsDelayed) {
  EXPECT_EQ(1 * MS, commit_group_interval_ns(0, 1.0, 1.0));
  EXPECT_EQ(2 * MS, commit_group_interval_ns(1 * MS, 1.0, 1.0));
  EXPECT_EQ(4 * MS, commit_group_interval_ns(2 * MS, 20.0, 1.0));
}

TEST(CommitGroupInterval, HasAMaximum) {
  EXPECT_EQ(COMMIT_GROUP_MAX_NS,
            commit_group_interval_ns(COMMIT_GROUP_MAX_NS, 500.0, 1.0));
  EXPECT_EQ(COMMIT_GROUP_MAX_NS, commit_group_interval_ns(0, 1.0, 1000.0));
}

TEST(CommitGroupInterval, IsHalvedEachSecondDownToNone) {
  EXPECT_EQ(4 * MS, commit_group_interval_ns(8 * MS, 0.5, 1.0));
  EXPECT_EQ(COMMIT_GROUP_MIN_NS, commit_group_interval_ns(1 * MS, 0.0, 1.0));
  EXPECT_EQ(0, commit_group_interval_ns(COMMIT_GROUP_MIN_NS, 0.0, 1.0));
}

/* Ten samples of 0.1 s are one of a second. */
TEST(CommitGroupInterval, DoesNotDependOnTheIntervalOfSamples) {
  int64_t interval = 1 * MS;
  for (int i = 0; i < 10; ++i) {
    interval = commit_group_interval_ns(interval, 1.0, 0.1);
  }
  EXPECT_NEAR(2.0 * MS, interval, 100.0);
}

/* A closed loop of 24 clients on a device that does 1,700 transactions a
second, of 2 ms each besides waits: 24 - 3.4 sessions wait, and a commit waits
for half of the interval. At the maximum 1,700 * 5 ms = 8.5 sessions wait for a
group, and 12.1 are delayed: it stays there. With 4 clients 0.6 wait: there is
none. */
TEST(CommitGroupInterval, SettlesWhereOneSessionIsDelayed) {
  const auto settled = [](double clients) {
    int64_t interval = 0;
    for (int i = 0; i < 100; ++i) {
      const double waiting = clients - 1700.0 * 0.002;
      const double grouped = 1700.0 * 0.5e-9 * static_cast<double>(interval);
      interval = commit_group_interval_ns(interval, waiting - grouped, 0.1);
    }
    return interval;
  };
  EXPECT_EQ(COMMIT_GROUP_MAX_NS, settled(24.0));
  EXPECT_EQ(0, settled(4.0));
  /* 8 - 3.4 - 1 = 3.6 sessions wait for groups: 2 * 3.6 / 1,700 s = 4.2 ms. */
  EXPECT_NEAR(4.2 * MS, static_cast<double>(settled(8.0)), 0.5 * MS);
}

TEST(CommitGroups, WithoutAnIntervalACommitGoesOnAtOnce) {
  Commit_groups groups;
  EXPECT_EQ(5 * MS, groups.join(5 * MS, 0));
  EXPECT_EQ(5 * MS, groups.join(5 * MS, 0));
}

TEST(CommitGroups, ACommitThatComesAloneGoesOnAtOnce) {
  Commit_groups groups;
  EXPECT_EQ(100 * MS, groups.join(100 * MS, 10 * MS));
  EXPECT_EQ(110 * MS, groups.join(110 * MS, 10 * MS));
  EXPECT_EQ(200 * MS, groups.join(200 * MS, 10 * MS));
}

TEST(CommitGroups, CommitsThatComeMeanwhileGoOnTogether) {
  Commit_groups groups;
  groups.join(100 * MS, 10 * MS);
  for (const int64_t now : {101, 105, 109}) {
    EXPECT_EQ(110 * MS, groups.join(now * MS, 10 * MS));
  }
  /* The first that wakes up begins the group, the others find it begun. */
  EXPECT_EQ(110 * MS, groups.join(110 * MS, 10 * MS));
  EXPECT_EQ(120 * MS, groups.join(111 * MS, 10 * MS));
}

}  // namespace

}  // namespace spw
