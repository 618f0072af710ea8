/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file atomic/atomic0probe.cc
What the kernel and the storage say, and show, of whole writes. */

#include "atomic0probe.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "scratch0file.h"

namespace spw {

namespace {

/** directFS: _IOW(0x95, 2, unsigned), from seed 004's server. */
constexpr unsigned long DIRECTFS_ATOMIC_WRITES = 0x40049502;

/** A number of that kind that nobody has: a file system that takes it takes
anything, and promises nothing. */
constexpr unsigned long NOBODYS = 0x4004957f;

/** Devices below one another, at most. */
constexpr int MOST_LAYERS = 8;

/** linux/stat.h: the request, and where the answers are in struct statx. */
constexpr unsigned STATX_ATOMIC = 0x10000;
constexpr unsigned STATX_DIRECT = 0x2000;
constexpr size_t STATX_BYTES = 256;
constexpr size_t STATX_MASK = 0;
constexpr size_t STATX_DIRECT_MEM_ALIGN = 0x98;
constexpr size_t STATX_UNIT_MIN = 0xa8;
constexpr size_t STATX_UNIT_MAX = 0xac;
constexpr size_t STATX_UNIT_MAX_OPT = 0xb8;

/** statfs(2): f_type. */
constexpr long EXT4_MAGIC = 0xef53;
constexpr long XFS_MAGIC = 0x58465342;
constexpr long ZFS_MAGIC = 0x2fc12fc1;

/** ioctl_xfs_fsgetxattr(2): FS_IOC_FSGETXATTR, the size of its structure, whose
first field is the flags, and that of a file on XFS' realtime device. */
constexpr unsigned long GET_EXTENDED_FLAGS = 0x801c581f;
constexpr size_t EXTENDED_FLAGS_BYTES = 28;
constexpr uint32_t REALTIME_FLAG = 0x1;

/** ioctl_iflags(2): FS_IOC_GETFLAGS, and the flag that chattr +j sets. */
constexpr unsigned long GET_FLAGS = 0x80086601;
constexpr unsigned long JOURNAL_DATA_FLAG = 0x4000;

uint32_t number_at(const unsigned char *buffer, size_t place) {
  uint32_t number;
  memcpy(&number, buffer + place, sizeof(number));
  return number;
}

}  // namespace

Atomic_findings Atomic_prober::find(int file, const std::string &path,
                                    uint32_t page_bytes) {
  Atomic_findings found{};
  struct stat status;
  if (fstat(file, &status) != 0) {
    return found;
  }

  found.is_direct = (fcntl(file, F_GETFL) & O_DIRECT) != 0;
  const unsigned on = 1;
  found.ioctl_succeeds = ioctl(file, NOBODYS, &on) != 0 &&
                         ioctl(file, DIRECTFS_ATOMIC_WRITES, &on) == 0;

  /* By number, as the C library's structure may end before these fields. */
  alignas(8) unsigned char buffer[STATX_BYTES]{};
  bool has_no_direct_io = false;
  if (syscall(SYS_statx, file, "", AT_EMPTY_PATH, STATX_ATOMIC | STATX_DIRECT,
              buffer) == 0) {
    has_no_direct_io = (number_at(buffer, STATX_MASK) & STATX_DIRECT) != 0 &&
                       number_at(buffer, STATX_DIRECT_MEM_ALIGN) == 0;
    found.unit_min_bytes = number_at(buffer, STATX_UNIT_MIN);
    found.unit_max_bytes = number_at(buffer, STATX_UNIT_MAX);
    found.unit_max_opt_bytes = number_at(buffer, STATX_UNIT_MAX_OPT);
  }
  if (units_hold_page(found, page_bytes)) {
    /* What has failed may have done so for want of room or of descriptors. */
    const std::pair<dev_t, uint32_t> key{status.st_dev, page_bytes};
    found.rwf_error = m_taken.count(key) != 0 ? 0 : try_rwf(path, page_bytes);
    if (found.rwf_error == 0) {
      m_taken.insert(key);
    }
  }

  if (begins_at_multiple(status.st_dev, page_bytes)) {
    found.device_max_bytes =
        queue_value(status.st_dev, "atomic_write_unit_max_bytes");
  }
  found.sector_bytes =
      lies_on_its_device(file) ? sector_bytes(status.st_dev, MOST_LAYERS) : 0;
  found.file_system_bytes = file_system_bytes(
      file, status.st_dev, status.st_blksize, has_no_direct_io);
  return found;
}

std::string Atomic_prober::folder_of(dev_t device) const {
  return m_sysfs + "/dev/block/" + std::to_string(major(device)) + ":" +
         std::to_string(minor(device));
}

uint32_t Atomic_prober::queue_value(dev_t device,
                                    const std::string &name) const {
  /* A partition has the queue of its disk, the folder above it. */
  for (const char *queue : {"/queue/", "/../queue/"}) {
    std::ifstream file{folder_of(device) + queue + name};
    uint32_t value;
    if (file >> value) {
      return value;
    }
  }
  return 0;
}

bool Atomic_prober::begins_at_multiple(dev_t device,
                                       uint32_t page_bytes) const {
  /* Of a partition: in units of 512 bytes, whatever the device's blocks are. */
  std::ifstream file{folder_of(device) + "/start"};
  uint64_t start;
  return !(file >> start) || start * 512 % page_bytes == 0;
}

bool Atomic_prober::lies_on_its_device(int file) {
  struct statfs system;
  if (fstatfs(file, &system) != 0) {
    return false;
  }
  if (system.f_type == XFS_MAGIC) {
    alignas(8) unsigned char flags[EXTENDED_FLAGS_BYTES]{};
    return ioctl(file, GET_EXTENDED_FLAGS, flags) == 0 &&
           (number_at(flags, 0) & REALTIME_FLAG) == 0;
  }
  return system.f_type == EXT4_MAGIC;
}

uint32_t Atomic_prober::sector_bytes(dev_t device, int n_layers) const {
  /* What takes DAX is memory, which tears a block at any of its lines
  (Documentation/driver-api/nvdimm/btt.rst). */
  uint32_t least = queue_value(device, "dax") == 0
                       ? queue_value(device, "logical_block_size")
                       : 0;
  if (n_layers == 0) {
    return 0;
  }
  for (const char *disk : {"", "/.."}) {
    const std::filesystem::path folder = folder_of(device) + disk;

    std::ifstream loop{folder / "loop/backing_file"};
    std::string path;
    if (std::getline(loop, path)) {
      /* What begins within a sector has each of its own in two of them. */
      std::ifstream file{folder / "loop/offset"};
      uint64_t offset;
      struct stat status;
      least = file >> offset && stat(path.c_str(), &status) == 0
                  ? std::min(least, sector_bytes(status.st_dev, n_layers - 1))
                  : 0;
      if (least != 0 && offset % least != 0) {
        least = 0;
      }
    }

    /* It may change meanwhile: what cannot be read is not known. */
    std::error_code error;
    for (std::filesystem::directory_iterator entry{folder / "slaves", error};
         entry != std::filesystem::directory_iterator();
         entry.increment(error)) {
      std::ifstream file{entry->path() / "dev"};
      unsigned its_major, its_minor;
      char colon;
      least = file >> its_major >> colon >> its_minor
                  ? std::min(least, sector_bytes(makedev(its_major, its_minor),
                                                 n_layers - 1))
                  : 0;
    }
    if (error && error != std::errc::no_such_file_or_directory) {
      least = 0;
    }
  }
  return least;
}

uint32_t Atomic_prober::file_system_bytes(int file, dev_t device,
                                          uint32_t block_bytes,
                                          bool has_no_direct_io) const {
  struct statfs system;
  if (fstatfs(file, &system) != 0) {
    return 0;
  }
  if (system.f_type == ZFS_MAGIC) {
    /* The record size, of which each is a copy on write. */
    return block_bytes;
  }
  if (system.f_type == EXT4_MAGIC) {
    /* Each block of a write is in the journal by itself, so that one
    transaction can end between two blocks of a page. */
    unsigned long flags = 0;
    const bool is_said =
        journals_data(device) || (ioctl(file, GET_FLAGS, &flags) == 0 &&
                                  (flags & JOURNAL_DATA_FLAG) != 0);
    /* The file's flag has no effect with delayed allocation, nor without a
    journal. What writes data through its journal has no direct I/O, which
    statx() tells since Linux 6.1. */
    return is_said && has_no_direct_io ? static_cast<uint32_t>(system.f_bsize)
                                       : 0;
  }
  return 0;
}

bool Atomic_prober::journals_data(dev_t device) const {
  /* proc(5): "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root
  rw,errors=continue": the third is the device, the last the file system's own
  options. */
  std::ifstream mounts{m_mountinfo};
  const std::string number =
      std::to_string(major(device)) + ":" + std::to_string(minor(device));
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words{line};
    std::string id, parent, which, options;
    words >> id >> parent >> which;
    if (which != number) {
      continue;
    }
    for (std::string word; words >> word;) {
      options = word;
    }
    return ("," + options + ",").find(",data=journal,") != std::string::npos;
  }
  return false;
}

int Atomic_prober::try_rwf(const std::string &path, uint32_t page_bytes) {
  const size_t slash = path.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const Scratch_file file{folder};
  if (file.error() != 0) {
    return file.error();
  }
  void *page = nullptr;
  int error = posix_memalign(&page, page_bytes, page_bytes);
  if (error == 0) {
    memset(page, 0, page_bytes);
    error = posix_fallocate(file.get(), 0, page_bytes);
  }
  /* Where nothing was written before, and over what was. */
  for (unsigned i = 0; error == 0 && i < 2; ++i) {
    error = file.write(page, page_bytes, 0, ATOMIC_RWF);
  }
  free(page);
  return error;
}

}  // namespace spw
