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
#include <unistd.h>

/** Leave the mount namespace for one without any mount. The tool that started
this program has a mount namespace of its own. If the tool is killed, this
program could be the last process in there: its end would unmount the file
system on the disk, which writes to the disk, and wait for itself. And a copy of
somebody else's mount would keep its device busy until this program ends. To be
called by the only thread, after the mount. Afterwards absolute paths lead
nowhere; relative ones begin at the folder.
@param[in]  folder  the working directory from here on
@return whether it did; otherwise errno says why not */
inline bool leave_mounts(const char *folder) {
  return chdir(folder) == 0 && unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         umount2("/", MNT_DETACH) == 0;
}

#endif
