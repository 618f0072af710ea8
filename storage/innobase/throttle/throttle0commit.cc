/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file throttle/throttle0commit.cc
Commit groups: delays commits, so that they share writes of the redo log and of
the binary log. The redo of all of them is in the log buffer by then, and the
first one that writes the log buffer writes all of it. */

#include "throttle/throttle0commit.h"

#include "univ.i"

#include <atomic>
#include <chrono>
#include <thread>

#include "log0log.h"
#include "mysql/service_thd_wait.h"
#include "sql/current_thd.h"
#include "sql/mysqld.h"
#include "srv0srv.h"
#include "stall/stall0stall.h"
#include "throttle/hook.h"
#include "throttle/policy/throttle0group.h"
#include "ut0cpu_cache.h"

namespace spw {

namespace {

using std::chrono::duration_cast;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

/** Interval between commit groups: nanoseconds. Read by each commit, written
for each sample. */
alignas(ut::INNODB_CACHE_LINE_SIZE) std::atomic<int64_t> s_interval_ns{0};

/** Written only while there is an interval. */
alignas(ut::INNODB_CACHE_LINE_SIZE) Commit_groups s_groups;

int64_t now_ns() {
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch())
      .count();
}

/** Wait for the begin of the next commit group, if there is an interval.
@param[in]  thd  the session of this thread */
void wait_for_next_group(THD *thd) {
  const int64_t interval = s_interval_ns.load(std::memory_order_relaxed);
  if (interval == 0 || !is_session(thd)) {
    return;
  }
  const int64_t now = now_ns();
  const int64_t begin = s_groups.join(now, interval);
  if (begin > now) {
    Stall_wait stall{Stall::WRITE_THROTTLE};
    thd_wait_begin(thd, THD_WAIT_GROUP_COMMIT);
    std::this_thread::sleep_for(nanoseconds{begin - now});
    thd_wait_end(thd);
    (void)s_groups.join(now_ns(), interval);
  }
}

}  // namespace

void commit_groups_decide(double n_delayed, double elapsed_s) {
  s_interval_ns.store(
      commit_group_interval_ns(s_interval_ns.load(std::memory_order_relaxed),
                               n_delayed, elapsed_s),
      std::memory_order_relaxed);
}

void commit_groups_end() { s_interval_ns.store(0, std::memory_order_relaxed); }

void throttle_commit(uint64_t lsn) {
  /* The log writer threads write and flush redo as it comes. */
  if (srv_flush_log_at_trx_commit == 1 &&
      log_sys->writer_threads_paused.load(std::memory_order_relaxed) &&
      log_sys->flushed_to_disk_lsn.load(std::memory_order_relaxed) < lsn) {
    wait_for_next_group(current_thd);
  }
}

void throttle_group_commit() {
  if (srv_flush_log_at_trx_commit == 1 || sync_binlog_period == 1) {
    wait_for_next_group(current_thd);
  }
}

}  // namespace spw
