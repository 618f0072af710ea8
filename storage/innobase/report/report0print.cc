/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file report/report0print.cc
The section FLUSHING AND STALLS of SHOW ENGINE INNODB STATUS. */

#include "univ.i"

#include <cinttypes>

#include "atomic/atomic0file.h"
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
  const Redo_fill fill = redo_fill();
  ulint n_lru;
  ulint n_free;
  ulint n_dirty;
  buf_get_total_list_len(&n_lru, &n_free, &n_dirty);

  fprintf(file,
          "Checkpoint age %" PRIu64 ", %.1f %% of %" PRIu64
          ", above which sync flushing %s\n"
          "User threads wait for redo space above %" PRIu64
          ", the log writer above %" PRIu64
          "\n"
          "Dirty pages %lu of %lu, %.1f %% of the buffer pool's data and free"
          " pages\n",
          fill.age, percent_of(fill.age, fill.limits.sync_age),
          fill.limits.sync_age,
          srv_flush_sync ? "begins" : "would begin: innodb_flush_sync is OFF",
          fill.limits.max_age, fill.limits.hard_age, n_dirty, n_lru + n_free,
          percent_of(n_dirty, n_lru + n_free));
}

void status_print(FILE *file) {
  fputs(
      "-------------------\n"
      "FLUSHING AND STALLS\n"
      "-------------------\n",
      file);
  print_redo_and_dirty_pages(file);
  flush_cause_print(file);
  ahead_flush_print(file);
  atomic_print(file);
  stall_print(file);
  extend_print(file);
}

}  // namespace spw
