/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file throttle/throttle0session.cc
Holds back who changes rows, so that the redo log is filled no faster than it is
emptied. Not in log_free_check(), where upstream stops all: that is met several
times in a change, with rows locked, by a page's split as by a rollback, and
knows neither the session nor what it has changed. */

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

/* Their defaults are set when InnoDB's variables are registered. */
bool ahead_flushing = false;
double ahead_flushing_age_pct = 0.0;
ulong ahead_flushing_max_delay_us = 0;

namespace {

using std::chrono::duration_cast;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

/** A thread that is not woken any earlier does not sleep: the kernel adds up to
50 us to a sleep (prctl(2), PR_SET_TIMERSLACK). Its turn is counted all the
same. */
constexpr int64_t LEAST_SLEEP_NS = 50'000;

/** What SHOW PROCESSLIST says of who waits. No key: it is no stage of the
performance schema, whose debug builds know all of them beforehand. */
const PSI_stage_info WAITING{0, "Waiting for its turn to fill the redo log", 0,
                             ""};

/** Within this time, nanoseconds, a thread that sleeps sees that it has been
killed, or that the limit is another: half the time between two looks, as it is
by default, in which the limit is decided. */
constexpr int64_t SLICE_NS = 50'000'000;

/** What each change is given, and when that was decided: read by each, written
in each round. */
struct alignas(ut::INNODB_CACHE_LINE_SIZE) {
  std::atomic<double> us{0.0};
  std::atomic<int64_t> decided_ns{0};
} s_turn;

/** When the next change may begin. Like the number of changes it is written by
each. */
struct alignas(ut::INNODB_CACHE_LINE_SIZE) {
  std::atomic<int64_t> next_ns{0};
  std::atomic<uint64_t> n_changes{0};
} s_queue;

/** Those who have waited, and who wait now. */
struct alignas(ut::INNODB_CACHE_LINE_SIZE) {
  std::atomic<uint64_t> n_delays{0};
  std::atomic<uint64_t> delay_us{0};
  std::atomic<uint64_t> n_waiting{0};
} s_delays;

/** What this thread has to wait for; a session that gets the thread of one that
has ended waits for what that has left. */
thread_local Redo_debt t_debt;

int64_t now_ns() {
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch())
      .count();
}

/** @param[in]  turn_us  what each change is given
@return the same, no more than it may wait for */
double bounded(double turn_us) {
  return std::min(turn_us, static_cast<double>(ahead_flushing_max_delay_us));
}

/** @param[in]  now  now
@return what each change is given: microseconds; 0 if there is no limit */
double turn_at(int64_t now) {
  const double us = bounded(s_turn.us.load(std::memory_order_relaxed));
  const int64_t since_ns =
      now - s_turn.decided_ns.load(std::memory_order_relaxed);
  if (us == 0.0 || since_ns <= REDO_TURN_HOLDS_NS) {
    return us;
  }
  const Redo_fill fill = redo_fill();
  return redo_turn_holds(since_ns, fill.age, fill.limits.sync_age,
                         ahead_flushing_age_pct)
             ? us
             : 0.0;
}

/** @return whether this thread works for a user, or as one does on a replica */
bool is_held_back(const THD *thd) {
  return thd != nullptr && (thd->system_thread == NON_SYSTEM_THREAD ||
                            thd->system_thread == SYSTEM_THREAD_EVENT_WORKER ||
                            thd->slave_thread);
}

/** @return whether a change of it may wait. The server changes its own tables
with locks that all need, such as that of the binary log; a temporary one is not
in the redo log. */
bool may_wait_for(const dict_table_t *table) {
  constexpr char SCHEMA[] = "mysql/";
  return !table->is_temporary() &&
         strncmp(table->name.m_name, SCHEMA, sizeof(SCHEMA) - 1) != 0;
}

