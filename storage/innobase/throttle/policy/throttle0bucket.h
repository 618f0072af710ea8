/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file throttle/policy/throttle0bucket.h
Leaky bucket of the write throttle: each row change reserves time, so that
together they generate redo no faster than the limit. */

#ifndef throttle0bucket_h
#define throttle0bucket_h

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/base0rate.h"

namespace spw {

/** Reservation of a row change. Nanoseconds of a monotonic clock. */
struct Throttle_reservation {
  /** When the change may begin. */
  int64_t begin_ns;

  /** Input of the next reservation. */
  int64_t next_ns;
};

/** Length of a group: nanoseconds. Reservations in the same group begin
together, at its start, so that their commits share redo writes. A session that
comes while its group lasts is not delayed: no session is while redo generation
is below the limit. Source: measured on a volume of 1,500 I/Os/s without groups:
733 transactions/s cost 558 fsync()/s of the redo log, and all I/Os at half of
the bytes; stock's sawtooth costs a quarter of that for each transaction.
Simulation: 2 ms -1 %, 50 ms +3 %, worst second 0 on a disk. */
constexpr int64_t THROTTLE_GROUP_NS = 10'000'000;

/** A session waits for its changes since the last wait before a transaction's
first statement that may change rows; and in between after this number of
changes. Few transactions of TPC-C change more rows. */
constexpr uint64_t THROTTLE_BATCH_CHANGES = 32;

/** Maximum of innodb_ahead_flushing_max_delay_us: that of
innodb_max_purge_lag_delay. */
constexpr unsigned long THROTTLE_DELAY_MAX_US = 10'000'000;

/** Age at which a decision expires: nanoseconds. There is a decision at least
each second (innodb_ahead_flushing_interval_ms), unless a pass of the page
cleaners takes longer, as in sync flushing. */
constexpr int64_t THROTTLE_COST_EXPIRY_NS = 2'000'000'000;

/** @param[in]  since_ns        time since the decision on the cost of a change
@param[in]  checkpoint_age  checkpoint age: bytes of LSN
@param[in]  sync_age        sync age: bytes of LSN
@param[in]  age_pct         innodb_ahead_flushing_age_pct
@return whether the decision holds. After its expiry it holds while the
checkpoint age is above the threshold: else all sessions would continue at once,
and stop where redo space runs out */
inline bool cost_is_current(int64_t since_ns, uint64_t checkpoint_age,
                            uint64_t sync_age, double age_pct) {
  return since_ns <= THROTTLE_COST_EXPIRY_NS ||
         percent_of(checkpoint_age, sync_age) > age_pct;
}

/** Changes of a session that it has not waited for. A statement waits before it
locks a row, and therefore also for its first change: with a row locked, each
session that needs the row would wait for this delay, then for the next
session's, and so on. Used by one thread. */
class Session_debt {
 public:
  /** A transaction without changes begins a statement that may change rows.
  @return changes to wait for; 0 if the session has waited, and changed nothing
  since */
  uint64_t at_statement() {
    return std::exchange(m_is_paid, true) ? 0 : std::exchange(m_n, 0) + 1;
  }

  /** A row is about to be changed.
  @return whether the change needs a reservation; if not, it was waited for */
  bool at_row_change() {
    if (std::exchange(m_is_paid, false)) {
      return false;
    }
    ++m_n;
    return true;
  }

  /** @return changes to wait for before the change that was reserved last; 0
  for none yet */
  uint64_t take_due() {
    return m_n < THROTTLE_BATCH_CHANGES ? 0 : std::exchange(m_n, 0);
  }

 private:
  /** Changes that were reserved, and not waited for. Invariant: less than
  THROTTLE_BATCH_CHANGES between calls. */
  uint64_t m_n{0};

