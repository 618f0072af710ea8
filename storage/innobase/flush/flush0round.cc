/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/flush0round.cc
Flush rounds, which the page cleaners' coordinator makes. The coordinator is the
only caller, unless a function says something else. */

#include "flush/flush0round.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <optional>
#include <string>
#include <utility>

#include "base/base0rate.h"
#include "base/base0text.h"
#include "buf0buf.h"
#include "buf0flu.h"
#include "fil0fil.h"
#include "flush/flush0cause.h"
#include "flush/flush0commit.h"
#include "flush/flush0disk.h"
#include "flush/flush0sync.h"
#include "flush/hook.h"
#include "flush/policy/flush0capacity.h"
#include "flush/policy/flush0controller.h"
#include "flush/policy/flush0method.h"
#include "flush/policy/flush0util.h"
#include "log0log.h"
#include "log0write.h"
#include "mysqld_error.h"
#include "os0event.h"
#include "redo/redo0state.h"
#include "sql/mysqld.h"
#include "sql/sql_error.h"
#include "srv0shutdown.h"
#include "srv0srv.h"
#include "stall/hook.h"
#include "stall/stall0stall.h"
#include "throttle/policy/throttle0queue.h"
#include "throttle/throttle0session.h"

namespace spw {

double ahead_flushing_dirty_pct = FLUSH_DEFAULTS.dirty_pct;
double ahead_flushing_io_pct = FLUSH_DEFAULTS.io_pct;
ulong ahead_flushing_interval_ms =
    static_cast<ulong>(1e3 * FLUSH_DEFAULTS.interval_s);
ulong adaptive_flushing_method = static_cast<ulong>(Flush_method::NATIVE);
ulong ahead_flushing_device = static_cast<ulong>(Flush_device::LATENCY);

namespace {

using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/** Max time of a pass of the page cleaners in which the coordinator keeps its
interval of a second. */
constexpr std::chrono::seconds PASS_MAX{1};

double seconds_of(steady_clock::time_point time) {
  return duration<double>(time.time_since_epoch()).count();
}

/** @return the adaptive flushing method in effect */
Flush_method method_in_effect() {
  return flush_method_used(static_cast<Flush_method>(adaptive_flushing_method),
                           srv_adaptive_flushing,
                           mtr_t::s_logging.is_enabled());
}

/** @return what decides whether a variable has an effect */
Flush_switches switches() {
  return {.is_read_only = srv_read_only_mode,
          .is_ahead = ahead_flushing,
          .is_adaptive = srv_adaptive_flushing,
          .is_native = adaptive_flushing_method ==
                       static_cast<ulong>(Flush_method::NATIVE)};
}

/** @return whether a variable has its default */
bool is_default(Flush_variable variable) {
  switch (variable) {
    case Flush_variable::ADAPTIVE_FLUSHING_METHOD:
      return switches().is_native;
    case Flush_variable::AHEAD_FLUSHING:
      return !ahead_flushing;
    case Flush_variable::AHEAD_FLUSHING_AGE_PCT:
      return ahead_flushing_age_pct == FLUSH_DEFAULTS.age_pct;
    case Flush_variable::AHEAD_FLUSHING_DEVICE:
      return ahead_flushing_device == static_cast<ulong>(FLUSH_DEVICE_DEFAULT);
    case Flush_variable::AHEAD_FLUSHING_DIRTY_PCT:
      return ahead_flushing_dirty_pct == FLUSH_DEFAULTS.dirty_pct;
    case Flush_variable::AHEAD_FLUSHING_INTERVAL_MS:
      return ahead_flushing_interval_ms ==
             static_cast<ulong>(1e3 * FLUSH_DEFAULTS.interval_s);
    case Flush_variable::AHEAD_FLUSHING_IO_PCT:
      return ahead_flushing_io_pct == FLUSH_DEFAULTS.io_pct;
    case Flush_variable::AHEAD_FLUSHING_MAX_DELAY_US:
      return ahead_flushing_max_delay_us == THROTTLE_DELAY_DEFAULT_US;
    case Flush_variable::N:
      break;
  }
  ut_error;
}

/** @return why a variable has no effect; nullptr if it has one, or its default
 */
const char *no_effect_reason(Flush_variable variable) {
  return is_default(variable) ? nullptr
                              : flush_no_effect_reason(variable, switches());
}

/** Write to the error log which variables in my.cnf have no effect. */
void warn_at_start() {
  for (int i = 0; i < static_cast<int>(Flush_variable::N); ++i) {
    const auto variable = static_cast<Flush_variable>(i);
    const char *const reason = no_effect_reason(variable);
    if (reason != nullptr) {
      ib::warn() << flush_variable_name(variable) << " has no effect " << reason
                 << ".";
    }
  }
}

/** @return the settings, without Flush_settings::drain_s */
Flush_settings settings() {
  return {.is_on = ahead_flushing,
          .dirty_pct = ahead_flushing_dirty_pct,
          .max_dirty_pct = srv_max_buf_pool_modified_pct,
          .age_pct = ahead_flushing_age_pct,
          .io_pct = ahead_flushing_io_pct,
          .io_capacity = static_cast<double>(srv_io_capacity),
          .io_capacity_max = std::min(static_cast<double>(srv_max_io_capacity),
                                      FLUSH_IO_CAPACITY_MAX_PER_S),
          .is_io_capacity_default =
              srv_io_capacity == FLUSH_DEFAULTS.io_capacity &&
              srv_max_io_capacity == FLUSH_DEFAULTS.io_capacity_max,
          .interval_s = 1e-3 * static_cast<double>(ahead_flushing_interval_ms),
          .n_instances = srv_buf_pool_instances,
          .is_limited_by_device =
              ahead_flushing && ahead_flushing_device ==
                                    static_cast<ulong>(Flush_device::LATENCY)};
}

/** @return whether threads wait for redo space. The checkpoint age does not
tell: the margin that InnoDB subtracts from its limit changes while they wait */
bool is_redo_space_awaited() {
  return stall_summary(Stall::REDO_SPACE).waiting != 0 ||
         stall_summary(Stall::LOG_WRITER).waiting != 0;
}

/** commit_group(). Read by each group, written for each sample. */
alignas(ut::INNODB_CACHE_LINE_SIZE) struct {
  std::atomic<unsigned> n{0};
  std::atomic<long> wait_us{0};
} s_commit_group;

/** @param[in]  n        sessions that a group should have
@param[in]  wait_us  max time that its leader waits for them: microseconds */
void set_commit_group(unsigned n, long wait_us) {
  s_commit_group.n.store(n, std::memory_order_relaxed);
  s_commit_group.wait_us.store(wait_us, std::memory_order_relaxed);
}

/** @param[in,out]  sample  gets what is known of commits */
void sample_commits(Flush_sample *sample) {
  const Stall_summary commit = stall_summary(Stall::COMMIT);
  const Stall_summary sync = stall_summary(Stall::BINLOG_SYNC);
  sample->n_committing = commit.waiting + sync.waiting +
                         stall_summary(Stall::BINLOG_GROUP).waiting;
  sample->n_groups = sync.count - sync.waiting;
  sample->group_s = 1e-6 * static_cast<double>(commit.sessions_time_us +
                                               sync.sessions_time_us);
}

/** Any thread.
@param[in]  now  the current time
@return the state of the buffer pool and the redo log; without what only the
coordinator knows */
Flush_sample take_sample(steady_clock::time_point now) {
  ulint n_lru;
  ulint n_free;
  ulint n_dirty;
  buf_get_total_list_len(&n_lru, &n_free, &n_dirty);
  /* Invariant: checkpoint_lsn <= oldest_lsn <= lsn, as they are read in this
  order. */
  const Redo_state redo = redo_state();
  const lsn_t oldest = buf_pool_get_oldest_modification_lwm();
  const lsn_t lsn = log_get_lsn(*log_sys);
  return {.now_s = seconds_of(now),
          .n_dirty = n_dirty,
          .n_pages = n_lru + n_free,
          .lsn = lsn,
          .oldest_lsn = oldest == 0 ? lsn : std::min(lsn, oldest),
          .checkpoint_lsn = redo.lsn_last_checkpoint,
          .lsn_disorder = buf_flush_list_added->order_lag(),
          .sync_age = redo.limits.sync_age,
          .is_redo_space_awaited = is_redo_space_awaited(),
          .adaptive_scales_with_io_capacity =
              method_in_effect() == Flush_method::NATIVE &&
              mtr_t::s_logging.is_enabled(),
          .n_lru_flushed = flush_work(Flush_cause::LRU).pages +
                           flush_work(Flush_cause::SINGLE_PAGE).pages,
          .charged_bytes = throttle_charged_bytes()};
}

/** @return whether pages of the last flush round are still being written */
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

/** @return whether the redo log is being made smaller, as in
Innodb_redo_log_resize_status. It takes no latch: that one is held while files
are created. */
bool is_redo_shrinking() {
  const uint64_t capacity = srv_redo_log_capacity_used;
  return capacity != 0 &&
         export_vars.innodb_redo_log_capacity_resized > capacity;
}

/** @return pages written since the server started */
uint64_t pages_written() {
  uint64_t n = 0;
  for (ulint i = 0; i < srv_buf_pool_instances; ++i) {
    n += buf_pool_from_array(i)->stat.n_pages_written;
  }
  return n;
}

/** @return fsync() calls since the server started, those of the redo log left
out. An approximation: os_n_fsyncs is counted without a latch, and includes
calls for other purposes than flush rounds. */
uint64_t fsyncs_of_data() {
  const uint64_t n_of_log = log_total_flushes();
  return std::max<uint64_t>(os_n_fsyncs, n_of_log) - n_of_log;
}

/** When the writes of a flush-list batch ended last: seconds of the steady
clock. Written once for each batch. */
std::atomic<double> s_list_written_s{0.0};

/** Time of the syncs of data files after doublewrite batches: nanoseconds. */
std::atomic<int64_t> s_data_sync_ns{0};

/** The flush rounds of the page cleaners' coordinator. The public functions
are those of flush/hook.h, and stats(). */
class Flush_rounds {
 public:
  bool wait(steady_clock::time_point loop_start, int64_t sig_count,
            ulint *ret_sleep);
  bool pass_begins(bool is_sync);
  bool round_is_due(ulint *n_pages, lsn_t *lsn_limit) const;
  ulint pages_since_last_call(ulint n_pages);
  ulint take_recommendation(ulint n_pages);
  ulint idle_page_limit(ulint n_pages);
  void round_done(bool is_sync, ulint n_list, ulint n_lru);

