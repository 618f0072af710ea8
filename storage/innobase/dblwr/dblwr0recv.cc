/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file dblwr/dblwr0recv.cc
Which doublewrite copy recovery uses to repair a torn page. In force with all
settings, because stock MySQL uses copies that are torn, old, or of another data
directory. The rules are in README.md. */

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "buf0buf.h"
#include "buf0checksum.h"
#include "buf0dblwr.h"
#include "dblwr/dblwr0file.h"
#include "dblwr/hook.h"
#include "dblwr/policy/dblwr0copy.h"
#include "fil0fil.h"
#include "fsp0fsp.h"
#include "log0log.h"
#include "log0recv.h"
#include "srv0srv.h"
#include "trx0sys.h"
#include "ut0log.h"
#include "ut0new.h"

namespace spw {

namespace {

/** LSN of the copy by which recovery replaced the system tablespace's first
page before the redo log was known; 0 if there was none. */
lsn_t s_first_page_lsn = 0;

/** The newest copy by which recovery replaced a page: its LSN, and the page. */
lsn_t s_newest_used_lsn = 0;
page_id_t s_newest_used_page{0, 0};

/** dblwr::v1::init() is due when the redo log has been applied. */
bool s_v1_init_is_due = false;

/** Recovery has detected a copy of another data directory. A server of that
directory can have overwritten the newest copy of a page of this one. */
std::atomic<bool> s_foreign_copy_detected{false};

lsn_t lsn_of(const unsigned char *copy) {
  return mach_read_from_8(copy + FIL_PAGE_LSN);
}

/** Only for the first page of a data file is it known whether a copy is torn:
the page has its own size and checksum.
@param[in]  copy  a doublewrite copy in a buffer of univ_page_size
@return whether it is the first page of a data file and torn */
bool first_page_is_torn(const unsigned char *copy) {
  if (page_get_page_no(copy) != 0) {
    return false;
  }
  /* The flags are in the first sector, which is intact if the page is torn
  between sectors. A slot that was never written contains zeros, and looks like
  the first page of the system tablespace. */
  const uint32_t flags = fsp_header_get_field(copy, FSP_SPACE_FLAGS);
  if (!fsp_flags_is_valid(flags) || buf_page_is_zeroes(copy, univ_page_size)) {
    return true;
  }
  const page_size_t page_size{flags};
  return page_size.logical() != univ_page_size.logical() ||
         page_size.physical() > univ_page_size.physical() ||
         BlockReporter(false, copy, page_size,
                       fsp_is_checksum_disabled(page_get_space_id(copy)))
             .is_corrupted();
}

/** @return the end LSN of the last redo log file when recovery begins; 0 if not
known */
lsn_t redo_end() {
  /* Files from before MySQL 8.0.30 are accepted only after a clean shutdown. */
  static const lsn_t end =
      log_sys->m_files_ctx.m_files_ruleset == Log_files_ruleset::CURRENT &&
              log_sys->m_files.begin() != log_sys->m_files.end()
          ? log_sys->m_files.back().m_end_lsn
          : 0;
  return end;
}

/** Call fil_io(). In Percona Server it has two more parameters: the transaction
that reads, and whether the read may be submitted later with others. */
template <typename... Arguments>
dberr_t fil_io_of_base(const Arguments &...arguments) {
  if constexpr (requires { fil_io(arguments...); }) {
    return fil_io(arguments...);
  } else {
    return fil_io(arguments..., nullptr, false);
  }
}

/** @param[in]  page_id  a page of the system tablespace, whose files are known
@return whether the page is corrupt in its file or cannot be read */
bool is_corrupt(const page_id_t &page_id) {
  fil_space_open_if_needed(fil_space_get(page_id.space()));

  const size_t n_bytes = univ_page_size.physical();
  auto *const page = static_cast<byte *>(ut::aligned_alloc(n_bytes, n_bytes));
  /* An incomplete read leaves undefined content. */
  memset(page, 0, n_bytes);

  IORequest request{IORequest::READ};
  request.dblwr();
  const dberr_t error = fil_io_of_base(request, true, page_id, univ_page_size,
                                       0, n_bytes, page, nullptr);
  const bool is_corrupt =
      error != DB_SUCCESS || buf_page_is_zeroes(page, univ_page_size) ||
      BlockReporter(false, page, univ_page_size,
                    fsp_is_checksum_disabled(page_id.space()))
          .is_corrupted();
  ut::aligned_free(page);
  return is_corrupt;
}

/** Called when the redo log is known.
@param[in]  lsn  the LSN of a doublewrite copy
@return whether it is from before the checkpoint, and this shows that it belongs
to an earlier write */
bool is_stale(lsn_t lsn) {
  return (dblwr_only_newest_is_usable() ||
          (s_foreign_copy_detected.load() && data_files_are_synced())) &&
         dblwr_copy_is_stale(lsn, log_sys->last_checkpoint_lsn.load());
}

/** @return the largest LSN of a page, if all its redo was durable. Redo ends
there in the middle of a mini-transaction that recovery does not apply: a page
that an index build changes without redo gets the LSN up to which redo is
durable (buf_flush_insert_into_flush_list()). At the end of a block, InnoDB can
count the header of the next one */
lsn_t durable_redo_end() {
  const lsn_t end = log_sys->m_scanned_lsn;
  return end % OS_FILE_LOG_BLOCK_SIZE == 0 ? end + LOG_BLOCK_HDR_SIZE : end;
}

/** @return whether a page was replaced by a copy that is newer than the redo
log: redo is durable before the pages and their copies. dblwr_copy_is_unusable()
rejects only copies from behind the redo log files, which end later. Called when
the redo log has been applied */
bool newer_than_redo_was_used() {
  if (s_newest_used_lsn <= durable_redo_end() ||
      srv_force_recovery >= SRV_FORCE_NO_LOG_REDO ||
      srv_unix_file_flush_method == SRV_UNIX_NOSYNC) {
    return false;
  }
  ib::error() << "Recovery has replaced " << s_newest_used_page
              << " with a doublewrite copy of LSN " << s_newest_used_lsn
              << ", and the redo log ends at LSN " << durable_redo_end()
              << ": the copy is of another data directory, or the redo log has"
                 " lost its end.";
  return true;
}

/** Stop the server, because a page was restored from an unusable copy, and
record this in the marker file for later starts. A server that is to rescue data
does not stop: with innodb_force_recovery, and a read-only one. */
void stop_for_unusable_page() {
  if (srv_force_recovery != 0 || srv_read_only_mode) {
    ib::warn() << "A page was replaced with a doublewrite copy of an earlier"
                  " write of the page, or of another data directory.";
    return;
  }
  dblwr_record_unusable_page();
  ib::fatal(UT_LOCATION_HERE)
      << "A page was torn, and recovery replaced it with a copy of an earlier"
         " write of the page, or of another data directory. The server stops."
         " Restore the data directory from a backup, and remove the marker file"
         " '#spw_atomic_writes' from it and the doublewrite files"
         " (#ib_*.dblwr and #ib_*.bdblwr, also in innodb_doublewrite_dir): the"
         " server does not start while that marker file exists. With"
         " innodb_force_recovery it starts, to dump data.";
}

}  // namespace

bool dblwr_copy_is_unusable(const unsigned char *copy) {
  /* Only the first page of the system tablespace is restored before the redo
  log is known: see dblwr_check_system_pages(). */
  if (log_sys == nullptr) {
    return false;
  }
  if (recv_sys->is_cloned_db) {
    /* Clone brings no copies: this one is of the database that was here. */
    return true;
  }
  if (dblwr_copy_is_foreign(lsn_of(copy), redo_end())) {
    if (!s_foreign_copy_detected.exchange(true)) {
      ib::warn() << "The doublewrite files have copies that are newer than the"
                    " redo log: they belong to another data directory, or to"
                    " this one before it was initialized again. Recovery does"
                    " not use them. The first one is of "
                 << page_id_t{page_get_space_id(copy), page_get_page_no(copy)}
                 << ", LSN " << lsn_of(copy)
                 << "; the redo log files end at LSN " << redo_end()
                 << ". No action is needed if the data directory was restored"
                    " from a backup.";
    }
    return true;
  }
  return is_stale(lsn_of(copy));
}

bool dblwr_copy_is_newer(const unsigned char *one,
                         const unsigned char *another) {
  return lsn_of(one) > lsn_of(another);
}

bool dblwr_copy_may_replace(const unsigned char *copy,
                            const unsigned char *older) {
  /* Without log_sys, for the first page of the system tablespace, the
  checkpoint is not known yet. */
  return page_get_space_id(older) == page_get_space_id(copy) &&
         page_get_page_no(older) == page_get_page_no(copy) &&
         log_sys != nullptr &&
         (!data_files_are_synced() ||
          !dblwr_copy_is_stale(lsn_of(older),
                               log_sys->last_checkpoint_lsn.load()));
}

bool dblwr_copy_is_rejected(const unsigned char *copy,
                            const std::vector<const unsigned char *> &all) {
  /* A foreign copy in `all` also makes copies from before the checkpoint
  unusable, so that all copies are checked before this one. */
  const bool newer_is_torn =
      std::count_if(all.begin(), all.end(), [copy](const auto *other) {
        return !dblwr_copy_is_unusable(other) &&
               dblwr_copy_is_newer(other, copy) && first_page_is_torn(other) &&
               !dblwr_copy_may_replace(other, copy);
      }) != 0;
  return newer_is_torn || dblwr_copy_is_unusable(copy) ||
         first_page_is_torn(copy);
}

void dblwr_copy_was_used(const unsigned char *copy) {
  if (lsn_of(copy) > s_newest_used_lsn) {
    s_newest_used_lsn = lsn_of(copy);
    s_newest_used_page.reset(page_get_space_id(copy), page_get_page_no(copy));
  }
}

dberr_t dblwr_first_page_restored(int file, const char *path,
                                  const unsigned char *copy, dberr_t error) {
  if (error != DB_SUCCESS) {
    return error;
  }
  if (fsync(file) != 0) {
    ib::fatal(UT_LOCATION_HERE)
        << "'" << path << "' could not be synced after its first page was"
        << " restored from the doublewrite buffer: " << strerror(errno)
        << ". The server stops and keeps the copy. Remove the cause and restart"
           " the server; after an I/O error, restart the machine.";
  }
  dblwr_copy_was_used(copy);
  if (log_sys == nullptr) {
    s_first_page_lsn = lsn_of(copy);
  }
  return DB_SUCCESS;
}

dberr_t dblwr_correct_space_id(const char *path, uint32_t expected,
                               dberr_t error, uint32_t *space_id) {
  auto *const copies = recv_sys->dblwr;
  const bool is_consistent =
      error == DB_SUCCESS && (expected == *space_id ||
                              copies->find(page_id_t{*space_id, 0}) != nullptr);
  if (is_consistent || copies->find(page_id_t{expected, 0}) == nullptr) {
    return error;
  }
  std::array<byte, FIL_PAGE_DATA> header{};
  std::ifstream file{path, std::ios::binary};
  if (!file.read(reinterpret_cast<char *>(header.data()), header.size()) ||
      mach_read_from_4(header.data() + FIL_PAGE_SPACE_ID) != expected) {
    return error;
  }
  ib::info() << "The first page of '" << path << "' is torn. It names"
             << " tablespace " << expected << ", and the doublewrite files have"
             << " a copy of the page. Recovery uses the copy.";
  *space_id = expected;
  return DB_SUCCESS;
}

dberr_t recovery_opened(space_id_t space_id, dberr_t error) {
  if (error == DB_SUCCESS) {
    return DB_SUCCESS;
  }
  if (error == DB_FAIL &&
      (srv_force_recovery != 0 || fsp_is_undo_tablespace(space_id) ||
       !fil_tablespace_lookup_for_recovery(space_id))) {
    return DB_FAIL;
  }
  ib::fatal(UT_LOCATION_HERE)
      << "The redo log has changes of tablespace " << space_id
      << ", which cannot be opened: " << ut_strerr(error)
      << ". The server stops, and the redo log stays as it is. The messages"
         " above name the cause. If innodb_doublewrite or"
         " innodb_doublewrite_dir was changed since the crash, set it back."
         " Remove the cause and start the server again, or restore the data"
         " directory from a backup. With innodb_force_recovery = 6 the server"
         " starts without the redo log, to dump data.";
}

void dblwr_page_is_corrupt(const page_id_t &page_id) {
  if (!recv_recovery_is_on()) {
    return;
  }
  ib::fatal(UT_LOCATION_HERE)
      << page_id
      << " is corrupt, and the doublewrite files have no copy of it that can be"
         " used. The server stops, and the redo log stays as it is. If"
         " innodb_doublewrite or innodb_doublewrite_dir was changed since the"
         " crash, set it back and start the server again. Otherwise restore the"
         " data directory from a backup; with innodb_force_recovery the server"
         " starts, to dump data.";
}

bool dblwr_trx_sys_page_can_be_read() {
  const bool is_foreign = dblwr_copy_is_foreign(s_first_page_lsn, redo_end());
  if (is_foreign || dblwr_has_unusable_page()) {
    stop_for_unusable_page();
  }
  dblwr_remove_wrong_marker();
  const page_id_t page_id{TRX_SYS_SPACE, TRX_SYS_PAGE_NO};
  s_v1_init_is_due =
      recv_sys->dblwr->find(page_id) != nullptr && is_corrupt(page_id);
  if (s_v1_init_is_due) {
    ib::info() << "The transaction system page is torn. Recovery has to replace"
                  " it with its copy from the doublewrite buffer.";
  }
  return !s_v1_init_is_due;
}

dberr_t dblwr_check_system_pages() {
  if ((s_first_page_lsn != 0 &&
       (recv_sys->is_cloned_db || is_stale(s_first_page_lsn))) ||
      newer_than_redo_was_used()) {
    stop_for_unusable_page();
  }
  return std::exchange(s_v1_init_is_due, false) ? dblwr::v1::init()
                                                : DB_SUCCESS;
}

}  // namespace spw
