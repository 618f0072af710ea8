/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/policy/flush0util.h
innodb_ahead_flushing_device = UTIL: use the spare I/O capacity of a device that
is not busy. */

#ifndef flush0util_h
#define flush0util_h

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/base0rate.h"

namespace spw {

/** A device that is busy for this fraction of the time counts as busy. Source:
docs/origins.md, 3. */
constexpr double FLUSH_BUSY_FRACTION = 0.8;

/** Interval between two samples of the disks: seconds. */
constexpr double FLUSH_UTIL_WINDOW_S = 1.0;

/** The kernel's counters of a disk. */
struct Disk_work {
  /** Busy time: milliseconds. */
  uint64_t busy_ms;

  /** Completed reads and writes. */
  uint64_t n_ios;
};

/** Load of the disks. */
struct Disk_load {
  /** Fraction of the time for which the busiest disk was busy: 0 to 1. */
  double busy_fraction{0.0};

  /** Reads and writes of all disks: I/Os/s. */
  double io_per_s{0.0};
};

/** @param[in]  before    counters of each disk
@param[in]  after     the same, later; a disk that is gone is left out
@param[in]  passed_s  seconds between them
@return the load in that time */
inline Disk_load disk_load(const std::vector<Disk_work> &before,
                           const std::vector<Disk_work> &after,
                           double passed_s) {
  Disk_load load;
  for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    load.busy_fraction = std::max(
        load.busy_fraction,
        counter_growth(before[i].busy_ms, after[i].busy_ms) / 1e3 / passed_s);
    load.io_per_s += counter_growth(before[i].n_ios, after[i].n_ios) / passed_s;
  }
  return load;
}

/** The rule of UTIL.
@param[in]  load            load of the disks
@param[in]  flushed_per_s   flushed pages/s. They are a part of the load, and
                            count as spare: otherwise the result would oscillate
@param[in]  adaptive_per_s  pages/s that adaptive flushing recommends
@param[in]  io_capacity     innodb_io_capacity: pages/s
@return pages/s to flush in addition to adaptive flushing */
inline double flush_util_extra_per_s(const Disk_load &load,
                                     double flushed_per_s,
                                     double adaptive_per_s,
                                     double io_capacity) {
  return load.busy_fraction < FLUSH_BUSY_FRACTION
             ? std::max(0.0, io_capacity -
                                 std::max(0.0, load.io_per_s - flushed_per_s) -
                                 adaptive_per_s)
             : 0.0;
}

/** Applies the rule of UTIL to the disks below the data directory. Used by one
thread; times are seconds of a monotonic clock. */
class Flush_util {
 public:
  /** @return whether there is no previous sample: at first, and after the disks
  could not be read */
  bool is_new() const { return m_work.empty(); }

  /** @param[in]  now_s  the current time
  @return whether a sample is due */
  bool is_due(double now_s) const {
    return is_new() || now_s - m_now_s >= FLUSH_UTIL_WINDOW_S;
  }

  /** Add a sample.
  @param[in]  now_s           the current time
  @param[in]  work            counters of each disk; empty if a disk cannot be
                              read
  @param[in]  n_flushed       pages flushed since the server started
  @param[in]  adaptive_per_s  pages/s that adaptive flushing recommends
  @param[in]  io_capacity     innodb_io_capacity: pages/s */
  void add_sample(double now_s, const std::vector<Disk_work> &work,
                  uint64_t n_flushed, double adaptive_per_s,
                  double io_capacity) {
    const double passed_s = now_s - m_now_s;
    m_extra_per_s = is_new() || work.empty()
                        ? 0.0
                        : flush_util_extra_per_s(
                              disk_load(m_work, work, passed_s),
                              counter_growth(m_n_flushed, n_flushed) / passed_s,
                              adaptive_per_s, io_capacity);
    m_work = work;
    m_n_flushed = n_flushed;
    m_now_s = now_s;
  }

  /** @return pages/s to flush in addition to adaptive flushing */
  double extra_per_s() const { return m_extra_per_s; }

 private:
  /** The last sample. */
  std::vector<Disk_work> m_work;
  uint64_t m_n_flushed{0};
  double m_now_s{0.0};

  double m_extra_per_s{0.0};
};

}  // namespace spw

#endif /* flush0util_h */
