/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file sql/sql_extent_size.cc
ALTER TABLESPACE ... SET EXTENT_SIZE (seed 002). In bounded steps: between them
the statement holds no lock at all, so that whoever wants to drop, truncate or
rebuild the table, or to lock the instance, is let through. */

#include "sql/sql_extent_size.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string_view>

#include "extend0space.h"
#include "my_sys.h"
#include "mysql/components/services/bits/psi_stage_bits.h"
#include "mysql/psi/mysql_stage.h"
#include "mysqld_error.h"
#include "policy/extend0size.h"
#include "sql/auth/auth_acls.h"
#include "sql/auth/auth_common.h"
#include "sql/debug_sync.h"
#include "sql/sql_class.h"
#include "sql/sql_cmd.h"
#include "sql/sql_error.h"
#include "sql/sql_extent_lock.h"
#include "sql/sql_lex.h"
#include "sql/transaction.h"

namespace spw {
namespace {

/* Performance Schema's name of the stage, and SHOW PROCESSLIST's state. */
PSI_stage_info stage_extent_size = {0, "alter tablespace (extent size)",
                                    PSI_FLAG_STAGE_PROGRESS, PSI_DOCUMENT_ME};

/* Registered with the first statement: what upstream lists at startup stays as
it is (sysschema's ps_setup results). */
void register_stage() {
  static std::once_flag registered;
  std::call_once(registered, [] {
    PSI_stage_info *stages[] = {&stage_extent_size};
    mysql_stage_register("innodb", stages, 1);
  });
}

class Sql_cmd_set_extent_size : public Sql_cmd {
 public:
  Sql_cmd_set_extent_size(const LEX_STRING &name, ulonglong asked,
                          bool is_pages)
      : m_name(name), m_asked(asked), m_is_pages(is_pages) {}

  enum_sql_command sql_command_code() const override {
    return SQLCOM_ALTER_TABLESPACE;
  }

  bool execute(THD *thd) override;

 private:
  bool find(THD *thd, Extent_tablespace *tablespace) const;
  bool is_refused(Extend_status status) const;
  bool decide(const Extend_space &space, Extend_target *target) const;
  bool extend(THD *thd, const Extent_tablespace &tablespace,
              const Extend_space &space, uint64_t target, uint64_t *size) const;