  /** Called by the purge coordinator. */
  void request_by_purge();

  /** Any thread, no latch. */
  Ahead_flush_stats stats() const;

 private:
  /** What there is only while there are flush rounds. reset() clears it. */
  struct State {
    Ahead_flush controller;
    Adaptive_method method;
    Flush_util util;

    /** innodb_ahead_flushing_device = UTIL finds no disk. The error log has the
    reason. */
    bool has_no_disks{false};

    /** The decision for this pass of the coordinator's loop; n_pages is 0 if
    the pass makes no flush round. */
    Flush_decision round;

    /** Flush-list pages that were flushed and not yet reported to adaptive
    flushing. */
    ulint n_unreported_pages{0};

    /** Flush-list pages of the last pass. Sync flushing reports these itself.
     */
    ulint n_pages_last_pass{0};

    /** Flush-list pages of the rounds since the coordinator's loop began its
    current second. */
    uint64_t n_pages_this_second{0};

    /** Pages of idle flushing before that of this batch; none if the batch is
    no idle flushing, or has its own number. */
    std::optional<uint64_t> idle_pages_before;

    /** The last round was a probe, and had only pages of dropped tables, which
    are not written. */
    bool was_empty_probe{false};
  };

  /** @return whether the page cleaners flush in rounds */
  bool has_rounds() {
    note_switch();
    return !srv_read_only_mode && (m_was_on || is_draining() ||
                                   method_in_effect() != Flush_method::NATIVE);
  }

