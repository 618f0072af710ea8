/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file extend/policy/extend0ahead.h
Which data files are extended before an insert needs it, and by how much. */

#ifndef extend0ahead_h
#define extend0ahead_h

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "extend/policy/extend0size.h"

namespace spw {

/** A file has room for its growth of so many seconds, or is extended. A step of
AUTOEXTEND_SIZE = 64M was seen to take up to 11 s on a volume of 12 MB a second
on which others write, too. */
constexpr double EXTEND_HORIZON_S = 15.0;

/** Growth is seen over so long, or over no more than EXTEND_BURST_S what
exceeds a jump: a segment takes so many extents at once
(FSEG_FREE_LIST_MAX_LEN), which over a second looks like 4 MiB/s where it may be
a tenth of it. */
constexpr double EXTEND_GROWTH_WINDOW_S = 10.0;
constexpr double EXTEND_BURST_S = 1.0;
constexpr uint64_t EXTEND_JUMP_EXTENTS = 4;

/** How long until half of a growth that has ended is forgotten. Loads come in
bursts: the fastest of the last time is what the next one may be like. */
constexpr double EXTEND_GROWTH_HALF_LIFE_S = 30.0;

/** Below it, bytes a second, a file does not grow. An extent of 1 MiB in an
hour is twice as much. */
constexpr double EXTEND_GROWTH_MIN = 128.0;

/** Tablespaces are looked at so often, or less often where a look takes more
than EXTEND_LOOK_SHARE of the time: until a file has been seen to grow inserts
extend it themselves. */
constexpr double EXTEND_LOOK_MIN_S = 0.1;
constexpr double EXTEND_LOOK_MAX_S = 1.0;
constexpr double EXTEND_LOOK_SHARE = 0.01;

/** No more than so much of a file is made free ahead: what is not used after
all is lost to others, as files do not shrink. */
constexpr uint64_t EXTEND_AHEAD_MAX_BYTES = uint64_t{1} << 30;

/** A file whose table somebody has locked is left alone for so long. */
constexpr double EXTEND_LOCKED_HOLD_S = 1.0;

/** After an extension that failed, none is tried on the same file system for so
long: upstream writes to the error log of each. */
constexpr double EXTEND_FAILED_HOLD_S = 60.0;

/** A file system that files are extended on. Not thread-safe. */
class Extend_account {
 public:
  /** A round of looks begins, and nothing is promised yet. The second time in
  a round does nothing.
  @param[in]  now_s  the time of the round: seconds, see Extend_look
  @param[in]  free   free for this process: bytes
  @param[in]  size   the file system: bytes */
  void open(double now_s, uint64_t free, uint64_t size) {
    if (now_s > m_opened_s) {
      m_opened_s = now_s;
      m_room = extend_disk_room(free, size);
    }
  }

  /** A file shall be extended; what others are given is less by as much.
  @param[in]  bytes  what is not there of it yet */
  void promise(uint64_t bytes) { m_room -= std::min(m_room, bytes); }

  /** @param[in]  now_s  an extension has failed now: seconds */
  void failed(double now_s) { m_held_until_s = now_s + EXTEND_FAILED_HOLD_S; }

  /** @param[in]  now_s  seconds
  @param[in]  bytes  what a step adds
  @param[in]  free   free for this process now: bytes
  @param[in]  size   the file system: bytes
  @return whether the step may be made; others have taken of it since the look
*/
  bool may_step(double now_s, uint64_t bytes, uint64_t free,
                uint64_t size) const {
    return !is_held(now_s) && bytes <= extend_disk_room(free, size);
  }

  /** @return what may be taken and is not promised: bytes */
  uint64_t room() const { return m_room; }

  /** @param[in]  now_s  seconds
  @return whether nothing is extended, as an extension has failed */
  bool is_held(double now_s) const { return now_s < m_held_until_s; }

 private:
  uint64_t m_room{0};
  double m_opened_s{-std::numeric_limits<double>::infinity()};
  double m_held_until_s{-std::numeric_limits<double>::infinity()};
};

/** A tablespace at a time; bytes, if not said otherwise. */
struct Extend_look {
  /** Of a clock that only goes forward: seconds. */
  double now_s;

  /** The file's size in its header, and the largest that it may become. */
  uint64_t size;
  uint64_t size_max;

  /** How many units there are that nothing is in: on upstream's list of free
  ones, and those that it has not come to yet. */
  uint64_t n_unused;

