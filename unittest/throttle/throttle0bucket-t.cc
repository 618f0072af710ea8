/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "throttle/policy/throttle0bucket.h"

#include <gtest/gtest.h>

#include <vector>

namespace spw {
namespace {

TEST(RedoTurn, TurnsAreTakenOneAfterTheOther) {
  int64_t next_ns = 0;
  for (int64_t i = 0; i < 100; ++i) {
    const Throttle_reservation reservation =
        throttle_reserve(next_ns, 5000, 0.3, 1'000'000, 1);
    EXPECT_EQ(reservation.next_ns, 5000 + 300 * (i + 1));
    next_ns = reservation.next_ns;
  }
}

TEST(RedoTurn, WhoWaitsGoesOnWithOthers) {
  const auto begin_ns = [](int64_t next_ns) {
    return throttle_reserve(next_ns, 5000, 1.0, 1'000'000, 1).begin_ns;
  };
  EXPECT_EQ(begin_ns(5000), 5000);
  EXPECT_EQ(begin_ns(THROTTLE_GROUP_NS - 1), 5000);
  EXPECT_EQ(begin_ns(THROTTLE_GROUP_NS), THROTTLE_GROUP_NS);
  EXPECT_EQ(begin_ns(2 * THROTTLE_GROUP_NS - 1), THROTTLE_GROUP_NS);
  EXPECT_EQ(begin_ns(2 * THROTTLE_GROUP_NS), 2 * THROTTLE_GROUP_NS);
}

TEST(RedoTurn, NobodyWaitsWhereLessIsFilledThanMayBe) {
  /* Eight changes each millisecond take half of it. */
  int64_t next_ns = 0;
  for (int64_t i = 0; i < 10'000; ++i) {
    const int64_t now_ns = 1'000'000 * (i / 8);
    const Throttle_reservation reservation =
        throttle_reserve(next_ns, now_ns, 62.5, 1'000'000, 1);
    EXPECT_EQ(reservation.begin_ns, now_ns);
    next_ns = reservation.next_ns;
  }
}

TEST(RedoTurn, WhoComesLateDoesNotMakeUpForIt) {
  const Throttle_reservation reservation =
      throttle_reserve(1000, 900'000, 30.0, 1'000'000, 1);
  EXPECT_EQ(reservation.begin_ns, 900'000);
  EXPECT_EQ(reservation.next_ns, 930'000);
}

TEST(RedoTurn, NobodyWaitsLongerThanTheMaximumForAChange) {
  constexpr int64_t MOST = THROTTLE_BATCH_CHANGES;
  int64_t next_ns = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    const Throttle_reservation one =
        throttle_reserve(next_ns, 0, 1e4, 10'000, 1);
    EXPECT_EQ(one.begin_ns, std::min<int64_t>(i, 1) * THROTTLE_GROUP_NS) << i;
    const Throttle_reservation all =
        throttle_reserve(next_ns, 0, 1e4, 10'000, THROTTLE_BATCH_CHANGES);
    EXPECT_EQ(all.begin_ns, std::min(i, MOST) * THROTTLE_GROUP_NS) << i;
    /* A reservation with fewer changes to wait for leaves the next one the
    same. */
    EXPECT_EQ(one.next_ns, all.next_ns);
    EXPECT_EQ(one.next_ns, (std::min(i, MOST) + 1) * THROTTLE_GROUP_NS) << i;
    next_ns = one.next_ns;
  }
}

TEST(RedoTurn, WhatIsOldHoldsWhereThereIsNoRoom) {
  EXPECT_TRUE(cost_is_current(THROTTLE_COST_EXPIRY_NS, 10, 100, 75.0));
  EXPECT_FALSE(cost_is_current(THROTTLE_COST_EXPIRY_NS + 1, 75, 100, 75.0));
  EXPECT_TRUE(cost_is_current(THROTTLE_COST_EXPIRY_NS + 1, 76, 100, 75.0));
  EXPECT_FALSE(cost_is_current(THROTTLE_COST_EXPIRY_NS + 1, 76, 0, 75.0));
}

TEST(RedoDebt, AStatementWaitsForTheChangeThatItMakesFirst) {
  Session_debt debt;
  EXPECT_EQ(debt.at_statement(), 1);
  EXPECT_FALSE(debt.at_row_change());
  EXPECT_EQ(debt.take_due(), 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(debt.at_row_change());
    EXPECT_EQ(debt.take_due(), 0);
  }
  EXPECT_EQ(debt.at_statement(), 4);
}

TEST(RedoDebt, AStatementThatChangesNothingWaitsOnce) {
  Session_debt debt;
  EXPECT_EQ(debt.at_statement(), 1);
  EXPECT_EQ(debt.at_statement(), 0);
  EXPECT_FALSE(debt.at_row_change());
  EXPECT_EQ(debt.at_statement(), 1);
}

TEST(RedoDebt, EachChangeIsWaitedForOnce) {
  /* Transactions of 0, 1, 2, ... changes; every third in a statement that was
  not delayed, as under LOCK TABLES. */
  Session_debt debt;
  uint64_t n_changes = 0;
  uint64_t n_waited = 0;
  for (uint64_t n = 0; n < 100; ++n) {
    if (n % 3 != 0) {
      const uint64_t waited = debt.at_statement();
      EXPECT_LE(waited, THROTTLE_BATCH_CHANGES);
      n_waited += waited;
    }
    for (uint64_t i = 0; i < n; ++i) {
      (void)debt.at_row_change();
      ++n_changes;
      const uint64_t due = debt.take_due();
      EXPECT_TRUE(due == 0 || due == THROTTLE_BATCH_CHANGES);
      n_waited += due;
    }
    EXPECT_LE(n_waited, n_changes + 1);
    EXPECT_LT(n_changes, n_waited + THROTTLE_BATCH_CHANGES);
  }
}

TEST(RedoTurn, WhatHasNotBegunGoesByWhatEachIsGivenNow) {
  EXPECT_EQ(rescale_reservation(9000, 1000, 10.0, 5.0), 5000);
  EXPECT_EQ(rescale_reservation(9000, 1000, 10.0, 20.0), 17'000);
  /* The limit is gone, or is new. */
  EXPECT_EQ(rescale_reservation(9000, 1000, 10.0, 0.0), 1000);
  EXPECT_EQ(rescale_reservation(9000, 1000, 0.0, 10.0), 9000);
  EXPECT_EQ(rescale_reservation(900, 1000, 10.0, 5.0), 900);
  EXPECT_GT(rescale_reservation(int64_t{1} << 60, 1000, 1e-9, 1e9),
            int64_t{1} << 59);
}

}  // namespace
}  // namespace spw
