/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file tests/server/sync_hold.cc
Logs the file size that each sync of a file has made durable, and can hold the
syncs and each ioctl(): a shared object to preload into a server.

  SYNC_FILE  the end of the file's path
  SYNC_LOG   each sync and ioctl() of the file appends two lines: "begin SIZE"
             and, once it is done, "end SIZE", with the file's size at the begin
  SYNC_HOLD  a file with a number of bytes: while it exists, a sync or ioctl()
             waits before it begins if the file has that size or is larger. If
             there is a second number, that many of them are not held at first
  SYNC_KILL  a file: while it exists, a sync kills the server once it is done
  SYNC_FAIL  a file: while it exists, syncs fail with EIO */

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <fstream>
#include <string>

#include "open_file.h"

namespace {

/** Max time to hold a sync, in case a test ends without removing SYNC_HOLD. */
constexpr int HOLD_MAX_S = 120;
constexpr int POLLS_PER_S = 50;

void log(const char *what, off_t size) {
  const std::string line = what + (" " + std::to_string(size)) + "\n";
  const int file =
      open(getenv("SYNC_LOG"), O_WRONLY | O_APPEND | O_CREAT, 0644);
  if (write(file, line.data(), line.size()) != ssize_t(line.size())) {
    abort();
  }
  close(file);
}

/** @param[in]  size  the file's
@param[in]  n_before  how many operations on SYNC_FILE came before this one */
bool is_held(off_t size, int n_before) {
  std::ifstream hold{getenv("SYNC_HOLD")};
  off_t held = 0;
  int n_not_held = 0;
  if (!(hold >> held)) {
    return false;
  }
  hold >> n_not_held;
  return size >= held && n_before >= n_not_held;
}

/** Log and hold an operation on SYNC_FILE; execute others. */
template <typename Operation>
int observe(int file, const Operation &real) {
  if (!path_ends_with(file, getenv("SYNC_FILE"))) {
    return real();
  }
  static std::atomic<int> n_operations{0};
  const int n_before = n_operations.fetch_add(1);
  struct stat status {};
  fstat(file, &status);
  log("begin", status.st_size);
  for (int i = 0;
       i < HOLD_MAX_S * POLLS_PER_S && is_held(status.st_size, n_before); ++i) {
    usleep(1000000 / POLLS_PER_S);
  }
  const int result = real();
  log("end", status.st_size);
  if (access(getenv("SYNC_KILL"), F_OK) == 0) {
    kill(getpid(), SIGKILL);
  }
  return result;
}

int sync(const char *name, int file) {
  const auto real = reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, name));
  return observe(file, [&] {
    if (access(getenv("SYNC_FAIL"), F_OK) == 0) {
      errno = EIO;
      return -1;
    }
    return real(file);
  });
}

}  // namespace

extern "C" int fsync(int file) { return sync("fsync", file); }
extern "C" int fdatasync(int file) { return sync("fdatasync", file); }

/** All requests of the server have one argument. */
extern "C" int ioctl(int file, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void *const argument = va_arg(arguments, void *);
  va_end(arguments);
  const auto real = reinterpret_cast<int (*)(int, unsigned long, void *)>(
      dlsym(RTLD_NEXT, "ioctl"));
  return observe(file, [&] { return real(file, request, argument); });
}
