/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file atomic/atomic0probe.h
What the kernel and the storage say, and show, of whole writes. */

#ifndef atomic0probe_h
#define atomic0probe_h

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "atomic/policy/atomic0write.h"

namespace spw {

/** RWF_ATOMIC of linux/fs.h, since Linux 6.11; the C library's headers may be
older than the kernel. */
constexpr int ATOMIC_RWF = 0x40;

/** What is known of a device, or of a file system that has one to itself. */
struct Device_findings {
  /** Where it begins on its disk, in bytes; 0 if it is no partition. */
  uint64_t start_bytes;

  /** The block queue's atomic_write_unit_max_bytes; 0 if there is none. */
  uint32_t atomic_max_bytes;

  /** As Atomic_findings has them. */
  uint32_t sector_bytes;
  bool sector_is_trusted;

  /** It is mounted so that data is written through the journal. */
  bool journals_data;

  /** errno of the first look that failed; 0 if none did. */
  int error;
};

/** Finds out what makes writes to files whole. What sysfs and the list of
mounts say of a device is read once, and known as long as one of its files is
open. Can be called by several threads: no mutex is held while files are read.
*/
class Atomic_prober {
 public:
  /** @param[in]  sysfs   where sysfs is mounted
  @param[in]  mountinfo  the kernel's list of mounts (proc(5)) */
  explicit Atomic_prober(std::string sysfs = "/sys",
                         std::string mountinfo = "/proc/self/mountinfo")
      : m_sysfs(std::move(sysfs)), m_mountinfo(std::move(mountinfo)) {}

  /** Find out, and switch on what has to be (directFS's ioctl). A page is
  written to a Scratch_file beside the file if its file system says that it
  takes RWF_ATOMIC; until it has succeeded once for that file system and size of
  page.
  @param[in]  file        the file, open as it will be written
  @param[in]  path        its path
  @param[in]  page_bytes  its pages, a power of 2
  @param[in]  stays_open  it was opened to stay so: closes() follows
  @return what was found; what could not be found out is as if it were not */
  [[nodiscard]] Atomic_findings find(int file, const std::string &path,
                                     uint32_t page_bytes,
                                     bool stays_open = false);

  /** @param[in]  device  of a file
  @return whether find() does not have to examine it */
  [[nodiscard]] bool is_known(dev_t device);

  /** A file that stayed open is about to be closed. Behind the last of a
  device, what is known of that is forgotten: another may be there when one is
  opened again.
  @param[in]  file  the file */
  void closes(int file);

  /** @param[in]  device  a device
  @return what sysfs and the list of mounts say of it now */
  [[nodiscard]] Device_findings examine(dev_t device) const;

 private:
  /** A device's sector, and whether it can be relied on. */
  struct Sector {
    uint32_t bytes;
    bool is_trusted;
  };

  struct Device {
    Device_findings findings;

    std::chrono::steady_clock::time_point examined_at;

    /** Sizes of pages for which try_rwf() has succeeded. */
    std::set<uint32_t> rwf_page_bytes;

    size_t n_open_files;
  };

  /** @return a file's text; none if there is no such file, or if it cannot be
  read, which sets the error unless there is one already */
  static std::optional<std::string> text_of(const std::string &path,
                                            int *error);

  /** @return the number that a file begins with; none also if it has none */
  static std::optional<uint64_t> number_of(const std::string &path, int *error);

  /** @return sysfs' folder of a device */
  [[nodiscard]] std::string folder_of(dev_t device) const;

  /** @return whether a file is on the device that fstat() names and no other,
  written there by the kernel: of ext4, and of XFS but for its realtime device.
  (f2fs can have more devices, of FUSE a process writes the blocks.) */
  [[nodiscard]] static bool lies_on_its_device(int file);

  /** What a device and all below it write as a whole: a device mapper's, or a
  loop device's, has the logical blocks that it was told, or the largest of
  those below, which may write less at once.
  @param[in]      device    the device
  @param[in]      n_layers  how deep to look
  @param[in,out]  error     see text_of()
  @return the smallest logical block, 0 bytes if one of them is not known; and
  whether all drivers are trusted */
  [[nodiscard]] Sector sector(dev_t device, int n_layers, int *error) const;

  /** @param[in]      folder  sysfs' folder of a device
  @param[in,out]  error   see text_of()
  @return whether its driver writes a sector to the medium as a whole: NVMe and
  SCSI by PCI; device mapper and RAID if those below are; loop devices with
  direct I/O. Others (nbd, ublk, virtio, USB, iSCSI, fabrics) write through a
  page cache, or can, here or on another machine: a cut of the power there tears
  a sector that is larger than the medium's */
  [[nodiscard]] static bool driver_is_trusted(const std::string &folder,
                                              int *error);

  /** A number of the block queue that a device has, or its disk.
  @return 0 if there is none */
  [[nodiscard]] uint32_t queue_value(dev_t device, const std::string &name,
                                     int *error) const;

  /** @return the largest write that the file's file system makes whole without
  being asked; 0 if it makes none. It matters whether it has direct I/O for the
  file. */
  [[nodiscard]] static uint32_t file_system_bytes(int file, bool journals_data,
                                                  bool has_no_direct_io);

  /** @return whether a file system is mounted so that it writes data through
  its journal, as its options say */
  [[nodiscard]] bool journals_data(dev_t device, int *error) const;

  /** Write a page with RWF_ATOMIC.
  @return as Atomic_findings::rwf_error */
  [[nodiscard]] static int try_rwf(const std::string &path,
                                   uint32_t page_bytes);

  /** @return what could be found out of a device of which a file is open, or is
  just being opened (EXAMINED_FOR); nullptr if there is nothing. m_mutex is
  held */
  [[nodiscard]] Device *known(dev_t device);

  const std::string m_sysfs;
  const std::string m_mountinfo;

  /** Leaf: nothing is called under it. */
  std::mutex m_mutex;
  std::map<dev_t, Device> m_devices;
};

}  // namespace spw

#endif /* atomic0probe_h */
