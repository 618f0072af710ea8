/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file extend/extend0thread.cc
The thread that extends data files before an insert needs the room. */

#include "extend/extend0thread.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "extend/extend0space.h"
#include "extend/hook.h"
#include "extend/policy/extend0ahead.h"
#include "extend/policy/extend0size.h"
#include "fil0fil.h"
#include "fsp0fsp.h"
#include "mysqld_error.h"
#include "os0thread-create.h"
#include "sql/current_thd.h"
#include "sql/sql_class.h"
#include "sql/sql_error.h"
#include "sql/sql_extent_lock.h"
#include "sql/sql_thd_internal_api.h"
#include "srv0srv.h"
#include "ut0log.h"

namespace spw {

uint extend_ahead_pct = 0;

namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

/** Guards the thread's existence, and what it is told. */
std::mutex s_mutex;
std::condition_variable s_told;
IB_thread s_thread;
bool s_may_run = false;
bool s_is_running = false;

std::atomic<uint64_t> s_no_room{0};

/** A data file as it was found. */
struct Found {
  space_id_t space_id;
  Extend_look look;

  /** Somebody extends it now: who would do so, too, waits for that. */
  bool is_being_extended;
};

/** What is kept of a data file. */
struct Kept {
  explicit Kept(space_id_t id, uint64_t extent_bytes)
      : space_id(id), pace(extent_bytes) {}

  double full_in_s() const {
    return extend_full_in_s(free, jump_bytes, history.growth);
  }

  const space_id_t space_id;
  Extend_history history;
  Extend_pace pace;

  /** As it was found last: bytes. */
  uint64_t size{0};

  /** What it is being extended to: bytes; 0 if it is not. */
  uint64_t target{0};

  /** Somebody had locked it: left alone until then; seconds, see Extend_look.
   */
  double left_alone_until_s{0.0};

  /** What inserts found free in it then, and what was added since: bytes. */
  uint64_t free{0};

  /** extend_jump_bytes() of the last look. */
  uint64_t jump_bytes{0};

  /** Whether it was found by the last look. */
  bool is_found{true};

  /** As the data dictionary has it; nothing before it was asked for. */
  std::optional<Extent_tablespace> tablespace;
};

/** Looks at the tablespaces, and extends them step by step. One thread uses it.
 */
class Extender_ahead {
 public:
  /** @param[in]  thd  the thread's own session */
  explicit Extender_ahead(THD *thd) : m_thd(thd) {}

  /** Look at the tablespaces.
  @param[in]  now  the time */
  void look(steady_clock::time_point now);

  /** Extend the file that is full soonest by a step.
  @return how long to rest before the next one: seconds; nothing if there was
  no file */
  std::optional<double> step();

  /** Forget all tablespaces. */
  void reset() {
    m_files.clear();
    m_disks.clear();
  }

 private:
  /** Find the table of a file, which does not change while nobody renames it,
  and take the locks of a step. Does not wait.
  @param[in,out]  kept   the file
  @param[in,out]  locks  the locks
  @return false if somebody has locked it against that */
  bool lock(Kept *kept, Extent_step_locks *locks);

  /** Extend a file by a step, unless somebody has locked its table against
  that.
  @param[in,out]  kept    the file
  @param[out]     step_s  how long the step took: seconds
  @return false if it is left alone until a look finds that it needs more */
  bool step_of(Kept *kept, double *step_s);

  /** Forget an error of the session, which nobody is there to read. */
  void clear_error() {
    m_thd->clear_error();
    m_thd->get_stmt_da()->reset_condition_info(m_thd);
  }

  THD *const m_thd;
  std::unordered_map<space_id_t, Kept> m_files;

