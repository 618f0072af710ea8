/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file throttle/policy/throttle0bucket.h
A leaky bucket: sessions that change rows take turns, so that together they fill
the redo log no faster than they may. */

#ifndef throttle0bucket_h
#define throttle0bucket_h

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/base0rate.h"

namespace spw {

/** A change of a row. Nanoseconds of a clock that only goes forward. */
struct Redo_turn {
  /** When it may begin. */
  int64_t begin_ns;

  /** What is to be kept for the next one. */
  int64_t next_ns;
};

/** Those whose turns are in the same time of this length begin together, at its
begin: those of them who commit then share a write of the redo log, and who
comes while it lasts does not wait at all, so that nobody does where the redo
log is filled more slowly than it may be. On a volume of 1,500 I/Os a second,
with each going on by itself, 733 transactions a second took 558 fsync() of the
redo log and all I/Os, at half of the bytes; upstream's comb took a quarter of
that for each. (Simulated: 2 ms -1 %, 50 ms +3 %, with seconds of nothing on a
disk.) Nanoseconds. */
constexpr int64_t REDO_GROUP_NS = 10'000'000;

/** A transaction waits when its first statement begins that may change rows,
for what its session has changed since it waited last; and also in between,
after so many changes: few transactions of TPC-C change more rows. */
constexpr uint64_t REDO_TURN_CHANGES = 32;

/** Of innodb_ahead_flushing_max_delay_us: that of innodb_max_purge_lag_delay.
 */
constexpr unsigned long REDO_MOST_DELAY_US = 10'000'000;

/** What is decided longer ago, nanoseconds, is of another time: there is a
decision at least once a second (innodb_ahead_flushing_interval_ms), but where a
pass of the flusher takes longer, as those of sync flushing can. */
constexpr int64_t REDO_TURN_HOLDS_NS = 2'000'000'000;

/** @param[in]  since_ns        so long ago it was decided what each change is
given
@param[in]  checkpoint_age  bytes of LSN since the last checkpoint
@param[in]  sync_age        the age of sync flushing: bytes of LSN
@param[in]  age_pct         innodb_ahead_flushing_age_pct
@return whether that still holds. Beyond its time it does where the age is above
the threshold, as else all would go on at once and stop where redo space ends */
inline bool redo_turn_holds(int64_t since_ns, uint64_t checkpoint_age,
                            uint64_t sync_age, double age_pct) {
  return since_ns <= REDO_TURN_HOLDS_NS ||
         percent_of(checkpoint_age, sync_age) > age_pct;
}

/** What a session has changed and not waited for. A statement waits before it
has locked a row, and so for the change that it makes first, too: who needs the
same row would wait for its turn and then for another one's, and so on. One
thread uses it. */
class Redo_debt {
 public:
  /** A transaction that has changed nothing begins a statement that may.
  @return the changes that it waits for; 0 if it has waited, and changed nothing
  since */
  uint64_t begin() {
    return std::exchange(m_is_paid, true) ? 0 : std::exchange(m_n, 0) + 1;
  }

  /** A row is about to be changed.
  @return whether that takes a turn; if not, it was waited for */
  bool change() {
    if (std::exchange(m_is_paid, false)) {
      return false;
    }
    ++m_n;
    return true;
  }

  /** @return the changes that are waited for before the one that has taken a
  turn; 0 for none yet */
  uint64_t due() { return m_n < REDO_TURN_CHANGES ? 0 : std::exchange(m_n, 0); }

 private:
  /** Changes that have taken turns, and were not waited for: less than
  REDO_TURN_CHANGES between calls. */
  uint64_t m_n{0};

