/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file report/report0print.cc
The lines "Flushing and stalls" of SHOW ENGINE INNODB STATUS. */

#include "univ.i"

#include <cinttypes>

#include "atomic/atomic0file.h"
#include "base/base0rate.h"
#include "base/base0text.h"
#include "buf0buf.h"
#include "extend/extend0count.h"
#include "flush/flush0cause.h"
#include "flush/flush0round.h"
#include "redo/redo0state.h"
#include "report/hook.h"
#include "srv0srv.h"
#include "stall/stall0stall.h"

namespace spw {

static void print_redo_and_dirty_pages(FILE *file) {
  const Redo_state redo = redo_state();
  ulint n_lru;
  ulint n_free;
  ulint n_dirty;
  buf_get_total_list_len(&n_lru, &n_free, &n_dirty);

  fprintf(file,
          "Checkpoint age %s, %.1f %% of the sync age (%s)%s\n"
          "Sessions wait for redo space above a checkpoint age of %s, the log"
          " writer above %s\n"
          "Dirty pages %lu of %lu, %.1f %%\n",
          bytes_text(redo.checkpoint_age).c_str(),
          percent_of(redo.checkpoint_age, redo.limits.sync_age),
          bytes_text(redo.limits.sync_age).c_str(),
          srv_flush_sync ? "" : "; innodb_flush_sync = OFF: no sync flushing",
          bytes_text(redo.limits.max_age).c_str(),
          bytes_text(redo.limits.hard_age).c_str(), n_dirty, n_lru + n_free,
          percent_of(n_dirty, n_lru + n_free));
}

void status_print(FILE *file) {
  /* Without dashes: programs that read the text end at a section that they do
  not know. */
  fputs("Flushing and stalls\n", file);
  print_redo_and_dirty_pages(file);
  flush_cause_print(file);
  ahead_flush_print(file);
  atomic_print(file);
  stall_print(file);
  extend_print(file);
}

}  // namespace spw
