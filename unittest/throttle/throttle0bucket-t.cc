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
    const Redo_turn turn = redo_take_turn(next_ns, 5000, 0.3, 1'000'000, 1);
    EXPECT_EQ(turn.next_ns, 5000 + 300 * (i + 1));
    next_ns = turn.next_ns;
  }
}

TEST(RedoTurn, WhoWaitsGoesOnWithOthers) {
  const auto begin_ns = [](int64_t next_ns) {
    return redo_take_turn(next_ns, 5000, 1.0, 1'000'000, 1).begin_ns;
  };
  EXPECT_EQ(begin_ns(5000), 5000);
  EXPECT_EQ(begin_ns(REDO_GROUP_NS - 1), 5000);
  EXPECT_EQ(begin_ns(REDO_GROUP_NS), REDO_GROUP_NS);
  EXPECT_EQ(begin_ns(2 * REDO_GROUP_NS - 1), REDO_GROUP_NS);
  EXPECT_EQ(begin_ns(2 * REDO_GROUP_NS), 2 * REDO_GROUP_NS);
}

TEST(RedoTurn, NobodyWaitsWhereLessIsFilledThanMayBe) {
  /* Eight at a time, each millisecond; they may take half of it. */
  int64_t next_ns = 0;
  for (int64_t i = 0; i < 10'000; ++i) {
    const int64_t now_ns = 1'000'000 * (i / 8);
    const Redo_turn turn = redo_take_turn(next_ns, now_ns, 62.5, 1'000'000, 1);
    EXPECT_EQ(turn.begin_ns, now_ns);
    next_ns = turn.next_ns;
  }
}

TEST(RedoTurn, WhoComesLateDoesNotMakeUpForIt) {
  const Redo_turn turn = redo_take_turn(1000, 900'000, 30.0, 1'000'000, 1);
  EXPECT_EQ(turn.begin_ns, 900'000);
  EXPECT_EQ(turn.next_ns, 930'000);
}

TEST(RedoTurn, NobodyWaitsLongerThanTheMaximumForAChange) {
  constexpr int64_t MOST = REDO_TURN_CHANGES;
  int64_t next_ns = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    const Redo_turn one = redo_take_turn(next_ns, 0, 1e4, 10'000, 1);
    EXPECT_EQ(one.begin_ns, std::min<int64_t>(i, 1) * REDO_GROUP_NS) << i;
    const Redo_turn all =
        redo_take_turn(next_ns, 0, 1e4, 10'000, REDO_TURN_CHANGES);
    EXPECT_EQ(all.begin_ns, std::min(i, MOST) * REDO_GROUP_NS) << i;
    /* Who waits for less does not forget what others have to wait for. */
    EXPECT_EQ(one.next_ns, all.next_ns);
    EXPECT_EQ(one.next_ns, (std::min(i, MOST) + 1) * REDO_GROUP_NS) << i;
    next_ns = one.next_ns;
  }
}

TEST(RedoTurn, WhatIsOldHoldsWhereThereIsNoRoom) {
  EXPECT_TRUE(redo_turn_holds(REDO_TURN_HOLDS_NS, 10, 100, 75.0));
  EXPECT_FALSE(redo_turn_holds(REDO_TURN_HOLDS_NS + 1, 75, 100, 75.0));
  EXPECT_TRUE(redo_turn_holds(REDO_TURN_HOLDS_NS + 1, 76, 100, 75.0));
  EXPECT_FALSE(redo_turn_holds(REDO_TURN_HOLDS_NS + 1, 76, 0, 75.0));
}

TEST(RedoDebt, AStatementWaitsForTheChangeThatItMakesFirst) {
  Redo_debt debt;
  EXPECT_EQ(debt.begin(), 1);
  EXPECT_FALSE(debt.change());
  EXPECT_EQ(debt.due(), 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(debt.change());
    EXPECT_EQ(debt.due(), 0);
  }
  EXPECT_EQ(debt.begin(), 4);
}

TEST(RedoDebt, AStatementThatChangesNothingWaitsOnce) {
  Redo_debt debt;
  EXPECT_EQ(debt.begin(), 1);
  EXPECT_EQ(debt.begin(), 0);
  EXPECT_FALSE(debt.change());
  EXPECT_EQ(debt.begin(), 1);
}

TEST(RedoDebt, EachChangeIsWaitedForOnce) {
  /* Transactions of 0, 1, 2, ... changes; every third in a statement that did
  not wait, as under LOCK TABLES. */
  Redo_debt debt;
  uint64_t n_changes = 0;
  uint64_t n_waited = 0;
  for (uint64_t n = 0; n < 100; ++n) {
    if (n % 3 != 0) {
      const uint64_t waited = debt.begin();
      EXPECT_LE(waited, REDO_TURN_CHANGES);
      n_waited += waited;
    }
    for (uint64_t i = 0; i < n; ++i) {
      (void)debt.change();
      ++n_changes;
      const uint64_t due = debt.due();
      EXPECT_TRUE(due == 0 || due == REDO_TURN_CHANGES);
      n_waited += due;
    }
    EXPECT_LE(n_waited, n_changes + 1);
    EXPECT_LT(n_changes, n_waited + REDO_TURN_CHANGES);
  }
}

TEST(RedoTurn, WhatHasNotBegunGoesByWhatEachIsGivenNow) {
  EXPECT_EQ(redo_rescale(9000, 1000, 10.0, 5.0), 5000);
  EXPECT_EQ(redo_rescale(9000, 1000, 10.0, 20.0), 17'000);
  /* No limit any more, or not before. */
  EXPECT_EQ(redo_rescale(9000, 1000, 10.0, 0.0), 1000);
  EXPECT_EQ(redo_rescale(9000, 1000, 0.0, 10.0), 9000);
  EXPECT_EQ(redo_rescale(900, 1000, 10.0, 5.0), 900);
  EXPECT_GT(redo_rescale(int64_t{1} << 60, 1000, 1e-9, 1e9), int64_t{1} << 59);
}

}  // namespace
}  // namespace spw
