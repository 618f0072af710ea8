/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file redo/redo0held.cc
Redo that is held in memory until its file is synced or read. With ALL_O_DIRECT
each write is an operation of the device, and InnoDB writes a commit in pieces,
which the page cache gathers otherwise. */

#include "univ.i"

#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "log0constants.h"
#include "os0file.h"
#include "redo/hook.h"
#include "redo/policy/redo0held.h"
#include "ut0log.h"
#include "ut0new.h"

namespace spw {

namespace {

/** Max size of a write: bytes. Larger ones gain little on any device. */
constexpr size_t HELD_MAX_BYTES = 1 << 20;

/** Alignment that each device accepts: bytes. */
constexpr size_t ALIGNMENT = 4096;

/** A range in memory, and how to write it. */
struct Held {
  Held()
      : memory(
            static_cast<byte *>(ut::aligned_alloc(HELD_MAX_BYTES, ALIGNMENT))) {
    ut_a(memory != nullptr);
  }

  Redo_range range{HELD_MAX_BYTES};
  byte *const memory;
  IORequest request;
  std::string path;
  pfs_os_file_t file;
};

/** Redo is put to one of two ranges, while the other is written. */
struct Held_redo {
  /** Of the thread that writes a range. Taken before the other mutex. */
  std::mutex write_mutex;

  /** Of the range to which redo is put. */
  std::mutex mutex;

  Held ranges[2];
  Held *held{&ranges[0]};
  Held *written{&ranges[1]};

  /** Writes that were put to a range. Protected by mutex. */
  uint64_t n_held{0};

  /** How many of these are in their file. Protected by write_mutex. */
  uint64_t n_written{0};
};

/** Made when the first redo log file is opened with ALL_O_DIRECT. */
Held_redo &held_redo() {
  static Held_redo held;
  return held;
}

/** Write what is held now, unless another thread does it meanwhile: sessions
that wait for the same write share it. */
void release(Held_redo &redo) {
  const uint64_t n_needed = [&redo] {
    std::lock_guard guard{redo.mutex};
    return redo.n_held;
  }();
  std::lock_guard write_guard{redo.write_mutex};
  if (redo.n_written >= n_needed) {
    return;
  }
  const uint64_t n_held = [&redo] {
    std::lock_guard guard{redo.mutex};
    std::swap(redo.held, redo.written);
    return redo.n_held;
  }();
  Held &held = *redo.written;
  errno = 0;
  const dberr_t result =
      os_file_write(held.request, held.path.c_str(), held.file, held.memory,
                    held.range.begin(), held.range.size());
  if (result != DB_SUCCESS) {
    const int error = errno;
    ib::fatal(UT_LOCATION_HERE)
        << "'" << held.path << "' could not be written, " << held.range.size()
        << " bytes at " << held.range.begin() << ": "
        << (error == 0 ? ut_strerr(result) : strerror(error))
        << ". The server ends, because transactions would be lost that it has"
           " acknowledged or is about to. Mend the storage, then start it"
           " again.";
  }
  held.range.clear();
  redo.n_written = n_held;
}

}  // namespace

bool redo_hold_direct(const IORequest &request, const std::string &path,
                      pfs_os_file_t file, uint64_t offset, size_t n_bytes,
                      const unsigned char *buffer) {
  /* The header of a file is no redo. */
  const bool can_be_held = offset >= LOG_FILE_HDR_SIZE;
  const bool is_encrypted = request.is_encrypted();
  Held_redo &redo = held_redo();
  for (;;) {
    {
      std::lock_guard guard{redo.mutex};
      Held &held = *redo.held;
      const Redo_write what = held.range.decide(file.m_file, is_encrypted,
                                                offset, n_bytes, can_be_held);
      if (what == Redo_write::HOLD) {
        memcpy(held.memory +
                   held.range.add(file.m_file, is_encrypted, offset, n_bytes),
               buffer, n_bytes);
        held.request = request;
        held.path = path;
        held.file = file;
        ++redo.n_held;
        return true;
      }
      if (what == Redo_write::WRITE) {
        break;
      }
    }
    release(redo);
  }
  /* Wait for the write that is under way: the next one comes after it. */
  std::lock_guard write_guard{redo.write_mutex};
  return false;
}

void redo_release_direct() { release(held_redo()); }

}  // namespace spw
