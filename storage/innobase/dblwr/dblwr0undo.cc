/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file dblwr/dblwr0undo.cc
The log of an undo truncation (undo_<number>_trunc.log), as recovery finds it
after a power cut. */

#include "dblwr/hook.h"
#include "os0file.h"
#include "univ.i"
#include "ut0log.h"

namespace spw {

bool undo_truncation_has_not_begun(const char *log) {
  const os_offset_t bytes = os_file_get_size(log).m_total_size;
  /* ~0 if the file cannot be looked at: upstream's code says why. */
  if (bytes >= UNIV_PAGE_SIZE) {
    return false;
  }
  ib::warn() << "The log of an undo truncation, '" << log << "', has " << bytes
             << " bytes: the server ended while it made the log, before the"
                " truncation began. The log is removed";
  os_file_delete_if_exists(innodb_log_file_key, log, nullptr);
  return true;
}

}  // namespace spw
