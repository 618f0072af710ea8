/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file atomic/policy/atomic0write.h
Whether a data file's pages are written without the doublewrite buffer, and what
makes that safe. */

#ifndef atomic0write_h
#define atomic0write_h

#include <cerrno>
#include <cstdint>

namespace spw {

/** innodb_use_atomic_writes. */
enum class Atomic_writes : uint32_t {
  /** All files use the doublewrite buffer, as upstream. */
  OFF,
  /** All files are written without; a file that cannot be is an error. */
  ON,
  /** Each file that can, as fast or faster, is written without. */
  AUTO
};

/** What makes a page write whole: after a power cut the page is as before or as
written. In the order in which they are chosen, but for RWF_COPY, the last. */
enum class Atomic_means : uint8_t {
  NONE,
  /** The file system's promise for this file, asked for by directFS's ioctl
  (as MariaDB 10.0 did). */
  IOCTL,
  /** Untorn writes, RWF_ATOMIC of pwritev2(2), that the device makes whole. */
  RWF,
  /** RWF_ATOMIC that the file system makes whole by copy on write. */
  RWF_COPY,
  /** The page is not larger than a block that the file system writes through
  its journal, without being asked. */
  FILE_SYSTEM,
  /** The page is not larger than what the device writes as a whole. */
  SECTOR,
  N
};

/** What was found out about a file by trying, or by asking the kernel. */
struct Atomic_findings {
  /** The file is open for direct I/O, and the kernel does not say that it
  writes through the page cache nevertheless, which can split a page. */
  bool is_direct;

  /** The kernel says that the file has direct I/O: statx(2), STATX_DIOALIGN. */
  bool direct_is_confirmed;

  /** directFS's ioctl succeeded on this file. */
  bool ioctl_succeeds;

  /** statx(2): stx_atomic_write_unit_min and _max, in bytes; 0 if there are
  none. The mask's bit says nothing: ext4 sets it with 0 and 0. */
  uint32_t unit_min_bytes;
  uint32_t unit_max_bytes;

  /** statx(2): stx_atomic_write_unit_max_opt, in bytes: up to here the device
  does it and no copy is made; 0 is the same as the largest, or unknown. */
  uint32_t unit_max_opt_bytes;

  /** The block queue's atomic_write_unit_max_bytes: what the device below
  writes as a whole; 0 if it does not promise any, or pages do not lie as it
  needs. */
  uint32_t device_max_bytes;

  /** A page was written with RWF_ATOMIC to a scratch file in that file system:
  0; errno if it was not, of any step. Only tried where the units say that it
  can be; 0 elsewhere. */
  int rwf_error;

  /** The largest write that the file system makes whole without being asked, in
  bytes; 0 if it makes none. */
  uint32_t file_system_bytes;

  /** What the device, and each below it, writes as a whole: the smallest
  logical block size, in bytes; 0 if one is not known. */
  uint32_t sector_bytes;

  /** Each of these devices has a driver that writes a sector as a whole to the
  medium, and not through a page cache of its own or of another machine. */
  bool sector_is_trusted;

  /** The device could not be examined: errno, as for want of descriptors. 0 if
  it could be. */
  int error;
};

/** What decide_atomic_means() decides on. */
struct Atomic_input {
  Atomic_writes setting;

  /** innodb_use_atomic_writes_fs: what is whole without being asked for, and
  cannot be verified, is good enough: a file system's journal, and the sector of
  a device whose driver is not trusted. */
  bool file_system_is_enough;

  /** The file's pages, in bytes: a power of 2, 1,024 to 65,536. */
  uint32_t page_bytes;

  /** innodb_use_native_aio is in effect: each page is a write of its own.
  Simulated AIO writes pages that are side by side in one. */
  bool is_native_aio;

  /** The file is synced when pages have been written to it, ahead of the
  checkpoint. With innodb_flush_method = O_DIRECT_NO_FSYNC it is not. */
  bool is_synced;

