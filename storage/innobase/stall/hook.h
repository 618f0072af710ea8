/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file stall/hook.h
What upstream's files call of the counters of stalls: stall0stall.cc. */

#ifndef stall_hook_h
#define stall_hook_h

#include <chrono>

namespace spw {

/** What a thread can wait for; each is counted by itself. */
enum class Stall {
  /** A user thread, for a checkpoint that makes room in the redo log. */
  REDO_SPACE,
  /** The log writer, for the same: what was written has reached the end. */
  LOG_WRITER,
  /** A user thread, for room in the log buffer. */
  LOG_BUFFER,
  /** A thread that needs a page of the buffer pool and finds none free. */
  FREE_PAGE,
  /** A thread that starts an asynchronous read, for a slot. */
  AIO_READ,
  /** The same for a write. */
  AIO_WRITE,
  /** A thread that extends a data file. */
  FILE_EXTEND,
  /** A thread, for another one that extends a file. */
  FILE_EXTEND_OTHERS,
  /** A thread that writes pages, for room in the doublewrite buffer. */
  DOUBLEWRITE,
  /** No wait: the page cleaners flush at any price, as redo space is about to
  run out. */
  SYNC_FLUSH,
  N
};

/** Note that a thread begins to wait. Any latch may be held.
@param[in]  kind  what for
@return the time */
std::chrono::steady_clock::time_point stall_begin(Stall kind);

/** Note that it waits no longer. Any latch may be held: nothing is written.
@param[in]  kind   what for
@param[in]  start  what stall_begin() returned */
void stall_end(Stall kind, std::chrono::steady_clock::time_point start);

/** Times one wait of this thread. A thread that does not come to wait pays for
a store and a branch. */
class Stall_timer {
 public:
  /** @param[in]  kind  what the thread may have to wait for */
  explicit Stall_timer(Stall kind) : m_kind(kind) {}

  ~Stall_timer() { end(); }

  Stall_timer(const Stall_timer &) = delete;
  Stall_timer &operator=(const Stall_timer &) = delete;

  /** The thread begins to wait, unless it does already. */
  void begin() {
    if (m_start == NOT_WAITING) {
      m_start = stall_begin(m_kind);
    }
  }

  /** The thread waits no longer, if it did. */
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

/** Times one wait of this thread, from here on to the end of the scope. */
class Stall_wait {
 public:
  /** @param[in]  kind  what the thread waits for */
  explicit Stall_wait(Stall kind) : m_timer(kind) { m_timer.begin(); }

 private:
  Stall_timer m_timer;
};

/** Write to the error log about stalls longer than
innodb_stall_log_threshold_ms, if there were any and it is time. Called about
once a second, by one thread, that holds no latch. */
void stall_log();

}  // namespace spw

#endif /* stall_hook_h */
