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

/** Time that a batch takes, by its pages and its begin: seconds. */
using Device = std::function<double(double n_pages, double begin_s)>;

/** A device that writes this number of pages/s, and needs a fixed time for each
batch. */
Device linear(double pages_per_s, double fixed_s = 0.0) {
  return [=](double n, double) { return fixed_s + n / pages_per_s; };
}

/** Makes batches as Ahead_flush does, of as many pages as the limit allows. */
class Flusher {
 public:
  /** @param[in]  device   the device
  @param[in]  wanted   pages/s to flush
  @param[in]  seconds  duration
  @return pages/s written in the second half of it */
  double run(const Device &device, double wanted, double seconds) {
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
      const double limit = capacity.limit_per_s();
      const double n = std::floor(std::min(wanted, limit) * accrued_s);
      if (n > 0.0) {
        write(device, n, false, wanted >= limit);
      }
      if (m_now_s > begin_s + seconds / 2.0) {
        n_written += n;
      }
      m_now_s = std::max(m_now_s, m_last_s + interval_s);
    }
    return n_written / (seconds / 2.0);
  }

  Flush_capacity capacity;
  int n_probes{0};

 private:
  static constexpr double INTERVAL_S = 0.1;

  void write(const Device &device, double n, bool is_probe, bool demand) {
    const double end_s = m_now_s + device(n, m_now_s);
    capacity.add({.begin_s = m_now_s,
                  .end_s = end_s,
                  .n_pages = static_cast<uint64_t>(n),
                  .is_probe = is_probe,
                  .demand_exceeds_limit = demand});
    m_now_s = end_s;
  }

  double m_now_s{10.0};
  double m_last_s{9.9};
};

constexpr double UNLIMITED = 1e9;

TEST(FlushCapacity, IsNotMeasuredWhileTheDeviceIsIdleMostOfTheTime) {
  Flusher flusher;
  (void)flusher.run(linear(1e6), 500.0, 60.0);
  EXPECT_EQ(flusher.capacity.pages_per_s(), 0.0);
  EXPECT_EQ(flusher.capacity.limit_per_s(), FLUSH_RATE_INITIAL_PER_S);
  EXPECT_EQ(flusher.n_probes, 0);
}

TEST(FlushCapacity, IsMeasuredOnAnyDevice) {
  for (const double pages_per_s : {70.0, 300.0, 900.0, 12e3, 180e3}) {
    Flusher flusher;
    (void)flusher.run(linear(pages_per_s), UNLIMITED, 60.0);
    const double written = flusher.run(linear(pages_per_s), UNLIMITED, 60.0);
    /* The limit is between the fractions that it grows and falls at. */
    EXPECT_GE(written, 0.8 * pages_per_s) << pages_per_s;
    EXPECT_LE(written, FLUSH_SHRINK_FRACTION * pages_per_s) << pages_per_s;
  }
}

/* A device with latency is as fast as one without, but for the time between
batches. */
TEST(FlushCapacity, AFixedTimeIsNotTakenForLackOfCapacity) {
  for (const double fixed_s : {0.01, 0.05, 0.1, 0.15}) {
    Flusher flusher;
    (void)flusher.run(linear(5000.0, fixed_s), UNLIMITED, 60.0);
    const double written =
        flusher.run(linear(5000.0, fixed_s), UNLIMITED, 60.0);
    /* A batch each fixed_s / 0.2, at most each 0.5 s, leaves 0.8 to 0.7 of the
    time. Of that, 0.8 as above. */
    EXPECT_GE(written, 0.7 * 0.8 * 5000.0) << fixed_s;
    EXPECT_NEAR(flusher.capacity.fixed_s(), fixed_s, 1e-3);
  }
}

