/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file aio/aio0array.cc
Depth, contexts, slots and counters of the AIO arrays. */

#include "univ.i"

#include <libaio.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "aio/aio0array.h"
#include "aio/hook.h"
#include "aio/policy/aio0depth.h"
#include "aio/policy/aio0slots.h"
#include "os0file.h"
#include "srv0srv.h"
#include "stall/stall0stall.h"
#include "ut0cpu_cache.h"
#include "ut0log.h"

namespace spw {

static_assert(AIO_DEPTH_DEFAULT == 8 * OS_AIO_N_PENDING_IOS_PER_THREAD,
              "The default depth is upstream's.");

static_assert(SRV_MAX_N_IO_THREADS <= 2 * Aio_slots::MAX_SEGMENTS + 2,
              "An array has at most MAX_SEGMENTS threads.");

ulong aio_pending_ios_per_thread = AIO_DEPTH_DEFAULT;

/** Counters of the arrays of one kind. n_used and n_used_max are written under
the array's mutex, the others atomically; any thread reads. They outlive the
arrays. */
struct Aio_counters {
  std::atomic<uint64_t> n_segments{0};
  std::atomic<uint64_t> slots_per_segment{0};
  std::atomic<uint64_t> n_used{0};
  std::atomic<uint64_t> n_used_max{0};
  std::atomic<uint64_t> submit_retries{0};
};

/** Page reads, page writes, and the change buffer's array, which has no
statistics. Each on cache lines of its own. */
static ut::Cacheline_padded<Aio_counters> s_counters[3];

/** @param[in]  kind  the array
@return its counters */
static Aio_counters &counters_of(Aio_kind kind) {
  return s_counters[static_cast<size_t>(kind)];
}

/** Spillway's part of an AIO array. */
class Aio_array {
 public:
  /** @param[in,out]  counters    counters of the array
  @param[in]      stall       kind of stall for waits for a slot
  @param[in]      n           number of slots
  @param[in]      n_segments  number of segments
  @param[in]      native      true with native AIO: Aio_slots chooses the
  slots */
  Aio_array(Aio_counters &counters, Stall stall, size_t n, size_t n_segments,
            bool native)
      : m_counters(counters), m_stall(stall) {
    m_counters.n_segments = n_segments;
    m_counters.slots_per_segment = n / n_segments;

    if (native) {
      m_slots =
          std::make_unique<Aio_slots>(static_cast<uint32_t>(n_segments),
                                      static_cast<uint32_t>(n / n_segments));
    }
  }

  Aio_counters &m_counters;

  const Stall m_stall;

