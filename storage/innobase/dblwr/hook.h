/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file dblwr/hook.h
The hook interface of the doublewrite files and of recovery for InnoDB's files.
Implemented in dblwr0file.cc, dblwr0recv.cc and dblwr0ddl.cc. */

#ifndef dblwr_hook_h
#define dblwr_hook_h

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "db0err.h"

class Flush_observer;
class page_id_t;
struct trx_t;

namespace spw {

/** Note that an index build writes a page that no redo protects.
@param[in]  observer        of the index build
@param[in]  table_space_id  the tablespace that the observer is for
@param[in]  page_space_id   the page's tablespace: a full-text index has its
                            own. Any latch may be held */
void note_unlogged_page(const Flush_observer *observer, uint32_t table_space_id,
                        uint32_t page_space_id);

/** Sync the files of an index build's pages. Called after these pages were
written and left the flush list, and before the commit that relies on them.
@param[in]  observer        of the index build
@param[in]  table_space_id  the tablespace that the observer is for
@param[in]  is_interrupted  whether the build is given up: nothing is synced */
void sync_unlogged_pages(const Flush_observer *observer,
                         uint32_t table_space_id, bool is_interrupted);

/** DISCARD TABLESPACE has removed a file: note the redo log's end for
checkpoint_before_import(). */
void note_discard();

/** Wait for a checkpoint that covers all DISCARD TABLESPACE so far. Otherwise
recovery could apply a discarded file's redo to the file with the same ID by
which IMPORT TABLESPACE replaces it. The caller holds no latch.
@param[in]  trx  the transaction of the IMPORT
@return DB_SUCCESS, or DB_INTERRUPTED if the statement was killed */
[[nodiscard]] dberr_t checkpoint_before_import(const trx_t *trx);

/** Handle an undo truncation log that is shorter than a page. InnoDB creates
the log, writes a page to it and syncs it before it truncates. Stock MySQL
cannot read a shorter one, and ends at each start. If the undo tablespace has a
file, the truncation has not begun, and the log is removed. Otherwise the log
was created again, in a truncation that had begun, and becomes a page of zeros,
which is what InnoDB writes first. A read-only server leaves the log as it is.
Called during startup, after the scan for files.
@param[in]  space_num  the undo tablespace's number
@param[in]  log        the truncation log, which exists
@return whether the truncation has not begun */
[[nodiscard]] bool undo_truncation_has_not_begun(uint32_t space_num,
                                                 const char *log);

/** Let transactions use an undo tablespace again, after purge has truncated it.
While the truncation log exists, a crash makes recovery create the tablespace
again, without what is in it. Stock MySQL lets transactions use it before it
removes the log. Has no effect on a tablespace that ALTER UNDO TABLESPACE has
set inactive. Called with undo::ddl_mutex, after undo::done_logging().
@param[in]  space_num  the undo tablespace's number */
void undo_truncation_ended(uint32_t space_num);

/** @return innodb_doublewrite_fsync: whether a doublewrite file has to be
synced before its pages are written, with any innodb_flush_method */
[[nodiscard]] bool dblwr_needs_fsync();

/** Before recovery writes pages: write all doublewrite copies into one more
doublewrite file, and sync it. Recovery restores the pages of a tablespace when
it opens it, which can be in a later batch, and writes the pages of earlier
batches to the same slots: after another power cut their copies would be
missing. The file is removed when recovery has ended. If it cannot be written
for lack of space, there is a warning. After another error the server stops,
unless innodb_force_recovery is set. */
void dblwr_keep_copies();

/** Recovery has read a corrupt page that it needs, and that has no usable copy:
stop the server. Stock MySQL waits for the page for ever. Not called with
innodb_force_recovery. Has no effect when recovery has ended.
@param[in]  page_id  the page */
void dblwr_page_is_corrupt(const page_id_t &page_id);

/** Recovery has tried to open a tablespace of which the redo log has records.
If it cannot be opened, and was not dropped later, the server stops. Stock MySQL
starts without the records if the file cannot be opened, and without the rest of
the redo log if the first record extends a file with a corrupt first page.
@param[in]  space_id  the tablespace
@param[in]  error     the result; DB_FAIL if the tablespace was dropped, or its
                      file cannot be opened
@return DB_SUCCESS; DB_FAIL if recovery has to continue without the records, as
in stock: the tablespace was dropped, or its file cannot be opened and it is an
undo tablespace or innodb_force_recovery is set */
[[nodiscard]] dberr_t recovery_opened(uint32_t space_id, dberr_t error);

/** Sync a doublewrite file and its folder, after the file got its size and
before it is used. The server stops if that fails.
@param[in]  file  the file
@param[in]  path  its path */
void dblwr_sync_file(int file, const std::string &path);

/** Sync the data files after a crash, also those that recovery has not written
to. Then clear the doublewrite copies, which nothing needs any more: a later
recovery must not meet copies of another database, or from before pages were
written without copies. Called when recovery has flushed all pages, no thread
writes any, and before the first checkpoint. */
void dblwr_recovered();

/** Clear the doublewrite copies if pages were written without copies and all
pages are flushed. Called when InnoDB has shut down and closed the doublewrite
files. */
void dblwr_shutdown();

/** Recovery must not use a copy of another data directory, whose LSN is beyond
the end of the redo log files; the error log reports the first. It must not use
a copy from before the checkpoint either, if pages were written without copies
since the doublewrite files were cleared, or if a copy of another data directory
was detected.
@param[in]  copy  a doublewrite copy
@return whether recovery must not replace a corrupt page by it */
[[nodiscard]] bool dblwr_copy_is_unusable(const unsigned char *copy);

/** @param[in]  one      a doublewrite copy
@param[in]  another  another copy
@return whether the first is newer: its FIL_PAGE_LSN is higher */
[[nodiscard]] bool dblwr_copy_is_newer(const unsigned char *one,
                                       const unsigned char *another);

/** @param[in]  copy   a doublewrite copy
@param[in]  older  another copy, which is not newer
@return whether the second belongs to the same page and is not from before the
checkpoint, so that the redo log has all later changes */
[[nodiscard]] bool dblwr_copy_may_replace(const unsigned char *copy,
                                          const unsigned char *older);

/** Sort the copies so that recovery tries the newest copy of a page first.
@param[in,out]  pages  the copies in the doublewrite files */
template <class Pages>
void dblwr_newest_first(Pages *pages) {
  std::stable_sort(pages->begin(), pages->end(),
                   [](const auto *one, const auto *another) {
                     return dblwr_copy_is_newer(one->m_buffer.begin(),
                                                another->m_buffer.begin());
                   });
}

/** If a power cut tears a copy, InnoDB had not begun to write the page again.
The page can be torn by an earlier write, which an older copy repairs.
@param[in]  pages  the copies in the doublewrite files, newest first
@param[in]  copy   a copy among them that is torn itself
@return whether an older copy can replace it */
template <class Pages>
[[nodiscard]] bool dblwr_has_older_copy(const Pages &pages,
                                        const unsigned char *copy) {
  auto page = std::find_if(pages.begin(), pages.end(), [copy](const auto *it) {
    return it->m_buffer.begin() == copy;
  });
  return page != pages.end() &&
         std::any_of(++page, pages.end(), [copy](const auto *it) {
           return dblwr_copy_may_replace(copy, it->m_buffer.begin());
         });
}

/** A copy is rejected if it is unusable or torn; or if a newer usable copy is
torn and this copy is from before the checkpoint. Before the tablespace is open
only the first page of a file can be recognised as torn.
@param[in]  copy  a doublewrite copy
@param[in]  all   all copies of the same page, including this copy
@return whether recovery must not use the copy */
[[nodiscard]] bool dblwr_copy_is_rejected(
    const unsigned char *copy, const std::vector<const unsigned char *> &all);

/** @param[in]  pages  the copies in the doublewrite files, in any order
@param[in]  copy   a copy among them
@return dblwr_copy_is_rejected() */
template <class Pages>
[[nodiscard]] bool dblwr_copy_must_be_rejected(const Pages &pages,
                                               const unsigned char *copy) {
  /* FIL_PAGE_LSN of a slot without a copy, all zeros, which looks like the
  first page of the system tablespace. There can be thousands. */
  constexpr unsigned char NO_LSN[8]{};
  if (memcmp(copy + 16, NO_LSN, sizeof(NO_LSN)) == 0) {
    return true;
  }
  std::vector<const unsigned char *> all;
  for (const auto *page : pages) {
    const unsigned char *other = page->m_buffer.begin();
    /* FIL_PAGE_OFFSET and FIL_PAGE_SPACE_ID, 4 bytes each. */
    if (memcmp(other + 4, copy + 4, 4) == 0 &&
        memcmp(other + 34, copy + 34, 4) == 0) {
      all.push_back(other);
    }
  }
  return dblwr_copy_is_rejected(copy, all);
}

/** Recovery has replaced a torn page by its copy.
@param[in]  copy  the doublewrite copy */
void dblwr_copy_was_used(const unsigned char *copy);

/** Recovery has written a copy to its file as the first page, before the
tablespace is open: sync the file, as InnoDB does not. A later power cut could
otherwise tear the page when its copy is overwritten. Includes
dblwr_copy_was_used().
@param[in]  file   the file
@param[in]  path   its path
@param[in]  copy   the doublewrite copy
@param[in]  error  the result of the write
@return error. The server stops if the sync fails */
[[nodiscard]] dberr_t dblwr_first_page_restored(int file, const char *path,
                                                const unsigned char *copy,
                                                dberr_t error);

/** Correct the tablespace ID that InnoDB's scan of a data file with a corrupt
first page has found. That scan can be wrong: it accepts data at 8 KiB of a page
as a page if it has the type of an encrypted page at the right offset, and one
such page is enough.
@param[in]      path      the file
@param[in]      expected  ID of the tablespace that recovery opens
@param[in]      error     result of the scan
@param[in,out]  space_id  the ID that the scan found, if any; set to the
expected ID if there is a copy of the expected tablespace's first page and none
of the other's, and the corrupt page has the expected ID, too
@return DB_SUCCESS if space_id was set to the expected ID; else error */
[[nodiscard]] dberr_t dblwr_correct_space_id(const char *path,
                                             uint32_t expected, dberr_t error,
                                             uint32_t *space_id);

/** Called before InnoDB reads the transaction system page, which happens before
recovery could repair the page by its doublewrite copy. The server stops if the
first page of the system tablespace, which is restored before the redo log is
known, was restored from a copy of another data directory, or if an earlier
start recorded that a page was restored from an unusable copy.
@return false if the transaction system page is torn and has a copy, so that
dblwr_check_system_pages() has to read it later */
[[nodiscard]] bool dblwr_trx_sys_page_can_be_read();

/** Called when the redo log has been applied: read the transaction system page
if it could not be read before. The server stops if a page was restored from a
copy that turns out to be unusable now: a copy newer than the end of the redo
log is of another data directory, and a copy of the first page of the system
tablespace can be from before the checkpoint.
@return the result of dblwr::v1::init(); DB_SUCCESS if nothing was left to do */
[[nodiscard]] dberr_t dblwr_check_system_pages();

}  // namespace spw

#endif /* dblwr_hook_h */
