/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file report/report0table.cc
INFORMATION_SCHEMA.INNODB_ATOMIC_WRITE_FILES: the torn-page protection of each
open data file. The server enters the table in the data dictionary at startup,
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

namespace spw {

namespace {

/** The columns, in this order. */
enum Column { SPACE, PATH, PAGE_BYTES, METHOD, REASON };

/** Width of a path as in InnoDB's other tables. */
constexpr uint PATH_CHARACTERS = OS_FILE_MAX_PATH + 1;
constexpr uint METHOD_CHARACTERS = 16;
constexpr uint REASON_CHARACTERS = 256;

ST_FIELD_INFO s_columns[] = {
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
int fill(THD *thd, Table_ref *tables, Item *) {
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

int start(void *table) {
  auto *const schema = static_cast<ST_SCHEMA_TABLE *>(table);
  schema->fields_info = s_columns;
  schema->fill_table = fill;
  return 0;
}

st_mysql_information_schema s_interface = {
    MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

}  // namespace

st_mysql_plugin atomic_table() {
  return {MYSQL_INFORMATION_SCHEMA_PLUGIN,
          &s_interface,
          "INNODB_ATOMIC_WRITE_FILES",
          "Spillway",
          "Torn-page protection of data files",
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
