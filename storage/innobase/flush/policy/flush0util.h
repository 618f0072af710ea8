/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/policy/flush0util.h
innodb_ahead_flushing_device = UTIL: what a device that is not busy leaves free.
*/

#ifndef flush0util_h
#define flush0util_h

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/base0rate.h"

namespace spw {

/** Above it a device counts as busy. Source: docs/origins.md, 3. */
constexpr double FLUSH_BUSY_SHARE = 0.8;

/** The disks are looked at so often: seconds. */
constexpr double FLUSH_UTIL_WINDOW_S = 1.0;

/** What the kernel has counted for a disk. */
struct Disk_work {
  /** For how long it was busy: milliseconds. */
  uint64_t busy_ms;

  /** Reads and writes that were completed. */
  uint64_t n_ios;
};

/** What disks have had to do. */
struct Disk_load {
  /** For which part of the time the busiest was busy: 0 to 1. */
  double busy_share{0.0};

  /** What all have read and written: I/Os a second. */
  double io_per_s{0.0};
};

/** @param[in]  before    what was counted for each disk
@param[in]  after     the same, later; a disk that is gone is left out
@param[in]  passed_s  so many seconds later
@return what they have had to do */
inline Disk_load disk_load(const std::vector<Disk_work> &before,
                           const std::vector<Disk_work> &after,
                           double passed_s) {
  Disk_load load;
  for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    load.busy_share = std::max(
        load.busy_share,
        counter_growth(before[i].busy_ms, after[i].busy_ms) / 1e3 / passed_s);
    load.io_per_s += counter_growth(before[i].n_ios, after[i].n_ios) / passed_s;
  }
  return load;
}

/** The rule of UTIL.
@param[in]  load           what the disks have had to do
@param[in]  flushed_per_s  pages that were flushed, which are among them: a
second. (With them, what is flushed would be free and taken in turns.)
@param[in]  native_per_s   what upstream's formula asks for: pages a second
@param[in]  io_capacity    innodb_io_capacity: pages a second
@return what is flushed beside what upstream asks for: pages a second */
inline double flush_util_extra_per_s(const Disk_load &load,
                                     double flushed_per_s, double native_per_s,
                                     double io_capacity) {
  return load.busy_share < FLUSH_BUSY_SHARE
             ? std::max(0.0, io_capacity -
                                 std::max(0.0, load.io_per_s - flushed_per_s) -
                                 native_per_s)
             : 0.0;
}

/** Applies that rule to the disks below the data directory. One thread uses it;
times are seconds of a clock that only goes forward. */
class Flush_util {
 public:
  /** @return whether the disks are seen for the first time, or again after they
  could not be read */
  bool is_new() const { return m_work.empty(); }

  /** @param[in]  now_s  now
  @return whether it is time to look at the disks */
  bool is_due(double now_s) const {
    return is_new() || now_s - m_now_s >= FLUSH_UTIL_WINDOW_S;
  }

  /** See what the disks have done.
  @param[in]  now_s         now
  @param[in]  work          what was counted for each; nothing if that cannot be
  read
  @param[in]  n_flushed     pages that were flushed since the server started
  @param[in]  native_per_s  what upstream's formula asks for: pages a second
  @param[in]  io_capacity   innodb_io_capacity: pages a second */
  void look(double now_s, const std::vector<Disk_work> &work,
            uint64_t n_flushed, double native_per_s, double io_capacity) {
    const double passed_s = now_s - m_now_s;
    m_extra_per_s = is_new() || work.empty()
                        ? 0.0
                        : flush_util_extra_per_s(
                              disk_load(m_work, work, passed_s),
                              counter_growth(m_n_flushed, n_flushed) / passed_s,
                              native_per_s, io_capacity);
    m_work = work;
    m_n_flushed = n_flushed;
    m_now_s = now_s;
  }

  /** @return what is flushed beside what upstream asks for: pages a second */
  double extra_per_s() const { return m_extra_per_s; }

 private:
  /** The last look. */
  std::vector<Disk_work> m_work;
  uint64_t m_n_flushed{0};
  double m_now_s{0.0};

  double m_extra_per_s{0.0};
};

}  // namespace spw

#endif /* flush0util_h */
