/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file redo/policy/redo0limits.h
Where the age of the last checkpoint makes InnoDB flush at any price, users wait
and the log writer wait; and how these ages may fall when the redo log is made
smaller. */

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

/** How far the age above which the log writer waits may be lowered at once.

A thread that fills the redo log has seen that there is room for what it has
reserved in the log buffer, and the page cleaners, who make more room, cannot
flush a page before its redo is written. So what is let in has to fit: a limit
below it lets nobody write, the page cleaners included, and the server hangs.
Two things bound what is let in. What threads have reserved, and reserve without
another look, is no more than the LSN and the margin. What they are let in with
while the new limit is made known is no more than the soft capacity until now.

@param[in]  wanted  the new hard_logical_capacity
@param[in]  now     what is in force
@param[in]  age     of the last checkpoint, to the LSN that is reserved last
@return the hard_logical_capacity to be in force: what is wanted, or more, but
never more than now unless that is wanted. A multiple of the block if the ages
are. */
inline uint64_t redo_lowered_capacity(uint64_t wanted, const Redo_capacity &now,
                                      uint64_t age) {
  const uint64_t reserved = age + now.free_check_margin;
  return std::max(wanted,
                  std::min(now.hard_logical_capacity,
                           std::max(now.soft_logical_capacity, reserved)));
}

}  // namespace spw

#endif /* redo0limits_h */
