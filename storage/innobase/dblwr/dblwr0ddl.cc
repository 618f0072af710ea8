/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file dblwr/dblwr0ddl.cc
What DDL writes beside the redo log, so that a power cut loses none of it: index
builds, DISCARD and IMPORT TABLESPACE, the truncation of undo tablespaces. */

#include "dblwr/hook.h"
#include "fil0fil.h"
#include "log0chkp.h"
#include "os0file.h"
#include "ut0log.h"

namespace spw {

void sync_unlogged_pages() { fil_flush_file_spaces(); }

void checkpoint_after_discard() { log_make_latest_checkpoint(); }

bool undo_truncation_has_not_begun(const char *log) {
  /* ~0 if the file cannot be looked at: upstream opens it, and says why. */
  const os_offset_t bytes = os_file_get_size(log).m_total_size;
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
