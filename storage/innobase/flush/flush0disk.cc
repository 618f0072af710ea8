/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/flush0disk.cc
I/O statistics of the disks below a file system. */

#include "flush/flush0disk.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/base0sysfs.h"

namespace spw {

namespace {

namespace fs = std::filesystem;

/** Maximum depth of stacked devices, which ends the search in a loop. Real
setups have about four: a partition, RAID, LVM and encryption. */
constexpr unsigned MAX_DEPTH = 16;

/** Finds the disks below a file system. */
class Disk_search {
 public:
  /** @param[in]  sysfs  mount point of sysfs */
  explicit Disk_search(const fs::path &sysfs) : m_sysfs(sysfs) {}

  /** Add the disks that store a file or folder.
  @param[in]   path      the file or folder
  @param[in]   depth     number of devices stacked above
  @param[out]  is_found  whether there is such a disk
  @return 0, or errno */
  int add_disks_of(const std::string &path, unsigned depth, bool *is_found) {
    struct stat status;
    *is_found = false;
    if (stat(path.c_str(), &status) != 0) {
      return errno;
    }
    *is_found = add_disks(block_device_folder(m_sysfs, status.st_dev), depth);
    return 0;
  }

  /** Paths of the disks' statistics files, without duplicates. */
  std::vector<std::string> files;

 private:
  /** Add the disks below a device; the device itself if it has none.
  @param[in]  folder  its folder in sysfs
  @param[in]  depth   number of devices stacked above
  @return whether there is a disk; true also at MAX_DEPTH, where a device is
  below itself: the search finds its disks on another path */
  bool add_disks(const fs::path &folder, unsigned depth) {
    /* A disk that cannot be read is none. */
    int ignored = 0;
    const Block_device device = read_block_device(folder, &ignored);
    if (device.folder.empty()) {
      return false;
    }
    if (depth > MAX_DEPTH) {
      return true;
    }
    bool is_found = false;
    if (device.backing_file) {
      /* If the file is on no disk, or not accessible here (another mount
      namespace, deleted), the loop device itself counts. */
      (void)add_disks_of(*device.backing_file, depth + 1, &is_found);
    }
    for (const fs::path &slave : device.slaves) {
      is_found = add_disks(slave, depth + 1) || is_found;
    }
    const std::string file = device.folder / "stat";
    std::error_code error;
    if (is_found || !fs::exists(file, error)) {
      return is_found;
    }
    if (std::find(files.begin(), files.end(), file) == files.end()) {
      files.push_back(file);
    }
    return true;
  }

  const fs::path m_sysfs;
};

}  // namespace

bool Disk_reader::open(const std::string &path, std::string *why) {
  Disk_search search{m_sysfs};
  bool is_found;
  const int error = search.add_disks_of(path, 0, &is_found);
  m_files = std::move(search.files);
  if (error != 0) {
    *why = path + ": " + strerror(error);
  } else if (m_files.empty()) {
    *why = "the file system of " + path + " is on no block device";
  } else if (read().empty()) {
    *why = m_files.front() + " cannot be read";
  }
  return why->empty();
}

std::vector<Disk_work> Disk_reader::read() const {
  std::vector<Disk_work> works;
  for (const std::string &name : m_files) {
    /* Source: Documentation/block/stat.rst: reads, ..., writes, ..., io_ticks.
     */
    constexpr size_t READS = 0;
    constexpr size_t WRITES = 4;
    constexpr size_t IO_TICKS = 9;
    uint64_t fields[IO_TICKS + 1];
    std::ifstream file{name};
    for (uint64_t &field : fields) {
      if (!(file >> field)) {
        return {};
      }
    }
    works.push_back(
        {.busy_ms = fields[IO_TICKS], .n_ios = fields[READS] + fields[WRITES]});
  }
  return works;
}

}  // namespace spw