  /** A unit: 64 or more pages (FSP_EXTENT_SIZE), also where pages are
  row-compressed and small. */
  uint64_t unit_bytes;

  /** An extent: what a file is extended by, at the least. */
  uint64_t extent_bytes;

  /** Its pages are compressed as they are written, and what was allocated for
  them is given back. */
  bool is_page_compressed;

  /** What may be taken of the file system: Extend_account. */
  uint64_t disk_room;
  bool is_disk_held;
};

/** @param[in]  look  a tablespace
@return what inserts may take before one of them extends the file: bytes.
Upstream keeps two units and a hundredth for undo logs and for cleaning
(fsp_reserve_free_extents()), an insert may ask for three more, and one of those
that it has not come to yet holds no rows but what describes the others. */
constexpr uint64_t extend_free_bytes(const Extend_look &look) {
  constexpr uint64_t KEPT = 2, ASKED = 3, DESCRIBING = 1;
  const uint64_t kept =
      KEPT + ASKED + DESCRIBING + look.size / look.unit_bytes / 100;
  return (look.n_unused > kept ? look.n_unused - kept : 0) * look.unit_bytes;
}

/** @param[in]  look  a tablespace
@return what a segment takes of it at once: bytes */
constexpr uint64_t extend_jump_bytes(const Extend_look &look) {
  return EXTEND_JUMP_EXTENTS * look.unit_bytes;
}

/** What is remembered of a tablespace from one look to the next. */
struct Extend_history {
  /** Whether there was one. */
  bool is_known{false};

  /** When that was: seconds. */
  double now_s{0.0};

  /** When the window began that growth is seen over: seconds. */
  double begin_s{0.0};

  /** The least that was in use since: bytes. What upstream keeps is not: it
  grows with each extension. */
  uint64_t used_min{0};

  /** What was in use at the last look: bytes. */
  uint64_t used{0};

  /** How fast that has grown lately: bytes a second. */
  double growth{0.0};

  /** By how much it has grown lately: bytes. */
  double grown{0.0};
};

/** Why a file is extended, or not. */
enum class Extend_reason {
  /** innodb_extend_ahead_pct is 0. */
  OFF,
  /** Not seen to grow, or not for long. */
  NOT_GROWING,
  /** Smaller than half an extent: upstream adds single pages to it. */
  TOO_SMALL,
  /** What is allocated ahead would be given back. */
  PAGE_COMPRESSED,
  /** There is room enough. */
  ENOUGH,
  /** The free share is below innodb_extend_ahead_pct. */
  SHARE,
  /** At this growth its room is used up within EXTEND_HORIZON_S. */
  GROWTH,
  /** It would be extended, but the file system is nearly full. */
  DISK_NEARLY_FULL,
  /** It would be extended, but on its file system an extension has failed. */
  DISK_HELD,
  /** It would be extended, but is as large as may be. */
  AT_LIMIT
};

/** What decide_extend_ahead() says. */
struct Extend_decision {
  Extend_reason reason;

