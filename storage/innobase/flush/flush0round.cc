/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/flush0round.cc
Rounds of ahead flushing, by the page cleaners' coordinator. Unless it is said
otherwise only the coordinator calls what is here. */

#include "flush/flush0round.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <string>
#include <utility>

#include "aio/aio0array.h"
#include "buf0buf.h"
#include "buf0flu.h"
#include "fil0fil.h"
#include "flush/flush0cause.h"
#include "log0log.h"
#include "log0write.h"
#include "mysqld_error.h"
#include "os0event.h"
#include "redo/redo0state.h"
#include "sql/sql_error.h"
#include "srv0shutdown.h"
#include "srv0srv.h"
#include "stall/hook.h"
#include "throttle/throttle0session.h"

namespace spw {

double ahead_flushing_dirty_pct = FLUSH_DEFAULTS.dirty_pct;
double ahead_flushing_io_pct = FLUSH_DEFAULTS.io_pct;
ulong ahead_flushing_interval_ms =
    static_cast<ulong>(1e3 * FLUSH_DEFAULTS.interval_s);
ulong adaptive_flushing_method = static_cast<ulong>(Flush_method::NATIVE);
ulong ahead_flushing_device = static_cast<ulong>(Flush_device::OFF);

namespace {

using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

Ahead_flush s_policy;
Adaptive_method s_method;
Flush_capacity s_capacity;
Flush_util s_util;

/** The disks below the data directory; only with innodb_ahead_flushing_device =
UTIL. */
Disk_reader s_disks;

/** There is nothing to look at, and the error log says why. */
bool s_has_no_disks = false;

/** What is said of innodb_ahead_flushing_dirty_pct where it makes no sense, and
whether the error log says it of what is set now. */
constexpr const char *DIRTY_PCT_ABOVE =
    "innodb_ahead_flushing_dirty_pct is above innodb_max_dirty_pages_pct: ahead"
    " flushing begins with innodb_io_capacity_max.";
bool s_is_dirty_pct_above = false;

steady_clock::time_point s_next_look{};

/** What is decided for the round that the coordinator makes in this pass of its
loop; no pages if it makes none. */
Flush_decision s_round;

/** The last pass was for a round. */
bool s_was_round = false;

/** Pages of the flush lists that have been flushed and upstream's formula has
not been told of; and those of the last pass, of which sync flushing tells it
itself. */
ulint s_n_untold = 0;
ulint s_n_last = 0;

/** Pages of the flush lists that rounds have flushed since the second of the
coordinator's loop began. */
uint64_t s_n_of_second = 0;

/** Since when pages of this pass may be being written. */
steady_clock::time_point s_batch_begin{};

/** Since when the coordinator does something else than to wait for rounds;
nothing if it does not. What that is, if it takes longer than a round. */
steady_clock::time_point s_away_since{};
Flush_away s_away{Flush_away::NO};

/** When sync flushing has begun; nothing if it has not. */
steady_clock::time_point s_sync_start{};

/** The highest of what the purge coordinator has asked for since the last
round: pages a second. */
std::atomic<uint64_t> s_purge_per_s{0};

std::atomic<uint64_t> s_asked_purge{0};
std::atomic<uint64_t> s_rounds[static_cast<size_t>(Flush_reason::N)];
std::atomic<Flush_reason> s_reason{Flush_reason::OFF};
std::atomic<double> s_measured_per_s{0.0};
std::atomic<uint64_t> s_age_bytes{0};
std::atomic<double> s_redo_per_s{FLUSH_UNLIMITED};

double seconds_of(steady_clock::time_point time) {
  return duration<double>(time.time_since_epoch()).count();
}

/** @return the method in effect */
Flush_method method() {
  return flush_method_used(static_cast<Flush_method>(adaptive_flushing_method),
                           srv_adaptive_flushing,
                           mtr_t::s_logging.is_enabled());
}

/** @return whether the page cleaners flush in rounds */
bool has_rounds() {
  return !srv_read_only_mode &&
         (ahead_flushing || method() != Flush_method::NATIVE);
}

Flush_settings settings() {
  return {.is_on = ahead_flushing,
          .dirty_pct = ahead_flushing_dirty_pct,
          .max_dirty_pct = srv_max_buf_pool_modified_pct,
          .age_pct = ahead_flushing_age_pct,
          .io_pct = ahead_flushing_io_pct,
          .io_capacity = static_cast<double>(srv_io_capacity),
          .io_capacity_max = static_cast<double>(srv_max_io_capacity),
          .interval_s = 1e-3 * static_cast<double>(ahead_flushing_interval_ms),
          .n_instances = srv_buf_pool_instances,
          .is_limited_by_device =
              ahead_flushing && ahead_flushing_device ==
                                    static_cast<ulong>(Flush_device::LATENCY)};
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
          .order_lag = buf_flush_list_added->order_lag(),
          .sync_age = redo.limits.sync_age,
          .is_native_in_parts =
              method() == Flush_method::NATIVE && mtr_t::s_logging.is_enabled(),
          .n_lru_flushed = flush_work(Flush_cause::LRU).pages +
                           flush_work(Flush_cause::SINGLE_PAGE).pages,
          .n_changes = redo_delays().n_changes};
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
@param[in]  look  the buffer pool now */
void look_at_disks(const Flush_look &look) {
  if (!ahead_flushing ||
      ahead_flushing_device != static_cast<ulong>(Flush_device::UTIL)) {
    s_util = {};
    s_has_no_disks = false;
    return;
  }
  if (s_has_no_disks || !s_util.is_due(look.now_s)) {
    return;
  }
  std::string why;
  if (s_util.is_new() && !s_disks.open(MySQL_datadir_path.abs_path(), &why)) {
    s_util = {};
    s_has_no_disks = true;
    ib::warn() << "innodb_ahead_flushing_device=UTIL is without effect: " << why
               << ". LATENCY needs no device.";
    return;
  }
  s_util.look(look.now_s, s_disks.read(), srv_stats.buf_pool_flushed,
              look.native_per_s, static_cast<double>(srv_io_capacity));
}

/** @return whether the redo log is being made smaller, as
Innodb_redo_log_resize_status says it; without a latch, which is held while
files are made */
bool is_redo_shrinking() {
  const uint64_t capacity = srv_redo_log_capacity_used;
  return capacity != 0 &&
         export_vars.innodb_redo_log_capacity_resized > capacity;
}

/** @return pages that have been written since the server started */
uint64_t pages_written() {
  uint64_t n = 0;
  for (ulint i = 0; i < srv_buf_pool_instances; ++i) {
    n += buf_pool_from_array(i)->stat.n_pages_written;
  }
  return n;
}

/** Say it where thresholds make no sense: my.cnf and a SET of upstream's have
no other warning.
@param[in]  set  what is set now */
void look_at_thresholds(const Flush_settings &set) {
  const bool is_above = set.is_on && set.dirty_pct > set.max_dirty_pct;
  if (is_above && !s_is_dirty_pct_above) {
    ib::warn() << DIRTY_PCT_ABOVE;
  }
  s_is_dirty_pct_above = is_above;
}

/** @return fsync() of files other than the redo log's, since the server
started; about, as os_n_fsyncs is counted without a latch, and rounds are not
all that is in it. */
uint64_t fsyncs_of_data() {
  const uint64_t n_of_log = log_total_flushes();
  return std::max<uint64_t>(os_n_fsyncs, n_of_log) - n_of_log;
}

/** Decide, and make known how fast the redo log may be filled.
@param[in]  now      now
@param[in]  is_sync  pages are flushed at any price, and no more can be
@return what to flush */
Flush_decision decide(steady_clock::time_point now, bool is_sync) {
  Flush_look look = look_at(now);
  look.native_per_s = s_method.pages_per_s(look.now_s);
  look_at_disks(look);
  look.util_per_s = s_util.extra_per_s();
  look.n_written = pages_written();
  look.n_fsyncs = fsyncs_of_data();
  look.is_writing = is_sync || is_writing();
  const auto away_since = std::exchange(s_away_since, {});
  const Flush_away away = std::exchange(s_away, Flush_away::NO);
  if (now - away_since > milliseconds{ahead_flushing_interval_ms}) {
    look.away = away;
  }
  look.is_shrinking = is_redo_shrinking();
  uint64_t purge_per_s = s_purge_per_s;
  look.purge_per_s = static_cast<double>(purge_per_s);
  s_capacity.look(look.now_s, aio_writes_idle_since_s(), look.n_written);
  s_measured_per_s = s_capacity.pages_per_s();
  look.device_per_s = s_capacity.limit_per_s();
  look.is_device_seen = s_capacity.pages_per_s() != 0.0;
  const Flush_settings set = settings();
  look_at_thresholds(set);
  const Flush_decision decision = s_policy.decide(set, look);
  if (decision.is_round) {
    /* Unless it has asked for more meanwhile. */
    s_purge_per_s.compare_exchange_strong(purge_per_s, 0);
  }
  s_next_look = now + duration_cast<steady_clock::duration>(
                          duration<double>(decision.next_look_s));
  redo_set_turn(decision.turn_us);
  s_redo_per_s = ahead_flushing_max_delay_us == 0
                     ? FLUSH_UNLIMITED
                     : std::max(1.0, decision.redo_bytes_per_s);
  s_reason = decision.reason;
  s_age_bytes = static_cast<uint64_t>(flush_age(look));
  if (decision.wants_checkpoint) {
    os_event_set(log_sys->checkpointer_event);
  }
  return decision;
}

/** Count a round, and note what a pass of the coordinator's loop has flushed.
@param[in]  decision  what was decided for it; nothing if it was upstream's
@param[in]  n_list    pages of the flush lists
@param[in]  n_lru     pages of the LRU lists */
void note_batch(const Flush_decision &decision, ulint n_list, ulint n_lru) {
  if (decision.is_round) {
    s_rounds[static_cast<size_t>(decision.reason)].fetch_add(
        1, std::memory_order_relaxed);
  }
  const auto now = steady_clock::now();
  s_capacity.round(seconds_of(s_batch_begin), seconds_of(now), n_list + n_lru,
                   decision.lost_s, flush_was_at_device(decision, n_list));
  s_batch_begin = now;
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
  s_purge_per_s = 0;
  s_policy = {};
  s_method = {};
  s_round = {};
  s_n_untold = 0;
  s_n_last = 0;
  s_n_of_second = 0;
  s_capacity.pause();
  s_util = {};
  s_has_no_disks = false;
  s_is_dirty_pct_above = false;
  redo_set_turn(0.0);
  s_redo_per_s = FLUSH_UNLIMITED;
  s_reason = Flush_reason::OFF;
  s_age_bytes = 0;
}

}  // namespace

void ahead_flushing_dirty_pct_update(THD *thd, SYS_VAR *, void *to,
                                     const void *save) {
  const double pct = *static_cast<const double *>(save);
  *static_cast<double *>(to) = pct;
  if (pct > srv_max_buf_pool_modified_pct) {
    push_warning(thd, Sql_condition::SL_WARNING, ER_WRONG_ARGUMENTS,
                 DIRTY_PCT_ABOVE);
  }
}

bool flush_ahead_wait(steady_clock::time_point loop_start, int64_t sig_count,
                      ulint *ret_sleep) {
  const auto until = loop_start + std::chrono::seconds{1};
  /* A round that is due comes before anything else, once: what the coordinator
  does in between can take longer than the second that it has. */
  bool has_looked = std::exchange(s_was_round, false);
  while (has_rounds() && srv_shutdown_state.load() < SRV_SHUTDOWN_CLEANUP) {
    const auto now = steady_clock::now();
    const bool is_due = s_next_look <= now;
    if ((now >= until || os_event_is_set(buf_flush_event)) &&
        (has_looked || !is_due)) {
      s_away_since = now;
      s_away = Flush_away::BUSY;
      *ret_sleep = now >= until ? OS_SYNC_TIME_EXCEEDED : 0;
      return true;
    }
    if (!is_due) {
      (void)os_event_wait_time_low(
          buf_flush_event,
          duration_cast<microseconds>(std::min(until, s_next_look) - now),
          sig_count);
      continue;
    }
    s_round = decide(now, false);
    has_looked = true;
    if (s_round.n_pages != 0) {
      s_was_round = true;
      *ret_sleep = 0;
      return true;
    }
    note_batch(std::exchange(s_round, {}), 0, 0);
  }
  if (!has_rounds()) {
    let_go();
  }
  return false;
}

bool flush_pass_begins(bool is_sync) {
  note_sync(is_sync);
  s_batch_begin = steady_clock::now();
  return is_sync || s_round.n_pages != 0;
}

bool flush_round_is_due(ulint *n_pages, lsn_t *lsn_limit) {
  if (s_round.n_pages == 0) {
    return false;
  }
  *n_pages = s_round.n_pages;
  *lsn_limit = s_round.lsn_limit;
  return true;
}

ulint flush_last_pages(ulint n_pages) {
  s_n_last = 0;
  return std::max(n_pages, std::exchange(s_n_untold, 0));
}

ulint flush_recommended(ulint n_pages) {
  if (!has_rounds()) {
    return n_pages;
  }
  const Flush_look look = look_at(steady_clock::now());
  s_method.look(method(), {.now_s = look.now_s,
                           .n_native = n_pages,
                           .n_dirty = look.n_dirty,
                           .lsn = look.lsn,
                           .oldest_lsn = look.oldest_lsn,
                           .sync_age = look.sync_age,
                           .n_flushed = srv_stats.buf_pool_flushed,
                           .dirty_pct = buf_get_modified_ratio_pct(),
                           .max_dirty_pct = srv_max_buf_pool_modified_pct,
                           .is_ahead_on = ahead_flushing,
                           .is_adaptive = srv_adaptive_flushing,
                           .is_logging = mtr_t::s_logging.is_enabled()});
  s_n_of_second = 0;
  return 0;
}

ulint flush_idle_pages(ulint n_pages) {
  if (!has_rounds()) {
    return n_pages;
  }
  /* An idle server learns, too: what it has left dirty may be much. */
  const Flush_look look = look_at(steady_clock::now());
  s_capacity.look(look.now_s, aio_writes_idle_since_s(), pages_written());
  s_measured_per_s = s_capacity.pages_per_s();
  const Flush_idle idle =
      flush_idle(settings(), n_pages, look.n_dirty,
                 std::exchange(s_n_of_second, 0), s_capacity.limit_per_s());
  s_capacity.round(look.now_s, look.now_s, std::min(idle.n_pages, look.n_dirty),
                   0.0, idle.is_at_device);
  s_away = Flush_away::IDLE;
  return idle.n_pages;
}

void flush_round_done(bool is_sync, ulint n_list, ulint n_lru) {
  /* Sync flushing comes before a round that was due. */
  const Flush_decision round = is_sync ? Flush_decision{} : s_round;
  s_round = {};
  flush_done(is_sync                               ? Flush_cause::SYNC
             : round.reason > Flush_reason::NATIVE ? Flush_cause::AHEAD
                                                   : Flush_cause::ADAPTIVE,
             n_list);
  flush_done(Flush_cause::LRU, n_lru);
  if (has_rounds()) {
    note_batch(round, n_list, n_lru);
    s_n_of_second += n_list;
    s_n_untold += n_list - (is_sync ? s_n_last : 0);
    s_n_last = n_list;
    if (is_sync) {
      (void)decide(s_batch_begin, true);
    } else if (round.n_pages == 0) {
      s_method.pass_done(seconds_of(s_batch_begin));
    }
  } else {
    /* Sync flushing can go on for long. */
    let_go();
  }
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
      .asked_cleaner = 0,
      .rounds = {},
      .reason = s_reason,
      .age_bytes = s_age_bytes,
      .measured_capacity = static_cast<uint64_t>(s_measured_per_s.load()),
      .redo_limit_bytes_per_s =
          redo_per_s == FLUSH_UNLIMITED ? 0 : static_cast<uint64_t>(redo_per_s),
      .delays = delays.n_delays,
      .delay_us = delays.delay_us,
      .delays_waiting = delays.n_waiting};
  std::copy(std::begin(s_rounds), std::end(s_rounds), stats.rounds);
  for (size_t i = 0; i < std::size(stats.rounds); ++i) {
    if (flush_is_cleaners(static_cast<Flush_reason>(i))) {
      stats.asked_cleaner += stats.rounds[i];
    }
  }
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
  if (stats.reason != Flush_reason::OFF) {
    fprintf(file,
            "The oldest dirty page's age %" PRIu64
            ", %.1f %% of that of sync flushing\n",
            stats.age_bytes,
            percent_of(stats.age_bytes, redo_fill().limits.sync_age));
  }
  fprintf(file,
          "Ahead flushing now: %s; asked %" PRIu64 " times by purge, %" PRIu64
          " by the page cleaner\n"
          "The device was seen to carry %" PRIu64
          " pages/s (0: not known); the redo log may be filled by %" PRIu64
          " bytes/s (0: at any speed, 1: not at all)\n"
          "Waits of who changes rows %" PRIu64 ", for %" PRIu64
          " us in all; waiting now %" PRIu64 "\n",
          ahead_flushing || stats.reason == Flush_reason::OFF
              ? flush_reason_text(stats.reason)
              : "off; rounds are for innodb_adaptive_flushing_method",
          stats.asked_purge, stats.asked_cleaner, stats.measured_capacity,
          stats.redo_limit_bytes_per_s, stats.delays, stats.delay_us,
          stats.delays_waiting);
}

}  // namespace spw
