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

constexpr Extend_look LOOK{.now_s = 100.0,
                           .size = GIB,
                           .size_max = 64 * 1024 * GIB,
                           .n_unused = 100,
                           .unit_bytes = MIB,
                           .extent_bytes = MIB,
                           .is_page_compressed = false,
                           .disk_room = 100 * GIB,
                           .is_disk_held = false};

Extend_history growing(double bytes_per_s) {
  return {.is_known = true,
          .now_s = 100.0,
          .begin_s = 100.0,
          .used_min = 0,
          .growth = bytes_per_s,
          .grown = 60.0 * bytes_per_s};
}

TEST(ExtendHistory, GrowthIsTheFastestOfTheLastTime) {
  Extend_look look = LOOK;
  Extend_history history = extend_history({}, look);
  EXPECT_TRUE(history.is_known);
  EXPECT_EQ(history.growth, 0.0);

  look.now_s += 12.0;
  look.n_unused -= 60;
  history = extend_history(history, look);
  EXPECT_DOUBLE_EQ(history.growth, 5.0 * MIB);

  /* Slower now: the faster counts, and is forgotten by halves. */
  look.now_s += EXTEND_GROWTH_HALF_LIFE_S;
  look.n_unused -= 30;
  history = extend_history(history, look);
  EXPECT_DOUBLE_EQ(history.growth, 2.5 * MIB);

  EXPECT_DOUBLE_EQ(history.grown, (60.0 / 2.0 + 30.0) * MIB);

  /* Rows were deleted. */
  look.now_s += EXTEND_GROWTH_HALF_LIFE_S;
  look.n_unused += 40;
  history = extend_history(history, look);
  EXPECT_DOUBLE_EQ(history.growth, 1.25 * MIB);
  EXPECT_DOUBLE_EQ(history.grown, 30.0 * MIB);

  /* What is used again after that is growth. */
  look.now_s += EXTEND_GROWTH_WINDOW_S;
  look.n_unused -= 20;
  history = extend_history(history, look);
  EXPECT_DOUBLE_EQ(history.growth, 2.0 * MIB);
}

TEST(ExtendHistory, AWindowThatHasOnlyBegunCountsAsAWholeOne) {
  /* Four extents at once, each six seconds: 0.67 MiB a second. */
  Extend_look look = LOOK;
  Extend_history history = extend_history({}, look);
  double most = 0.0;
  for (unsigned second = 1; second < 90; ++second) {
    look.now_s += 1.0;
    look.n_unused -= second % 6 == 0 ? 4 : 0;
    history = extend_history(history, look);
    most = std::max(most, history.growth);
  }
  EXPECT_GT(most, 0.6 * MIB);
  EXPECT_LE(most, 1.0 * MIB);
}

TEST(ExtendHistory, AnExtensionIsNoGrowth) {
  Extend_history history = extend_history({}, LOOK);
  Extend_look look = LOOK;
  look.now_s += EXTEND_GROWTH_WINDOW_S;
  look.size += 500 * MIB;
  look.n_unused += 500;
  EXPECT_EQ(extend_history(history, look).growth, 0.0);
}

TEST(ExtendHistory, OddLooks) {
  Extend_look look = LOOK;
  look.n_unused = 1025;
  const Extend_history history = extend_history(growing(5.0), look);
  EXPECT_EQ(history.used_min, 0u);
  /* No time has passed. */
  EXPECT_EQ(history.growth, 5.0);
}

TEST(ExtendAccount, RoomIsPromisedOnce) {
  Extend_account account;
  EXPECT_EQ(account.room(), 0u);
  account.open(1.0, 30 * GIB, 100 * GIB);
  EXPECT_EQ(account.room(), 25 * GIB);
  account.promise(10 * GIB);
  /* In the same round. */
  account.open(1.0, 30 * GIB, 100 * GIB);
  EXPECT_EQ(account.room(), 15 * GIB);
  account.promise(16 * GIB);
  EXPECT_EQ(account.room(), 0u);
  account.open(2.0, 20 * GIB, 100 * GIB);
  EXPECT_EQ(account.room(), 15 * GIB);
}

