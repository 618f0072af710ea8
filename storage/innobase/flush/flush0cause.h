/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/flush0cause.h
Counters of flushed pages by cause, since the server started. Any thread reads
them without a latch. */

#ifndef flush0cause_h
#define flush0cause_h

#include <cstdint>
#include <cstdio>

#include "flush/hook.h"

namespace spw {

/** Work done for one cause. */
struct Flush_work {
  /** Batches that flushed at least one page: passes of the page cleaners,
  single-page flushes, groups of neighbors. */
  uint64_t batches;

  /** Flushed pages. */
  uint64_t pages;
};

/** @param[in]  cause  the cause
@return the pages and batches flushed for it */
Flush_work flush_work(Flush_cause cause);

/** @return flush-list batches of the buffer pool instances, including those
that flushed no page */
uint64_t flush_list_batches();

/** Print the table of flushed pages in SHOW ENGINE INNODB STATUS.
@param[in,out]  file  where to print */
void flush_cause_print(FILE *file);

}  // namespace spw

#endif /* flush0cause_h */