  /** @return whether innodb_ahead_flushing was switched OFF, and its rounds go
  on for a while */
  bool is_draining() const { return m_off != steady_clock::time_point{}; }

  /** Note that innodb_ahead_flushing was switched ON or OFF. */
  void note_switch();

  /** @param[in]  now  the current time
  @return the settings; those of before it was switched OFF while it drains */
  Flush_settings settings_at(steady_clock::time_point now);

  /** Make a decision, and publish the limit on redo generation.
  @param[in]  now      the current time
  @param[in]  is_sync  sync flushing is under way: no round can begin
  @return what to flush */
  Flush_decision decide(steady_clock::time_point now, bool is_sync);

  /** Measure how busy the disks are, for innodb_ahead_flushing_device = UTIL.
  @param[in]  sample  the current state */
  void sample_disks(const Flush_sample &sample);

  /** Give a batch of idle flushing the number of pages that were flushed. */
  void count_idle_batch();

  /** Add the last batch to the model of the device, if its pages are written.
   */
  void end_batch();

  /** Count a flush round, and note what a pass of the loop has flushed.
  @param[in]  decision  the decision for the round; default if the pass was not
                        for a round
  @param[in]  n_list    flush-list pages
  @param[in]  n_lru     LRU-list pages */
  void count_batch(const Flush_decision &decision, ulint n_list, ulint n_lru);

  /** Note the begin or the end of an episode of sync flushing.
  @param[in]  is_sync  whether the coordinator does sync flushing now */
  void note_sync(bool is_sync);

