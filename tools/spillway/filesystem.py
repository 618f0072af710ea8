"""File systems in files on loop devices, for plans that ask for one."""

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path

from spillway import block_throttle, timed_disk
from spillway.common import BUILD, DIES_WITH_US, Failure, Skip
from spillway.resources import release_mounts, temporary_folder

UNMOUNT_SECONDS = 20
# directFS is powercut/powercut_fs.cc, here on an ext4. Its ioctl makes writes atomic.
DIRECTFS = "directfs"
DIRECTFS_PROGRAM = BUILD / "super/policy/powercut/powercut_fs"
# The largest atomic write: the largest page.
DIRECTFS_ATOMIC_BYTES = 65536
FUSE_SECONDS = 20
# How each kind is created and mounted. No part is initialised later, during a measurement. The file keeps its blocks,
# because nothing is discarded: a discard would make it sparse.
EXT4 = ["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"]
KINDS = {
    "ext4": (EXT4, "data=ordered"),
    "ext4-journal": (EXT4, "data=journal"),
    "xfs-reflink": (["mkfs.xfs", "-q", "-K", "-m", "reflink=1"], "noatime"),
    DIRECTFS: (EXT4, "data=ordered"),
}


def command(*words):
    """Run a program that must succeed and that ends with this process. Return its output."""
    result = subprocess.run([*DIES_WITH_US, *words], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Failure(f"{' '.join(map(str, words))}: {(result.stderr or result.stdout).strip()}")
    return result.stdout.strip()


def is_mounted(folder):
    """Return whether a folder is a mount point, also if its file system hangs and os.path.ismount() returns False."""
    path = os.path.realpath(folder)
    return any(line.split()[1] == path for line in Path("/proc/self/mounts").read_text().splitlines())


def lift(loop):
    """Remove the limits of a loop device, if this machine has such limits and permits it."""
    number = loop.stat().st_rdev
    with contextlib.suppress(Failure):
        block_throttle.lift(f"{os.major(number)}:{os.minor(number)}")


def unmount(mount):
    """Unmount a file system. Try again for UNMOUNT_SECONDS: a server that was just killed may still be ending."""
    deadline = time.monotonic() + UNMOUNT_SECONDS
    while True:
        try:
            command("umount", mount)
            return
        except Failure:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.5)


@contextlib.contextmanager
def mounted(kind, size, folder, *options, timing=None):
    """Create and mount a file system of this kind and size, in a file below folder, while the context lasts. Gives the
    mount point. options are losetup's; with a timing the loop device is on a timed disk."""
    make, mount_options = KINDS[kind]
    if os.geteuid() != 0 or not os.access("/dev/loop-control", os.W_OK):
        raise Skip("mounting a file system on a loop device needs root and /dev/loop-control")
    if not shutil.which(make[0]):
        raise Failure(f"{make[0]} is not installed, or not in a folder of PATH, as /usr/sbin is: make packages")
    with temporary_folder(folder) as own, contextlib.ExitStack() as stack:
        image, mount = own / "disk.img", own / "mount"
        # Allocated, so that a run measures the inner file system and not the growth of the outer file.
        command("fallocate", "--length", size, image)
        disk = image
        if timing:
            top = own / timed_disk.FOLDER
            stack.enter_context(fuse_served(timed_disk.command_line(image, timing), top, own / f"{top.name}.log"))
            disk = top / "disk"
        device = command("losetup", "--find", "--show", "--direct-io=on", *options, disk)
        # Another tool may have left limits on the loop device when it used another file.
        lift(Path(device))
        command(*make, device)
        mount.mkdir()
        command("mount", "-o", mount_options, device, mount)
        # Only marks it: the kernel detaches it when it is unmounted, also if this process is killed.
        command("losetup", "--detach", device)
        yield stack.enter_context(directfs(own, mount)) if kind == DIRECTFS else mount
        # What is on a server's disk is unmounted before the server ends.
        release_mounts(own, UNMOUNT_SECONDS)


@contextlib.contextmanager
def fuse_served(words, top, log_file):
    """Run the server of a file system in user space, and mount it in the new folder top, while the context lasts."""
    top.mkdir()
    with open(log_file, "wb") as log:
        process = subprocess.Popen([*DIES_WITH_US, *words, top], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + FUSE_SECONDS
        while not is_mounted(top):
            if process.poll() is not None or time.monotonic() > deadline:
                raise Failure(f"{top} is not mounted: {Path(log_file).read_text().strip()}")
            time.sleep(0.02)
        yield
        if is_mounted(top):
            unmount(top)
        process.wait(FUSE_SECONDS)
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def directfs(folder, mount):
    """Serve a folder of a mounted file system as directFS while the context lasts. Gives the mount point."""
    if not DIRECTFS_PROGRAM.exists():
        raise Failure(f"{DIRECTFS_PROGRAM} is not built: make check builds it")
    store, top = mount / "store", folder / DIRECTFS
    (store / "content").mkdir(parents=True)
    options = [f"--store={store}", f"--atomic-bytes={DIRECTFS_ATOMIC_BYTES}", "--write-through"]
    with fuse_served([DIRECTFS_PROGRAM, *options], top, mount / f"{DIRECTFS}.log"):
        yield top


def on_disk(place):
    """A path on the loop device, also if powercut_fs serves place."""
    return place.parent / "mount" if place.name == DIRECTFS else place
