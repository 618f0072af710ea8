/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "stall/policy/stall0stats.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace spw {
namespace {

constexpr uint64_t SECOND_US = 1'000'000;

TEST(StallBuckets, BoundsRiseByAtMostFactor2Point5) {
  for (size_t i = 1; i < STALL_BOUNDS_US.size(); ++i) {
    EXPECT_GT(STALL_BOUNDS_US[i], STALL_BOUNDS_US[i - 1]);
    EXPECT_LE(2 * STALL_BOUNDS_US[i], 5 * STALL_BOUNDS_US[i - 1]);
  }
  EXPECT_EQ(STALL_BOUNDS_US.front(), 1u);
  EXPECT_EQ(STALL_BOUNDS_US.back(), 100 * SECOND_US);
}

TEST(StallBuckets, BoundIsInTheBucketBelow) {
  EXPECT_EQ(stall_bucket(0), 0u);
  for (size_t i = 0; i < STALL_BOUNDS_US.size(); ++i) {
    EXPECT_EQ(stall_bucket(STALL_BOUNDS_US[i]), i);
    EXPECT_EQ(stall_bucket(STALL_BOUNDS_US[i] + 1), i + 1);
  }
  EXPECT_EQ(stall_bucket(UINT64_MAX), STALL_BUCKETS - 1);
}

TEST(StallStats, EmptyAtStart) {
  const Stall_summary summary = Stall_stats{}.summary();
  EXPECT_EQ(summary.count, 0u);
  EXPECT_EQ(summary.waiting, 0u);
  EXPECT_EQ(summary.last_us, 0u);
  EXPECT_EQ(summary.percentile_us(99), 0u);
  EXPECT_EQ(summary.longer_than(1), 0u);
}

TEST(StallStats, CountsAtBeginAndTimesAtEnd) {
  Stall_stats stats;
  stats.begin();
  stats.begin();
  stats.end(300, false, 1'000'000, 0);

  const Stall_summary summary = stats.summary();
  EXPECT_EQ(summary.count, 2u);
  EXPECT_EQ(summary.waiting, 1u);
  EXPECT_EQ(summary.time_us, 300u);
  EXPECT_EQ(summary.max_us, 300u);
  EXPECT_EQ(summary.last_us, 1000u);
  EXPECT_EQ(summary.buckets[stall_bucket(300)], 1u);
}

TEST(StallStats, TimeOfSessionsIsApart) {
  Stall_stats stats;
  for (const bool is_of_session : {true, false, true}) {
    stats.begin();
    stats.end(300, is_of_session, 1000, 0);
  }
  EXPECT_EQ(stats.summary().time_us, 900u);
  EXPECT_EQ(stats.summary().sessions_time_us, 600u);
}

TEST(StallStats, KeepsMaximumAndLatestEnd) {
  Stall_stats stats;
  for (const auto &[duration, now] :
       {std::pair{10u, 100u}, std::pair{70u, 300u}, std::pair{30u, 200u}}) {
    stats.begin();
    stats.end(duration, false, 1000 * now, 0);
  }
  EXPECT_EQ(stats.summary().max_us, 70u);
  EXPECT_EQ(stats.summary().last_us, 300u);
  /* 10 + 70 + 30 */
  EXPECT_EQ(stats.summary().time_us, 110u);
}

TEST(StallStats, SinceLastEndOrStart) {
  Stall_stats stats;
  /* No wait has ended: 500 - the start at 100. */
  EXPECT_EQ(stats.summary().since_last_us(500, 100), 400u);

  stats.begin();
  stats.end(10, false, 300'000, 0);
  /* 500 - the end at 300 */
  EXPECT_EQ(stats.summary().since_last_us(500, 100), 200u);

  /* A wait that ends after the time was read. */
  EXPECT_EQ(stats.summary().since_last_us(299, 100), 0u);
}

TEST(StallStats, LongerThanABound) {
  Stall_stats stats;
  for (const uint64_t duration : {9'999, 10'000, 10'001, 100'001, 2'000'000}) {
    stats.begin();
    stats.end(duration, false, 1, 0);
  }
  const Stall_summary summary = stats.summary();
  /* 10,001, 100,001 and 2,000,000 us */
  EXPECT_EQ(summary.longer_than(10'000), 3u);
  EXPECT_EQ(summary.longer_than(100'000), 2u);
  EXPECT_EQ(summary.longer_than(SECOND_US), 1u);
  EXPECT_EQ(summary.longer_than(100 * SECOND_US), 0u);
}

TEST(StallStats, DecadesEndAtTheirBound) {
  Stall_stats stats;
  uint64_t bound = 10;
  for (size_t decade = 1; decade + 1 < STALL_DECADES; ++decade, bound *= 10) {
    for (const uint64_t duration :
         {bound / 10 + 1, bound / 5, bound / 2, bound}) {
      stats.begin();
      stats.end(duration, false, 1, 0);
    }
  }
  for (const uint64_t duration :
       {uint64_t{0}, uint64_t{1}, bound, 100 * bound}) {
    stats.begin();
    stats.end(duration, false, 1, 0);
  }

  /* 0 and 1 us; four durations in each decade up to 100 s; two that are
  longer. */
  const std::array<uint64_t, STALL_DECADES> expected{2, 4, 4, 4, 4,
                                                     4, 4, 4, 4, 2};
  EXPECT_EQ(stats.summary().decades(), expected);
}

/* The percentile from the buckets is never below the exact one, and at most 2.5
times as large. */
TEST(StallStats, PercentilesAreUpperBounds) {
  Stall_stats stats;
  for (uint64_t duration = 1; duration <= 1000; ++duration) {
    stats.begin();
    stats.end(duration, false, duration, 0);
  }
  const Stall_summary summary = stats.summary();
  for (const unsigned pct : {1u, 10u, 50u, 90u, 99u, 100u}) {
    const uint64_t exact = pct * 10;
    EXPECT_GE(summary.percentile_us(pct), exact) << pct;
    EXPECT_LE(2 * summary.percentile_us(pct), 5 * exact) << pct;
  }
}

TEST(StallStats, PercentileIsAtMostTheMaximum) {
  Stall_stats stats;
  stats.begin();
  stats.end(1'100, false, 1, 0);
  /* The bucket's upper bound is 2,000 us. */
  EXPECT_EQ(stats.summary().percentile_us(99), 1'100u);

  stats.begin();
  stats.end(200 * SECOND_US, false, 2, 0);
  EXPECT_EQ(stats.summary().percentile_us(99), 200 * SECOND_US);
}

TEST(StallStats, CountsOfManyThreadsAddUp) {
  constexpr uint64_t THREADS = 8;
  constexpr uint64_t WAITS = 20'000;
  Stall_stats stats;
  std::vector<std::thread> threads;

  for (uint64_t t = 1; t <= THREADS; ++t) {
    threads.emplace_back([&stats, t] {
      for (uint64_t i = 0; i < WAITS; ++i) {
        stats.begin();
        stats.end(t, false, 1000 * i, 0);
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }

  const Stall_summary summary = stats.summary();
  EXPECT_EQ(summary.count, THREADS * WAITS);
  EXPECT_EQ(summary.waiting, 0u);
  /* The waits of thread t take t us each: the sum of 1 to THREADS. */
  EXPECT_EQ(summary.time_us, WAITS * THREADS * (THREADS + 1) / 2);
  EXPECT_EQ(summary.max_us, THREADS);
  EXPECT_EQ(summary.last_us, WAITS - 1);
  uint64_t ended = 0;
  for (const uint64_t n : summary.buckets) {
    ended += n;
  }
  EXPECT_EQ(ended, THREADS * WAITS);
}

/** Threshold: microseconds. */
constexpr uint64_t THRESHOLD_US = 1'000;

/** A wait begins and ends.
@param[in]  duration  its duration: microseconds
@param[in]  now       time when it ends: nanoseconds */
void wait(Stall_stats *stats, uint64_t duration, uint64_t now,
          uint64_t threshold = THRESHOLD_US) {
  stats->begin();
  stats->end(duration, false, now, threshold);
}

TEST(StallLog, OnlyWaitsAboveThreshold) {
  Stall_stats stats;
  wait(&stats, 1'000, 1);
  EXPECT_FALSE(stats.log_line(1, THRESHOLD_US).is_due());

  wait(&stats, 1'001, 2);
  const Stall_log_line line = stats.log_line(2, THRESHOLD_US);
  EXPECT_TRUE(line.is_due());
  EXPECT_EQ(line.count, 1u);
  EXPECT_EQ(line.max_us, 1'001u);
  EXPECT_EQ(line.waiting, 0u);
}

TEST(StallLog, ThresholdZeroLogsNothing) {
  Stall_stats stats;
  wait(&stats, UINT64_MAX, 1, 0);
  EXPECT_FALSE(stats.log_line(1, THRESHOLD_US).is_due());

  stats.begin();
  for (uint64_t now = 1; now < 100; ++now) {
    EXPECT_FALSE(stats.log_line(now * SECOND_US, 0).is_due());
  }
}

TEST(StallLog, SwitchingOffDropsPendingWaits) {
  Stall_stats stats;
  wait(&stats, 2'000, 1);
  EXPECT_FALSE(stats.log_line(2, 0).is_due());
  EXPECT_FALSE(stats.log_line(3, THRESHOLD_US).is_due());
}

TEST(StallLog, RaisedThresholdDropsShorterWaits) {
  Stall_stats stats;
  wait(&stats, 2'000, 1);
  EXPECT_FALSE(stats.log_line(2, 2 * THRESHOLD_US).is_due());
  EXPECT_FALSE(stats.log_line(3, THRESHOLD_US).is_due());

  wait(&stats, 2'000, 4);
  wait(&stats, 5'000, 5);
  EXPECT_EQ(stats.log_line(6, 2 * THRESHOLD_US).max_us, 5'000u);
}

TEST(StallLog, OneLineForEndedAndPresentWaits) {
  Stall_stats stats;
  wait(&stats, 2 * SECOND_US, 1, SECOND_US);
  EXPECT_EQ(stats.log_line(2, SECOND_US).count, 1u);
  wait(&stats, 3 * SECOND_US, 3, SECOND_US);
  stats.begin();
  stats.log_line(2 * SECOND_US, SECOND_US);

  const Stall_log_line line = stats.log_line(11 * SECOND_US, SECOND_US);
  EXPECT_EQ(line.count, 1u);
  EXPECT_EQ(line.max_us, 3 * SECOND_US);
  EXPECT_EQ(line.waiting, 1u);
  /* log_line() has detected the wait at 2 s: 11 - 2 = 9. */
  EXPECT_EQ(line.waiting_us, 9 * SECOND_US);
}

TEST(StallLog, OneLinePerIntervalForAllWaits) {
  Stall_stats stats;
  wait(&stats, 2'000, 1);
  EXPECT_EQ(stats.log_line(1, THRESHOLD_US).count, 1u);
  wait(&stats, 3'000, 2);
  wait(&stats, 4'000, 3);
  EXPECT_FALSE(stats.log_line(STALL_LOG_INTERVAL_US, THRESHOLD_US).is_due());

  const Stall_log_line line =
      stats.log_line(STALL_LOG_INTERVAL_US + 1, THRESHOLD_US);
  EXPECT_EQ(line.count, 2u);
  EXPECT_EQ(line.max_us, 4'000u);
  EXPECT_FALSE(
      stats.log_line(3 * STALL_LOG_INTERVAL_US, THRESHOLD_US).is_due());
}

TEST(StallLog, WaitThatDoesNotEnd) {
  Stall_stats stats;
  stats.begin();
  stats.begin();
  EXPECT_FALSE(stats.log_line(10 * SECOND_US, SECOND_US).is_due());
  EXPECT_FALSE(stats.log_line(11 * SECOND_US, SECOND_US).is_due());

  Stall_log_line line = stats.log_line(12 * SECOND_US, SECOND_US);
  EXPECT_EQ(line.count, 0u);
  EXPECT_EQ(line.waiting, 2u);
  /* Detected at 10 s: 12 - 10 = 2. */
  EXPECT_EQ(line.waiting_us, 2 * SECOND_US);

  /* The next line is due 10 s after the last: 12 + 10 = 22. */
  EXPECT_FALSE(stats.log_line(13 * SECOND_US, SECOND_US).is_due());
  line = stats.log_line(22 * SECOND_US, SECOND_US);
  EXPECT_EQ(line.waiting_us, 12 * SECOND_US);
}

TEST(StallLog, SuccessiveShortWaitsAreNotStuck) {
  Stall_stats stats;
  stats.begin();
  for (uint64_t now = 1; now < 100; ++now) {
    /* A wait is in progress at any time, but each lasts only a second. */
    EXPECT_FALSE(stats.log_line(now * SECOND_US, SECOND_US).is_due());
    stats.begin();
    stats.end(SECOND_US, false, now * SECOND_US, SECOND_US);
  }
}

TEST(StallLog, StuckWaitIsLoggedOnceMoreWhenItEnds) {
  Stall_stats stats;
  stats.begin();
  stats.log_line(0, SECOND_US);
  EXPECT_EQ(stats.log_line(5 * SECOND_US, SECOND_US).waiting, 1u);
  stats.end(6 * SECOND_US, false, 6 * SECOND_US, SECOND_US);

  /* The next line is due 10 s after the last: 5 + 10 = 15. */
  const Stall_log_line line = stats.log_line(15 * SECOND_US, SECOND_US);
  EXPECT_EQ(line.count, 1u);
  EXPECT_EQ(line.max_us, 6 * SECOND_US);
  EXPECT_EQ(line.waiting, 0u);
  EXPECT_EQ(line.waiting_us, 0u);
}

}  // namespace
}  // namespace spw
