/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file unittest/flush/flush_simulator.h
Simulates a buffer pool, a redo log, clients and a device in accelerated time,
with the flush policies or InnoDB's page cleaner. Clients are simulated one by
one, and are throttled as in throttle0session.cc. Pages are expected values:
counted by how often they are changed and by when they became dirty, so that a
pool of 1 TB is as quick as one of 1 GB. */

#ifndef flush_simulator_h
#define flush_simulator_h

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "flush/policy/flush0capacity.h"
#include "flush/policy/flush0controller.h"
#include "flush/policy/flush0method.h"
#include "flush/policy/flush0util.h"
#include "throttle/policy/throttle0queue.h"

namespace spw {

/** A device that processes its I/Os one after the other. */
struct Sim_device {
  const char *name;

  /** I/Os/s, and bytes/s. */
  double iops;
  double bytes_per_s;

  /** Time of an I/O on the idle device: seconds. */
  double latency_s;
};

/* A mirror writes like one of its disks. */
constexpr Sim_device SIM_DISK{"mirror-7200rpm", 150.0, 120e6, 8e-3};
constexpr Sim_device SIM_CLOUD_SMALL{"cloud-600", 600.0, 12e6, 1e-3};
constexpr Sim_device SIM_CLOUD{"cloud-1500", 1500.0, 30e6, 1e-3};
constexpr Sim_device SIM_SATA{"sata-ssd", 20e3, 400e6, 2e-4};
constexpr Sim_device SIM_NVME{"nvme", 1e6, 6e9, 2e-5};

constexpr Sim_device SIM_DEVICES[] = {SIM_DISK, SIM_CLOUD_SMALL, SIM_CLOUD,
                                      SIM_SATA, SIM_NVME};

/** Pages that are changed equally often. */
struct Sim_pages {
  double n;

  /** Fraction of all changes. */
  double fraction;
};

constexpr double SIM_PAGE_BYTES = 16384.0;

/** Speed of a volume while it has I/Os saved up, as a multiple of its figures.
 */
constexpr double SIM_BURST_SPEED = 3.0;

/** Input of a simulation. */
struct Sim_setup {
  Sim_device device;
  double pool_bytes{1e9};
  std::array<Sim_pages, 2> pages{{{10e3, 0.5}, {50e3, 0.5}}};

  /** A transaction: row changes, redo in bytes, processor time. Max
  transactions/s of the processors. */
  unsigned changes{5};
  double redo_bytes{3000.0};
  double cpu_s{0.5e-3};
  double cpu_max{4000.0};

  unsigned n_clients{32};

  /** One more client inserts rows of this size into new pages, one after the
  other: bytes; 0 for none. */
  double blob_bytes{0.0};

  /** One more client has a transaction that does not end and changes this many
  rows a second, if it is not delayed. */
  double huge_changes_per_s{0.0};

  /** Transactions/s that arrive, over time; they wait for an idle client.
  Without it, each client begins a transaction when its last has ended. */
  std::function<double(double)> arrivals{};

  /** Speed of the device, as a multiple of its figures, over time. */
  std::function<double(double)> speed{};

  /** Time that a batch of the flush lists takes whatever its size, over time:
  seconds. The device writes the redo log meanwhile. */
  std::function<double(double)> batch_s{};

  /** Time of a seek over the whole disk: seconds. Pages of a batch are written
  in the order of their places, so that with n pages a seek takes this time over
  sqrt(n): a seek takes the root of the distance (Ruemmler and Wilkes, 1994). */
  double seek_s{0.0};

  /** I/Os that the device has saved up and carries at SIM_BURST_SPEED, as a
  cloud volume does; it saves what its figures allow and is not used. */
  double burst_ios{0.0};

  /** Size of the redo log, from which InnoDB's limits follow: bytes. */
  double redo_capacity{64.0 * 1024 * 1024};

  bool is_doublewrite{true};

  /** Additional I/Os of a flush-list batch: an fsync() of the doublewrite file
  and of each file that it has written to. */
  double batch_ios{9.0};

  /** Time of an fsync(), of data files and of the redo log, beside that of an
  I/O: seconds. The device writes nothing meanwhile. */
  double fsync_s{0.0};

  /** There are rounds if it is on, or the method is not native. */
  Flush_settings settings{.is_on = true};
  Flush_device flush_device{Flush_device::LATENCY};

  /** innodb_adaptive_flushing. */
  bool is_adaptive{true};
  Flush_method method{Flush_method::NATIVE};

