/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file extend/extend0count.h
Counters of data file extensions since server start: which threads extend data
files, and by how many bytes. Any thread reads them without a latch. For the SQL
layer, too: needs no InnoDB header. */

#ifndef extend0count_h
#define extend0count_h

#include <chrono>
#include <cstdint>
#include <cstdio>

namespace spw {

/** The kinds of threads that extend data files. */
enum class Extender {
  /** A thread that needs the space itself, at once. */
  USER,
  /** ALTER TABLESPACE ... SET EXTENT_SIZE. */
  STATEMENT,
  /** The background thread of innodb_extend_ahead_pct. */
  AHEAD,
  N
};

/** Marks this thread as one that extends data files for others, until the end
of the scope. */
class Extend_for_others {
 public:
  /** @param[in]  extender  the kind of thread, not USER */
  explicit Extend_for_others(Extender extender);

  ~Extend_for_others();

  Extend_for_others(const Extend_for_others &) = delete;
  Extend_for_others &operator=(const Extend_for_others &) = delete;

 private:
  const std::chrono::steady_clock::time_point m_start;
};

/** @return whether this thread extends data files for others */
bool extends_for_others();

/** Extensions by one kind of thread. */
struct Extend_work {
  /** Number of steps, and their time: microseconds; 0 with USER, whose
  extensions are a stall (Stall::FILE_EXTEND). */
  uint64_t steps;
  uint64_t time_us;

  uint64_t bytes;
};

/** @param[in]  extender  the kind of thread
@return the extensions by threads of this kind */
Extend_work extend_work(Extender extender);

/** Print the line on data file extensions of SHOW ENGINE INNODB STATUS.
@param[in,out]  file  where to print */
void extend_print(FILE *file);

}  // namespace spw

#endif /* extend0count_h */
