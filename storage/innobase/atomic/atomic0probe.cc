/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file atomic/atomic0probe.cc
Detection of the atomic write methods that a file's storage supports. */

#include "atomic/atomic0probe.h"

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
#include <sstream>
#include <system_error>

#include "base/base0sysfs.h"
#include "base/scratch0file.h"

namespace spw {

namespace {

/** directFS: _IOW(0x95, 2, unsigned). Source: MariaDB 10.0. */
constexpr unsigned long DIRECTFS_ATOMIC_WRITES = 0x40049502;

/** An ioctl of the same kind that no file system defines: one that accepts it
accepts any ioctl and promises nothing. */
constexpr unsigned long UNDEFINED_IOCTL = 0x4004957f;

/** Prefixes of dm/uuid of devices that write a sector atomically if the devices
below do: LVM, multipath and dm-crypt. */
constexpr const char *DM_TRUSTED[] = {"LVM-", "mpath-", "CRYPT-LUKS1-",
                                      "CRYPT-LUKS2-", "CRYPT-PLAIN-"};

/** Parts of names below LVM that show dm-integrity (lvcreate --raidintegrity)
and RAID, of which sysfs does not say whether it has parity. */
constexpr const char *DM_NOT_TRUSTED[] = {"_iorig", "_imeta", "_rimage_"};

/** md/level of software RAID that writes a sector atomically if the devices
below do. */
constexpr const char *MD_TRUSTED[] = {"linear", "raid0", "raid1", "raid10"};

/** SCSI drivers of local controllers, as scsi_host/hostN/proc_name has them.
Others reach disks over USB, FireWire or a network (iSCSI, Fibre Channel, SRP),
or belong to a hypervisor: what answers can be a file with a page cache. */
constexpr const char *SCSI_TRUSTED[] = {"aacraid", "hpsa",    "megaraid_sas",
                                        "mpi3mr",  "mpt2sas", "mpt3sas",
                                        "smartpqi"};

/** Max depth of stacked devices. */
constexpr int LAYERS_MAX = 8;

/** How long the data of a device without open files stays valid: from its
examination, for which InnoDB holds no mutex, until InnoDB opens the file. */
constexpr std::chrono::seconds EXAMINATION_TTL{1};

/** linux/stat.h: the request bits, and the offsets in struct statx. */
constexpr unsigned STATX_ATOMIC = 0x10000;
constexpr unsigned STATX_DIRECT = 0x2000;
constexpr unsigned STATX_UNIQUE_MOUNT_ID = 0x4000;
constexpr size_t STATX_BYTES = 256;
constexpr size_t STATX_MASK = 0;
constexpr size_t STATX_MOUNT_ID = 0x90;
constexpr size_t STATX_DIRECT_MEM_ALIGN = 0x98;
constexpr size_t STATX_UNIT_MIN = 0xa8;
constexpr size_t STATX_UNIT_MAX = 0xac;
constexpr size_t STATX_UNIT_MAX_OPT = 0xb8;

/** statfs(2): f_type. */
constexpr long EXT4_MAGIC = 0xef53;
constexpr long XFS_MAGIC = 0x58465342;

/** ioctl_xfs_fsgetxattr(2): FS_IOC_FSGETXATTR, the size of its structure, whose
first field holds the flags, and the flag of a file on XFS's realtime device. */
constexpr unsigned long GET_EXTENDED_FLAGS = 0x801c581f;
constexpr size_t EXTENDED_FLAGS_BYTES = 28;
constexpr uint32_t REALTIME_FLAG = 0x1;

/** ioctl_iflags(2): FS_IOC_GETFLAGS, and the flag that chattr +j sets. */
constexpr unsigned long GET_FLAGS = 0x80086601;
constexpr unsigned long JOURNAL_DATA_FLAG = 0x4000;

uint32_t number_at(const unsigned char *buffer, size_t offset) {
  uint32_t number;
  memcpy(&number, buffer + offset, sizeof(number));
  return number;
}

}  // namespace

Storage_capabilities Storage_probe::detect(int file, const std::string &path,
                                           uint32_t page_bytes,
                                           bool stays_open) {
  Storage_capabilities found{};
  const std::optional<Mount> mount = mount_of(file, "");
  if (!mount) {
    found.error = errno;
    return found;
  }

  const unsigned on = 1;
  found.ioctl_succeeds = ioctl(file, UNDEFINED_IOCTL, &on) != 0 &&
                         ioctl(file, DIRECTFS_ATOMIC_WRITES, &on) == 0;

  /* By offset, because the C library's structure may lack these fields. */
  alignas(8) unsigned char buffer[STATX_BYTES]{};
  bool has_no_direct_io = false;
  if (syscall(SYS_statx, file, "", AT_EMPTY_PATH, STATX_ATOMIC | STATX_DIRECT,
              buffer) == 0) {
    const bool is_reported =
        (number_at(buffer, STATX_MASK) & STATX_DIRECT) != 0;
    found.direct_is_confirmed =
        is_reported && number_at(buffer, STATX_DIRECT_MEM_ALIGN) != 0;
    has_no_direct_io = is_reported && !found.direct_is_confirmed;
    found.unit_min_bytes = number_at(buffer, STATX_UNIT_MIN);
    found.unit_max_bytes = number_at(buffer, STATX_UNIT_MAX);
    found.unit_max_opt_bytes = number_at(buffer, STATX_UNIT_MAX_OPT);
  }
  found.is_direct = (fcntl(file, F_GETFL) & O_DIRECT) != 0 && !has_no_direct_io;

  const bool needs_rwf = units_hold_page(found, page_bytes);
  std::unique_lock lock{m_mutex};
  const Device *cached_device = cached(*mount, stays_open);
  const bool is_examined = cached_device != nullptr;
  Device_capabilities device{};
  Trial trial;
  if (is_examined) {
    device = cached_device->capabilities;
    if (const auto made = cached_device->trials.find(page_bytes);
        made != cached_device->trials.end()) {
      trial = made->second;
    }
  }
  lock.unlock();

  if (!is_examined) {
    device = examine(mount->device);
  }
  const bool is_recent = stays_open && std::chrono::steady_clock::now() <
                                           trial.made_at + EXAMINATION_TTL;
  const bool tries =
      needs_rwf && (!trial.was_made || (trial.error != 0 && !is_recent));
  if (tries) {
    trial.was_made = true;
    trial.error = try_rwf(path, page_bytes);
  }
  const auto now = std::chrono::steady_clock::now();
  if (tries) {
    trial.made_at = now;
  }
  found.rwf_error = needs_rwf ? trial.error : 0;

  lock.lock();
  const auto [place, is_new] = m_devices.try_emplace(*mount);
  Device &entry = place->second;
  if (!is_examined || is_new) {
    entry.capabilities = device;
    entry.trials.clear();
  }
  if (!is_examined) {
    entry.examined_at = now;
  }
  entry.n_open_files += stays_open ? 1 : 0;
  Trial &known = entry.trials[page_bytes];
  /* Another thread's success stays. */
  if (tries && (!known.was_made || known.error != 0)) {
    known = trial;
  }
  lock.unlock();

  found.error = device.error;
  found.device_max_bytes =
      device.start_bytes % page_bytes == 0 ? device.atomic_max_bytes : 0;
  if (lies_on_its_device(file)) {
    found.sector_bytes = device.sector_bytes;
    found.sector_is_trusted = device.sector_is_trusted;
  }
  found.file_system_bytes =
      file_system_bytes(file, device.journals_data, has_no_direct_io);
  return found;
}

std::optional<Mount> Storage_probe::mount_of(int file, const char *path) const {
  struct stat status;
  if (fstatat(file, path, &status, AT_EMPTY_PATH) != 0) {
    return {};
  }
  Mount mount{.device = status.st_dev, .id = 0};
  alignas(8) unsigned char buffer[STATX_BYTES]{};
  if (m_has_mount_ids &&
      syscall(SYS_statx, file, path, AT_EMPTY_PATH, STATX_UNIQUE_MOUNT_ID,
              buffer) == 0 &&
      (number_at(buffer, STATX_MASK) & STATX_UNIQUE_MOUNT_ID) != 0) {
    memcpy(&mount.id, buffer + STATX_MOUNT_ID, sizeof(mount.id));
  }
  return mount;
}

Storage_probe::Device *Storage_probe::cached(const Mount &mount,
                                             bool stays_open) {
  const auto found = m_devices.find(mount);
  if (found == m_devices.end() || found->second.capabilities.error != 0) {
    return nullptr;
  }
  const Device &device = found->second;
  return (stays_open && mount.id != 0) || device.n_open_files != 0 ||
                 std::chrono::steady_clock::now() <
                     device.examined_at + EXAMINATION_TTL
             ? &found->second
             : nullptr;
}

bool Storage_probe::is_fresh(const char *path, uint32_t page_bytes) {
  const std::optional<Mount> mount = mount_of(AT_FDCWD, path);
  if (!mount) {
    return true;
  }
  const std::lock_guard lock{m_mutex};
  const Device *const device = cached(*mount, false);
  if (device == nullptr) {
    return false;
  }
  const auto trial = device->trials.find(page_bytes);
  return trial != device->trials.end() && trial->second.error == 0;
}

void Storage_probe::closes(int file) {
  if (const std::optional<Mount> mount = mount_of(file, "")) {
    const std::lock_guard lock{m_mutex};
    const auto found = m_devices.find(*mount);
    if (found != m_devices.end() && found->second.n_open_files != 0 &&
        --found->second.n_open_files == 0 && mount->id == 0) {
      m_devices.erase(found);
    }
  }
}

Device_capabilities Storage_probe::examine(dev_t device) const {
  Device_capabilities found{};
  /* In units of 512 bytes, independent of the device's block size. */
  found.start_bytes =
      number_of(folder_of(device) + "/start", &found.error).value_or(0) * 512;
  found.atomic_max_bytes =
      queue_value(device, "atomic_write_unit_max_bytes", &found.error);
  /* The smallest sector of several layers counts, and what was examined in part
  can seem larger than it is. */
  int sector_error = 0;
  const Sector below = sector(device, LAYERS_MAX, &sector_error);
  if (sector_error == 0) {
    found.sector_bytes = below.bytes;
    found.sector_is_trusted = below.is_trusted;
  }
  int journal_error = 0;
  found.journals_data =
      journals_data(device, &journal_error) && journal_error == 0;
  for (const int error : {sector_error, journal_error}) {
    if (found.error == 0) {
      found.error = error;
    }
  }
  return found;
}

std::optional<uint64_t> Storage_probe::number_of(const std::string &path,
                                                 int *error) {
  std::istringstream text{read_text(path, error).value_or("")};
  uint64_t number;
  return text >> number ? std::optional{number} : std::nullopt;
}

std::string Storage_probe::folder_of(dev_t device) const {
  return block_device_folder(m_sysfs, device);
}

uint32_t Storage_probe::queue_value(dev_t device, const std::string &name,
                                    int *error) const {
  /* A partition uses the queue of its disk, which is the folder above it. */
  for (const char *queue : {"/queue/", "/../queue/"}) {
    if (const auto value = number_of(folder_of(device) + queue + name, error)) {
      return static_cast<uint32_t>(*value);
    }
  }
  return 0;
}

bool Storage_probe::lies_on_its_device(int file) {
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

/** @param[in]      path   Block_device::folder
@param[in,out]  error  see read_text()
@return the SCSI driver of the device's host; empty if there is none */
static std::string scsi_driver(std::filesystem::path path, int *error) {
  while (path.has_relative_path() &&
         !path.filename().string().starts_with("host")) {
    path = path.parent_path();
  }
  std::istringstream text{
      read_text(path / "scsi_host" / path.filename() / "proc_name", error)
          .value_or("")};
  std::string driver;
  text >> driver;
  return driver;
}

bool Storage_probe::driver_is_trusted(const std::filesystem::path &path,
                                      int *error) {
  const std::string name = path.filename().string();
  if (name.starts_with("loop")) {
    return read_text(path / "loop/dio", error).value_or("").starts_with("1");
  }
  if (name.starts_with("md")) {
    /* With parity (RAID 4, 5 and 6) a power cut can leave the parity of another
    state than the data. A device that fails then takes more than the sector. */
    const std::string level = read_text(path / "md/level", error).value_or("");
    return std::ranges::any_of(MD_TRUSTED, [&level](const char *kind) {
      return level == std::string(kind) + "\n";
    });
  }
  if (name.starts_with("dm-")) {
    /* dm-integrity is not trusted: it can write a sector and its checksum
    apart, and a power cut then leaves a sector that cannot be read. */
    const std::string device = read_text(path / "dm/name", error).value_or("");
    for (const char *part : DM_NOT_TRUSTED) {
      if (device.find(part) != std::string::npos) {
        return false;
      }
    }
    const std::string uuid = read_text(path / "dm/uuid", error).value_or("");
    return std::ranges::any_of(DM_TRUSTED, [&uuid](const char *kind) {
      return uuid.starts_with(kind);
    });
  }
  const auto path_contains = [&path](const char *bus) {
    return path.string().find(bus) != std::string::npos;
  };
  if (name.starts_with("nvme") && path_contains("/nvme-subsystem/")) {
    /* With multipath each path is a controller folder beside the device. */
    size_t n_pcie = 0;
    std::error_code failure;
    for (std::filesystem::directory_iterator entry{path.parent_path(), failure};
         !failure && entry != std::filesystem::directory_iterator();
         entry.increment(failure)) {
      if (const auto transport =
              read_text(entry->path() / "transport", error)) {
        if (!transport->starts_with("pcie")) {
          return false;
        }
        ++n_pcie;
      }
    }
    return n_pcie != 0;
  }
  if (!path_contains("/pci")) {
    return false;
  }
  return name.starts_with("nvme") ||
         (name.starts_with("sd") &&
          (path_contains("/ata") ||
           std::ranges::find(SCSI_TRUSTED, scsi_driver(path, error)) !=
               std::end(SCSI_TRUSTED)));
}

Storage_probe::Sector Storage_probe::sector(dev_t device, int n_layers,
                                            int *error) const {
  if (n_layers == 0) {
    return {0, false};
  }
  const Block_device block = read_block_device(folder_of(device), error);
  /* A DAX device is memory, and can tear a block at any cache line. Source:
  Documentation/driver-api/nvdimm/btt.rst. */
  Sector smallest{
      queue_value(device, "dax", error) == 0
          ? queue_value(device, "logical_block_size", error)
          : 0,
      !block.folder.empty() && driver_is_trusted(block.folder, error)};
  const auto add = [&smallest](const Sector &below) {
    smallest.bytes = std::min(smallest.bytes, below.bytes);
    smallest.is_trusted = smallest.is_trusted && below.is_trusted;
  };
  if (block.backing_file) {
    const auto offset = number_of(block.folder / "loop/offset", error);
    struct stat status;
    std::error_code failure;
    if (!offset || stat(block.backing_file->c_str(), &status) != 0) {
      if (offset && errno != ENOENT && *error == 0) {
        *error = errno;
      }
      add({0, false});
    } else if (std::filesystem::exists(folder_of(status.st_dev), failure) ||
               failure) {
      add(sector(status.st_dev, n_layers - 1, error));
    } else {
      /* The backing file is on a file system without a device, as FUSE. */
      add({smallest.bytes, false});
    }
    /* An offset within a sector spreads each sector of the loop device over two
    sectors below. */
    if (smallest.bytes != 0 && *offset % smallest.bytes != 0) {
      smallest.bytes = 0;
    }
  }
  for (const std::filesystem::path &slave : block.slaves) {
    /* The folder may change meanwhile: what cannot be read is unknown. */
    std::istringstream text{read_text(slave / "dev", error).value_or("")};
    unsigned its_major, its_minor;
    char colon;
    add(text >> its_major >> colon >> its_minor
            ? sector(makedev(its_major, its_minor), n_layers - 1, error)
            : Sector{0, false});
  }
  return smallest;
}

uint32_t Storage_probe::file_system_bytes(int file, bool journals_data,
                                          bool has_no_direct_io) {
  struct statfs system;
  if (fstatfs(file, &system) != 0 || system.f_type != EXT4_MAGIC) {
    return 0;
  }
  /* ext4 journals each block of a write separately, and a transaction can end
  between two blocks of a page: only one block is atomic. */
  unsigned long flags = 0;
  const bool is_journaled =
      journals_data ||
      (ioctl(file, GET_FLAGS, &flags) == 0 && (flags & JOURNAL_DATA_FLAG) != 0);
  /* The file's flag has no effect with delayed allocation or without a journal.
  A file whose data goes through the journal has no direct I/O, which statx()
  reports since Linux 6.1. */
  return is_journaled && has_no_direct_io
             ? static_cast<uint32_t>(system.f_bsize)
             : 0;
}

bool Storage_probe::journals_data(dev_t device, int *error) const {
  /* proc(5): "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root
  rw,errors=continue": the third word is the device, the last has the options of
  the file system. */
  std::istringstream mounts{read_text(m_mountinfo, error).value_or("")};
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

int Storage_probe::try_rwf(const std::string &path, uint32_t page_bytes) {
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
  /* First into space that was never written, then as an overwrite. */
  for (unsigned i = 0; error == 0 && i < 2; ++i) {
    error = file.write(page, page_bytes, 0, ATOMIC_RWF);
  }
  free(page);
  return error;
}

}  // namespace spw
