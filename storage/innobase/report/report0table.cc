/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file report/report0table.cc
INFORMATION_SCHEMA.INNODB_ATOMIC_WRITE_FILES: how each open data file's pages
are made whole. The server enters it in the data dictionary when it starts, and
removes it when it starts without this plugin, as stock does. */

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

/** The columns, in their order. */
enum Column { SPACE, PATH, PAGE_BYTES, MEANS, REASON };

/** As others of InnoDB's have for a path. */
constexpr uint PATH_CHARACTERS = OS_FILE_MAX_PATH + 1;
constexpr uint MEANS_CHARACTERS = 16;
constexpr uint REASON_CHARACTERS = 256;

ST_FIELD_INFO s_columns[] = {
    {"SPACE", MY_INT32_NUM_DECIMAL_DIGITS, MYSQL_TYPE_LONG, 0, MY_I_S_UNSIGNED,
     "", 0},
    {"PATH", PATH_CHARACTERS, MYSQL_TYPE_STRING, 0, 0, "", 0},
    {"PAGE_BYTES", MY_INT32_NUM_DECIMAL_DIGITS, MYSQL_TYPE_LONG, 0,
     MY_I_S_UNSIGNED, "", 0},
    {"MEANS", MEANS_CHARACTERS, MYSQL_TYPE_STRING, 0, 0, "", 0},
    {"REASON", REASON_CHARACTERS, MYSQL_TYPE_STRING, 0, 0, "", 0},
    {nullptr, 0, MYSQL_TYPE_NULL, 0, 0, nullptr, 0}};

void store(Field *field, const std::string &text) {
  field->store(text.c_str(), text.size(), system_charset_info);
}

/** Fill the table, for who has the privilege PROCESS.
@param[in]      thd     the session
@param[in,out]  tables  the table
@return 0; 1 if the server has no room for a row. It says so, as it does where
the privilege is missing */
int fill(THD *thd, Table_ref *tables, Item *) {
  if (check_global_access(thd, PROCESS_ACL)) {
    return 0;
  }
  Field **const fields = tables->table->field;
  for (const Atomic_file &file : atomic_files()) {
    fields[SPACE]->store(file.space_id, true);
    store(fields[PATH], file.path);
    fields[PAGE_BYTES]->store(file.page_bytes, true);
    store(fields[MEANS], file.means);
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
          "How data files' pages are made whole",
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
