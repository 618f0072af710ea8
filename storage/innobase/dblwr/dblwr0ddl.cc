/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file dblwr/dblwr0ddl.cc
Protects what DDL writes without redo from power cuts: index builds, DISCARD and
IMPORT TABLESPACE, the truncation of undo tablespaces. */

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "dblwr/hook.h"
#include "fil0fil.h"
#include "log0chkp.h"
#include "log0log.h"
#include "os0file.h"
#include "srv0srv.h"
#include "trx0purge.h"
#include "trx0trx.h"
#include "ut0log.h"

namespace spw {

namespace {

/** Guards s_other_spaces. Leaf mutex: no other mutex is acquired under it. */
std::mutex s_mutex;

/** The other tablespaces of each index build that writes pages outside its
table's tablespace. */
std::map<const Flush_observer *, std::set<space_id_t>> s_other_spaces;

/** End of the redo log at the last DISCARD TABLESPACE. LSN_MAX until the first
DISCARD or IMPORT: the previous server can have ended after a DISCARD. */
std::atomic<lsn_t> s_discard_lsn{LSN_MAX};

/** @param[in]  log  an undo truncation log that is shorter than a page
@return 0 if it is now a page of zeros, and synced; else errno */
int make_page_of_zeros(const char *log) {
  const int file = open(log, O_RDWR);
  if (file < 0) {
    return errno;
  }
  const int error =
      ftruncate(file, UNIV_PAGE_SIZE) == 0 && fsync(file) == 0 ? 0 : errno;
  close(file);
  return error;
}

}  // namespace

void note_unlogged_page(const Flush_observer *observer,
                        space_id_t table_space_id, space_id_t page_space_id) {
  if (page_space_id == table_space_id) {
    return;
  }
  const std::lock_guard lock{s_mutex};
  s_other_spaces[observer].insert(page_space_id);
}

void sync_unlogged_pages(const Flush_observer *observer,
                         space_id_t table_space_id, bool is_interrupted) {
  std::set<space_id_t> spaces{table_space_id};
  {
    const std::lock_guard lock{s_mutex};
    if (auto more = s_other_spaces.extract(observer)) {
      spaces.merge(more.mapped());
    }
  }
  if (is_interrupted) {
    /* The pages were dropped, and the statement fails. */
    return;
  }
  for (const space_id_t space_id : spaces) {
    fil_flush(space_id);
  }
}

void note_discard() {
  const lsn_t lsn = log_get_lsn(*log_sys);
  lsn_t old = s_discard_lsn.load();
  while ((old == LSN_MAX || old < lsn) &&
         !s_discard_lsn.compare_exchange_weak(old, lsn)) {
  }
}

dberr_t checkpoint_before_import(const trx_t *trx) {
  lsn_t discard_lsn = s_discard_lsn.load();
  const lsn_t lsn =
      discard_lsn == LSN_MAX ? log_get_lsn(*log_sys) : discard_lsn;
  lsn_t requested_lsn;
  if (log_get_checkpoint_lsn(*log_sys) < lsn &&
      log_request_latest_checkpoint(*log_sys, requested_lsn)) {
    while (log_get_checkpoint_lsn(*log_sys) < lsn) {
      if (trx_is_interrupted(trx)) {
        return DB_INTERRUPTED;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
  }
  if (discard_lsn == LSN_MAX) {
    s_discard_lsn.compare_exchange_strong(discard_lsn, lsn);
  }
  return DB_SUCCESS;
}

bool undo_truncation_has_not_begun(space_id_t space_num, const char *log) {
  /* ~0 if the file is unreadable: InnoDB then opens it and reports why. */
  const os_offset_t bytes = os_file_get_size(log).m_total_size;
  if (bytes >= UNIV_PAGE_SIZE) {
    return false;
  }
  space_id_t space_id;
  std::string file;
  const bool has_file =
      fil_system_get_file_by_space_num(space_num, space_id, file);
  if (srv_read_only_mode) {
    return has_file;
  }
  if (has_file) {
    ib::warn() << "The undo truncation log '" << log << "' has only " << bytes
               << " bytes: the server ended while it created the log, before"
                  " the truncation of '"
               << file
               << "' began. Recovery removes the log. No action is needed.";
    os_file_delete_if_exists(innodb_log_file_key, log, nullptr);
    return true;
  }
  const int error = make_page_of_zeros(log);
  if (error == 0) {
    ib::warn() << "The undo truncation log '" << log << "' has only " << bytes
               << " bytes, and the undo tablespace has no file: the server"
                  " ended in a truncation, while it created the log again."
                  " Recovery creates the undo tablespace. No action is needed.";
  } else {
    ib::error() << "The undo truncation log '" << log << "' has only " << bytes
                << " bytes, and could not be repaired: " << strerror(error)
                << ". Remove the cause and start the server again.";
  }
  return false;
}

void undo_truncation_ended(space_id_t space_num) {
  undo::spaces->s_lock();
  undo::Tablespace *space = undo::spaces->find(space_num);
  Rsegs *rsegs = space->rsegs();
  rsegs->x_lock();
  if (rsegs->is_inactive_implicit()) {
    rsegs->set_active();
    ut_d(ib::info(ER_IB_MSG_UNDO_MARKED_ACTIVE, space->file_name()));
  }
  rsegs->x_unlock();
  undo::spaces->s_unlock();
}

}  // namespace spw
