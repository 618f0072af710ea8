/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "flush/policy/flush0method.h"

#include <gtest/gtest.h>

namespace spw {
namespace {

/** Sync age: bytes of LSN. */
constexpr uint64_t SYNC_AGE = 40'000'000;

/** A steady load on 4,000 dirty pages: each second 1 MB of redo is generated,
and 100 pages become dirty and are flushed.
@param[in]  seconds       duration
@param[in]  method        the method
@param[in]  age_fraction  oldest page age over the sync age
@param[in]  n_adaptive    pages/s that InnoDB's formula recommends
@param[in]  dirty_pct     dirty pages: percent
@return pages/s to flush at the end */
double rate_after(uint64_t seconds, Flush_method method, double age_fraction,
                  uint64_t n_adaptive, double dirty_pct = 0.0) {
  Adaptive_method policy;
  double pages_per_s = 0.0;
  for (uint64_t i = 1; i <= seconds; ++i) {
    const uint64_t lsn = 1'000'000'000 + i * 1'000'000;
    policy.add_sample(
        method,
        {.now_s = static_cast<double>(i),
         .n_adaptive = n_adaptive,
         .n_dirty = 4000,
         .lsn = lsn,
         .oldest_lsn = lsn - static_cast<uint64_t>(age_fraction * SYNC_AGE),
         .sync_age = SYNC_AGE,
         .n_flushed = 100 * i,
         .dirty_pct = dirty_pct,
         .max_dirty_pct = 90.0,
         .is_ahead_on = true,
         .is_adaptive = true,
         .is_logging = true});
    pages_per_s = policy.pages_per_s(static_cast<double>(i));
  }
  return pages_per_s;
}

TEST(AdaptiveMethod, NativeIsInnoDbsFormula) {
  for (const uint64_t n_adaptive : {0, 1, 123456}) {
    EXPECT_EQ(rate_after(600, Flush_method::NATIVE, 0.7, n_adaptive),
              n_adaptive);
  }
}

TEST(AdaptiveMethod, AheadFlushingReplacesInnoDbsFormulaIfAdaptiveIsOff) {
  Adaptive_method policy;
  Flush_method_sample sample{.now_s = 1.0,
                             .n_adaptive = 500,
                             .n_dirty = 4000,
                             .lsn = 1'000'000'000,
                             .oldest_lsn = 990'000'000,
                             .sync_age = SYNC_AGE,
                             .n_flushed = 0,
                             .dirty_pct = 89.0,
                             .max_dirty_pct = 90.0,
                             .is_ahead_on = true,
                             .is_adaptive = false,
                             .is_logging = true};
  policy.add_sample(Flush_method::NATIVE, sample);
  EXPECT_EQ(policy.pages_per_s(1.0), 0.0);
  /* At innodb_max_dirty_pages_pct the formula counts. */
  sample.dirty_pct = 90.0;
  policy.add_sample(Flush_method::NATIVE, sample);
  EXPECT_EQ(policy.pages_per_s(1.0), 500.0);
  /* Ahead flushing is off. */
  sample.dirty_pct = 89.0;
  sample.is_ahead_on = false;
  EXPECT_FALSE(flush_is_left_to_ahead(sample));
  /* Redo logging is disabled. */
  sample.is_ahead_on = true;
  sample.is_logging = false;
  EXPECT_FALSE(flush_is_left_to_ahead(sample));
}

TEST(AdaptiveMethod, NativeWithoutAdaptiveFlushingOrRedoLogging) {
  constexpr Flush_method METHOD = Flush_method::ESTIMATE;
  EXPECT_EQ(flush_method_used(METHOD, true, true), METHOD);
  EXPECT_EQ(flush_method_used(METHOD, false, true), Flush_method::NATIVE);
  EXPECT_EQ(flush_method_used(METHOD, true, false), Flush_method::NATIVE);
}

TEST(AdaptiveMethod, EstimateReclaimsGeneratedRedoAboveQuarterOfSyncAge) {
  EXPECT_EQ(rate_after(600, Flush_method::ESTIMATE, 0.25, 500), 0.0);
  /* 4,000 pages belong to 0.5 * 40 MB = 20 MB of redo: 4000 / 20 MB * 1 MB/s =
  200 pages/s. */
  EXPECT_NEAR(rate_after(600, Flush_method::ESTIMATE, 0.5, 500), 200.0, 0.1);
}

TEST(AdaptiveMethod, KeepAverageFlushesWhatBecomesDirtyAtHalfOfSyncAge) {
  /* 100 pages/s become dirty: 100 * 0.5 / 0.5 = 100 pages/s. */
  EXPECT_NEAR(rate_after(600, Flush_method::KEEP_AVERAGE, 0.5, 500), 100.0,
              0.1);
  /* 100 * 0.25 / 0.5 = 50 pages/s */
  EXPECT_NEAR(rate_after(600, Flush_method::KEEP_AVERAGE, 0.25, 500), 50.0,
              0.1);
  /* 100 * 0.75 / 0.5 = 150 pages/s */
  EXPECT_NEAR(rate_after(600, Flush_method::KEEP_AVERAGE, 0.75, 500), 150.0,
              0.1);
}

TEST(AdaptiveMethod, KeepAverageSmoothsBursts) {
  Adaptive_method policy;
  double last_per_s = 0.0;
  for (uint64_t i = 1; i <= 600; ++i) {
    /* 1,000 pages in one second, none in the next nine. */
    policy.add_sample(Flush_method::KEEP_AVERAGE,
                      {.now_s = static_cast<double>(i),
                       .n_adaptive = 0,
                       .n_dirty = 4000,
                       .lsn = 1'000'000'000,
                       .oldest_lsn = 1'000'000'000 - SYNC_AGE / 2,
                       .sync_age = SYNC_AGE,
                       .n_flushed = i / 10 * 1000,
                       .dirty_pct = 0.0,
                       .max_dirty_pct = 90.0,
                       .is_ahead_on = true,
                       .is_adaptive = true,
                       .is_logging = true});
    const double pages_per_s = policy.pages_per_s(static_cast<double>(i));
    if (i > 300) {
      /* A second has 1/30 of the average: (1000 - 100) / 30 = 30 pages/s more.
      The mean is 1000 / 10 s = 100 pages/s. */
      EXPECT_NEAR(pages_per_s, last_per_s, 40.0);
      EXPECT_NEAR(pages_per_s, 100.0, 40.0);
    }
    last_per_s = pages_per_s;
  }
}

TEST(AdaptiveMethod, RecommendationExpiresTwoSecondsAfterItsPass) {
  Adaptive_method policy;
  EXPECT_EQ(policy.pages_per_s(1000.0), 0.0);
  policy.add_sample(Flush_method::NATIVE,
                    {.now_s = 1000.0,
                     .n_adaptive = 500,
                     .n_dirty = 4000,
                     .lsn = 1'000'000'000,
                     .oldest_lsn = 1'000'000'000 - SYNC_AGE / 2,
                     .sync_age = SYNC_AGE,
                     .n_flushed = 0,
                     .dirty_pct = 0.0,
                     .max_dirty_pct = 90.0,
                     .is_ahead_on = true,
                     .is_adaptive = true,
                     .is_logging = true});
  /* 1000 + 2 = 1002 s */
  EXPECT_EQ(policy.pages_per_s(1001.9), 500.0);
  EXPECT_EQ(policy.pages_per_s(1002.0), 0.0);
  /* The pass took 3 s: 1003 + 2 = 1005 s. */
  policy.pass_done(1003.0);
  EXPECT_EQ(policy.pages_per_s(1004.9), 500.0);
  EXPECT_EQ(policy.pages_per_s(1005.0), 0.0);
}

TEST(AdaptiveMethod, AveragesAreRightAfterThreeSamples) {
  /* 200 and 100 pages/s, as after 600 s. */
  EXPECT_NEAR(rate_after(3, Flush_method::ESTIMATE, 0.5, 500), 200.0, 0.1);
  EXPECT_NEAR(rate_after(3, Flush_method::KEEP_AVERAGE, 0.5, 500), 100.0, 0.1);
}

TEST(AdaptiveMethod, InnoDbsFormulaIsMinimumAtMaxDirtyPagesPct) {
  /* max(0, 500) and max(100, 500) */
  EXPECT_NEAR(rate_after(600, Flush_method::ESTIMATE, 0.1, 500, 90.0), 500.0,
              0.1);
  EXPECT_NEAR(rate_after(600, Flush_method::KEEP_AVERAGE, 0.5, 500, 90.0),
              500.0, 0.1);
}

}  // namespace
}  // namespace spw
