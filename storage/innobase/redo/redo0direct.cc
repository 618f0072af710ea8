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

namespace {

/** The value of innodb_flush_method after InnoDB's last one. */
constexpr ulong ALL_O_DIRECT = SRV_UNIX_O_DIRECT_NO_FSYNC + 1;

/** Set once, before InnoDB opens a redo log file. */
bool s_is_direct = false;

/** Try to write a block of redo at its offset with direct I/O, from memory that
is aligned to a block only.
@param[in]  folder  folder of the redo log files
@return 0, or errno */
int try_direct(const std::string &folder) {
  const Scratch_file file{folder};
  if (file.error() != 0) {
    return file.error();
  }
  constexpr size_t N_BYTES = 2 * OS_FILE_LOG_BLOCK_SIZE;
  auto *const blocks =
      static_cast<byte *>(ut::aligned_zalloc(N_BYTES, N_BYTES));
  int error = ftruncate(file.get(), N_BYTES) == 0 ? 0 : errno;
  if (error == 0) {
    error = file.write(blocks + OS_FILE_LOG_BLOCK_SIZE, OS_FILE_LOG_BLOCK_SIZE,
                       OS_FILE_LOG_BLOCK_SIZE, 0);
  }
  ut::aligned_free(blocks);
  return error;
}

}  // namespace

bool flush_method_start(ulong *flush_method) {
  s_is_direct = *flush_method == ALL_O_DIRECT;
  if (!s_is_direct) {
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
  const int error = try_direct(folder);
  if (error == EINVAL) {
    ib::error() << "innodb_flush_method = ALL_O_DIRECT: '" << folder
                << "' does not take direct I/O of the redo log's blocks of "
                << OS_FILE_LOG_BLOCK_SIZE
                << " bytes, as where its device has logical blocks of 4096. Use"
                   " O_DIRECT, with which the redo log is written through the"
                   " page cache.";
  } else if (error != 0) {
    ib::error() << "innodb_flush_method = ALL_O_DIRECT: whether '" << folder
                << "' takes direct I/O of the redo log's blocks of "
                << OS_FILE_LOG_BLOCK_SIZE
                << " bytes cannot be tried on a file there: " << strerror(error)
                << ". Mend that, or use O_DIRECT, with which the redo log is"
                   " written through the page cache.";
  }
  return error == 0;
}

ulong flush_method_shown(ulong flush_method) {
  return s_is_direct ? ALL_O_DIRECT : flush_method;
}

bool redo_is_direct(ulong purpose, bool is_read_only) {
  return s_is_direct && purpose == OS_LOG_FILE && !is_read_only;
}

Redo_buffer::Redo_buffer(const unsigned char **buffer, size_t n_bytes)
    : m_original(const_cast<unsigned char *>(*buffer)), m_n_bytes(n_bytes) {
  if (!s_is_direct ||
      reinterpret_cast<uintptr_t>(m_original) % OS_FILE_LOG_BLOCK_SIZE == 0) {
    return;
  }
  m_aligned = static_cast<unsigned char *>(
      ut::aligned_alloc(n_bytes, OS_FILE_LOG_BLOCK_SIZE));
  memcpy(m_aligned, m_original, n_bytes);
  *buffer = m_aligned;
}

Redo_buffer::Redo_buffer(unsigned char **buffer, size_t n_bytes)
    : Redo_buffer(const_cast<const unsigned char **>(buffer), n_bytes) {
  m_is_read = true;
}

Redo_buffer::~Redo_buffer() {
  if (m_aligned != nullptr) {
    if (m_is_read) {
      memcpy(m_original, m_aligned, m_n_bytes);
    }
    ut::aligned_free(m_aligned);
  }
}

}  // namespace spw
