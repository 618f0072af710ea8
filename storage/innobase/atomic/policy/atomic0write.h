/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file atomic/policy/atomic0write.h
Which data files bypass the doublewrite buffer, and the method that protects
their pages from being torn. */

#ifndef atomic0write_h
#define atomic0write_h

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace spw {

/** innodb_use_atomic_writes. */
enum class Atomic_writes : uint32_t {
  /** All files use the doublewrite buffer, as in stock MySQL. */
  OFF,
  /** All files bypass it; a file that cannot is an error. */
  ON,
  /** A file bypasses it if it can, and if that is no slower. */
  AUTO
};

/** The method by which a page is written atomically: after a power cut the page
has its old or its new content. In order of preference, except RWF_COPY, which
is the last choice. */
enum class Atomic_method : uint8_t {
  NONE,
  /** directFS's ioctl: the file system promises atomic writes for the file. The
  same ioctl as in MariaDB 10.0. */
  IOCTL,
  /** Untorn writes, RWF_ATOMIC of pwritev2(2): the device writes atomically. */
  RWF,
  /** RWF_ATOMIC: the file system writes atomically by copy on write. */
  RWF_COPY,
  /** The page fits into a block that the file system always writes through its
  journal. */
  FILE_SYSTEM,
  /** The page fits into a sector, which the device writes atomically. */
  SECTOR,
  N
};

/** What a file's storage supports, as tried or as the kernel reports it. */
struct Storage_capabilities {
  /** The file is open for direct I/O, and the kernel does not report that it
  uses the page cache nevertheless, which can split a page. */
  bool is_direct;

  /** The kernel confirms direct I/O for the file: statx(2), STATX_DIOALIGN. */
  bool direct_is_confirmed;

  /** directFS's ioctl succeeded on this file. */
  bool ioctl_succeeds;

  /** statx(2): stx_atomic_write_unit_min and _max, in bytes; 0 without untorn
  writes. The bit in the mask proves nothing: ext4 sets it with units of 0. */
  uint32_t unit_min_bytes;
  uint32_t unit_max_bytes;

  /** statx(2): stx_atomic_write_unit_max_opt, in bytes: up to this size the
  device writes atomically, and the file system makes no copy. 0 means that it
  is unknown or equal to unit_max_bytes. */
  uint32_t unit_max_opt_bytes;

  /** atomic_write_unit_max_bytes of the block queue: what the device writes
  atomically. 0 if the device promises nothing, or if its partition is not
  aligned to the page size. */
  uint32_t device_max_bytes;

  /** Result of writing a page with RWF_ATOMIC to a scratch file on the file
  system: 0, or errno of the step that failed. Also 0 if not tried, because the
  units exclude the page size. */
  int rwf_error;

  /** The largest write that the file system makes atomic by default, in bytes;
  0 if none. */
  uint32_t file_system_bytes;

  /** What the device and every device below it write atomically: the smallest
  logical block size, in bytes; 0 if one is not known. */
  uint32_t sector_bytes;

  /** The drivers of all these devices write a sector atomically to the medium,
  and not through a page cache, here or on another machine. */
  bool sector_is_trusted;

  /** errno if the device could not be examined, for example for lack of file
  descriptors; else 0. */
  int error;
};

/** Input of choose_atomic_method(). */
struct Atomic_input {
  Atomic_writes setting;

  /** innodb_use_atomic_writes_fs: accept what the server cannot verify: a file
  system's journal, and the sector of a device whose driver is not trusted. */
  bool accept_unverified;

  /** The file's page size, in bytes: a power of 2 from 1,024 to 65,536. */
  uint32_t page_bytes;

  /** innodb_use_native_aio is in effect: each page is a write of its own.
  Simulated AIO combines adjacent pages into one write. */
  bool is_native_aio;

  /** InnoDB syncs the file after it has written pages and before the
  checkpoint. False with innodb_flush_method = O_DIRECT_NO_FSYNC and nosync. */
  bool is_synced;

  Storage_capabilities storage;
};

/** Why a file has its method, or none. */
enum class Atomic_reason : uint8_t {
  /** innodb_use_atomic_writes is OFF. */
  OFF,
  /** Pages are written atomically, by the method in the output. */
  ATOMIC,
  /** Without native AIO one write can contain several pages. */
  SIMULATED_AIO,
  /** The file has no direct I/O. */
  NOT_DIRECT,
  /** InnoDB does not sync the file. An atomic write by a file system's copy or
  journal is in the file only after the file system's commit, but a page without
  a doublewrite copy has to be there before the checkpoint passes it. */
  NOT_SYNCED,
  /** With AUTO only: the file system would copy each page, which on storage as
  fast as memory takes two to three times as long as writing a page twice.
  Source: measured on XFS, random overwrites of 16 KiB. */
  COPIES_ARE_SLOW,
  /** Only the file system's journal would protect the page, and
  innodb_use_atomic_writes_fs is OFF. */
  FILE_SYSTEM_NOT_ALLOWED,
  /** A page fits into the device's sector, but the driver is not trusted and
  innodb_use_atomic_writes_fs is OFF. */
  SECTOR_NOT_TRUSTED,
  /** The kernel reports untorn writes for the page size, but rejected the test
  write. */
  REJECTED,
  /** The kernel reports untorn writes for the page size, but the test write
  failed for lack of disk space, file descriptors or permission. The next open
  of the file repeats it. */
  NOT_TRIED,
  /** The device could not be examined. The next open of the file repeats it. */
  NOT_EXAMINED,
  /** The marker file could not be written to the data directory. Not returned
  by choose_atomic_method(). */
  NO_MARKER,
  /** The storage does not write this page size atomically. */
  NOT_ATOMIC,
  /** The table is page-compressed. Not returned by choose_atomic_method(). */
  PAGE_COMPRESSED,
  N
};

/** Output of choose_atomic_method(). */
struct Atomic_output {
  /** NONE: the file uses the doublewrite buffer, unless it is refused. */
  Atomic_method method;

  /** With ON only: the file must not be used. */
  bool is_refused;

  Atomic_reason reason;
};

/** RWF_ATOMIC also requires that the length is a power of 2 and the offset a
multiple of it, which holds for every page.
@param[in]  storage     the capabilities of the file's storage
@param[in]  page_bytes  see Atomic_input
@return whether the kernel reports that a page can be written with RWF_ATOMIC */
constexpr bool units_hold_page(const Storage_capabilities &storage,
                               uint32_t page_bytes) {
  return 0 < storage.unit_min_bytes && storage.unit_min_bytes <= page_bytes &&
         page_bytes <= storage.unit_max_bytes;
}

/** @param[in]  storage     capabilities for which units_hold_page() is true
@param[in]  page_bytes  see Atomic_input
@return whether the device itself writes the page atomically */
constexpr bool device_holds_page(const Storage_capabilities &storage,
                                 uint32_t page_bytes) {
  return page_bytes <= storage.device_max_bytes &&
         (storage.unit_max_opt_bytes == 0 ||
          page_bytes <= storage.unit_max_opt_bytes);
}

/** @param[in]  error  errno of a write with RWF_ATOMIC
@return whether the kernel rejected the flag (pwritev2(2)); false if the write
failed for another reason */
constexpr bool is_rejection(int error) {
  return error == EINVAL || error == EOPNOTSUPP;
}

/** Choose the method for a file's pages. A file is refused only for what its
storage is known to lack, not because the storage could not be tried or
examined: reads need no method, and the next open of the file examines it again.
@param[in]  input  the settings and the capabilities of the storage
@return the method and the reason */
constexpr Atomic_output choose_atomic_method(const Atomic_input &input) {
  const Storage_capabilities &storage = input.storage;
  const bool is_on = input.setting == Atomic_writes::ON;

  if (input.setting == Atomic_writes::OFF) {
    return {Atomic_method::NONE, false, Atomic_reason::OFF};
  }
  if (!input.is_native_aio) {
    return {Atomic_method::NONE, is_on, Atomic_reason::SIMULATED_AIO};
  }
  if (!input.is_synced) {
    return {Atomic_method::NONE, is_on, Atomic_reason::NOT_SYNCED};
  }

  /* The reason if no method holds: the last method that nearly did. */
  Atomic_reason reason = storage.error == 0 ? Atomic_reason::NOT_ATOMIC
                                            : Atomic_reason::NOT_EXAMINED;
  const bool units_hold = units_hold_page(storage, input.page_bytes);
  Atomic_reason copies = Atomic_reason::NOT_ATOMIC;

  if (!storage.is_direct) {
    reason = Atomic_reason::NOT_DIRECT;
  } else if (storage.ioctl_succeeds) {
    return {Atomic_method::IOCTL, false, Atomic_reason::ATOMIC};
  } else if (units_hold && is_rejection(storage.rwf_error)) {
    reason = Atomic_reason::REJECTED;
  } else if (units_hold && storage.rwf_error != 0 && !is_on) {
    reason = Atomic_reason::NOT_TRIED;
  } else if (units_hold) {
    /* ON uses RWF_ATOMIC also if the test write failed: a write with RWF_ATOMIC
    is atomic, or the kernel rejects it and the server stops. */
    copies = storage.rwf_error == 0 ? Atomic_reason::ATOMIC
                                    : Atomic_reason::NOT_TRIED;
    if (device_holds_page(storage, input.page_bytes)) {
      return {Atomic_method::RWF, false, copies};
    }
    if (storage.error == 0) {
      reason = Atomic_reason::COPIES_ARE_SLOW;
    }
  }

  if (input.page_bytes <= storage.file_system_bytes) {
    if (input.accept_unverified) {
      return {Atomic_method::FILE_SYSTEM, false, Atomic_reason::ATOMIC};
    }
    reason = Atomic_reason::FILE_SYSTEM_NOT_ALLOWED;
  }
  if (storage.is_direct && storage.direct_is_confirmed &&
      input.page_bytes <= storage.sector_bytes) {
    if (storage.sector_is_trusted || input.accept_unverified) {
      return {Atomic_method::SECTOR, false, Atomic_reason::ATOMIC};
    }
    reason = Atomic_reason::SECTOR_NOT_TRUSTED;
  }

  /* Copies are the last choice, because the other methods cost nothing. */
  if (copies != Atomic_reason::NOT_ATOMIC && is_on) {
    return {Atomic_method::RWF_COPY, false, copies};
  }
  return {Atomic_method::NONE, is_on && storage.error == 0, reason};
}

/** @param[in]  method              the method of a page's file
@param[in]  is_page_compressed  its table is page-compressed: the write is
                                shorter than a page, and InnoDB punches a hole
                                for the remainder
@return whether a whole page is written atomically */
constexpr bool is_written_atomically(Atomic_method method,
                                     bool is_page_compressed) {
  return method != Atomic_method::NONE && !is_page_compressed;
}

/** @param[in]  method              the method of a page's file
@param[in]  is_page_compressed  see above
@param[in]  n_bytes             length of the write. A page that was
                                page-compressed for its doublewrite copy is
                                shorter, even if its table is not
                                page-compressed any more
@param[in]  page_bytes          length of the page
@return whether the write is atomic */
constexpr bool is_atomic_write(Atomic_method method, bool is_page_compressed,
                               size_t n_bytes, size_t page_bytes) {
  return is_written_atomically(method, is_page_compressed) &&
         n_bytes == page_bytes;
}

/** Whether a page bypasses the doublewrite buffer. With ON it also does if its
file is still closed, or if the doublewrite buffer keeps no copies: the write
then opens the file, and the server stops before the write if the file has no
method. Once a file was opened without a method, pages of closed files have
copies.
@param[in]  setting             innodb_use_atomic_writes
@param[in]  method              the method of the page's file; NONE also if the
                                file is closed
@param[in]  expects_method      the file is closed, and every file that was
                                opened had a method
@param[in]  has_copies          the doublewrite buffer keeps copies of pages
@param[in]  is_page_compressed  see is_written_atomically()
@return whether the page bypasses it */
constexpr bool may_bypass_doublewrite(Atomic_writes setting,
                                      Atomic_method method, bool expects_method,
                                      bool has_copies,
                                      bool is_page_compressed) {
  return is_written_atomically(method, is_page_compressed) ||
         (setting == Atomic_writes::ON && !is_page_compressed &&
          (expects_method || !has_copies));
}

/** @param[in]  output              the decision for a file
@param[in]  is_page_compressed  see is_written_atomically()
@return the decision as users see it */
constexpr Atomic_output as_shown(const Atomic_output &output,
                                 bool is_page_compressed) {
  return is_page_compressed && output.method != Atomic_method::NONE
             ? Atomic_output{Atomic_method::NONE, false,
                             Atomic_reason::PAGE_COMPRESSED}
             : output;
}

/** @param[in]  method  the method of a file
@return whether its pages have to be written with RWF_ATOMIC */
constexpr bool needs_rwf(Atomic_method method) {
  return method == Atomic_method::RWF || method == Atomic_method::RWF_COPY;
}

}  // namespace spw

#endif /* atomic0write_h */
