/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "flush/policy/flush0capacity.h"

#include <gtest/gtest.h>

#include "flush/policy/flush0controller.h"

namespace spw {
namespace {

/** A device that writes this number of pages/s, and has a fixed cost for each
batch. Or a volume with a budget, which writes its pages of each tenth of a
second at once. */
struct Device {
  double pages_per_s;
  double batch_s{0.0};
  bool is_bucket{false};
};

/** Makes rounds as Ahead_flush does, of as many pages as the limit allows. */
class Flusher {
 public:
  /** @param[in]  interval_s  innodb_ahead_flushing_interval_ms: seconds */
  explicit Flusher(double interval_s) : m_interval_s(interval_s) {}

  /** @param[in]  device   the device
  @param[in]  wanted   pages/s to flush
  @param[in]  seconds  duration
  @return pages/s written in the second half of it */
  double run(const Device &device, double wanted, double seconds) {
    const double begin_s = m_now_s;
    double n_written = 0.0;
    while (m_now_s < begin_s + seconds) {
      const bool is_writing = m_idle_since_s > m_now_s;
      capacity.add_sample(m_now_s, is_writing ? -1.0 : m_idle_since_s,
                          n_done());
      const double most_s =
          std::max(FLUSH_CATCH_UP_INTERVALS * m_interval_s, FLUSH_CATCH_UP_S);
      const double forfeited_s = std::max(0.0, m_accrued_s - most_s);
      m_accrued_s -= forfeited_s;
      uint64_t n_pages = 0;
      if (!is_writing) {
        n_pages = static_cast<uint64_t>(
            m_page_remainder +
            m_accrued_s * std::min(wanted, capacity.limit_per_s()));
        m_page_remainder +=
            m_accrued_s * std::min(wanted, capacity.limit_per_s()) -
            static_cast<double>(n_pages);
        m_accrued_s = 0.0;
        m_n_before += m_n_batch;
        m_n_batch = n_pages;
        m_batch_s = m_now_s + (device.is_bucket ? 0.0 : device.batch_s);
        m_idle_since_s = m_now_s + time_of(device, n_pages);
        if (m_now_s > begin_s + seconds / 2.0) {
          n_written += static_cast<double>(n_pages);
        }
      }
      capacity.round(m_now_s, m_now_s, n_pages, forfeited_s,
                     wanted >= capacity.limit_per_s());
      const double next_s = is_writing
                                ? FLUSH_BUSY_RETRY_INTERVALS * m_interval_s
                                : m_interval_s + late_s;
      m_now_s += next_s;
      m_accrued_s += next_s;
    }
    return n_written / (seconds / 2.0);
  }

  Flush_capacity capacity;

  /** Time by which each round is late: seconds. */
  double late_s{0.0};

 private:
  static constexpr double SLICE_S = 0.1;

  /** @return pages written: a batch evenly, after its fixed cost */
  uint64_t n_done() const {
    const double share = m_now_s >= m_idle_since_s
                             ? 1.0
                             : std::max(0.0, (m_now_s - m_batch_s) /
                                                 (m_idle_since_s - m_batch_s));
    return m_n_before +
           static_cast<uint64_t>(share * static_cast<double>(m_n_batch));
  }

  /** @return duration of the writes: seconds */
  double time_of(const Device &device, uint64_t n_pages) {
    const auto pages = static_cast<double>(n_pages);
    if (!device.is_bucket) {
      return pages == 0.0 ? 0.0 : device.batch_s + pages / device.pages_per_s;
    }
    const double slice = std::floor(m_now_s / SLICE_S);
    if (slice > m_slice) {
      m_bucket = device.pages_per_s * SLICE_S;
      m_slice = slice;
    }
    m_bucket -= pages;
    const double slices =
        m_bucket >= 0.0 ? 0.0
                        : std::ceil(-m_bucket / (device.pages_per_s * SLICE_S));
    if (slices > 0.0) {
      m_bucket += slices * device.pages_per_s * SLICE_S;
      m_slice += slices;
      return (slice + slices) * SLICE_S - m_now_s + 0.001;
    }
    return 0.001;
  }

