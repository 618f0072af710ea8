/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file bench/micro/aio_bench.cc
The cost of one asynchronous read through InnoDB's own AIO arrays.

  aio_bench THREADS DEPTH IN_FLIGHT READS FILE

THREADS threads serve an array of THREADS x DEPTH slots, as InnoDB's read
threads do; one thread submits READS reads of 512 bytes of FILE, and keeps
IN_FLIGHT of them in flight. FILE is read through the page cache: a read costs
the CPU little and the device nothing, and what remains is the array's cost and
the system calls'.

Prints the depth that the array got, the CPU time and the elapsed time of a read
in nanoseconds, and how many AIO contexts were left once it was freed (0:
nothing leaks). In a build of stock the depth is 256, whatever DEPTH says. */

#include "univ.i"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "my_sys.h"
#include "os0event.h"
#include "os0file.h"
#include "os0thread-create.h"
#include "sql/mysqld.h"
#include "srv0srv.h"
#include "srv0start.h"
#include "sync0debug.h"
#include "ut0counting_semaphore.h"
#include "ut0new.h"
#ifndef SPILLWAY_STOCK
#include "aio/aio0array.h"
#endif

static double cpu_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec +
                                    usage.ru_stime.tv_usec);
}

/** @return number of AIO contexts that this process has: each is a mapping */
static int contexts() {
  std::ifstream maps("/proc/self/maps");
  int n = 0;
  for (std::string line; std::getline(maps, line);) {
    n += line.find("/[aio]") != std::string::npos;
  }
  return n;
}

int main(int argc, char **argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: aio_bench THREADS DEPTH IN_FLIGHT READS FILE\n");
    return 2;
  }
  const size_t n_threads = strtoul(argv[1], nullptr, 10);
  const size_t depth = strtoul(argv[2], nullptr, 10);
  const ptrdiff_t in_flight = strtol(argv[3], nullptr, 10);
  const size_t n_reads = strtoul(argv[4], nullptr, 10);
  const char *name = argv[5];
  if (n_threads < 1 || n_threads > 64 || in_flight < 1) {
    fprintf(stderr, "THREADS is 1 to 64, IN_FLIGHT 1 or more\n");
    return 2;
  }

  MY_INIT(argv[0]);
  if (init_tmpdir(&mysql_tmpdir_list, nullptr)) {
    return 2;
  }
  ut_new_boot_safe();
  srv_max_n_threads = 1000;
  os_event_global_init();
  sync_check_init(srv_max_n_threads);
  os_thread_open();
  os_create_block_cache();

  const int contexts_before = contexts();

  srv_use_native_aio = true;
#ifndef SPILLWAY_STOCK
  spw::aio_pending_ios_per_thread = depth;
#endif
  if (!os_aio_init(n_threads, 1) || !srv_use_native_aio) {
    fprintf(stderr, "native AIO is not available\n");
    return 2;
  }
#ifdef SPILLWAY_STOCK
  const unsigned long long real_depth = 256;
  (void)depth;
#else
  const unsigned long long real_depth =
      spw::aio_stats(spw::Aio_kind::READ).depth;
#endif

  pfs_os_file_t file{};
  file.m_file = open(name, O_RDONLY);
  if (file.m_file < 0) {
    perror(name);
    return 2;
  }

  ut::counting_semaphore free_places(static_cast<uint32_t>(in_flight));

  /* Segment 0 is the change buffer's, 1 to n_threads are the readers'. */
  std::vector<std::thread> readers;
  for (size_t segment = 1; segment <= n_threads; ++segment) {
    readers.emplace_back([segment, &free_places] {
      for (;;) {
        fil_node_t *node;
        void *message;
        IORequest type;
        const dberr_t err = os_aio_handler(segment, &node, &message, &type);
        ut_a(err == DB_SUCCESS);
        if (message == nullptr) {
          return; /* shutdown */
        }
        free_places.release();
      }
    });
  }

  alignas(4096) static byte buffer[512];
  IORequest type(IORequest::READ);

  const auto read = [&](size_t n) {
    for (size_t i = 0; i < n; ++i) {
      free_places.acquire([] {});
      IORequest request(type);
      const dberr_t err =
          os_aio_func(request, AIO_mode::NORMAL, name, file, buffer, 0,
                      sizeof(buffer), false, nullptr, &free_places);
      ut_a(err == DB_SUCCESS);
    }
    for (ptrdiff_t i = 0; i < in_flight; ++i) {
      free_places.acquire([] {});
    }
    for (ptrdiff_t i = 0; i < in_flight; ++i) {
      free_places.release();
    }
  };

  read(n_reads / 10); /* threads, page cache and memory are warm */

  const double cpu_start = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  read(n_reads);
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  const double cpu = cpu_seconds() - cpu_start;

  srv_shutdown_state.store(SRV_SHUTDOWN_EXIT_THREADS);
  for (std::thread &reader : readers) {
    reader.join();
  }
  os_aio_free();
  close(file.m_file);

  const double n = static_cast<double>(n_reads);
  printf("depth=%llu cpu_ns=%.0f elapsed_ns=%.0f leaked_contexts=%d\n",
         real_depth, 1e9 * cpu / n, 1e9 * elapsed.count() / n,
         contexts() - contexts_before);
  return 0;
}
