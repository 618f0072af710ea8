/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/policy/flush0types.h
Input and output of the controller of ahead flushing. */

#ifndef flush0types_h
#define flush0types_h

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

namespace spw {

constexpr double FLUSH_UNLIMITED = std::numeric_limits<double>::infinity();

/** Minimum of innodb_ahead_flushing_interval_ms. Chosen: a tenth of the
default. */
constexpr unsigned long FLUSH_INTERVAL_MIN_MS = 10;

/** Maximum: the interval of InnoDB's own flushing. */
constexpr unsigned long FLUSH_INTERVAL_MAX_MS = 1000;

/** innodb_io_capacity_max above this counts as this: pages/s. Chosen: more than
any device writes. Less than the range of the integers for pages. */
constexpr double FLUSH_IO_CAPACITY_MAX_PER_S = 1e9;

/** innodb_ahead_flushing_device. */
enum class Flush_device {
  /** innodb_io_capacity_max stands for the device write capacity. */
  OFF,
  /** While the kernel reports the device busy for less than FLUSH_BUSY_FRACTION
  of the time, also flush with the unused part of innodb_io_capacity. */
  UTIL,
  /** Measure the device write capacity from the time that the writes of a round
  take. */
  LATENCY
};

/** The rule in force: the one with the highest rate of flushing. */
enum class Flush_trigger {
  /** Ahead flushing is off, and so is the other reason for flush rounds,
  innodb_adaptive_flushing_method. */
  OFF,
  /** All measures are below their thresholds, and adaptive flushing recommends
  no page. */
  NONE,
  /** Adaptive flushing. */
  ADAPTIVE,
  /** The percentage of dirty pages is above its threshold. */
  DIRTY,
  /** The device is not busy. */
  UTIL,
  /** The purge coordinator has requested more. */
  PURGE,
  /** The oldest page age is below its threshold, and redo is generated so fast
  that above the threshold more pages would have to be flushed than the limits
  allow. */
  EARLY,
  /** The oldest page age is above its threshold. */
  AGE,
  /** Ahead flushing was switched off a moment ago, and would leave more than
  adaptive flushing can flush within the limits. */
  DRAIN,
  N
};

/** What keeps the trigger AGE from flushing as many pages as it needs. */
enum class Flush_limit {
  /** No limit is reached. Always with the other triggers, whose requests are
  cut to the limits. */
  NONE,
  /** innodb_io_capacity_max. */
  IO_CAPACITY_MAX,
  /** The device write capacity, as measured or as estimated at first. */
  DEVICE,
  N
};

/** @param[in]  trigger  a trigger
@return its text in SHOW ENGINE INNODB STATUS */
inline const char *flush_trigger_text(Flush_trigger trigger) {
  constexpr const char *texts[] = {
      "off",
      "none, all measures are below their thresholds",
      "adaptive flushing",
      "percentage of dirty pages",
      "device not busy",
      "request by purge",
      "oldest page age, rising fast",
      "oldest page age",
      "switched off, draining"};
  static_assert(sizeof(texts) / sizeof(*texts) ==
                static_cast<size_t>(Flush_trigger::N));
  return texts[static_cast<size_t>(trigger)];
}

/** @param[in]  limit  a limit
@return its text in SHOW ENGINE INNODB STATUS */
inline const char *flush_limit_text(Flush_limit limit) {
  constexpr const char *texts[] = {"no limit reached",
                                   "limited by innodb_io_capacity_max",
                                   "limited by device write capacity"};
  static_assert(sizeof(texts) / sizeof(*texts) ==
                static_cast<size_t>(Flush_limit::N));
  return texts[static_cast<size_t>(limit)];
}

/** @param[in]  trigger  of a flush round
@return whether it is a rule of ahead flushing, which counts the pages as
flushed ahead; else they count as adaptive flushing's */
inline bool is_ahead_trigger(Flush_trigger trigger) {
  switch (trigger) {
    case Flush_trigger::DIRTY:
    case Flush_trigger::UTIL:
    case Flush_trigger::PURGE:
    case Flush_trigger::EARLY:
    case Flush_trigger::AGE:
    case Flush_trigger::DRAIN:
      return true;
    case Flush_trigger::OFF:
    case Flush_trigger::NONE:
    case Flush_trigger::ADAPTIVE:
    case Flush_trigger::N:
      break;
  }
  return false;
}

/** What the page cleaners' coordinator has done since the last sample instead
of waiting for rounds, if it took longer than a round. Such a delay says nothing
about the device. */
enum class Gap_cause {
  /** None, or the gap was at most as long as a flush round. */
  NONE,
  /** Unrelated work: the next round catches up. */
  OTHER_WORK,
  /** Flushing of an idle server (innodb_idle_flush_pct). Its pages were the
  pages of that time: the next round does not catch up. */
  IDLE_FLUSH
};

/** The settings. Initialized to the defaults. */
struct Flush_settings {
  /** innodb_ahead_flushing. */
  bool is_on{false};

