/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file extend/extend0thread.cc
The thread that extends data files before an insert needs the space. */

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

/** Protects the thread's existence and its control variables. */
std::mutex s_mutex;

/** Never destroyed: that would wait for the thread if the server ends without
extend_ahead_stop(), as it does if it cannot write its pid file. */
auto &s_control_changed = *new std::condition_variable;
IB_thread s_thread;
bool s_may_run = false;
bool s_is_running = false;

std::atomic<uint64_t> s_no_space{0};

/** A data file as a scan reads it. */
struct Scanned {
  space_id_t space_id;
  Tablespace_sample sample;

  /** A thread extends the file now. Another one would have to wait. */
  bool is_being_extended;
};

/** State of a data file that is kept between scans. */
struct Tracked {
  explicit Tracked(space_id_t id, uint64_t extent_bytes)
      : space_id(id), pace(extent_bytes) {}

  double time_to_full_s() const {
    return extend_time_to_full_s(free, burst_bytes, history.growth);
  }

  const space_id_t space_id;
  Extend_history history;
  Extend_pace pace;

  /** Size after the last scan or step: bytes. */
  uint64_t size{0};

  /** Size to which the file is being extended: bytes; 0 if it is not. */
  uint64_t target{0};

  /** End of the back-off after its locks were not available: seconds, see
  Tablespace_sample. */
  double backoff_until_s{0.0};

  /** Free space at the last scan, plus the space added since: bytes. */
  uint64_t free{0};

  /** extend_burst_bytes() of the last scan. */
  uint64_t burst_bytes{0};

  /** Whether the last scan found the file. */
  bool is_found{true};

  /** The tablespace in the data dictionary; empty before it was looked up. */
  std::optional<Extent_tablespace> tablespace;
};

/** Scans the tablespaces, and extends them in steps. Used by one thread. */
class Extender_ahead {
 public:
  /** @param[in]  thd  the thread's own session */
  explicit Extender_ahead(THD *thd) : m_thd(thd) {}

  /** Scan the tablespaces, and decide how far to extend each of them.
  @param[in]  now  the time */
  void scan(steady_clock::time_point now);

  /** Extend the file whose space runs out first, by one step.
  @return pause before the next step: seconds; empty if there is no such file */
  std::optional<double> step();

  /** Discard all that is known of files and file systems. */
  void reset() {
    m_files.clear();
    m_disks.clear();
  }

 private:
  /** Take the locks of a step, without waiting. Looks up the file's table
  first, and again after a rename.
  @param[in,out]  file   the file
  @param[in,out]  locks  the locks
  @return false if another session's lock prevents it, or there is no table */
  bool lock(Tracked *file, Extent_step_locks *locks);

  /** Extend a file by one step, unless another session has locked its table
  against it.
  @param[in,out]  file    the file
  @param[out]     step_s  duration of the step: seconds
  @return false if the file waits until a scan finds that it needs more space */
  bool extend_by_step(Tracked *file, double *step_s);

  /** Clear an error of the session, which has no client to read it. */
  void clear_error() {
    m_thd->clear_error();
    m_thd->get_stmt_da()->reset_condition_info(m_thd);
  }

  THD *const m_thd;
  std::unordered_map<space_id_t, Tracked> m_files;

  /** The file systems, by Extend_disk::id. */
  std::unordered_map<uint64_t, Disk_budget> m_disks;
};

/** @return the time of a monotonic clock: seconds */
double seconds_of(steady_clock::time_point time) {
  return duration<double>(time.time_since_epoch()).count();
}

/** @return the duration in ticks of that clock */
steady_clock::duration ticks(double seconds) {
  return std::chrono::duration_cast<steady_clock::duration>(
      duration<double>(seconds));
}

