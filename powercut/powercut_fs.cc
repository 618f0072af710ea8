/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file powercut/powercut_fs.cc
A file system that loses power.

  powercut_fs --store=FOLDER [--atomic-bytes=N] [--cache-bytes=N]
              [--plain=TEXT] [--write-through] MOUNTPOINT
  powercut_fs --settle=SEED --store=FOLDER [--sector-bytes=N]

A volatile cache holds the writes to a file until fsync() or fdatasync() of that
file returns. Only then, or when the cache is full, are they in FOLDER/content.
A file that backs a loop device is therefore a disk with a volatile write cache:
the loop driver turns flushes of the disk into fdatasync(). Names, sizes and
attributes of files are durable at once.

--write-through switches the cache off: reads and writes of whole blocks of
4 KiB go to FOLDER/content by direct I/O, and a cut loses nothing. It is for
benchmarks, which then measure FOLDER's device.

--atomic-bytes adds the ioctl of directFS: after ioctl 0x40049502 with 1 on a
file, its writes of at most N bytes survive as a whole or not at all. Without
this option the ioctl fails, as on other file systems. With --plain it fails for
files whose path contains TEXT.

The file .powercut in MOUNTPOINT controls the power. Writing "cut" to it cuts
the power now; "cut after N writes of B" cuts it at the Nth write of B bytes or
more from now on, which is one of the interrupted writes. After the cut all
reads, writes and changes fail with EIO, and FOLDER/pending has the interrupted
writes. Reading .powercut tells whether the power is "on" or "off", and the
numbers of writes and flushes.

--settle resolves a cut: it draws from SEED which parts of the interrupted
writes survive, applies these to FOLDER/content and removes FOLDER/pending. The
same seed on a copy of the same folder gives the same content.

One thread serves all requests. A flush makes those writes durable that were
completed before the thread received it. Example with three writes W to a file
and their completions C:

  W1, W2, W3, C3, C2, flush, C1, end of the flush, cut

W3 and W2 survive, because they were completed before the flush. W1 is an
interrupted write: SEED decides whether it survives, is lost, or is torn at
sectors. After the ioctl it cannot be torn. Where W1 survives and overlaps W2 or
W3, it replaces them, because it was completed last. */

#define FUSE_USE_VERSION 35

#include <dirent.h>
#include <fcntl.h>
#include <fuse.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "powercut/leave_mounts.h"
#include "powercut/survivors.h"

namespace {

/** The file that controls the power. */
constexpr const char *CONTROL = "/.powercut";

/** directFS: _IOW(0x95, 2, unsigned). */
constexpr unsigned IOCTL_ATOMIC_WRITES = 0x40049502;

/** A write in the volatile cache. */
struct Write {
  uint64_t number;
  off_t offset;
  std::string data;
  bool is_atomic;

  /** A punched hole: the data is zeros. */
  bool is_hole{false};
};

/** A file that is open or has writes in the cache. */
struct File {
  ~File() {
    for (const int each : {fd, direct_fd}) {
      if (each >= 0) {
        close(each);
      }
    }
  }

  int fd{-1};

  /** With --write-through, the same file for direct I/O; otherwise -1. */
  int direct_fd{-1};

  size_t n_open{0};

  /** Set by the ioctl: writes are atomic. */
  bool writes_are_atomic{false};

