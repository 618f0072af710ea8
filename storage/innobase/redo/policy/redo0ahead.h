/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file redo/policy/redo0ahead.h
Which part of a redo log file to initialise ahead of the redo. */

#ifndef redo0ahead_h
#define redo0ahead_h

#include <algorithm>
#include <cstdint>

namespace spw {

/** Size of a part that is initialised at once: bytes. Source: measured with
oltp_write_only, 4 kB of redo for each transaction. A part costs the file
system's journal two writes, which 120 transactions share, and a volume of 30
MB/s 17 ms. */
inline constexpr uint64_t REDO_AHEAD_BYTES = 512 * 1024;

/** If fewer syncs came with a part, the next one is not initialised: syncs.
Zeros of a part take a volume of 30 MB/s 17 ms, the journal's two writes for a
sync 1.3 ms at 1,500 writes a second. */
inline constexpr uint64_t REDO_AHEAD_MIN_SYNCS = 12;

/** Parts begin and end at multiples of the file system's block: bytes. */
inline constexpr uint64_t REDO_AHEAD_BLOCK = 4096;

/** A part of a file, from begin to end: bytes. */
struct Redo_part {
  uint64_t begin{0};
  uint64_t end{0};

  bool empty() const { return begin == end; }
};

/** How far the redo log file that is written is initialised. One thread at a
time. */
class Redo_ahead {
 public:
  /** A write of redo is about to begin.
  @param[in]  file_id  ID of the file
  @param[in]  offset   begin of the write: bytes
  @param[in]  n_bytes  its size: bytes
  @param[in]  n_syncs  number of syncs of redo log files until now
  @return the part behind the write to initialise now; empty if none. It has no
  redo: redo is written in order */
  Redo_part due(uint64_t file_id, uint64_t offset, uint64_t n_bytes,
                uint64_t n_syncs) {
    if (file_id != m_file_id) {
      m_file_id = file_id;
      m_end = 0;
    }
    const uint64_t end = offset + n_bytes;
    if (end <= m_end) {
      return {};
    }
    const uint64_t begin =
        (end + REDO_AHEAD_BLOCK - 1) / REDO_AHEAD_BLOCK * REDO_AHEAD_BLOCK;
    m_end = begin + REDO_AHEAD_BYTES;
    /* Much redo for each sync: its zeros would cost more than they save. */
    const bool is_worth_it =
        !m_has_begun || n_syncs - m_n_syncs >= REDO_AHEAD_MIN_SYNCS;
    m_has_begun = true;
    m_n_syncs = n_syncs;
    return is_worth_it ? Redo_part{.begin = begin, .end = m_end} : Redo_part{};
  }

  /** The rest of the file is not to be initialised. */
  void give_up() { m_end = UINT64_MAX; }

 private:
  uint64_t m_file_id{UINT64_MAX};

  /** Whether a part has begun, and the number of syncs then. */
  bool m_has_begun{false};
  uint64_t m_n_syncs{0};

  /** Up to here, the file is initialised: bytes. */
  uint64_t m_end{0};
};

}  // namespace spw

#endif /* redo0ahead_h */
