/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/flush0sync.h
The threads that sync data files together. */

#ifndef flush0sync_h
#define flush0sync_h

namespace spw {

/** innodb_ahead_flushing has been set: make the threads if it is ON, there are
none, and InnoDB is ready. */
void sync_threads_changed();

}  // namespace spw

#endif /* flush0sync_h */
