/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file extend/extend0thread.h
The thread that extends data files before an insert needs the space. */

#ifndef extend0thread_h
#define extend0thread_h

#include <cstdint>

namespace spw {

/** innodb_extend_ahead_pct: a growing file is extended when less than this
percentage of it is free; 0: none is. Changed at run time without a latch. */
extern unsigned int extend_ahead_pct;

/** Maximum of innodb_extend_ahead_pct: as much space free as used. */
constexpr unsigned int EXTEND_AHEAD_PCT_MAX = 50;

/** innodb_extend_ahead_pct has been set: apply it. Does not wait. */
void extend_ahead_changed();

/** @return number of scans in which a nearly full file system prevented an
extension, plus number of extensions that failed */
uint64_t extend_ahead_no_space();

}  // namespace spw

#endif /* extend0thread_h */
