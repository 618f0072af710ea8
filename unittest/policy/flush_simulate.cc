/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file unittest/policy/flush_simulate.cc
Prints what flush_simulator.h comes to, second by second, for
tools/flush_simulation.py: a load on each device, with upstream's page cleaner
and with ahead flushing. */

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "flush_simulator.h"

namespace {

using spw::Flush_simulation;
using spw::Sim_result;
using spw::Sim_setup;

/** What a server of a buffer pool does on a device, by upstream's defaults. */
Sim_setup setup_of(const spw::Sim_device &device, double redo_mib,
                   double pool_gb, bool is_ahead) {
  Sim_setup setup{.device = device};
  setup.pool_bytes = pool_gb * 1e9;
  /* Half of the changes are to a page in 1,000, the others to one in 10. */
  const double n_pages = setup.pool_bytes / spw::SIM_PAGE_BYTES;
  setup.pages = {{{n_pages / 1000.0, 0.5}, {n_pages / 10.0, 0.5}}};
  setup.redo_capacity = redo_mib * 1024.0 * 1024.0;
  setup.settings.is_on = is_ahead;
  setup.is_adaptive = !is_ahead;
  return setup;
}

/** Arrivals by the time, as shares of what the closed loop did.
@return whether there is such a load */
bool set_load(Sim_setup *setup, std::string_view load, double mean,
              unsigned seconds) {
  if (load == "bursts") {
    /* As bench/plans/ahead-flushing.toml has them. */
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

}  // namespace

int main(int argc, char **argv) {
  if (argc != 5) {
    fputs("usage: flush_simulate REDO_MIB SECONDS POOL_GB LOAD\n", stderr);
    return EXIT_FAILURE;
  }
  const double redo_mib = atof(argv[1]);
  const auto seconds = static_cast<unsigned>(atoi(argv[2]));
  const double pool_gb = atof(argv[3]);
  puts("device,server,second,transactions,age,flushed,written,waiting");
  for (const spw::Sim_device &device : spw::SIM_DEVICES) {
    /* Both servers get the arrivals that upstream's carries. */
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
               second.age, second.flushed, second.written, second.waiting);
      }
    }
  }
  return EXIT_SUCCESS;
}
