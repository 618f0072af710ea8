/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/policy/flush0method.h
How much the page cleaners flush in a second while nothing is urgent:
innodb_adaptive_flushing_method. */

#ifndef flush0method_h
#define flush0method_h

#include <algorithm>
#include <cstdint>

#include "flush/policy/flush0list.h"

namespace spw {

/** innodb_adaptive_flushing_method, as in Percona Server 5.5, whose manual has
the rules in words. */
enum class Flush_method {
  /** Upstream's formula. */
  NATIVE,
  /** As fast as pages are made dirty, from a quarter of the allowed age on;
  innodb_io_capacity does not count. */
  ESTIMATE,
  /** At a rate that hardly changes. */
  KEEP_AVERAGE
};

/** @param[in]  method       innodb_adaptive_flushing_method
@param[in]  is_adaptive  innodb_adaptive_flushing
@param[in]  is_logging   redo logging is not disabled
@return the method in effect: without a redo log upstream has a formula that
does not go by it */
inline Flush_method flush_method_used(Flush_method method, bool is_adaptive,
                                      bool is_logging) {
  return is_adaptive && is_logging ? method : Flush_method::NATIVE;
}

/** ESTIMATE begins at this share of the age of sync flushing. */
constexpr double FLUSH_ESTIMATE_SHARE = 0.25;

/** KEEP_AVERAGE has the average of so many seconds, as long as upstream's own
(innodb_flushing_avg_loops, by default), and keeps the age at this share; the
manual has no number: as far from doing nothing as from sync flushing. */
constexpr double FLUSH_AVERAGE_S = 30.0;
constexpr double FLUSH_AVERAGE_SHARE = 0.5;

/** What was asked for holds for so long after the pass of the page cleaners in
which it was; then upstream asks for nothing any more: it is asked once a
second, and not where the server is idle. Seconds. */
constexpr double FLUSH_METHOD_HOLDS_S = 2.0;

/** What the methods look at, about once a second. */
struct Flush_method_look {
  /** Of a clock that only goes forward: seconds. */
  double now_s;

  /** What upstream's formula asks for: pages. */
  uint64_t n_native;

  uint64_t n_dirty;

  /** The redo log's end and the oldest change of a dirty page: LSN. */
  uint64_t lsn;
  uint64_t oldest_lsn;

  /** The age of sync flushing: bytes of LSN. */
  uint64_t sync_age;

  /** Pages that were flushed since the server started. */
  uint64_t n_flushed;

  /** Dirty pages, as upstream reckons them, and innodb_max_dirty_pages_pct:
  percent. */
  double dirty_pct;
  double max_dirty_pct;

  /** innodb_ahead_flushing, innodb_adaptive_flushing; redo logging is not
  disabled. */
  bool is_ahead_on;
  bool is_adaptive;
  bool is_logging;
};

/** @param[in]  look  what is set
@return whether upstream's formula is left to ahead flushing. With
innodb_adaptive_flushing = OFF upstream still flushes above
innodb_max_dirty_pages_pct_lwm, and ahead flushing has a dirty rule of its own
*/
inline bool flush_is_left_to_ahead(const Flush_method_look &look) {
  return look.is_ahead_on && !look.is_adaptive && look.is_logging;
}

/** Applies a method. One thread uses it. */
class Adaptive_method {
 public:
  /** Upstream's formula has been asked.
  @param[in]  method  the method in effect
  @param[in]  look    now */
  void look(Flush_method method, const Flush_method_look &look) {
    const double passed_s = look.now_s - m_last.now_s;
    if (m_last.now_s != 0.0 && passed_s > 0.0) {
      /* Before so much time has passed, the mean of what there is. */
      m_seen_s = std::min(m_seen_s + passed_s, FLUSH_AVERAGE_S);
      const double weight = std::min(1.0, passed_s / m_seen_s);
      m_filled_per_s +=
          weight *
          (counter_growth(m_last.lsn, look.lsn) / passed_s - m_filled_per_s);
      const double made_dirty =
          static_cast<double>(look.n_dirty) -
          static_cast<double>(m_last.n_dirty) +
          counter_growth(m_last.n_flushed, look.n_flushed);
      m_dirtied_per_s +=
          weight * (std::max(made_dirty, 0.0) / passed_s - m_dirtied_per_s);
    }
    m_last = look;
    m_pass_s = look.now_s;
    const auto native = static_cast<double>(look.n_native);
    const bool is_too_dirty = look.dirty_pct >= look.max_dirty_pct;
    if (method == Flush_method::NATIVE || look.sync_age == 0) {
      m_per_s = flush_is_left_to_ahead(look) && !is_too_dirty ? 0.0 : native;
      return;
    }
    const double age = counter_growth(look.oldest_lsn, look.lsn);
    const double share = age / static_cast<double>(look.sync_age);
    const double wanted = method == Flush_method::ESTIMATE
                              ? estimate(look, age, share)
                              : m_dirtied_per_s * share / FLUSH_AVERAGE_SHARE;
    m_per_s = is_too_dirty ? std::max(wanted, native) : wanted;
  }

  /** The pass is over in which upstream's formula was asked; it can have taken
  long.
  @param[in]  now_s  now */
  void pass_done(double now_s) { m_pass_s = now_s; }

  /** @param[in]  now_s  now
  @return what is to be flushed: pages a second */
  double pages_per_s(double now_s) const {
    return now_s < m_pass_s + FLUSH_METHOD_HOLDS_S ? m_per_s : 0.0;
  }

 private:
  double estimate(const Flush_method_look &look, double age,
                  double share) const {
    /* Were pages made dirty evenly, their mean age would be half of that of the
    oldest one. */
    return share <= FLUSH_ESTIMATE_SHARE
               ? 0.0
               : m_filled_per_s * static_cast<double>(look.n_dirty) / age;
  }

  Flush_method_look m_last{};
  double m_per_s{0.0};

  /** When that was asked for, or the pass was over. */
  double m_pass_s{0.0};

  /** The averages are of so long: seconds. */
  double m_seen_s{0.0};

  /** How fast the redo log is filled, and pages are made dirty: a second. */
  double m_filled_per_s{0.0};
  double m_dirtied_per_s{0.0};
};

}  // namespace spw

#endif /* flush0method_h */
