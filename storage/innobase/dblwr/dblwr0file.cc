/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file dblwr/dblwr0file.cc
The doublewrite files: syncing new files, syncing before the pages are written
if innodb_doublewrite_fsync is set, and clearing copies that could be older than
their pages, or of another database.

The copies are cleared at each start, when recovery has flushed and synced all
pages. The marker file exists in the data directory from the first page that is
written without a copy until the next clearing, which can also be at a clean
shutdown. The line CLEARED in it records that the copies were cleared before.
While this line exists, recovery uses no copy from before the checkpoint
(dblwr_copy_is_stale()). Invariant: all copies are then of servers whose
checkpoints sync the data files, as that rule requires. A server whose
checkpoints do not sync removes the marker file when it starts.

This code opens files that InnoDB has open, and never closes them: closing any
descriptor of a file releases all locks of the process on the file, and a second
server could then start (fcntl(2)). */

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/base0sysfs.h"
#include "buf0dblwr.h"
#include "dblwr/dblwr0file.h"
#include "dblwr/hook.h"
#include "fil0fil.h"
#include "log0recv.h"
#include "os0file.h"
#include "srv0srv.h"
#include "ut0log.h"

namespace spw {

bool doublewrite_fsync = false;

namespace {

/** In the data directory, which is the working directory. */
constexpr const char *MARKER_FILE = "#spw_atomic_writes";

/** Lines of the marker file. */
constexpr const char *UNUSABLE_PAGE = "a page is unusable";
constexpr const char *CLEARED = "copies of before are cleared";
constexpr const char *CLEARED_LINE = "copies of before are cleared\n";

/** Folder of the doublewrite files, also with innodb_doublewrite = OFF. This
and the next six variables are set before InnoDB starts. */
std::string s_folder{"."};

bool s_marker_existed = false;

/** The marker file had the line UNUSABLE_PAGE. */
bool s_has_unusable_page = false;

/** The marker file exists and could not be read: it stays. */
bool s_marker_is_unknown = false;

/** The marker file has to be removed, because this server does not sync its
data files; and it had the line CLEARED. */
bool s_marker_is_wrong = false;
bool s_rule_is_wrong = false;

/** The marker file had the line CLEARED; see dblwr_only_newest_is_usable(). */
bool s_copies_were_cleared = false;

/** This server has cleared the copies: a marker file that it creates gets the
line CLEARED. */
std::atomic<bool> s_has_cleared_copies{false};

/** The marker file exists and is durable. */
std::atomic<bool> s_marker_is_durable{false};

/** Numbers of the doublewrite files that this server has open, and writes.
Startup runs in one thread. */
std::set<int> s_open_files;

/** @param[in]  path  a folder
@return 0 if the folder was synced; else errno */
int sync_folder(const std::string &path) {
  const int file = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) {
    return errno;
  }
  const int error = fsync(file) == 0 ? 0 : errno;
  close(file);
  return error;
}

/** Append to the marker file; create it if it does not exist.
@param[in]  text  text to append; may be empty
@return 0 if the marker file is durable; else errno */
int append_to_marker(const std::string &text) {
  const int file =
      open(MARKER_FILE, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (file < 0) {
    return errno;
  }
  int error = 0;
  if (write(file, text.data(), text.size()) !=
      static_cast<ssize_t>(text.size())) {
    error = errno != 0 ? errno : EIO;
  } else if (fsync(file) != 0) {
    error = errno;
  }
  close(file);
  return error != 0 ? error : sync_folder(".");
}

/** Overwrite a file with zeros. The descriptor stays open.
@return 0 if the zeros are durable; EBUSY if another server has the file open;
else errno */
int clear(const std::filesystem::path &path) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) {
    return errno;
  }
  /* With innodb_doublewrite = OFF InnoDB has not locked it for this server. */
  struct flock lock {};
  lock.l_type = F_WRLCK;
  if (fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK) {
    return EBUSY;
  }
  static constexpr size_t CHUNK_BYTES = 1024 * 1024;
  static const std::vector<char> zeros(CHUNK_BYTES);
  struct stat status;
  int error = fstat(file, &status) == 0 ? 0 : errno;
  for (off_t offset = 0; error == 0 && offset < status.st_size;) {
    const auto n_bytes = std::min<off_t>(CHUNK_BYTES, status.st_size - offset);
    const ssize_t n_written =
        pwrite(file, zeros.data(), static_cast<size_t>(n_bytes), offset);
    error = n_written < 0 ? errno : 0;
    offset += std::max<ssize_t>(n_written, 0);
  }
  if (error == 0 && fsync(file) != 0) {
    error = errno;
  }
  return error;
}

