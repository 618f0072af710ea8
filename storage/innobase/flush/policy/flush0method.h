/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/policy/flush0method.h
innodb_adaptive_flushing_method: pages/s that the page cleaners flush while
nothing is urgent. */

#ifndef flush0method_h
#define flush0method_h

#include <algorithm>
#include <cstdint>

#include "flush/policy/flush0list.h"

namespace spw {

/** innodb_adaptive_flushing_method. Source: the rules in the manual of Percona
Server 5.5. */
enum class Flush_method {
  /** InnoDB's formula. */
  NATIVE,
  /** The rate at which pages become dirty, from a quarter of the sync age on;
  independent of innodb_io_capacity. */
  ESTIMATE,
  /** A nearly constant rate. */
  KEEP_AVERAGE
};

/** @param[in]  method       innodb_adaptive_flushing_method
@param[in]  is_adaptive  innodb_adaptive_flushing
@param[in]  is_logging   whether redo logging is enabled
@return the method in effect. Without redo logging InnoDB has a formula that
does not depend on the redo log */
inline Flush_method flush_method_used(Flush_method method, bool is_adaptive,
                                      bool is_logging) {
  return is_adaptive && is_logging ? method : Flush_method::NATIVE;
}

/** ESTIMATE begins at this fraction of the sync age. */
constexpr double FLUSH_ESTIMATE_FRACTION = 0.25;

/** KEEP_AVERAGE: averaging time, which is InnoDB's (default of
innodb_flushing_avg_loops), in seconds; and the oldest page age to keep, as a
fraction of the sync age. Chosen, as the manual has no number: half-way between
no flushing and sync flushing. */
constexpr double FLUSH_AVERAGE_S = 30.0;
constexpr double FLUSH_AVERAGE_FRACTION = 0.5;

/** A recommendation expires this time after its pass of the page cleaners:
seconds. InnoDB makes one each second, but not while the server is idle. */
constexpr double FLUSH_METHOD_EXPIRY_S = 2.0;

/** A sample for the methods, about once a second. */
struct Flush_method_sample {
  /** Monotonic clock: seconds. */
  double now_s;

  /** Pages that InnoDB's formula recommends. */
  uint64_t n_adaptive;

  uint64_t n_dirty;

  /** LSNs: end of the redo log, first change of the oldest dirty page. */
  uint64_t lsn;
  uint64_t oldest_lsn;

  /** Sync age: bytes of LSN. */
  uint64_t sync_age;

  /** Pages flushed since the server started. */
  uint64_t n_flushed;

  /** Percentage of dirty pages as InnoDB computes it;
  innodb_max_dirty_pages_pct. */
  double dirty_pct;
  double max_dirty_pct;

  /** innodb_ahead_flushing; innodb_adaptive_flushing; whether redo logging is
  enabled. */
  bool is_ahead_on;
  bool is_adaptive;
  bool is_logging;
};

/** @param[in]  sample  the settings
@return whether ahead flushing replaces InnoDB's formula: with
innodb_adaptive_flushing = OFF, the formula still flushes above
innodb_max_dirty_pages_pct_lwm, and ahead flushing has a dirty rule of its own
*/
inline bool flush_is_left_to_ahead(const Flush_method_sample &sample) {
  return sample.is_ahead_on && !sample.is_adaptive && sample.is_logging;
}

/** Applies a method. Used by one thread. */
class Adaptive_method {
 public:
  /** Add a sample, after InnoDB's formula was evaluated.
  @param[in]  method  the method in effect
  @param[in]  sample  the sample */
  void add_sample(Flush_method method, const Flush_method_sample &sample) {
    const double passed_s = sample.now_s - m_last.now_s;
    if (m_last.now_s != 0.0 && passed_s > 0.0) {
      /* The mean of all samples, until they cover the averaging time. */
      m_averaged_s = std::min(m_averaged_s + passed_s, FLUSH_AVERAGE_S);
      const double weight = std::min(1.0, passed_s / m_averaged_s);
      m_redo_rate +=
          weight *
          (counter_growth(m_last.lsn, sample.lsn) / passed_s - m_redo_rate);
      const double made_dirty =
          static_cast<double>(sample.n_dirty) -
          static_cast<double>(m_last.n_dirty) +
          counter_growth(m_last.n_flushed, sample.n_flushed);
      m_dirtied_per_s +=
          weight * (std::max(made_dirty, 0.0) / passed_s - m_dirtied_per_s);
    }
    m_last = sample;
    m_pass_s = sample.now_s;
    const auto recommended = static_cast<double>(sample.n_adaptive);
    const bool is_too_dirty = sample.dirty_pct >= sample.max_dirty_pct;
    if (method == Flush_method::NATIVE || sample.sync_age == 0) {
      m_per_s =
          flush_is_left_to_ahead(sample) && !is_too_dirty ? 0.0 : recommended;
      return;
    }
    const double oldest_page_age =
        counter_growth(sample.oldest_lsn, sample.lsn);
    const double age_fraction =
        oldest_page_age / static_cast<double>(sample.sync_age);
    const double wanted =
        method == Flush_method::ESTIMATE
            ? estimate(sample, oldest_page_age, age_fraction)
            : m_dirtied_per_s * age_fraction / FLUSH_AVERAGE_FRACTION;
    m_per_s = is_too_dirty ? std::max(wanted, recommended) : wanted;
  }

  /** The pass in which InnoDB's formula was evaluated is over. It can have
  taken long.
  @param[in]  now_s  the current time */
  void pass_done(double now_s) { m_pass_s = now_s; }

  /** @param[in]  now_s  the current time
  @return pages/s to flush */
  double pages_per_s(double now_s) const {
    return now_s < m_pass_s + FLUSH_METHOD_EXPIRY_S ? m_per_s : 0.0;
  }

 private:
  double estimate(const Flush_method_sample &sample, double oldest_page_age,
                  double age_fraction) const {
    /* If pages became dirty evenly, their mean age would be half of the oldest
    page age. */
    return age_fraction <= FLUSH_ESTIMATE_FRACTION
               ? 0.0
               : m_redo_rate * static_cast<double>(sample.n_dirty) /
                     oldest_page_age;
  }

  Flush_method_sample m_last{};
  double m_per_s{0.0};

  /** Time of the last sample, or of the end of its pass. */
  double m_pass_s{0.0};

  /** Time that the averages cover: seconds. */
  double m_averaged_s{0.0};

  /** Averages: redo generation in bytes/s, pages that become dirty in pages/s.
   */
  double m_redo_rate{0.0};
  double m_dirtied_per_s{0.0};
};

}  // namespace spw

#endif /* flush0method_h */
