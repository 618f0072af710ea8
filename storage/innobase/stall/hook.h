/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file stall/hook.h
Stalls: the functions that InnoDB's files call. They are in stall0stall.cc. */

#ifndef stall_hook_h
#define stall_hook_h

#include <chrono>

namespace spw {

/** Kinds of stalls. Each has its own counters. */
enum class Stall {
  /** A session waits until the redo of its transaction, or of its group in
  group commit, is written, and flushed if innodb_flush_log_at_trx_commit = 1.
*/
  COMMIT,
  /** Group commit of the binary log: a session waits until the leader of its
  group has committed it; a leader waits for the group ahead, or for more
  sessions (binlog_group_commit_sync_delay). */
  BINLOG_GROUP,
  /** A leader writes its group to the binary log. */
  BINLOG_WRITE,
  /** A leader syncs the binary log. */
  BINLOG_SYNC,
  /** A session is delayed by the write throttle. */
  WRITE_THROTTLE,
  /** A user thread waits for a checkpoint that reclaims redo space. */
  REDO_SPACE,
  /** The log writer waits for the same: it has reached the end of the redo
  space. */
  LOG_WRITER,
  /** A user thread waits for space in the log buffer. */
  LOG_BUFFER,
  /** A thread needs a page of the buffer pool, and none is free. */
  FREE_PAGE,
  /** A thread needs a page that it reads, or that another thread reads. */
  PAGE_READ,
  /** A thread is about to change a page that is being written. */
  PAGE_WRITE,
  /** A thread sleeps for another latch or mutex of InnoDB: of a thread that
  waits itself, as a rule, if that takes long. */
  LATCH,
  /** A thread that starts an asynchronous read waits for a slot. */
  AIO_READ,
  /** The same for a write. */
  AIO_WRITE,
  /** A thread extends a data file, or waits until another thread has. */
  FILE_EXTEND,
  /** A thread waits for a latch whose holder extends a data file. */
  FILE_EXTEND_OTHERS,
  /** A thread syncs a data file, or waits until another thread has. */
  FILE_SYNC,
  /** A thread removes a data file. */
  FILE_DELETE,
  /** A thread that writes pages waits for space in the doublewrite buffer. */
  DOUBLEWRITE,
  /** A thread makes a checkpoint. */
  CHECKPOINT,
  /** Not a wait: the page cleaners do sync flushing, as redo space is about to
  run out. */
  SYNC_FLUSH,
  /** Not a wait: a pass of the page cleaners that takes longer than the second
  that it has. Counted when it has ended. */
  PAGE_CLEANER,
  N
};

/** A thread begins to wait. It may hold any latch. A wait can contain others,
which the thread ends in reverse order.
@param[in]  kind  the kind of stall
@return the time */
std::chrono::steady_clock::time_point stall_begin(Stall kind);

/** A thread's wait ends. It may hold any latch: nothing is written.
@param[in]  kind   the kind of stall
@param[in]  start  the result of stall_begin() */
void stall_end(Stall kind, std::chrono::steady_clock::time_point start);

/** Count an episode that has ended now, and is no wait of this thread.
@param[in]  kind   the kind of stall
@param[in]  start  when it began */
void stall_passed(Stall kind, std::chrono::steady_clock::time_point start);

/** Times one wait of this thread. A thread that does not wait pays for a store
and a branch. */
class Stall_timer {
 public:
  /** @param[in]  kind   the stall that is possible
  @param[in]  waits  whether the thread begins to wait at once */
  explicit Stall_timer(Stall kind, bool waits = false) : m_kind(kind) {
    if (waits) {
      begin();
    }
  }

  ~Stall_timer() { end(); }

  Stall_timer(const Stall_timer &) = delete;
  Stall_timer &operator=(const Stall_timer &) = delete;

  /** The thread begins to wait, unless it waits already. */
  void begin() {
    if (m_start == NOT_WAITING) {
      m_start = stall_begin(m_kind);
    }
  }

  /** The wait ends, if the thread waits. */
  void end() {
    if (m_start != NOT_WAITING) {
      stall_end(m_kind, m_start);
      m_start = NOT_WAITING;
    }
  }

 private:
  static constexpr std::chrono::steady_clock::time_point NOT_WAITING{};

  const Stall m_kind;
  std::chrono::steady_clock::time_point m_start{NOT_WAITING};
};

/** Times one wait of this thread, from here to the end of the scope. */
class Stall_wait {
 public:
  /** @param[in]  kind  the kind of stall */
  explicit Stall_wait(Stall kind) : m_kind(kind), m_start(stall_begin(kind)) {}

  ~Stall_wait() { stall_end(m_kind, m_start); }

  Stall_wait(const Stall_wait &) = delete;
  Stall_wait &operator=(const Stall_wait &) = delete;

 private:
  const Stall m_kind;
  const std::chrono::steady_clock::time_point m_start;
};

/** Times how long a session waits for redo to be written and flushed. Not
timed: other threads, and a wait inside another one, as for space in the log
buffer. */
class Commit_wait {
 public:
  /** @param[in]  is_written  whether the redo is written and flushed already */
  explicit Commit_wait(bool is_written);

 private:
  Stall_timer m_timer;
};

/** Write stalls longer than innodb_stall_log_threshold_ms to the error log, if
there were any and it is time. Called about once a second, by one thread, which
holds no latch. */
void stall_log();

}  // namespace spw

#endif /* stall_hook_h */
