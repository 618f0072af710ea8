/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/flush0disk.h
What the disks below a file system have had to do. Nothing of InnoDB is needed.
*/

#ifndef flush0disk_h
#define flush0disk_h

#include <string>
#include <utility>
#include <vector>

#include "flush/policy/flush0util.h"

namespace spw {

/** Reads the kernel's statistics of the disks below a file system: through
partitions, loop devices and the device mapper (sysfs, block layer's stat). One
thread uses it. */
class Disk_reader {
 public:
  /** @param[in]  sysfs  where sysfs is mounted */
  explicit Disk_reader(std::string sysfs = "/sys")
      : m_sysfs(std::move(sysfs)) {}

  /** @param[in]   path  a folder of the file system
  @param[out]  why   if there are none: why
  @return whether there are disks whose work can be read */
  [[nodiscard]] bool open(const std::string &path, std::string *why);

  /** @return what has been counted for each; nothing if that cannot be read any
  more */
  [[nodiscard]] std::vector<Disk_work> read() const;

 private:
  std::string m_sysfs;

  /** The files of their statistics. */
  std::vector<std::string> m_files;
};

}  // namespace spw

#endif /* flush0disk_h */
