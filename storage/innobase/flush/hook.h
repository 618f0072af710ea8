/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/hook.h
Hook interface for upstream's files: ahead flushing (flush0round.cc),
syncs of data files (flush0sync.cc), and counters of flushed pages
(flush0cause.cc). */

#ifndef flush_hook_h
#define flush_hook_h

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "buf0types.h"
#include "univ.i"

namespace spw {

/** Cause of flushing. */
enum class Flush_cause {
  /** Adaptive flushing: a rate from redo generation and dirty pages. */
  ADAPTIVE,
  /** Ahead flushing. */
  AHEAD,
  /** Sync flushing: redo space is about to run out, or a checkpoint was
  requested. */
  SYNC,
  /** LRU scan: makes free pages at the end of the LRU list. */
  LRU,
  /** The server is idle. */
  IDLE,
  /** A thread that found no free page flushes a single page itself. */
  SINGLE_PAGE,
  /** Another page of the same extent is flushed. Such pages are included in the
  pages of ADAPTIVE, AHEAD, SYNC, LRU and IDLE. */
  NEIGHBOR,
  N
};

/** Count flushed pages. The caller may hold any latch.
@param[in]  cause    why they were flushed
@param[in]  n_pages  number of pages; 0 counts no batch */
void count_flushed(Flush_cause cause, uint64_t n_pages);

/** Count a flush-list batch, which is about to scan the list. */
void count_flush_list_batch();

/** Wait until the page cleaners' coordinator has something to do: a flush round
is due, buf_flush_event is set, or the coordinator's second is over. There are
flush rounds while innodb_ahead_flushing is ON or
innodb_adaptive_flushing_method is not native.
@param[in]   loop_start  start of the coordinator's second
@param[in]   sig_count   of buf_flush_event
@param[out]  ret_sleep   OS_SYNC_TIME_EXCEEDED if the second is over, else 0
@return true after the wait; false if there are no flush rounds, or the server
shuts down: the caller has to sleep */
bool flush_ahead_wait(std::chrono::steady_clock::time_point loop_start,
                      int64_t sig_count, ulint *ret_sleep);

/** A pass of the coordinator begins. Called by the coordinator.
@param[in]  is_sync  whether it does sync flushing: an episode begins or
                     continues; else the episode has ended
@return whether the pass does sync flushing, or a flush round that is due */
bool flush_pass_begins(bool is_sync);

/** Get the flush round that is due. Called by the coordinator.
@param[out]  n_pages    pages to flush, the same number from each flush list;
                        unchanged if no round is due
@param[out]  lsn_limit  flush only pages whose first change is before it;
                        unchanged if no round is due
@return whether a round is due */
bool flush_round_is_due(ulint *n_pages, uint64_t *lsn_limit);

/** Set what a pass of the coordinator flushes without a recommendation of
adaptive flushing: the flush round that is due. If none is due, all parameters
stay unchanged. Invariant: the page cleaners are idle meanwhile.
@param[in,out]  n_pages    pages of all flush lists
@param[in,out]  lsn_limit  flush only pages whose first change is before it
@param[in,out]  slots      upstream's, one for each buffer pool instance
@param[in]      n_slots    number of slots */
template <typename Slot>
void flush_ahead_round(ulint *n_pages, uint64_t *lsn_limit, Slot *slots,
                       ulint n_slots) {
  if (flush_round_is_due(n_pages, lsn_limit)) {
    for (ulint i = 0; i < n_slots; ++i) {
      slots[i].n_pages_requested = *n_pages / n_slots;
    }
  }
}

/** Get the flushed pages to report to adaptive flushing. Called by the
coordinator.
@param[in]  n_pages  pages of the last pass
@return the pages of the flush rounds since the last call, or n_pages if more */
ulint pages_since_last_call(ulint n_pages);

/** Take over the recommendation of adaptive flushing. Called by the
coordinator.
@param[in]  n_pages  pages recommended for a second
@return pages to flush now: n_pages, or 0 if there are flush rounds, which
spread them over the second */
ulint take_recommendation(ulint n_pages);

/** While threads wait for redo space, no session is active, and a server that
flushed nothing would stand still for ever: innodb_idle_flush_pct = 0 with
innodb_flush_sync = OFF. Called by the coordinator.
@param[in]  idle_pct  innodb_idle_flush_pct
@return whether an idle server flushes */
bool flushes_when_idle(ulint idle_pct);

/** Limit the flushing of an idle server, as sessions that become active would
wait for it. Called by the coordinator.
@param[in]  n_pages  pages that InnoDB flushes in an idle second
@return n_pages, at least innodb_io_capacity while threads wait for redo space;
with ahead flushing at most the pages that rounds may flush in
a second, less those that they have flushed. With innodb_ahead_flushing_device =
LATENCY, the device write capacity is a limit, too */
ulint idle_page_limit(ulint n_pages);

/** Note what a pass of the page cleaners has flushed. Not called for the
flushing of an idle server. Called by the coordinator.
@param[in]  is_sync  whether it was sync flushing
@param[in]  n_list   pages of the flush lists
@param[in]  n_lru    pages of the LRU lists */
void flush_round_done(bool is_sync, ulint n_list, ulint n_lru);

/** A page of a batch was written. The caller holds
buf_pool->flush_state_mutex.
@param[in]  type    of the batch
@param[in]  n_left  pages of the batch that are still being written */
void flush_page_written(buf_flush_t type, ulint n_left);

/** The data files are synced after a doublewrite batch. Any thread.
@return the time now, for data_sync_ends() */
std::chrono::steady_clock::time_point data_sync_begins();

/** The data files are synced.
@param[in]  begin  what data_sync_begins() has returned */
void data_sync_ends(std::chrono::steady_clock::time_point begin);

/** Do a task for each index below n, in several threads at a time. Any thread.
@param[in]  n     number of indexes
@param[in]  task  the task
@return false if nothing was done: there are no threads, or they help another
caller */
bool do_together(size_t n, const std::function<void(size_t)> &task);

/** Sync the data files of several shards at a time: a device flushes its
volatile cache once for all syncs that wait for it. Any thread that holds no
mutex of a shard.
@param[in]  shards  upstream's
@return false if nothing was synced, and the caller has to: with
innodb_ahead_flushing = OFF, while the server starts or shuts down, while
another caller is helped, and if no thread can be created */
template <typename Shards>
bool sync_together(const Shards &shards) {
  std::vector<size_t> unsynced;
  for (size_t i = 0; i < shards.size(); ++i) {
    if (shards[i]->m_unflushed_spaces.get_length() != 0) {
      unsynced.push_back(i);
    }
  }
  return do_together(unsynced.size(), [&](size_t i) {
    shards[unsynced[i]]->flush_file_spaces();
  });
}

/** InnoDB is ready: make the threads that sync data files, if
innodb_ahead_flushing is ON. Not called by a read-only server. */
void sync_threads_start();

/** InnoDB is about to shut down: end these threads. Waits for syncs that they
do. */
void sync_threads_stop();

/** Request flushing, if innodb_ahead_flushing is ON and a threshold is
exceeded. Called by the purge coordinator after a batch, without a latch. */
void flush_requested_by_purge();

}  // namespace spw

#endif /* flush_hook_h */