  /** The oldest first. */
  std::list<Write> writes{};
};

/** The options of the command line. */
struct Settings {
  const char *store{nullptr};
  char *settle{nullptr};
  unsigned long sector_bytes{512};
  unsigned long cache_bytes{64UL << 20};
  unsigned long atomic_bytes{0};
  char *plain{nullptr};
  int write_through{0};
} settings;

/** Alignment of direct I/O, in file and memory. */
constexpr size_t BLOCK_BYTES = 4096;

/** The kernel's largest request. */
constexpr size_t MAX_BYTES = 1UL << 20;

/** The buffer of direct I/O, used by one request at a time. */
alignas(BLOCK_BYTES) char block_buffer[MAX_BYTES];

std::map<ino_t, std::unique_ptr<File>> files;

/** Whether the power is off. */
bool is_cut{false};

/** The power goes at the last of this many further writes of at least
bytes_of_counted_writes bytes; 0: no cut is due. */
uint64_t writes_until_cut{0};
size_t bytes_of_counted_writes{0};

uint64_t n_writes{0};
uint64_t n_flushes{0};
size_t cached_bytes{0};

/** /proc/self/fd, which has the names of open files. */
int open_files{-1};

std::string content(const std::string &path) {
  return std::string(settings.store) + "/content" + path;
}

std::string pending() { return std::string(settings.store) + "/pending"; }

bool is_control(const char *path) {
  return path != nullptr && strcmp(path, CONTROL) == 0;
}

int failed() { return -errno; }

/** Write all data, or end the program: the medium itself must not fail. */
void write_medium(int fd, const char *data, size_t length, off_t offset) {
  while (length > 0) {
    const ssize_t n = pwrite(fd, data, length, offset);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      fprintf(stderr, "powercut_fs: error: writing below %s: %s\n",
              settings.store, strerror(errno));
      abort();
    }
    data += n;
    length -= n;
    offset += n;
  }
}

/** @return whether direct I/O is possible for a request */
bool is_direct(const File &file, size_t size, off_t offset) {
  return file.direct_fd >= 0 && size <= MAX_BYTES && size % BLOCK_BYTES == 0 &&
         offset % BLOCK_BYTES == 0;
}

void put_through(const File &file, const char *data, size_t size,
                 off_t offset) {
  if (is_direct(file, size, offset)) {
    memcpy(block_buffer, data, size);
    write_medium(file.direct_fd, block_buffer, size, offset);
  } else {
    write_medium(file.fd, data, size, offset);
  }
}

/** Read from the medium.
@return as pread() */
ssize_t read_medium(const File &file, char *data, size_t size, off_t offset) {
  if (!is_direct(file, size, offset)) {
    return pread(file.fd, data, size, offset);
  }
  const ssize_t n = pread(file.direct_fd, block_buffer, size, offset);
  if (n > 0) {
    memcpy(data, block_buffer, n);
  }
  return n;
}

void destage(File &file, const Write &write) {
  if (write.is_hole &&
      fallocate(file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                write.offset, static_cast<off_t>(write.data.size())) == 0) {
    cached_bytes -= write.data.size();
    return;
  }
  write_medium(file.fd, write.data.data(), write.data.size(), write.offset);
  cached_bytes -= write.data.size();
}

void flush(File &file) {
  for (const auto &write : file.writes) {
    destage(file, write);
  }
  file.writes.clear();
}

/** Move the oldest writes to the medium until the cache is within its size, as
a device does whose cache is full. */
void destage_oldest() {
  while (cached_bytes > settings.cache_bytes) {
    File *oldest = nullptr;
    for (auto &[inode, file] : files) {
      if (!file->writes.empty() &&
          (oldest == nullptr ||
           file->writes.front().number < oldest->writes.front().number)) {
        oldest = file.get();
      }
    }
    destage(*oldest, oldest->writes.front());
    oldest->writes.pop_front();
  }
}

/** Forget a file that no process has open and that has no writes in the cache.
The writes of a removed file are dropped. */
void forget_unused(ino_t inode) {
  const auto found = files.find(inode);
  if (found == files.end() || found->second->n_open > 0) {
    return;
  }
  File &file = *found->second;
  struct stat status;
  if (!file.writes.empty() && fstat(file.fd, &status) == 0 &&
      status.st_nlink == 0) {
    for (const auto &write : file.writes) {
      cached_bytes -= write.data.size();
    }
    file.writes.clear();
  }
  if (file.writes.empty()) {
    files.erase(found);
  }
}

