/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file report/report0status.cc
Spillway's status variables, Innodb_*. */

#include "univ.i"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "aio/aio0array.h"
#include "atomic/atomic0file.h"
#include "buf0buf.h"
#include "extend/extend0count.h"
#include "extend/extend0space.h"
#include "extend/extend0thread.h"
#include "flush/flush0cause.h"
#include "flush/flush0round.h"
#include "mysql/status_var.h"
#include "redo/redo0state.h"
#include "report/hook.h"
#include "sql/sql_class.h"
#include "stall/stall0stall.h"
#include "trx0purge.h"
#include "trx0sys.h"

namespace spw {

/** Values of the status variables of one kind of stall. */
struct Stall_values {
  uint64_t count;
  uint64_t waiting;
  uint64_t time_us;
  uint64_t sessions_time_us;
  uint64_t max_us;
  uint64_t p99_us;
  uint64_t over_10ms;
  uint64_t over_100ms;
  uint64_t over_1s;
  uint64_t since_last_s;
};

/** Values of the status variables. */
struct Status_values {
  Aio_stats aio_read;
  Aio_stats aio_write;
  Atomic_stats atomic;
  Redo_state redo;
  Stall_values stalls[static_cast<size_t>(Stall::N)];
  Extend_work extended[static_cast<size_t>(Extender::N)];
  uint64_t extend_ahead_no_space;
  uint64_t extend_pause_us;
  Ahead_flush_stats ahead_flush;
  const char *throttle_state;
  Flush_work flushed[static_cast<size_t>(Flush_cause::N)];
  uint64_t flush_list_batches;
  uint64_t max_trx_id;
  uint64_t purge_trx_id;
  uint64_t pages_made_young;
  uint64_t pages_not_made_young;
};

/** The values that the last SHOW GLOBAL STATUS read. The server reads status
variables under LOCK_status, so that one thread at a time writes and reads. */
static Status_values s_values;

#define SPW_STATUS(name, field)                                     \
  {                                                                 \
    name, reinterpret_cast<char *>(&s_values.field), SHOW_LONGLONG, \
        SHOW_SCOPE_GLOBAL                                           \
  }

#define SPW_STALL(name, kind)                                                  \
  SPW_STATUS("stall_" name "_count", stalls[size_t(Stall::kind)].count),       \
      SPW_STATUS("stall_" name "_max_us", stalls[size_t(Stall::kind)].max_us), \
      SPW_STATUS("stall_" name "_over_100ms",                                  \
                 stalls[size_t(Stall::kind)].over_100ms),                      \
      SPW_STATUS("stall_" name "_over_10ms",                                   \
                 stalls[size_t(Stall::kind)].over_10ms),                       \
      SPW_STATUS("stall_" name "_over_1s",                                     \
                 stalls[size_t(Stall::kind)].over_1s),                         \
      SPW_STATUS("stall_" name "_p99_us", stalls[size_t(Stall::kind)].p99_us), \
      SPW_STATUS("stall_" name "_sessions_time_us",                            \
                 stalls[size_t(Stall::kind)].sessions_time_us),                \
      SPW_STATUS("stall_" name "_since_last_s",                                \
                 stalls[size_t(Stall::kind)].since_last_s),                    \
      SPW_STATUS("stall_" name "_time_us",                                     \
                 stalls[size_t(Stall::kind)].time_us),                         \
      SPW_STATUS("stall_" name "_waiting",                                     \
                 stalls[size_t(Stall::kind)].waiting)

#define SPW_TEXT(name, field)                                       \
  {                                                                 \
    name, reinterpret_cast<char *>(&s_values.field), SHOW_CHAR_PTR, \
        SHOW_SCOPE_GLOBAL                                           \
  }

#define SPW_ROUNDS(name, trigger)        \
  SPW_STATUS("ahead_flush_rounds_" name, \
             ahead_flush.rounds[size_t(Flush_trigger::trigger)])

#define SPW_LIMITED(name, limit)                 \
  SPW_STATUS("ahead_flush_rounds_limited_" name, \
             ahead_flush.limited[size_t(Flush_limit::limit)])

#define SPW_ATOMIC(name, method)                           \
  SPW_STATUS("atomic_write_files_" name,                   \
             atomic.files[size_t(Atomic_method::method)]), \
      SPW_STATUS("atomic_write_pages_" name,               \
                 atomic.pages[size_t(Atomic_method::method)])

#define SPW_FLUSHED(name, cause)                           \
  SPW_STATUS("buffer_pool_flush_" name "_batches",         \
             flushed[size_t(Flush_cause::cause)].batches), \
      SPW_STATUS("buffer_pool_flush_" name "_pages",       \
                 flushed[size_t(Flush_cause::cause)].pages)

#define SPW_EXTENDED(name, extender)                                         \
  SPW_STATUS(name "_bytes", extended[size_t(Extender::extender)].bytes),     \
      SPW_STATUS(name "_steps", extended[size_t(Extender::extender)].steps), \
      SPW_STATUS(name "_time_us",                                            \
                 extended[size_t(Extender::extender)].time_us)

/** Variables that the base has itself (cmake/base.cmake). */
static constexpr std::string_view BASE_NAMES[] = {SPW_BASE_STATUS_NAMES ""};

/** The variables. The server prefixes each name with "Innodb_". */
static std::vector<SHOW_VAR> s_variables = [] {
  std::vector<SHOW_VAR> variables{
#include "report/report0status.inc"
  };
  std::erase_if(variables, [](const SHOW_VAR &variable) {
    return std::ranges::find(BASE_NAMES, variable.name) != std::end(BASE_NAMES);
  });
  variables.push_back({nullptr, nullptr, SHOW_LONG, SHOW_SCOPE_GLOBAL});
  return variables;
}();

static Stall_values stall_values(Stall kind) {
  const Stall_summary summary = stall_summary(kind);

  return {.count = summary.count,
          .waiting = summary.waiting,
          .time_us = summary.time_us,
          .sessions_time_us = summary.sessions_time_us,
          .max_us = summary.max_us,
          .p99_us = summary.percentile_us(99),
          .over_10ms = summary.longer_than(10'000),
          .over_100ms = summary.longer_than(100'000),
          .over_1s = summary.longer_than(1'000'000),
          .since_last_s = stall_since_last_s(summary)};
}

int show_status_variables(THD *, SHOW_VAR *var, char *) {
  s_values.aio_read = aio_stats(Aio_kind::READ);
  s_values.aio_write = aio_stats(Aio_kind::WRITE);
  s_values.atomic = atomic_stats();
  s_values.redo = redo_state();
  for (size_t i = 0; i < std::size(s_values.stalls); ++i) {
    s_values.stalls[i] = stall_values(static_cast<Stall>(i));
  }
  for (size_t i = 0; i < std::size(s_values.extended); ++i) {
    s_values.extended[i] = extend_work(static_cast<Extender>(i));
  }
  s_values.extend_ahead_no_space = extend_ahead_no_space();
  s_values.extend_pause_us = extend_pause_us();
  s_values.ahead_flush = ahead_flush_stats();
  s_values.throttle_state =
      throttle_state_name(s_values.ahead_flush.throttle_state);
  for (size_t i = 0; i < std::size(s_values.flushed); ++i) {
    s_values.flushed[i] = flush_work(static_cast<Flush_cause>(i));
  }
  s_values.flush_list_batches = flush_list_batches();
  s_values.max_trx_id = trx_sys_get_next_trx_id_or_no();
  s_values.purge_trx_id = purge_sys->iter.trx_no;
  s_values.pages_made_young = s_values.pages_not_made_young = 0;
  for (ulint i = 0; i < srv_buf_pool_instances; ++i) {
    const buf_pool_stat_t &stat = buf_pool_from_array(i)->stat;
    s_values.pages_made_young += stat.n_pages_made_young;
    s_values.pages_not_made_young += stat.n_pages_not_made_young;
  }

  var->type = SHOW_ARRAY;
  var->value = reinterpret_cast<char *>(s_variables.data());
  var->scope = SHOW_SCOPE_GLOBAL;
  return 0;
}

}  // namespace spw