  /** There are no flush rounds any more: release the write throttle, and drop
  all measurements but the device write capacity. */
  void reset();

  State m_state;
  Flush_capacity m_capacity;

  /** The disks that hold the data directory. */
  Disk_reader m_disks;

  steady_clock::time_point m_next_tick{};

  /** The server accepts connections: all variables have been set. */
  bool m_has_started{false};

  /** innodb_ahead_flushing in the last sample. When it was switched OFF; the
  epoch if it is ON, or its rounds have ended. */
  bool m_was_on{false};
  steady_clock::time_point m_off{};

  /** Flush_settings::is_limited_by_device in the last sample. */
  bool m_is_limited_by_device{false};

  /** The last pass was for a flush round. */
  bool m_was_round{false};

  /** The earliest time at which writes of this pass can have begun. */
  steady_clock::time_point m_batch_begin{};

  /** The batch that is being written; without pages if there is none. Until
  then end_s is the time at which its last page was submitted. */
  Flush_batch m_batch{};

  /** Since when the coordinator does not wait for rounds; the epoch if it does.
  And what it does, which counts if it takes longer than a round. */
  steady_clock::time_point m_gap_start{};
  Gap_cause m_gap_cause{Gap_cause::NONE};

  /** Begin of the current episode of sync flushing; the epoch if there is none.
   */
  steady_clock::time_point m_sync_start{};

  /** The highest rate that the purge coordinator has requested since the last
  round: pages/s. */
  std::atomic<uint64_t> m_purge_per_s{0};

