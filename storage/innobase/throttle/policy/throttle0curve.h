/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file throttle/policy/throttle0curve.h
The limit on redo generation, by the oldest page age. */

#ifndef throttle0curve_h
#define throttle0curve_h

#include <algorithm>
#include <cmath>

namespace spw {

/** The setpoint: the oldest page age while sessions are throttled, as a
fraction of the range from the age threshold (0) to the sync age (1). Source:
simulation of all devices except the disk, three working sets, redo logs of 64M
and 256M: 0.5 makes 2 % fewer transactions, 0.875 0.1 % fewer. */
constexpr double THROTTLE_SETPOINT = 0.75;

/** The limit on redo generation, over that at the setpoint.

  k                           (1) k(setpoint) = 1: redo is generated as fast as
  3 |    *                        it is reclaimed, where the dirty pages are
    |     *                       spread evenly over the ages
  2 |       *                 (2) k grows without bound towards 0: no step at
    |          *                  the threshold, and free space for a burst
  1 |- - - - - - - -*         (3) k(1) = 0: throttled sessions generate none at
    |               :  *          the sync age, as threads that are not
  0 +---------------+----*        throttled (purge) still do
    0           setpoint 1    (4) k never rises: negative feedback

  k = max(1, setpoint / x) below, sqrt((1 - x) / (1 - setpoint)) above

The shapes are chosen, not derived.
@param[in]  at  x: the oldest page age, as a fraction of the range from the age
                threshold (0, excluded) to the sync age (1); above 1 beyond
@return k */
inline double throttle_curve(double at) {
  const double left = std::max(0.0, 1.0 - at) / (1.0 - THROTTLE_SETPOINT);
  return left < 1.0 ? std::sqrt(left) : std::max(1.0, THROTTLE_SETPOINT / at);
}

}  // namespace spw

#endif /* throttle0curve_h */
