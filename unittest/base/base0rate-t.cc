/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "base/base0rate.h"

#include <gtest/gtest.h>

namespace spw {
namespace {

TEST(Rate, PercentOfZeroIsZero) {
  EXPECT_EQ(percent_of(5, 0), 0.0);
  EXPECT_EQ(percent_of(0, 5), 0.0);
  EXPECT_EQ(percent_of(5, 5), 100.0);
  /* 100 * 3 / 2 */
  EXPECT_EQ(percent_of(3, 2), 150.0);
}

TEST(Rate, GrowthOfResetCounterIsZero) {
  /* 5 - 3 */
  EXPECT_EQ(counter_growth(3, 5), 2.0);
  EXPECT_EQ(counter_growth(5, 3), 0.0);
}

}  // namespace
}  // namespace spw
