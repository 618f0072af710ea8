/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file atomic/atomic0file.cc
Which data files are written without the doublewrite buffer, and their writes.

What makes a file's pages whole is found out when it is opened, and kept with it
(fil_node_t::spw_means) until it is closed: the storage below a closed file may
be another when it is opened again. dblwr::write() decides by that whether a
page has a copy (atomic_bypasses_doublewrite()), and the request of its write
says so. Fil_shard::do_io(), in which the file is open and pinned, marks the
request with what makes it whole (Atomic_write_scope), and what hands it to the
kernel acts on the mark. With AUTO a page of a file that is closed has a copy;
as innodb_doublewrite may make none, it is written whole, too. With ON it has
none: the write opens the file, and ends the server if its pages are not whole
any more. */

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
    "with this flush method InnoDB does not sync data files"
    " (innodb_flush_method)",
    "its file system would copy each page, which on fast storage takes longer"
    " than to write it twice; innodb_use_atomic_writes = ON takes it",
    "it has only what its file system does by itself, and"
    " innodb_use_atomic_writes_fs is OFF",
    "a page fits into the device's sector, but the device's driver is not known"
    " to write that as a whole, and innodb_use_atomic_writes_fs is OFF",
    "the kernel says that its file system takes whole writes, and rejected one",
    "its file system takes whole writes, but none could be written to try it",
    "its device could not be examined",
    "the file '#spw_atomic_writes' could not be written in the data directory",
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

Atomic_prober s_prober;

/** Leaf: nothing is called under it. */
std::mutex s_said_mutex;

/** What the error log has said: device, page size, means, reason. */
std::set<std::tuple<dev_t, uint32_t, Atomic_means, Atomic_reason>> s_said;

std::atomic<uint64_t> s_open_files[static_cast<size_t>(Atomic_means::N)];
std::atomic<uint64_t> s_pages[static_cast<size_t>(Atomic_means::N)];
std::atomic<uint64_t> s_doublewrite_avoided;
std::atomic<uint64_t> s_page_compressed;
std::atomic<uint64_t> s_fallbacks;

/** Writes with RWF_ATOMIC that are under way, at most. XFS of Linux 6.18 comes
to a standstill with many that it copies, as each holds room in its journal
while it waits for the file's lock, and who has the lock waits for room: seen
with 370, and a journal of 64 MB. Each may take a megabyte of that. Also where
the device makes pages whole, XFS copies those that do not lie as it needs. */
constexpr uint32_t RWF_MAX = 16;
ut::counting_semaphore s_rwf_permits{RWF_MAX};

/** What is kept with a file is read without its shard's mutex. */
template <class T>
T load(const T &member) {
  return std::atomic_ref<T>(const_cast<T &>(member))
      .load(std::memory_order_relaxed);
}

