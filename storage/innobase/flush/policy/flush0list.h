/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/policy/flush0list.h
Ages of the dirty pages, which determine how fast they have to be flushed. */

#ifndef flush0list_h
#define flush0list_h

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "base/base0rate.h"

namespace spw {

/** The sync age is divided into this number of buckets. Ages within a bucket
are not distinguished. Source: simulation, insensitive from 16 to 256. */
constexpr uint64_t DIRTY_PAGE_BUCKETS = 64;

/** A sample of the flush lists. */
struct Dirty_page_sample {
  /** LSNs: end of the redo log; first change of the oldest dirty page, or
  earlier. */
  uint64_t lsn;
  uint64_t oldest_lsn;

  /** Margin by which pages count as older, but not as older than oldest_lsn, as
  flush lists are not strictly ordered: bytes of LSN. */
  uint64_t lsn_disorder{0};

  /** Sync age: bytes of LSN. */
  uint64_t sync_age;

  /** Dirty pages, including those that are being written. */
  uint64_t n_dirty;

  /** Since the server started: pages written, and pages submitted from the LRU
  lists. */
  uint64_t n_written;
  uint64_t n_lru_flushed;
};

/** Histogram of the dirty pages by age. The number of pages and the oldest page
age do not tell where pages cluster. A burst after a pause leaves most of them
at one end of the redo log, and so do pages that are changed again right after a
write. A scan of the flush lists is not needed: the first changes of all pages
that become dirty between two samples are between the LSNs of these. Used by one
thread. */
class Dirty_page_ages {
 public:
  /** Add a sample.
  @param[in]  sample  the flush lists now */
  void add_sample(const Dirty_page_sample &sample) {
    if (is_another_redo_log(sample)) {
      /* The ages of the pages are unknown. */
      *this = {};
      m_last = sample;
      m_sync_age = sample.sync_age;
      m_bucket_bytes =
          std::max<uint64_t>(1, sample.sync_age / DIRTY_PAGE_BUCKETS);
      add_evenly(sample.oldest_lsn, static_cast<double>(sample.n_dirty));
      return;
    }
    const double n_written = counter_growth(m_last.n_written, sample.n_written);
    /* Negative if pages were dropped with their table. */
    const double n_made = static_cast<double>(sample.n_dirty) -
                          static_cast<double>(m_last.n_dirty) + n_written;
    m_n_lru += counter_growth(m_last.n_lru_flushed, sample.n_lru_flushed);
    const double n_lru = std::min(n_written, m_n_lru);
    m_n_lru = std::min(m_n_lru - n_lru, static_cast<double>(sample.n_dirty));
    remove_oldest(n_written - n_lru);
    const uint64_t last_lsn = m_last.lsn;
    const uint64_t last_first = first();
    m_last = sample;
    for (uint64_t i = last_first; i < first(); ++i) {
      pages_of(i) = 0.0;
    }
    for (uint64_t i = bucket_of(last_lsn) + 1; i <= bucket_of(sample.lsn);
         ++i) {
      pages_of(i) = 0.0;
    }
    add_evenly(last_lsn, std::max(0.0, n_made));
    scale_to_total();
  }

  /** Max redo generation for each flushed page, so that all pages are flushed
  before they are too old. Pages are flushed from the oldest on. The page with
  the most pages before it, relative to the age that it has left to the limit,
  decides.
  @param[in]  limit  max age of a page, including the margin: bytes of LSN
  @return bytes of redo for each flushed page; 0 if a page is beyond the limit;
  infinity if no page is dirty */
  double bytes_per_page(double limit) const {
    double lowest = std::numeric_limits<double>::infinity();
    double n = 0.0;
    for (uint64_t i = first(); i <= bucket_of(m_last.lsn); ++i) {
      n += m_pages[i % N_KEPT];
      if (n > 0.0) {
        const uint64_t end = std::min(m_last.lsn, (i + 1) * m_bucket_bytes);
        const uint64_t reported_lsn = std::min(
            m_last.lsn, std::max(m_last.oldest_lsn,
                                 end - std::min(end, m_last.lsn_disorder)));
        const double age = static_cast<double>(m_last.lsn - reported_lsn);
        lowest = std::min(lowest, std::max(0.0, limit - age) / n);
      }
    }
    return lowest;
  }

