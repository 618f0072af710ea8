/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "flush/flush0disk.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace spw {
namespace {

namespace fs = std::filesystem;

/** A folder, and below it the sysfs of the devices that it is on. */
class DiskReader : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "spw-disk-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    m_root = fs::canonical(name);
    struct stat status;
    ASSERT_EQ(stat(m_root.c_str(), &status), 0);
    m_number = std::to_string(major(status.st_dev)) + ":" +
               std::to_string(minor(status.st_dev));
    fs::create_directories(m_root / "sys/dev/block");
  }

  void TearDown() override { fs::remove_all(m_root); }

  /** Make a device.
  @param[in]  name  its folder below sysfs
  @param[in]  busy  busy time: milliseconds */
  fs::path add_device(const std::string &name, uint64_t busy) const {
    const fs::path folder = m_root / "sys/devices" / name;
    fs::create_directories(folder / "slaves");
    std::ofstream{folder / "stat"} << "7 0 0 0 5 0 0 0 0 " << busy
                                   << " 0 0 0 0 0 0 0\n";
    return folder;
  }

  /** Put the folder's file system on this device. */
  void is_on(const fs::path &device) const {
    fs::create_symlink(device, m_root / "sys/dev/block" / m_number);
  }

  /** @return busy time of each disk that is detected; empty if there is none */
  std::vector<uint64_t> found() {
    Disk_reader reader{m_root / "sys"};
    why.clear();
    std::vector<uint64_t> busy;
    if (reader.open(m_root, &why)) {
      for (const Disk_work &work : reader.read()) {
        EXPECT_EQ(work.n_ios, 12u);
        busy.push_back(work.busy_ms);
      }
    }
    return busy;
  }

  fs::path m_root;
  std::string m_number;
  std::string why;
};

using Busy = std::vector<uint64_t>;

TEST_F(DiskReader, ADiskIsItself) {
  is_on(add_device("sda", 11));
  EXPECT_EQ(found(), Busy{11});
}

TEST_F(DiskReader, APartitionIsOnItsDisk) {
  add_device("sda", 11);
  const fs::path partition = add_device("sda/sda1", 22);
  std::ofstream{partition / "partition"} << "1\n";
  is_on(partition);
  EXPECT_EQ(found(), Busy{11});
}

TEST_F(DiskReader, TheDeviceMapperIsOnAllOfItsDisksEachOnce) {
  const fs::path mapper = add_device("dm-0", 33);
  const fs::path mirror = add_device("md0", 44);
  fs::create_symlink(mirror, mapper / "slaves/md0");
  fs::create_symlink(add_device("sda", 11), mirror / "slaves/sda");
  fs::create_symlink(add_device("sdb", 12), mirror / "slaves/sdb");
  fs::create_symlink(m_root / "sys/devices/sda", mapper / "slaves/sda");
  is_on(mapper);
  Busy busy = found();
  std::sort(busy.begin(), busy.end());
  EXPECT_EQ(busy, (Busy{11, 12}));
}

TEST_F(DiskReader, ALoopDeviceWhoseFileIsNotThereCountsItself) {
  const fs::path loop = add_device("loop0", 55);
  fs::create_directories(loop / "loop");
  std::ofstream{loop / "loop/backing_file"} << "/no/such/image (deleted)\n";
  is_on(loop);
  EXPECT_EQ(found(), Busy{55});
}

TEST_F(DiskReader, ALoopDeviceWhoseFileIsOnNoDiskCountsItself) {
  const fs::path loop = add_device("loop0", 55);
  fs::create_directories(loop / "loop");
  std::ofstream{loop / "loop/backing_file"} << "/proc/version\n";
  is_on(loop);
  EXPECT_EQ(found(), Busy{55});
}

TEST_F(DiskReader, ALoopDeviceIsOnTheDiskOfItsFile) {
  /* The backing file is in the folder itself, whose device is the disk. */
  const fs::path loop = add_device("loop0", 55);
  fs::create_directories(loop / "loop");
  std::ofstream{m_root / "image"} << "\n";
  std::ofstream{loop / "loop/backing_file"} << (m_root / "image").string()
                                            << "\n";
  const fs::path mapper = add_device("dm-0", 33);
  fs::create_symlink(loop, mapper / "slaves/loop0");
  fs::create_symlink(add_device("sda", 11), mapper / "slaves/sda");
  is_on(mapper);
  /* The search ends, although the loop device is below the device of its
  backing file. */
  EXPECT_EQ(found(), Busy{11});
}

TEST_F(DiskReader, SaysWhyThereIsNone) {
  EXPECT_EQ(found(), Busy{});
  EXPECT_EQ(why,
            "the file system of " + m_root.string() + " is on no block device");
  is_on(m_root / "sys/devices/gone");
  EXPECT_EQ(found(), Busy{});
  const fs::path disk = add_device("gone", 1);
  std::ofstream{disk / "stat"} << "1 2 3\n";
  EXPECT_EQ(found(), Busy{});
  EXPECT_EQ(why, (disk / "stat").string() + " cannot be read");
  std::string error;
  EXPECT_FALSE(Disk_reader{m_root / "sys"}.open(m_root / "none", &error));
  EXPECT_EQ(error, (m_root / "none").string() + ": No such file or directory");
}

}  // namespace
}  // namespace spw
