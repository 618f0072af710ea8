/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file report/report0stalls.cc
INFORMATION_SCHEMA.INNODB_STALLS: what threads have waited for, and for how
long. A row for each kind of stall. */

#include "univ.i"

#include <iterator>

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

constexpr uint KIND_CHARACTERS = 32;

#define SPW_COUNTER(name)                                      \
  {                                                            \
    name, MY_INT64_NUM_DECIMAL_DIGITS, MYSQL_TYPE_LONGLONG, 0, \
        MY_I_S_UNSIGNED, "", 0                                 \
  }

/** The columns, in the order in which fill() stores them. */
ST_FIELD_INFO s_columns[] = {
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

/** Fill the table, if the session has the privilege PROCESS.
@param[in]      thd     the session
@param[in,out]  tables  the table
@return 0; 1 if the server has no space for a row. The server reports that, and
a missing privilege. */
int fill(THD *thd, Table_ref *tables, Item *) {
  if (check_global_access(thd, PROCESS_ACL)) {
    return 0;
  }
  for (size_t i = 0; i < static_cast<size_t>(Stall::N); ++i) {
    const auto kind = static_cast<Stall>(i);
    const Stall_summary summary = stall_summary(kind);
    const char *const name = stall_names(kind).name;
    Field **field = tables->table->field;
    (*field++)->store(name, strlen(name), system_charset_info);
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

int start(void *table) {
  auto *const schema = static_cast<ST_SCHEMA_TABLE *>(table);
  schema->fields_info = s_columns;
  schema->fill_table = fill;
  return 0;
}

st_mysql_information_schema s_interface = {
    MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

}  // namespace

st_mysql_plugin stall_table() {
  return {MYSQL_INFORMATION_SCHEMA_PLUGIN,
          &s_interface,
          "INNODB_STALLS",
          "Spillway",
          "What threads have waited for",
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

}  // namespace spw