  /** innodb_ahead_flushing_max_delay_us. */
  unsigned long max_delay_us{500'000};

  /** Changes/s of purge, over time. It is not throttled, and requests flushing
  after each batch. */
  std::function<double(double)> purges{};

  /** Dirty pages/s at the end of the LRU lists whose frames are needed. They
  are of all ages. */
  double lru_per_s{0.0};

  /** Fraction of the changes whose page is not in the buffer pool: it is read
  into the frame of another one, which is dirty as often as pages are. */
  double miss_fraction{0.0};
};

/** A working set. */
struct Sim_working_set {
  const char *name;
  std::array<Sim_pages, 2> pages;
};

constexpr Sim_working_set SIM_WORKING_SETS[] = {
    {"small", {{{28e3, 1.0}, {}}}},
    {"hot and cold", {{{1e3, 0.5}, {100e3, 0.5}}}},
    {"large", {{{500e3, 1.0}, {}}}}};

/** @return a load of sysbench's oltp_write_only, with ahead flushing as
docs/guide/steady-flushing.md recommends it for a volume */
inline Sim_setup sim_volume(const Sim_device &device,
                            const Sim_working_set &set) {
  Sim_setup setup{.device = device};
  setup.pool_bytes = 16.0 * 1024 * 1024 * 1024;
  setup.pages = set.pages;
  return setup;
}

/** Result of a second. */
struct Sim_second {
  double transactions;

  /** Oldest page age over the sync age. */
  double oldest_page_age;

  /** Dirty pages: percent of the buffer pool. */
  double dirty_pct;

  /** Pages submitted from the flush lists; pages written. */
  double flushed;
  double written;

  /** Transactions that have arrived and wait at its end. */
  double waiting;

  /** Rows of the client that inserts large ones. */
  double blobs;
};

/** Result of a simulation. */
struct Sim_result {
  std::vector<Sim_second> seconds;

  /** Seconds of sync flushing; seconds in which sessions wait for redo space.
   */
  double sync_s{0.0};
  double stopped_s{0.0};

  /** Maximum wait of an LRU page for its submission: seconds. */
  double lru_wait_s{0.0};

  /** Maximum delay of a transaction: seconds. */
  double delay_s{0.0};

  double mean() const {
    double sum = 0.0;
    for (const Sim_second &second : seconds) {
      sum += second.transactions;
    }
    return seconds.empty() ? 0.0 : sum / static_cast<double>(seconds.size());
  }

  /** @return the worst second over the mean */
  double worst() const {
    double worst = mean();
    for (const Sim_second &second : seconds) {
      worst = std::min(worst, second.transactions);
    }
    return mean() == 0.0 ? 0.0 : worst / mean();
  }

  /** @return the highest less the lowest oldest page age, over the sync age */
  double age_range() const {
    double min = seconds.empty() ? 0.0 : seconds.front().oldest_page_age;
    double max = min;
    for (const Sim_second &second : seconds) {
      min = std::min(min, second.oldest_page_age);
      max = std::max(max, second.oldest_page_age);
    }
    return max - min;
  }
};

/** A simulation. */
class Flush_simulation {
 public:
  explicit Flush_simulation(const Sim_setup &setup)
      : m_setup(setup),
        m_settings(setup.settings),
        m_clients(setup.n_clients + (setup.blob_bytes > 0.0 ? 1 : 0) +
                  (setup.huge_changes_per_s > 0.0 ? 1 : 0)) {
    m_settings.is_limited_by_device =
        m_settings.is_on && setup.flush_device == Flush_device::LATENCY;
    m_settings.is_io_capacity_default =
        m_settings.io_capacity == FLUSH_DEFAULTS.io_capacity &&
        m_settings.io_capacity_max == FLUSH_DEFAULTS.io_capacity_max;
    m_has_rounds = m_settings.is_on || setup.method != Flush_method::NATIVE;
    for (size_t i = 0; i < setup.pages.size(); ++i) {
      m_clean[i] = setup.pages[i].n;
    }
    if (setup.blob_bytes > 0.0) {
      m_clients[setup.n_clients].is_blob = true;
    }
    m_clients.back().is_huge = setup.huge_changes_per_s > 0.0;
    /* Source: log0constants.h, log0files_capacity.cc. */
    const double hard = setup.redo_capacity * 30.0 / 32.0;
    const double soft = hard * 0.95;
    m_sync_age = soft * 15.0 / 16.0;
    m_max_age = soft;
    m_aggressive_age = soft * 31.0 / 32.0;
  }

