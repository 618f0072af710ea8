/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/policy/flush0capacity.h
Device write capacity: pages/s, measured from the time that writes take. */

#ifndef flush0capacity_h
#define flush0capacity_h

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/base0rate.h"

namespace spw {

/** The limit grows while pages are being written for less than the first
fraction of the time. It falls to the rate written last from the second fraction
on. In the rest of the time, redo writes do not queue behind pages. Source:
measured on a volume of 30 MB/s: with a limit of 0.92 of its capacity the worst
second is at 0.85 of the mean; with its capacity and more, at 0.37 to 0.56. */
constexpr double FLUSH_GROW_FRACTION = 0.85;
constexpr double FLUSH_SHRINK_FRACTION = 0.95;

/** The limit also falls to the rate written last if rounds at the limit forfeit
this fraction of the time. A volume with a budget accepts all writes at once
until the budget is spent, so that there is no other sign. Source: simulation,
insensitive from 0.02 to 0.1. */
constexpr double FLUSH_FORFEIT_FRACTION_MAX = 0.05;

/** If fewer pages are to be flushed than the limit allows, the rate written
measures the capacity only from this fraction of the limit on. With fewer pages,
costs per batch dominate, such as the doublewrite buffer's fsync(). The rate
divided by this fraction is then an upper bound. Source: simulation of a steady
load, insensitive from 0.1 to 0.5. */
constexpr double FLUSH_REPRESENTATIVE_FRACTION = 0.25;

/** The limit grows only if the rate written was at least this fraction of it:
if demand exceeds the limit only now and then, short write times prove nothing.
TCP does not grow an unused window either (RFC 7661). Source: measured at 30
MB/s: with 0.5, 2,000 pages/s were estimated where 740 were written. */
constexpr double FLUSH_GROWTH_UTILIZATION_MIN = 0.75;

/** Length of a measurement window: seconds. Source: simulation, within 1 % from
0.5 to 2 s. */
constexpr double FLUSH_WINDOW_S = 1.0;

/** In each window the limit grows to the rate written times a factor:
FLUSH_GROWTH after a decrease, FLUSH_GROWTH_STEP more each time, up to
FLUSH_GROWTH_MAX, which is also the initial factor. So the limit recovers soon
from a pause of the server or of the device (compare TCP's slow start, RFC 5681,
and CUBIC, RFC 9438). A factor above FLUSH_GROWTH is cut so that writes would
take FLUSH_GROW_FRACTION of the time. Source: measured at 12 MB/s, where 300 and
310 pages/s were written: 390 and 430 were estimated; without the cut, and
growing from the limit, 450 and up to 530. The limit at most halves in a window.
Source of the step: simulation, insensitive from 0 to 0.1 under a steady load. A
device that becomes ten times as fast again is used after 8 s; with 0.05, after
10 s; with 0, not within a minute. */
constexpr double FLUSH_GROWTH = 1.05;
constexpr double FLUSH_GROWTH_STEP = 0.1;
constexpr double FLUSH_GROWTH_MAX = 2.0;

/** Initial and minimum limit: pages/s. Any solid-state disk writes the first,
any disk the second. */
constexpr double FLUSH_RATE_INITIAL_PER_S = 1000.0;
constexpr double FLUSH_RATE_MIN_PER_S = 50.0;

/** Measures the device write capacity from the time that writes take: from the
start of a round's batch to the end of its last write. It rises when writes
queue behind others, whoever submitted them, on one disk and on many. The sync
of the files is left out, as its time does not depend on the number of pages.
Source: measured with a sync of 150 ms included: 50 pages/s were estimated. Used
by one thread; times are seconds of a monotonic clock. */
class Flush_capacity {
 public:
  /** Add a sample at the start of a round.
  @param[in]  now_s         the current time
  @param[in]  idle_since_s  since when no page is being written; negative if a
                            page is being written
  @param[in]  n_written     pages written since the server started */
  void add_sample(double now_s, double idle_since_s, uint64_t n_written) {
    if (m_is_writing) {
      const double until_s =
          idle_since_s < 0.0 ? now_s : std::max(idle_since_s, m_end_s);
      m_writing_s += std::max(0.0, until_s - m_begin_s);
      m_begin_s = now_s;
      m_is_writing = idle_since_s < 0.0;
    }
    const double passed_s = now_s - m_window_s;
    if (m_window_s == 0.0) {
      /* What happened before belongs to no window. */
      start_window();
    } else if (passed_s >= FLUSH_WINDOW_S) {
      end_window(passed_s, counter_growth(m_n_written, n_written));
    } else {
      return;
    }
    m_window_s = now_s;
    m_n_written = n_written;
  }

