/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file base/scratch0file.h
A temporary file to test how a file system handles direct I/O. */

#ifndef scratch0file_h
#define scratch0file_h

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

namespace spw {

/** An unnamed file, open for direct I/O. It is deleted at the end of the
scope. */
class Scratch_file {
 public:
  /** @param[in]  folder  folder of the file, on the file system to test */
  explicit Scratch_file(const std::string &folder)
      : m_file(open(folder.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC,
                    0600)) {
    /* Errors of open(2) where file system or kernel lacks O_TMPFILE. */
    if (m_file < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
      std::string name = folder + "/#spw_scratch_XXXXXX";
      m_file = mkostemp(name.data(), O_DIRECT | O_CLOEXEC);
      if (m_file >= 0) {
        unlink(name.c_str());
      }
    }
    m_error = m_file < 0 ? errno : 0;
  }

  ~Scratch_file() {
    if (m_file >= 0) {
      close(m_file);
    }
  }

  Scratch_file(const Scratch_file &) = delete;
  Scratch_file &operator=(const Scratch_file &) = delete;

  /** Write to it, in one call.
  @param[in]  buffer   data, aligned as direct I/O requires
  @param[in]  n_bytes  number of bytes
  @param[in]  offset   position in the file
  @param[in]  flags    of pwritev2()
  @return 0; errno if the write failed; EINVAL if only a part was written */
  [[nodiscard]] int write(void *buffer, size_t n_bytes, off_t offset,
                          int flags) const {
    const struct iovec vector = {buffer, n_bytes};
    const ssize_t n_written = pwritev2(m_file, &vector, 1, offset, flags);
    if (n_written < 0) {
      return errno;
    }
    return static_cast<size_t>(n_written) == n_bytes ? 0 : EINVAL;
  }

  /** @return the file descriptor; -1 if there is no file */
  [[nodiscard]] int get() const { return m_file; }

  /** @return 0; errno if there is no file */
  [[nodiscard]] int error() const { return m_error; }

 private:
  int m_file;
  int m_error;
};

}  // namespace spw

#endif /* scratch0file_h */
