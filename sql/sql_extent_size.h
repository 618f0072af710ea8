/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file sql/sql_extent_size.h
ALTER TABLESPACE ... SET EXTENT_SIZE: extend a data file ahead of the load.
Declares the functions that the patch of the grammar calls. */

#ifndef SQL_EXTENT_SIZE_INCLUDED
#define SQL_EXTENT_SIZE_INCLUDED

#include "lex_string.h"
#include "my_inttypes.h"

class THD;

namespace spw {

/**
  Create the statement for the parser. Called in a semantic action.

  @param thd    the session
  @param name   the tablespace, as in INFORMATION_SCHEMA.INNODB_TABLESPACES
  @param pages  the size that its file shall have: pages

  @returns true after an error, which is reported
*/
bool parse_extent_size(THD *thd, const LEX_STRING &name, ulonglong pages);

/**
  The same with a size such as 10G: bytes.
*/
bool parse_extent_size(THD *thd, const LEX_STRING &name,
                       const LEX_STRING &size);

}  // namespace spw

#endif  // SQL_EXTENT_SIZE_INCLUDED
