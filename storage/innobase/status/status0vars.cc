/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file status/status0vars.cc
Our status variables, Innodb_*. */

#include "univ.i"

#include <iterator>

#include "aio0array.h"
#include "mysql/status_var.h"
#include "spw0hook.h"
#include "sql/sql_class.h"

namespace spw {

/** What the status variables show. */
struct Status_values {
  Aio_stats aio_read;
  Aio_stats aio_write;
};

/** The values that SHOW GLOBAL STATUS read last. The server reads status
variables under LOCK_status, so that one thread at a time writes and reads. */
static Status_values s_values;

#define SPW_STATUS(name, field)                                     \
  {                                                                 \
    name, reinterpret_cast<char *>(&s_values.field), SHOW_LONGLONG, \
        SHOW_SCOPE_GLOBAL                                           \
  }

/** The variables; the server puts "Innodb_" ahead of each name. */
static SHOW_VAR s_variables[] = {
#include "spw_status.inc"
    {nullptr, nullptr, SHOW_LONG, SHOW_SCOPE_GLOBAL}};

int show_status_variables(THD *, SHOW_VAR *var, char *) {
  s_values.aio_read = aio_stats(Aio_kind::READ);
  s_values.aio_write = aio_stats(Aio_kind::WRITE);

  var->type = SHOW_ARRAY;
  var->value = reinterpret_cast<char *>(&s_variables);
  var->scope = SHOW_SCOPE_GLOBAL;
  return 0;
}

}  // namespace spw
