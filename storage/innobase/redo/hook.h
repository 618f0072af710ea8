/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file redo/hook.h
Hook interface for upstream's files: the redo log (redo0direct.cc,
redo0ahead.cc, redo0held.cc, redo0resize.cc). */

#ifndef redo_hook_h
#define redo_hook_h

#include <cstddef>
#include <cstdint>
#include <string>

#include "log0types.h"
#include "os0file.h"
#include "univ.i"

namespace spw {

/** Decide how far the log writer's limit on the checkpoint age is lowered at
once. The caller publishes the result and the limits derived from it, and calls
again in its next iteration while the result is above the wanted limit. The
caller holds the mutexes of the redo log's files and limits, or InnoDB is being
started.
@param[in]  wanted  the new limit: bytes of LSN, a multiple of the block
@return the limit to be in force, a multiple of the block. Invariant: all redo
that threads were admitted with fits below it */
lsn_t redo_lower_capacity(lsn_t wanted);

/** Evaluate innodb_flush_method: ALL_O_DIRECT becomes O_DIRECT, and redo log
files are opened for direct I/O from now on. Called once, by the thread that
starts InnoDB, after InnoDB's variables were read.
@param[in,out]  flush_method  innodb_flush_method: enum srv_unix_flush_t, or
                              ALL_O_DIRECT
@return false if the redo log's folder does not support it, as the error log
says: the server must not start. A folder that cannot be tested is used, with a
warning */
[[nodiscard]] bool flush_method_start(ulong *flush_method);

/** @param[in]  flush_method  innodb_flush_method, as flush_method_start() has
                          left it
@return the value that was set */
[[nodiscard]] ulong flush_method_shown(ulong flush_method);

/** Whether redo log files are opened for direct I/O because of ALL_O_DIRECT.
Set once, by flush_method_start(). */
extern bool redo_is_direct_io;

/** @param[in]  purpose       purpose of the file to open: OS_LOG_FILE, ...
@param[in]  is_read_only  whether it is opened for reading only, which stays
                          buffered
@return whether it is opened for direct I/O because of ALL_O_DIRECT */
[[nodiscard]] inline bool redo_is_direct(ulong purpose, bool is_read_only) {
  return redo_is_direct_io && purpose == OS_LOG_FILE && !is_read_only;
}

/** Hold a write to a redo log file in memory, with ALL_O_DIRECT: until its file
is synced, closed or read, a thread needs it to be written, or a write comes
that does not continue it. The caller holds no mutex of this room. All writes of
redo log files come from one thread at a time: the caller holds the writer's
mutex, or InnoDB is being started. Ends the server if what was held before
cannot be written.
@param[in]  request  InnoDB's request
@param[in]  path     path of the file
@param[in]  file     the file; it stays open until redo_release()
@param[in]  offset   begin of the write: bytes
@param[in]  n_bytes  its size: bytes
@param[in]  buffer   the redo; copied
@return whether it is held: the caller has nothing to write */
[[nodiscard]] bool redo_hold_direct(const IORequest &request,
                                    const std::string &path, pfs_os_file_t file,
                                    uint64_t offset, size_t n_bytes,
                                    const unsigned char *buffer);

/** The same. Without ALL_O_DIRECT nothing is held. */
[[nodiscard]] inline bool redo_hold(const IORequest &request,
                                    const std::string &path, pfs_os_file_t file,
                                    uint64_t offset, size_t n_bytes,
                                    const unsigned char *buffer) {
  return redo_is_direct_io &&
         redo_hold_direct(request, path, file, offset, n_bytes, buffer);
}

/** Write what is held, with ALL_O_DIRECT. Called before a redo log file is
synced, which closing does, too, or read. Any thread. Ends the server if it
cannot be written. */
void redo_release_direct();

/** The same. Without ALL_O_DIRECT nothing is held. */
inline void redo_release() {
  if (redo_is_direct_io) {
    redo_release_direct();
  }
}

/** The end of a wait until redo is written: it is in the file then, as a commit
with innodb_flush_log_at_trx_commit = 2 has to outlive the server's process. */
class Redo_written {
 public:
  /** @param[in]  is_flushed  whether the thread waits until it is flushed, too,
  before which it is written */
  explicit Redo_written(bool is_flushed) : m_is_flushed(is_flushed) {}
  ~Redo_written() {
    if (!m_is_flushed) {
      redo_release();
    }
  }
  Redo_written(const Redo_written &) = delete;
  Redo_written &operator=(const Redo_written &) = delete;

 private:
  const bool m_is_flushed;
};

/** Initialise the part of a redo log file that the next redo goes to, if
redo_set_ahead() says so, as with innodb_ahead_flushing: write zeros where the
file system has allocated blocks that are not written, so that the redo's syncs
need not wait for its journal. Called before each write to a redo log file, as
redo_hold(). Errors are not reported: the redo needs no zeros.
@param[in]  file     the file
@param[in]  file_id  its ID
@param[in]  offset   begin of the write: bytes
@param[in]  n_bytes  its size: bytes */
void redo_initialise_ahead(pfs_os_file_t file, uint64_t file_id,
                           uint64_t offset, uint64_t n_bytes);

/** Replaces a buffer that direct I/O does not accept by one that it accepts,
during its lifetime. Without ALL_O_DIRECT the buffer stays. */
class Redo_buffer {
 public:
  /** @param[in,out]  buffer   what to write: 512-byte blocks of redo
  @param[in]      n_bytes  size in bytes */
  Redo_buffer(const unsigned char **buffer, size_t n_bytes) {
    if (redo_is_direct_io) {
      align(buffer, n_bytes);
    }
  }

  /** The same for a read. */
  Redo_buffer(unsigned char **buffer, size_t n_bytes)
      : Redo_buffer(const_cast<const unsigned char **>(buffer), n_bytes) {
    m_is_read = true;
  }

  ~Redo_buffer() {
    if (m_aligned != nullptr) {
      free();
    }
  }

  Redo_buffer(const Redo_buffer &) = delete;
  Redo_buffer &operator=(const Redo_buffer &) = delete;

 private:
  /** Replace the buffer, unless it is aligned. */
  void align(const unsigned char **buffer, size_t n_bytes);

  /** Copy what was read, and free the aligned buffer. */
  void free();

  /** Valid if there is an aligned buffer. */
  unsigned char *m_original{nullptr};
  size_t m_n_bytes{0};

  unsigned char *m_aligned{nullptr};
  bool m_is_read{false};
};

}  // namespace spw

#endif /* redo_hook_h */