  /** The session has waited for its next change. */
  bool m_is_paid{false};
};

/** @param[in]  slot_ns  start of a reservation
@param[in]  now_ns   the current time
@return when it begins together with its group */
inline int64_t align_to_group(int64_t slot_ns, int64_t now_ns) {
  return std::max(now_ns, slot_ns / THROTTLE_GROUP_NS * THROTTLE_GROUP_NS);
}

/** @param[in]  now_ns        start of the delay
@param[in]  max_delay_us  max delay for each change
@param[in]  n_changes     changes that are waited for at once
@return latest end of the delay */
inline int64_t delay_deadline_ns(int64_t now_ns, int64_t max_delay_us,
                                 uint64_t n_changes) {
  return now_ns + 1000 * max_delay_us * static_cast<int64_t>(n_changes);
}

/** Reserve time for a row change, in a leaky bucket with a burst of
THROTTLE_GROUP_NS.
@param[in]  next_ns         of the last reservation
@param[in]  now_ns          the current time
@param[in]  change_cost_us  Flush_decision::change_cost_us, at most max_delay_us
@param[in]  max_delay_us    max delay for each change. If more sessions come
                            than it can hold back, redo generation exceeds the
                            limit
@param[in]  n_changes       changes that a thread waits for at once, including
                            the next one: 1 to THROTTLE_BATCH_CHANGES
@return the reservation of the last of them */
inline Throttle_reservation throttle_reserve(int64_t next_ns, int64_t now_ns,
                                             double change_cost_us,
                                             int64_t max_delay_us,
                                             uint64_t n_changes) {
  const int64_t slot_ns = std::clamp(
      next_ns, now_ns,
      delay_deadline_ns(now_ns, max_delay_us, THROTTLE_BATCH_CHANGES));
  const int64_t latest_ns = delay_deadline_ns(now_ns, max_delay_us, n_changes);
  return {slot_ns >= latest_ns ? latest_ns : align_to_group(slot_ns, now_ns),
          slot_ns + static_cast<int64_t>(1e3 * change_cost_us)};
}

/** The time for each row change has changed: rescale a delay that is not over.
@param[in]  begin_ns            start of a reservation, or of the next one
@param[in]  now_ns              the current time
@param[in]  old_change_cost_us  time for each row change at the reservation
@param[in]  change_cost_us      time for each row change now
@return its new start; now or in the past for at once */
inline int64_t rescale_reservation(int64_t begin_ns, int64_t now_ns,
                                   double old_change_cost_us,
                                   double change_cost_us) {
  constexpr double MOST_NS = 1e18;
  return old_change_cost_us <= 0.0 || begin_ns <= now_ns
             ? begin_ns
             : now_ns + static_cast<int64_t>(std::min(
                            MOST_NS, static_cast<double>(begin_ns - now_ns) *
                                         change_cost_us / old_change_cost_us));
}

/** A delay until a reservation begins. It becomes shorter or longer with the
limit. Used by one thread. */
class Throttle_wait {
 public:
  /** @param[in]  now_ns          the current time
  @param[in]  begin_ns        start of the reservation
  @param[in]  change_cost_us  time for each row change at the reservation
  @param[in]  n_changes       changes that are waited for */
  Throttle_wait(int64_t now_ns, int64_t begin_ns, double change_cost_us,
                uint64_t n_changes)
      : m_start_ns(now_ns),
        m_begin_ns(begin_ns),
        m_change_cost_us(change_cost_us),
        m_n_changes(n_changes) {}

  /** @param[in]  now_ns          the current time
  @param[in]  change_cost_us  time for each row change; 0 without a limit
  @param[in]  max_delay_us    max delay for each change
  @return nanoseconds that remain; 0 if the delay is over */
  int64_t remaining_ns(int64_t now_ns, double change_cost_us,
                       int64_t max_delay_us) {
    if (change_cost_us == 0.0) {
      return 0;
    }
    if (change_cost_us != m_change_cost_us) {
      m_begin_ns =
          align_to_group(rescale_reservation(m_begin_ns, now_ns,
                                             m_change_cost_us, change_cost_us),
                         now_ns);
      m_change_cost_us = change_cost_us;
    }
    const int64_t end_ns = std::min(
        m_begin_ns, delay_deadline_ns(m_start_ns, max_delay_us, m_n_changes));
    return std::max<int64_t>(0, end_ns - now_ns);
  }

 private:
  int64_t m_start_ns;
  int64_t m_begin_ns;
  double m_change_cost_us;
  uint64_t m_n_changes;
};

}  // namespace spw

#endif /* throttle0bucket_h */
