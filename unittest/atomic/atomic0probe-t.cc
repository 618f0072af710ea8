/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "atomic/atomic0probe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace spw {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t PAGE_BYTES = 16384;
constexpr long EXT4_MAGIC = 0xef53;
constexpr long XFS_MAGIC = 0x58465342;

/** A file in the folder for temporary files, with a sysfs and a mount list that
each test fills. */
class AtomicProbe : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "atomic0probe-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    m_folder = name;
    m_path = m_folder / "file";
    std::ofstream(m_path) << "x";
    struct stat status;
    ASSERT_EQ(stat(m_path.c_str(), &status), 0);
    m_device = std::to_string(major(status.st_dev)) + ":" +
               std::to_string(minor(status.st_dev));
    struct statfs system;
    ASSERT_EQ(statfs(m_path.c_str(), &system), 0);
    m_is_ext4 = system.f_type == EXT4_MAGIC;
    m_has_sectors = m_is_ext4 || system.f_type == XFS_MAGIC;
  }

  void TearDown() override { fs::remove_all(m_folder); }

  void queue(const std::string &place, const std::string &name,
             const std::string &value) {
    const fs::path queue = m_folder / "sys/dev/block" / place / "queue";
    fs::create_directories(queue);
    std::ofstream(queue / name) << value << "\n";
  }

  /** Add a device with this name to sysfs, and link to it from dev/block. */
  void named(const std::string &place, const std::string &name) {
    const fs::path folder = m_folder / "sys/devices" / name;
    fs::create_directories(folder);
    fs::create_directories(m_folder / "sys/dev/block");
    fs::remove_all(m_folder / "sys/dev/block" / place);
    fs::create_directory_symlink(fs::absolute(folder),
                                 m_folder / "sys/dev/block" / place);
  }

  void mounts(const std::string &text) {
    std::ofstream(m_folder / "mountinfo") << text;
  }

  Storage_capabilities detect(int flags = O_RDWR) {
    Storage_probe probe{m_folder / "sys", m_folder / "mountinfo"};
    const int file = open(m_path.c_str(), flags);
    EXPECT_GE(file, 0);
    const auto storage = probe.detect(file, m_path, PAGE_BYTES);
    close(file);
    return storage;
  }

  fs::path m_folder;
  fs::path m_path;
  std::string m_device;
  bool m_is_ext4;
  /** The file is on ext4 or XFS, whose files lie on the device of st_dev. */
  bool m_has_sectors;
};

TEST_F(AtomicProbe, OrdinaryFileHasNoCapabilities) {
  const auto storage = detect();
  EXPECT_FALSE(storage.is_direct);
  EXPECT_FALSE(storage.ioctl_succeeds);
  EXPECT_EQ(storage.device_max_bytes, 0u);
  EXPECT_EQ(storage.sector_bytes, 0u);
  EXPECT_EQ(storage.file_system_bytes, 0u);
  /* RWF_ATOMIC is tried only if the units hold a page. */
  EXPECT_TRUE(storage.rwf_error == 0 || units_hold_page(storage, PAGE_BYTES));
}

TEST_F(AtomicProbe, DetectsDirectIo) {
  const int file = open(m_path.c_str(), O_RDWR | O_DIRECT);
  if (file < 0) {
    GTEST_SKIP() << "needs direct I/O";
  }
  close(file);
  EXPECT_TRUE(detect(O_RDWR | O_DIRECT).is_direct);
}

TEST_F(AtomicProbe, ReadsQueueOfDisk) {
  if (!m_has_sectors) {
    GTEST_SKIP() << "needs ext4 or XFS";
  }
  queue(m_device, "atomic_write_unit_max_bytes", "65536");
  queue(m_device, "logical_block_size", "4096");
  const auto storage = detect();
  EXPECT_EQ(storage.device_max_bytes, 65536u);
  EXPECT_EQ(storage.sector_bytes, 4096u);
}

