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

#include "mysql/psi/mysql_mutex.h"
#include "stall/hook.h"

namespace spw {

/** Lock a stage of group commit, and time the wait for the group ahead, if that
is in the stage.
@param[in,out]  stage_mutex  the stage's mutex */
inline void wait_for_group_ahead(mysql_mutex_t *stage_mutex) {
  if (mysql_mutex_trylock(stage_mutex) != 0) {
    Stall_wait stall{Stall::BINLOG_GROUP};
    mysql_mutex_lock(stage_mutex);
  }
}

}  // namespace spw

#endif /* sql_group_commit_h */
