/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file tests/server/no_threads.cc
Simulates that the limit of threads is reached: a shared object to preload into
a server.

  NO_THREADS  a file: while it exists, pthread_create() fails with EAGAIN */

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

extern "C" int pthread_create(pthread_t *thread, const pthread_attr_t *how,
                              void *(*function)(void *), void *argument) {
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(
      dlsym(RTLD_NEXT, "pthread_create"));
  return access(getenv("NO_THREADS"), F_OK) == 0
             ? EAGAIN
             : real(thread, how, function, argument);
}