  /** By Extend_disk::id. */
  std::unordered_map<uint64_t, Extend_account> m_disks;
};

/** @return a clock that only goes forward: seconds */
double seconds_of(steady_clock::time_point time) {
  return duration<double>(time.time_since_epoch()).count();
}

/** @return seconds, as that clock counts */
steady_clock::duration ticks(double seconds) {
  return std::chrono::duration_cast<steady_clock::duration>(
      duration<double>(seconds));
}

/** @param[in]  file   the last file of a tablespace; its shard's mutex is held
@param[in]  now_s  the time
@return how the tablespace is found; nothing if it was not in use yet */
std::optional<Found> find(const fil_node_t &file, double now_s) {
  const fil_space_t &space = *file.space;
  if (space.size_in_header == 0 || space.stop_new_ops ||
      !extend_is_ours(space.id)) {
    return {};
  }
  const page_size_t page_size{space.flags};
  const uint64_t page_bytes = page_size.physical();
  const uint64_t extent_bytes =
      uint64_t{fsp_get_extent_size_in_pages(page_size)} * page_bytes;
  /* Read without the tablespace's latch, as
  fsp_get_available_space_in_free_extents() does it: three numbers that need not
  fit each other. */
  const uint64_t size = space.size_in_header;
  const uint64_t limit = space.free_limit;
  const uint64_t n_listed = space.free_len;
  const uint64_t n_above = size > limit ? (size - limit) / FSP_EXTENT_SIZE : 0;
  return Found{.space_id = space.id,
               .look = {.now_s = now_s,
                        .size = size * page_bytes,
                        .size_max = extend_size_max(page_bytes, extent_bytes),
                        .n_unused = n_listed + n_above,
                        .unit_bytes = FSP_EXTENT_SIZE * page_bytes,
                        .extent_bytes = extent_bytes,
                        .is_page_compressed = space.is_compressed(),
                        .disk_room = 0,
                        .is_disk_held = false},
               .is_being_extended = file.is_being_extended};
}

void Extender_ahead::look(steady_clock::time_point now) {
  const double now_s = seconds_of(now);
  std::vector<Found> found;
  (void)Fil_iterator::for_each_file([&found, now_s](fil_node_t *file) {
    if (auto one = find(*file, now_s)) {
      found.push_back(*one);
    }
    return DB_SUCCESS;
  });

  for (auto &[space_id, kept] : m_files) {
    kept.is_found = false;
  }
  /* Most do not grow, and their file systems need not be asked. */
  std::vector<std::pair<Extend_look *, Kept *>> growing;
  for (Found &one : found) {
    Kept &kept =
        m_files.try_emplace(one.space_id, one.space_id, one.look.extent_bytes)
            .first->second;
    kept.is_found = true;
    if (one.look.size < kept.size) {
      /* Another file was imported in its place. */
      kept.target = 0;
    }
    kept.size = one.look.size;
    kept.history = extend_history(kept.history, one.look);
    kept.free = extend_free_bytes(one.look);
    kept.jump_bytes = extend_jump_bytes(one.look);
    if (kept.target <= kept.size || one.is_being_extended) {
      kept.target = 0;
    }
    if (!one.is_being_extended &&
        (kept.target != 0 || kept.history.growth >= EXTEND_GROWTH_MIN)) {
      growing.emplace_back(&one.look, &kept);
    }
  }
  std::erase_if(m_files,
                [](const auto &file) { return !file.second.is_found; });

  /* Who is full soonest is first where there is not room for all. */
  std::sort(growing.begin(), growing.end(), [](const auto &a, const auto &b) {
    return a.second->full_in_s() < b.second->full_in_s();
  });
  bool is_no_room = false;
  for (auto [look, kept] : growing) {
    const auto disk = extend_disk(kept->space_id);
    if (!disk) {
      continue;
    }
    Extend_account &account = m_disks[disk->id];
    account.open(now_s, disk->available(), disk->size);
    look->disk_room = account.room();
    look->is_disk_held = account.is_held(now_s);
    if (now_s < kept->left_alone_until_s) {
      continue;
    }
    const Extend_decision decision =
        decide_extend_ahead(extend_ahead_pct, *look, kept->history);
    kept->target = std::max(kept->target, decision.target);
    account.promise(kept->target - std::min(kept->target, kept->size));
    is_no_room |= decision.reason == Extend_reason::DISK_NEARLY_FULL;
  }
  if (is_no_room) {
    s_no_room.fetch_add(1, std::memory_order_relaxed);
  }
}

std::optional<double> Extender_ahead::step() {
  auto soonest = m_files.end();
  double soonest_s = 0.0;
  for (auto file = m_files.begin(); file != m_files.end(); ++file) {
    const Kept &kept = file->second;
    const double full_in_s = kept.full_in_s();
    if (kept.target != 0 &&
        (soonest == m_files.end() || full_in_s < soonest_s)) {
      soonest = file;
      soonest_s = full_in_s;
    }
  }
  if (soonest == m_files.end()) {
    return {};
  }
  double step_s = 0.0;
  if (!step_of(&soonest->second, &step_s)) {
    soonest->second.target = 0;
  }
  return extend_ahead_rest_s(step_s, soonest_s);
}

bool Extender_ahead::lock(Kept *kept, Extent_step_locks *locks) {
  if (!kept->tablespace) {
    const std::string name = extend_name(kept->space_id);
    Extent_tablespace tablespace;
    if (find_extent_tablespace(m_thd, name.c_str(), &tablespace) !=
            Extent_lock::DONE ||
        tablespace.space_id != kept->space_id) {
      /* It is being made, mostly. What it has grown by until then is no load.
       */
      kept->history = {};
      return false;
    }
    kept->tablespace = tablespace;
  }
  const Extent_lock locked = locks->acquire(*kept->tablespace, 0);
  if (locked == Extent_lock::CHANGED) {
    kept->tablespace.reset();
  }
  return locked == Extent_lock::DONE;
}

bool Extender_ahead::step_of(Kept *kept, double *step_s) {
  const space_id_t space_id = kept->space_id;
  const uint64_t target = kept->target;
  const uint64_t next = kept->pace.next(kept->size, target);
  const auto disk = extend_disk(space_id);
  if (!disk || !m_disks[disk->id].may_step(seconds_of(steady_clock::now()),
                                           next - kept->size, disk->available(),
                                           disk->size)) {
    return false;
  }
  Extent_step_locks locks{m_thd};
  if (!lock(kept, &locks)) {
    clear_error();
    kept->left_alone_until_s =
        seconds_of(steady_clock::now()) + EXTEND_LOCKED_HOLD_S;
    return false;
  }
  const auto begin = steady_clock::now();
  uint64_t size = kept->size;
  const Extend_status status =
      extend_step(Extender::AHEAD, space_id, next, &size);
  if (status == Extend_status::GONE || status == Extend_status::SHRUNK) {
    return false;
  }
  if (status == Extend_status::FAILED) {
    s_no_room.fetch_add(1, std::memory_order_relaxed);
    m_disks[disk->id].failed(seconds_of(steady_clock::now()));
    ib::warn() << "Tablespace " << kept->tablespace->name
               << " could not be extended ahead, to " << target
               << " bytes: none is on its file system for "
               << EXTEND_FAILED_HOLD_S
               << " s. See the messages above, and innodb_extend_ahead_pct.";
    return false;
  }
  const uint64_t added = size - std::min(size, kept->size);
  *step_s = duration<double>(steady_clock::now() - begin).count();
  kept->pace.took(added, *step_s);
  kept->free += added;
  kept->size = size;
  return size < target;
}

void extend_ahead_thread() {
  THD *const thd = create_internal_thd();
  /* While it waited for one file nobody would extend the others. */
  thd->variables.lock_wait_timeout = 0;
  Extender_ahead extender{thd};
  auto next_look = steady_clock::now();
  auto next_step = next_look;
  std::unique_lock lock{s_mutex};
  while (s_may_run) {
    if (extend_ahead_pct == 0) {
      extender.reset();
      s_told.wait(lock);
      continue;
    }
    lock.unlock();
    const auto now = steady_clock::now();
    if (now >= next_look) {
      extender.look(now);
      const auto end = steady_clock::now();
      next_look =
          end +
          ticks(extend_look_interval_s(duration<double>(end - now).count()));
    }
    if (now >= next_step) {
      const auto rest_s = extender.step();
      next_step = rest_s ? steady_clock::now() + ticks(*rest_s) : next_look;
    }
    lock.lock();
    if (s_may_run) {
      s_told.wait_until(lock, std::min(next_look, next_step));
    }
  }
  lock.unlock();
  destroy_internal_thd(thd);
}

/** Start the thread unless there is one. The caller holds s_mutex. */
void start() {
  if (!s_may_run || s_is_running || extend_ahead_pct == 0) {
    return;
  }
#ifdef UNIV_PFS_THREAD
  /* Made and registered with the first thread: upstream counts its own keys
  when it starts, and lists them at startup. */
  static mysql_pfs_key_t key;
  static std::once_flag registered;
  std::call_once(registered, [] {
    PSI_thread_info threads[] = {{&key.m_value, "extend_ahead_thread",
                                  "ib_extend", PSI_FLAG_SINGLETON, 0,
                                  PSI_DOCUMENT_ME}};
    mysql_thread_register("innodb", threads, 1);
  });
#endif /* UNIV_PFS_THREAD */
  try {
    s_thread = os_thread_create(key, 0, extend_ahead_thread);
  } catch (const std::system_error &error) {
    const std::string warning =
        "Data files are not extended ahead: the thread of"
        " innodb_extend_ahead_pct cannot be created: " +
        std::string{error.what()} +
        ". Raise the limit of threads (ulimit -u, TasksMax of systemd, pids.max"
        " of the control group), and set the variable again.";
    ib::warn() << warning;
    if (THD *const thd = current_thd) {
      push_warning(thd, Sql_condition::SL_WARNING, ER_UNKNOWN_ERROR,
                   warning.c_str());
    }
    return;
  }
  s_thread.start();
  s_is_running = true;
}

}  // namespace

void extend_ahead_start() {
  if (const char *const warning = extend_sync_warning()) {
    ib::warn() << warning;
  }
  if (srv_force_recovery > 0) {
    return;
  }
  const std::lock_guard lock{s_mutex};
  s_may_run = true;
  start();
}

void extend_ahead_stop() {
  {
    const std::lock_guard lock{s_mutex};
    s_may_run = false;
    if (!s_is_running) {
      return;
    }
    s_is_running = false;
    s_told.notify_all();
  }
  s_thread.join();
}

void extend_ahead_changed() {
  const std::lock_guard lock{s_mutex};
  start();
  s_told.notify_all();
}

uint64_t extend_ahead_no_room() {
  return s_no_room.load(std::memory_order_relaxed);
}

}  // namespace spw
