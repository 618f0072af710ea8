/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file stall/policy/stall0stats.h
How often threads waited for one thing, for how long, and whether to write
about it to the error log. */

#ifndef stall0stats_h
#define stall0stats_h

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace spw {

/** Upper bounds of the histogram's buckets, in microseconds: 1, 2 and 5 of each
decade from 1 us to 100 s, so that a percentile is known within a factor of 2.5
and each decade ends at a bound. A duration that equals a bound is below it. */
inline constexpr std::array<uint64_t, 25> STALL_BOUNDS_US{
    1,         2,          5,          10,         20,
    50,        100,        200,        500,        1'000,
    2'000,     5'000,      10'000,     20'000,     50'000,
    100'000,   200'000,    500'000,    1'000'000,  2'000'000,
    5'000'000, 10'000'000, 20'000'000, 50'000'000, 100'000'000};

/** Number of buckets: the last one has what is longer than the last bound. */
inline constexpr size_t STALL_BUCKETS = STALL_BOUNDS_US.size() + 1;

/** Number of decades, from 1 us to 100 s, and one for what is longer. */
inline constexpr size_t STALL_DECADES = 10;

/** @param[in]  duration_us  a duration, in microseconds
@return its bucket, 0 to STALL_BUCKETS - 1 */
inline size_t stall_bucket(uint64_t duration_us) {
  return std::lower_bound(STALL_BOUNDS_US.begin(), STALL_BOUNDS_US.end(),
                          duration_us) -
         STALL_BOUNDS_US.begin();
}

/** The waits for one thing since the server's start, as read at one time. */
struct Stall_summary {
  /** Waits that have begun. */
  uint64_t count{0};

  /** Waits that have not ended. */
  uint64_t waiting{0};

  /** Duration of those that have ended, in microseconds: sum, longest. */
  uint64_t time_us{0};
  uint64_t max_us{0};

  /** When the last one ended, by the clock that was passed in; 0 if none has.
   */
  uint64_t last_us{0};

  /** Those that have ended, by duration. */
  std::array<uint64_t, STALL_BUCKETS> buckets{};

  /** @param[in]  now_us    time, by the clock of last_us
  @param[in]  start_us  when counting began, by the same clock
  @return microseconds since the last one has ended; since the start, if none
  has */
  uint64_t since_last_us(uint64_t now_us, uint64_t start_us) const {
    return now_us - std::min(now_us, last_us == 0 ? start_us : last_us);
  }

  /** @param[in]  bound_us  one of STALL_BOUNDS_US
  @return waits that have ended and were longer than it */
  uint64_t longer_than(uint64_t bound_us) const {
    uint64_t n = 0;
    for (size_t i = stall_bucket(bound_us) + 1; i < STALL_BUCKETS; ++i) {
      n += buckets[i];
    }
    return n;
  }

  /** @return the buckets in coarser steps: waits that have ended and took at
  most 1 us, more than that and at most 10 us, and so on to 100 s, and longer
*/
  std::array<uint64_t, STALL_DECADES> decades() const {
    std::array<uint64_t, STALL_DECADES> decades{};
    for (size_t i = 0; i < STALL_BUCKETS; ++i) {
      /* The first bucket is the first decade, three more each of the others. */
      decades[(i + 2) / 3] += buckets[i];
    }
    return decades;
  }

  /** @param[in]  pct  0 to 100
  @return a duration in microseconds that at least pct percent of the waits did
  not exceed: the upper bound of a bucket, or the longest wait if that is less;
  0 if none has ended */
  uint64_t percentile_us(unsigned pct) const {
    uint64_t ended = 0;
    for (const uint64_t n : buckets) {
      ended += n;
    }

    const uint64_t wanted = (ended * pct + 99) / 100;
    uint64_t seen = 0;

    for (size_t i = 0; i < STALL_BOUNDS_US.size(); ++i) {
      seen += buckets[i];
      if (seen >= wanted) {
        return std::min(STALL_BOUNDS_US[i], max_us);
      }
    }
    return max_us;
  }
};

/** What is to be written to the error log. */
struct Stall_log_line {
  /** Waits that have ended since the last line and were longer than the
  threshold. */
  uint64_t count{0};

  /** The longest of them, in microseconds. */
  uint64_t max_us{0};

  /** Waits that have not ended, if none has ended for longer than the
  threshold. */
  uint64_t waiting{0};

  /** For how long none has, in microseconds; a wait of now began before that.
   */
  uint64_t waiting_us{0};

  /** @return whether there is anything to write */
  bool is_due() const { return count != 0 || waiting != 0; }
};

/** Shortest time between two lines about the same thing, in microseconds: often
enough to follow an incident, seldom enough not to be one. */
inline constexpr uint64_t STALL_LOG_INTERVAL_US = 10'000'000;

/** Counters of the waits for one thing. Any number of threads call begin(),
end() and summary(), without a latch: all is relaxed, a summary is not of one
instant. One thread calls log_line(). */
class Stall_stats {
 public:
  /** A wait begins. */
  void begin() { m_begun.fetch_add(1, std::memory_order_relaxed); }

  /** A wait ends.
  @param[in]  duration_us      how long it was, in microseconds
  @param[in]  now_us           time, of a clock that does not go back
  @param[in]  log_threshold_us longer ones are for the error log; 0: none is */
  void end(uint64_t duration_us, uint64_t now_us, uint64_t log_threshold_us) {
    m_ended.fetch_add(1, std::memory_order_relaxed);
    m_time_us.fetch_add(duration_us, std::memory_order_relaxed);
    m_buckets[stall_bucket(duration_us)].fetch_add(1,
                                                   std::memory_order_relaxed);
    raise(m_max_us, duration_us);
    raise(m_last_us, now_us);

    if (log_threshold_us != 0 && duration_us > log_threshold_us) {
      /* In this order: a wait that is counted is in the maximum. */
      raise(m_log_max_us, duration_us);
      m_log_count.fetch_add(1, std::memory_order_release);
    }
  }

  /** @return what has been counted */
  Stall_summary summary() const {
    Stall_summary summary;

    /* A wait can begin and end between the two loads, and relaxed increments
    be seen in any order: the difference is held at 0. */
    const uint64_t ended = m_ended.load(std::memory_order_relaxed);
    summary.count = m_begun.load(std::memory_order_relaxed);
    summary.waiting = summary.count - std::min(ended, summary.count);
    summary.time_us = m_time_us.load(std::memory_order_relaxed);
    summary.max_us = m_max_us.load(std::memory_order_relaxed);
    summary.last_us = m_last_us.load(std::memory_order_relaxed);
    for (size_t i = 0; i < STALL_BUCKETS; ++i) {
      summary.buckets[i] = m_buckets[i].load(std::memory_order_relaxed);
    }
    return summary;
  }

  /** Whether to write to the error log. To be called about once a second, or
  more often. Waits that have ended are not returned again.
  @param[in]  now_us        time, as for end()
  @param[in]  threshold_us  what is not longer is not written of; 0: nothing is
  @return what to write */
  Stall_log_line log_line(uint64_t now_us, uint64_t threshold_us) {
    Stall_log_line line;
    const Stuck stuck = look_for_stuck(now_us);

    /* Those that were longer than a threshold of before may not be longer than
    the one of now. */
    if (m_log_count.load(std::memory_order_acquire) != 0 &&
        (threshold_us == 0 ||
         m_log_max_us.load(std::memory_order_relaxed) <= threshold_us)) {
      m_log_count.store(0, std::memory_order_relaxed);
      m_log_max_us.store(0, std::memory_order_relaxed);
    }
    if (threshold_us == 0) {
      return line;
    }

    const bool is_stuck = stuck.duration_us > threshold_us;

    if ((m_log_count.load(std::memory_order_relaxed) == 0 && !is_stuck) ||
        (m_logged && now_us - m_logged_us < STALL_LOG_INTERVAL_US)) {
      return line;
    }

    m_logged = true;
    m_logged_us = now_us;
    line.count = m_log_count.exchange(0, std::memory_order_acquire);
    line.max_us = m_log_max_us.exchange(0, std::memory_order_relaxed);
    if (is_stuck) {
      line.waiting = stuck.waiting;
      line.waiting_us = stuck.duration_us;
    }
    return line;
  }

 private:
  /** Waits of now, and for how long none has ended. */
  struct Stuck {
    uint64_t waiting;
    uint64_t duration_us;
  };

  /** Where some wait and none ends from one call to the next, one of those that
  waited at the first call waits still: there is no need to know which.
  @param[in]  now_us  time
  @return what is known */
  Stuck look_for_stuck(uint64_t now_us) {
    /* A wait that ends between the two loads looks as if it went on, but the
    next call sees that one has ended. */
    const uint64_t ended = m_ended.load(std::memory_order_relaxed);
    const uint64_t begun = m_begun.load(std::memory_order_relaxed);

    if (begun <= ended) {
      m_is_stuck = false;
      return {.waiting = 0, .duration_us = 0};
    }
    if (!m_is_stuck || m_stuck_ended != ended) {
      m_is_stuck = true;
      m_stuck_ended = ended;
      m_stuck_since_us = now_us;
    }
    return {.waiting = begun - ended, .duration_us = now_us - m_stuck_since_us};
  }

  /** Set a variable to a value unless it has a higher one. */
  static void raise(std::atomic<uint64_t> &variable, uint64_t value) {
    uint64_t old = variable.load(std::memory_order_relaxed);
    while (old < value && !variable.compare_exchange_weak(
                              old, value, std::memory_order_relaxed)) {
    }
  }

  std::atomic<uint64_t> m_begun{0};
  std::atomic<uint64_t> m_ended{0};
  std::atomic<uint64_t> m_time_us{0};
  std::atomic<uint64_t> m_max_us{0};
  std::atomic<uint64_t> m_last_us{0};
  std::array<std::atomic<uint64_t>, STALL_BUCKETS> m_buckets{};

  /** Waits longer than the threshold that no line has told of yet, and the
  longest of them. */
  std::atomic<uint64_t> m_log_count{0};
  std::atomic<uint64_t> m_log_max_us{0};

  /** When the last line was written, if one was; log_line()'s thread only. */
  bool m_logged{false};
  uint64_t m_logged_us{0};

  /** Whether some waited when log_line() was called last; then how many had
  ended by then and since when it has been as many. log_line()'s thread only. */
  bool m_is_stuck{false};
  uint64_t m_stuck_ended{0};
  uint64_t m_stuck_since_us{0};
};

}  // namespace spw

#endif /* stall0stats_h */
