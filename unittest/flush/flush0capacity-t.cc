/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "flush/policy/flush0capacity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace spw {
namespace {

/** @return the duration of a batch by its pages and its begin: seconds */
using Device = std::function<double(double n_pages, double begin_s)>;

/** @param[in]  pages_per_s  device write capacity: pages/s
@param[in]  fixed_s      fixed time of each batch: seconds
@return a device whose batches take the fixed time and the time of the pages */
Device linear_device(double pages_per_s, double fixed_s = 0.0) {
  return
      [=](double n_pages, double) { return fixed_s + n_pages / pages_per_s; };
}

/** Writes batches of as many pages as the limit allows, as Ahead_flush does. */
class Flusher {
 public:
  /** @param[in]  device        the device
  @param[in]  wanted_per_s  pages/s to flush
  @param[in]  seconds       duration
  @return pages/s written in the second half of the duration */
  double run(const Device &device, double wanted_per_s, double seconds) {
    const double begin_s = m_now_s;
    double n_written = 0.0;
    while (m_now_s < begin_s + seconds) {
      const double interval_s = std::max(INTERVAL_S, capacity.interval_s());
      if (capacity.wants_probe(m_now_s)) {
        ++n_probes;
        write(device, 1.0, true, false);
      }
      const double accrued_s = std::min(m_now_s - m_last_s, 2.0 * interval_s);
      m_last_s = m_now_s;
      const double limit_per_s = capacity.limit_per_s();
      const double per_s =
          is_limited ? std::min(wanted_per_s, limit_per_s) : wanted_per_s;
      const double n_pages = std::floor(per_s * accrued_s);
      if (n_pages > 0.0) {
        write(device, n_pages, false, wanted_per_s >= limit_per_s);
      }
      if (m_now_s > begin_s + seconds / 2.0) {
        n_written += n_pages;
      }
      m_now_s = std::max(m_now_s, m_last_s + interval_s);
    }
    return n_written / (seconds / 2.0);
  }

  Flush_capacity capacity;
  int n_probes{0};

  /** It writes no more than the limit allows. */
  bool is_limited{true};

 private:
  /** Interval between two batches: seconds. */
  static constexpr double INTERVAL_S = 0.1;

  void write(const Device &device, double n_pages, bool is_probe,
             bool demand_exceeds_limit) {
    const double end_s = m_now_s + device(n_pages, m_now_s);
    capacity.add({.begin_s = m_now_s,
                  .end_s = end_s,
                  .n_pages = static_cast<uint64_t>(n_pages),
                  .is_probe = is_probe,
                  .demand_exceeds_limit = demand_exceeds_limit,
                  .is_limited = is_limited});
    m_now_s = end_s;
  }

