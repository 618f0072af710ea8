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
#include <map>
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
  written to a nameless scratch file beside the file if its file system says
  that it takes RWF_ATOMIC; once for each file system and size of page.
  @param[in]  file        the file, open as it will be written
  @param[in]  path        its path
  @param[in]  page_bytes  its pages, a power of 2
  @return what was found; what could not be found out is as if it were not */
  [[nodiscard]] Atomic_findings find(int file, const std::string &path,
                                     uint32_t page_bytes);

 private:
  /** A file of the block queue that a device has, or its disk.
  @return its number; 0 if there is none */
  [[nodiscard]] uint32_t queue_value(dev_t device,
                                     const std::string &name) const;

  /** @return the largest write that the file's file system makes whole without
  being asked; 0 if it makes none */
  [[nodiscard]] uint32_t file_system_bytes(int file, dev_t device,
                                           uint32_t block_bytes) const;

  /** @return whether a file system is mounted so that it writes data through
  its journal */
  [[nodiscard]] bool journals_data(dev_t device) const;

  /** @return whether a page written with RWF_ATOMIC was taken */
  [[nodiscard]] static bool try_rwf(const std::string &path,
                                    uint32_t page_bytes);

  const std::string m_sysfs;
  const std::string m_mountinfo;

  /** What try_rwf() has said, by file system and size of page. */
  std::map<std::pair<dev_t, uint32_t>, bool> m_tried;
};

}  // namespace spw

#endif /* atomic0probe_h */
