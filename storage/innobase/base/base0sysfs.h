/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file base/base0sysfs.h
Block devices and the devices below them, as sysfs has them. */

#ifndef base0sysfs_h
#define base0sysfs_h

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace spw {

/** @param[in]      path   a small file, as those of sysfs and proc
@param[in,out]  error  set to errno if it is 0 and the read fails for another
                       reason than that the file does not exist
@return the content of the file; none if it does not exist or cannot be read */
inline std::optional<std::string> read_text(const std::string &path,
                                            int *error) {
  const auto fail = [error] {
    *error = *error == 0 ? errno : *error;
    return std::nullopt;
  };
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return errno == ENOENT || errno == ENOTDIR ? std::nullopt : fail();
  }
  std::string text;
  char buffer[4096];
  ssize_t n_bytes;
  while ((n_bytes = read(file, buffer, sizeof(buffer))) > 0) {
    text.append(buffer, static_cast<size_t>(n_bytes));
  }
  if (n_bytes < 0) {
    (void)fail();
  }
  close(file);
  return n_bytes < 0 ? std::nullopt : std::optional{text};
}

/** @param[in]  sysfs   mount point of sysfs
@param[in]  device  a block device
@return its folder in sysfs */
inline std::string block_device_folder(const std::string &sysfs, dev_t device) {
  return sysfs + "/dev/block/" + std::to_string(major(device)) + ":" +
         std::to_string(minor(device));
}

/** A block device, and what is directly below it. */
struct Block_device {
  /** The folder in sysfs, without symbolic links; for a partition that of its
  disk. Empty if there is no such device. */
  std::filesystem::path folder;

  /** The backing file of a loop device. */
  std::optional<std::string> backing_file;

  /** Folders of the devices below a device mapper or RAID device. */
  std::vector<std::filesystem::path> slaves;
};

/** @param[in]      folder  the folder of a block device in sysfs
@param[in,out]  error   see read_text()
@return the device */
inline Block_device read_block_device(const std::filesystem::path &folder,
                                      int *error) {
  const auto note = [error](const std::error_code &failure) {
    if (failure && failure != std::errc::no_such_file_or_directory &&
        *error == 0) {
      *error = failure.value();
    }
  };
  Block_device device;
  std::error_code failure;
  std::filesystem::path path = std::filesystem::canonical(folder, failure);
  if (failure) {
    note(failure);
    return device;
  }
  if (std::filesystem::exists(path / "partition", failure)) {
    path = path.parent_path();
  }
  device.folder = path;
  device.backing_file = read_text(path / "loop/backing_file", error);
  if (device.backing_file) {
    device.backing_file->resize(device.backing_file->find_last_not_of('\n') +
                                1);
  }
  failure.clear();
  for (std::filesystem::directory_iterator entry{path / "slaves", failure};
       entry != std::filesystem::directory_iterator();
       entry.increment(failure)) {
    device.slaves.push_back(entry->path());
  }
  note(failure);
  return device;
}

}  // namespace spw

#endif /* base0sysfs_h */
