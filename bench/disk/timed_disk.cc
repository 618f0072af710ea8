/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file bench/disk/timed_disk.cc
A disk with latency, seeks and slow flushes, for benchmarks.

  timed_disk --image=FILE [--latency-ms=N] [--latency-sigma=N] [--ios-per-s=N]
             [--bytes-per-s=N] [--flush-ms=N] [--seek-ms=N] [--rotation-ms=N]
             [--seed=N] MOUNTPOINT

MOUNTPOINT gets two files. "disk" has the content of FILE, which should be in
memory and has a fixed size: a loop device on it is the disk. Reads and writes
reach FILE at once; what is answered late is the caller. disk_timing.h has the
timing, and the meaning of the options.

"control": writing "on" begins the timing, "off" ends it and completes what
waits. Before "on" the disk takes no time. Reading gives what was completed with
timing, and how much later than due because this machine was busy. What a
request waits in the kernel before the program gets it is not in it:

  reads 0 writes 0 flushes 0 bytes 0 late_mean_us 0 late_max_us 0

A loop device waits for a flush, and submits nothing meanwhile. */

#define FUSE_USE_VERSION 35

#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "bench/disk/disk_timing.h"
#include "powercut/leave_mounts.h"

namespace {

using timed_disk::Completion;
using timed_disk::Disk;
using timed_disk::Kind;
using timed_disk::Parameters;

constexpr fuse_ino_t CONTROL = 2;
constexpr fuse_ino_t DISK = 3;

/** Seconds for which the kernel may keep names and attributes. */
constexpr double CACHED_S = 3600;

/** More than a loop device has under way (128). */
constexpr unsigned MAX_REQUESTS = 1024;

struct Settings {
  char *image{nullptr};
  char *latency_ms{nullptr};
  char *latency_sigma{nullptr};
  char *ios_per_s{nullptr};
  char *bytes_per_s{nullptr};
  char *flush_ms{nullptr};
  char *seek_ms{nullptr};
  char *rotation_ms{nullptr};
  unsigned long seed{1};
} settings;

/** FILE in memory. */
char *image;
size_t image_bytes;

/** A request of the kernel that is answered when its time has come. */
struct Pending {
  fuse_req_t request;

  /** When the program got it. */
  double arrival_s;
  Kind kind;
  uint64_t offset;
  uint64_t bytes;
};

/** @return the time: seconds */
double now_s() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/** Reply to a request whose data is transferred already.
@param[in]  pending  the request */
void reply(const Pending &pending) {
  switch (pending.kind) {
    case Kind::READ:
      fuse_reply_buf(pending.request, image + pending.offset, pending.bytes);
      break;
    case Kind::WRITE:
      fuse_reply_write(pending.request, pending.bytes);
      break;
    case Kind::FLUSH:
      fuse_reply_err(pending.request, 0);
      break;
  }
}

/** The disk and its clock: a thread answers each request at its time. */
class Timed {
 public:
  explicit Timed(const Parameters &parameters) : m_parameters(parameters) {}

  void start() {
    m_thread = std::thread([this] { run(); });
  }

  /** Complete what waits, and end the thread. */
  void stop() {
    {
      const std::lock_guard guard(m_mutex);
      end_timing();
      m_is_ending = true;
    }
    m_changed.notify_one();
    m_thread.join();
  }

  /** Take a request.
  @param[in]  pending  the request; answered now or later */
  void submit(const Pending &pending) {
    {
      const std::lock_guard guard(m_mutex);
      if (m_disk.has_value()) {
        const uint64_t id = m_next_id++;
        m_pending.emplace(id, pending);
        m_disk->submit({id, pending.kind, pending.offset, pending.bytes},
                       pending.arrival_s);
        m_changed.notify_one();
        return;
      }
    }
    reply(pending);
  }

  /** @param[in]  is_on  whether the disk takes time from now on */
  void set_timing(bool is_on) {
    const std::lock_guard guard(m_mutex);
    end_timing();
    if (is_on) {
      m_disk.emplace(m_parameters, settings.seed);
      m_completed = {};
    }
  }

  /** @return the content of "control" */
  std::string report() {
    const std::lock_guard guard(m_mutex);
    const uint64_t n =
        m_completed.reads + m_completed.writes + m_completed.flushes;
    char text[256];
    std::snprintf(
        text, sizeof text,
        "reads %lu writes %lu flushes %lu bytes %lu late_mean_us "
        "%.0f late_max_us %.0f\n",
        m_completed.reads, m_completed.writes, m_completed.flushes,
        m_completed.bytes,
        n == 0 ? 0 : m_completed.late_s / static_cast<double>(n) * 1e6,
        m_completed.late_max_s * 1e6);
    return text;
  }

 private:
  /** Answer everything that waits, and take no time from now on. The caller
  holds the mutex. */
  void end_timing() {
    for (const auto &[id, pending] : m_pending) {
      reply(pending);
    }
    m_pending.clear();
    m_disk.reset();
  }

