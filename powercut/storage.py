"""Storage that loses power: a disk with a file system, or directFS. Both are served by powercut_fs."""

import os
import shutil
import subprocess
import time

from spillway.common import DIES_WITH_US, Failure, Skip
from spillway.filesystem import DIRECTFS, KINDS, command, is_mounted, unmount
from spillway.filesystem import DIRECTFS_ATOMIC_BYTES as ATOMIC_BYTES
from spillway.filesystem import DIRECTFS_PROGRAM as PROGRAM
from spillway.sysbench import last_lines

DISK_BYTES = 1 << 30
# The smallest sector, so that most writes can be torn.
SECTOR_BYTES = 512
WAIT_SECONDS = 60


def need_root():
    """Raise Skip if this machine cannot mount the storage."""
    if os.geteuid() != 0:
        raise Skip("cutting the power needs root, to mount file systems")
    for device in ("/dev/fuse", "/dev/loop-control"):
        if not os.access(device, os.W_OK):
            raise Skip(f"cutting the power needs {device}")


def happens(done, seconds):
    """Wait until a function returns true. Return whether it does in time."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def wait_until(done, what):
    if not happens(done, WAIT_SECONDS):
        raise Failure(f"{what}: not after {WAIT_SECONDS} s")


class Storage:
    """Storage in a folder: store/ is the medium, mount/ the file system that a server uses while the power is on.

    The power goes off and everything is unmounted when the context ends, also after a failure."""

    def __init__(self, folder, kind, *options, sector_bytes=SECTOR_BYTES):
        """options are powercut_fs'; sector_bytes is the size of the medium's sectors, which it writes atomically."""
        self.folder = folder
        self.kind = kind
        self.sector_bytes = sector_bytes
        self.options = options
        self.store = folder / "store"
        self.power = folder / "power"
        self.mount = self.power if kind == DIRECTFS else folder / "mount"
        self.log = folder / "powercut_fs.log"
        self.process = None

    def __enter__(self):
        self.remove_mounts()
        for folder in (self.store / "content", self.power, self.mount):
            folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *_):
        self.remove_mounts()

    def format(self):
        """Create a new medium with an empty file system."""
        shutil.rmtree(self.store)
        (self.store / "content").mkdir(parents=True)
        if self.kind == DIRECTFS:
            return
        with open(self.store / "content/disk", "wb") as file:
            file.truncate(DISK_BYTES)
        self.start_power()
        # Among these file systems only XFS supports sectors larger than 4 KiB.
        sizes = ["-b", f"size={self.sector_bytes}", "-s", f"size={self.sector_bytes}"]
        command(*KINDS[self.kind][0], *(sizes if self.sector_bytes > SECTOR_BYTES else []), self.attach())
        self.switch_off()

    def copy_medium(self, other):
        """Copy the medium of another storage, whose power is off."""
        shutil.rmtree(self.store)
        command("cp", "--archive", "--sparse=always", other.store, self.store)

    def start_power(self):
        """Switch the power on, without a mount of the disk's file system."""
        options = [f"--atomic-bytes={ATOMIC_BYTES}"] if self.kind == DIRECTFS else []
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*DIES_WITH_US, PROGRAM, f"--store={self.store}", *options, *self.options,
                                             self.power], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True)  # fmt: skip

        def is_on():
            self.check_alive()
            return is_mounted(self.power)

        wait_until(is_on, "powercut_fs is mounted")

    def check_alive(self):
        if (status := self.process.poll()) is not None:
            raise Failure(f"powercut_fs ended with status {status}; {self.log}:\n{last_lines(self.log)}")

    def attach(self):
        return command("losetup", "--find", "--show", "--direct-io=on", f"--sector-size={self.sector_bytes}",
                       self.power / "disk")  # fmt: skip

    def switch_on(self):
        """Switch on like a machine that boots: the file system on the disk replays its journal."""
        self.start_power()
        if self.kind != DIRECTFS:
            device = self.attach()
            command("mount", "-o", KINDS[self.kind][1], device, self.mount)
            # The kernel detaches it when its use ends, also if this process is killed before.
            command("losetup", "--detach", device)

    def switch_off(self):
        """Switch off as in a machine's shutdown: unmount and write the disk's cache. After a cut nothing is written."""
        self.unmount()
        wait_until(lambda: self.process.poll() is not None, "powercut_fs has ended")
        status, self.process = self.process.returncode, None
        if status:
            raise Failure(f"powercut_fs ended with status {status}; {self.log}:\n{last_lines(self.log)}")

    def control(self, text):
        """Set when the power goes; see powercut_fs.cc."""
        with open(self.power / ".powercut", "wb", buffering=0) as file:
            file.write(text.encode())

    def is_off(self):
        return "power off" in (self.power / ".powercut").read_text()

    def resolve(self, seed):
        """Resolve a cut: draw which of the interrupted writes survive. Return the number of writes by fate."""
        text = command(PROGRAM, f"--store={self.store}", f"--settle={seed}", f"--sector-bytes={self.sector_bytes}")
        return {name: int(value) for name, value in (line.split() for line in text.splitlines())}

    def unmount(self):
        if self.mount != self.power and is_mounted(self.mount):
            unmount(self.mount)
        self.detach()
        if is_mounted(self.power):
            unmount(self.power)

    def detach(self):
        """Detach the loop devices on our disk, found by its name: powercut_fs may be gone. The kernel can be faster."""
        wait_until(self.is_detached, f"the loop device of {self.power} is detached")

    def is_detached(self):
        """Whether our disk has no loop device. Asks the kernel to detach those that it has."""
        lines = command("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE").splitlines()
        devices = [device for device, _, file in (line.partition(" ") for line in lines)
                   if file.strip() == str(self.power / "disk")]  # fmt: skip
        for device in devices:
            subprocess.run(["losetup", "--detach", device], capture_output=True, check=False)
        return not devices

    def remove_mounts(self):
        """Unmount everything and end the process, whatever state it is in."""
        try:
            self.unmount()
        finally:
            if self.process:
                self.process.kill()
                self.process.wait()
                self.process = None
