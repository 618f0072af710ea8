/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file bench/disk/disk_timing.h
When a modelled disk completes its I/Os. No clock and no I/O: the caller passes
the time. */

#ifndef disk_timing_h
#define disk_timing_h

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <random>
#include <vector>

namespace timed_disk {

/** A disk. 0 as a rate means that it is not limited. */
struct Parameters {
  /** Median time of a read or write after its transfer. Such times overlap. */
  double latency_s{0};

  /** Standard deviation of the natural logarithm of that time, which is
  lognormal: the 99th percentile is exp(2.33 * latency_sigma) medians. */
  double latency_sigma{0};

  /** Max reads and writes per second. */
  double ios_per_s{0};

  double bytes_per_s{0};

  /** Time of a flush, in which nothing is transferred. */
  double flush_s{0};

  /** Mean time of a seek between two random places. It grows with the square
  root of the distance, as an arm accelerates and brakes. */
  double seek_s{0};

  /** Time of one rotation. */
  double rotation_s{0};

  /** Size of the disk, 1 or more. */
  uint64_t size_bytes{1};
};

enum class Kind { READ, WRITE, FLUSH };

struct Request {
  /** Greater than those of earlier requests. */
  uint64_t id;
  Kind kind;
  uint64_t offset;
  uint64_t bytes;
};

/** A completed request. Of two with one time the older, whose ID is smaller, is
first. */
struct Completion {
  double time_s;
  uint64_t id;

  bool operator>(const Completion &other) const {
    return time_s != other.time_s ? time_s > other.time_s : id > other.id;
  }
};

/** Requests that a disk with seeks chooses from: SATA's native command queue.
 */
constexpr size_t COMMAND_QUEUE_LENGTH = 32;

/** The mean of sqrt(|x - y|) of two random numbers from 0 to 1. */
constexpr double MEAN_ROOT_OF_DISTANCE = 8.0 / 15;

/** A disk that transfers one request at a time, the oldest first, or with seeks
the nearest of the oldest COMMAND_QUEUE_LENGTH. The caller holds a lock. Times
are seconds since any moment. */
class Disk {
 public:
  Disk(const Parameters &parameters, uint64_t seed)
      : m_parameters(parameters), m_random(seed) {}

  /** Take a request.
  @param[in]  request  the request
  @param[in]  now_s    when it came. It can be somewhat before the time of
  advance() */
  void submit(const Request &request, double now_s) {
    advance(now_s);
    m_waiting.push_back(request);
    if (!m_is_busy) {
      begin(std::max(now_s, m_end_s), false);
    }
  }

  /** Bring the disk to a time.
  @param[in]  now_s  the time */
  void advance(double now_s) {
    while (m_is_busy && m_end_s <= now_s) {
      m_is_busy = false;
      const bool is_flush = m_transferred.kind == Kind::FLUSH;
      m_completing.push(
          {m_end_s + (is_flush ? 0 : latency_s()), m_transferred.id});
      if (!m_waiting.empty()) {
        begin(m_end_s, true);
      }
    }
  }

  /** @return when the next transfer or request ends; infinity if none is under
  way */
  double next_event_s() const {
    const double none = std::numeric_limits<double>::infinity();
    return std::min(m_is_busy ? m_end_s : none,
                    m_completing.empty() ? none : m_completing.top().time_s);
  }

  /** @param[in]  now_s  the time
  @return the requests that have ended by then, in the order of their ends */
  std::vector<Completion> completed(double now_s) {
    advance(now_s);
    std::vector<Completion> result;
    for (; !m_completing.empty() && m_completing.top().time_s <= now_s;
         m_completing.pop()) {
      result.push_back(m_completing.top());
    }
    return result;
  }

 private:
  /** Begin the transfer of a request that waits.
  @param[in]  now_s      the time
  @param[in]  is_at_once  whether another transfer has ended just now */
  void begin(double now_s, bool is_at_once) {
    const auto next = choose();
    m_transferred = *next;
    m_waiting.erase(next);
    m_is_busy = true;
    m_end_s = now_s + duration_s(is_at_once);
    if (m_transferred.kind != Kind::FLUSH) {
      m_position = m_transferred.offset + m_transferred.bytes;
    }
  }

  uint64_t distance(const Request &request) const {
    return std::max(request.offset, m_position) -
           std::min(request.offset, m_position);
  }

  /** @return the request that is transferred next. None passes a flush. */
  std::deque<Request>::iterator choose() {
    auto chosen = m_waiting.begin();
    if (m_parameters.seek_s == 0) {
      return chosen;
    }
    size_t n = 0;
    for (auto each = m_waiting.begin();
         each != m_waiting.end() && each->kind != Kind::FLUSH &&
         n < COMMAND_QUEUE_LENGTH;
         ++each, ++n) {
      if (distance(*each) < distance(*chosen)) {
        chosen = each;
      }
    }
    return chosen;
  }

  /** @param[in]  is_at_once  whether another transfer has ended just now
  @return the time that the chosen request occupies the disk */
  double duration_s(bool is_at_once) {
    if (m_transferred.kind == Kind::FLUSH) {
      return m_parameters.flush_s;
    }
    const double of_io =
        m_parameters.ios_per_s > 0 ? 1 / m_parameters.ios_per_s : 0;
    const double of_bytes = m_parameters.bytes_per_s > 0
                                ? static_cast<double>(m_transferred.bytes) /
                                      m_parameters.bytes_per_s
                                : 0;
    double position_s = 0;
    if (distance(m_transferred) != 0 || !is_at_once) {
      const double fraction =
          std::min(1.0, static_cast<double>(distance(m_transferred)) /
                            static_cast<double>(m_parameters.size_bytes));
      position_s =
          m_parameters.seek_s * std::sqrt(fraction) / MEAN_ROOT_OF_DISTANCE +
          std::uniform_real_distribution<>(0, 1)(m_random) *
              m_parameters.rotation_s;
    }
    return position_s + std::max(of_io, of_bytes);
  }

  double latency_s() {
    return m_parameters.latency_s *
           std::exp(m_parameters.latency_sigma * m_normal(m_random));
  }

  const Parameters m_parameters;
  std::mt19937_64 m_random;
  std::normal_distribution<> m_normal{};

  /** Not begun, the oldest first. */
  std::deque<Request> m_waiting{};

  /** Whether m_transferred is being transferred, until m_end_s. */
  bool m_is_busy{false};
  Request m_transferred{};
  double m_end_s{0};

  /** Where the last transfer ended, in bytes. */
  uint64_t m_position{0};

  /** Transferred, but not ended. */
  std::priority_queue<Completion, std::vector<Completion>, std::greater<>>
      m_completing{};
};

}  // namespace timed_disk

#endif
