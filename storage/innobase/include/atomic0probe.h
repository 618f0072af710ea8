/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file include/atomic0probe.h
What the kernel and the storage say, and show, of whole writes. */

#ifndef atomic0probe_h
#define atomic0probe_h

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "policy/atomic0write.h"

namespace spw {

/** RWF_ATOMIC of linux/fs.h, since Linux 6.11; the C library's headers may be
older than the kernel. */
constexpr int ATOMIC_RWF = 0x40;

/** Finds out what makes writes to files whole. The caller serialises calls. */
class Atomic_prober {
 public:
  /** @param[in]  sysfs   where sysfs is mounted
  @param[in]  mountinfo  the kernel's list of mounts (proc(5)) */
  explicit Atomic_prober(std::string sysfs = "/sys",
                         std::string mountinfo = "/proc/self/mountinfo")
      : m_sysfs(std::move(sysfs)), m_mountinfo(std::move(mountinfo)) {}

  /** Find out, and switch on what has to be (directFS's ioctl). A page is
  written to a Scratch_file beside the file if its file system says
  that it takes RWF_ATOMIC; until it has succeeded once for that file system and
  size of page.
  @param[in]  file        the file, open as it will be written
  @param[in]  path        its path
  @param[in]  page_bytes  its pages, a power of 2
  @return what was found; what could not be found out is as if it were not */
  [[nodiscard]] Atomic_findings find(int file, const std::string &path,
                                     uint32_t page_bytes);

  /** @return whether a file system is mounted so that it writes data through
  its journal, as its options say */
  [[nodiscard]] bool journals_data(dev_t device) const;

 private:
  /** @return sysfs' folder of a device */
  [[nodiscard]] std::string folder_of(dev_t device) const;

  /** @return whether a device, if it is a partition, begins where a page would:
  else its pages do not lie as the disk writes them whole */
  [[nodiscard]] bool begins_at_multiple(dev_t device,
                                        uint32_t page_bytes) const;

  /** @return whether a file is on the device that fstat() names and no other,
  written there by the kernel: of ext4, and of XFS but for its realtime device.
  (f2fs can have more devices, of FUSE a process writes the blocks.) */
  [[nodiscard]] static bool lies_on_its_device(int file);

  /** What a device and all below it write as a whole: a device mapper's, or a
  loop device's, has the logical blocks that it was told, or the largest of
  those below, which may write less at once.
  @param[in]  device    the device
  @param[in]  n_layers  how deep to look
  @return the least logical block; 0 if one of them is not known */
  [[nodiscard]] uint32_t sector_bytes(dev_t device, int n_layers) const;

  /** A file of the block queue that a device has, or its disk.
  @return its number; 0 if there is none */
  [[nodiscard]] uint32_t queue_value(dev_t device,
                                     const std::string &name) const;

  /** @return the largest write that the file's file system makes whole without
  being asked; 0 if it makes none. It matters whether it has direct I/O for the
  file. */
  [[nodiscard]] uint32_t file_system_bytes(int file, dev_t device,
                                           uint32_t block_bytes,
                                           bool has_no_direct_io) const;

  /** Write a page with RWF_ATOMIC.
  @return as Atomic_findings::rwf_error */
  [[nodiscard]] static int try_rwf(const std::string &path,
                                   uint32_t page_bytes);

  const std::string m_sysfs;
  const std::string m_mountinfo;

  /** Where try_rwf() has succeeded: file system and size of page. */
  std::set<std::pair<dev_t, uint32_t>> m_taken;
};

}  // namespace spw

#endif /* atomic0probe_h */
