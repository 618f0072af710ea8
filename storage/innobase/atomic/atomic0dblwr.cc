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
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

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

/** A file in the data directory, which is the current one, while doublewrite
files may have copies of pages that were written without them since. Each of its
lines names a folder of such files. It is there before the first such write, and
goes with the copies at a clean shutdown. */
constexpr const char *MARK = "#spw_atomic_writes";

/** Where doublewrite files are, or would be with innodb_doublewrite = OFF. Set
before InnoDB starts. */
std::string s_folder{"."};

/** Of the copies of the system tablespace's first page that recovery has looked
at, as that was torn, the newest; 0 if it was not. */
lsn_t s_first_page_lsn = 0;

/** dblwr::v1::init() is due when the redo log has been applied. */
bool s_v1_is_due = false;

/** @return whether copies in the doublewrite files may be of an earlier write
than the page's last */
bool is_marked() {
  std::error_code error;
  return std::filesystem::exists(MARK, error) || error;
}

/** @return the folders that the mark names */
std::vector<std::string> marked_folders() {
  std::vector<std::string> folders;
  std::ifstream file{MARK};
  for (std::string folder; std::getline(file, folder);) {
    /* Else it is a line that a power cut has left without its end. */
    if (folder.ends_with('/')) {
      folder.pop_back();
      folders.push_back(folder);
    }
  }
  return folders;
}

/** @param[in]  copy  a page of the doublewrite buffer, that has univ_page_size
@return whether it is torn itself, as far as that can be told: the first page of
a data file, whose size and checksum are in the page */
bool first_page_is_torn(const unsigned char *copy) {
  if (page_get_page_no(copy) != 0) {
    return false;
  }
  /* What is torn at a sector has these in the first. A place that was never
  written to looks like the system tablespace's first page, of zeros. */
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

/** @param[in]  path   a folder
@return whether it was synced; if not, errno says why */
bool sync_folder(const std::string &path) {
  const int file = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) {
    return false;
  }
  const bool is_synced = fsync(file) == 0;
  close(file);
  return is_synced;
}

/** Add a line to the mark, if it does not have it, and make it if there is
none. What it has may not be durable yet.
@param[in]  folder  what the line names
@return whether it is durable; if not, errno says why */
bool write_mark(const std::string &folder) {
  const auto folders = marked_folders();
  const bool is_named =
      std::find(folders.begin(), folders.end(), folder) != folders.end();
  const std::string line = is_named ? "" : "\n" + folder + "/\n";
  const int file = open(MARK, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (file < 0) {
    return false;
  }
  const auto n_bytes = static_cast<ssize_t>(line.size());
  const bool is_written =
      write(file, line.data(), line.size()) == n_bytes && fsync(file) == 0;
  close(file);
  return is_written && sync_folder(".");
}

/** @param[in]   folder  a folder
@param[out]  error   why it could not be read to its end
@return the doublewrite files in it of servers with this size of a page: those
of others can share the folder, as the size is in the name */
std::vector<std::filesystem::path> doublewrite_files(const std::string &folder,
                                                     std::error_code &error) {
  std::vector<std::filesystem::path> files;
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("#ib_" + std::to_string(srv_page_size) + "_") &&
        (name.ends_with(".dblwr") || name.ends_with(".bdblwr"))) {
      files.push_back(entry->path());
    }
  }
  return files;
}

