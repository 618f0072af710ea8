/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file stall/policy/stall0stats.h
Statistics of one kind of wait: number, durations, and when to write to the
error log. */

#ifndef stall0stats_h
#define stall0stats_h

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace spw {

/** Upper bounds of the histogram's buckets, in microseconds: 1, 2 and 5 of each
decade from 1 us to 100 s, so that a percentile is exact within a factor of 2.5
and each decade ends at a bound. A duration equal to a bound is in the bucket
below it. */
inline constexpr std::array<uint64_t, 25> STALL_BOUNDS_US{
    1,         2,          5,          10,         20,
    50,        100,        200,        500,        1'000,
    2'000,     5'000,      10'000,     20'000,     50'000,
    100'000,   200'000,    500'000,    1'000'000,  2'000'000,
    5'000'000, 10'000'000, 20'000'000, 50'000'000, 100'000'000};

/** Number of buckets. The last one is for durations above the last bound. */
inline constexpr size_t STALL_BUCKETS = STALL_BOUNDS_US.size() + 1;

/** Number of decades from 1 us to 100 s, and one for longer durations. */
inline constexpr size_t STALL_DECADES = 10;

/** For each number of bits: the bucket of the least duration with that many, so
that the bucket of a duration is found in two comparisons. */
inline constexpr std::array<uint8_t, 65> STALL_FIRST_BUCKET = [] {
  std::array<uint8_t, 65> first{};
  for (size_t n_bits = 1; n_bits < first.size(); ++n_bits) {
    first[n_bits] =
        std::lower_bound(STALL_BOUNDS_US.begin(), STALL_BOUNDS_US.end(),
                         uint64_t{1} << (n_bits - 1)) -
        STALL_BOUNDS_US.begin();
  }
  return first;
}();

/** @param[in]  duration_us  a duration: microseconds
@return its bucket, 0 to STALL_BUCKETS - 1 */
inline size_t stall_bucket(uint64_t duration_us) {
  size_t bucket = STALL_FIRST_BUCKET[std::bit_width(duration_us)];
  while (bucket < STALL_BOUNDS_US.size() &&
         STALL_BOUNDS_US[bucket] < duration_us) {
    ++bucket;
  }
  return bucket;
}

/** Snapshot of the waits of one kind since server start. */
struct Stall_summary {
  /** Waits that have begun. */
  uint64_t count{0};

  /** Waits that have not ended yet. */
  uint64_t waiting{0};

  /** Total and max duration of waits that have ended: microseconds. */
  uint64_t time_us{0};
  uint64_t max_us{0};

  /** Of the total, what sessions have waited; a wait inside another one is left
  out, so that a sum of kinds counts no time twice: microseconds. */
  uint64_t sessions_time_us{0};

  /** Time when the last one ended, of the caller's clock; 0 if none has. */
  uint64_t last_us{0};

  /** Waits that have ended, by duration. */
  std::array<uint64_t, STALL_BUCKETS> buckets{};

  /** @param[in]  now_us    time, of the clock of last_us
  @param[in]  start_us  time when counting began, of the same clock
  @return microseconds since the last wait ended, or since the start if none
  has */
  uint64_t since_last_us(uint64_t now_us, uint64_t start_us) const {
    return now_us - std::min(now_us, last_us == 0 ? start_us : last_us);
  }

  /** @param[in]  bound_us  one of STALL_BOUNDS_US
  @return number of waits that have ended and were longer */
  uint64_t longer_than(uint64_t bound_us) const {
    uint64_t n = 0;
    for (size_t i = stall_bucket(bound_us) + 1; i < STALL_BUCKETS; ++i) {
      n += buckets[i];
    }
    return n;
  }

  /** @return the histogram by decades: waits that have ended and took up to 1
  us, up to 10 us, and so on up to 100 s, and longer */
  std::array<uint64_t, STALL_DECADES> decades() const {
    std::array<uint64_t, STALL_DECADES> decades{};
    for (size_t i = 0; i < STALL_BUCKETS; ++i) {
      /* The first decade is one bucket, the others are three each. */
      decades[(i + 2) / 3] += buckets[i];
    }
    return decades;
  }

  /** @param[in]  pct  0 to 100
  @return a duration that at least pct percent of the waits did not exceed:
  microseconds. It is the upper bound of a bucket, or the longest wait if that
  is less; 0 if none has ended. */
  uint64_t percentile_us(unsigned pct) const {
    uint64_t ended = 0;
    for (const uint64_t n : buckets) {
      ended += n;
    }

    const uint64_t rank = (ended * pct + 99) / 100;
    uint64_t cumulative = 0;

    for (size_t i = 0; i < STALL_BOUNDS_US.size(); ++i) {
      cumulative += buckets[i];
      if (cumulative >= rank) {
        return std::min(STALL_BOUNDS_US[i], max_us);
      }
    }
    return max_us;
  }
};

/** A message for the error log. */
struct Stall_log_line {
  /** Waits longer than the threshold that have ended since the last message. */
  uint64_t count{0};

  /** Duration of the longest of them: microseconds. */
  uint64_t max_us{0};

  /** Waits that have not ended, if none has ended for longer than the
  threshold. */
  uint64_t waiting{0};

  /** Time for which no wait has ended: microseconds. At least one present wait
  began before that. */
  uint64_t waiting_us{0};

  /** @return whether there is anything to write */
  bool is_due() const { return count != 0 || waiting != 0; }
};

/** Min time between two messages about one kind of stall, in microseconds:
often enough to follow an incident, rare enough not to flood the log. */
inline constexpr uint64_t STALL_LOG_INTERVAL_US = 10'000'000;

/** Counters of one kind of wait. Any number of threads call begin(), end() and
summary() without a latch. The counters are relaxed: a summary is not from one
instant. One thread calls log_line(). */
class Stall_stats {
 public:
  /** A wait begins. */
  void begin() { m_begun.fetch_add(1, std::memory_order_relaxed); }

  /** A wait ends.
  @param[in]  duration_us       its duration: microseconds
  @param[in]  is_of_session     whether a session waited, and no other wait
                                contains this one
  @param[in]  now_ns            time of a monotonic clock: nanoseconds
  @param[in]  log_threshold_us  longer waits go to the error log; 0: none
  does */
  void end(uint64_t duration_us, bool is_of_session, uint64_t now_ns,
           uint64_t log_threshold_us) {
    m_time_us.fetch_add(duration_us, std::memory_order_relaxed);
    if (is_of_session) {
      m_sessions_time_us.fetch_add(duration_us, std::memory_order_relaxed);
    }
    m_buckets[stall_bucket(duration_us)].fetch_add(1,
                                                   std::memory_order_relaxed);
    raise(m_max_us, duration_us);
    /* Of two waits that end at the same time either may be the last one. */
    if (m_last_ns.load(std::memory_order_relaxed) < now_ns) {
      m_last_ns.store(now_ns, std::memory_order_relaxed);
    }

    if (log_threshold_us != 0 && duration_us > log_threshold_us) {
      /* Invariant: a wait that is counted is in the maximum. Keep this
      order. */
      raise(m_log_max_us, duration_us);
      m_log_count.fetch_add(1, std::memory_order_release);
    }
  }

  /** @return the statistics */
  Stall_summary summary() const {
    Stall_summary summary;

    /* A wait can begin and end between the two loads, and relaxed increments
    appear in any order: the difference is at least 0. */
    uint64_t ended = 0;
    for (size_t i = 0; i < STALL_BUCKETS; ++i) {
      summary.buckets[i] = m_buckets[i].load(std::memory_order_relaxed);
      ended += summary.buckets[i];
    }
    summary.count = m_begun.load(std::memory_order_relaxed);
    summary.waiting = summary.count - std::min(ended, summary.count);
    summary.time_us = m_time_us.load(std::memory_order_relaxed);
    summary.sessions_time_us =
        m_sessions_time_us.load(std::memory_order_relaxed);
    summary.max_us = m_max_us.load(std::memory_order_relaxed);
    summary.last_us = m_last_ns.load(std::memory_order_relaxed) / 1000;
    return summary;
  }

  /** Decide whether to write to the error log. Called about once a second or
  more often. Returns a wait that has ended once.
  @param[in]  now_us        time of the clock of end(): microseconds
  @param[in]  threshold_us  longer waits are written; 0: none is
  @return the message */
  Stall_log_line log_line(uint64_t now_us, uint64_t threshold_us) {
    Stall_log_line line;
    const Stuck stuck = detect_stuck(now_us);

    /* Waits longer than an earlier threshold may not exceed the present one. */
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
  /** Present waits, and the time for which none has ended. */
  struct Stuck {
    uint64_t waiting;
    uint64_t duration_us;
  };

  /** Detect waits that do not end. If threads wait at two calls and no wait has
  ended in between, a wait of the first call still lasts; it does not matter
  which.
  @param[in]  now_us  time: microseconds
  @return the present waits */
  Stuck detect_stuck(uint64_t now_us) {
    /* A wait that ends meanwhile seems to last, but the next call detects that
    one has ended. */
    const Stall_summary now = summary();
    const uint64_t ended = now.count - now.waiting;

    if (now.waiting == 0) {
      m_is_stuck = false;
      return {.waiting = 0, .duration_us = 0};
    }
    if (!m_is_stuck || m_stuck_ended != ended) {
      m_is_stuck = true;
      m_stuck_ended = ended;
      m_stuck_since_us = now_us;
    }
    return {.waiting = now.waiting, .duration_us = now_us - m_stuck_since_us};
  }

  /** Raise a variable to a value, unless it has a higher one. */
  static void raise(std::atomic<uint64_t> &variable, uint64_t value) {
    uint64_t old = variable.load(std::memory_order_relaxed);
    while (old < value && !variable.compare_exchange_weak(
                              old, value, std::memory_order_relaxed)) {
    }
  }

  std::atomic<uint64_t> m_begun{0};
  std::atomic<uint64_t> m_time_us{0};
  std::atomic<uint64_t> m_sessions_time_us{0};
  std::atomic<uint64_t> m_max_us{0};
  std::atomic<uint64_t> m_last_ns{0};
  std::array<std::atomic<uint64_t>, STALL_BUCKETS> m_buckets{};

  /** Waits longer than the threshold that no message has reported yet, and the
  duration of the longest: microseconds. */
  std::atomic<uint64_t> m_log_count{0};
  std::atomic<uint64_t> m_log_max_us{0};

  /** Whether a message was written, and when the last one was. Used by
  log_line()'s thread only. */
  bool m_logged{false};
  uint64_t m_logged_us{0};

  /** Whether threads waited at the last log_line(); then the number of waits
  that had ended, and since when it is unchanged. Used by log_line()'s thread
  only. */
  bool m_is_stuck{false};
  uint64_t m_stuck_ended{0};
  uint64_t m_stuck_since_us{0};
};

}  // namespace spw

#endif /* stall0stats_h */
