/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file throttle/throttle0session.cc
Write throttle: delays sessions that modify rows, so that redo is generated no
faster than it is reclaimed. The delay is not in log_free_check(), where InnoDB
stops all threads: a row change calls that several times, with rows locked, as
do page splits and rollbacks. It does not know the session and its changes. */

#include "throttle/throttle0session.h"

#include "univ.i"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "dict0mem.h"
#include "mysql/service_thd_wait.h"
#include "redo/redo0state.h"
#include "sql/current_thd.h"
#include "sql/sql_class.h"
#include "srv0conc.h"
#include "srv0shutdown.h"
#include "throttle/hook.h"
#include "throttle/policy/throttle0bucket.h"
#include "trx0trx.h"
#include "ut0cpu_cache.h"

namespace spw {

/* The defaults are set when InnoDB's variables are registered. */
bool ahead_flushing = false;
double ahead_flushing_age_pct = 0.0;
ulong ahead_flushing_max_delay_us = 0;

namespace {

using std::chrono::duration_cast;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

/** Shorter delays are skipped, as the kernel adds up to 50 us to a sleep
(prctl(2), PR_SET_TIMERSLACK): nanoseconds. The reservation counts nevertheless.
*/
constexpr int64_t SLEEP_MIN_NS = 50'000;

/** State of a delayed session in SHOW PROCESSLIST. It has no key, as it is not
a stage of the performance schema, whose debug builds know all stages
beforehand. */
const PSI_stage_info WAITING{0, "Delayed by write throttle", 0, ""};

/** Max time until a delayed thread notices a KILL or a new limit: nanoseconds.
Half of the default time between two samples, in which the limit is decided. */
constexpr int64_t SLICE_NS = 50'000'000;

/** Time that each row change reserves, and when that was decided. Read by each
change, written for each sample. */
struct alignas(ut::INNODB_CACHE_LINE_SIZE) {
  std::atomic<double> us{0.0};
  std::atomic<int64_t> decided_ns{0};
} s_change_cost;

/** When the next change may begin; number of row changes. Written by each
change. */
struct alignas(ut::INNODB_CACHE_LINE_SIZE) {
  std::atomic<int64_t> next_ns{0};
  std::atomic<uint64_t> n_changes{0};
} s_queue;

/** Past delays; sessions delayed now. */
struct alignas(ut::INNODB_CACHE_LINE_SIZE) {
  std::atomic<uint64_t> n_delays{0};
  std::atomic<uint64_t> delay_us{0};
  std::atomic<uint64_t> n_waiting{0};
} s_delays;

/** Changes that this thread has to wait for. A session that gets the thread of
an ended session takes over its debt. */
thread_local Session_debt t_debt;

int64_t now_ns() {
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch())
      .count();
}

/** @param[in]  change_cost_us  time for each row change
@return the same, at most innodb_ahead_flushing_max_delay_us */
double bounded(double change_cost_us) {
  return std::min(change_cost_us,
                  static_cast<double>(ahead_flushing_max_delay_us));
}

/** @param[in]  now  the current time
@return time for each row change: microseconds; 0 without a limit */
double change_cost_at(int64_t now) {
  const double us = bounded(s_change_cost.us.load(std::memory_order_relaxed));
  const int64_t since_ns =
      now - s_change_cost.decided_ns.load(std::memory_order_relaxed);
  if (us == 0.0 || since_ns <= THROTTLE_COST_EXPIRY_NS) {
    return us;
  }
  const Redo_state fill = redo_state();
  return cost_is_current(since_ns, fill.age, fill.limits.sync_age,
                         ahead_flushing_age_pct)
             ? us
             : 0.0;
}

/** @return whether the thread works for a user: a session, an event or a
replication thread */
bool is_throttled_thread(const THD *thd) {
  return thd != nullptr && (thd->system_thread == NON_SYSTEM_THREAD ||
                            thd->system_thread == SYSTEM_THREAD_EVENT_WORKER ||
                            thd->slave_thread);
}

/** @return whether a change of the table may be delayed. The server changes its
own tables while it holds locks that all sessions need, such as the binary
log's. Temporary tables are not in the redo log */
bool is_throttled_table(const dict_table_t *table) {
  constexpr char SCHEMA[] = "mysql/";
  return !table->is_temporary() &&
         strncmp(table->name.m_name, SCHEMA, sizeof(SCHEMA) - 1) != 0;
}

/** @return whether the statement announces row changes and holds a lock that
blocks all other users of the table. The rows that it copies count as row
changes */
bool locks_whole_table(const THD *thd) {
  switch (thd_sql_command(thd)) {
    case SQLCOM_ALTER_TABLE:
    case SQLCOM_CREATE_INDEX:
    case SQLCOM_DROP_INDEX:
    case SQLCOM_LOCK_TABLES:
    case SQLCOM_OPTIMIZE:
      return true;
    default:
      return false;
  }
}

/** Sleep until a delay is over.
@param[in]      thd      the session
@param[in,out]  wait     the delay
@param[in]      is_over  whether there is another reason to continue */
template <typename Is_over>
void sleep_for(const THD *thd, Throttle_wait *wait, Is_over is_over) {
  for (;;) {
    const int64_t now = now_ns();
    const int64_t remaining_ns = wait->remaining_ns(
        now, change_cost_at(now), ahead_flushing_max_delay_us);
    if (remaining_ns == 0 || thd->is_killed() || is_over() || !ahead_flushing ||
        srv_shutdown_state.load() != SRV_SHUTDOWN_NONE) {
      return;
    }
    std::this_thread::sleep_for(nanoseconds{std::min(remaining_ns, SLICE_NS)});
  }
}

/** @return the session, if its change of this table may be delayed; else
nullptr */
THD *throttled_session(const dict_table_t *table) {
  THD *const thd = current_thd;
  return is_throttled_thread(thd) && is_throttled_table(table) ? thd : nullptr;
}

/** Make a reservation.
@param[in]  now             the current time
@param[in]  change_cost_us  time for each row change
@param[in]  n_changes       changes that are waited for at once
@return when the last of them may begin */
int64_t reserve(int64_t now, double change_cost_us, uint64_t n_changes) {
  const auto max_delay_us = static_cast<int64_t>(ahead_flushing_max_delay_us);
  int64_t next_ns = s_queue.next_ns.load(std::memory_order_relaxed);
  Throttle_reservation reservation;
  do {
    reservation =
        throttle_reserve(next_ns, now, change_cost_us, max_delay_us, n_changes);
  } while (!s_queue.next_ns.compare_exchange_weak(next_ns, reservation.next_ns,
                                                  std::memory_order_relaxed));
  return reservation.begin_ns;
}

/** Wait for a reservation, and count the delay.
@param[in]  thd             the session
@param[in]  now             the current time
@param[in]  begin_ns        start of the reservation
@param[in]  change_cost_us  time for each row change at the reservation
@param[in]  n_changes       changes that are waited for
@param[in]  is_over         whether there is another reason to continue */
template <typename Is_over>
void wait_for_reservation(THD *thd, int64_t now, int64_t begin_ns,
                          double change_cost_us, uint64_t n_changes,
                          Is_over is_over) {
  if (begin_ns - now < SLEEP_MIN_NS) {
    return;
  }
  s_delays.n_waiting.fetch_add(1, std::memory_order_relaxed);
  PSI_stage_info old_stage;
  thd->enter_stage(&WAITING, &old_stage, __func__, __FILE__, __LINE__);
  /* A thread pool may run other sessions meanwhile. */
  thd_wait_begin(thd, THD_WAIT_SLEEP);
  Throttle_wait wait{now, begin_ns, change_cost_us, n_changes};
  sleep_for(thd, &wait, is_over);
  thd_wait_end(thd);
  thd->enter_stage(&old_stage, nullptr, __func__, __FILE__, __LINE__);
  s_delays.n_waiting.fetch_sub(1, std::memory_order_relaxed);
  s_delays.n_delays.fetch_add(1, std::memory_order_relaxed);
  s_delays.delay_us.fetch_add((now_ns() - now) / 1000,
                              std::memory_order_relaxed);
}

}  // namespace

