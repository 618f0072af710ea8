/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file atomic/atomic0file.cc
Atomic writes of data files: the choice of the method, and the writes.

The server chooses the method of a file when it opens the file, and keeps it in
fil_node_t::spw_method until it closes the file: the storage below a closed file
can change before the next open. dblwr::write() uses the method to decide
whether a page has a doublewrite copy (atomic_bypasses_doublewrite()), and
stores the decision in the write request. Fil_shard::do_io(), where the file is
open and pinned, stores the method in the request (Atomic_write_scope); the
functions that submit the request to the kernel act on it.

With AUTO a page of a closed file has a doublewrite copy. It is written
atomically as well, because innodb_doublewrite may keep no copies. With ON such
a page has no copy unless a file was opened without a method: the write opens
the file, and the server stops if the file has no method then. */

#include "atomic/atomic0file.h"

#include <fcntl.h>
#include <libaio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <iterator>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "atomic/atomic0probe.h"
#include "atomic/hook.h"
#include "buf0buf.h"
#include "buf0dblwr.h"
#include "dblwr/dblwr0file.h"
#include "fil0fil.h"
#include "fsp0fsp.h"
#include "mysql/components/services/log_builtins.h"
#include "mysqld_error.h"
#include "os0file.h"
#include "sql/current_thd.h"
#include "sql/sql_error.h"
#include "srv0srv.h"
#include "ut0counting_semaphore.h"
#include "ut0log.h"

