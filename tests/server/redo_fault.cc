/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file tests/server/redo_fault.cc
Fails writes to the redo log: a shared object to preload into a server.

  REDO_FAULT  a file: while it exists, each write to a redo log file fails with
              EIO */

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "open_file.h"

extern "C" ssize_t pwrite64(int file, const void *buffer, size_t n_bytes,
                            off64_t offset) {
  using Write = ssize_t (*)(int, const void *, size_t, off64_t);
  static const auto real =
      reinterpret_cast<Write>(dlsym(RTLD_NEXT, "pwrite64"));
  if (access(getenv("REDO_FAULT"), F_OK) == 0 &&
      path_of(file).find("/#ib_redo") != std::string::npos) {
    errno = EIO;
    return -1;
  }
  return real(file, buffer, n_bytes, offset);
}