TEST(ExtendAccount, AStepFindsTheRoomThatThereIs) {
  Extend_account account;
  EXPECT_TRUE(account.may_step(0.0, GIB, 6 * GIB, 100 * GIB));
  EXPECT_FALSE(account.may_step(0.0, GIB + 1, 6 * GIB, 100 * GIB));
  account.failed(0.0);
  EXPECT_FALSE(account.may_step(1.0, GIB, 6 * GIB, 100 * GIB));
}

TEST(ExtendAccount, HeldAfterAFailure) {
  Extend_account account;
  EXPECT_FALSE(account.is_held(0.0));
  account.failed(10.0);
  EXPECT_TRUE(account.is_held(10.0));
  EXPECT_TRUE(account.is_held(69.9));
  EXPECT_FALSE(account.is_held(70.0));

  Extend_look look = LOOK;
  look.n_unused = 0;
  look.is_disk_held = true;
  EXPECT_EQ(decide_extend_ahead(1, look, growing(200.0)).reason,
            Extend_reason::DISK_HELD);
}

TEST(ExtendAhead, FullIn) {
  EXPECT_DOUBLE_EQ(extend_full_in_s(104 * MIB, 4 * MIB, 10.0 * MIB), 10.0);
  EXPECT_DOUBLE_EQ(extend_full_in_s(3 * MIB, 4 * MIB, 10.0 * MIB), 0.0);
  EXPECT_DOUBLE_EQ(extend_full_in_s(7, 0, 0.0), 7.0);
}

TEST(ExtendAhead, NotWhatIsGivenBack) {
  Extend_look look = LOOK;
  look.n_unused = 0;
  look.is_page_compressed = true;
  EXPECT_EQ(decide_extend_ahead(1, look, growing(200.0)).reason,
            Extend_reason::PAGE_COMPRESSED);
}

TEST(ExtendAhead, RestsUnlessItIsFullSoon) {
  EXPECT_DOUBLE_EQ(extend_ahead_rest_s(0.1, EXTEND_HORIZON_S), 0.3);
  EXPECT_EQ(extend_ahead_rest_s(0.1, EXTEND_HORIZON_S - 0.1), 0.0);
}

TEST(ExtendAhead, FreeBytes) {
  struct {
    uint64_t size, n_unused, free;
  } const cases[] = {{10 * MIB, 0, 0},
                     {10 * MIB, 6, 0},
                     {10 * MIB, 7, MIB},
                     {1000 * MIB, 16, 0},
                     {1000 * MIB, 50, 34 * MIB}};
  for (const auto &one : cases) {
    Extend_look look = LOOK;
    look.size = one.size;
    look.n_unused = one.n_unused;
    EXPECT_EQ(extend_free_bytes(look), one.free) << one.size;
  }
  /* Pages of 1 KiB: an extent has 16 units. */
  Extend_look look = LOOK;
  look.size = 10 * MIB;
  look.unit_bytes = 64 * 1024;
  look.n_unused = 9;
  EXPECT_EQ(extend_free_bytes(look), 2u * 64 * 1024);
}

/* When upstream extends: fsp_reserve_free_extents(), for what an insert asks
for at most, if nothing is listed. */
bool upstream_extends(uint64_t n_units, uint64_t n_listed, uint64_t n_above) {
  constexpr uint64_t ASKED = 3;
  const uint64_t usable =
      n_listed + (n_above > 0 ? n_above - 1 - (n_above - 1) / 256 : 0);
  return usable <= 2 + 2 * n_units / 200 + ASKED;
}

TEST(ExtendAhead, BeforeUpstream) {
  for (const uint64_t n_units : {16, 64, 500, 5000}) {
    for (uint64_t n_unused = 0; n_unused < n_units; ++n_unused) {
      for (uint64_t n_listed = 0; n_listed <= n_unused && n_listed < 8;
           ++n_listed) {
        if (!upstream_extends(n_units, n_listed, n_unused - n_listed)) {
          continue;
        }
        Extend_look look = LOOK;
        look.size = n_units * MIB;
        look.n_unused = n_unused;
        EXPECT_EQ(decide_extend_ahead(1, look, growing(200.0)).reason,
                  Extend_reason::GROWTH)
            << n_units << " " << n_unused;
      }
    }
  }
}

