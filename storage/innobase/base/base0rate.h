/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file base/base0rate.h
Growth of counters, percentages, and weights of moving averages. */

#ifndef base0rate_h
#define base0rate_h

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace spw {

/** @param[in]  from  value of a counter
@param[in]  to    its value later
@return growth of the counter; 0 if it was reset */
inline double counter_growth(uint64_t from, uint64_t to) {
  return static_cast<double>(to - std::min(from, to));
}

/** @param[in]  part   a part
@param[in]  whole  the whole
@return the part in percent of the whole, above 100 if it is larger; 0 if the
whole is 0 */
inline double percent_of(uint64_t part, uint64_t whole) {
  return whole == 0
             ? 0.0
             : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

/** @param[in]  passed_s  seconds since the last value
@param[in]  over_s    time constant of a mean: seconds
@return fraction of the difference by which the mean moves to the new value */
inline double weight_of(double passed_s, double over_s) {
  return 1.0 - std::exp(-passed_s / over_s);
}

}  // namespace spw

#endif /* base0rate_h */
