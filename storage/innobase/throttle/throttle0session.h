/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file throttle/throttle0session.h
Variables, input and statistics of the write throttle. The variables are changed
at run time without a latch. */

#ifndef throttle0session_h
#define throttle0session_h

#include <cstdint>

namespace spw {

/** innodb_ahead_flushing. */
extern bool ahead_flushing;

/** innodb_ahead_flushing_age_pct: percent of the sync age. */
extern double ahead_flushing_age_pct;

/** innodb_ahead_flushing_max_delay_us: microseconds; 0 delays no session. */
extern unsigned long ahead_flushing_max_delay_us;

/** Since the server started: redo that sessions were charged, in bytes, and
delays; sessions delayed now. */
struct Throttle_stats {
  uint64_t charged_bytes;
  uint64_t n_delays;
  uint64_t delay_us;
  uint64_t n_waiting;
};

/** @return the statistics. Any thread, no latch. */
Throttle_stats throttle_stats();

/** Limit the redo of sessions from now on. Called by the page cleaners'
coordinator.
@param[in]  bytes_per_s  bytes/s; infinity for no limit */
void throttle_set_limit(double bytes_per_s);

/** @return limit on the redo of sessions: bytes/s; infinity for no limit. Any
thread, no latch. */
double throttle_limit();

}  // namespace spw

#endif /* throttle0session_h */
