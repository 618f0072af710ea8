/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file policy/flush0ahead.h
How many dirty pages are flushed before their number or the redo log forces it,
and how fast the redo log may be filled meanwhile. */

#ifndef flush0ahead_h
#define flush0ahead_h

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "flush0list.h"
#include "redo0limits.h"

namespace spw {

constexpr double FLUSH_UNLIMITED = std::numeric_limits<double>::infinity();

/** On the way from the age at which ahead flushing starts (0) to that of sync
flushing (1): pages are flushed so fast that none is older than the first when
its turn comes, and who writes is held back so much that the age settles at the
second. Beyond the first, so that pages are flushed as fast as the limits allow
where somebody is held back. (Simulated on all devices but the disk, with three
working sets and redo logs of 64M and 256M: the worst second is at 0.85 of the
mean or better; with 0.25 and 0.5 as well, with 2 % fewer transactions; with
0.75 and 0.875 as well, with 0.1 % fewer.) */
constexpr double FLUSH_FOLLOW_AT = 0.5;
constexpr double FLUSH_SETTLE_AT = 0.75;

/* What is simulated of the constants below is the geometric mean of the
transactions on four devices, with three working sets, two redo logs, and 9 and
27 fsync() for each round: what flush_simulate prints of constants
(unittest/policy). The least of their worst seconds, which it prints as well, is
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
constexpr unsigned long FLUSH_LEAST_INTERVAL_MS = 10;
constexpr double FLUSH_LEAST_INTERVAL_S = 1e-3 * FLUSH_LEAST_INTERVAL_MS;

/** Of innodb_ahead_flushing_interval_ms: upstream's own flushing is as often.
 */
constexpr unsigned long FLUSH_MOST_INTERVAL_MS = 1000;

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

/** Why so many pages are flushed, and no more. */
enum class Flush_reason {
  /** Ahead flushing is off. */
  OFF,
  /** Nothing is above its threshold: only what upstream asks for is flushed. */
  BELOW,
  /** Upstream asks for more. */
  NATIVE,
  /** The share of dirty pages is above its threshold. */
  DIRTY,
  /** The device is not busy. */
  UTIL,
  /** The purge coordinator has asked for more. */
  PURGE,
  /** The age of the oldest dirty page is below its threshold, and filled so
  fast that above it more would have to be flushed than is possible. */
  EARLY,
  /** The age of the oldest dirty page is above its threshold. */
  AGE,
  /** The same, and innodb_io_capacity_max is not enough. */
  LIMIT,
  /** The same, and the device is not known to carry more. */
  DEVICE,
  N
};

/** @param[in]  reason  a reason
@return it in words, for SHOW ENGINE INNODB STATUS */
inline const char *flush_reason_text(Flush_reason reason) {
  constexpr const char *texts[] = {
      "off",
      "nothing: below all thresholds",
      "upstream's formula, whose rate is higher",
      "dirty pages, above their threshold",
      "a device that is not busy",
      "purge, which has asked for more",
      "the age, early: there would be too much to flush later",
      "the age, above its threshold",
      "the age; innodb_io_capacity_max allows no more",
      "the age; the device is not known to carry more"};
  static_assert(sizeof(texts) / sizeof(*texts) ==
                static_cast<size_t>(Flush_reason::N));
  return texts[static_cast<size_t>(reason)];
}

/** @param[in]  reason  a reason
@return whether rounds for it are asked for by the page cleaners' coordinator:
neither by upstream's formula nor by purge */
inline bool flush_is_cleaners(Flush_reason reason) {
  switch (reason) {
    case Flush_reason::DIRTY:
    case Flush_reason::UTIL:
    case Flush_reason::EARLY:
    case Flush_reason::AGE:
    case Flush_reason::LIMIT:
    case Flush_reason::DEVICE:
      return true;
    case Flush_reason::OFF:
    case Flush_reason::BELOW:
    case Flush_reason::NATIVE:
    case Flush_reason::PURGE:
    case Flush_reason::N:
      break;
  }
  return false;
}

/** What the flusher has done since the last look instead of waiting for rounds,
for longer than one, which is not for the device to answer for. */
enum class Flush_away {
  /** Nothing, or not for so long. */
  NO,
  /** What is not ahead flushing: the pages of that time are made up for. */
  BUSY,
  /** It has flushed what an idle server may, which were the pages of that time.
   */
  IDLE
};

/** What is set; by default. */
struct Flush_settings {
  /** innodb_ahead_flushing. */
  bool is_on{false};

  /** innodb_ahead_flushing_dirty_pct, and innodb_max_dirty_pages_pct: percent.
   */
  double dirty_pct{0.0};
  double max_dirty_pct{90.0};

