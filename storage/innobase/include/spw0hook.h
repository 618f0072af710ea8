/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file include/spw0hook.h
The only door between upstream's files and ours: what the patches call. */

#ifndef spw0hook_h
#define spw0hook_h

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "db0err.h"
#include "sync0types.h"
#include "ut0counting_semaphore.h"

class IORequest;
class THD;
class buf_page_t;
struct SHOW_VAR;
struct dict_table_t;
struct fil_node_t;
struct fil_space_t;
struct io_context;
struct iocb;
struct rw_lock_t;
struct st_mysql_plugin;
struct trx_t;

namespace spw {

/* AIO depth: aio/aio0array.cc */

class Aio_array;

/** Decide how many I/Os each I/O thread may have pending, and create the kernel
contexts for them. Nothing to do with simulated AIO. Called once, before native
AIO is probed and any array is created, by the thread that starts InnoDB. Waits
up to 2.5 s for room in fs.aio-max-nr that other processes hold. Switches
srv_use_native_aio off if the kernel has no room for even the smallest depth.
@param[in]  n_threads  number of I/O threads, of all arrays */
void aio_start(size_t n_threads);

/** Called once, after native AIO was probed and before any array is created.
@param[in]  n_simulated  pending I/Os per thread with simulated AIO
@return number of pending I/Os per thread */
size_t aio_depth(size_t n_simulated);

/** Hand over one of the contexts that aio_start() created. The caller gives it
back with aio_return_context() or has aio_array_free() destroy it.
@param[in]   n_events  number of events that the context has to hold
@param[out]  context   the context
@return false if there is none that holds as many */
[[nodiscard]] bool aio_take_context(size_t n_events, io_context **context);

/** Take back a context of aio_take_context() that has no I/O in flight.
@param[in]  context  the context */
void aio_return_context(io_context *context);

/** Create what we keep for an AIO array. Called by the thread that starts
InnoDB.
@param[in]  id          the array's mutex, which tells what it is for
@param[in]  n           number of slots
@param[in]  n_segments  number of segments, 1 to 64
@return own: never nullptr */
[[nodiscard]] Aio_array *aio_array_create(latch_id_t id, size_t n,
                                          size_t n_segments);

/** Free what aio_array_create() made, and destroy the array's contexts. All
I/Os of the array have completed and its threads have ended.
@param[in]  array       own: the array, or nullptr
@param[in]  contexts    the contexts, or nullptr with simulated AIO
@param[in]  n_contexts  their number; those not created are nullptr */
void aio_array_free(Aio_array *array, io_context **contexts, size_t n_contexts);

/** Wait for a free slot, and promise it to the caller. No latch is held.
@param[in,out]  array  the array
@param[in,out]  slots  the array's free slots */
void aio_wait_for_slot(Aio_array *array, ut::counting_semaphore &slots);

/** Choose the slot for a request of native AIO. The caller holds the array's
mutex and has been promised a slot by aio_wait_for_slot().
@param[in,out]  array  the array
@param[out]     slot   number of the slot
@return false with simulated AIO, where upstream chooses */
[[nodiscard]] bool aio_take_slot(Aio_array *array, size_t *slot);

/** Note that a slot is free; nothing to note with simulated AIO. The caller
holds the array's mutex.
@param[in,out]  array  the array
@param[in]      slot   number of the slot */
void aio_give_slot(Aio_array *array, size_t slot);

/** Count the slots in use. The caller holds the array's mutex.
@param[in]   array    the array
@param[out]  segments the number in use in each segment
@param[out]  total    the number in use in all
@return false with simulated AIO, where upstream counts */
[[nodiscard]] bool aio_count_slots(const Aio_array *array, ulint *segments,
                                   ulint *total);

/** @param[in]  n_slots  slots of a segment
@return most completions that one io_getevents() call shall ask for */
size_t aio_reap_max(size_t n_slots);

/** Note that the kernel has reported a request as done. Called by the segment's
I/O thread.
@param[in,out]  array    the array, of native AIO
@param[in]      segment  the segment
@param[in]      slot     number of the slot */
void aio_completed(Aio_array *array, size_t segment, size_t slot);

/** Find the completed request that is to be handled next. Called by the
segment's I/O thread, which holds the array's mutex.
@param[in,out]  array      the array, of native AIO
@param[in]      segment    the segment
@param[out]     slot       number of the slot
@param[out]     n_pending  number of slots of the segment that are in use
@return false if no request is completed */
[[nodiscard]] bool aio_next_completed(Aio_array *array, size_t segment,
                                      size_t *slot, ulint *n_pending);

/** Note how many slots are in use. The caller holds the array's mutex.
@param[in,out]  array   the array
@param[in]      n_used  their number */
void aio_note_used(Aio_array *array, size_t n_used);

/** Count an io_submit() that failed. The caller tries again, unless the error
is one that ends the server.
@param[in,out]  array  the array */
void aio_submit_retried(Aio_array *array);

/** Print the AIO lines of SHOW ENGINE INNODB STATUS, section FILE I/O.
@param[in,out]  file  where to print */
void aio_print(FILE *file);

/* Stalls: stall/stall0stall.cc */

/** What a thread can wait for; each is counted by itself. */
enum class Stall {
  /** A user thread, for a checkpoint that makes room in the redo log. */
  REDO_SPACE,
  /** The log writer, for the same: what was written has reached the end. */
  LOG_WRITER,
  /** A user thread, for room in the log buffer. */
  LOG_BUFFER,
  /** A thread that needs a page of the buffer pool and finds none free. */
  FREE_PAGE,
  /** A thread that starts an asynchronous read, for a slot. */
  AIO_READ,
  /** The same for a write. */
  AIO_WRITE,
  /** A thread that extends a data file. */
  FILE_EXTEND,
  /** A thread, for another one that extends a file. */
  FILE_EXTEND_OTHERS,
  /** A thread that writes pages, for room in the doublewrite buffer. */
  DOUBLEWRITE,
  /** No wait: the page cleaners flush at any price, as redo space is about to
  run out. */
  SYNC_FLUSH,
  N
};

/** Note that a thread begins to wait. Any latch may be held.
@param[in]  kind  what for
@return the time */
std::chrono::steady_clock::time_point stall_begin(Stall kind);

/** Note that it waits no longer. Any latch may be held: nothing is written.
@param[in]  kind   what for
@param[in]  start  what stall_begin() returned */
void stall_end(Stall kind, std::chrono::steady_clock::time_point start);

/** Times one wait of this thread. A thread that does not come to wait pays for
a store and a branch. */
class Stall_timer {
 public:
  /** @param[in]  kind  what the thread may have to wait for */
  explicit Stall_timer(Stall kind) : m_kind(kind) {}

