/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/policy/flush0controller.h
Controller of ahead flushing: how many dirty pages to flush before their number
or the redo log forces it, and the limit on redo generation meanwhile. */

#ifndef flush0controller_h
#define flush0controller_h

#include <algorithm>
#include <cstdint>

#include "flush/policy/flush0list.h"
#include "flush/policy/flush0types.h"
#include "throttle/policy/throttle0curve.h"

namespace spw {

/** Adaptive flushing is followed up to this fraction of the limit while the
oldest page age is below its threshold, and not at all above it. Its rate is
relative to innodb_io_capacity, which is above what most devices write: pages
are flushed that are changed again. Source: simulation of a SATA disk in a
closed loop: 6 % fewer transactions with 0.7, 26 % with 1. */
constexpr double FLUSH_ADAPTIVE_FRACTION = 0.5;

/** Outside a pause it is not followed while this number of sessions or more
wait for commits, on average: the device has no capacity to spare then. Source:
measured on a volume where commits with a binary log took half of the I/Os: the
oldest page age stayed at a quarter of the sync age, and each transaction cost
1.3 page writes instead of 0.4. */
constexpr double FLUSH_COMMITTING_MAX = 1.0;

/** In a pause it is followed up to the limit, so that a burst finds redo space:
while redo generation is below this fraction of its maximum of about the last
FLUSH_PAUSE_S seconds. Source: simulation of bursts on a volume: without it,
13,600 transactions wait, instead of 180. */
constexpr double FLUSH_PAUSE_FRACTION = 0.7;
constexpr double FLUSH_PAUSE_S = 60.0;

/** A group in group commit of the binary log waits for this fraction of the
sessions that wait for commits, for as long as the syncs of a group take, if
that is between the min (us) and the max. A device that is limited to a number
of I/Os in each tenth of a second is fast in between, and small groups use up
its I/Os. Source: measured on such a volume with 24 clients: groups of 5.5
sessions did 640 transactions/s, of 13 1,134, and of 19 1,391. The min: a fast
device would be slower by the time that a thread needs to sleep. */
constexpr double FLUSH_COMMIT_GROUP_FRACTION = 0.5;
constexpr double FLUSH_COMMIT_GROUP_MIN_US = 1'000.0;
constexpr double FLUSH_COMMIT_GROUP_MAX_US = 10'000.0;

/** After ahead flushing is switched off, the limit on redo generation rises:
after t seconds by the reclaim rate times this factor to the power of t, less 1.
Min and max time until everything is left to adaptive flushing: seconds. In the
first one it makes a recommendation. */
constexpr double FLUSH_DRAIN_FACTOR = 1.2;
constexpr double FLUSH_DRAIN_MIN_S = 2.0;
constexpr double FLUSH_DRAIN_MAX_S = 60.0;

/** Max age of a page when it is flushed, as a fraction of the range from the
age threshold (0) to the sync age (1). Below THROTTLE_SETPOINT, so that pages
are flushed as fast as the limits allow while sessions are throttled. Source:
simulation of all devices except the disk, three working sets, redo logs of 64M
and 256M: the worst second is at 0.85 of the mean or better. The same with 0.25
and a setpoint of 0.5, but 2 % fewer transactions; and with 0.75 and 0.875, but
0.1 % fewer. */
constexpr double FLUSH_AGE_TARGET = 0.5;

/* Simulation of the constants below: "flush_simulate constants"
(unittest/flush) prints the geometric mean of the transactions on four devices,
with three working sets, two redo logs, and 9 and 27 fsync() for each round. The
minimum of the worst seconds varies from 0.45 to 0.7 of the mean. It is stated
only where it is 0: on the disk with 27 fsync(). */

/** Averaging time of redo generation and of the cost of a round: seconds.
Longer than a round, shorter than the time that fills any redo log. Source:
simulation, within 1 % from 0.3 to 3 s. */
constexpr double FLUSH_RATE_WINDOW_S = 1.0;

/** A round waits until it has this number of pages for each fsync() that the
last rounds have cost (the doublewrite file, and each file written to), as an
fsync() is an I/O for the device, too. Max wait: seconds. Source: simulation: 0
pages -17 %, 2.5 -4 %, 10 +2 %. On disks only: 0.3 s -7 %, worst second 0; 1 s
+3 %. */
constexpr double FLUSH_PAGES_PER_FSYNC_MIN = 5.0;
constexpr double FLUSH_COALESCE_MAX_S = 0.5;

/** Max fraction of the time for the syncs of data files that rounds cause: a
round waits until the sync of the last ones, over this, has passed, up to
FLUSH_COALESCE_MAX_S. A device with a volatile cache does little else during a
sync. It is FLUSH_FIXED_FRACTION_MAX, for the same reason. Source: measured on a
disk with flushes of 10 ms: 5 rounds a second took 45 of the 77 flushes a second
that it does, and left the rest to commits. */
constexpr double FLUSH_SYNC_FRACTION_MAX = 0.2;

/** A late round catches up on this number of intervals, and at least on this
time in seconds; later time is forfeited. Larger batches cost less where a batch
has a fixed cost. The time is that of a thread's wait for a busy processor, for
which short intervals would be late otherwise. Source: simulation: 1 interval
-15 %, worst second 0; 4 intervals within 1 %. */
constexpr double FLUSH_CATCH_UP_INTERVALS = 2.0;
constexpr double FLUSH_CATCH_UP_S = 0.1;

/** Max time that a round catches up after other work of the coordinator:
seconds. That work waits for LRU flushing, and can take longer than any round.
In each pass InnoDB, too, flushes the pages of one second, however late it is.
*/
constexpr double FLUSH_CATCH_UP_AFTER_OTHER_WORK_S = 1.0;

/** Redo generation as a fraction of the reclaim rate while the redo log is
resized down. The sync age then follows the checkpoint age down
(Log_files_capacity::get_suggested_hard_logical_capacity()), and does not tell
how much redo may be generated. With one half, both sessions and the resizing
take at most twice as long as alone. */
constexpr double REDO_SHRINKING_FRACTION = 0.5;

/** Fraction of an interval until the next sample, if the last round's writes
are not done when the next round is due. Source: simulation, within 1 % from
0.05 (worst second 0) to 0.3. */
constexpr double FLUSH_BUSY_RETRY_INTERVALS = 0.1;

/** If redo generation fills more than this fraction of the range from the age
threshold to the sync age in an interval, rounds are more frequent. The minimum
interval, in seconds, is that of the variable. Source: simulation, insensitive
from 0.05 to 0.2; rounds of 100 ms for a redo log of 64M that is filled by 120
MB/s ended in sync flushing. */
constexpr double FLUSH_STEP_FRACTION = 0.1;
constexpr double FLUSH_INTERVAL_MIN_S = 1e-3 * FLUSH_INTERVAL_MIN_MS;

/** A checkpoint is requested if it reclaims more than this fraction of the sync
age. While it is busy InnoDB writes one in 7 s (log0chkp.cc), which is the time
to fill a third of a small redo log, and at most one each second. */
constexpr double FLUSH_CHECKPOINT_FRACTION = 0.02;

/** Time until a checkpoint that was not written is requested again: seconds.
Source: simulation, insensitive from 0.05 to 0.5 s, and for the fraction from
0.01 to 0.05. */
constexpr double FLUSH_CHECKPOINT_S = 0.1;

/** Min fraction of the limit for the flush lists, whatever the LRU lists need:
else the redo log would run full. Half, as a wait for a free page is like a wait
for redo space. */
constexpr double FLUSH_LIMIT_FRACTION_MIN = 0.5;

/** @param[in]  sample  the buffer pool and the redo log
@return the oldest page age: bytes of LSN; 0 if no page is dirty */
inline double oldest_page_age(const Flush_sample &sample) {
  return static_cast<double>(sample.lsn -
                             std::min(sample.lsn, sample.oldest_lsn));
}

/** @param[in]  decision  the decision for a round
@param[in]  n_list    flush-list pages that it has flushed
@return whether the device limited the round. It did not if the round had no
pages, or flushed less than half of them because no more were old enough. Half,
as pages that are changed meanwhile are skipped */
inline bool flush_was_at_device(const Flush_decision &decision,
                                uint64_t n_list) {
  return decision.is_at_device && !decision.is_probe && decision.n_pages != 0 &&
         2 * n_list >= decision.n_pages;
}

/** @param[in]  settings  the settings
@param[in]  sample    the buffer pool and the redo log
@param[in]  at        a fraction of the range from the age threshold (0) to the
                      sync age (1)
@return that age: bytes of LSN */
inline double age_at_fraction(const Flush_settings &settings,
                              const Flush_sample &sample, double at) {
  return static_cast<double>(sample.sync_age) *
         (settings.age_pct + at * (100.0 - settings.age_pct)) / 100.0;
}

/** How far a sample is above the thresholds. */
struct Threshold_excess {
  /** Fractions of the ranges from the dirty threshold (0) to
  innodb_max_dirty_pages_pct (1), and from the age threshold (0) to the sync age
  (1); 0 below, above 1 beyond. */
  double dirty;
  double age;
};

/** @param[in]  settings  the settings
@param[in]  sample    the buffer pool and the redo log
@return how far they are above the thresholds */
inline Threshold_excess threshold_excess(const Flush_settings &settings,
                                         const Flush_sample &sample) {
  const auto fraction_of_range = [](double at, double from, double to) {
    return at <= from ? 0.0 : to <= from ? 1.0 : (at - from) / (to - from);
  };
  const auto sync_age = static_cast<double>(sample.sync_age);
  return {.dirty = fraction_of_range(percent_of(sample.n_dirty, sample.n_pages),
                                     flush_dirty_threshold_pct(settings),
                                     settings.max_dirty_pct),
          .age = sync_age == 0.0
                     ? 0.0
                     : fraction_of_range(oldest_page_age(sample),
                                         age_at_fraction(settings, sample, 0.0),
                                         sync_age)};
}

/** @param[in]  settings  the settings
@return pages/s to flush just above the dirty threshold:
innodb_ahead_flushing_io_pct of innodb_io_capacity */
inline double dirty_rate_min(const Flush_settings &settings) {
  return settings.io_capacity * settings.io_pct / 100.0;
}

/** @param[in]  settings  the settings
@param[in]  excess    Threshold_excess::dirty
@return pages/s that the dirty rule flushes, up to innodb_io_capacity_max */
inline double dirty_rate(const Flush_settings &settings, double excess) {
  const double min = dirty_rate_min(settings);
  return excess <= 0.0
             ? 0.0
             : min + std::min(excess, 1.0) *
                         std::max(0.0, settings.io_capacity_max - min);
}

/** Request of the purge coordinator: the rate of the dirty rule; above the age
threshold at least the rate that this rule begins with, as only the page cleaner
knows redo generation.
@param[in]  settings  the settings
@param[in]  sample    the buffer pool and the redo log, without rates
@return pages/s; 0 for none */
inline double purge_request_rate(const Flush_settings &settings,
                                 const Flush_sample &sample) {
  const Threshold_excess excess = threshold_excess(settings, sample);
  return settings.is_on
             ? std::max(dirty_rate(settings, excess.dirty),
                        excess.age > 0.0 ? dirty_rate_min(settings) : 0.0)
             : 0.0;
}

/** What an idle server flushes at once, each second. */
struct Flush_idle {
  /** Max pages. */
  uint64_t n_pages;

