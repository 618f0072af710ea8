/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file sql/sql_extent_size.cc
ALTER TABLESPACE ... SET EXTENT_SIZE. Works in bounded steps. Between them the
statement holds no lock, so that sessions can drop, truncate or rebuild the
table, or lock the instance. */

#include "sql/sql_extent_size.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <string_view>

#include "extend/extend0space.h"
#include "extend/policy/extend0size.h"
#include "my_sys.h"
#include "mysql/components/services/bits/psi_stage_bits.h"
#include "mysql/psi/mysql_stage.h"
#include "mysqld_error.h"
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

/* Name of the stage in Performance Schema, and state in SHOW PROCESSLIST. */
PSI_stage_info stage_extent_size = {0, "alter tablespace (extent size)",
                                    PSI_FLAG_STAGE_PROGRESS, PSI_DOCUMENT_ME};

/* Registered with the first statement, so that the list of stages at startup is
that of stock (sysschema's ps_setup results). */
void register_stage() {
  static std::once_flag registered;
  std::call_once(registered, [] {
    PSI_stage_info *stages[] = {&stage_extent_size};
    mysql_stage_register("innodb", stages, 1);
  });
}

/** Max number of look-ups of the tablespace, while other statements drop,
truncate, rebuild or rename it. */
constexpr int LOOKUP_ATTEMPTS_MAX = 10;

bool is_killed(const THD *thd) { return thd->killed.load() != THD::NOT_KILLED; }

class Sql_cmd_set_extent_size : public Sql_cmd {
 public:
  Sql_cmd_set_extent_size(const LEX_STRING &name, ulonglong requested,
                          bool is_pages)
      : m_name(name), m_requested(requested), m_is_pages(is_pages) {}

  enum_sql_command sql_command_code() const override {
    return SQLCOM_ALTER_TABLESPACE;
  }

  bool execute(THD *thd) override;

 private:
  bool find(THD *thd, Extent_tablespace *tablespace) const;
  bool look_up(THD *thd, Extent_tablespace *tablespace,
               Extend_space *space) const;
  bool decide(const Extend_space &space, Extend_target *target) const;
  bool grow(THD *thd, const Extent_tablespace &tablespace,
            const Extend_space &space, const Extend_target &target) const;
  bool extend(THD *thd, const Extent_tablespace &tablespace,
              const Extend_space &space, Extend_reservation &reservation,
              uint64_t target, uint64_t *size) const;

  bool report_gone(const Extend_space &space, uint64_t size) const;
  bool report_no_disk(const Extend_space &space, uint64_t size,
                      int error) const;