  /** Continue the simulation.
  @param[in]  seconds  duration: whole seconds
  @return the result of that time */
  Sim_result run(unsigned seconds) {
    Sim_result result;
    m_lru_wait_s = 0.0;
    m_delay_ns = 0;
    for (unsigned i = 0; i < seconds; ++i) {
      Sim_second second{};
      for (unsigned j = 0; j < TICKS_PER_S; ++j) {
        result.sync_s += m_is_sync ? TICK_S : 0.0;
        result.stopped_s += is_stopped() ? TICK_S : 0.0;
        tick(&second);
      }
      second.oldest_page_age = oldest_page_age() / m_sync_age;
      second.dirty_pct = dirty_pct();
      second.waiting = m_waiting;
      result.seconds.push_back(second);
    }
    result.lru_wait_s = m_lru_wait_s;
    result.delay_s = 1e-9 * static_cast<double>(m_delay_ns);
    return result;
  }

  /** @return device write capacity, as measured: pages/s */
  double capacity() const { return m_capacity.limit_per_s(); }

 private:
  static constexpr unsigned TICKS_PER_S = 1000;
  static constexpr double TICK_S = 1.0 / TICKS_PER_S;
  static constexpr int64_t TICK_NS = 1'000'000'000 / TICKS_PER_S;

  /** Time between checkpoints: while the server is busy, and when one is
  requested (log0chkp.cc). */
  static constexpr double CHECKPOINT_BUSY_S = 7.0;
  static constexpr double CHECKPOINT_MIN_S = 1.0;

  /** InnoDB scans for the pages of the redo of this time
  (buf_flush_lsn_scan_factor). */
  static constexpr double SCAN_S = 3.0;

  /** Duration of a purge batch. */
  static constexpr uint64_t PURGE_TICKS = 50;

  /** Those of Sim_setup::pages, and new pages. */
  static constexpr size_t N_KINDS = 3;
  static constexpr size_t NEW_PAGES = 2;

  /** Ticks of a group. */
  static constexpr uint64_t GROUP_TICKS = THROTTLE_GROUP_NS / TICK_NS;

  /** Work of a row of blob_bytes, as a multiple of a transaction's. */
  static constexpr double BLOB_WORK = 20.0;

  /** A client: whether it is delayed, and since when; changes and fraction of
  work that its transaction has left; the redo since the last charge. */
  struct Client {
    bool is_blob{false};
    bool is_huge{false};
    bool is_delayed{false};
    int64_t delayed_ns{0};
    unsigned n_left{0};
    double work_left{0.0};
    double uncharged_bytes{0.0};
  };

  /** Pages that became dirty within this number of ticks are kept together. */
  static constexpr uint64_t COHORT_TICKS = 10;

  /** Pages that became dirty at about the same time: of each kind, and their
  sum. */
  struct Cohort {
    double lsn;
    std::array<double, N_KINDS> n;
    double sum;
  };

  /** Default of innodb_buf_flush_list_added_size. */
  static constexpr double ORDER_LAG = 2.0 * 1024 * 1024;

  /** First change of the oldest dirty page. */
  double oldest_lsn() const {
    return m_dirty.empty() ? m_lsn : m_dirty.front().lsn;
  }

  /** Oldest page age, as far as InnoDB knows it. */
  double oldest_page_age() const {
    return m_dirty.empty()
               ? 0.0
               : m_lsn - std::max(m_checkpoint_lsn, oldest_lsn() - ORDER_LAG);
  }

  bool is_stopped() const { return m_lsn - m_checkpoint_lsn > m_max_age; }

  double page_cost_s() const {
    const double times = m_setup.is_doublewrite ? 2.0 : 1.0;
    return std::max(1.0 / m_setup.device.iops,
                    times * SIM_PAGE_BYTES / m_setup.device.bytes_per_s) +
           m_setup.seek_s / std::sqrt(std::max(1.0, m_in_flight));
  }

  /** Duration of a redo write, which queues behind all other writes: seconds.
   */
  double commit_s() const {
    return (m_batch_left_s > 0.0
                ? m_lru_in_flight * page_cost_s()
                : m_in_flight * page_cost_s() + m_batch_due_s) +
           m_setup.device.latency_s + 1.0 / m_setup.device.iops +
           m_setup.fsync_s;
  }

