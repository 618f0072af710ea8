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
#include <condition_variable>
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
  /** Of all members; of the range that is written only while nobody writes. */
  std::mutex mutex;

  /** A write has ended. */
  std::condition_variable written_cond;

  Held ranges[2];
  Held *held{&ranges[0]};
  Held *written{&ranges[1]};

  /** A thread writes a range. */
  bool is_writing{false};

  /** Writes that were put to a range, and how many of these are in their file.
   */
  uint64_t n_held{0};
  uint64_t n_written{0};
};

/** Made when the first redo log file is opened with ALL_O_DIRECT. */
Held_redo &held_redo() {
  static Held_redo held;
  return held;
}

/** Write a range. Ends the server if it cannot be written. */
void write(Held &held) {
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
}

/** Write what is held now, or wait until another thread has written it: threads
that wait for the same redo share a write. None waits for more than two. */
void release(Held_redo &redo) {
  std::unique_lock lock{redo.mutex};
  const uint64_t n_needed = redo.n_held;
  while (redo.n_written < n_needed) {
    if (redo.is_writing) {
      redo.written_cond.wait(lock);
      continue;
    }
    redo.is_writing = true;
    std::swap(redo.held, redo.written);
    const uint64_t n_held = redo.n_held;
    lock.unlock();
    write(*redo.written);
    lock.lock();
    redo.n_written = n_held;
    redo.is_writing = false;
    redo.written_cond.notify_all();
  }
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
    std::unique_lock lock{redo.mutex};
    Held &held = *redo.held;
    switch (held.range.decide(file.m_file, is_encrypted, offset, n_bytes,
                              can_be_held)) {
      case Redo_write::HOLD:
        memcpy(held.memory +
                   held.range.add(file.m_file, is_encrypted, offset, n_bytes),
               buffer, n_bytes);
        held.request = request;
        held.path = path;
        held.file = file;
        ++redo.n_held;
        return true;
      case Redo_write::RELEASE:
        lock.unlock();
        release(redo);
        break;
      case Redo_write::WRITE:
        /* It comes after the write that is under way. */
        redo.written_cond.wait(lock, [&redo] { return !redo.is_writing; });
        return false;
    }
  }
}

void redo_release_direct() { release(held_redo()); }

}  // namespace spw
