/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file base/scratch0file.h
A file to try on what a file system does with direct I/O. */

#ifndef scratch0file_h
#define scratch0file_h

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

namespace spw {

/** A file that has no name, open for direct I/O. It is gone with its scope. */
class Scratch_file {
 public:
  /** @param[in]  folder  where; on the file system that is to be tried */
  explicit Scratch_file(const std::string &folder)
      : m_file(open(folder.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC,
                    0600)) {
    /* open(2), of what does not have O_TMPFILE: a file system, or a kernel. */
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

  /** Write to it, once.
  @param[in]  buffer   what; aligned as direct I/O needs it
  @param[in]  n_bytes  how much
  @param[in]  offset   where
  @param[in]  flags    of pwritev2()
  @return 0; errno if it failed; EINVAL if a part was written */
  [[nodiscard]] int write(void *buffer, size_t n_bytes, off_t offset,
                          int flags) const {
    const struct iovec vector = {buffer, n_bytes};
    const ssize_t n_written = pwritev2(m_file, &vector, 1, offset, flags);
    if (n_written < 0) {
      return errno;
    }
    return static_cast<size_t>(n_written) == n_bytes ? 0 : EINVAL;
  }

  /** @return its descriptor; -1 if there is none */
  [[nodiscard]] int get() const { return m_file; }

  /** @return 0; errno if there is no file */
  [[nodiscard]] int error() const { return m_error; }

 private:
  int m_file;
  int m_error;
};

}  // namespace spw

#endif /* scratch0file_h */
