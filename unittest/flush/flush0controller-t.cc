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

/** Ahead flushing is ON: age threshold 60 % of the sync age, limit of 2,000
pages/s, a round each 0.1 s. */
constexpr Flush_settings ON{.is_on = true,
                            .age_pct = 60.0,
                            .io_capacity = 1000.0,
                            .io_capacity_max = 2000.0};

/** A buffer pool of 100,000 pages, and a sync age of 50 MB.
@param[in]  now_s    time: seconds
@param[in]  age_pct  oldest page age: percent of the sync age
@param[in]  n_dirty  dirty pages
@return the sample */
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

/** @return the decision for the second of two samples, which are an interval
apart: its pages are those of 0.1 s */
Flush_decision decide_at(const Flush_settings &settings, Flush_sample sample) {
  Ahead_flush policy;
  sample.now_s = 1.0;
  (void)policy.decide(settings, sample);
  sample.now_s += settings.interval_s;
  return policy.decide(settings, sample);
}

TEST(AheadFlush, OffSpreadsAdaptiveFlushingAndDoesNothingElse) {
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
    /* 500 pages/s * 0.1 s = 50 pages */
    EXPECT_EQ(decision.n_pages, 50u);
    EXPECT_EQ(decision.lsn_limit, UINT64_MAX);
    EXPECT_EQ(decision.redo_bytes_per_s, FLUSH_UNLIMITED);
    EXPECT_EQ(decision.session_redo_bytes_per_s, FLUSH_UNLIMITED);
    EXPECT_FALSE(decision.wants_checkpoint);
    EXPECT_EQ(purge_request_rate(off, sample), 0.0);
  }
}

