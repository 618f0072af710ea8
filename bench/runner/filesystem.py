"""A file system of one's own in a file, on a loop device, for plans that ask for one."""

import contextlib
import os
import shutil
import subprocess

from common import DIES_WITH_US, Failure, Skip

# How each kind is made and mounted. Nothing of it is initialised later, in the middle of a measurement, and the file
# keeps its blocks: to discard them would be to make it sparse.
EXT4 = ["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"]
KINDS = {
    "ext4": (EXT4, "data=ordered"),
    "ext4-journal": (EXT4, "data=journal"),
    "xfs-reflink": (["mkfs.xfs", "-q", "-K", "-m", "reflink=1"], "noatime"),
}


def command(*words):
    """What a program says that has to succeed, and that ends with us."""
    result = subprocess.run([*DIES_WITH_US, *words], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Failure(f"{' '.join(map(str, words))}: {(result.stderr or result.stdout).strip()}")
    return result.stdout.strip()


def remove(folder):
    """Unmount and remove what a killed run has left in folder."""
    image, mount = folder / "disk.img", folder / "mount"
    if os.path.ismount(mount):
        command("umount", mount)
    if image.exists():
        for line in command("losetup", "--associated", image).splitlines():
            command("losetup", "--detach", line.partition(":")[0])
        image.unlink()
    if mount.exists():
        mount.rmdir()


@contextlib.contextmanager
def mounted(kind, size, folder):
    """A new file system of that kind and size; gives the path where it is mounted while the context lasts."""
    make, options = KINDS[kind]
    if not shutil.which(make[0]):
        raise Failure(f"{make[0]} is not installed: make packages")
    remove(folder)
    if os.geteuid() != 0 or not os.access("/dev/loop-control", os.W_OK):
        raise Skip("mounting a file system on a loop device needs root and /dev/loop-control")
    image, mount = folder / "disk.img", folder / "mount"
    try:
        # With its blocks, so that it is the inner file system that is measured and not the growth of the outer file.
        command("fallocate", "--length", size, image)
        device = command("losetup", "--find", "--show", "--direct-io=on", image)
        command(*make, device)
        mount.mkdir()
        command("mount", "-o", options, device, mount)
        yield mount
    finally:
        remove(folder)
