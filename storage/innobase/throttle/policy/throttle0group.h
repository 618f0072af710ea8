/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file throttle/policy/throttle0group.h
Commit groups: while sessions are delayed anyway, commits wait for each other,
so that more of them share a write and a flush of the redo log. */

#ifndef throttle0group_h
#define throttle0group_h

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>

namespace spw {

/** Longest time from the begin of a commit group to that of the next:
nanoseconds. */
constexpr int64_t COMMIT_GROUP_MAX_NS = 10'000'000;

/** A shorter interval is none: nanoseconds. The sleep costs more than a write
of the redo log is worth. */
constexpr int64_t COMMIT_GROUP_MIN_NS = 500'000;

/** The interval between commit groups doubles each second while at least one
session is delayed at any time, on average: then the device is what limits
transactions, and a commit that waits leaves the device to others. Else it is
halved each second, down to none.
@param[in]  interval_ns  interval until now: nanoseconds; 0 for none
@param[in]  n_delayed    sessions that were delayed, on average over elapsed_s
@param[in]  elapsed_s    time since the last decision: seconds
@return interval from now on: nanoseconds; 0 for none */
inline int64_t commit_group_interval_ns(int64_t interval_ns, double n_delayed,
                                        double elapsed_s) {
  const bool is_behind = n_delayed >= 1.0;
  const auto last = static_cast<double>(
      is_behind ? std::max(interval_ns, COMMIT_GROUP_MIN_NS) : interval_ns);
  const double next = last * std::exp2(is_behind ? elapsed_s : -elapsed_s);
  if (next < static_cast<double>(COMMIT_GROUP_MIN_NS)) {
    return 0;
  }
  return static_cast<int64_t>(
      std::min(next, static_cast<double>(COMMIT_GROUP_MAX_NS)));
}

/** Decides when a commit may go on. Any thread, no latch. The caller passes a
monotonic clock in nanoseconds. */
class Commit_groups {
 public:
  /** A commit goes on at once, and begins a group, if the last group began at
  least an interval ago. Else it waits, and calls this again then: the first one
  of its group begins it.
  @param[in]  now_ns       the current time
  @param[in]  interval_ns  commit_group_interval_ns()
  @return when the commit may go on, with all that wait for the same time */
  int64_t join(int64_t now_ns, int64_t interval_ns) {
    int64_t next_ns = m_next_ns.load(std::memory_order_relaxed);
    if (now_ns < next_ns) {
      return next_ns;
    }
    m_next_ns.compare_exchange_strong(next_ns, now_ns + interval_ns,
                                      std::memory_order_relaxed);
    return now_ns;
  }

 private:
  /** When the next group begins. */
  std::atomic<int64_t> m_next_ns{0};
};

}  // namespace spw

#endif /* throttle0group_h */
