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

/** What the leader of a group waits for before it begins. */
struct Commit_group {
  /** Sessions that the group should have; up to 1: it does not wait. */
  unsigned n;

  /** Max time of the wait: microseconds. */
  long wait_us;
};

/** Any thread, no latch.
@return what a leader waits for; nothing with innodb_ahead_flushing = OFF. n and
wait_us can be of two decisions */
Commit_group commit_group();

}  // namespace spw

#endif /* flush0commit_h */
