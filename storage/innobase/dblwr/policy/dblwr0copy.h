/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file dblwr/policy/dblwr0copy.h
Whether recovery may put a copy of the doublewrite buffer in the place of a torn
page. */

#ifndef dblwr0copy_h
#define dblwr0copy_h

#include <cstdint>

namespace spw {

/** Whether a copy is of an earlier write than the one that a power cut can have
torn. Only for data directories whose checkpoints sync the data files: what a
checkpoint has passed is then in its file, so that a torn page's last write, and
the copy that was written ahead of it, are not older than the checkpoint.
@param[in]  copy_lsn        the copy's FIL_PAGE_LSN
@param[in]  checkpoint_lsn  where recovery begins; 0 if that is not known
@return whether it is */
constexpr bool dblwr_copy_is_stale(uint64_t copy_lsn, uint64_t checkpoint_lsn) {
  return copy_lsn < checkpoint_lsn;
}

/** Whether a copy is of another data directory, or of this one before it was
made anew: redo is written ahead of pages and of their copies.
@param[in]  copy_lsn      the copy's FIL_PAGE_LSN
@param[in]  redo_end_lsn  the end of the redo log's files; 0 if it is not known
@return whether it is */
constexpr bool dblwr_copy_is_foreign(uint64_t copy_lsn, uint64_t redo_end_lsn) {
  return redo_end_lsn != 0 && copy_lsn > redo_end_lsn;
}

}  // namespace spw

#endif /* dblwr0copy_h */
