/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file base/base0rate.h
Rates, means and fractions of counters. */

#ifndef base0rate_h
#define base0rate_h

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace spw {

/** @param[in]  from  a counter
@param[in]  to    the same, later
@return by how much it has grown; 0 if it began anew */
inline double counter_growth(uint64_t from, uint64_t to) {
  return static_cast<double>(to - std::min(from, to));
}

/** @param[in]  part   a part
@param[in]  whole  what it is a part of
@return the part in percent, above 100 if it is larger; 0 if the whole is 0 */
inline double percent_of(uint64_t part, uint64_t whole) {
  return whole == 0
             ? 0.0
             : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

/** @param[in]  passed_s  seconds since the last value
@param[in]  over_s    a mean is taken over about so long: seconds
@return by how much of the difference to this value it moves */
inline double weight_of(double passed_s, double over_s) {
  return 1.0 - std::exp(-passed_s / over_s);
}

}  // namespace spw

#endif /* base0rate_h */