/** @param[in]  file   the last file of a tablespace; its shard's mutex is held
@param[in]  now_s  the time: seconds
@return the tablespace; empty if it is not in use yet, is being dropped, or is
not extendable */
std::optional<Scanned> scan_file(const fil_node_t &file, double now_s) {
  const fil_space_t &space = *file.space;
  if (space.size_in_header == 0 || space.stop_new_ops ||
      !is_extendable(space.id)) {
    return {};
  }
  const page_size_t page_size{space.flags};
  const uint64_t page_bytes = page_size.physical();
  const uint64_t extent_bytes =
      uint64_t{fsp_get_extent_size_in_pages(page_size)} * page_bytes;
  /* Read without the tablespace's latch, as in
  fsp_get_available_space_in_free_extents(): the three numbers can be
  inconsistent. */
  const uint64_t size = space.size_in_header;
  const uint64_t limit = space.free_limit;
  const uint64_t n_listed = space.free_len;
  const uint64_t n_above = size > limit ? (size - limit) / FSP_EXTENT_SIZE : 0;
  return Scanned{
      .space_id = space.id,
      .sample = {.now_s = now_s,
                 .size = size * page_bytes,
                 .size_max = extend_size_max(page_bytes, extent_bytes),
                 .n_unused = n_listed + n_above,
                 .unit_bytes = FSP_EXTENT_SIZE * page_bytes,
                 .extent_bytes = extent_bytes,
                 .is_page_compressed = space.is_compressed(),
                 .disk_available = 0,
                 .is_disk_backing_off = false},
      .is_being_extended = file.is_being_extended};
}

void Extender_ahead::scan(steady_clock::time_point now) {
  const double now_s = seconds_of(now);
  std::vector<Scanned> found;
  (void)Fil_iterator::for_each_file([&found, now_s](fil_node_t *file) {
    if (auto one = scan_file(*file, now_s)) {
      found.push_back(*one);
    }
    return DB_SUCCESS;
  });

  for (auto &[space_id, file] : m_files) {
    file.is_found = false;
  }
  /* Most files do not grow: their file systems need not be queried. */
  std::vector<std::pair<Tablespace_sample *, Tracked *>> growing;
  for (Scanned &one : found) {
    Tracked &file =
        m_files.try_emplace(one.space_id, one.space_id, one.sample.extent_bytes)
            .first->second;
    file.is_found = true;
    if (one.sample.size < file.size) {
      /* Another file was imported in its place. */
      file.target = 0;
    }
    file.size = one.sample.size;
    file.history = extend_history(file.history, one.sample);
    file.free = extend_free_bytes(one.sample);
    file.burst_bytes = extend_burst_bytes(one.sample);
    if (file.target <= file.size || one.is_being_extended) {
      file.target = 0;
    }
    if (!one.is_being_extended &&
        (file.target != 0 || file.history.growth >= EXTEND_GROWTH_MIN)) {
      growing.emplace_back(&one.sample, &file);
    }
  }
  std::erase_if(m_files,
                [](const auto &file) { return !file.second.is_found; });

  /* Files whose space runs out first take precedence where space is short. */
  std::sort(growing.begin(), growing.end(), [](const auto &a, const auto &b) {
    return a.second->time_to_full_s() < b.second->time_to_full_s();
  });
  bool is_disk_nearly_full = false;
  for (auto [sample, file] : growing) {
    const auto disk = extend_disk(file->space_id);
    if (!disk) {
      continue;
    }
    Disk_budget &budget = m_disks[disk->id];
    budget.open(now_s, disk->available(), disk->size);
    sample->disk_available = budget.available();
    sample->is_disk_backing_off = budget.is_backing_off(now_s);
    if (now_s < file->backoff_until_s) {
      continue;
    }
    const Extend_decision decision =
        decide_extend_ahead(extend_ahead_pct, *sample, file->history);
    file->target = std::max(file->target, decision.target);
    budget.reserve(file->target - std::min(file->target, file->size));
    is_disk_nearly_full |= decision.reason == Extend_reason::DISK_NEARLY_FULL;
  }
  if (is_disk_nearly_full) {
    s_no_space.fetch_add(1, std::memory_order_relaxed);
  }
}

std::optional<double> Extender_ahead::step() {
  auto first = m_files.end();
  double min_time_to_full_s = 0.0;
  for (auto file = m_files.begin(); file != m_files.end(); ++file) {
    const Tracked &tracked = file->second;
    const double time_to_full_s = tracked.time_to_full_s();
    if (tracked.target != 0 &&
        (first == m_files.end() || time_to_full_s < min_time_to_full_s)) {
      first = file;
      min_time_to_full_s = time_to_full_s;
    }
  }
  if (first == m_files.end()) {
    return {};
  }
  double step_s = 0.0;
  if (!extend_by_step(&first->second, &step_s)) {
    first->second.target = 0;
  }
  return pause_ahead_s(step_s, min_time_to_full_s);
}

