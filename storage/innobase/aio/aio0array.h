/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file aio/aio0array.h
What the AIO arrays report of themselves, and the variable that sets their
depth. */

#ifndef aio0array_h
#define aio0array_h

#include <cstdint>

namespace spw {

/** innodb_aio_pending_ios_per_thread: number of native AIO slots for each I/O
thread. Set before InnoDB starts, constant afterwards. */
extern unsigned long aio_pending_ios_per_thread;

/** The arrays that report. */
enum class Aio_kind { READ, WRITE };

/** What one AIO array reports. Counters begin at the start of the server. */
struct Aio_stats {
  /** I/O threads of the array. */
  uint64_t threads;

  /** Slots for each thread. */
  uint64_t depth;

  /** Requests in flight or not handled yet. */
  uint64_t slots_used;

  /** Highest slots_used since the start. */
  uint64_t slots_used_max;

  /** Requests that found no free slot. */
  uint64_t slot_waits;

  /** Time that they waited in all, in microseconds. */
  uint64_t slot_wait_time_us;

  /** io_submit() calls that failed and were made again. */
  uint64_t submit_retries;
};

/** Read an array's counters; they are not of one instant. Any thread, no latch.
@param[in]  kind  which array
@return the counters; all 0 before InnoDB has started */
Aio_stats aio_stats(Aio_kind kind);

/** @return since when no page is being written: seconds of the steady clock, 0
if none ever was; negative if one is. Any thread, no latch. */
double aio_writes_idle_since_s();

}  // namespace spw

#endif /* aio0array_h */