  /** innodb_ahead_flushing_age_pct: percent, below 100. By default so high that
  pages are changed often before they are flushed, and that a quarter of the
  way to sync flushing is left for bursts, and for the device to be known. */
  double age_pct{75.0};

  /** innodb_ahead_flushing_io_pct: percent. */
  double io_pct{20.0};

  /** innodb_io_capacity, innodb_io_capacity_max: pages a second. */
  double io_capacity{10e3};
  double io_capacity_max{20e3};

  /** innodb_ahead_flushing_interval_ms, the time between two rounds, unless
  there is a reason for another: seconds. */
  double interval_s{0.1};

  /** innodb_buffer_pool_instances: each flushes as many pages of a round. */
  uint64_t n_instances{1};

  /** innodb_ahead_flushing_device = LATENCY: no more is flushed than the device
  carries. */
  bool is_limited_by_device{true};
};

/** The defaults of the variables; is_limited_by_device is of none. */
constexpr Flush_settings FLUSH_DEFAULTS;

/** Of innodb_ahead_flushing_age_pct: so much that there is a way left on which
who writes can be held back. Chosen: of a redo log of 8M, the least that can be
set, 5 % are 0.3 MB, filled in 2 ms by 120 MB a second. */
constexpr double FLUSH_MOST_AGE_PCT = 95.0;

/** @param[in]  settings  what is set
@return the share of dirty pages above which pages are flushed ahead: percent.
0 stands for half of what is allowed (seed 001) */
inline double flush_dirty_threshold_pct(const Flush_settings &settings) {
  return settings.dirty_pct > 0.0 ? settings.dirty_pct
                                  : settings.max_dirty_pct / 2.0;
}

/** The buffer pool and the redo log at a time. As it is, an empty one. */
struct Flush_look {
  /** Of a clock that only goes forward: seconds. */
  double now_s{0.0};

  /** Dirty pages, and all pages of the buffer pool that hold or may hold data.
   */
  uint64_t n_dirty{0};
  uint64_t n_pages{0};

  /** The redo log's end; the oldest change of a dirty page, the same as the end
  if there is none; the last checkpoint: LSN. */
  uint64_t lsn{0};
  uint64_t oldest_lsn{0};
  uint64_t checkpoint_lsn{0};

  /** Pages may have been changed first by so much later than oldest_lsn says,
as they are not in the order of their changes
(innodb_buf_flush_list_added_size): bytes of LSN. */
  uint64_t order_lag{0};

  /** The age at which pages are flushed at any price: bytes of LSN. */
  uint64_t sync_age{0};

  /** What upstream's formula asks for, and what purge has asked for since the
  last round: pages a second. */
  double native_per_s{0.0};
  double purge_per_s{0.0};

  /** The former is in parts of innodb_io_capacity, as upstream's formula is for
  the most part. */
  bool is_native_in_parts{true};

  /** What the device leaves free beside that: flush_util_extra_per_s(). */
  double util_per_s{0.0};

  /** Pages that have been written, pages that have been handed over from the
  LRU lists, which upstream flushes first in each round as they need it, and
  changes of rows that took turns (redo_take_turn()), since the server started.
*/
  uint64_t n_written{0};
  uint64_t n_lru_flushed{0};
  uint64_t n_changes{0};

  /** fsync() of files other than the redo log's since the server started. */
  uint64_t n_fsyncs{0};

  /** Pages of the last round are still being written: upstream has one batch of
  a flush list at a time. */
  bool is_writing{false};

  /** What the flusher has done since the last look. */
  Flush_away away{Flush_away::NO};

  /** The redo log is being made smaller. */
  bool is_shrinking{false};

  /** What the device carries: pages a second. It has been seen, or is where to
  begin. */
  double device_per_s{FLUSH_UNLIMITED};
  bool is_device_seen{true};
};

/** What is done; with nothing set, nothing. */
struct Flush_decision {
  Flush_reason reason{Flush_reason::OFF};

  /** Pages may be flushed: those of the last round are written, and it is time
  for the next. */
  bool is_round{false};

  /** Pages to flush now. */
  uint64_t n_pages{0};

  /** Pages that were changed first at this LSN or later stay. */
  uint64_t lsn_limit{UINT64_MAX};

  /** How fast the redo log may be filled: bytes a second; and what that leaves
  for a change of a row: microseconds, 0 if it may be filled at any speed. */
  double redo_bytes_per_s{FLUSH_UNLIMITED};
  double turn_us{0.0};

  /** The round is late, and does not make up for so much: seconds. */
  double lost_s{0.0};

  /** No more may be flushed, and the device is not known to carry more. */
  bool is_at_device{false};

  /** When to look again: after so many seconds. */
  double next_look_s{0.0};

