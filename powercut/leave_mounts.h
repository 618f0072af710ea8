/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file powercut/leave_mounts.h
For servers of file systems that hold the image of a disk. */

#ifndef powercut_leave_mounts_h
#define powercut_leave_mounts_h

#include <sched.h>
#include <sys/mount.h>

/** Leave the mount namespace for a copy of it, without the mount that this
program serves. The tool that started it has a mount namespace of its own. If
the tool is killed, this program could be the last process in there: its end
would unmount the file system on the disk, which writes to the disk, and wait
for itself. To be called by the only thread, after the mount.
@param[in]  mountpoint  the mount
@return whether it did; otherwise errno says why not */
inline bool leave_mounts(const char *mountpoint) {
  return unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         umount2(mountpoint, MNT_DETACH) == 0;
}

#endif