TEST(AheadFlush, NothingIsFlushedBelowTheThresholds) {
  /* The age is at its threshold of 60 %, not above. 45,000 of 100,000 pages are
  45 %; the dirty threshold is 81 %. */
  const Flush_decision decision = decide_at(ON, sample_at(0.0, 60.0, 45'000));
  EXPECT_EQ(decision.trigger, Flush_trigger::NONE);
  EXPECT_EQ(decision.n_pages, 0u);
  EXPECT_EQ(purge_request_rate(ON, sample_at(0.0, 60.0, 45'000)), 0.0);
}

TEST(AheadFlush, EmptyPoolAndUnknownSyncAgeAreBelowTheThresholds) {
  Flush_sample sample = sample_at(0.0, 0.0, 0);
  sample.n_pages = 0;
  sample.sync_age = 0;
  const Flush_decision decision = decide_at(ON, sample);
  EXPECT_EQ(decision.trigger, Flush_trigger::NONE);
  EXPECT_EQ(decision.n_pages, 0u);
}

TEST(AheadFlush, DirtyThresholdIsAtMostNineTenthsOfMaxDirtyPagesPct) {
  /* The default: 0.9 * 90 % = 81 % */
  EXPECT_EQ(flush_dirty_threshold_pct(ON), 81.0);
  Flush_settings set = ON;
  set.dirty_pct = 10.0;
  EXPECT_EQ(flush_dirty_threshold_pct(set), 10.0);
  /* 0.9 * 50 % = 45 % */
  set.dirty_pct = 46.0;
  set.max_dirty_pct = 50.0;
  EXPECT_EQ(flush_dirty_threshold_pct(set), 45.0);
}

TEST(AheadFlush, DirtyPctOfZeroSwitchesTheDirtyRuleOff) {
  Flush_settings set = ON;
  set.dirty_pct = 0.0;
  EXPECT_EQ(decide_at(set, sample_at(0.0, 0.0, 99'999)).trigger,
            Flush_trigger::NONE);
}

TEST(AheadFlush, DirtyRuleRisesFromIoPctToIoCapacityMax) {
  /* At the threshold io_pct of innodb_io_capacity: 20 % * 1000 pages/s * 0.1 s
  = 20 pages. */
  const Flush_decision first = decide_at(ON, sample_at(0.0, 0.0, 81'001));
  EXPECT_EQ(first.trigger, Flush_trigger::DIRTY);
  EXPECT_EQ(first.n_pages, 20u);
  EXPECT_EQ(first.lsn_limit, UINT64_MAX);
  /* (85.5 - 81) / (90 - 81) = 0.5: 200 + 0.5 * (2000 - 200) = 1100 pages/s */
  EXPECT_EQ(decide_at(ON, sample_at(0.0, 0.0, 85'500)).n_pages, 110u);
  /* From 90 % on innodb_io_capacity_max: 2000 pages/s. */
  EXPECT_EQ(decide_at(ON, sample_at(0.0, 0.0, 90'000)).n_pages, 200u);
  EXPECT_EQ(decide_at(ON, sample_at(0.0, 0.0, 99'000)).n_pages, 200u);
}

TEST(AheadFlush, AdaptiveFlushingIsSpreadOverTheSecond) {
  Flush_sample sample = sample_at(0.0, 0.0);
  sample.adaptive_per_s = 500.0;
  const Flush_decision decision = decide_at(ON, sample);
  EXPECT_EQ(decision.trigger, Flush_trigger::ADAPTIVE);
  /* 500 pages/s * 0.1 s = 50 pages */
  EXPECT_EQ(decision.n_pages, 50u);
}

TEST(AheadFlush, AdaptiveFlushingIsScaledToDeviceCapacity) {
  Flush_sample sample = sample_at(0.0, 0.0);
  /* The device has 100 / 1000 = 0.1 of innodb_io_capacity: 0.1 * 300 = 30
  pages/s. */
  sample.device_per_s = 100.0;
  sample.adaptive_per_s = 300.0;
  EXPECT_EQ(decide_at(ON, sample).n_pages, 3u);
  /* 300 pages/s are above half of the limit: 0.5 * 100 = 50 pages/s. */
  sample.adaptive_scales_with_io_capacity = false;
  EXPECT_EQ(decide_at(ON, sample).n_pages, 5u);
}

TEST(AheadFlush, FlushesAtLeastIoCapacityWhileThreadsWaitForRedoSpace) {
  Flush_settings off = ON;
  off.is_on = false;
  Flush_sample sample = sample_at(0.0, 110.0);
  EXPECT_EQ(decide_at(off, sample).n_pages, 0u);
  /* innodb_io_capacity: 1000 pages/s * 0.1 s = 100 pages */
  sample.is_redo_space_awaited = true;
  EXPECT_EQ(decide_at(off, sample).n_pages, 100u);
  /* 1500 pages/s * 0.1 s = 150 pages */
  sample.adaptive_per_s = 1500.0;
  EXPECT_EQ(decide_at(off, sample).n_pages, 150u);
}

TEST(AheadFlush, DirtyRuleIsScaledToDeviceCapacity) {
  Flush_sample dirty = sample_at(0.0, 0.0, 81'001);
  dirty.device_per_s = 100.0;
  /* 100 / 1000 of 200 pages/s are 20 pages/s, measured or estimated. */
  EXPECT_EQ(decide_at(ON, dirty).n_pages, 2u);
  dirty.is_device_measured = false;
  EXPECT_EQ(decide_at(ON, dirty).n_pages, 2u);
}

TEST(AheadFlush, AdaptiveFlushingIsNotScaledToAnEstimate) {
  Flush_sample adaptive = sample_at(0.0, 0.0);
  adaptive.adaptive_per_s = 50.0;
  adaptive.device_per_s = 100.0;
  adaptive.is_device_measured = false;
  /* 50 pages/s, which are half of the limit. */
  EXPECT_EQ(decide_at(ON, adaptive).n_pages, 5u);
}

TEST(AheadFlush, PurgeRequestIsScaledToDeviceCapacity) {
  Flush_sample purge = sample_at(0.0, 0.0);
  purge.device_per_s = 100.0;
  purge.purge_per_s = purge_request_rate(ON, sample_at(0.0, 100.0));
  /* 100 / 1000 of 200 pages/s are 20 pages/s. */
  EXPECT_EQ(decide_at(ON, purge).n_pages, 2u);
}

TEST(AheadFlush, PurgeRequestIsCutToTheLimits) {
  Flush_sample sample = sample_at(0.0, 0.0);
  sample.purge_per_s = 300.0;
  EXPECT_EQ(decide_at(ON, sample).trigger, Flush_trigger::PURGE);
  /* 300 pages/s * 0.1 s = 30 pages */
  EXPECT_EQ(decide_at(ON, sample).n_pages, 30u);
  /* innodb_io_capacity_max, and then the device: 2000 and 700 pages/s */
  sample.purge_per_s = 1e9;
  EXPECT_EQ(decide_at(ON, sample).n_pages, 200u);
  sample.device_per_s = 700.0;
  EXPECT_EQ(decide_at(ON, sample).n_pages, 70u);
}

TEST(AheadFlush, PurgeRequestsTheRateOfTheDirtyRule) {
  /* At 90 % dirty pages innodb_io_capacity_max. */
  EXPECT_EQ(purge_request_rate(ON, sample_at(0.0, 0.0, 90'000)), 2000.0);
  /* Above the age threshold at least io_pct: 20 % * 1000 = 200 pages/s. */
  EXPECT_EQ(purge_request_rate(ON, sample_at(0.0, 100.0)), 200.0);
}

TEST(AheadFlush, UtilAddsToAdaptiveFlushingUpToTheLimit) {
  Flush_sample sample = sample_at(0.0, 0.0);
  sample.adaptive_per_s = 100.0;
  sample.util_per_s = 600.0;
  EXPECT_EQ(decide_at(ON, sample).trigger, Flush_trigger::UTIL);
  /* (100 + 600) pages/s * 0.1 s = 70 pages */
  EXPECT_EQ(decide_at(ON, sample).n_pages, 70u);
  sample.util_per_s = 1e9;
  EXPECT_EQ(decide_at(ON, sample).n_pages, 200u);
}

TEST(AheadFlush, FlushesAtTheLimitAtTheSetpoint) {
  /* The setpoint is 60 % + 0.75 * (100 % - 60 %) = 90 %. The limit is 2000
  pages/s, and 500 pages/s with the device. */
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

TEST(AheadFlush, AdaptiveFlushingDoesNotReplaceTheAgeRule) {
  Flush_sample sample = sample_at(0.0, 90.0);
  sample.adaptive_per_s = 1e6;
  sample.adaptive_scales_with_io_capacity = false;
  const Flush_decision decision = decide_at(ON, sample);
  EXPECT_EQ(decision.limit, Flush_limit::IO_CAPACITY_MAX);
  EXPECT_NE(decision.lsn_limit, UINT64_MAX);
  /* The limit: 2000 pages/s * 0.1 s = 200 pages */
  EXPECT_EQ(decision.n_pages, 200u);
}

TEST(AheadFlush, AgeRuleFollowsOldestPageAgeIfHistogramIsWrong) {
  /* In the histogram the 10,000 pages, which became dirty after the first
  sample, have an age of 0. No redo is generated. */
  Ahead_flush policy;
  (void)policy.decide(ON, sample_at(1.0, 0.0, 0));
  Flush_sample sample = sample_at(1.1, 90.0);
  /* The oldest page age is at the setpoint, 0.75 of the range from 60 to 100 %:
  the limit of 2000 pages/s. */
  EXPECT_EQ(policy.decide(ON, sample).n_pages, 200u);
  /* 90 - 100 / 20 = 85 % are (85 - 60) / 40 = 0.625 of the range, halfway
  between 0.5 and 0.75: half of the limit. */
  sample.now_s += 0.1;
  sample.oldest_lsn += sample.sync_age / 20;
  EXPECT_EQ(policy.decide(ON, sample).n_pages, 100u);
}

TEST(AheadFlush, RedoIsUnlimitedWithoutDirtyPages) {
  const Flush_decision decision = decide_at(ON, sample_at(0.0, 110.0, 0));
  EXPECT_EQ(decision.redo_bytes_per_s, FLUSH_UNLIMITED);
  EXPECT_EQ(decision.session_redo_bytes_per_s, FLUSH_UNLIMITED);
}

TEST(AheadFlush, LsnDisorderLowersTheLimitOnRedo) {
  Flush_sample sample = sample_at(0.0, 70.0);
  const double without_disorder = decide_at(ON, sample).redo_bytes_per_s;
  /* All pages count as older by 0.1 of the sync age: they have 0.9 of it left
  instead of 1. */
  sample.lsn_disorder = sample.sync_age / 10;
  EXPECT_NEAR(decide_at(ON, sample).redo_bytes_per_s, 0.9 * without_disorder,
              1.0);
}

TEST(AheadFlush, AgeRuleLeavesPagesBelowTheAgeThreshold) {
  Flush_sample sample = sample_at(0.0, 90.0);
  /* The threshold: 60 % of the sync age */
  EXPECT_EQ(decide_at(ON, sample).lsn_limit,
            sample.lsn - sample.sync_age * 60 / 100);
  /* A page's first change can be later than oldest_lsn by the disorder. */
  sample.lsn_disorder = 2'000'000;
  EXPECT_EQ(decide_at(ON, sample).lsn_limit,
            sample.lsn - sample.sync_age * 60 / 100 + sample.lsn_disorder);
  /* -60 % + 100 % would be beyond the end of the redo log. */
  sample.lsn_disorder = sample.sync_age;
  EXPECT_EQ(decide_at(ON, sample).lsn_limit, sample.lsn);
}

TEST(AheadFlush, PurgeRequestLeavesYoungPagesUnlessTooManyAreDirty) {
  Flush_sample sample = sample_at(0.0, 61.0);
  sample.purge_per_s = 1500.0;
  EXPECT_EQ(decide_at(ON, sample).trigger, Flush_trigger::PURGE);
  EXPECT_EQ(decide_at(ON, sample).lsn_limit,
            sample.lsn - sample.sync_age * 60 / 100);
  /* 81.001 % are above the dirty threshold of 81 %. */
  sample.n_dirty = 81'001;
  EXPECT_EQ(decide_at(ON, sample).trigger, Flush_trigger::PURGE);
  EXPECT_EQ(decide_at(ON, sample).lsn_limit, UINT64_MAX);
}

/** A steady state: 1 MB/s of redo is generated and reclaimed, with 200 dirty
pages for each MB (100 pages for each percent of the sync age of 50 MB).
@param[in]  age_pct       oldest page age: percent of the sync age
@param[in]  device_per_s  device write capacity: pages/s
@param[in]  charged_bytes_per_s  redo that sessions are charged: bytes/s
@return the last decision of ten minutes */
Flush_decision steady_state(double age_pct, double device_per_s = 200.0,
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

TEST(AheadFlush, RedoOfOtherThreadsIsSubtractedFromSessions) {
  /* Sessions were charged a part of the generated redo of 1 MB/s. The limit at
  the setpoint, 90 %, is the reclaim rate: 1 MB/s. */
  const auto session_limit = [](double charged_bytes_per_s, double age_pct) {
    return steady_state(age_pct, 200.0, charged_bytes_per_s)
        .session_redo_bytes_per_s;
  };
  /* Others generate 1 - 1 = 0, 1 - 0.8 = 0.2 and 1 - 0.6 = 0.4 MB/s: the limit
  less that. */
  EXPECT_NEAR(session_limit(1e6, 90.0), 1e6, 1e4);
  EXPECT_NEAR(session_limit(0.8e6, 90.0), 0.8e6, 1e4);
  EXPECT_NEAR(session_limit(0.6e6, 90.0), 0.6e6, 1e4);
  /* Others generate 1 - 0.3 = 0.7 MB/s. Sessions may generate as much, although
  1 - 0.7 = 0.3 MB/s are left, and 0 at the sync age. */
  EXPECT_NEAR(session_limit(0.3e6, 90.0), 0.7e6, 1e4);
  EXPECT_NEAR(session_limit(0.3e6, 100.0), 0.7e6, 1e4);
  EXPECT_EQ(session_limit(1e6, 100.0), 0.0);
  /* Sessions were charged more than is generated, for redo of before: 1 - 1.5
  counts as 0. */
  EXPECT_NEAR(session_limit(1.5e6, 90.0), 1e6, 1e4);
}

TEST(AheadFlush, DeviceWasTheLimitIfHalfOfThePagesWereFlushed) {
  Flush_decision decision{.n_pages = 50, .is_at_device = true};
  EXPECT_TRUE(flush_was_at_device(decision, 50));
  /* 50 / 2 = 25 */
  EXPECT_TRUE(flush_was_at_device(decision, 25));
  EXPECT_FALSE(flush_was_at_device(decision, 24));
  decision.is_at_device = false;
  EXPECT_FALSE(flush_was_at_device(decision, 50));
  /* No pages, as it is not time for a round. */
  decision = {.n_pages = 0, .is_at_device = true};
  EXPECT_FALSE(flush_was_at_device(decision, 0));
}

TEST(AheadFlush, RoundThatWaitedForWritesCatchesUpOnTwoIntervals) {
  Ahead_flush policy;
  Flush_sample sample = sample_at(1.0, 90.0);
  (void)policy.decide(ON, sample);
  /* No page is submitted while the last ones are being written. */
  sample.is_writing = true;
  for (int i = 1; i <= 30; ++i) {
    sample.now_s += 0.1;
    const Flush_decision decision = policy.decide(ON, sample);
    EXPECT_EQ(decision.n_pages, 0u);
    EXPECT_FALSE(decision.is_round);
    EXPECT_EQ(decision.limit, Flush_limit::IO_CAPACITY_MAX);
  }
  sample.now_s += 0.1;
  (void)policy.decide(ON, sample);
  sample.is_writing = false;
  sample.now_s += 0.01;
  const Flush_decision late = policy.decide(ON, sample);
  /* 3.11 s have passed. Two intervals count: 2000 pages/s * 2 * 0.1 s = 400. */
  EXPECT_EQ(late.n_pages,
            static_cast<uint64_t>(200 * FLUSH_CATCH_UP_INTERVALS));
  sample.now_s += 0.1;
  const Flush_decision next = policy.decide(ON, sample);
  /* 2000 pages/s * 0.1 s = 200 pages */
  EXPECT_NEAR(static_cast<double>(next.n_pages), 200.0, 1.0);
  EXPECT_EQ(next.next_tick_s, 0.1);
  sample.is_writing = true;
  EXPECT_LT(policy.decide(ON, sample).next_tick_s, 0.1);
}

TEST(AheadFlush, IntervalIsTenthOfTimeFromThresholdToSyncAge) {
  /* From the threshold to the sync age are 40 % of 50 MB = 20 MB. A tenth of
  their time is 0.1 * 20 / 19 = 0.105 s (at most the interval of 0.1 s),
  0.1 * 20 / 40 = 0.05 s, 0.1 * 20 / 100 = 0.02 s and 0.1 * 20 / 500 = 0.004 s
  (at least 0.01 s). */
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
  /* No redo is generated. */
  EXPECT_EQ(decide_at(ON, sample_at(0.0, 99.0)).next_tick_s, 0.1);
}

/** Ten seconds of samples, with 1,000 pages/s of adaptive flushing.
@param[in]  settings          the settings
@param[in]  fsyncs_per_round  fsync() calls of each round
@param[in]  sync_s            time of the syncs of each round: seconds
@return the last five rounds with pages: time in seconds, and pages */
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

TEST(AheadFlush, RoundWaitsForFivePagesForEachFsync) {
  Flush_settings set = ON;
  for (const auto &[n_fsyncs, n_pages] :
       {/* An interval has 1000 pages/s * 0.1 s = 100 pages. */
        std::pair{0u, 100.0},
        /* 20 * 5 = 100 */
        {20u, 100.0},
        /* 40 * 5 = 200 */
        {40u, 200.0},
        /* 80 * 5 = 400 */
        {80u, 400.0},
        /* 110 * 5 = 550: above those of 0.5 s, 1000 * 0.5 = 500. */
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
  /* The interval of the settings is the minimum: 1000 pages/s * 1 s. */
  set.interval_s = 1.0;
  EXPECT_EQ(rounds_of(set, 500).back().second, 1000u);
}

TEST(AheadFlush, RoundWaitsUntilSyncsTakeAFifthOfTheTime) {
  /* The pages for the fsync() calls, 9 * 5 = 45, are less than the 100 of an
  interval. */
  for (const auto &[sync_s, interval_s] : {std::pair{0.0, 0.1},
                                           /* 0.02 / 0.2 = 0.1 */
                                           {0.02, 0.1},
                                           /* 0.06 / 0.2 = 0.3 */
                                           {0.06, 0.3},
                                           /* 0.2 / 0.2 = 1: at most 0.5. */
                                           {0.2, 0.5}}) {
    const auto rounds = rounds_of(ON, 9, sync_s);
    for (size_t i = 1; i < rounds.size(); ++i) {
      EXPECT_NEAR(rounds[i].first - rounds[i - 1].first, interval_s, 1e-6)
          << sync_s;
    }
  }
}

/* A tenth of the time from the threshold to the sync age is 0.1 * 20 MB / 500
MB/s = 0.004 s, so that samples are 0.01 s apart, the minimum. */
TEST(AheadFlush, BatchesAreApartByTheIntervalOfTheDevice) {
  Ahead_flush policy;
  Flush_sample sample = sample_at(1.0, 90.0);
  sample.device_interval_s = 0.5;
  double last_s = 0.0;
  unsigned n_rounds = 0;
  while (sample.now_s < 10.0) {
    const Flush_decision decision = policy.decide(ON, sample);
    if (decision.n_pages != 0) {
      /* 0.5 s, rounded to an interval of 0.1 s: 0.5 - 0.1 / 2 = 0.45 s */
      EXPECT_TRUE(last_s == 0.0 || sample.now_s - last_s >= 0.45 - 1e-9);
      last_s = sample.now_s;
      ++n_rounds;
    }
    sample.now_s += decision.next_tick_s;
    sample.lsn += static_cast<uint64_t>(decision.next_tick_s * 500e6);
    sample.oldest_lsn += static_cast<uint64_t>(decision.next_tick_s * 500e6);
  }
  /* 9 s / 0.5 s = 18 rounds; 9 / 15 = 0.6 s apart are enough. */
  EXPECT_GE(n_rounds, 15u);
}

TEST(AheadFlush, ProbeIsOnePageOfEachInstanceBeforeTheRound) {
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
  /* The round has the pages of the time of the probe, too: 2000 pages/s *
  (0.1 + 0.01) s = 220 pages, rounded down to 8 instances. */
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

TEST(AheadFlush, RoundDoesNotWaitIfNoPagesAreToCome) {
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

TEST(AheadFlush, RoundDoesNotWaitIfRedoSpaceRunsOutSoon) {
  Ahead_flush policy;
  Flush_sample sample = sample_at(1.0, 90.0);
  for (int i = 0; i < 100; ++i) {
    const Flush_decision decision = policy.decide(ON, sample);
    /* 0.1 * 20 MB / 100 MB/s = 0.02 s: samples are more frequent than the
    interval of 0.1 s, and each is a round. The first 30 may wait, as redo
    generation is an average. */
    EXPECT_TRUE(decision.is_round || i < 30) << i;
    sample.now_s += decision.next_tick_s;
    sample.lsn += static_cast<uint64_t>(decision.next_tick_s * 100e6);
    sample.oldest_lsn += static_cast<uint64_t>(decision.next_tick_s * 100e6);
    sample.n_fsyncs += 100;
  }
}

TEST(AheadFlush, RoundCatchesUpOnASecondAfterOtherWork) {
  Ahead_flush policy;
  (void)policy.decide(ON, sample_at(1.0, 90.0));
  Flush_sample sample = sample_at(2.5, 90.0);
  sample.gap_cause = Gap_cause::OTHER_WORK;
  const Flush_decision decision = policy.decide(ON, sample);
  /* 1 of the 1.5 s that have passed */
  EXPECT_NEAR(static_cast<double>(decision.n_pages),
              2000.0 * FLUSH_CATCH_UP_AFTER_OTHER_WORK_S, 1.0);
}

TEST(AheadFlush, RoundDoesNotCatchUpAfterFlushingOfIdleServer) {
  Ahead_flush policy;
  (void)policy.decide(ON, sample_at(1.0, 90.0));
  Flush_sample sample = sample_at(2.5, 90.0);
  sample.gap_cause = Gap_cause::IDLE_FLUSH;
  const Flush_decision decision = policy.decide(ON, sample);
  /* 0.1 of the 1.5 s that have passed */
  EXPECT_NEAR(static_cast<double>(decision.n_pages), 2000.0 * ON.interval_s,
              1.0);
}

/* The arguments of flush_idle() after the settings: pages that are allowed,
dirty, and flushed by rounds; device write capacity in pages/s. */
TEST(AheadFlush, IdleServerFlushesUpToTheDeviceCapacity) {
  Flush_settings set = ON;
  set.io_capacity_max = 2000.0;
  set.is_limited_by_device = true;
  EXPECT_EQ(flush_idle(set, 1000, 5000, 0, 700.0).n_pages, 700);
  EXPECT_TRUE(flush_idle(set, 1000, 5000, 0, 700.0).is_at_device);
  /* The limit is 2000: the 1,000 that are allowed are less. */
  EXPECT_EQ(flush_idle(set, 1000, 5000, 0, 1e6).n_pages, 1000);
  EXPECT_FALSE(flush_idle(set, 1000, 5000, 0, 1e6).is_at_device);
  /* All dirty pages are flushed. */
  EXPECT_FALSE(flush_idle(set, 1000, 700, 0, 700.0).is_at_device);
}

TEST(AheadFlush, IdleServerFlushesWhatItsRoundsHaveLeft) {
  Flush_settings set = ON;
  set.io_capacity_max = 2000.0;
  set.is_limited_by_device = true;
  /* 700 - 300 */
  EXPECT_EQ(flush_idle(set, 1000, 5000, 300, 700.0).n_pages, 400);
  /* 700 - 800 is negative. */
  EXPECT_EQ(flush_idle(set, 1000, 5000, 800, 700.0).n_pages, 0);
  /* 2000 - 1500 */
  EXPECT_EQ(flush_idle(set, 1000, 5000, 1500, 1e6).n_pages, 500);
  set.is_limited_by_device = false;
  EXPECT_EQ(flush_idle(set, 1000, 5000, 1500, 700.0).n_pages, 500);
  EXPECT_FALSE(flush_idle(set, 1000, 5000, 1500, 700.0).is_at_device);
  /* With OFF all that are allowed, as in stock. */
  set.is_on = false;
  EXPECT_EQ(flush_idle(set, 3000, 5000, 1500, 700.0).n_pages, 3000);
}

TEST(AheadFlush, ShrinkingRedoLogAllowsHalfOfTheReclaimRate) {
  Flush_sample sample = sample_at(1.0, 100.0, 10'000);
  sample.device_per_s = 1000.0;
  Flush_settings set = ON;
  set.is_limited_by_device = true;
  /* The sync age has come down to the oldest page age: the write throttle would
  allow no redo. */
  EXPECT_EQ(decide_at(set, sample).redo_bytes_per_s, 0.0);
  sample.is_shrinking = true;
  /* 0.5 * 1000 pages/s * 50 MB / 10,000 pages = 2.5 MB/s */
  EXPECT_NEAR(decide_at(set, sample).redo_bytes_per_s,
              0.5 * 1000.0 * oldest_page_age(sample) / 10'000.0, 1.0);
  EXPECT_EQ(decide_at(set, sample).limit, Flush_limit::DEVICE);
}

TEST(AheadFlush, LsnLimitIsPositiveOnNewServer) {
  Flush_sample sample = sample_at(1.0, 10.0);
  sample.lsn = 1'000'000;
  sample.oldest_lsn = 1'000'000;
  sample.lsn_disorder = 1;
  sample.purge_per_s = 100.0;
  EXPECT_EQ(decide_at(ON, sample).trigger, Flush_trigger::PURGE);
  /* 1 MB - 60 % of 50 MB counts as 0; the disorder is 1. */
  EXPECT_EQ(decide_at(ON, sample).lsn_limit, 1);
}

/** @return the decision after ten seconds at an oldest page age of 95 % of the
sync age, where pages are flushed at the limit
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

TEST(AheadFlush, LruFlushingIsSubtractedFromIoCapacityMax) {
  /* (2000 - 500) pages/s * 0.1 s = 150 pages, (2000 - 1000) * 0.1 = 100; half
  of the limit remains in any case: 0.5 * 2000 * 0.1 = 100. */
  for (const auto &[lru_per_s, n_pages] :
       {std::pair{500.0, 150.0}, {1000.0, 100.0}, {5000.0, 100.0}}) {
    EXPECT_NEAR(static_cast<double>(
                    after_lru(FLUSH_UNLIMITED, lru_per_s, 10e3).n_pages),
                n_pages, 1.0)
        << lru_per_s;
  }
}

TEST(AheadFlush, LruFlushingIsSubtractedFromDeviceCapacity) {
  /* (1000 - 300) pages/s * 0.1 s = 70 pages */
  EXPECT_NEAR(static_cast<double>(after_lru(1000.0, 300.0, 1000.0).n_pages),
              70.0, 1.0);
}

TEST(AheadFlush, LruPagesThatAreNotWrittenAreNotSubtracted) {
  /* 5,000 frames/s of compressed pages are freed, and 100 pages/s are written:
  (1000 - 100) pages/s * 0.1 s = 90 pages. */
  EXPECT_NEAR(static_cast<double>(after_lru(1000.0, 5000.0, 100.0).n_pages),
              90.0, 1.0);
}

TEST(AheadFlush, EachInstanceFlushesTheSameNumberOfPages) {
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
  /* 33 pages/s * 1000 intervals * 0.1 s = 3300 pages; less than a page of each
  instance can be left over. */
  EXPECT_NEAR(static_cast<double>(n_pages), 3300.0, 8.0);
}

TEST(AheadFlush, NeverFlushesMoreThanIoCapacityMax) {
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
    /* Max pages of a round: it can wait for 0.5 s for the pages of its fsync()
    calls, and has at least one page of each instance. */
    const double n_round_max = std::max(
        set.io_capacity_max * std::max(set.interval_s, FLUSH_COALESCE_MAX_S),
        n_instances);
    /* With and without LATENCY, at a capacity above and below that. */
    set.is_limited_by_device = in(0.0, 1.0) < 0.5;
    Ahead_flush policy;
    double now_s = 5.0;
    double n_flushed = 0.0;
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
      sample.is_device_measured = in(0.0, 1.0) < 0.5;
      sample.n_written = n_written += static_cast<uint64_t>(in(0.0, 5000.0));
      sample.n_lru_flushed = n_lru_flushed +=
          static_cast<uint64_t>(in(0.0, 1.0) < 0.5 ? 0.0 : in(0.0, 500.0));
      const Flush_decision decision = policy.decide(set, sample);
      /* Max pages of a late round, which catches up. */
      const double n_late_max =
          std::max(FLUSH_CATCH_UP_INTERVALS * n_round_max,
                   (sample.gap_cause == Gap_cause::OTHER_WORK
                        ? FLUSH_CATCH_UP_AFTER_OTHER_WORK_S
                        : FLUSH_CATCH_UP_S) *
                       set.io_capacity_max);
      EXPECT_LE(static_cast<double>(decision.n_pages),
                n_late_max + n_instances);
      EXPECT_GE(decision.redo_bytes_per_s, 0.0);
      EXPECT_GE(decision.session_redo_bytes_per_s, 0.0);
      n_flushed += static_cast<double>(decision.n_pages);
    }
    EXPECT_LE(n_flushed, set.io_capacity_max * (now_s - 5.0) + n_instances);
  }
}

TEST(AheadFlush, RequestsCheckpointThatReclaimsTwoPctOfSyncAge) {
  Flush_sample sample = sample_at(0.0, 70.0);
  EXPECT_FALSE(decide_at(ON, sample).wants_checkpoint);
  /* It would reclaim 100 / 20 = 5 % of the sync age. */
  sample.checkpoint_lsn -= sample.sync_age / 20;
  EXPECT_TRUE(decide_at(ON, sample).wants_checkpoint);
}

TEST(AheadFlush, RequestsCheckpointIfCheckpointAgeIsAboveTheThreshold) {
  Flush_sample sample = sample_at(0.0, 50.0);
  /* The checkpoint age is 50 % + 5 % = 55 %, below the threshold of 60 %. */
  sample.checkpoint_lsn -= sample.sync_age / 20;
  EXPECT_FALSE(decide_at(ON, sample).wants_checkpoint);
  /* 55 % + 10 % = 65 %, while the oldest page age is 50 %. */
  sample.checkpoint_lsn -= sample.sync_age / 10;
  EXPECT_TRUE(decide_at(ON, sample).wants_checkpoint);
}

TEST(AheadFlush, CheckpointIsRequestedAgainAfterATenthOfASecond) {
  Ahead_flush policy;
  Flush_sample sample = sample_at(1.0, 70.0);
  sample.checkpoint_lsn -= sample.sync_age / 20;
  unsigned n_requests = 0;
  for (; sample.now_s < 2.0; sample.now_s += 0.02) {
    n_requests += policy.decide(ON, sample).wants_checkpoint ? 1 : 0;
  }
  /* 1 s / 0.1 s = 10 requests; 1 s / 0.12 s = 8 if each is a sample later. */
  EXPECT_GE(n_requests, 8u);
  EXPECT_LE(n_requests, 10u);
}

TEST(AheadFlush, AgeRuleFlushesPagesBeforeTheAgeTarget) {
  /* The threshold is 60 %, the target halfway to the sync age: 80 % or 40 MB.
  Redo generation is 1 MB/s. */
  EXPECT_EQ(steady_state(59.0, 1e9).n_pages, 0u);
  /* At 70 % there are 7,000 pages. The youngest reach the target in 40 s: 7000
  / 40 = 175 pages/s, 17.5 in 0.1 s. At 79 % 7900 / 40 = 197.5 pages/s. */
  EXPECT_NEAR(static_cast<double>(steady_state(70.0, 1e9).n_pages), 17.5, 1.0);
  EXPECT_NEAR(static_cast<double>(steady_state(79.0, 1e9).n_pages), 20.0, 1.0);
  EXPECT_EQ(steady_state(70.0, 1e9).trigger, Flush_trigger::AGE);
  /* Pages are above the target: the limit of 2000 pages/s. */
  EXPECT_EQ(steady_state(85.0, 1e9).limit, Flush_limit::IO_CAPACITY_MAX);
  EXPECT_NEAR(static_cast<double>(steady_state(85.0, 1e9).n_pages), 200.0, 1.0);
}

TEST(AheadFlush, DefaultIoCapacityMaxDoesNotLimitMeasuredDevice) {
  Flush_settings set = ON;
  set.io_capacity = FLUSH_DEFAULTS.io_capacity;
  set.io_capacity_max = FLUSH_DEFAULTS.io_capacity_max;
  const auto pages_at = [&set](double age_pct, double dirty_pct) {
    Flush_sample sample =
        sample_at(0.0, age_pct, static_cast<uint64_t>(1000.0 * dirty_pct));
    sample.device_per_s = 100e3;
    sample.is_device_measured = true;
    return decide_at(set, sample);
  };
  /* innodb_io_capacity_max: 20,000 pages/s * 0.1 s = 2000 pages */
  EXPECT_EQ(pages_at(99.0, 10.0).n_pages, 2'000u);
  EXPECT_FALSE(pages_at(99.0, 10.0).is_at_device);
  /* The device: 100,000 pages/s * 0.1 s = 10,000 pages */
  set.is_io_capacity_default = true;
  EXPECT_EQ(pages_at(99.0, 10.0).n_pages, 10'000u);
  EXPECT_TRUE(pages_at(99.0, 10.0).is_at_device);
  EXPECT_EQ(pages_at(99.0, 10.0).limit, Flush_limit::DEVICE);
  /* Below the age threshold innodb_io_capacity_max is the limit, here of the
  dirty rule. */
  EXPECT_EQ(pages_at(50.0, 90.0).n_pages, 2'000u);
  /* The device write capacity is not measured. */
  set.is_limited_by_device = false;
  EXPECT_EQ(pages_at(99.0, 10.0).n_pages, 2'000u);
}

/** @return the decision after ten seconds of redo generation at 12 MB/s, with
10,000 dirty pages, and an oldest page age of 30 % of the sync age */
Flush_decision after_fast_redo(const Flush_settings &settings,
                               bool is_device_measured = true) {
  Ahead_flush policy;
  Flush_decision decision{};
  for (int i = 0; i <= 100; ++i) {
    Flush_sample sample = sample_at(1.0 + 0.1 * i, 30.0);
    sample.lsn += static_cast<uint64_t>(12e6 * 0.1 * i);
    sample.oldest_lsn += static_cast<uint64_t>(12e6 * 0.1 * i);
    sample.checkpoint_lsn = sample.oldest_lsn;
    sample.n_written = static_cast<uint64_t>(2000 * 0.1 * i);
    sample.is_device_measured = is_device_measured;
    decision = policy.decide(settings, sample);
  }
  return decision;
}

TEST(AheadFlush, EarlyRuleFlushesWhatTheAgeRuleCouldNotFlushLater) {
  /* At the age target, 80 % or 40 MB, the age rule would flush 12 MB/s * 10,000
  pages / 40 MB = 3000 pages/s. The limit is 2000. */
  const Flush_decision decision = after_fast_redo(ON);
  EXPECT_EQ(decision.trigger, Flush_trigger::EARLY);
  /* Oldest page age over age target: 30 % / 80 % * 2000 = 750 pages/s */
  EXPECT_NEAR(static_cast<double>(decision.n_pages), 75.0, 1.0);
  EXPECT_TRUE(is_ahead_trigger(decision.trigger));
  /* All pages are younger than the threshold. */
  EXPECT_EQ(decision.lsn_limit, UINT64_MAX);
  /* No session is throttled yet. */
  EXPECT_EQ(decision.redo_bytes_per_s, FLUSH_UNLIMITED);
}

TEST(AheadFlush, EarlyRuleFlushesAtTheLimitUntilDeviceIsMeasured) {
  Flush_settings set = ON;
  /* 2000 pages/s * 0.1 s = 200 pages */
  EXPECT_EQ(after_fast_redo(set, false).n_pages, 200u);
  /* The device write capacity is not needed: 75 pages, as above. */
  set.is_limited_by_device = false;
  EXPECT_NEAR(static_cast<double>(after_fast_redo(set, false).n_pages), 75.0,
              1.0);
}

TEST(AheadFlush, EarlyRuleNeedsALowLimitAndAheadFlushing) {
  Flush_settings set = ON;
  set.is_limited_by_device = false;
  /* The age rule could flush the 3000 pages/s. */
  set.io_capacity_max = 4000.0;
  EXPECT_EQ(after_fast_redo(set).trigger, Flush_trigger::NONE);
  set = ON;
  set.is_on = false;
  EXPECT_EQ(after_fast_redo(set).trigger, Flush_trigger::NONE);
}

TEST(AheadFlush, UtilDoesNotFlushWithoutDirtyPages) {
  Flush_sample sample = sample_at(1.0, 0.0, 0);
  sample.util_per_s = 600.0;
  EXPECT_EQ(decide_at(ON, sample).trigger, Flush_trigger::NONE);
}

TEST(AheadFlush, RedoIsUnlimitedBelowTheAgeThreshold) {
  /* The threshold is 60 %. */
  EXPECT_EQ(steady_state(59.0).session_redo_bytes_per_s, FLUSH_UNLIMITED);
  EXPECT_EQ(steady_state(59.0).redo_bytes_per_s, FLUSH_UNLIMITED);
  EXPECT_LT(steady_state(61.0).session_redo_bytes_per_s, FLUSH_UNLIMITED);
}

TEST(AheadFlush, LimitOnRedoIsProportionalToDeviceCapacity) {
  /* 2000 / 200 = 10 */
  EXPECT_NEAR(steady_state(80.0, 2000.0).redo_bytes_per_s,
              10.0 * steady_state(80.0).redo_bytes_per_s, 1e3);
  /* A device without a limit counts as innodb_io_capacity_max, 2000 pages/s. */
  EXPECT_EQ(steady_state(80.0, FLUSH_UNLIMITED).redo_bytes_per_s,
            steady_state(80.0, 2000.0).redo_bytes_per_s);
}

TEST(AheadFlush, LimitOnRedoIsTheReclaimRateAtTheSetpoint) {
  /* The setpoint is 60 % + 0.75 * 40 % = 90 %. The device writes 200 pages/s,
  and 200 pages have 1 MB of redo: 1 MB/s. */
  const Flush_decision at_setpoint = steady_state(90.0);
  EXPECT_NEAR(at_setpoint.redo_bytes_per_s, 1e6, 1e4);
  /* The limit falls, and is 0 from the sync age on. */
  double last_bytes_per_s = FLUSH_UNLIMITED;
  for (const double age_pct : {61.0, 70.0, 80.0, 90.0, 95.0, 99.0}) {
    const double bytes_per_s = steady_state(age_pct).redo_bytes_per_s;
    EXPECT_LT(bytes_per_s, last_bytes_per_s) << age_pct;
    last_bytes_per_s = bytes_per_s;
  }
  EXPECT_EQ(steady_state(110.0).redo_bytes_per_s, 0.0);
  EXPECT_EQ(steady_state(130.0).redo_bytes_per_s, 0.0);
}

TEST(AheadFlush, MeasuredCapacityLimitsRedoIfItDoesNotLimitFlushing) {
  Flush_settings set = ON;
  set.is_limited_by_device = false;
  Flush_sample sample = sample_at(0.0, 90.0);
  sample.device_per_s = 100.0;
  const Flush_decision measured = decide_at(set, sample);
  EXPECT_EQ(measured.limit, Flush_limit::IO_CAPACITY_MAX);
  /* innodb_io_capacity_max: 2000 pages/s * 0.1 s = 200 pages */
  EXPECT_EQ(measured.n_pages, 200u);
  EXPECT_TRUE(measured.is_at_device);
  /* innodb_io_capacity_max instead of the device: 2000 / 100 = 20 times */
  sample.is_device_measured = false;
  EXPECT_NEAR(decide_at(set, sample).redo_bytes_per_s,
              20.0 * measured.redo_bytes_per_s, 1.0);
}

TEST(AheadFlush, RedoGeneratedWithoutALimitIsNotSubtracted) {
  Ahead_flush policy;
  Flush_decision decision{};
  /* Below the threshold of 60 %, for two minutes, no session is charged. */
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
  /* From then on there is a limit, and redo for which no session was charged
  counts as that of other threads. */
  EXPECT_LT(decision.session_redo_bytes_per_s, decision.redo_bytes_per_s);
}

/** @return the decision on an oldest page age of 30 % of the sync age
@param[in]  settings           the settings
@param[in]  adaptive_per_s     what adaptive flushing recommends: pages/s
@param[in]  redo_per_s         redo generation of the last 10 s: bytes/s
@param[in]  redo_before_per_s  redo generation of the 60 s before: bytes/s
@param[in]  committing         sessions that wait for commits at any time
@param[in]  group_ms           time of a group's syncs; there are 100 groups a
                               second: milliseconds */
Flush_decision after_adaptive(const Flush_settings &settings,
                              double adaptive_per_s, double redo_per_s,
                              double redo_before_per_s, uint64_t committing = 0,
                              double group_ms = 0.0) {
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
    sample.n_committing = committing;
    sample.n_groups = 10 * i;
    sample.group_s = 1e-3 * group_ms * static_cast<double>(sample.n_groups);
    decision = policy.decide(settings, sample);
  }
  return decision;
}

TEST(AheadFlush, CommitGroupsWaitForHalfOfTheSessionsThatWaitForCommits) {
  const auto group = [](const Flush_settings &settings, uint64_t committing,
                        double group_ms) {
    const Flush_decision decision =
        after_adaptive(settings, 0.0, 1e6, 1e6, committing, group_ms);
    return std::pair{decision.commit_group, decision.commit_group_wait_us};
  };
  const auto expect = [](std::pair<unsigned, long> is, unsigned n, long us) {
    EXPECT_EQ(is.first, n);
    EXPECT_NEAR(static_cast<double>(is.second), static_cast<double>(us), 2.0);
  };
  /* For as long as the syncs of a group take, 10 ms at most. */
  expect(group(ON, 21, 4.0), 10, 4000);
  expect(group(ON, 21, 40.0), 10, 10'000);
  /* Three sessions wait for no other, nor do any on a fast device. */
  expect(group(ON, 3, 4.0), 0, 0);
  expect(group(ON, 21, 0.9), 0, 0);
  Flush_settings set = ON;
  set.drain_s = 1.0;
  expect(group(set, 21, 4.0), 0, 0);
  set.is_on = false;
  expect(group(set, 21, 4.0), 0, 0);
}

TEST(AheadFlush, AdaptiveFlushingIsNotFollowedWhileCommitsKeepTheDeviceBusy) {
  EXPECT_EQ(after_adaptive(ON, 2000.0, 1e6, 1e6, 0).n_pages, 100u);
  EXPECT_EQ(after_adaptive(ON, 2000.0, 1e6, 1e6, 2).n_pages, 0u);
  /* In a pause it is, with too many dirty pages, and with OFF. */
  EXPECT_GE(after_adaptive(ON, 2000.0, 0.5e6, 1e6, 2).n_pages, 199u);
  Flush_settings set = ON;
  set.dirty_pct = 0.0;
  set.max_dirty_pct = 0.0;
  EXPECT_EQ(after_adaptive(set, 2000.0, 1e6, 1e6, 20).n_pages, 100u);
  set.is_on = false;
  EXPECT_EQ(after_adaptive(set, 2000.0, 1e6, 1e6, 20).n_pages, 200u);
}

TEST(AheadFlush, AdaptiveFlushingIsFollowedUpToHalfOfTheLimit) {
  EXPECT_EQ(after_adaptive(ON, 500.0, 1e6, 1e6).n_pages, 50u);
  /* 0.5 * 2000 pages/s * 0.1 s = 100 pages */
  EXPECT_EQ(after_adaptive(ON, 2000.0, 1e6, 1e6).n_pages, 100u);
  /* With OFF up to the limit. */
  Flush_settings set = ON;
  set.is_on = false;
  EXPECT_EQ(after_adaptive(set, 2000.0, 1e6, 1e6).n_pages, 200u);
}

TEST(AheadFlush, AdaptiveFlushingIsFollowedUpToTheLimitInAPause) {
  /* The maximum of redo generation decays for 10 s, to 1 MB/s * exp(-10 s / 60
  s) = 0.846 MB/s. A pause is below 0.7 of that: 0.58 / 0.846 = 0.69. */
  EXPECT_NEAR(
      static_cast<double>(after_adaptive(ON, 2000.0, 0.58e6, 1e6).n_pages),
      200.0, 1.0);
  /* 0.62 / 0.846 = 0.73 */
  EXPECT_EQ(after_adaptive(ON, 2000.0, 0.62e6, 1e6).n_pages, 100u);
}

TEST(AheadFlush, AdaptiveFlushingIsNotFollowedAboveTheAgeThreshold) {
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

TEST(AheadFlush, DrainReleasesSessionsGradually) {
  /* At the setpoint, 90 %, the limit is the reclaim rate. After t seconds the
  reclaim rate times 1.2^t - 1 is added. */
  const double limit =
      decide_at(ON, sample_at(0.0, 90.0)).session_redo_bytes_per_s;
  /* 1 + 1.2^0 - 1 = 1 */
  EXPECT_NEAR(draining(0.0, 90.0).session_redo_bytes_per_s, limit, 1.0);
  /* 1 + 1.2^5 - 1 = 2.488 */
  EXPECT_NEAR(draining(5.0, 90.0).session_redo_bytes_per_s, 2.488 * limit,
              0.001 * limit);
  /* 99.9 % are (99.9 - 60) / 40 = 0.9975 of the range, where the limit is
  sqrt((1 - 0.9975) / (1 - 0.75)) = 0.1: 0.1 + 1.2^5 - 1 = 1.59. */
  EXPECT_NEAR(draining(5.0, 99.9).session_redo_bytes_per_s, 1.55 * limit,
              0.1 * limit);
}

TEST(AheadFlush, DrainFlushesPagesOfAllAgesAtTheLimit) {
  EXPECT_EQ(draining(5.0, 50.0).trigger, Flush_trigger::DRAIN);
  /* 2000 pages/s * 0.1 s = 200 pages */
  EXPECT_EQ(draining(5.0, 50.0).n_pages, 200u);
  EXPECT_EQ(draining(5.0, 90.0).trigger, Flush_trigger::DRAIN);
  EXPECT_EQ(draining(5.0, 90.0).lsn_limit, UINT64_MAX);
}

TEST(AheadFlush, DrainUsesTheLastReclaimRateBeyondTheSyncAge) {
  Ahead_flush policy;
  Flush_settings set = ON;
  const double limit =
      policy.decide(set, sample_at(1.0, 90.0)).session_redo_bytes_per_s;
  Flush_sample sample = sample_at(1.1, 110.0);
  EXPECT_EQ(policy.decide(set, sample).session_redo_bytes_per_s, 0.0);
  set.drain_s = 5.0;
  sample.now_s = 1.2;
  /* 0 + 1.2^5 - 1 = 1.488 */
  EXPECT_NEAR(policy.decide(set, sample).session_redo_bytes_per_s,
              1.488 * limit, 0.001 * limit);
}

TEST(AheadFlush, DrainEndsWhenAdaptiveFlushingIsEnough) {
  /* It takes at least 2 s. */
  EXPECT_FALSE(draining(1.0, 50.0).is_drained);
  EXPECT_TRUE(draining(2.0, 50.0).is_drained);
  /* The limit is 2000 pages/s: adaptive flushing recommends more than that, and
  then as much. */
  EXPECT_FALSE(draining(2.0, 50.0, 2001.0).is_drained);
  EXPECT_TRUE(draining(2.0, 50.0, 2000.0).is_drained);
  /* It takes at most 60 s. */
  EXPECT_FALSE(draining(59.9, 50.0, 2001.0).is_drained);
  EXPECT_TRUE(draining(60.0, 50.0, 2001.0).is_drained);
  /* Ahead flushing was not switched off. */
  EXPECT_TRUE(decide_at(ON, sample_at(0.0, 90.0)).is_drained);
}

}  // namespace
}  // namespace spw
