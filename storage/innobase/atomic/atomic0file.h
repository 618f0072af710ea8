/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file atomic/atomic0file.h
Which data files are written without the doublewrite buffer: the settings, and
what has come of them. What the patches call is in atomic/hook.h. */

#ifndef atomic0file_h
#define atomic0file_h

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "atomic/policy/atomic0write.h"

namespace spw {

/** innodb_use_atomic_writes, as in enum Atomic_writes. Set before InnoDB starts
and constant from then on, as the next two are. */
extern unsigned long use_atomic_writes;

/** innodb_use_atomic_writes_fs: file systems that make writes whole without
being asked are good enough. */
extern bool use_atomic_writes_fs;

/** innodb_use_fallocate: files are extended without writing zeros. */
extern bool use_fallocate;

/** What was written without the doublewrite buffer, and what was not, since the
server started. */
struct Atomic_stats {
  /** Pages written whole, by what makes them so; of NONE none are counted. */
  uint64_t pages[static_cast<size_t>(Atomic_means::N)];

  /** Those of them that would have gone through the doublewrite buffer. */
  uint64_t doublewrite_avoided;

  /** Pages of files whose pages are written whole that were not, as they are
  page-compressed: through the doublewrite buffer, if it is in use. */
  uint64_t page_compressed;

  /** Files that were opened and keep the doublewrite buffer, each counted as
  often as it is opened. */
  uint64_t fallbacks;

  /** Open files, by what makes their pages whole; NONE: through the doublewrite
  buffer. That of a page-compressed table is counted by what its storage does.
*/
  uint64_t files[static_cast<size_t>(Atomic_means::N)];
};

/** @return what was written; all 0 with innodb_use_atomic_writes = OFF. Takes
no latch of InnoDB's. */
Atomic_stats atomic_stats();

/** A data file that is open. */
struct Atomic_file {
  /** Its tablespace. */
  uint32_t space_id;

  std::string path;

  uint32_t page_bytes;

  /** What makes its pages whole: as the status variables name it,
  Innodb_atomic_write_files_*, "doublewrite" for NONE, and "none" where
  innodb_doublewrite has no copies either. */
  const char *means;

  /** The same, in the words of the monitor. */
  const char *name;

  /** Its pages are whole by what its storage does. */
  bool is_whole;

  /** Why they are not, or what is to be said of it; may be empty. */
  const char *reason;
};

/** @return the open data files but for temporary ones, in the order of their
paths; none with innodb_use_atomic_writes = OFF. Takes the mutexes of the
tablespaces' shards, one after another. */
std::vector<Atomic_file> atomic_files();

/** Print what makes pages whole, in the section FLUSHING AND STALLS of SHOW
ENGINE INNODB STATUS; nothing if innodb_use_atomic_writes is OFF.
@param[in,out]  file  where to print */
void atomic_print(FILE *file);

}  // namespace spw

#endif /* atomic0file_h */
