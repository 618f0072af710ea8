/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file extend/policy/extend0ahead.h
Decides which data files are extended before an insert needs it, and how far. */

#ifndef extend0ahead_h
#define extend0ahead_h

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "extend/policy/extend0size.h"

namespace spw {

/** A file is extended when its free space runs out within this time at its
measured growth: seconds. Source: measured, a step of AUTOEXTEND_SIZE = 64M
takes up to 11 s on a volume of 12 MB/s with other writers. */
constexpr double EXTEND_HORIZON_S = 15.0;

/** Growth is measured over this window, and what exceeds an allocation burst
over the elapsed window of at least EXTEND_BURST_S: seconds. A segment allocates
EXTEND_BURST_EXTENTS at once (FSEG_FREE_LIST_MAX_LEN): over a second that looks
like 4 MiB/s where the growth may be a tenth of it. */
constexpr double EXTEND_GROWTH_WINDOW_S = 10.0;
constexpr double EXTEND_BURST_S = 1.0;
constexpr uint64_t EXTEND_BURST_EXTENTS = 4;

/** Half-life of a growth that has ended: seconds. Loads come in bursts, and the
next one may be like the fastest recent one. */
constexpr double EXTEND_GROWTH_HALF_LIFE_S = 30.0;

/** Growth below this counts as none: bytes/s. One extent of 1 MiB per hour is
twice as much. */
constexpr double EXTEND_GROWTH_MIN = 128.0;

/** Min and max interval between scans: seconds. Within these limits scans take
EXTEND_SCAN_FRACTION of the time. Inserts extend a file themselves until a scan
has measured its growth. */
constexpr double EXTEND_SCAN_MIN_S = 0.1;
constexpr double EXTEND_SCAN_MAX_S = 1.0;
constexpr double EXTEND_SCAN_FRACTION = 0.01;

/** Max space that is preallocated in a file. Unused preallocated space is lost
to other files, as files do not shrink. */
constexpr uint64_t EXTEND_AHEAD_MAX_BYTES = uint64_t{1} << 30;

/** Back-off of a file that a session extends for itself, or whose table a
session has locked: seconds. */
constexpr double EXTEND_LOCKED_BACKOFF_S = 1.0;

/** Back-off of a file system after a failed extension: seconds. InnoDB writes
to the error log at each failure. */
constexpr double EXTEND_FAILED_BACKOFF_S = 60.0;

/** Space on a file system on which files are extended. Not thread-safe. */
class Disk_budget {
 public:
  /** A scan begins without reservations. Further calls in a scan do nothing.
  @param[in]  now_s  time of the scan: seconds, see Tablespace_sample
  @param[in]  free   free space for this process: bytes
  @param[in]  size   the file system: bytes */
  void open(double now_s, uint64_t free, uint64_t size) {
    if (now_s > m_opened_s) {
      m_opened_s = now_s;
      m_available = extend_disk_available(free, size);
    }
  }

  /** Reserve space for the extension of a file. Other files cannot use it.
  @param[in]  bytes  bytes that the file still needs */
  void reserve(uint64_t bytes) { m_available -= std::min(m_available, bytes); }

  /** An extension has failed.
  @param[in]  now_s  the time: seconds */
  void failed(double now_s) {
    m_backoff_until_s = now_s + EXTEND_FAILED_BACKOFF_S;
  }

  /** @param[in]  now_s  the time: seconds
  @param[in]  bytes  bytes that a step adds
  @param[in]  free   free space for this process now: bytes
  @param[in]  size   the file system: bytes
  @return whether the step may be made; other threads may have used space since
  the scan */
  bool can_extend(double now_s, uint64_t bytes, uint64_t free,
                  uint64_t size) const {
    return !is_backing_off(now_s) && bytes <= extend_disk_available(free, size);
  }

  /** @return space that can be used and is not reserved: bytes */
  uint64_t available() const { return m_available; }

  /** @param[in]  now_s  the time: seconds
  @return whether no file is extended, because an extension has failed */
  bool is_backing_off(double now_s) const { return now_s < m_backoff_until_s; }

 private:
  uint64_t m_available{0};
  double m_opened_s{-std::numeric_limits<double>::infinity()};
  double m_backoff_until_s{-std::numeric_limits<double>::infinity()};
};

/** A tablespace at one time. Sizes are in bytes. */
struct Tablespace_sample {
  /** Time of a monotonic clock: seconds. */
  double now_s;

  /** Size in the header, and maximum size. */
  uint64_t size;
  uint64_t size_max;

  /** Number of unused units: those in InnoDB's list of free extents, and those
  above its free limit. */
  uint64_t n_unused;