/** Cut the power. FOLDER/pending gets a line of text and the data for each
interrupted write, in the order of the writes. */
void cut() {
  is_cut = true;

  std::map<uint64_t, std::pair<const Write *, ino_t>> in_order;
  for (const auto &[inode, file] : files) {
    for (const auto &write : file->writes) {
      in_order[write.number] = {&write, inode};
    }
  }
  std::map<ino_t, std::string> names;
  const std::string top = content("");
  for (const auto &entry : std::filesystem::recursive_directory_iterator(top)) {
    struct stat status;
    if (lstat(entry.path().c_str(), &status) == 0) {
      names[status.st_ino] = entry.path().string().substr(top.size());
    }
  }
  std::ofstream out(pending(), std::ios::binary | std::ios::trunc);
  for (const auto &[number, what] : in_order) {
    const auto &[write, inode] = what;
    const auto name = names.find(inode);
    /* A file without a name was removed: its writes cannot survive. */
    if (name != names.end()) {
      out << write->offset << ' ' << write->data.size() << ' '
          << write->is_atomic << ' ' << name->second << '\n'
          << write->data;
    }
  }
  out.close();
  if (!out) {
    fprintf(stderr, "powercut_fs: error: %s cannot be written\n",
            pending().c_str());
    abort();
  }
}

/** @return 0, or the error of an unknown command */
int command(const std::string &text) {
  unsigned long n, bytes;
  if (text == "cut" || text == "cut\n") {
    cut();
    return 0;
  }
  if (sscanf(text.c_str(), "cut after %lu writes of %lu", &n, &bytes) == 2 &&
      n > 0) {
    writes_until_cut = n;
    bytes_of_counted_writes = bytes;
    return 0;
  }
  return -EINVAL;
}

std::string report() {
  size_t n_pending = 0;
  for (const auto &[inode, file] : files) {
    n_pending += file->writes.size();
  }
  return std::string("power ") + (is_cut ? "off" : "on") + "\nwrites " +
         std::to_string(n_writes) + "\nflushes " + std::to_string(n_flushes) +
         "\npending_writes " + std::to_string(n_pending) + "\npending_bytes " +
         std::to_string(cached_bytes) + "\n";
}

File *file_of(struct fuse_file_info *info) {
  return reinterpret_cast<File *>(info->fh);
}

/* Files */

/** Make a file shorter or longer. Cached writes beyond the new end are
dropped. */
int set_size(int fd, off_t size) {
  struct stat status;
  if (fstat(fd, &status) != 0) {
    return failed();
  }
  const auto found = files.find(status.st_ino);
  if (found != files.end()) {
    for (auto &write : found->second->writes) {
      const off_t left = std::max<off_t>(0, size - write.offset);
      if (left < static_cast<off_t>(write.data.size())) {
        cached_bytes -= write.data.size() - left;
        write.data.resize(left);
      }
    }
    found->second->writes.remove_if(
        [](const Write &write) { return write.data.empty(); });
  }
  return ftruncate(fd, size) == 0 ? 0 : failed();
}

int open_file(const char *path, int flags, mode_t mode,
              struct fuse_file_info *info) {
  if (is_control(path)) {
    info->direct_io = 1;
    info->fh = 0;
    return 0;
  }
  if (is_cut) {
    return -EIO;
  }
  /* Always for reads and writes: all opens of a file share one descriptor. */
  const int how = (flags & (O_CREAT | O_EXCL)) | O_RDWR;
  const int fd = open(content(path).c_str(), how, mode);
  if (fd < 0) {
    return failed();
  }
  struct stat status;
  if (fstat(fd, &status) != 0) {
    close(fd);
    return failed();
  }
  auto &file = files[status.st_ino];
  if (file == nullptr) {
    int direct_fd = -1;
    if (settings.write_through &&
        (direct_fd = open(content(path).c_str(), O_RDWR | O_DIRECT)) < 0) {
      const int error = failed();
      close(fd);
      files.erase(status.st_ino);
      return error;
    }
    file = std::make_unique<File>();
    file->fd = fd;
    file->direct_fd = direct_fd;
  } else {
    close(fd);
  }
  if ((flags & O_TRUNC) != 0 && set_size(file->fd, 0) != 0) {
    return -EIO;
  }
  ++file->n_open;
  info->fh = reinterpret_cast<uint64_t>(file.get());
  /* No page cache above: each read and write of a process comes here. */
  info->direct_io = 1;
  return 0;
}

