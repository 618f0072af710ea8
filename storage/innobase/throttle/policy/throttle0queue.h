/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file throttle/policy/throttle0queue.h
Fair queue of the write throttle: which session has to wait for the redo that it
has generated, and until when. Sessions share the limit on redo generation as
flows share a link in self-clocked fair queueing (Golestani, 1994): all that
wait get the same rate, and the one with the most redo waits longest. */

#ifndef throttle0queue_h
#define throttle0queue_h

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/base0rate.h"

namespace spw {

constexpr double THROTTLE_UNLIMITED = std::numeric_limits<double>::infinity();

/** In the middle of a transaction, a session is charged when it has generated
this many bytes of redo. Few transactions of TPC-C generate more. */
constexpr uint64_t THROTTLE_CHARGE_BYTES = 16 * 1024;

/** Bytes of a session that are served before another session's. A session with
more redo to wait for does not stop the others for longer. */
constexpr double THROTTLE_PIECE_BYTES = 4096.0;

/** innodb_ahead_flushing_max_delay_us is for each of these: bytes of redo. Most
row changes generate less. */
constexpr double THROTTLE_DELAY_BYTES = 1024.0;

/** Length of a group: nanoseconds. Sessions whose delays end in the same group
continue together, at its end, so that their commits share redo writes. A
session that would be delayed for less is not delayed, and no session is while
redo generation is below the limit. Source: measured on a volume of 1,500 I/Os/s
without groups: 733 transactions/s cost 558 fsync()/s of the redo log, and all
I/Os at half of the bytes; stock's sawtooth costs a quarter of that for each
transaction. */
constexpr int64_t THROTTLE_GROUP_NS = 10'000'000;

/** Default of innodb_ahead_flushing_max_delay_us: 1,000 sessions with
transactions of a KiB or more together generate 2 MiB/s however low the limit
is. Maximum: that of innodb_max_purge_lag_delay. */
constexpr unsigned long THROTTLE_DELAY_DEFAULT_US = 500'000;
constexpr unsigned long THROTTLE_DELAY_MAX_US = 10'000'000;

/** Max time of a delay while others wait for the session's locks: nanoseconds.
The session has to wait for the rest later. These are row locks, and metadata
locks that another session asks for, such as a backup, for which all sessions
wait. */
constexpr int64_t THROTTLE_LOCKED_MAX_NS = 10'000'000'000;

/** @param[in]  start_ns     begin of the delay
@param[in]  deadline_ns  when the session need not wait any more
@return end of the delay if others wait for the session's locks */
inline int64_t throttle_locked_end_ns(int64_t start_ns, int64_t deadline_ns) {
  return std::min(deadline_ns, start_ns + THROTTLE_LOCKED_MAX_NS);
}

/** Max time since the charge for which a session waits for its bytes:
nanoseconds. The redo of one statement can be gigabytes. */
constexpr int64_t THROTTLE_WAIT_MAX_NS = 60'000'000'000;

/** Id of no session. */
constexpr uint64_t THROTTLE_NO_ID = 0;

/** Age at which a decision expires: nanoseconds. There is a decision at least
each second (innodb_ahead_flushing_interval_ms), unless a pass of the page
cleaners takes longer, as in sync flushing. */
constexpr int64_t THROTTLE_EXPIRY_NS = 2'000'000'000;

/** @param[in]  since_ns        time since the decision on the limit
@param[in]  checkpoint_age  checkpoint age: bytes of LSN
@param[in]  sync_age        sync age: bytes of LSN
@param[in]  age_pct         innodb_ahead_flushing_age_pct
@return whether the decision holds. After its expiry it holds while the
checkpoint age is above the threshold: else all sessions would continue at once,
and stop where redo space runs out */
inline bool throttle_is_current(int64_t since_ns, uint64_t checkpoint_age,
                                uint64_t sync_age, double age_pct) {
  return since_ns <= THROTTLE_EXPIRY_NS ||
         percent_of(checkpoint_age, sync_age) > age_pct;
}

/** @param[in]  max_delay_us  innodb_ahead_flushing_max_delay_us
@param[in]  bytes         redo that a session waits for: bytes
@return max time of its delay: seconds */
inline double throttle_max_delay_s(unsigned long max_delay_us, double bytes) {
  return 1e-6 * static_cast<double>(max_delay_us) *
         std::max(1.0, bytes / THROTTLE_DELAY_BYTES);
}

/** @param[in]  max_delay_us  innodb_ahead_flushing_max_delay_us
@param[in]  bytes         redo that a session waits for: bytes
@return max time that it waits after its last charge: nanoseconds */
inline int64_t throttle_max_wait_ns(unsigned long max_delay_us, double bytes) {
  return static_cast<int64_t>(
      std::min(static_cast<double>(THROTTLE_WAIT_MAX_NS),
               1e9 * throttle_max_delay_s(max_delay_us, bytes)));
}

/** The queue. Each session in it has bytes to wait for. They are served in
pieces, in the order of the pieces' tags: the tag of the piece that was served
last, when the session came, and the bytes of its own pieces since. Not
thread-safe; the caller passes a monotonic clock in nanoseconds. */
class Throttle_queue {
 public:
  /** Set the limit from now on.
  @param[in]  now_ns       the current time
  @param[in]  bytes_per_s  redo of all sessions; infinity for no limit: whoever
                           waits has waited */
  void set_rate(int64_t now_ns, double bytes_per_s) {
    advance(now_ns);
    m_bytes_per_s = bytes_per_s;
    advance(now_ns);
  }

