/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file tools/server_tests/aio_fault.cc
Makes calls of libaio fail in a server: a shared object to preload. What fails
is said in the environment; numbers are decimal.

  AIO_FAULT_SETUP="ERRNO MIN_EVENTS FIRST LAST"
    io_setup() for MIN_EVENTS events or more fails with ERRNO, from the FIRST
    such call to the LAST, counted from 1
  AIO_FAULT_SUBMIT="ERRNO EVERY FIRST LAST"
    every EVERYth io_submit() from the FIRST call to the LAST fails with ERRNO
  AIO_FAULT_PARTIAL="EVERY"
    every EVERYth io_submit() of a write of 8 KiB or more asks the kernel for
    the first half only, as if the device had taken no more */

#include <dlfcn.h>
#include <libaio.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <sstream>

namespace {

template <size_t N>
std::array<long, N> numbers(const char *variable) {
  std::array<long, N> values{};
  if (const char *text = getenv(variable)) {
    std::istringstream stream(text);
    for (long &value : values) {
      stream >> value;
    }
  }
  return values;
}

template <typename Function>
Function next(const char *name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int io_setup(int n_events, io_context_t *context) {
  static const auto real = next<decltype(&io_setup)>("io_setup");
  static const auto fault = numbers<4>("AIO_FAULT_SETUP");
  static std::atomic<long> calls{0};

  if (fault[0] != 0 && n_events >= fault[1]) {
    const long call = ++calls;
    if (call >= fault[2] && call <= fault[3]) {
      return -static_cast<int>(fault[0]);
    }
  }
  return real(n_events, context);
}

extern "C" int io_submit(io_context_t context, long n, struct iocb **iocbs) {
  static const auto real = next<decltype(&io_submit)>("io_submit");
  static const auto fault = numbers<4>("AIO_FAULT_SUBMIT");
  static const auto partial = numbers<1>("AIO_FAULT_PARTIAL");
  static const auto atomic = numbers<1>("AIO_FAULT_ATOMIC");
  static std::atomic<long> calls{0};
  static std::atomic<long> writes{0};

  if (fault[0] != 0) {
    const long call = ++calls;
    if (call >= fault[2] && call <= fault[3] && call % fault[1] == 0) {
      return -static_cast<int>(fault[0]);
    }
  }

  /* RWF_ATOMIC of linux/fs.h. */
  if (atomic[0] != 0 && (iocbs[0]->aio_rw_flags & 0x40) != 0) {
    return -static_cast<int>(atomic[0]);
  }

  if (partial[0] != 0 && n == 1 && iocbs[0]->aio_lio_opcode == IO_CMD_PWRITE &&
      iocbs[0]->u.c.nbytes >= 8192 && ++writes % partial[0] == 0) {
    iocbs[0]->u.c.nbytes = iocbs[0]->u.c.nbytes / 8192 * 4096;
  }
  return real(context, n, iocbs);
}
