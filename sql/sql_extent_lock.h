/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file sql/sql_extent_lock.h
The locks of an extension step of a data file, for the statement and for the
background thread. */

#ifndef SQL_EXTENT_LOCK_INCLUDED
#define SQL_EXTENT_LOCK_INCLUDED

#include <cstdint>
#include <optional>
#include <string>

#include "sql/mdl.h"

class THD;

namespace spw {

/** A tablespace in the data dictionary. */
struct Extent_tablespace {
  std::string name;
  uint32_t space_id{0};

  /** Its name in InnoDB; empty if its file has not been opened. */
  std::string innodb_name;

  /** The table that the tablespace, or its full-text index, belongs to; empty
  for a general tablespace. */
  std::string schema;
  std::string table;

  /** InnoDB's ID of that table, if the tablespace is that of its full-text
  index. A rename of the table within its schema does not rename the
  tablespace. */
  std::optional<uint64_t> full_text_table_id;

  /** Whether its pages are compressed by punching holes: preallocated space is
  given back when pages are written. */
  bool is_page_compressed{false};
};

/** Result of a search, or of a request for locks. */
enum class Lock_result {
  DONE,
  /** There is no such tablespace, or its table no longer exists. */
  MISSING,
  /** The tablespace belongs to another engine. */
  NOT_INNODB,
  /** Its file is discarded. */
  DISCARDED,
  /** The name belongs to another tablespace or to none, or the tablespace
  belongs to a table of another name. */
  CHANGED,
  /** An error, which is reported in the session, such as a wait that timed out
  or was killed. */
  FAILED
};

/**
  Look a tablespace up in the data dictionary. Waits for sessions that drop or
  rename it. Before and after the call the session holds none of its locks.

  @param      thd    the session
  @param      name   as in INFORMATION_SCHEMA.INNODB_TABLESPACES
  @param[out] found  the tablespace, with DONE

  @returns any result except CHANGED
*/
Lock_result find_extent_tablespace(THD *thd, const char *name,
                                   Extent_tablespace *found);

/**
  The locks of an extension step, held until the end of the scope. Sessions can
  read and write rows meanwhile. Statements that replace, rename or copy the
  file (DROP, TRUNCATE, a rebuild, RENAME, FLUSH TABLES ... FOR EXPORT) wait for
  the step, and a step for them: InnoDB's rename polls only now and then whether
  the file is idle (Fil_shard::space_rename()).
*/
class Extent_step_locks {
 public:
  explicit Extent_step_locks(THD *thd);
  ~Extent_step_locks();

  Extent_step_locks(const Extent_step_locks &) = delete;
  Extent_step_locks &operator=(const Extent_step_locks &) = delete;

  /**
    Take the locks. Waits also for FLUSH TABLES WITH READ LOCK and LOCK INSTANCE
    FOR BACKUP. Holds none of the locks while it waits for one: a table that is
    locked for long delays no backup.

    @param tablespace  result of find_extent_tablespace()
    @param timeout_s   max wait: seconds; 0: none

    @returns DONE, CHANGED or FAILED
  */
  Lock_result acquire(const Extent_tablespace &tablespace, ulong timeout_s);

 private:
  THD *const m_thd;
  const MDL_savepoint m_savepoint;
};

}  // namespace spw

#endif  // SQL_EXTENT_LOCK_INCLUDED