  /** Size of a unit: FSP_EXTENT_SIZE pages, 64 or more, also where pages are
  row-compressed and small. */
  uint64_t unit_bytes;

  /** Size of an extent, the minimum of an extension. */
  uint64_t extent_bytes;

  /** Pages are compressed when they are written, and the space allocated for
  them is given back. */
  bool is_page_compressed;

  /** Usable space on the file system, and its back-off: Disk_budget. */
  uint64_t disk_available;
  bool is_disk_backing_off;
};

/** @param[in]  sample  a tablespace
@return space that inserts can use before one of them extends the file: bytes.
InnoDB reserves two units and 1 % of the file for undo logs and cleaning
(fsp_reserve_free_extents()). An insert may ask for three more units. One of the
units above the free limit holds only extent descriptors. */
constexpr uint64_t extend_free_bytes(const Tablespace_sample &sample) {
  constexpr uint64_t RESERVED = 2, REQUESTED = 3, DESCRIPTORS = 1;
  const uint64_t unusable = RESERVED + REQUESTED + DESCRIPTORS +
                            sample.size / sample.unit_bytes / 100;
  return (sample.n_unused > unusable ? sample.n_unused - unusable : 0) *
         sample.unit_bytes;
}

/** @param[in]  sample  a tablespace
@return space that a segment allocates at once: bytes */
constexpr uint64_t extend_burst_bytes(const Tablespace_sample &sample) {
  return EXTEND_BURST_EXTENTS * sample.unit_bytes;
}

/** State of a tablespace that is kept between scans. */
struct Extend_history {
  /** Whether the tablespace has been scanned. */
  bool is_scanned{false};

  /** Time of the last scan: seconds. */
  double now_s{0.0};

  /** Begin of the window over which growth is measured: seconds. */
  double begin_s{0.0};

  /** Min space in use since then: bytes. Space that InnoDB reserves does not
  count, as it grows with each extension. */
  uint64_t used_min{0};

  /** Space in use at the last scan: bytes. */
  uint64_t used{0};

  /** Recent growth of the space in use: bytes/s. */
  double growth{0.0};

  /** Bytes by which the space in use has grown recently. */
  double grown{0.0};
};

/** Why a file is extended, or not. */
enum class Extend_reason {
  /** innodb_extend_ahead_pct is 0. */
  OFF,
  /** No growth is measured, or it was long ago. */
  NOT_GROWING,
  /** The file is below half an extent: InnoDB adds single pages to it. */
  TOO_SMALL,
  /** Preallocated space would be given back. */
  PAGE_COMPRESSED,
  /** There is enough free space. */
  ENOUGH,
  /** The free percentage is below innodb_extend_ahead_pct. */
  FREE_PCT,
  /** The free space runs out within EXTEND_HORIZON_S, or is less than an
  allocation burst. */
  GROWTH,
  /** The file needs an extension, but the file system is nearly full. */
  DISK_NEARLY_FULL,
  /** The file needs an extension, but an extension failed on its file
  system. */
  DISK_BACKING_OFF,
  /** The file needs an extension, but has its maximum size. */
  AT_LIMIT
};

/** Result of decide_extend_ahead(). */
struct Extend_decision {
  Extend_reason reason;