  Atomic_findings found;
};

/** Why a file is written as it is. */
enum class Atomic_reason : uint8_t {
  /** innodb_use_atomic_writes is OFF. */
  OFF,
  /** Pages are written whole, by the means that the output names. */
  WHOLE,
  /** Without native AIO a write can be of several pages. */
  SIMULATED_AIO,
  /** Not open for direct I/O. */
  NOT_DIRECT,
  /** The file is not synced when pages have been written: a write that a file
  system makes whole, by a copy or by its journal, is in the file only when that
  is committed, and what was written without a copy in the doublewrite buffer
  has to be there when the checkpoint has passed it. */
  NOT_SYNCED,
  /** It can be, but by copies, which on storage as fast as memory take longer
  than writing a page twice: two to three times (measured: XFS, 16 KiB, random
  overwrites). With AUTO only. */
  COPIES_ARE_SLOW,
  /** It can be by the file system only, and innodb_use_atomic_writes_fs is
  OFF. */
  FILE_SYSTEM_NOT_ALLOWED,
  /** The device's sector holds a page, its driver is not trusted with that, and
  innodb_use_atomic_writes_fs is OFF. */
  SECTOR_NOT_TRUSTED,
  /** The kernel says that it can be, and the page that was written to try it
  was rejected. */
  REJECTED,
  /** The kernel says that it can be, and no page could be written to try it:
  for want of room, of descriptors, of a right. It is tried again when the file
  is opened again. */
  NOT_TRIED,
  /** The device could not be examined. It is again when the file is opened
  again. */
  NOT_EXAMINED,
  /** The marker file could not be written in the data directory; not of
  decide_atomic_means(). */
  NO_MARKER,
  /** The storage makes no write of that size whole. */
  NOTHING_FOUND,
  /** The table is page-compressed; not of decide_atomic_means(). */
  PAGE_COMPRESSED,
  N
};

/** What decide_atomic_means() says. */
struct Atomic_output {
  /** NONE: through the doublewrite buffer, unless it is refused. */
  Atomic_means means;

  /** With ON: the file must not be used. */
  bool is_refused;

