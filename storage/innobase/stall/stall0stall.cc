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

#include "ut0cpu_cache.h"
#include "ut0log.h"

namespace spw {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::steady_clock;

ulong stall_log_threshold_ms = 0;

/** Statistics of each kind of stall, on cache lines of their own. */
static ut::Cacheline_padded<Stall_stats>
    s_stalls[static_cast<size_t>(Stall::N)];

/** Names of a stall in printed text. */
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

/** @param[in]  time  a time
@return the time in microseconds of the steady clock */
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

void stall_print(FILE *file) {
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
