/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file atomic/hook.h
What upstream's files call of atomic writes: atomic0file.cc. */

#ifndef atomic_hook_h
#define atomic_hook_h

#include <cstddef>
#include <cstdint>

#include "db0err.h"
#include "univ.i"

class IORequest;
class buf_page_t;
struct fil_node_t;
struct fil_space_t;
struct iocb;

namespace spw {

/** InnoDB's variables have been read: what innodb_use_atomic_writes = ON brings
with it is set. Called once, by the thread that starts InnoDB.
@param[in,out]  flush_method        innodb_flush_method, enum srv_unix_flush_t
@param[in]      doublewrite_folder  innodb_doublewrite_dir, or nullptr */
void atomic_start(ulong *flush_method, const char *doublewrite_folder);

/** A data file is about to become a tablespace, or to be opened as one.
@param[in]  path      the file
@param[in]  space_id  the tablespace
@param[in]  flags     its flags
@return DB_SUCCESS; DB_UNSUPPORTED if innodb_use_atomic_writes is ON and its
pages would not be written whole, which the error log and a warning say */
[[nodiscard]] dberr_t atomic_may_use(const char *path, uint32_t space_id,
                                     uint32_t flags);

/** The same for a file that is about to become an undo tablespace. */
[[nodiscard]] dberr_t atomic_may_use_undo(const char *path, uint32_t space_id);

/** The same for a file of the system tablespace or an undo tablespace, without
which the server does not start.
@param[in]  path   the file
@param[in]  space  the tablespace; of any kind
@return false if it is of these two and may not be used */
[[nodiscard]] bool atomic_may_use_system(const char *path,
                                         const fil_space_t *space);

/** A data file has been opened: find out how its pages are written, and keep it
with the file. The mutex of its shard is held.
@param[in,out]  file  the file */
void atomic_file_opened(fil_node_t *file);

/** A data file is about to be closed. The mutex of its shard is held.
@param[in,out]  file  the file */
void atomic_file_closes(fil_node_t *file);

/** @param[in]  page  a page that is fixed for its write
@return whether it is to be written without the doublewrite buffer. The request
of the write is to say so: IORequest::m_spw_bypass */
[[nodiscard]] bool atomic_bypasses_doublewrite(const buf_page_t *page);

/** A request that is handed over to os_aio() in the scope of this; its file is
pinned open. If it is the write of a page of a file whose pages are written
whole, it is marked with what makes it so (IORequest::m_spw_means), and has a
permit if it needs one; that of an asynchronous write is given back by
atomic_completed(). The server stops if the page has no copy and its file,
opened again, does not make it whole. */
class Atomic_write_scope {
 public:
  /** @param[in,out]  request   the request
  @param[in]      file        the file
  @param[in]      page_bytes  its pages
  @param[in]      n_bytes     how much is written: less than a page if that is
                              page-compressed already
  @param[in]      is_page     it is of a page of the buffer pool
  @param[in]      is_sync     it is done by this thread */
  Atomic_write_scope(IORequest *request, const fil_node_t *file,
                     size_t page_bytes, size_t n_bytes, bool is_page,
                     bool is_sync);
  ~Atomic_write_scope();

  Atomic_write_scope(const Atomic_write_scope &) = delete;
  Atomic_write_scope &operator=(const Atomic_write_scope &) = delete;

 private:
  bool m_has_permit;
};

/** A request of native AIO was prepared: if it needs RWF_ATOMIC it has that.
@param[in]      request  the request
@param[in,out]  control  the same, as the kernel takes it */
void atomic_prepare(const IORequest &request, iocb *control);

/** The kernel has reported a request of native AIO as done, or failed. Called
by its segment's I/O thread, which holds no mutex.
@param[in]  control  the request */
void atomic_completed(const iocb *control);

/** A request of native AIO was not submitted, or has failed. The server stops
if it has RWF_ATOMIC and the kernel has rejected that, or there is no room.
@param[in]  request  the request
@param[in]  error    errno
@param[in]  path     its file */
void atomic_failed(const IORequest &request, int error, const char *path);

/** A write of native AIO was done in part, and its rest is about to be
submitted. The server stops if it was to be written whole.
@param[in]  request  the request
@param[in]  path     its file */
void atomic_resubmitted(const IORequest &request, const char *path);

/** A synchronous write is due: if it is to be whole, do it. The server stops if
the kernel rejects RWF_ATOMIC, or writes a part, or if there is no room for it.
@param[in]   request    the request
@param[in]   file       the file
@param[in]   buffer     what is written
@param[in]   n_bytes    how much
@param[in]   offset     where
@param[out]  n_written  what pwritev2() has returned
@return whether it is */
bool atomic_write(const IORequest &request, int file, void *buffer,
                  size_t n_bytes, uint64_t offset, ssize_t *n_written);

}  // namespace spw

#endif /* atomic_hook_h */