int fs_open(const char *path, struct fuse_file_info *info) {
  return open_file(path, info->flags & ~(O_CREAT | O_EXCL), 0, info);
}

int fs_create(const char *path, mode_t mode, struct fuse_file_info *info) {
  return open_file(path, info->flags | O_CREAT, mode, info);
}

int fs_release(const char *, struct fuse_file_info *info) {
  if (File *file = file_of(info)) {
    struct stat status;
    --file->n_open;
    if (!is_cut && fstat(file->fd, &status) == 0) {
      forget_unused(status.st_ino);
    }
  }
  return 0;
}

int fs_read(const char *, char *buffer, size_t size, off_t offset,
            struct fuse_file_info *info) {
  const File *file = file_of(info);
  if (file == nullptr) {
    const std::string text = report();
    if (offset >= static_cast<off_t>(text.size())) {
      return 0;
    }
    return text.copy(buffer, size, offset);
  }
  if (is_cut) {
    return -EIO;
  }
  const ssize_t n = read_medium(*file, buffer, size, offset);
  if (n < 0) {
    return failed();
  }
  const off_t end = offset + n;
  for (const auto &write : file->writes) {
    const off_t from = std::max(offset, write.offset);
    const off_t to =
        std::min(end, write.offset + static_cast<off_t>(write.data.size()));
    if (from < to) {
      memcpy(buffer + (from - offset),
             write.data.data() + (from - write.offset), to - from);
    }
  }
  return n;
}

int fs_write(const char *, const char *buffer, size_t size, off_t offset,
             struct fuse_file_info *info) {
  File *file = file_of(info);
  if (file == nullptr) {
    const int status = command(std::string(buffer, size));
    return status < 0 ? status : static_cast<int>(size);
  }
  if (is_cut) {
    return -EIO;
  }
  struct stat status;
  if (fstat(file->fd, &status) != 0) {
    return failed();
  }
  /* The size is an attribute and therefore durable at once. */
  if (offset + static_cast<off_t>(size) > status.st_size &&
      ftruncate(file->fd, offset + static_cast<off_t>(size)) != 0) {
    return failed();
  }
  if (settings.write_through) {
    ++n_writes;
    put_through(*file, buffer, size, offset);
    return static_cast<int>(size);
  }
  file->writes.push_back(
      {n_writes++, offset, std::string(buffer, size),
       file->writes_are_atomic && size <= settings.atomic_bytes, false});
  cached_bytes += size;
  if (writes_until_cut > 0 && size >= bytes_of_counted_writes &&
      --writes_until_cut == 0) {
    cut();
    return -EIO;
  }
  destage_oldest();
  return static_cast<int>(size);
}

int fs_fsync(const char *, int, struct fuse_file_info *info) {
  File *file = file_of(info);
  if (file == nullptr) {
    return 0;
  }
  if (is_cut) {
    return -EIO;
  }
  ++n_flushes;
  flush(*file);
  return settings.write_through && fdatasync(file->fd) != 0 ? failed() : 0;
}

/** @return whether --plain applies to a file */
bool is_plain(const File &file) {
  if (settings.plain == nullptr) {
    return false;
  }
  char path[PATH_MAX];
  const ssize_t size = readlinkat(open_files, std::to_string(file.fd).c_str(),
                                  path, sizeof path);
  if (size < 0) {
    perror("powercut_fs: error: the name of a file");
    abort();
  }
  return std::string_view(path, size).find(settings.plain) !=
         std::string_view::npos;
}