  void tick(Sim_second *second) {
    m_lru_due += m_setup.lru_per_s * TICK_S;
    flush(second);
    purge();
    if (m_n_ticks % GROUP_TICKS == 0) {
      m_queue.advance(m_now_ns);
      (void)m_queue.take_served();
    }
    const auto done = static_cast<double>(transact(second));
    write(done, second);
    checkpoint();
    second->transactions += done;
    m_now_s = static_cast<double>(++m_n_ticks) * TICK_S;
    m_now_ns += TICK_NS;
  }

  /** @return transactions that have ended in this tick */
  unsigned transact(Sim_second *second) {
    m_cpu = std::min(m_cpu + m_setup.cpu_max * TICK_S,
                     1.0 + m_setup.cpu_max * TICK_S);
    if (m_setup.arrivals) {
      m_waiting += m_setup.arrivals(m_now_s) * TICK_S;
    }
    m_n_changes = 0.0;
    const double work_s = m_setup.cpu_s + commit_s();
    unsigned n_done = 0;
    unsigned n_blobs = 0;
    for (size_t i = 0; i < m_clients.size(); ++i) {
      Client *const client = &m_clients[(m_n_ticks + i) % m_clients.size()];
      if (client->is_huge) {
        change_many(client);
        continue;
      }
      (client->is_blob ? n_blobs : n_done) += go_on(client, work_s);
    }
    second->blobs += n_blobs;
    change(m_n_changes);
    m_n_reads += m_setup.miss_fraction * m_n_changes;
    m_lru_due += m_setup.miss_fraction * m_n_changes * 0.01 * dirty_pct();
    insert_pages(n_blobs);
    return n_done;
  }

  /** The client with the endless transaction works for a tick. */
  void change_many(Client *client) {
    if (is_stopped() || is_delayed(client, m_now_ns)) {
      return;
    }
    const double n = m_setup.huge_changes_per_s * TICK_S;
    m_n_changes += n;
    client->uncharged_bytes += n * m_setup.redo_bytes / m_setup.changes;
    if (client->uncharged_bytes >= THROTTLE_CHARGE_BYTES) {
      charge(client, m_now_ns);
      delay(client, m_now_ns);
    }
  }

  /** A client works for a tick. Its transaction is one statement. It is delayed
  before the statement, and after each batch of changes, and charged when the
  statement ends, as in throttle0session.cc.
  @param[in,out]  client  the client
  @param[in]      work_s  present duration of a transaction: seconds
  @return its transactions that have ended */
  unsigned go_on(Client *client, double work_s) {
    unsigned n_done = 0;
    for (int64_t ns = m_now_ns; ns < m_now_ns + TICK_NS;) {
      if (client->is_delayed) {
        if (is_delayed(client, ns)) {
          break;
        }
        make_changes(client, ns);
      } else if (client->work_left > 0.0) {
        const auto work_ns = static_cast<int64_t>(1e9 * work_s);
        const auto remaining_ns =
            static_cast<int64_t>(client->work_left * 1e9 * work_s);
        if (ns + remaining_ns >= m_now_ns + TICK_NS) {
          client->work_left -= static_cast<double>(m_now_ns + TICK_NS - ns) /
                               static_cast<double>(work_ns);
          break;
        }
        ns += remaining_ns;
        client->work_left = 0.0;
        charge(client, ns);
        ++n_done;
      } else {
        if (is_stopped() || m_cpu < 1.0 ||
            (m_setup.arrivals && m_waiting < 1.0)) {
          break;
        }
        m_cpu -= 1.0;
        m_waiting -= m_setup.arrivals ? 1.0 : 0.0;
        client->n_left = client->is_blob ? 1 : m_setup.changes;
        client->work_left = client->is_blob ? BLOB_WORK : 1.0;
        delay(client, ns);
        make_changes(client, ns);
      }
    }
    return n_done;
  }

  /** A client makes the remaining changes of its transaction until it is
  delayed. */
  void make_changes(Client *client, int64_t now_ns) {
    while (client->n_left != 0 && !client->is_delayed) {
      --client->n_left;
      if (client->is_blob) {
        client->uncharged_bytes += m_setup.blob_bytes;
        return;
      }
      ++m_n_changes;
      client->uncharged_bytes += m_setup.redo_bytes / m_setup.changes;
      if (client->uncharged_bytes >= THROTTLE_CHARGE_BYTES) {
        charge(client, now_ns);
        delay(client, now_ns);
      }
    }
  }

