/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/policy/flush0controller.cc
How many dirty pages are flushed before their number or the redo log forces it,
and how fast the redo log may be filled meanwhile. */

#include "flush/policy/flush0controller.h"

#include <cmath>
#include <utility>

#include "base/base0rate.h"

namespace spw {

Flush_decision Ahead_flush::decide(const Flush_settings &settings,
                                   const Flush_look &look) {
  const double passed_s =
      m_lsn == 0 ? 0.0 : std::max(0.0, look.now_s - m_now_s);
  see(look, passed_s);
  Flush_decision decision{.next_look_s = next_look_s(settings, look)};
  if (!settings.is_on) {
    /* Changes are not counted. */
    m_change_bytes_per_s = 0.0;
    m_changes_per_s = 0.0;
  }
  const double per_s = pages_per_s(settings, look, &decision);
  const double wait_s = gather_s(per_s);
  m_due_s += passed_s;
  /* A round is no less than a page of each instance. */
  const double round_s =
      per_s > 0.0
          ? std::max({settings.interval_s, wait_s,
                      static_cast<double>(settings.n_instances) / per_s})
          : settings.interval_s;
  const double late_s = std::max(FLUSH_LATE_INTERVALS * round_s, FLUSH_LATE_S);
  const double most_s = look.away == Flush_away::IDLE ? round_s
                        : look.away == Flush_away::BUSY
                            ? std::max(late_s, FLUSH_BACK_S)
                            : late_s;
  /* A round that was to wait for longer is not late because the rate is
  another now. */
  const double lost_s =
      m_due_s - std::max(late_s, std::exchange(m_late_s, late_s));
  decision.lost_s = look.away == Flush_away::NO ? std::max(0.0, lost_s) : 0.0;
  m_due_s = std::min(m_due_s, most_s);
  /* To the nearest look; at once where looks are so often that it counts. */
  const bool is_time = m_due_s + settings.interval_s / 2.0 >= wait_s ||
                       decision.next_look_s < settings.interval_s;
  decision.is_round = !look.is_writing && is_time;
  if (!decision.is_round) {
    return decision;
  }
  const double pages = m_part + per_s * m_due_s;
  decision.n_pages = static_cast<uint64_t>(pages) / settings.n_instances *
                     settings.n_instances;
  m_part = pages - static_cast<double>(decision.n_pages);
  m_due_s = 0.0;
  if (decision.n_pages != 0) {
    see_fsyncs(look);
  }
  return decision;
}

void Ahead_flush::see(const Flush_look &look, double passed_s) {
  if (passed_s > 0.0) {
    const auto moved = [passed_s](uint64_t from, uint64_t to) {
      return counter_growth(from, to) / passed_s;
    };
    const double weight = weight_of(passed_s, FLUSH_FILL_S);
    m_filled_per_s += weight * (moved(m_lsn, look.lsn) - m_filled_per_s);
    m_written_per_s +=
        weight * (moved(m_n_written, look.n_written) - m_written_per_s);
    m_lru_per_s +=
        weight * (moved(m_n_lru_flushed, look.n_lru_flushed) - m_lru_per_s);
    const double changes = moved(m_n_changes, look.n_changes);
    const double change_weight =
        changes == 0.0 ? 0.0
                       : weight_of(passed_s, FLUSH_CHANGE_S) *
                             std::min(1.0, changes / m_changes_per_s);
    m_change_bytes_per_s +=
        change_weight * (moved(m_lsn, look.lsn) - m_change_bytes_per_s);
    m_changes_per_s += change_weight * (changes - m_changes_per_s);
  }
  m_list.look({.lsn = look.lsn,
               .oldest_lsn = look.oldest_lsn,
               .order_lag = look.order_lag,
               .sync_age = look.sync_age,
               .n_dirty = look.n_dirty,
               .n_written = look.n_written,
               .n_lru_flushed = look.n_lru_flushed});
  m_now_s = look.now_s;
  m_lsn = look.lsn;
  m_n_written = look.n_written;
  m_n_lru_flushed = look.n_lru_flushed;
  m_n_changes = look.n_changes;
}

void Ahead_flush::see_fsyncs(const Flush_look &look) {
  const double passed_s = look.now_s - m_round_s;
  if (m_round_s != 0.0 && passed_s > 0.0) {
    m_round_fsyncs +=
        weight_of(passed_s, FLUSH_FILL_S) *
        (counter_growth(m_n_fsyncs, look.n_fsyncs) - m_round_fsyncs);
  }
  m_round_s = look.now_s;
  m_n_fsyncs = look.n_fsyncs;
}

double Ahead_flush::gather_s(double per_s) const {
  return m_round_fsyncs == 0.0 || per_s <= 0.0
             ? 0.0
             : std::min(FLUSH_LONG_INTERVAL_S,
                        FLUSH_PAGES_PER_FSYNC * m_round_fsyncs / per_s);
}

double Ahead_flush::pages_per_s(const Flush_settings &settings,
                                const Flush_look &look,
                                Flush_decision *decision) {
  const Flush_excess excess = flush_excess(settings, look);
  const double seen = std::min(look.device_per_s, settings.io_capacity_max);
  const double carried =
      settings.is_limited_by_device ? seen : settings.io_capacity_max;
  /* Frames of compressed pages that are freed count with the LRU lists. */
  const double limit =
      std::max(carried - std::min(m_lru_per_s, m_written_per_s),
               carried * FLUSH_LEAST_SHARE);
  /* Where less than innodb_io_capacity is carried, parts of it are parts of
  that. Upstream's rate counts as it is before that is known, so that it does
  not come too late; the others have time. */
  const double part = std::min(1.0, carried / settings.io_capacity);
  const double native_part =
      look.is_native_in_parts && look.is_device_seen ? part : 1.0;
  double rate = std::min(limit, look.native_per_s * native_part);
  const double rate_of_native = rate;
  decision->reason = rate > 0.0 ? Flush_reason::NATIVE : Flush_reason::BELOW;
  if (!settings.is_on) {
    return rate;
  }
  const auto raise = [&rate, decision](double to, Flush_reason reason) {
    if (to > rate) {
      rate = to;
      decision->reason = reason;
    }
  };
  raise(std::min(flush_share_per_s(settings, excess.dirty) * part, limit),
        Flush_reason::DIRTY);
  if (look.util_per_s > 0.0 && look.n_dirty != 0) {
    raise(std::min(rate_of_native + look.util_per_s, limit),
          Flush_reason::UTIL);
  }
  raise(std::min(look.purge_per_s * part, limit), Flush_reason::PURGE);
  const double follow_age = flush_age_at(settings, look, FLUSH_FOLLOW_AT);
  const double to_follow =
      std::max(1.0, m_filled_per_s) / m_list.bytes_per_page(follow_age);
  if (excess.age <= 0.0) {
    /* Above the threshold it would be too late, if this lasts; if not, the
    room is for it. So as large a part as of the way has been filled; all of
    it while the device is not known, as it would not be known otherwise.
    (Simulated, on a volume of 1,500 I/Os a second, a redo log of 256M that is
    filled from nothing: the worst 20 s after the threshold have 0.81 of the
    transactions that it settles at, instead of 0.49.) */
    if (to_follow > limit && follow_age > 0.0) {
      const bool is_known =
          look.is_device_seen || !settings.is_limited_by_device;
      raise(is_known ? limit * flush_age(look) / follow_age : limit,
            Flush_reason::EARLY);
    }
  } else {
    /* Also where pages are of another age than is known. */
    const double wanted =
        std::max(to_follow, limit * (excess.age - FLUSH_FOLLOW_AT) /
                                (FLUSH_SETTLE_AT - FLUSH_FOLLOW_AT));
    if (wanted > rate) {
      rate = std::min(wanted, limit);
      decision->reason = wanted <= limit ? Flush_reason::AGE
                         : carried < settings.io_capacity_max
                             ? Flush_reason::DEVICE
                             : Flush_reason::LIMIT;
    }
    /* Pages of all ages are among them that the LRU lists have written. */
    const double emptied_by = look.is_device_seen ? seen : carried;
    decision->redo_bytes_per_s =
        look.is_shrinking ? shrinking_redo_per_s(look, emptied_by)
                          : redo_per_s(settings, look, emptied_by, excess.age);
    decision->turn_us = turn_us(decision->redo_bytes_per_s);
  }
  decision->wants_checkpoint = wants_checkpoint(settings, look);
  decision->is_at_device = seen < settings.io_capacity_max && rate >= limit;
  if (decision->reason >= Flush_reason::AGE ||
      (decision->reason == Flush_reason::PURGE && excess.dirty == 0.0)) {
    /* Younger pages are not what is needed, and will be changed again. */
    const auto young = static_cast<uint64_t>(flush_age_at(settings, look, 0.0));
    decision->lsn_limit = std::min(
        look.lsn, look.lsn - std::min(look.lsn, young) + look.order_lag);
  }
  return rate;
}

double Ahead_flush::redo_per_s(const Flush_settings &settings,
                               const Flush_look &look, double carried,
                               double at) const {
  const auto sync_age = static_cast<double>(look.sync_age);
  const double bytes = m_list.bytes_per_page(sync_age);
  if (bytes == FLUSH_UNLIMITED) {
    return FLUSH_UNLIMITED;
  }
  return carried * bytes * flush_age_at(settings, look, FLUSH_SETTLE_AT) /
         sync_age * throttle_curve(at);
}

double Ahead_flush::shrinking_redo_per_s(const Flush_look &look,
                                         double carried) {
  return look.n_dirty == 0 ? FLUSH_UNLIMITED
                           : FLUSH_SHRINKING_SHARE * carried * flush_age(look) /
                                 static_cast<double>(look.n_dirty);
}

double Ahead_flush::next_look_s(const Flush_settings &settings,
                                const Flush_look &look) const {
  if (look.is_writing) {
    return FLUSH_LOOK_INTERVALS * settings.interval_s;
  }
  if (!settings.is_on || m_filled_per_s <= 0.0) {
    return settings.interval_s;
  }
  const double way =
      static_cast<double>(look.sync_age) - flush_age_at(settings, look, 0.0);
  return std::clamp(FLUSH_STEP_SHARE * way / m_filled_per_s,
                    std::min(FLUSH_LEAST_INTERVAL_S, settings.interval_s),
                    settings.interval_s);
}

bool Ahead_flush::wants_checkpoint(const Flush_settings &settings,
                                   const Flush_look &look) {
  const auto age =
      static_cast<double>(look.lsn - std::min(look.lsn, look.checkpoint_lsn));
  const auto gain = static_cast<double>(
      look.oldest_lsn - std::min(look.oldest_lsn, look.checkpoint_lsn));
  if (age <= flush_age_at(settings, look, 0.0) ||
      gain <= FLUSH_CHECKPOINT_SHARE * static_cast<double>(look.sync_age) ||
      look.now_s < m_next_checkpoint_s) {
    return false;
  }
  m_next_checkpoint_s = look.now_s + FLUSH_CHECKPOINT_S;
  return true;
}

double Ahead_flush::turn_us(double redo_per_s) const {
  return redo_per_s == FLUSH_UNLIMITED || m_changes_per_s <= 0.0
             ? 0.0
             : 1e6 * m_change_bytes_per_s / m_changes_per_s /
                   std::max(redo_per_s, 1.0);
}

}  // namespace spw
