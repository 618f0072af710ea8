/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file atomic/atomic0probe.h
Detection of the atomic write methods that a file's storage supports. */

#ifndef atomic0probe_h
#define atomic0probe_h

#include <sys/types.h>

#include <chrono>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "atomic/policy/atomic0write.h"

namespace spw {

/** RWF_ATOMIC of linux/fs.h, since Linux 6.11. Defined here because the C
library's headers may be older than the kernel. */
constexpr int ATOMIC_RWF = 0x40;

/** What the kernel reports about a block device and the file system on it. */
struct Device_capabilities {
  /** Start of a partition on its disk, in bytes; 0 for a whole disk. */
  uint64_t start_bytes;

  /** atomic_write_unit_max_bytes of the block queue; 0 if there is none. */
  uint32_t atomic_max_bytes;

  /** See Storage_capabilities. */
  uint32_t sector_bytes;
  bool sector_is_trusted;

  /** The file system is mounted with data=journal. */
  bool journals_data;

  /** errno of the first read that failed; 0 if none failed. */
  int error;
};

/** A mount of a file system on a device. */
struct Mount {
  dev_t device;

  /** statx(2): STATX_MNT_ID_UNIQUE. The kernel never uses one twice, so that
  the file system is the same while its ID is. 0 if the kernel (before
  Linux 6.8) reports none. */
  uint64_t id;

  auto operator<=>(const Mount &) const = default;
};

/** Detects which methods the storage of a file supports. The data of a device
from sysfs and the mount list is cached while one of the device's files is open.
Where the kernel reports a mount ID, it is cached longer, for a file that was
closed and that InnoDB opens again. Thread-safe; no mutex is held while files
are read. */
class Storage_probe {
 public:
  /** @param[in]  sysfs      mount point of sysfs
  @param[in]  mountinfo  the kernel's mount list (proc(5))
  @param[in]  has_mount_ids  false: as where the kernel reports no mount ID */
  explicit Storage_probe(std::string sysfs = "/sys",
                         std::string mountinfo = "/proc/self/mountinfo",
                         bool has_mount_ids = true)
      : m_sysfs(std::move(sysfs)),
        m_mountinfo(std::move(mountinfo)),
        m_has_mount_ids(has_mount_ids) {}

  /** Detect what a file's storage supports, and switch on directFS's atomic
  writes for the file. If the kernel reports RWF_ATOMIC for a page, a page is
  written to a Scratch_file in its folder. After the first success this is not
  repeated for the device and page size; nor, within EXAMINATION_TTL, for a file
  that stays open.
  @param[in]  file        the file, open as InnoDB will write it
  @param[in]  path        its path
  @param[in]  page_bytes  its page size, a power of 2
  @param[in]  stays_open  the file stays open, and closes() follows. What was
                          found earlier on the same mount holds, because other
                          files wait meanwhile
  @return the capabilities; one that cannot be determined counts as absent */
  [[nodiscard]] Storage_capabilities detect(int file, const std::string &path,
                                            uint32_t page_bytes,
                                            bool stays_open = false);

  /** @param[in]  path        the path of a file
  @param[in]  page_bytes  its page size
  @return whether detect() has nothing to examine and to write for the file: one
  of its device's files is open, or the device was examined within
  EXAMINATION_TTL, and the last test write of a page of this size, if one was
  needed, succeeded; true also if there is no such file */
  [[nodiscard]] bool is_fresh(const char *path, uint32_t page_bytes);

  /** A file that stayed open is about to be closed. Without a mount ID the data
  of a device is dropped with its last file: the file system may be a different
  one when a file is opened again.
  @param[in]  file  the file */
  void closes(int file);

  /** @param[in]  device  a device
  @return what sysfs and the mount list report about it now */
  [[nodiscard]] Device_capabilities examine(dev_t device) const;

 private:
  /** The sector size of a device, and whether its driver is trusted. */
  struct Sector {
    uint32_t bytes;
    bool is_trusted;
  };

