/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file redo/hook.h
What upstream's files call of the redo log: redo0direct.cc, redo0resize.cc. */

#ifndef redo_hook_h
#define redo_hook_h

#include <cstddef>

#include "log0types.h"
#include "univ.i"

namespace spw {

/** Decide how far the age of the last checkpoint above which the log writer
waits is lowered now. The caller makes it known, with what follows from it, and
asks again at its next round if it is more than was wanted. The caller holds the
mutexes of the redo log's files and of its limits, or InnoDB is being started.
@param[in]  wanted  the new one, bytes of LSN, a multiple of the block
@return the one to be in force, a multiple of the block: no redo that threads
have been let in with is beyond it */
lsn_t redo_lower_capacity(lsn_t wanted);

/** InnoDB's variables have been read. ALL_O_DIRECT becomes O_DIRECT, and redo
log files are opened for direct I/O from here on. Called once, by the thread
that starts InnoDB.
@param[in,out]  flush_method  innodb_flush_method, enum srv_unix_flush_t and one
more
@return false if where the redo log is cannot do it, which the error log says:
the server must not start */
[[nodiscard]] bool flush_method_start(ulong *flush_method);

/** @param[in]  flush_method  innodb_flush_method, as flush_method_start() has
left it
@return as it was set */
[[nodiscard]] ulong flush_method_shown(ulong flush_method);

/** @param[in]  purpose       what a file is opened for: OS_LOG_FILE, ...
@param[in]  is_read_only  whether for reading only: that stays buffered
@return whether it is opened for direct I/O because of ALL_O_DIRECT */
[[nodiscard]] bool redo_is_direct(ulong purpose, bool is_read_only);

/** A buffer that direct I/O takes, in the place of one that it may not take, as
long as it lives; the same buffer without ALL_O_DIRECT. */
class Redo_buffer {
 public:
  /** @param[in,out]  buffer   what is written, 512-byte blocks of redo
  @param[in]      n_bytes  how much */
  Redo_buffer(const unsigned char **buffer, size_t n_bytes);

  /** The same for what is read. */
  Redo_buffer(unsigned char **buffer, size_t n_bytes);

  ~Redo_buffer();

  Redo_buffer(const Redo_buffer &) = delete;
  Redo_buffer &operator=(const Redo_buffer &) = delete;

 private:
  unsigned char *const m_original;
  const size_t m_n_bytes;
  unsigned char *m_aligned{nullptr};
  bool m_is_read{false};
};

}  // namespace spw

#endif /* redo_hook_h */
