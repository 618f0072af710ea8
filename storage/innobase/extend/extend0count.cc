/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file extend/extend0count.cc
Counts data file extensions, and times the threads that wait for them. */

#include "extend/extend0count.h"

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <iterator>
#include <thread>

#include "univ.i"

#include "base/base0text.h"

#include "extend/hook.h"
#include "sync0rw.h"

namespace spw {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::steady_clock;

/** Extensions by one kind of thread. */
struct Extend_counters {
  std::atomic<uint64_t> steps{0};
  std::atomic<uint64_t> time_us{0};
  std::atomic<uint64_t> bytes{0};
};

static Extend_counters s_extended[static_cast<size_t>(Extender::N)];

/** The kind of thread that this thread is now. */
static thread_local Extender t_extender = Extender::USER;

/** The threads in a File_extend_timer: they extend a data file, or wait until
another thread has extended it. An empty ID marks a free entry. */
static std::atomic<std::thread::id> s_extending[16];

void File_extend_timer::begin() {
  if (t_extender == Extender::USER) {
    m_stall.begin();
  }
  if (m_index != NOT_REGISTERED) {
    return;
  }

  for (size_t i = 0; i < std::size(s_extending); ++i) {
    std::thread::id none{};
    if (s_extending[i].compare_exchange_strong(none,
                                               std::this_thread::get_id())) {
      m_index = i;
      return;
    }
  }
}

File_extend_timer::~File_extend_timer() {
  if (m_index != NOT_REGISTERED) {
    s_extending[m_index].store(std::thread::id{});
  }
}

File_extend_wait_timer::File_extend_wait_timer(ulint request_type,
                                               const rw_lock_t *latch) {
  if (request_type != RW_LOCK_S && request_type != RW_LOCK_SX &&
      request_type != RW_LOCK_X) {
    return;
  }

  /* writer_thread is the holder only if recursive is set both before and after
  the read: see rw_lock_t. */
  if (!latch->recursive.load()) {
    return;
  }
  const std::thread::id holder = latch->writer_thread.load();
  if (!latch->recursive.load()) {
    return;
  }

  for (const auto &extending : s_extending) {
    if (extending.load() == holder) {
      m_stall.begin();
      return;
    }
  }
}

static Extend_counters &counters_of(Extender extender) {
  return s_extended[static_cast<size_t>(extender)];
}

void count_extended(uint64_t n_bytes) {
  Extend_counters &counters = counters_of(t_extender);
  counters.bytes.fetch_add(n_bytes, std::memory_order_relaxed);
  if (t_extender == Extender::USER) {
    counters.steps.fetch_add(1, std::memory_order_relaxed);
  }
}

Extend_for_others::Extend_for_others(Extender extender)
    : m_start(steady_clock::now()) {
  ut_ad(t_extender == Extender::USER);
  t_extender = extender;
}

bool extends_for_others() { return t_extender != Extender::USER; }

Extend_for_others::~Extend_for_others() {
  const auto elapsed = steady_clock::now() - m_start;
  Extend_counters &counters = counters_of(t_extender);
  counters.steps.fetch_add(1, std::memory_order_relaxed);
  counters.time_us.fetch_add(duration_cast<microseconds>(elapsed).count(),
                             std::memory_order_relaxed);
  t_extender = Extender::USER;
}

Extend_work extend_work(Extender extender) {
  const Extend_counters &counters = counters_of(extender);
  return {.steps = counters.steps.load(std::memory_order_relaxed),
          .time_us = counters.time_us.load(std::memory_order_relaxed),
          .bytes = counters.bytes.load(std::memory_order_relaxed)};
}

void extend_print(FILE *file) {
  const auto text = [](Extender extender) {
    return bytes_text(extend_work(extender).bytes);
  };
  fprintf(file,
          "Data files extended by sessions %s, ahead %s, by SET EXTENT_SIZE"
          " %s\n",
          text(Extender::USER).c_str(), text(Extender::AHEAD).c_str(),
          text(Extender::STATEMENT).c_str());
}

}  // namespace spw