  /** @return whether a client is still delayed */
  bool is_delayed(Client *client, int64_t now_ns) {
    if (client->is_delayed) {
      const uint64_t id = id_of(client);
      if (m_queue.is_waiting(id)) {
        if (now_ns < m_queue.deadline_ns(id)) {
          return true;
        }
        m_queue.forgive(id);
      }
      client->is_delayed = false;
      m_delay_ns = std::max(m_delay_ns, now_ns - client->delayed_ns);
    }
    return false;
  }

  /** Delay a client if it has to wait. */
  void delay(Client *client, int64_t now_ns) {
    client->is_delayed =
        1e9 * m_queue.remaining_s(id_of(client)) >= THROTTLE_GROUP_NS;
    client->delayed_ns = now_ns;
  }

  /** Charge a client for its redo. */
  void charge(Client *client, int64_t now_ns) {
    const double bytes = std::exchange(client->uncharged_bytes, 0.0);
    if (m_decision.session_redo_bytes_per_s == FLUSH_UNLIMITED ||
        bytes == 0.0) {
      return;
    }
    m_charged_bytes += bytes;
    const uint64_t id = id_of(client);
    m_queue.charge(now_ns, id, bytes);
    m_queue.set_deadline(id,
                         now_ns + throttle_max_wait_ns(m_setup.max_delay_us,
                                                       m_queue.bytes_of(id)));
  }

  uint64_t id_of(const Client *client) const {
    return static_cast<uint64_t>(client - m_clients.data());
  }

  /** Insert rows of blob_bytes. */
  void insert_pages(double n_rows) {
    if (n_rows > 0.0) {
      const double bytes = n_rows * m_setup.blob_bytes;
      const double n_pages = bytes / SIM_PAGE_BYTES;
      if (m_dirty.empty()) {
        m_dirty.push_back({m_lsn, {}, 0.0});
      }
      m_lsn += bytes;
      m_n_dirty += n_pages;
      m_dirty.back().n[NEW_PAGES] += n_pages;
      m_dirty.back().sum += n_pages;
    }
  }

  void purge() {
    if (!m_setup.purges || is_stopped()) {
      return;
    }
    change(m_setup.purges(m_now_s) * TICK_S);
    if (m_n_ticks % PURGE_TICKS == 0) {
      m_purge_asks =
          std::max(m_purge_asks, purge_request_rate(m_settings, add_sample()));
    }
  }

  /** Change rows. */
  void change(double n_changes) {
    if (n_changes <= 0.0) {
      return;
    }
    if (m_dirty.empty() || m_n_ticks % COHORT_TICKS == 0) {
      m_dirty.push_back({m_lsn, {}, 0.0});
    }
    Cohort &cohort = m_dirty.back();
    m_lsn += n_changes * m_setup.redo_bytes / m_setup.changes;
    for (size_t i = 0; i < m_setup.pages.size(); ++i) {
      if (m_setup.pages[i].n > 0.0) {
        const double n =
            m_clean[i] * -std::expm1(-n_changes * m_setup.pages[i].fraction /
                                     m_setup.pages[i].n);
        m_clean[i] -= n;
        m_n_dirty += n;
        cohort.n[i] += n;
        cohort.sum += n;
      }
    }
  }

  /** The device works for a tick. */
  void write(double done, Sim_second *second) {
    const bool was_writing = is_writing();
    const double latency_s = std::min(TICK_S, m_batch_left_s);
    m_batch_left_s -= latency_s;
    const double speed = m_setup.speed ? m_setup.speed(m_now_s) : 1.0;
    const bool is_burst = m_saved_s > 0.0;
    const double time_s = speed * TICK_S * (is_burst ? SIM_BURST_SPEED : 1.0);
    double left_s = time_s;
    /* Group commit: transactions that commit meanwhile share a redo write. */
    const double n_redo_writes = std::min(done, TICK_S / commit_s());
    left_s -= n_redo_writes * (1.0 / m_setup.device.iops + m_setup.fsync_s) +
              (m_lsn - std::exchange(m_written_lsn, m_lsn)) /
                  m_setup.device.bytes_per_s;
    m_n_ios += n_redo_writes + m_n_reads;
    left_s -= std::exchange(m_n_reads, 0.0) / m_setup.device.iops;
    const double batch_s =
        std::clamp(left_s, 0.0, latency_s < TICK_S ? m_batch_due_s : 0.0);
    left_s -= batch_s;
    m_batch_due_s -= batch_s;
    const double n =
        std::min(latency_s < TICK_S ? m_in_flight : m_lru_in_flight,
                 std::max(left_s, 0.0) / page_cost_s());
    m_in_flight -= n;
    m_n_ios += n;
    left_s -= n * page_cost_s();
    const double used =
        time_s > 0.0 ? std::min(1.0, 1.0 - left_s / time_s) : 1.0;
    m_busy_s += TICK_S * used;
    m_saved_s = std::clamp(m_saved_s + TICK_S * speed - (time_s - left_s), 0.0,
                           m_setup.burst_ios / m_setup.device.iops);
    second->written += n;
    const double of_lru = std::min(n, m_lru_in_flight);
    m_lru_in_flight -= of_lru;
    retire(n - of_lru);
    retire_any(of_lru);
    if (was_writing && !is_writing()) {
      m_batch.end_s = m_now_s + TICK_S * used;
      m_capacity.add(std::exchange(m_batch, {}));
    }
  }

