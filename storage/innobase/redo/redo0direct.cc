/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file redo/redo0direct.cc
Direct I/O for the redo log: innodb_flush_method = ALL_O_DIRECT.

Redo is written in blocks of 512 bytes, at any multiple of 512: the device's
logical block must not be larger. InnoDB passes buffers that direct I/O does not
accept, such as a block on the stack. */

#include "univ.i"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/scratch0file.h"
#include "log0constants.h"
#include "log0types.h"
#include "os0file.h"
#include "redo/hook.h"
#include "srv0srv.h"
#include "ut0log.h"
#include "ut0new.h"

namespace spw {

bool redo_is_direct_io = false;

namespace {

/** The value of innodb_flush_method after InnoDB's last one. */
constexpr ulong ALL_O_DIRECT = SRV_UNIX_O_DIRECT_NO_FSYNC + 1;

/** A block of redo in memory that is aligned to a block only, as in InnoDB. */
class Block {
 public:
  Block()
      : m_memory(static_cast<byte *>(ut::aligned_zalloc(
            2 * OS_FILE_LOG_BLOCK_SIZE, 2 * OS_FILE_LOG_BLOCK_SIZE))) {}
  ~Block() { ut::aligned_free(m_memory); }

  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;

  byte *get() { return m_memory + OS_FILE_LOG_BLOCK_SIZE; }

 private:
  byte *const m_memory;
};

/** Try to write a block of redo at its offset with direct I/O.
@param[in]  folder  folder of the redo log files
@return 0, or errno */
int try_write(const std::string &folder) {
  const Scratch_file file{folder};
  if (file.error() != 0) {
    return file.error();
  }
  if (ftruncate(file.get(), 2 * OS_FILE_LOG_BLOCK_SIZE) != 0) {
    return errno;
  }
  return file.write(Block{}.get(), OS_FILE_LOG_BLOCK_SIZE,
                    OS_FILE_LOG_BLOCK_SIZE, 0);
}

/** Try to read a block of a redo log file at its offset with direct I/O, as
where the disk has no space for another file.
@param[in]  folder  folder of the redo log files
@return 0, or errno; ENOENT if there is no redo log file */
int try_read(const std::filesystem::path &folder) {
  std::error_code none;
  for (const auto &entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename();
    if (name.compare(0, strlen(LOG_FILE_BASE_NAME), LOG_FILE_BASE_NAME) != 0) {
      continue;
    }
    const int file =
        open(entry.path().c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (file < 0) {
      return errno;
    }
    const int error = pread(file, Block{}.get(), OS_FILE_LOG_BLOCK_SIZE,
                            OS_FILE_LOG_BLOCK_SIZE) < 0
                          ? errno
                          : 0;
    close(file);
    return error;
  }
  return ENOENT;
}

}  // namespace

bool flush_method_start(ulong *flush_method) {
  redo_is_direct_io = *flush_method == ALL_O_DIRECT;
  if (!redo_is_direct_io) {
    return true;
  }
  *flush_method = SRV_UNIX_O_DIRECT;
  if (srv_read_only_mode) {
    /* The server opens no redo log file for direct I/O: redo_is_direct(). */
    return true;
  }

  /* The redo log's folder can be a mount of its own. */
  const std::filesystem::path home = srv_log_group_home_dir;
  std::error_code none;
  const std::string folder =
      std::filesystem::is_directory(home / LOG_DIRECTORY_NAME, none)
          ? home / LOG_DIRECTORY_NAME
          : home;
  const int write_error = try_write(folder);
  const int error = write_error == 0 || write_error == EINVAL
                        ? write_error
                        : try_read(folder);
  if (error == EINVAL) {
    ib::error() << "innodb_flush_method = ALL_O_DIRECT: '" << folder
                << "' does not take direct I/O of the redo log's blocks of "
                << OS_FILE_LOG_BLOCK_SIZE
                << " bytes, as where its device has logical blocks of 4096. Use"
                   " O_DIRECT, with which the redo log is written through the"
                   " page cache.";
    return false;
  }
  if (error != 0) {
    ib::warn() << "innodb_flush_method = ALL_O_DIRECT: whether '" << folder
               << "' takes direct I/O of the redo log's blocks of "
               << OS_FILE_LOG_BLOCK_SIZE
               << " bytes cannot be tried on a file there: "
               << strerror(write_error)
               << ". The server assumes that it does. If the redo log cannot be"
                  " written, use O_DIRECT, with which it is written through the"
                  " page cache.";
  }
  return true;
}

ulong flush_method_shown(ulong flush_method) {
  return redo_is_direct_io ? ALL_O_DIRECT : flush_method;
}

void Redo_buffer::align(const unsigned char **buffer, size_t n_bytes) {
  if (reinterpret_cast<uintptr_t>(*buffer) % OS_FILE_LOG_BLOCK_SIZE == 0) {
    return;
  }
  m_original = const_cast<unsigned char *>(*buffer);
  m_n_bytes = n_bytes;
  m_aligned = static_cast<unsigned char *>(
      ut::aligned_alloc(n_bytes, OS_FILE_LOG_BLOCK_SIZE));
  memcpy(m_aligned, m_original, n_bytes);
  *buffer = m_aligned;
}

void Redo_buffer::free() {
  if (m_is_read) {
    memcpy(m_original, m_aligned, m_n_bytes);
  }
  ut::aligned_free(m_aligned);
}

}  // namespace spw
