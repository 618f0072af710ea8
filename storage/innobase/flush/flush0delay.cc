/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/flush0delay.cc
Holds back who changes rows, so that the redo log is filled no faster than it is
emptied. */

#include "univ.i"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "dict0mem.h"
#include "flush0round.h"
#include "spw0hook.h"
#include "sql/current_thd.h"
#include "sql/sql_class.h"
#include "srv0conc.h"
#include "srv0shutdown.h"
#include "trx0trx.h"
#include "ut0cpu_cache.h"

namespace spw {

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
killed, or that the limit is another. */
constexpr int64_t SLICE_NS = 50'000'000;

/** What was decided longer ago, nanoseconds, is of another time: the
coordinator decides at least once a second (innodb_ahead_flushing_interval_ms),
but where a pass of its own takes longer, as those of sync flushing can. */
constexpr int64_t TURN_HOLDS_NS = 2'000'000'000;

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

/** Changes that this thread has made since it has waited; a session that gets
the thread of one that has ended waits for what that has left. */
thread_local uint64_t t_n_owed = 0;

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
  return now - s_turn.decided_ns.load(std::memory_order_relaxed) > TURN_HOLDS_NS
             ? 0.0
             : bounded(s_turn.us.load(std::memory_order_relaxed));
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

/** Sleep until a turn begins: earlier or later, as the limit is another by
then, and no longer than innodb_ahead_flushing_max_delay_us allows.
@param[in]  thd        the session
@param[in]  begin_ns   when its turn begins
@param[in]  turn_us    what each change was given when that was said
@param[in]  n_changes  that it waits for */
void sleep_until(const THD *thd, int64_t begin_ns, double turn_us,
                 uint64_t n_changes) {
  const int64_t start = now_ns();
  for (int64_t now = start;; now = now_ns()) {
    const double new_turn_us = turn_at(now);
    if (thd->is_killed() || new_turn_us == 0.0 || !ahead_flushing ||
        srv_shutdown_state.load() != SRV_SHUTDOWN_NONE) {
      return;
    }
    if (new_turn_us != turn_us) {
      begin_ns =
          redo_begin(redo_rescale(begin_ns, now, turn_us, new_turn_us), now);
      turn_us = new_turn_us;
    }
    const int64_t left_ns =
        std::min(begin_ns,
                 redo_latest(start, ahead_flushing_max_delay_us, n_changes)) -
        now;
    if (left_ns <= 0) {
      return;
    }
    std::this_thread::sleep_for(nanoseconds{std::min(left_ns, SLICE_NS)});
  }
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

void redo_delay(trx_t *trx, const dict_table_t *table) {
  if (!ahead_flushing) {
    return;
  }
  THD *const thd = current_thd;
  if (!is_held_back(thd) || !may_wait_for(table)) {
    return;
  }
  s_queue.n_changes.fetch_add(1, std::memory_order_relaxed);
  const auto max_delay_us = static_cast<int64_t>(ahead_flushing_max_delay_us);
  const int64_t now = now_ns();
  const double turn_us = turn_at(now);
  if (turn_us == 0.0) {
    return;
  }
  t_n_owed = std::min(t_n_owed + 1, REDO_TURN_CHANGES);
  int64_t next_ns = s_queue.next_ns.load(std::memory_order_relaxed);
  Redo_turn turn;
  do {
    turn = redo_take_turn(next_ns, now, turn_us, max_delay_us, t_n_owed);
  } while (!s_queue.next_ns.compare_exchange_weak(next_ns, turn.next_ns,
                                                  std::memory_order_relaxed));
  /* A copy that ALTER TABLE makes has no undo log. */
  const bool is_first = trx->undo_no == 0 && !table->skip_alter_undo;
  if (!is_first && t_n_owed < REDO_TURN_CHANGES) {
    return;
  }
  const uint64_t n_changes = std::exchange(t_n_owed, 0);
  if (turn.begin_ns - now < LEAST_SLEEP_NS) {
    return;
  }
  s_delays.n_waiting.fetch_add(1, std::memory_order_relaxed);
  PSI_stage_info old_stage;
  thd->enter_stage(&WAITING, &old_stage, __func__, __FILE__, __LINE__);
  /* innodb_thread_concurrency: others may work meanwhile. */
  const bool is_inside = trx->declared_to_be_inside_innodb;
  srv_conc_force_exit_innodb(trx);
  sleep_until(thd, turn.begin_ns, turn_us, n_changes);
  if (is_inside) {
    srv_conc_force_enter_innodb(trx);
  }
  thd->enter_stage(&old_stage, nullptr, __func__, __FILE__, __LINE__);
  s_delays.n_waiting.fetch_sub(1, std::memory_order_relaxed);
  s_delays.n_delays.fetch_add(1, std::memory_order_relaxed);
  s_delays.delay_us.fetch_add((now_ns() - now) / 1000,
                              std::memory_order_relaxed);
}

}  // namespace spw
