/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file extend/policy/extend0size.h
How far a data file is extended, and in which steps. */

#ifndef extend0size_h
#define extend0size_h

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace spw {

/** A step of an extension shall take about so long. An insert that needs the
same file to grow waits for the step, and looks again every 100 ms (upstream's
Fil_shard::space_extend()). */
constexpr double EXTEND_STEP_S = 0.1;

/** While others are at work, steps take this share of the time; on a volume of
30 MB a second steps without a rest left writers 60 of 1050 transactions a
second. No rest is longer than EXTEND_REST_MAX_S: steps that take longer than a
third of that take a larger share. */
constexpr double EXTEND_SHARE = 0.25;
constexpr double EXTEND_REST_MAX_S = 1.0;

/** Others are at work if since the last step they have written so much redo, or
read so much: bytes. A step writes some 200 bytes, and so do those of statements
that extend other files meanwhile. */
constexpr uint64_t EXTEND_OTHERS_REDO_BYTES = 4096;
constexpr uint64_t EXTEND_OTHERS_READ_BYTES = 256 * 1024;

/** The largest step. A crash in a step has recovery write its zeros. */
constexpr uint64_t EXTEND_STEP_MAX_BYTES = uint64_t{64} << 20;

/** The headroom that extensions leave free on a file system: this fraction of
it, at most so many bytes. Doublewrite files, undo files, binary logs and
temporary tables share the file system, and a server that cannot write those
stops. */
constexpr double EXTEND_DISK_KEPT_SHARE = 0.05;
constexpr uint64_t EXTEND_DISK_KEPT_MAX_BYTES = uint64_t{10} << 30;

/** A statement whose size leaves less than that headroom is carried out, with a
warning, down to this fraction of the headroom. */
constexpr double EXTEND_DISK_KEPT_MIN_FRACTION = 0.1;

/** Upstream adds so many extents to a tablespace's list of free ones at a time
(FSP_FREE_ADD). */
constexpr uint64_t EXTEND_FREE_ADD = 4;

/** @param[in]  page_bytes    a page in the file
@param[in]  extent_bytes  an extent
@return the largest that a file may become: bytes. The highest page numbers are
left out: once all of them were in use, the number of the next extent would
overflow in upstream's fsp_fill_free_list(). */
constexpr uint64_t extend_size_max(uint64_t page_bytes, uint64_t extent_bytes) {
  constexpr uint64_t PAGE_NO_END = UINT32_MAX - 1;
  const uint64_t end = PAGE_NO_END * page_bytes;
  return end - end % extent_bytes - (EXTEND_FREE_ADD + 1) * extent_bytes;
}

/** @param[in]  bytes  a size
@param[in]  unit   what it shall be a multiple of, at least 1
@return the size rounded up; the largest multiple there is if that overflows */
constexpr uint64_t round_up(uint64_t bytes, uint64_t unit) {
  const uint64_t rest = bytes % unit;
  if (rest == 0) {
    return bytes;
  }
  return bytes > UINT64_MAX - (unit - rest) ? UINT64_MAX - UINT64_MAX % unit
                                            : bytes + (unit - rest);
}

/** @param[in]  text  digits and one of K, M, G and T, in either case
@return bytes; nothing if it is none, or too large for 64 bits */
constexpr std::optional<uint64_t> parse_size(std::string_view text) {
  constexpr std::string_view UNITS = "KMGT";
  if (text.size() < 2) {
    return {};
  }
  const char unit = static_cast<char>(text.back() & ~0x20);
  const size_t power = UNITS.find(unit);
  if (power == std::string_view::npos) {
    return {};
  }
  text.remove_suffix(1);
  uint64_t bytes = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9' ||
        bytes > (UINT64_MAX - static_cast<uint64_t>(digit - '0')) / 10) {
      return {};
    }
    bytes = bytes * 10 + static_cast<uint64_t>(digit - '0');
  }
  const unsigned shift = 10 * (static_cast<unsigned>(power) + 1);
  return bytes > UINT64_MAX >> shift ? std::nullopt
                                     : std::optional<uint64_t>{bytes << shift};
}

/** @param[in]  disk_bytes  the file system's size: bytes
@return the headroom that extensions leave free: bytes */
constexpr uint64_t extend_disk_kept(uint64_t disk_bytes) {
  return std::min(EXTEND_DISK_KEPT_MAX_BYTES,
                  static_cast<uint64_t>(static_cast<double>(disk_bytes) *
                                        EXTEND_DISK_KEPT_SHARE));
}

/** @param[in]  disk_free   free on the file system: bytes
@param[in]  disk_bytes  the file system's size: bytes
@return what extending ahead may take of it: bytes */
constexpr uint64_t extend_disk_room(uint64_t disk_free, uint64_t disk_bytes) {
  const uint64_t kept = extend_disk_kept(disk_bytes);
  return disk_free > kept ? disk_free - kept : 0;
}

/** What decide_extend_target() decides on; bytes, if not said otherwise. */
struct Extend_target_input {
  /** The number of the statement. */
  uint64_t asked;

  /** Whether that is pages. */
  bool is_pages;

  /** A page in the file, and an extent. */
  uint64_t page_bytes;
  uint64_t extent_bytes;

  /** The file, and the largest that it may become. */
  uint64_t size;
  uint64_t size_max;
};

/** Why a file is extended, or not. */
enum class Extend_target_reason {
  /** It is smaller than what was asked for. */
  GROW,
  /** It is as large already. */
  LARGE_ENOUGH,
  /** 0 was asked for. */
  ZERO,
  /** No file of this page size may be as large. */
  BEYOND_LIMIT
};

