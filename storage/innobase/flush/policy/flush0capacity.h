/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/policy/flush0capacity.h
Model of the device: the time of a batch is fixed_s + pages / capacity. The two
are measured apart, as BBR measures latency and bandwidth of a network path:
the fixed time from batches of few pages, the capacity as the maximum of the
rate in the last windows. */

#ifndef flush0capacity_h
#define flush0capacity_h

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace spw {

/** The limit grows while pages are being written for less than the first
fraction of the time that the fixed times of the batches leave. It falls from
the second fraction on. In the rest of the time, redo writes do not queue behind
pages. Source: measured on a volume of 30 MB/s: with a limit of 0.92 of its
capacity the worst second is at 0.85 of the mean; with its capacity and more, at
0.37 to 0.56. */
constexpr double FLUSH_GROW_FRACTION = 0.85;
constexpr double FLUSH_SHRINK_FRACTION = 0.95;

/** The limit falls to this fraction of the highest rate of the last windows. */
constexpr double FLUSH_CRUISE_FRACTION = 0.92;

/** Number of windows of the maximum filter. The limit falls only if the device
was too slow for as many windows: a single slow second, of a device whose speed
varies, says nothing (BBR: ten round trips). And its max time, in seconds, from
which on two windows are enough: a batch of the old limit, and so a window, can
be long on a device that has become much slower. */
constexpr size_t FLUSH_MAX_WINDOWS = 8;
constexpr double FLUSH_MAX_FILTER_S = 16.0;

/** Minimum length of a window: seconds. It ends with a batch. */
constexpr double FLUSH_WINDOW_S = 1.0;

/** In each window the limit grows to the rate written times the factor at which
writes would take FLUSH_GROW_FRACTION of the time, up to this one. (BBR doubles
its rate in each round trip of its startup phase.) It falls by this factor at
most: before the first windows the filter has nothing to compare with. */
constexpr double FLUSH_GROWTH_MAX = 2.0;

/** Min utilization, as its measurement is the difference of two: fixed times
can have been measured too long. Chosen. */
constexpr double FLUSH_UTILIZATION_MIN = 0.1;

/** Initial and minimum limit: pages/s. Any solid-state disk writes the first,
any disk the second. */
constexpr double FLUSH_RATE_INITIAL_PER_S = 1000.0;
constexpr double FLUSH_RATE_MIN_PER_S = 50.0;

/** Time between two probes of the fixed time, and number of probes whose median
it is; the first ones follow each other. A probe is a batch of one page of each
instance before a round. (BBR: each 10 s.) */
constexpr double FLUSH_PROBE_S = 8.0;
constexpr size_t FLUSH_PROBES = 3;

/** Fraction of the time in which batches are written from which on their fixed
time matters: below it, the limit grows by more than it would with any. And the
time between batches from which on it matters, too: seconds. Half of the default
of innodb_ahead_flushing_interval_ms. */
constexpr double FLUSH_PROBE_BUSY_FRACTION = 0.5;
constexpr double FLUSH_PROBE_INTERVAL_S = 0.05;

/** Max fraction of the time for the fixed times of batches, and max time
between batches that it leads to: seconds. */
constexpr double FLUSH_FIXED_FRACTION_MAX = 0.2;
constexpr double FLUSH_FIXED_INTERVAL_MAX_S = 0.5;

/** A batch: from its start to the end of its last write. Without the sync of
the data files, as InnoDB syncs them while the next batch is gathered. Times are
seconds of a monotonic clock. */
struct Flush_batch {
  double begin_s;
  double end_s;

  uint64_t n_pages;

  /** It is a probe of the fixed time. */
  bool is_probe{false};

  /** There were more pages to flush than the limit allows. */
  bool demand_exceeds_limit{false};

  /** It has no more pages than the limit allows. */
  bool is_limited{true};
};

/** Measures the device write capacity. Whoever else uses the device makes
batches slower: what is measured is the rest. Used by one thread. */
class Flush_capacity {
 public:
  /** A batch has ended. Batches come in the order of their time. */
  void add(const Flush_batch &batch) {
    if (m_window_s == 0.0) {
      m_window_s = batch.begin_s;
    }
    const double batch_s = std::max(0.0, batch.end_s - batch.begin_s);
    if (batch.is_probe) {
      /* Without the time of its pages: it can have pages of the LRU lists. */
      m_probes[m_n_probes++ % FLUSH_PROBES] = std::max(
          0.0, batch_s - static_cast<double>(batch.n_pages) / m_limit_per_s);
      m_probe_s = batch.end_s;
    }
    m_writing_s += batch_s;
    m_n_pages += static_cast<double>(batch.n_pages);
    ++m_n_batches;
    m_demand_exceeds_limit =
        m_demand_exceeds_limit || batch.demand_exceeds_limit;
    m_is_limited = m_is_limited && batch.is_limited;
    if (batch.end_s - m_window_s >= FLUSH_WINDOW_S) {
      end_window(batch.end_s - m_window_s);
      start_window(batch.end_s);
    }
  }

  /** Flush rounds pause: keep only what was measured. */
  void pause() { start_window(0.0); }

  /** @param[in]  now_s  the current time
  @return whether the next batch should be a probe: batches take so much of the
  time, or are so far apart, that it matters which part of theirs is fixed */
  bool wants_probe(double now_s) const {
    return (m_busy_fraction >= FLUSH_PROBE_BUSY_FRACTION ||
            interval_s() >= FLUSH_PROBE_INTERVAL_S) &&
           (m_n_probes < FLUSH_PROBES || now_s - m_probe_s >= FLUSH_PROBE_S);
  }

  /** @return time of a batch without pages: seconds; 0 before the first probe
   */
  double fixed_s() const {
    auto probes = m_probes;
    const auto end = probes.begin() + std::min(m_n_probes, FLUSH_PROBES);
    std::sort(probes.begin(), end);
    return probes[(end - probes.begin()) / 2];
  }

  /** @return min time between the starts of two batches: seconds */
  double interval_s() const {
    return std::min(FLUSH_FIXED_INTERVAL_MAX_S,
                    fixed_s() / FLUSH_FIXED_FRACTION_MAX);
  }

  /** @return device write capacity: pages/s; 0 until more was flushed than the
  device can write */
  double pages_per_s() const { return m_is_measured ? m_limit_per_s : 0.0; }

  /** @return limit on flushing: pages/s */
  double limit_per_s() const { return m_limit_per_s; }

 private:
  /** A window that has ended. */
  struct Window {
    /** Rate while the device wrote: pages/s. */
    double pages_per_s;

    /** Its length for FLUSH_MAX_FILTER_S: seconds. */
    double counted_s;
  };

  /** Evaluate the window.
  @param[in]  passed_s  its length: seconds */
  void end_window(double passed_s) {
    const double fixed_s = fixed_s_of_window();
    const double written_per_s = m_n_pages / passed_s;
    /* 1: the device does nothing but write pages. */
    const double utilization =
        std::clamp((m_writing_s - fixed_s) / std::max(passed_s - fixed_s, 1e-9),
                   FLUSH_UTILIZATION_MIN, 1.0);
    const double rate = written_per_s / utilization;
    m_busy_fraction = m_writing_s / passed_s;
    /* With little to write, the rate does not say what the device can write
    (BBR: application-limited), and in a long window it stood still. */
    if (utilization >= FLUSH_PROBE_BUSY_FRACTION || m_demand_exceeds_limit) {
      m_windows[m_n_windows++ % FLUSH_MAX_WINDOWS] = {
          .pages_per_s = rate,
          .counted_s = m_demand_exceeds_limit ? passed_s : FLUSH_WINDOW_S};
    }
    if (utilization >= FLUSH_SHRINK_FRACTION) {
      const double to_per_s =
          std::max({FLUSH_CRUISE_FRACTION * max_rate(), FLUSH_RATE_MIN_PER_S,
                    m_limit_per_s / FLUSH_GROWTH_MAX});
      m_limit_per_s =
          m_is_limited ? std::min(m_limit_per_s, to_per_s) : to_per_s;
      m_is_measured = true;
    } else if (m_demand_exceeds_limit && utilization < FLUSH_GROW_FRACTION) {
      m_limit_per_s =
          std::max(m_limit_per_s,
                   written_per_s * std::min(FLUSH_GROW_FRACTION / utilization,
                                            FLUSH_GROWTH_MAX));
    }
  }

  /** @return highest rate of the last windows: pages/s; 0 before the first */
  double max_rate() const {
    double rate = 0.0;
    double counted_s = 0.0;
    for (size_t i = 0; i < std::min(m_n_windows, FLUSH_MAX_WINDOWS); ++i) {
      if (i >= 2 && counted_s >= FLUSH_MAX_FILTER_S) {
        break;
      }
      const Window &window =
          m_windows[(m_n_windows - 1 - i) % FLUSH_MAX_WINDOWS];
      rate = std::max(rate, window.pages_per_s);
      counted_s += window.counted_s;
    }
    return rate;
  }

  /** @return sum of the fixed times of the window: seconds; at most the time in
  which pages were written */
  double fixed_s_of_window() const {
    return std::min(m_writing_s, static_cast<double>(m_n_batches) * fixed_s());
  }

  /** Begin a window. */
  void start_window(double now_s) {
    m_window_s = now_s;
    m_writing_s = 0.0;
    m_n_pages = 0.0;
    m_n_batches = 0;
    m_demand_exceeds_limit = false;
    m_is_limited = true;
  }

  double m_limit_per_s{FLUSH_RATE_INITIAL_PER_S};

  /** The limit was too high once, and is measured since. */
  bool m_is_measured{false};

  /** Times of the last probes: seconds; end of the last. */
  std::array<double, FLUSH_PROBES> m_probes{};
  size_t m_n_probes{0};
  double m_probe_s{0.0};

  /** Fraction of the last window in which batches were written. */
  double m_busy_fraction{0.0};

  /** The last windows that say what the device can write, and their number. */
  std::array<Window, FLUSH_MAX_WINDOWS> m_windows{};
  size_t m_n_windows{0};

  /** The window: its start, 0 for none; in it the time of the batches, their
  pages and their number, whether there were more pages to flush than the limit
  allows, and whether no more were flushed. */
  double m_window_s{0.0};
  double m_writing_s{0.0};
  double m_n_pages{0.0};
  uint64_t m_n_batches{0};
  bool m_demand_exceeds_limit{false};
  bool m_is_limited{true};
};

}  // namespace spw

#endif /* flush0capacity_h */
