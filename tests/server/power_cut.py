"""A folder whose power can be cut."""

import subprocess
import time

from spillway import filesystem
from spillway.common import DIES_WITH_US


class PowerCutFolder:
    """A mount of powercut/powercut_fs.cc, with the ioctl for atomic writes, whose power can be cut."""

    def __init__(self, folder, sector_bytes):
        self.folder, self.top, self.process = folder, folder / "top", None
        self.options = [filesystem.DIRECTFS_PROGRAM, f"--store={folder}/store", f"--sector-bytes={sector_bytes}"]
        (folder / "store/content").mkdir(parents=True)
        self.top.mkdir()

    def mount(self):
        self.process = subprocess.Popen([*DIES_WITH_US, *self.options, "--atomic-bytes=65536", self.top],
                                        stdin=subprocess.DEVNULL)  # fmt: skip
        deadline = time.monotonic() + filesystem.FUSE_SECONDS
        while not filesystem.is_mounted(self.top):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("powercut_fs is not mounted")
            time.sleep(0.02)

    def cut(self):
        with open(self.top / ".powercut", "wb", buffering=0) as file:
            file.write(b"cut")

    def unmount(self):
        if filesystem.is_mounted(self.top):
            filesystem.unmount(self.top)
        self.process.wait(filesystem.FUSE_SECONDS)

    def resolve(self, seed):
        """After a cut: keep unsynced writes, chosen by the seed, and drop the others."""
        subprocess.run([*self.options, f"--settle={seed}"], check=True, capture_output=True)