/** @return the begin of the names of this server's doublewrite files */
std::string name_begin() {
  return "#ib_" + std::to_string(srv_page_size) + "_";
}

/** Clear the doublewrite files of this server's page size, which is in their
names; the folder can also have those of another server. A missing file has no
copies.
@return whether no copy is left; if one is, the error log reports why */
bool clear_copies() {
  namespace fs = std::filesystem;
  const std::string begin = name_begin();
  std::error_code failure;
  for (fs::directory_iterator entry{s_folder, failure};
       !failure && entry != fs::directory_iterator();
       entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(begin) &&
        (name.ends_with(".dblwr") || name.ends_with(".bdblwr"))) {
      if (const int error = clear(entry->path()); error != 0) {
        ib::warn() << "The doublewrite file '" << entry->path().string()
                   << "' could not be cleared: "
                   << (error == EBUSY ? "another server has it open"
                                      : strerror(error))
                   << ". The server keeps its copies, which can become older"
                      " than their pages. Remove the cause and restart this"
                      " server before you start another server on this data"
                      " directory.";
        return false;
      }
    }
  }
  if (failure && failure != std::errc::no_such_file_or_directory) {
    ib::warn() << "The doublewrite files in '" << s_folder
               << "' could not be cleared: " << failure.message()
               << ". The server keeps their copies, which can become older than"
                  " their pages. Remove the cause and restart the server.";
    return false;
  }
  return true;
}

/** @param[in]  path  a file
@return its number if InnoDB takes it for a doublewrite file with copies of
pages of this server's size; else -1 */
int number_of_file(const std::filesystem::path &path) {
  const std::string name = path.filename().string();
  const std::string begin = name_begin();
  const std::string number =
      name.starts_with(begin) ? path.stem().string().substr(begin.size()) : "";
  const bool is_number =
      !number.empty() &&
      number.find_first_not_of("0123456789") == std::string::npos;
  return is_number && path.extension() == ".dblwr" ? atoi(number.c_str()) : -1;
}

/** Append the copies of a doublewrite file to another file.
@param[in]      path   the doublewrite file
@param[in]      to     descriptor of the other file
@param[in,out]  known  hashes of the copies that the other file has
@return 0; else errno */
int append_copies(const std::filesystem::path &path, int to,
                  std::set<size_t> *known) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return errno;
  }
  std::string page(srv_page_size, '\0');
  const std::string zeros = page;
  int error = 0;
  for (off_t offset = 0; error == 0; offset += srv_page_size) {
    const ssize_t n_read = pread(file, page.data(), page.size(), offset);
    if (n_read != static_cast<ssize_t>(page.size())) {
      /* The end, or a part of a page, which InnoDB does not load. */
      error = n_read < 0 ? errno : 0;
      break;
    }
    if (page != zeros && known->insert(std::hash<std::string>{}(page)).second) {
      const ssize_t n_written = write(to, page.data(), page.size());
      if (n_written != static_cast<ssize_t>(page.size())) {
        error = n_written < 0 ? errno : ENOSPC;
      }
    }
  }
  if (s_open_files.count(number_of_file(path)) == 0) {
    close(file);
  }
  return error;
}

/** Write all copies of the doublewrite files into one more.
@param[in]  path  the file; replaced if it exists
@return 0 if the file is durable, or there are no copies; else errno */
int write_kept(const std::string &path) {
  /* InnoDB does not load a file of this name. */
  const std::string unfinished = s_folder + "/" + name_begin() + "new";
  const int to =
      open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
  if (to < 0) {
    return errno;
  }
  std::set<size_t> known;
  int error = 0;
  std::error_code failure;
  for (std::filesystem::directory_iterator entry{s_folder, failure};
       error == 0 && !failure && entry != std::filesystem::directory_iterator();
       entry.increment(failure)) {
    if (number_of_file(entry->path()) >= 0) {
      error = append_copies(entry->path(), to, &known);
    }
  }
  if (error == 0 && failure) {
    error = failure.value();
  }
  if (error == 0 && fsync(to) != 0) {
    error = errno;
  }
  close(to);
  if (error != 0 || known.empty()) {
    unlink(unfinished.c_str());
    return error;
  }
  if (rename(unfinished.c_str(), path.c_str()) != 0) {
    return errno;
  }
  return sync_folder(s_folder);
}