  /** Charge a session.
  @param[in]  now_ns  the current time
  @param[in]  id      the session
  @param[in]  bytes   bytes of redo */
  void charge(int64_t now_ns, uint64_t id, double bytes) {
    advance(now_ns);
    m_bytes += bytes;
    add(id, bytes);
    advance(now_ns);
  }

  /** Let time pass.
  @param[in]  now_ns  the current time */
  void advance(int64_t now_ns) {
    /* Threads read the clock before they wait for each other. */
    m_credit += m_bytes_per_s * 1e-9 *
                static_cast<double>(std::max<int64_t>(0, now_ns - m_now_ns));
    m_now_ns = std::max(m_now_ns, now_ns);
    if (m_bytes_per_s == THROTTLE_UNLIMITED) {
      for (const auto &session : m_sessions) {
        m_served.push_back(session.first);
      }
      m_sessions.clear();
      m_order.clear();
      m_ended.clear();
    }
    while (!m_order.empty()) {
      const auto [tag, id] = *m_order.begin();
      const auto session = m_sessions.find(id);
      if (m_credit < session->second.piece) {
        return;
      }
      m_credit -= session->second.piece;
      m_bytes -= session->second.piece;
      m_tag = tag;
      m_order.erase(m_order.begin());
      if (session->second.rest > 0.0) {
        next_piece(session, tag);
      } else {
        m_sessions.erase(session);
        m_served.push_back(id);
      }
    }
    m_credit = 0.0;
    m_bytes = 0.0;
  }

  /** @param[in]  id           a session in the queue
  @param[in]  deadline_ns  when it need not wait any more */
  void set_deadline(uint64_t id, int64_t deadline_ns) {
    if (const auto it = m_sessions.find(id); it != m_sessions.end()) {
      it->second.deadline_ns = deadline_ns;
    }
  }

  /** @param[in]  id  a session
  @return when it need not wait any more; 0 if it has nothing to wait for */
  int64_t deadline_ns(uint64_t id) const {
    const auto it = m_sessions.find(id);
    return it == m_sessions.end() ? 0 : it->second.deadline_ns;
  }

  /** @return the sessions that have waited for all of their bytes since the
  last call */
  std::vector<uint64_t> take_served() { return std::exchange(m_served, {}); }

  /** @param[in]  id  a session
  @return bytes that it has to wait for */
  double bytes_of(uint64_t id) const {
    const auto session = m_sessions.find(id);
    return session == m_sessions.end()
               ? 0.0
               : session->second.piece + session->second.rest;
  }

  /** Forgive a session its bytes.
  @param[in]  id  the session */
  void forgive(uint64_t id) {
    const auto session = m_sessions.find(id);
    if (session != m_sessions.end()) {
      m_bytes -= remove(session);
    }
  }

  /** A session ends. If it has bytes to wait for, a later session of its
  account waits for a part of them, so that clients that connect for each
  statement are delayed like others. All ended sessions of an account have one
  place in the queue: else they would slow down all other sessions.
  @param[in]  account  identifies the account
  @param[in]  id       the session
  @param[in]  next_id  the id that the next new session will have */
  void end(size_t account, uint64_t id, uint64_t next_id) {
    const auto session = m_sessions.find(id);
    if (session == m_sessions.end()) {
      return;
    }
    const int64_t deadline = session->second.deadline_ns;
    Ended &ended = m_ended[account];
    if (!is_waiting(ended.place)) {
      ended = {.place = ++m_last_place, .next_id = next_id};
    }
    ++ended.n;
    add(ended.place, remove(session));
    set_deadline(ended.place, std::max(deadline_ns(ended.place), deadline));
  }