  const LEX_STRING m_name;
  const ulonglong m_asked;
  const bool m_is_pages;
};

bool Sql_cmd_set_extent_size::execute(THD *thd) {
  if (check_global_access(thd, CREATE_TABLESPACE_ACL) ||
      check_readonly(thd, true)) {
    return true;
  }
  if (thd->locked_tables_mode != LTM_NONE) {
    my_error(ER_LOCK_OR_ACTIVE_TRANSACTION, MYF(0));
    return true;
  }
  Extent_tablespace tablespace;
  Extend_space space{};
  Extend_target target{};
  if (find(thd, &tablespace)) {
    return true;
  }
  Extend_status status = extend_look(tablespace.space_id, &space);
  if (status == Extend_status::GONE) {
    /* It was dropped or truncated while its locks were waited for. */
    if (find(thd, &tablespace)) {
      return true;
    }
    status = extend_look(tablespace.space_id, &space);
  }
  if (is_refused(status) || decide(space, &target)) {
    return true;
  }
  bool is_failed = false;
  if (target.reason == Extend_target_reason::LARGE_ENOUGH) {
    push_warning_printf(thd, Sql_condition::SL_NOTE, ER_UNKNOWN_ERROR,
                        "It has %llu pages, %llu bytes, already: tablespace"
                        " `%s`",
                        ulonglong{space.size / space.page_bytes},
                        ulonglong{space.size}, m_name.str);
  } else {
    if (tablespace.is_page_compressed) {
      push_warning_printf(
          thd, Sql_condition::SL_WARNING, ER_UNKNOWN_ERROR,
          "What is allocated ahead of page-compressed pages is given back as"
          " they are written: tablespace `%s`",
          m_name.str);
    }
    if (target.is_little_left) {
      push_warning_printf(
          thd, Sql_condition::SL_WARNING, ER_UNKNOWN_ERROR,
          "%llu bytes of the file system's %llu will be left: a server that"
          " cannot write its logs stops",
          ulonglong{space.disk->free - target.needed},
          ulonglong{space.disk->size});
    }
    uint64_t size = space.size;
    is_failed = extend(thd, tablespace, space, target.bytes, &size);
    push_warning_printf(
        thd, Sql_condition::SL_NOTE, ER_UNKNOWN_ERROR,
        "It had %llu pages, %llu bytes, and has %llu pages, %llu bytes:"
        " tablespace `%s`",
        ulonglong{space.size / space.page_bytes}, ulonglong{space.size},
        ulonglong{size / space.page_bytes}, ulonglong{size}, m_name.str);
  }
  /* Also of what another session's statement has added, if it is said to be
  there. */
  extend_make_durable();
  if (is_failed) {
    return true;
  }
  if (trans_commit_stmt(thd) || trans_commit(thd)) {
    return true;
  }
  my_ok(thd);
  return false;
}

bool Sql_cmd_set_extent_size::find(THD *thd,
                                   Extent_tablespace *tablespace) const {
  switch (find_extent_tablespace(thd, m_name.str, tablespace)) {
    case Extent_lock::DONE:
      return false;
    case Extent_lock::FAILED:
      return true;
    case Extent_lock::NOT_INNODB:
      my_error(ER_CHECK_NOT_IMPLEMENTED, MYF(0),
               "ALTER TABLESPACE ... SET EXTENT_SIZE");
      return true;
    case Extent_lock::DISCARDED:
      my_error(ER_TABLESPACE_DISCARDED, MYF(0), m_name.str);
      return true;
    case Extent_lock::MISSING:
    case Extent_lock::CHANGED:
      break;
  }
  my_printf_error(ER_TABLESPACE_MISSING_WITH_NAME,
                  "Tablespace `%s` doesn't exist; their names are in"
                  " INFORMATION_SCHEMA.INNODB_TABLESPACES",
                  MYF(0), m_name.str);
  return true;
}

bool Sql_cmd_set_extent_size::is_refused(Extend_status status) const {
  switch (status) {
    case Extend_status::DONE:
      return false;
    case Extend_status::NOT_OURS:
      my_printf_error(ER_WRONG_TABLESPACE_NAME,
                      "SET EXTENT_SIZE is for tablespaces of tables and for"
                      " general ones; this one grows by rules of its own: `%s`",
                      MYF(0), m_name.str);
      break;
    case Extend_status::READ_ONLY:
      my_error(ER_INNODB_READ_ONLY, MYF(0));
      break;
    case Extend_status::FORCED_RECOVERY:
      my_error(ER_INNODB_FORCED_RECOVERY, MYF(0));
      break;
    case Extend_status::GONE:
    case Extend_status::FAILED:
      my_printf_error(ER_TABLESPACE_MISSING,
                      "Its file is not open: read from a table of it first, as"
                      " files are opened late with"
                      " innodb_validate_tablespace_paths=OFF; tablespace `%s`",
                      MYF(0), m_name.str);
      break;
  }
  return true;
}

bool Sql_cmd_set_extent_size::decide(const Extend_space &space,
                                     Extend_target *target) const {
  *target = decide_extend_target(
      {.asked = m_asked,
       .is_pages = m_is_pages,
       .page_bytes = space.page_bytes,
       .extent_bytes = space.extent_bytes,
       .size = space.size,
       .size_max = space.size_max,
       .disk_free = space.disk ? space.disk->free : UINT64_MAX,
       .disk_bytes = space.disk ? space.disk->size : UINT64_MAX});
  switch (target->reason) {
    case Extend_target_reason::GROW:
    case Extend_target_reason::LARGE_ENOUGH:
      return false;
    case Extend_target_reason::ZERO:
      my_printf_error(ER_WRONG_VALUE, "EXTENT_SIZE is at least one page",
                      MYF(0));
      return true;
    case Extend_target_reason::BEYOND_LIMIT:
      my_printf_error(ER_DATA_OUT_OF_RANGE,
                      "EXTENT_SIZE is at most %llu pages, %llu bytes, for"
                      " tablespace `%s`",
                      MYF(0), ulonglong{space.size_max / space.page_bytes},
                      ulonglong{space.size_max}, m_name.str);
      return true;
    case Extend_target_reason::NO_ROOM:
      break;
  }
  my_printf_error(
      ER_RECORD_FILE_FULL,
      "%llu bytes more are needed for this EXTENT_SIZE, and the file"
      " system has %llu free: tablespace `%s`",
      MYF(0), ulonglong{target->needed}, ulonglong{space.disk->free},
      m_name.str);
  return true;
}

bool Sql_cmd_set_extent_size::extend(THD *thd,
                                     const Extent_tablespace &tablespace,
                                     const Extend_space &space, uint64_t target,
                                     uint64_t *size) const {
  register_stage();
  THD_STAGE_INFO(thd, stage_extent_size);
  const auto pages = [&space](uint64_t bytes) {
    return ulonglong{bytes / space.page_bytes};
  };
  Extend_pace pace{space.extent_bytes};
  Extend_rest rest;
  double step_s = 0.0;
  while (*size < target) {
    if (thd->killed != THD::NOT_KILLED) {
      thd->send_kill_message();
      return true;
    }
    {
      Extent_step_locks locks{thd};
      Extent_lock lock =
          locks.acquire(tablespace, thd->variables.lock_wait_timeout);
      /* Now nobody can switch it on. */
      if (lock == Extent_lock::FAILED || check_readonly(thd, true)) {
        return true;
      }
      const uint64_t before = *size;
      const auto begin = std::chrono::steady_clock::now();
      const Extend_status status =
          lock == Extent_lock::DONE
              ? extend_step(Extender::STATEMENT, tablespace.space_id,
                            pace.next(*size, target), size)
              : Extend_status::GONE;
      const std::chrono::duration<double> took =
          std::chrono::steady_clock::now() - begin;
      if (status == Extend_status::GONE) {
        my_printf_error(ER_TABLESPACE_MISSING,
                        "Dropped, truncated, rebuilt or renamed when it had"
                        " %llu pages, %llu bytes: tablespace `%s`",
                        MYF(0), pages(*size), ulonglong{*size}, m_name.str);
        return true;
      }
      if (status == Extend_status::FAILED) {
        my_printf_error(ER_RECORD_FILE_FULL,
                        "Extended to %llu pages, %llu bytes only, for what the"
                        " error log says: tablespace `%s`",
                        MYF(0), pages(*size), ulonglong{*size}, m_name.str);
        return true;
      }
      step_s = took.count();
      pace.took(*size - before, step_s);
    }
    /* Others may extend it, too. A wait for a lock has begun the stage anew. */
    mysql_stage_set_work_estimated(thd->m_stage_progress_psi,
                                   pages(target - space.size));
    mysql_stage_set_work_completed(thd->m_stage_progress_psi,
                                   pages(std::min(*size, target) - space.size));
    DEBUG_SYNC(thd, "spw_extent_size_step");
    if (*size < target) {
      rest.after(step_s,
                 [thd] { return thd->killed.load() != THD::NOT_KILLED; });
    }
  }
  return false;
}

bool make_command(THD *thd, const LEX_STRING &name, ulonglong asked,
                  bool is_pages) {
  auto *const command =
      new (thd->mem_root) Sql_cmd_set_extent_size{name, asked, is_pages};
  thd->lex->m_sql_cmd = command;
  thd->lex->sql_command = SQLCOM_ALTER_TABLESPACE;
  return command == nullptr;
}

}  // namespace

bool parse_extent_size(THD *thd, const LEX_STRING &name, ulonglong pages) {
  return make_command(thd, name, pages, true);
}

bool parse_extent_size(THD *thd, const LEX_STRING &name,
                       const LEX_STRING &size) {
  const auto bytes = parse_size({size.str, size.length});
  if (!bytes) {
    my_error(ER_WRONG_SIZE_NUMBER, MYF(0));
    return true;
  }
  return make_command(thd, name, *bytes, false);
}

}  // namespace spw
