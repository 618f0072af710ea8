/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file dblwr/hook.h
What upstream's files call of the doublewrite files and of recovery:
dblwr0file.cc, dblwr0recv.cc, dblwr0ddl.cc. */

#ifndef dblwr_hook_h
#define dblwr_hook_h

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "db0err.h"

namespace spw {

/** Pages that no redo protects were written, and have left the buffer pool's
flush list: sync their files, ahead of the commit that relies on them. They can
be of several tablespaces: a full-text index has some of its own. */
void sync_unlogged_pages();

/** DISCARD TABLESPACE has removed a file: make a checkpoint, so that recovery
never applies what the redo log has of that file to the one that IMPORT
TABLESPACE puts in its place, with its ID. The caller holds no latch. */
void checkpoint_after_discard();

/** Recovery looks whether an undo tablespace was being truncated.
@param[in]  log  the truncation's log, which exists. Upstream makes it, writes a
                 page of it and syncs it before it truncates
@return whether it is shorter than that page, and has been removed. Upstream
would end the server at each start, as it cannot read the page */
[[nodiscard]] bool undo_truncation_has_not_begun(const char *log);

/** @return whether the doublewrite file has to be synced ahead of its pages'
writes whatever innodb_flush_method is: innodb_doublewrite_fsync */
[[nodiscard]] bool dblwr_needs_fsync();

/** A doublewrite file has its size, and is about to be used: sync it and its
folder, or end the server.
@param[in]  file  the file
@param[in]  path  its path */
void dblwr_sync_file(int file, const std::string &path);

/** Recovery has flushed all pages, and no thread writes any: clear the copies
in the doublewrite files where pages are, or were, written without them. */
void dblwr_recovered();

/** InnoDB has shut down, and the doublewrite files are closed: if pages were
written without copies, and all is flushed, clear the copies. */
void dblwr_shutdown();

/** @param[in]  copy  a page of the doublewrite buffer, at recovery
@return whether it must not be put in the place of a corrupt page: it is of
another data directory, as its LSN is beyond the redo log's files, which the
error log says; or it is from before the checkpoint, and pages were written
without copies since the files were cleared, or copies of another data directory
have been seen */
[[nodiscard]] bool dblwr_copy_is_unusable(const unsigned char *copy);

/** @param[in]  one      a page of the doublewrite buffer
@param[in]  another  another
@return whether the first is newer: its FIL_PAGE_LSN is higher */
[[nodiscard]] bool dblwr_copy_is_newer(const unsigned char *one,
                                       const unsigned char *another);

/** @param[in]  copy  a page of the doublewrite buffer
@param[in]  older  another, which is not newer
@return whether the second is of the same page and not from before the
checkpoint: what has changed since is in the redo log */
[[nodiscard]] bool dblwr_copy_may_replace(const unsigned char *copy,
                                          const unsigned char *older);

/** Copies of the same page are to be tried from the newest on.
@param[in,out]  pages  those of the doublewrite files */
template <class Pages>
void dblwr_newest_first(Pages *pages) {
  std::stable_sort(pages->begin(), pages->end(),
                   [](const auto *one, const auto *another) {
                     return dblwr_copy_is_newer(one->m_buffer.begin(),
                                                another->m_buffer.begin());
                   });
}

/** @param[in]  pages  those of the doublewrite files, newest first
@param[in]  copy   one of them, which is torn itself
@return whether there is an older one in its place: a power cut tears a copy
before the page that it is of is written again, which can be torn from before */
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

/** @param[in]  copy  a page of the doublewrite buffer
@param[in]  all   those of the same page, with itself
@return whether it must not be taken: it is unusable, or torn, as far as that
can be told before the tablespace is open, which is for the first page of a
file; or a newer one is torn, and this one is from before the checkpoint */
[[nodiscard]] bool dblwr_copy_is_rejected(
    const unsigned char *copy, const std::vector<const unsigned char *> &all);

/** @param[in]  pages  those of the doublewrite files, in any order
@param[in]  copy   one of them
@return dblwr_copy_is_rejected() */
template <class Pages>
[[nodiscard]] bool dblwr_copy_must_be_rejected(const Pages &pages,
                                               const unsigned char *copy) {
  std::vector<const unsigned char *> all;
  for (const auto *page : pages) {
    const unsigned char *other = page->m_buffer.begin();
    /* FIL_PAGE_OFFSET and FIL_PAGE_SPACE_ID, of 4 bytes each. */
    if (memcmp(other + 4, copy + 4, 4) == 0 &&
        memcmp(other + 34, copy + 34, 4) == 0) {
      all.push_back(other);
    }
  }
  return dblwr_copy_is_rejected(copy, all);
}

/** The first page of a data file is corrupt, and upstream has surveyed the file
for its tablespace. In that survey what lies at 8 KiB of a page, and has the
number of an encrypted page's type where a page would have it, is a page, and
one is enough.
@param[in]      path      the file
@param[in]      expected  the tablespace that recovery opens
@param[in]      error     of the survey
@param[in,out]  space_id  what it has found, or nothing; becomes the expected
one if there is a copy of that one's first page and none of the other's, and the
corrupt page names it, too
@return error; DB_SUCCESS if it is now the expected one */
[[nodiscard]] dberr_t dblwr_space(const char *path, uint32_t expected,
                                  dberr_t error, uint32_t *space_id);

/** The page of the transaction system is about to be read, ahead of recovery,
which would put the doublewrite buffer's copy in its place. The server stops if
the first page of the system tablespace, which is restored before the redo log
is known, was restored from a copy of another data directory, or is known not to
be usable from an earlier start.
@return false if the page of the transaction system is torn and there is a copy,
so that it has to be read later (dblwr_check_system_pages()) */
[[nodiscard]] bool dblwr_trx_sys_page_can_be_read();

/** The redo log has been applied: read from the page of the transaction system
what could not be read ahead of it. The server stops if the first page of the
system tablespace was restored from a copy from before the checkpoint that is
not usable.
@return as dblwr::v1::init(); DB_SUCCESS if nothing is due */
[[nodiscard]] dberr_t dblwr_check_system_pages();

}  // namespace spw

#endif /* dblwr_hook_h */
