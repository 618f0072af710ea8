/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file aio/aio0array.h
Statistics of the AIO arrays, and the variable that sets their depth. */

#ifndef aio0array_h
#define aio0array_h

#include <cstdint>

namespace spw {

/** innodb_aio_pending_ios_per_thread: number of native AIO slots per I/O
thread. Set before InnoDB starts, constant afterwards. */
extern unsigned long aio_pending_ios_per_thread;

/** The arrays with statistics. */
enum class Aio_kind { READ, WRITE };

/** Statistics of an AIO array. Counters begin at server start. */
struct Aio_stats {
  /** I/O threads of the array. */
  uint64_t threads;

  /** Slots per thread. */
  uint64_t depth;

  /** Requests in flight or not yet handled. */
  uint64_t slots_used;

  /** Max of slots_used since server start. */
  uint64_t slots_used_max;

  /** Requests that found no free slot. */
  uint64_t slot_waits;

  /** Total time that they waited: microseconds. */
  uint64_t slot_wait_time_us;

  /** io_submit() calls that failed and were retried. */
  uint64_t submit_retries;
};

/** Read an array's statistics, which are not from one instant. Any thread, no
latch.
@param[in]  kind  the array
@return the statistics; all 0 before InnoDB has started */
Aio_stats aio_stats(Aio_kind kind);

}  // namespace spw

#endif /* aio0array_h */