  /** The device write capacity, measured or estimated at first, is the limit.
   */
  bool is_at_device;
};

/** @param[in]  settings      the settings
@param[in]  n_allowed     innodb_idle_flush_pct of innodb_io_capacity: pages
@param[in]  n_dirty       dirty pages
@param[in]  n_flushed     pages that the rounds of this second have flushed
@param[in]  device_per_s  device write capacity: pages/s
@return what to flush: with the rounds, at most the pages of a second */
inline Flush_idle flush_idle(const Flush_settings &settings, uint64_t n_allowed,
                             uint64_t n_dirty, uint64_t n_flushed,
                             double device_per_s) {
  if (!settings.is_on) {
    return {.n_pages = n_allowed, .is_at_device = false};
  }
  const double limit = settings.is_limited_by_device
                           ? std::min(device_per_s, settings.io_capacity_max)
                           : settings.io_capacity_max;
  const auto n_left = static_cast<uint64_t>(
      std::max(0.0, limit - static_cast<double>(n_flushed)));
  return {.n_pages = std::min(n_allowed, n_left),
          .is_at_device = limit < settings.io_capacity_max &&
                          n_left < std::min(n_allowed, n_dirty)};
}

/** Decides how many pages to flush in each round. There are rounds while
innodb_ahead_flushing is ON, or innodb_adaptive_flushing_method is not native:
they spread its rate over the second. Used by one thread. */
class Ahead_flush {
 public:
  /** Evaluate a sample, and make a round if it is time for one. Samples are
  about innodb_ahead_flushing_interval_ms apart.
  @param[in]  settings  the settings now
  @param[in]  sample    the buffer pool and the redo log now
  @return what to do, and why. At most the pages of FLUSH_CATCH_UP_INTERVALS or
  FLUSH_CATCH_UP_S at the limit on flushing, or FLUSH_CATCH_UP_INTERVALS pages
  of each instance; after other work those of FLUSH_CATCH_UP_AFTER_OTHER_WORK_S
  */
  Flush_decision decide(const Flush_settings &settings,
                        const Flush_sample &sample);

