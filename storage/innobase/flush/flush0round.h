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

#include "flush/policy/flush0method.h"
#include "flush/policy/flush0setting.h"
#include "flush/policy/flush0types.h"

namespace spw {

/** innodb_ahead_flushing_dirty_pct: percent of the buffer pool; 0 for nine
tenths of innodb_max_dirty_pages_pct. */
extern double ahead_flushing_dirty_pct;

/** innodb_ahead_flushing_io_pct: percent of innodb_io_capacity. */
extern double ahead_flushing_io_pct;

/** innodb_ahead_flushing_interval_ms: milliseconds. */
extern unsigned long ahead_flushing_interval_ms;

/** innodb_adaptive_flushing_method: a Flush_method. */
extern unsigned long adaptive_flushing_method;

/** innodb_ahead_flushing_device: a Flush_device. */
extern unsigned long ahead_flushing_device;

/** Warn a session that has set a variable to a value that has no effect, or to
a dirty-page threshold that flushing begins above.
@param[in]  thd       the session
@param[in]  variable  the variable, which has its new value */
void flush_variable_set(THD *thd, Flush_variable variable);

/** Set a variable, and warn where it has no effect: what MySQL calls.
@param[in]   thd   the session
@param[out]  to    the variable
@param[in]   save  the value */
template <typename T, Flush_variable V>
void flush_variable_update(THD *thd, SYS_VAR *, void *to, const void *save) {
  *static_cast<T *>(to) = *static_cast<const T *>(save);
  flush_variable_set(thd, V);
}

/** State of the write throttle. */
enum class Throttle_state {
  /** innodb_ahead_flushing is OFF, or innodb_ahead_flushing_max_delay_us is 0.
   */
  OFF,
  /** The oldest page age is below its threshold: redo generation has no limit.
   */
  UNLIMITED,
  /** Redo generation is limited to a rate. */
  LIMITED,
  /** The limit is 0: the oldest page age has reached the sync age. */
  STOPPED,
  N
};

/** What ahead flushing has done, and does now. */
struct Ahead_flush_stats {
  /** Cumulative. Requests by the purge coordinator; flush rounds by trigger,
  and those of the trigger AGE by the limit that was reached. */
  uint64_t purge_requests;
  uint64_t rounds[static_cast<size_t>(Flush_trigger::N)];
  uint64_t limited[static_cast<size_t>(Flush_limit::N)];

  /** Of the last flush round; OFF and NONE while there are no rounds. */
  Flush_trigger trigger;
  Flush_limit limit;

  /** Oldest page age, from buf_pool_get_oldest_modification_lwm(): bytes of
  LSN; 0 without dirty pages, and while there are no flush rounds. */
  uint64_t oldest_page_age_bytes;

  /** Measured device write capacity: pages/s; 0 before the first measurement.
   */
  uint64_t measured_capacity;

  Throttle_state throttle_state;

  /** Limit on the redo of sessions: bytes/s; 0 unless throttle_state is
   * LIMITED.
   */
  uint64_t redo_limit_bytes_per_s;

  /** Cumulative. Delays of sessions by the write throttle: number,
  microseconds. */
  uint64_t delays;
  uint64_t delay_us;

  /** Sessions that the write throttle delays now. */
  uint64_t sessions_delayed;
};

/** @param[in]  state  a state
@return its name in Innodb_ahead_flush_throttle_state */
const char *throttle_state_name(Throttle_state state);

/** @return what ahead flushing has done. Any thread, no latch. */
Ahead_flush_stats ahead_flush_stats();

/** Print the lines of ahead flushing in SHOW ENGINE INNODB STATUS.
@param[in,out]  file  where to print */
void ahead_flush_print(FILE *file);

}  // namespace spw

#endif /* flush0round_h */
