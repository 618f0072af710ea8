/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/policy/flush0capacity.h
How many pages a second the device carries, learned from what it does. */

#ifndef flush0capacity_h
#define flush0capacity_h

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/base0rate.h"

namespace spw {

/** What may be flushed grows while writes take less than the first part of the
time, and is what was written last where they take more than the second: in the
rest of the time the redo log is written without a page ahead of it. Measured on
a volume of 30 MB a second: at what it carries and above it the worst second was
at 0.37 to 0.56 of the mean, at 0.92 of it at 0.85. */
constexpr double FLUSH_GROW_SHARE = 0.85;
constexpr double FLUSH_SHRINK_SHARE = 0.95;

/** It is also what was written last where rounds of as much as may be flushed
are late for more than this part of the time. A volume with a budget takes
writes at once until that is spent, so that there is no other sign. (Simulated:
from 0.02 to 0.1 it makes no difference.) */
constexpr double FLUSH_LOST_SHARE = 0.05;

/** If more might have been flushed than there was, what was written is what is
carried only where it was this part of that. Of fewer pages it is what does not
depend on their number that takes the time, such as the doublewrite buffer's
fsync(); then all that is known is that so many times as much is too much.
(Simulated: from 0.1 to 0.5 it makes no difference to a steady load.) */
constexpr double FLUSH_TELLING_SHARE = 0.25;

/** What may be flushed grows only where this part of it was written: in a time
in which there was more to flush only now and then, that writes took little of
it says nothing (as TCP's window does not grow where it is not used, RFC 7661).
Measured: with half 2,000 pages a second were thought to be carried where 740
were written at 30 MB a second. */
constexpr double FLUSH_USED_SHARE = 0.75;

/** What was written last is seen over so long: seconds. (Simulated: from
0.5 to 2 s within 1 %.) */
constexpr double FLUSH_WINDOW_S = 1.0;

/** In each such time what may be flushed grows to this factor of what was
written, to so much more each time, up to the last factor, with which it begins
(TCP's slow start doubles, too, RFC 5681; and its CUBIC grows the faster the
longer nothing was lost, RFC 9438): so that what a pause of the server or of the
device has brought down does not stay for long. Beyond the first factor only as
far as writes would take FLUSH_GROW_SHARE of the time. (Measured at 12 MB a
second, where 300 and 310 pages were written: 390 and 430 were thought to be
carried, without that, and growing from what might have been written, 450 and
up to 530.) Where it was too much it is at most halved.
(Simulated: from 0 to 0.1 more makes no difference where all is steady; a device
that is ten times as fast again is used after 8 s, with 0.05 more after 10, with
0 not within a minute.) */
constexpr double FLUSH_GROWTH = 1.05;
constexpr double FLUSH_GROWTH_STEP = 0.1;
constexpr double FLUSH_MOST_GROWTH = 2.0;

/** What may be flushed at first, and at the least: pages a second. Any
solid-state disk carries the one, any disk the other. */
constexpr double FLUSH_FIRST_PER_S = 1000.0;
constexpr double FLUSH_LEAST_PER_S = 50.0;

/** What a device carries, from how long it takes to write. That is the time
from the begin of a round's batch to the end of its last write: it rises when
writes begin to wait for others, whoever has sent those, and says the same of
one disk and of many. Not to the end of the sync of its files, which takes its
time whatever the number of pages: measured with 150 ms for each, 50 pages a
second were thought to be carried. One thread uses it; times are seconds of a
clock that only goes forward. */
class Flush_capacity {
 public:
  /** A round begins: see which writes are done.
  @param[in]  now_s         now
  @param[in]  idle_since_s  since when no page is being written; negative if
  one is
  @param[in]  n_written     pages that have been written since the server
  started
  */
  void look(double now_s, double idle_since_s, uint64_t n_written) {
    if (m_is_writing) {
      const double until_s =
          idle_since_s < 0.0 ? now_s : std::max(idle_since_s, m_end_s);
      m_writing_s += std::max(0.0, until_s - m_begin_s);
      m_begin_s = now_s;
      m_is_writing = idle_since_s < 0.0;
    }
    const double passed_s = now_s - m_window_s;
    if (m_window_s == 0.0) {
      /* What was before is of no window. */
      forget();
    } else if (passed_s >= FLUSH_WINDOW_S) {
      close(passed_s, counter_growth(m_n_written, n_written));
    } else {
      return;
    }
    m_window_s = now_s;
    m_n_written = n_written;
  }

