/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file throttle/throttle0commit.h
Commit groups: what the write throttle tells them. */

#ifndef throttle0commit_h
#define throttle0commit_h

namespace spw {

/** Decide how close commit groups may be. Called by one thread at a time.
@param[in]  n_delayed  sessions that the write throttle delayed, on average
@param[in]  elapsed_s  time since the last call: seconds */
void commit_groups_decide(double n_delayed, double elapsed_s);

/** The write throttle limits no redo: commits do not wait for each other. */
void commit_groups_end();

}  // namespace spw

#endif /* throttle0commit_h */
