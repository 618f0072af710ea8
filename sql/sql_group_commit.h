/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file sql/sql_group_commit.h
Waits in group commit of the binary log. */

#ifndef sql_group_commit_h
#define sql_group_commit_h

#include "flush/flush0commit.h"
#include "mysql/psi/mysql_mutex.h"
#include "sql/rpl_commit_stage_manager.h"
#include "stall/hook.h"

namespace spw {

/** Lock a stage of group commit, and time the wait for the group ahead, if that
is in the stage. Before the flush stage the leader waits, without the mutex, for
as many sessions as ahead flushing wants in its group (commit_group()). Their
transactions hold their row locks meanwhile.
@param[in]      stage        the stage
@param[in,out]  stage_mutex  the stage's mutex */
inline void wait_for_group_ahead(Commit_stage_manager::StageID stage,
                                 mysql_mutex_t *stage_mutex) {
  if (stage == Commit_stage_manager::BINLOG_FLUSH_STAGE) {
    if (const Commit_group group = commit_group(); group.n > 1) {
      Commit_stage_manager::get_instance().wait_count_or_timeout(
          group.n, group.wait_us, stage);
    }
  }
  if (mysql_mutex_trylock(stage_mutex) != 0) {
    Stall_wait stall{Stall::BINLOG_GROUP};
    mysql_mutex_lock(stage_mutex);
  }
}

}  // namespace spw

#endif /* sql_group_commit_h */