/** @return behind the last place in the redo log's files, as they are when
recovery begins; 0 if it is not known */
lsn_t redo_end() {
  /* Of files from before MySQL 8.0.30 only a clean shutdown is taken. */
  static const lsn_t end =
      log_sys->m_files_ctx.m_files_ruleset == Log_files_ruleset::CURRENT &&
              log_sys->m_files.begin() != log_sys->m_files.end()
          ? log_sys->m_files.back().m_end_lsn
          : 0;
  return end;
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

void doublewrite_start(const char *folder) {
  if (folder == nullptr || *folder == '\0') {
    return;
  }
  const bool is_path = *folder == '#' || *folder == '.' || *folder == '/';
  s_folder = is_path ? folder : std::string("#") + folder;
}

void doublewrite_mark() {
  if (!write_mark(s_folder)) {
    ib::fatal(UT_LOCATION_HERE)
        << "Pages are to be written without the doublewrite buffer, and the"
           " file '"
        << MARK
        << "' that has to say so cannot be written in the data directory: "
        << strerror(errno)
        << ". Make that writable, or set innodb_use_atomic_writes = OFF.";
  }
}

bool doublewrite_copy_is_unusable(const unsigned char *copy) {
  static std::atomic<bool> can_be_stale = is_marked();
  const lsn_t lsn = mach_read_from_8(copy + FIL_PAGE_LSN);
  /* The redo log is known before the first pages are restored, but for the
  first of the system tablespace: of that one the age cannot be told. */
  if (log_sys == nullptr) {
    s_first_page_lsn = std::max(s_first_page_lsn, lsn);
    return false;
  }
  if (doublewrite_copy_is_foreign(lsn, redo_end())) {
    /* Another server has written to these files since, and where the page's
    newest copy was. */
    can_be_stale = true;
    static std::once_flag is_said;
    std::call_once(is_said, [copy, lsn] {
      ib::warn() << "Copies in the doublewrite files are not used, as they are"
                    " newer than the redo log, and so of another data directory"
                    " or of this one before it was made anew."
                    " The first is of "
                 << page_id_t{page_get_space_id(copy), page_get_page_no(copy)}
                 << ", LSN " << lsn << "; the redo log's files end at "
                 << redo_end() << ".";
    });
    return true;
  }
  return can_be_stale &&
         doublewrite_copy_is_stale(lsn, log_sys->last_checkpoint_lsn.load());
}

bool doublewrite_copy_is_newer(const unsigned char *one,
                               const unsigned char *another) {
  return mach_read_from_8(one + FIL_PAGE_LSN) >
         mach_read_from_8(another + FIL_PAGE_LSN);
}

bool doublewrite_is_page(const unsigned char *copy, uint32_t space_id,
                         uint32_t page_no) {
  return page_get_space_id(copy) == space_id &&
         page_get_page_no(copy) == page_no;
}

bool doublewrite_copy_may_replace(const unsigned char *copy,
                                  const unsigned char *older) {
  /* Of the system tablespace's first page it is not known yet. */
  return doublewrite_is_page(older, page_get_space_id(copy),
                             page_get_page_no(copy)) &&
         log_sys != nullptr &&
         !doublewrite_copy_is_stale(mach_read_from_8(older + FIL_PAGE_LSN),
                                    log_sys->last_checkpoint_lsn.load());
}

const unsigned char *doublewrite_newest_whole(
    std::vector<const unsigned char *> copies) {
  std::stable_sort(copies.begin(), copies.end(), doublewrite_copy_is_newer);
  const unsigned char *torn = nullptr;
  /* From the newest on: one of another data directory makes that others are not
  usable. */
  for (const auto *copy : copies) {
    if (doublewrite_copy_is_unusable(copy)) {
      continue;
    }
    if (first_page_is_torn(copy)) {
      torn = torn == nullptr ? copy : torn;
    } else if (torn == nullptr || !doublewrite_copy_is_newer(torn, copy) ||
               doublewrite_copy_may_replace(torn, copy)) {
      return copy;
    }
  }
  return nullptr;
}

dberr_t doublewrite_space(const char *path, uint32_t expected, dberr_t error,
                          uint32_t *space_id) {
  auto *const copies = recv_sys->dblwr;
  const bool is_right =
      error == DB_SUCCESS && (expected == *space_id ||
                              copies->find(page_id_t{*space_id, 0}) != nullptr);
  if (is_right || copies->find(page_id_t{expected, 0}) == nullptr) {
    return error;
  }
  std::array<byte, FIL_PAGE_DATA> header{};
  std::ifstream file{path, std::ios::binary};
  if (!file.read(reinterpret_cast<char *>(header.data()), header.size()) ||
      mach_read_from_4(header.data() + FIL_PAGE_SPACE_ID) != expected) {
    return error;
  }
  ib::info() << "The first page of '" << path << "' is torn. It names"
             << " tablespace " << expected << ", of which there is a copy in"
             << " the doublewrite files.";
  *space_id = expected;
  return DB_SUCCESS;
}

bool doublewrite_v1_can_be_read() {
  if (doublewrite_copy_is_foreign(s_first_page_lsn, redo_end())) {
    ib::fatal(UT_LOCATION_HERE)
        << "The first page of the system tablespace was torn, and has been"
           " restored from a copy in the doublewrite files that is newer than"
           " the redo log (LSN "
        << s_first_page_lsn << "; the redo log's files end at " << redo_end()
        << "): of another data directory, or of this one before it was made"
           " anew. Restore the data directory from a backup.";
  }
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
  /* The copies are gone for certain before what says that they are old. */
  bool is_clean = true;
  for (const std::string &folder : marked_folders()) {
    std::error_code error;
    const auto files = doublewrite_files(folder, error);
    if (error) {
      /* It may be on a disk that is not mounted. */
      ib::warn() << "'" << folder << "', which innodb_doublewrite_dir has been,"
                 << " cannot be read (" << error.message() << "), and may have"
                 << " doublewrite files with copies that are older than their"
                    " pages. '"
                 << MARK
                 << "' in the data directory says so; if the folder is gone for"
                    " good, remove its line there.";
      is_clean = false;
      continue;
    }
    if (files.empty()) {
      continue;
    }
    if (!std::filesystem::equivalent(folder, s_folder, error)) {
      /* Another server may have it by now, as where this data directory is a
      copy. */
      ib::warn() << "innodb_doublewrite_dir has been '" << folder
                 << "', and the doublewrite files there have copies that may be"
                    " older than their pages. Remove these files, if no other"
                    " server uses them. Until then '"
                 << MARK << "' in the data directory says so.";
      is_clean = false;
      continue;
    }
    const bool is_removed =
        std::all_of(files.begin(), files.end(),
                    [&error](const auto &file) {
                      return std::filesystem::remove(file, error);
                    }) &&
        sync_folder(folder);
    if (!is_removed) {
      ib::warn() << "The doublewrite files in '" << folder
                 << "' could not be removed. Remove them before you start"
                    " another server than Spillway with this data directory.";
      is_clean = false;
    }
  }
  std::error_code error;
  if (is_clean && !(std::filesystem::remove(MARK, error) && sync_folder("."))) {
    ib::warn() << "'" << MARK
               << "' could not be removed from the data directory. There are no"
                  " old doublewrite files any more: remove it.";
  }
}

}  // namespace spw
