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

#include "dict0mem.h"
#include "flush0round.h"
#include "spw0hook.h"
#include "sql/current_thd.h"
#include "sql/sql_class.h"
#include "srv0conc.h"
#include "srv0shutdown.h"

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

/** Within this time, nanoseconds, a thread that sleeps sees that it has been
killed, or that there is no limit any more. */
constexpr int64_t SLICE_NS = 100'000'000;

/** What was decided longer ago, nanoseconds, is of another time: the
coordinator decides at least once a second (innodb_ahead_flushing_interval_ms),
but where a pass of its own takes longer, as those of sync flushing can. */
constexpr int64_t TURN_HOLDS_NS = 2'000'000'000;

/** What each change is given, and when that was decided. */
std::atomic<double> s_turn_us{0.0};
std::atomic<int64_t> s_turn_ns{0};

/** When the next change may begin. */
std::atomic<int64_t> s_next_ns{0};

std::atomic<uint64_t> s_n_changes{0};
std::atomic<uint64_t> s_n_delays{0};
std::atomic<uint64_t> s_delay_us{0};

int64_t now_ns() {
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch())
      .count();
}

/** @param[in]  now  now
@return what each change is given: microseconds; 0 if there is no limit */
double turn_at(int64_t now) {
  return now - s_turn_ns.load(std::memory_order_relaxed) > TURN_HOLDS_NS
             ? 0.0
             : s_turn_us.load(std::memory_order_relaxed);
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

void sleep_until(const THD *thd, int64_t begin_ns) {
  for (int64_t now = now_ns();
       now < begin_ns && !thd->is_killed() && turn_at(now) != 0.0 &&
       ahead_flushing && ahead_flushing_max_delay_us != 0 &&
       srv_shutdown_state.load() == SRV_SHUTDOWN_NONE;
       now = now_ns()) {
    std::this_thread::sleep_for(
        nanoseconds{std::min(begin_ns - now, SLICE_NS)});
  }
}

}  // namespace

void redo_set_turn(double turn_us) {
  s_turn_us.store(turn_us, std::memory_order_relaxed);
  s_turn_ns.store(now_ns(), std::memory_order_relaxed);
  if (turn_us == 0.0) {
    s_next_ns.store(0, std::memory_order_relaxed);
  }
}

Redo_delays redo_delays() {
  return {.n_changes = s_n_changes.load(std::memory_order_relaxed),
          .n_delays = s_n_delays.load(std::memory_order_relaxed),
          .delay_us = s_delay_us.load(std::memory_order_relaxed)};
}

void redo_delay(trx_t *trx, const dict_table_t *table) {
  if (!ahead_flushing) {
    return;
  }
  const THD *const thd = current_thd;
  if (!is_held_back(thd) || !may_wait_for(table)) {
    return;
  }
  s_n_changes.fetch_add(1, std::memory_order_relaxed);
  const auto max_delay_us = static_cast<int64_t>(ahead_flushing_max_delay_us);
  const int64_t now = now_ns();
  const double turn_us = turn_at(now);
  if (max_delay_us == 0 || turn_us == 0.0) {
    return;
  }
  int64_t next_ns = s_next_ns.load(std::memory_order_relaxed);
  Redo_turn turn;
  do {
    turn = redo_take_turn(next_ns, now, turn_us, max_delay_us);
  } while (!s_next_ns.compare_exchange_weak(next_ns, turn.next_ns,
                                            std::memory_order_relaxed));
  if (turn.begin_ns - now < LEAST_SLEEP_NS) {
    return;
  }
  /* innodb_thread_concurrency: others may work meanwhile. */
  const bool is_inside = trx->declared_to_be_inside_innodb;
  srv_conc_force_exit_innodb(trx);
  sleep_until(thd, turn.begin_ns);
  if (is_inside) {
    srv_conc_force_enter_innodb(trx);
  }
  s_n_delays.fetch_add(1, std::memory_order_relaxed);
  s_delay_us.fetch_add((now_ns() - now) / 1000, std::memory_order_relaxed);
}

}  // namespace spw