TEST(ExtendAhead, Reasons) {
  struct {
    uint32_t pct;
    uint64_t size, free, disk_room, size_max;
    double growth;
    Extend_reason reason;
    uint64_t target;
  } const cases[] = {
      {0, GIB, 0, GIB, 9 * GIB, 1e9, Extend_reason::OFF, 0},
      {5, GIB, 0, GIB, 9 * GIB, 0.0, Extend_reason::NOT_GROWING, 0},
      {5, GIB, 100 * MIB, GIB, 9 * GIB, 1.0 * MIB, Extend_reason::ENOUGH, 0},
      /* 5 % of 1 GiB are 51.2 MiB; 30 s of growth and two jumps are added. */
      {5, GIB, 51 * MIB, GIB, 9 * GIB, 1.0 * MIB, Extend_reason::SHARE,
       GIB + 38 * MIB},
      {1, GIB, 63 * MIB, GIB, 9 * GIB, 4.0 * MIB, Extend_reason::GROWTH,
       GIB + 128 * MIB},
      {1, GIB, 64 * MIB, GIB, 9 * GIB, 4.0 * MIB, Extend_reason::ENOUGH, 0},
      /* A jump is the least that is kept free, whatever the growth. */
      {1, 10 * MIB, 4 * MIB, GIB, 9 * GIB, 200.0, Extend_reason::GROWTH,
       19 * MIB},
      {1, 10 * MIB, 5 * MIB, GIB, 9 * GIB, 200.0, Extend_reason::ENOUGH, 0},
      /* A file is doubled at most, so that half an extent becomes one. */
      {1, 2 * MIB, 0, GIB, 9 * GIB, 200.0, Extend_reason::GROWTH, 4 * MIB},
      {1, MIB / 2, 0, GIB, 9 * GIB, 200.0, Extend_reason::GROWTH, MIB},
      {1, MIB / 2 - 1, 0, GIB, 9 * GIB, 200.0, Extend_reason::TOO_SMALL, 0},
      /* The most that is made free of it. */
      {1, GIB, 51 * MIB, 9 * GIB, 9 * GIB, 4e9, Extend_reason::GROWTH,
       GIB + 973 * MIB},
      {50, 100 * GIB, GIB, 9 * GIB, 900 * GIB, 200.0, Extend_reason::ENOUGH, 0},
      {50, 100 * GIB, GIB - 3 * MIB, 9 * GIB, 900 * GIB, 200.0,
       Extend_reason::SHARE, 100 * GIB + 3 * MIB},
      {5, GIB, 51 * MIB, 38 * MIB - 1, 9 * GIB, 1.0 * MIB,
       Extend_reason::DISK_NEARLY_FULL, 0},
      {5, GIB, 51 * MIB, GIB, GIB + 7, 1.0 * MIB, Extend_reason::AT_LIMIT, 0},
      {5, GIB, 51 * MIB, GIB, GIB + 2 * MIB + 7, 1.0 * MIB,
       Extend_reason::SHARE, GIB + 2 * MIB},
  };
  for (const auto &one : cases) {
    Extend_look look = LOOK;
    look.size = one.size;
    look.n_unused = one.free / MIB + 6 + one.size / MIB / 100;
    look.disk_room = one.disk_room;
    look.size_max = one.size_max;
    const Extend_decision decision =
        decide_extend_ahead(one.pct, look, growing(one.growth));
    EXPECT_EQ(decision.reason, one.reason) << one.pct << " " << one.growth;
    EXPECT_EQ(decision.target, one.target) << one.pct << " " << one.growth;
  }
}

TEST(ExtendAhead, LooksAsOftenAsTheyAreCheap) {
  EXPECT_DOUBLE_EQ(extend_look_interval_s(0.0), EXTEND_LOOK_MIN_S);
  EXPECT_DOUBLE_EQ(extend_look_interval_s(0.005), 0.5);
  EXPECT_DOUBLE_EQ(extend_look_interval_s(0.5), EXTEND_LOOK_MAX_S);
}

/* A file that is filled, a thread that looks at it, and a device on which
extending it takes its time. */
struct Simulation {
  /** Bytes a second that are inserted, by the second. */
  std::function<double(double)> inserted;

  /** Bytes a second that the device extends. */
  double device;

  uint32_t pct{10};

  /** The file at the beginning, and what is in use of it; at the end, too. */
  double size{12.0 * MIB};
  double used{8.0 * MIB};

  /** How often the thread looks: seconds. */
  double look_s{EXTEND_LOOK_MAX_S};