  /** Forget the places of ended sessions that have waited, or whose deadline
  has passed.
  @param[in]  now_ns  the current time */
  void expire(int64_t now_ns) {
    std::erase_if(m_ended, [this, now_ns](const auto &account) {
      const uint64_t place = account.second.place;
      if (is_waiting(place) && now_ns >= deadline_ns(place)) {
        forgive(place);
      }
      return !is_waiting(place);
    });
  }

  /** A session begins. If sessions of its account had ended before, with bytes
  to wait for, it waits for the bytes of one of them, on average.
  @param[in]  account  identifies the account
  @param[in]  id       the session */
  void succeed(size_t account, uint64_t id) {
    const auto ended = m_ended.find(account);
    if (ended == m_ended.end() || !is_waiting(ended->second.place) ||
        static_cast<int32_t>(id - ended->second.next_id) < 0) {
      return;
    }
    const auto place = m_sessions.find(ended->second.place);
    double &rest = place->second.rest;
    double bytes =
        bytes_of(place->first) / static_cast<double>(ended->second.n);
    if (ended->second.n == 1 || rest < bytes) {
      bytes = remove(place);
      m_ended.erase(ended);
    } else {
      rest -= bytes;
      --ended->second.n;
    }
    add(id, bytes);
  }

  /** @param[in]  id  a session
  @return whether it has bytes to wait for */
  bool is_waiting(uint64_t id) const { return m_sessions.contains(id); }

  /** @param[in]  id  a session
  @return seconds until it has waited for its bytes, if the sessions in the
  queue and the limit stay the same: an upper bound, as all other sessions count
  with as many bytes as this one; 0 if it has waited */
  double remaining_s(uint64_t id) const {
    const auto it = m_sessions.find(id);
    if (it == m_sessions.end()) {
      return 0.0;
    }
    const Session &session = it->second;
    const double own = session.tag - m_tag + session.piece + session.rest;
    return std::min(m_bytes, own * static_cast<double>(m_sessions.size())) /
           m_bytes_per_s;
  }

 private:
  /** A session in the queue: tag and bytes of its next piece, bytes after it,
  and when it need not wait any more. */
  struct Session {
    double tag{0.0};
    double piece{0.0};
    double rest{0.0};
    int64_t deadline_ns{0};
  };
  using Sessions = std::unordered_map<uint64_t, Session>;

  /** The ended sessions of an account: the id that stands for them in the
  queue, their number, and the id of the first session that began after the
  first of them had ended. Ids are given in ascending order, and begin again
  after 32 bits. */
  struct Ended {
    uint64_t place{THROTTLE_NO_ID};
    uint64_t n{0};
    uint64_t next_id{0};
  };

  /** @param[in]  id     a session
  @param[in]  bytes  bytes that it has to wait for, too */
  void add(uint64_t id, double bytes) {
    const auto [session, is_new] = m_sessions.try_emplace(id);
    session->second.rest += bytes;
    if (is_new) {
      /* Unused time is not saved. */
      next_piece(session, m_tag);
    }
  }

  /** @param[in]  session  a session, to be taken out
  @return bytes that it had to wait for */
  double remove(Sessions::iterator session) {
    const double bytes = session->second.piece + session->second.rest;
    m_order.erase({session->second.tag, session->first});
    m_sessions.erase(session);
    return bytes;
  }

  /** The next bytes of a session become a piece.
  @param[in]  session  the session
  @param[in]  tag      tag of the piece before it */
  void next_piece(Sessions::iterator session, double tag) {
    Session &it = session->second;
    it.piece = std::min(it.rest, THROTTLE_PIECE_BYTES);
    it.rest -= it.piece;
    it.tag = tag + it.piece;
    m_order.emplace(it.tag, session->first);
  }

  double m_bytes_per_s{THROTTLE_UNLIMITED};

  /** Time of the last call, and the bytes that were allowed until then and not
  used. Invariant: less than the first piece. */
  int64_t m_now_ns{0};
  double m_credit{0.0};

  /** Bytes that all sessions have to wait for. */
  double m_bytes{0.0};

  /** Tag of the piece that was served last. */
  double m_tag{0.0};

  /** The sessions, and the tags of their pieces. */
  Sessions m_sessions;
  std::set<std::pair<double, uint64_t>> m_order;

  /** Sessions that ended with bytes to wait for, by their accounts; and the
  last id of a place of these. No session has such an id. */
  std::unordered_map<size_t, Ended> m_ended;
  uint64_t m_last_place{uint64_t{1} << 32};

  /** What take_served() returns. */
  std::vector<uint64_t> m_served;
};

}  // namespace spw

#endif /* throttle0queue_h */
