/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "extend/policy/extend0ahead.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace spw {
namespace {

constexpr uint64_t MIB = uint64_t{1} << 20;
constexpr uint64_t GIB = uint64_t{1} << 30;

constexpr Tablespace_sample SAMPLE{.now_s = 100.0,
                                   .size = GIB,
                                   .size_max = 64 * 1024 * GIB,
                                   .n_unused = 100,
                                   .unit_bytes = MIB,
                                   .extent_bytes = MIB,
                                   .is_page_compressed = false,
                                   .disk_available = 100 * GIB,
                                   .is_disk_backing_off = false};

Extend_history growing(double bytes_per_s) {
  return {.is_scanned = true,
          .now_s = 100.0,
          .begin_s = 100.0,
          .used_min = 0,
          .growth = bytes_per_s,
          .grown = 60.0 * bytes_per_s};
}

TEST(ExtendHistory, GrowthHalvesFromItsRecentMaximum) {
  Tablespace_sample sample = SAMPLE;
  Extend_history history = extend_history({}, sample);
  EXPECT_TRUE(history.is_scanned);
  EXPECT_EQ(history.growth, 0.0);

  sample.now_s += 12.0;
  sample.n_unused -= 60;
  history = extend_history(history, sample);
  /* 60 units of 1 MiB / 12 s = 5 MiB/s */
  EXPECT_DOUBLE_EQ(history.growth, 5.0 * MIB);

  /* Slower now, 30 MiB / 30 s = 1 MiB/s: the faster growth counts, and halves:
  5 / 2 = 2.5 MiB/s. */
  sample.now_s += EXTEND_GROWTH_HALF_LIFE_S;
  sample.n_unused -= 30;
  history = extend_history(history, sample);
  EXPECT_DOUBLE_EQ(history.growth, 2.5 * MIB);
  EXPECT_DOUBLE_EQ(history.grown, (60.0 / 2.0 + 30.0) * MIB);

  /* Rows were deleted. Both halve again: 2.5 / 2 = 1.25 MiB/s, and
  60 / 2 = 30 MiB. */
  sample.now_s += EXTEND_GROWTH_HALF_LIFE_S;
  sample.n_unused += 40;
  history = extend_history(history, sample);
  EXPECT_DOUBLE_EQ(history.growth, 1.25 * MIB);
  EXPECT_DOUBLE_EQ(history.grown, 30.0 * MIB);

  /* Space that is used again after that is growth: 20 MiB / 10 s = 2 MiB/s. */
  sample.now_s += EXTEND_GROWTH_WINDOW_S;
  sample.n_unused -= 20;
  history = extend_history(history, sample);
  EXPECT_DOUBLE_EQ(history.growth, 2.0 * MIB);
}

TEST(ExtendHistory, IncompleteWindowCountsAsFullWindow) {
  /* Four extents at once every six seconds: 4 MiB / 6 s = 0.67 MiB/s. A window
  of 10 s has one or two of these bursts: 0.4 or 0.8 MiB/s. */
  Tablespace_sample sample = SAMPLE;
  Extend_history history = extend_history({}, sample);
  double growth_max = 0.0;
  for (unsigned second = 1; second < 90; ++second) {
    sample.now_s += 1.0;
    sample.n_unused -= second % 6 == 0 ? 4 : 0;
    history = extend_history(history, sample);
    growth_max = std::max(growth_max, history.growth);
  }
  EXPECT_GT(growth_max, 0.6 * MIB);
  EXPECT_LE(growth_max, 1.0 * MIB);
}

TEST(ExtendHistory, ExtensionIsNotGrowth) {
  Extend_history history = extend_history({}, SAMPLE);
  Tablespace_sample sample = SAMPLE;
  sample.now_s += EXTEND_GROWTH_WINDOW_S;
  sample.size += 500 * MIB;
  sample.n_unused += 500;
  EXPECT_EQ(extend_history(history, sample).growth, 0.0);
}

TEST(ExtendHistory, MoreUnusedUnitsThanSizeAndNoElapsedTime) {
  Tablespace_sample sample = SAMPLE;
  /* The sample has 1024 units. */
  sample.n_unused = 1025;
  const Extend_history history = extend_history(growing(5.0), sample);
  EXPECT_EQ(history.used_min, 0u);
  /* No time has passed. */
  EXPECT_EQ(history.growth, 5.0);
}

TEST(DiskBudget, ReservedSpaceIsNotAvailable) {
  Disk_budget budget;
  EXPECT_EQ(budget.available(), 0u);
  budget.open(1.0, 30 * GIB, 100 * GIB);
  /* The headroom is 5 % of 100 GiB: 30 - 5 = 25. */
  EXPECT_EQ(budget.available(), 25 * GIB);
  budget.reserve(10 * GIB);
  /* In the same scan: 25 - 10 = 15. */
  budget.open(1.0, 30 * GIB, 100 * GIB);
  EXPECT_EQ(budget.available(), 15 * GIB);
  budget.reserve(16 * GIB);
  EXPECT_EQ(budget.available(), 0u);
  /* In the next scan: 20 - 5 = 15. */
  budget.open(2.0, 20 * GIB, 100 * GIB);
  EXPECT_EQ(budget.available(), 15 * GIB);
}

TEST(DiskBudget, StepNeedsSpaceAboveHeadroom) {
  Disk_budget budget;
  /* 5 % of 100 GiB stay free: 6 - 5 = 1 GiB. */
  EXPECT_TRUE(budget.can_extend(0.0, GIB, 6 * GIB, 100 * GIB));
  EXPECT_FALSE(budget.can_extend(0.0, GIB + 1, 6 * GIB, 100 * GIB));
  budget.failed(0.0);
  EXPECT_FALSE(budget.can_extend(1.0, GIB, 6 * GIB, 100 * GIB));
}

TEST(DiskBudget, BacksOffAfterFailure) {
  Disk_budget budget;
  EXPECT_FALSE(budget.is_backing_off(0.0));
  budget.failed(10.0);
  /* Until 10 + 60 = 70 s. */
  EXPECT_TRUE(budget.is_backing_off(10.0));
  EXPECT_TRUE(budget.is_backing_off(69.9));
  EXPECT_FALSE(budget.is_backing_off(70.0));

  Tablespace_sample sample = SAMPLE;
  sample.n_unused = 0;
  sample.is_disk_backing_off = true;
  EXPECT_EQ(decide_extend_ahead(1, sample, growing(200.0)).reason,
            Extend_reason::DISK_BACKING_OFF);
}

TEST(ExtendAhead, TimeToFull) {
  /* (104 - 4) / 10 = 10 s, as one allocation burst of 4 MiB is due. Growth
  counts as at least 1 byte/s: 7 / 1 = 7 s. */
  EXPECT_DOUBLE_EQ(extend_time_to_full_s(104 * MIB, 4 * MIB, 10.0 * MIB), 10.0);
  EXPECT_DOUBLE_EQ(extend_time_to_full_s(3 * MIB, 4 * MIB, 10.0 * MIB), 0.0);
  EXPECT_DOUBLE_EQ(extend_time_to_full_s(7, 0, 0.0), 7.0);
}

TEST(ExtendAhead, NotPageCompressedFiles) {
  Tablespace_sample sample = SAMPLE;
  sample.n_unused = 0;
  sample.is_page_compressed = true;
  EXPECT_EQ(decide_extend_ahead(1, sample, growing(200.0)).reason,
            Extend_reason::PAGE_COMPRESSED);
}

TEST(ExtendAhead, PausesUnlessSpaceRunsOutSoon) {
  /* A step takes a quarter of the time: 0.1 s * (1 / 0.25 - 1) = 0.3 s. */
  EXPECT_DOUBLE_EQ(pause_ahead_s(0.1, EXTEND_HORIZON_S), 0.3);
  EXPECT_EQ(pause_ahead_s(0.1, EXTEND_HORIZON_S - 0.1), 0.0);
}

TEST(ExtendAhead, FreeBytes) {
  /* Not free are 2 + 3 + 1 = 6 units and 1 % of the file: 6 of 10 MiB, and
  6 + 10 = 16 of 1000 MiB. */
  struct {
    uint64_t size, n_unused, free;
  } const cases[] = {{10 * MIB, 0, 0},
                     {10 * MIB, 6, 0},
                     {10 * MIB, 7, MIB},
                     {1000 * MIB, 16, 0},
                     {1000 * MIB, 50, 34 * MIB}};
  for (const auto &one : cases) {
    Tablespace_sample sample = SAMPLE;
    sample.size = one.size;
    sample.n_unused = one.n_unused;
    EXPECT_EQ(extend_free_bytes(sample), one.free) << one.size;
  }
  /* Pages of 1 KiB: an extent of 1 MiB has 16 units of 64 KiB. The file has
  160, of which 6 + 1 are not free: 9 - 7 = 2. */
  Tablespace_sample sample = SAMPLE;
  sample.size = 10 * MIB;
  sample.unit_bytes = 64 * 1024;
  sample.n_unused = 9;
  EXPECT_EQ(extend_free_bytes(sample), 2u * 64 * 1024);
}

/* Whether InnoDB extends a file: fsp_reserve_free_extents(), for the largest
request of an insert. */
bool upstream_extends(uint64_t n_units, uint64_t n_listed, uint64_t n_above) {
  constexpr uint64_t REQUESTED = 3;
  const uint64_t usable =
      n_listed + (n_above > 0 ? n_above - 1 - (n_above - 1) / 256 : 0);
  return usable <= 2 + 2 * n_units / 200 + REQUESTED;
}

TEST(ExtendAhead, ExtendsBeforeInnoDbDoes) {
  for (const uint64_t n_units : {16, 64, 500, 5000}) {
    for (uint64_t n_unused = 0; n_unused < n_units; ++n_unused) {
      for (uint64_t n_listed = 0; n_listed <= n_unused && n_listed < 8;
           ++n_listed) {
        if (!upstream_extends(n_units, n_listed, n_unused - n_listed)) {
          continue;
        }
        Tablespace_sample sample = SAMPLE;
        sample.size = n_units * MIB;
        sample.n_unused = n_unused;
        EXPECT_EQ(decide_extend_ahead(1, sample, growing(200.0)).reason,
                  Extend_reason::GROWTH)
            << n_units << " " << n_unused;
      }
    }
  }
}

TEST(ExtendAhead, Reasons) {
  struct {
    uint32_t pct;
    uint64_t size, free, disk_available, size_max;
    double growth;
    Extend_reason reason;
    uint64_t target;
  } const cases[] = {
      {0, GIB, 0, GIB, 9 * GIB, 1e9, Extend_reason::OFF, 0},
      {5, GIB, 0, GIB, 9 * GIB, 0.0, Extend_reason::NOT_GROWING, 0},
      {5, GIB, 100 * MIB, GIB, 9 * GIB, 1.0 * MIB, Extend_reason::ENOUGH, 0},
      /* 5 % of 1 GiB are 51.2 MiB. 30 s of growth and two bursts are added:
      30 * 1 + 2 * 4 = 38 MiB. */
      {5, GIB, 51 * MIB, GIB, 9 * GIB, 1.0 * MIB, Extend_reason::FREE_PCT,
       GIB + 38 * MIB},
      /* 15 s of growth and a burst are 15 * 4 + 4 = 64 MiB. Twice that is
      added. */
      {1, GIB, 63 * MIB, GIB, 9 * GIB, 4.0 * MIB, Extend_reason::GROWTH,
       GIB + 128 * MIB},
      {1, GIB, 64 * MIB, GIB, 9 * GIB, 4.0 * MIB, Extend_reason::ENOUGH, 0},
      /* At least one burst of 4 MiB stays free, at any growth. Two bursts and
      30 s of growth, 6000 bytes, are added: 10 + 8 MiB and 6000 bytes, rounded
      up to an extent. */
      {1, 10 * MIB, 4 * MIB, GIB, 9 * GIB, 200.0, Extend_reason::GROWTH,
       19 * MIB},
      {1, 10 * MIB, 5 * MIB, GIB, 9 * GIB, 200.0, Extend_reason::ENOUGH, 0},
      /* A file at most doubles, so that half an extent becomes one. */
      {1, 2 * MIB, 0, GIB, 9 * GIB, 200.0, Extend_reason::GROWTH, 4 * MIB},
      {1, MIB / 2, 0, GIB, 9 * GIB, 200.0, Extend_reason::GROWTH, MIB},
      {1, MIB / 2 - 1, 0, GIB, 9 * GIB, 200.0, Extend_reason::TOO_SMALL, 0},
      /* At most 1 GiB is preallocated: 1024 - 51 = 973 MiB are added. */
      {1, GIB, 51 * MIB, 9 * GIB, 9 * GIB, 4e9, Extend_reason::GROWTH,
       GIB + 973 * MIB},
      /* 1 GiB free is enough, although 50 % would be 50 GiB. */
      {50, 100 * GIB, GIB, 9 * GIB, 900 * GIB, 200.0, Extend_reason::ENOUGH, 0},
      {50, 100 * GIB, GIB - 3 * MIB, 9 * GIB, 900 * GIB, 200.0,
       Extend_reason::FREE_PCT, 100 * GIB + 3 * MIB},
      /* The 38 MiB of above, and a disk that has a byte less. */
      {5, GIB, 51 * MIB, 38 * MIB - 1, 9 * GIB, 1.0 * MIB,
       Extend_reason::DISK_NEARLY_FULL, 0},
      /* The maximum size is rounded down to an extent. */
      {5, GIB, 51 * MIB, GIB, GIB + 7, 1.0 * MIB, Extend_reason::AT_LIMIT, 0},
      {5, GIB, 51 * MIB, GIB, GIB + 2 * MIB + 7, 1.0 * MIB,
       Extend_reason::FREE_PCT, GIB + 2 * MIB},
  };
  for (const auto &one : cases) {
    Tablespace_sample sample = SAMPLE;
    sample.size = one.size;
    /* Units that are not free: see FreeBytes. */
    sample.n_unused = one.free / MIB + 6 + one.size / MIB / 100;
    sample.disk_available = one.disk_available;
    sample.size_max = one.size_max;
    const Extend_decision decision =
        decide_extend_ahead(one.pct, sample, growing(one.growth));
    EXPECT_EQ(decision.reason, one.reason) << one.pct << " " << one.growth;
    EXPECT_EQ(decision.target, one.target) << one.pct << " " << one.growth;
  }
}

TEST(ExtendAhead, ScanIntervalFollowsScanDuration) {
  EXPECT_DOUBLE_EQ(scan_interval_s(0.0), EXTEND_SCAN_MIN_S);
  /* Scans take 1 % of the time: 0.005 s / 0.01 = 0.5 s. */
  EXPECT_DOUBLE_EQ(scan_interval_s(0.005), 0.5);
  EXPECT_DOUBLE_EQ(scan_interval_s(0.5), EXTEND_SCAN_MAX_S);
}

/* A file that inserts fill, a thread that scans it, and a device that takes
time to extend it. */
struct Simulation {
  /** Rate of the inserts at a time in seconds: bytes/s. */
  std::function<double(double)> inserted;

