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
do page splits and rollbacks. */

#include "throttle/throttle0session.h"

#include "univ.i"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>

#include "dict0mem.h"
#include "lock0lock.h"
#include "mysql/psi/mysql_cond.h"
#include "mysql/psi/mysql_mutex.h"
#include "mysql/psi/mysql_stage.h"
#include "mysql/service_thd_wait.h"
#include "que0que.h"
#include "redo/redo0state.h"
#include "sql/current_thd.h"
#include "sql/mysqld.h"
#include "sql/mysqld_thd_manager.h"
#include "sql/protocol_classic.h"
#include "sql/rpl_group_replication.h"
#include "sql/rpl_rli_pdb.h"
#include "sql/sql_class.h"
#include "sql/table.h"
#include "srv0conc.h"
#include "stall/stall0stall.h"
#include "thr_lock.h"
#include "throttle/hook.h"
#include "throttle/policy/throttle0queue.h"
#include "trx0trx.h"
#include "ut0cpu_cache.h"
#include "ut0vec.h"

namespace spw {

/* The defaults are set when InnoDB's variables are registered. */
bool ahead_flushing = false;
double ahead_flushing_age_pct = 0.0;
ulong ahead_flushing_max_delay_us = 0;

namespace {

using std::chrono::duration_cast;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

/** Stage of a delayed session. It reports the progress of the stage that it
interrupts, such as that of ALTER TABLE. */
PSI_stage_info s_stage = {0, "Delayed by write throttle",
                          PSI_FLAG_STAGE_PROGRESS, PSI_DOCUMENT_ME};

/** A session that may not be delayed for longer is not delayed, as the kernel
adds up to 50 us to a sleep (prctl(2), PR_SET_TIMERSLACK): nanoseconds. */
constexpr int64_t SLEEP_MIN_NS = 50'000;

/** Max time until a delayed session notices that its client is gone:
nanoseconds. */
constexpr int64_t CONNECTION_CHECK_NS = 1'000'000'000;

/** The same for a transaction of higher priority that needs its locks, which
only group replication has, and for an applier that is asked to stop. Neither
wakes a thread. */
constexpr int64_t PRIORITY_CHECK_NS = 100'000'000;

/** The limit on the redo of sessions, and when it was decided. Read by each
statement, written for each sample. */
struct alignas(ut::INNODB_CACHE_LINE_SIZE) {
  std::atomic<double> bytes_per_s{THROTTLE_UNLIMITED};
  std::atomic<int64_t> decided_ns{0};
  /** Number of times that a limit began. */
  std::atomic<uint64_t> n_begun{0};
} s_limit;

/** Redo that sessions were charged: bytes. Written only while there is a
limit. */
alignas(ut::INNODB_CACHE_LINE_SIZE) std::atomic<uint64_t> s_charged_bytes{0};

/** Redo that a thread has generated, and that its sessions were charged: bytes
of LSN. */
struct Thread_redo {
  uint64_t generated{0};
  uint64_t charged{0};

  /** s_limit.n_begun when the thread was last charged. */
  uint64_t n_begun{0};

  /** What it had generated where its session could be delayed last. */
  uint64_t checked{0};

  /** The session whose statement the thread executed last: THD::thread_id(). A
  thread of a thread pool executes statements of several sessions. */
  uint64_t session{THROTTLE_NO_ID};

  /** Identifies the account that this session had when the thread met it. All
  events have one account. */
  size_t account{0};

  /** The last session that had its first statement here. That can take the
  place of a session that has ended. */
  uint64_t successor{THROTTLE_NO_ID};

  /** The last table that a statement locked to change it is one of the server's
  own: what the thread generates is DDL. */
  bool is_ddl{false};