 private:
  /** Update the averages.
  @param[in]  sample    the current state
  @param[in]  passed_s  seconds since the last sample; 0 if there is none */
  void update_rates(const Flush_sample &sample, double passed_s);

  /** A round with pages begins: note the cost of the last one. */
  void count_syncs(const Flush_sample &sample);

  /** @param[in]  per_s  pages/s to flush
  @return seconds that a round waits for more pages; 0 if none are to come */
  double coalesce_s(double per_s) const;

  /** @return pages/s to flush; sets the decision's trigger, limits and
  wants_checkpoint */
  double pages_per_s(const Flush_settings &settings, const Flush_sample &sample,
                     Flush_decision *decision);

  /** @param[in]  capacity  max rate of flushing: pages/s
  @param[in]  at        oldest page age: fraction of the range from the age
                        threshold to the sync age
  @return limit on redo generation: bytes/s. No page reaches the sync age. Below
  the setpoint the limit is higher, so that a burst has free space, and no
  session stops at the threshold. Above it is lower, down to 0, as threads that
  are not throttled generate redo, too. If all ages have the same number of
  pages, redo generation equals the reclaim rate at the setpoint. The shapes of
  throttle_curve() are chosen: the root falls late, so that the oldest page age
  stays near the setpoint; the inverse hardly limits a burst that begins at the
  threshold */
  double redo_per_s(const Flush_settings &settings, const Flush_sample &sample,
                    double capacity, double at) const;