  void run() {
    std::unique_lock lock(m_mutex);
    while (!m_is_ending) {
      if (!m_disk.has_value()) {
        m_changed.wait(lock);
        continue;
      }
      for (const Completion &each : m_disk->completed(now_s())) {
        const auto pending = m_pending.find(each.id);
        reply(pending->second);
        count(pending->second, now_s() - each.time_s);
        m_pending.erase(pending);
      }
      const double wait_s = m_disk->next_event_s() - now_s();
      if (wait_s > 1) {
        m_changed.wait_for(lock, std::chrono::seconds(1));
      } else if (wait_s > 0) {
        m_changed.wait_for(lock, std::chrono::duration<double>(wait_s));
      }
    }
  }

  /** The caller holds the mutex.
  @param[in]  pending  an answered request
  @param[in]  late_s   how much later than due it was answered */
  void count(const Pending &pending, double late_s) {
    switch (pending.kind) {
      case Kind::READ:
        ++m_completed.reads;
        break;
      case Kind::WRITE:
        ++m_completed.writes;
        break;
      case Kind::FLUSH:
        ++m_completed.flushes;
        break;
    }
    m_completed.bytes += pending.bytes;
    m_completed.late_s += late_s;
    m_completed.late_max_s = std::max(m_completed.late_max_s, late_s);
  }

  const Parameters m_parameters;
  std::mutex m_mutex{};
  std::condition_variable m_changed{};
  std::thread m_thread{};
  bool m_is_ending{false};

  /** Empty while the disk takes no time. */
  std::optional<Disk> m_disk{};

  uint64_t m_next_id{0};
  std::map<uint64_t, Pending> m_pending{};

  /** Since the last "on". */
  struct {
    uint64_t reads{0};
    uint64_t writes{0};
    uint64_t flushes{0};
    uint64_t bytes{0};
    double late_s{0};
    double late_max_s{0};
  } m_completed{};
};

Timed *timed;

void init(void *, fuse_conn_info *connection) {
  connection->max_background = MAX_REQUESTS;
  connection->congestion_threshold = MAX_REQUESTS;
}

/** @return the attributes of a file; st_mode is 0 if there is none */
struct stat attributes(fuse_ino_t inode) {
  struct stat result {};
  result.st_ino = inode;
  result.st_nlink = 1;
  if (inode == FUSE_ROOT_ID) {
    result.st_mode = S_IFDIR | 0700;
    result.st_nlink = 2;
  } else if (inode == CONTROL) {
    result.st_mode = S_IFREG | 0600;
  } else if (inode == DISK) {
    result.st_mode = S_IFREG | 0600;
    result.st_size = static_cast<off_t>(image_bytes);
    result.st_blocks = static_cast<blkcnt_t>(image_bytes / 512);
  }
  return result;
}

void lookup(fuse_req_t request, fuse_ino_t, const char *name) {
  fuse_entry_param entry{};
  entry.ino = std::strcmp(name, "disk") == 0      ? DISK
              : std::strcmp(name, "control") == 0 ? CONTROL
                                                  : 0;
  if (entry.ino == 0) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  entry.attr = attributes(entry.ino);
  entry.attr_timeout = entry.entry_timeout = CACHED_S;
  fuse_reply_entry(request, &entry);
}

void getattr(fuse_req_t request, fuse_ino_t inode, fuse_file_info *) {
  const struct stat found = attributes(inode);
  fuse_reply_attr(request, &found, CACHED_S);
}

/** The size is fixed, and other attributes matter to nobody. A shell opens
"control" with O_TRUNC, which sets its size to 0. */
void setattr(fuse_req_t request, fuse_ino_t inode, struct stat *, int set,
             fuse_file_info *) {
  if (inode == DISK && (set & FUSE_SET_ATTR_SIZE) != 0) {
    fuse_reply_err(request, EPERM);
    return;
  }
  getattr(request, inode, nullptr);
}

void open_file(fuse_req_t request, fuse_ino_t inode, fuse_file_info *info) {
  // "control" has no size; the disk is used by direct I/O.
  info->direct_io = inode == CONTROL;
  fuse_reply_open(request, info);
}

void read_file(fuse_req_t request, fuse_ino_t inode, size_t bytes, off_t offset,
               fuse_file_info *) {
  const double arrival_s = now_s();
  const auto begin = static_cast<size_t>(offset);
  if (inode == CONTROL) {
    const std::string text = timed->report();
    const size_t from = std::min(begin, text.size());
    fuse_reply_buf(request, text.data() + from,
                   std::min(bytes, text.size() - from));
    return;
  }
  const size_t from = std::min(begin, image_bytes);
  timed->submit({request, arrival_s, Kind::READ, from,
                 std::min(bytes, image_bytes - from)});
}

void write_file(fuse_req_t request, fuse_ino_t inode, const char *data,
                size_t bytes, off_t offset, fuse_file_info *) {
  const double arrival_s = now_s();
  const auto begin = static_cast<size_t>(offset);
  if (inode == CONTROL) {
    const std::string text(data, bytes);
    const std::string word = text.substr(0, text.find('\n'));
    if (word != "on" && word != "off") {
      fuse_reply_err(request, EINVAL);
      return;
    }
    timed->set_timing(word == "on");
    fuse_reply_write(request, bytes);
    return;
  }
  if (begin > image_bytes || bytes > image_bytes - begin) {
    fuse_reply_err(request, ENOSPC);
    return;
  }
  std::memcpy(image + begin, data, bytes);
  timed->submit({request, arrival_s, Kind::WRITE, begin, bytes});
}

void fsync_file(fuse_req_t request, fuse_ino_t inode, int, fuse_file_info *) {
  if (inode == CONTROL) {
    fuse_reply_err(request, 0);
    return;
  }
  timed->submit({request, now_s(), Kind::FLUSH, 0, 0});
}

[[noreturn]] void fail(const std::string &what) {
  std::fprintf(stderr, "timed_disk: %s\n", what.c_str());
  std::exit(1);
}

/** @return an option's value; 0 if it is not given */
double number(const char *name, const char *text) {
  if (text == nullptr) {
    return 0;
  }
  char *end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !std::isfinite(value) || value < 0) {
    fail(std::string("--") + name + ": '" + text +
         "' is not a number from 0 on");
  }
  return value;
}