  /** When a delay found last that the client is there: nanoseconds. A statement
  can have many delays that are shorter than CONNECTION_CHECK_NS. */
  int64_t connected_ns{0};
};
thread_local Thread_redo t_redo;

/** The queue, and the conditions of the sessions in it that are delayed. One of
them, the leader, wakes those that have waited; the page cleaners' coordinator
does it, too. The mutex is the last in the latching order, as THD::awake() takes
it. */
struct Shared_queue {
  Shared_queue() {
    mysql_mutex_init(0, &mutex, MY_MUTEX_INIT_FAST);
    /* Not when the server starts: tests of the sys schema list the stages. */
    PSI_stage_info *stages[] = {&s_stage};
    mysql_stage_register("innodb", stages, 1);
  }

  /** Let time pass at the current limit, and wake the sessions that have
  waited. The caller holds the mutex.
  @param[in]  now  the current time: nanoseconds */
  void wake(int64_t now);

  /** Charge a session. The caller holds the mutex.
  @param[in]  now    the current time: nanoseconds
  @param[in]  id     the session
  @param[in]  bytes  bytes of redo; 0 lets time pass only */
  void charge(int64_t now, uint64_t id, uint64_t bytes);

  /** A session has more bytes to wait for. The caller holds the mutex.
  @param[in]  now  the current time: nanoseconds
  @param[in]  id   the session */
  void set_deadline(int64_t now, uint64_t id);

  /** A session stops to wait, or waits for something else. If it was the
  leader, another session takes over. The caller holds the mutex.
  @param[in]  self  the condition of the session */
  void leave(const mysql_cond_t *self);

