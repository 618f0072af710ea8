/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file extend/hook.h
Preallocation: the functions that InnoDB's files call. They are in
extend0count.cc, extend0space.cc and extend0thread.cc. */

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

/** Times how long this thread waits until a data file is extended, by itself or
by another thread, and registers it for File_extend_wait_timer meanwhile. A
thread that extends for others (Extend_for_others) is registered, but not
timed. */
class File_extend_timer {
 public:
  File_extend_timer() = default;
  ~File_extend_timer();

  File_extend_timer(const File_extend_timer &) = delete;
  File_extend_timer &operator=(const File_extend_timer &) = delete;

  /** The file is about to be extended, or another thread extends it. Can be
  called repeatedly. */
  void begin();

 private:
  Stall_timer m_stall{Stall::FILE_EXTEND};

  /** Index of this thread's registration. NOT_REGISTERED before begin(), and if
  too many threads extend files at a time. */
  static constexpr size_t NOT_REGISTERED = SIZE_MAX;
  size_t m_index{NOT_REGISTERED};
};

/** Times a thread's sleep for an rw-latch whose holder extends a data file. It
can be the latch of an index, a page or a tablespace: any that the extending
thread holds. A sleep that begins before the extension is not timed. */
class File_extend_wait_timer {
 public:
  /** @param[in]  request_type  what this thread is about to wait for, as in the
  wait array: RW_LOCK_S, ..., or a mutex
  @param[in]  latch         the latch; ignored for a mutex */
  File_extend_wait_timer(ulint request_type, const rw_lock_t *latch);

 private:
  Stall_timer m_stall{Stall::FILE_EXTEND_OTHERS};
};

/** Count an extension of a data file by this thread.
@param[in]  n_bytes  number of bytes added */
void count_extended(uint64_t n_bytes);

/** Sync a data file that this thread has extended, before other threads learn
its new size. Syncs if this thread does not hold the tablespace's latch, and
with innodb_flush_method = O_DIRECT_NO_FSYNC, which syncs a file only when its
size changes. Otherwise does nothing. The caller holds no mutex of the shard.
@param[in,out]  file           the file
@param[in]      n_pages_added  pages by which its size is about to grow */
void sync_extended_file(fil_node_t *file, uint32_t n_pages_added);

/** Sync a data file if another thread may have extended it and not synced it
yet. Called before this thread writes the redo record of an extension: recovery
applies that record only to a file that reaches to where the extension begins.
The caller has set fil_node_t::is_being_extended, and holds no mutex of the
shard.
@param[in]  file  the file */
void sync_before_extension(const fil_node_t *file);

/** Compare a file with an extension of it that recovery is about to replay. If
the file is shorter than the extended one was, that of a clone is made as long.
Otherwise the server ends, with what to do in the error log: the file has lost
its end, or another file is in its place.
@param[in,out]  file    the file
@param[in]      offset  the file's size when it was extended: bytes
@param[in,out]  size    the file's size now: bytes */
void check_extended_file(fil_node_t *file, uint64_t offset, uint64_t *size);

/** Sync a file that recovery has extended. Its writes of zeros are not counted
as unsynced, so that Fil_shard::space_flush() does nothing.
@param[in]  file  the file */
void sync_recovered_extension(const fil_node_t *file);

/** A data file was opened. Sync it if it is longer than its header says: an
extension that a crash has interrupted was not synced, and the next one uses its
space. A file of a table is synced once. The caller holds the mutex of the
shard.
@param[in,out]  file  the file */
void sync_longer_file(fil_node_t *file);

/** innodb_extend_and_initialize has been set: warn the session if the value can
lose committed rows.
@param[in,out]  thd  the session */
void warn_extend_and_initialize(THD *thd);

/** InnoDB is ready: start the thread that extends data files ahead, unless
innodb_extend_ahead_pct is 0. Not called by a read-only server. */
void extend_ahead_start();

/** InnoDB is about to shut down: end the thread, if it exists. Waits for the
current step of an extension. */
void extend_ahead_stop();

}  // namespace spw

#endif /* extend_hook_h */
