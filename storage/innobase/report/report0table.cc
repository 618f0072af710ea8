/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file report/report0table.cc
Tables of INFORMATION_SCHEMA. INNODB_ATOMIC_WRITE_FILES: the torn-page
protection of each open data file. INNODB_STALLS: what threads have waited for,
and for how long. The server enters a table in the data dictionary at startup,
and removes it when it starts without this plugin, as stock does. */

#include "univ.i"

#include <string>

#include "atomic/atomic0file.h"
#include "mysql/plugin.h"
#include "report/hook.h"
#include "sql/auth/auth_acls.h"
#include "sql/auth/auth_common.h"
#include "sql/field.h"
#include "sql/sql_show.h"
#include "sql/table.h"
#include "stall/stall0stall.h"

namespace spw {

namespace {

/** The columns of INNODB_ATOMIC_WRITE_FILES, in this order. */
enum Column { SPACE, PATH, PAGE_BYTES, METHOD, REASON };

/** Width of a path as in InnoDB's other tables. */
constexpr uint PATH_CHARACTERS = OS_FILE_MAX_PATH + 1;
constexpr uint METHOD_CHARACTERS = 16;
constexpr uint REASON_CHARACTERS = 256;

ST_FIELD_INFO s_atomic_columns[] = {
    {"SPACE", MY_INT32_NUM_DECIMAL_DIGITS, MYSQL_TYPE_LONG, 0, MY_I_S_UNSIGNED,
     "", 0},
    {"PATH", PATH_CHARACTERS, MYSQL_TYPE_STRING, 0, 0, "", 0},
    {"PAGE_BYTES", MY_INT32_NUM_DECIMAL_DIGITS, MYSQL_TYPE_LONG, 0,
     MY_I_S_UNSIGNED, "", 0},
    {"METHOD", METHOD_CHARACTERS, MYSQL_TYPE_STRING, 0, 0, "", 0},
    {"REASON", REASON_CHARACTERS, MYSQL_TYPE_STRING, 0, 0, "", 0},
    {nullptr, 0, MYSQL_TYPE_NULL, 0, 0, nullptr, 0}};

void store(Field *field, const std::string &text) {
  field->store(text.c_str(), text.size(), system_charset_info);
}

/** Fill the table, if the session has the privilege PROCESS.
@param[in]      thd     the session
@param[in,out]  tables  the table
@return 0; 1 if the server has no space for a row. The server reports that, and
a missing privilege. */
int fill_atomic(THD *thd, Table_ref *tables, Item *) {
  if (check_global_access(thd, PROCESS_ACL)) {
    return 0;
  }
  Field **const fields = tables->table->field;
  for (const Atomic_file &file : atomic_files()) {
    fields[SPACE]->store(file.space_id, true);
    store(fields[PATH], file.path);
    fields[PAGE_BYTES]->store(file.page_bytes, true);
    store(fields[METHOD], file.method);
    store(fields[REASON], file.reason);
    if (schema_table_store_record(thd, tables->table)) {
      return 1;
    }
  }
  return 0;
}

constexpr uint KIND_CHARACTERS = 32;

#define SPW_COUNTER(name)                                      \
  {                                                            \
    name, MY_INT64_NUM_DECIMAL_DIGITS, MYSQL_TYPE_LONGLONG, 0, \
        MY_I_S_UNSIGNED, "", 0                                 \
  }

/** The columns of INNODB_STALLS, in the order in which fill_stalls() stores
them. */
ST_FIELD_INFO s_stall_columns[] = {
    {"KIND", KIND_CHARACTERS, MYSQL_TYPE_STRING, 0, 0, "", 0},
    SPW_COUNTER("COUNT"),
    SPW_COUNTER("WAITING"),
    SPW_COUNTER("TIME_US"),
    SPW_COUNTER("SESSIONS_TIME_US"),
    SPW_COUNTER("MAX_US"),
    SPW_COUNTER("P99_US"),
    SPW_COUNTER("OVER_10MS"),
    SPW_COUNTER("OVER_100MS"),
    SPW_COUNTER("OVER_1S"),
    SPW_COUNTER("SINCE_LAST_S"),
    SPW_COUNTER("UP_TO_1US"),
    SPW_COUNTER("UP_TO_10US"),
    SPW_COUNTER("UP_TO_100US"),
    SPW_COUNTER("UP_TO_1MS"),
    SPW_COUNTER("UP_TO_10MS"),
    SPW_COUNTER("UP_TO_100MS"),
    SPW_COUNTER("UP_TO_1S"),
    SPW_COUNTER("UP_TO_10S"),
    SPW_COUNTER("UP_TO_100S"),
    SPW_COUNTER("LONGER"),
    {nullptr, 0, MYSQL_TYPE_NULL, 0, 0, nullptr, 0}};

/** The same for this table. */
int fill_stalls(THD *thd, Table_ref *tables, Item *) {
  if (check_global_access(thd, PROCESS_ACL)) {
    return 0;
  }
  for (size_t i = 0; i < static_cast<size_t>(Stall::N); ++i) {
    const auto kind = static_cast<Stall>(i);
    const Stall_summary summary = stall_summary(kind);
    Field **field = tables->table->field;
    store(*field++, stall_names(kind).name);
    for (const uint64_t value :
         {summary.count, summary.waiting, summary.time_us,
          summary.sessions_time_us, summary.max_us, summary.percentile_us(99),
          summary.longer_than(10'000), summary.longer_than(100'000),
          summary.longer_than(1'000'000), stall_since_last_s(summary)}) {
      (*field++)->store(value, true);
    }
    for (const uint64_t n : summary.decades()) {
      (*field++)->store(n, true);
    }
    if (schema_table_store_record(thd, tables->table)) {
      return 1;
    }
  }
  return 0;
}

/** Tell the server what it has to know of a table.
@tparam         columns  the table's columns
@tparam         fill     fills it
@param[in,out]  table    the server's description
@return 0 */
template <ST_FIELD_INFO *columns, int (*fill)(THD *, Table_ref *, Item *)>
int start(void *table) {
  auto *const schema = static_cast<ST_SCHEMA_TABLE *>(table);
  schema->fields_info = columns;
  schema->fill_table = fill;
  return 0;
}

st_mysql_information_schema s_interface = {
    MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

/** @param[in]  name         the table
@param[in]  description  what it shows
@param[in]  start        start() of the table
@return its plugin */
st_mysql_plugin plugin_of(const char *name, const char *description,
                          int (*start)(void *)) {
  return {MYSQL_INFORMATION_SCHEMA_PLUGIN,
          &s_interface,
          name,
          "Spillway",
          description,
          PLUGIN_LICENSE_GPL,
          start,
          nullptr,
          nullptr,
          0x0100,
          nullptr,
          nullptr,
          nullptr,
          0};
}

}  // namespace

st_mysql_plugin atomic_table() {
  return plugin_of("INNODB_ATOMIC_WRITE_FILES",
                   "Torn-page protection of data files",
                   start<s_atomic_columns, fill_atomic>);
}

st_mysql_plugin stall_table() {
  return plugin_of("INNODB_STALLS", "What threads have waited for",
                   start<s_stall_columns, fill_stalls>);
}

}  // namespace spw
