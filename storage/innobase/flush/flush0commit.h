/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/flush0commit.h
What ahead flushing tells group commit of the binary log. The SQL layer includes
this, so it needs none of InnoDB's headers. */

#ifndef flush0commit_h
#define flush0commit_h

namespace spw {

/** Max time that the leader of a group waits for more sessions: microseconds.
Sessions that waited for commits a moment ago can have gone. A chosen value: a
tenth of what the slowest commits take on a volume that is limited to a number
of I/Os in each tenth of a second. */
constexpr long COMMIT_GROUP_WAIT_US = 10'000;

/** Any thread, no latch.
@return sessions that a group should have before its leader begins; up to 1: it
does not wait. Always 0 with innodb_ahead_flushing = OFF */
unsigned commit_group();

}  // namespace spw

#endif /* flush0commit_h */