TEST_F(AtomicProbe, PartitionUsesQueueOfItsDisk) {
  if (!m_has_sectors) {
    GTEST_SKIP() << "needs ext4 or XFS";
  }
  /* The kernel's folder of a partition is in that of its disk, and dev/block
  links to it. */
  fs::create_directories(m_folder / "sys/dev/block");
  fs::create_directories(m_folder / "sys/devices/disk/part");
  fs::create_directories(m_folder / "sys/devices/disk/queue");
  std::ofstream(m_folder / "sys/devices/disk/queue/logical_block_size")
      << "512\n";
  fs::create_directory_symlink(fs::absolute(m_folder / "sys/devices/disk/part"),
                               m_folder / "sys/dev/block" / m_device);
  EXPECT_EQ(detect().sector_bytes, 512u);
}

TEST_F(AtomicProbe, SmallestSectorOfAllDevicesBelow) {
  if (!m_has_sectors) {
    GTEST_SKIP() << "needs ext4 or XFS";
  }
  queue(m_device, "logical_block_size", "4096");
  queue("250:7", "logical_block_size", "4096");
  queue("250:8", "logical_block_size", "4096");
  EXPECT_EQ(detect().sector_bytes, 4096u);
  const fs::path slaves = m_folder / "sys/dev/block" / m_device / "slaves";
  for (const std::string minor : {"7", "8"}) {
    fs::create_directories(slaves / minor);
    std::ofstream(slaves / minor / "dev") << "250:" << minor << "\n";
  }
  EXPECT_EQ(detect().sector_bytes, 4096u);
  queue("250:8", "dax", "1");
  EXPECT_EQ(detect().sector_bytes, 0u);
  queue("250:8", "dax", "0");
  queue("250:8", "logical_block_size", "512");
  EXPECT_EQ(detect().sector_bytes, 512u);
  /* One device below is unknown. */
  fs::remove(slaves / "8/dev");
  EXPECT_EQ(detect().sector_bytes, 0u);
}

TEST_F(AtomicProbe, FileOnOtherFileSystemHasNoSector) {
  const int file = memfd_create("file", 0);
  ASSERT_GE(file, 0);
  struct stat status;
  ASSERT_EQ(fstat(file, &status), 0);
  queue(std::to_string(major(status.st_dev)) + ":" +
            std::to_string(minor(status.st_dev)),
        "logical_block_size", "4096");
  Storage_probe probe{m_folder / "sys", m_folder / "mountinfo"};
  const auto storage = probe.detect(file, m_path, PAGE_BYTES);
  EXPECT_EQ(storage.sector_bytes, 0u);
  EXPECT_FALSE(storage.sector_is_trusted);
  close(file);
}

TEST_F(AtomicProbe, LoopDeviceWithMissingFileOrCycleHasNoSector) {
  if (!m_has_sectors) {
    GTEST_SKIP() << "needs ext4 or XFS";
  }
  queue("250:7", "logical_block_size", "4096");
  const fs::path slave = m_folder / "sys/dev/block" / m_device / "slaves/7";
  fs::create_directories(slave);
  std::ofstream(slave / "dev") << "250:7\n";
  queue(m_device, "logical_block_size", "4096");
  EXPECT_EQ(detect().sector_bytes, 4096u);
  const fs::path loop = m_folder / "sys/dev/block/250:7/loop";
  fs::create_directories(loop);
  std::ofstream(loop / "offset") << "0\n";
  std::ofstream(loop / "backing_file") << m_folder.string() << "/nowhere\n";
  EXPECT_EQ(detect().sector_bytes, 0u);
  /* The scan ends also if devices form a cycle. */
  std::ofstream(loop / "backing_file") << m_path.string() << "\n";
  EXPECT_EQ(detect().sector_bytes, 0u);
}