  Atomic_reason reason;
};

/** @param[in]  found       what was found out about the file
@param[in]  page_bytes  see Atomic_input
@return whether the kernel says that a page can be written with RWF_ATOMIC; that
it has a length of a power of 2 and a place that is a multiple of it, as that
flag requires, is so for every page */
constexpr bool units_hold_page(const Atomic_findings &found,
                               uint32_t page_bytes) {
  return 0 < found.unit_min_bytes && found.unit_min_bytes <= page_bytes &&
         page_bytes <= found.unit_max_bytes;
}

/** @param[in]  found       what was found out about a file whose units hold a
                            page
@param[in]  page_bytes  see Atomic_input
@return whether the device itself writes the page as a whole */
constexpr bool device_holds_page(const Atomic_findings &found,
                                 uint32_t page_bytes) {
  return page_bytes <= found.device_max_bytes &&
         (found.unit_max_opt_bytes == 0 ||
          page_bytes <= found.unit_max_opt_bytes);
}

/** @param[in]  error  errno of a write with RWF_ATOMIC
@return whether the kernel has rejected the flag, pwritev2(2), and not failed to
write */
constexpr bool is_rejection(int error) {
  return error == EINVAL || error == EOPNOTSUPP;
}

/** Decide how a file's pages are written. A file is refused only for what is
known of its storage: what could not be tried or examined is asked again when
the file is opened again, and reads need none of it.
@param[in]  input  what is asked for and what was found out
@return the means and the reason */
constexpr Atomic_output decide_atomic_means(const Atomic_input &input) {
  const Atomic_findings &found = input.found;
  const bool is_on = input.setting == Atomic_writes::ON;

  if (input.setting == Atomic_writes::OFF) {
    return {Atomic_means::NONE, false, Atomic_reason::OFF};
  }
  if (!input.is_native_aio) {
    return {Atomic_means::NONE, is_on, Atomic_reason::SIMULATED_AIO};
  }
  if (!input.is_synced) {
    return {Atomic_means::NONE, is_on, Atomic_reason::NOT_SYNCED};
  }

  /* What is said at the end if nothing holds: the last that nearly did. */
  Atomic_reason reason = found.error == 0 ? Atomic_reason::NOTHING_FOUND
                                          : Atomic_reason::NOT_EXAMINED;
  const bool units_hold = units_hold_page(found, input.page_bytes);
  Atomic_reason copies = Atomic_reason::NOTHING_FOUND;

  if (!found.is_direct) {
    reason = Atomic_reason::NOT_DIRECT;
  } else if (found.ioctl_succeeds) {
    return {Atomic_means::IOCTL, false, Atomic_reason::WHOLE};
  } else if (units_hold && is_rejection(found.rwf_error)) {
    reason = Atomic_reason::REJECTED;
  } else if (units_hold && found.rwf_error != 0 && !is_on) {
    reason = Atomic_reason::NOT_TRIED;
  } else if (units_hold) {
    /* With ON also where it could not be tried: a write with RWF_ATOMIC is
    whole, or the kernel rejects it and the server stops. */
    copies =
        found.rwf_error == 0 ? Atomic_reason::WHOLE : Atomic_reason::NOT_TRIED;
    if (device_holds_page(found, input.page_bytes)) {
      return {Atomic_means::RWF, false, copies};
    }
    reason = Atomic_reason::COPIES_ARE_SLOW;
  }

  if (input.page_bytes <= found.file_system_bytes) {
    if (input.file_system_is_enough) {
      return {Atomic_means::FILE_SYSTEM, false, Atomic_reason::WHOLE};
    }
    reason = Atomic_reason::FILE_SYSTEM_NOT_ALLOWED;
  }
  if (found.is_direct && found.direct_is_confirmed &&
      input.page_bytes <= found.sector_bytes) {
    if (found.sector_is_trusted || input.file_system_is_enough) {
      return {Atomic_means::SECTOR, false, Atomic_reason::WHOLE};
    }
    reason = Atomic_reason::SECTOR_NOT_TRUSTED;
  }

  /* The last, as the others cost nothing. */
  if (copies != Atomic_reason::NOTHING_FOUND && is_on) {
    return {Atomic_means::RWF_COPY, false, copies};
  }
  return {Atomic_means::NONE, is_on && found.error == 0, reason};
}

/** @param[in]  means               of a page's file
@param[in]  is_page_compressed  its table is page-compressed: what is written
                                has not the length of a page, and the rest of
                                the page is punched
@return whether the page is written whole */
constexpr bool page_is_written_whole(Atomic_means means,
                                     bool is_page_compressed) {
  return means != Atomic_means::NONE && !is_page_compressed;
}

/** Whether a page bypasses the doublewrite buffer. With ON it may before its
file is opened for the write, and where there are no copies: a file that does
not make pages whole then ends the server, so that the page is not written torn.
@param[in]  setting             innodb_use_atomic_writes
@param[in]  means               of its file; NONE also if it is closed
@param[in]  is_open             whether the file is
@param[in]  has_copies          the doublewrite buffer has copies of pages
@param[in]  is_page_compressed  see page_is_written_whole()
@return whether it does */
constexpr bool page_goes_without(Atomic_writes setting, Atomic_means means,
                                 bool is_open, bool has_copies,
                                 bool is_page_compressed) {
  return page_is_written_whole(means, is_page_compressed) ||
         (setting == Atomic_writes::ON && !is_page_compressed &&
          (!is_open || !has_copies));
}

/** @param[in]  output              decision of a file
@param[in]  is_page_compressed  see page_is_written_whole()
@return what is to be said of it */
constexpr Atomic_output as_seen(const Atomic_output &output,
                                bool is_page_compressed) {
  return is_page_compressed && output.means != Atomic_means::NONE
             ? Atomic_output{Atomic_means::NONE, false,
                             Atomic_reason::PAGE_COMPRESSED}
             : output;
}

/** @param[in]  means  of a file
@return whether its pages have to be written with RWF_ATOMIC */
constexpr bool needs_rwf(Atomic_means means) {
  return means == Atomic_means::RWF || means == Atomic_means::RWF_COPY;
}

}  // namespace spw

#endif /* atomic0write_h */