template <class T>
void store(T *member, T value) {
  std::atomic_ref<T>(*member).store(value, std::memory_order_relaxed);
}

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
@param[in]  stays_open  as Atomic_prober::find() has it
@return the decision */
Atomic_output decide(int file, const char *path, uint32_t page_bytes,
                     bool stays_open) {
  struct stat status {};
  fstat(file, &status);

  const Atomic_findings found =
      s_prober.find(file, path, page_bytes, stays_open);
  Atomic_output output =
      decide_atomic_means({.setting = setting(),
                           .file_system_is_enough = use_atomic_writes_fs,
                           .page_bytes = page_bytes,
                           .is_native_aio = srv_use_native_aio,
                           .is_synced = data_files_are_synced(),
                           .found = found});
  int error = output.reason == Atomic_reason::NOT_TRIED      ? found.rwf_error
              : output.reason == Atomic_reason::NOT_EXAMINED ? found.error
                                                             : 0;
  if (output.means != Atomic_means::NONE) {
    if (const int failure = dblwr_write_marker(); failure != 0) {
      output = {Atomic_means::NONE, false, Atomic_reason::NO_MARKER};
      error = failure;
    }
  }
  std::unique_lock lock{s_said_mutex};
  const bool is_new =
      s_said.emplace(status.st_dev, page_bytes, output.means, output.reason)
          .second;
  lock.unlock();

  std::string why = sentence_of(output.reason);
  if (error != 0) {
    why += std::string(" (") + strerror(error) + ")";
  }
  if (output.is_refused) {
    ib::error() << "innodb_use_atomic_writes = ON: '" << path
                << "' cannot be used, as its pages of " << page_bytes
                << " bytes would not be written whole: " << why
                << ". AUTO uses the doublewrite buffer for it" << unless_off();
  } else if (is_new && output.means == Atomic_means::RWF_COPY) {
    ib::warn() << "'" << path << "' and what else is on its file system, pages"
               << " of " << page_bytes << " bytes: made whole by "
               << name_of(output.means)
               << (output.reason == Atomic_reason::WHOLE ? "" : ", as " + why)
               << ". On fast storage that has been two"
               << " to three times as slow as the doublewrite buffer.";
  } else if (is_new) {
    const std::string what =
        std::string("'") + path +
        "' and what else is on its file system, pages of " +
        std::to_string(page_bytes) + " bytes: made whole by " +
        name_of(output.means);
    note(output.reason == Atomic_reason::WHOLE
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

/** @param[in]  file  a file that is open; the mutex of its shard is held
@return what is to be said of it; ALTER TABLE changes whether it is
page-compressed while it is open */
Atomic_output seen(const fil_node_t *file) {
  return as_seen({file->spw_means, false, file->spw_reason},
                 file->space->is_compressed());
}

/** @param[in]  file  a file
@return its path, as the kernel has it */
std::string path_of(int file) {
  char path[OS_FILE_MAX_PATH];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t n_bytes = readlink(link.c_str(), path, sizeof(path));
  return {path, static_cast<size_t>(std::max<ssize_t>(n_bytes, 0))};
}

/** Stop, as a page that has no copy may be torn.
@param[in]  path  its file
@param[in]  what  has happened */
[[noreturn]] void fail(const char *path, const std::string &what) {
  ib::fatal(UT_LOCATION_HERE)
      << "A page of '" << path << "' was to be written whole, and " << what
      << ". The server stops, as the page is not in the doublewrite buffer."
         " Start it again: it finds out what the storage does now; with"
         " innodb_use_atomic_writes = OFF it uses the doublewrite buffer for"
         " all files"
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
  dblwr_start(doublewrite_folder, setting() != Atomic_writes::OFF);
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
  if (!syncs_data_files(*flush_method)) {
    dblwr_without_sync();
  }
}

dberr_t atomic_may_use(const char *path, space_id_t space_id, uint32_t flags) {
  if (setting() == Atomic_writes::OFF || is_temporary(space_id)) {
    return DB_SUCCESS;
  }
  const auto page_bytes = static_cast<uint32_t>(page_size_t(flags).physical());
  if (setting() == Atomic_writes::AUTO) {
    /* The device is examined now, as no mutex is held; atomic_file_opened()
    decides. */
    struct stat status;
    if (stat(path, &status) == 0 && !s_prober.is_known(status.st_dev)) {
      if (const int file = open(path, O_RDWR | O_CLOEXEC); file >= 0) {
        static_cast<void>(s_prober.find(file, path, page_bytes));
        close(file);
      }
    }
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
  const Atomic_output output = decide(file, path, page_bytes, false);
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

void atomic_file_opened(fil_node_t *file) {
  if (setting() == Atomic_writes::OFF || is_temporary(file->space->id)) {
    return;
  }

  const Atomic_output output =
      decide(file->handle.m_file, file->name,
             page_size_t(file->space->flags).physical(), true);
  if (output.is_refused) {
    ib::fatal(UT_LOCATION_HERE)
        << "The server stops, as it has to open '" << file->name
        << "', innodb_use_atomic_writes is ON, and the pages would not be"
           " written whole. Start it with AUTO, or with that file on storage"
           " that writes whole pages.";
  }
  if (output.means == Atomic_means::NONE) {
    s_fallbacks.fetch_add(1, std::memory_order_relaxed);
  }
  s_open_files[static_cast<size_t>(output.means)].fetch_add(
      1, std::memory_order_relaxed);
  store(&file->spw_reason, output.reason);
  store(&file->spw_means, output.means);
}

void atomic_file_closes(fil_node_t *file) {
  /* Of a file that atomic_file_opened() knows the reason is another. */
  if (file->spw_reason != Atomic_reason::OFF) {
    s_prober.closes(file->handle.m_file);
    s_open_files[static_cast<size_t>(file->spw_means)].fetch_sub(
        1, std::memory_order_relaxed);
    store(&file->spw_means, Atomic_means::NONE);
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
  const Atomic_means means = load(file->spw_means);
  const bool is_open = load(file->spw_reason) != Atomic_reason::OFF;
  const auto goes_without = [&](bool is_page_compressed) {
    return page_goes_without(setting(), means, is_open, has_copies(),
                             is_page_compressed);
  };
  const bool is_page_compressed = space->is_compressed();
  if (is_page_compressed && goes_without(false)) {
    s_page_compressed.fetch_add(1, std::memory_order_relaxed);
  }
  return goes_without(is_page_compressed);
}

Atomic_write_scope::Atomic_write_scope(IORequest *request,
                                       const fil_node_t *file,
                                       size_t page_bytes, size_t n_bytes,
                                       bool is_page, bool is_sync)
    : m_has_permit(false) {
  if (setting() == Atomic_writes::OFF || !is_page || !request->is_write()) {
    return;
  }

  const Atomic_means means = load(file->spw_means);
  if (request->m_spw_bypass) {
    if (means == Atomic_means::NONE) {
      fail(file->name,
           std::string("its storage does not do so now, or cannot be asked: ") +
               sentence_of(load(file->spw_reason)));
    }
    /* Its table may have become page-compressed meanwhile. */
    request->clear_compressed();
    if (dblwr::is_enabled()) {
      s_doublewrite_avoided.fetch_add(1, std::memory_order_relaxed);
    }
  }
  /* A page that was page-compressed ahead of its copy is shorter, whatever its
  table is by now. */
  if (!page_is_written_whole(means, request->is_compressed()) ||
      n_bytes != page_bytes) {
    return;
  }

  request->m_spw_means = means;
  if (needs_rwf(means)) {
    s_rwf_permits.acquire([] {});
    m_has_permit = is_sync;
  }
  s_pages[static_cast<size_t>(means)].fetch_add(1, std::memory_order_relaxed);
}

Atomic_write_scope::~Atomic_write_scope() {
  if (m_has_permit) {
    s_rwf_permits.release();
  }
}

void atomic_prepare(const IORequest &request, iocb *control) {
  if (needs_rwf(request.m_spw_means)) {
    control->aio_rw_flags = ATOMIC_RWF;
  }
}

void atomic_completed(const iocb *control) {
  if (is_rwf(control)) {
    s_rwf_permits.release();
  }
}

void atomic_failed(const IORequest &request, int error, const char *path) {
  if (needs_rwf(request.m_spw_means)) {
    stop_if_hopeless(error, path);
  }
}

void atomic_resubmitted(const IORequest &request, const char *path) {
  if (request.m_spw_means != Atomic_means::NONE) {
    fail(path, IN_PART);
  }
}

bool atomic_write(const IORequest &request, int file, void *buffer,
                  size_t n_bytes, uint64_t offset, ssize_t *n_written) {
  const Atomic_means means = request.m_spw_means;
  if (means == Atomic_means::NONE) {
    return false;
  }
  const iovec vector = {buffer, n_bytes};
  *n_written = pwritev2(file, &vector, 1, static_cast<off_t>(offset),
                        needs_rwf(means) ? ATOMIC_RWF : 0);
  if (*n_written < 0 && needs_rwf(means)) {
    const int error = errno;
    stop_if_hopeless(error, path_of(file).c_str());
    errno = error;
  }
  if (*n_written >= 0 && static_cast<size_t>(*n_written) != n_bytes) {
    fail(path_of(file).c_str(), IN_PART);
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
      const Atomic_output output = seen(file);
      const bool is_none = output.means == Atomic_means::NONE;
      files.push_back(
          {file->space->id, file->name,
           static_cast<uint32_t>(page_size_t(file->space->flags).physical()),
           is_none && !has_copies()
               ? "none"
               : SHORT_MEANS[static_cast<size_t>(output.means)],
           name_of(output.means), !is_none,
           output.reason == Atomic_reason::WHOLE ? ""
                                                 : sentence_of(output.reason)});
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

  const std::vector<Atomic_file> files = atomic_files();
  /* What is not whole first, as it is what costs. */
  for (const bool is_whole : {false, true}) {
    constexpr size_t N_NAMED = 100;
    size_t n_files = 0;
    for (const Atomic_file &open : files) {
      if (open.is_whole == is_whole && ++n_files <= N_NAMED) {
        fprintf(file, "  %s: %s%s%s\n", open.path.c_str(), open.name,
                *open.reason == '\0' ? "" : ", as ", open.reason);
      }
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
