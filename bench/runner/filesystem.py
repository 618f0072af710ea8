"""A file system of one's own in a file, on a loop device, for plans that ask for one."""

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path

import block_throttle
from common import BUILD, DIES_WITH_US, Failure, Skip
from resources import temporary_folder

UNMOUNT_SECONDS = 20
# powercut/powercut_fs.cc: directFS, whose ioctl makes writes whole; here on an ext4 of its own.
DIRECTFS = "directfs"
DIRECTFS_PROGRAM = BUILD / "super/policy/powercut/powercut_fs"
# The largest write that is whole: the largest page.
DIRECTFS_ATOMIC_BYTES = 65536
DIRECTFS_SECONDS = 20
# How each kind is made and mounted. Nothing of it is initialised later, in the middle of a measurement, and the file
# keeps its blocks: to discard them would be to make it sparse.
EXT4 = ["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"]
KINDS = {
    "ext4": (EXT4, "data=ordered"),
    "ext4-journal": (EXT4, "data=journal"),
    "xfs-reflink": (["mkfs.xfs", "-q", "-K", "-m", "reflink=1"], "noatime"),
    DIRECTFS: (EXT4, "data=ordered"),
}


def command(*words):
    """What a program says that has to succeed, and that ends with us."""
    result = subprocess.run([*DIES_WITH_US, *words], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Failure(f"{' '.join(map(str, words))}: {(result.stderr or result.stdout).strip()}")
    return result.stdout.strip()


def is_mounted(folder):
    """Also where nothing answers any more, and os.path.ismount() would say no."""
    path = os.path.realpath(folder)
    return any(line.split()[1] == path for line in Path("/proc/self/mounts").read_text().splitlines())


def lift(loop):
    """Take limits off a loop device, where this machine has such limits and lets us."""
    number = loop.stat().st_rdev
    with contextlib.suppress(Failure):
        block_throttle.lift(f"{os.major(number)}:{os.minor(number)}")


def unmount(mount):
    """A server that was killed just now still ends."""
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
def mounted(kind, size, folder, *options):
    """A new file system of that kind and size, in a file below folder; gives the path where it is mounted while the
    context lasts. options are losetup's."""
    make, mount_options = KINDS[kind]
    if os.geteuid() != 0 or not os.access("/dev/loop-control", os.W_OK):
        raise Skip("mounting a file system on a loop device needs root and /dev/loop-control")
    if not shutil.which(make[0]):
        raise Failure(f"{make[0]} is not installed, or not in a folder of PATH, as /usr/sbin is: make packages")
    with temporary_folder(folder) as own:
        image, mount = own / "disk.img", own / "mount"
        # With its blocks, so that it is the inner file system that is measured and not the growth of the outer file.
        command("fallocate", "--length", size, image)
        device = command("losetup", "--find", "--show", "--direct-io=on", *options, image)
        # Another tool's may have left some on it, with another file.
        lift(Path(device))
        command(*make, device)
        mount.mkdir()
        command("mount", "-o", mount_options, device, mount)
        with directfs(own, mount) if kind == DIRECTFS else contextlib.nullcontext(mount) as place:
            yield place


@contextlib.contextmanager
def directfs(folder, mount):
    """Serve a folder of a mounted file system as directFS, while the context lasts; gives where."""
    if not DIRECTFS_PROGRAM.exists():
        raise Failure(f"{DIRECTFS_PROGRAM} is not built: make check builds it")
    store, top = mount / "store", folder / DIRECTFS
    (store / "content").mkdir(parents=True)
    top.mkdir()
    options = [f"--store={store}", f"--atomic-bytes={DIRECTFS_ATOMIC_BYTES}", "--write-through"]
    with open(mount / f"{DIRECTFS}.log", "wb") as log:
        process = subprocess.Popen([*DIES_WITH_US, DIRECTFS_PROGRAM, *options, top], stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log)  # fmt: skip
    try:
        deadline = time.monotonic() + DIRECTFS_SECONDS
        while not is_mounted(top):
            if process.poll() is not None or time.monotonic() > deadline:
                raise Failure(f"powercut_fs is not mounted: {Path(log.name).read_text().strip()}")
            time.sleep(0.02)
        yield top
        unmount(top)
        process.wait(DIRECTFS_SECONDS)
    finally:
        process.kill()
        process.wait()


def on_disk(place):
    """A path on the loop device, whatever serves what is in it."""
    return place.parent / "mount" if place.name == DIRECTFS else place