  /** A round has submitted its pages; they may still be being written.
  @param[in]  begin_s               start of the round
  @param[in]  end_s                 when the last page was submitted
  @param[in]  n_pages               pages submitted
  @param[in]  forfeited_s           Flush_decision::forfeited_s
  @param[in]  demand_exceeds_limit  whether there were more pages to flush than
                                    the limit allows */
  void round(double begin_s, double end_s, uint64_t n_pages, double forfeited_s,
             bool demand_exceeds_limit) {
    m_forfeited_s += forfeited_s;
    m_demand_exceeds_limit = m_demand_exceeds_limit || demand_exceeds_limit;
    if (n_pages == 0) {
      return;
    }
    if (!m_is_writing) {
      m_begin_s = begin_s;
      m_is_writing = true;
    }
    m_end_s = end_s;
  }

  /** Flush rounds pause: keep only what was measured. */
  void pause() {
    m_is_writing = false;
    start_window();
    m_window_s = 0.0;
  }

  /** @return device write capacity: pages/s; 0 until more was flushed than the
  device can write */
  double pages_per_s() const { return m_is_measured ? m_limit_per_s : 0.0; }

  /** @return limit on flushing: pages/s */
  double limit_per_s() const { return m_limit_per_s; }

 private:
  /** Evaluate the window.
  @param[in]  passed_s   its length: seconds
  @param[in]  n_written  pages written in it */
  void end_window(double passed_s, double n_written) {
    const double written_per_s = n_written / passed_s;
    const double share = m_writing_s / passed_s;
    /* Late rounds below the limit have another cause. */
    if (n_written > 0.0 &&
        ((m_demand_exceeds_limit &&
          m_forfeited_s >= FLUSH_FORFEIT_FRACTION_MAX * passed_s) ||
         share >= FLUSH_SHRINK_FRACTION)) {
      const bool is_representative =
          m_demand_exceeds_limit ||
          written_per_s >= FLUSH_REPRESENTATIVE_FRACTION * m_limit_per_s;
      const double measured_per_s =
          is_representative ? written_per_s
                            : written_per_s / FLUSH_REPRESENTATIVE_FRACTION;
      /* Sync flushing submits more than the limit: the limit grows by a factor
      of FLUSH_GROWTH at most. It may grow, as the rate written varies between
      windows; otherwise the limit would drift to its minimum. */
      const double limit_per_s =
          std::min(FLUSH_GROWTH * m_limit_per_s,
                   std::max({measured_per_s, m_limit_per_s / 2.0,
                             FLUSH_RATE_MIN_PER_S}));
      m_limit_per_s = limit_per_s;
      m_growth = FLUSH_GROWTH;
      m_is_measured = m_is_measured || is_representative;
    } else if (m_demand_exceeds_limit && share < FLUSH_GROW_FRACTION &&
               written_per_s >= FLUSH_GROWTH_UTILIZATION_MIN * m_limit_per_s) {
      /* The device can write as much as it has written, and more in the time
      that was left. */
      m_limit_per_s = std::max(
          m_limit_per_s, written_per_s * std::clamp(FLUSH_GROW_FRACTION / share,
                                                    FLUSH_GROWTH, m_growth));
      m_growth = std::min(m_growth + FLUSH_GROWTH_STEP, FLUSH_GROWTH_MAX);
    } else {
      /* Where this limit does not apply, more may have been written: the device
      can write that. */
      m_limit_per_s = std::max(
          m_limit_per_s, std::min(written_per_s, m_growth * m_limit_per_s));
      if (m_demand_exceeds_limit && m_is_measured) {
        m_growth = FLUSH_GROWTH;
      }
    }
    start_window();
  }

  /** Begin a window. */
  void start_window() {
    m_writing_s = 0.0;
    m_forfeited_s = 0.0;
    m_demand_exceeds_limit = false;
  }

  double m_limit_per_s{FLUSH_RATE_INITIAL_PER_S};

  /** Growth factor of the next window. */
  double m_growth{FLUSH_GROWTH_MAX};

  /** The limit was too high once, and is measured since. */
  bool m_is_measured{false};

  /** Pages are being written: since when, and when the last ones were
  submitted. */
  bool m_is_writing{false};
  double m_begin_s{0.0};
  double m_end_s{0.0};

  /** The window: its start, and the pages written until then. In it: the time
  with pages being written, the forfeited time, and whether there were more
  pages to flush than the limit allows. */
  double m_window_s{0.0};
  uint64_t m_n_written{0};
  double m_writing_s{0.0};
  double m_forfeited_s{0.0};
  bool m_demand_exceeds_limit{false};
};

}  // namespace spw

#endif /* flush0capacity_h */