  /** What the file shall become: bytes, whole extents; 0 if it stays. */
  uint64_t target;
};

/** @param[in]  history  what is remembered; may be new
@param[in]  look     the tablespace now
@return what is to be remembered */
inline Extend_history extend_history(const Extend_history &history,
                                     const Extend_look &look) {
  const uint64_t used =
      look.size - std::min(look.size, look.n_unused * look.unit_bytes);
  if (!history.is_known) {
    return {.is_known = true,
            .now_s = look.now_s,
            .begin_s = look.now_s,
            .used_min = used,
            .used = used};
  }
  Extend_history now = history;
  now.now_s = look.now_s;
  now.used_min = std::min(history.used_min, used);
  const double window_s = look.now_s - history.begin_s;
  /* A window that has only begun counts as a whole one, unless it has seen more
  than a jump. */
  const uint64_t grown = used - now.used_min;
  const uint64_t jump = extend_jump_bytes(look);
  const double rate = std::max(
      static_cast<double>(grown) / std::max(window_s, EXTEND_GROWTH_WINDOW_S),
      static_cast<double>(grown - std::min(grown, jump)) /
          std::max(window_s, EXTEND_BURST_S));
  const double kept =
      std::exp2(-(look.now_s - history.now_s) / EXTEND_GROWTH_HALF_LIFE_S);
  now.growth = std::max(rate, history.growth * kept);
  now.grown = history.grown * kept +
              static_cast<double>(used - std::min(used, history.used));
  now.used = used;
  /* It begins with growth: what was before is of no load. */
  if (window_s >= EXTEND_GROWTH_WINDOW_S || grown == 0) {
    now.begin_s = look.now_s;
    now.used_min = used;
  }
  return now;
}

/** @param[in]  free        extend_free_bytes()
@param[in]  jump_bytes  extend_jump_bytes()
@param[in]  growth      of the tablespace: bytes a second
@return when that is used up, if it goes on growing as lately and the next jump
is due: seconds */
constexpr double extend_full_in_s(uint64_t free, uint64_t jump_bytes,
                                  double growth) {
  return static_cast<double>(free - std::min(free, jump_bytes)) /
         std::max(growth, 1.0);
}

/** @param[in]  step_s     how long a step took: seconds
@param[in]  full_in_s  extend_full_in_s() of the file that is full soonest
@return how long to rest after it, for those who insert: seconds; not at all
while a file is full within EXTEND_HORIZON_S, as an insert that has to extend it
costs them more */
constexpr double extend_ahead_rest_s(double step_s, double full_in_s) {
  return full_in_s < EXTEND_HORIZON_S ? 0.0 : extend_rest_s(step_s);
}

/** @param[in]  look_s  how long a look at all tablespaces took: seconds
@return how long after its end the next one is due: seconds */
constexpr double extend_look_interval_s(double look_s) {
  return std::clamp(look_s / EXTEND_LOOK_SHARE, EXTEND_LOOK_MIN_S,
                    EXTEND_LOOK_MAX_S);
}

/** Decide whether a file is extended ahead of its inserts, and how far.
@param[in]  ahead_pct  innodb_extend_ahead_pct: 0 to 100
@param[in]  look       the tablespace now
@param[in]  history    extend_history() of this look
@return the size, and why */
inline Extend_decision decide_extend_ahead(uint32_t ahead_pct,
                                           const Extend_look &look,
                                           const Extend_history &history) {
  if (ahead_pct == 0) {
    return {Extend_reason::OFF, 0};
  }
  if (history.growth < EXTEND_GROWTH_MIN) {
    return {Extend_reason::NOT_GROWING, 0};
  }
  if (look.size < look.extent_bytes / 2) {
    return {Extend_reason::TOO_SMALL, 0};
  }
  if (look.is_page_compressed) {
    return {Extend_reason::PAGE_COMPRESSED, 0};
  }
  const uint64_t jump = extend_jump_bytes(look);
  /* A burst may be all that there is: what is made free for it is of its own
  size. A load that lasts for longer than the horizon has grown by more. */
  const auto soon = static_cast<uint64_t>(
      std::min({history.growth * EXTEND_HORIZON_S, history.grown / 2.0,
                static_cast<double>(EXTEND_AHEAD_MAX_BYTES) / 2.0}));
  const uint64_t free = extend_free_bytes(look);
  const bool is_soon_full = free < soon + jump;
  const bool is_share_low =
      static_cast<double>(free) <
      std::min(static_cast<double>(look.size) * ahead_pct / 100.0,
               static_cast<double>(EXTEND_AHEAD_MAX_BYTES));
  if (!is_soon_full && !is_share_low) {
    return {Extend_reason::ENOUGH, 0};
  }
  /* Twice what is used up soon, so that the next look finds enough, and two
  jumps; but a file is doubled at most, so that many small ones that grow little
  do not fill the disk. */
  const uint64_t wanted = std::min(
      {look.size, 2 * soon + 2 * jump,
       EXTEND_AHEAD_MAX_BYTES - std::min(free, EXTEND_AHEAD_MAX_BYTES)});
  const uint64_t limit = look.size_max - look.size_max % look.extent_bytes;
  if (limit <= look.size) {
    return {Extend_reason::AT_LIMIT, 0};
  }
  const uint64_t target =
      std::min(limit, round_up(look.size + wanted, look.extent_bytes));
  if (look.is_disk_held) {
    return {Extend_reason::DISK_HELD, 0};
  }
  if (target - look.size > look.disk_room) {
    return {Extend_reason::DISK_NEARLY_FULL, 0};
  }
  return {is_soon_full ? Extend_reason::GROWTH : Extend_reason::SHARE, target};
}

}  // namespace spw

#endif /* extend0ahead_h */