TEST_F(AtomicProbe, LoopDeviceAtUnalignedOffsetHasNoSector) {
  if (!m_has_sectors) {
    GTEST_SKIP() << "needs ext4 or XFS";
  }
  /* /proc has no device below it: a backing file there ends the scan. */
  struct stat status;
  ASSERT_EQ(stat("/proc/version", &status), 0);
  queue(m_device, "logical_block_size", "4096");
  queue(std::to_string(major(status.st_dev)) + ":" +
            std::to_string(minor(status.st_dev)),
        "logical_block_size", "4096");
  const fs::path loop = m_folder / "sys/dev/block" / m_device / "loop";
  fs::create_directories(loop);
  std::ofstream(loop / "backing_file") << "/proc/version\n";
  EXPECT_EQ(detect().sector_bytes, 0u);
  /* 8192 = 2 * 4096: the begin of a sector. */
  std::ofstream(loop / "offset") << "8192\n";
  EXPECT_EQ(detect().sector_bytes, 4096u);
  /* 512 is within a sector. */
  std::ofstream(loop / "offset") << "512\n";
  EXPECT_EQ(detect().sector_bytes, 0u);
}

TEST_F(AtomicProbe, PartitionMustBeAlignedToPageSize) {
  queue(m_device, "atomic_write_unit_max_bytes", "65536");
  /* sysfs counts units of 512 bytes: 2048 * 512 = 1 MiB = 64 pages. */
  std::ofstream(m_folder / "sys/dev/block" / m_device / "start") << "2048\n";
  EXPECT_EQ(detect().device_max_bytes, 65536u);
  /* 63 * 512 = 32256 bytes are no multiple of a page. */
  std::ofstream(m_folder / "sys/dev/block" / m_device / "start") << "63\n";
  EXPECT_EQ(detect().device_max_bytes, 0u);
}

TEST_F(AtomicProbe, QueueFileWithoutNumberIsIgnored) {
  queue(m_device, "atomic_write_unit_max_bytes", "many");
  EXPECT_EQ(detect().device_max_bytes, 0u);
}