  /** Seconds in which an insert found no room, but for the first ones, in which
  nothing is known of its growth. */
  double starved_s{0.0};

  /** How often inserts have extended it, from the beginning. */
  unsigned n_extensions{0};

  void run(double seconds) {
    constexpr double TICK_S = 0.05;
    Extend_history history;
    double taken = used;
    double target = 0.0;
    double next_look_s = 0.0;
    for (double now = 0.0; now < seconds; now += TICK_S) {
      const double want = inserted(now) * TICK_S;
      used += std::min(want, size - used);
      if (want > size - used && now > 5.0) {
        starved_s += TICK_S;
      }
      /* An insert that finds no room extends by itself, as upstream does. */
      if (size - used < MIB) {
        size += 4.0 * MIB;
        ++n_extensions;
      }
      while (taken < used) {
        taken += EXTEND_JUMP_EXTENTS * MIB;
      }
      Extend_look look = LOOK;
      look.now_s = now;
      look.size = static_cast<uint64_t>(size) / MIB * MIB;
      look.n_unused =
          (look.size - std::min(look.size, static_cast<uint64_t>(taken))) / MIB;
      if (now >= next_look_s) {
        next_look_s = now + look_s;
        history = extend_history(history, look);
        target = std::max(target > size ? target : 0.0,
                          static_cast<double>(
                              decide_extend_ahead(pct, look, history).target));
      }
      if (target > size) {
        const double full_in_s = extend_full_in_s(
            extend_free_bytes(look), EXTEND_JUMP_EXTENTS * MIB, history.growth);
        const double rest_s = extend_ahead_rest_s(EXTEND_STEP_S, full_in_s);
        size = std::min(target, size + device * TICK_S * EXTEND_STEP_S /
                                           (EXTEND_STEP_S + rest_s));
      }
    }
  }
};