int fs_ioctl(const char *, unsigned number, void *, struct fuse_file_info *info,
             unsigned, void *data) {
  if (is_cut) {
    return -EIO;
  }
  File *file = file_of(info);
  if (number != IOCTL_ATOMIC_WRITES || settings.atomic_bytes == 0 ||
      file == nullptr || is_plain(*file)) {
    return -ENOTTY;
  }
  file->writes_are_atomic = *static_cast<const unsigned *>(data) != 0;
  return 0;
}

int fs_truncate(const char *path, off_t size, struct fuse_file_info *info) {
  if (is_control(path)) {
    return 0;
  }
  if (is_cut) {
    return -EIO;
  }
  if (info != nullptr) {
    return set_size(file_of(info)->fd, size);
  }
  const int fd = open(content(path).c_str(), O_RDWR);
  if (fd < 0) {
    return failed();
  }
  const int status = set_size(fd, size);
  close(fd);
  return status;
}

/** Punch a hole. Until a flush it is a cached write of zeros: it can survive,
be lost or be torn like any other, and keeps its place in the order. */
int punch_hole(File &file, off_t offset, off_t length) {
  if (settings.write_through) {
    return fallocate(file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                     offset, length) == 0
               ? 0
               : failed();
  }
  struct stat status;
  if (fstat(file.fd, &status) != 0) {
    return failed();
  }
  const off_t end = std::min(offset + length, status.st_size);
  while (offset < end) {
    const size_t size = std::min<size_t>(end - offset, MAX_BYTES);
    file.writes.push_back(
        {n_writes++, offset, std::string(size, '\0'), false, true});
    cached_bytes += size;
    offset += static_cast<off_t>(size);
    destage_oldest();
  }
  return 0;
}

int fs_fallocate(const char *, int mode, off_t offset, off_t length,
                 struct fuse_file_info *info) {
  if (is_cut) {
    return -EIO;
  }
  File *file = file_of(info);
  if (file == nullptr) {
    return -EOPNOTSUPP;
  }
  if (mode == 0) {
    return -posix_fallocate(file->fd, offset, length);
  }
  if (mode != (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)) {
    return -EOPNOTSUPP;
  }
  return punch_hole(*file, offset, length);
}

int fs_getattr(const char *path, struct stat *status,
               struct fuse_file_info *info) {
  if (is_control(path) || (info != nullptr && file_of(info) == nullptr)) {
    *status = {};
    status->st_mode = S_IFREG | 0600;
    status->st_nlink = 1;
    return 0;
  }
  if (info != nullptr) {
    return fstat(file_of(info)->fd, status) == 0 ? 0 : failed();
  }
  /* This works after a cut, too: unmounting needs the root folder. */
  return lstat(content(path).c_str(), status) == 0 ? 0 : failed();
}

/* Names */

int result_of(int status) { return status == 0 ? 0 : failed(); }

int fs_mkdir(const char *path, mode_t mode) {
  return is_cut ? -EIO : result_of(mkdir(content(path).c_str(), mode));
}

int fs_rmdir(const char *path) {
  return is_cut ? -EIO : result_of(rmdir(content(path).c_str()));
}

int fs_unlink(const char *path) {
  if (is_cut) {
    return -EIO;
  }
  struct stat status;
  if (lstat(content(path).c_str(), &status) != 0 ||
      unlink(content(path).c_str()) != 0) {
    return failed();
  }
  forget_unused(status.st_ino);
  return 0;
}

int fs_rename(const char *from, const char *to, unsigned flags) {
  if (is_cut) {
    return -EIO;
  }
  if (flags != 0) {
    return -EINVAL;
  }
  struct stat replaced;
  const bool replaces = lstat(content(to).c_str(), &replaced) == 0;
  if (rename(content(from).c_str(), content(to).c_str()) != 0) {
    return failed();
  }
  if (replaces) {
    forget_unused(replaced.st_ino);
  }
  return 0;
}

int fs_symlink(const char *target, const char *path) {
  return is_cut ? -EIO : result_of(symlink(target, content(path).c_str()));
}

int fs_readlink(const char *path, char *buffer, size_t size) {
  const ssize_t n = readlink(content(path).c_str(), buffer, size - 1);
  if (n < 0) {
    return failed();
  }
  buffer[n] = '\0';
  return 0;
}