  /** The next change has been waited for. */
  bool m_is_paid{false};
};

/** @param[in]  turn_ns  when a turn begins
@param[in]  now_ns   now
@return when it begins with others */
inline int64_t redo_begin(int64_t turn_ns, int64_t now_ns) {
  return std::max(now_ns, turn_ns / REDO_GROUP_NS * REDO_GROUP_NS);
}

/** @param[in]  now_ns        when the wait begins
@param[in]  max_delay_us  for each change
@param[in]  n_changes     that are waited for at once
@return when it ends at the latest */
inline int64_t redo_latest(int64_t now_ns, int64_t max_delay_us,
                           uint64_t n_changes) {
  return now_ns + 1000 * max_delay_us * static_cast<int64_t>(n_changes);
}

/** Those who change rows take turns, so that together they fill the redo log no
faster than they may. (A leaky bucket, with room for REDO_GROUP_NS.)
@param[in]  next_ns       what the last turn has left
@param[in]  now_ns        now
@param[in]  turn_us       Flush_decision::turn_us, or max_delay_us if that is
less
@param[in]  max_delay_us  for each change nobody waits longer; the redo log is
filled faster where more have come than can wait so long
@param[in]  n_changes     that a thread waits for at once, the one that it is
about to make among them: 1 to REDO_TURN_CHANGES
@return the turn of the last of them */
inline Redo_turn redo_take_turn(int64_t next_ns, int64_t now_ns, double turn_us,
                                int64_t max_delay_us, uint64_t n_changes) {
  const int64_t turn_ns = std::clamp(
      next_ns, now_ns, redo_latest(now_ns, max_delay_us, REDO_TURN_CHANGES));
  const int64_t latest_ns = redo_latest(now_ns, max_delay_us, n_changes);
  return {turn_ns >= latest_ns ? latest_ns : redo_begin(turn_ns, now_ns),
          turn_ns + static_cast<int64_t>(1e3 * turn_us)};
}

/** What each change is given is another: those who have not begun wait so much
longer or shorter.
@param[in]  begin_ns     when one would begin, or the next one could
@param[in]  now_ns       now
@param[in]  old_turn_us  what each was given
@param[in]  turn_us      what each is given
@return when it begins now; now or before for at once */
inline int64_t redo_rescale(int64_t begin_ns, int64_t now_ns,
                            double old_turn_us, double turn_us) {
  constexpr double MOST_NS = 1e18;
  return old_turn_us <= 0.0 || begin_ns <= now_ns
             ? begin_ns
             : now_ns + static_cast<int64_t>(std::min(
                            MOST_NS, static_cast<double>(begin_ns - now_ns) *
                                         turn_us / old_turn_us));
}

/** A wait for a turn. It ends earlier or later than it was told at first, as
the limit is another by then. One thread uses it. */
class Redo_wait {
 public:
  /** @param[in]  now_ns     now
  @param[in]  begin_ns   when the turn begins
  @param[in]  turn_us    what each change was given when that was said
  @param[in]  n_changes  that are waited for */
  Redo_wait(int64_t now_ns, int64_t begin_ns, double turn_us,
            uint64_t n_changes)
      : m_start_ns(now_ns),
        m_begin_ns(begin_ns),
        m_turn_us(turn_us),
        m_n_changes(n_changes) {}

  /** @param[in]  now_ns        now
  @param[in]  turn_us       what each change is given; 0 if there is no limit
  @param[in]  max_delay_us  for each change nobody waits longer
  @return how long it lasts: nanoseconds; 0 if it is over */
  int64_t left_ns(int64_t now_ns, double turn_us, int64_t max_delay_us) {
    if (turn_us == 0.0) {
      return 0;
    }
    if (turn_us != m_turn_us) {
      m_begin_ns = redo_begin(
          redo_rescale(m_begin_ns, now_ns, m_turn_us, turn_us), now_ns);
      m_turn_us = turn_us;
    }
    const int64_t end_ns = std::min(
        m_begin_ns, redo_latest(m_start_ns, max_delay_us, m_n_changes));
    return std::max<int64_t>(0, end_ns - now_ns);
  }

 private:
  int64_t m_start_ns;
  int64_t m_begin_ns;
  double m_turn_us;
  uint64_t m_n_changes;
};

}  // namespace spw

#endif /* throttle0bucket_h */