  /** Rate at which the device extends a file: bytes/s. */
  double device;

  uint32_t pct{10};

  /** Size of the file, and space in use: bytes, at the begin and at the end. */
  double size{12.0 * MIB};
  double used{8.0 * MIB};

  /** Interval between scans: seconds. */
  double scan_every_s{EXTEND_SCAN_MAX_S};

  /** Seconds in which an insert had no space, without the first 5 s, in which
  the growth is not measured yet. */
  double starved_s{0.0};

  /** Number of extensions by inserts, from the beginning. */
  unsigned n_extensions{0};

  void run(double seconds) {
    constexpr double TICK_S = 0.05;
    Extend_history history;
    double taken = used;
    double target = 0.0;
    double next_tick_s = 0.0;
    for (double now = 0.0; now < seconds; now += TICK_S) {
      const double want = inserted(now) * TICK_S;
      used += std::min(want, size - used);
      if (want > size - used && now > 5.0) {
        starved_s += TICK_S;
      }
      /* An insert without space extends the file itself, as in stock. */
      if (size - used < MIB) {
        size += 4.0 * MIB;
        ++n_extensions;
      }
      while (taken < used) {
        taken += EXTEND_BURST_EXTENTS * MIB;
      }
      Tablespace_sample sample = SAMPLE;
      sample.now_s = now;
      sample.size = static_cast<uint64_t>(size) / MIB * MIB;
      sample.n_unused =
          (sample.size - std::min(sample.size, static_cast<uint64_t>(taken))) /
          MIB;
      if (now >= next_tick_s) {
        next_tick_s = now + scan_every_s;
        history = extend_history(history, sample);
        target =
            std::max(target > size ? target : 0.0,
                     static_cast<double>(
                         decide_extend_ahead(pct, sample, history).target));
      }
      if (target > size) {
        const double time_to_full_s =
            extend_time_to_full_s(extend_free_bytes(sample),
                                  EXTEND_BURST_EXTENTS * MIB, history.growth);
        const double pause_after_step_s =
            pause_ahead_s(EXTEND_STEP_S, time_to_full_s);
        size =
            std::min(target, size + device * TICK_S * EXTEND_STEP_S /
                                        (EXTEND_STEP_S + pause_after_step_s));
      }
    }
  }
};

TEST(ExtendAheadSimulation, InsertsFindFreeSpace) {
  /* Devices that extend at least 1.5 times as fast as the file grows. */
  for (const double rate : {0.1 * MIB, 1.0 * MIB, 8.0 * MIB, 100.0 * MIB}) {
    for (const double device : {1.5 * rate, 10.0 * rate}) {
      for (const uint32_t pct : {1u, 10u, 50u}) {
        Simulation steady{[rate](double) { return rate; }, device, pct};
        steady.run(600.0);
        EXPECT_EQ(steady.starved_s, 0.0) << rate << " " << device << " " << pct;

        Simulation often{[rate](double) { return rate; }, device, pct};
        often.scan_every_s = EXTEND_SCAN_MIN_S;
        often.run(600.0);
        EXPECT_EQ(often.starved_s, 0.0) << rate << " " << device << " " << pct;
        EXPECT_LE(often.n_extensions, steady.n_extensions);

        Simulation bursts{[rate](double now) {
                            return std::fmod(now, 20.0) < 5.0 ? rate
                                                              : rate / 20.0;
                          },
                          device, pct};
        bursts.run(600.0);
        EXPECT_EQ(bursts.starved_s, 0.0) << rate << " " << device << " " << pct;
      }
    }
  }
}

TEST(ExtendAheadSimulation, SuddenLoad) {
  /* (4.0 - 3.6) GiB = 409.6 MiB are free, and 18 s * 50 MiB/s = 900 MiB are
  inserted. The device adds 18 s * 42 MiB/s = 756 MiB if it begins at once and
  does not pause. */
  Simulation sudden{
      [](double now) { return now >= 300.0 && now < 318.0 ? 50.0 * MIB : 0.0; },
      42.0 * MIB, 1, 4.0 * GIB, 3.6 * GIB};
  sudden.run(400.0);
  EXPECT_EQ(sudden.starved_s, 0.0);
}

/* Free space in addition, at any growth: three bursts, six units that InnoDB
reserves, a burst that is not filled, the free space at the begin:
3 * 4 + 6 + 4 + (12 - 8) = 26 MiB, rounded up. */
constexpr double FREE_IN_ADDITION = 30.0 * MIB;

TEST(ExtendAheadSimulation, BurstLeavesFreeSpaceOfItsSize) {
  /* Also with ten scans per second, on a fast device. */
  for (const double burst : {10.0 * MIB, 30.0 * MIB, 300.0 * MIB}) {
    for (const double seconds : {0.3, 1.0, 5.0}) {
      Simulation once{
          [burst, seconds](double now) {
            return now >= 10.0 && now < 10.0 + seconds ? burst / seconds : 0.0;
          },
          1e9, 1};
      once.scan_every_s = EXTEND_SCAN_MIN_S;
      once.run(300.0);
      EXPECT_LE(once.size - once.used, 1.5 * burst + FREE_IN_ADDITION)
          << burst << " " << seconds;
    }
  }
}

TEST(ExtendAheadSimulation, UnusedSpaceIsBounded) {
  /* A load that ends leaves the space for its growth, or the percentage. */
  for (const double rate : {0.1 * MIB, 1.0 * MIB, 8.0 * MIB}) {
    for (const uint32_t pct : {1u, 10u}) {
      Simulation ends{[rate](double now) { return now < 200.0 ? rate : 0.0; },
                      10.0 * rate, pct};
      ends.run(1200.0);
      const double for_growth =
          3.0 * EXTEND_HORIZON_S * rate + FREE_IN_ADDITION;
      const double for_pct = ends.size * (pct + 2) / 100.0 + for_growth;
      EXPECT_LE(ends.size - ends.used, for_pct) << rate << " " << pct;
    }
  }
}

/* Files on one device: one thread extends the one whose space runs out first,
step by step, as Extender_ahead does.
@return number of extensions by inserts after the first ten seconds, of files
whose growth was measured */
unsigned extensions_by_inserts(unsigned n_files, double rate, double device) {
  struct File {
    double used, taken, size;
    double target{0.0};
    Extend_history history{};
    Tablespace_sample sample{SAMPLE};
    Extend_pace pace{MIB};

    bool is_growing() const { return history.growth >= EXTEND_GROWTH_MIN; }

    double time_to_full_s() const {
      return extend_time_to_full_s(extend_free_bytes(sample),
                                   EXTEND_BURST_EXTENTS * MIB, history.growth);
    }
  };
  constexpr double TICK_S = 0.01;
  std::vector<File> files;
  for (unsigned i = 0; i < n_files; ++i) {
    const double used = (80.0 + i % 4) * MIB;
    files.push_back({used, used, 96.0 * MIB});
  }
  unsigned extensions = 0;
  double next_tick_s = 0.0;
  double next_step_s = 0.0;
  for (double now = 0.0; now < 120.0; now += TICK_S) {
    const bool is_scan = now >= next_tick_s;
    next_tick_s += is_scan ? 1.0 : 0.0;
    File *first = nullptr;
    for (File &file : files) {
      file.used += rate * TICK_S;
      while (file.taken < file.used) {
        file.taken += EXTEND_BURST_EXTENTS * MIB;
      }
      file.sample.now_s = now;
      file.sample.size = static_cast<uint64_t>(file.size) / MIB * MIB;
      file.sample.n_unused =
          (file.sample.size -
           std::min(file.sample.size, static_cast<uint64_t>(file.taken))) /
          MIB;
      if (file.sample.n_unused <= 6 + file.sample.size / MIB / 100) {
        file.size += 4.0 * MIB;
        extensions += now > 10.0 && file.is_growing() ? 1 : 0;
      }
      if (is_scan) {
        file.history = extend_history(file.history, file.sample);
        file.target = std::max(
            file.target > file.size ? file.target : 0.0,
            static_cast<double>(
                decide_extend_ahead(10, file.sample, file.history).target));
      }
      if (file.target > file.size &&
          (first == nullptr ||
           file.time_to_full_s() < first->time_to_full_s())) {
        first = &file;
      }
    }
    if (first != nullptr && now >= next_step_s) {
      const auto size = static_cast<uint64_t>(first->size);
      const uint64_t next =
          first->pace.next(size, static_cast<uint64_t>(first->target));
      const double step_s = static_cast<double>(next - size) / device;
      next_step_s =
          now + step_s + pause_ahead_s(step_s, first->time_to_full_s());
      first->pace.record_step(next - size, step_s);
      first->size = static_cast<double>(next);
    }
  }
  return extensions;
}

TEST(ExtendAheadSimulation, ManyFilesOnOneDevice) {
  /* As measured: twelve tables that grow by 9 MB/s in total, on a device that
  can add 1.5 times as much in the time that other threads leave. */
  constexpr double GROWTH = 9e6;
  constexpr double DEVICE = 1.5 * GROWTH;
  EXPECT_EQ(extensions_by_inserts(12, GROWTH / 12, DEVICE), 0u);
  EXPECT_EQ(extensions_by_inserts(12, 0.1e6, DEVICE), 0u);
  EXPECT_EQ(extensions_by_inserts(1, GROWTH, DEVICE), 0u);
  EXPECT_EQ(extensions_by_inserts(100, GROWTH / 100, DEVICE), 0u);
}

TEST(ExtendAheadSimulation, FileWithoutGrowthKeepsItsSize) {
  Simulation idle{[](double) { return 0.0; }, 1e9, 50};
  idle.run(600.0);
  EXPECT_EQ(idle.size, 12.0 * MIB);
}

}  // namespace
}  // namespace spw
