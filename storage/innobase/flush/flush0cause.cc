/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/flush0cause.cc
Counters of flushed pages by cause. */

#include "flush/flush0cause.h"

#include <atomic>
#include <cinttypes>
#include <iterator>

#include "univ.i"

#include "ut0cpu_cache.h"

namespace spw {

/** Counters of one cause. */
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

void count_flushed(Flush_cause cause, uint64_t n_pages) {
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

void count_flush_list_batch() {
  s_flush_list_batches.fetch_add(1, std::memory_order_relaxed);
}

uint64_t flush_list_batches() {
  return s_flush_list_batches.load(std::memory_order_relaxed);
}

void flush_cause_print(FILE *file) {
  fprintf(file, "%-24s%14s%14s\n", "Flushed", "batches", "pages");
  for (const auto &[cause, row] : s_flush_names) {
    const Flush_work work = flush_work(cause);
    fprintf(file, "  %-22s%14" PRIu64 "%14" PRIu64 "\n", row, work.batches,
            work.pages);
  }
  fprintf(file, "Flush list batches %" PRIu64 "\n", flush_list_batches());
}

}  // namespace spw
