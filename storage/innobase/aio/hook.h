/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file aio/hook.h
AIO depth, and waits for latches of pages under I/O: the functions that InnoDB's
files call. They are in aio0array.cc and aio0page.cc. */

#ifndef aio_hook_h
#define aio_hook_h

#include <cstddef>
#include <cstdio>

#include "stall/hook.h"
#include "sync0types.h"
#include "univ.i"
#include "ut0counting_semaphore.h"

struct io_context;
struct rw_lock_t;

namespace spw {

class Aio_array;

/** Decide how many I/Os each I/O thread may have pending, and create the kernel
contexts for them. Does nothing with simulated AIO. Called once, before native
AIO is probed and any array is created, by the thread that starts InnoDB. Waits
up to 2.5 s for other processes to release AIO requests (fs.aio-max-nr).
Switches srv_use_native_aio off if the kernel has too few for the minimum depth.
@param[in]  n_threads  number of I/O threads of all arrays */
void aio_start(size_t n_threads);

/** Called once, after native AIO was probed and before any array is created.
@param[in]  n_simulated  pending I/Os per thread with simulated AIO
@return number of pending I/Os per thread */
size_t aio_depth(size_t n_simulated);

/** Take one of the contexts that aio_start() created. The caller returns it
with aio_return_context(), or aio_array_free() destroys it.
@param[in]   n_events  number of events that the context has to hold
@param[out]  context   the context
@return false if no context is left, or the contexts hold fewer events */
[[nodiscard]] bool aio_take_context(size_t n_events, io_context **context);

/** Return a context of aio_take_context() that has no I/O in flight.
@param[in]  context  the context */
void aio_return_context(io_context *context);

/** Create Spillway's part of an AIO array. Called by the thread that starts
InnoDB.
@param[in]  id          the array's mutex, which tells the array's purpose
@param[in]  n           number of slots
@param[in]  n_segments  number of segments, 1 to 64
@return own: never nullptr */
[[nodiscard]] Aio_array *aio_array_create(latch_id_t id, size_t n,
                                          size_t n_segments);

/** Free the object of aio_array_create(), and destroy the array's contexts. All
I/Os of the array have completed and its threads have ended.
@param[in]  array       own: the array, or nullptr
@param[in]  contexts    the contexts, or nullptr with simulated AIO
@param[in]  n_contexts  their number; those not created are nullptr */
void aio_array_free(Aio_array *array, io_context **contexts, size_t n_contexts);

/** Wait for a free slot, and reserve it for the caller, which holds no latch.
@param[in,out]  array  the array
@param[in,out]  slots  the array's free slots */
void aio_wait_for_slot(Aio_array *array, ut::counting_semaphore &slots);

/** Choose the slot for a request of native AIO. The caller holds the array's
mutex, and a reservation by aio_wait_for_slot().
@param[in,out]  array  an array of native AIO
@return number of the slot */
[[nodiscard]] size_t aio_take_slot(Aio_array *array);

/** Release a slot. Does nothing with simulated AIO. The caller holds the
array's mutex.
@param[in,out]  array  the array
@param[in]      slot   number of the slot */
void aio_release_slot(Aio_array *array, size_t slot);

/** Count the slots in use. The caller holds the array's mutex.
@param[in]   array     the array
@param[out]  segments  number in use in each segment
@param[out]  total     total number in use
@return false with simulated AIO, where InnoDB counts */
[[nodiscard]] bool aio_count_slots(const Aio_array *array, ulint *segments,
                                   ulint *total);

/** @param[in]  n_slots  slots of a segment
@return max number of completions that one io_getevents() call asks for */
size_t aio_reap_max(size_t n_slots);

/** Record that the kernel has completed a request. Called by the segment's I/O
thread.
@param[in,out]  array    the array, of native AIO
@param[in]      segment  the segment
@param[in]      slot     number of the slot */
void aio_completed(Aio_array *array, size_t segment, size_t slot);

/** Find the completed request to handle next. Called by the segment's I/O
thread, which holds the array's mutex.
@param[in,out]  array      the array, of native AIO
@param[in]      segment    the segment
@param[out]     slot       number of the slot
@param[out]     n_pending  number of slots of the segment that are in use
@return false if no request is completed */
[[nodiscard]] bool aio_next_completed(Aio_array *array, size_t segment,
                                      size_t *slot, ulint *n_pending);

/** Record the number of slots in use. The caller holds the array's mutex.
@param[in,out]  array   the array
@param[in]      n_used  the number */
void aio_note_used(Aio_array *array, size_t n_used);

/** Count an io_submit() that failed. The caller retries it, unless the error
ends the server.
@param[in,out]  array  the array */
void aio_submit_retried(Aio_array *array);

/** Times a thread's sleep for a latch or a mutex: of a page that is being
written, of one that another thread reads, or any other. What counts is the
begin of the sleep. */
class Latch_wait {
 public:
  /** @param[in]  request_type  what this thread is about to wait for, as in the
  wait array: RW_LOCK_S, ..., or a mutex
  @param[in]  latch         the latch; ignored for a mutex */
  Latch_wait(ulint request_type, const rw_lock_t *latch);

 private:
  Stall_wait m_wait;
};

/** Print the AIO lines of SHOW ENGINE INNODB STATUS, section FILE I/O.
@param[in,out]  file  where to print */
void aio_print(FILE *file);

}  // namespace spw

#endif /* aio_hook_h */
