/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/hook.h
What upstream's files call of ahead flushing (flush0round.cc) and of the
counters of flushed pages (flush0cause.cc). */

#ifndef flush_hook_h
#define flush_hook_h

#include <chrono>
#include <cstdint>

#include "univ.i"

namespace spw {

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

}  // namespace spw

#endif /* flush_hook_h */