  /* For stats(). */
  std::atomic<uint64_t> m_total_purge_requests{0};
  std::atomic<uint64_t> m_total_rounds[static_cast<size_t>(Flush_trigger::N)];
  std::atomic<uint64_t> m_total_limited[static_cast<size_t>(Flush_limit::N)];
  std::atomic<Flush_trigger> m_trigger{Flush_trigger::OFF};
  std::atomic<Flush_limit> m_limit{Flush_limit::NONE};
  std::atomic<double> m_measured_per_s{0.0};
  std::atomic<uint64_t> m_oldest_page_age{0};
};

Flush_rounds s_rounds;

void Flush_rounds::sample_disks(const Flush_sample &sample) {
  if (!ahead_flushing ||
      ahead_flushing_device != static_cast<ulong>(Flush_device::UTIL)) {
    m_state.util = {};
    m_state.has_no_disks = false;
    return;
  }
  if (m_state.has_no_disks || !m_state.util.is_due(sample.now_s)) {
    return;
  }
  std::string why;
  if (m_state.util.is_new() &&
      !m_disks.open(MySQL_datadir_path.abs_path(), &why)) {
    m_state.util = {};
    m_state.has_no_disks = true;
    ib::warn() << "innodb_ahead_flushing_device = UTIL has no effect: " << why
               << ". Use LATENCY, which needs no block device.";
    return;
  }
  m_state.util.add_sample(sample.now_s, m_disks.read(),
                          srv_stats.buf_pool_flushed, sample.adaptive_per_s,
                          static_cast<double>(srv_io_capacity));
}

Flush_decision Flush_rounds::decide(steady_clock::time_point now,
                                    bool is_sync) {
  Flush_sample sample = take_sample(now);
  sample.adaptive_per_s = m_state.method.pages_per_s(sample.now_s);
  sample_disks(sample);
  sample.util_per_s = m_state.util.extra_per_s();
  sample.n_written = pages_written();
  sample.n_fsyncs = fsyncs_of_data();
  sample.sync_s = 1e-9 * static_cast<double>(
                             s_data_sync_ns.load(std::memory_order_relaxed));
  sample_commits(&sample);
  sample.is_writing = is_sync || is_writing();
  const auto gap_start = std::exchange(m_gap_start, {});
  const Gap_cause gap_cause = std::exchange(m_gap_cause, Gap_cause::NONE);
  if (now - gap_start > milliseconds{ahead_flushing_interval_ms}) {
    sample.gap_cause = gap_cause;
  }
  sample.is_shrinking = is_redo_shrinking();
  uint64_t purge_per_s = m_purge_per_s;
  sample.purge_per_s = static_cast<double>(purge_per_s);
  if (!sample.is_writing) {
    end_batch();
  }
  sample.device_per_s = m_capacity.limit_per_s();
  sample.device_interval_s = m_capacity.interval_s();
  sample.wants_probe =
      m_capacity.wants_probe(sample.now_s) && !m_state.was_empty_probe;
  sample.is_device_measured = m_capacity.pages_per_s() != 0.0;
  const Flush_settings set = settings_at(now);
  const Flush_decision decision = m_state.controller.decide(set, sample);
  if (decision.is_drained) {
    m_off = {};
  }
  if (decision.is_round) {
    /* Unless purge has requested a higher rate meanwhile. */
    m_purge_per_s.compare_exchange_strong(purge_per_s, 0);
  }
  m_next_tick = now + duration_cast<steady_clock::duration>(
                          duration<double>(decision.next_tick_s));
  throttle_set_limit(decision.session_redo_bytes_per_s);
  /* Else a group does not sync the binary log. */
  const bool is_synced = sync_binlog_period == 1;
  set_commit_group(is_synced ? decision.commit_group : 0,
                   decision.commit_group_wait_us);
  m_trigger = decision.trigger;
  m_limit = decision.limit;
  m_oldest_page_age = static_cast<uint64_t>(oldest_page_age(sample));
  if (decision.wants_checkpoint) {
    os_event_set(log_sys->checkpointer_event);
  }
  return decision;
}

void Flush_rounds::count_idle_batch() {
  if (m_state.idle_pages_before) {
    /* InnoDB leaves out pages of dropped tables, and can flush fewer. */
    const uint64_t n_pages = flush_work(Flush_cause::IDLE).pages -
                             *std::exchange(m_state.idle_pages_before, {});
    m_batch.demand_exceeds_limit =
        m_batch.demand_exceeds_limit && 2 * n_pages >= m_batch.n_pages;
    m_batch.n_pages = n_pages;
  }
}

void Flush_rounds::end_batch() {
  count_idle_batch();
  if (m_batch.n_pages == 0) {
    return;
  }
  m_batch.end_s = std::max(m_batch.end_s, s_list_written_s.load());
  m_capacity.add(std::exchange(m_batch, {}));
  m_measured_per_s = m_capacity.pages_per_s();
}

void Flush_rounds::count_batch(const Flush_decision &decision, ulint n_list,
                               ulint n_lru) {
  if (decision.is_round) {
    m_total_rounds[static_cast<size_t>(decision.trigger)].fetch_add(
        1, std::memory_order_relaxed);
    m_total_limited[static_cast<size_t>(decision.limit)].fetch_add(
        1, std::memory_order_relaxed);
  }
  if (decision.n_pages != 0) {
    m_state.was_empty_probe = decision.is_probe && n_list + n_lru == 0;
  }
  count_idle_batch();
  const auto now = steady_clock::now();
  if (n_list + n_lru != 0) {
    /* Sync flushing begins a batch before the last one is written. */
    if (m_batch.n_pages == 0) {
      m_batch.begin_s = seconds_of(m_batch_begin);
    }
    m_batch.end_s = seconds_of(now);
    m_batch.n_pages += n_list + n_lru;
    m_batch.is_probe = decision.is_probe;
    m_batch.demand_exceeds_limit = flush_was_at_device(decision, n_list);
    m_batch.is_limited = m_is_limited_by_device;
  }
  m_batch_begin = now;
}

void Flush_rounds::note_sync(bool is_sync) {
  const bool was_sync = m_sync_start != steady_clock::time_point{};
  if (is_sync && !was_sync) {
    m_sync_start = stall_begin(Stall::SYNC_FLUSH);
  } else if (!is_sync && was_sync) {
    stall_end(Stall::SYNC_FLUSH, m_sync_start);
    m_sync_start = {};
  }
}

void Flush_rounds::note_switch() {
  const bool is_on = ahead_flushing;
  redo_set_ahead(is_on);
  if (is_on) {
    m_off = {};
  } else if (m_was_on) {
    m_off = steady_clock::now();
  }
  m_was_on = is_on;
}

Flush_settings Flush_rounds::settings_at(steady_clock::time_point now) {
  note_switch();
  Flush_settings set = settings();
  if (!m_was_on && is_draining()) {
    set.is_on = true;
    set.is_limited_by_device = m_is_limited_by_device;
    set.drain_s = std::max(0.0, duration<double>(now - m_off).count());
  }
  m_is_limited_by_device = set.is_limited_by_device;
  return set;
}

void Flush_rounds::reset() {
  m_state = {};
  m_batch = {};
  m_capacity.pause();
  m_purge_per_s = 0;
  throttle_set_limit(FLUSH_UNLIMITED);
  set_commit_group(0, 0);
  m_trigger = Flush_trigger::OFF;
  m_limit = Flush_limit::NONE;
  m_oldest_page_age = 0;
}

bool Flush_rounds::wait(steady_clock::time_point loop_start, int64_t sig_count,
                        ulint *ret_sleep) {
  if (mysqld_server_started && !std::exchange(m_has_started, true)) {
    warn_at_start();
  }
  const auto until = loop_start + std::chrono::seconds{1};
  /* One flush round that is due comes before any other work: that can take
  longer than the coordinator's second. */
  bool has_decided = std::exchange(m_was_round, false);
  while (has_rounds() && srv_shutdown_state.load() < SRV_SHUTDOWN_CLEANUP) {
    const auto now = steady_clock::now();
    const bool is_due = m_next_tick <= now;
    if ((now >= until || os_event_is_set(buf_flush_event)) &&
        (has_decided || !is_due)) {
      m_gap_start = now;
      m_gap_cause = Gap_cause::OTHER_WORK;
      *ret_sleep = now >= until ? OS_SYNC_TIME_EXCEEDED : 0;
      return true;
    }
    if (!is_due) {
      (void)os_event_wait_time_low(
          buf_flush_event,
          duration_cast<microseconds>(std::min(until, m_next_tick) - now),
          sig_count);
      continue;
    }
    m_state.round = decide(now, false);
    has_decided = true;
    if (m_state.round.n_pages != 0) {
      m_was_round = true;
      *ret_sleep = 0;
      return true;
    }
    count_batch(std::exchange(m_state.round, {}), 0, 0);
  }
  if (!has_rounds()) {
    reset();
  }
  return false;
}

bool Flush_rounds::pass_begins(bool is_sync) {
  note_sync(is_sync);
  m_batch_begin = steady_clock::now();
  return is_sync || m_state.round.n_pages != 0;
}

bool Flush_rounds::round_is_due(ulint *n_pages, lsn_t *lsn_limit) const {
  if (m_state.round.n_pages == 0) {
    return false;
  }
  *n_pages = m_state.round.n_pages;
  *lsn_limit = m_state.round.lsn_limit;
  return true;
}

ulint Flush_rounds::pages_since_last_call(ulint n_pages) {
  m_state.n_pages_last_pass = 0;
  return std::max(n_pages, std::exchange(m_state.n_unreported_pages, 0));
}

ulint Flush_rounds::take_recommendation(ulint n_pages) {
  if (!has_rounds()) {
    return n_pages;
  }
  const Flush_sample sample = take_sample(steady_clock::now());
  m_state.method.add_sample(method_in_effect(),
                            {.now_s = sample.now_s,
                             .n_adaptive = n_pages,
                             .n_dirty = sample.n_dirty,
                             .lsn = sample.lsn,
                             .oldest_lsn = sample.oldest_lsn,
                             .sync_age = sample.sync_age,
                             .n_flushed = srv_stats.buf_pool_flushed,
                             .dirty_pct = buf_get_modified_ratio_pct(),
                             .max_dirty_pct = srv_max_buf_pool_modified_pct,
                             .is_ahead_on = ahead_flushing,
                             .is_adaptive = srv_adaptive_flushing,
                             .is_logging = mtr_t::s_logging.is_enabled()});
  m_state.n_pages_this_second = 0;
  return 0;
}

ulint Flush_rounds::idle_page_limit(ulint n_pages) {
  if (is_redo_space_awaited()) {
    n_pages = std::max<ulint>(n_pages, srv_io_capacity);
  }
  if (!has_rounds()) {
    return n_pages;
  }
  /* The capacity is measured here, too: an idle server can have many dirty
  pages left. */
  const auto now = steady_clock::now();
  const Flush_sample sample = take_sample(now);
  if (!is_writing()) {
    end_batch();
  }
  const Flush_idle idle = flush_idle(
      settings_at(now), n_pages, sample.n_dirty,
      std::exchange(m_state.n_pages_this_second, 0), m_capacity.limit_per_s());
  if (m_batch.n_pages == 0) {
    m_batch = {.begin_s = sample.now_s,
               .end_s = sample.now_s,
               .n_pages = std::min(idle.n_pages, sample.n_dirty),
               .demand_exceeds_limit = idle.is_at_device,
               .is_limited = m_is_limited_by_device};
    m_state.idle_pages_before = flush_work(Flush_cause::IDLE).pages;
  }
  m_gap_cause = Gap_cause::IDLE_FLUSH;
  return idle.n_pages;
}

void Flush_rounds::round_done(bool is_sync, ulint n_list, ulint n_lru) {
  if (steady_clock::now() - m_batch_begin > PASS_MAX) {
    stall_passed(Stall::PAGE_CLEANER, m_batch_begin);
  }
  /* Sync flushing takes the place of a round that was due. */
  const Flush_decision round = is_sync ? Flush_decision{} : m_state.round;
  m_state.round = {};
  count_flushed(is_sync                           ? Flush_cause::SYNC
                : is_ahead_trigger(round.trigger) ? Flush_cause::AHEAD
                                                  : Flush_cause::ADAPTIVE,
                n_list);
  count_flushed(Flush_cause::LRU, n_lru);
  if (has_rounds()) {
    count_batch(round, n_list, n_lru);
    m_state.n_pages_this_second += n_list;
    m_state.n_unreported_pages +=
        n_list - (is_sync ? m_state.n_pages_last_pass : 0);
    m_state.n_pages_last_pass = n_list;
    if (is_sync) {
      (void)decide(m_batch_begin, true);
    } else if (round.n_pages == 0) {
      m_state.method.pass_done(seconds_of(m_batch_begin));
    }
  } else {
    /* Here as well as in wait(): sync flushing can go on for long. */
    reset();
  }
}

void Flush_rounds::request_by_purge() {
  if (!ahead_flushing) {
    return;
  }
  const auto per_s = static_cast<uint64_t>(
      purge_request_rate(settings(), take_sample(steady_clock::now())));
  if (per_s == 0) {
    return;
  }
  m_total_purge_requests.fetch_add(1, std::memory_order_relaxed);
  uint64_t requested = m_purge_per_s.load(std::memory_order_relaxed);
  while (requested < per_s &&
         !m_purge_per_s.compare_exchange_weak(requested, per_s,
                                              std::memory_order_relaxed)) {
  }
}

Ahead_flush_stats Flush_rounds::stats() const {
  const double redo_per_s = throttle_limit();
  const Stall_summary delays = stall_summary(Stall::WRITE_THROTTLE);
  const Throttle_state state =
      ahead_flushing_max_delay_us == 0 ||
              (!ahead_flushing && redo_per_s == FLUSH_UNLIMITED)
          ? Throttle_state::OFF
      : redo_per_s == FLUSH_UNLIMITED ? Throttle_state::UNLIMITED
      : redo_per_s < 1.0              ? Throttle_state::STOPPED
                                      : Throttle_state::LIMITED;
  Ahead_flush_stats stats{
      .purge_requests = m_total_purge_requests,
      .rounds = {},
      .limited = {},
      .trigger = m_trigger,
      .limit = m_limit,
      .oldest_page_age_bytes = m_oldest_page_age,
      .measured_capacity = static_cast<uint64_t>(m_measured_per_s.load()),
      .throttle_state = state,
      .redo_limit_bytes_per_s = state == Throttle_state::LIMITED
                                    ? static_cast<uint64_t>(redo_per_s)
                                    : 0,
      .delays = delays.count,
      .delay_us = delays.time_us,
      .sessions_delayed = delays.waiting};
  std::copy(std::begin(m_total_rounds), std::end(m_total_rounds), stats.rounds);
  std::copy(std::begin(m_total_limited), std::end(m_total_limited),
            stats.limited);
  return stats;
}

}  // namespace

Commit_group commit_group() {
  return {.n = s_commit_group.n.load(std::memory_order_relaxed),
          .wait_us = s_commit_group.wait_us.load(std::memory_order_relaxed)};
}

void flush_variable_set(THD *thd, Flush_variable variable) {
  if (variable == Flush_variable::AHEAD_FLUSHING) {
    sync_threads_changed();
  }
  if (!mysqld_server_started) {
    /* Variables that persist are set one after the other. */
    return;
  }
  if (const char *const reason = no_effect_reason(variable)) {
    push_warning_printf(thd, Sql_condition::SL_WARNING, ER_WRONG_ARGUMENTS,
                        "%s has no effect %s.", flush_variable_name(variable),
                        reason);
  }
}

bool flush_ahead_wait(steady_clock::time_point loop_start, int64_t sig_count,
                      ulint *ret_sleep) {
  return s_rounds.wait(loop_start, sig_count, ret_sleep);
}

bool flush_pass_begins(bool is_sync) { return s_rounds.pass_begins(is_sync); }

bool flush_round_is_due(ulint *n_pages, lsn_t *lsn_limit) {
  return s_rounds.round_is_due(n_pages, lsn_limit);
}

ulint pages_since_last_call(ulint n_pages) {
  return s_rounds.pages_since_last_call(n_pages);
}

ulint take_recommendation(ulint n_pages) {
  return s_rounds.take_recommendation(n_pages);
}

bool flushes_when_idle(ulint idle_pct) {
  return idle_pct != 0 || is_redo_space_awaited();
}

ulint idle_page_limit(ulint n_pages) {
  return s_rounds.idle_page_limit(n_pages);
}

void flush_round_done(bool is_sync, ulint n_list, ulint n_lru) {
  s_rounds.round_done(is_sync, n_list, n_lru);
}

void flush_page_written(buf_flush_t type, ulint n_left) {
  if (type == BUF_FLUSH_LIST && n_left == 0) {
    s_list_written_s.store(seconds_of(steady_clock::now()),
                           std::memory_order_relaxed);
  }
}

steady_clock::time_point data_sync_begins() { return steady_clock::now(); }

void data_sync_ends(steady_clock::time_point begin) {
  s_data_sync_ns.fetch_add(
      duration_cast<std::chrono::nanoseconds>(steady_clock::now() - begin)
          .count(),
      std::memory_order_relaxed);
}

void flush_requested_by_purge() { s_rounds.request_by_purge(); }

const char *throttle_state_name(Throttle_state state) {
  constexpr const char *names[] = {"off", "unlimited", "limited", "stopped"};
  static_assert(sizeof(names) / sizeof(*names) ==
                static_cast<size_t>(Throttle_state::N));
  return names[static_cast<size_t>(state)];
}

Ahead_flush_stats ahead_flush_stats() { return s_rounds.stats(); }

void ahead_flush_print(FILE *file) {
  const Ahead_flush_stats stats = ahead_flush_stats();
  const bool has_rounds =
      std::any_of(std::begin(stats.rounds), std::end(stats.rounds),
                  [](uint64_t n) { return n != 0; });
  if (stats.trigger == Flush_trigger::OFF && !has_rounds) {
    fprintf(file, "Ahead flushing: %s\n", flush_trigger_text(stats.trigger));
    return;
  }
  fprintf(file, "%-56s%14s\n", "Flush rounds by trigger", "rounds");
  for (size_t i = 0; i < std::size(stats.rounds); ++i) {
    const auto trigger = static_cast<Flush_trigger>(i);
    if (stats.rounds[i] == 0) {
      continue;
    }
    fprintf(file, "  %-54s%14" PRIu64 "\n", flush_trigger_text(trigger),
            stats.rounds[i]);
    if (trigger != Flush_trigger::AGE) {
      continue;
    }
    for (const Flush_limit limit :
         {Flush_limit::IO_CAPACITY_MAX, Flush_limit::DEVICE}) {
      fprintf(file, "    %-52s%14" PRIu64 "\n", flush_limit_text(limit),
              stats.limited[static_cast<size_t>(limit)]);
    }
  }
  if (stats.trigger != Flush_trigger::OFF) {
    fprintf(
        file, "Oldest page age %s, %.1f %% of the sync age\n",
        bytes_text(stats.oldest_page_age_bytes).c_str(),
        percent_of(stats.oldest_page_age_bytes, redo_state().limits.sync_age));
  }
  fprintf(file, "Ahead flushing: %s%s%s; %" PRIu64 " requests by purge\n",
          ahead_flushing || stats.trigger == Flush_trigger::OFF ||
                  stats.trigger == Flush_trigger::DRAIN
              ? flush_trigger_text(stats.trigger)
              : "off, flush rounds are for innodb_adaptive_flushing_method",
          stats.limit == Flush_limit::NONE ? "" : ", ",
          stats.limit == Flush_limit::NONE ? "" : flush_limit_text(stats.limit),
          stats.purge_requests);
  if (stats.measured_capacity == 0) {
    fprintf(file, "Device write capacity not measured yet; ");
  } else {
    fprintf(file, "Device write capacity %" PRIu64 " pages/s (measured); ",
            stats.measured_capacity);
  }
  switch (stats.throttle_state) {
    case Throttle_state::OFF:
      fprintf(file, "write throttle off\n");
      break;
    case Throttle_state::LIMITED:
      fprintf(file, "redo generation limited to %s/s\n",
              bytes_text(stats.redo_limit_bytes_per_s).c_str());
      break;
    case Throttle_state::UNLIMITED:
    case Throttle_state::STOPPED:
    case Throttle_state::N:
      fprintf(file, "redo generation %s\n",
              throttle_state_name(stats.throttle_state));
      break;
  }
  fprintf(file,
          "Write throttle: %" PRIu64 " delays, %s in total, %" PRIu64
          " sessions delayed now\n",
          stats.delays, seconds_text(stats.delay_us).c_str(),
          stats.sessions_delayed);
}

}  // namespace spw