  /** Pages of the flush lists are written, from the oldest on. */
  void retire(double n) {
    m_n_retired += n;
    while (n > 0.0 && !m_dirty.empty()) {
      Cohort &oldest = m_dirty.front();
      const double taken = std::min(n, oldest.sum);
      const double fraction = oldest.sum > 0.0 ? taken / oldest.sum : 1.0;
      for (size_t i = 0; i < N_KINDS; ++i) {
        m_clean[i] += oldest.n[i] * fraction;
        oldest.n[i] -= oldest.n[i] * fraction;
      }
      oldest.sum -= taken;
      m_n_dirty -= taken;
      n -= taken;
      if (fraction >= 1.0) {
        m_dirty.pop_front();
      }
    }
  }

  /** Pages of the LRU lists are written, of all ages. */
  void retire_any(double n) {
    if (n <= 0.0 || m_n_dirty <= 0.0) {
      return;
    }
    m_n_retired += n;
    const double fraction = std::min(1.0, n / m_n_dirty);
    for (Cohort &cohort : m_dirty) {
      for (size_t i = 0; i < N_KINDS; ++i) {
        m_clean[i] += cohort.n[i] * fraction;
        cohort.n[i] -= cohort.n[i] * fraction;
      }
      cohort.sum -= cohort.sum * fraction;
    }
    m_n_dirty -= m_n_dirty * fraction;
  }

  /** @return whether pages of the flush lists are being written */
  bool is_writing() const {
    return m_in_flight > m_lru_in_flight || m_batch_due_s > 0.0 ||
           m_batch_left_s > 0.0;
  }

  void checkpoint() {
    const double oldest = m_lsn - oldest_page_age();
    const double passed_s = m_now_s - m_checkpoint_s;
    if (m_lsn - m_checkpoint_lsn >= m_aggressive_age ||
        passed_s >= CHECKPOINT_BUSY_S ||
        (m_decision.wants_checkpoint && passed_s >= CHECKPOINT_MIN_S)) {
      m_checkpoint_lsn = oldest;
      m_checkpoint_s = m_now_s;
    }
  }

  /** Submit pages: none while the last ones are being written, as InnoDB has
  one batch at a time. */
  void submit(double n, double lsn_limit, Sim_second *second) {
    /* Each pass of the page cleaners flushes for the LRU lists first. */
    m_lru_wait_s =
        std::max(m_lru_wait_s,
                 m_setup.lru_per_s > 0.0 ? m_lru_due / m_setup.lru_per_s : 0.0);
    m_lru_in_flight += m_lru_due;
    m_batch.n_pages += static_cast<uint64_t>(m_lru_due);
    m_n_flushed += m_lru_due;
    m_in_flight += m_lru_due;
    m_n_lru += m_lru_due;
    m_lru_due = 0.0;
    if (is_writing() || m_dirty.empty()) {
      return;
    }
    double available = 0.0;
    for (const Cohort &cohort : m_dirty) {
      if (cohort.lsn >= lsn_limit || available >= n) {
        break;
      }
      available += cohort.sum;
    }
    n = std::min(n, available);
    if (n > 0.0) {
      m_batch.begin_s = m_now_s;
      m_batch_left_s = m_setup.batch_s ? m_setup.batch_s(m_now_s) : 0.0;
      const double sync_s =
          m_setup.batch_ios * (1.0 / m_setup.device.iops + m_setup.fsync_s);
      m_batch_due_s += sync_s;
      m_sync_s += sync_s;
      m_n_ios += m_setup.batch_ios;
      m_n_fsyncs += m_setup.batch_ios;
    }
    m_in_flight += n;
    m_n_flushed += n;
    second->flushed += n;
    m_batch.n_pages += static_cast<uint64_t>(n);
  }

