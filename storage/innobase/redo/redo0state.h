/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file redo/redo0state.h
How full the redo log is. Any thread reads it, no latch is taken. */

#ifndef redo0state_h
#define redo0state_h

#include <cstdint>

#include "redo/policy/redo0limits.h"

namespace spw {

/** How full the redo log is; LSNs and bytes of LSN. All 0 before it is open. */
struct Redo_fill {
  uint64_t lsn_current{0};
  uint64_t lsn_flushed{0};
  uint64_t lsn_last_checkpoint{0};

  /** Age of the last checkpoint. */
  uint64_t age{0};

  /** The ages at which InnoDB acts. */
  Redo_limits limits;
};

/** @return the ages in force; all 0 before the redo log is open */
Redo_capacity redo_capacity();

/** @return how full the redo log is */
Redo_fill redo_fill();

}  // namespace spw

#endif /* redo0state_h */
