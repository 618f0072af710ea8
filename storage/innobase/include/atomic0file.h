/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file include/atomic0file.h
Which data files are written without the doublewrite buffer: the settings, and
what has come of them. What the patches call is in spw0hook.h. */

#ifndef atomic0file_h
#define atomic0file_h

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "policy/atomic0write.h"

namespace spw {

/** innodb_use_atomic_writes, as in enum Atomic_writes. Set before InnoDB starts
and constant from then on, as the next three are. */
extern unsigned long use_atomic_writes;

/** innodb_use_atomic_writes_fs: file systems that make writes whole without
being asked are good enough. */
extern bool use_atomic_writes_fs;

/** innodb_use_fallocate: files are extended without writing zeros. */
extern bool use_fallocate;

/** innodb_doublewrite_fsync: the doublewrite files are synced ahead of their
pages' writes with any innodb_flush_method. */
extern bool doublewrite_fsync;

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
  buffer. */
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

  /** Why they are not whole by what their storage does; empty if they are. */
  const char *reason;
};

/** @return the open data files but for temporary ones, in the order of their
paths; none with innodb_use_atomic_writes = OFF. Takes no latch of InnoDB's. */
std::vector<Atomic_file> atomic_files();

/** @param[in]  folder  innodb_doublewrite_dir, or nullptr: where doublewrite
files are. Upstream puts a # before a name that is no path. Called once, before
InnoDB starts. */
void doublewrite_start(const char *folder);

/** Pages are about to be written without the doublewrite files: a file in the
data directory says so until a clean shutdown. The server stops if it cannot be
made. Only for atomic_file_opened(). */
void doublewrite_mark();

}  // namespace spw

#endif /* atomic0file_h */
