/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file unittest/policy/flush_simulate.cc
Prints what flush_simulator.h comes to, second by second, for
tools/flush_simulation.py: clients in a closed loop on each device, with
upstream's page cleaner and with ahead flushing. */

#include <cstdio>
#include <cstdlib>

#include "flush_simulator.h"

int main(int argc, char **argv) {
  if (argc != 3) {
    fputs("usage: flush_simulate REDO_MIB SECONDS\n", stderr);
    return EXIT_FAILURE;
  }
  const double redo_mib = atof(argv[1]);
  const auto seconds = static_cast<unsigned>(atoi(argv[2]));
  puts("device,server,second,transactions,age,flushed,written");
  for (const spw::Sim_device &device : spw::SIM_DEVICES) {
    for (const bool is_ahead : {false, true}) {
      spw::Sim_setup setup{.device = device};
      setup.pool_bytes = 16e9;
      setup.pages = {{{1e3, 0.5}, {100e3, 0.5}}};
      setup.redo_capacity = redo_mib * 1024.0 * 1024.0;
      setup.settings.is_on = is_ahead;
      setup.is_adaptive = !is_ahead;
      const spw::Sim_result result = spw::Flush_simulation{setup}.run(seconds);
      for (size_t i = 0; i < result.seconds.size(); ++i) {
        const spw::Sim_second &second = result.seconds[i];
        printf("%s,%s,%zu,%.1f,%.3f,%.0f,%.0f\n", device.name,
               is_ahead ? "ahead" : "upstream", i, second.transactions,
               second.age, second.flushed, second.written);
      }
    }
  }
  return EXIT_SUCCESS;
}