  /** The slots; nullptr with simulated AIO. */
  std::unique_ptr<Aio_slots> m_slots;
};

/** Contexts that aio_start() created and no array has taken yet. Used only by
the thread that starts InnoDB. */
static std::vector<io_context_t> s_contexts;

/** Number of events of each of s_contexts. */
static size_t s_context_events;

/** Number and interval of the attempts to find requests that other processes
held: a server that ends releases them. Stock waits as long in
AIO::linux_create_io_ctx(). */
constexpr int RELEASE_ATTEMPTS = 5;
constexpr std::chrono::milliseconds RELEASE_POLL_INTERVAL{500};

/** fs.aio-max-nr if it cannot be read. Only io_setup() can tell then whether
the requests are available. */
constexpr uint64_t UNKNOWN_LIMIT = UINT64_MAX;

/** @param[in]  path           a file of /proc/sys
@param[in]  if_unreadable  result if it cannot be read
@return the number in the file */
static uint64_t read_sysctl(const char *path, uint64_t if_unreadable) {
  std::ifstream file(path);
  uint64_t value;
  return file >> value ? value : if_unreadable;
}

/** @param[in]  requested   pending I/Os per thread
@param[in]  n_contexts  number of contexts
@return input of the decision, with the kernel's present figures */
static Aio_depth_input input_now(uint64_t requested, size_t n_contexts) {
  return {requested, n_contexts,
          read_sysctl("/proc/sys/fs/aio-max-nr", UNKNOWN_LIMIT),
          read_sysctl("/proc/sys/fs/aio-nr", 0)};
}

/** Destroy contexts, in parallel: each io_destroy() waits for grace periods of
the kernel, about 10 ms, and a server can have 129 contexts.
@param[in]  contexts  the contexts; those not created are nullptr */
static void destroy_contexts(std::span<const io_context_t> contexts) {
  std::vector<std::thread> threads;

  for (const io_context_t context : contexts) {
    if (context == nullptr) {
      continue;
    }
    try {
      threads.emplace_back(io_destroy, context);
    } catch (const std::system_error &) {
      io_destroy(context);
    }
  }

  for (std::thread &thread : threads) {
    thread.join();
  }
}

/** Destroy the contexts that no array has taken. */
static void destroy_unused_contexts() {
  destroy_contexts(s_contexts);
  s_contexts.clear();
}

/** Create all contexts, or none.
@param[in]  n_contexts  number of contexts
@param[in]  n_events    number of events of each
@return 0, or the negative error number of io_setup() */
static int create_contexts(size_t n_contexts, size_t n_events) {
  ut_a(s_contexts.empty());

  for (size_t i = 0; i < n_contexts; ++i) {
    io_context_t context = nullptr;
    const int result = io_setup(static_cast<int>(n_events), &context);

    if (result != 0) {
      destroy_unused_contexts();
      return result;
    }
    s_contexts.push_back(context);
  }

  s_context_events = n_events;
  return 0;
}

/** Report that the depth is below the setting: the requests needed and
available, and what to change. It is an error if the setting is the default,
with which stock does not start.
@param[in]  input  the setting, and the kernel's figures of then
@param[in]  depth  the depth; 0 with simulated AIO
@param[in]  error  the negative error number of io_setup(), or 0 */
static void report_depth(const Aio_depth_input &input, uint64_t depth,
                         int error) {
  const uint64_t needed = decide_aio_depth(input).needed;
  std::ostringstream warning;

  warning << "innodb_aio_pending_ios_per_thread=" << input.requested << " with "
          << input.n_contexts << " I/O threads needs " << needed
          << " AIO requests; ";

  if (input.system_limit == UNKNOWN_LIMIT) {
    warning << "fs.aio-max-nr cannot be read";
  } else {
    warning << "fs.aio-max-nr is " << input.system_limit << ", of which "
            << input.system_used << " are in use";
  }

  if (error != 0) {
    warning << ", and io_setup() failed with error " << -error << " ("
            << strerror(-error) << ")";
  }

  if (depth != 0) {
    warning << ". The depth is lowered to " << depth << ".";
  } else {
    warning << ". Not even a depth of " << AIO_DEPTH_MIN
            << " is possible: InnoDB uses simulated AIO.";
  }

  if (input.system_used + needed > input.system_limit ||
      (error == -EAGAIN && input.system_limit == UNKNOWN_LIMIT)) {
    warning << " For the depth that is asked for, set the sysctl fs.aio-max-nr"
               " to "
            << input.system_used + needed << " or more.";
  }

  if (input.requested == AIO_DEPTH_DEFAULT) {
    ib::error() << warning.str();
  } else {
    ib::warn() << warning.str();
  }
}

void aio_start(size_t n_threads) {
  if (!srv_use_native_aio) {
    return;
  }

  const uint64_t requested = aio_pending_ios_per_thread;
  Aio_depth_input input = input_now(requested, n_threads);
  Aio_depth_output decision = decide_aio_depth(input);

  for (int i = 0; i < RELEASE_ATTEMPTS && aio_depth_can_grow(input); ++i) {
    if (i == 0) {
      ib::info() << "Waiting up to "
                 << std::chrono::milliseconds(RELEASE_ATTEMPTS *
                                              RELEASE_POLL_INTERVAL)
                        .count()
                 << " ms for other processes to give back AIO requests.";
    }
    std::this_thread::sleep_for(RELEASE_POLL_INTERVAL);
    input = input_now(requested, n_threads);
    decision = decide_aio_depth(input);
  }

  int first_error = 0;
  int n_again = 0;

  while (decision.depth != 0) {
    const int error = create_contexts(n_threads, decision.depth);

    if (error == 0) {
      break;
    }

    if (error == -EAGAIN && n_again < RELEASE_ATTEMPTS) {
      /* Another process has taken the requests since, and may give them back.
       */
      ++n_again;
      std::this_thread::sleep_for(RELEASE_POLL_INTERVAL);
      continue;
    }

    if (first_error == 0) {
      first_error = error;
      input = input_now(requested, n_threads);
    }

    /* Another process may have taken the requests since the decision: then the
    present figures say which depth fits. If they do not explain the failure,
    there is another limit, and half the depth is tried. */
    const uint64_t failed = decision.depth;
    decision = decide_aio_depth(input_now(failed, n_threads));

    if (decision.depth == failed) {
      decision.depth = halve_aio_depth(failed);
    }
  }

  if (decision.depth != requested) {
    report_depth(input, decision.depth, first_error);
  }

  if (decision.depth == 0) {
    srv_use_native_aio = false;
  }
}

size_t aio_depth(size_t n_simulated) {
  if (srv_use_native_aio) {
    return s_context_events;
  }
  /* InnoDB's probe may have switched native AIO off. */
  destroy_unused_contexts();
  return n_simulated;
}

bool aio_take_context(size_t n_events, io_context **context) {
  if (s_contexts.empty() || n_events > s_context_events) {
    return false;
  }
  *context = s_contexts.back();
  s_contexts.pop_back();
  return true;
}

void aio_return_context(io_context *context) { s_contexts.push_back(context); }

/** @param[in]  id  mutex of an array
@return counters of the array */
static Aio_counters &counters_of(latch_id_t id) {
  switch (id) {
    case LATCH_ID_OS_AIO_READ_MUTEX:
      return counters_of(Aio_kind::READ);
    case LATCH_ID_OS_AIO_WRITE_MUTEX:
      return counters_of(Aio_kind::WRITE);
    default:
      return s_counters[2];
  }
}

Aio_array *aio_array_create(latch_id_t id, size_t n, size_t n_segments) {
  ut_a(n_segments <= Aio_slots::MAX_SEGMENTS);
  /* The change buffer's array mostly reads. */
  const Stall stall =
      id == LATCH_ID_OS_AIO_WRITE_MUTEX ? Stall::AIO_WRITE : Stall::AIO_READ;
  return new Aio_array(counters_of(id), stall, n, n_segments,
                       srv_use_native_aio);
}

void aio_array_free(Aio_array *array, io_context **contexts,
                    size_t n_contexts) {
  if (contexts != nullptr) {
    destroy_contexts({contexts, n_contexts});
  }
  delete array;
}

void aio_wait_for_slot(Aio_array *array, ut::counting_semaphore &slots) {
  Stall_timer stall{array->m_stall};

  slots.acquire([&stall] {
    stall.begin();
    os_aio_simulated_wake_handler_threads();
  });
}

size_t aio_take_slot(Aio_array *array) {
  /* Invariant: aio_wait_for_slot() has reserved a slot. Otherwise two requests
  would share one. */
  ut_a(array->m_slots->has_free());
  return array->m_slots->take();
}

void aio_release_slot(Aio_array *array, size_t slot) {
  if (array->m_slots != nullptr) {
    array->m_slots->release(static_cast<uint32_t>(slot));
  }
}

void aio_note_used(Aio_array *array, size_t n_used) {
  auto &counters = array->m_counters;

  counters.n_used.store(n_used, std::memory_order_release);

  /* The mutex is held: no other thread writes between the load and the
  store. */

  if (n_used > counters.n_used_max.load(std::memory_order_relaxed)) {
    counters.n_used_max.store(n_used, std::memory_order_relaxed);
  }
}

bool aio_count_slots(const Aio_array *array, ulint *segments, ulint *total) {
  const Aio_slots *slots = array->m_slots.get();

  if (slots == nullptr) {
    return false;
  }

  *total = 0;
  for (uint32_t i = 0; i < slots->n_segments(); ++i) {
    segments[i] = slots->n_used(i);
    *total += segments[i];
  }
  return true;
}

size_t aio_reap_max(size_t n_slots) {
  return std::min<size_t>(n_slots, AIO_REAP_MAX);
}

void aio_completed(Aio_array *array, size_t segment, size_t slot) {
  array->m_slots->push_completed(static_cast<uint32_t>(segment),
                                 static_cast<uint32_t>(slot));
}

bool aio_next_completed(Aio_array *array, size_t segment, size_t *slot,
                        ulint *n_pending) {
  uint32_t found;

  *n_pending = array->m_slots->n_used(static_cast<uint32_t>(segment));

  if (!array->m_slots->pop_completed(static_cast<uint32_t>(segment), &found)) {
    return false;
  }
  *slot = found;
  return true;
}

void aio_submit_retried(Aio_array *array) {
  array->m_counters.submit_retries.fetch_add(1, std::memory_order_relaxed);
}

Aio_stats aio_stats(Aio_kind kind) {
  const Aio_counters &counters = counters_of(kind);
  const Stall_summary waits = stall_summary(
      kind == Aio_kind::READ ? Stall::AIO_READ : Stall::AIO_WRITE);

  return {.threads = counters.n_segments,
          .depth = counters.slots_per_segment,
          .slots_used = counters.n_used,
          .slots_used_max = counters.n_used_max,
          .slot_waits = waits.count,
          .slot_wait_time_us = waits.time_us,
          .submit_retries = counters.submit_retries};
}

void aio_print(FILE *file) {
  for (const auto &[name, kind] : {std::pair{"reads", Aio_kind::READ},
                                   std::pair{"writes", Aio_kind::WRITE}}) {
    const Aio_stats stats = aio_stats(kind);

    fprintf(file,
            "AIO %s: %" PRIu64 " threads, depth %" PRIu64 " (%s); %" PRIu64
            " of %" PRIu64 " slots in use, %" PRIu64 " at most; %" PRIu64
            " waits for a slot, %" PRIu64 " us; %" PRIu64
            " io_submit retries\n",
            name, stats.threads, stats.depth,
            srv_use_native_aio ? "native" : "simulated", stats.slots_used,
            stats.threads * stats.depth, stats.slots_used_max, stats.slot_waits,
            stats.slot_wait_time_us, stats.submit_retries);
  }
}

}  // namespace spw