TEST(FlushCapacity, TheFixedTimeIsTheMedianOfTheLastProbes) {
  Flush_capacity capacity;
  EXPECT_EQ(capacity.fixed_s(), 0.0);
  const auto probe = [&capacity](double begin_s, double batch_s) {
    capacity.add({.begin_s = begin_s,
                  .end_s = begin_s + batch_s,
                  .n_pages = 1,
                  .is_probe = true});
    return capacity.fixed_s();
  };
  /* Less 1 ms for a page, at the initial limit of 1,000 pages/s. */
  EXPECT_DOUBLE_EQ(probe(1.0, 0.5), 0.499);
  EXPECT_DOUBLE_EQ(probe(2.0, 0.125), 0.499);
  EXPECT_DOUBLE_EQ(probe(3.0, 0.25), 0.249);
  /* Of 0.125, 0.25 and 9.0. */
  EXPECT_DOUBLE_EQ(probe(4.0, 9.0), 0.249);
  /* 0.249 s / 0.2 would be 1.2 s. */
  EXPECT_EQ(capacity.interval_s(), FLUSH_FIXED_INTERVAL_MAX_S);
}

TEST(FlushCapacity, AWindowWithLittleWritingSaysLittle) {
  Flush_capacity capacity;
  /* 40 pages in 2 ms of a second: 20,000 pages/s, counted as 40 / 0.1. */
  capacity.add({.begin_s = 0.001, .end_s = 0.002, .n_pages = 20});
  capacity.add({.begin_s = 1.001, .end_s = 1.002, .n_pages = 20});
  EXPECT_EQ(capacity.limit_per_s(), FLUSH_RATE_INITIAL_PER_S);
  /* The device is busy all the time, with less than that. */
  capacity.add({.begin_s = 1.002, .end_s = 2.1, .n_pages = 100});
  EXPECT_NEAR(capacity.limit_per_s(), FLUSH_CRUISE_FRACTION * 400.0, 1.0);
}

TEST(FlushCapacity, ProbesAreRare) {
  Flusher flusher;
  (void)flusher.run(linear(1000.0, 0.05), UNLIMITED, 60.0);
  flusher.n_probes = 0;
  (void)flusher.run(linear(1000.0, 0.05), UNLIMITED, 80.0);
  /* One in FLUSH_PROBE_S, and the one that is under way. */
  EXPECT_GE(flusher.n_probes, 7);
  EXPECT_LE(flusher.n_probes, 11);
}

TEST(FlushCapacity, IsNeverLessThanAnyDiskWrites) {
  Flusher flusher;
  (void)flusher.run(linear(10.0), UNLIMITED, 300.0);
  EXPECT_GE(flusher.capacity.limit_per_s(), FLUSH_RATE_MIN_PER_S);
}

TEST(FlushCapacity, FollowsADeviceThatBecomesSlowerAndFaster) {
  Flusher flusher;
  (void)flusher.run(linear(5000.0), UNLIMITED, 60.0);
  /* After the windows of the maximum filter. */
  EXPECT_NEAR(flusher.run(linear(500.0), UNLIMITED, 60.0), 500.0, 100.0);
  EXPECT_LE(flusher.capacity.limit_per_s(), 500.0);
  (void)flusher.run(linear(5000.0), UNLIMITED, 10.0);
  EXPECT_NEAR(flusher.run(linear(5000.0), UNLIMITED, 10.0), 4500.0, 500.0);
}

/* A stall is a window, however long. */
TEST(FlushCapacity, DoesNotFallForOneSlowBatch) {
  for (const double stall_s : {1.0, 20.0}) {
    Flusher flusher;
    (void)flusher.run(linear(1000.0), UNLIMITED, 60.0);
    const double before = flusher.capacity.limit_per_s();
    double left = 1.0;
    (void)flusher.run(
        [&left, stall_s](double n, double) {
          return n / 1000.0 + stall_s * std::exchange(left, 0.0);
        },
        UNLIMITED, 2.0);
    EXPECT_GE(flusher.capacity.limit_per_s(), 0.9 * before) << stall_s;
  }
}