TEST(ExtendAheadSimulation, InsertsFindRoom) {
  /* On devices that extend at least 1.5 times as fast as the file grows. */
  for (const double rate : {0.1 * MIB, 1.0 * MIB, 8.0 * MIB, 100.0 * MIB}) {
    for (const double device : {1.5 * rate, 10.0 * rate}) {
      for (const uint32_t pct : {1u, 10u, 50u}) {
        Simulation steady{[rate](double) { return rate; }, device, pct};
        steady.run(600.0);
        EXPECT_EQ(steady.starved_s, 0.0) << rate << " " << device << " " << pct;

        Simulation often{[rate](double) { return rate; }, device, pct};
        often.look_s = EXTEND_LOOK_MIN_S;
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

TEST(ExtendAheadSimulation, ALoadThatBeginsSuddenly) {
  /* 400 MiB are free and 900 are inserted within 18 s, on a device that adds
  756 to them if it begins at once and does not rest. */
  Simulation sudden{
      [](double now) { return now >= 300.0 && now < 318.0 ? 50.0 * MIB : 0.0; },
      42.0 * MIB, 1, 4.0 * GIB, 3.6 * GIB};
  sudden.run(400.0);
  EXPECT_EQ(sudden.starved_s, 0.0);
}

/* What comes to it, whatever the growth: three jumps, six units that upstream
keeps, a jump that is not filled, what was free at first; rounded up. */
constexpr double LEFT_AT_MOST = 30.0 * MIB;

TEST(ExtendAheadSimulation, ABurstLeavesWhatIsOfItsSize) {
  /* Also where it is looked at ten times a second, on a fast device. */
  for (const double burst : {10.0 * MIB, 30.0 * MIB, 300.0 * MIB}) {
    for (const double seconds : {0.3, 1.0, 5.0}) {
      Simulation once{
          [burst, seconds](double now) {
            return now >= 10.0 && now < 10.0 + seconds ? burst / seconds : 0.0;
          },
          1e9, 1};
      once.look_s = EXTEND_LOOK_MIN_S;
      once.run(300.0);
      EXPECT_LE(once.size - once.used, 1.5 * burst + LEFT_AT_MOST)
          << burst << " " << seconds;
    }
  }
}

TEST(ExtendAheadSimulation, WhatIsNotUsedIsBounded) {
  /* A load that ends leaves what its growth has asked for, or the share. */
  for (const double rate : {0.1 * MIB, 1.0 * MIB, 8.0 * MIB}) {
    for (const uint32_t pct : {1u, 10u}) {
      Simulation ends{[rate](double now) { return now < 200.0 ? rate : 0.0; },
                      10.0 * rate, pct};
      ends.run(1200.0);
      const double asked = 3.0 * EXTEND_HORIZON_S * rate + LEFT_AT_MOST;
      const double share = ends.size * (pct + 2) / 100.0 + asked;
      EXPECT_LE(ends.size - ends.used, share) << rate << " " << pct;
    }
  }
}

/* Files on one device: one thread extends the one that is full soonest, step by
step, as Extender_ahead does.
@return how many extensions inserts had to make after the first ten seconds, of
files that had been seen to grow */
unsigned extensions_by_inserts(unsigned n_files, double rate, double device) {
  struct File {
    double used, taken, size;
    double target{0.0};
    Extend_history history{};
    Extend_look look{LOOK};
    Extend_pace pace{MIB};

    bool is_known_to_grow() const {
      return history.growth >= EXTEND_GROWTH_MIN;
    }

    double full_in_s() const {
      return extend_full_in_s(extend_free_bytes(look),
                              EXTEND_JUMP_EXTENTS * MIB, history.growth);
    }
  };
  constexpr double TICK_S = 0.01;
  std::vector<File> files;
  for (unsigned i = 0; i < n_files; ++i) {
    const double used = (80.0 + i % 4) * MIB;
    files.push_back({used, used, 96.0 * MIB});
  }
  unsigned extensions = 0;
  double next_look_s = 0.0;
  double next_step_s = 0.0;
  for (double now = 0.0; now < 120.0; now += TICK_S) {
    const bool is_look = now >= next_look_s;
    next_look_s += is_look ? 1.0 : 0.0;
    File *soonest = nullptr;
    for (File &file : files) {
      file.used += rate * TICK_S;
      while (file.taken < file.used) {
        file.taken += EXTEND_JUMP_EXTENTS * MIB;
      }
      file.look.now_s = now;
      file.look.size = static_cast<uint64_t>(file.size) / MIB * MIB;
      file.look.n_unused =
          (file.look.size -
           std::min(file.look.size, static_cast<uint64_t>(file.taken))) /
          MIB;
      if (file.look.n_unused <= 6 + file.look.size / MIB / 100) {
        file.size += 4.0 * MIB;
        extensions += now > 10.0 && file.is_known_to_grow() ? 1 : 0;
      }
      if (is_look) {
        file.history = extend_history(file.history, file.look);
        file.target = std::max(
            file.target > file.size ? file.target : 0.0,
            static_cast<double>(
                decide_extend_ahead(10, file.look, file.history).target));
      }
      if (file.target > file.size &&
          (soonest == nullptr || file.full_in_s() < soonest->full_in_s())) {
        soonest = &file;
      }
    }
    if (soonest != nullptr && now >= next_step_s) {
      const auto size = static_cast<uint64_t>(soonest->size);
      const uint64_t next =
          soonest->pace.next(size, static_cast<uint64_t>(soonest->target));
      const double step_s = static_cast<double>(next - size) / device;
      next_step_s =
          now + step_s + extend_ahead_rest_s(step_s, soonest->full_in_s());
      soonest->pace.took(next - size, step_s);
      soonest->size = static_cast<double>(next);
    }
  }
  return extensions;
}

TEST(ExtendAheadSimulation, ManyFilesOnOneDevice) {
  /* As measured: twelve tables, 9 MB a second in all, of a device that adds
  half as much more in what time others leave it. */
  EXPECT_EQ(extensions_by_inserts(12, 0.75e6, 13.5e6), 0u);
  EXPECT_EQ(extensions_by_inserts(12, 0.1e6, 13.5e6), 0u);
  EXPECT_EQ(extensions_by_inserts(1, 9e6, 13.5e6), 0u);
  EXPECT_EQ(extensions_by_inserts(100, 0.09e6, 13.5e6), 0u);
}

TEST(ExtendAheadSimulation, AFileThatDoesNotGrowStays) {
  Simulation idle{[](double) { return 0.0; }, 1e9, 50};
  idle.run(600.0);
  EXPECT_EQ(idle.size, 12.0 * MIB);
}

}  // namespace
}  // namespace spw
