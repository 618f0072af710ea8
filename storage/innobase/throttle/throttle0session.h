/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file throttle/throttle0session.h
The variables that the throttle of sessions reads, what it is told, and what it
reports. The variables are changed at run time without a latch. */

#ifndef throttle0session_h
#define throttle0session_h

#include <cstdint>

namespace spw {

/** innodb_ahead_flushing. */
extern bool ahead_flushing;

/** innodb_ahead_flushing_age_pct: percent of the age of sync flushing. */
extern double ahead_flushing_age_pct;

/** innodb_ahead_flushing_max_delay_us: microseconds; 0 if nobody is delayed. */
extern unsigned long ahead_flushing_max_delay_us;

/** What writers have been held back by. */
struct Redo_delays {
  uint64_t n_changes;
  uint64_t n_delays;
  uint64_t delay_us;
  uint64_t n_waiting;
};

/** @return what writers have been held back by. Any thread, no latch. */
Redo_delays redo_delays();

/** From now on each change of a row takes a turn. Called by the page cleaners'
coordinator.
@param[in]  turn_us  microseconds; 0 for no limit */
void redo_set_turn(double turn_us);

}  // namespace spw

#endif /* throttle0session_h */