  /** Size to extend the file to: bytes, whole extents; 0 not to. */
  uint64_t target;
};

/** @param[in]  history  the state so far; may be new
@param[in]  sample   the tablespace now
@return the new state */
inline Extend_history extend_history(const Extend_history &history,
                                     const Tablespace_sample &sample) {
  const uint64_t used =
      sample.size - std::min(sample.size, sample.n_unused * sample.unit_bytes);
  if (!history.is_scanned) {
    return {.is_scanned = true,
            .now_s = sample.now_s,
            .begin_s = sample.now_s,
            .used_min = used,
            .used = used};
  }
  Extend_history now = history;
  now.now_s = sample.now_s;
  now.used_min = std::min(history.used_min, used);
  const double window_s = sample.now_s - history.begin_s;
  /* An incomplete window counts as a full one, unless its growth exceeds an
  allocation burst. */
  const uint64_t grown = used - now.used_min;
  const uint64_t burst = extend_burst_bytes(sample);
  const double rate = std::max(
      static_cast<double>(grown) / std::max(window_s, EXTEND_GROWTH_WINDOW_S),
      static_cast<double>(grown - std::min(grown, burst)) /
          std::max(window_s, EXTEND_BURST_S));
  const double decay =
      std::exp2(-(sample.now_s - history.now_s) / EXTEND_GROWTH_HALF_LIFE_S);
  now.growth = std::max(rate, history.growth * decay);
  now.grown = history.grown * decay +
              static_cast<double>(used - std::min(used, history.used));
  now.used = used;
  /* A window begins with growth: the time before is not part of a load. */
  if (window_s >= EXTEND_GROWTH_WINDOW_S || grown == 0) {
    now.begin_s = sample.now_s;
    now.used_min = used;
  }
  return now;
}

/** @param[in]  free         extend_free_bytes()
@param[in]  burst_bytes  extend_burst_bytes()
@param[in]  growth       of the tablespace: bytes/s
@return time until the free space runs out, if the growth continues and the next
allocation burst is due: seconds */
constexpr double extend_time_to_full_s(uint64_t free, uint64_t burst_bytes,
                                       double growth) {
  return static_cast<double>(free - std::min(free, burst_bytes)) /
         std::max(growth, 1.0);
}

/** @param[in]  step_s          duration of a step: seconds
@param[in]  time_to_full_s  extend_time_to_full_s() of the file whose space runs
out first
@return pause after the step for the inserting sessions: seconds. None while a
file runs out of space within EXTEND_HORIZON_S: an insert that has to extend it
costs them more. */
constexpr double pause_ahead_s(double step_s, double time_to_full_s) {
  return time_to_full_s < EXTEND_HORIZON_S ? 0.0 : pause_s(step_s);
}

/** @param[in]  scan_s  duration of a scan of all tablespaces: seconds
@return time from its end to the next scan: seconds */
constexpr double scan_interval_s(double scan_s) {
  return std::clamp(scan_s / EXTEND_SCAN_FRACTION, EXTEND_SCAN_MIN_S,
                    EXTEND_SCAN_MAX_S);
}

/** Decide whether a file is extended ahead of its inserts, and how far.
@param[in]  ahead_pct  innodb_extend_ahead_pct: 0 to 100
@param[in]  sample     the tablespace now
@param[in]  history    extend_history() of this scan
@return the size and the reason */
inline Extend_decision decide_extend_ahead(uint32_t ahead_pct,
                                           const Tablespace_sample &sample,
                                           const Extend_history &history) {
  if (ahead_pct == 0) {
    return {Extend_reason::OFF, 0};
  }
  if (history.growth < EXTEND_GROWTH_MIN) {
    return {Extend_reason::NOT_GROWING, 0};
  }
  if (sample.size < sample.extent_bytes / 2) {
    return {Extend_reason::TOO_SMALL, 0};
  }
  if (sample.is_page_compressed) {
    return {Extend_reason::PAGE_COMPRESSED, 0};
  }
  const uint64_t burst = extend_burst_bytes(sample);
  /* The growth may be a single burst of inserts: the space preallocated for it
  is of its own size. A sustained load has grown by more. */
  const auto used_soon = static_cast<uint64_t>(
      std::min({history.growth * EXTEND_HORIZON_S, history.grown / 2.0,
                static_cast<double>(EXTEND_AHEAD_MAX_BYTES) / 2.0}));
  const uint64_t free = extend_free_bytes(sample);
  const bool runs_out_soon = free < used_soon + burst;
  const bool is_free_pct_low =
      static_cast<double>(free) <
      std::min(static_cast<double>(sample.size) * ahead_pct / 100.0,
               static_cast<double>(EXTEND_AHEAD_MAX_BYTES));
  if (!runs_out_soon && !is_free_pct_low) {
    return {Extend_reason::ENOUGH, 0};
  }
  /* Twice the space that is used up soon, so that the next scan finds enough,
  plus two allocation bursts. A file at most doubles, so that many small files
  with little growth do not fill the disk. */
  const uint64_t wanted = std::min(
      {sample.size, 2 * used_soon + 2 * burst,
       EXTEND_AHEAD_MAX_BYTES - std::min(free, EXTEND_AHEAD_MAX_BYTES)});
  const uint64_t limit =
      sample.size_max - sample.size_max % sample.extent_bytes;
  if (limit <= sample.size) {
    return {Extend_reason::AT_LIMIT, 0};
  }
  const uint64_t target =
      std::min(limit, round_up(sample.size + wanted, sample.extent_bytes));
  if (sample.is_disk_backing_off) {
    return {Extend_reason::DISK_BACKING_OFF, 0};
  }
  if (target - sample.size > sample.disk_available) {
    return {Extend_reason::DISK_NEARLY_FULL, 0};
  }
  return {runs_out_soon ? Extend_reason::GROWTH : Extend_reason::FREE_PCT,
          target};
}

}  // namespace spw

#endif /* extend0ahead_h */