bool Extender_ahead::lock(Tracked *file, Extent_step_locks *locks) {
  if (!file->tablespace) {
    const std::string name = extend_name(file->space_id);
    Extent_tablespace tablespace;
    if (find_extent_tablespace(m_thd, name.c_str(), &tablespace) !=
            Lock_result::DONE ||
        tablespace.space_id != file->space_id) {
      /* Mostly the table is being created. Growth until then is not load. */
      file->history = {};
      return false;
    }
    file->tablespace = tablespace;
  }
  const Lock_result locked = locks->acquire(*file->tablespace, 0);
  if (locked == Lock_result::CHANGED) {
    file->tablespace.reset();
  }
  return locked == Lock_result::DONE;
}

bool Extender_ahead::extend_by_step(Tracked *file, double *step_s) {
  const space_id_t space_id = file->space_id;
  const uint64_t target = file->target;
  const uint64_t next = file->pace.next(file->size, target);
  const auto disk = extend_disk(space_id);
  if (!disk || !m_disks[disk->id].can_extend(seconds_of(steady_clock::now()),
                                             next - file->size,
                                             disk->available(), disk->size)) {
    return false;
  }
  /* Other files are extended meanwhile. */
  const auto back_off = [file] {
    file->backoff_until_s =
        seconds_of(steady_clock::now()) + EXTEND_LOCKED_BACKOFF_S;
    return false;
  };
  if (!extend_wait(space_id, [] { return true; })) {
    return back_off();
  }
  Extent_step_locks locks{m_thd};
  if (!lock(file, &locks)) {
    clear_error();
    return back_off();
  }
  const auto begin = steady_clock::now();
  uint64_t size = file->size;
  const Extend_status status =
      extend_step(Extender::AHEAD, space_id, next, &size);
  if (status == Extend_status::BUSY) {
    return back_off();
  }
  if (status == Extend_status::GONE || status == Extend_status::SHRUNK) {
    return false;
  }
  if (status == Extend_status::FAILED) {
    s_no_space.fetch_add(1, std::memory_order_relaxed);
    m_disks[disk->id].failed(seconds_of(steady_clock::now()));
    ib::warn() << "Tablespace '" << file->tablespace->name
               << "' could not be extended ahead, to " << target
               << " bytes. For " << EXTEND_FAILED_BACKOFF_S
               << " s no file on its file system is extended ahead; sessions"
                  " extend files themselves. Remove the cause that the messages"
                  " above name.";
    return false;
  }
  const uint64_t added = size - std::min(size, file->size);
  *step_s = duration<double>(steady_clock::now() - begin).count();
  file->pace.record_step(added, *step_s);
  file->free += added;
  file->size = size;
  return size < target;
}

void extend_ahead_thread() {
  THD *const thd = create_internal_thd();
  /* A wait for one file would delay the extension of the others. */
  thd->variables.lock_wait_timeout = 0;
  Extender_ahead extender{thd};
  auto next_scan = steady_clock::now();
  auto next_step = next_scan;
  std::unique_lock lock{s_mutex};
  while (s_may_run) {
    if (extend_ahead_pct == 0) {
      extender.reset();
      s_control_changed.wait(lock);
      continue;
    }
    lock.unlock();
    const auto now = steady_clock::now();
    if (now >= next_scan) {
      extender.scan(now);
      const auto end = steady_clock::now();
      next_scan =
          end + ticks(scan_interval_s(duration<double>(end - now).count()));
    }
    if (now >= next_step) {
      const auto pause_s = extender.step();
      next_step = pause_s ? steady_clock::now() + ticks(*pause_s) : next_scan;
    }
    lock.lock();
    if (s_may_run) {
      s_control_changed.wait_until(lock, std::min(next_scan, next_step));
    }
  }
  lock.unlock();
  destroy_internal_thd(thd);
}

/** Start the thread unless it exists. The caller holds s_mutex. */
void start() {
  if (!s_may_run || s_is_running || extend_ahead_pct == 0) {
    return;
  }
#ifdef UNIV_PFS_THREAD
  /* Created and registered with the first thread: InnoDB counts its own keys
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
    s_control_changed.notify_all();
  }
  s_thread.join();
}

void extend_ahead_changed() {
  const std::lock_guard lock{s_mutex};
  start();
  s_control_changed.notify_all();
}

uint64_t extend_ahead_no_space() {
  return s_no_space.load(std::memory_order_relaxed);
}

}  // namespace spw
