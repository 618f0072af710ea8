/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/policy/flush0controller.h
How many dirty pages are flushed before their number or the redo log forces it,
and how fast the redo log may be filled meanwhile. */

#ifndef flush0controller_h
#define flush0controller_h

#include <algorithm>
#include <cstdint>

#include "flush/policy/flush0list.h"
#include "flush/policy/flush0types.h"
#include "throttle/policy/throttle0curve.h"

namespace spw {

/** On the way from the age at which ahead flushing starts (0) to that of sync
flushing (1): pages are flushed so fast that none is older than the first when
its turn comes, and who writes is held back so much that the age settles at the
second. Beyond the first, so that pages are flushed as fast as the limits allow
where somebody is held back. (Simulated on all devices but the disk, with three
working sets and redo logs of 64M and 256M: the worst second is at 0.85 of the
mean or better; with 0.25 and 0.5 as well, with 2 % fewer transactions; with
0.75 and 0.875 as well, with 0.1 % fewer.) */
constexpr double FLUSH_FOLLOW_AT = 0.5;

/* What is simulated of the constants below is the geometric mean of the
transactions on four devices, with three working sets, two redo logs, and 9 and
27 fsync() for each round: what flush_simulate prints of constants
(unittest/flush). The least of their worst seconds, which it prints as well, is
anything from 0.45 to 0.7 of the mean, and only said where it is 0: on the disk
with 27 fsync(). */

/** How fast the redo log is filled, and what a round costs, are seen over about
so long: longer than a round, shorter than any redo log takes to fill.
(Simulated: from 0.3 to 3 s within 1 %.) */
constexpr double FLUSH_FILL_S = 1.0;

/** What a change of a row writes to the redo log is seen over so long: seconds.
What others write counts as theirs, so that in less time a purge would leave
them nothing. Time in which fewer rows are changed than before counts as so much
less: else who comes back after a purge would pay for all of it. (Simulated:
from 10 to 100 s it makes no difference to a steady load.) */
constexpr double FLUSH_CHANGE_S = 30.0;

/** A round waits until it has so many pages for each fsync() that the last ones
have cost, of the doublewrite file and of each file that they have written to,
as that is an I/O for the device, too; but no longer than the time: seconds.
(Simulated: 0 pages -17 %, 2.5 -4 %, 10 +2 %; 0.3 s -7 %, with seconds of
nothing, 1 s +3 %, both for disks alone.) */
constexpr double FLUSH_PAGES_PER_FSYNC = 5.0;
constexpr double FLUSH_LONG_INTERVAL_S = 0.5;

/** A round that is late makes up for so many intervals, and for so long at the
least: larger batches cost less where a batch costs much whatever its size, and
what is longer in coming is lost. The time is what threads wait for a processor
where many want one; else short intervals would be late for that. (Simulated: 1
interval -15 %, with seconds of nothing, 4 intervals within 1 %.) */
constexpr double FLUSH_LATE_INTERVALS = 2.0;
constexpr double FLUSH_LATE_S = 0.1;

/** What the flusher has had to do besides, which can take longer than any
round, as it waits for what the LRU lists need, costs no more than this: in each
pass upstream flushes what is due in a second, however late it is. Seconds. */
constexpr double FLUSH_BACK_S = 1.0;

/** While the redo log is made smaller the age of sync flushing follows the
checkpoint's down (Log_files_capacity::get_suggested_hard_logical_capacity()),
and says nothing of how much may be filled. It is filled at this part of the
speed at which it is emptied, so that neither they who write nor the shrinking
take more than twice as long as they would alone. */
constexpr double FLUSH_SHRINKING_SHARE = 0.5;

/** Where the last round's writes are not done when the next one is due, so much
of an interval passes before the next look. (Simulated: from 0.05, with seconds
of nothing, to 0.3 within 1 %.) */
constexpr double FLUSH_LOOK_INTERVALS = 0.1;

/** Where the redo log is filled so fast that in an interval more than this
share of the way from the threshold to sync flushing is, rounds are more often,
but no more often than the least interval that can be set: seconds. (Simulated:
rounds of 100 ms for a redo log of 64M that is filled by 120 MB a second ended
in sync flushing. From 0.05 to 0.2 it makes no difference else. The least is
chosen: a tenth of the default.) */
constexpr double FLUSH_STEP_SHARE = 0.1;
constexpr double FLUSH_LEAST_INTERVAL_S = 1e-3 * FLUSH_LEAST_INTERVAL_MS;

/** A checkpoint is asked for when it gives free this share of the age of sync
flushing. Upstream writes one in seven seconds while it is busy (log0chkp.cc),
which for a small redo log is a third of it, and no more than one a second. */
constexpr double FLUSH_CHECKPOINT_SHARE = 0.02;

/** It is asked for again after so long, if it has not been written: seconds.
(Simulated: neither the share, from 0.01 to 0.05, nor the time, from 0.05 to 0.5
s, makes a difference.) */
constexpr double FLUSH_CHECKPOINT_S = 0.1;

/** What the LRU lists need is not ours, but so much of the limit is: else the
redo log would fill up instead. Half, as a thread that finds no free page waits
as one does that finds no redo space. */
constexpr double FLUSH_LEAST_SHARE = 0.5;

/** @param[in]  look  the buffer pool and the redo log
@return the age of the oldest dirty page: bytes of LSN; 0 if there is none */
inline double flush_age(const Flush_look &look) {
  return static_cast<double>(look.lsn - std::min(look.lsn, look.oldest_lsn));
}

/** @param[in]  decision  what was decided for a round
@param[in]  n_list    pages of the flush lists that it has flushed
@return whether it was the device that let no more be flushed. Where there were
no more pages that are old enough it was not; half, as pages that are changed
meanwhile are passed over. Nor was it where none were to be flushed yet */
inline bool flush_was_at_device(const Flush_decision &decision,
                                uint64_t n_list) {
  return decision.is_at_device && decision.n_pages != 0 &&
         2 * n_list >= decision.n_pages;
}

/** @param[in]  settings  what is set
@param[in]  look      the buffer pool and the redo log
@param[in]  at        on the way from the age threshold (0) to sync flushing (1)
@return that age: bytes of LSN */
inline double flush_age_at(const Flush_settings &settings,
                           const Flush_look &look, double at) {
  return static_cast<double>(look.sync_age) *
         (settings.age_pct + at * (100.0 - settings.age_pct)) / 100.0;
}

/** How far a look is above the thresholds. */
struct Flush_excess {
  /** On the way from the dirty threshold (0) to the allowed share (1), and from
  the age threshold (0) to sync flushing (1); 0 below, above 1 beyond. */
  double dirty;
  double age;
};

/** @param[in]  settings  what is set
@param[in]  look      the buffer pool and the redo log
@return how far they are above the thresholds */
inline Flush_excess flush_excess(const Flush_settings &settings,
                                 const Flush_look &look) {
  const auto on_the_way = [](double at, double from, double to) {
    return at <= from ? 0.0 : to <= from ? 1.0 : (at - from) / (to - from);
  };
  const double age = flush_age(look);
  const auto sync_age = static_cast<double>(look.sync_age);
  return {.dirty = on_the_way(percent_of(look.n_dirty, look.n_pages),
                              flush_dirty_threshold_pct(settings),
                              settings.max_dirty_pct),
          .age = sync_age == 0.0
                     ? 0.0
                     : on_the_way(age, flush_age_at(settings, look, 0.0),
                                  sync_age)};
}

/** @param[in]  settings  what is set
@return what is flushed for a share of dirty pages that is just above its
threshold: pages a second; innodb_ahead_flushing_io_pct of innodb_io_capacity
*/
inline double flush_least_per_s(const Flush_settings &settings) {
  return settings.io_capacity * settings.io_pct / 100.0;
}

/** @param[in]  settings  what is set
@param[in]  excess    how far the dirty pages are above their threshold
@return what is flushed for it: pages a second, up to innodb_io_capacity_max */
inline double flush_share_per_s(const Flush_settings &settings, double excess) {
  const double least = flush_least_per_s(settings);
  return excess <= 0.0
             ? 0.0
             : least + std::min(excess, 1.0) *
                           std::max(0.0, settings.io_capacity_max - least);
}

/** What the purge coordinator asks for in its loop: what
the dirty rule does, and for the age what that begins with, as only the flusher
knows how fast the redo log is filled.
@param[in]  settings  what is set
@param[in]  look      the buffer pool and the redo log; rates are not used
@return pages a second; 0 for none */
inline double flush_purge_asks(const Flush_settings &settings,
                               const Flush_look &look) {
  const Flush_excess excess = flush_excess(settings, look);
  return settings.is_on
             ? std::max(flush_share_per_s(settings, excess.dirty),
                        excess.age > 0.0 ? flush_least_per_s(settings) : 0.0)
             : 0.0;
}

/** What an idle server flushes at once, each second. */
struct Flush_idle {
  /** Pages at the most. */
  uint64_t n_pages;

