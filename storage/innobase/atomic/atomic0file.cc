/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file atomic/atomic0file.cc
Which data files are written without the doublewrite buffer, and their writes.

A page that is written without needs that its write is whole. So whether it is
(Atomic_page) holds for one call of dblwr::write() in one thread, in which the
write is handed to the kernel, and is verified with the file open and pinned
(Atomic_request). What is known of a file is known as long as it is open: the
storage below a closed file may be another when it is opened again. With AUTO a
page of a file that is closed goes through the doublewrite buffer; as
innodb_doublewrite may have no copies, it is written whole, too. With ON it goes
without: the write opens the file, and ends the server if its pages are not
whole any more. */

#include "atomic0file.h"

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
#include <semaphore>
#include <set>
#include <shared_mutex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "atomic0probe.h"
#include "buf0buf.h"
#include "buf0dblwr.h"
#include "fil0fil.h"
#include "fsp0fsp.h"
#include "mysql/components/services/log_builtins.h"
#include "mysqld_error.h"
#include "os0file.h"
#include "spw0hook.h"
#include "sql/current_thd.h"
#include "sql/sql_error.h"
#include "srv0srv.h"
#include "ut0log.h"

namespace spw {

ulong use_atomic_writes = static_cast<ulong>(Atomic_writes::OFF);
bool use_atomic_writes_fs = false;
bool use_fallocate = false;

namespace {

/** What makes pages whole, as the monitor and the error log name it. */
constexpr const char *MEANS[] = {
    "the doublewrite buffer",    "directFS's ioctl",
    "RWF_ATOMIC, by the device", "RWF_ATOMIC, by copy on write",
    "the file system by itself", "the device's sector"};
static_assert(std::size(MEANS) == static_cast<size_t>(Atomic_means::N));

/** As the status variables name it: Innodb_atomic_write_files_*. */
constexpr const char *SHORT_MEANS[] = {"doublewrite", "ioctl", "rwf",
                                       "rwf_copy",    "fs",    "sector"};
static_assert(std::size(SHORT_MEANS) == static_cast<size_t>(Atomic_means::N));

/** Why, where it is the doublewrite buffer. */
constexpr const char *REASONS[] = {
    "innodb_use_atomic_writes is OFF",
    "its writes are whole",
    "without native AIO a write can be of several pages"
    " (innodb_use_native_aio)",
    "it is not open for direct I/O (innodb_flush_method)",
    "what its file system makes whole is durable only when it is synced"
    " (innodb_flush_method = O_DIRECT_NO_FSYNC)",
    "its file system would copy each page, which on fast storage takes longer"
    " than to write it twice; innodb_use_atomic_writes = ON takes it",
    "it has only what its file system does by itself, and"
    " innodb_use_atomic_writes_fs is OFF",
    "the kernel says that its file system takes whole writes, and rejected one",
    "its file system may take whole writes, but none could be written to try "
    "it",
    "its storage does not write whole pages of that size",
    "it is page-compressed"};
static_assert(std::size(REASONS) == static_cast<size_t>(Atomic_reason::N));

/** @return whether the doublewrite buffer has copies, and not only what tells
that a page is torn */
bool has_copies() { return dblwr::is_enabled() && !dblwr::is_reduced(); }

/** @return the end of a sentence that says that pages go through the
doublewrite buffer with another innodb_use_atomic_writes */
const char *unless_off() {
  return has_copies() ? "." : ", if innodb_doublewrite is ON.";
}

const char *name_of(Atomic_means means) {
  if (means == Atomic_means::NONE && !has_copies()) {
    return dblwr::is_enabled() ? "nothing (innodb_doublewrite is DETECT_ONLY)"
                               : "nothing (innodb_doublewrite is OFF)";
  }
  return MEANS[static_cast<size_t>(means)];
}

const char *sentence_of(Atomic_reason reason) {
  return REASONS[static_cast<size_t>(reason)];
}

Atomic_writes setting() {
  return srv_read_only_mode ? Atomic_writes::OFF
                            : static_cast<Atomic_writes>(use_atomic_writes);
}

/** @return whether innodb_flush_method has data files synced when pages have
been written to them */
bool is_synced() {
  return srv_unix_file_flush_method != SRV_UNIX_O_DIRECT_NO_FSYNC &&
         srv_unix_file_flush_method != SRV_UNIX_NOSYNC;
}

/** Leaf: nothing of InnoDB is called under these. */
std::mutex s_prober_mutex;
Atomic_prober s_prober;

/** What the error log has said: device, page size, means, reason. */
std::set<std::tuple<dev_t, uint32_t, Atomic_means, Atomic_reason>> s_said;

std::shared_mutex s_files_mutex;

struct Open_file {
  Atomic_output output;
  space_id_t space_id;
  uint32_t page_bytes;
  std::string path;
};

/** Of the files that are open. */
std::unordered_map<const fil_node_t *, Open_file> s_files;

std::atomic<uint64_t> s_pages[static_cast<size_t>(Atomic_means::N)];
std::atomic<uint64_t> s_doublewrite_avoided;
std::atomic<uint64_t> s_page_compressed;
std::atomic<uint64_t> s_fallbacks;

/** Writes with RWF_ATOMIC that are under way, at most. XFS of Linux 6.18 comes
to a standstill with many that it copies, as each holds room in its journal
while it waits for the file's lock, and who has the lock waits for room: seen
with 370, and a journal of 64 MB. Each may take a megabyte of that. Also where
the device makes pages whole, XFS copies those that do not lie as it needs. */
constexpr ptrdiff_t MOST_RWF = 16;
std::counting_semaphore<MOST_RWF> s_rwf{MOST_RWF};

/** The page that this thread writes without the doublewrite buffer; see
Atomic_page. */
thread_local const buf_page_t *t_page = nullptr;

/** What makes the writes of this thread's request whole, also when they are
tried again; NONE without Atomic_request. And its file. */
thread_local Atomic_means t_means = Atomic_means::NONE;
thread_local const char *t_path = nullptr;

/** This thread has one of s_rwf, which goes over to a request that the kernel
has taken. */
thread_local bool t_has_one = false;

/** Say something in the error log that is no warning, with any
log_error_verbosity. */
void note(const std::string &text) {
  LogErr(SYSTEM_LEVEL, ER_LOG_PRINTF_MSG, text.c_str());
}

/** Find out how a file's pages are written, and decide; the error log says it
once for each kind.
@param[in]  file        the file, open as it will be written
@param[in]  path        its path
@param[in]  page_bytes  its pages
@return the decision */
Atomic_output decide(int file, const char *path, uint32_t page_bytes) {
  struct stat status {};
  fstat(file, &status);

  std::unique_lock lock{s_prober_mutex};
  const Atomic_findings found = s_prober.find(file, path, page_bytes);
  const Atomic_output output =
      decide_atomic_means({.setting = setting(),
                           .file_system_is_enough = use_atomic_writes_fs,
                           .page_bytes = page_bytes,
                           .is_native_aio = srv_use_native_aio,
                           .is_synced = is_synced(),
                           .found = found});
  const bool is_new =
      s_said.emplace(status.st_dev, page_bytes, output.means, output.reason)
          .second;
  lock.unlock();

  std::string why = sentence_of(output.reason);
  if (output.reason == Atomic_reason::NOT_TRIED) {
    why += std::string(" (") + strerror(found.rwf_error) + ")";
  }
  if (output.is_refused) {
    ib::error() << "innodb_use_atomic_writes = ON: '" << path
                << "' cannot be used, as its pages of " << page_bytes
                << " bytes would not be written whole: " << why
                << ". AUTO uses the doublewrite buffer for it" << unless_off();
  } else if (is_new && output.means == Atomic_means::RWF_COPY) {
    ib::warn() << "'" << path << "' and what else is on its file system, pages"
               << " of " << page_bytes << " bytes: made whole by "
               << name_of(output.means) << ". On fast storage that has been two"
               << " to three times as slow as the doublewrite buffer.";
  } else if (is_new) {
    const std::string what =
        std::string("'") + path +
        "' and what else is on its file system, pages of " +
        std::to_string(page_bytes) + " bytes: made whole by " +
        name_of(output.means);
    note(output.means != Atomic_means::NONE
             ? what + ", without the doublewrite buffer."
             : what + ", as " + why + ".");
  }
  return output;
}

/** Whether a tablespace has no pages that a torn write could harm: it is made
anew when the server starts.
@param[in]  space_id  the tablespace
@return whether it is one for temporary tables */
bool is_temporary(space_id_t space_id) {
  return fsp_is_system_temporary(space_id);
}

/** @param[in]  file  a file
@return what makes its pages whole; NONE if it is not open */
Atomic_means means_of(const fil_node_t *file) {
  std::shared_lock lock{s_files_mutex};
  const auto found = s_files.find(file);
  return found == s_files.end() ? Atomic_means::NONE
                                : found->second.output.means;
}

/** @param[in]  node  a file that is open; s_files_mutex is held, so that it is
not closed, and its tablespace is there
@param[in]  file  what is known of it
@return what is to be said of it; ALTER TABLE changes whether it is
page-compressed while it is open */
Atomic_output seen(const fil_node_t *node, const Open_file &file) {
  return as_seen(file.output, node->space->is_compressed());
}

/** @return what is to be said of the open files, in the order of their paths */
std::vector<Open_file> open_files() {
  std::vector<Open_file> files;
  {
    std::shared_lock lock{s_files_mutex};
    for (const auto &[node, file] : s_files) {
      files.push_back(file);
      files.back().output = seen(node, file);
    }
  }
  std::sort(files.begin(), files.end(),
            [](const auto &one, const auto &another) {
              return one.path < another.path;
            });
  return files;
}

/** The storage does not do what it did: stop, as a page may be torn. */
[[noreturn]] void fail(const char *path, const char *what) {
  ib::fatal(UT_LOCATION_HERE)
      << "A page of '" << path << "' was to be written whole, and " << what
      << ". The storage below has changed. The server stops, as the page is not"
         " in the doublewrite buffer. Start it again: it finds out what the"
         " storage does now; with innodb_use_atomic_writes = OFF it uses the"
         " doublewrite buffer for all files"
      << unless_off();
}

constexpr const char *REJECTED = "the kernel has rejected it";
constexpr const char *IN_PART = "the kernel has written a part of it";

/** A write with RWF_ATOMIC has failed: stop if it was rejected; and if there
is no room, as InnoDB cannot go on without a page that is to be written.
@param[in]  error  errno
@param[in]  path   the file */
void stop_if_hopeless(int error, const char *path) {
  if (is_rejection(error)) {
    fail(path, REJECTED);
  }
  if (error == ENOSPC || error == EDQUOT) {
    ib::fatal(UT_LOCATION_HERE)
        << "A page of '" << path
        << "' could not be written: " << strerror(error)
        << ". Where RWF_ATOMIC is by copy on write, also a page that is"
           " overwritten needs room. The server stops; no page is damaged, and"
           " its changes are in the redo log, unless that is disabled. Make"
           " room, and start it again.";
  }
}

/** @param[in]  control  a request of native AIO
@return whether it has RWF_ATOMIC */
bool is_rwf(const iocb *control) {
  return (control->aio_rw_flags & ATOMIC_RWF) != 0;
}

}  // namespace

void atomic_start(ulong *flush_method, const char *doublewrite_folder) {
  doublewrite_start(doublewrite_folder);
  if (srv_read_only_mode &&
      use_atomic_writes != static_cast<ulong>(Atomic_writes::OFF)) {
    note("innodb_use_atomic_writes: a read-only server writes no data files.");
  }
  if (setting() == Atomic_writes::ON) {
    if (*flush_method != SRV_UNIX_O_DIRECT) {
      ib::warn() << "innodb_use_atomic_writes = ON: innodb_flush_method is"
                    " O_DIRECT instead"
                 << (*flush_method == SRV_UNIX_O_DIRECT_NO_FSYNC
                         ? ", as what a file system makes whole is durable only"
                           " when the file is synced."
                         : ".");
      *flush_method = SRV_UNIX_O_DIRECT;
    }
    if (has_copies()) {
      note(
          "innodb_use_atomic_writes = ON: the doublewrite buffer is used for"
          " page-compressed tables only.");
    }
    if (!use_fallocate) {
      note("innodb_use_atomic_writes = ON: innodb_use_fallocate is ON.");
      use_fallocate = true;
    }
  }
  if (setting() != Atomic_writes::OFF && !has_copies()) {
    ib::warn()
        << "innodb_doublewrite = " << dblwr::Mode::to_string(dblwr::g_mode)
        << ": "
        << (setting() == Atomic_writes::AUTO
                ? "where innodb_use_atomic_writes finds nothing that makes"
                  " pages whole, and for page-compressed tables,"
                : "for page-compressed tables")
        << " there are no copies of torn pages. innodb_doublewrite = ON keeps"
           " them there, and costs nothing elsewhere.";
  }
  if (use_fallocate && *flush_method == SRV_UNIX_O_DIRECT_NO_FSYNC) {
    ib::warn() << "innodb_use_fallocate is OFF, as innodb_flush_method is"
                  " O_DIRECT_NO_FSYNC: pages that are written to space without"
                  " zeros are durable only when the file is synced.";
    use_fallocate = false;
  }
  if (use_fallocate) {
    tbsp_extend_and_initialize = false;
  }
}

dberr_t atomic_may_use(const char *path, space_id_t space_id, uint32_t flags) {
  if (setting() != Atomic_writes::ON || is_temporary(space_id)) {
    return DB_SUCCESS;
  }

  int file = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
  if (file < 0 && errno == EINVAL) {
    /* A file system without direct I/O: InnoDB does without, too. */
    file = open(path, O_RDWR | O_CLOEXEC);
  }
  if (file < 0) {
    /* Whoever is about to open it says why. */
    return DB_SUCCESS;
  }
  const Atomic_output output =
      decide(file, path, page_size_t(flags).physical());
  close(file);

  if (!output.is_refused) {
    return DB_SUCCESS;
  }
  if (THD *const thd = current_thd; thd != nullptr) {
    push_warning_printf(thd, Sql_condition::SL_WARNING, ER_WRONG_ARGUMENTS,
                        "InnoDB: innodb_use_atomic_writes is ON, and pages of"
                        " '%s' would not be written whole: %s. AUTO uses the"
                        " doublewrite buffer for it%s",
                        path, sentence_of(output.reason), unless_off());
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

void atomic_file_opened(const fil_node_t *file) {
  if (setting() == Atomic_writes::OFF || is_temporary(file->space->id)) {
    return;
  }

  const uint32_t page_bytes = page_size_t(file->space->flags).physical();
  const Atomic_output output =
      decide(file->handle.m_file, file->name, page_bytes);
  if (output.is_refused) {
    ib::fatal(UT_LOCATION_HERE)
        << "The server stops, as it has to write to '" << file->name
        << "', innodb_use_atomic_writes is ON, and the pages would not be"
           " written whole. Start it with AUTO, or with that file on storage"
           " that writes whole pages.";
  }
  if (output.means == Atomic_means::NONE) {
    s_fallbacks.fetch_add(1, std::memory_order_relaxed);
  }
  if (output.means != Atomic_means::NONE || !has_copies()) {
    static std::once_flag is_marked_once;
    std::call_once(is_marked_once, doublewrite_mark);
  }
  std::unique_lock lock{s_files_mutex};
  s_files.insert_or_assign(
      file, Open_file{output, file->space->id, page_bytes, file->name});
}

void atomic_file_closed(const fil_node_t *file) {
  if (setting() != Atomic_writes::OFF) {
    std::unique_lock lock{s_files_mutex};
    s_files.erase(file);
  }
}

Atomic_page::Atomic_page(const buf_page_t *page) {
  ut_ad(t_page == nullptr);
  if (setting() == Atomic_writes::OFF || is_temporary(page->id.space())) {
    return;
  }

  fil_space_t *const space = page->get_space();
  page_no_t page_no = page->page_no();
  const Atomic_means means = means_of(space->get_file_node(&page_no));
  if (page_goes_without(setting(), means, space->is_compressed())) {
    t_page = page;
  } else if (page_goes_without(setting(), means, false)) {
    s_page_compressed.fetch_add(1, std::memory_order_relaxed);
  }
}

Atomic_page::~Atomic_page() { t_page = nullptr; }

bool Atomic_page::is_written_whole() const { return t_page != nullptr; }

Atomic_request::Atomic_request(IORequest *request, const fil_node_t *file,
                               const void *page) {
  ut_ad(t_means == Atomic_means::NONE);
  if (setting() == Atomic_writes::OFF || page == nullptr ||
      !request->is_write()) {
    return;
  }

  const Atomic_means means = means_of(file);
  if (t_page == page) {
    if (means == Atomic_means::NONE) {
      fail(file->name,
           "its file was closed and opened again, and cannot be now");
    }
    /* Its table may have become page-compressed meanwhile. */
    request->clear_compressed();
    if (dblwr::is_enabled()) {
      s_doublewrite_avoided.fetch_add(1, std::memory_order_relaxed);
    }
  } else if (!page_is_written_whole(means, request->is_compressed())) {
    return;
  }

  t_means = means;
  t_path = file->name;
  if (needs_rwf(means)) {
    s_rwf.acquire();
    t_has_one = true;
  }
  s_pages[static_cast<size_t>(means)].fetch_add(1, std::memory_order_relaxed);
}

Atomic_request::~Atomic_request() {
  t_means = Atomic_means::NONE;
  if (std::exchange(t_has_one, false)) {
    s_rwf.release();
  }
}

void atomic_prepare(iocb *control) {
  if (needs_rwf(t_means)) {
    control->aio_rw_flags = ATOMIC_RWF;
    /* Once it is submitted it can be done at any moment, and atomic_completed()
    gives it back. */
    t_has_one = false;
  }
}

void atomic_not_submitted(const iocb *control, int error, const char *path) {
  if (is_rwf(control)) {
    t_has_one = true;
  }
  atomic_failed(control, error, path);
}

void atomic_completed(const iocb *control) {
  if (is_rwf(control)) {
    s_rwf.release();
  }
}

void atomic_failed(const iocb *control, int error, const char *path) {
  if (is_rwf(control)) {
    stop_if_hopeless(error, path);
  }
}

void atomic_resubmitted(const IORequest &request, const fil_node_t *file) {
  if (page_is_written_whole(means_of(file), request.is_compressed())) {
    fail(file->name, IN_PART);
  }
}

bool atomic_write(int file, void *buffer, size_t n_bytes, uint64_t offset,
                  ssize_t *n_written) {
  if (t_means == Atomic_means::NONE) {
    return false;
  }
  const iovec vector = {buffer, n_bytes};
  *n_written = pwritev2(file, &vector, 1, static_cast<off_t>(offset),
                        needs_rwf(t_means) ? ATOMIC_RWF : 0);
  const int error = errno;
  if (std::exchange(t_has_one, false)) {
    s_rwf.release();
  }
  errno = error;
  if (*n_written < 0 && needs_rwf(t_means)) {
    stop_if_hopeless(error, t_path);
  }
  if (*n_written >= 0 && static_cast<size_t>(*n_written) != n_bytes) {
    fail(t_path, IN_PART);
  }
  return true;
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
  std::shared_lock lock{s_files_mutex};
  for (const auto &[node, file] : s_files) {
    ++stats.files[static_cast<size_t>(seen(node, file).means)];
  }
  return stats;
}

std::vector<Atomic_file> atomic_files() {
  std::vector<Atomic_file> files;
  for (const auto &[output, space_id, page_bytes, path] : open_files()) {
    const bool is_none = output.means == Atomic_means::NONE;
    files.push_back({space_id, path, page_bytes,
                     is_none && !has_copies()
                         ? "none"
                         : SHORT_MEANS[static_cast<size_t>(output.means)],
                     is_none ? sentence_of(output.reason) : ""});
  }
  return files;
}

void atomic_print(FILE *file) {
  if (setting() == Atomic_writes::OFF) {
    return;
  }
  const Atomic_stats stats = atomic_stats();

  fprintf(file, "%-32s%14s%14s\n", "Pages are made whole by", "open files",
          "pages");
  for (size_t i = 0; i < std::size(stats.files); ++i) {
    if (static_cast<Atomic_means>(i) == Atomic_means::NONE) {
      fprintf(file, "  %-30s%14" PRIu64 "%14s\n", name_of(Atomic_means::NONE),
              stats.files[i], "-");
    } else if (stats.files[i] != 0 || stats.pages[i] != 0) {
      fprintf(file, "  %-30s%14" PRIu64 "%14" PRIu64 "\n", MEANS[i],
              stats.files[i], stats.pages[i]);
    }
  }

  fprintf(file,
          "Pages that did not go through the doublewrite buffer %" PRIu64
          ", that did as they are page-compressed %" PRIu64
          "; files opened that are not written whole %" PRIu64 "\n",
          stats.doublewrite_avoided, stats.page_compressed, stats.fallbacks);

  const std::vector<Open_file> files = open_files();
  /* What is not whole first, as it is what costs. */
  for (const bool is_whole : {false, true}) {
    constexpr size_t N_NAMED = 100;
    size_t n_files = 0;
    for (const auto &[output, space_id, page_bytes, path] : files) {
      if ((output.means != Atomic_means::NONE) != is_whole ||
          ++n_files > N_NAMED) {
        continue;
      }
      fprintf(file, "  %s: %s%s%s\n", path.c_str(), name_of(output.means),
              is_whole ? "" : ", as ",
              is_whole ? "" : sentence_of(output.reason));
    }
    if (n_files > N_NAMED) {
      fprintf(file,
              "  and %zu other files: %s;"
              " INFORMATION_SCHEMA.INNODB_ATOMIC_WRITE_FILES has all\n",
              n_files - N_NAMED,
              is_whole ? "whole" : name_of(Atomic_means::NONE));
    }
  }
}

}  // namespace spw