  /** The round is over: its pages are handed over, and may be being written.
  @param[in]  begin_s   when it began
  @param[in]  end_s     when they had been handed over
  @param[in]  n_pages   pages
  @param[in]  lost_s    for so long the round was late: Flush_decision
  @param[in]  is_bound  there were more to flush than may be */
  void round(double begin_s, double end_s, uint64_t n_pages, double lost_s,
             bool is_bound) {
    m_lost_s += lost_s;
    m_is_bound = m_is_bound || is_bound;
    if (n_pages == 0) {
      return;
    }
    if (!m_is_writing) {
      m_begin_s = begin_s;
      m_is_writing = true;
    }
    m_end_s = end_s;
  }

  /** There will be no rounds for a while: only what was learned is kept. */
  void pause() {
    m_is_writing = false;
    forget();
    m_window_s = 0.0;
  }

  /** @return what the device was seen to carry: pages a second; 0 before it was
  asked for more */
  double pages_per_s() const { return m_is_found ? m_limit_per_s : 0.0; }

  /** @return what may be flushed: pages a second */
  double limit_per_s() const { return m_limit_per_s; }

 private:
  /** Learn from what has happened.
  @param[in]  passed_s   in so many seconds
  @param[in]  n_written  so many pages were written */
  void close(double passed_s, double n_written) {
    const double written_per_s = n_written / passed_s;
    const double share = m_writing_s / passed_s;
    /* Late rounds of less than may be flushed are of another cause. */
    if (n_written > 0.0 &&
        ((m_is_bound && m_lost_s >= FLUSH_LOST_SHARE * passed_s) ||
         share >= FLUSH_SHRINK_SHARE)) {
      const bool is_telling =
          m_is_bound || written_per_s >= FLUSH_TELLING_SHARE * m_limit_per_s;
      const double carried_per_s =
          is_telling ? written_per_s : written_per_s / FLUSH_TELLING_SHARE;
      /* Sync flushing hands over more than may be flushed. What is written in a
      window varies, though, and this is not to come down with its least. */
      const double limit_per_s = std::min(
          FLUSH_GROWTH * m_limit_per_s,
          std::max({carried_per_s, m_limit_per_s / 2.0, FLUSH_LEAST_PER_S}));
      m_limit_per_s = limit_per_s;
      m_growth = FLUSH_GROWTH;
      m_is_found = m_is_found || is_telling;
    } else if (m_is_bound && share < FLUSH_GROW_SHARE &&
               written_per_s >= FLUSH_USED_SHARE * m_limit_per_s) {
      /* What was written is what is known, and that as much more as there was
      time for is carried, too. */
      m_limit_per_s = std::max(
          m_limit_per_s, written_per_s * std::clamp(FLUSH_GROW_SHARE / share,
                                                    FLUSH_GROWTH, m_growth));
      m_growth = std::min(m_growth + FLUSH_GROWTH_STEP, FLUSH_MOST_GROWTH);
    } else {
      /* Where this is no limit more may have been written, and was carried. */
      m_limit_per_s = std::max(
          m_limit_per_s, std::min(written_per_s, m_growth * m_limit_per_s));
      if (m_is_bound && m_is_found) {
        m_growth = FLUSH_GROWTH;
      }
    }
    forget();
  }

  /** A window begins. */
  void forget() {
    m_writing_s = 0.0;
    m_lost_s = 0.0;
    m_is_bound = false;
  }

  double m_limit_per_s{FLUSH_FIRST_PER_S};

  /** By which factor it grows next. */
  double m_growth{FLUSH_MOST_GROWTH};

  /** It was too much once. */
  bool m_is_found{false};

  /** Pages are being written: since when, and when the last ones were handed
  over. */
  bool m_is_writing{false};
  double m_begin_s{0.0};
  double m_end_s{0.0};

  /** The window: when it began, and how many pages had been written then; for
  how long some were, for how long rounds were late, whether there was more to
  flush. */
  double m_window_s{0.0};
  uint64_t m_n_written{0};
  double m_writing_s{0.0};
  double m_lost_s{0.0};
  bool m_is_bound{false};
};

}  // namespace spw

#endif /* flush0capacity_h */