  /** @param[in]  capacity  max rate of flushing: pages/s
  @return limit on redo generation while the redo log is resized down: bytes/s.
  Assumes the same number of pages at all ages */
  static double shrinking_redo_per_s(const Flush_sample &sample,
                                     double capacity);

  /** @return whether redo generation is in a pause between bursts */
  bool is_pause() const {
    return m_redo_rate < FLUSH_PAUSE_FRACTION * m_redo_max_rate;
  }

  /** Decide what a group in group commit of the binary log waits for.
  @param[in,out]  decision  the decision */
  void set_commit_group(Flush_decision *decision) const;

  /** @return up to which rate adaptive flushing is followed: pages/s
  @param[in]  limit        limit on flushing: pages/s
  @param[in]  is_old       the oldest page age is above its threshold
  @param[in]  is_too_dirty more pages are dirty than innodb_max_dirty_pages_pct
                           allows: there may be no other rule that flushes them
*/
  double adaptive_limit(double limit, bool is_old, bool is_too_dirty) const {
    if (is_old) {
      return 0.0;
    }
    if (is_pause()) {
      return limit;
    }
    return is_too_dirty || m_committing < FLUSH_COMMITTING_MAX
               ? FLUSH_ADAPTIVE_FRACTION * limit
               : 0.0;
  }