/* Each second has another speed: between a third of the mean and three times
that. The mean of what is written is near the mean of the speed. */
TEST(FlushCapacity, UsesADeviceWhoseSpeedVaries) {
  const Device device = [](double n, double begin_s) {
    const double speeds[] = {300.0, 3000.0, 600.0, 450.0, 1650.0};
    return n / speeds[static_cast<size_t>(begin_s) % 5];
  };
  Flusher flusher;
  (void)flusher.run(device, UNLIMITED, 60.0);
  /* Mean 1200; batches that begin in a slow second last into the next. */
  EXPECT_GE(flusher.run(device, UNLIMITED, 100.0), 0.6 * 1200.0);
}

/* The limit grows to what takes FLUSH_GROW_FRACTION of the time, up to
FLUSH_GROWTH_MAX, from what was written. */
TEST(FlushCapacity, GrowsByTheTimeThatIsLeftFromWhatWasWritten) {
  const auto limit_after = [](double busy, uint64_t n_pages, bool demand) {
    Flush_capacity capacity;
    capacity.add({.begin_s = 1000.0,
                  .end_s = 1000.0 + busy,
                  .n_pages = n_pages,
                  .demand_exceeds_limit = demand});
    /* It ends the window. */
    capacity.add({.begin_s = 1001.0, .end_s = 1001.0, .n_pages = 0});
    return capacity.limit_per_s();
  };
  EXPECT_NEAR(limit_after(0.0, 900, true), 900.0 * FLUSH_GROWTH_MAX, 1e-6);
  EXPECT_NEAR(limit_after(0.5, 900, true), 900.0 * 0.85 / 0.5, 1e-6);
  /* 800 * 0.85 / 0.8 = 850: the limit is higher already. */
  EXPECT_EQ(limit_after(0.8, 800, true), FLUSH_RATE_INITIAL_PER_S);
  EXPECT_EQ(limit_after(0.5, 900, false), FLUSH_RATE_INITIAL_PER_S);
}

/* A steady load of few pages, and a device that another program keeps busy for
a while. */
TEST(FlushCapacity, GrowsAgainWhenAForeignLoadEnds) {
  Flusher flusher;
  (void)flusher.run(linear(1000.0), UNLIMITED, 60.0);
  (void)flusher.run(linear(100.0), 90.0, 60.0);
  /* Each second up to twice as much. */
  EXPECT_GE(flusher.run(linear(1000.0), UNLIMITED, 16.0), 800.0);
}

/* 100,000 pages at once, which take 10 s: sync flushing. */
TEST(FlushCapacity, SyncFlushingShowsTheCapacity) {
  Flush_capacity capacity;
  for (double now_s = 1000.0; now_s < 1200.0; now_s += 10.0) {
    capacity.add(
        {.begin_s = now_s, .end_s = now_s, .n_pages = 1, .is_probe = true});
    capacity.add({.begin_s = now_s, .end_s = now_s + 10.0, .n_pages = 3000});
  }
  EXPECT_NEAR(capacity.pages_per_s(), FLUSH_CRUISE_FRACTION * 300.0, 1.0);
}

TEST(FlushCapacity, APauseIsInNoWindow) {
  Flusher flusher;
  (void)flusher.run(linear(1000.0), UNLIMITED, 60.0);
  const double before = flusher.capacity.limit_per_s();
  flusher.capacity.pause();
  flusher.capacity.add({.begin_s = 5000.0, .end_s = 5000.1, .n_pages = 90});
  EXPECT_EQ(flusher.capacity.limit_per_s(), before);
  /* The window began at 5000 s: 900 pages in 1 s, of which 0.9 s. */
  flusher.capacity.add({.begin_s = 5000.2,
                        .end_s = 5001.0,
                        .n_pages = 810,
                        .demand_exceeds_limit = true});
  EXPECT_EQ(flusher.capacity.limit_per_s(), before);
}

}  // namespace
}  // namespace spw
