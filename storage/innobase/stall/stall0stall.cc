/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file stall/stall0stall.cc
Counts stalls, prints them, and writes long ones to the error log. */

#include "stall/stall0stall.h"

#include <chrono>
#include <cinttypes>
#include <iterator>

#include "univ.i"

#include "sql/current_thd.h"
#include "sql/sql_class.h"
#include "ut0cpu_cache.h"
#include "ut0log.h"

namespace spw {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

ulong stall_log_threshold_ms = 0;

/** Statistics of each kind of stall, on cache lines of their own. */
static ut::Cacheline_padded<Stall_stats>
    s_stalls[static_cast<size_t>(Stall::N)];

/* A row does not begin with an SQL word: Netdata takes such lines for the
statements of a deadlock. */
static constexpr Stall_names s_stall_names[] = {
    {Stall::COMMIT, "redo log, commit", "commit",
     "Waits of commits for the redo log to be written"},
    {Stall::BINLOG_GROUP, "binary log, group", "binlog_group",
     "Waits in group commit of the binary log"},
    {Stall::BINLOG_WRITE, "binary log, write", "binlog_write",
     "Writes of the binary log"},
    {Stall::BINLOG_SYNC, "binary log, sync", "binlog_sync",
     "Syncs of the binary log"},
    {Stall::WRITE_THROTTLE, "write throttle", "write_throttle",
     "Delays by the write throttle"},
    {Stall::REDO_SPACE, "redo space", "redo_space",
     "Waits for space in the redo log"},
    {Stall::LOG_WRITER, "log writer", "log_writer",
     "Waits of the log writer for a checkpoint"},
    {Stall::LOG_BUFFER, "log buffer", "log_buffer",
     "Waits for space in the log buffer"},
    {Stall::FREE_PAGE, "free page", "free_page",
     "Waits for a free page in the buffer pool"},
    {Stall::PAGE_READ, "page read", "page_read", "Waits for a page to be read"},
    {Stall::PAGE_WRITE, "page write", "page_write",
     "Waits to change a page that is being written"},
    {Stall::LATCH, "latch", "latch", "Waits for a latch"},
    {Stall::AIO_READ, "AIO slot, read", "aio_read",
     "Waits for an AIO slot to read"},
    {Stall::AIO_WRITE, "AIO slot, write", "aio_write",
     "Waits for an AIO slot to write"},
    {Stall::FILE_EXTEND, "file extension", "file_extend",
     "Waits to extend a data file"},
    {Stall::FILE_EXTEND_OTHERS, "file extension, others", "file_extend_others",
     "Waits for another thread to extend a data file"},
    {Stall::FILE_SYNC, "file sync", "file_sync", "Syncs of a data file"},
    {Stall::FILE_DELETE, "file removal", "file_delete",
     "Waits for the file system to remove a data file"},
    {Stall::DOUBLEWRITE, "doublewrite", "doublewrite",
     "Waits for the doublewrite buffer"},
    {Stall::CHECKPOINT, "checkpoint", "checkpoint", "Checkpoints"},
    {Stall::SYNC_FLUSH, "sync flushing", "sync_flush",
     "Episodes of sync flushing"},
    {Stall::PAGE_CLEANER, "page cleaner pass", "page_cleaner",
     "Passes of the page cleaners"}};

static_assert(std::size(s_stall_names) == static_cast<size_t>(Stall::N),
              "Each stall has names.");

/** @return whether the names are in the order of the kinds */
static constexpr bool is_in_order() {
  for (size_t i = 0; i < std::size(s_stall_names); ++i) {
    if (s_stall_names[i].kind != static_cast<Stall>(i)) {
      return false;
    }
  }
  return true;
}

static_assert(is_in_order());

/** Number of waits of this thread that have not ended: each contains the
next. */
static thread_local unsigned t_n_waits{0};

/** When the server started. */
static const steady_clock::time_point s_start = steady_clock::now();

/** @param[in]  duration  at least 0
@return the duration in nanoseconds */
static uint64_t to_ns(steady_clock::duration duration) {
  return nanoseconds{duration}.count();
}

/** @param[in]  time  a time
@return the time in microseconds of the steady clock */
static uint64_t to_us(steady_clock::time_point time) {
  return to_ns(time.time_since_epoch()) / 1000;
}

/** @return innodb_stall_log_threshold_ms, in microseconds */
static uint64_t log_threshold_us() {
  return uint64_t{stall_log_threshold_ms} * 1000;
}

static Stall_stats &stats_of(Stall kind) {
  return s_stalls[static_cast<size_t>(kind)];
}

const Stall_names &stall_names(Stall kind) {
  return s_stall_names[static_cast<size_t>(kind)];
}

/** is_session(), which a stall calls inline. */
static bool works_for_user(const THD *thd) {
  return thd != nullptr && (thd->system_thread == NON_SYSTEM_THREAD ||
                            thd->system_thread == SYSTEM_THREAD_EVENT_WORKER ||
                            thd->slave_thread);
}

bool is_session(const THD *thd) { return works_for_user(thd); }

steady_clock::time_point stall_begin(Stall kind) {
  stats_of(kind).begin();
  ++t_n_waits;
  return steady_clock::now();
}

/** Count the end of a stall, now.
@param[in]  kind           the kind of stall
@param[in]  start          when it began
@param[in]  is_of_session  as in Stall_stats::end() */
static void count_end(Stall kind, steady_clock::time_point start,
                      bool is_of_session) {
  const auto now = steady_clock::now();

  stats_of(kind).end(to_ns(now - start) / 1000, is_of_session,
                     to_ns(now.time_since_epoch()), log_threshold_us());
}

void stall_end(Stall kind, steady_clock::time_point start) {
  count_end(kind, start, --t_n_waits == 0 && works_for_user(current_thd));
}

void stall_passed(Stall kind, steady_clock::time_point start) {
  stats_of(kind).begin();
  count_end(kind, start, false);
}

Commit_wait::Commit_wait(bool is_written)
    : m_timer(Stall::COMMIT,
              !is_written && t_n_waits == 0 && works_for_user(current_thd)) {}

Stall_summary stall_summary(Stall kind) { return stats_of(kind).summary(); }

uint64_t stall_since_last_s(const Stall_summary &summary) {
  return summary.since_last_us(to_us(steady_clock::now()), to_us(s_start)) /
         1'000'000;
}

void stall_print(FILE *file) {
  constexpr size_t N = static_cast<size_t>(Stall::N);
  const uint64_t now_us = to_us(steady_clock::now());
  Stall_summary summaries[N];
  bool has_begun = false;
  bool has_ended = false;

  for (const Stall_names &names : s_stall_names) {
    Stall_summary &summary = summaries[static_cast<size_t>(names.kind)];
    summary = stall_summary(names.kind);
    has_begun |= summary.count != 0;
    has_ended |= summary.last_us != 0;
  }
  if (!has_begun) {
    fputs("Stalls: none\n", file);
    return;
  }
  fprintf(file, "%-24s%12s%9s%14s%14s%12s%12s%10s\n", "Stalls", "count",
          "waiting", "total ms", "sessions ms", "p99 ms", "max ms", "s ago");
  for (const Stall_names &names : s_stall_names) {
    const Stall_summary &summary = summaries[static_cast<size_t>(names.kind)];

    if (summary.count == 0) {
      continue;
    }
    /* Blanks, so that a figure that is wider than its column is legible. */
    fprintf(file,
            "  %-22s %11" PRIu64 " %8" PRIu64 " %13.3f %13.3f %11.3f %11.3f",
            names.row, summary.count, summary.waiting, summary.time_us / 1e3,
            summary.sessions_time_us / 1e3, summary.percentile_us(99) / 1e3,
            summary.max_us / 1e3);
    if (summary.last_us != 0) {
      fprintf(file, " %9.1f\n",
              summary.since_last_us(now_us, to_us(s_start)) / 1e6);
    } else {
      fprintf(file, " %9s\n", "-");
    }
  }

  if (has_ended) {
    fprintf(file, "%-24s%9s%9s%9s%9s%9s%9s%9s%9s%9s%9s\n", "Stalls up to",
            "1us", "10us", "100us", "1ms", "10ms", "100ms", "1s", "10s", "100s",
            "longer");
  }
  for (const Stall_names &names : s_stall_names) {
    const Stall_summary &summary = summaries[static_cast<size_t>(names.kind)];

    if (summary.last_us == 0) {
      continue;
    }
    fprintf(file, "  %-22s", names.row);
    for (const uint64_t n : summary.decades()) {
      fprintf(file, " %8" PRIu64, n);
    }
    putc('\n', file);
  }
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
    warning << names.phrase << ", longer than"
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
    warning << ". See \"Flushing and stalls\" in SHOW ENGINE INNODB STATUS.";
  }
}

}  // namespace spw
