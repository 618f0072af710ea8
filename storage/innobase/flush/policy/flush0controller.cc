/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/policy/flush0controller.cc
Controller of ahead flushing. */

#include "flush/policy/flush0controller.h"

#include <cmath>

#include "base/base0rate.h"

namespace spw {

Flush_decision Ahead_flush::decide(const Flush_settings &settings,
                                   const Flush_sample &sample) {
  const double passed_s =
      m_lsn == 0 ? 0.0 : std::max(0.0, sample.now_s - m_now_s);
  update_rates(sample, passed_s);
  Flush_decision decision{.next_tick_s = next_tick_s(settings, sample)};
  if (settings.is_on && !settings.drain_s) {
    set_commit_group(&decision);
  }
  const double per_s = pages_per_s(settings, sample, &decision);
  const double wait_s = std::max(coalesce_s(per_s), sample.device_interval_s);
  m_accrued_s += passed_s;
  /* A round has at least one page of each instance. */
  const double round_s =
      per_s > 0.0
          ? std::max({settings.interval_s, wait_s,
                      static_cast<double>(settings.n_instances) / per_s})
          : settings.interval_s;
  const double late_s =
      std::max(FLUSH_CATCH_UP_INTERVALS * round_s, FLUSH_CATCH_UP_S);
  const double max_s = sample.gap_cause == Gap_cause::IDLE_FLUSH ? round_s
                       : sample.gap_cause == Gap_cause::OTHER_WORK
                           ? std::max(late_s, FLUSH_CATCH_UP_AFTER_OTHER_WORK_S)
                           : late_s;
  m_accrued_s = std::min(m_accrued_s, max_s);
  /* Rounded to the nearest sample; at once if samples are more frequent, as
  redo space runs short. */
  const bool is_time = m_accrued_s + settings.interval_s / 2.0 >= wait_s ||
                       (decision.next_tick_s < settings.interval_s &&
                        m_accrued_s >= sample.device_interval_s);
  decision.is_round = !sample.is_writing && is_time;
  if (!decision.is_round) {
    return decision;
  }
  if (sample.wants_probe && per_s > 0.0) {
    /* The round itself follows when the probe is written. */
    decision.is_probe = true;
    decision.n_pages = settings.n_instances;
    return decision;
  }
  const double pages = m_page_remainder + per_s * m_accrued_s;
  decision.n_pages = static_cast<uint64_t>(pages) / settings.n_instances *
                     settings.n_instances;
  m_page_remainder = pages - static_cast<double>(decision.n_pages);
  m_accrued_s = 0.0;
  if (decision.n_pages != 0) {
    count_syncs(sample);
  }
  return decision;
}

void Ahead_flush::update_rates(const Flush_sample &sample, double passed_s) {
  if (passed_s > 0.0) {
    const auto moved = [passed_s](uint64_t from, uint64_t to) {
      return counter_growth(from, to) / passed_s;
    };
    const double weight = weight_of(passed_s, FLUSH_RATE_WINDOW_S);
    m_redo_rate += weight * (moved(m_lsn, sample.lsn) - m_redo_rate);
    m_redo_max_rate = std::max(
        m_redo_rate, m_redo_max_rate * std::exp(-passed_s / FLUSH_PAUSE_S));
    m_written_per_s +=
        weight * (moved(m_n_written, sample.n_written) - m_written_per_s);
    m_lru_per_s +=
        weight * (moved(m_n_lru_flushed, sample.n_lru_flushed) - m_lru_per_s);
    m_committing +=
        weight * (static_cast<double>(sample.n_committing) - m_committing);
    m_groups_per_s +=
        weight * (moved(m_n_groups, sample.n_groups) - m_groups_per_s);
    m_groups_s_per_s +=
        weight * ((sample.group_s - m_group_s) / passed_s - m_groups_s_per_s);
    /* A session is charged for what it has generated some time before. */
    m_other_redo_rate =
        m_is_redo_limited
            ? m_other_redo_rate +
                  weight * (moved(m_lsn, sample.lsn) -
                            moved(m_charged_bytes, sample.charged_bytes) -
                            m_other_redo_rate)
            : 0.0;
    /* One charge can be for gigabytes that were generated long before. */
    m_other_redo_rate = std::max(m_other_redo_rate, -m_reclaim_per_s);
  }
  m_ages.add_sample({.lsn = sample.lsn,
                     .oldest_lsn = sample.oldest_lsn,
                     .lsn_disorder = sample.lsn_disorder,
                     .sync_age = sample.sync_age,
                     .n_dirty = sample.n_dirty,
                     .n_written = sample.n_written,
                     .n_lru_flushed = sample.n_lru_flushed});
  m_now_s = sample.now_s;
  m_lsn = sample.lsn;
  m_n_written = sample.n_written;
  m_n_lru_flushed = sample.n_lru_flushed;
  m_charged_bytes = sample.charged_bytes;
  m_n_groups = sample.n_groups;
  m_group_s = sample.group_s;
}

void Ahead_flush::set_commit_group(Flush_decision *decision) const {
  const double group_us =
      m_groups_per_s > 0.0 ? 1e6 * m_groups_s_per_s / m_groups_per_s : 0.0;
  const auto n =
      static_cast<unsigned>(FLUSH_COMMIT_GROUP_FRACTION * m_committing);
  if (n > 1 && group_us >= FLUSH_COMMIT_GROUP_MIN_US) {
    decision->commit_group = n;
    decision->commit_group_wait_us =
        static_cast<long>(std::min(group_us, FLUSH_COMMIT_GROUP_MAX_US));
  }
}

void Ahead_flush::count_syncs(const Flush_sample &sample) {
  const double passed_s = sample.now_s - m_round_s;
  if (m_round_s != 0.0 && passed_s > 0.0) {
    const double weight = weight_of(passed_s, FLUSH_RATE_WINDOW_S);
    m_round_fsyncs +=
        weight * (counter_growth(m_n_fsyncs, sample.n_fsyncs) - m_round_fsyncs);
    m_round_sync_s += weight * (sample.sync_s - m_sync_s - m_round_sync_s);
  }
  m_round_s = sample.now_s;
  m_n_fsyncs = sample.n_fsyncs;
  m_sync_s = sample.sync_s;
}

double Ahead_flush::coalesce_s(double per_s) const {
  return per_s <= 0.0
             ? 0.0
             : std::min(
                   FLUSH_COALESCE_MAX_S,
                   std::max(FLUSH_PAGES_PER_FSYNC_MIN * m_round_fsyncs / per_s,
                            m_round_sync_s / FLUSH_SYNC_FRACTION_MAX));
}

double Ahead_flush::pages_per_s(const Flush_settings &settings,
                                const Flush_sample &sample,
                                Flush_decision *decision) {
  const Threshold_excess excess = threshold_excess(settings, sample);
  const double io_capacity_max_above =
      settings.is_io_capacity_default && settings.is_limited_by_device
          ? FLUSH_IO_CAPACITY_MAX_PER_S
          : settings.io_capacity_max;
  const double io_capacity_max =
      excess.age > 0.0 ? io_capacity_max_above : settings.io_capacity_max;
  const double measured = std::min(sample.device_per_s, io_capacity_max);
  const double capacity =
      settings.is_limited_by_device ? measured : settings.io_capacity_max;
  /* The LRU rate includes freed frames of compressed pages, which are not
  written. */
  const auto less_lru = [this](double per_s) {
    return std::max(per_s - std::min(m_lru_per_s, m_written_per_s),
                    per_s * FLUSH_LIMIT_FRACTION_MIN);
  };
  const double limit = less_lru(capacity);
  const double limit_above =
      less_lru(settings.is_limited_by_device
                   ? std::min(sample.device_per_s, io_capacity_max_above)
                   : settings.io_capacity_max);
  /* Rates relative to innodb_io_capacity are scaled down to a lower capacity.
  The rate of adaptive flushing is not scaled to the initial estimate, so that
  it is not too late; the other rules have time. */
  const double capacity_scale = std::min(1.0, capacity / settings.io_capacity);
  const double adaptive_scale =
      sample.adaptive_scales_with_io_capacity && sample.is_device_measured
          ? capacity_scale
          : 1.0;
  /* The rates of the methods fall to 0 while all threads wait. */
  const double adaptive =
      adaptive_scale *
      (sample.is_redo_space_awaited
           ? std::max(sample.adaptive_per_s, settings.io_capacity)
           : sample.adaptive_per_s);
  const bool is_too_dirty =
      percent_of(sample.n_dirty, sample.n_pages) > settings.max_dirty_pct;
  double rate = std::min(
      settings.is_on ? adaptive_limit(limit, excess.age > 0.0, is_too_dirty)
                     : limit,
      adaptive);
  const double rate_of_adaptive = rate;
  decision->trigger =
      rate > 0.0 ? Flush_trigger::ADAPTIVE : Flush_trigger::NONE;
  m_is_redo_limited = false;
  if (!settings.is_on) {
    return rate;
  }
  const auto raise = [&rate, decision](double to, Flush_trigger trigger) {
    if (to > rate) {
      rate = to;
      decision->trigger = trigger;
    }
  };
  raise(std::min(dirty_rate(settings, excess.dirty) * capacity_scale, limit),
        Flush_trigger::DIRTY);
  if (sample.util_per_s > 0.0 && sample.n_dirty != 0) {
    raise(std::min(rate_of_adaptive + sample.util_per_s, limit),
          Flush_trigger::UTIL);
  }
  raise(std::min(sample.purge_per_s * capacity_scale, limit),
        Flush_trigger::PURGE);
  const double follow_age = age_at_fraction(settings, sample, FLUSH_AGE_TARGET);
  const double to_follow =
      std::max(1.0, m_redo_rate) / m_ages.bytes_per_page(follow_age);
  if (excess.age <= 0.0) {
    /* If this redo generation lasts, flushing from the threshold on would be
    too late; if not, the free space is for it. So flush at a fraction of the
    limit: the oldest page age over follow_age. Flush at the limit until the
    device write capacity is measured, as it would not be measured otherwise.
    Source: simulation of a volume of 1,500 I/Os/s and an empty redo log of
    256M: the worst 20 s after the threshold have 0.81 of the steady
    transactions, instead of 0.49. */
    if (to_follow > limit_above && follow_age > 0.0) {
      const bool is_estimated =
          settings.is_limited_by_device && !sample.is_device_measured;
      raise(is_estimated ? limit : limit * oldest_page_age(sample) / follow_age,
            Flush_trigger::EARLY);
    }
  } else {
    /* The second rate also applies if the estimated ages of the pages are
    wrong. */
    const double wanted =
        std::max(to_follow, limit * (excess.age - FLUSH_AGE_TARGET) /
                                (THROTTLE_SETPOINT - FLUSH_AGE_TARGET));
    if (wanted > rate) {
      rate = std::min(wanted, limit);
      decision->trigger = Flush_trigger::AGE;
      decision->limit = wanted <= limit ? Flush_limit::NONE
                        : capacity < io_capacity_max
                            ? Flush_limit::DEVICE
                            : Flush_limit::IO_CAPACITY_MAX;
    }
    /* Includes the pages of the LRU lists, which are of all ages. */
    const double reclaim_capacity =
        sample.is_device_measured ? measured : capacity;
    decision->redo_bytes_per_s =
        sample.is_shrinking
            ? shrinking_redo_per_s(sample, reclaim_capacity)
            : redo_per_s(settings, sample, reclaim_capacity, excess.age);
    if (const double reclaim_per_s =
            redo_per_s(settings, sample, reclaim_capacity, THROTTLE_SETPOINT);
        reclaim_per_s > 0.0 && reclaim_per_s != FLUSH_UNLIMITED) {
      m_reclaim_per_s = reclaim_per_s;
    }
    decision->session_redo_bytes_per_s =
        session_redo_per_s(decision->redo_bytes_per_s);
    m_is_redo_limited = decision->redo_bytes_per_s != FLUSH_UNLIMITED;
  }
  if (settings.drain_s) {
    drain(*settings.drain_s, adaptive <= limit, decision);
    rate = limit;
    decision->trigger = Flush_trigger::DRAIN;
    decision->limit = Flush_limit::NONE;
  }
  decision->wants_checkpoint = wants_checkpoint(settings, sample);
  decision->is_at_device = measured < io_capacity_max && rate >= limit;
  if (decision->trigger == Flush_trigger::AGE ||
      (decision->trigger == Flush_trigger::PURGE && excess.dirty == 0.0)) {
    /* Younger pages are not needed, and will be changed again. */
    const auto young =
        static_cast<uint64_t>(age_at_fraction(settings, sample, 0.0));
    decision->lsn_limit =
        std::min(sample.lsn, sample.lsn - std::min(sample.lsn, young) +
                                 sample.lsn_disorder);
  }
  return rate;
}

void Ahead_flush::drain(double drain_s, bool is_adaptive_enough,
                        Flush_decision *decision) const {
  /* The limit can be 0. */
  const double more =
      m_reclaim_per_s *
      (std::pow(FLUSH_DRAIN_FACTOR, std::min(drain_s, FLUSH_DRAIN_MAX_S)) -
       1.0);
  decision->redo_bytes_per_s += more;
  decision->session_redo_bytes_per_s += more;
  const bool is_free = decision->session_redo_bytes_per_s > 2.0 * m_redo_rate;
  decision->is_drained =
      drain_s >= FLUSH_DRAIN_MAX_S ||
      (drain_s >= FLUSH_DRAIN_MIN_S && is_free && is_adaptive_enough);
}

double Ahead_flush::redo_per_s(const Flush_settings &settings,
                               const Flush_sample &sample, double capacity,
                               double at) const {
  const auto sync_age = static_cast<double>(sample.sync_age);
  const double bytes = m_ages.bytes_per_page(sync_age);
  if (bytes == FLUSH_UNLIMITED) {
    return FLUSH_UNLIMITED;
  }
  return capacity * bytes *
         age_at_fraction(settings, sample, THROTTLE_SETPOINT) / sync_age *
         throttle_curve(at);
}

double Ahead_flush::shrinking_redo_per_s(const Flush_sample &sample,
                                         double capacity) {
  return sample.n_dirty == 0
             ? FLUSH_UNLIMITED
             : REDO_SHRINKING_FRACTION * capacity * oldest_page_age(sample) /
                   static_cast<double>(sample.n_dirty);
}

double Ahead_flush::next_tick_s(const Flush_settings &settings,
                                const Flush_sample &sample) const {
  if (sample.is_writing) {
    return FLUSH_BUSY_RETRY_INTERVALS * settings.interval_s;
  }
  if (!settings.is_on || m_redo_rate <= 0.0) {
    return settings.interval_s;
  }
  const double range = static_cast<double>(sample.sync_age) -
                       age_at_fraction(settings, sample, 0.0);
  return std::clamp(FLUSH_STEP_FRACTION * range / m_redo_rate,
                    std::min(FLUSH_INTERVAL_MIN_S, settings.interval_s),
                    settings.interval_s);
}

bool Ahead_flush::wants_checkpoint(const Flush_settings &settings,
                                   const Flush_sample &sample) {
  const auto checkpoint_age = static_cast<double>(
      sample.lsn - std::min(sample.lsn, sample.checkpoint_lsn));
  const auto gain = static_cast<double>(
      sample.oldest_lsn - std::min(sample.oldest_lsn, sample.checkpoint_lsn));
  if (checkpoint_age <= age_at_fraction(settings, sample, 0.0) ||
      gain <=
          FLUSH_CHECKPOINT_FRACTION * static_cast<double>(sample.sync_age) ||
      sample.now_s < m_next_checkpoint_s) {
    return false;
  }
  m_next_checkpoint_s = sample.now_s + FLUSH_CHECKPOINT_S;
  return true;
}

double Ahead_flush::session_redo_per_s(double redo_per_s) const {
  const double others = std::max(0.0, m_other_redo_rate);
  return std::max(redo_per_s - others, std::min(others, m_reclaim_per_s));
}

}  // namespace spw