  mysql_mutex_t mutex;
  Throttle_queue queue;
  std::unordered_map<uint64_t, mysql_cond_t *> waiters;
  const mysql_cond_t *leader{nullptr};
};

/** Made by the first caller, as mutexes need the server's start. */
Shared_queue &shared_queue() {
  static Shared_queue queue;
  return queue;
}

int64_t now_ns() {
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch())
      .count();
}

/** @param[in]  now  the current time
@return limit on the redo of sessions: bytes/s */
double limit_at(int64_t now) {
  const double limit = s_limit.bytes_per_s.load(std::memory_order_relaxed);
  const int64_t since_ns =
      now - s_limit.decided_ns.load(std::memory_order_relaxed);
  if (ahead_flushing_max_delay_us == 0) {
    return THROTTLE_UNLIMITED;
  }
  if (limit == THROTTLE_UNLIMITED || since_ns <= THROTTLE_EXPIRY_NS) {
    return limit;
  }
  const Redo_state redo = redo_state();
  return throttle_is_current(since_ns, redo.checkpoint_age,
                             redo.limits.sync_age, ahead_flushing_age_pct)
             ? limit
             : THROTTLE_UNLIMITED;
}

void Shared_queue::wake(int64_t now) {
  queue.set_rate(now, limit_at(now));
  for (const uint64_t id : queue.take_served()) {
    if (const auto waiter = waiters.find(id); waiter != waiters.end()) {
      mysql_cond_signal(waiter->second);
    }
  }
}

/** @return whether it is one of the server's own tables, which it changes while
it holds locks that all sessions need, such as the binary log's */
bool is_servers_table(const dict_table_t *table) {
  constexpr char SCHEMA[] = "mysql/";
  return strncmp(table->name.m_name, SCHEMA, sizeof(SCHEMA) - 1) == 0;
}

/** @return whether a change of the table may be delayed. Temporary tables are
not in the redo log */
bool is_throttled_table(const dict_table_t *table) {
  return !table->is_temporary() && !is_servers_table(table);
}

/** @return whether the statement announces row changes and holds a lock that
blocks all other users of the table. What it copies is charged after each 16 KiB
of redo */
bool locks_whole_table(const THD *thd) {
  switch (thd_sql_command(thd)) {
    case SQLCOM_ALTER_TABLE:
    case SQLCOM_CREATE_INDEX:
    case SQLCOM_DROP_INDEX:
    case SQLCOM_LOCK_TABLES:
    case SQLCOM_OPTIMIZE:
    case SQLCOM_REPAIR:
      return true;
    default:
      return false;
  }
}

/** @return the session, if its change of this table may be delayed; else
nullptr */
THD *throttled_session(const dict_table_t *table) {
  THD *const thd = current_thd;
  return is_session(thd) && is_throttled_table(table) ? thd : nullptr;
}

/** Whether the redo of this thread may have to be charged. What was generated
without a limit is not charged.
@return whether there is a limit */
bool is_limited() {
  if (s_limit.bytes_per_s.load(std::memory_order_acquire) ==
      THROTTLE_UNLIMITED) {
    t_redo.charged = t_redo.generated;
    return false;
  }
  const uint64_t n_begun = s_limit.n_begun.load(std::memory_order_relaxed);
  if (std::exchange(t_redo.n_begun, n_begun) != n_begun) {
    t_redo.charged = t_redo.generated;
  }
  return true;
}

/** @return redo of this thread to charge: bytes; 0 if a delay would be too
short */
uint64_t take_uncharged() {
  const uint64_t bytes =
      t_redo.generated - std::exchange(t_redo.charged, t_redo.generated);
  return throttle_max_wait_ns(ahead_flushing_max_delay_us,
                              static_cast<double>(bytes)) < SLEEP_MIN_NS
             ? 0
             : bytes;
}

void Shared_queue::charge(int64_t now, uint64_t id, uint64_t bytes) {
  queue.set_rate(now, limit_at(now));
  if (bytes != 0) {
    s_charged_bytes.fetch_add(bytes, std::memory_order_relaxed);
    queue.charge(now, id, static_cast<double>(bytes));
    set_deadline(now, id);
  }
}

void Shared_queue::set_deadline(int64_t now, uint64_t id) {
  queue.set_deadline(id, now + throttle_max_wait_ns(ahead_flushing_max_delay_us,
                                                    queue.bytes_of(id)));
}

void Shared_queue::leave(const mysql_cond_t *self) {
  if (leader == self) {
    leader = nullptr;
  }
  if (leader == nullptr) {
    for (const auto &waiter : waiters) {
      if (waiter.second != self) {
        mysql_cond_signal(waiter.second);
        return;
      }
    }
  }
}

/** @return identifies the account of the session */
size_t account_of(const THD *thd) {
  const Security_context &context = thd->m_main_security_ctx;
  std::string name{to_string_view(context.priv_user())};
  name.push_back('\0');
  name.append(to_string_view(context.priv_host()));
  return std::hash<std::string>{}(name);
}

/** The thread works for a session from now on. What it has generated since the
last session's statement ended is charged to nobody: the commits of other
sessions (group commit).
@param[in]  thd  the session */
void switch_session(const THD *thd) {
  const uint64_t last = std::exchange(t_redo.session, thd->thread_id());
  if (last == t_redo.session) {
    return;
  }
  t_redo.account = account_of(thd);
  if (last != THROTTLE_NO_ID) {
    t_redo.charged = t_redo.generated;
  }
}

/** The session is new: it may have to wait for the bytes of an ended one.
@param[in]  id  the session
@return whether it has bytes to wait for */
bool succeed_ended_session(uint64_t id) {
  Shared_queue &shared = shared_queue();
  mysql_mutex_lock(&shared.mutex);
  shared.queue.succeed(t_redo.account, id);
  shared.set_deadline(now_ns(), id);
  const bool is_waiting = shared.queue.is_waiting(id);
  mysql_mutex_unlock(&shared.mutex);
  return is_waiting;
}

/** @return whether a transaction waits for a row lock of this one */
bool has_row_locks_waited_for(const trx_t *trx) {
  lock_wait_mutex_enter();
  const bool is_waited_for = std::any_of(
      lock_sys->waiting_threads, lock_sys->last_slot,
      [trx](const srv_slot_t &slot) {
        return slot.in_use &&
               thr_get_trx(slot.thr)->lock.blocking_trx.load() == trx;
      });
  lock_wait_mutex_exit();
  return is_waited_for;
}

/** @return whether a session waits for a table lock of this one: of a table of
an engine without row locks, such as MyISAM, that a trigger writes to */
bool has_table_locks_waited_for(const THD *thd) {
  const MYSQL_LOCK *const locks = thd->lock;
  return locks != nullptr &&
         std::any_of(locks->locks, locks->locks + locks->lock_count,
                     [](const THR_LOCK_DATA *data) {
                       THR_LOCK *const lock = data->lock;
                       mysql_mutex_lock(&lock->mutex);
                       const bool is_waited_for =
                           lock->read_wait.data != nullptr ||
                           lock->write_wait.data != nullptr;
                       mysql_mutex_unlock(&lock->mutex);
                       return is_waited_for;
                     });
}

/** @param[in]  thd     the session of this thread
@param[in]  locker  its transaction, if that has locked rows; else nullptr
@return whether another session waits for it: for a row lock, a table lock, a
metadata lock, or the use of a table to end (FLUSH TABLES) */
bool is_waited_for(const THD *thd, const trx_t *locker) {
  for (const TABLE *table = thd->open_tables; table != nullptr;
       table = table->next) {
    if (table->s->has_old_version()) {
      return true;
    }
  }
  return thd->mdl_context.has_locks_waited_for() ||
         has_table_locks_waited_for(thd) ||
         (locker != nullptr && has_row_locks_waited_for(locker));
}

/** @return whether the session has lost its client; false for a session without
a connection, and for one of the X Protocol, where the test can block */
bool is_client_gone(THD *thd) {
  return thd->is_classic_protocol() &&
         thd->get_protocol_classic()->get_vio() != nullptr &&
         !thd->is_connected();
}

/** Progress of a stage, in its own unit. */
struct Stage_progress {
  /** @param[in]  thd  the session of this thread */
  explicit Stage_progress(const THD *thd) {
    if (const PSI_stage_progress *const stage = thd->m_stage_progress_psi) {
      completed = stage->m_work_completed;
      estimated = stage->m_work_estimated;
    }
  }