  /** The page cleaners' coordinator. */
  void flush(Sim_second *second) {
    m_is_sync = oldest_page_age() > m_sync_age;
    if (m_is_sync) {
      if (m_in_flight <= 0.0) {
        /* Enough for the redo space that is needed, and for SCAN_S more. */
        submit(std::max(m_settings.io_capacity,
                        std::min(2.0 * m_settings.io_capacity_max,
                                 n_older_than(m_lsn - m_sync_age + ORDER_LAG +
                                              SCAN_S * m_lsn_avg))),
               m_lsn, second);
      }
      if (m_has_rounds) {
        decide();
      }
      return;
    }
    if (m_now_s >= m_next_adaptive_s) {
      m_next_adaptive_s = m_now_s + 1.0;
      const double n_adaptive = recommended_by_adaptive();
      if (m_has_rounds) {
        const Flush_sample now = add_sample();
        m_method.add_sample(m_setup.method,
                            {.now_s = now.now_s,
                             .n_adaptive = static_cast<uint64_t>(n_adaptive),
                             .n_dirty = now.n_dirty,
                             .lsn = now.lsn,
                             .oldest_lsn = now.oldest_lsn,
                             .sync_age = now.sync_age,
                             .n_flushed = static_cast<uint64_t>(m_n_flushed),
                             .dirty_pct = dirty_pct(),
                             .max_dirty_pct = m_settings.max_dirty_pct,
                             .is_ahead_on = m_settings.is_on,
                             .is_adaptive = m_setup.is_adaptive,
                             .is_logging = true});
        submit(0.0, m_lsn, second);
      } else {
        submit(n_adaptive, m_lsn, second);
      }
    }
    if (m_has_rounds && m_now_s >= m_next_round_s) {
      decide();
      m_next_round_s = m_now_s + m_decision.next_tick_s;
      const double flushed = second->flushed;
      if (m_decision.n_pages != 0) {
        submit(static_cast<double>(m_decision.n_pages),
               static_cast<double>(m_decision.lsn_limit), second);
        m_batch.is_probe = m_decision.is_probe;
        m_batch.is_limited = m_settings.is_limited_by_device;
        m_batch.demand_exceeds_limit = flush_was_at_device(
            m_decision, static_cast<uint64_t>(second->flushed - flushed));
      }
    }
  }

  /** @return the state of the buffer pool and the redo log */
  Flush_sample add_sample() const {
    return {
        .now_s = m_now_s,
        .n_dirty = static_cast<uint64_t>(m_n_dirty),
        .n_pages = static_cast<uint64_t>(m_setup.pool_bytes / SIM_PAGE_BYTES),
        .lsn = static_cast<uint64_t>(m_lsn),
        .oldest_lsn = static_cast<uint64_t>(m_lsn - oldest_page_age()),
        .checkpoint_lsn = static_cast<uint64_t>(m_checkpoint_lsn),
        .lsn_disorder = static_cast<uint64_t>(ORDER_LAG),
        .sync_age = static_cast<uint64_t>(m_sync_age),
        .n_written = static_cast<uint64_t>(m_n_retired),
        .n_lru_flushed = static_cast<uint64_t>(m_n_lru),
        .charged_bytes = static_cast<uint64_t>(m_charged_bytes),
        .n_fsyncs = static_cast<uint64_t>(m_n_fsyncs),
        .sync_s = m_sync_s};
  }

  void decide() {
    Flush_sample now = add_sample();
    now.adaptive_per_s = m_method.pages_per_s(m_now_s);
    now.adaptive_scales_with_io_capacity =
        m_setup.method == Flush_method::NATIVE;
    now.is_writing = is_writing();
    now.purge_per_s = m_purge_asks;
    now.device_per_s = m_capacity.limit_per_s();
    now.device_interval_s = m_capacity.interval_s();
    now.wants_probe = m_capacity.wants_probe(m_now_s);
    now.is_device_measured = m_capacity.pages_per_s() != 0.0;
    if (m_setup.flush_device == Flush_device::UTIL && m_util.is_due(m_now_s)) {
      m_util.add_sample(m_now_s,
                        {{static_cast<uint64_t>(1e3 * m_busy_s),
                          static_cast<uint64_t>(m_n_ios)}},
                        static_cast<uint64_t>(m_n_flushed), now.adaptive_per_s,
                        m_settings.io_capacity);
    }
    now.util_per_s = m_util.extra_per_s();
    m_decision = m_policy.decide(m_settings, now);
    if (m_decision.is_round) {
      m_purge_asks = 0.0;
    }
    m_queue.set_rate(m_now_ns, m_decision.session_redo_bytes_per_s);
  }

