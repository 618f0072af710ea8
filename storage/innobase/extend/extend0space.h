/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file extend/extend0space.h
Extends a tablespace online, in steps. For the SQL layer, too: needs no InnoDB
header. */

#ifndef extend0space_h
#define extend0space_h

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "extend/extend0count.h"

namespace spw {

/** Result of an operation on a tablespace that is to be extended. */
enum class Extend_status {
  DONE,
  /** The tablespace is dropped or being dropped, also by TRUNCATE or a rebuild,
  which put a new one in its place. Or its file has not been opened yet. */
  GONE,
  /** The tablespace grows by its own rules: the system, temporary and undo
  tablespaces, and that of the data dictionary. */
  UNSUPPORTED_KIND,
  /** The server was started with innodb_read_only. */
  READ_ONLY,
  /** The server was started with innodb_force_recovery: it makes only the
  necessary changes. */
  FORCED_RECOVERY,
  /** InnoDB could not extend the file to the target size. The error log has the
  reason, mostly a full disk or a quota. */
  FAILED,
  /** The file has shrunk: another one was imported in its place. */
  SHRUNK,
  /** Another thread has the tablespace's latch: it may be extending the file
  for itself. Nothing was done. */
  BUSY
};

/** A file system. Sizes are in bytes. */
struct Extend_disk {
  /** Device number: st_dev of stat(2). */
  uint64_t id;

  /** Free space for this process. */
  uint64_t free;

  /** Space that running statements still need: Extend_reservation. */
  uint64_t reserved;

  /** Total size. */
  uint64_t size;

  /** @return free space that is not reserved */
  uint64_t available() const { return free - std::min(free, reserved); }
};

/** Reserves the space that a statement still needs on a file system, while the
statement runs. Thread-safe. */
class Extend_reservation {
 public:
  /** @param[in]  disk_id  Extend_disk::id */
  explicit Extend_reservation(uint64_t disk_id) : m_disk_id(disk_id) {}
  ~Extend_reservation() { set(0); }

  Extend_reservation(const Extend_reservation &) = delete;
  Extend_reservation &operator=(const Extend_reservation &) = delete;

  /** Reserve space, if the file system has as much that is neither reserved nor
  headroom.
  @param[in,out]  disk   what extend_disk() has returned for it before; reserved
                         becomes what counts now
  @param[in]      bytes  space that the statement needs
  @return whether it is reserved */
  bool reserve(Extend_disk *disk, uint64_t bytes);

  /** @param[in]  bytes  space that the statement needs from now on */
  void set(uint64_t bytes);

  /** @return the space that is reserved: bytes */
  uint64_t bytes() const { return m_bytes; }

 private:
  const uint64_t m_disk_id;
  uint64_t m_bytes{0};
};

/** @param[in]  space_id  a tablespace, which may be dropped
@param[out] error     errno, if the result is empty: ENOENT if the tablespace is
                      dropped or being renamed, otherwise why the file system
                      cannot be queried; can be nullptr
@return the file system of its first file, or empty */
std::optional<Extend_disk> extend_disk(uint32_t space_id, int *error = nullptr);

/** @param[in]  name  a name
@return whether a tablespace has exactly this name, and its file has been
opened */
bool extend_name_exists(const char *name);

/** Find the name of a tablespace. Scans all tablespaces.
@param[in]  space_id  the tablespace
@return its name; empty if it is dropped, or its file has not been opened */
std::string extend_name(uint32_t space_id);

/** @param[in]  space_id  a tablespace
@param[in]  name      a name
@return whether the tablespace has this name now */
bool extend_has_name(uint32_t space_id, const char *name);

/** @param[in]  space_id  a tablespace
@return false if it grows by its own rules: see UNSUPPORTED_KIND */
bool is_extendable(uint32_t space_id);

/** A tablespace. Sizes are in bytes. */
struct Extend_space {
  uint64_t page_bytes;
  uint64_t extent_bytes;

  /** Size in the header: the space that inserts may use. */
  uint64_t size;

  /** Maximum size. */
  uint64_t size_max;
};

/** Read the sizes of a tablespace. Reads its first page, from disk if
necessary. The caller holds no latch.
@param[in]   space_id  its ID
@param[out]  space     the tablespace, with DONE
@return any status except FAILED, SHRUNK and BUSY */
[[nodiscard]] Extend_status read_tablespace(uint32_t space_id,
                                            Extend_space *space);

/** Wait until a step can begin: there is redo space, and no session extends the
tablespace for itself. The caller holds neither latches nor locks: backups and
DDL would wait for these.
@param[in]  space_id  ID of the tablespace
@param[in]  stop      whether to give up, called every 20 ms
@return false if it cannot begin, and stop() was true */
[[nodiscard]] bool extend_wait(uint32_t space_id,
                               const std::function<bool()> &stop);

/** Extend a tablespace by one step. No latch is held while the file grows:
sessions can insert, change and read rows, and only a session that itself needs
the file to grow waits. Begins only if the latch is free (BUSY); at its end the
step waits for a session that extends the file for itself then. A file below an
extent grows under its latch. A crash can leave a file that is larger than its
header says; the next extension uses that space.

The caller holds no latch, but the locks of Extent_step_locks: InnoDB's rename
holds latches while it waits until the file is idle, and no other file may
replace this one during the step.
@param[in]      extender  the kind of thread, not USER
@param[in]      space_id  ID of the tablespace
@param[in]      target    size to reach: bytes, whole extents
@param[in,out]  size      the size that the caller knows, then that in the
header: bytes; unchanged with GONE. With SHRUNK the header had less before the
step, and the step was not made: a step adds at most the difference of target
and size.
@return DONE, GONE, FAILED, SHRUNK or BUSY */
[[nodiscard]] Extend_status extend_step(Extender extender, uint32_t space_id,
                                        uint64_t target, uint64_t *size);

/** @return a warning if innodb_extend_and_initialize and innodb_flush_method
together can lose committed rows; nullptr if they cannot */
const char *extend_sync_warning();

/** Write and sync the redo log of all steps so far: the space that they added
survives a crash. */
void extend_make_durable();

/** Pauses between steps, to leave the device to other threads while they use
it. Used by one thread. */
class Extend_pause {
 public:
  Extend_pause();

  /** A step has ended: sleep for pause_s() if other threads have written or
  read since the previous step. The caller holds no latch.
  @param[in]  step_s     duration of the step: seconds
  @param[in]  is_killed  polled during the sleep; true ends it */
  void after(double step_s, const std::function<bool()> &is_killed);

 private:
  uint64_t m_lsn;
  uint64_t m_read_bytes;
};

/** @return total time of the pauses between steps: microseconds */
uint64_t extend_pause_us();

}  // namespace spw

#endif /* extend0space_h */