/** Remove the doublewrite files that this server does not use, such as that of
dblwr_keep_copies(): recovery has ended. */
void remove_unused_files() {
  if (s_open_files.empty()) {
    return;
  }
  /* The highest number first: InnoDB accepts no gap. */
  std::map<int, std::string, std::greater<>> unused;
  std::error_code failure;
  for (std::filesystem::directory_iterator entry{s_folder, failure};
       !failure && entry != std::filesystem::directory_iterator();
       entry.increment(failure)) {
    const int number = number_of_file(entry->path());
    if (number > *s_open_files.rbegin()) {
      unused[number] = entry->path().string();
    }
  }
  for (const auto &[number, path] : unused) {
    if (unlink(path.c_str()) != 0 || sync_folder(s_folder) != 0) {
      ib::warn() << "The doublewrite file '" << path
                 << "' could not be removed: " << strerror(errno)
                 << ". It is not needed. Remove it while the server is down.";
    }
  }
}

/** Read the marker file. A folder in its place says nothing.
@return false if it exists and cannot be read; the error log says why */
bool read_marker() {
  int error = 0;
  const auto text = read_text(MARKER_FILE, &error);
  s_marker_existed = text || error != 0;
  if (error != 0 && error != EISDIR) {
    s_marker_is_unknown = true;
    ib::error() << "The marker file '" << MARKER_FILE
                << "' in the data directory cannot be read: " << strerror(error)
                << ". It says which doublewrite copies recovery can use, and"
                   " whether a page is unusable. Give the server's user access"
                   " to the file, or remove another cause.";
    return false;
  }
  std::istringstream lines{text.value_or("")};
  for (std::string line; std::getline(lines, line);) {
    s_has_unusable_page |= line == UNUSABLE_PAGE;
    s_copies_were_cleared |= line == CLEARED;
  }
  return true;
}

/** Remove the marker file, because the copies are cleared or do not need it.
@return 0 if it is durably removed; else errno, and there is a warning */
int remove_marker() {
  if (s_marker_is_unknown) {
    return 0;
  }
  std::error_code failure;
  std::filesystem::remove(MARKER_FILE, failure);
  const int error = failure ? failure.value() : sync_folder(".");
  if (error != 0) {
    ib::warn() << "The marker file '" << MARKER_FILE
               << "' could not be removed from the data directory: "
               << strerror(error) << ". Remove the file.";
  }
  return error;
}

/** Sync all data files that recovery has opened. The server before could have
written a page and ended before it synced the file. Recovery finds the page up
to date, does not write it again, and InnoDB does not sync the file: a power cut
could take the page when its redo and its copy are gone. Called while no other
thread runs; an open file stays open. */
void sync_data_files() {
  (void)Fil_iterator::for_each_file([](const fil_node_t *node) {
    const int file = node->is_open ? int{node->handle.m_file}
                                   : open(node->name, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fsync(file) != 0) {
      ib::fatal(UT_LOCATION_HERE)
          << "'" << node->name
          << "' could not be synced after recovery: " << strerror(errno)
          << ". The server stops, and the redo log and the doublewrite copies"
             " stay as they are. Remove the cause and restart the server; after"
             " an I/O error, restart the machine.";
    }
    if (!node->is_open) {
      close(file);
    }
    return DB_SUCCESS;
  });
}

}  // namespace

bool dblwr_start(const char *folder, bool is_synced) {
  if (folder != nullptr && *folder != '\0') {
    const bool is_path = *folder == '#' || *folder == '.' || *folder == '/';
    s_folder = is_path ? folder : std::string("#") + folder;
  }
  if (!read_marker() && !srv_read_only_mode) {
    if (srv_force_recovery == 0) {
      ib::error()
          << "The server does not start, and nothing was changed. With"
             " innodb_force_recovery it starts without the file, to dump"
             " data.";
      return false;
    }
    if (!is_synced) {
      ib::error() << "The server does not start, and nothing was changed: with"
                     " this innodb_flush_method the file would have to be"
                     " removed. Set innodb_flush_method = O_DIRECT.";
      return false;
    }
  }
  if (!is_synced) {
    s_marker_is_wrong =
        s_marker_existed && !srv_read_only_mode && !s_has_unusable_page;
    s_rule_is_wrong = s_marker_is_wrong && s_copies_were_cleared;
    s_marker_existed = s_copies_were_cleared = false;
  }
  return true;
}

void dblwr_remove_wrong_marker() {
  if (s_marker_is_wrong && remove_marker() != 0 && s_rule_is_wrong) {
    ib::fatal(UT_LOCATION_HERE)
        << "The marker file says that each doublewrite copy from before a"
           " checkpoint is too old. That is not so for the copies of a server"
           " with this innodb_flush_method, and after its crash a later start"
           " would ignore copies that it needs. The server stops. Remove the"
           " cause that is named above, or set innodb_flush_method = O_DIRECT.";
  }
}

bool syncs_data_files(unsigned long flush_method) {
  return flush_method != SRV_UNIX_O_DIRECT_NO_FSYNC &&
         flush_method != SRV_UNIX_NOSYNC;
}

