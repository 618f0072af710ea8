/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file unittest/flush/flush_simulate.cc
Prints each second of a simulation (flush_simulator.h) for
tools/flush_simulation.py: a load on each device, with InnoDB's page cleaner and
with ahead flushing. With the argument constants it prints the results that the
constants of the policies are chosen by: change one, build, and compare. */

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "flush_scenarios.h"
#include "flush_simulator.h"

namespace {

using spw::Flush_simulation;
using spw::Sim_result;
using spw::Sim_setup;

/** A server with a buffer pool on a device, by InnoDB's defaults. */
Sim_setup setup_of(const spw::Sim_device &device, double redo_mib,
                   double pool_gb, bool is_ahead) {
  Sim_setup setup{.device = device};
  setup.pool_bytes = pool_gb * 1e9;
  /* Half of the changes are to one page in 1,000, the others to one in 10. */
  const double n_pages = setup.pool_bytes / spw::SIM_PAGE_BYTES;
  setup.pages = {{{n_pages / 1000.0, 0.5}, {n_pages / 10.0, 0.5}}};
  setup.redo_capacity = redo_mib * 1024.0 * 1024.0;
  setup.settings.is_on = is_ahead;
  setup.is_adaptive = !is_ahead;
  return setup;
}

/** Set the arrivals over time, relative to the throughput of the closed loop.
@return whether there is such a load */
bool set_load(Sim_setup *setup, std::string_view load, double mean,
              unsigned seconds) {
  if (load == "bursts") {
    /* As in bench/plans/ahead-flushing.toml. */
    setup->arrivals = [mean](double now_s) {
      return mean * (std::fmod(now_s, 30.0) < 10.0 ? 1.5 : 0.5);
    };
  } else if (load == "ramp") {
    setup->arrivals = [mean, seconds](double now_s) {
      return mean * 1.2 * now_s / seconds;
    };
  } else {
    return load == "closed";
  }
  return true;
}

/** Closed loops of ahead flushing in their steady state: transactions/s, and
the worst second over the mean. Four devices, as on the fifth the processors are
the limit. */
void print_constants() {
  double log_sum = 0.0;
  double worst = 1.0;
  unsigned n = 0;
  for (const spw::Sim_device &device :
       {spw::SIM_DISK, spw::SIM_CLOUD_SMALL, spw::SIM_CLOUD, spw::SIM_SATA}) {
    printf("%-14s", device.name);
    for (const spw::Sim_working_set &set : spw::SIM_WORKING_SETS) {
      for (const double redo_mib : {64.0, 256.0}) {
        for (const double batch_ios : {9.0, 27.0}) {
          Sim_setup setup = spw::sim_volume(device, set);
          setup.redo_capacity = redo_mib * 1024.0 * 1024.0;
          setup.batch_ios = batch_ios;
          Flush_simulation simulation{setup};
          (void)simulation.run(static_cast<unsigned>(redo_mib * 8.0));
          const Sim_result result = simulation.run(120);
          printf(" %7.1f %.2f", result.mean(), result.worst());
          log_sum += std::log(result.mean());
          worst = std::min(worst, result.worst());
          ++n;
        }
      }
    }
    puts("");
  }
  printf("geometric mean %.1f transactions/s, least worst second %.2f\n",
         std::exp(log_sum / n), worst);
}

/** The scenarios: transactions/s and the worst second over the mean, with ahead
flushing and with upstream's page cleaner, which is told innodb_io_capacity in
steps from its default down. */
void print_scenarios() {
  constexpr double IO_CAPACITY[] = {10'000, 3000, 1000, 300, 100};
  printf("%-42s %12s", "", "ahead");
  for (const double io_capacity : IO_CAPACITY) {
    printf(" %12.0f", io_capacity);
  }
  puts("");
  for (const spw::Sim_scenario &scenario : spw::sim_scenarios()) {
    const auto print = [&scenario](const Sim_setup &setup) {
      Flush_simulation simulation{setup};
      (void)simulation.run(scenario.warmup_s);
      const Sim_result result = simulation.run(scenario.counted_s);
      printf(" %7.0f %.2f", result.mean(), result.worst());
    };
    printf("%-42s", scenario.name);
    print(scenario.setup);
    for (const double io_capacity : IO_CAPACITY) {
      Sim_setup upstream = scenario.setup;
      upstream.settings.is_on = false;
      upstream.settings.io_capacity = io_capacity;
      upstream.settings.io_capacity_max = 2.0 * io_capacity;
      print(upstream);
    }
    puts("");
  }
}

}  // namespace

int main(int argc, char **argv) {
  if (argc == 2 && std::string_view{argv[1]} == "constants") {
    print_constants();
    return EXIT_SUCCESS;
  }
  if (argc == 2 && std::string_view{argv[1]} == "scenarios") {
    print_scenarios();
    return EXIT_SUCCESS;
  }
  if (argc != 5) {
    fputs(
        "usage: flush_simulate REDO_MIB SECONDS POOL_GB LOAD | constants | "
        "scenarios\n",
        stderr);
    return EXIT_FAILURE;
  }
  const double redo_mib = atof(argv[1]);
  const auto seconds = static_cast<unsigned>(atoi(argv[2]));
  const double pool_gb = atof(argv[3]);
  puts(
      "device,server,second,transactions,oldest_page_age,flushed,written,"
      "waiting");
  for (const spw::Sim_device &device : spw::SIM_DEVICES) {
    /* Both servers get arrivals with the mean of stock's closed loop. */
    const double mean =
        Flush_simulation{setup_of(device, redo_mib, pool_gb, false)}
            .run(seconds)
            .mean();
    for (const bool is_ahead : {false, true}) {
      Sim_setup setup = setup_of(device, redo_mib, pool_gb, is_ahead);
      if (!set_load(&setup, argv[4], mean, seconds)) {
        fputs("LOAD is closed, bursts or ramp\n", stderr);
        return EXIT_FAILURE;
      }
      const Sim_result result = Flush_simulation{setup}.run(seconds);
      for (size_t i = 0; i < result.seconds.size(); ++i) {
        const spw::Sim_second &second = result.seconds[i];
        printf("%s,%s,%zu,%.1f,%.3f,%.0f,%.0f,%.1f\n", device.name,
               is_ahead ? "ahead" : "upstream", i, second.transactions,
               second.oldest_page_age, second.flushed, second.written,
               second.waiting);
      }
    }
  }
  return EXIT_SUCCESS;
}
