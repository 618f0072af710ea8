/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file tests/server/aio_fault.cc
Makes writes and io_setup() of a server fail: a shared object to preload. The
environment says which calls fail; numbers are decimal.

  AIO_FAULT_SETUP="ERRNO MIN_EVENTS FIRST LAST"
    io_setup() for MIN_EVENTS events or more fails with ERRNO, from the FIRST
    such call to the LAST, counted from 1
  AIO_FAULT_SUBMIT="ERRNO EVERY FIRST LAST"
    every EVERYth io_submit() from the FIRST call to the LAST fails with ERRNO
  AIO_FAULT_PARTIAL="EVERY"
    every EVERYth io_submit() of a write of 8 KiB or more submits the first half
    only, as if the device had written only that
  AIO_FAULT_ATOMIC="ERRNO"
    each io_submit() of a write with RWF_ATOMIC fails with ERRNO
  AIO_FAULT_PWRITEV2="ERRNO FIRST"
    each pwritev2() with RWF_ATOMIC fails with ERRNO, from the FIRST such call
    on, counted from 1
  AIO_FAULT_PLAIN="1"
    the process aborts if io_submit() writes a page of a file *.ibd without
    RWF_ATOMIC */

#include <dlfcn.h>
#include <libaio.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <string>

#include "open_file.h"

namespace {

/** RWF_ATOMIC of linux/fs.h. */
constexpr int ATOMIC = 0x40;

constexpr size_t MIN_PAGE_BYTES = 4096;

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
  static const auto plain = numbers<1>("AIO_FAULT_PLAIN");
  static std::atomic<long> calls{0};
  static std::atomic<long> writes{0};

  if (fault[0] != 0) {
    const long call = ++calls;
    if (call >= fault[2] && call <= fault[3] && call % fault[1] == 0) {
      return -static_cast<int>(fault[0]);
    }
  }

  const bool is_atomic = (iocbs[0]->aio_rw_flags & ATOMIC) != 0;
  if (atomic[0] != 0 && is_atomic) {
    return -static_cast<int>(atomic[0]);
  }
  if (plain[0] != 0 && !is_atomic &&
      iocbs[0]->aio_lio_opcode == IO_CMD_PWRITE &&
      iocbs[0]->u.c.nbytes >= MIN_PAGE_BYTES &&
      path_ends_with(iocbs[0]->aio_fildes, ".ibd")) {
    abort();
  }

  if (partial[0] != 0 && n == 1 && iocbs[0]->aio_lio_opcode == IO_CMD_PWRITE &&
      iocbs[0]->u.c.nbytes >= 8192 && ++writes % partial[0] == 0) {
    iocbs[0]->u.c.nbytes = iocbs[0]->u.c.nbytes / 8192 * 4096;
  }
  return real(context, n, iocbs);
}

/** The name in glibc of pwritev2() with 64-bit offsets. */
extern "C" ssize_t pwritev64v2(int file, const struct iovec *vectors, int n,
                               off64_t offset, int flags) {
  static const auto real = next<decltype(&pwritev64v2)>("pwritev64v2");
  static const auto fault = numbers<2>("AIO_FAULT_PWRITEV2");
  static std::atomic<long> calls{0};

  if (fault[0] != 0 && (flags & ATOMIC) != 0 && ++calls >= fault[1]) {
    errno = static_cast<int>(fault[0]);
    return -1;
  }
  return real(file, vectors, n, offset, flags);
}

extern "C" ssize_t pwritev2(int file, const struct iovec *vectors, int n,
                            off_t offset, int flags) {
  return pwritev64v2(file, vectors, n, offset, flags);
}