  const double m_interval_s;
  double m_now_s{10.0};
  double m_idle_since_s{0.0};
  uint64_t m_n_before{0};
  uint64_t m_n_batch{0};
  double m_batch_s{0.0};
  double m_accrued_s{0.0};
  double m_page_remainder{0.0};
  double m_bucket{0.0};
  double m_slice{0.0};
};

TEST(FlushCapacity, IsNotKnownBeforeTheDeviceWasAskedForMore) {
  Flusher flusher{0.1};
  EXPECT_EQ(flusher.capacity.limit_per_s(), FLUSH_RATE_INITIAL_PER_S);
  (void)flusher.run({1e6}, 500.0, 60.0);
  EXPECT_EQ(flusher.capacity.pages_per_s(), 0.0);
  EXPECT_EQ(flusher.capacity.limit_per_s(), FLUSH_RATE_INITIAL_PER_S);
}

TEST(FlushCapacity, IsFoundOnAnyDevice) {
  for (const double interval_s : {0.02, 0.1}) {
    for (const double pages_per_s : {70.0, 300.0, 900.0, 12e3, 180e3}) {
      for (const bool is_bucket : {false, true}) {
        Flusher flusher{interval_s};
        (void)flusher.run({pages_per_s, 0.0, is_bucket}, 1e9, 60.0);
        const double written =
            flusher.run({pages_per_s, 0.0, is_bucket}, 1e9, 60.0);
        EXPECT_GE(written, 0.8 * pages_per_s)
            << pages_per_s << " " << interval_s << " " << is_bucket;
        EXPECT_LE(flusher.capacity.limit_per_s(), 1.3 * pages_per_s)
            << pages_per_s << " " << interval_s << " " << is_bucket;
      }
    }
  }
}

TEST(FlushCapacity, WhatABatchCostsDoesNotBringItDown) {
  /* Longer than an interval: batches become larger, and cost less. */
  for (const double batch_s : {0.005, 0.015, 0.03}) {
    Flusher flusher{0.02};
    EXPECT_GE(flusher.run({1000.0, batch_s}, 1e9, 300.0), 200.0) << batch_s;
  }
}

TEST(FlushCapacity, IsNeverLessThanAnyDiskCarries) {
  Flusher flusher{0.02};
  (void)flusher.run({1000.0, 5.0}, 1e9, 300.0);
  EXPECT_GE(flusher.capacity.limit_per_s(), FLUSH_RATE_MIN_PER_S);
}

TEST(FlushCapacity, FollowsADeviceThatBecomesSlowerAndFaster) {
  Flusher flusher{0.02};
  (void)flusher.run({5000.0, 0.001}, 1e9, 60.0);
  EXPECT_NEAR(flusher.run({500.0, 0.001}, 1e9, 60.0), 500.0, 100.0);
  (void)flusher.run({5000.0, 0.001}, 1e9, 10.0);
  EXPECT_NEAR(flusher.run({5000.0, 0.001}, 1e9, 10.0), 5000.0, 1000.0);
}

TEST(FlushCapacity, DoesNotGrowWhereThereIsMoreOnlyNowAndThen) {
  Flusher flusher{0.1};
  (void)flusher.run({1000.0, 0.001}, 1e9, 60.0);
  const double before = flusher.capacity.limit_per_s();
  for (int i = 0; i < 60; ++i) {
    (void)flusher.run({1e5, 0.001}, 1e9, 0.1);
    (void)flusher.run({1e5, 0.001}, 50.0, 0.9);
  }
  EXPECT_LE(flusher.capacity.limit_per_s(), FLUSH_GROWTH * before);
}

/* Writes took a fraction of the time. The limit grows to what takes
FLUSH_GROW_FRACTION of it, within the bounds of the growth factor. */
TEST(FlushCapacity, GrowsByTheTimeThatIsLeftFromWhatWasWritten) {
  const auto limit_after = [](double share, uint64_t n_written) {
    Flush_capacity capacity;
    capacity.add_sample(1000.0, 999.0, 0);
    capacity.round(1000.0, 1000.0, n_written, 0.0, true);
    capacity.add_sample(1001.0, 1000.0 + share, n_written);
    return capacity.limit_per_s();
  };
  EXPECT_NEAR(limit_after(0.0, 900), 900.0 * FLUSH_GROWTH_MAX, 1e-6);
  EXPECT_NEAR(limit_after(0.2, 900), 900.0 * FLUSH_GROWTH_MAX, 1e-6);
  EXPECT_NEAR(limit_after(0.5, 900), 900.0 * FLUSH_GROW_FRACTION / 0.5, 1e-6);
  EXPECT_NEAR(limit_after(0.84, 1000), 1000.0 * FLUSH_GROWTH, 1e-6);
  /* The limit is higher already. */
  EXPECT_EQ(limit_after(0.8, 800), FLUSH_RATE_INITIAL_PER_S);
}

TEST(FlushCapacity, RoundsThatAreLateForAProcessorAreNotTheDevices) {
  /* Each round is 80 ms late, and the next one catches up. */
  Flusher flusher{0.02};
  (void)flusher.run({5000.0, 0.001}, 1e9, 60.0);
  const double before = flusher.capacity.limit_per_s();
  flusher.late_s = 0.08;
  EXPECT_GE(flusher.run({5000.0, 0.001}, 1e9, 60.0), 0.8 * before);
}

TEST(FlushCapacity, LateRoundsOfLessThanMayBeFlushedSayNothing) {
  Flusher flusher{0.1};
  (void)flusher.run({1000.0, 0.001}, 1e9, 60.0);
  (void)flusher.run({1000.0, 0.001}, 300.0, 2.0);
  const double before = flusher.capacity.limit_per_s();
  flusher.late_s = 0.3;
  (void)flusher.run({1000.0, 0.001}, 300.0, 10.0);
  EXPECT_EQ(flusher.capacity.limit_per_s(), before);
}

TEST(FlushCapacity, AFewPagesDoNotTellThatItCarriesLess) {
  Flusher flusher{0.02};
  (void)flusher.run({1000.0, 0.01}, 1e9, 60.0);
  (void)flusher.run({1000.0, 0.01}, 20.0, 2.0);
  const double before = flusher.capacity.limit_per_s();
  (void)flusher.run({1000.0, 0.01}, 20.0, 600.0);
  EXPECT_EQ(flusher.capacity.limit_per_s(), before);
}

TEST(FlushCapacity, ADeviceThatIsBusyWithLessThanItMayCarriesLess) {
  Flusher flusher{0.02};
  (void)flusher.run({2500.0, 0.001}, 1e9, 60.0);
  (void)flusher.run({800.0, 0.001}, 850.0, 60.0);
  EXPECT_LE(flusher.capacity.limit_per_s(), 900.0);
}

TEST(FlushCapacity, APauseIsNotAStall) {
  Flusher flusher{0.02};
  (void)flusher.run({1000.0, 0.001}, 1e9, 60.0);
  const double before = flusher.capacity.limit_per_s();
  flusher.capacity.round(1000.0, 1000.0, 18, 0.0, true);
  flusher.capacity.pause();
  flusher.capacity.add_sample(5000.0, -1.0, 1'000'000);
  flusher.capacity.add_sample(5000.1, 5000.05, 1'000'018);
  EXPECT_EQ(flusher.capacity.limit_per_s(), before);
}

TEST(FlushCapacity, WhatWasBeforeTheFirstLookIsOfNoWindow) {
  Flush_capacity capacity;
  /* Sync flushing came before the first round: its start is unknown. */
  capacity.round(0.0, 5000.0, 100, 1.0, true);
  capacity.add_sample(5000.0, 5000.0, 9000);
  capacity.round(5000.5, 5000.5, 100, 0.0, false);
  capacity.add_sample(5001.1, 5000.6, 9100);
  EXPECT_EQ(capacity.pages_per_s(), 0.0);
  EXPECT_EQ(capacity.limit_per_s(), FLUSH_RATE_INITIAL_PER_S);
}

TEST(FlushCapacity, AfterAPauseItIsBackSoon) {
  Flusher flusher{0.02};
  (void)flusher.run({1000.0, 0.001}, 1e9, 120.0);
  const double before = flusher.capacity.limit_per_s();
  (void)flusher.run({300.0, 0.001}, 1e9, 3.0);
  EXPECT_LE(flusher.capacity.limit_per_s(), 0.55 * before);
  (void)flusher.run({1000.0, 0.001}, 1e9, 6.0);
  EXPECT_GE(flusher.capacity.limit_per_s(), 0.75 * before);
}

TEST(FlushCapacity, WhatWasHandedOverAtAnyPriceIsNotWhatMayBeFlushed) {
  Flush_capacity capacity;
  capacity.add_sample(1000.0, 999.0, 0);
  /* Sync flushing submits 100,000 pages at once, which take long. */
  capacity.round(1000.0, 1000.1, 100'000, 0.0, false);
  capacity.add_sample(1001.0, -1.0, 10'000);
  EXPECT_LE(capacity.limit_per_s(), FLUSH_GROWTH * FLUSH_RATE_INITIAL_PER_S);
}

TEST(FlushCapacity, WhatIsStillToBeWrittenIsNotCarried) {
  /* Batches of ten seconds, as with an innodb_io_capacity_max far above the
  capacity. */
  Flush_capacity capacity;
  capacity.add_sample(1000.0, 999.0, 0);
  capacity.round(1000.0, 1000.1, 3000, 0.0, true);
  for (uint64_t i = 1; i < 10; ++i) {
    capacity.add_sample(1000.0 + static_cast<double>(i), -1.0, 300 * i);
  }
  EXPECT_NEAR(capacity.pages_per_s(), 300.0, 1.0);
}

TEST(FlushCapacity, AFewPagesTellWhatIsFarTooMuch) {
  /* A volume has used up its credit, and the limit is not reached. */
  Flusher flusher{0.1};
  (void)flusher.run({10'000.0, 0.001}, 1e9, 60.0);
  (void)flusher.run({300.0, 0.001}, 1000.0, 30.0);
  EXPECT_LE(flusher.capacity.limit_per_s(), 1300.0);
  EXPECT_GE(flusher.capacity.limit_per_s(), 250.0);
}

TEST(FlushCapacity, AStallHalvesItOnce) {
  Flusher flusher{0.02};
  (void)flusher.run({1000.0, 0.001}, 1e9, 60.0);
  const double before = flusher.capacity.limit_per_s();
  (void)flusher.run({1000.0, 20.0}, 1e9, 19.0);
  EXPECT_GE(flusher.capacity.limit_per_s(), 0.45 * before);
}

}  // namespace
}  // namespace spw
