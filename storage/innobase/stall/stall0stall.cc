/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file stall/stall0stall.cc
Counts stalls and flushing, prints them, and writes of long stalls to the error
log. */

#include "univ.i"

#include <atomic>
#include <cinttypes>
#include <iterator>
#include <thread>

#include "buf0buf.h"
#include "buf0flu.h"
#include "log0log.h"
#include "log0sys.h"
#include "srv0srv.h"
#include "stall0stall.h"

#include "flush0round.h"
#include "sync0rw.h"
#include "ut0cpu_cache.h"
#include "ut0log.h"

namespace spw {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::steady_clock;

ulong stall_log_threshold_ms = 0;

/** The waits for each thing, on cache lines of their own. */
static ut::Cacheline_padded<Stall_stats>
    s_stalls[static_cast<size_t>(Stall::N)];

/** How a stall is called in what is printed. */
struct Stall_names {
  Stall kind;

  /** In SHOW ENGINE INNODB STATUS: at most 22 characters. */
  const char *row;

  /** In the error log, after "Waits ". */
  const char *phrase;
};

static constexpr Stall_names s_stall_names[] = {
    {Stall::REDO_SPACE, "redo space", "for space in the redo log"},
    {Stall::LOG_WRITER, "log writer", "of the log writer for a checkpoint"},
    {Stall::LOG_BUFFER, "log buffer", "for space in the log buffer"},
    {Stall::FREE_PAGE, "free page", "for a free page in the buffer pool"},
    {Stall::AIO_READ, "AIO slot, read", "for an AIO slot to read"},
    {Stall::AIO_WRITE, "AIO slot, write", "for an AIO slot to write"},
    {Stall::FILE_EXTEND, "file extension", "to extend a data file"},
    {Stall::FILE_EXTEND_OTHERS, "file extension, others",
     "for another thread to extend a data file"},
    {Stall::DOUBLEWRITE, "doublewrite", "for the doublewrite buffer"},
    {Stall::SYNC_FLUSH, "sync flushing", "for sync flushing to end"}};

static_assert(std::size(s_stall_names) == static_cast<size_t>(Stall::N),
              "Each stall has names.");

/** When the server started. */
static const steady_clock::time_point s_start = steady_clock::now();

/** What was extended by one kind of thread. */
struct Extend_counters {
  std::atomic<uint64_t> steps{0};
  std::atomic<uint64_t> time_us{0};
  std::atomic<uint64_t> bytes{0};
};

static Extend_counters s_extended[static_cast<size_t>(Extender::N)];

/** Whom this thread extends data files for. */
static thread_local Extender t_extender = Extender::USER;

/** The threads that extend a data file now; an empty ID where there is none. */
static std::atomic<std::thread::id> s_extending[16];

/** What was flushed for one cause. */
struct Flush_counters {
  std::atomic<uint64_t> batches{0};
  std::atomic<uint64_t> pages{0};
};

static ut::Cacheline_padded<Flush_counters>
    s_flushed[static_cast<size_t>(Flush_cause::N)];

static std::atomic<uint64_t> s_flush_list_batches{0};

/** A cause and its row in SHOW ENGINE INNODB STATUS. */
struct Flush_name {
  Flush_cause cause;
  const char *row;
};

static constexpr Flush_name s_flush_names[] = {
    {Flush_cause::ADAPTIVE, "adaptive"},
    {Flush_cause::AHEAD, "ahead"},
    {Flush_cause::SYNC, "sync"},
    {Flush_cause::LRU, "LRU"},
    {Flush_cause::IDLE, "idle"},
    {Flush_cause::SINGLE_PAGE, "single page"},
    {Flush_cause::NEIGHBOR, "neighbor"}};

static_assert(std::size(s_flush_names) == static_cast<size_t>(Flush_cause::N),
              "Each cause has a row.");

/** @param[in]  time  a time
@return it, in microseconds of the steady clock */
static uint64_t to_us(steady_clock::time_point time) {
  return duration_cast<microseconds>(time.time_since_epoch()).count();
}

/** @return innodb_stall_log_threshold_ms, in microseconds */
static uint64_t log_threshold_us() {
  return uint64_t{stall_log_threshold_ms} * 1000;
}

static Stall_stats &stats_of(Stall kind) {
  return s_stalls[static_cast<size_t>(kind)];
}

steady_clock::time_point stall_begin(Stall kind) {
  stats_of(kind).begin();
  return steady_clock::now();
}

void stall_end(Stall kind, steady_clock::time_point start) {
  const auto now = steady_clock::now();

  stats_of(kind).end(duration_cast<microseconds>(now - start).count(),
                     to_us(now), log_threshold_us());
}

Stall_summary stall_summary(Stall kind) { return stats_of(kind).summary(); }

uint64_t stall_since_last_s(const Stall_summary &summary) {
  return summary.since_last_us(to_us(steady_clock::now()), to_us(s_start)) /
         1'000'000;
}

void File_extend_timer::begin() {
  if (t_extender == Extender::USER) {
    m_stall.begin();
  }
  if (m_place != NOWHERE) {
    return;
  }

  for (size_t i = 0; i < std::size(s_extending); ++i) {
    std::thread::id none{};
    if (s_extending[i].compare_exchange_strong(none,
                                               std::this_thread::get_id())) {
      m_place = i;
      return;
    }
  }
}

File_extend_timer::~File_extend_timer() {
  if (m_place != NOWHERE) {
    s_extending[m_place].store(std::thread::id{});
  }
}

File_extend_wait_timer::File_extend_wait_timer(ulint request_type,
                                               const rw_lock_t *latch) {
  if (request_type != RW_LOCK_S && request_type != RW_LOCK_SX &&
      request_type != RW_LOCK_X) {
    return;
  }

  /* writer_thread is that of the holder only where recursive is set, before and
  after it is read: see rw_lock_t. */
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

void file_extended(uint64_t n_bytes) {
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

void flush_done(Flush_cause cause, uint64_t n_pages) {
  if (n_pages == 0) {
    return;
  }
  Flush_counters &counters = s_flushed[static_cast<size_t>(cause)];
  counters.batches.fetch_add(1, std::memory_order_relaxed);
  counters.pages.fetch_add(n_pages, std::memory_order_relaxed);
}

Flush_work flush_work(Flush_cause cause) {
  const Flush_counters &counters = s_flushed[static_cast<size_t>(cause)];
  return {.batches = counters.batches.load(std::memory_order_relaxed),
          .pages = counters.pages.load(std::memory_order_relaxed)};
}

void flush_list_batch_called() {
  s_flush_list_batches.fetch_add(1, std::memory_order_relaxed);
}

uint64_t flush_list_batches() {
  return s_flush_list_batches.load(std::memory_order_relaxed);
}

Redo_capacity redo_capacity() {
  if (log_sys == nullptr) {
    return {};
  }
  const Log_files_capacity &capacity = log_sys->m_capacity;
  return {.adaptive_flush_max_age = capacity.adaptive_flush_max_age(),
          .soft_logical_capacity = capacity.soft_logical_capacity(),
          .hard_logical_capacity = capacity.hard_logical_capacity(),
          .free_check_margin = log_free_check_margin(*log_sys)};
}

Redo_fill redo_fill() {
  Redo_fill fill;

  if (log_sys == nullptr) {
    return fill;
  }

  /* In this order none is ahead of the next. */
  fill.lsn_last_checkpoint = log_sys->last_checkpoint_lsn.load();
  fill.lsn_flushed = log_sys->flushed_to_disk_lsn.load();
  fill.lsn_current = log_get_lsn(*log_sys);
  fill.age = fill.lsn_current - fill.lsn_last_checkpoint;
  fill.limits = redo_limits(redo_capacity());
  return fill;
}

static void print_fill(FILE *file) {
  const Redo_fill fill = redo_fill();
  ulint n_lru;
  ulint n_free;
  ulint n_dirty;
  buf_get_total_list_len(&n_lru, &n_free, &n_dirty);

  fprintf(file,
          "Checkpoint age %" PRIu64 ", %.1f %% of %" PRIu64
          ", above which sync flushing %s\n"
          "User threads wait for redo space above %" PRIu64
          ", the log writer above %" PRIu64
          "\n"
          "Dirty pages %lu of %lu, %.1f %% of the buffer pool's data and free"
          " pages\n",
          fill.age, percent_of(fill.age, fill.limits.sync_age),
          fill.limits.sync_age,
          srv_flush_sync ? "begins" : "would begin: innodb_flush_sync is OFF",
          fill.limits.max_age, fill.limits.hard_age, n_dirty, n_lru + n_free,
          percent_of(n_dirty, n_lru + n_free));
}

static void print_flushing(FILE *file) {
  fprintf(file, "%-24s%14s%14s\n", "Flushed", "batches", "pages");
  for (const auto &[cause, row] : s_flush_names) {
    const Flush_work work = flush_work(cause);
    fprintf(file, "  %-22s%14" PRIu64 "%14" PRIu64 "\n", row, work.batches,
            work.pages);
  }
  fprintf(file, "Flush list batches called %" PRIu64 "\n",
          flush_list_batches());
  ahead_flush_print(file);
  atomic_print(file);
}

static void print_stalls(FILE *file) {
  constexpr size_t N = static_cast<size_t>(Stall::N);
  const uint64_t now_us = to_us(steady_clock::now());
  Stall_summary summaries[N];
  bool any = false;

  fprintf(file, "%-24s%12s%9s%14s%12s%12s%10s\n", "Stalls", "count", "waiting",
          "total ms", "p99 ms", "max ms", "s ago");

  for (size_t i = 0; i < N; ++i) {
    const Stall_summary &summary = summaries[i] =
        stall_summary(s_stall_names[i].kind);

    fprintf(file, "  %-22s%12" PRIu64 "%9" PRIu64 "%14.3f%12.3f%12.3f",
            s_stall_names[i].row, summary.count, summary.waiting,
            summary.time_us / 1e3, summary.percentile_us(99) / 1e3,
            summary.max_us / 1e3);
    if (summary.last_us != 0) {
      fprintf(file, "%10.1f\n",
              summary.since_last_us(now_us, to_us(s_start)) / 1e6);
      any = true;
    } else {
      fprintf(file, "%10s\n", "-");
    }
  }

  if (any) {
    fprintf(file, "%-24s%9s%9s%9s%9s%9s%9s%9s%9s%9s%9s\n", "Stalls up to",
            "1us", "10us", "100us", "1ms", "10ms", "100ms", "1s", "10s", "100s",
            "longer");
  }
  for (size_t i = 0; i < N; ++i) {
    if (summaries[i].last_us == 0) {
      continue;
    }
    fprintf(file, "  %-22s", s_stall_names[i].row);
    for (const uint64_t n : summaries[i].decades()) {
      fprintf(file, " %8" PRIu64, n);
    }
    putc('\n', file);
  }

  fprintf(file,
          "Data files extended by %" PRIu64 " bytes, ahead by %" PRIu64
          " bytes, by SET EXTENT_SIZE by %" PRIu64 " bytes\n",
          extend_work(Extender::USER).bytes, extend_work(Extender::AHEAD).bytes,
          extend_work(Extender::STATEMENT).bytes);
}

void stall_print(FILE *file) {
  fputs(
      "-------------------\n"
      "FLUSHING AND STALLS\n"
      "-------------------\n",
      file);
  print_fill(file);
  print_flushing(file);
  print_stalls(file);
}

void stall_log() {
  const uint64_t now_us = to_us(steady_clock::now());

  for (const Stall_names &names : s_stall_names) {
    const Stall_log_line line =
        stats_of(names.kind).log_line(now_us, log_threshold_us());

    if (!line.is_due()) {
      continue;
    }

    ib::warn warning;
    warning << "Waits " << names.phrase << ", longer than"
            << " innodb_stall_log_threshold_ms: ";
    if (line.count != 0) {
      warning << line.count << " since the last such message, the longest "
              << line.max_us / 1000 << " ms";
    }
    if (line.count != 0 && line.waiting != 0) {
      warning << "; ";
    }
    if (line.waiting != 0) {
      warning << line.waiting << " under way, and none has ended for "
              << line.waiting_us / 1000 << " ms";
    }
    warning << ". See FLUSHING AND STALLS in SHOW ENGINE INNODB STATUS.";
  }
}

}  // namespace spw
