/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/flush0round.h
The variables of ahead flushing, and what it reports. The variables are changed
at run time without a latch, the counters begin at the start of the server. */

#ifndef flush0round_h
#define flush0round_h

#include <cstddef>
#include <cstdint>
#include <cstdio>

#include <mysql/plugin.h>

#include "flush/flush0disk.h"
#include "flush/policy/flush0capacity.h"
#include "flush/policy/flush0controller.h"
#include "flush/policy/flush0method.h"
#include "flush/policy/flush0util.h"

namespace spw {

/** innodb_ahead_flushing_dirty_pct: percent of the buffer pool; 0 for half of
innodb_max_dirty_pages_pct. */
extern double ahead_flushing_dirty_pct;

/** innodb_ahead_flushing_io_pct: percent of innodb_io_capacity. */
extern double ahead_flushing_io_pct;

/** innodb_ahead_flushing_interval_ms: milliseconds. */
extern unsigned long ahead_flushing_interval_ms;

/** innodb_adaptive_flushing_method: a Flush_method. */
extern unsigned long adaptive_flushing_method;

/** innodb_ahead_flushing_device: a Flush_device. */
extern unsigned long ahead_flushing_device;

/** Set innodb_ahead_flushing_dirty_pct, with a warning where it is above
innodb_max_dirty_pages_pct.
@param[in]   thd   the session
@param[out]  to    the variable
@param[in]   save  the value */
void ahead_flushing_dirty_pct_update(THD *thd, SYS_VAR *, void *to,
                                     const void *save);

/** What ahead flushing has done. */
struct Ahead_flush_stats {
  /** How often pages were asked for: by the purge coordinator, by the page
  cleaner; and the cleaner's rounds by their reason. */
  uint64_t asked_purge;
  uint64_t asked_cleaner;
  uint64_t rounds[static_cast<size_t>(Flush_reason::N)];

  /** The reason of the last round; OFF while there are none. */
  Flush_reason reason;

  /** The age of the oldest dirty page, which innodb_ahead_flushing_age_pct is
  about, as buf_pool_get_oldest_modification_lwm() says: bytes of LSN; 0 if
  there is none, and while there are no rounds. */
  uint64_t age_bytes;

  /** What the device has been seen to carry: pages a second; 0 if nothing has
  been seen. */
  uint64_t measured_capacity;

  /** How fast the redo log may be filled: bytes a second; 0 for no limit, 1
  for not at all. */
  uint64_t redo_limit_bytes_per_s;

  /** Waits of who changes rows, for how many microseconds in all, and those
  that have not ended. */
  uint64_t delays;
  uint64_t delay_us;
  uint64_t delays_waiting;
};

/** @return what ahead flushing has done. Any thread, no latch. */
Ahead_flush_stats ahead_flush_stats();

/** Print the lines of ahead flushing in SHOW ENGINE INNODB STATUS.
@param[in,out]  file  where to print */
void ahead_flush_print(FILE *file);

}  // namespace spw

#endif /* flush0round_h */
