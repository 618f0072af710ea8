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

/** @return redo that sessions were charged since the server started: bytes. Any
thread, no latch. Their delays are stalls (Stall::WRITE_THROTTLE). */
uint64_t throttle_charged_bytes();

/** Limit the redo of sessions from now on. Called by the page cleaners'
coordinator.
@param[in]  bytes_per_s  bytes/s; infinity for no limit */
void throttle_set_limit(double bytes_per_s);

/** @return limit on the redo of sessions: bytes/s; infinity for no limit. Any
thread, no latch. */
double throttle_limit();

}  // namespace spw

#endif /* throttle0session_h */