  /** The stage of the session has changed: it goes on from here.
  @param[in]  thd  the session of this thread */
  void report(const THD *thd) const {
    mysql_stage_set_work_completed(thd->m_stage_progress_psi, completed);
    mysql_stage_set_work_estimated(thd->m_stage_progress_psi, estimated);
  }

  ulonglong completed{0};
  ulonglong estimated{0};
};

/** @return whether the session is an applier of replication that is asked to
stop, or whose transaction will be rolled back, as an earlier one needs its
locks. Nobody wakes it for that. */
bool is_ending_applier(const THD *thd) {
  if (!thd->slave_thread || thd->rli_slave == nullptr) {
    return false;
  }
  return thd->rli_slave->get_c_rli()->abort_slave.load() ||
         (is_mts_worker(thd) &&
          get_thd_worker(thd)->found_commit_order_deadlock());
}

/** Wait until the charges of the session are served.
@param[in]  thd     the session
@param[in]  start   the current time
@param[in]  locker  its transaction, if that has locked rows; else nullptr */
void sleep_until_served(THD *thd, int64_t start, const trx_t *locker) {
  const uint64_t id = thd->thread_id();
  const bool is_checked_often =
      thd->slave_thread ||
      (locker != nullptr && is_group_replication_running());
  const int64_t check_ns =
      is_checked_often ? PRIORITY_CHECK_NS : CONNECTION_CHECK_NS;
  mysql_cond_t self;
  mysql_cond_init(0, &self);
  Shared_queue &shared = shared_queue();
  PSI_stage_info old_stage;
  const Stage_progress progress{thd};
  mysql_mutex_lock(&shared.mutex);
  thd->enter_cond(&self, &shared.mutex, &s_stage, &old_stage, __func__,
                  __FILE__, __LINE__);
  progress.report(thd);
  shared.waiters.emplace(id, &self);
  const int64_t deadline = shared.queue.deadline_ns(id);
  const int64_t locked_end = throttle_locked_end_ns(start, deadline);
  /* The workers of a replica wait for the commit of the one before them. */
  const int64_t until = thd->slave_thread ? locked_end : deadline;
  for (;;) {
    const int64_t now = now_ns();
    if (shared.leader == nullptr) {
      shared.leader = &self;
    }
    const bool is_leader = shared.leader == &self;
    if (is_leader) {
      shared.wake(now);
    }
    if (!shared.queue.is_waiting(id) || thd->is_killed() ||
        connection_events_loop_aborted() ||
        (locker != nullptr && TrxInInnoDB::is_aborted(locker)) ||
        is_ending_applier(thd)) {
      break;
    }
    if (now >= until) {
      if (now >= deadline) {
        shared.queue.forgive(id);
      }
      break;
    }
    if (now - t_redo.connected_ns >= CONNECTION_CHECK_NS) {
      t_redo.connected_ns = now;
      shared.leave(&self);
      /* Both lock mutexes that come before this one. */
      mysql_mutex_unlock(&shared.mutex);
      const bool is_gone = is_client_gone(thd);
      const bool is_end = now >= locked_end && is_waited_for(thd, locker);
      mysql_mutex_lock(&shared.mutex);
      if (is_gone) {
        thd->killed = THD::KILL_CONNECTION;
      }
      if (is_end) {
        break;
      }
      continue;
    }
    timespec wake_up;
    set_timespec_nsec(
        &wake_up, std::min(until - now, is_leader ? THROTTLE_GROUP_NS -
                                                        now % THROTTLE_GROUP_NS
                                                  : check_ns));
    (void)mysql_cond_timedwait(&self, &shared.mutex, &wake_up);
  }
  shared.waiters.erase(id);
  shared.leave(&self);
  mysql_mutex_unlock(&shared.mutex);
  thd->exit_cond(&old_stage, __func__, __FILE__, __LINE__);
  progress.report(thd);
  mysql_cond_destroy(&self);
}

/** Charge the session for the redo that its thread has generated, and delay it
until its charges are served. Count the delay.
@param[in]  thd     the session
@param[in]  locker  its transaction, if that has locked rows; else nullptr */
void charge_and_delay(THD *thd, trx_t *locker) {
  const uint64_t id = thd->thread_id();
  const uint64_t bytes = take_uncharged();
  t_redo.checked = t_redo.generated;
  const int64_t start = now_ns();
  Shared_queue &shared = shared_queue();
  mysql_mutex_lock(&shared.mutex);
  shared.charge(start, id, bytes);
  const double remaining_s = shared.queue.remaining_s(id);
  mysql_mutex_unlock(&shared.mutex);
  if (1e9 * remaining_s < THROTTLE_GROUP_NS) {
    return;
  }
  /* innodb_thread_concurrency: another thread may enter InnoDB meanwhile. */
  const bool is_inside =
      locker != nullptr && locker->declared_to_be_inside_innodb;
  if (is_inside) {
    srv_conc_force_exit_innodb(locker);
  }
  /* A thread pool may run other sessions meanwhile. */
  thd_wait_begin(thd, THD_WAIT_SLEEP);
  {
    Stall_wait stall{Stall::WRITE_THROTTLE};
    sleep_until_served(thd, start, locker);
  }
  thd_wait_end(thd);
  if (is_inside) {
    srv_conc_force_enter_innodb(locker);
  }
}

}  // namespace

