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

/** Makes a folder, and in it the sysfs of the devices that store the folder. */
class DiskReader : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "spw-disk-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    m_root = fs::canonical(name);
    struct stat status;
    ASSERT_EQ(stat(m_root.c_str(), &status), 0);
    m_device_number = std::to_string(major(status.st_dev)) + ":" +
                      std::to_string(minor(status.st_dev));
    fs::create_directories(m_root / "sys/dev/block");
  }

  void TearDown() override { fs::remove_all(m_root); }

  /** Make a device with 7 completed reads and 5 completed writes.
  @param[in]  name     its folder below sysfs
  @param[in]  busy_ms  busy time: milliseconds
  @return the folder */
  fs::path add_device(const std::string &name, uint64_t busy_ms) const {
    const fs::path folder = m_root / "sys/devices" / name;
    fs::create_directories(folder / "slaves");
    std::ofstream{folder / "stat"} << "7 0 0 0 5 0 0 0 0 " << busy_ms
                                   << " 0 0 0 0 0 0 0\n";
    return folder;
  }

  /** Make a device the one that stores the folder. */
  void store_folder_on(const fs::path &device) const {
    fs::create_symlink(device, m_root / "sys/dev/block" / m_device_number);
  }

  /** @return busy time in milliseconds of each disk that is detected; empty if
  there is none, for the reason m_error */
  std::vector<uint64_t> detected_busy_ms() {
    Disk_reader reader{m_root / "sys"};
    m_error.clear();
    std::vector<uint64_t> busy_ms;
    if (reader.open(m_root, &m_error)) {
      for (const Disk_work &work : reader.read()) {
        /* 7 reads + 5 writes */
        EXPECT_EQ(work.n_ios, 12u);
        busy_ms.push_back(work.busy_ms);
      }
    }
    return busy_ms;
  }

  fs::path m_root;
  std::string m_device_number;
  std::string m_error;
};

/* The disks are told apart by their busy times. */
using Busy_ms = std::vector<uint64_t>;

TEST_F(DiskReader, DiskWithoutPartitions) {
  store_folder_on(add_device("sda", 11));
  EXPECT_EQ(detected_busy_ms(), Busy_ms{11});
}

TEST_F(DiskReader, PartitionCountsAsItsDisk) {
  add_device("sda", 11);
  const fs::path partition = add_device("sda/sda1", 22);
  std::ofstream{partition / "partition"} << "1\n";
  store_folder_on(partition);
  EXPECT_EQ(detected_busy_ms(), Busy_ms{11});
}

TEST_F(DiskReader, DeviceMapperCountsAsEachOfItsDisksOnce) {
  const fs::path mapper = add_device("dm-0", 33);
  const fs::path mirror = add_device("md0", 44);
  fs::create_symlink(mirror, mapper / "slaves/md0");
  fs::create_symlink(add_device("sda", 11), mirror / "slaves/sda");
  fs::create_symlink(add_device("sdb", 12), mirror / "slaves/sdb");
  fs::create_symlink(m_root / "sys/devices/sda", mapper / "slaves/sda");
  store_folder_on(mapper);
  Busy_ms busy_ms = detected_busy_ms();
  std::sort(busy_ms.begin(), busy_ms.end());
  EXPECT_EQ(busy_ms, (Busy_ms{11, 12}));
}

TEST_F(DiskReader, LoopDeviceOfDeletedFileCountsItself) {
  const fs::path loop = add_device("loop0", 55);
  fs::create_directories(loop / "loop");
  std::ofstream{loop / "loop/backing_file"} << "/no/such/image (deleted)\n";
  store_folder_on(loop);
  EXPECT_EQ(detected_busy_ms(), Busy_ms{55});
}

TEST_F(DiskReader, LoopDeviceOfFileOnNoDiskCountsItself) {
  const fs::path loop = add_device("loop0", 55);
  fs::create_directories(loop / "loop");
  std::ofstream{loop / "loop/backing_file"} << "/proc/version\n";
  store_folder_on(loop);
  EXPECT_EQ(detected_busy_ms(), Busy_ms{55});
}

TEST_F(DiskReader, LoopDeviceCountsAsDiskOfItsFile) {
  /* The backing file is in the folder, which dm-0 stores: loop0 and sda are
  below dm-0, and dm-0 is below loop0. */
  const fs::path loop = add_device("loop0", 55);
  fs::create_directories(loop / "loop");
  std::ofstream{m_root / "image"} << "\n";
  std::ofstream{loop / "loop/backing_file"} << (m_root / "image").string()
                                            << "\n";
  const fs::path mapper = add_device("dm-0", 33);
  fs::create_symlink(loop, mapper / "slaves/loop0");
  fs::create_symlink(add_device("sda", 11), mapper / "slaves/sda");
  store_folder_on(mapper);
  /* The search ends in spite of this loop. */
  EXPECT_EQ(detected_busy_ms(), Busy_ms{11});
}

TEST_F(DiskReader, ErrorIfFileSystemIsOnNoBlockDevice) {
  EXPECT_EQ(detected_busy_ms(), Busy_ms{});
  EXPECT_EQ(m_error,
            "the file system of " + m_root.string() + " is on no block device");
  /* The link in sysfs leads nowhere. */
  store_folder_on(m_root / "sys/devices/gone");
  EXPECT_EQ(detected_busy_ms(), Busy_ms{});
}

TEST_F(DiskReader, ErrorIfStatisticsCannotBeRead) {
  const fs::path disk = add_device("sda", 1);
  store_folder_on(disk);
  /* 3 of 17 fields */
  std::ofstream{disk / "stat"} << "1 2 3\n";
  EXPECT_EQ(detected_busy_ms(), Busy_ms{});
  EXPECT_EQ(m_error, (disk / "stat").string() + " cannot be read");
}

TEST_F(DiskReader, ErrorIfFolderDoesNotExist) {
  std::string error;
  EXPECT_FALSE(Disk_reader{m_root / "sys"}.open(m_root / "none", &error));
  EXPECT_EQ(error, (m_root / "none").string() + ": No such file or directory");
}

}  // namespace
}  // namespace spw
