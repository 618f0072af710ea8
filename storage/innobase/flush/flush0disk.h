/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/flush0disk.h
I/O statistics of the disks below a file system. Independent of InnoDB. */

#ifndef flush0disk_h
#define flush0disk_h

#include <string>
#include <utility>
#include <vector>

#include "flush/policy/flush0util.h"

namespace spw {

/** Reads the kernel's I/O statistics of the disks below a file system. It
resolves partitions, loop devices and the device mapper (sysfs, block layer's
stat). Used by one thread. */
class Disk_reader {
 public:
  /** @param[in]  sysfs  mount point of sysfs */
  explicit Disk_reader(std::string sysfs = "/sys")
      : m_sysfs(std::move(sysfs)) {}

  /** Find the disks.
  @param[in]   path  a folder of the file system
  @param[out]  why   the reason if it fails; empty before the call
  @return whether there are disks, and their statistics can be read */
  [[nodiscard]] bool open(const std::string &path, std::string *why);

  /** @return the statistics of each disk; empty if a file cannot be read any
  more */
  [[nodiscard]] std::vector<Disk_work> read() const;

 private:
  std::string m_sysfs;

  /** Paths of the statistics files, one for each disk. */
  std::vector<std::string> m_files;
};

}  // namespace spw

#endif /* flush0disk_h */