  /** While ahead flushing drains: seconds since it was switched OFF. It goes
  on, and releases the sessions step by step. */
  std::optional<double> drain_s{};

  /** innodb_ahead_flushing_dirty_pct, and innodb_max_dirty_pages_pct: percent.
   */
  double dirty_pct{81.0};
  double max_dirty_pct{90.0};

  /** innodb_ahead_flushing_age_pct: percent of the sync age, below 100. The
  default is high, so that pages are changed often before a flush. It leaves a
  quarter of the sync age for bursts, and to measure the device write capacity.
  */
  double age_pct{75.0};

  /** innodb_ahead_flushing_io_pct: percent. */
  double io_pct{20.0};

  /** innodb_io_capacity, innodb_io_capacity_max: pages/s. */
  double io_capacity{10e3};
  double io_capacity_max{20e3};

  /** These two have their defaults: above the age threshold they do not limit a
  device whose capacity is measured. */
  bool is_io_capacity_default{false};

  /** innodb_ahead_flushing_interval_ms: seconds between two rounds. The
  controller shortens or lengthens it. */
  double interval_s{0.1};

  /** innodb_buffer_pool_instances: each flushes the same number of pages in a
  round. */
  uint64_t n_instances{1};

  /** innodb_ahead_flushing_device = LATENCY: the device write capacity limits
  flushing. */
  bool is_limited_by_device{true};
};

/** The defaults of the variables; is_limited_by_device and
is_io_capacity_default are not variables. */
constexpr Flush_settings FLUSH_DEFAULTS;

/** The default of innodb_ahead_flushing_device. */
constexpr Flush_device FLUSH_DEVICE_DEFAULT = Flush_device::LATENCY;

/** Maximum of innodb_ahead_flushing_age_pct: leaves a range in which the write
throttle can delay sessions. Chosen: in the smallest redo log, 8M, 5 % are 0.3
MB, which 120 MB/s fill in 2 ms. */
constexpr double FLUSH_AGE_PCT_MAX = 95.0;

/** Maximum of the dirty threshold, as a fraction of innodb_max_dirty_pages_pct:
the rest is the range in which the rate rises. It is the default as well. Pages
that are flushed below it are changed again. Source: simulation of a SATA disk
and more data than buffer pool: 40 % more transactions than with 0.5, adaptive
flushing left out. */
constexpr double FLUSH_DIRTY_FRACTION = 0.9;

/** @param[in]  settings  the settings
@return the percentage of dirty pages above which pages are flushed ahead; 100
if dirty_pct is 0, which switches the rule off */
inline double flush_dirty_threshold_pct(const Flush_settings &settings) {
  return settings.dirty_pct > 0.0
             ? std::min(settings.dirty_pct,
                        FLUSH_DIRTY_FRACTION * settings.max_dirty_pct)
             : 100.0;
}

/** State of the buffer pool and the redo log. Initialized as empty. */
struct Flush_sample {
  /** Monotonic clock: seconds. */
  double now_s{0.0};

  /** Dirty pages, and all pages of the buffer pool that hold or can hold data.
   */
  uint64_t n_dirty{0};
  uint64_t n_pages{0};

