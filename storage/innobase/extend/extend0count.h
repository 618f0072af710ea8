/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file extend/extend0count.h
Who extends data files, and by how much. Counted since the start of the server;
any thread reads the counters, no latch is taken. For the SQL layer, too:
nothing of InnoDB's is needed to use it. */

#ifndef extend0count_h
#define extend0count_h

#include <chrono>
#include <cstdint>
#include <cstdio>

namespace spw {

/** Who extends a data file. */
enum class Extender {
  /** A thread that needs the room, at once. */
  USER,
  /** ALTER TABLESPACE ... SET EXTENT_SIZE. */
  STATEMENT,
  /** The thread of innodb_extend_ahead_pct. */
  AHEAD,
  N
};

/** Makes this thread one that extends data files for others, up to the end of
the scope. */
class Extend_for_others {
 public:
  /** @param[in]  extender  which: not USER */
  explicit Extend_for_others(Extender extender);

  ~Extend_for_others();

  Extend_for_others(const Extend_for_others &) = delete;
  Extend_for_others &operator=(const Extend_for_others &) = delete;

 private:
  const std::chrono::steady_clock::time_point m_start;
};

/** @return whether this thread is one that extends data files for others */
bool extends_for_others();

/** What threads of one kind have extended data files by. */
struct Extend_work {
  /** Steps, and the time that they took: microseconds; 0 with USER, for whom
  that is a stall (Stall::FILE_EXTEND). */
  uint64_t steps;
  uint64_t time_us;

  uint64_t bytes;
};

/** @param[in]  extender  who
@return by what data files were extended */
Extend_work extend_work(Extender extender);

/** Print the line of extended data files of SHOW ENGINE INNODB STATUS.
@param[in,out]  file  where to print */
void extend_print(FILE *file);

}  // namespace spw

#endif /* extend0count_h */