  double dirty_pct() const {
    return 100.0 * m_n_dirty * SIM_PAGE_BYTES / m_setup.pool_bytes;
  }

  /** @return dirty pages whose first change is before an LSN */
  double n_older_than(double lsn) const {
    double n = 0.0;
    for (const Cohort &cohort : m_dirty) {
      if (cohort.lsn > lsn) {
        break;
      }
      n += cohort.sum;
    }
    return n;
  }

  /** @return pages/s that InnoDB's formula recommends (buf0flu.cc). Its
  averages are of 30 rounds; here exponential ones decay as slowly */
  double recommended_by_adaptive() {
    const Flush_settings &set = m_settings;
    m_lsn_avg += (m_lsn - m_adaptive_lsn - m_lsn_avg) / 30.0;
    m_adaptive_lsn = m_lsn;
    const double dirty = dirty_pct();
    const double f = 100.0 * (m_lsn - oldest_lsn()) / m_sync_age;
    const double pct_lsn =
        f < 10.0 || !m_setup.is_adaptive
            ? 0.0
            : std::floor(set.io_capacity_max / set.io_capacity) * f *
                  std::sqrt(f) / 7.5;
    const double pct = std::max(dirty >= 10.0 ? dirty / 0.91 : 0.0, pct_lsn);
    const double n =
        (pct / 100.0 * set.io_capacity + m_page_avg +
         std::min(n_older_than(oldest_lsn() + SCAN_S * m_lsn_avg) / SCAN_S,
                  2.0 * set.io_capacity_max)) /
        3.0;
    m_page_avg += (n - m_page_avg) / 30.0;
    return std::min(n, set.io_capacity_max);
  }

  const Sim_setup m_setup;
  Flush_settings m_settings;
  bool m_has_rounds;
  double m_sync_age;
  double m_max_age;
  double m_aggressive_age;

  Ahead_flush m_policy;
  Adaptive_method m_method;
  Flush_capacity m_capacity;
  Flush_util m_util;
  Flush_decision m_decision;

  uint64_t m_n_ticks{0};
  double m_now_s{0.0};
  int64_t m_now_ns{0};
  double m_next_round_s{0.0};
  double m_next_adaptive_s{0.0};
  double m_purge_asks{0.0};
  bool m_is_sync{false};

  /** Clean pages of each kind; dirty pages, from the oldest on. */
  std::array<double, N_KINDS> m_clean;
  std::deque<Cohort> m_dirty;
  double m_n_dirty{0.0};

  double m_lsn{1e6};
  double m_written_lsn{1e6};
  double m_checkpoint_lsn{1e6};
  double m_checkpoint_s{0.0};

  /** Row changes of this tick, without those of blob_bytes; redo that clients
  were charged. */
  double m_n_changes{0.0};
  double m_n_reads{0.0};
  double m_charged_bytes{0.0};
  Throttle_queue m_queue;

  std::vector<Client> m_clients;
  int64_t m_delay_ns{0};

  /** Transactions that the processors have time for; transactions that wait. */
  double m_cpu{0.0};
  double m_waiting{0.0};

  /** InnoDB's averages: bytes/s and pages/s. */
  double m_adaptive_lsn{1e6};
  double m_lsn_avg{0.0};
  double m_page_avg{0.0};

  /** Pages that are being written; device time for the additional I/Os of their
  batches; those of the pages that are of the LRU lists. */
  double m_in_flight{0.0};
  double m_batch_due_s{0.0};
  double m_lru_in_flight{0.0};
  double m_lru_due{0.0};
  double m_lru_wait_s{0.0};
  double m_n_lru{0.0};
  Flush_batch m_batch{};

  /** Fixed time that is left of the batch; device time saved up: seconds. */
  double m_batch_left_s{0.0};
  double m_saved_s{m_setup.burst_ios / m_setup.device.iops};
  double m_n_flushed{0.0};
  double m_n_retired{0.0};

  /** The kernel's counters of the device. */
  double m_busy_s{0.0};
  double m_n_ios{0.0};
  double m_n_fsyncs{0.0};
  double m_sync_s{0.0};
};

}  // namespace spw

#endif /* flush_simulator_h */