  /** LSNs: end of the redo log; first change of the oldest dirty page, or the
  end of the redo log if no page is dirty; last checkpoint. */
  uint64_t lsn{0};
  uint64_t oldest_lsn{0};
  uint64_t checkpoint_lsn{0};

  /** Flush lists are not strictly ordered (innodb_buf_flush_list_added_size): a
  page's first change can be this much later than oldest_lsn says. Bytes of LSN.
  */
  uint64_t lsn_disorder{0};

  /** Sync age: bytes of LSN. */
  uint64_t sync_age{0};

  /** Threads wait for redo space. */
  bool is_redo_space_awaited{false};

  /** Pages/s that adaptive flushing recommends, and that purge has requested
  since the last round. */
  double adaptive_per_s{0.0};
  double purge_per_s{0.0};

  /** Whether adaptive_per_s is proportional to innodb_io_capacity, as most of
  the adaptive flushing formula is. */
  bool adaptive_scales_with_io_capacity{true};

  /** Pages/s that UTIL adds: flush_util_extra_per_s(). */
  double util_per_s{0.0};

  /** Since the server started: pages written; pages submitted from the LRU
  lists, which each pass flushes first; redo that sessions were charged by the
  write throttle, which charges only while redo generation is limited: bytes. */
  uint64_t n_written{0};
  uint64_t n_lru_flushed{0};
  uint64_t charged_bytes{0};

  /** fsync() calls since the server started, except on the redo log. */
  uint64_t n_fsyncs{0};

  /** Time of the syncs of data files after doublewrite batches since then, each
  with all files: seconds. */
  double sync_s{0.0};

  /** Groups in group commit of the binary log since then that have synced it,
  and the time of their syncs and of the redo log's: seconds. */
  uint64_t n_groups{0};
  double group_s{0.0};

  /** Sessions that wait for commits now. */
  uint64_t n_committing{0};

  /** Pages of the last round are still being written. InnoDB has at most one
  batch for each flush list at a time. */
  bool is_writing{false};

  /** What the coordinator has done since the last sample. */
  Gap_cause gap_cause{Gap_cause::NONE};

  /** The redo log is being resized down. */
  bool is_shrinking{false};

  /** Device write capacity: pages/s. is_device_measured: it is measured; else
  it is the initial estimate. */
  double device_per_s{FLUSH_UNLIMITED};
  bool is_device_measured{true};

  /** Min time between two batches, as a batch takes a time that does not depend
  on its pages: seconds. wants_probe: it should be measured
  (Flush_capacity). */
  double device_interval_s{0.0};
  bool wants_probe{false};
};

/** The decision. Initialized to no flushing and no limit. */
struct Flush_decision {
  Flush_trigger trigger{Flush_trigger::OFF};

  Flush_limit limit{Flush_limit::NONE};

  /** A round can begin: the pages of the last one are written, and it is time.
   */
  bool is_round{false};

  /** Pages to flush now. */
  uint64_t n_pages{0};

  /** Flush only pages whose first change is before this LSN. */
  uint64_t lsn_limit{UINT64_MAX};

  /** Limit on redo generation, and its part for the sessions that are
  throttled: bytes/s. */
  double redo_bytes_per_s{FLUSH_UNLIMITED};
  double session_redo_bytes_per_s{FLUSH_UNLIMITED};

  /** Sessions that a group in group commit of the binary log should have before
  its leader begins, and how long the leader waits for them at most: us; 0 if it
  does not wait. */
  unsigned commit_group{0};
  long commit_group_wait_us{0};

  /** The round is a probe of the fixed time of a batch: one page of each
  instance. */
  bool is_probe{false};

  /** The rate is at its limit, and the device write capacity, measured or
  estimated at first, is below innodb_io_capacity_max. */
  bool is_at_device{false};

  /** Ahead flushing has drained, or was not switched off. */
  bool is_drained{true};

  /** Time to the next sample: seconds. */
  double next_tick_s{0.0};

  /** Request a checkpoint: it would reclaim redo space that is needed. */
  bool wants_checkpoint{false};
};

}  // namespace spw

#endif /* flush0types_h */