TEST_F(AtomicProbe, TrustedDrivers) {
  if (!m_has_sectors) {
    GTEST_SKIP() << "needs ext4 or XFS";
  }
  for (const std::string name :
       {"pci0000:00/nvme/nvme0/nvme0n1", "pci0000:00/ata1/host0/block/sda"}) {
    named(m_device, name);
    queue(m_device, "logical_block_size", "16384");
    EXPECT_TRUE(detect().sector_is_trusted) << name;
  }
  named(m_device, "virtual/block/md0");
  queue(m_device, "logical_block_size", "16384");
  EXPECT_FALSE(detect().sector_is_trusted);
  const fs::path level = m_folder / "sys/dev/block" / m_device / "md/level";
  fs::create_directories(level.parent_path());
  for (const auto &[text, is_trusted] : {std::pair{"linear", true},
                                         {"raid0", true},
                                         {"raid1", true},
                                         {"raid10", true},
                                         {"raid4", false},
                                         {"raid5", false},
                                         {"raid6", false}}) {
    std::ofstream(level) << text << "\n";
    EXPECT_EQ(detect().sector_is_trusted, is_trusted) << text;
  }
  named(m_device, "virtual/block/dm-0");
  queue(m_device, "logical_block_size", "16384");
  EXPECT_FALSE(detect().sector_is_trusted);
  const fs::path uuid = m_folder / "sys/dev/block" / m_device / "dm/uuid";
  fs::create_directories(uuid.parent_path());
  for (const auto &[text, is_trusted] : {std::pair{"LVM-Rb3c", true},
                                         {"mpath-360", true},
                                         {"CRYPT-LUKS2-6f0e-data", true},
                                         {"CRYPT-SUBDEV-6f0e-data_dif", false},
                                         {"INTEGRITY-data", false},
                                         {"", false}}) {
    std::ofstream(uuid) << text << "\n";
    EXPECT_EQ(detect().sector_is_trusted, is_trusted) << text;
  }
  std::ofstream(uuid) << "LVM-Rb3c\n";
  for (const auto &[text, is_trusted] : {std::pair{"vg-data", true},
                                         {"vg-data_rimage_0", false},
                                         {"vg-data_rimage_0_iorig", false},
                                         {"vg-data_rimage_0_imeta", false}}) {
    std::ofstream(uuid.parent_path() / "name") << text << "\n";
    EXPECT_EQ(detect().sector_is_trusted, is_trusted) << text;
  }
  fs::remove(uuid.parent_path() / "name");
  for (const std::string name :
       {"virtio0/block/vda", "virtual/block/nbd0", "virtual/block/ublkb0",
        "virtual/block/zram0", "virtual/block/loop0",
        "platform/host3/session1/target3/block/sdb",
        "pci0000:00/virtio3/host2/block/sdb", "pci0000:00/usb1/host2/block/sdb",
        "pci0000:00/host5/target5:0:0/block/sdc",
        "pci0000:00/host4/rport-4:0-0/block/sdb", "VMBUS:01/host0/block/sdb",
        "virtual/nvme-fabrics/ctl/nvme0/nvme0n1",
        "virtual/nvme-subsystem/nvme-subsys1/nvme1n1"}) {
    named(m_device, name);
    queue(m_device, "logical_block_size", "16384");
    EXPECT_EQ(detect().sector_bytes, 16384u) << name;
    EXPECT_FALSE(detect().sector_is_trusted) << name;
  }

  /* SCSI controllers, by their driver: SRP is a network. */
  const std::string host = "pci0000:00/host6";
  fs::create_directories(m_folder / "sys/devices" / host / "scsi_host/host6");
  named(m_device, host + "/target6:0:0/6:0:0:0/block/sdd");
  queue(m_device, "logical_block_size", "16384");
  for (const auto &[driver, is_trusted] :
       {std::pair{"mpt3sas", true}, {"ib_srp", false}, {"sbp2", false}}) {
    std::ofstream(m_folder / "sys/devices" / host / "scsi_host/host6/proc_name")
        << driver << "\n";
    EXPECT_EQ(detect().sector_is_trusted, is_trusted) << driver;
  }

  named(m_device, "virtual/block/loop0");
  /* The backing file of a loop device is on a file system without a device, as
  FUSE: the loop device's own sector counts, and is not trusted. */
  queue(m_device, "logical_block_size", "16384");
  const fs::path loop = m_folder / "sys/dev/block" / m_device / "loop";
  fs::create_directories(loop);
  std::ofstream(loop / "offset") << "0\n";
  std::ofstream(loop / "dio") << "1\n";
  std::ofstream(loop / "backing_file") << "/proc/version\n";
  EXPECT_EQ(detect().sector_bytes, 16384u);
  EXPECT_FALSE(detect().sector_is_trusted);
  fs::remove(loop / "backing_file");
  std::ofstream(loop / "dio") << "0\n";
  EXPECT_FALSE(detect().sector_is_trusted);
  std::ofstream(loop / "dio") << "1\n";
  EXPECT_TRUE(detect().sector_is_trusted);
  /* Without permission to examine the file the device is not examined. */
  EXPECT_EQ(detect().error, 0);
  std::ofstream(loop / "backing_file") << "/proc/version/below\n";
  EXPECT_EQ(detect().error, ENOTDIR);
  fs::remove(loop / "backing_file");

  /* A partition is trusted like its disk. */
  named(m_device, "pci0000:00/nvme/nvme0/nvme0n1/nvme0n1p1");
  queue(m_device, "logical_block_size", "16384");
  std::ofstream(m_folder / "sys/dev/block" / m_device / "partition") << "1\n";
  EXPECT_TRUE(detect().sector_is_trusted);

  /* With multipath every path has to be on PCI. */
  const fs::path paths = m_folder / "sys/devices/virtual/nvme-subsystem/n";
  for (const std::string controller : {"nvme0", "nvme1"}) {
    fs::create_directories(paths / controller);
    std::ofstream(paths / controller / "transport") << "pcie\n";
  }
  named(m_device, "virtual/nvme-subsystem/n/nvme0n1");
  queue(m_device, "logical_block_size", "16384");
  EXPECT_TRUE(detect().sector_is_trusted);
  std::ofstream(paths / "nvme1/transport") << "tcp\n";
  EXPECT_FALSE(detect().sector_is_trusted);
  std::ofstream(paths / "nvme1/transport") << "pcie\n";

  /* A device below is not trusted. */
  named("250:7", "virtual/block/nbd0");
  queue("250:7", "logical_block_size", "16384");
  const fs::path slave = m_folder / "sys/dev/block" / m_device / "slaves/7";
  fs::create_directories(slave);
  std::ofstream(slave / "dev") << "250:7\n";
  EXPECT_FALSE(detect().sector_is_trusted);
}