void throttle_set_cost(double change_cost_us) {
  const int64_t now = now_ns();
  const double old_us =
      s_change_cost.us.exchange(change_cost_us, std::memory_order_relaxed);
  s_change_cost.decided_ns.store(now, std::memory_order_relaxed);
  int64_t next_ns = s_queue.next_ns.load(std::memory_order_relaxed);
  while (!s_queue.next_ns.compare_exchange_weak(
      next_ns,
      rescale_reservation(next_ns, now, bounded(old_us),
                          bounded(change_cost_us)),
      std::memory_order_relaxed)) {
  }
}

Throttle_stats throttle_stats() {
  return {.n_changes = s_queue.n_changes.load(std::memory_order_relaxed),
          .n_delays = s_delays.n_delays.load(std::memory_order_relaxed),
          .delay_us = s_delays.delay_us.load(std::memory_order_relaxed),
          .n_waiting = s_delays.n_waiting.load(std::memory_order_relaxed)};
}

void throttle_statement(const trx_t *trx, const dict_table_t *table) {
  /* A transaction without changes can have locked rows. A table can be opened
  again in the middle of a statement. */
  if (!ahead_flushing || trx->undo_no != 0 || trx->lock.n_rec_locks != 0 ||
      trx->n_mysql_tables_in_use != 0) {
    return;
  }
  THD *const thd = throttled_session(table);
  if (thd == nullptr || locks_whole_table(thd)) {
    return;
  }
  const int64_t now = now_ns();
  const double change_cost_us = change_cost_at(now);
  if (change_cost_us == 0.0) {
    return;
  }
  const uint64_t n_changes = t_debt.at_statement();
  if (n_changes != 0) {
    wait_for_reservation(thd, now, reserve(now, change_cost_us, n_changes),
                         change_cost_us, n_changes, [] { return false; });
  }
}

void throttle_row_change(trx_t *trx, const dict_table_t *table) {
  if (!ahead_flushing) {
    return;
  }
  THD *const thd = throttled_session(table);
  if (thd == nullptr) {
    return;
  }
  s_queue.n_changes.fetch_add(1, std::memory_order_relaxed);
  const int64_t now = now_ns();
  const double change_cost_us = change_cost_at(now);
  if (change_cost_us == 0.0 || !t_debt.at_row_change()) {
    return;
  }
  const uint64_t n_changes = t_debt.take_due();
  const int64_t begin_ns =
      reserve(now, change_cost_us, std::max<uint64_t>(1, n_changes));
  if (n_changes == 0) {
    return;
  }
  /* innodb_thread_concurrency: another thread may enter InnoDB meanwhile. */
  const bool is_inside = trx->declared_to_be_inside_innodb;
  srv_conc_force_exit_innodb(trx);
  /* A thread that has to roll back this transaction waits until it leaves
  InnoDB. */
  wait_for_reservation(thd, now, begin_ns, change_cost_us, n_changes,
                       [trx] { return TrxInInnoDB::is_aborted(trx); });
  if (is_inside) {
    srv_conc_force_enter_innodb(trx);
  }
}

}  // namespace spw