  /** A test write. */
  struct Trial {
    /** Whether there was one: the kernel reported RWF_ATOMIC for the page. */
    bool was_made{false};

    /** See Storage_capabilities::rwf_error. */
    int error{0};

    std::chrono::steady_clock::time_point made_at;
  };

  struct Device {
    Device_capabilities capabilities;

    std::chrono::steady_clock::time_point examined_at;

    /** The page sizes for which detect() was called, each with the last result
    of try_rwf(). */
    std::map<uint32_t, Trial> trials;

    size_t n_open_files;
  };

  /** @return the number at the start of a file; none also if there is none */
  static std::optional<uint64_t> number_of(const std::string &path, int *error);

  /** @return the sysfs folder of a device */
  [[nodiscard]] std::string folder_of(dev_t device) const;

  /** @return whether the kernel writes the file's blocks to the device that
  fstat() names and to no other: files of ext4, and of XFS outside its realtime
  device. (f2fs can span devices; with FUSE a process writes the blocks.) */
  [[nodiscard]] static bool lies_on_its_device(int file);

  /** The unit that a device and all devices below it write atomically. The
  logical block size of a device mapper or loop device alone does not say so: it
  is configured, or the largest of the devices below, some of which may have
  smaller sectors.
  @param[in]      device    the device
  @param[in]      n_layers  max depth of the scan
  @param[in,out]  error     see read_text()
  @return the smallest logical block size, or 0 bytes if one is not known; and
  whether all drivers are trusted */
  [[nodiscard]] Sector sector(dev_t device, int n_layers, int *error) const;

  /** Trusted are NVMe, SATA and SCSI_TRUSTED on PCI, and also RAID, device
  mapper (DM_TRUSTED) and loop devices with direct I/O, for which sector()
  checks the devices below. Others (nbd, ublk, virtio, USB, networks) can write
  through a page cache, here or on another machine: a power cut there tears a
  sector that is larger than the medium's.
  @param[in]      path   Block_device::folder
  @param[in,out]  error   see read_text()
  @return whether its driver writes a sector atomically to the medium */
  [[nodiscard]] static bool driver_is_trusted(const std::filesystem::path &path,
                                              int *error);

  /** @return a number from the block queue of a device or, for a partition, of
  its disk; 0 if there is none */
  [[nodiscard]] uint32_t queue_value(dev_t device, const std::string &name,
                                     int *error) const;

  /** @return the largest write that the file system makes atomic by default, in
  bytes: a block of ext4 if the file's data goes through the journal, which the
  kernel confirms by having no direct I/O for the file; else 0 */
  [[nodiscard]] static uint32_t file_system_bytes(int file, bool journals_data,
                                                  bool has_no_direct_io);

  /** @return whether the mount options have data=journal */
  [[nodiscard]] bool journals_data(dev_t device, int *error) const;

  /** Write a page with RWF_ATOMIC to a scratch file.
  @return see Storage_capabilities::rwf_error */
  [[nodiscard]] static int try_rwf(const std::string &path,
                                   uint32_t page_bytes);

  /** @param[in]  file   an open file, or AT_FDCWD
  @param[in]  path   "" for the file, or a path
  @return its mount; none if there is no such file (errno) */
  [[nodiscard]] std::optional<Mount> mount_of(int file, const char *path) const;

  /** The caller holds m_mutex.
  @param[in]  mount       a mount
  @param[in]  stays_open  see detect()
  @return the cached data of its device if it was examined without an error, and
  one of its files is open, or that was within EXAMINATION_TTL, or the mount is
  the same and the file stays open; else nullptr */
  [[nodiscard]] Device *cached(const Mount &mount, bool stays_open);

  const std::string m_sysfs;
  const std::string m_mountinfo;
  const bool m_has_mount_ids;

  /** Leaf mutex: no other mutex is acquired under it. */
  std::mutex m_mutex;
  std::map<Mount, Device> m_devices;
};

}  // namespace spw

#endif /* atomic0probe_h */