/** @return whether a statement says that it may change rows, and has a lock for
which all others wait who use the table; that it copies rows counts as these */
bool is_of_whole_table(const THD *thd) {
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

/** Sleep until a wait is over.
@param[in]      thd      the session
@param[in,out]  wait     for its turn
@param[in]      is_over  whether there is a reason of its own to go on */
template <typename Is_over>
void sleep_for(const THD *thd, Redo_wait *wait, Is_over is_over) {
  for (;;) {
    const int64_t now = now_ns();
    const int64_t left_ns =
        wait->left_ns(now, turn_at(now), ahead_flushing_max_delay_us);
    if (left_ns == 0 || thd->is_killed() || is_over() || !ahead_flushing ||
        srv_shutdown_state.load() != SRV_SHUTDOWN_NONE) {
      return;
    }
    std::this_thread::sleep_for(nanoseconds{std::min(left_ns, SLICE_NS)});
  }
}

/** @return the session, if a change of this table that it makes may wait; else
nullptr */
THD *who_waits(const dict_table_t *table) {
  THD *const thd = current_thd;
  return is_held_back(thd) && may_wait_for(table) ? thd : nullptr;
}

/** Take a turn.
@param[in]  now        now
@param[in]  turn_us    what each change is given
@param[in]  n_changes  that are waited for at once
@return when the last of them may begin */
int64_t take_turn(int64_t now, double turn_us, uint64_t n_changes) {
  const auto max_delay_us = static_cast<int64_t>(ahead_flushing_max_delay_us);
  int64_t next_ns = s_queue.next_ns.load(std::memory_order_relaxed);
  Redo_turn turn;
  do {
    turn = redo_take_turn(next_ns, now, turn_us, max_delay_us, n_changes);
  } while (!s_queue.next_ns.compare_exchange_weak(next_ns, turn.next_ns,
                                                  std::memory_order_relaxed));
  return turn.begin_ns;
}

/** Wait for a turn, and count that.
@param[in]  thd        the session
@param[in]  now        now
@param[in]  begin_ns   when its turn begins
@param[in]  turn_us    what each change was given when that was said
@param[in]  n_changes  that it waits for
@param[in]  is_over    whether there is a reason of its own to go on */
template <typename Is_over>
void wait_for_turn(THD *thd, int64_t now, int64_t begin_ns, double turn_us,
                   uint64_t n_changes, Is_over is_over) {
  if (begin_ns - now < LEAST_SLEEP_NS) {
    return;
  }
  s_delays.n_waiting.fetch_add(1, std::memory_order_relaxed);
  PSI_stage_info old_stage;
  thd->enter_stage(&WAITING, &old_stage, __func__, __FILE__, __LINE__);
  /* A thread pool may run others meanwhile. */
  thd_wait_begin(thd, THD_WAIT_SLEEP);
  Redo_wait wait{now, begin_ns, turn_us, n_changes};
  sleep_for(thd, &wait, is_over);
  thd_wait_end(thd);
  thd->enter_stage(&old_stage, nullptr, __func__, __FILE__, __LINE__);
  s_delays.n_waiting.fetch_sub(1, std::memory_order_relaxed);
  s_delays.n_delays.fetch_add(1, std::memory_order_relaxed);
  s_delays.delay_us.fetch_add((now_ns() - now) / 1000,
                              std::memory_order_relaxed);
}

}  // namespace

void redo_set_turn(double turn_us) {
  const int64_t now = now_ns();
  const double old_us = s_turn.us.exchange(turn_us, std::memory_order_relaxed);
  s_turn.decided_ns.store(now, std::memory_order_relaxed);
  int64_t next_ns = s_queue.next_ns.load(std::memory_order_relaxed);
  while (!s_queue.next_ns.compare_exchange_weak(
      next_ns, redo_rescale(next_ns, now, bounded(old_us), bounded(turn_us)),
      std::memory_order_relaxed)) {
  }
}

Redo_delays redo_delays() {
  return {.n_changes = s_queue.n_changes.load(std::memory_order_relaxed),
          .n_delays = s_delays.n_delays.load(std::memory_order_relaxed),
          .delay_us = s_delays.delay_us.load(std::memory_order_relaxed),
          .n_waiting = s_delays.n_waiting.load(std::memory_order_relaxed)};
}

void redo_delay_statement(const trx_t *trx, const dict_table_t *table) {
  /* What has changed nothing can have locked rows, too, and a table can be
  opened again in the middle of a statement. */
  if (!ahead_flushing || trx->undo_no != 0 || trx->lock.n_rec_locks != 0 ||
      trx->n_mysql_tables_in_use != 0) {
    return;
  }
  THD *const thd = who_waits(table);
  if (thd == nullptr || is_of_whole_table(thd)) {
    return;
  }
  const int64_t now = now_ns();
  const double turn_us = turn_at(now);
  if (turn_us == 0.0) {
    return;
  }
  const uint64_t n_changes = t_debt.begin();
  if (n_changes != 0) {
    wait_for_turn(thd, now, take_turn(now, turn_us, n_changes), turn_us,
                  n_changes, [] { return false; });
  }
}

void redo_delay_change(trx_t *trx, const dict_table_t *table) {
  if (!ahead_flushing) {
    return;
  }
  THD *const thd = who_waits(table);
  if (thd == nullptr) {
    return;
  }
  s_queue.n_changes.fetch_add(1, std::memory_order_relaxed);
  const int64_t now = now_ns();
  const double turn_us = turn_at(now);
  if (turn_us == 0.0 || !t_debt.change()) {
    return;
  }
  const uint64_t n_changes = t_debt.due();
  const int64_t begin_ns =
      take_turn(now, turn_us, std::max<uint64_t>(1, n_changes));
  if (n_changes == 0) {
    return;
  }
  /* innodb_thread_concurrency: others may work meanwhile. */
  const bool is_inside = trx->declared_to_be_inside_innodb;
  srv_conc_force_exit_innodb(trx);
  /* Who has to roll it back waits for it to leave InnoDB. */
  wait_for_turn(thd, now, begin_ns, turn_us, n_changes,
                [trx] { return TrxInInnoDB::is_aborted(trx); });
  if (is_inside) {
    srv_conc_force_enter_innodb(trx);
  }
}

}  // namespace spw
