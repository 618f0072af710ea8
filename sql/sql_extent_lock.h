/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file sql/sql_extent_lock.h
What is locked while a data file is extended for others to have room, by the
statement and in the background. */

#ifndef SQL_EXTENT_LOCK_INCLUDED
#define SQL_EXTENT_LOCK_INCLUDED

#include <cstdint>
#include <optional>
#include <string>

#include "sql/mdl.h"

class THD;

namespace spw {

/** A tablespace as the data dictionary has it. */
struct Extent_tablespace {
  std::string name;
  uint32_t space_id{0};

  /** What InnoDB calls it; empty if its file has not been opened. */
  std::string opened_as;

  /** The table that it belongs to, or whose full-text index does; empty with a
  general tablespace. */
  std::string schema;
  std::string table;

  /** InnoDB's ID of that table, if its full-text index has the tablespace: a
  rename of the table within its schema leaves the tablespace's name. */
  std::optional<uint64_t> full_text_table_id;

  /** Whether its pages are compressed by punching holes: what is allocated
  ahead is given back as pages are written. */
  bool is_page_compressed{false};
};

/** What became of a search, or of locks. */
enum class Extent_lock {
  DONE,
  /** There is no such tablespace, or no table of it any more. */
  MISSING,
  /** It is another engine's. */
  NOT_INNODB,
  /** Its file is discarded. */
  DISCARDED,
  /** The name is another tablespace's now, or nobody's; or it belongs to a
  table of another name. */
  CHANGED,
  /** An error, which is reported in the session: a wait that took too long, or
  was killed. */
  FAILED
};

/**
  Look a tablespace up in the data dictionary. Waits for whoever drops or
  renames it. The session holds none of its locks.

  @param      thd    the session
  @param      name   as in INFORMATION_SCHEMA.INNODB_TABLESPACES
  @param[out] found  the tablespace, with DONE

  @returns anything but CHANGED
*/
Extent_lock find_extent_tablespace(THD *thd, const char *name,
                                   Extent_tablespace *found);

/**
  The locks of a step of an extension, until the end of the scope. They let rows
  be read and written; what puts another file in the place of this one, renames
  it, or copies it (DROP, TRUNCATE, a rebuild, RENAME, FLUSH TABLES ... FOR
  EXPORT) waits for the step, and a step for them: InnoDB looks only now and
  then whether a file that is to be renamed is idle (Fil_shard::space_rename()).
*/
class Extent_step_locks {
 public:
  explicit Extent_step_locks(THD *thd);
  ~Extent_step_locks();

  Extent_step_locks(const Extent_step_locks &) = delete;
  Extent_step_locks &operator=(const Extent_step_locks &) = delete;

  /**
    Also waits for FLUSH TABLES WITH READ LOCK and LOCK INSTANCE FOR BACKUP.
    Holds none of the locks while it waits for one: a table that is locked for
    long holds up no backup.

    @param tablespace  what find_extent_tablespace() has found
    @param timeout_s   how long to wait: seconds; 0 not to

    @returns DONE, CHANGED or FAILED
  */
  Extent_lock acquire(const Extent_tablespace &tablespace, ulong timeout_s);

 private:
  THD *const m_thd;
  const MDL_savepoint m_savepoint;
};

}  // namespace spw

#endif  // SQL_EXTENT_LOCK_INCLUDED