  ~Stall_timer() { end(); }

  Stall_timer(const Stall_timer &) = delete;
  Stall_timer &operator=(const Stall_timer &) = delete;

  /** The thread begins to wait, unless it does already. */
  void begin() {
    if (m_start == NOT_WAITING) {
      m_start = stall_begin(m_kind);
    }
  }

  /** The thread waits no longer, if it did. */
  void end() {
    if (m_start != NOT_WAITING) {
      stall_end(m_kind, m_start);
      m_start = NOT_WAITING;
    }
  }

 private:
  static constexpr std::chrono::steady_clock::time_point NOT_WAITING{};

  const Stall m_kind;
  std::chrono::steady_clock::time_point m_start{NOT_WAITING};
};

/** Times one wait of this thread, from here on to the end of the scope. */
class Stall_wait {
 public:
  /** @param[in]  kind  what the thread waits for */
  explicit Stall_wait(Stall kind) : m_timer(kind) { m_timer.begin(); }

 private:
  Stall_timer m_timer;
};

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

/** Why pages are flushed. */
enum class Flush_cause {
  /** The page cleaner's rate, from the redo rate and the dirty pages. */
  ADAPTIVE,
  /** Ahead flushing. */
  AHEAD,
  /** Redo space is about to run out, or a checkpoint was asked for: as fast as
  it goes. */
  SYNC,
  /** To have free pages: the end of the LRU list. */
  LRU,
  /** The server has nothing else to do. */
  IDLE,
  /** A thread that found no free page flushes one itself. */
  SINGLE_PAGE,
  /** A page of the same extent is flushed; in the pages of ADAPTIVE, AHEAD,
  SYNC, LRU and IDLE, too. */
  NEIGHBOR,
  N
};

/** Note that pages have been flushed; 0 are not noted. Any latch may be held.
@param[in]  cause    why
@param[in]  n_pages  how many */
void flush_done(Flush_cause cause, uint64_t n_pages);

/** Note that pages of a flush list are about to be looked for. */
void flush_list_batch_called();

/** Print the section FLUSHING AND STALLS of SHOW ENGINE INNODB STATUS.
@param[in,out]  file  where to print */
void stall_print(FILE *file);

/** Write to the error log about stalls longer than
innodb_stall_log_threshold_ms, if there were any and it is time. Called about
once a second, by one thread, that holds no latch. */
void stall_log();

/* Ahead flushing: flush/flush0round.cc */

/** The page cleaners' coordinator has nothing to do for a while: wait until a
round is due, if there are any, which is while innodb_ahead_flushing is ON or
innodb_adaptive_flushing_method is not native; until it is woken; or until its
second is over.
@param[in]   loop_start  when its second has begun
@param[in]   sig_count   of buf_flush_event
@param[out]  ret_sleep   OS_SYNC_TIME_EXCEEDED if the second is over, else 0
@return whether it has come to one of these; if there are no rounds, or the
server shuts down, it has not */
bool flush_ahead_wait(std::chrono::steady_clock::time_point loop_start,
                      int64_t sig_count, ulint *ret_sleep);

/** The coordinator is about to flush, if there is a reason.
@param[in]  is_sync  whether it flushes at any price: an episode of sync
flushing begins or goes on; else it has ended
@return whether it is for that, or for a round that is due. Called by the
coordinator. */
bool flush_pass_begins(bool is_sync);

/** @param[out]  n_pages    what the round flushes that is due: pages of all
flush lists, as many of each; as it was if none is
@param[out]  lsn_limit  pages that were changed first at it or later stay; the
same
@return whether one is due. Called by the coordinator. */
bool flush_round_is_due(ulint *n_pages, uint64_t *lsn_limit);

/** What to flush in a pass of the coordinator's loop that is not for its own
second: nothing of the flush lists, or what a round that is due flushes. The
page cleaners have nothing to do meanwhile.
@param[in,out]  n_pages    pages of all flush lists; stays as it is if no round
is due, as all else does
@param[in,out]  lsn_limit  pages that were changed first at it or later stay
@param[in,out]  slots      upstream's, one for each buffer pool instance
@param[in]      n_slots    how many */
template <typename Slot>
void flush_ahead_round(ulint *n_pages, uint64_t *lsn_limit, Slot *slots,
                       ulint n_slots) {
  if (flush_round_is_due(n_pages, lsn_limit)) {
    for (ulint i = 0; i < n_slots; ++i) {
      slots[i].n_pages_requested = *n_pages / n_slots;
    }
  }
}

/** What upstream's formula is told that it has had flushed.
@param[in]  n_pages  pages of the last pass
@return those of the rounds since the last call, if they are more; else n_pages.
Called by the coordinator. */
ulint flush_last_pages(ulint n_pages);

/** Upstream's formula has been asked.
@param[in]  n_pages  the pages that it recommends for a second
@return how many to flush now: as many; none if there are rounds, which flush
them over the second. Called by the coordinator. */
ulint flush_recommended(ulint n_pages);

/** The server is idle.
@param[in]  n_pages  the pages that upstream flushes in a second then
@return as many; with ahead flushing no more than rounds may flush in a second,
less what they have: what the device is taken to carry, if that is the limit
(innodb_ahead_flushing_device = LATENCY), as users who come back would wait for
it. Called by the coordinator. */
ulint flush_idle_pages(ulint n_pages);

/** Note what a round of the page cleaners, that was not idle, has flushed.
Called by the coordinator.
@param[in]  is_sync  whether it was at any price
@param[in]  n_list   pages of the flush lists
@param[in]  n_lru    pages of the LRU lists */
void flush_round_done(bool is_sync, ulint n_list, ulint n_lru);

/** The purge coordinator has purged a batch, and holds no latch: it asks for
pages to be flushed, if innodb_ahead_flushing is ON and there is a reason. */
void flush_asked_by_purge();

/** A statement is about to use a table, and may change rows of it: if its
transaction has changed and locked none, wait until the redo log may be filled
further, see innodb_ahead_flushing_max_delay_us. No latch is held. Changes of
the schema mysql and of temporary tables do not wait, nor do statements that
lock whole tables.
@param[in]  trx    the transaction
@param[in]  table  the table */
void redo_delay_statement(const trx_t *trx, const dict_table_t *table);

/** A row is about to be inserted, updated or deleted for a user, and no latch
is held: the same, where the transaction changes many.
@param[in,out]  trx    the transaction; leaves InnoDB (srv0conc.h) if it waits
@param[in]      table  the table */
void redo_delay_change(trx_t *trx, const dict_table_t *table);

/* Atomic writes: atomic/atomic0file.cc */

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

/** Print what makes pages whole, in the section FLUSHING AND STALLS of SHOW
ENGINE INNODB STATUS; nothing if innodb_use_atomic_writes is OFF.
@param[in,out]  file  where to print */
void atomic_print(FILE *file);

/** @return the plugin of the table
INFORMATION_SCHEMA.INNODB_ATOMIC_WRITE_FILES. Called while the program is
loaded, for upstream's array of plugins. */
[[nodiscard]] st_mysql_plugin atomic_table();

/* The doublewrite files, and recovery from them: dblwr/ */

/** Pages that no redo protects were written, and have left the buffer pool's
flush list: sync their files, ahead of the commit that relies on them. They can
be of several tablespaces: a full-text index has some of its own. */
void sync_unlogged_pages();

/** @return whether the doublewrite file has to be synced ahead of its pages'
writes whatever innodb_flush_method is: innodb_doublewrite_fsync */
[[nodiscard]] bool dblwr_needs_fsync();

/** A doublewrite file has its size, and is about to be used: sync it and its
folder, or end the server.
@param[in]  file  the file
@param[in]  path  its path */
void dblwr_sync_file(int file, const std::string &path);

/** Recovery has flushed all pages, and no thread writes any: clear the copies
in the doublewrite files where pages are, or were, written without them. */
void dblwr_recovered();

/** InnoDB has shut down, and the doublewrite files are closed: if pages were
written without copies, and all is flushed, clear the copies. */
void dblwr_shutdown();

/** @param[in]  copy  a page of the doublewrite buffer, at recovery
@return whether it must not be put in the place of a corrupt page: it is of
another data directory, as its LSN is beyond the redo log's files, which the
error log says; or it is from before the checkpoint, and pages were written
without copies since the files were cleared, or copies of another data directory
have been seen */
[[nodiscard]] bool dblwr_copy_is_unusable(const unsigned char *copy);

/** @param[in]  one      a page of the doublewrite buffer
@param[in]  another  another
@return whether the first is newer: its FIL_PAGE_LSN is higher */
[[nodiscard]] bool dblwr_copy_is_newer(const unsigned char *one,
                                       const unsigned char *another);

/** @param[in]  copy  a page of the doublewrite buffer
@param[in]  older  another, which is not newer
@return whether the second is of the same page and not from before the
checkpoint: what has changed since is in the redo log */
[[nodiscard]] bool dblwr_copy_may_replace(const unsigned char *copy,
                                          const unsigned char *older);

/** Copies of the same page are to be tried from the newest on.
@param[in,out]  pages  those of the doublewrite files */
template <class Pages>
void dblwr_newest_first(Pages *pages) {
  std::stable_sort(pages->begin(), pages->end(),
                   [](const auto *one, const auto *another) {
                     return dblwr_copy_is_newer(one->m_buffer.begin(),
                                                another->m_buffer.begin());
                   });
}

/** @param[in]  pages  those of the doublewrite files, newest first
@param[in]  copy   one of them, which is torn itself
@return whether there is an older one in its place: a power cut tears a copy
before the page that it is of is written again, which can be torn from before */
template <class Pages>
[[nodiscard]] bool dblwr_has_older_copy(const Pages &pages,
                                        const unsigned char *copy) {
  auto page = std::find_if(pages.begin(), pages.end(), [copy](const auto *it) {
    return it->m_buffer.begin() == copy;
  });
  return page != pages.end() &&
         std::any_of(++page, pages.end(), [copy](const auto *it) {
           return dblwr_copy_may_replace(copy, it->m_buffer.begin());
         });
}

/** @param[in]  copy  a page of the doublewrite buffer
@param[in]  all   those of the same page, with itself
@return whether it must not be taken: it is unusable, or torn, as far as that
can be told before the tablespace is open, which is for the first page of a
file; or a newer one is torn, and this one is from before the checkpoint */
[[nodiscard]] bool dblwr_copy_is_rejected(
    const unsigned char *copy, const std::vector<const unsigned char *> &all);

/** @param[in]  pages  those of the doublewrite files, in any order
@param[in]  copy   one of them
@return dblwr_copy_is_rejected() */
template <class Pages>
[[nodiscard]] bool dblwr_copy_must_be_rejected(const Pages &pages,
                                               const unsigned char *copy) {
  std::vector<const unsigned char *> all;
  for (const auto *page : pages) {
    const unsigned char *other = page->m_buffer.begin();
    /* FIL_PAGE_OFFSET and FIL_PAGE_SPACE_ID, of 4 bytes each. */
    if (memcmp(other + 4, copy + 4, 4) == 0 &&
        memcmp(other + 34, copy + 34, 4) == 0) {
      all.push_back(other);
    }
  }
  return dblwr_copy_is_rejected(copy, all);
}

/** The first page of a data file is corrupt, and upstream has surveyed the file
for its tablespace. In that survey what lies at 8 KiB of a page, and has the
number of an encrypted page's type where a page would have it, is a page, and
one is enough.
@param[in]      path      the file
@param[in]      expected  the tablespace that recovery opens
@param[in]      error     of the survey
@param[in,out]  space_id  what it has found, or nothing; becomes the expected
one if there is a copy of that one's first page and none of the other's, and the
corrupt page names it, too
@return error; DB_SUCCESS if it is now the expected one */
[[nodiscard]] dberr_t dblwr_space(const char *path, uint32_t expected,
                                  dberr_t error, uint32_t *space_id);

/** The page of the transaction system is about to be read, ahead of recovery,
which would put the doublewrite buffer's copy in its place. The server stops if
the first page of the system tablespace, which is restored before the redo log
is known, was restored from a copy of another data directory, or is known not to
be usable from an earlier start.
@return false if the page of the transaction system is torn and there is a copy,
so that it has to be read later (dblwr_check_system_pages()) */
[[nodiscard]] bool dblwr_trx_sys_page_can_be_read();

/** The redo log has been applied: read from the page of the transaction system
what could not be read ahead of it. The server stops if the first page of the
system tablespace was restored from a copy from before the checkpoint that is
not usable.
@return as dblwr::v1::init(); DB_SUCCESS if nothing is due */
[[nodiscard]] dberr_t dblwr_check_system_pages();

/* The redo log made smaller: redo/redo0resize.cc */

/** Decide how far the age of the last checkpoint above which the log writer
waits is lowered now. The caller makes it known, with what follows from it, and
asks again at its next round if it is more than was wanted. The caller holds the
mutexes of the redo log's files and of its limits, or InnoDB is being started.
@param[in]  wanted  the new one, bytes of LSN, a multiple of the block
@return the one to be in force, a multiple of the block: no redo that threads
have been let in with is beyond it */
lsn_t redo_lower_capacity(lsn_t wanted);

/* Direct I/O for the redo log: redo/redo0direct.cc */

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

/* Extended data files: extend/extend0space.cc */

/** Sync a data file that this thread has extended, before other threads learn
its new size: if this thread does not hold the tablespace's latch, and with
innodb_flush_method = O_DIRECT_NO_FSYNC, which syncs a file only when its size
changes. Otherwise does nothing. The caller holds no mutex of the shard.
@param[in,out]  file           the file
@param[in]      n_pages_added  by how much its size is about to grow */
void sync_extended_file(fil_node_t *file, uint32_t n_pages_added);

/** innodb_extend_and_initialize has been set: warn the session if its value can
lose committed rows.
@param[in,out]  thd  the session */
void warn_extend_and_initialize(THD *thd);

/* Extending ahead: extend/extend0thread.cc */

/** InnoDB is open for work: start the thread that extends data files ahead, if
innodb_extend_ahead_pct is not 0. Not called by a server that is read-only. */
void extend_ahead_start();

/** InnoDB is about to shut down: end the thread, if there is one. Waits for a
step of an extension that is under way. */
void extend_ahead_stop();

/* Status variables: status/status0vars.cc */

/** SHOW_FUNC of our status variables: makes var an array of all of them.
@param[out]  var  the variable
@return 0 */
int show_status_variables(THD *, SHOW_VAR *var, char *);

}  // namespace spw

#endif /* spw0hook_h */
