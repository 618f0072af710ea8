/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file dblwr/dblwr0file.h
The doublewrite files: the setting that syncs them, and the marker file. The
patches use the hook interface in dblwr/hook.h. */

#ifndef dblwr0file_h
#define dblwr0file_h

namespace spw {

/** innodb_doublewrite_fsync: sync the doublewrite files before their pages are
written, with any innodb_flush_method. */
extern bool doublewrite_fsync;

/** @param[in]  flush_method  a value of innodb_flush_method
@return whether InnoDB syncs a data file after it has written pages to it and
before the checkpoint passes them */
[[nodiscard]] bool syncs_data_files(unsigned long flush_method);

/** @return syncs_data_files() for this server's innodb_flush_method */
[[nodiscard]] bool data_files_are_synced();

/** Read the marker file. Called once, before InnoDB starts. A start without
what it says could use copies that are older than their pages, or accept an
unusable page.
@param[in]  folder     innodb_doublewrite_dir, the folder of the doublewrite
                       files; can be nullptr. InnoDB puts a # before a name that
                       is not a path
@param[in]  is_synced  syncs_data_files() for this server's innodb_flush_method
@return false if the marker file cannot be read and the server must not start;
it can with innodb_force_recovery if the files are synced, and read-only. The
error log says why */
[[nodiscard]] bool dblwr_start(const char *folder, bool is_synced);

/** Remove the marker file if this server does not sync its data files, because
the file's rule does not hold for the pages that the server writes; not if it
records an unusable page. The server stops if a marker file with that rule
cannot be removed. Called when the system tablespace is open and locked, before
a page is written. */
void dblwr_remove_wrong_marker();

/** Create the marker file if it does not exist. Called before pages are written
without doublewrite copies.
@return 0 if the marker file is durable; else errno */
[[nodiscard]] int dblwr_write_marker();

/** @return whether recovery must not use copies from before the checkpoint:
they can be older than their pages, and recovery needs none of them. True if at
the start of the server the marker file said that the copies were cleared, and
this server syncs data files, too */
[[nodiscard]] bool dblwr_only_newest_is_usable();

/** Record in the marker file that a page was restored from an unusable copy, so
that no later start accepts the page. */
void dblwr_record_unusable_page();

/** @return whether the marker file recorded an unusable page when this server
started */
[[nodiscard]] bool dblwr_has_unusable_page();

}  // namespace spw

#endif /* dblwr0file_h */
