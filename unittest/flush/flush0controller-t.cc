/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "flush/policy/flush0controller.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spw {
namespace {

constexpr Flush_settings ON{.is_on = true,
                            .age_pct = 60.0,
                            .io_capacity = 1000.0,
                            .io_capacity_max = 2000.0};

/** A pool of 100,000 pages, of which 10,000 are dirty, and a redo log whose
oldest part is as old as is said: percent of the age of sync flushing. */
Flush_look look_at(double now_s, double age_pct, uint64_t n_dirty = 10'000) {
  constexpr uint64_t SYNC_AGE = 50'000'000;
  constexpr uint64_t LSN = 1'000'000'000;
  const auto age = static_cast<uint64_t>(age_pct / 100.0 * SYNC_AGE);
  return {.now_s = now_s,
          .n_dirty = n_dirty,
          .n_pages = 100'000,
          .lsn = LSN,
          .oldest_lsn = LSN - age,
          .checkpoint_lsn = LSN - age,
          .sync_age = SYNC_AGE};
}

/** @return what the second of two looks leads to, an interval apart */
Flush_decision decide_at(const Flush_settings &settings, Flush_look look) {
  Ahead_flush policy;
  look.now_s = 1.0;
  (void)policy.decide(settings, look);
  look.now_s += settings.interval_s;
  return policy.decide(settings, look);
}

TEST(AheadFlush, RoundsWithoutItSpreadTheMethodsRateAndDoNothingElse) {
  Flush_settings off = ON;
  off.is_on = false;
  for (const double age_pct : {0.0, 70.0, 100.0, 150.0}) {
    Flush_look look = look_at(0.0, age_pct, 99'000);
    look.native_per_s = 500.0;
    look.purge_per_s = 1000.0;
    look.util_per_s = 1000.0;
    look.checkpoint_lsn -= look.sync_age / 2;
    const Flush_decision decision = decide_at(off, look);
    EXPECT_EQ(decision.reason, Flush_reason::NATIVE);
    EXPECT_EQ(decision.n_pages, 50u);
    EXPECT_EQ(decision.lsn_limit, UINT64_MAX);
    EXPECT_EQ(decision.redo_bytes_per_s, FLUSH_UNLIMITED);
    EXPECT_EQ(decision.turn_us, 0.0);
    EXPECT_FALSE(decision.wants_checkpoint);
    EXPECT_EQ(flush_purge_asks(off, look), 0.0);
  }
}

TEST(AheadFlush, BelowTheThresholdsNothingIsFlushed) {
  const Flush_decision decision = decide_at(ON, look_at(0.0, 60.0, 45'000));
  EXPECT_EQ(decision.reason, Flush_reason::BELOW);
  EXPECT_EQ(decision.n_pages, 0u);
  EXPECT_EQ(flush_purge_asks(ON, look_at(0.0, 60.0, 45'000)), 0.0);
}

TEST(AheadFlush, AnEmptyPoolAndARedoLogWithoutLimitsAreBelow) {
  Flush_look look = look_at(0.0, 0.0, 0);
  look.n_pages = 0;
  look.sync_age = 0;
  const Flush_decision decision = decide_at(ON, look);
  EXPECT_EQ(decision.reason, Flush_reason::BELOW);
  EXPECT_EQ(decision.n_pages, 0u);
}

TEST(AheadFlush, TheDirtyRuleIsTheSeeds) {
  EXPECT_EQ(flush_dirty_threshold_pct(ON), 45.0);
  Flush_settings set = ON;
  set.dirty_pct = 10.0;
  EXPECT_EQ(flush_dirty_threshold_pct(set), 10.0);
  /* At the threshold io_pct of innodb_io_capacity, a tenth of a second of it;
  at what is allowed innodb_io_capacity_max, and no more beyond. */
  const Flush_decision first = decide_at(ON, look_at(0.0, 0.0, 45'001));
  EXPECT_EQ(first.reason, Flush_reason::DIRTY);
  EXPECT_EQ(first.n_pages, 20u);
  EXPECT_EQ(first.lsn_limit, UINT64_MAX);
  EXPECT_EQ(decide_at(ON, look_at(0.0, 0.0, 67'500)).n_pages, 110u);
  EXPECT_EQ(decide_at(ON, look_at(0.0, 0.0, 90'000)).n_pages, 200u);
  EXPECT_EQ(decide_at(ON, look_at(0.0, 0.0, 99'000)).n_pages, 200u);
}

TEST(AheadFlush, UpstreamsOwnRateIsSpread) {
  Flush_look look = look_at(0.0, 0.0);
  look.native_per_s = 500.0;
  const Flush_decision decision = decide_at(ON, look);
  EXPECT_EQ(decision.reason, Flush_reason::NATIVE);
  EXPECT_EQ(decision.n_pages, 50u);
  /* It counts in parts of innodb_io_capacity, and the device carries less. */
  look.device_per_s = 100.0;
  EXPECT_EQ(decide_at(ON, look).n_pages, 5u);
  look.is_native_in_parts = false;
  EXPECT_EQ(decide_at(ON, look).n_pages, 10u);
}

TEST(AheadFlush, PartsOfTheCapacityArePartsOfWhatTheDeviceCarries) {
  Flush_look dirty = look_at(0.0, 0.0, 45'001);
  dirty.device_per_s = 100.0;
  EXPECT_EQ(decide_at(ON, dirty).n_pages, 2u);
  /* Also of what is a guess; but upstream's rate counts as it is then. */
  dirty.is_device_seen = false;
  EXPECT_EQ(decide_at(ON, dirty).n_pages, 2u);
  Flush_look native = look_at(0.0, 0.0);
  native.native_per_s = 50.0;
  native.device_per_s = 100.0;
  native.is_device_seen = false;
  EXPECT_EQ(decide_at(ON, native).n_pages, 5u);
  Flush_look purge = look_at(0.0, 0.0);
  purge.device_per_s = 100.0;
  purge.purge_per_s = flush_purge_asks(ON, look_at(0.0, 100.0));
  EXPECT_EQ(decide_at(ON, purge).n_pages, 2u);
}

TEST(AheadFlush, PurgeIsHeardWithinTheLimits) {
  Flush_look look = look_at(0.0, 0.0);
  look.purge_per_s = 300.0;
  EXPECT_EQ(decide_at(ON, look).reason, Flush_reason::PURGE);
  EXPECT_EQ(decide_at(ON, look).n_pages, 30u);
  look.purge_per_s = 1e9;
  EXPECT_EQ(decide_at(ON, look).n_pages, 200u);
  look.device_per_s = 700.0;
  EXPECT_EQ(decide_at(ON, look).n_pages, 70u);
  EXPECT_EQ(flush_purge_asks(ON, look_at(0.0, 0.0, 90'000)), 2000.0);
  EXPECT_EQ(flush_purge_asks(ON, look_at(0.0, 100.0)), 200.0);
}

TEST(AheadFlush, ADeviceThatIsNotBusyIsUsedBelowAllThresholds) {
  Flush_look look = look_at(0.0, 0.0);
  look.native_per_s = 100.0;
  look.util_per_s = 600.0;
  EXPECT_EQ(decide_at(ON, look).reason, Flush_reason::UTIL);
  EXPECT_EQ(decide_at(ON, look).n_pages, 70u);
  look.util_per_s = 1e9;
  EXPECT_EQ(decide_at(ON, look).n_pages, 200u);
}

TEST(AheadFlush, AtAHighAgeAllIsFlushedThatTheLimitsAllow) {
  EXPECT_EQ(decide_at(ON, look_at(0.0, 90.0)).reason, Flush_reason::LIMIT);
  EXPECT_EQ(decide_at(ON, look_at(0.0, 90.0)).n_pages, 200u);
  Flush_look look = look_at(0.0, 90.0);
  look.device_per_s = 500.0;
  EXPECT_EQ(decide_at(ON, look).reason, Flush_reason::DEVICE);
  EXPECT_TRUE(decide_at(ON, look).is_at_device);
  EXPECT_FALSE(decide_at(ON, look_at(0.0, 90.0)).is_at_device);
  EXPECT_EQ(decide_at(ON, look).n_pages, 50u);
}

TEST(AheadFlush, UpstreamsOwnRateDoesNotHideThatMoreIsWanted) {
  Flush_look look = look_at(0.0, 90.0);
  look.native_per_s = 1e6;
  look.is_native_in_parts = false;
  const Flush_decision decision = decide_at(ON, look);
  EXPECT_EQ(decision.reason, Flush_reason::LIMIT);
  EXPECT_NE(decision.lsn_limit, UINT64_MAX);
  EXPECT_EQ(decision.n_pages, 200u);
}

TEST(AheadFlush, TheAgeIsHeardAlsoWherePagesAreOlderThanIsKnown) {
  Ahead_flush policy;
  (void)policy.decide(ON, look_at(1.0, 0.0, 0));
  Flush_look look = look_at(1.1, 90.0);
  EXPECT_EQ(policy.decide(ON, look).n_pages, 200u);
  look.now_s += 0.1;
  look.oldest_lsn += look.sync_age / 20;
  EXPECT_EQ(policy.decide(ON, look).n_pages, 100u);
}

TEST(AheadFlush, WithoutDirtyPagesNobodyIsHeldBack) {
  const Flush_decision decision = decide_at(ON, look_at(0.0, 110.0, 0));
  EXPECT_EQ(decision.redo_bytes_per_s, FLUSH_UNLIMITED);
  EXPECT_EQ(decision.turn_us, 0.0);
}

TEST(AheadFlush, PagesAreSaidToBeOlderThanTheyAre) {
  Flush_look look = look_at(0.0, 70.0);
  const double known = decide_at(ON, look).redo_bytes_per_s;
  look.order_lag = look.sync_age / 10;
  EXPECT_NEAR(decide_at(ON, look).redo_bytes_per_s, 0.9 * known, 1.0);
}

TEST(AheadFlush, PagesThatAreYoungerThanTheThresholdStay) {
  Flush_look look = look_at(0.0, 90.0);
  EXPECT_EQ(decide_at(ON, look).lsn_limit, look.lsn - look.sync_age * 60 / 100);
  /* The oldest may be younger than it is said to be; then others are, too. */
  look.order_lag = 2'000'000;
  EXPECT_EQ(decide_at(ON, look).lsn_limit,
            look.lsn - look.sync_age * 60 / 100 + look.order_lag);
  look.order_lag = look.sync_age;
  EXPECT_EQ(decide_at(ON, look).lsn_limit, look.lsn);
  /* Also where it is purge that has asked for more, unless too many are dirty.
   */
  look = look_at(0.0, 61.0);
  look.purge_per_s = 1500.0;
  EXPECT_EQ(decide_at(ON, look).reason, Flush_reason::PURGE);
  EXPECT_EQ(decide_at(ON, look).lsn_limit, look.lsn - look.sync_age * 60 / 100);
  look.n_dirty = 45'001;
  EXPECT_EQ(decide_at(ON, look).reason, Flush_reason::PURGE);
  EXPECT_EQ(decide_at(ON, look).lsn_limit, UINT64_MAX);
}

TEST(AheadFlush, WhoComesBackAfterAPurgeDoesNotPayForIt) {
  Flush_settings set = ON;
  set.age_pct = 50.0;
  Ahead_flush policy;
  Flush_look look = look_at(1.0, 80.0);
  const auto go_on = [&policy, &set, &look](double seconds, double bytes_per_s,
                                            uint64_t changes_per_s) {
    double turn_us = 0.0;
    for (double s = 0.0; s < seconds; s += 0.1) {
      look.now_s += 0.1;
      look.lsn += static_cast<uint64_t>(0.1 * bytes_per_s);
      look.oldest_lsn = look.lsn - look.sync_age * 80 / 100;
      look.n_changes += changes_per_s / 10;
      turn_us = policy.decide(set, look).turn_us;
    }
    return turn_us;
  };
  const double before_us = go_on(120.0, 3e6, 3000);
  (void)go_on(600.0, 10e6, 0);
  EXPECT_LE(go_on(1.0, 3e6, 3000), 2.0 * before_us);
  /* The same with one user left meanwhile. */
  (void)go_on(600.0, 10e6, 10);
  EXPECT_LE(go_on(1.0, 3e6, 3000), 2.0 * before_us);
}

TEST(AheadFlush, WithoutPagesThatAreOldEnoughItIsNotTheDevice) {
  Flush_decision decision{.n_pages = 50, .is_at_device = true};
  EXPECT_TRUE(flush_was_at_device(decision, 50));
  EXPECT_TRUE(flush_was_at_device(decision, 25));
  EXPECT_FALSE(flush_was_at_device(decision, 24));
  decision.is_at_device = false;
  EXPECT_FALSE(flush_was_at_device(decision, 50));
  /* None, as it is not time for a round. */
  decision = {.n_pages = 0, .is_at_device = true};
  EXPECT_FALSE(flush_was_at_device(decision, 0));
}

TEST(AheadFlush, NothingIsHandedOverWhileTheLastPagesAreWritten) {
  Ahead_flush policy;
  Flush_look look = look_at(1.0, 90.0);
  (void)policy.decide(ON, look);
  look.is_writing = true;
  for (int i = 1; i <= 30; ++i) {
    look.now_s += 0.1;
    const Flush_decision decision = policy.decide(ON, look);
    EXPECT_EQ(decision.n_pages, 0u);
    EXPECT_FALSE(decision.is_round);
    EXPECT_EQ(decision.reason, Flush_reason::LIMIT);
  }
  /* That is made up for in part, and the rest is lost. */
  look.now_s += 0.1;
  EXPECT_NEAR(policy.decide(ON, look).lost_s, 0.1, 1e-9);
  look.is_writing = false;
  look.now_s += 0.01;
  const Flush_decision late = policy.decide(ON, look);
  EXPECT_EQ(late.n_pages, static_cast<uint64_t>(200 * FLUSH_LATE_INTERVALS));
  EXPECT_NEAR(late.lost_s, 0.01, 1e-9);
  look.now_s += 0.1;
  const Flush_decision next = policy.decide(ON, look);
  EXPECT_NEAR(static_cast<double>(next.n_pages), 200.0, 1.0);
  EXPECT_EQ(next.lost_s, 0.0);
  EXPECT_EQ(next.next_look_s, 0.1);
  look.is_writing = true;
  EXPECT_LT(policy.decide(ON, look).next_look_s, 0.1);
}

TEST(AheadFlush, RoundsAreMoreOftenWhereTheRedoLogIsSoonFull) {
  /* 20 MB from the threshold to sync flushing. */
  for (const auto &[mb_per_s, next_look_s] :
       {std::pair{19.0, 0.1}, {40.0, 0.05}, {100.0, 0.02}, {500.0, 0.01}}) {
    Ahead_flush policy;
    Flush_look look = look_at(1.0, 50.0);
    Flush_decision decision;
    for (int i = 0; i < 100; ++i) {
      decision = policy.decide(ON, look);
      look.now_s += 0.1;
      look.lsn += static_cast<uint64_t>(mb_per_s * 1e5);
      look.oldest_lsn += static_cast<uint64_t>(mb_per_s * 1e5);
    }
    EXPECT_NEAR(decision.next_look_s, next_look_s, 1e-3) << mb_per_s;
  }
  EXPECT_EQ(decide_at(ON, look_at(0.0, 99.0)).next_look_s, 0.1);
}

/** Ten seconds of looks, with 1,000 pages a second for upstream's formula.
@param[in]  settings          what is set
@param[in]  fsyncs_per_round  that each round costs
@return the last five: pages of rounds that had some, and when they were */
std::vector<std::pair<double, uint64_t>> rounds_of(
    const Flush_settings &settings, uint64_t fsyncs_per_round) {
  Ahead_flush policy;
  Flush_look look = look_at(1.0, 0.0);
  look.native_per_s = 1000.0;
  std::vector<std::pair<double, uint64_t>> rounds;
  while (look.now_s < 10.95) {
    const Flush_decision decision = policy.decide(settings, look);
    EXPECT_EQ(decision.next_look_s, settings.interval_s);
    EXPECT_EQ(decision.lost_s, 0.0);
    EXPECT_TRUE(decision.is_round || decision.n_pages == 0);
    if (decision.n_pages != 0) {
      rounds.emplace_back(look.now_s, decision.n_pages);
      look.n_fsyncs += fsyncs_per_round;
    }
    look.now_s += settings.interval_s;
  }
  EXPECT_GE(rounds.size(), 5u);
  return {rounds.end() - std::min<ptrdiff_t>(5, std::ssize(rounds)),
          rounds.end()};
}

TEST(AheadFlush, ARoundWaitsForPagesThatAreWorthItsFsyncs) {
  Flush_settings set = ON;
  /* 100 pages are worth 20. */
  for (const auto &[n_fsyncs, n_pages] : {std::pair{0u, 100.0},
                                          {20u, 100.0},
                                          {40u, 200.0},
                                          {80u, 400.0},
                                          /* No longer than half a second. */
                                          {110u, 500.0},
                                          {500u, 500.0}}) {
    const auto rounds = rounds_of(set, n_fsyncs);
    for (size_t i = 1; i < rounds.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(rounds[i].second), n_pages, 1.0)
          << n_fsyncs;
      EXPECT_NEAR(rounds[i].first - rounds[i - 1].first, n_pages / 1000.0, 1e-6)
          << n_fsyncs;
    }
  }
  /* The interval that is set is the least. */
  set.interval_s = 1.0;
  EXPECT_EQ(rounds_of(set, 500).back().second, 1000u);
}

/* What a round has waited for is not lost because it need not wait so long any
more: the device would be taken for a slower one. */
TEST(AheadFlush, ARoundThatWasToWaitIsNotLate) {
  for (const double rate : {400.0, 1000.0, 0.0}) {
    for (const double interval_s : {ON.interval_s, ON.interval_s / 5.0}) {
      Flush_settings set = ON;
      Ahead_flush policy;
      Flush_look look = look_at(1.0, 0.0);
      look.native_per_s = 100.0;
      unsigned n_waiting = 0;
      while (n_waiting < 3 || look.now_s < 5.0) {
        ASSERT_LT(look.now_s, 10.0);
        const Flush_decision decision = policy.decide(set, look);
        EXPECT_EQ(decision.lost_s, 0.0);
        look.n_fsyncs += decision.n_pages != 0 ? 9 : 0;
        n_waiting = decision.is_round ? 0 : n_waiting + 1;
        look.now_s += ON.interval_s;
      }
      look.native_per_s = rate;
      set.interval_s = interval_s;
      EXPECT_EQ(policy.decide(set, look).lost_s, 0.0) << rate;
    }
  }
}

TEST(AheadFlush, NoRoundWaitsForPagesThatDoNotCome) {
  Ahead_flush policy;
  Flush_look look = look_at(1.0, 0.0);
  look.native_per_s = 1000.0;
  for (int i = 0; i < 30; ++i) {
    look.n_fsyncs += policy.decide(ON, look).n_pages != 0 ? 500 : 0;
    look.now_s += 0.1;
  }
  look.native_per_s = 0.0;
  for (int i = 0; i < 30; ++i) {
    const Flush_decision decision = policy.decide(ON, look);
    EXPECT_TRUE(decision.is_round);
    EXPECT_EQ(decision.reason, Flush_reason::BELOW);
    look.now_s += 0.1;
  }
}

TEST(AheadFlush, NoRoundWaitsWhereTheRedoLogIsSoonFull) {
  Ahead_flush policy;
  Flush_look look = look_at(1.0, 90.0);
  for (int i = 0; i < 100; ++i) {
    const Flush_decision decision = policy.decide(ON, look);
    /* 20 MB from the threshold to sync flushing, 1 MB in each interval. */
    EXPECT_TRUE(decision.is_round || i < 30) << i;
    look.now_s += decision.next_look_s;
    look.lsn += static_cast<uint64_t>(decision.next_look_s * 100e6);
    look.oldest_lsn += static_cast<uint64_t>(decision.next_look_s * 100e6);
    look.n_fsyncs += 100;
  }
}

TEST(AheadFlush, WhatTheFlusherHasDoneElsewhereIsNotLost) {
  Ahead_flush policy;
  (void)policy.decide(ON, look_at(1.0, 90.0));
  Flush_look look = look_at(2.5, 90.0);
  look.away = Flush_away::BUSY;
  const Flush_decision decision = policy.decide(ON, look);
  EXPECT_EQ(decision.lost_s, 0.0);
  EXPECT_NEAR(static_cast<double>(decision.n_pages), 2000.0 * FLUSH_BACK_S,
              1.0);
}

TEST(AheadFlush, WhatAnIdleServerHasFlushedIsNotMadeUpFor) {
  Ahead_flush policy;
  (void)policy.decide(ON, look_at(1.0, 90.0));
  Flush_look look = look_at(2.5, 90.0);
  look.away = Flush_away::IDLE;
  const Flush_decision decision = policy.decide(ON, look);
  EXPECT_EQ(decision.lost_s, 0.0);
  EXPECT_NEAR(static_cast<double>(decision.n_pages), 2000.0 * ON.interval_s,
              1.0);
}

TEST(AheadFlush, AnIdleServerFlushesNoMoreThanItsRoundsLeave) {
  Flush_settings set = ON;
  set.io_capacity_max = 2000.0;
  set.is_limited_by_device = true;
  /* What is allowed, what there is, what the device carries. */
  EXPECT_EQ(flush_idle(set, 1000, 5000, 0, 700.0).n_pages, 700);
  EXPECT_TRUE(flush_idle(set, 1000, 5000, 0, 700.0).is_at_device);
  EXPECT_EQ(flush_idle(set, 1000, 5000, 0, 1e6).n_pages, 1000);
  EXPECT_FALSE(flush_idle(set, 1000, 5000, 0, 1e6).is_at_device);
  EXPECT_FALSE(flush_idle(set, 1000, 700, 0, 700.0).is_at_device);
  /* Rounds were before. */
  EXPECT_EQ(flush_idle(set, 1000, 5000, 300, 700.0).n_pages, 400);
  EXPECT_EQ(flush_idle(set, 1000, 5000, 800, 700.0).n_pages, 0);
  EXPECT_EQ(flush_idle(set, 1000, 5000, 1500, 1e6).n_pages, 500);
  set.is_limited_by_device = false;
  EXPECT_EQ(flush_idle(set, 1000, 5000, 1500, 700.0).n_pages, 500);
  EXPECT_FALSE(flush_idle(set, 1000, 5000, 1500, 700.0).is_at_device);
  /* Off is stock. */
  set.is_on = false;
  EXPECT_EQ(flush_idle(set, 3000, 5000, 1500, 700.0).n_pages, 3000);
}

TEST(AheadFlush, ARedoLogThatIsMadeSmallerMayBeFilledHalfAsFastAsItIsEmptied) {
  Flush_look look = look_at(1.0, 100.0, 10'000);
  look.device_per_s = 1000.0;
  Flush_settings set = ON;
  set.is_limited_by_device = true;
  /* The age of sync flushing has come down to the checkpoint's. */
  EXPECT_EQ(decide_at(set, look).redo_bytes_per_s, 0.0);
  look.is_shrinking = true;
  EXPECT_NEAR(decide_at(set, look).redo_bytes_per_s,
              0.5 * 1000.0 * flush_age(look) / 10'000.0, 1.0);
  /* Pages are flushed as fast as it goes. */
  EXPECT_EQ(decide_at(set, look).reason, Flush_reason::DEVICE);
}

TEST(AheadFlush, ANewServerIsYoungerThanItsRedoLogIsLong) {
  Flush_look look = look_at(1.0, 10.0);
  look.lsn = 1'000'000;
  look.oldest_lsn = 1'000'000;
  look.order_lag = 1;
  look.purge_per_s = 100.0;
  EXPECT_EQ(decide_at(ON, look).reason, Flush_reason::PURGE);
  EXPECT_EQ(decide_at(ON, look).lsn_limit, 1);
}

/** @return the decision after ten seconds at a high age
@param[in]  device   what the device carries: pages a second
@param[in]  lru      pages of the LRU lists that are handed over: a second
@param[in]  written  pages that are written: a second */
Flush_decision after_lru(double device, double lru, double written) {
  Ahead_flush policy;
  Flush_decision decision;
  for (int i = 0; i <= 100; ++i) {
    Flush_look look = look_at(0.1 * i + 1.0, 95.0);
    look.device_per_s = device;
    look.n_lru_flushed = static_cast<uint64_t>(lru * 0.1 * i);
    look.n_written = static_cast<uint64_t>(written * 0.1 * i);
    decision = policy.decide(ON, look);
    EXPECT_TRUE(i == 0 ||
                decision.is_at_device == (device < ON.io_capacity_max));
  }
  return decision;
}

TEST(AheadFlush, WhatTheLruListsNeedIsLeftToThem) {
  /* 1,500 pages a second of them leave 500, but half is ours in any case. */
  for (const auto &[lru, ours] :
       {std::pair{500.0, 150.0}, {1000.0, 100.0}, {5000.0, 100.0}}) {
    EXPECT_NEAR(
        static_cast<double>(after_lru(FLUSH_UNLIMITED, lru, 10e3).n_pages),
        ours, 1.0)
        << lru;
  }
}

TEST(AheadFlush, WhatTheLruListsNeedIsLeftToThemOfWhatTheDeviceCarries) {
  EXPECT_NEAR(static_cast<double>(after_lru(1000.0, 300.0, 1000.0).n_pages),
              70.0, 1.0);
}

TEST(AheadFlush, FramesThatAreFreedWithoutAWriteNeedNothing) {
  /* Those of compressed pages count with the LRU lists. */
  EXPECT_NEAR(static_cast<double>(after_lru(1000.0, 5000.0, 100.0).n_pages),
              90.0, 1.0);
}

TEST(AheadFlush, EachInstanceFlushesAsManyPages) {
  Flush_settings set = ON;
  set.n_instances = 8;
  Ahead_flush policy;
  uint64_t n_pages = 0;
  for (int i = 0; i <= 1000; ++i) {
    Flush_look look = look_at(1.0 + 0.1 * i, 0.0);
    look.native_per_s = 33.0;
    const Flush_decision decision = policy.decide(set, look);
    EXPECT_EQ(decision.n_pages % 8, 0u);
    n_pages += decision.n_pages;
  }
  EXPECT_NEAR(static_cast<double>(n_pages), 3300.0, 8.0);
}

TEST(AheadFlush, NeverAboveTheCapacityThatIsSet) {
  std::mt19937 random{1};
  for (int run = 0; run < 200; ++run) {
    const auto in = [&random](double from, double to) {
      return std::uniform_real_distribution<double>{from, to}(random);
    };
    Flush_settings set = ON;
    set.io_capacity = in(100.0, 10e3);
    set.io_capacity_max = set.io_capacity * in(1.0, 4.0);
    set.age_pct = in(0.0, 95.0);
    set.dirty_pct = in(0.0, 99.0);
    set.io_pct = in(0.0, 100.0);
    set.interval_s = in(0.01, 1.0);
    set.n_instances = static_cast<uint64_t>(in(1.0, 64.9));
    const auto n_instances = static_cast<double>(set.n_instances);
    /* What the fsync() are worth can be waited for. */
    const double most = std::max(
        set.io_capacity_max * std::max(set.interval_s, FLUSH_LONG_INTERVAL_S),
        n_instances);
    /* Also where a device is measured, and carries more or less than that. */
    set.is_limited_by_device = in(0.0, 1.0) < 0.5;
    Ahead_flush policy;
    double now_s = 5.0;
    double pages = 0.0;
    uint64_t n_fsyncs = 0;
    uint64_t n_written = 0;
    uint64_t n_lru_flushed = 0;
    for (int i = 0; i < 500; ++i) {
      now_s +=
          in(0.0, 1.0) < 0.02 ? in(1.0, 20.0) : in(0.5, 1.5) * set.interval_s;
      Flush_look look = look_at(now_s, in(0.0, 120.0),
                                static_cast<uint64_t>(in(1000.0, 100e3)));
      look.lsn += static_cast<uint64_t>(now_s * 1e7);
      look.oldest_lsn += static_cast<uint64_t>(now_s * 1e7);
      look.native_per_s = in(0.0, 50e3);
      look.purge_per_s = in(0.0, 50e3);
      look.is_writing = in(0.0, 1.0) < 0.1;
      look.away = in(0.0, 1.0) < 0.05   ? Flush_away::BUSY
                  : in(0.0, 1.0) < 0.05 ? Flush_away::IDLE
                                        : Flush_away::NO;
      look.is_shrinking = in(0.0, 1.0) < 0.1;
      look.n_fsyncs = n_fsyncs += static_cast<uint64_t>(in(0.0, 100.0));
      look.util_per_s = in(0.0, 1.0) < 0.5 ? 0.0 : in(0.0, 50e3);
      look.device_per_s = in(50.0, 50e3);
      look.is_device_seen = in(0.0, 1.0) < 0.5;
      look.n_written = n_written += static_cast<uint64_t>(in(0.0, 5000.0));
      look.n_lru_flushed = n_lru_flushed +=
          static_cast<uint64_t>(in(0.0, 1.0) < 0.5 ? 0.0 : in(0.0, 500.0));
      const Flush_decision decision = policy.decide(set, look);
      const double late = std::max(
          FLUSH_LATE_INTERVALS * most,
          (look.away == Flush_away::BUSY ? FLUSH_BACK_S : FLUSH_LATE_S) *
              set.io_capacity_max);
      EXPECT_LE(static_cast<double>(decision.n_pages), late + n_instances);
      EXPECT_GE(decision.redo_bytes_per_s, 0.0);
      EXPECT_GE(decision.turn_us, 0.0);
      pages += static_cast<double>(decision.n_pages);
    }
    EXPECT_LE(pages, set.io_capacity_max * (now_s - 5.0) + n_instances);
  }
}

TEST(AheadFlush, CheckpointsAreAskedForWhereTheyGiveRoom) {
  Flush_look look = look_at(0.0, 70.0);
  EXPECT_FALSE(decide_at(ON, look).wants_checkpoint);
  look.checkpoint_lsn -= look.sync_age / 20;
  EXPECT_TRUE(decide_at(ON, look).wants_checkpoint);
  /* Below the threshold upstream's own are enough; but the threshold is passed
  where the checkpoint is so old, and the oldest page is not. */
  look = look_at(0.0, 50.0);
  look.checkpoint_lsn -= look.sync_age / 20;
  EXPECT_FALSE(decide_at(ON, look).wants_checkpoint);
  look.checkpoint_lsn -= look.sync_age / 10;
  EXPECT_TRUE(decide_at(ON, look).wants_checkpoint);
}

TEST(AheadFlush, ACheckpointThatIsUnderWayIsNotAskedForInEachRound) {
  Ahead_flush policy;
  Flush_look look = look_at(1.0, 70.0);
  look.checkpoint_lsn -= look.sync_age / 20;
  unsigned n_asked = 0;
  for (; look.now_s < 2.0; look.now_s += 0.02) {
    n_asked += policy.decide(ON, look).wants_checkpoint ? 1 : 0;
  }
  EXPECT_GE(n_asked, 8u);
  EXPECT_LE(n_asked, 10u);
}

/** A redo log that is filled and emptied by 1 MB and 1,000 changes a second,
with 200 dirty pages for each MB: what is emptied is all that is flushed.
@param[in]  age_pct       its age
@param[in]  device_per_s  what the device carries
@return the last decision of ten minutes */
Flush_decision after_a_while(double age_pct, double device_per_s = 200.0) {
  Ahead_flush policy;
  Flush_decision decision{};
  for (int i = 0; i <= 6000; ++i) {
    Flush_look look =
        look_at(1.0 + 0.1 * i, age_pct, static_cast<uint64_t>(100.0 * age_pct));
    look.lsn += static_cast<uint64_t>(1e6 * 0.1 * i);
    look.oldest_lsn += static_cast<uint64_t>(1e6 * 0.1 * i);
    look.checkpoint_lsn = look.oldest_lsn;
    look.n_written = static_cast<uint64_t>(200 * 0.1 * i);
    look.n_changes = static_cast<uint64_t>(1000 * 0.1 * i);
    look.device_per_s = device_per_s;
    decision = policy.decide(ON, look);
  }
  return decision;
}

TEST(AheadFlush, PagesAreFlushedAsFastAsTheyAreMadeDirty) {
  /* 60 % is where it starts, 80 % half-way from there. */
  EXPECT_EQ(after_a_while(59.0, 1e9).n_pages, 0u);
  EXPECT_NEAR(static_cast<double>(after_a_while(70.0, 1e9).n_pages), 17.5, 1.0);
  EXPECT_NEAR(static_cast<double>(after_a_while(79.0, 1e9).n_pages), 20.0, 1.0);
  EXPECT_EQ(after_a_while(70.0, 1e9).reason, Flush_reason::AGE);
  EXPECT_EQ(after_a_while(85.0, 1e9).reason, Flush_reason::LIMIT);
  EXPECT_NEAR(static_cast<double>(after_a_while(85.0, 1e9).n_pages), 200.0,
              1.0);
}

/** @return the decision after ten seconds of filling 12 MB a second, with
10,000 dirty pages, of which the oldest are at 30 % of the age of sync flushing
*/
Flush_decision after_filling(const Flush_settings &settings,
                             bool is_device_seen = true) {
  Ahead_flush policy;
  Flush_decision decision{};
  for (int i = 0; i <= 100; ++i) {
    Flush_look look = look_at(1.0 + 0.1 * i, 30.0);
    look.lsn += static_cast<uint64_t>(12e6 * 0.1 * i);
    look.oldest_lsn += static_cast<uint64_t>(12e6 * 0.1 * i);
    look.checkpoint_lsn = look.oldest_lsn;
    look.n_written = static_cast<uint64_t>(2000 * 0.1 * i);
    look.is_device_seen = is_device_seen;
    decision = policy.decide(settings, look);
  }
  return decision;
}

TEST(AheadFlush, WhatCouldNotBeFlushedLaterIsFlushedBelowTheThreshold) {
  /* 10,000 pages for the 40 MB of the age at which they are followed: 3,000
  pages a second for 12 MB. */
  Flush_settings set = ON;
  Flush_decision decision = after_filling(set);
  EXPECT_EQ(decision.reason, Flush_reason::EARLY);
  /* 30 of 80 %, of 2,000 pages a second. */
  EXPECT_NEAR(static_cast<double>(decision.n_pages), 75.0, 1.0);
  EXPECT_TRUE(flush_is_cleaners(decision.reason));
  /* All are younger than the threshold. */
  EXPECT_EQ(decision.lsn_limit, UINT64_MAX);
  /* Nobody is held back yet. */
  EXPECT_EQ(decision.redo_bytes_per_s, FLUSH_UNLIMITED);
  /* All of it until the device is known. */
  EXPECT_EQ(after_filling(set, false).n_pages, 200u);
  set.is_limited_by_device = false;
  EXPECT_NEAR(static_cast<double>(after_filling(set, false).n_pages), 75.0,
              1.0);
  set.io_capacity_max = 4000.0;
  EXPECT_EQ(after_filling(set).reason, Flush_reason::BELOW);
  set = ON;
  set.is_on = false;
  EXPECT_EQ(after_filling(set).reason, Flush_reason::BELOW);
}

TEST(AheadFlush, AnIdleDeviceHasNothingToDoWithoutDirtyPages) {
  Flush_look look = look_at(1.0, 0.0, 0);
  look.util_per_s = 600.0;
  EXPECT_EQ(decide_at(ON, look).reason, Flush_reason::BELOW);
}

TEST(AheadFlush, NobodyIsHeldBackBelowTheThreshold) {
  EXPECT_EQ(after_a_while(59.0).turn_us, 0.0);
  EXPECT_EQ(after_a_while(59.0).redo_bytes_per_s, FLUSH_UNLIMITED);
  EXPECT_GT(after_a_while(61.0).turn_us, 0.0);
  /* A device that carries ten times as much lets ten times as much be filled,
  and one that is not known the most that can be set. */
  EXPECT_NEAR(after_a_while(80.0, 2000.0).redo_bytes_per_s,
              10.0 * after_a_while(80.0).redo_bytes_per_s, 1e3);
  EXPECT_EQ(after_a_while(80.0, FLUSH_UNLIMITED).redo_bytes_per_s,
            after_a_while(80.0, 2000.0).redo_bytes_per_s);
}

TEST(AheadFlush, TheRedoLogIsFilledAsFastAsItIsEmptied) {
  /* At 90 %, three quarters of the way. 1,000 changes a second write 1 MB. */
  const Flush_decision settled = after_a_while(90.0);
  EXPECT_NEAR(settled.redo_bytes_per_s, 1e6, 1e4);
  EXPECT_NEAR(settled.turn_us, 1000.0, 10.0);
  /* Faster below, slower above, and not at all where sync flushing begins. */
  double last = FLUSH_UNLIMITED;
  for (const double age_pct : {61.0, 70.0, 80.0, 90.0, 95.0, 99.0}) {
    const double now = after_a_while(age_pct).redo_bytes_per_s;
    EXPECT_LT(now, last) << age_pct;
    last = now;
  }
  EXPECT_EQ(after_a_while(110.0).redo_bytes_per_s, 0.0);
  EXPECT_EQ(after_a_while(130.0).redo_bytes_per_s, 0.0);
  EXPECT_GT(after_a_while(130.0).turn_us, 1e9);
}

TEST(AheadFlush, WhatTheDeviceCarriesHoldsBackAlsoWhereItIsNoLimit) {
  Flush_settings set = ON;
  set.is_limited_by_device = false;
  Flush_look look = look_at(0.0, 90.0);
  look.device_per_s = 100.0;
  const Flush_decision seen = decide_at(set, look);
  EXPECT_EQ(seen.reason, Flush_reason::LIMIT);
  EXPECT_EQ(seen.n_pages, 200u);
  EXPECT_TRUE(seen.is_at_device);
  look.is_device_seen = false;
  EXPECT_NEAR(decide_at(set, look).redo_bytes_per_s,
              20.0 * seen.redo_bytes_per_s, 1.0);
}

TEST(AheadFlush, WhatWasWrittenBeforeChangesWereCountedIsNotTheirs) {
  Ahead_flush policy;
  Flush_settings set = ON;
  set.is_on = false;
  Flush_decision decision{};
  for (int i = 0; i <= 1300; ++i) {
    Flush_look look = look_at(1.0 + 0.1 * i, 89.0);
    look.lsn += static_cast<uint64_t>(1e6 * 0.1 * i);
    look.oldest_lsn += static_cast<uint64_t>(1e6 * 0.1 * i);
    look.n_written = static_cast<uint64_t>(200 * 0.1 * i);
    look.n_changes = static_cast<uint64_t>(1000 * 0.1 * std::max(i - 1200, 0));
    set.is_on = i > 1200;
    decision = policy.decide(set, look);
  }
  EXPECT_NEAR(decision.turn_us * decision.redo_bytes_per_s / 1e6, 1000.0, 20.0);
}

}  // namespace
}  // namespace spw
