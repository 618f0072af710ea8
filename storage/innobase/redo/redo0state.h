/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file redo/redo0state.h
State of the redo log. Any thread reads it without a latch. */

#ifndef redo0state_h
#define redo0state_h

#include <cstdint>

#include "redo/policy/redo0limits.h"

namespace spw {

/** State of the redo log: LSNs and bytes of LSN. All 0 before it is open. */
struct Redo_state {
  uint64_t lsn_current{0};
  uint64_t lsn_flushed{0};
  uint64_t lsn_last_checkpoint{0};

  uint64_t checkpoint_age{0};

  /** The checkpoint ages at which InnoDB acts. */
  Redo_limits limits;
};

/** @return the capacity in force; all 0 before the redo log is open */
Redo_capacity redo_capacity();

/** @return the state of the redo log */
Redo_state redo_state();

/** Say whether redo log files are initialised ahead of the redo from now on:
see redo_initialise_ahead(). Any thread.
@param[in]  is_on  whether they are */
void redo_set_ahead(bool is_on);

}  // namespace spw

#endif /* redo0state_h */
