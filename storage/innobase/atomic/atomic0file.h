/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file atomic/atomic0file.h
Atomic writes: the settings, the counters and the list of open data files. The
patches use the hook interface in atomic/hook.h. */

#ifndef atomic0file_h
#define atomic0file_h

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "atomic/policy/atomic0write.h"

namespace spw {

/** innodb_use_atomic_writes, a value of enum Atomic_writes. This and the next
two variables are set before InnoDB starts and constant afterwards. */
extern unsigned long use_atomic_writes;

/** innodb_use_atomic_writes_fs: accept methods that the server cannot verify.
See Atomic_input::accept_unverified. */
extern bool use_atomic_writes_fs;

/** innodb_use_fallocate: extend data files without writing zeros. */
extern bool use_fallocate;

/** Counters of atomic writes since the server started. */
struct Atomic_stats {
  /** Pages written atomically, by method; NONE is not counted. */
  uint64_t pages[static_cast<size_t>(Atomic_method::N)];

  /** Pages among them that would have gone through the doublewrite buffer. */
  uint64_t doublewrite_avoided;

  /** Page-compressed pages in files that have a method. They are not written
  atomically, and go through the doublewrite buffer if it is in use. */
  uint64_t page_compressed;

  /** Opens of files that have no method and keep the doublewrite buffer. */
  uint64_t fallbacks;

  /** Files open now, by method; NONE is the doublewrite buffer. The file of a
  page-compressed table counts under the method of its storage. */
  uint64_t files[static_cast<size_t>(Atomic_method::N)];
};

/** @return the counters; all 0 with innodb_use_atomic_writes = OFF. Takes no
InnoDB latch. */
Atomic_stats atomic_stats();

/** An open data file. */
struct Atomic_file {
  /** ID of its tablespace. */
  uint32_t space_id;

  std::string path;

  uint32_t page_bytes;

  /** Its method, as the status variables Innodb_atomic_write_files_* name it:
  "doublewrite" for NONE, or "none" if innodb_doublewrite makes no copies. */
  const char *method;

  /** Its method, as SHOW ENGINE INNODB STATUS names it. */
  const char *name;

  /** Its pages are written atomically. */
  bool is_atomic;

  /** Why its pages are not written atomically, or a remark on the method; may
  be empty. */
  std::string reason;
};

/** @return the open data files except temporary ones, sorted by path; empty
with innodb_use_atomic_writes = OFF. Takes the shard mutexes of the tablespaces,
one after another. */
std::vector<Atomic_file> atomic_files();

/** Print methods, counters and files in SHOW ENGINE INNODB STATUS. Prints
nothing if innodb_use_atomic_writes is OFF.
@param[in,out]  file  output file */
void atomic_print(FILE *file);

}  // namespace spw

#endif /* atomic0file_h */