namespace spw {

ulong use_atomic_writes = static_cast<ulong>(Atomic_writes::OFF);
bool use_atomic_writes_fs = false;
bool use_fallocate = false;

namespace {

/** The methods as SHOW ENGINE INNODB STATUS and the error log name them. */
constexpr const char *METHOD_NAMES[] = {
    "doublewrite buffer",     "directFS ioctl",
    "device with RWF_ATOMIC", "copy on write with RWF_ATOMIC",
    "file system journal",    "device sector"};
static_assert(std::size(METHOD_NAMES) == static_cast<size_t>(Atomic_method::N));

/** The methods as in the status variables Innodb_atomic_write_files_*. */
constexpr const char *METHOD_SHORT_NAMES[] = {"doublewrite", "ioctl", "rwf",
                                              "rwf_copy",    "fs",    "sector"};
static_assert(std::size(METHOD_SHORT_NAMES) ==
              static_cast<size_t>(Atomic_method::N));

/** Why a file uses the doublewrite buffer; see sentence_of(). */
constexpr const char *REASONS[] = {
    "innodb_use_atomic_writes is OFF",
    "the storage writes pages atomically",
    "one write can contain several pages because innodb_use_native_aio is OFF",
    "the file is not open for direct I/O, check innodb_flush_method",
    "InnoDB does not sync data files with this innodb_flush_method",
    "the file system would copy each page, which on fast storage takes longer"
    " than the doublewrite buffer and needs free space for each write",
    "only the file system's journal would write a page atomically, and"
    " innodb_use_atomic_writes_fs is OFF",
    "a page fits into the device's sector, but the device's driver is not known"
    " to write a sector atomically, and innodb_use_atomic_writes_fs is OFF",
    "the kernel reports atomic writes for the file system, but rejected the"
    " test write",
    "the kernel reports atomic writes for the file system, but the test write"
    " failed",
    "the device could not be examined",
    "the marker file '#spw_atomic_writes' could not be written to the data"
    " directory",
    "the storage does not write a page atomically",
    "the table is page-compressed"};
static_assert(std::size(REASONS) == static_cast<size_t>(Atomic_reason::N));

/** @return whether the doublewrite buffer keeps copies; with DETECT_ONLY it
keeps only what detects a torn page */
bool has_copies() { return dblwr::is_enabled() && !dblwr::is_reduced(); }

/** @return the end of a sentence that advises to use the doublewrite buffer by
another value of innodb_use_atomic_writes */
const char *end_of_advice() {
  return has_copies() ? "." : ", together with innodb_doublewrite = ON.";
}

const char *name_of(Atomic_method method) {
  if (method == Atomic_method::NONE && !has_copies()) {
    return dblwr::is_enabled() ? "none with innodb_doublewrite = DETECT_ONLY"
                               : "none with innodb_doublewrite = OFF";
  }
  return METHOD_NAMES[static_cast<size_t>(method)];
}

std::string kib_text(size_t page_bytes) {
  return std::to_string(page_bytes / 1024) + " KiB";
}

std::string sentence_of(Atomic_reason reason, size_t page_bytes) {
  return reason == Atomic_reason::NOT_ATOMIC
             ? "the storage does not write " + kib_text(page_bytes) +
                   " atomically"
             : REASONS[static_cast<size_t>(reason)];
}

Atomic_writes setting() {
  return srv_read_only_mode ? Atomic_writes::OFF
                            : static_cast<Atomic_writes>(use_atomic_writes);
}

Storage_probe s_probe;

/** Leaf mutex: no other mutex is acquired under it. */
std::mutex s_logged_mutex;

/** What the error log has reported: device, page size, method, reason. */
std::set<std::tuple<dev_t, uint32_t, Atomic_method, Atomic_reason>> s_logged;

std::atomic<uint64_t> s_open_files[static_cast<size_t>(Atomic_method::N)];
std::atomic<uint64_t> s_pages[static_cast<size_t>(Atomic_method::N)];
std::atomic<uint64_t> s_doublewrite_avoided;
std::atomic<uint64_t> s_page_compressed;
std::atomic<uint64_t> s_fallbacks;

/** Max number of writes with RWF_ATOMIC in flight. XFS can deadlock with many
writes that it copies: each reserves up to 1 MB of the XFS journal while it
waits for the file's lock, and the holder of the lock waits for journal space.
Where the device writes pages atomically, XFS still copies the pages that are
not aligned. Source: measured on XFS of Linux 6.18, 370 writes and a journal of
64 MB. */
constexpr uint32_t RWF_MAX = 16;
ut::counting_semaphore s_rwf_permits{RWF_MAX};

/** Method and reason of a file are read without its shard's mutex. */
template <class T>
T load(const T &member) {
  return std::atomic_ref<T>(const_cast<T &>(member))
      .load(std::memory_order_relaxed);
}

template <class T>
void store(T *member, T value) {
  std::atomic_ref<T>(*member).store(value, std::memory_order_relaxed);
}

/** Write a note to the error log that any log_error_verbosity shows. */
void log_note(const std::string &text) {
  LogErr(SYSTEM_LEVEL, ER_LOG_PRINTF_MSG, text.c_str());
}

/** Examine a file's storage and choose its method. If it has one, the marker
file is written. The error log reports each result once for each device and page
size, and every refused file.
@param[in]  file        the file, open as InnoDB will write it
@param[in]  path        its path
@param[in]  page_bytes  its page size
@param[in]  stays_open  see Storage_probe::detect()
@return the decision */
Atomic_output decide(int file, const char *path, uint32_t page_bytes,
                     bool stays_open) {
  struct stat status {};
  fstat(file, &status);

  const Storage_capabilities storage =
      s_probe.detect(file, path, page_bytes, stays_open);
  Atomic_output output =
      choose_atomic_method({.setting = setting(),
                            .accept_unverified = use_atomic_writes_fs,
                            .page_bytes = page_bytes,
                            .is_native_aio = srv_use_native_aio,
                            .is_synced = data_files_are_synced(),
                            .storage = storage});
  int error = output.reason == Atomic_reason::NOT_TRIED      ? storage.rwf_error
              : output.reason == Atomic_reason::NOT_EXAMINED ? storage.error
                                                             : 0;
  if (output.method != Atomic_method::NONE) {
    if (const int failure = dblwr_write_marker(); failure != 0) {
      output = {Atomic_method::NONE, false, Atomic_reason::NO_MARKER};
      error = failure;
    }
  }
  std::unique_lock lock{s_logged_mutex};
  const bool is_new =
      s_logged.emplace(status.st_dev, page_bytes, output.method, output.reason)
          .second;
  lock.unlock();

  std::string why = sentence_of(output.reason, page_bytes);
  if (error != 0) {
    why += std::string(": ") + strerror(error);
  }
  if (output.is_refused) {
    ib::error() << "innodb_use_atomic_writes = ON: '" << path
                << "' cannot be used because its " << kib_text(page_bytes)
                << " pages would not be written atomically: " << why
                << ". Set innodb_use_atomic_writes = AUTO to use the"
                   " doublewrite buffer for it"
                << end_of_advice();
  } else if (is_new && output.method == Atomic_method::RWF_COPY) {
    ib::warn() << "'" << path << "' and other files on its file system, "
               << kib_text(page_bytes) << " pages: torn-page protection by "
               << name_of(output.method)
               << (output.reason == Atomic_reason::ATOMIC ? ""
                                                          : " (" + why + ")")
               << ", doublewrite buffer bypassed. This is not for production:"
                  " a full disk stops the server, and on fast storage writes"
                  " take longer than with the doublewrite buffer. Set"
                  " innodb_use_atomic_writes = AUTO to use the doublewrite"
                  " buffer for these files"
               << end_of_advice();
  } else if (is_new) {
    const std::string what =
        std::string("'") + path + "' and other files on its file system, " +
        kib_text(page_bytes) + " pages: torn-page protection" +
        (output.method == Atomic_method::NONE ? ": " : " by the ") +
        name_of(output.method);
    log_note(output.reason == Atomic_reason::ATOMIC
                 ? what + ", doublewrite buffer bypassed."
                 : what + " (" + why + ").");
  }
  return output;
}

/** The server creates temporary tablespaces anew at each start, so that they
need no protection against torn pages.
@param[in]  space_id  the tablespace's ID
@return whether it is a temporary tablespace */
bool is_temporary(space_id_t space_id) {
  return fsp_is_system_temporary(space_id);
}

/** ALTER TABLE can change page compression while the file is open. The caller
holds the shard's mutex.
@param[in]  file  an open file
@return the decision as users see it */
Atomic_output shown(const fil_node_t *file) {
  return as_shown({file->spw_method, false, file->spw_reason},
                  file->space->is_compressed());
}

/** @param[in]  file  a file descriptor
@return the file's path, as the kernel reports it */
std::string path_of(int file) {
  char path[OS_FILE_MAX_PATH];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t n_bytes = readlink(link.c_str(), path, sizeof(path));
  return {path, static_cast<size_t>(std::max<ssize_t>(n_bytes, 0))};
}

/** Stop the server, because a page that has no doublewrite copy may be torn.
@param[in]  path  the page's file
@param[in]  what  what happened, for the error log */
[[noreturn]] void abort_server(const char *path, const std::string &what) {
  ib::fatal(UT_LOCATION_HERE)
      << "A page of '" << path << "' cannot be written atomically: " << what
      << ". The server stops because the doublewrite buffer has no copy of the"
         " page. Restart the server: it examines the storage again. Set"
         " innodb_use_atomic_writes = OFF to use the doublewrite buffer for"
         " all files"
      << end_of_advice();
}

constexpr const char *REJECTED = "the kernel rejected the atomic write";
constexpr const char *SHORT_WRITE = "the kernel wrote only a part of it";

/** A write with RWF_ATOMIC has failed. Stop the server if the kernel rejected
it, or if the disk is full: InnoDB cannot continue without writing the page.
@param[in]  error  errno
@param[in]  path   the file */
void abort_if_unrecoverable(int error, const char *path) {
  if (is_rejection(error)) {
    abort_server(path, REJECTED);
  }
  if (error == ENOSPC || error == EDQUOT) {
    ib::fatal(UT_LOCATION_HERE)
        << "A page of '" << path
        << "' could not be written: " << strerror(error)
        << ". Overwriting a page with RWF_ATOMIC by copy on write needs free"
           " space, too. The server stops. No page is damaged, and the page's"
           " changes are in the redo log, unless the redo log is disabled. Free"
           " disk space and restart the server.";
  }
}

/** @param[in]  control  a native AIO request
@return whether it has RWF_ATOMIC */
bool is_rwf(const iocb *control) {
  return (control->aio_rw_flags & ATOMIC_RWF) != 0;
}

}  // namespace

bool atomic_start(ulong *flush_method, const char *doublewrite_folder) {
  if (srv_read_only_mode &&
      use_atomic_writes != static_cast<ulong>(Atomic_writes::OFF)) {
    log_note(
        "innodb_use_atomic_writes is ignored: a read-only server does not write"
        " data files.");
  }
  if (use_atomic_writes_fs && setting() == Atomic_writes::OFF) {
    ib::warn() << "innodb_use_atomic_writes_fs has no effect while"
                  " innodb_use_atomic_writes is OFF, or with innodb_read_only.";
  }
  if (setting() == Atomic_writes::ON) {
    if (*flush_method != SRV_UNIX_O_DIRECT) {
      ib::warn() << "innodb_use_atomic_writes = ON: the server changed"
                    " innodb_flush_method to O_DIRECT"
                 << (*flush_method == SRV_UNIX_O_DIRECT_NO_FSYNC
                         ? " because a file system's atomic write is durable"
                           " only after the file is synced."
                         : ".");
      *flush_method = SRV_UNIX_O_DIRECT;
    }
    if (has_copies()) {
      log_note(
          "innodb_use_atomic_writes = ON: only page-compressed tables use the"
          " doublewrite buffer.");
    }
    if (!use_fallocate) {
      log_note(
          "innodb_use_atomic_writes = ON: the server changed"
          " innodb_use_fallocate to ON.");
      use_fallocate = true;
    }
  }
  if (setting() != Atomic_writes::OFF && !has_copies()) {
    ib::warn()
        << "innodb_doublewrite = " << dblwr::Mode::to_string(dblwr::g_mode)
        << ": torn pages cannot be repaired in "
        << (setting() == Atomic_writes::AUTO
                ? "files on storage that does not write pages atomically, and"
                  " in page-compressed tables"
                : "page-compressed tables")
        << ". Set innodb_doublewrite = ON to protect them; it costs nothing for"
           " other files.";
  }
  if (use_fallocate && *flush_method == SRV_UNIX_O_DIRECT_NO_FSYNC) {
    ib::warn() << "The server changed innodb_use_fallocate to OFF because"
                  " innodb_flush_method is O_DIRECT_NO_FSYNC: a page that is"
                  " written to space without zeros is durable only after the"
                  " file is synced. Set innodb_flush_method = O_DIRECT to use"
                  " innodb_use_fallocate.";
    use_fallocate = false;
  }
  if (use_fallocate) {
    tbsp_extend_and_initialize = false;
  }
  return dblwr_start(doublewrite_folder, syncs_data_files(*flush_method));
}

dberr_t atomic_may_use(const char *path, space_id_t space_id, uint32_t flags) {
  if (setting() == Atomic_writes::OFF || is_temporary(space_id)) {
    return DB_SUCCESS;
  }
  const auto page_bytes = static_cast<uint32_t>(page_size_t(flags).physical());
  if (setting() == Atomic_writes::AUTO && s_probe.is_fresh(path, page_bytes)) {
    return DB_SUCCESS;
  }
  /* Examine the device, and write the marker file, now, while no mutex of the
  files is held. With AUTO atomic_file_opened() decides. */
  const int direct =
      srv_unix_file_flush_method == SRV_UNIX_O_DIRECT ||
              srv_unix_file_flush_method == SRV_UNIX_O_DIRECT_NO_FSYNC
          ? O_DIRECT
          : 0;
  int file = open(path, O_RDWR | direct | O_CLOEXEC);
  if (file < 0 && errno == EINVAL) {
    /* Without direct I/O in the file system InnoDB uses the page cache, too. */
    file = open(path, O_RDWR | O_CLOEXEC);
  }
  if (file < 0) {
    /* The caller opens the file next and reports the error. */
    return DB_SUCCESS;
  }
  const Atomic_output output = decide(file, path, page_bytes, false);
  close(file);

  if (!output.is_refused) {
    return DB_SUCCESS;
  }
  if (THD *const thd = current_thd; thd != nullptr) {
    push_warning_printf(thd, Sql_condition::SL_WARNING, ER_WRONG_ARGUMENTS,
                        "InnoDB: '%s' cannot be used with"
                        " innodb_use_atomic_writes = ON because its %s pages"
                        " would not be written atomically: %s. Set"
                        " innodb_use_atomic_writes = AUTO to use the"
                        " doublewrite buffer for it%s",
                        path, kib_text(page_bytes).c_str(),
                        sentence_of(output.reason, page_bytes).c_str(),
                        end_of_advice());
  }
  return DB_UNSUPPORTED;
}

dberr_t atomic_may_use_undo(const char *path, uint32_t space_id) {
  return atomic_may_use(
      path, space_id,
      fsp_flags_init(univ_page_size, false, false, false, false));
}

bool atomic_may_use_system(const char *path, const fil_space_t *space) {
  return (space->id != TRX_SYS_SPACE && !fsp_is_undo_tablespace(space->id)) ||
         atomic_may_use(path, space->id, space->flags) == DB_SUCCESS;
}

void atomic_file_opened(fil_node_t *file) {
  if (setting() == Atomic_writes::OFF || is_temporary(file->space->id)) {
    return;
  }

  const Atomic_output output =
      decide(file->handle.m_file, file->name,
             page_size_t(file->space->flags).physical(), true);
  if (output.is_refused) {
    ib::fatal(UT_LOCATION_HERE)
        << "The server has to open '" << file->name
        << "', but innodb_use_atomic_writes is ON and the file's pages would"
           " not be written atomically. The server stops. Restart it with"
           " innodb_use_atomic_writes = AUTO, or move the file to storage that"
           " writes its pages atomically.";
  }
  if (output.method == Atomic_method::NONE) {
    s_fallbacks.fetch_add(1, std::memory_order_relaxed);
  }
  s_open_files[static_cast<size_t>(output.method)].fetch_add(
      1, std::memory_order_relaxed);
  store(&file->spw_reason, output.reason);
  store(&file->spw_method, output.method);
}

void atomic_file_closes(fil_node_t *file) {
  /* atomic_file_opened() stores a reason other than OFF. */
  if (file->spw_reason != Atomic_reason::OFF) {
    s_probe.closes(file->handle.m_file);
    s_open_files[static_cast<size_t>(file->spw_method)].fetch_sub(
        1, std::memory_order_relaxed);
    store(&file->spw_method, Atomic_method::NONE);
    store(&file->spw_reason, Atomic_reason::OFF);
  }
}

bool atomic_bypasses_doublewrite(const buf_page_t *page) {
  if (setting() == Atomic_writes::OFF || is_temporary(page->id.space())) {
    return false;
  }

  fil_space_t *const space = page->get_space();
  page_no_t page_no = page->page_no();
  const fil_node_t *const file = space->get_file_node(&page_no);
  const Atomic_method method = load(file->spw_method);
  const bool expects_method = load(file->spw_reason) == Atomic_reason::OFF &&
                              s_fallbacks.load(std::memory_order_relaxed) == 0;
  const auto bypasses = [&](bool is_page_compressed) {
    return may_bypass_doublewrite(setting(), method, expects_method,
                                  has_copies(), is_page_compressed);
  };
  const bool is_page_compressed = space->is_compressed();
  if (is_page_compressed && bypasses(false)) {
    s_page_compressed.fetch_add(1, std::memory_order_relaxed);
  }
  return bypasses(is_page_compressed);
}

Atomic_write_scope::Atomic_write_scope(IORequest *request,
                                       const fil_node_t *file,
                                       size_t page_bytes, size_t n_bytes,
                                       bool is_page, bool is_sync)
    : m_has_permit(false) {
  if (setting() == Atomic_writes::OFF || !is_page || !request->is_write()) {
    return;
  }

  const Atomic_method method = load(file->spw_method);
  if (request->m_spw_bypass) {
    if (method == Atomic_method::NONE) {
      abort_server(file->name,
                   "the file has no atomic write method now (" +
                       sentence_of(load(file->spw_reason), page_bytes) + ")");
    }
    /* ALTER TABLE may have made the table page-compressed meanwhile. */
    request->clear_compressed();
    if (dblwr::is_enabled()) {
      s_doublewrite_avoided.fetch_add(1, std::memory_order_relaxed);
    }
  }
  if (!is_atomic_write(method, request->is_compressed(), n_bytes, page_bytes)) {
    return;
  }

  request->m_spw_method = method;
  if (needs_rwf(method)) {
    s_rwf_permits.acquire([] {});
    m_has_permit = is_sync;
  }
  s_pages[static_cast<size_t>(method)].fetch_add(1, std::memory_order_relaxed);
}

Atomic_write_scope::~Atomic_write_scope() {
  if (m_has_permit) {
    s_rwf_permits.release();
  }
}

void atomic_prepare(const IORequest &request, iocb *control) {
  if (needs_rwf(request.m_spw_method)) {
    control->aio_rw_flags = ATOMIC_RWF;
  }
}

void atomic_completed(const iocb *control) {
  if (is_rwf(control)) {
    s_rwf_permits.release();
  }
}

void atomic_failed(const IORequest &request, int error, const char *path) {
  if (needs_rwf(request.m_spw_method)) {
    abort_if_unrecoverable(error, path);
  }
}

void atomic_resubmitted(const IORequest &request, const char *path) {
  if (request.m_spw_method != Atomic_method::NONE) {
    abort_server(path, SHORT_WRITE);
  }
}

void atomic_write_with_method(const IORequest &request, int file, void *buffer,
                              size_t n_bytes, uint64_t offset,
                              ssize_t *n_written) {
  const Atomic_method method = request.m_spw_method;
  const iovec vector = {buffer, n_bytes};
  *n_written = pwritev2(file, &vector, 1, static_cast<off_t>(offset),
                        needs_rwf(method) ? ATOMIC_RWF : 0);
  if (*n_written < 0 && needs_rwf(method)) {
    const int error = errno;
    abort_if_unrecoverable(error, path_of(file).c_str());
    errno = error;
  }
  if (*n_written >= 0 && static_cast<size_t>(*n_written) != n_bytes) {
    abort_server(path_of(file).c_str(), SHORT_WRITE);
  }
}

Atomic_stats atomic_stats() {
  Atomic_stats stats{};
  for (size_t i = 0; i < std::size(stats.pages); ++i) {
    stats.pages[i] = s_pages[i].load(std::memory_order_relaxed);
  }
  stats.doublewrite_avoided =
      s_doublewrite_avoided.load(std::memory_order_relaxed);
  stats.page_compressed = s_page_compressed.load(std::memory_order_relaxed);
  stats.fallbacks = s_fallbacks.load(std::memory_order_relaxed);
  for (size_t i = 0; i < std::size(stats.files); ++i) {
    stats.files[i] = s_open_files[i].load(std::memory_order_relaxed);
  }
  return stats;
}

std::vector<Atomic_file> atomic_files() {
  std::vector<Atomic_file> files;
  if (setting() == Atomic_writes::OFF) {
    return files;
  }
  Fil_iterator::for_each_file([&files](const fil_node_t *file) {
    if (file->spw_reason != Atomic_reason::OFF) {
      const Atomic_output output = shown(file);
      const bool is_none = output.method == Atomic_method::NONE;
      const auto page_bytes =
          static_cast<uint32_t>(page_size_t(file->space->flags).physical());
      files.push_back(
          {file->space->id, file->name, page_bytes,
           is_none && !has_copies()
               ? "none"
               : METHOD_SHORT_NAMES[static_cast<size_t>(output.method)],
           name_of(output.method), !is_none,
           output.reason == Atomic_reason::ATOMIC
               ? ""
               : sentence_of(output.reason, page_bytes)});
    }
    return DB_SUCCESS;
  });
  std::sort(files.begin(), files.end(),
            [](const auto &one, const auto &another) {
              return one.path < another.path;
            });
  return files;
}

void atomic_print(FILE *file) {
  if (setting() == Atomic_writes::OFF) {
    return;
  }
  const Atomic_stats stats = atomic_stats();

  fprintf(file, "%-32s%14s%14s\n", "Torn-page protection", "open files",
          "pages");
  for (size_t i = 0; i < std::size(stats.files); ++i) {
    if (static_cast<Atomic_method>(i) == Atomic_method::NONE) {
      fprintf(file, "  %-30s%14" PRIu64 "%14s\n", name_of(Atomic_method::NONE),
              stats.files[i], "-");
    } else if (stats.files[i] != 0 || stats.pages[i] != 0) {
      fprintf(file, "  %-30s%14" PRIu64 "%14" PRIu64 "\n", METHOD_NAMES[i],
              stats.files[i], stats.pages[i]);
    }
  }

  fprintf(file,
          "Doublewrite buffer: %" PRIu64 " pages bypassed it, %" PRIu64
          " page-compressed pages did not; %" PRIu64
          " files opened without atomic writes\n",
          stats.doublewrite_avoided, stats.page_compressed, stats.fallbacks);

  const std::vector<Atomic_file> files = atomic_files();
  /* Files with doublewrite copies first, because they cost. */
  for (const bool is_atomic : {false, true}) {
    constexpr size_t N_NAMED = 100;
    size_t n_files = 0;
    for (const Atomic_file &open : files) {
      if (open.is_atomic == is_atomic && ++n_files <= N_NAMED) {
        const std::string reason =
            open.reason.empty() ? "" : " (" + open.reason + ")";
        fprintf(file, "  '%s': %s%s\n", open.path.c_str(), open.name,
                reason.c_str());
      }
    }
    if (n_files > N_NAMED) {
      fprintf(file,
              "  and %zu more files: %s;"
              " INFORMATION_SCHEMA.INNODB_ATOMIC_WRITE_FILES lists all\n",
              n_files - N_NAMED,
              is_atomic ? "written atomically" : name_of(Atomic_method::NONE));
    }
  }
}

}  // namespace spw