  const LEX_STRING m_name;
  const ulonglong m_requested;
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
  if (look_up(thd, &tablespace, &space) || decide(space, &target)) {
    return true;
  }
  bool is_failed = false;
  if (target.reason == Extend_target_reason::LARGE_ENOUGH) {
    push_warning_printf(thd, Sql_condition::SL_NOTE, ER_UNKNOWN_ERROR,
                        "Tablespace `%s` already has %llu pages, %llu bytes",
                        m_name.str, ulonglong{space.size / space.page_bytes},
                        ulonglong{space.size});
  } else {
    is_failed = grow(thd, tablespace, space, target);
  }
  /* Also for space that another session's statement has added and this one
  reports as present. */
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

bool Sql_cmd_set_extent_size::grow(THD *thd,
                                   const Extent_tablespace &tablespace,
                                   const Extend_space &space,
                                   const Extend_target &target) const {
  if (m_is_pages) {
    push_warning_printf(
        thd, Sql_condition::SL_WARNING, ER_UNKNOWN_ERROR,
        "Tablespace `%s`: EXTENT_SIZE = %llu has no unit and counts pages. The"
        " file grows to %llu bytes (%llu MiB). A number with K, M, G or T"
        " counts bytes",
        m_name.str, m_requested, ulonglong{target.bytes},
        ulonglong{target.bytes >> 20});
  }
  if (const char *const warning = extend_sync_warning()) {
    push_warning(thd, Sql_condition::SL_WARNING, ER_UNKNOWN_ERROR, warning);
  }
  if (tablespace.is_page_compressed) {
    push_warning_printf(
        thd, Sql_condition::SL_WARNING, ER_UNKNOWN_ERROR,
        "Tablespace `%s` is page-compressed: InnoDB gives preallocated space"
        " back to the file system when it writes pages",
        m_name.str);
  }
  int error = 0;
  auto disk = extend_disk(tablespace.space_id, &error);
  if (!disk) {
    return report_no_disk(space, space.size, error);
  }
  Extend_reservation reservation{disk->id};
  if (!reservation.reserve(&*disk, target.needed)) {
    my_printf_error(
        ER_RECORD_FILE_FULL,
        "Tablespace `%s` needs %llu bytes more. The file system has %llu bytes"
        " free. Other statements have reserved %llu of them, and %llu stay free"
        " for logs and temporary files",
        MYF(0), m_name.str, ulonglong{target.needed}, ulonglong{disk->free},
        ulonglong{disk->reserved}, ulonglong{extend_disk_reserve(disk->size)});
    return true;
  }
  uint64_t size = space.size;
  const bool is_failed =
      extend(thd, tablespace, space, reservation, target.bytes, &size);
  push_warning_printf(thd, Sql_condition::SL_NOTE, ER_UNKNOWN_ERROR,
                      "Tablespace `%s` had %llu pages, %llu bytes, and has"
                      " %llu pages, %llu bytes now",
                      m_name.str, ulonglong{space.size / space.page_bytes},
                      ulonglong{space.size}, ulonglong{size / space.page_bytes},
                      ulonglong{size});
  return is_failed;
}

bool Sql_cmd_set_extent_size::report_gone(const Extend_space &space,
                                          uint64_t size) const {
  my_printf_error(ER_TABLESPACE_MISSING,
                  "Tablespace `%s` was dropped, truncated, rebuilt, renamed or"
                  " discarded when it had %llu pages, %llu bytes",
                  MYF(0), m_name.str, ulonglong{size / space.page_bytes},
                  ulonglong{size});
  return true;
}

bool Sql_cmd_set_extent_size::report_no_disk(const Extend_space &space,
                                             uint64_t size, int error) const {
  if (error == ENOENT) {
    return report_gone(space, size);
  }
  my_printf_error(ER_TABLESPACE_MISSING,
                  "Tablespace `%s` has %llu pages, %llu bytes, and is not"
                  " extended further. The file system of its file cannot be"
                  " examined: %s",
                  MYF(0), m_name.str, ulonglong{size / space.page_bytes},
                  ulonglong{size}, strerror(error));
  return true;
}

bool Sql_cmd_set_extent_size::look_up(THD *thd, Extent_tablespace *tablespace,
                                      Extend_space *space) const {
  for (int n = 0; n < LOOKUP_ATTEMPTS_MAX; ++n) {
    if (find(thd, tablespace)) {
      return true;
    }
    if (!extend_wait(tablespace->space_id, [thd] { return is_killed(thd); })) {
      thd->send_kill_message();
      return true;
    }
    switch (read_tablespace(tablespace->space_id, space)) {
      case Extend_status::DONE:
        return false;
      case Extend_status::UNSUPPORTED_KIND:
        my_printf_error(ER_WRONG_TABLESPACE_NAME,
                        "Tablespace `%s` cannot be extended by SET "
                        "EXTENT_SIZE, which is for"
                        " tablespaces of tables and general tablespaces",
                        MYF(0), m_name.str);
        return true;
      case Extend_status::READ_ONLY:
        my_error(ER_INNODB_READ_ONLY, MYF(0));
        return true;
      case Extend_status::FORCED_RECOVERY:
        my_error(ER_INNODB_FORCED_RECOVERY, MYF(0));
        return true;
      case Extend_status::GONE:
      case Extend_status::FAILED:
      case Extend_status::SHRUNK:
      case Extend_status::BUSY:
        break;
    }
    /* No other statement drops or renames it during find(). */
    if (tablespace->innodb_name.empty()) {
      my_printf_error(
          ER_TABLESPACE_MISSING,
          "Tablespace `%s`: the file is missing or not open. With"
          " innodb_validate_tablespace_paths = OFF, InnoDB opens files late:"
          " read from a table of the tablespace first",
          MYF(0), m_name.str);
      return true;
    }
  }
  my_printf_error(ER_TABLESPACE_MISSING,
                  "Tablespace `%s` was dropped, truncated, rebuilt or renamed"
                  " by other statements during %d attempts. Try again",
                  MYF(0), m_name.str, LOOKUP_ATTEMPTS_MAX);
  return true;
}

bool Sql_cmd_set_extent_size::find(THD *thd,
                                   Extent_tablespace *tablespace) const {
  switch (find_extent_tablespace(thd, m_name.str, tablespace)) {
    case Lock_result::DONE:
      return false;
    case Lock_result::FAILED:
      return true;
    case Lock_result::NOT_INNODB:
      my_error(ER_CHECK_NOT_IMPLEMENTED, MYF(0),
               "ALTER TABLESPACE ... SET EXTENT_SIZE");
      return true;
    case Lock_result::DISCARDED:
      my_error(ER_TABLESPACE_DISCARDED, MYF(0), m_name.str);
      return true;
    case Lock_result::MISSING:
    case Lock_result::CHANGED:
      break;
  }
  my_printf_error(ER_TABLESPACE_MISSING_WITH_NAME,
                  "Tablespace `%s` doesn't exist. The names of tablespaces are"
                  " in INFORMATION_SCHEMA.INNODB_TABLESPACES",
                  MYF(0), m_name.str);
  return true;
}

bool Sql_cmd_set_extent_size::decide(const Extend_space &space,
                                     Extend_target *target) const {
  *target = decide_extend_target({.requested = m_requested,
                                  .is_pages = m_is_pages,
                                  .page_bytes = space.page_bytes,
                                  .extent_bytes = space.extent_bytes,
                                  .size = space.size,
                                  .size_max = space.size_max});
  switch (target->reason) {
    case Extend_target_reason::GROW:
    case Extend_target_reason::LARGE_ENOUGH:
      return false;
    case Extend_target_reason::ZERO:
      my_printf_error(ER_WRONG_VALUE, "EXTENT_SIZE is at least one page",
                      MYF(0));
      return true;
    case Extend_target_reason::BEYOND_LIMIT:
      break;
  }
  my_printf_error(ER_DATA_OUT_OF_RANGE,
                  "Tablespace `%s`: the maximum EXTENT_SIZE is %llu pages, %llu"
                  " bytes",
                  MYF(0), m_name.str,
                  ulonglong{space.size_max / space.page_bytes},
                  ulonglong{space.size_max});
  return true;
}

bool Sql_cmd_set_extent_size::extend(THD *thd,
                                     const Extent_tablespace &tablespace,
                                     const Extend_space &space,
                                     Extend_reservation &reservation,
                                     uint64_t target, uint64_t *size) const {
  register_stage();
  THD_STAGE_INFO(thd, stage_extent_size);
  const auto pages = [&space](uint64_t bytes) {
    return ulonglong{bytes / space.page_bytes};
  };
  Extend_pace pace{space.extent_bytes};
  Extend_pause pause;
  const auto stop = [thd] { return is_killed(thd); };
  double step_s = 0.0;
  while (*size < target) {
    if (stop()) {
      thd->send_kill_message();
      return true;
    }
    if (!extend_wait(tablespace.space_id, stop)) {
      continue;
    }
    {
      Extent_step_locks locks{thd};
      Lock_result lock =
          locks.acquire(tablespace, thd->variables.lock_wait_timeout);
      /* The locks prevent sessions from switching read_only on. */
      if (lock == Lock_result::FAILED || check_readonly(thd, true)) {
        return true;
      }
      const uint64_t before = *size;
      const uint64_t next = pace.next(before, target);
      if (lock == Lock_result::CHANGED) {
        return report_gone(space, *size);
      }
      int error = 0;
      const auto disk = extend_disk(tablespace.space_id, &error);
      if (!disk) {
        return report_no_disk(space, *size, error);
      }
      const uint64_t others = disk->reserved - reservation.bytes();
      if (next - before + others >
          extend_disk_available(disk->free, disk->size)) {
        my_printf_error(
            ER_RECORD_FILE_FULL,
            "Tablespace `%s` has %llu pages, %llu bytes, and is not extended"
            " further. The file system has %llu bytes free. Other statements"
            " have reserved %llu of them, and %llu stay free for logs and"
            " temporary files",
            MYF(0), m_name.str, pages(*size), ulonglong{*size},
            ulonglong{disk->free}, ulonglong{others},
            ulonglong{extend_disk_reserve(disk->size)});
        return true;
      }
      const auto begin = std::chrono::steady_clock::now();
      const Extend_status status =
          extend_step(Extender::STATEMENT, tablespace.space_id, next, size);
      const std::chrono::duration<double> took =
          std::chrono::steady_clock::now() - begin;
      if (status == Extend_status::BUSY) {
        continue;
      }
      if (status == Extend_status::GONE) {
        return report_gone(space, *size);
      }
      if (status == Extend_status::SHRUNK) {
        my_printf_error(ER_TABLESPACE_MISSING,
                        "Tablespace `%s`: another file was imported in its"
                        " place when it had %llu pages, %llu bytes",
                        MYF(0), m_name.str, pages(before), ulonglong{before});
        return true;
      }
      if (status == Extend_status::FAILED) {
        my_printf_error(ER_RECORD_FILE_FULL,
                        "Tablespace `%s` was extended to only %llu pages, %llu"
                        " bytes. The error log has the reason",
                        MYF(0), m_name.str, pages(*size), ulonglong{*size});
        return true;
      }
      step_s = took.count();
      pace.record_step(*size - before, step_s);
    }
    reservation.set(target - std::min(*size, target));
    /* Other threads may extend it, too. A wait for a lock has restarted the
    stage. */
    mysql_stage_set_work_estimated(thd->m_stage_progress_psi,
                                   pages(target - space.size));
    mysql_stage_set_work_completed(thd->m_stage_progress_psi,
                                   pages(std::min(*size, target) - space.size));
    DEBUG_SYNC(thd, "spw_extent_size_step");
    if (*size < target) {
      pause.after(step_s, stop);
    }
  }
  return false;
}

bool make_command(THD *thd, const LEX_STRING &name, ulonglong requested,
                  bool is_pages) {
  auto *const command =
      new (thd->mem_root) Sql_cmd_set_extent_size{name, requested, is_pages};
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
