/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file sql/sql_extent_lock.cc
The locks of an extension step of a data file. */

#include "sql/sql_extent_lock.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "extend/extend0space.h"
#include "my_sys.h"
#include "mysqld_error.h"
#include "sql/dd/cache/dictionary_client.h"
#include "sql/dd/object_id.h"
#include "sql/dd/properties.h"
#include "sql/dd/string_type.h"
#include "sql/dd/types/table.h"
#include "sql/dd/types/tablespace.h"
#include "sql/mysqld.h"
#include "sql/sql_class.h"

namespace spw {
namespace {

/** Max length of a tablespace's name in the data dictionary: characters. Longer
names are cut off and would match another tablespace. */
constexpr size_t NAME_MAX_CHARS = 268;

/** @returns whether the data dictionary can be searched for the name. Its index
ignores spaces at the end, its cache does not. */
bool is_searchable(const char *name) {
  const size_t length = strlen(name);
  const CHARSET_INFO *const charset = system_charset_info;
  return length > 0 &&
         charset->cset->numchars(charset, name, name + length) <=
             NAME_MAX_CHARS &&
         (name[length - 1] != ' ' || extend_name_exists(name));
}

MDL_request request(MDL_key::enum_mdl_namespace key, const char *schema,
                    const char *name, enum_mdl_type type,
                    enum_mdl_duration duration = MDL_TRANSACTION) {
  MDL_request result;
  MDL_REQUEST_INIT(&result, key, schema, name, type, duration);
  return result;
}

/**
  Take all locks, or none. Holds none of them while it waits for one, so that
  the wait delays no session that needs the others.

  @param thd        the session
  @param requests   the locks; the first is waited for first
  @param timeout_s  max wait: seconds

  @returns true after an error, which is reported
*/
bool acquire_together(THD *thd, std::span<MDL_request> requests,
                      ulong timeout_s) {
  using std::chrono::steady_clock;

  MDL_context &context = thd->mdl_context;
  const MDL_savepoint savepoint = context.mdl_savepoint();
  const auto begin = steady_clock::now();
  for (;;) {
    MDL_request *busy = nullptr;
    for (MDL_request &one : requests) {
      one.ticket = nullptr;
      if (context.try_acquire_lock(&one)) {
        return true;
      }
      if (one.ticket == nullptr) {
        busy = &one;
        break;
      }
    }
    if (busy == nullptr) {
      return false;
    }
    context.rollback_to_savepoint(savepoint);
    const auto waited_s = static_cast<ulong>(
        std::chrono::floor<std::chrono::seconds>(steady_clock::now() - begin)
            .count());
    if (context.acquire_lock(busy, timeout_s - std::min(timeout_s, waited_s))) {
      return true;
    }
    context.rollback_to_savepoint(savepoint);
  }
}

/* Read the tablespace's ID from its entry in the data dictionary. */
Lock_result read_entry(const dd::Tablespace &entry, uint32_t *space_id) {
  if (my_strcasecmp(system_charset_info, entry.engine().c_str(), "InnoDB")) {
    return Lock_result::NOT_INNODB;
  }
  const dd::Properties &properties = entry.se_private_data();
  dd::String_type state;
  if (properties.exists("state") && !properties.get("state", &state) &&
      state == "discarded") {
    return Lock_result::DISCARDED;
  }
  uint32 id = 0;
  if (!properties.exists("id") || properties.get("id", &id)) {
    return Lock_result::MISSING;
  }
  *space_id = id;
  return Lock_result::DONE;
}

/* Get InnoDB's ID of the table whose full-text index has this auxiliary table.
InnoDB names that fts_<16 hexadecimal digits>_<purpose>, in the table's schema
(fts_get_table_name()). */
std::optional<uint64_t> full_text_table_id(std::string_view tablespace) {
  constexpr std::string_view PREFIX = "/fts_";
  constexpr size_t DIGITS = 16;
  const size_t at = tablespace.rfind(PREFIX);
  if (at == std::string_view::npos) {
    return {};
  }
  const char *const begin = tablespace.data() + at + PREFIX.size();
  const char *const end = tablespace.data() + tablespace.size();
  uint64_t id = 0;
  const auto read = std::from_chars(begin, end, id, 16);
  return read.ec == std::errc{} && read.ptr == begin + DIGITS &&
                 read.ptr != end && *read.ptr == '_'
             ? std::optional<uint64_t>{id}
             : std::nullopt;
}

/* Find the name of a table by InnoDB's ID; empty if there is none. */
bool find_table_of_id(THD *thd, uint64_t id, std::string *schema,
                      std::string *table) {
  const dd::cache::Dictionary_client::Auto_releaser releaser(thd->dd_client());
  dd::String_type dd_schema;
  dd::String_type dd_table;
  if (thd->dd_client()->get_table_name_by_se_private_id(
          "InnoDB", id, &dd_schema, &dd_table)) {
    return true;
  }
  *schema = dd_schema.c_str();
  *table = dd_table.c_str();
  return false;
}

/* Find the table that a tablespace belongs to; empty if the data dictionary has
none. */
bool find_owner(THD *thd, const dd::Tablespace &entry,
                Extent_tablespace *found) {
  dd::Tablespace_table_ref_vec tables;
  if (dd::fetch_tablespace_table_refs(thd, entry, &tables)) {
    return true;
  }
  if (tables.size() == 1) {
    found->schema = tables[0].m_schema_name.c_str();
    found->table = tables[0].m_name.c_str();
    return false;
  }
  /* A full-text index's auxiliary table is hidden. Statements that create or
  drop it have locked the indexed table. */
  found->full_text_table_id = full_text_table_id(found->name);
  return found->full_text_table_id &&
         find_table_of_id(thd, *found->full_text_table_id, &found->schema,
                          &found->table);
}

/* @returns whether the tablespace still belongs to the table that a step has
locked */
bool is_owner(THD *thd, const Extent_tablespace &tablespace) {
  std::string schema;
  std::string table;
  return !tablespace.full_text_table_id ||
         (!find_table_of_id(thd, *tablespace.full_text_table_id, &schema,
                            &table) &&
          schema == tablespace.schema && table == tablespace.table);
}

/* Find the entry of a tablespace in the data dictionary, and its table. The
caller releases the lock of its name. */
Lock_result find_entry(THD *thd, Extent_tablespace *found) {
  MDL_request own = request(MDL_key::TABLESPACE, "", found->name.c_str(),
                            MDL_INTENTION_EXCLUSIVE);
  if (thd->mdl_context.acquire_lock(&own, thd->variables.lock_wait_timeout)) {
    return Lock_result::FAILED;
  }
  const dd::cache::Dictionary_client::Auto_releaser releaser(thd->dd_client());
  const dd::Tablespace *entry = nullptr;
  if (thd->dd_client()->acquire(dd::String_type{found->name.c_str()}, &entry)) {
    return Lock_result::FAILED;
  }
  if (entry == nullptr) {
    return Lock_result::MISSING;
  }
  const Lock_result status = read_entry(*entry, &found->space_id);
  found->innodb_name = extend_name(found->space_id);
  /* Names of general tablespaces have no slash. */
  if (status != Lock_result::DONE ||
      found->name.find('/') == std::string::npos) {
    return status;
  }
  if (find_owner(thd, *entry, found)) {
    return Lock_result::FAILED;
  }
  return found->table.empty() ? Lock_result::MISSING : Lock_result::DONE;
}

/* Read the table's properties of the tablespace. The caller releases the
locks. */
Lock_result find_table(THD *thd, Extent_tablespace *found) {
  MDL_request requests[] = {request(MDL_key::TABLE, found->schema.c_str(),
                                    found->table.c_str(), MDL_SHARED),
                            request(MDL_key::SCHEMA, found->schema.c_str(), "",
                                    MDL_INTENTION_EXCLUSIVE)};
  const dd::cache::Dictionary_client::Auto_releaser releaser(thd->dd_client());
  const dd::Table *entry = nullptr;
  if (acquire_together(thd, requests, thd->variables.lock_wait_timeout) ||
      thd->dd_client()->acquire(dd::String_type{found->schema.c_str()},
                                dd::String_type{found->table.c_str()},
                                &entry)) {
    return Lock_result::FAILED;
  }
  if (entry == nullptr) {
    return Lock_result::MISSING;
  }
  dd::String_type compression;
  found->is_page_compressed =
      entry->options().exists("compress") &&
      !entry->options().get("compress", &compression) && !compression.empty() &&
      my_strcasecmp(system_charset_info, compression.c_str(), "none") != 0;
  return Lock_result::DONE;
}

}  // namespace

Lock_result find_extent_tablespace(THD *thd, const char *name,
                                   Extent_tablespace *found) {
  if (!is_searchable(name)) {
    return Lock_result::MISSING;
  }
  *found = {};
  found->name = name;
  const MDL_savepoint savepoint = thd->mdl_context.mdl_savepoint();
  Lock_result status = find_entry(thd, found);
  /* A session that drops a table locks it before its tablespace: never wait for
  one of these locks while holding the other. */
  thd->mdl_context.rollback_to_savepoint(savepoint);
  if (status == Lock_result::DONE && !found->table.empty()) {
    status = find_table(thd, found);
    thd->mdl_context.rollback_to_savepoint(savepoint);
  }
  return status;
}

Extent_step_locks::Extent_step_locks(THD *thd)
    : m_thd(thd), m_savepoint(thd->mdl_context.mdl_savepoint()) {}

Extent_step_locks::~Extent_step_locks() {
  m_thd->mdl_context.rollback_to_savepoint(m_savepoint);
}

Lock_result Extent_step_locks::acquire(const Extent_tablespace &tablespace,
                                       ulong timeout_s) {
  if (m_thd->global_read_lock.can_acquire_protection()) {
    return Lock_result::FAILED;
  }
  std::vector<MDL_request> requests;
  if (tablespace.table.empty()) {
    requests.push_back(request(MDL_key::TABLESPACE, "", tablespace.name.c_str(),
                               MDL_INTENTION_EXCLUSIVE));
  } else {
    /* Not the tablespace: a rebuild has locked it when it waits for the
    table. */
    requests.push_back(request(MDL_key::TABLE, tablespace.schema.c_str(),
                               tablespace.table.c_str(), MDL_SHARED_WRITE));
    requests.push_back(request(MDL_key::SCHEMA, tablespace.schema.c_str(), "",
                               MDL_INTENTION_EXCLUSIVE));
  }
  requests.push_back(
      request(MDL_key::BACKUP_LOCK, "", "", MDL_INTENTION_EXCLUSIVE));
  requests.push_back(
      request(MDL_key::GLOBAL, "", "", MDL_INTENTION_EXCLUSIVE, MDL_STATEMENT));
  if (acquire_together(m_thd, requests, timeout_s)) {
    return Lock_result::FAILED;
  }
  return extend_has_name(tablespace.space_id, tablespace.innodb_name.c_str()) &&
                 is_owner(m_thd, tablespace)
             ? Lock_result::DONE
             : Lock_result::CHANGED;
}

}  // namespace spw
