/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/flush0round.cc
Rounds of ahead flushing, by the page cleaners' coordinator. Unless it is said
otherwise only the coordinator calls what is here. */

#include "flush0round.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <string>
#include <utility>
#include <vector>

#include "aio0array.h"
#include "buf0buf.h"
#include "buf0flu.h"
#include "fil0fil.h"
#include "log0log.h"
#include "os0event.h"
#include "spw0hook.h"
#include "srv0mon.h"
#include "srv0shutdown.h"
#include "srv0srv.h"
#include "stall0stall.h"

namespace spw {

bool ahead_flushing = false;
double ahead_flushing_dirty_pct = 0.0;
double ahead_flushing_age_pct = 60.0;
double ahead_flushing_io_pct = 20.0;
ulong ahead_flushing_interval_ms = 100;
ulong adaptive_flushing_method = static_cast<ulong>(Flush_method::NATIVE);
ulong ahead_flushing_device = static_cast<ulong>(Flush_device::OFF);

namespace {

using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::steady_clock;

Ahead_flush s_policy;
Adaptive_method s_method;
Flush_capacity s_capacity;

/** The disks below the data directory, what they had done when they were looked
at, and what they leave free beside upstream's formula: pages a second. Only
with innodb_ahead_flushing_device = UTIL. */
Disk_reader s_disks;
std::vector<Disk_work> s_disk_work;
steady_clock::time_point s_disk_time{};
uint64_t s_disk_n_flushed = 0;
double s_util_per_s = 0.0;

/** There is nothing to look at, and the error log says why. */
bool s_has_no_disks = false;

/** What upstream's formula, or innodb_adaptive_flushing_method, has asked for
last, and when: pages a second. It is asked once a second, while the server is
not idle. */
double s_native_per_s = 0.0;
steady_clock::time_point s_native_time{};
constexpr std::chrono::seconds NATIVE_HOLDS{2};

/** Pages of the flush lists that rounds have flushed and upstream's formula has
not been told of. */
ulint s_n_untold = 0;

steady_clock::time_point s_next_look{};

/** When the last batch was handed over, or the coordinator went on. */
steady_clock::time_point s_last_batch{};

/** The coordinator has done something else since the last look. */
bool s_is_back = false;

/** When the checkpointer may be woken again: it is for nothing if the last
checkpoint is not a second ago. */
steady_clock::time_point s_next_checkpoint{};
constexpr std::chrono::milliseconds CHECKPOINT_WAKE{100};

/** When sync flushing has begun; nothing if it has not. */
steady_clock::time_point s_sync_start{};

/** The highest of what the purge coordinator has asked for since the last
round: pages a second. */
std::atomic<uint64_t> s_purge_per_s{0};

std::atomic<uint64_t> s_asked_purge{0};
std::atomic<uint64_t> s_asked_cleaner{0};
std::atomic<uint64_t> s_rounds[static_cast<size_t>(Flush_reason::N)];
std::atomic<Flush_reason> s_reason{Flush_reason::OFF};
std::atomic<double> s_measured_per_s{0.0};
std::atomic<double> s_redo_per_s{FLUSH_UNLIMITED};

double seconds_of(steady_clock::time_point time) {
  return duration<double>(time.time_since_epoch()).count();
}

/** @return the method, where upstream's adaptive flushing is not switched off
 */
Flush_method method() {
  return srv_adaptive_flushing
             ? static_cast<Flush_method>(adaptive_flushing_method)
             : Flush_method::NATIVE;
}

bool has_rounds() {
  return !srv_read_only_mode &&
         (ahead_flushing || method() != Flush_method::NATIVE);
}

Flush_settings settings() {
  return {.is_on = ahead_flushing,
          .has_rounds = has_rounds(),
          .dirty_pct = ahead_flushing_dirty_pct,
          .max_dirty_pct = srv_max_buf_pool_modified_pct,
          .age_pct = ahead_flushing_age_pct,
          .io_pct = ahead_flushing_io_pct,
          .io_capacity = static_cast<double>(srv_io_capacity),
          .io_capacity_max = static_cast<double>(srv_max_io_capacity),
          .interval_s = 1e-3 * static_cast<double>(ahead_flushing_interval_ms),
          .n_instances = srv_buf_pool_instances};
}

/** Any thread.
@param[in]  now  now
@return the buffer pool and the redo log, without what is only known of rounds
*/
Flush_look look_at(steady_clock::time_point now) {
  ulint n_lru;
  ulint n_free;
  ulint n_dirty;
  buf_get_total_list_len(&n_lru, &n_free, &n_dirty);
  /* In this order none of the LSNs is ahead of the next. */
  const Redo_fill redo = redo_fill();
  const lsn_t oldest = buf_pool_get_oldest_modification_lwm();
  const lsn_t lsn = log_get_lsn(*log_sys);
  return {.now_s = seconds_of(now),
          .n_dirty = n_dirty,
          .n_pages = n_lru + n_free,
          .lsn = lsn,
          .oldest_lsn = oldest == 0 ? lsn : std::min(lsn, oldest),
          .checkpoint_lsn = redo.lsn_last_checkpoint,
          .sync_age = redo.limits.sync_age,
          .native_per_s = 0.0,
          .purge_per_s = 0.0,
          .is_native_in_parts = method() == Flush_method::NATIVE,
          .util_per_s = 0.0,
          .n_lru_flushed = flush_work(Flush_cause::LRU).pages,
          .n_changes = redo_delays().n_changes,
          .is_writing = false,
          .is_back = false,
          .device_per_s = FLUSH_UNLIMITED};
}

/** @return whether pages of the last round are still being written */
bool is_writing() {
  for (ulint i = 0; i < srv_buf_pool_instances; ++i) {
    buf_pool_t *const buf_pool = buf_pool_from_array(i);
    mutex_enter(&buf_pool->flush_state_mutex);
    const bool is_writing = buf_pool->is_flushing(BUF_FLUSH_LIST);
    mutex_exit(&buf_pool->flush_state_mutex);
    if (is_writing) {
      return true;
    }
  }
  return false;
}

/** See how busy the disks are.
@param[in]  now  now */
void look_at_disks(steady_clock::time_point now) {
  if (ahead_flushing_device != static_cast<ulong>(Flush_device::UTIL)) {
    s_disk_work.clear();
    s_util_per_s = 0.0;
    s_has_no_disks = false;
    return;
  }
  const double passed_s = seconds_of(now) - seconds_of(s_disk_time);
  if (s_has_no_disks || (!s_disk_work.empty() && passed_s < FLUSH_WINDOW_S)) {
    return;
  }
  s_util_per_s = 0.0;
  std::string why;
  if (s_disk_work.empty() &&
      !s_disks.open(MySQL_datadir_path.abs_path(), &why)) {
    s_has_no_disks = true;
    ib::warn() << "innodb_ahead_flushing_device=UTIL is without effect: " << why
               << ". LATENCY needs no device.";
    return;
  }
  const std::vector<Disk_work> work = s_disks.read();
  const uint64_t n_flushed = srv_stats.buf_pool_flushed;
  if (!s_disk_work.empty() && !work.empty()) {
    s_util_per_s = flush_util_extra_per_s(
        disk_load(s_disk_work, work, passed_s),
        static_cast<double>(n_flushed - s_disk_n_flushed) / passed_s,
        s_native_per_s, static_cast<double>(srv_io_capacity));
  }
  s_disk_work = work;
  s_disk_n_flushed = n_flushed;
  s_disk_time = now;
}

/** Decide, and make known how fast the redo log may be filled.
@param[in]  now      now
@param[in]  is_sync  pages are flushed at any price, and no more can be
@return what to flush */
Flush_decision decide(steady_clock::time_point now, bool is_sync) {
  Flush_look look = look_at(now);
  look.native_per_s = now < s_native_time + NATIVE_HOLDS ? s_native_per_s : 0.0;
  look_at_disks(now);
  look.util_per_s = s_util_per_s;
  look.is_writing = is_sync || is_writing();
  look.is_back = std::exchange(s_is_back, false);
  look.purge_per_s = static_cast<double>(
      look.is_writing ? s_purge_per_s.load() : s_purge_per_s.exchange(0));
  s_capacity.look(look.now_s, aio_writes_idle_since_s());
  s_measured_per_s = s_capacity.pages_per_s();
  if (ahead_flushing &&
      ahead_flushing_device == static_cast<ulong>(Flush_device::LATENCY)) {
    look.device_per_s = s_capacity.limit_per_s();
  }
  const Flush_settings set = settings();
  const Flush_decision decision = s_policy.decide(set, look);
  s_next_look = now + duration_cast<steady_clock::duration>(duration<double>(
                          flush_next_look_s(set, look.is_writing)));
  redo_set_turn(decision.turn_us);
  s_redo_per_s = ahead_flushing_max_delay_us == 0
                     ? FLUSH_UNLIMITED
                     : std::max(1.0, decision.redo_bytes_per_s);
  s_reason = decision.reason;
  if (decision.wants_checkpoint && now >= s_next_checkpoint) {
    os_event_set(log_sys->checkpointer_event);
    s_next_checkpoint = now + CHECKPOINT_WAKE;
  }
  return decision;
}

/** Flush for a round.
@param[in]  now          now
@param[in]  flush_pages  has the page cleaners flush */
void round(steady_clock::time_point now, Flush_pages flush_pages) {
  const Flush_decision decision = decide(now, false);
  if (decision.is_round) {
    s_rounds[static_cast<size_t>(decision.reason)].fetch_add(
        1, std::memory_order_relaxed);
    if (decision.reason > Flush_reason::NATIVE &&
        decision.reason != Flush_reason::PURGE) {
      s_asked_cleaner.fetch_add(1, std::memory_order_relaxed);
    }
  }
  ulint n_lru = 0;
  ulint n_list = 0;
  if (decision.n_pages != 0) {
    flush_pages(decision.n_pages, decision.lsn_limit, &n_lru, &n_list);
  }
  s_n_untold += n_list;
  s_last_batch = steady_clock::now();
  s_capacity.round(seconds_of(now), seconds_of(s_last_batch), n_lru + n_list,
                   decision.lost_s, decision.is_at_device);
  flush_done(decision.reason > Flush_reason::NATIVE ? Flush_cause::AHEAD
                                                    : Flush_cause::ADAPTIVE,
             n_list);
  flush_done(Flush_cause::LRU, n_lru);
  if (n_lru != 0) {
    MONITOR_INC_VALUE_CUMULATIVE(MONITOR_LRU_BATCH_FLUSH_TOTAL_PAGE,
                                 MONITOR_LRU_BATCH_FLUSH_COUNT,
                                 MONITOR_LRU_BATCH_FLUSH_PAGES, n_lru);
  }
  if (n_list != 0) {
    MONITOR_INC_VALUE_CUMULATIVE(MONITOR_FLUSH_ADAPTIVE_TOTAL_PAGE,
                                 MONITOR_FLUSH_ADAPTIVE_COUNT,
                                 MONITOR_FLUSH_ADAPTIVE_PAGES, n_list);
  }
}

/** Note that the coordinator flushes at any price, or does so no more. */
void note_sync(bool is_sync) {
  const bool was_sync = s_sync_start != steady_clock::time_point{};
  if (is_sync && !was_sync) {
    s_sync_start = stall_begin(Stall::SYNC_FLUSH);
  } else if (!is_sync && was_sync) {
    stall_end(Stall::SYNC_FLUSH, s_sync_start);
    s_sync_start = {};
  }
}

/** There are no rounds: nobody is held back, and what was seen is forgotten,
but for the device. */
void let_go() {
  s_policy = {};
  s_method = {};
  s_capacity.pause();
  redo_set_turn(0.0);
  s_redo_per_s = FLUSH_UNLIMITED;
  s_reason = Flush_reason::OFF;
}

}  // namespace

void flush_ahead_rounds(steady_clock::time_point until, int64_t sig_count,
                        Flush_pages flush_pages) {
  note_sync(false);
  /* At least one round, if it is due, each time the coordinator comes by: what
  it does in between can take longer than the second that it has. */
  bool has_flushed = false;
  while (has_rounds() && srv_shutdown_state.load() < SRV_SHUTDOWN_CLEANUP) {
    const auto now = steady_clock::now();
    const bool is_due = s_next_look <= now;
    if ((now >= until || os_event_is_set(buf_flush_event)) &&
        (has_flushed || !is_due)) {
      s_last_batch = now;
      s_is_back = true;
      return;
    }
    if (is_due) {
      round(now, flush_pages);
      has_flushed = true;
    } else {
      (void)os_event_wait_time_low(
          buf_flush_event,
          duration_cast<microseconds>(std::min(until, s_next_look) - now),
          sig_count);
    }
  }
  if (!has_rounds()) {
    let_go();
  }
}

ulint flush_ahead_untold() { return std::exchange(s_n_untold, 0); }

ulint flush_recommended(ulint n_pages) {
  if (!has_rounds()) {
    return n_pages;
  }
  s_native_time = steady_clock::now();
  const Flush_look look = look_at(s_native_time);
  s_native_per_s =
      s_method.pages(method(), {.now_s = look.now_s,
                                .n_native = n_pages,
                                .n_dirty = look.n_dirty,
                                .lsn = look.lsn,
                                .oldest_lsn = look.oldest_lsn,
                                .sync_age = look.sync_age,
                                .n_flushed = srv_stats.buf_pool_flushed,
                                .is_too_dirty = buf_get_modified_ratio_pct() >=
                                                srv_max_buf_pool_modified_pct});
  return 0;
}

void flush_round_done(bool is_sync, ulint n_list, ulint n_lru) {
  flush_done(is_sync ? Flush_cause::SYNC : Flush_cause::ADAPTIVE, n_list);
  flush_done(Flush_cause::LRU, n_lru);
  if (has_rounds()) {
    const auto now = steady_clock::now();
    s_capacity.round(seconds_of(s_last_batch), seconds_of(now), n_list + n_lru,
                     0.0, false);
    s_last_batch = now;
    if (is_sync) {
      (void)decide(now, true);
    }
  }
  note_sync(is_sync);
}

void flush_asked_by_purge() {
  if (!ahead_flushing) {
    return;
  }
  const auto per_s = static_cast<uint64_t>(
      flush_purge_asks(settings(), look_at(steady_clock::now())));
  if (per_s == 0) {
    return;
  }
  s_asked_purge.fetch_add(1, std::memory_order_relaxed);
  uint64_t asked = s_purge_per_s.load(std::memory_order_relaxed);
  while (asked < per_s && !s_purge_per_s.compare_exchange_weak(
                              asked, per_s, std::memory_order_relaxed)) {
  }
}

Ahead_flush_stats ahead_flush_stats() {
  const double redo_per_s = s_redo_per_s;
  const Redo_delays delays = redo_delays();
  Ahead_flush_stats stats{
      .asked_purge = s_asked_purge,
      .asked_cleaner = s_asked_cleaner,
      .rounds = {},
      .reason = s_reason,
      .measured_capacity = static_cast<uint64_t>(s_measured_per_s.load()),
      .redo_limit_bytes_per_s =
          redo_per_s == FLUSH_UNLIMITED ? 0 : static_cast<uint64_t>(redo_per_s),
      .delays = delays.n_delays,
      .delay_us = delays.delay_us};
  std::copy(std::begin(s_rounds), std::end(s_rounds), stats.rounds);
  return stats;
}

void ahead_flush_print(FILE *file) {
  const Ahead_flush_stats stats = ahead_flush_stats();
  fprintf(file, "%-56s%14s\n", "Flushed ahead for", "rounds");
  for (size_t i = 0; i < std::size(stats.rounds); ++i) {
    const auto reason = static_cast<Flush_reason>(i);
    if (reason != Flush_reason::OFF) {
      fprintf(file, "  %-54s%14" PRIu64 "\n", flush_reason_text(reason),
              stats.rounds[i]);
    }
  }
  fprintf(file,
          "Ahead flushing now: %s; asked %" PRIu64 " times by purge, %" PRIu64
          " by the page cleaner\n"
          "The device was seen to carry %" PRIu64
          " pages/s; the redo log may be filled by %" PRIu64
          " bytes/s (0: not known, no limit)\n"
          "Changes of rows delayed %" PRIu64 ", by %" PRIu64 " us in all\n",
          flush_reason_text(stats.reason), stats.asked_purge,
          stats.asked_cleaner, stats.measured_capacity,
          stats.redo_limit_bytes_per_s, stats.delays, stats.delay_us);
}

}  // namespace spw
