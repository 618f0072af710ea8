/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file atomic/atomic0dblwr.cc
The doublewrite files: whether they are synced, what their copies are worth at
recovery, and the file that says so. */

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "atomic0file.h"
#include "buf0buf.h"
#include "buf0checksum.h"
#include "buf0dblwr.h"
#include "fil0fil.h"
#include "fsp0fsp.h"
#include "log0log.h"
#include "log0recv.h"
#include "os0file.h"
#include "spw0hook.h"
#include "srv0srv.h"
#include "trx0sys.h"
#include "ut0log.h"
#include "ut0new.h"

namespace spw {

bool doublewrite_fsync = false;

namespace {

/** A file beside the doublewrite files, while these may have copies of pages
that were written without them since. It is there before the first such write,
and goes with the copies at a clean shutdown. */
constexpr const char *MARK = "#spw_atomic_writes";

/** dblwr::v1::init() is due when the redo log has been applied. */
bool s_v1_is_due = false;

/** @return the folders that can be marked: that of the doublewrite files, and
the data directory, which a server without them takes for it */
std::array<std::filesystem::path, 2> marked_folders() {
  return {dblwr::dir, "."};
}

/** @return whether copies in the doublewrite files may be of an earlier write
than the page's last */
bool is_marked() {
  std::error_code error;
  const auto folders = marked_folders();
  return std::any_of(folders.begin(), folders.end(), [&error](const auto &it) {
    return std::filesystem::exists(it / MARK, error);
  });
}

/** @param[in]  path  a file or folder
@param[in]  flags  of open()
@return whether it was opened, and synced */
bool sync_path(const std::filesystem::path &path, int flags) {
  const int file = open(path.c_str(), flags | O_CLOEXEC, 0640);
  if (file < 0) {
    return false;
  }
  const bool is_synced = fsync(file) == 0;
  close(file);
  return is_synced;
}

/** @param[in]  page_id  a page of the system tablespace, whose files are known
@return whether it is corrupt in its file, or cannot be read */
bool is_corrupt(const page_id_t &page_id) {
  fil_space_open_if_needed(fil_space_get(page_id.space()));

  const size_t n_bytes = univ_page_size.physical();
  auto *const page = static_cast<byte *>(ut::aligned_alloc(n_bytes, n_bytes));
  /* It is not known what an incomplete read leaves. */
  memset(page, 0, n_bytes);

  IORequest request{IORequest::READ};
  request.dblwr();
  const dberr_t error =
      fil_io(request, true, page_id, univ_page_size, 0, n_bytes, page, nullptr);
  const bool is_corrupt =
      error != DB_SUCCESS || buf_page_is_zeroes(page, univ_page_size) ||
      BlockReporter(false, page, univ_page_size,
                    fsp_is_checksum_disabled(page_id.space()))
          .is_corrupted();
  ut::aligned_free(page);
  return is_corrupt;
}

}  // namespace

bool doublewrite_needs_fsync() { return doublewrite_fsync; }

void doublewrite_mark() {
  const std::filesystem::path folder = dblwr::dir;
  if (!sync_path(folder / MARK, O_WRONLY | O_CREAT) ||
      !sync_path(folder, O_RDONLY)) {
    ib::fatal(UT_LOCATION_HERE)
        << "Pages are to be written without the doublewrite buffer, and the"
           " file '"
        << MARK << "' that has to say so cannot be made in '" << folder.string()
        << "': " << strerror(errno)
        << ". Make that folder writable, or set innodb_use_atomic_writes = "
           "OFF.";
  }
}

bool doublewrite_copy_is_stale(const unsigned char *copy) {
  static const bool can_be = is_marked();
  /* Known before the first pages are restored, but for those that are the first
  of their file: of the system tablespace's the age cannot be told. */
  return can_be && log_sys != nullptr &&
         doublewrite_copy_is_stale(mach_read_from_8(copy + FIL_PAGE_LSN),
                                   log_sys->last_checkpoint_lsn.load());
}

bool doublewrite_copy_is_newer(const unsigned char *one,
                               const unsigned char *another) {
  return mach_read_from_8(one + FIL_PAGE_LSN) >
         mach_read_from_8(another + FIL_PAGE_LSN);
}

bool doublewrite_copy_may_replace(const unsigned char *copy,
                                  const unsigned char *older) {
  return page_get_space_id(copy) == page_get_space_id(older) &&
         page_get_page_no(copy) == page_get_page_no(older) &&
         doublewrite_copy_is_newer(copy, older) &&
         !doublewrite_copy_is_stale(mach_read_from_8(older + FIL_PAGE_LSN),
                                    log_sys->last_checkpoint_lsn.load());
}

bool doublewrite_v1_can_be_read() {
  const page_id_t page_id{TRX_SYS_SPACE, TRX_SYS_PAGE_NO};
  s_v1_is_due =
      recv_sys->dblwr->find(page_id) != nullptr && is_corrupt(page_id);
  if (s_v1_is_due) {
    ib::info() << "The page of the transaction system is torn; recovery has to"
                  " put its copy from the doublewrite buffer in its place.";
  }
  return !s_v1_is_due;
}

dberr_t doublewrite_v1_read_if_due() {
  return std::exchange(s_v1_is_due, false) ? dblwr::v1::init() : DB_SUCCESS;
}

void atomic_shutdown() {
  namespace fs = std::filesystem;
  const bool has_flushed_all = srv_fast_shutdown < 2 && !srv_read_only_mode &&
                               srv_force_recovery < SRV_FORCE_NO_LOG_REDO;
  if (!has_flushed_all || !is_marked()) {
    return;
  }
  if (!dblwr::is_enabled()) {
    ib::warn() << "innodb_doublewrite is OFF: the doublewrite files are where"
                  " they were, with copies that may be older than their pages,"
                  " and '"
               << MARK
               << "' says so. Start and stop this server once with"
                  " innodb_doublewrite = ON before you start another one than"
                  " Spillway with this data directory.";
    return;
  }
  /* The copies are gone for certain before what says that they are old. */
  std::error_code error;
  const fs::path folder = dblwr::dir;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("#ib_") &&
        (name.ends_with(".dblwr") || name.ends_with(".bdblwr"))) {
      fs::remove(entry->path(), error);
      if (error) {
        break;
      }
    }
  }
  bool is_removed = !error && sync_path(folder, O_RDONLY);
  for (const fs::path &marked : marked_folders()) {
    if (is_removed) {
      fs::remove(marked / MARK, error);
      is_removed = !error && sync_path(marked, O_RDONLY);
    }
  }
  if (!is_removed) {
    ib::warn() << "The doublewrite files in '" << folder.string()
               << "' could not be removed. Remove them before you start another"
                  " server than Spillway with this data directory.";
  }
}

}  // namespace spw
