/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file report/hook.h
The functions that InnoDB's files call to show Spillway's status variables, its
lines of SHOW ENGINE INNODB STATUS and its tables of INFORMATION_SCHEMA. */

#ifndef report_hook_h
#define report_hook_h

#include <cstdio>

class THD;
struct SHOW_VAR;
struct st_mysql_plugin;

namespace spw {

/** Print "Flushing and stalls", the end of the section ROW OPERATIONS of SHOW
ENGINE INNODB STATUS.
@param[in,out]  file  where to print */
void status_print(FILE *file);

/** @return the plugin of the table
INFORMATION_SCHEMA.INNODB_ATOMIC_WRITE_FILES. Called while the program is
loaded, for InnoDB's array of plugins. */
[[nodiscard]] st_mysql_plugin atomic_table();

/** @return the same for INFORMATION_SCHEMA.INNODB_STALLS */
[[nodiscard]] st_mysql_plugin stall_table();

/** SHOW_FUNC of Spillway's status variables: makes var an array of all of them.
@param[out]  var  the variable
@return 0 */
int show_status_variables(THD *, SHOW_VAR *var, char *);

}  // namespace spw

#endif /* report_hook_h */