bool data_files_are_synced() {
  return syncs_data_files(srv_unix_file_flush_method);
}

int dblwr_write_marker() {
  if (s_marker_is_durable.load()) {
    return 0;
  }
  const int error =
      append_to_marker(s_has_cleared_copies.load() ? CLEARED_LINE : "");
  s_marker_is_durable.store(error == 0);
  return error;
}

bool dblwr_only_newest_is_usable() {
  return s_copies_were_cleared && data_files_are_synced();
}

void dblwr_record_unusable_page() {
  if (const int error = append_to_marker(std::string(UNUSABLE_PAGE) + "\n");
      error != 0) {
    ib::error() << "The marker file '" << MARKER_FILE
                << "' could not be written: " << strerror(error)
                << ". Do not start the server again, except with"
                   " innodb_force_recovery to dump data: a later start does not"
                   " detect that a page is unusable. Restore the data directory"
                   " from a backup.";
  }
}

bool dblwr_has_unusable_page() { return s_has_unusable_page; }

bool dblwr_needs_fsync() { return doublewrite_fsync; }

void dblwr_sync_file(int file, const std::string &path) {
  if (srv_read_only_mode) {
    return;
  }
  if (const int number = number_of_file(path); number >= 0) {
    s_open_files.insert(number);
  }
  const size_t slash = path.rfind('/');
  int error = fsync(file) == 0 ? 0 : errno;
  if (error == 0) {
    error = sync_folder(slash == std::string::npos ? "."
                                                   : path.substr(0, slash + 1));
  }
  if (error != 0) {
    ib::fatal(UT_LOCATION_HERE)
        << "The doublewrite file '" << path
        << "' could not be synced: " << strerror(error)
        << ". The server stops because a power cut could tear pages that have"
           " no durable copy. Remove the cause and start the server again. Keep"
           " innodb_doublewrite_dir: after a crash recovery needs the copies in"
           " its files.";
  }
}

void dblwr_keep_copies() {
  /* With innodb_doublewrite = OFF InnoDB loads no copies. */
  if (s_open_files.empty()) {
    return;
  }
  /* The first number that this server does not use, or the last file's: it can
  be that of a recovery that did not end. InnoDB accepts no gap. */
  int number = *s_open_files.rbegin() + 1;
  std::error_code failure;
  for (std::filesystem::directory_iterator entry{s_folder, failure};
       !failure && entry != std::filesystem::directory_iterator();
       entry.increment(failure)) {
    number = std::max(number, number_of_file(entry->path()));
  }
  const std::string path =
      s_folder + "/" + name_begin() + std::to_string(number) + ".dblwr";
  const int error = failure ? failure.value() : write_kept(path);
  if (error == 0) {
    return;
  }
  const std::string what = "The doublewrite copies could not be written to '" +
                           path + "': " + strerror(error) +
                           ". Recovery overwrites them in the other doublewrite"
                           " files, and after a power cut during this recovery"
                           " they would be missing.";
  if (error == ENOSPC || error == EDQUOT || srv_force_recovery != 0) {
    ib::warn() << what << " Recovery continues.";
  } else {
    ib::fatal(UT_LOCATION_HERE)
        << what
        << " The server stops before recovery has changed anything. Remove the"
           " cause and start the server again. With innodb_force_recovery it"
           " starts without the file.";
  }
}

void dblwr_recovered() {
  if (recv_needed_recovery && srv_unix_file_flush_method != SRV_UNIX_NOSYNC) {
    sync_data_files();
  }
  if (recv_needed_recovery || data_files_are_synced()) {
    remove_unused_files();
  }
  /* Without syncs of data files a later recovery may need the copies. */
  if (!data_files_are_synced()) {
    return;
  }
  if (!clear_copies()) {
    return;
  }
  s_has_cleared_copies.store(true);
  if (!s_marker_is_durable.load()) {
    if (s_marker_existed) {
      (void)remove_marker();
    }
  } else if (const int error = append_to_marker(CLEARED_LINE); error != 0) {
    /* Without the line CLEARED recovery uses all copies, as in stock MySQL. */
    ib::warn()
        << "The marker file '" << MARKER_FILE
        << "' could not be written: " << strerror(error)
        << ". The next recovery can use doublewrite copies that are older"
           " than their pages. Remove the cause and restart the server.";
  }
}

void dblwr_shutdown() {
  const bool has_flushed_all =
      srv_fast_shutdown < 2 && !srv_read_only_mode && srv_force_recovery == 0;
  std::error_code failure;
  if (has_flushed_all && std::filesystem::exists(MARKER_FILE, failure) &&
      clear_copies()) {
    (void)remove_marker();
  }
}

}  // namespace spw
