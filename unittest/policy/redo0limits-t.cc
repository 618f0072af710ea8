/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "policy/redo0limits.h"

#include <gtest/gtest.h>

namespace spw {
namespace {

TEST(RedoLimits, TheMarginIsTakenFromWhatIsComparedBeforeRedoIsWritten) {
  const Redo_limits limits = redo_limits({.adaptive_flush_max_age = 700,
                                          .soft_logical_capacity = 800,
                                          .hard_logical_capacity = 900,
                                          .free_check_margin = 100});
  EXPECT_EQ(limits.sync_age, 600u);
  EXPECT_EQ(limits.max_age, 700u);
  EXPECT_EQ(limits.hard_age, 900u);
}

TEST(RedoLimits, AMarginThatIsAllLeavesNothing) {
  for (const uint64_t margin : {uint64_t{700}, uint64_t{750}, UINT64_MAX}) {
    const Redo_limits limits = redo_limits({.adaptive_flush_max_age = 700,
                                            .soft_logical_capacity = 700,
                                            .hard_logical_capacity = 900,
                                            .free_check_margin = margin});
    EXPECT_EQ(limits.sync_age, 0u);
    EXPECT_EQ(limits.max_age, 0u);
    EXPECT_EQ(limits.hard_age, 900u);
  }
}

TEST(PercentOf, OfNothingIsNothing) {
  EXPECT_EQ(percent_of(5, 0), 0.0);
  EXPECT_EQ(percent_of(0, 5), 0.0);
  EXPECT_EQ(percent_of(5, 5), 100.0);
  EXPECT_EQ(percent_of(3, 2), 150.0);
}

}  // namespace
}  // namespace spw