  double m_now_s{10.0};
  double m_last_s{9.9};
};

/** More pages/s to flush than any device writes. */
constexpr double UNLIMITED = 1e9;

TEST(FlushCapacity, NotMeasuredOnMostlyIdleDevice) {
  Flusher flusher;
  /* The writes take 500 / 1,000,000 = 0.0005 of the time, below 0.95. */
  (void)flusher.run(linear_device(1e6), 500.0, 60.0);
  EXPECT_EQ(flusher.capacity.pages_per_s(), 0.0);
  EXPECT_EQ(flusher.capacity.limit_per_s(), FLUSH_RATE_INITIAL_PER_S);
  EXPECT_EQ(flusher.n_probes, 0);
}

TEST(FlushCapacity, MeasuredOnSlowAndFastDevices) {
  for (const double pages_per_s : {70.0, 300.0, 900.0, 12e3, 180e3}) {
    Flusher flusher;
    (void)flusher.run(linear_device(pages_per_s), UNLIMITED, 60.0);
    const double written_per_s =
        flusher.run(linear_device(pages_per_s), UNLIMITED, 60.0);
    /* The limit grows up to a utilization of 0.85, and falls from 0.95 on. 0.05
    are for the fraction of a page that each batch leaves out: at 70 pages/s a
    batch is 0.92 * 70 pages/s * 0.1 s = 6.4 pages. */
    EXPECT_GE(written_per_s, 0.8 * pages_per_s) << pages_per_s;
    EXPECT_LE(written_per_s, FLUSH_SHRINK_FRACTION * pages_per_s)
        << pages_per_s;
  }
}

TEST(FlushCapacity, FixedTimeDoesNotCountAsLackOfCapacity) {
  for (const double fixed_s : {0.01, 0.05, 0.1, 0.15}) {
    Flusher flusher;
    (void)flusher.run(linear_device(5000.0, fixed_s), UNLIMITED, 60.0);
    const double written_per_s =
        flusher.run(linear_device(5000.0, fixed_s), UNLIMITED, 60.0);
    /* Batches are fixed_s / 0.2 apart, and at most 0.5 s. 0.15 s / 0.5 s = 0.3
    of the time are fixed: 0.7 remain. Of these, 0.8 as above. */
    EXPECT_GE(written_per_s, 0.7 * 0.8 * 5000.0) << fixed_s;
    EXPECT_NEAR(flusher.capacity.fixed_s(), fixed_s, 1e-3);
  }
}

TEST(FlushCapacity, FixedTimeIsMedianOfLastThreeProbes) {
  Flush_capacity capacity;
  EXPECT_EQ(capacity.fixed_s(), 0.0);
  const auto probe = [&capacity](double begin_s, double batch_s) {
    capacity.add({.begin_s = begin_s,
                  .end_s = begin_s + batch_s,
                  .n_pages = 1,
                  .is_probe = true});
    return capacity.fixed_s();
  };
  /* 1 page / 1,000 pages/s (the initial limit) = 0.001 s. 0.5 - 0.001 = 0.499
  s. Of two probes the longer one counts. */
  EXPECT_DOUBLE_EQ(probe(1.0, 0.5), 0.499);
  EXPECT_DOUBLE_EQ(probe(2.0, 0.125), 0.499);
  /* Median of 0.5, 0.125 and 0.25: 0.25 - 0.001 = 0.249 s. */
  EXPECT_DOUBLE_EQ(probe(3.0, 0.25), 0.249);
  /* Median of 0.125, 0.25 and 9.0. */
  EXPECT_DOUBLE_EQ(probe(4.0, 9.0), 0.249);
  /* 0.249 s / 0.2 = 1.2 s, above the maximum of 0.5 s. */
  EXPECT_EQ(capacity.interval_s(), FLUSH_FIXED_INTERVAL_MAX_S);
}

TEST(FlushCapacity, UtilizationCountsAsAtLeastATenth) {
  Flush_capacity capacity;
  /* 40 pages in 0.002 s are 20,000 pages/s. They count as 40 pages/s / 0.1 =
  400 pages/s, as the window is about 1 s long. */
  capacity.add({.begin_s = 0.001,
                .end_s = 0.002,
                .n_pages = 20,
                .demand_exceeds_limit = true});
  capacity.add({.begin_s = 1.001, .end_s = 1.002, .n_pages = 20});
  EXPECT_EQ(capacity.limit_per_s(), FLUSH_RATE_INITIAL_PER_S);
  /* Two windows with a utilization of 1 and 100 pages / 1.098 s = 91 pages/s:
  the maximum of the windows is 400. */
  capacity.add({.begin_s = 1.002, .end_s = 2.1, .n_pages = 100});
  capacity.add({.begin_s = 2.1, .end_s = 3.2, .n_pages = 100});
  EXPECT_NEAR(capacity.limit_per_s(), FLUSH_CRUISE_FRACTION * 400.0, 1.0);
}

TEST(FlushCapacity, ProbesAreEightSecondsApart) {
  Flusher flusher;
  (void)flusher.run(linear_device(1000.0, 0.05), UNLIMITED, 60.0);
  flusher.n_probes = 0;
  (void)flusher.run(linear_device(1000.0, 0.05), UNLIMITED, 80.0);
  /* 80 s / 8 s = 10 probes, and 11 with one at both ends. A probe waits for the
  batch before it: 7 probes allow for waits of 80 / 7 - 8 = 3.4 s. */
  EXPECT_GE(flusher.n_probes, 7);
  EXPECT_LE(flusher.n_probes, 11);
}

TEST(FlushCapacity, LimitIsAtLeastTheMinimum) {
  Flusher flusher;
  (void)flusher.run(linear_device(10.0), UNLIMITED, 300.0);
  /* 0.92 * 10 = 9.2 pages/s, below the minimum of 50. */
  EXPECT_GE(flusher.capacity.limit_per_s(), FLUSH_RATE_MIN_PER_S);
}

TEST(FlushCapacity, FollowsSlowerAndFasterDevice) {
  Flusher flusher;
  (void)flusher.run(linear_device(5000.0), UNLIMITED, 60.0);
  /* The limit falls after the 8 windows of the maximum filter, to 0.92 * 500 =
  460 pages/s. The second half of the 60 s counts. */
  EXPECT_NEAR(flusher.run(linear_device(500.0), UNLIMITED, 60.0), 500.0, 100.0);
  EXPECT_LE(flusher.capacity.limit_per_s(), 500.0);
  /* The limit at most doubles in each window: 460 * 2^4 = 7360, so that it is
  as high as the device permits within 10 s. There the utilization is between
  0.85 and 0.95: 4,250 to 4,750 pages/s. */
  (void)flusher.run(linear_device(5000.0), UNLIMITED, 10.0);
  EXPECT_NEAR(flusher.run(linear_device(5000.0), UNLIMITED, 10.0), 4500.0,
              500.0);
}

TEST(FlushCapacity, OneSlowBatchDoesNotLowerTheLimit) {
  for (const double stall_s : {1.0, 20.0}) {
    Flusher flusher;
    (void)flusher.run(linear_device(1000.0), UNLIMITED, 60.0);
    const double limit_before = flusher.capacity.limit_per_s();
    double n_stalls_left = 1.0;
    (void)flusher.run(
        [&n_stalls_left, stall_s](double n_pages, double) {
          return n_pages / 1000.0 + stall_s * std::exchange(n_stalls_left, 0.0);
        },
        UNLIMITED, 2.0);
    /* A window ends with a batch, so that a stall of any length is one of the 8
    windows of the maximum filter, or of the two if it is longer than 16 s. */
    EXPECT_GE(flusher.capacity.limit_per_s(), 0.9 * limit_before) << stall_s;
  }
}

TEST(FlushCapacity, FollowsMuchSlowerDevice) {
  Flusher flusher;
  (void)flusher.run(linear_device(17000.0), UNLIMITED, 60.0);
  /* A batch of 0.2 s of the old limit is 3,400 pages, and takes 11 s: 8 of
  these would take 90 s. Two are longer than the 16 s of the filter. */
  (void)flusher.run(linear_device(300.0), UNLIMITED, 40.0);
  EXPECT_LE(flusher.capacity.limit_per_s(), 300.0);
}

/** Under a load of 20 pages/s a batch takes 30 s. */
void stall_under_light_load(Flusher *flusher) {
  (void)flusher->run([](double, double) { return 30.0; }, 20.0, 1.0);
  (void)flusher->run(linear_device(20000.0), 20.0, 30.0);
}

TEST(FlushCapacity, StallUnderLightLoadDoesNotLowerTheLimit) {
  Flusher flusher;
  (void)flusher.run(linear_device(20000.0), UNLIMITED, 60.0);
  const double limit_before = flusher.capacity.limit_per_s();
  for (int i = 0; i < 3; ++i) {
    /* The utilization of 20 / 20,000 counts as 0.1: these windows have 200
    pages/s. */
    (void)flusher.run(linear_device(20000.0), 20.0, 30.0);
    stall_under_light_load(&flusher);
    EXPECT_EQ(flusher.capacity.limit_per_s(), limit_before) << i;
  }
}

TEST(FlushCapacity, StallOfNewServerHalvesTheLimit) {
  Flusher flusher;
  (void)flusher.run(linear_device(20000.0), 20.0, 30.0);
  stall_under_light_load(&flusher);
  EXPECT_EQ(flusher.capacity.limit_per_s(),
            FLUSH_RATE_INITIAL_PER_S / FLUSH_GROWTH_MAX);
  /* 500 * 2^5 = 16,000. */
  (void)flusher.run(linear_device(20000.0), UNLIMITED, 6.0);
  EXPECT_GE(flusher.capacity.limit_per_s(), 15e3);
}

TEST(FlushCapacity, FixedTimeFallsWhenTheDeviceIsFastAgain) {
  Flusher flusher;
  (void)flusher.run(linear_device(5000.0, 0.12), UNLIMITED, 60.0);
  EXPECT_EQ(flusher.capacity.interval_s(), FLUSH_FIXED_INTERVAL_MAX_S);
  /* The median of three probes, 8 s apart, falls with the second. */
  (void)flusher.run(linear_device(20000.0), 2000.0, 60.0);
  EXPECT_LT(flusher.capacity.interval_s(), 0.05);
  flusher.n_probes = 0;
  (void)flusher.run(linear_device(20000.0), 2000.0, 60.0);
  EXPECT_EQ(flusher.n_probes, 0);
}

TEST(FlushCapacity, MeasuredIfItDoesNotLimitFlushing) {
  for (const double pages_per_s : {300.0, 5000.0, 15000.0}) {
    Flusher flusher;
    flusher.is_limited = false;
    (void)flusher.run(linear_device(pages_per_s), 20000.0, 60.0);
    EXPECT_NEAR(flusher.capacity.pages_per_s(),
                FLUSH_CRUISE_FRACTION * pages_per_s, 0.05 * pages_per_s);
  }
}

TEST(FlushCapacity, UsesDeviceOfVaryingSpeed) {
  /* The speed of each second: 0.25 to 2.5 times the mean, which is (300 + 3000
  + 600 + 450 + 1650) / 5 = 1200 pages/s. */
  const Device device = [](double n_pages, double begin_s) {
    const double pages_per_s[] = {300.0, 3000.0, 600.0, 450.0, 1650.0};
    return n_pages / pages_per_s[static_cast<size_t>(begin_s) % 5];
  };
  Flusher flusher;
  (void)flusher.run(device, UNLIMITED, 60.0);
  /* A batch that begins in a slow second lasts into the next one: 0.73 of the
  mean were measured. */
  EXPECT_GE(flusher.run(device, UNLIMITED, 100.0), 0.6 * 1200.0);
}

TEST(FlushCapacity, GrowsFromWrittenRateToGrowFractionOfTheTime) {
  const auto limit_after = [](double writing_s, uint64_t n_pages,
                              bool demand_exceeds_limit) {
    Flush_capacity capacity;
    capacity.add({.begin_s = 1000.0,
                  .end_s = 1000.0 + writing_s,
                  .n_pages = n_pages,
                  .demand_exceeds_limit = demand_exceeds_limit});
    /* Ends the window, after 1 s. */
    capacity.add({.begin_s = 1001.0, .end_s = 1001.0, .n_pages = 0});
    return capacity.limit_per_s();
  };
  /* The utilization of 0 counts as 0.1. 0.85 / 0.1 = 8.5, above the maximum of
  2: 900 * 2 = 1800 pages/s. */
  EXPECT_NEAR(limit_after(0.0, 900, true), 900.0 * FLUSH_GROWTH_MAX, 1e-6);
  /* 0.85 / 0.5 = 1.7: 900 * 1.7 = 1530 pages/s. */
  EXPECT_NEAR(limit_after(0.5, 900, true), 900.0 * 0.85 / 0.5, 1e-6);
  /* 800 * 0.85 / 0.8 = 850 pages/s, below the limit of 1,000. */
  EXPECT_EQ(limit_after(0.8, 800, true), FLUSH_RATE_INITIAL_PER_S);
  /* No more pages were to be flushed than the limit allows. */
  EXPECT_EQ(limit_after(0.5, 900, false), FLUSH_RATE_INITIAL_PER_S);
}

TEST(FlushCapacity, FullRateAfterLoadOfAnotherProgram) {
  Flusher flusher;
  (void)flusher.run(linear_device(1000.0), UNLIMITED, 60.0);
  /* Another program leaves 100 pages/s. A load of 90 pages/s has a utilization
  of 0.9, below 0.95: the limit stays at 0.92 * 1000 = 920 pages/s. */
  (void)flusher.run(linear_device(100.0), 90.0, 60.0);
  EXPECT_GE(flusher.run(linear_device(1000.0), UNLIMITED, 16.0), 800.0);
}

TEST(FlushCapacity, MeasuredDuringSyncFlushing) {
  Flush_capacity capacity;
  /* One batch of 3,000 pages after the other, which takes 10 s: 3000 / 10 = 300
  pages/s, and 0.1 for the page of the probe. */
  for (double now_s = 1000.0; now_s < 1200.0; now_s += 10.0) {
    capacity.add(
        {.begin_s = now_s, .end_s = now_s, .n_pages = 1, .is_probe = true});
    capacity.add({.begin_s = now_s, .end_s = now_s + 10.0, .n_pages = 3000});
  }
  EXPECT_NEAR(capacity.pages_per_s(), FLUSH_CRUISE_FRACTION * 300.0, 1.0);
}

TEST(FlushCapacity, WindowBeginsAfterPause) {
  Flusher flusher;
  (void)flusher.run(linear_device(1000.0), UNLIMITED, 60.0);
  const double limit_before = flusher.capacity.limit_per_s();
  flusher.capacity.pause();
  flusher.capacity.add({.begin_s = 5000.0, .end_s = 5000.1, .n_pages = 90});
  EXPECT_EQ(flusher.capacity.limit_per_s(), limit_before);
  /* The window is from 5000 to 5001 s. Its utilization is (0.1 + 0.8) / 1 =
  0.9, between 0.85 and 0.95: the limit stays. */
  flusher.capacity.add({.begin_s = 5000.2,
                        .end_s = 5001.0,
                        .n_pages = 810,
                        .demand_exceeds_limit = true});
  EXPECT_EQ(flusher.capacity.limit_per_s(), limit_before);
}

}  // namespace
}  // namespace spw
