/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file extend/extend0space.cc
Extends a tablespace online, in steps. */

#include "extend/extend0space.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "dict0dict.h"
#include "extend/hook.h"
#include "extend/policy/extend0size.h"
#include "fil0fil.h"
#include "fsp0fsp.h"
#include "log0buf.h"
#include "log0chkp.h"
#include "log0recv.h"
#include "mtr0mtr.h"
#include "mysqld_error.h"
#include "os0file.h"
#include "sql/sql_error.h"
#include "srv0srv.h"
#include "ut0byte.h"
#include "ut0log.h"

namespace spw {
namespace {

/** Prevents a tablespace from being dropped. */
class Acquired_space {
 public:
  explicit Acquired_space(space_id_t id)
      : m_space(fil_space_acquire_silent(id)) {}

  ~Acquired_space() {
    if (m_space != nullptr) {
      fil_space_release(m_space);
    }
  }

  Acquired_space(const Acquired_space &) = delete;
  Acquired_space &operator=(const Acquired_space &) = delete;

  fil_space_t *get() const { return m_space; }

 private:
  fil_space_t *const m_space;
};

/** The size in the header is a multiple of this, as in InnoDB's
fsp_try_extend_data_file(). */
constexpr uint64_t HEADER_UNIT_BYTES = 1024 * 1024;

std::atomic<uint64_t> s_pause_us{0};

/** Size of the tablespace when this thread released its latch for a step:
pages. The file is synced up to this size, because a session that extends a file
for itself keeps the latch until the sync. */
thread_local page_no_t t_synced_pages = 0;

/** Space that running statements still need, by Extend_disk::id: bytes. */
std::mutex s_reserved_mutex;
std::unordered_map<uint64_t, uint64_t> s_reserved;

uint64_t reserved_bytes(uint64_t disk_id) {
  const std::lock_guard lock{s_reserved_mutex};
  const auto found = s_reserved.find(disk_id);
  return found == s_reserved.end() ? 0 : found->second;
}

uint64_t read_bytes() { return srv_stats.data_read; }

/** @param[in,out]  space  a tablespace
@return whether this thread has its latch now. A session that extends the file
for itself holds the latch meanwhile, a step does not */
bool try_latch(fil_space_t *space) {
  return rw_lock_x_lock_nowait(&space->latch, UT_LOCATION_HERE);
}

/** Sync a data file, unless innodb_flush_method is nosync.
@param[in]  file  the file */
void sync_file(const fil_node_t *file) {
  if (srv_unix_file_flush_method != SRV_UNIX_NOSYNC) {
    os_file_flush(file->handle);
  }
}

/** Interval at which a pause checks whether it was ended. */
constexpr std::chrono::milliseconds PAUSE_POLL_INTERVAL{20};

}  // namespace

void sync_extended_file(fil_node_t *file, uint32_t n_pages_added) {
  DEBUG_SYNC_C("spw_extended_file");
  const bool is_synced_for_its_size =
      srv_unix_file_flush_method == SRV_UNIX_O_DIRECT_NO_FSYNC;
  /* A session that extends a file for itself keeps the tablespace's latch until
  Fil_shard::space_flush() has synced the file. Extend_for_others does not. */
  if (file->space->purpose != FIL_TYPE_TABLESPACE ||
      (!is_synced_for_its_size && !extends_for_others())) {
    return;
  }
  sync_file(file);
  if (is_synced_for_its_size) {
    /* Fil_shard::space_flush() has nothing left to sync. */
    file->flush_size = file->size + n_pages_added;
  }
}

void sync_before_extension(const fil_node_t *file) {
  /* Another thread extended the file after this thread had released the latch.
  With O_DIRECT_NO_FSYNC that thread synced it in sync_extended_file(). */
  if (extends_for_others() && file->space->size != t_synced_pages) {
    sync_file(file);
  }
}

void sync_longer_file(fil_node_t *file) {
  const fil_space_t *const space = file->space;
  if (space->purpose != FIL_TYPE_TABLESPACE || srv_read_only_mode ||
      file != &space->files.back()) {
    return;
  }
  /* A table that is being created has no header yet. The files of the system
  tablespace and of undo logs are opened before the header is read. */
  if (is_extendable(space->id) &&
      (space->size_in_header == 0 || file->flush_size == file->size)) {
    return;
  }
  const uint64_t page_bytes = page_size_t(space->flags).physical();
  const uint64_t other_pages = space->size - std::min(space->size, file->size);
  if (other_pages * page_bytes + os_file_get_size(file->handle) >
      space->size_in_header * page_bytes) {
    sync_file(file);
    file->flush_size = file->size;
  }
}

void sync_recovered_extension(const fil_node_t *file) { sync_file(file); }

void check_extended_file(fil_node_t *file, uint64_t offset, uint64_t *size) {
  if (offset <= *size) {
    return;
  }
  if (recv_sys->is_cloned_db) {
    if (!os_file_set_size(file->name, file->handle, *size, offset, true)) {
      ib::fatal(UT_LOCATION_HERE)
          << "'" << file->name << "' of a clone could not be extended from "
          << *size << " to " << offset
          << " bytes. The clone is complete. Remove the cause, such as a full"
             " disk, and start the server again.";
    }
    /* The file was copied before an extension whose redo record is from before
    the clone's checkpoint, and its first page was written after the copy. All
    changes of pages in that space are in the clone's redo log. */
    *size = offset;
    file->size = static_cast<page_no_t>(
        offset / page_size_t(file->space->flags).physical());
    file->space->size = file->size;
    return;
  }
  ib::fatal(UT_LOCATION_HERE)
      << "The redo log extends the file '" << file->name << "' from byte "
      << offset << " on, and it has " << *size
      << " bytes. If it was copied there for ALTER TABLE ... IMPORT"
         " TABLESPACE, move it away until the server has started. Otherwise it"
         " has lost its end: restore the data directory from a backup.";
}

const char *extend_sync_warning() {
  return srv_unix_file_flush_method == SRV_UNIX_O_DIRECT_NO_FSYNC &&
                 !tbsp_extend_and_initialize
             ? "With innodb_flush_method = O_DIRECT_NO_FSYNC and"
               " innodb_extend_and_initialize = OFF a power cut can lose"
               " committed rows: a page that is written to preallocated space"
               " is durable only after a sync of its file, and the file is not"
               " synced. Set innodb_flush_method = O_DIRECT."
               " innodb_extend_and_initialize = ON protects only space that is"
               " added from now on."
             : nullptr;
}

void warn_extend_and_initialize(THD *thd) {
  if (const char *const warning = extend_sync_warning()) {
    push_warning(thd, Sql_condition::SL_WARNING, ER_UNKNOWN_ERROR, warning);
  }
}

bool is_extendable(uint32_t space_id) {
  return !fsp_is_system_or_temp_tablespace(space_id) &&
         !fsp_is_undo_tablespace(space_id) &&
         space_id != dict_sys_t::s_dict_space_id;
}

std::string extend_name(uint32_t space_id) {
  std::string name;
  /* The iterator holds the shard's mutex for each file. A rename frees the old
  name of a tablespace, even while the tablespace is acquired. */
  (void)Fil_iterator::for_each_file([&name, space_id](fil_node_t *file) {
    if (file->space->id != space_id) {
      return DB_SUCCESS;
    }
    name = file->space->name;
    return DB_INTERRUPTED;
  });
  return name;
}

bool extend_name_exists(const char *name) {
  return fil_space_get_id_by_name(name) != SPACE_UNKNOWN;
}

bool extend_has_name(uint32_t space_id, const char *name) {
  return fil_space_get_id_by_name(name) == space_id;
}

std::optional<Extend_disk> extend_disk(uint32_t space_id, int *error) {
  const auto set_error = [error](int value) {
    if (error != nullptr) {
      *error = value;
    }
  };
  const std::unique_ptr<char, void (*)(void *)> path{
      fil_space_get_first_path(space_id), ut::free};
  struct stat file {};
  if (path == nullptr || stat(path.get(), &file) != 0) {
    set_error(path == nullptr ? ENOENT : errno);
    return {};
  }
  /* Read before the free space: a step in between counts twice. In the other
  order it would not count. */
  const uint64_t reserved = reserved_bytes(file.st_dev);
  struct statvfs status {};
  if (statvfs(path.get(), &status) != 0) {
    set_error(errno);
    return {};
  }
  return Extend_disk{.id = file.st_dev,
                     .free = uint64_t{status.f_bavail} * status.f_frsize,
                     .reserved = reserved,
                     .size = uint64_t{status.f_blocks} * status.f_frsize};
}

bool Extend_reservation::reserve(Extend_disk *disk, uint64_t bytes) {
  const std::lock_guard lock{s_reserved_mutex};
  uint64_t &reserved = s_reserved[m_disk_id];
  /* Less may be reserved now, because a step has taken a part of the free space
  that was read before. */
  disk->reserved = std::max(reserved, disk->reserved);
  if (disk->reserved + bytes > extend_disk_available(disk->free, disk->size)) {
    return false;
  }
  reserved += bytes;
  m_bytes += bytes;
  return true;
}

void Extend_reservation::set(uint64_t bytes) {
  const std::lock_guard lock{s_reserved_mutex};
  uint64_t &reserved = s_reserved[m_disk_id];
  reserved = reserved - m_bytes + bytes;
  m_bytes = bytes;
}

Extend_status read_tablespace(uint32_t space_id, Extend_space *space) {
  if (srv_read_only_mode) {
    return Extend_status::READ_ONLY;
  }
  if (srv_force_recovery > 0) {
    return Extend_status::FORCED_RECOVERY;
  }
  if (!is_extendable(space_id)) {
    return Extend_status::UNSUPPORTED_KIND;
  }
  const Acquired_space acquired{space_id};
  if (acquired.get() == nullptr) {
    return Extend_status::GONE;
  }
  const page_size_t page_size{acquired.get()->flags};
  space->page_bytes = page_size.physical();
  space->extent_bytes =
      uint64_t{fsp_get_extent_size_in_pages(page_size)} * page_size.physical();
  space->size_max = extend_size_max(space->page_bytes, space->extent_bytes);

  mtr_t mtr;
  mtr.start();
  mtr_x_lock_space(acquired.get(), &mtr);
  /* This opens the file if it was not open yet. */
  (void)fsp_get_space_header(space_id, page_size, &mtr);
  space->size = uint64_t{acquired.get()->size_in_header} * page_size.physical();
  mtr.commit();
  return Extend_status::DONE;
}

bool extend_wait(uint32_t space_id, const std::function<bool()> &stop) {
  log_free_check();
  for (;;) {
    {
      const Acquired_space acquired{space_id};
      fil_space_t *const space = acquired.get();
      if (space == nullptr) {
        return true;
      }
      if (try_latch(space)) {
        rw_lock_x_unlock(&space->latch);
        return true;
      }
    }
    if (stop()) {
      return false;
    }
    std::this_thread::sleep_for(PAUSE_POLL_INTERVAL);
  }
}

Extend_status extend_step(Extender extender, uint32_t space_id, uint64_t target,
                          uint64_t *size) {
  /* Without this the step could wait for redo space while an insert that waits
  for the step holds the page that a checkpoint has to write. After
  extend_wait() it rarely waits. */
  log_free_check();

  const Acquired_space acquired{space_id};
  fil_space_t *const space = acquired.get();
  if (space == nullptr) {
    return Extend_status::GONE;
  }
  const page_size_t page_size{space->flags};
  const uint64_t page_bytes = page_size.physical();
  const uint64_t extent_bytes =
      uint64_t{fsp_get_extent_size_in_pages(page_size)} * page_bytes;
  mtr_t mtr;
  fsp_header_t *header;
  const auto latch = [&] {
    mtr.start();
    mtr_x_lock_space(space, &mtr);
    header = fsp_get_space_header(space_id, page_size, &mtr);
  };
  const auto header_bytes = [&] {
    return uint64_t{mach_read_from_4(header + FSP_SIZE)} * page_bytes;
  };
  const auto end = [&](Extend_status status) {
    *size = header_bytes();
    mtr.commit();
    return status;
  };
  if (!try_latch(space)) {
    return Extend_status::BUSY;
  }
  latch();
  rw_lock_x_unlock(&space->latch);
  if (header_bytes() < *size) {
    return end(Extend_status::SHRUNK);
  }
  if (header_bytes() >= target) {
    return end(Extend_status::DONE);
  }
  const Extend_for_others for_others{extender};
  /* InnoDB adds single pages to a small file, and reads its size repeatedly
  meanwhile, under the latch. A step of one extent may hold that latch. */
  const bool is_small = target <= extent_bytes;
  t_synced_pages = space->size;
  if (!is_small) {
    mtr.commit();
    /* Not for a step of one extent: an INSERT adds as much. */
    if (target - *size > extent_bytes) {
      DEBUG_SYNC_C("spw_extent_size_unlatched");
    }
  }
  const bool is_done =
      fil_space_extend(space, static_cast<page_no_t>(target / page_bytes));
  if (!is_small) {
    DEBUG_SYNC_C("spw_extent_size_header");
    latch();
  }
  const page_no_t pages = ut_calc_align_down(
      space->size, static_cast<page_no_t>(HEADER_UNIT_BYTES / page_bytes));
  if (pages > space->size_in_header) {
    fsp_header_size_update(header, pages, &mtr);
    space->size_in_header = pages;
  }
  return end(is_done ? Extend_status::DONE : Extend_status::FAILED);
}

void extend_make_durable() { log_buffer_flush_to_disk(); }

Extend_pause::Extend_pause()
    : m_lsn(log_get_lsn(*log_sys)), m_read_bytes(read_bytes()) {}

void Extend_pause::after(double step_s,
                         const std::function<bool()> &is_killed) {
  using std::chrono::steady_clock;

  const uint64_t lsn = log_get_lsn(*log_sys);
  const uint64_t read = read_bytes();
  if (extend_others_are_active(lsn - m_lsn, read - m_read_bytes)) {
    const auto begin = steady_clock::now();
    const auto end = begin + std::chrono::microseconds{
                                 static_cast<int64_t>(pause_s(step_s) * 1e6)};
    auto now = begin;
    while (now < end && !is_killed()) {
      std::this_thread::sleep_until(std::min(end, now + PAUSE_POLL_INTERVAL));
      now = steady_clock::now();
    }
    s_pause_us.fetch_add(
        static_cast<uint64_t>(
            std::chrono::duration_cast<std::chrono::microseconds>(now - begin)
                .count()),
        std::memory_order_relaxed);
  }
  m_lsn = lsn;
  m_read_bytes = read;
}

uint64_t extend_pause_us() {
  return s_pause_us.load(std::memory_order_relaxed);
}

}  // namespace spw