TEST_F(AtomicProbe, WithoutMountIdDeviceIsCachedWhileAFileIsOpen) {
  named(m_device, "nvme/nvme0/nvme0n1");
  queue(m_device, "atomic_write_unit_max_bytes", "65536");
  Storage_probe probe{m_folder / "sys", m_folder / "mountinfo", false};
  const int file = open(m_path.c_str(), O_RDWR);
  ASSERT_GE(file, 0);
  const auto bytes = [&](bool stays_open = false) {
    return probe.detect(file, m_path, PAGE_BYTES, stays_open).device_max_bytes;
  };
  EXPECT_FALSE(probe.is_fresh(m_path.c_str(), PAGE_BYTES));
  EXPECT_EQ(bytes(true), 65536u);
  EXPECT_EQ(bytes(true), 65536u);
  /* The cached data stays valid, although sysfs changes. */
  queue(m_device, "atomic_write_unit_max_bytes", "0");
  probe.closes(file);
  EXPECT_TRUE(probe.is_fresh(m_path.c_str(), PAGE_BYTES));
  EXPECT_EQ(bytes(), 65536u);
  probe.closes(file);
  EXPECT_FALSE(probe.is_fresh(m_path.c_str(), PAGE_BYTES));
  EXPECT_EQ(bytes(), 0u);
  /* closes() for an open that was not counted drops nothing. */
  probe.closes(file);
  EXPECT_TRUE(probe.is_fresh(m_path.c_str(), PAGE_BYTES));
  EXPECT_EQ(bytes(true), 0u);
  probe.closes(file);
  EXPECT_FALSE(probe.is_fresh(m_path.c_str(), PAGE_BYTES));
  close(file);
}

/* While its mount is the same, what is known of a device holds for a file that
InnoDB opens again: other files wait meanwhile. Where no mutex is held, the
device is examined again. */
TEST_F(AtomicProbe, DeviceIsKnownForItsMount) {
  unsigned char buffer[256]{};
  ASSERT_EQ(syscall(SYS_statx, AT_FDCWD, m_path.c_str(), 0, 0x4000, buffer), 0);
  if ((buffer[1] & 0x40) == 0) {
    GTEST_SKIP() << "the kernel reports no unique mount ID";
  }
  named(m_device, "nvme/nvme0/nvme0n1");
  queue(m_device, "atomic_write_unit_max_bytes", "65536");
  Storage_probe probe{m_folder / "sys", m_folder / "mountinfo"};
  const int file = open(m_path.c_str(), O_RDWR);
  ASSERT_GE(file, 0);
  const auto bytes = [&](bool stays_open) {
    return probe.detect(file, m_path, PAGE_BYTES, stays_open).device_max_bytes;
  };
  EXPECT_FALSE(probe.is_fresh(m_path.c_str(), PAGE_BYTES));
  EXPECT_EQ(bytes(true), 65536u);
  EXPECT_TRUE(probe.is_fresh(m_path.c_str(), PAGE_BYTES));
  /* A page of another size may need a test write. */
  EXPECT_FALSE(probe.is_fresh(m_path.c_str(), 2 * PAGE_BYTES));
  queue(m_device, "atomic_write_unit_max_bytes", "0");
  probe.closes(file);
  /* EXAMINATION_TTL */
  std::this_thread::sleep_for(std::chrono::seconds{1});
  EXPECT_FALSE(probe.is_fresh(m_path.c_str(), PAGE_BYTES));
  EXPECT_EQ(bytes(true), 65536u);
  probe.closes(file);
  EXPECT_EQ(bytes(false), 0u);
  EXPECT_EQ(bytes(true), 0u);
  /* Another mount. */
  EXPECT_FALSE(probe.is_fresh("/proc/version", PAGE_BYTES));
  close(file);
}