void throttle_set_limit(double bytes_per_s) {
  const double limit =
      ahead_flushing_max_delay_us == 0 ? THROTTLE_UNLIMITED : bytes_per_s;
  const int64_t now = now_ns();
  s_limit.decided_ns.store(now, std::memory_order_relaxed);
  if (s_limit.bytes_per_s.load(std::memory_order_relaxed) ==
      THROTTLE_UNLIMITED) {
    if (limit == THROTTLE_UNLIMITED) {
      return;
    }
    s_limit.n_begun.fetch_add(1, std::memory_order_relaxed);
  }
  s_limit.bytes_per_s.store(limit, std::memory_order_release);
  Shared_queue &shared = shared_queue();
  mysql_mutex_lock(&shared.mutex);
  shared.wake(now);
  shared.queue.expire(now);
  mysql_mutex_unlock(&shared.mutex);
}

uint64_t throttle_charged_bytes() {
  return s_charged_bytes.load(std::memory_order_relaxed);
}

double throttle_limit() { return limit_at(now_ns()); }

void throttle_session_ended(const THD *thd) {
  if (thd->is_attachable_transaction_active() || !is_session(thd)) {
    return;
  }
  if (!is_limited()) {
    t_redo.session = THROTTLE_NO_ID;
    return;
  }
  const uint64_t id = thd->thread_id();
  switch_session(thd);
  t_redo.session = THROTTLE_NO_ID;
  const uint64_t bytes = take_uncharged();
  const uint64_t next = Global_THD_manager::get_instance()->get_thread_id();
  Shared_queue &shared = shared_queue();
  mysql_mutex_lock(&shared.mutex);
  shared.charge(now_ns(), id, bytes);
  shared.queue.end(t_redo.account, id, next);
  mysql_mutex_unlock(&shared.mutex);
}

