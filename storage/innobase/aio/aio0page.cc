/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file aio/aio0page.cc
Times the sleeps of threads for latches, such as that of a page under I/O. */

#include "univ.i"

#include "aio/hook.h"
#include "sync0rw.h"

namespace spw {

/** @return the kind of a sleep for a latch: see Latch_wait */
static Stall kind_of_sleep(ulint request_type, const rw_lock_t *latch) {
  if ((request_type != RW_LOCK_S && request_type != RW_LOCK_SX &&
       request_type != RW_LOCK_X) ||
      !latch->is_block_lock || latch->recursive.load()) {
    return Stall::LATCH;
  }
  /* The latch is passed from the thread that starts an I/O to the one that
  completes it, and is not recursive meanwhile. A read holds an X-latch, a
  write an SX-latch, with or without S-latches beside: see rw_lock_t. */
  const int32_t lock_word = latch->lock_word.load();
  if (lock_word == 0) {
    return Stall::PAGE_READ;
  }
  return lock_word > 0 && lock_word <= X_LOCK_HALF_DECR ? Stall::PAGE_WRITE
                                                        : Stall::LATCH;
}

Latch_wait::Latch_wait(ulint request_type, const rw_lock_t *latch)
    : m_wait(kind_of_sleep(request_type, latch)) {}

}  // namespace spw
