/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file aio/policy/aio0slots.h
Chooses the slot of an AIO array for the next request, and the completed request
that an I/O thread handles next. Both take constant time.

An AIO array is divided into segments of equal size, one for each I/O thread.
Slot number p belongs to segment p / slots_per_segment.

 A) A request takes a slot of the segment that the last request used, as long as
    no slot of that segment is in use: at low concurrency one thread stays busy
    and the others sleep.
 B) Otherwise it takes a slot of the next segment, in cyclic order, that has a
    free one: concurrent requests are spread evenly over the threads.
 C) Within a segment the slot that was released last is taken first. The number
    of slots in use over time, and so the part of the array that has to be in
    the CPU's caches, follows the requests in flight, not the depth.
 D) Completed requests of a segment are handled in the order in which the kernel
    reported them.

Source: A and B are the rules of stock 9.7's AIO::reserve_slot(), which scans. C
makes a deep array cost as little as a shallow one. D needs no scan of the
segment. */

#ifndef aio0slots_h
#define aio0slots_h

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace spw {

/** The free slots of one AIO array, and the completed ones of each segment.

The caller's mutex for the array protects the free slots (take(), release(),
n_used()). The completed slots of a segment belong to the I/O thread that serves
the segment, and need no protection. */
class Aio_slots {
 public:
  /** Max number of segments: one bit each in a word. innodb_read_io_threads and
  innodb_write_io_threads have the same maximum, 64. */
  static constexpr uint32_t MAX_SEGMENTS = 64;

  /** All slots are free at first.
  @param[in]  n_segments         number of segments, 1 to MAX_SEGMENTS
  @param[in]  slots_per_segment  slots per segment, 1 or more */
  Aio_slots(uint32_t n_segments, uint32_t slots_per_segment)
      : m_n_segments(n_segments),
        m_slots_per_segment(slots_per_segment),
        m_has_free(n_segments == MAX_SEGMENTS
                       ? ~uint64_t{0}
                       : (uint64_t{1} << n_segments) - 1),
        m_segment(0),
        m_free(size_t{n_segments} * slots_per_segment),
        m_n_free(n_segments, slots_per_segment),
        m_completed(n_segments) {
    assert(n_segments > 0 && n_segments <= MAX_SEGMENTS);
    assert(slots_per_segment > 0);

    /* The stack of a segment grows upwards: its lowest slots are on top. */
    for (uint32_t segment = 0; segment < n_segments; ++segment) {
      const size_t first = size_t{segment} * slots_per_segment;
      for (uint32_t i = 0; i < slots_per_segment; ++i) {
        m_free[first + i] =
            static_cast<uint32_t>(first + slots_per_segment - 1 - i);
      }
    }
  }

  /** @return whether a slot is free */
  bool has_free() const { return m_has_free != 0; }

  /** Take a free slot. Precondition: has_free().
  @return number of the slot */
  uint32_t take() {
    assert(has_free());

    if (m_n_free[m_segment] != m_slots_per_segment) {
      m_segment = next_with_free(m_segment);
    }

    uint32_t &n_free = m_n_free[m_segment];
    const uint32_t slot =
        m_free[size_t{m_segment} * m_slots_per_segment + --n_free];

    if (n_free == 0) {
      m_has_free &= ~(uint64_t{1} << m_segment);
    }

    return slot;
  }

  /** Release a slot that take() returned.
  @param[in]  slot  number of the slot */
  void release(uint32_t slot) {
    const uint32_t segment = slot / m_slots_per_segment;
    uint32_t &n_free = m_n_free[segment];

    assert(n_free < m_slots_per_segment);

    m_free[size_t{segment} * m_slots_per_segment + n_free++] = slot;
    m_has_free |= uint64_t{1} << segment;
  }

  /** Record that the kernel has completed a slot's request. Called by the
  segment's own thread.
  @param[in]  segment  the segment
  @param[in]  slot     number of a slot in this segment */
  void push_completed(uint32_t segment, uint32_t slot) {
    m_completed[segment].slots.push_back(slot);
  }

  /** Take the completed slot that was reported first. Called by the segment's
  own thread.
  @param[in]   segment  the segment
  @param[out]  slot     number of the slot
  @return true if there was one */
  bool pop_completed(uint32_t segment, uint32_t *slot) {
    Completed &completed = m_completed[segment];

    if (completed.next == completed.slots.size()) {
      return false;
    }

    *slot = completed.slots[completed.next++];

    if (completed.next == completed.slots.size()) {
      /* The capacity stays: no allocations in a steady state. */
      completed.slots.clear();
      completed.next = 0;
    }

    return true;
  }

  /** @param[in]  segment  the segment
  @return number of its slots that are in use */
  uint32_t n_used(uint32_t segment) const {
    return m_slots_per_segment - m_n_free[segment];
  }

  uint32_t n_segments() const { return m_n_segments; }

  uint32_t slots_per_segment() const { return m_slots_per_segment; }

 private:
  /** @param[in]  segment  a segment
  @return the next segment in cyclic order that has a free slot; the segment
  itself comes last */
  uint32_t next_with_free(uint32_t segment) const {
    /* Bits segment+1.. first, then the others. A shift by 64 is undefined. */
    const uint64_t after =
        segment == 63 ? 0 : m_has_free & (~uint64_t{0} << (segment + 1));
    return static_cast<uint32_t>(
        std::countr_zero(after != 0 ? after : m_has_free));
  }

  /** The completed slots of one segment, on a cache line of their own: the
  threads of two segments work at the same time. */
  struct alignas(64) Completed {
    /** Slots in the order of completion. */
    std::vector<uint32_t> slots;

    /** Index of the next one to handle. */
    size_t next{0};
  };

  const uint32_t m_n_segments;

  const uint32_t m_slots_per_segment;

  /** Invariant: bit s is set if and only if segment s has a free slot. */
  uint64_t m_has_free;

  /** Segment of the slot taken last. */
  uint32_t m_segment;

  /** A stack of free slots for each segment. That of segment s begins at s *
  m_slots_per_segment and holds m_n_free[s] slots. */
  std::vector<uint32_t> m_free;

  std::vector<uint32_t> m_n_free;

  std::vector<Completed> m_completed;
};

}  // namespace spw

#endif /* aio0slots_h */
