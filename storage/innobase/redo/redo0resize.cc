/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file redo/redo0resize.cc
Resizing down of the redo log in use: SET GLOBAL innodb_redo_log_capacity. */

#include "univ.i"

#include "log0constants.h"
#include "redo/hook.h"
#include "redo/policy/redo0limits.h"
#include "redo/redo0state.h"
#include "ut0byte.h"

namespace spw {

lsn_t redo_lower_capacity(lsn_t wanted) {
  const Redo_state state = redo_state();
  /* The log writer's limit counts from the checkpoint's block. */
  const lsn_t checkpoint =
      ut_uint64_align_down(state.lsn_last_checkpoint, OS_FILE_LOG_BLOCK_SIZE);
  /* The redo log may not be open yet. */
  const lsn_t checkpoint_age =
      state.lsn_current < checkpoint ? 0 : state.lsn_current - checkpoint;
  return ut_uint64_align_up(
      redo_lowered_capacity(wanted, redo_capacity(), checkpoint_age),
      OS_FILE_LOG_BLOCK_SIZE);
}

}  // namespace spw
