/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/flush0sync.cc
Syncs several data files at a time. A device flushes its volatile cache once for
all syncs that wait for it. One sync after the other costs it a flush each, and
commits wait for these, too. */

#include <array>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <system_error>

#include "flush/flush0sync.h"
#include "flush/hook.h"
#include "mysqld_error.h"
#include "os0thread-create.h"
#include "sql/current_thd.h"
#include "sql/sql_error.h"
#include "throttle/throttle0session.h"
#include "ut0log.h"

namespace spw {

namespace {

/** Threads that sync files beside the one that needs it. Source: chosen; the
workloads of our benchmarks write to 9 or 10 files. */
constexpr size_t N_SYNC_THREADS = 15;

/** Threads that do a task for each index below a number, together with the
thread that asks for it. */
class Sync_threads {
 public:
  /** From now on there can be threads. */
  void allow() {
    const std::lock_guard lock{m_mutex};
    m_is_allowed = true;
  }

  /** Make the threads, unless there are some, or they are not allowed. */
  void start();

  /** End the threads for good. Waits for what they do. */
  void stop();

  /** Do a task for each index. One caller at a time is helped.
  @param[in]  n     number of indexes
  @param[in]  task  the task; called by several threads at a time
  @return whether it was done; false if another caller is being helped, or there
  are no threads */
  bool run(size_t n, const std::function<void(size_t)> &task);

 private:
  /** A thread: help each caller until stop(). */
  void work();

  /** Do the task for each index that no thread has taken yet. Called with
  m_mutex, which is released for the task.
  @param[in,out]  lock  of m_mutex */
  void take(std::unique_lock<std::mutex> *lock);

  std::mutex m_mutex;

  /** There is an index to take, or the threads are to end. */
  std::condition_variable m_is_wanted;

  /** No thread is at the caller's task any more. */
  std::condition_variable m_is_done;

  std::array<IB_thread, N_SYNC_THREADS> m_threads;
  size_t m_n_threads{0};
  bool m_is_allowed{false};

  /** The task; nullptr if there is none. m_next is the first index that no
  thread has taken. */
  const std::function<void(size_t)> *m_task{nullptr};
  size_t m_next{0};
  size_t m_n{0};

  /** Threads that are at the task, the caller left out. */
  size_t m_n_helping{0};
};

void Sync_threads::start() {
  const std::lock_guard lock{m_mutex};
  if (!m_is_allowed || m_n_threads != 0) {
    return;
  }
#ifdef UNIV_PFS_THREAD
  /* See extend/extend0thread.cc. */
  static mysql_pfs_key_t key;
  static std::once_flag registered;
  std::call_once(registered, [] {
    PSI_thread_info threads[] = {
        {&key.m_value, "data_sync_thread", "ib_sync", 0, 0, PSI_DOCUMENT_ME}};
    mysql_thread_register("innodb", threads, 1);
  });
#endif /* UNIV_PFS_THREAD */
  try {
    for (IB_thread &thread : m_threads) {
      thread = os_thread_create(key, m_n_threads, [this] { work(); });
      thread.start();
      ++m_n_threads;
    }
  } catch (const std::system_error &error) {
    const std::string warning =
        "Only " + std::to_string(m_n_threads) + " of " +
        std::to_string(N_SYNC_THREADS) +
        " threads that sync data files could be created: " + error.what() +
        ". Syncs can take longer. Raise the limit of threads (ulimit -u,"
        " TasksMax of systemd, pids.max of the control group), and restart the"
        " server.";
    ib::warn() << warning;
    if (THD *const thd = current_thd) {
      push_warning(thd, Sql_condition::SL_WARNING, ER_UNKNOWN_ERROR,
                   warning.c_str());
    }
  }
}

void Sync_threads::stop() {
  size_t n_threads;
  {
    const std::lock_guard lock{m_mutex};
    m_is_allowed = false;
    n_threads = m_n_threads;
    m_n_threads = 0;
    m_is_wanted.notify_all();
  }
  for (size_t i = 0; i < n_threads; ++i) {
    m_threads[i].join();
  }
}

void Sync_threads::take(std::unique_lock<std::mutex> *lock) {
  while (m_next < m_n) {
    const size_t index = m_next++;
    if (m_next < m_n) {
      /* One thread wakes the next, so that few wake up for fast syncs. */
      m_is_wanted.notify_one();
    }
    const auto &task = *m_task;
    lock->unlock();
    task(index);
    lock->lock();
  }
}

void Sync_threads::work() {
  std::unique_lock lock{m_mutex};
  while (true) {
    m_is_wanted.wait(lock, [this] { return !m_is_allowed || m_next < m_n; });
    if (!m_is_allowed) {
      return;
    }
    ++m_n_helping;
    take(&lock);
    if (--m_n_helping == 0) {
      m_is_done.notify_one();
    }
  }
}

bool Sync_threads::run(size_t n, const std::function<void(size_t)> &task) {
  std::unique_lock lock{m_mutex};
  if (m_task != nullptr || m_n_threads == 0) {
    return false;
  }
  m_task = &task;
  m_next = 0;
  m_n = n;
  take(&lock);
  m_is_done.wait(lock, [this] { return m_n_helping == 0; });
  m_task = nullptr;
  return true;
}

/** Never destroyed: that would wait for the threads if the server ends without
sync_threads_stop(), as it does if it cannot write its pid file. */
auto &s_sync_threads = *new Sync_threads;

}  // namespace

bool do_together(size_t n, const std::function<void(size_t)> &task) {
  return ahead_flushing && s_sync_threads.run(n, task);
}

void sync_threads_start() {
  s_sync_threads.allow();
  sync_threads_changed();
}

void sync_threads_changed() {
  if (ahead_flushing) {
    s_sync_threads.start();
  }
}

void sync_threads_stop() { s_sync_threads.stop(); }

}  // namespace spw
