/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file tests/server/redo_fault.cc
Fails or delays writes to the redo log, and delays its syncs: a shared object to
preload into a server.

  REDO_FAULT      a file: while it exists, each write to a redo log file fails
                  with EIO
  REDO_SYNC_MS    how much longer each sync of a redo log file takes; default 0
  REDO_WRITE_MS   the same of each write
*/

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "open_file.h"

namespace {

bool is_redo(int file) {
  return path_of(file).find("/#ib_redo") != std::string::npos;
}

/** Sleep as long as the variable says, if the file is a redo log file. */
void delay(const char *variable, int file) {
  const char *ms = getenv(variable);
  if (ms != nullptr && is_redo(file)) {
    usleep(1000 * atoi(ms));
  }
}

int sync(const char *name, int file) {
  delay("REDO_SYNC_MS", file);
  return reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, name))(file);
}

}  // namespace

extern "C" int fsync(int file) { return sync("fsync", file); }
extern "C" int fdatasync(int file) { return sync("fdatasync", file); }

extern "C" ssize_t pwrite64(int file, const void *buffer, size_t n_bytes,
                            off64_t offset) {
  using Write = ssize_t (*)(int, const void *, size_t, off64_t);
  static const auto real =
      reinterpret_cast<Write>(dlsym(RTLD_NEXT, "pwrite64"));
  const char *fault = getenv("REDO_FAULT");
  if (fault != nullptr && access(fault, F_OK) == 0 && is_redo(file)) {
    errno = EIO;
    return -1;
  }
  delay("REDO_WRITE_MS", file);
  return real(file, buffer, n_bytes, offset);
}
