/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file extend/extend0thread.h
The thread that extends data files before an insert needs the room. */

#ifndef extend0thread_h
#define extend0thread_h

#include <cstdint>

namespace spw {

/** innodb_extend_ahead_pct: a growing file whose free share is below it, in
percent, is extended; 0 for none. Changed at run time without a latch. */
extern unsigned int extend_ahead_pct;

/** The most that may be set: as much free as used. */
constexpr unsigned int EXTEND_AHEAD_PCT_MAX = 50;

/** innodb_extend_ahead_pct has been set: begin with it. Does not wait. */
void extend_ahead_changed();

/** @return how often a file was not extended as its file system is nearly full,
and how often an extension has failed */
uint64_t extend_ahead_no_room();

}  // namespace spw

#endif /* extend0thread_h */