void redo_generated(ulint bytes) { t_redo.generated += bytes; }

Uncharged_redo::Uncharged_redo()
    : m_is_charged(false), m_generated(t_redo.generated) {}

Uncharged_redo::Uncharged_redo(const trx_t *trx)
    : m_is_charged(trx->mysql_thd == nullptr ||
                   trx->mysql_thd->thread_id() == t_redo.session),
      m_generated(t_redo.generated) {}

Uncharged_redo::~Uncharged_redo() {
  if (!m_is_charged) {
    t_redo.charged = std::min(
        t_redo.generated, t_redo.charged + (t_redo.generated - m_generated));
  }
}

void throttle_statement(const trx_t *trx, const dict_table_t *table) {
  if (!is_limited()) {
    return;
  }
  t_redo.is_ddl = is_servers_table(table);
  THD *const thd = throttled_session(table);
  if (thd == nullptr) {
    return;
  }
  const uint64_t id = thd->thread_id();
  switch_session(thd);
  const bool has_bytes =
      std::exchange(t_redo.successor, id) != id && succeed_ended_session(id);
  /* A transaction without changes can have locked rows. A table can be opened
  again in the middle of a statement. */
  if (trx->undo_no != 0 || trx->lock.n_rec_locks != 0 ||
      trx->n_mysql_tables_in_use != 0 || locks_whole_table(thd)) {
    if (has_bytes) {
      /* It waits before its next row change. */
      t_redo.checked = t_redo.generated - THROTTLE_CHARGE_BYTES;
    }
    return;
  }
  charge_and_delay(thd, nullptr);
}

void throttle_statement_ended(const THD *thd) {
  if (t_redo.generated == t_redo.charged || !is_limited() || !is_session(thd)) {
    return;
  }
  const uint64_t id = thd->thread_id();
  switch_session(thd);
  /* DDL is not delayed. Its redo would leave nothing of the limit to others. */
  if (t_redo.is_ddl) {
    t_redo.charged = t_redo.generated;
    return;
  }
  const uint64_t bytes = take_uncharged();
  Shared_queue &shared = shared_queue();
  mysql_mutex_lock(&shared.mutex);
  shared.charge(now_ns(), id, bytes);
  mysql_mutex_unlock(&shared.mutex);
}

void throttle_row_change(trx_t *trx, const dict_table_t *table) {
  if (t_redo.generated - t_redo.checked < THROTTLE_CHARGE_BYTES) {
    return;
  }
  if (!is_limited()) {
    t_redo.checked = t_redo.generated;
    return;
  }
  /* A session that waited with an AUTO-INC lock would delay all inserts into
  the table. */
  if (!ib_vector_is_empty(trx->lock.autoinc_locks)) {
    return;
  }
  THD *const thd = throttled_session(table);
  if (thd == nullptr) {
    return;
  }
  charge_and_delay(thd, trx);
}

}  // namespace spw