int fs_chmod(const char *path, mode_t mode, struct fuse_file_info *) {
  return is_cut ? -EIO : result_of(chmod(content(path).c_str(), mode));
}

int fs_chown(const char *path, uid_t user, gid_t group,
             struct fuse_file_info *) {
  return is_cut ? -EIO : result_of(lchown(content(path).c_str(), user, group));
}

int fs_utimens(const char *path, const struct timespec times[2],
               struct fuse_file_info *) {
  return is_cut ? -EIO
                : result_of(utimensat(AT_FDCWD, content(path).c_str(), times,
                                      AT_SYMLINK_NOFOLLOW));
}

int fs_opendir(const char *path, struct fuse_file_info *info) {
  if (is_cut) {
    return -EIO;
  }
  DIR *directory = opendir(content(path).c_str());
  info->fh = reinterpret_cast<uint64_t>(directory);
  return directory != nullptr ? 0 : failed();
}

int fs_readdir(const char *, void *buffer, fuse_fill_dir_t fill, off_t,
               struct fuse_file_info *info, enum fuse_readdir_flags) {
  DIR *directory = reinterpret_cast<DIR *>(info->fh);
  rewinddir(directory);
  while (const struct dirent *entry = readdir(directory)) {
    fill(buffer, entry->d_name, nullptr, 0,
         static_cast<enum fuse_fill_dir_flags>(0));
  }
  return 0;
}

int fs_releasedir(const char *, struct fuse_file_info *info) {
  closedir(reinterpret_cast<DIR *>(info->fh));
  return 0;
}

int fs_statfs(const char *, struct statvfs *status) {
  return result_of(statvfs(content("").c_str(), status));
}

void *fs_init(struct fuse_conn_info *, struct fuse_config *config) {
  config->use_ino = 1;
  /* A file that is removed while open keeps its data but has no name. */
  config->hard_remove = 1;
  config->nullpath_ok = 1;
  open_files = open("/proc/self/fd", O_PATH | O_CLOEXEC);
  if (open_files < 0 || !leave_mounts(settings.store)) {
    fprintf(stderr, "powercut_fs: error: a mount namespace of its own: %s\n",
            strerror(errno));
    exit(1);
  }
  settings.store = ".";
  return nullptr;
}

/** Unmount. While the power is on, flush all files, as a device does that is
switched off in order. */
void fs_destroy(void *) {
  if (!is_cut) {
    for (auto &[inode, file] : files) {
      flush(*file);
    }
  }
}

const struct fuse_operations OPERATIONS = [] {
  struct fuse_operations all {};
  all.getattr = fs_getattr;
  all.readlink = fs_readlink;
  all.mkdir = fs_mkdir;
  all.unlink = fs_unlink;
  all.rmdir = fs_rmdir;
  all.symlink = fs_symlink;
  all.rename = fs_rename;
  all.chmod = fs_chmod;
  all.chown = fs_chown;
  all.truncate = fs_truncate;
  all.open = fs_open;
  all.read = fs_read;
  all.write = fs_write;
  all.statfs = fs_statfs;
  all.release = fs_release;
  all.fsync = fs_fsync;
  all.opendir = fs_opendir;
  all.readdir = fs_readdir;
  all.releasedir = fs_releasedir;
  all.init = fs_init;
  all.destroy = fs_destroy;
  all.create = fs_create;
  all.utimens = fs_utimens;
  all.ioctl = fs_ioctl;
  all.fallocate = fs_fallocate;
  return all;
}();

