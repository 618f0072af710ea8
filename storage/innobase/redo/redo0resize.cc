/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file redo/redo0resize.cc
The redo log made smaller while it is filled: SET GLOBAL
innodb_redo_log_capacity. */

#include "univ.i"

#include "log0chkp.h"
#include "log0constants.h"
#include "log0log.h"
#include "log0sys.h"
#include "policy/redo0limits.h"
#include "spw0hook.h"
#include "ut0byte.h"

namespace spw {

lsn_t redo_lower_capacity(lsn_t wanted, lsn_t hard, lsn_t soft) {
  lsn_t age = 0;
  lsn_t margin = 0;
  if (log_sys != nullptr) {
    /* The log writer's limit begins with the checkpoint's block. */
    const lsn_t checkpoint = ut_uint64_align_down(
        log_sys->last_checkpoint_lsn.load(), OS_FILE_LOG_BLOCK_SIZE);
    const lsn_t lsn = log_get_lsn(*log_sys);
    /* Not before the redo log has been opened. */
    age = lsn < checkpoint ? 0 : lsn - checkpoint;
    margin = log_free_check_margin(*log_sys);
  }
  return ut_uint64_align_up(
      redo_lowered_capacity(wanted,
                            {.adaptive_flush_max_age = 0,
                             .soft_logical_capacity = soft,
                             .hard_logical_capacity = hard,
                             .free_check_margin = margin},
                            age),
      OS_FILE_LOG_BLOCK_SIZE);
}

}  // namespace spw
