/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/policy/flush0list.h
How old the dirty pages are, and so how fast they have to be flushed. */

#ifndef flush0list_h
#define flush0list_h

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "base/base0rate.h"

namespace spw {

/** The age of sync flushing has so many parts, within which dirty pages are not
told apart. (Simulated: from 16 to 256 it makes no difference.) */
constexpr uint64_t FLUSH_LIST_PARTS = 64;

/** The flush lists at a time. */
struct Flush_list_look {
  /** The redo log's end; the oldest change of a dirty page, or before it: LSN.
   */
  uint64_t lsn;
  uint64_t oldest_lsn;

  /** Pages are said to be older by so much, but not before oldest_lsn, as they
  are not in the order of their changes: bytes of LSN. */
  uint64_t order_lag{0};

  /** The age of sync flushing: bytes of LSN. */
  uint64_t sync_age;

  /** Dirty pages, those that are being written among them. */
  uint64_t n_dirty;

  /** Pages whose writes were done, and pages of the LRU lists that were handed
  over, since the server started. */
  uint64_t n_written;
  uint64_t n_lru_flushed;
};

/** How many dirty pages there are of each age. Where pages lie thick is not
told by their number and the oldest one's age: a burst after a pause leaves most
of the pages at one end of the redo log, and so do pages that are changed again
as soon as they are written. The flush lists would have to be walked to be
asked; but all that become dirty between two looks have ages between them. One
thread uses it. */
class Flush_list_shape {
 public:
  /** See what has become of the flush lists.
  @param[in]  look  the flush lists now */
  void look(const Flush_list_look &look) {
    if (is_another_redo_log(look)) {
      /* Nothing is known of the pages. */
      *this = {};
      m_last = look;
      m_sync_age = look.sync_age;
      m_part_bytes = std::max<uint64_t>(1, look.sync_age / FLUSH_LIST_PARTS);
      spread(look.oldest_lsn, static_cast<double>(look.n_dirty));
      return;
    }
    const double n_written = counter_growth(m_last.n_written, look.n_written);
    /* Fewer than none where pages were dropped with their table. */
    const double n_made = static_cast<double>(look.n_dirty) -
                          static_cast<double>(m_last.n_dirty) + n_written;
    m_n_lru += counter_growth(m_last.n_lru_flushed, look.n_lru_flushed);
    const double n_lru = std::min(n_written, m_n_lru);
    m_n_lru = std::min(m_n_lru - n_lru, static_cast<double>(look.n_dirty));
    take_oldest(n_written - n_lru);
    const uint64_t last_lsn = m_last.lsn;
    const uint64_t last_first = first();
    m_last = look;
    for (uint64_t i = last_first; i < first(); ++i) {
      pages_of(i) = 0.0;
    }
    for (uint64_t i = part_of(last_lsn) + 1; i <= part_of(look.lsn); ++i) {
      pages_of(i) = 0.0;
    }
    spread(last_lsn, std::max(0.0, n_made));
    fit();
  }

  /** How fast the redo log may be filled, so that each page is flushed before
  it is too old: pages are flushed from the oldest on, and the one that has most
  before it for the age that it is off the limit decides.
  @param[in]  limit  the age that no page is to be said to exceed: bytes of LSN
  @return bytes of redo for each page that is flushed; 0 if there is a page
  beyond the limit, infinity if there is no dirty page */
  double bytes_per_page(double limit) const {
    double least = std::numeric_limits<double>::infinity();
    double n = 0.0;
    for (uint64_t i = first(); i <= part_of(m_last.lsn); ++i) {
      n += m_pages[i % N_KEPT];
      if (n > 0.0) {
        const uint64_t end = std::min(m_last.lsn, (i + 1) * m_part_bytes);
        const uint64_t said = std::min(
            m_last.lsn,
            std::max(m_last.oldest_lsn, end - std::min(end, m_last.order_lag)));
        const double age = static_cast<double>(m_last.lsn - said);
        least = std::min(least, std::max(0.0, limit - age) / n);
      }
    }
    return least;
  }

 private:
  /** More than a redo log holds, unless it is so small that hardly any of it
  may be filled before sync flushing; pages that are older count as the oldest.
*/
  static constexpr uint64_t N_KEPT = 2 * FLUSH_LIST_PARTS;

  /** @return whether it is the first look, or the redo log has another size:
  what is kept free for threads varies, too (log_free_check_margin()): with
  innodb_thread_concurrency, by less than a quarter of any redo log but the
  smallest, for which a false alarm costs a second of evenly spread pages */
  bool is_another_redo_log(const Flush_list_look &look) const {
    return look.sync_age < m_sync_age - m_sync_age / 4 ||
           look.sync_age > m_sync_age + m_sync_age / 4 ||
           look.lsn < m_last.lsn ||
           part_of(look.lsn) - part_of(m_last.lsn) >= N_KEPT;
  }

  uint64_t part_of(uint64_t lsn) const { return lsn / m_part_bytes; }

  double &pages_of(uint64_t part) { return m_pages[part % N_KEPT]; }

  /** @return the first part in which there can be pages */
  uint64_t first() const {
    const uint64_t last = part_of(m_last.lsn);
    return std::max(std::min(last, part_of(m_last.oldest_lsn)),
                    last - std::min(last, N_KEPT - 1));
  }

  /** Pages became dirty, evenly, from an LSN on. */
  void spread(uint64_t from, double n) {
    const uint64_t last = part_of(m_last.lsn);
    const uint64_t begin =
        std::max(std::min(from, m_last.lsn), first() * m_part_bytes);
    const double bytes = static_cast<double>(m_last.lsn - begin);
    if (bytes == 0.0) {
      pages_of(last) += n;
      return;
    }
    for (uint64_t i = part_of(begin); i <= last; ++i) {
      const uint64_t part_begin = std::max(begin, i * m_part_bytes);
      const uint64_t part_end = std::min(m_last.lsn, (i + 1) * m_part_bytes);
      pages_of(i) += n * static_cast<double>(part_end - part_begin) / bytes;
    }
  }

  /** Pages were written, the oldest first. */
  void take_oldest(double n) {
    for (uint64_t i = first(); i <= part_of(m_last.lsn) && n > 0.0; ++i) {
      const double taken = std::min(n, pages_of(i));
      pages_of(i) -= taken;
      n -= taken;
    }
  }

  /** What is kept is as many pages as there are, none before the oldest: pages
  are also written for the LRU lists, and dropped with their table. */
  void fit() {
    double sum = 0.0;
    for (uint64_t i = first(); i <= part_of(m_last.lsn); ++i) {
      sum += pages_of(i);
    }
    const auto n_dirty = static_cast<double>(m_last.n_dirty);
    if (sum <= 0.0) {
      spread(m_last.oldest_lsn, n_dirty);
      return;
    }
    for (uint64_t i = first(); i <= part_of(m_last.lsn); ++i) {
      pages_of(i) *= n_dirty / sum;
    }
  }

  Flush_list_look m_last{};
  uint64_t m_part_bytes{1};

  /** Pages whose first change is in the part of the LSNs whose number has this
  remainder. */
  std::array<double, N_KEPT> m_pages{};

  /** What the parts were made for: bytes of LSN. */
  uint64_t m_sync_age{0};

  /** Pages of the LRU lists that are being written. */
  double m_n_lru{0.0};
};

}  // namespace spw

#endif /* flush0list_h */
