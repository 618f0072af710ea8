/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file policy/redo0limits.h
Where the age of the last checkpoint makes InnoDB flush at any price, users wait
and the log writer wait. */

#ifndef redo0limits_h
#define redo0limits_h

#include <algorithm>
#include <cstdint>

namespace spw {

/** What InnoDB has computed from innodb_redo_log_capacity and the number of
threads; bytes of LSN. */
struct Redo_capacity {
  /** Log_files_capacity's adaptive_flush_max_age(), soft_logical_capacity() and
  hard_logical_capacity(). */
  uint64_t adaptive_flush_max_age;
  uint64_t soft_logical_capacity;
  uint64_t hard_logical_capacity;

  /** log_free_check_margin(): for mini-transactions under way. */
  uint64_t free_check_margin;
};

/** Ages of the last checkpoint; bytes of LSN. */
struct Redo_limits {
  /** Above it pages are flushed as fast as it goes. */
  uint64_t sync_age{0};

  /** Above it user threads wait. */
  uint64_t max_age{0};

  /** Above it the log writer does. */
  uint64_t hard_age{0};
};

/** @param[in]  capacity  what InnoDB has computed
@return the ages at which it acts: page cleaners and user threads take the
margin from theirs when they compare, the log writer does not. 0 where the
margin is all. (Upstream's log0chkp.cc and buf0flu.cc.) */
inline Redo_limits redo_limits(const Redo_capacity &capacity) {
  const auto less_margin = [&capacity](uint64_t age) {
    return age - std::min(age, capacity.free_check_margin);
  };
  return {.sync_age = less_margin(capacity.adaptive_flush_max_age),
          .max_age = less_margin(capacity.soft_logical_capacity),
          .hard_age = capacity.hard_logical_capacity};
}

/** @param[in]  part   a part
@param[in]  whole  what it is a part of
@return the part in percent, above 100 if it is larger; 0 if the whole is 0 */
inline double percent_of(uint64_t part, uint64_t whole) {
  return whole == 0
             ? 0.0
             : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace spw

#endif /* redo0limits_h */
