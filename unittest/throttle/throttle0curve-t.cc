/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "throttle/policy/throttle0curve.h"

#include <gtest/gtest.h>

namespace spw {
namespace {

TEST(ThrottleCurve, IsOneAtTheSetpoint) {
  EXPECT_DOUBLE_EQ(throttle_curve(THROTTLE_SETPOINT), 1.0);
}

TEST(ThrottleCurve, GrowsWithoutBoundTowardsTheAgeThreshold) {
  /* 0.75 / 0.25 = 3 */
  EXPECT_DOUBLE_EQ(throttle_curve(0.25), 3.0);
  /* 0.75 / 0.001 = 750 */
  EXPECT_DOUBLE_EQ(throttle_curve(0.001), 750.0);
}

TEST(ThrottleCurve, IsZeroFromTheSyncAgeOn) {
  EXPECT_EQ(throttle_curve(1.0), 0.0);
  EXPECT_EQ(throttle_curve(1.5), 0.0);
}

TEST(ThrottleCurve, NeverRises) {
  for (int i = 1; i < 1000; ++i) {
    EXPECT_GE(throttle_curve(i / 1e3), throttle_curve((i + 1) / 1e3));
  }
}

TEST(ThrottleCurve, FallsAsARootAboveTheSetpoint) {
  /* sqrt((1 - 0.9375) / (1 - 0.75)) = sqrt(0.25) = 0.5 */
  EXPECT_DOUBLE_EQ(throttle_curve(0.9375), 0.5);
}

}  // namespace
}  // namespace spw
