/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file dblwr/dblwr0file.h
The doublewrite files as a whole: the setting that has them synced, and the
marker file. What the patches call is in dblwr/hook.h. */

#ifndef dblwr0file_h
#define dblwr0file_h

#include <cstdint>
#include <set>

namespace spw {

/** innodb_doublewrite_fsync: the doublewrite files are synced ahead of their
pages' writes with any innodb_flush_method. */
extern bool doublewrite_fsync;

/** @param[in]  flush_method  a value of innodb_flush_method
@return whether it has data files synced when pages have been written to them,
ahead of the checkpoint that passes them */
[[nodiscard]] bool syncs_data_files(unsigned long flush_method);

/** @return whether this server's innodb_flush_method does */
[[nodiscard]] bool data_files_are_synced();

/** Called once, before InnoDB starts.
@param[in]  folder   innodb_doublewrite_dir, or nullptr: where doublewrite files
                     are. Upstream puts a # before a name that is no path.
@param[in]  may_bypass  innodb_use_atomic_writes is not OFF */
void dblwr_start(const char *folder, bool may_bypass);

/** Called after that, if innodb_flush_method does not have data files synced:
the rule of the marker file does not hold for what this server writes. */
void dblwr_without_sync();

/** @return the tablespaces whose first page recovery has restored from a copy
 */
[[nodiscard]] const std::set<uint32_t> &dblwr_restored_first_pages();

/** Pages are about to be written without copies: make the marker file, if it is
not there.
@return 0 if it is durable; else errno */
[[nodiscard]] int dblwr_write_marker();

/** @return whether the doublewrite files can have copies that are older than
their pages, and every copy that recovery needs is not from before the
checkpoint: when the server started the marker file said so, and this server
syncs data files, too */
[[nodiscard]] bool dblwr_only_newest_is_usable();

/** The first page of the system tablespace was restored from a copy that turned
out not to be usable: have the marker file say so, so that no later start takes
the page for a good one. */
void dblwr_mark_first_page_as_stale();

/** @return whether the marker file says so */
[[nodiscard]] bool dblwr_first_page_is_stale();

}  // namespace spw

#endif /* dblwr0file_h */
