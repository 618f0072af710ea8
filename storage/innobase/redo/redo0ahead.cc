/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file redo/redo0ahead.cc
Initialise redo log files ahead of the redo.

InnoDB allocates a redo log file, and does not write it: its extents are
"unwritten". The first write of a block makes its extent a written one, which
the file system has to put into its journal before the next sync of the file
returns. Until the redo log has been written over once, each group of commits
costs two writes and a flush more than afterwards. Zeros are written here, some
hundred kilobytes at a time, behind the redo, where the file system says that
nothing was written. */

#include "univ.i"

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "log0constants.h"
#include "log0types.h"
#include "redo/hook.h"
#include "redo/policy/redo0ahead.h"
#include "redo/redo0state.h"
#include "srv0srv.h"

namespace spw {

namespace {

/** Whether files are initialised ahead. */
std::atomic<bool> s_is_on{false};

/** @param[in]  file  an open file
@return whether its file system writes again in place, and has a journal that
extents go to. One that copies on write would only write more */
bool has_journal(int file) {
  struct statfs system;
  return fstatfs(file, &system) == 0 && (system.f_type == EXT4_SUPER_MAGIC ||
                                         system.f_type == XFS_SUPER_MAGIC);
}

/** @param[in]  file  an open file
@param[in]  part  a part of it
@return whether it has an extent that is allocated and not written */
bool is_unwritten(int file, const Redo_part &part) {
  /* Of a part with more extents, which is rare, the first ones decide. */
  constexpr size_t N = 8;
  alignas(struct fiemap) char
      memory[sizeof(struct fiemap) + N * sizeof(struct fiemap_extent)]{};
  auto *const map = reinterpret_cast<struct fiemap *>(memory);
  map->fm_start = part.begin;
  map->fm_length = part.end - part.begin;
  map->fm_extent_count = N;
  if (ioctl(file, FS_IOC_FIEMAP, map) != 0) {
    return false;
  }
  return std::any_of(map->fm_extents, map->fm_extents + map->fm_mapped_extents,
                     [](const struct fiemap_extent &extent) {
                       return (extent.fe_flags & FIEMAP_EXTENT_UNWRITTEN) != 0;
                     });
}

/** Write zeros to a part of a file.
@return whether all were written */
bool write_zeros(int file, const Redo_part &part) {
  alignas(REDO_AHEAD_BLOCK) static byte zeros[REDO_AHEAD_BYTES];
  return pwrite(file, zeros, part.end - part.begin, part.begin) ==
         static_cast<ssize_t>(part.end - part.begin);
}

}  // namespace

void redo_set_ahead(bool is_on) {
  s_is_on.store(is_on, std::memory_order_relaxed);
}

void redo_initialise_ahead(pfs_os_file_t file, uint64_t file_id,
                           uint64_t offset, uint64_t n_bytes) {
  static Redo_ahead ahead;
  /* The header is written by other threads, too, and was written before. All
  other writes come under the writer's mutex. fsync() puts the time of each
  change into the journal: nothing is saved. */
  if (!s_is_on.load(std::memory_order_relaxed) || !srv_use_fdatasync ||
      offset < LOG_FILE_HDR_SIZE) {
    return;
  }
  Redo_part part =
      ahead.due(file_id, offset, n_bytes, Log_file_handle::total_fsyncs());
  if (part.empty()) {
    return;
  }
  struct stat status;
  if (!has_journal(file.m_file) || fstat(file.m_file, &status) != 0) {
    ahead.give_up();
    return;
  }
  part.end = std::min(part.end, static_cast<uint64_t>(status.st_size) /
                                    REDO_AHEAD_BLOCK * REDO_AHEAD_BLOCK);
  if (part.begin >= part.end || !is_unwritten(file.m_file, part)) {
    return;
  }
  if (!write_zeros(file.m_file, part)) {
    /* The redo needs no zeros; its own write or sync reports what is wrong. */
    ahead.give_up();
  }
}

}  // namespace spw
