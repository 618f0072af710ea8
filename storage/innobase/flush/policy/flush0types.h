/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/policy/flush0types.h
What the controller of ahead flushing is given, and what it decides. */

#ifndef flush0types_h
#define flush0types_h

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace spw {

constexpr double FLUSH_UNLIMITED = std::numeric_limits<double>::infinity();

/** Of innodb_ahead_flushing_interval_ms. The least is chosen: a tenth of the
default. */
constexpr unsigned long FLUSH_LEAST_INTERVAL_MS = 10;

/** Upstream's own flushing is as often. */
constexpr unsigned long FLUSH_MOST_INTERVAL_MS = 1000;

/** innodb_ahead_flushing_device. */
enum class Flush_device {
  /** innodb_io_capacity_max is what the device carries. */
  OFF,
  /** While the kernel says that the device is busy for less than
  FLUSH_BUSY_SHARE, flush also what innodb_io_capacity leaves free. */
  UTIL,
  /** How long the writes of a round take says what the device carries. */
  LATENCY
};

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
0 stands for half of what is allowed */
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

}  // namespace spw

#endif /* flush0types_h */