  /** There is more to flush, which the device is not known to carry. */
  bool is_at_device;
};

/** @param[in]  settings      what is set
@param[in]  n_allowed     innodb_idle_flush_pct of innodb_io_capacity: pages
@param[in]  n_dirty       dirty pages
@param[in]  n_flushed     pages that the rounds of this second have flushed
@param[in]  device_per_s  what the device carries: pages a second
@return what to flush, so that with the rounds it is no more than a second's */
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

/** Decides how many pages are flushed, round by round; there are rounds while
innodb_ahead_flushing is ON or innodb_adaptive_flushing_method is not native,
whose rate they spread over the second. One thread uses it. */
class Ahead_flush {
 public:
  /** A look, and a round if it is time for one. Between two looks about
  innodb_ahead_flushing_interval_ms pass.
  @param[in]  settings  what is set now
  @param[in]  look      the buffer pool and the redo log now
  @return what to do, and why. No more pages than innodb_io_capacity_max makes
  in FLUSH_LATE_INTERVALS or FLUSH_LATE_S, or as many of each instance; where
  the flusher was busy with something else than it makes in FLUSH_BACK_S */
  Flush_decision decide(const Flush_settings &settings, const Flush_look &look);

 private:
  /** Note what has happened since the last round.
  @param[in]  look      now
  @param[in]  passed_s  seconds since then; 0 if there was none */
  void see(const Flush_look &look, double passed_s);