 private:
  /** Number of buckets that are kept. A redo log needs fewer, unless it is so
  small that hardly any of it may be filled before sync flushing. Older pages
  count in the oldest bucket. */
  static constexpr uint64_t N_KEPT = 2 * DIRTY_PAGE_BUCKETS;

  /** @return whether this is the first sample, or the size of the redo log has
  changed. The margin for threads (log_free_check_margin()) changes the sync
  age, too: with innodb_thread_concurrency, by less than a quarter, except in
  the smallest redo log. For that one a false alarm costs a second of evenly
  spread pages */
  bool is_another_redo_log(const Dirty_page_sample &sample) const {
    return sample.sync_age < m_sync_age - m_sync_age / 4 ||
           sample.sync_age > m_sync_age + m_sync_age / 4 ||
           sample.lsn < m_last.lsn ||
           bucket_of(sample.lsn) - bucket_of(m_last.lsn) >= N_KEPT;
  }

  uint64_t bucket_of(uint64_t lsn) const { return lsn / m_bucket_bytes; }

  double &pages_of(uint64_t bucket) { return m_pages[bucket % N_KEPT]; }

  /** @return the oldest bucket that can have pages */
  uint64_t first() const {
    const uint64_t last = bucket_of(m_last.lsn);
    return std::max(std::min(last, bucket_of(m_last.oldest_lsn)),
                    last - std::min(last, N_KEPT - 1));
  }

  /** Pages became dirty, evenly from an LSN to the end of the redo log. */
  void add_evenly(uint64_t from, double n) {
    const uint64_t last = bucket_of(m_last.lsn);
    const uint64_t begin =
        std::max(std::min(from, m_last.lsn), first() * m_bucket_bytes);
    const double bytes = static_cast<double>(m_last.lsn - begin);
    if (bytes == 0.0) {
      pages_of(last) += n;
      return;
    }
    for (uint64_t i = bucket_of(begin); i <= last; ++i) {
      const uint64_t bucket_begin = std::max(begin, i * m_bucket_bytes);
      const uint64_t bucket_end =
          std::min(m_last.lsn, (i + 1) * m_bucket_bytes);
      pages_of(i) += n * static_cast<double>(bucket_end - bucket_begin) / bytes;
    }
  }

  /** Pages were written, from the oldest on. */
  void remove_oldest(double n) {
    for (uint64_t i = first(); i <= bucket_of(m_last.lsn) && n > 0.0; ++i) {
      const double taken = std::min(n, pages_of(i));
      pages_of(i) -= taken;
      n -= taken;
    }
  }

  /** Scale the histogram to the number of dirty pages, with none before the
  oldest: pages are also written from the LRU lists, and dropped with their
  table. */
  void scale_to_total() {
    double sum = 0.0;
    for (uint64_t i = first(); i <= bucket_of(m_last.lsn); ++i) {
      sum += pages_of(i);
    }
    const auto n_dirty = static_cast<double>(m_last.n_dirty);
    if (sum <= 0.0) {
      add_evenly(m_last.oldest_lsn, n_dirty);
      return;
    }
    for (uint64_t i = first(); i <= bucket_of(m_last.lsn); ++i) {
      pages_of(i) *= n_dirty / sum;
    }
  }

  Dirty_page_sample m_last{};
  uint64_t m_bucket_bytes{1};

  /** Pages by the bucket of their first change, modulo N_KEPT. */
  std::array<double, N_KEPT> m_pages{};

  /** Sync age that the buckets were made for: bytes of LSN. */
  uint64_t m_sync_age{0};

  /** Pages of the LRU lists that are being written. */
  double m_n_lru{0.0};
};

}  // namespace spw

#endif /* flush0list_h */
