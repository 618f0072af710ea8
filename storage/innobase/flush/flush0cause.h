/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/flush0cause.h
How many pages are flushed for which cause. Counted since the start of the
server; any thread reads the counters, no latch is taken. */

#ifndef flush0cause_h
#define flush0cause_h

#include <cstdint>
#include <cstdio>

#include "flush/hook.h"

namespace spw {

/** What was flushed for one cause. */
struct Flush_work {
  /** Batches that have flushed a page: rounds of the page cleaners, single
  pages, groups of neighbors. */
  uint64_t batches;

  /** Pages. */
  uint64_t pages;
};

/** @param[in]  cause  why
@return what was flushed */
Flush_work flush_work(Flush_cause cause);

/** @return how often pages of a flush list were looked for */
uint64_t flush_list_batches();

/** Print the table of flushed pages of SHOW ENGINE INNODB STATUS.
@param[in,out]  file  where to print */
void flush_cause_print(FILE *file);

}  // namespace spw

#endif /* flush0cause_h */