/** Resolve a cut: apply the surviving parts of the interrupted writes to the
medium.
@param[in]  seed  decides which parts survive
@return the program's exit status */
int resolve(uint64_t seed) {
  std::ifstream in(pending(), std::ios::binary);
  if (!in) {
    fprintf(stderr, "powercut_fs: error: there is no %s: no power was cut\n",
            pending().c_str());
    return 1;
  }
  struct Named_write {
    std::string path;
    off_t offset;
    std::string data;
  };
  std::vector<Named_write> writes;
  std::vector<powercut::Lost_write> lost;
  off_t offset;
  size_t length;
  bool is_atomic;
  while (in >> offset >> length >> is_atomic && in.get() == ' ') {
    Named_write write{{}, offset, std::string(length, '\0')};
    std::getline(in, write.path);
    in.read(write.data.data(), static_cast<std::streamsize>(length));
    if (!in) {
      fprintf(stderr, "powercut_fs: error: %s is cut off\n", pending().c_str());
      return 1;
    }
    writes.push_back(std::move(write));
    lost.push_back({static_cast<uint64_t>(offset), length, is_atomic});
  }

  const auto survives = powercut::resolve(seed, lost, settings.sector_bytes);
  size_t n_survived = 0, n_lost = 0;
  for (size_t i = 0; i < writes.size(); ++i) {
    const auto &write = writes[i];
    const int fd = open(content(write.path).c_str(), O_WRONLY);
    if (fd < 0) {
      fprintf(stderr, "powercut_fs: error: %s: %s\n", write.path.c_str(),
              strerror(errno));
      return 1;
    }
    size_t n_survive = 0;
    uint64_t from = write.offset;
    for (size_t sector = 0; sector < survives[i].size(); ++sector) {
      const uint64_t to = std::min<uint64_t>(
          write.offset + write.data.size(),
          powercut::next_sector(from, settings.sector_bytes));
      if (survives[i][sector]) {
        write_medium(fd, write.data.data() + (from - write.offset), to - from,
                     static_cast<off_t>(from));
        ++n_survive;
      }
      from = to;
    }
    close(fd);
    n_survived += n_survive == survives[i].size();
    n_lost += n_survive == 0;
  }
  printf("interrupted %zu\nsurvived %zu\nlost %zu\ntorn %zu\n", writes.size(),
         n_survived, n_lost, writes.size() - n_survived - n_lost);
  return unlink(pending().c_str()) == 0 ? 0 : 1;
}

#define OPTION(text, member) \
  { text, offsetof(Settings, member), 1 }

const struct fuse_opt OPTIONS[] = {OPTION("--store=%s", store),
                                   OPTION("--settle=%s", settle),
                                   OPTION("--sector-bytes=%lu", sector_bytes),
                                   OPTION("--cache-bytes=%lu", cache_bytes),
                                   OPTION("--atomic-bytes=%lu", atomic_bytes),
                                   OPTION("--plain=%s", plain),
                                   OPTION("--write-through", write_through),
                                   FUSE_OPT_END};

}  // namespace

int main(int argc, char *argv[]) {
  struct fuse_args arguments = FUSE_ARGS_INIT(argc, argv);
  if (fuse_opt_parse(&arguments, &settings, OPTIONS, nullptr) != 0) {
    return 2;
  }
  if (settings.store == nullptr || settings.sector_bytes == 0) {
    fprintf(stderr,
            "powercut_fs: error: --store names a folder, --sector-bytes is 1 or"
            " more\n");
    return 2;
  }
  /* FUSE may change the working directory. */
  settings.store = realpath(settings.store, nullptr);
  if (settings.store == nullptr ||
      !std::filesystem::is_directory(content(""))) {
    fprintf(stderr,
            "powercut_fs: error: --store has to be a folder with a folder"
            " \"content\"\n");
    return 2;
  }
  if (settings.settle != nullptr) {
    return resolve(strtoull(settings.settle, nullptr, 10));
  }
  if (access(pending().c_str(), F_OK) == 0) {
    fprintf(stderr, "powercut_fs: error: %s is there: --settle ends a cut\n",
            pending().c_str());
    return 1;
  }
  umask(0);
  fuse_opt_add_arg(&arguments, "-s");
  fuse_opt_add_arg(&arguments, "-f");
  return fuse_main(arguments.argc, arguments.argv, &OPERATIONS, nullptr);
}
