/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file extend/hook.h
What upstream's files call of preallocation: extend0count.cc, extend0space.cc,
extend0thread.cc. */

#ifndef extend_hook_h
#define extend_hook_h

#include <cstddef>
#include <cstdint>

#include "stall/hook.h"
#include "univ.i"

class THD;
struct fil_node_t;
struct rw_lock_t;

namespace spw {

/** Times the wait of this thread until a data file is extended, by itself or by
another one, and makes it known to File_extend_wait_timer while it lasts. A
thread that extends for others (Extend_for_others) waits for nothing: it is
known, but not timed. */
class File_extend_timer {
 public:
  File_extend_timer() = default;
  ~File_extend_timer();

  File_extend_timer(const File_extend_timer &) = delete;
  File_extend_timer &operator=(const File_extend_timer &) = delete;

  /** The file is about to be extended, or another thread extends it. Called as
  often as the thread comes by. */
  void begin();

 private:
  Stall_timer m_stall{Stall::FILE_EXTEND};

  /** Where this thread is known; NOWHERE before begin(), and if too many
  threads extend files at a time. */
  static constexpr size_t NOWHERE = SIZE_MAX;
  size_t m_place{NOWHERE};
};

/** Times a thread's sleep for a latch if it is an rw-latch that is held by a
thread which extends a data file: that of an index, a page or a tablespace,
whatever the extending thread has come with. A sleep that begins before the
extension does is not noticed. */
class File_extend_wait_timer {
 public:
  /** @param[in]  request_type  what this thread is about to sleep for, as the
  wait array knows it: RW_LOCK_S, ..., or a mutex
  @param[in]  latch         the latch; not looked at if it is a mutex */
  File_extend_wait_timer(ulint request_type, const rw_lock_t *latch);

 private:
  Stall_timer m_stall{Stall::FILE_EXTEND_OTHERS};
};

/** Note that this thread has extended a data file.
@param[in]  n_bytes  by how much */
void file_extended(uint64_t n_bytes);

/** Sync a data file that this thread has extended, before other threads learn
its new size: if this thread does not hold the tablespace's latch, and with
innodb_flush_method = O_DIRECT_NO_FSYNC, which syncs a file only when its size
changes. Otherwise does nothing. The caller holds no mutex of the shard.
@param[in,out]  file           the file
@param[in]      n_pages_added  by how much its size is about to grow */
void sync_extended_file(fil_node_t *file, uint32_t n_pages_added);

/** This thread is about to write the redo record of an extension of a data
file, which holds only for a file that reaches to where the extension begins:
sync the file if another thread may have extended it and not synced it yet. It
has fil_node_t::is_being_extended, and no mutex of the shard.
@param[in]  file  the file */
void sync_before_extension(const fil_node_t *file);

/** innodb_extend_and_initialize has been set: warn the session if its value can
lose committed rows.
@param[in,out]  thd  the session */
void warn_extend_and_initialize(THD *thd);

/** InnoDB is open for work: start the thread that extends data files ahead, if
innodb_extend_ahead_pct is not 0. Not called by a server that is read-only. */
void extend_ahead_start();

/** InnoDB is about to shut down: end the thread, if there is one. Waits for a
step of an extension that is under way. */
void extend_ahead_stop();

}  // namespace spw

#endif /* extend_hook_h */