  /** Raise the limits on redo generation after ahead flushing was switched off.
  @param[in]      drain_s             seconds since then
  @param[in]      is_adaptive_enough  adaptive flushing recommends no more than
                                      the limit on flushing
  @param[in,out]  decision            the decision */
  void drain(double drain_s, bool is_adaptive_enough,
             Flush_decision *decision) const;

  /** @return seconds until the next sample */
  double next_tick_s(const Flush_settings &settings,
                     const Flush_sample &sample) const;

  /** @return whether to request a checkpoint; also if the oldest page is young,
  as redo space is counted from the last checkpoint */
  bool wants_checkpoint(const Flush_settings &settings,
                        const Flush_sample &sample);

  /** @param[in]  redo_per_s  limit on redo generation: bytes/s
  @return the part of the limit for the sessions that are throttled. Other
  threads, such as purge and rollback, are not delayed: what they generate is
  subtracted. But sessions may generate as much as the others do, up to the
  reclaim rate: else a rollback would stop all sessions, where sync flushing
  stops it, too */
  double session_redo_per_s(double redo_per_s) const;

  /** The last sample. */
  double m_now_s{0.0};
  uint64_t m_lsn{0};
  uint64_t m_n_written{0};
  uint64_t m_n_lru_flushed{0};
  uint64_t m_charged_bytes{0};
  uint64_t m_n_groups{0};
  double m_group_s{0.0};

  /** Sessions that wait for commits, on average; groups that have synced the
  binary log, and the time of their syncs, in a second. */
  double m_committing{0.0};
  double m_groups_per_s{0.0};
  double m_groups_s_per_s{0.0};

  /** When the next checkpoint may be requested. */
  double m_next_checkpoint_s{0.0};

  /** Averages: pages written, pages submitted from the LRU lists: pages/s. */
  double m_written_per_s{0.0};
  double m_lru_per_s{0.0};

  /** The last round with pages: its time, the fsync() calls until then, and the
  time of the syncs after doublewrite batches. Averages of a round: number of
  fsync() calls, and time of these syncs. */
  double m_round_s{0.0};
  uint64_t m_n_fsyncs{0};
  double m_sync_s{0.0};
  double m_round_fsyncs{0.0};
  double m_round_sync_s{0.0};

  /** Average redo generation; and that of threads that are not throttled, while
  there is a limit: bytes/s. */
  double m_redo_rate{0.0};
  double m_other_redo_rate{0.0};

  /** Maximum of m_redo_rate, which decays over FLUSH_PAUSE_S: bytes/s. */
  double m_redo_max_rate{0.0};

  /** The reclaim rate when it was above 0 last: bytes/s. It is 0 once a page
  has reached the sync age. */
  double m_reclaim_per_s{0.0};

  /** The last decision limited redo generation. */
  bool m_is_redo_limited{false};

  Dirty_page_ages m_ages;

  /** Seconds for which pages are to be flushed; pages left over, as they are
  less than one for each instance. */
  double m_accrued_s{0.0};
  double m_page_remainder{0.0};
};

}  // namespace spw

#endif /* flush0controller_h */
