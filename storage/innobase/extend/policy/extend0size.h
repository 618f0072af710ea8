/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file extend/policy/extend0size.h
Decides how far a data file is extended, and in which steps. */

#ifndef extend0size_h
#define extend0size_h

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace spw {

/** Target duration of an extension step: seconds. An insert that needs the same
file to grow waits for the step. With innodb_extend_and_initialize = ON it polls
every 100 ms (InnoDB's Fil_shard::space_extend()). */
constexpr double EXTEND_STEP_S = 0.1;

/** Fraction of the time that steps take while other threads use the device.
Pauses are at most EXTEND_PAUSE_MAX_S seconds: steps longer than a third of that
take a larger fraction. Source: measured on a volume of 30 MB/s, where steps
without pauses left writers 60 of 1050 transactions/s. */
constexpr double EXTEND_DUTY_CYCLE = 0.25;
constexpr double EXTEND_PAUSE_MAX_S = 1.0;

/** Other threads use the device if they wrote this much redo or read this much
data since the last step: bytes. A step writes about 200 bytes of redo, and so
do those of statements that extend other files meanwhile. */
constexpr uint64_t EXTEND_OTHERS_REDO_BYTES = 4096;
constexpr uint64_t EXTEND_OTHERS_READ_BYTES = 256 * 1024;

/** Max size of a step. After a crash in a step, recovery writes its zeros. */
constexpr uint64_t EXTEND_STEP_MAX_BYTES = uint64_t{64} << 20;

/** Headroom that extensions leave free on a file system: this fraction of it,
up to the maximum in bytes. Doublewrite files, undo files, binary logs and
temporary tables share it, and a server that cannot write those stops. */
constexpr double EXTEND_DISK_RESERVE_FRACTION = 0.05;
constexpr uint64_t EXTEND_DISK_RESERVE_MAX_BYTES = uint64_t{10} << 30;

/** Extents that InnoDB adds to a tablespace's list of free ones at a time
(FSP_FREE_ADD). */
constexpr uint64_t EXTEND_FREE_ADD = 4;

/** @param[in]  page_bytes    size of a page in the file
@param[in]  extent_bytes  size of an extent
@return maximum size of a file: bytes. The highest page numbers are excluded:
with all of them in use, the number of the next extent would overflow in
InnoDB's fsp_fill_free_list(). */
constexpr uint64_t extend_size_max(uint64_t page_bytes, uint64_t extent_bytes) {
  constexpr uint64_t PAGE_NO_END = UINT32_MAX - 1;
  const uint64_t end = PAGE_NO_END * page_bytes;
  return end - end % extent_bytes - (EXTEND_FREE_ADD + 1) * extent_bytes;
}

/** @param[in]  bytes  a size
@param[in]  unit   the result is a multiple of it; at least 1
@return the size rounded up; the largest multiple if that overflows */
constexpr uint64_t round_up(uint64_t bytes, uint64_t unit) {
  const uint64_t remainder = bytes % unit;
  if (remainder == 0) {
    return bytes;
  }
  return bytes > UINT64_MAX - (unit - remainder)
             ? UINT64_MAX - UINT64_MAX % unit
             : bytes + (unit - remainder);
}

/** @param[in]  text  digits followed by K, M, G or T, in either case
@return bytes; empty if the text is not a size, or the size exceeds 64 bits */
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

/** @param[in]  disk_bytes  the file system: bytes
@return headroom that extensions leave free: bytes */
constexpr uint64_t extend_disk_reserve(uint64_t disk_bytes) {
  return std::min(EXTEND_DISK_RESERVE_MAX_BYTES,
                  static_cast<uint64_t>(static_cast<double>(disk_bytes) *
                                        EXTEND_DISK_RESERVE_FRACTION));
}

/** @param[in]  disk_free   free on the file system: bytes
@param[in]  disk_bytes  the file system: bytes
@return space that extensions can use: bytes */
constexpr uint64_t extend_disk_available(uint64_t disk_free,
                                         uint64_t disk_bytes) {
  const uint64_t headroom = extend_disk_reserve(disk_bytes);
  return disk_free > headroom ? disk_free - headroom : 0;
}

/** Input of decide_extend_target(). Sizes are in bytes. */
struct Extend_target_input {
  /** The number in the statement: pages or bytes. */
  uint64_t requested;

  /** Whether that number is pages. */
  bool is_pages;

  /** Size of a page in the file, and of an extent. */
  uint64_t page_bytes;
  uint64_t extent_bytes;

  /** Size of the file, and its maximum. */
  uint64_t size;
  uint64_t size_max;
};

/** Why a file is extended, or not. */
enum class Extend_target_reason {
  /** The file is smaller than requested. */
  GROW,
  /** The file is large enough already. */
  LARGE_ENOUGH,
  /** The statement requests 0. */
  ZERO,
  /** The requested size exceeds the maximum for the file's page size. */
  BEYOND_LIMIT
};

/** Result of decide_extend_target(). */
struct Extend_target {
  Extend_target_reason reason;

  /** Size to give the file: bytes, whole extents. At least the requested size
  with GROW; the size of the file with LARGE_ENOUGH; otherwise 0. */
  uint64_t bytes;

  /** Bytes to add. */
  uint64_t needed;
};

/** Decide the size that ALTER TABLESPACE ... SET EXTENT_SIZE gives a file.
@param[in]  input  the request, and the file
@return the size and the reason */
constexpr Extend_target decide_extend_target(const Extend_target_input &input) {
  if (input.requested == 0) {
    return {Extend_target_reason::ZERO, 0, 0};
  }
  if (input.is_pages && input.requested > UINT64_MAX / input.page_bytes) {
    return {Extend_target_reason::BEYOND_LIMIT, 0, 0};
  }
  const uint64_t requested =
      input.is_pages ? input.requested * input.page_bytes : input.requested;
  const uint64_t bytes = round_up(requested, input.extent_bytes);
  if (bytes > input.size_max || bytes < requested) {
    return {Extend_target_reason::BEYOND_LIMIT, 0, 0};
  }
  if (bytes <= input.size) {
    return {Extend_target_reason::LARGE_ENOUGH, input.size, 0};
  }
  return {Extend_target_reason::GROW, bytes, bytes - input.size};
}

/** Paces the steps of an extension. Used by one thread. */
class Extend_pace {
 public:
  /** @param[in]  extent_bytes  size of an extent of the file */
  explicit constexpr Extend_pace(uint64_t extent_bytes)
      : m_extent_bytes(extent_bytes), m_step(extent_bytes) {}

  /** @param[in]  size    size of the file: bytes
  @param[in]  target  size to reach: bytes, whole extents, above size
  @return size after the next step: bytes, whole extents. The step is at least
  one extent, and otherwise takes about EXTEND_STEP_S. */
  constexpr uint64_t next(uint64_t size, uint64_t target) const {
    const uint64_t end = size + m_step;
    return std::min(target,
                    std::max(end - end % m_extent_bytes,
                             size - size % m_extent_bytes + m_extent_bytes));
  }

  /** Record the duration of a step. The step size at most doubles, as the first
  steps may end in a cache, and shrinks at once.
  @param[in]  bytes    bytes that the step has added
  @param[in]  seconds  duration of the step */
  constexpr void record_step(uint64_t bytes, double seconds) {
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

/** @param[in]  redo_bytes  redo written since the last step: bytes
@param[in]  read_bytes  data read from data files since the last step: bytes
@return whether other threads use the device, so that steps pause for them */
constexpr bool extend_others_are_active(uint64_t redo_bytes,
                                        uint64_t read_bytes) {
  return redo_bytes >= EXTEND_OTHERS_REDO_BYTES ||
         read_bytes >= EXTEND_OTHERS_READ_BYTES;
}

/** @param[in]  step_s  duration of a step: seconds
@return pause after it for other threads: seconds */
constexpr double pause_s(double step_s) {
  return std::min(step_s * (1.0 / EXTEND_DUTY_CYCLE - 1.0), EXTEND_PAUSE_MAX_S);
}

}  // namespace spw

#endif /* extend0size_h */
