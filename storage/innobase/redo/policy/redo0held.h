/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file redo/policy/redo0held.h
Redo that is held in memory until somebody needs it in the file: which writes
can be held together. */

#ifndef redo0held_h
#define redo0held_h

#include <algorithm>
#include <cstdint>

namespace spw {

/** What to do with a write of redo. */
enum class Redo_write {
  /** Put it to what is held. */
  HOLD,
  /** Write what is held first, then ask again. */
  RELEASE,
  /** Write it now. */
  WRITE
};

/** A range of a file, from the first byte of a write to the end of the others
that continue it, or that write its last blocks again. */
class Redo_range {
 public:
  /** @param[in]  max_bytes  max size: bytes */
  explicit Redo_range(uint64_t max_bytes) : m_max_bytes(max_bytes) {}

  /** Decide on a write.
  @param[in]  file          identifies the open file
  @param[in]  is_encrypted  whether the write is encrypted
  @param[in]  offset        begin of the write: bytes
  @param[in]  n_bytes       its size: bytes
  @param[in]  can_be_held   whether the write may be held
  @return what to do. All writes reach the files in their order */
  Redo_write decide(int file, bool is_encrypted, uint64_t offset,
                    uint64_t n_bytes, bool can_be_held) const {
    if (empty()) {
      return can_be_held && n_bytes <= m_max_bytes ? Redo_write::HOLD
                                                   : Redo_write::WRITE;
    }
    return can_be_held && file == m_file && is_encrypted == m_is_encrypted &&
                   offset >= m_begin && offset <= m_end &&
                   offset + n_bytes - m_begin <= m_max_bytes
               ? Redo_write::HOLD
               : Redo_write::RELEASE;
  }

  /** Hold a write: decide() has said HOLD.
  @param[in]  file          identifies the open file
  @param[in]  is_encrypted  whether the write is encrypted
  @param[in]  offset        begin of the write: bytes
  @param[in]  n_bytes       its size: bytes
  @return its place, in bytes after the begin of the range */
  uint64_t add(int file, bool is_encrypted, uint64_t offset, uint64_t n_bytes) {
    if (empty()) {
      m_file = file;
      m_is_encrypted = is_encrypted;
      m_begin = m_end = offset;
    }
    m_end = std::max(m_end, offset + n_bytes);
    return offset - m_begin;
  }

  /** Nothing is held. */
  void clear() { m_begin = m_end = 0; }

  bool empty() const { return m_begin == m_end; }

  /** @return begin and size of the range: bytes */
  uint64_t begin() const { return m_begin; }
  uint64_t size() const { return m_end - m_begin; }

 private:
  const uint64_t m_max_bytes;
  int m_file{-1};
  bool m_is_encrypted{false};
  uint64_t m_begin{0};
  uint64_t m_end{0};
};

}  // namespace spw

#endif /* redo0held_h */
