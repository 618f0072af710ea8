/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file atomic/hook.h
The hook interface of atomic writes for InnoDB's files. Implemented in
atomic0file.cc. */

#ifndef atomic_hook_h
#define atomic_hook_h

#include <cstddef>
#include <cstdint>

#include "db0err.h"
#include "os0file.h"
#include "univ.i"

class buf_page_t;
struct fil_node_t;
struct fil_space_t;
struct iocb;

namespace spw {

/** Apply the settings that innodb_use_atomic_writes = ON implies. Called once,
after InnoDB's variables are read, by the thread that starts InnoDB.
@param[in,out]  flush_method        innodb_flush_method, enum srv_unix_flush_t
@param[in]      doublewrite_folder  innodb_doublewrite_dir; can be nullptr
@return false if the server must not start, because the marker file of the
doublewrite copies cannot be read; the error log says why */
[[nodiscard]] bool atomic_start(ulong *flush_method,
                                const char *doublewrite_folder);

/** Check a data file that InnoDB is about to create or open as a tablespace.
@param[in]  path      the file
@param[in]  space_id  the tablespace's ID
@param[in]  flags     the tablespace's flags
@return DB_SUCCESS; DB_UNSUPPORTED if innodb_use_atomic_writes is ON and the
file's pages would not be written atomically, with a message in the error log
and a warning for the session */
[[nodiscard]] dberr_t atomic_may_use(const char *path, uint32_t space_id,
                                     uint32_t flags);

/** As atomic_may_use(), for a file that is to become an undo tablespace. */
[[nodiscard]] dberr_t atomic_may_use_undo(const char *path, uint32_t space_id);

/** As atomic_may_use(), for the files that the server needs to start: those of
the system tablespace and of undo tablespaces.
@param[in]  path   the file
@param[in]  space  its tablespace, of any kind
@return false if the file is one of these and may not be used; else true */
[[nodiscard]] bool atomic_may_use_system(const char *path,
                                         const fil_space_t *space);

/** InnoDB has opened a data file: choose its method and store it in the file.
The caller holds the shard's mutex.
@param[in,out]  file  the file */
void atomic_file_opened(fil_node_t *file);

/** InnoDB is about to close a data file. The caller holds the shard's mutex.
@param[in,out]  file  the file */
void atomic_file_closes(fil_node_t *file);

/** @param[in]  page  a page that is fixed for its write
@return whether it bypasses the doublewrite buffer. The caller stores this in
the write request: IORequest::m_spw_bypass */
[[nodiscard]] bool atomic_bypasses_doublewrite(const buf_page_t *page);

/** The scope in which a request is submitted to os_aio(); its file is pinned
open. The write of a full page gets the method of its file
(IORequest::m_spw_method) and, for RWF_ATOMIC, a permit. The destructor releases
the permit of a synchronous write, atomic_completed() that of an asynchronous
one. The server stops if the page has no doublewrite copy and its file, which
was opened again, has no method now. */
class Atomic_write_scope {
 public:
  /** @param[in,out]  request     the request
  @param[in]      file        the file
  @param[in]      page_bytes  the file's page size
  @param[in]      n_bytes     bytes to write: less than a page if the page is
                              page-compressed already
  @param[in]      is_page     the request is for a buffer pool page
  @param[in]      is_sync     this thread performs the I/O */
  Atomic_write_scope(IORequest *request, const fil_node_t *file,
                     size_t page_bytes, size_t n_bytes, bool is_page,
                     bool is_sync);
  ~Atomic_write_scope();

  Atomic_write_scope(const Atomic_write_scope &) = delete;
  Atomic_write_scope &operator=(const Atomic_write_scope &) = delete;

 private:
  bool m_has_permit;
};

/** A native AIO request was prepared: set RWF_ATOMIC if its method needs it.
@param[in]      request  the request
@param[in,out]  control  the same request in the kernel's format */
void atomic_prepare(const IORequest &request, iocb *control);

/** The kernel has reported a native AIO request as completed or failed: release
its permit, if any. Called by the I/O thread of its segment, which holds no
mutex.
@param[in]  control  the request */
void atomic_completed(const iocb *control);

/** A native AIO request could not be submitted, or failed. The server stops if
the request has RWF_ATOMIC and either the kernel rejected it or the disk is
full.
@param[in]  request  the request
@param[in]  error    errno
@param[in]  path     its file */
void atomic_failed(const IORequest &request, int error, const char *path);

/** A native AIO write was short, and InnoDB is about to submit the remainder.
The server stops if the write has a method.
@param[in]  request  the request
@param[in]  path     its file */
void atomic_resubmitted(const IORequest &request, const char *path);

/** Perform a synchronous write that has a method. The server stops if the
kernel rejects RWF_ATOMIC or writes only a part, or if an RWF_ATOMIC write finds
the disk full.
@param[in]   request    the request
@param[in]   file       the file
@param[in]   buffer     the bytes to write
@param[in]   n_bytes    their number
@param[in]   offset     offset in the file, in bytes
@param[out]  n_written  the return value of pwritev2() */
void atomic_write_with_method(const IORequest &request, int file, void *buffer,
                              size_t n_bytes, uint64_t offset,
                              ssize_t *n_written);

/** Perform a synchronous write if it has a method:
atomic_write_with_method().
@return whether it has one */
[[nodiscard]] inline bool atomic_write(const IORequest &request, int file,
                                       void *buffer, size_t n_bytes,
                                       uint64_t offset, ssize_t *n_written) {
  if (request.m_spw_method == Atomic_method{}) {
    return false;
  }
  atomic_write_with_method(request, file, buffer, n_bytes, offset, n_written);
  return true;
}

}  // namespace spw

#endif /* atomic_hook_h */
