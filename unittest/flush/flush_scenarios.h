/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file unittest/flush/flush_scenarios.h
Devices, redo logs, buffer pools and loads that are not those that the policies
were made on. Tests hold ahead flushing to bounds in each; flush_simulate prints
the same with InnoDB's page cleaner beside it. */

#ifndef flush_scenarios_h
#define flush_scenarios_h

#include <cmath>
#include <cstdint>
#include <vector>

#include "flush_simulator.h"

namespace spw {

/** A scenario, and what ahead flushing has to reach in it. */
struct Sim_scenario {
  const char *name;
  Sim_setup setup;

  /** Not counted; counted: seconds. */
  unsigned warmup_s;
  unsigned counted_s;

  /** Minimum of transactions/s, and of the worst second over the mean; 0 where
  sync flushing cannot be avoided. */
  double mean;
  double worst;
};

/** A number from 0 to 1 that looks random and is the same in each run.
@param[in]  n  which number */
inline double sim_random(uint64_t n) {
  n = (n + 1) * 0x9E3779B97F4A7C15;
  n = (n ^ (n >> 30)) * 0xBF58476D1CE4E5B9;
  n = (n ^ (n >> 27)) * 0x94D049BB133111EB;
  return static_cast<double>(n >> 11) * 0x1p-53;
}

/** @return the scenarios */
inline std::vector<Sim_scenario> sim_scenarios() {
  constexpr double MIB = 1024.0 * 1024.0;
  constexpr double GIB = 1024.0 * MIB;
  const Sim_working_set &hot_and_cold = SIM_WORKING_SETS[1];
  std::vector<Sim_scenario> all;
  const auto add = [&all](const char *name, const Sim_setup &setup,
                          unsigned warmup_s, double mean, double worst) {
    all.push_back({name, setup, warmup_s, 200, mean, worst});
  };

  Sim_setup setup = sim_volume(SIM_CLOUD, hot_and_cold);
  setup.redo_capacity = 8.0 * MIB;
  add("redo log of 8M, cloud-1500", setup, 200, 240.0, 0.8);

  setup.redo_capacity = 1.0 * GIB;
  add("redo log of 1G, cloud-1500", setup, 2000, 1700.0, 0.75);

  setup = sim_volume(SIM_SATA, hot_and_cold);
  setup.redo_capacity = 8.0 * GIB;
  add("redo log of 8G, sata-ssd", setup, 4000, 3900.0, 0.95);

  /* Half of the changes are to a hot thousandth of the pool. */
  setup = sim_volume(SIM_NVME, hot_and_cold);
  setup.pool_bytes = 1024.0 * GIB;
  setup.pages = {{{67e3, 0.5}, {66e6, 0.5}}};
  setup.miss_fraction = 0.2;
  setup.redo_capacity = 8.0 * GIB;
  setup.n_clients = 256;
  setup.cpu_max = 40e3;
  add("pool of 1T, data larger, nvme", setup, 600, 30000.0, 0.95);

  /* Each batch takes 5 to 30 ms more. */
  setup = sim_volume(SIM_SATA, hot_and_cold);
  setup.batch_s = [](double now_s) {
    return 0.005 + 0.025 * sim_random(static_cast<uint64_t>(now_s * 1e3));
  };
  add("fsync of 5 to 30 ms, sata-ssd", setup, 300, 2650.0, 0.8);

  /* A consumer SSD that flushes its cache for 10 ms. */
  setup = sim_volume(SIM_SATA, hot_and_cold);
  setup.fsync_s = 0.01;
  add("fsync of 10 ms in which nothing is written, sata-ssd", setup, 300,
      1680.0, 0.8);

  /* One batch in 20 takes a second, in which a third of the redo log is filled:
  no limit that is based on the batches before can be low enough. */
  setup = sim_volume(SIM_SATA, hot_and_cold);
  setup.batch_s = [](double now_s) {
    return sim_random(static_cast<uint64_t>(now_s * 1e3)) < 0.05 ? 1.0 : 0.005;
  };
  add("one batch in 20 takes a second, sata-ssd", setup, 300, 2250.0, 0.0);

  /* 200,000 I/Os, which last for a minute; then a load that leaves nothing to
  save up. */
  setup = sim_volume(SIM_CLOUD, hot_and_cold);
  setup.burst_ios = 200e3;
  add("burst credit runs out, cloud-1500", setup, 0, 740.0, 0.35);

  /* Others use half of the device in each second minute. */
  setup = sim_volume(SIM_CLOUD, hot_and_cold);
  setup.speed = [](double now_s) {
    return std::fmod(now_s, 120.0) < 60.0 ? 1.0 : 0.5;
  };
  add("others use half of the device, cloud-1500", setup, 480, 300.0, 0.4);

  /* A transaction that changes 300,000 rows rolls back, as fast as it can. */
  setup = sim_volume(SIM_SATA, hot_and_cold);
  setup.purges = [](double now_s) {
    return now_s >= 320.0 && now_s < 350.0 ? 10e3 : 0.0;
  };
  add("a rollback of 300,000 rows, sata-ssd", setup, 300, 2750.0, 0.6);

  /* A disk of 7,200 rpm: 4.2 ms until the sector passes, 8 ms for a seek over
  all of the disk. */
  setup = sim_volume({"disk-7200rpm", 240.0, 120e6, 4.2e-3}, hot_and_cold);
  setup.seek_s = 8e-3;
  add("seeks, disk-7200rpm", setup, 600, 68.0, 0.7);

  /* Beside the clients, 20,000 rows a second in one transaction. */
  setup = sim_volume(SIM_SATA, hot_and_cold);
  setup.huge_changes_per_s = 20e3;
  add("one huge transaction, sata-ssd", setup, 300, 1650.0, 0.65);
  return all;
}

}  // namespace spw

#endif /* flush_scenarios_h */
