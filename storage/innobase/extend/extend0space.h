/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file extend/extend0space.h
A tablespace that is extended online, step by step. For the SQL layer, too:
nothing of InnoDB's is needed to use it. */

#ifndef extend0space_h
#define extend0space_h

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "extend/extend0count.h"

namespace spw {

/** What can be said of a tablespace that shall be extended. */
enum class Extend_status {
  DONE,
  /** It is dropped, or being dropped: also by TRUNCATE and a rebuild, which
  put a new one in its place. Or its file has not been opened yet. */
  GONE,
  /** It is of a kind that grows by rules of its own: the system, temporary and
  undo tablespaces, and that of the data dictionary. */
  NOT_OURS,
  /** The server was started with innodb_read_only. */
  READ_ONLY,
  /** It was started with innodb_force_recovery: nothing is changed that need
  not be. */
  FORCED_RECOVERY,
  /** Upstream could not extend it as far; the error log says why. Mostly a
  full disk, or a quota. */
  FAILED,
  /** It is smaller than it was: another file was imported in its place. */
  SHRUNK
};

/** A file system; bytes, if not said otherwise. */
struct Extend_disk {
  /** Its device number (stat(2): st_dev). */
  uint64_t id;

  /** For this process. */
  uint64_t free;

  /** What statements have still to take of it: Extend_reservation. */
  uint64_t reserved;

  /** In all. */
  uint64_t size;

  /** @return what is free and not reserved */
  uint64_t available() const { return free - std::min(free, reserved); }
};

/** What a statement has still to take of a file system, as long as it is at
work. Thread-safe. */
class Extend_reservation {
 public:
  /** @param[in]  disk_id  Extend_disk::id
  @param[in]  bytes    what the statement has to take */
  Extend_reservation(uint64_t disk_id, uint64_t bytes);
  ~Extend_reservation() { set(0); }

  Extend_reservation(const Extend_reservation &) = delete;
  Extend_reservation &operator=(const Extend_reservation &) = delete;

  /** @param[in]  bytes  what it has to take from now on */
  void set(uint64_t bytes);

 private:
  const uint64_t m_disk_id;
  uint64_t m_bytes{0};
};

/** @param[in]  space_id  a tablespace, which may be gone
@return the file system that its first file is on; nothing if the tablespace is
gone, or is being renamed, or the file system cannot be asked */
std::optional<Extend_disk> extend_disk(uint32_t space_id);

/** @param[in]  name  a tablespace
@return whether there is one of just this name, and its file has been opened */
bool extend_is_known(const char *name);

/** Looks through all tablespaces for it.
@param[in]  space_id  a tablespace
@return its name; empty if it is gone, or its file has not been opened */
std::string extend_name(uint32_t space_id);

/** @param[in]  space_id  a tablespace
@param[in]  name      a name
@return whether this tablespace is called so now */
bool extend_is_called(uint32_t space_id, const char *name);

/** @param[in]  space_id  a tablespace
@return false if it grows by rules of its own: see NOT_OURS */
bool extend_is_ours(uint32_t space_id);

/** A tablespace; sizes are bytes. */
struct Extend_space {
  uint64_t page_bytes;
  uint64_t extent_bytes;

  /** As in its header: what inserts may use. */
  uint64_t size;

  /** The largest that it may become. */
  uint64_t size_max;
};

/** Look at a tablespace. Reads its first page, which may have to be read from
the disk. The caller holds no latch.
@param[in]   space_id  its ID
@param[out]  space     the tablespace, with DONE
@return anything but FAILED and SHRUNK */
[[nodiscard]] Extend_status extend_look(uint32_t space_id, Extend_space *space);

/** Extend a tablespace by one step. While the file grows no latch is held, so
that rows are inserted, changed and read; only what needs the file to grow
itself waits. A file below an extent grows under its latch. A crash leaves a
file that is larger than its header says, and which the next extension takes as
it is.

The caller holds no latch, and the locks of Extent_step_locks: upstream waits
for an idle moment of a file that is renamed, with latches held, and no other
file takes the place of this one during the step.
@param[in]      extender  for whom: not USER
@param[in]      space_id  its ID
@param[in]      target    what the file shall become: bytes, whole extents
@param[in,out]  size      the file as the caller knows it, and what it has
become, as its header says: bytes; unchanged with GONE. With SHRUNK it was
smaller before the step, which was not made: a step adds no more than the
difference of target and size.
@return DONE, GONE, FAILED or SHRUNK */
[[nodiscard]] Extend_status extend_step(Extender extender, uint32_t space_id,
                                        uint64_t target, uint64_t *size);

/** @return what to warn of if innodb_extend_and_initialize and
innodb_flush_method together can lose committed rows; nullptr if they cannot */
const char *extend_sync_warning();

/** Have the redo log of all steps so far on disk: what they added is there
after a crash. */
void extend_make_durable();

/** Leaves the device to others between steps, if they are at work. One thread
uses it. */
class Extend_rest {
 public:
  Extend_rest();

  /** A step has ended: sleep for what extend_rest_s() says if others have
  written or read since the last one. No latch is held.
  @param[in]  step_s     how long it took: seconds
  @param[in]  is_killed  asked all the while; true ends the sleep */
  void after(double step_s, const std::function<bool()> &is_killed);

 private:
  uint64_t m_lsn;
  uint64_t m_read_bytes;
};

/** @return how long steps have rested for others: microseconds */
uint64_t extend_rest_us();

}  // namespace spw

#endif /* extend0space_h */
