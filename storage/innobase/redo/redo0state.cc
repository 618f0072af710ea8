/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file redo/redo0state.cc
State of the redo log. */

#include "redo/redo0state.h"

#include "univ.i"

#include "log0chkp.h"
#include "log0log.h"
#include "log0sys.h"

namespace spw {

Redo_capacity redo_capacity() {
  if (log_sys == nullptr) {
    return {};
  }
  const Log_files_capacity &capacity = log_sys->m_capacity;
  return {.adaptive_flush_max_age = capacity.adaptive_flush_max_age(),
          .soft_logical_capacity = capacity.soft_logical_capacity(),
          .hard_logical_capacity = capacity.hard_logical_capacity(),
          .free_check_margin = log_free_check_margin(*log_sys)};
}

Redo_state redo_state() {
  Redo_state state;

  if (log_sys == nullptr) {
    return state;
  }

  /* Invariant: none is ahead of the next, as they are read in this order. */
  state.lsn_last_checkpoint = log_sys->last_checkpoint_lsn.load();
  state.lsn_flushed = log_sys->flushed_to_disk_lsn.load();
  state.lsn_current = log_get_lsn(*log_sys);
  state.checkpoint_age = state.lsn_current - state.lsn_last_checkpoint;
  state.limits = redo_limits(redo_capacity());
  return state;
}

}  // namespace spw