  /** A round is handed over: note what the last one has cost. */
  void see_fsyncs(const Flush_look &look);

  /** @param[in]  per_s  what is flushed: pages a second
  @return so long a round waits for more pages: seconds; 0 with none to come */
  double gather_s(double per_s) const;

  /** @return pages a second; sets all of the decision but the pages */
  double pages_per_s(const Flush_settings &settings, const Flush_look &look,
                     Flush_decision *decision);

  /** @param[in]  carried  what is flushed at the most: pages a second
  @param[in]  at       the age: on the way from the threshold to sync flushing
  @return how fast the redo log may be filled: bytes a second. So that no page
  comes to sync flushing; below the age where it settles faster, so that a burst
  finds room and nobody stops at the threshold; and above it more slowly, down
  to nothing, as others fill it, too, who are not held back. Where all ages have
  as many pages it is filled as fast as it is emptied where it settles. The
  shapes are chosen, not derived: both are 1 where it settles; the root falls
  late, so that the age stays near, and to nothing at the end; the inverse
  leaves a burst that begins at the threshold nearly any speed */
  double redo_per_s(const Flush_settings &settings, const Flush_look &look,
                    double carried, double at) const;

  /** @param[in]  carried  what is flushed at the most: pages a second
  @return how fast the redo log may be filled that is being made smaller: bytes
  a second. As if all ages had as many pages */
  static double shrinking_redo_per_s(const Flush_look &look, double carried);

  /** @return when to look again: after so many seconds */
  double next_look_s(const Flush_settings &settings,
                     const Flush_look &look) const;

  /** @return whether a checkpoint is asked for: also where the oldest page is
  young, as it is the last checkpoint that redo space is counted from */
  bool wants_checkpoint(const Flush_settings &settings, const Flush_look &look);

  /** @return what each change is given, so that all together fill the redo log
  no faster: microseconds. What others write to it, as purge does, counts as
  theirs */
  double turn_us(double redo_per_s) const;

  /** The last look. */
  double m_now_s{0.0};
  uint64_t m_lsn{0};
  uint64_t m_n_written{0};
  uint64_t m_n_lru_flushed{0};
  uint64_t m_n_changes{0};

  /** When a checkpoint may be asked for again. */
  double m_next_checkpoint_s{0.0};

  /** Pages written, pages handed over from the LRU lists: a second. */
  double m_written_per_s{0.0};
  double m_lru_per_s{0.0};

  /** The last round that had pages: when, and how many fsync() there had been;
  and what each costs of them. */
  double m_round_s{0.0};
  uint64_t m_n_fsyncs{0};
  double m_round_fsyncs{0.0};

  /** What goes to the redo log, and changes of rows, over a longer time: a
  second. */
  double m_change_bytes_per_s{0.0};
  double m_changes_per_s{0.0};

  /** How fast the redo log is filled: bytes a second. */
  double m_filled_per_s{0.0};

  Flush_list_shape m_list;

  /** The time that pages are to be flushed for; of how much of it a round would
  have been late at the last look; and what is left as it is less than a page of
  each instance: seconds, pages. */
  double m_due_s{0.0};
  double m_late_s{0.0};
  double m_part{0.0};
};

}  // namespace spw

#endif /* flush0controller_h */