  /** A checkpoint would give redo space free that is needed. */
  bool wants_checkpoint{false};
};

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
(seed 001) */
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

/** What the purge coordinator asks for in its loop, where seed 001 has it: what
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
  Flush_decision decide(const Flush_settings &settings,
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
    const double late_s =
        std::max(FLUSH_LATE_INTERVALS * round_s, FLUSH_LATE_S);
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

 private:
  /** Note what has happened since the last round.
  @param[in]  look      now
  @param[in]  passed_s  seconds since then; 0 if there was none */
  void see(const Flush_look &look, double passed_s) {
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

  /** @param[in]  passed_s  seconds since the last value
  @param[in]  over_s    a mean is taken over about so long: seconds
  @return by how much of the difference to this value it moves */
  static double weight_of(double passed_s, double over_s) {
    return 1.0 - std::exp(-passed_s / over_s);
  }

  /** A round is handed over: note what the last one has cost. */
  void see_fsyncs(const Flush_look &look) {
    const double passed_s = look.now_s - m_round_s;
    if (m_round_s != 0.0 && passed_s > 0.0) {
      m_round_fsyncs +=
          weight_of(passed_s, FLUSH_FILL_S) *
          (counter_growth(m_n_fsyncs, look.n_fsyncs) - m_round_fsyncs);
    }
    m_round_s = look.now_s;
    m_n_fsyncs = look.n_fsyncs;
  }

  /** @param[in]  per_s  what is flushed: pages a second
  @return so long a round waits for more pages: seconds; 0 with none to come */
  double gather_s(double per_s) const {
    return m_round_fsyncs == 0.0 || per_s <= 0.0
               ? 0.0
               : std::min(FLUSH_LONG_INTERVAL_S,
                          FLUSH_PAGES_PER_FSYNC * m_round_fsyncs / per_s);
  }

  /** @return pages a second; sets all of the decision but the pages */
  double pages_per_s(const Flush_settings &settings, const Flush_look &look,
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
          look.is_shrinking
              ? shrinking_redo_per_s(look, emptied_by)
              : redo_per_s(settings, look, emptied_by, excess.age);
      decision->turn_us = turn_us(decision->redo_bytes_per_s);
    }
    decision->wants_checkpoint = wants_checkpoint(settings, look);
    decision->is_at_device = seen < settings.io_capacity_max && rate >= limit;
    if (decision->reason >= Flush_reason::AGE ||
        (decision->reason == Flush_reason::PURGE && excess.dirty == 0.0)) {
      /* Younger pages are not what is needed, and will be changed again. */
      const auto young =
          static_cast<uint64_t>(flush_age_at(settings, look, 0.0));
      decision->lsn_limit = std::min(
          look.lsn, look.lsn - std::min(look.lsn, young) + look.order_lag);
    }
    return rate;
  }

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
                    double carried, double at) const {
    const auto sync_age = static_cast<double>(look.sync_age);
    const double bytes = m_list.bytes_per_page(sync_age);
    if (bytes == FLUSH_UNLIMITED) {
      return FLUSH_UNLIMITED;
    }
    const double left = std::max(0.0, 1.0 - at) / (1.0 - FLUSH_SETTLE_AT);
    return carried * bytes * flush_age_at(settings, look, FLUSH_SETTLE_AT) /
           sync_age *
           (left < 1.0 ? std::sqrt(left) : std::max(1.0, FLUSH_SETTLE_AT / at));
  }

  /** @param[in]  carried  what is flushed at the most: pages a second
  @return how fast the redo log may be filled that is being made smaller: bytes
  a second. As if all ages had as many pages */
  static double shrinking_redo_per_s(const Flush_look &look, double carried) {
    return look.n_dirty == 0
               ? FLUSH_UNLIMITED
               : FLUSH_SHRINKING_SHARE * carried * flush_age(look) /
                     static_cast<double>(look.n_dirty);
  }

  /** @return when to look again: after so many seconds */
  double next_look_s(const Flush_settings &settings,
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

  /** @return whether a checkpoint is asked for: also where the oldest page is
  young, as it is the last checkpoint that redo space is counted from */
  bool wants_checkpoint(const Flush_settings &settings,
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

  /** @return what each change is given, so that all together fill the redo log
  no faster: microseconds. What others write to it, as purge does, counts as
  theirs */
  double turn_us(double redo_per_s) const {
    return redo_per_s == FLUSH_UNLIMITED || m_changes_per_s <= 0.0
               ? 0.0
               : 1e6 * m_change_bytes_per_s / m_changes_per_s /
                     std::max(redo_per_s, 1.0);
  }

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
static_assert(REDO_TURN_HOLDS_NS >= 2 * 1'000'000LL * FLUSH_MOST_INTERVAL_MS);

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

#endif /* flush0ahead_h */