TEST_F(AtomicProbe, FailedExaminationIsReportedAndRepeated) {
  named(m_device, "nvme/nvme0/nvme0n1");
  queue(m_device, "atomic_write_unit_max_bytes", "65536");
  queue(m_device, "logical_block_size", "16384");
  Storage_probe probe{m_folder / "sys", m_folder / "mountinfo"};
  const int file = open(m_path.c_str(), O_RDWR);
  ASSERT_GE(file, 0);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(file) + 1;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto failed = probe.detect(file, m_path, PAGE_BYTES);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(failed.error, EMFILE);
  EXPECT_EQ(failed.device_max_bytes, 0u);
  const auto again = probe.detect(file, m_path, PAGE_BYTES, true);
  EXPECT_EQ(again.error, 0);
  EXPECT_EQ(again.device_max_bytes, 65536u);
  close(file);
}

/* The layer below could not be examined, and may have smaller sectors. */
TEST_F(AtomicProbe, PartlyExaminedDeviceHasNoSector) {
  struct stat status;
  ASSERT_EQ(stat(m_path.c_str(), &status), 0);
  queue(m_device, "atomic_write_unit_max_bytes", "65536");
  queue(m_device, "logical_block_size", "16384");
  const Storage_probe probe{m_folder / "sys", m_folder / "mountinfo"};
  EXPECT_EQ(probe.examine(status.st_dev).sector_bytes, 16384u);
  fs::create_symlink("slaves",
                     m_folder / "sys/dev/block" / m_device / "slaves");
  const auto found = probe.examine(status.st_dev);
  EXPECT_EQ(found.error, ELOOP);
  EXPECT_EQ(found.sector_bytes, 0u);
  EXPECT_FALSE(found.sector_is_trusted);
  EXPECT_EQ(found.atomic_max_bytes, 65536u);
}

TEST_F(AtomicProbe, DetectsMountOptionDataJournal) {
  struct stat status;
  ASSERT_EQ(stat(m_path.c_str(), &status), 0);
  const Storage_probe probe{m_folder / "sys", m_folder / "mountinfo"};
  const auto journals_data = [&] {
    return probe.examine(status.st_dev).journals_data;
  };
  const std::string before = "1 0 0:1 / /proc rw - proc proc rw,data=journal\n";
  mounts(before + "2 0 " + m_device +
         " / / rw shared:1 - ext4 /dev/root rw,data=journal\n");
  EXPECT_TRUE(journals_data());
  /* A file that has direct I/O is not written through the journal, in spite of
  the mount options. */
  struct statx direct {};
  ASSERT_EQ(statx(AT_FDCWD, m_path.c_str(), 0, STATX_DIOALIGN, &direct), 0);
  if (m_is_ext4 && direct.stx_dio_mem_align != 0) {
    EXPECT_EQ(detect(O_RDWR | O_DIRECT).file_system_bytes, 0u);
  }
  mounts(before + "2 0 " + m_device +
         " / / rw - ext4 /dev/root rw,data=journal,errors=continue\n");
  EXPECT_TRUE(journals_data());
  /* data=journal of another file system, no mode, and another mode. */
  mounts(before + "2 0 " + m_device + " / / rw - ext4 /dev/root rw\n");
  EXPECT_FALSE(journals_data());
  mounts(before + "2 0 " + m_device +
         " / / rw - ext4 /dev/root rw,data=journal_async\n");
  EXPECT_FALSE(journals_data());
}

}  // namespace
}  // namespace spw
