/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file dblwr/policy/dblwr0copy.h
Whether recovery may replace a torn page by a doublewrite copy. */

#ifndef dblwr0copy_h
#define dblwr0copy_h

#include <cstdint>

namespace spw {

/** Whether a copy belongs to an earlier write than the one that a power cut can
have torn. Valid only if every checkpoint syncs the data files. Invariant: a
page change that a checkpoint has passed is in its file, so that the last write
of a torn page, and the copy written before it, are not older than the
checkpoint.
@param[in]  copy_lsn        the copy's FIL_PAGE_LSN
@param[in]  checkpoint_lsn  where recovery begins; 0 if not known
@return whether the copy is stale; false if checkpoint_lsn is not known */
constexpr bool dblwr_copy_is_stale(uint64_t copy_lsn, uint64_t checkpoint_lsn) {
  return copy_lsn < checkpoint_lsn;
}

/** Whether a copy belongs to another data directory, or to this one before it
was initialized again. Invariant: redo is written before the pages and their
copies.
@param[in]  copy_lsn      the copy's FIL_PAGE_LSN
@param[in]  redo_end_lsn  the end of the redo log files; 0 if not known
@return whether the copy is foreign; false if redo_end_lsn is not known */
constexpr bool dblwr_copy_is_foreign(uint64_t copy_lsn, uint64_t redo_end_lsn) {
  return redo_end_lsn != 0 && copy_lsn > redo_end_lsn;
}

}  // namespace spw

#endif /* dblwr0copy_h */