/** Map FILE, which is closed again: the mapping stays. */
void map_image() {
  const int fd = open(settings.image, O_RDWR | O_CLOEXEC);
  struct stat found {};
  if (fd < 0 || fstat(fd, &found) != 0) {
    fail(std::string(settings.image) + ": " + std::strerror(errno));
  }
  image_bytes = static_cast<size_t>(found.st_size);
  void *const mapped =
      mmap(nullptr, image_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) {
    fail(std::string(settings.image) + ": " + std::strerror(errno));
  }
  close(fd);
  image = static_cast<char *>(mapped);
}

#define OPTION(name, field) \
  { "--" name "=%s", offsetof(Settings, field), 0 }

constexpr fuse_opt OPTIONS[] = {OPTION("image", image),
                                OPTION("latency-ms", latency_ms),
                                OPTION("latency-sigma", latency_sigma),
                                OPTION("ios-per-s", ios_per_s),
                                OPTION("bytes-per-s", bytes_per_s),
                                OPTION("flush-ms", flush_ms),
                                OPTION("seek-ms", seek_ms),
                                OPTION("rotation-ms", rotation_ms),
                                {"--seed=%lu", offsetof(Settings, seed), 0},
                                FUSE_OPT_END};

}  // namespace

int main(int argc, char **argv) {
  fuse_args arguments = FUSE_ARGS_INIT(argc, argv);
  fuse_cmdline_opts common{};
  if (fuse_opt_parse(&arguments, &settings, OPTIONS, nullptr) != 0 ||
      fuse_parse_cmdline(&arguments, &common) != 0) {
    return 1;
  }
  if (settings.image == nullptr || common.mountpoint == nullptr) {
    fail("--image=FILE and MOUNTPOINT are needed");
  }
  map_image();
  Parameters parameters;
  parameters.latency_s = number("latency-ms", settings.latency_ms) / 1e3;
  parameters.latency_sigma = number("latency-sigma", settings.latency_sigma);
  parameters.ios_per_s = number("ios-per-s", settings.ios_per_s);
  parameters.bytes_per_s = number("bytes-per-s", settings.bytes_per_s);
  parameters.flush_s = number("flush-ms", settings.flush_ms) / 1e3;
  parameters.seek_s = number("seek-ms", settings.seek_ms) / 1e3;
  parameters.rotation_s = number("rotation-ms", settings.rotation_ms) / 1e3;
  parameters.size_bytes = image_bytes;
  Timed disk(parameters);
  timed = &disk;

  fuse_lowlevel_ops operations{};
  operations.init = init;
  operations.lookup = lookup;
  operations.getattr = getattr;
  operations.setattr = setattr;
  operations.open = open_file;
  operations.read = read_file;
  operations.write = write_file;
  operations.fsync = fsync_file;

  fuse_session *const session =
      fuse_session_new(&arguments, &operations, sizeof operations, nullptr);
  if (session == nullptr || fuse_set_signal_handlers(session) != 0 ||
      fuse_session_mount(session, common.mountpoint) != 0) {
    return 1;
  }
  if (!leave_mounts("/")) {
    fail(std::string("a mount namespace of its own: ") + std::strerror(errno));
  }
  disk.start();
  const int result = fuse_session_loop(session);
  disk.stop();
  fuse_session_unmount(session);
  return result == 0 ? 0 : 1;
}