/** What decide_extend_target() says. */
struct Extend_target {
  Extend_target_reason reason;

  /** The size that the file shall have, whole extents: bytes. At least as much
  as was asked for with GROW; the size of the file with LARGE_ENOUGH; else 0. */
  uint64_t bytes;

  /** What has to be added for it: bytes. */
  uint64_t needed;
};

/** Decide how large ALTER TABLESPACE ... SET EXTENT_SIZE makes a file.
@param[in]  input  what was asked for, and the file
@return the size, and why */
constexpr Extend_target decide_extend_target(const Extend_target_input &input) {
  if (input.asked == 0) {
    return {Extend_target_reason::ZERO, 0, 0};
  }
  if (input.is_pages && input.asked > UINT64_MAX / input.page_bytes) {
    return {Extend_target_reason::BEYOND_LIMIT, 0, 0};
  }
  const uint64_t asked =
      input.is_pages ? input.asked * input.page_bytes : input.asked;
  const uint64_t bytes = round_up(asked, input.extent_bytes);
  if (bytes > input.size_max || bytes < asked) {
    return {Extend_target_reason::BEYOND_LIMIT, 0, 0};
  }
  if (bytes <= input.size) {
    return {Extend_target_reason::LARGE_ENOUGH, input.size, 0};
  }
  return {Extend_target_reason::GROW, bytes, bytes - input.size};
}

/** What decide_extend_room() decides on: bytes. */
struct Extend_room_input {
  /** Free on the file system for this process, and the file system. */
  uint64_t disk_free;
  uint64_t disk_bytes;

  /** What all statements, this one among them, have still to take of it. */
  uint64_t reserved;
};

/** What decide_extend_room() says. */
struct Extend_room {
  /** Whether the statement may begin. */
  bool is_enough;

  /** Whether it leaves less than the headroom. */
  bool is_little_left;

  /** What stays free once all statements have taken their part: bytes. */
  uint64_t left;

  /** The statement makes no step that leaves less than this free: bytes. */
  uint64_t kept;
};

/** Decide whether a file system has room for a statement.
@param[in]  input  the file system
@return the room, and what has to stay free */
constexpr Extend_room decide_extend_room(const Extend_room_input &input) {
  const uint64_t headroom = extend_disk_kept(input.disk_bytes);
  const auto kept_min = static_cast<uint64_t>(static_cast<double>(headroom) *
                                              EXTEND_DISK_KEPT_MIN_FRACTION);
  const uint64_t left =
      input.disk_free - std::min(input.disk_free, input.reserved);
  const bool is_little_left = left < headroom;
  return {.is_enough = input.reserved <= input.disk_free && left >= kept_min,
          .is_little_left = is_little_left,
          .left = left,
          .kept = is_little_left ? kept_min : headroom};
}

/** @param[in]  room        decide_extend_room() of the statement's begin
@param[in]  step_bytes  what the next step adds
@param[in]  disk_free   free on the file system now: bytes
@return whether the statement may make that step */
constexpr bool extend_may_step(const Extend_room &room, uint64_t step_bytes,
                               uint64_t disk_free) {
  return step_bytes <= disk_free && disk_free - step_bytes >= room.kept;
}

/** Paces the steps of an extension. One thread uses it. */
class Extend_pace {
 public:
  /** @param[in]  extent_bytes  an extent of the file */
  explicit constexpr Extend_pace(uint64_t extent_bytes)
      : m_extent_bytes(extent_bytes), m_step(extent_bytes) {}

  /** @param[in]  size    the file: bytes
  @param[in]  target  what it shall become: bytes, whole extents, above size
  @return what the next step shall make of it: bytes, whole extents; one extent
  at least, about what EXTEND_STEP_S allows */
  constexpr uint64_t next(uint64_t size, uint64_t target) const {
    const uint64_t end = size + m_step;
    return std::min(target,
                    std::max(end - end % m_extent_bytes,
                             size - size % m_extent_bytes + m_extent_bytes));
  }

  /** Note what a step has taken. The step grows by two at most, as the first
  ones may end in a cache, and shrinks at once.
  @param[in]  bytes    what it has added
  @param[in]  seconds  how long it took */
  constexpr void took(uint64_t bytes, double seconds) {
    const double twice = 2.0 * static_cast<double>(m_step);
    const double fitting =
        seconds > 0.0 ? static_cast<double>(bytes) * EXTEND_STEP_S / seconds
                      : twice;
    const auto step = static_cast<uint64_t>(std::min(fitting, twice));
    m_step = std::clamp(step - step % m_extent_bytes, m_extent_bytes,
                        std::max(m_extent_bytes, EXTEND_STEP_MAX_BYTES));
  }

 private:
  const uint64_t m_extent_bytes;
  uint64_t m_step;
};

/** @param[in]  redo_bytes  redo that was written since the last step: bytes
@param[in]  read_bytes  what was read from data files since then: bytes
@return whether others are at work, and steps rest for them */
constexpr bool extend_others_work(uint64_t redo_bytes, uint64_t read_bytes) {
  return redo_bytes >= EXTEND_OTHERS_REDO_BYTES ||
         read_bytes >= EXTEND_OTHERS_READ_BYTES;
}

/** @param[in]  step_s  how long a step took: seconds
@return how long to rest after it for others: seconds */
constexpr double extend_rest_s(double step_s) {
  return std::min(step_s * (1.0 / EXTEND_SHARE - 1.0), EXTEND_REST_MAX_S);
}

}  // namespace spw

#endif /* extend0size_h */
