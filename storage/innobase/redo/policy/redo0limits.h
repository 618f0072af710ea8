/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file redo/policy/redo0limits.h
Limits on the checkpoint age: for sync flushing, for sessions and for the log
writer; and how they may fall when the redo log is resized down. */

#ifndef redo0limits_h
#define redo0limits_h

#include <algorithm>
#include <cstdint>

namespace spw {

/** What InnoDB has computed from innodb_redo_log_capacity and the number of
threads: bytes of LSN. */
struct Redo_capacity {
  /** Log_files_capacity's adaptive_flush_max_age(), soft_logical_capacity() and
  hard_logical_capacity(). */
  uint64_t adaptive_flush_max_age;
  uint64_t soft_logical_capacity;
  uint64_t hard_logical_capacity;

  /** log_free_check_margin(): for mini-transactions in progress. */
  uint64_t free_check_margin;
};

/** Limits on the checkpoint age: bytes of LSN. */
struct Redo_limits {
  /** Above it sync flushing is in progress. */
  uint64_t sync_age{0};

  /** Above it user threads wait. */
  uint64_t max_age{0};

  /** Above it the log writer waits. */
  uint64_t hard_age{0};
};

/** @param[in]  capacity  what InnoDB has computed
@return the limits in effect. Page cleaners and user threads subtract the margin
when they compare, the log writer does not. 0 if the margin is at least as
large. Source: InnoDB's log0chkp.cc and buf0flu.cc */
inline Redo_limits redo_limits(const Redo_capacity &capacity) {
  const auto less_margin = [&capacity](uint64_t age) {
    return age - std::min(age, capacity.free_check_margin);
  };
  return {.sync_age = less_margin(capacity.adaptive_flush_max_age),
          .max_age = less_margin(capacity.soft_logical_capacity),
          .hard_age = capacity.hard_logical_capacity};
}

/** Decide how far the log writer's limit on the checkpoint age is lowered at
once.

A thread that generates redo has checked that there is free space for what it
reserves in the log buffer. The page cleaners, which reclaim space, cannot flush
a page before its redo is written. Invariant: all redo that threads were
admitted with fits below the limit. Otherwise no thread could write, including
the page cleaners, and the server would hang. Two bounds hold for that redo.
What threads have reserved, and reserve without another check, ends at the
current LSN plus the margin. What they are admitted with while the new limit is
published ends at the soft capacity in force until now.

@param[in]  wanted          the new hard_logical_capacity
@param[in]  now             the capacity in force
@param[in]  checkpoint_age  up to the LSN that was reserved last
@return the hard_logical_capacity to be in force: wanted, or more, but at most
the present one unless more is wanted. A multiple of the block if the ages are
*/
inline uint64_t redo_lowered_capacity(uint64_t wanted, const Redo_capacity &now,
                                      uint64_t checkpoint_age) {
  const uint64_t reserved = checkpoint_age + now.free_check_margin;
  return std::max(wanted,
                  std::min(now.hard_logical_capacity,
                           std::max(now.soft_logical_capacity, reserved)));
}

}  // namespace spw

#endif /* redo0limits_h */
