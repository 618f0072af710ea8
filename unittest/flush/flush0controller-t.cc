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

/** A buffer pool of 100,000 pages, of which 10,000 are dirty. The oldest page
age is given in percent of the sync age. */
Flush_sample sample_at(double now_s, double age_pct,
                       uint64_t n_dirty = 10'000) {
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

/** @return the decision for the second of two samples, an interval apart */
Flush_decision decide_at(const Flush_settings &settings, Flush_sample sample) {
  Ahead_flush policy;
  sample.now_s = 1.0;
  (void)policy.decide(settings, sample);
  sample.now_s += settings.interval_s;
  return policy.decide(settings, sample);
}

TEST(AheadFlush, RoundsWithoutItSpreadTheMethodsRateAndDoNothingElse) {
  Flush_settings off = ON;
  off.is_on = false;
  for (const double age_pct : {0.0, 70.0, 100.0, 150.0}) {
    Flush_sample sample = sample_at(0.0, age_pct, 99'000);
    sample.adaptive_per_s = 500.0;
    sample.purge_per_s = 1000.0;
    sample.util_per_s = 1000.0;
    sample.checkpoint_lsn -= sample.sync_age / 2;
    const Flush_decision decision = decide_at(off, sample);
    EXPECT_EQ(decision.trigger, Flush_trigger::ADAPTIVE);
    EXPECT_EQ(decision.n_pages, 50u);
    EXPECT_EQ(decision.lsn_limit, UINT64_MAX);
    EXPECT_EQ(decision.redo_bytes_per_s, FLUSH_UNLIMITED);
    EXPECT_EQ(decision.session_redo_bytes_per_s, FLUSH_UNLIMITED);
    EXPECT_FALSE(decision.wants_checkpoint);
    EXPECT_EQ(purge_request_rate(off, sample), 0.0);
  }
}

TEST(AheadFlush, BelowTheThresholdsNothingIsFlushed) {
  const Flush_decision decision = decide_at(ON, sample_at(0.0, 60.0, 45'000));
  EXPECT_EQ(decision.trigger, Flush_trigger::NONE);
  EXPECT_EQ(decision.n_pages, 0u);
  EXPECT_EQ(purge_request_rate(ON, sample_at(0.0, 60.0, 45'000)), 0.0);
}

TEST(AheadFlush, AnEmptyPoolAndARedoLogWithoutLimitsAreBelow) {
  Flush_sample sample = sample_at(0.0, 0.0, 0);
  sample.n_pages = 0;
  sample.sync_age = 0;
  const Flush_decision decision = decide_at(ON, sample);
  EXPECT_EQ(decision.trigger, Flush_trigger::NONE);
  EXPECT_EQ(decision.n_pages, 0u);
}

TEST(AheadFlush, TheDirtyRuleIsTheSeeds) {
  /* Nine tenths of 90 %. */
  EXPECT_EQ(flush_dirty_threshold_pct(ON), 81.0);
  Flush_settings set = ON;
  set.dirty_pct = 10.0;
  EXPECT_EQ(flush_dirty_threshold_pct(set), 10.0);
  /* At the threshold io_pct of innodb_io_capacity, for a tenth of a second; at
  the maximum of dirty pages innodb_io_capacity_max, and beyond it the same. */
  const Flush_decision first = decide_at(ON, sample_at(0.0, 0.0, 81'001));
  EXPECT_EQ(first.trigger, Flush_trigger::DIRTY);
  EXPECT_EQ(first.n_pages, 20u);
  EXPECT_EQ(first.lsn_limit, UINT64_MAX);
  EXPECT_EQ(decide_at(ON, sample_at(0.0, 0.0, 85'500)).n_pages, 110u);
  EXPECT_EQ(decide_at(ON, sample_at(0.0, 0.0, 90'000)).n_pages, 200u);
  EXPECT_EQ(decide_at(ON, sample_at(0.0, 0.0, 99'000)).n_pages, 200u);
}

TEST(AheadFlush, UpstreamsOwnRateIsSpread) {
  Flush_sample sample = sample_at(0.0, 0.0);
  sample.adaptive_per_s = 500.0;
  const Flush_decision decision = decide_at(ON, sample);
  EXPECT_EQ(decision.trigger, Flush_trigger::ADAPTIVE);
  EXPECT_EQ(decision.n_pages, 50u);
  /* It is relative to innodb_io_capacity, and the device capacity is lower. */
  sample.device_per_s = 100.0;
  sample.adaptive_per_s = 300.0;
  EXPECT_EQ(decide_at(ON, sample).n_pages, 3u);
  /* Half of the limit. */
  sample.adaptive_scales_with_io_capacity = false;
  EXPECT_EQ(decide_at(ON, sample).n_pages, 5u);
}

TEST(AheadFlush, WhileThreadsWaitForRedoSpacePagesAreFlushed) {
  Flush_settings off = ON;
  off.is_on = false;
  Flush_sample sample = sample_at(0.0, 110.0);
  EXPECT_EQ(decide_at(off, sample).n_pages, 0u);
  /* innodb_io_capacity is 1,000. */
  sample.is_redo_space_awaited = true;
  EXPECT_EQ(decide_at(off, sample).n_pages, 100u);
  sample.adaptive_per_s = 1500.0;
  EXPECT_EQ(decide_at(off, sample).n_pages, 150u);
}

TEST(AheadFlush, PartsOfTheCapacityArePartsOfWhatTheDeviceCarries) {
  Flush_sample dirty = sample_at(0.0, 0.0, 81'001);
  dirty.device_per_s = 100.0;
  EXPECT_EQ(decide_at(ON, dirty).n_pages, 2u);
  /* Also for an estimate; but then adaptive flushing is not scaled. */
  dirty.is_device_seen = false;
  EXPECT_EQ(decide_at(ON, dirty).n_pages, 2u);
  Flush_sample native = sample_at(0.0, 0.0);
  native.adaptive_per_s = 50.0;
  native.device_per_s = 100.0;
  native.is_device_seen = false;
  EXPECT_EQ(decide_at(ON, native).n_pages, 5u);
  Flush_sample purge = sample_at(0.0, 0.0);
  purge.device_per_s = 100.0;
  purge.purge_per_s = purge_request_rate(ON, sample_at(0.0, 100.0));
  EXPECT_EQ(decide_at(ON, purge).n_pages, 2u);
}

TEST(AheadFlush, PurgeIsHeardWithinTheLimits) {
  Flush_sample sample = sample_at(0.0, 0.0);
  sample.purge_per_s = 300.0;
  EXPECT_EQ(decide_at(ON, sample).trigger, Flush_trigger::PURGE);
  EXPECT_EQ(decide_at(ON, sample).n_pages, 30u);
  sample.purge_per_s = 1e9;
  EXPECT_EQ(decide_at(ON, sample).n_pages, 200u);
  sample.device_per_s = 700.0;
  EXPECT_EQ(decide_at(ON, sample).n_pages, 70u);
  EXPECT_EQ(purge_request_rate(ON, sample_at(0.0, 0.0, 90'000)), 2000.0);
  EXPECT_EQ(purge_request_rate(ON, sample_at(0.0, 100.0)), 200.0);
}

TEST(AheadFlush, ADeviceThatIsNotBusyIsUsedBelowAllThresholds) {
  Flush_sample sample = sample_at(0.0, 0.0);
  sample.adaptive_per_s = 100.0;
  sample.util_per_s = 600.0;
  EXPECT_EQ(decide_at(ON, sample).trigger, Flush_trigger::UTIL);
  EXPECT_EQ(decide_at(ON, sample).n_pages, 70u);
  sample.util_per_s = 1e9;
  EXPECT_EQ(decide_at(ON, sample).n_pages, 200u);
}

TEST(AheadFlush, AtAHighAgeAllIsFlushedThatTheLimitsAllow) {
  EXPECT_EQ(decide_at(ON, sample_at(0.0, 90.0)).limit,
            Flush_limit::IO_CAPACITY_MAX);
  EXPECT_EQ(decide_at(ON, sample_at(0.0, 90.0)).n_pages, 200u);
  Flush_sample sample = sample_at(0.0, 90.0);
  sample.device_per_s = 500.0;
  EXPECT_EQ(decide_at(ON, sample).limit, Flush_limit::DEVICE);
  EXPECT_TRUE(decide_at(ON, sample).is_at_device);
  EXPECT_FALSE(decide_at(ON, sample_at(0.0, 90.0)).is_at_device);
  EXPECT_EQ(decide_at(ON, sample).n_pages, 50u);
}

TEST(AheadFlush, UpstreamsOwnRateDoesNotHideThatMoreIsWanted) {
  Flush_sample sample = sample_at(0.0, 90.0);
  sample.adaptive_per_s = 1e6;
  sample.adaptive_scales_with_io_capacity = false;
  const Flush_decision decision = decide_at(ON, sample);
  EXPECT_EQ(decision.limit, Flush_limit::IO_CAPACITY_MAX);
  EXPECT_NE(decision.lsn_limit, UINT64_MAX);
  EXPECT_EQ(decision.n_pages, 200u);
}

TEST(AheadFlush, TheAgeIsHeardAlsoWherePagesAreOlderThanIsKnown) {
  Ahead_flush policy;
  (void)policy.decide(ON, sample_at(1.0, 0.0, 0));
  Flush_sample sample = sample_at(1.1, 90.0);
  EXPECT_EQ(policy.decide(ON, sample).n_pages, 200u);
  sample.now_s += 0.1;
  sample.oldest_lsn += sample.sync_age / 20;
  EXPECT_EQ(policy.decide(ON, sample).n_pages, 100u);
}

TEST(AheadFlush, WithoutDirtyPagesNobodyIsHeldBack) {
  const Flush_decision decision = decide_at(ON, sample_at(0.0, 110.0, 0));
  EXPECT_EQ(decision.redo_bytes_per_s, FLUSH_UNLIMITED);
  EXPECT_EQ(decision.session_redo_bytes_per_s, FLUSH_UNLIMITED);
}

TEST(AheadFlush, PagesAreSaidToBeOlderThanTheyAre) {
  Flush_sample sample = sample_at(0.0, 70.0);
  const double known = decide_at(ON, sample).redo_bytes_per_s;
  sample.lsn_disorder = sample.sync_age / 10;
  EXPECT_NEAR(decide_at(ON, sample).redo_bytes_per_s, 0.9 * known, 1.0);
}

TEST(AheadFlush, PagesThatAreYoungerThanTheThresholdStay) {
  Flush_sample sample = sample_at(0.0, 90.0);
  EXPECT_EQ(decide_at(ON, sample).lsn_limit,
            sample.lsn - sample.sync_age * 60 / 100);
  /* The oldest page may be younger than reported; then others are, too. */
  sample.lsn_disorder = 2'000'000;
  EXPECT_EQ(decide_at(ON, sample).lsn_limit,
            sample.lsn - sample.sync_age * 60 / 100 + sample.lsn_disorder);
  sample.lsn_disorder = sample.sync_age;
  EXPECT_EQ(decide_at(ON, sample).lsn_limit, sample.lsn);
  /* Also if purge has requested more, unless too many pages are dirty. */
  sample = sample_at(0.0, 61.0);
  sample.purge_per_s = 1500.0;
  EXPECT_EQ(decide_at(ON, sample).trigger, Flush_trigger::PURGE);
  EXPECT_EQ(decide_at(ON, sample).lsn_limit,
            sample.lsn - sample.sync_age * 60 / 100);
  sample.n_dirty = 81'001;
  EXPECT_EQ(decide_at(ON, sample).trigger, Flush_trigger::PURGE);
  EXPECT_EQ(decide_at(ON, sample).lsn_limit, UINT64_MAX);
}

/** Redo generation and reclaim rate are 1 MB/s, with 200 dirty pages for each
MB. All pages that are flushed reclaim redo.
@param[in]  age_pct       oldest page age: percent of the sync age
@param[in]  device_per_s  device write capacity: pages/s
@param[in]  charged_bytes_per_s  redo that sessions are charged: bytes/s
@return the last decision of ten minutes */
Flush_decision after_a_while(double age_pct, double device_per_s = 200.0,
                             double charged_bytes_per_s = 1e6) {
  Ahead_flush policy;
  Flush_decision decision{};
  for (int i = 0; i <= 6000; ++i) {
    Flush_sample sample = sample_at(1.0 + 0.1 * i, age_pct,
                                    static_cast<uint64_t>(100.0 * age_pct));
    sample.lsn += static_cast<uint64_t>(1e6 * 0.1 * i);
    sample.oldest_lsn += static_cast<uint64_t>(1e6 * 0.1 * i);
    sample.checkpoint_lsn = sample.oldest_lsn;
    sample.n_written = static_cast<uint64_t>(200 * 0.1 * i);
    sample.charged_bytes = static_cast<uint64_t>(charged_bytes_per_s * 0.1 * i);
    sample.device_per_s = device_per_s;
    decision = policy.decide(ON, sample);
  }
  return decision;
}

TEST(AheadFlush, WhatOthersGenerateIsSubtracted) {
  /* Redo generation is 1 MB/s, of which sessions were charged a part, and so is
  the reclaim rate. 90 % is the setpoint. */
  const auto session_limit = [](double charged_bytes_per_s, double age_pct) {
    return after_a_while(age_pct, 200.0, charged_bytes_per_s)
        .session_redo_bytes_per_s;
  };
  EXPECT_NEAR(session_limit(1e6, 90.0), 1e6, 1e4);
  EXPECT_NEAR(session_limit(0.8e6, 90.0), 0.8e6, 1e4);
  EXPECT_NEAR(session_limit(0.6e6, 90.0), 0.6e6, 1e4);
  /* Sessions may generate as much as others do, also at the sync age. */
  EXPECT_NEAR(session_limit(0.3e6, 90.0), 0.7e6, 1e4);
  EXPECT_NEAR(session_limit(0.3e6, 100.0), 0.7e6, 1e4);
  EXPECT_EQ(session_limit(1e6, 100.0), 0.0);
  /* More than was generated: for what was generated before. */
  EXPECT_NEAR(session_limit(1.5e6, 90.0), 1e6, 1e4);
}

TEST(AheadFlush, WithoutPagesThatAreOldEnoughItIsNotTheDevice) {
  Flush_decision decision{.n_pages = 50, .is_at_device = true};
  EXPECT_TRUE(flush_was_at_device(decision, 50));
  EXPECT_TRUE(flush_was_at_device(decision, 25));
  EXPECT_FALSE(flush_was_at_device(decision, 24));
  decision.is_at_device = false;
  EXPECT_FALSE(flush_was_at_device(decision, 50));
  /* No pages, as it is not time for a round. */
  decision = {.n_pages = 0, .is_at_device = true};
  EXPECT_FALSE(flush_was_at_device(decision, 0));
}

TEST(AheadFlush, NothingIsHandedOverWhileTheLastPagesAreWritten) {
  Ahead_flush policy;
  Flush_sample sample = sample_at(1.0, 90.0);
  (void)policy.decide(ON, sample);
  sample.is_writing = true;
  for (int i = 1; i <= 30; ++i) {
    sample.now_s += 0.1;
    const Flush_decision decision = policy.decide(ON, sample);
    EXPECT_EQ(decision.n_pages, 0u);
    EXPECT_FALSE(decision.is_round);
    EXPECT_EQ(decision.limit, Flush_limit::IO_CAPACITY_MAX);
  }
  /* The next round catches up on a part of that. */
  sample.now_s += 0.1;
  (void)policy.decide(ON, sample);
  sample.is_writing = false;
  sample.now_s += 0.01;
  const Flush_decision late = policy.decide(ON, sample);
  EXPECT_EQ(late.n_pages,
            static_cast<uint64_t>(200 * FLUSH_CATCH_UP_INTERVALS));
  sample.now_s += 0.1;
  const Flush_decision next = policy.decide(ON, sample);
  EXPECT_NEAR(static_cast<double>(next.n_pages), 200.0, 1.0);
  EXPECT_EQ(next.next_tick_s, 0.1);
  sample.is_writing = true;
  EXPECT_LT(policy.decide(ON, sample).next_tick_s, 0.1);
}

TEST(AheadFlush, RoundsAreMoreOftenWhereTheRedoLogIsSoonFull) {
  /* 20 MB from the threshold to the sync age. */
  for (const auto &[mb_per_s, next_tick_s] :
       {std::pair{19.0, 0.1}, {40.0, 0.05}, {100.0, 0.02}, {500.0, 0.01}}) {
    Ahead_flush policy;
    Flush_sample sample = sample_at(1.0, 50.0);
    Flush_decision decision;
    for (int i = 0; i < 100; ++i) {
      decision = policy.decide(ON, sample);
      sample.now_s += 0.1;
      sample.lsn += static_cast<uint64_t>(mb_per_s * 1e5);
      sample.oldest_lsn += static_cast<uint64_t>(mb_per_s * 1e5);
    }
    EXPECT_NEAR(decision.next_tick_s, next_tick_s, 1e-3) << mb_per_s;
  }
  EXPECT_EQ(decide_at(ON, sample_at(0.0, 99.0)).next_tick_s, 0.1);
}

/** Ten seconds of samples, with 1,000 pages/s of adaptive flushing.
@param[in]  settings          the settings
@param[in]  fsyncs_per_round  fsync() calls of each round
@param[in]  sync_s            their time
@return the last five rounds with pages: time and pages */
std::vector<std::pair<double, uint64_t>> rounds_of(
    const Flush_settings &settings, uint64_t fsyncs_per_round,
    double sync_s = 0.0) {
  Ahead_flush policy;
  Flush_sample sample = sample_at(1.0, 0.0);
  sample.adaptive_per_s = 1000.0;
  std::vector<std::pair<double, uint64_t>> rounds;
  while (sample.now_s < 10.95) {
    const Flush_decision decision = policy.decide(settings, sample);
    EXPECT_EQ(decision.next_tick_s, settings.interval_s);
    EXPECT_TRUE(decision.is_round || decision.n_pages == 0);
    if (decision.n_pages != 0) {
      rounds.emplace_back(sample.now_s, decision.n_pages);
      sample.n_fsyncs += fsyncs_per_round;
      sample.sync_s += sync_s;
    }
    sample.now_s += settings.interval_s;
  }
  EXPECT_GE(rounds.size(), 5u);
  return {rounds.end() - std::min<ptrdiff_t>(5, std::ssize(rounds)),
          rounds.end()};
}

TEST(AheadFlush, ARoundWaitsForPagesThatAreWorthItsFsyncs) {
  Flush_settings set = ON;
  /* 100 pages are enough for 20 fsync(). */
  for (const auto &[n_fsyncs, n_pages] : {std::pair{0u, 100.0},
                                          {20u, 100.0},
                                          {40u, 200.0},
                                          {80u, 400.0},
                                          /* Half a second at most. */
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
  /* The interval that is set is the minimum. */
  set.interval_s = 1.0;
  EXPECT_EQ(rounds_of(set, 500).back().second, 1000u);
}

TEST(AheadFlush, ARoundWaitsUntilSyncsTakeAFifthOfTheTime) {
  /* 9 fsync() are worth 45 pages, which are less than those of 0.1 s. */
  for (const auto &[sync_s, interval_s] : {std::pair{0.0, 0.1},
                                           {0.02, 0.1},
                                           {0.06, 0.3},
                                           /* Half a second at most. */
                                           {0.2, 0.5}}) {
    const auto rounds = rounds_of(ON, 9, sync_s);
    for (size_t i = 1; i < rounds.size(); ++i) {
      EXPECT_NEAR(rounds[i].first - rounds[i - 1].first, interval_s, 1e-6)
          << sync_s;
    }
  }
}

/* 150 ms of fixed time: a batch each 0.5 s. The redo log is soon full, and
samples come each 10 ms. */
TEST(AheadFlush, BatchesAreAsFarApartAsTheirFixedTimeAsksFor) {
  Ahead_flush policy;
  Flush_sample sample = sample_at(1.0, 90.0);
  sample.device_interval_s = 0.5;
  double last_s = 0.0;
  unsigned n_rounds = 0;
  while (sample.now_s < 10.0) {
    const Flush_decision decision = policy.decide(ON, sample);
    if (decision.n_pages != 0) {
      /* Rounded to the nearest interval of 0.1 s. */
      EXPECT_TRUE(last_s == 0.0 || sample.now_s - last_s >= 0.45 - 1e-9);
      last_s = sample.now_s;
      ++n_rounds;
    }
    sample.now_s += decision.next_tick_s;
    sample.lsn += static_cast<uint64_t>(decision.next_tick_s * 500e6);
    sample.oldest_lsn += static_cast<uint64_t>(decision.next_tick_s * 500e6);
  }
  EXPECT_GE(n_rounds, 15u);
}

TEST(AheadFlush, AProbeIsAPageOfEachInstanceBeforeTheRound) {
  Flush_settings set = ON;
  set.n_instances = 8;
  Ahead_flush policy;
  Flush_sample sample = sample_at(1.0, 90.0);
  (void)policy.decide(set, sample);
  sample.now_s += 0.1;
  sample.wants_probe = true;
  const Flush_decision probe = policy.decide(set, sample);
  EXPECT_TRUE(probe.is_probe);
  EXPECT_EQ(probe.n_pages, 8u);
  EXPECT_FALSE(flush_was_at_device(probe, 8));
  /* The pages of its time are not lost: 2000 pages/s for 0.11 s. */
  sample.now_s += 0.01;
  sample.wants_probe = false;
  const Flush_decision round = policy.decide(set, sample);
  EXPECT_FALSE(round.is_probe);
  EXPECT_NEAR(static_cast<double>(round.n_pages), 220.0, 8.0);
  /* Nothing is to be flushed. */
  sample = sample_at(2.0, 0.0);
  sample.wants_probe = true;
  EXPECT_EQ(policy.decide(set, sample).n_pages, 0u);
}

TEST(AheadFlush, NoRoundWaitsForPagesThatDoNotCome) {
  Ahead_flush policy;
  Flush_sample sample = sample_at(1.0, 0.0);
  sample.adaptive_per_s = 1000.0;
  for (int i = 0; i < 30; ++i) {
    sample.n_fsyncs += policy.decide(ON, sample).n_pages != 0 ? 500 : 0;
    sample.now_s += 0.1;
  }
  sample.adaptive_per_s = 0.0;
  for (int i = 0; i < 30; ++i) {
    const Flush_decision decision = policy.decide(ON, sample);
    EXPECT_TRUE(decision.is_round);
    EXPECT_EQ(decision.trigger, Flush_trigger::NONE);
    sample.now_s += 0.1;
  }
}

TEST(AheadFlush, NoRoundWaitsWhereTheRedoLogIsSoonFull) {
  Ahead_flush policy;
  Flush_sample sample = sample_at(1.0, 90.0);
  for (int i = 0; i < 100; ++i) {
    const Flush_decision decision = policy.decide(ON, sample);
    /* 20 MB from the threshold to the sync age, 1 MB in each interval. */
    EXPECT_TRUE(decision.is_round || i < 30) << i;
    sample.now_s += decision.next_tick_s;
    sample.lsn += static_cast<uint64_t>(decision.next_tick_s * 100e6);
    sample.oldest_lsn += static_cast<uint64_t>(decision.next_tick_s * 100e6);
    sample.n_fsyncs += 100;
  }
}

TEST(AheadFlush, WhatTheFlusherHasDoneElsewhereIsNotLost) {
  Ahead_flush policy;
  (void)policy.decide(ON, sample_at(1.0, 90.0));
  Flush_sample sample = sample_at(2.5, 90.0);
  sample.gap_cause = Gap_cause::OTHER_WORK;
  const Flush_decision decision = policy.decide(ON, sample);
  EXPECT_NEAR(static_cast<double>(decision.n_pages),
              2000.0 * FLUSH_CATCH_UP_AFTER_OTHER_WORK_S, 1.0);
}

TEST(AheadFlush, WhatAnIdleServerHasFlushedIsNotMadeUpFor) {
  Ahead_flush policy;
  (void)policy.decide(ON, sample_at(1.0, 90.0));
  Flush_sample sample = sample_at(2.5, 90.0);
  sample.gap_cause = Gap_cause::IDLE_FLUSH;
  const Flush_decision decision = policy.decide(ON, sample);
  EXPECT_NEAR(static_cast<double>(decision.n_pages), 2000.0 * ON.interval_s,
              1.0);
}

TEST(AheadFlush, AnIdleServerFlushesNoMoreThanItsRoundsLeave) {
  Flush_settings set = ON;
  set.io_capacity_max = 2000.0;
  set.is_limited_by_device = true;
  /* Arguments: pages allowed, dirty, flushed by rounds; device capacity. */
  EXPECT_EQ(flush_idle(set, 1000, 5000, 0, 700.0).n_pages, 700);
  EXPECT_TRUE(flush_idle(set, 1000, 5000, 0, 700.0).is_at_device);
  EXPECT_EQ(flush_idle(set, 1000, 5000, 0, 1e6).n_pages, 1000);
  EXPECT_FALSE(flush_idle(set, 1000, 5000, 0, 1e6).is_at_device);
  EXPECT_FALSE(flush_idle(set, 1000, 700, 0, 700.0).is_at_device);
  /* Rounds have flushed some. */
  EXPECT_EQ(flush_idle(set, 1000, 5000, 300, 700.0).n_pages, 400);
  EXPECT_EQ(flush_idle(set, 1000, 5000, 800, 700.0).n_pages, 0);
  EXPECT_EQ(flush_idle(set, 1000, 5000, 1500, 1e6).n_pages, 500);
  set.is_limited_by_device = false;
  EXPECT_EQ(flush_idle(set, 1000, 5000, 1500, 700.0).n_pages, 500);
  EXPECT_FALSE(flush_idle(set, 1000, 5000, 1500, 700.0).is_at_device);
  /* OFF is stock. */
  set.is_on = false;
  EXPECT_EQ(flush_idle(set, 3000, 5000, 1500, 700.0).n_pages, 3000);
}

TEST(AheadFlush, ARedoLogThatIsMadeSmallerMayBeFilledHalfAsFastAsItIsEmptied) {
  Flush_sample sample = sample_at(1.0, 100.0, 10'000);
  sample.device_per_s = 1000.0;
  Flush_settings set = ON;
  set.is_limited_by_device = true;
  /* The sync age has come down to the checkpoint age. */
  EXPECT_EQ(decide_at(set, sample).redo_bytes_per_s, 0.0);
  sample.is_shrinking = true;
  EXPECT_NEAR(decide_at(set, sample).redo_bytes_per_s,
              0.5 * 1000.0 * oldest_page_age(sample) / 10'000.0, 1.0);
  /* Pages are flushed at the limit. */
  EXPECT_EQ(decide_at(set, sample).limit, Flush_limit::DEVICE);
}

TEST(AheadFlush, ANewServerIsYoungerThanItsRedoLogIsLong) {
  Flush_sample sample = sample_at(1.0, 10.0);
  sample.lsn = 1'000'000;
  sample.oldest_lsn = 1'000'000;
  sample.lsn_disorder = 1;
  sample.purge_per_s = 100.0;
  EXPECT_EQ(decide_at(ON, sample).trigger, Flush_trigger::PURGE);
  EXPECT_EQ(decide_at(ON, sample).lsn_limit, 1);
}

/** @return the decision after ten seconds at a high oldest page age
@param[in]  device   device write capacity: pages/s
@param[in]  lru      pages/s submitted from the LRU lists
@param[in]  written  pages/s written */
Flush_decision after_lru(double device, double lru, double written) {
  Ahead_flush policy;
  Flush_decision decision;
  for (int i = 0; i <= 100; ++i) {
    Flush_sample sample = sample_at(0.1 * i + 1.0, 95.0);
    sample.device_per_s = device;
    sample.n_lru_flushed = static_cast<uint64_t>(lru * 0.1 * i);
    sample.n_written = static_cast<uint64_t>(written * 0.1 * i);
    decision = policy.decide(ON, sample);
    EXPECT_TRUE(i == 0 ||
                decision.is_at_device == (device < ON.io_capacity_max));
  }
  return decision;
}

TEST(AheadFlush, WhatTheLruListsNeedIsLeftToThem) {
  /* Of 2,000 pages/s, 1,000 LRU pages leave 1,000; half remains in any case. */
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
    Flush_sample sample = sample_at(1.0 + 0.1 * i, 0.0);
    sample.adaptive_per_s = 33.0;
    const Flush_decision decision = policy.decide(set, sample);
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
    /* A round can wait for pages that are worth its fsync(). */
    const double most = std::max(
        set.io_capacity_max * std::max(set.interval_s, FLUSH_COALESCE_MAX_S),
        n_instances);
    /* With and without LATENCY, at a capacity above and below that. */
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
      Flush_sample sample = sample_at(now_s, in(0.0, 120.0),
                                      static_cast<uint64_t>(in(1000.0, 100e3)));
      sample.lsn += static_cast<uint64_t>(now_s * 1e7);
      sample.oldest_lsn += static_cast<uint64_t>(now_s * 1e7);
      sample.adaptive_per_s = in(0.0, 50e3);
      sample.purge_per_s = in(0.0, 50e3);
      sample.is_writing = in(0.0, 1.0) < 0.1;
      sample.gap_cause = in(0.0, 1.0) < 0.05   ? Gap_cause::OTHER_WORK
                         : in(0.0, 1.0) < 0.05 ? Gap_cause::IDLE_FLUSH
                                               : Gap_cause::NONE;
      sample.is_shrinking = in(0.0, 1.0) < 0.1;
      sample.n_fsyncs = n_fsyncs += static_cast<uint64_t>(in(0.0, 100.0));
      sample.util_per_s = in(0.0, 1.0) < 0.5 ? 0.0 : in(0.0, 50e3);
      sample.device_per_s = in(50.0, 50e3);
      sample.is_device_seen = in(0.0, 1.0) < 0.5;
      sample.n_written = n_written += static_cast<uint64_t>(in(0.0, 5000.0));
      sample.n_lru_flushed = n_lru_flushed +=
          static_cast<uint64_t>(in(0.0, 1.0) < 0.5 ? 0.0 : in(0.0, 500.0));
      const Flush_decision decision = policy.decide(set, sample);
      const double late = std::max(FLUSH_CATCH_UP_INTERVALS * most,
                                   (sample.gap_cause == Gap_cause::OTHER_WORK
                                        ? FLUSH_CATCH_UP_AFTER_OTHER_WORK_S
                                        : FLUSH_CATCH_UP_S) *
                                       set.io_capacity_max);
      EXPECT_LE(static_cast<double>(decision.n_pages), late + n_instances);
      EXPECT_GE(decision.redo_bytes_per_s, 0.0);
      EXPECT_GE(decision.session_redo_bytes_per_s, 0.0);
      pages += static_cast<double>(decision.n_pages);
    }
    EXPECT_LE(pages, set.io_capacity_max * (now_s - 5.0) + n_instances);
  }
}

TEST(AheadFlush, CheckpointsAreAskedForWhereTheyGiveRoom) {
  Flush_sample sample = sample_at(0.0, 70.0);
  EXPECT_FALSE(decide_at(ON, sample).wants_checkpoint);
  sample.checkpoint_lsn -= sample.sync_age / 20;
  EXPECT_TRUE(decide_at(ON, sample).wants_checkpoint);
  /* Below the threshold InnoDB's own checkpoints are enough. But the checkpoint
  age can be above it while the oldest page age is not. */
  sample = sample_at(0.0, 50.0);
  sample.checkpoint_lsn -= sample.sync_age / 20;
  EXPECT_FALSE(decide_at(ON, sample).wants_checkpoint);
  sample.checkpoint_lsn -= sample.sync_age / 10;
  EXPECT_TRUE(decide_at(ON, sample).wants_checkpoint);
}

TEST(AheadFlush, ACheckpointThatIsUnderWayIsNotAskedForInEachRound) {
  Ahead_flush policy;
  Flush_sample sample = sample_at(1.0, 70.0);
  sample.checkpoint_lsn -= sample.sync_age / 20;
  unsigned n_asked = 0;
  for (; sample.now_s < 2.0; sample.now_s += 0.02) {
    n_asked += policy.decide(ON, sample).wants_checkpoint ? 1 : 0;
  }
  EXPECT_GE(n_asked, 8u);
  EXPECT_LE(n_asked, 10u);
}

TEST(AheadFlush, PagesAreFlushedAsFastAsTheyAreMadeDirty) {
  /* 60 % is the threshold, 80 % is FLUSH_AGE_TARGET. */
  EXPECT_EQ(after_a_while(59.0, 1e9).n_pages, 0u);
  EXPECT_NEAR(static_cast<double>(after_a_while(70.0, 1e9).n_pages), 17.5, 1.0);
  EXPECT_NEAR(static_cast<double>(after_a_while(79.0, 1e9).n_pages), 20.0, 1.0);
  EXPECT_EQ(after_a_while(70.0, 1e9).trigger, Flush_trigger::AGE);
  EXPECT_EQ(after_a_while(85.0, 1e9).limit, Flush_limit::IO_CAPACITY_MAX);
  EXPECT_NEAR(static_cast<double>(after_a_while(85.0, 1e9).n_pages), 200.0,
              1.0);
}

TEST(AheadFlush, TheDefaultIoCapacityDoesNotLimitAMeasuredDevice) {
  Flush_settings set = ON;
  set.io_capacity = FLUSH_DEFAULTS.io_capacity;
  set.io_capacity_max = FLUSH_DEFAULTS.io_capacity_max;
  const auto pages_at = [&set](double age_pct, double dirty_pct) {
    Flush_sample sample =
        sample_at(0.0, age_pct, static_cast<uint64_t>(1000.0 * dirty_pct));
    sample.device_per_s = 100e3;
    sample.is_device_seen = true;
    return decide_at(set, sample);
  };
  /* 20,000 pages/s, and 100,000 pages/s: rounds of 0.1 s. */
  EXPECT_EQ(pages_at(99.0, 10.0).n_pages, 2'000u);
  EXPECT_FALSE(pages_at(99.0, 10.0).is_at_device);
  set.is_io_capacity_default = true;
  EXPECT_EQ(pages_at(99.0, 10.0).n_pages, 10'000u);
  EXPECT_TRUE(pages_at(99.0, 10.0).is_at_device);
  EXPECT_EQ(pages_at(99.0, 10.0).limit, Flush_limit::DEVICE);
  /* Below the age threshold they are the limit, here of the dirty rule. */
  EXPECT_EQ(pages_at(50.0, 90.0).n_pages, 2'000u);
  /* Nothing is measured. */
  set.is_limited_by_device = false;
  EXPECT_EQ(pages_at(99.0, 10.0).n_pages, 2'000u);
}

/** @return the decision after ten seconds of redo generation at 12 MB/s, with
10,000 dirty pages, and an oldest page age of 30 % of the sync age */
Flush_decision after_filling(const Flush_settings &settings,
                             bool is_device_seen = true) {
  Ahead_flush policy;
  Flush_decision decision{};
  for (int i = 0; i <= 100; ++i) {
    Flush_sample sample = sample_at(1.0 + 0.1 * i, 30.0);
    sample.lsn += static_cast<uint64_t>(12e6 * 0.1 * i);
    sample.oldest_lsn += static_cast<uint64_t>(12e6 * 0.1 * i);
    sample.checkpoint_lsn = sample.oldest_lsn;
    sample.n_written = static_cast<uint64_t>(2000 * 0.1 * i);
    sample.is_device_seen = is_device_seen;
    decision = policy.decide(settings, sample);
  }
  return decision;
}

TEST(AheadFlush, WhatCouldNotBeFlushedLaterIsFlushedBelowTheThreshold) {
  /* 10,000 pages for 40 MB, the age at FLUSH_AGE_TARGET: 3,000 pages/s for 12
  MB/s. */
  Flush_settings set = ON;
  Flush_decision decision = after_filling(set);
  EXPECT_EQ(decision.trigger, Flush_trigger::EARLY);
  /* 30 of 80 %, of 2,000 pages/s. */
  EXPECT_NEAR(static_cast<double>(decision.n_pages), 75.0, 1.0);
  EXPECT_TRUE(is_ahead_trigger(decision.trigger));
  /* All pages are younger than the threshold. */
  EXPECT_EQ(decision.lsn_limit, UINT64_MAX);
  /* No session is throttled yet. */
  EXPECT_EQ(decision.redo_bytes_per_s, FLUSH_UNLIMITED);
  /* The limit until the device write capacity is measured. */
  EXPECT_EQ(after_filling(set, false).n_pages, 200u);
  set.is_limited_by_device = false;
  EXPECT_NEAR(static_cast<double>(after_filling(set, false).n_pages), 75.0,
              1.0);
  set.io_capacity_max = 4000.0;
  EXPECT_EQ(after_filling(set).trigger, Flush_trigger::NONE);
  set = ON;
  set.is_on = false;
  EXPECT_EQ(after_filling(set).trigger, Flush_trigger::NONE);
}

TEST(AheadFlush, AnIdleDeviceHasNothingToDoWithoutDirtyPages) {
  Flush_sample sample = sample_at(1.0, 0.0, 0);
  sample.util_per_s = 600.0;
  EXPECT_EQ(decide_at(ON, sample).trigger, Flush_trigger::NONE);
}

TEST(AheadFlush, NobodyIsHeldBackBelowTheThreshold) {
  EXPECT_EQ(after_a_while(59.0).session_redo_bytes_per_s, FLUSH_UNLIMITED);
  EXPECT_EQ(after_a_while(59.0).redo_bytes_per_s, FLUSH_UNLIMITED);
  EXPECT_LT(after_a_while(61.0).session_redo_bytes_per_s, FLUSH_UNLIMITED);
  /* A device with ten times the capacity permits ten times the redo generation.
  A device without a limit counts as innodb_io_capacity_max. */
  EXPECT_NEAR(after_a_while(80.0, 2000.0).redo_bytes_per_s,
              10.0 * after_a_while(80.0).redo_bytes_per_s, 1e3);
  EXPECT_EQ(after_a_while(80.0, FLUSH_UNLIMITED).redo_bytes_per_s,
            after_a_while(80.0, 2000.0).redo_bytes_per_s);
}

TEST(AheadFlush, TheRedoLogIsFilledAsFastAsItIsEmptied) {
  /* 90 % is the setpoint. */
  const Flush_decision settled = after_a_while(90.0);
  EXPECT_NEAR(settled.redo_bytes_per_s, 1e6, 1e4);
  /* Higher below the setpoint, lower above, and 0 at the sync age. */
  double last = FLUSH_UNLIMITED;
  for (const double age_pct : {61.0, 70.0, 80.0, 90.0, 95.0, 99.0}) {
    const double now = after_a_while(age_pct).redo_bytes_per_s;
    EXPECT_LT(now, last) << age_pct;
    last = now;
  }
  EXPECT_EQ(after_a_while(110.0).redo_bytes_per_s, 0.0);
  EXPECT_EQ(after_a_while(130.0).redo_bytes_per_s, 0.0);
}

TEST(AheadFlush, WhatTheDeviceCarriesHoldsBackAlsoWhereItIsNoLimit) {
  Flush_settings set = ON;
  set.is_limited_by_device = false;
  Flush_sample sample = sample_at(0.0, 90.0);
  sample.device_per_s = 100.0;
  const Flush_decision seen = decide_at(set, sample);
  EXPECT_EQ(seen.limit, Flush_limit::IO_CAPACITY_MAX);
  EXPECT_EQ(seen.n_pages, 200u);
  EXPECT_TRUE(seen.is_at_device);
  sample.is_device_seen = false;
  EXPECT_NEAR(decide_at(set, sample).redo_bytes_per_s,
              20.0 * seen.redo_bytes_per_s, 1.0);
}

TEST(AheadFlush, WhatWasGeneratedWithoutALimitIsNotSubtracted) {
  Ahead_flush policy;
  Flush_decision decision{};
  /* Below the threshold of 60 % nobody is charged. */
  for (int i = 0; i <= 1201; ++i) {
    Flush_sample sample = sample_at(1.0 + 0.1 * i, i < 1200 ? 59.0 : 90.0);
    sample.lsn += static_cast<uint64_t>(1e6 * 0.1 * i);
    sample.oldest_lsn += static_cast<uint64_t>(1e6 * 0.1 * i);
    sample.n_written = static_cast<uint64_t>(200 * 0.1 * i);
    decision = policy.decide(ON, sample);
    if (i == 1200) {
      EXPECT_EQ(decision.session_redo_bytes_per_s, decision.redo_bytes_per_s);
    }
  }
  EXPECT_LT(decision.session_redo_bytes_per_s, decision.redo_bytes_per_s);
}

/** @return the decision on an oldest page age of 30 % of the sync age
@param[in]  settings           the settings
@param[in]  adaptive_per_s     what adaptive flushing recommends: pages/s
@param[in]  redo_per_s         redo generation now: bytes/s
@param[in]  redo_before_per_s  redo generation in the minute before */
Flush_decision after_adaptive(const Flush_settings &settings,
                              double adaptive_per_s, double redo_per_s,
                              double redo_before_per_s) {
  Ahead_flush policy;
  Flush_decision decision{};
  double redo = 0.0;
  for (int i = 0; i <= 700; ++i) {
    Flush_sample sample = sample_at(1.0 + 0.1 * i, 30.0);
    redo += 0.1 * (i < 600 ? redo_before_per_s : redo_per_s);
    sample.lsn += static_cast<uint64_t>(redo);
    sample.oldest_lsn += static_cast<uint64_t>(redo);
    sample.checkpoint_lsn = sample.oldest_lsn;
    sample.adaptive_per_s = adaptive_per_s;
    decision = policy.decide(settings, sample);
  }
  return decision;
}

TEST(AheadFlush, AdaptiveFlushingIsFollowedWhereTheDeviceHasCapacityToSpare) {
  /* The limit is 2,000 pages/s, 200 for a round of 0.1 s. */
  EXPECT_EQ(after_adaptive(ON, 500.0, 1e6, 1e6).n_pages, 50u);
  EXPECT_EQ(after_adaptive(ON, 2000.0, 1e6, 1e6).n_pages, 100u);
  /* After a burst, at 0.69 and 0.71 of its redo generation, which decays
  meanwhile: exp(-10 s / 60 s) is 0.85. */
  EXPECT_NEAR(
      static_cast<double>(after_adaptive(ON, 2000.0, 0.58e6, 1e6).n_pages),
      200.0, 1.0);
  EXPECT_EQ(after_adaptive(ON, 2000.0, 0.62e6, 1e6).n_pages, 100u);
  Flush_settings set = ON;
  set.is_on = false;
  EXPECT_EQ(after_adaptive(set, 2000.0, 1e6, 1e6).n_pages, 200u);
  /* Above the threshold, where redo generation is limited, not at all. */
  Flush_sample sample = sample_at(0.0, 61.0);
  sample.adaptive_per_s = 2000.0;
  EXPECT_EQ(decide_at(ON, sample).trigger, Flush_trigger::AGE);
}

/** @return the decision some time after ahead flushing was switched off
@param[in]  drain_s         seconds since then
@param[in]  age_pct         oldest page age: percent of the sync age
@param[in]  adaptive_per_s  what adaptive flushing recommends: pages/s */
Flush_decision draining(double drain_s, double age_pct,
                        double adaptive_per_s = 0.0) {
  Flush_settings set = ON;
  set.drain_s = drain_s;
  Flush_sample sample = sample_at(0.0, age_pct);
  sample.adaptive_per_s = adaptive_per_s;
  return decide_at(set, sample);
}

TEST(AheadFlush, SwitchedOffItReleasesTheSessionsStepByStep) {
  /* 90 % is the setpoint, with the reclaim rate. 1.2^5 is 2.49. */
  const double limit =
      decide_at(ON, sample_at(0.0, 90.0)).session_redo_bytes_per_s;
  EXPECT_NEAR(draining(0.0, 90.0).session_redo_bytes_per_s, limit, 1.0);
  EXPECT_NEAR(draining(5.0, 90.0).session_redo_bytes_per_s, 2.488 * limit,
              0.001 * limit);
  /* The limit is 0 at the sync age. */
  EXPECT_NEAR(draining(5.0, 99.9).session_redo_bytes_per_s, 1.55 * limit,
              0.1 * limit);
  /* All pages, up to the limit of 2,000 pages/s. */
  EXPECT_EQ(draining(5.0, 50.0).trigger, Flush_trigger::DRAIN);
  EXPECT_EQ(draining(5.0, 50.0).n_pages, 200u);
  EXPECT_EQ(draining(5.0, 90.0).trigger, Flush_trigger::DRAIN);
  EXPECT_EQ(draining(5.0, 90.0).lsn_limit, UINT64_MAX);
}

TEST(AheadFlush, BeyondTheSyncAgeTheReclaimRateIsTheLastOne) {
  Ahead_flush policy;
  Flush_settings set = ON;
  const double limit =
      policy.decide(set, sample_at(1.0, 90.0)).session_redo_bytes_per_s;
  Flush_sample sample = sample_at(1.1, 110.0);
  EXPECT_EQ(policy.decide(set, sample).session_redo_bytes_per_s, 0.0);
  set.drain_s = 5.0;
  sample.now_s = 1.2;
  EXPECT_NEAR(policy.decide(set, sample).session_redo_bytes_per_s,
              1.488 * limit, 0.001 * limit);
}

TEST(AheadFlush, SwitchedOffItEndsWhereAdaptiveFlushingIsEnough) {
  /* The limit is 2,000 pages/s. Adaptive flushing needs a second to recommend
  something. */
  EXPECT_FALSE(draining(1.0, 50.0).is_drained);
  EXPECT_TRUE(draining(2.0, 50.0).is_drained);
  EXPECT_FALSE(draining(2.0, 50.0, 2001.0).is_drained);
  EXPECT_TRUE(draining(2.0, 50.0, 2000.0).is_drained);
  EXPECT_FALSE(draining(59.9, 50.0, 2001.0).is_drained);
  EXPECT_TRUE(draining(60.0, 50.0, 2001.0).is_drained);
  EXPECT_TRUE(decide_at(ON, sample_at(0.0, 90.0)).is_drained);
}

}  // namespace
}  // namespace spw
