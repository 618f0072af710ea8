/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file include/stall0stall.h
What is known of stalls, of flushing and of the redo log's fill, and the
variable that sets what goes to the error log. All counters begin at the start
of the server; any thread reads them, no latch is taken. */

#ifndef stall0stall_h
#define stall0stall_h

#include <chrono>
#include <cstdint>

#include "extend0space.h"
#include "policy/redo0limits.h"
#include "policy/stall0stats.h"
#include "spw0hook.h"

namespace spw {

/** innodb_stall_log_threshold_ms: stalls longer than this, in milliseconds, are
written to the error log; 0 for none. Changed at run time without a latch. */
extern unsigned long stall_log_threshold_ms;

/** @param[in]  kind  what was waited for
@return the waits for it */
Stall_summary stall_summary(Stall kind);

/** @param[in]  summary  the waits for one thing
@return seconds since the last one has ended; since the server started, if none
has */
uint64_t stall_since_last_s(const Stall_summary &summary);

/** Makes this thread one that extends data files for others, up to the end of
the scope. */
class Extend_for_others {
 public:
  /** @param[in]  extender  which: not USER */
  explicit Extend_for_others(Extender extender);

  ~Extend_for_others();

  Extend_for_others(const Extend_for_others &) = delete;
  Extend_for_others &operator=(const Extend_for_others &) = delete;

 private:
  const std::chrono::steady_clock::time_point m_start;
};

/** @return whether this thread is one that extends data files for others */
bool extends_for_others();

/** What threads of one kind have extended data files by. */
struct Extend_work {
  /** Steps, and the time that they took: microseconds; 0 with USER, for whom
  that is a stall (Stall::FILE_EXTEND). */
  uint64_t steps;
  uint64_t time_us;

  uint64_t bytes;
};

/** @param[in]  extender  who
@return by what data files were extended */
Extend_work extend_work(Extender extender);

/** What was flushed for one cause. */
struct Flush_work {
  /** Batches that have flushed a page: rounds of the page cleaners, single
  pages, groups of neighbors. */
  uint64_t batches;

  /** Pages. */
  uint64_t pages;
};

/** @param[in]  cause  why
@return what was flushed */
Flush_work flush_work(Flush_cause cause);

/** @return how often pages of a flush list were looked for */
uint64_t flush_list_batches();

/** How full the redo log is; LSNs and bytes of LSN. All 0 before it is open. */
struct Redo_fill {
  uint64_t lsn_current{0};
  uint64_t lsn_flushed{0};
  uint64_t lsn_last_checkpoint{0};

  /** Age of the last checkpoint. */
  uint64_t age{0};

  /** The ages at which InnoDB acts. */
  Redo_limits limits;
};

/** @return the ages in force; all 0 before the redo log is open */
Redo_capacity redo_capacity();

/** @return how full the redo log is */
Redo_fill redo_fill();

}  // namespace spw

#endif /* stall0stall_h */
