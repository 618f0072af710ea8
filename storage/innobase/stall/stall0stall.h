/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file stall/stall0stall.h
What is known of stalls, and the variable that sets what goes to the error log.
All counters begin at the start of the server; any thread reads them, no latch
is taken. */

#ifndef stall0stall_h
#define stall0stall_h

#include <cstdint>
#include <cstdio>

#include "stall/hook.h"
#include "stall/policy/stall0stats.h"

namespace spw {

/** innodb_stall_log_threshold_ms: stalls longer than this, in milliseconds, are
written to the error log; 0 for none. Changed at run time without a latch. */
extern unsigned long stall_log_threshold_ms;

/** @param[in]  kind  what was waited for
@return the waits for it */
Stall_summary stall_summary(Stall kind);

/** @param[in]  summary  the waits for one thing
@return seconds since the last one has ended; since the server started, if none
has */
uint64_t stall_since_last_s(const Stall_summary &summary);

/** Print the table of stalls of SHOW ENGINE INNODB STATUS.
@param[in,out]  file  where to print */
void stall_print(FILE *file);

}  // namespace spw

#endif /* stall0stall_h */
