"""Tests on storage that this machine does not have: a device with atomic writes, and sectors of 4096 bytes. guest.py
runs them in a guest."""

import signal
import subprocess
import tempfile
from pathlib import Path

from tests.server import test_atomic_writes
from tests.server.scratch import FORK
from tests.server.test_atomic_writes import AUTO, FILL, ON

FS = "--innodb-use-atomic-writes-fs=ON"
SMALL_PAGES = "--innodb-page-size=4096"
NO_METHOD = "the storage does not write 16 KiB atomically"


class Guest(test_atomic_writes.Servers):
    DISK = None  # The device of a subclass that formats one.

    def mount(self, *what):
        """Mount in a folder whose path is short enough for a socket."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        subprocess.run(["mount", *what, folder], check=True)
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        return Path(folder)

    def formatted(self, *command):
        subprocess.run([*command, self.DISK], check=True)
        return self.mount(self.DISK)

    def assert_is_atomic(self, folder, method, message, *options):
        """AUTO writes all files with this method. ON recovers after a kill, and does the same."""
        scratch = self.server(folder, *options)
        scratch.start(FORK, AUTO, *options)
        scratch.sql(FILL)
        self.flush(scratch, "t")
        status = self.status(scratch)
        self.assertGreater(status[f"atomic_write_files_{method}"], 3)
        self.assertEqual(status["atomic_write_files_doublewrite"], 0)
        self.assertGreater(status[f"atomic_write_pages_{method}"], 20)
        bypassed = f"torn-page protection by the {message}, doublewrite buffer bypassed."
        self.assertEqual(scratch.log.read_text().count(bypassed), 1)
        scratch.sql("UPDATE d.t SET a = UUID()")
        scratch.end(signal.SIGKILL)
        scratch.start(FORK, ON, *options)
        self.check(scratch)
        self.flush(scratch, "t")
        status = self.status(scratch)
        self.assertEqual(status["dblwr_pages_written"], 0)
        self.assertGreater(status[f"atomic_write_pages_{method}"], 20)
        self.assertEqual(status[f"atomic_write_pages_{method}"], status["atomic_write_doublewrite_avoided"])
        self.assertEqual(scratch.end(), 0)

    def assert_is_not(self, folder, reason, *options):
        """AUTO keeps the doublewrite buffer, and ON does not start."""
        scratch = self.server(folder, *options)
        scratch.start(FORK, AUTO, *options)
        scratch.sql(FILL)
        self.flush(scratch, "t")
        status = self.status(scratch)
        self.assertEqual(status["atomic_write_doublewrite_avoided"], 0)
        self.assertGreater(status["dblwr_pages_written"], 0)
        self.assertIn(f"torn-page protection: doublewrite buffer ({reason}", scratch.log.read_text())
        self.assertEqual(scratch.end(), 0)
        self.assertIn(f"would not be written atomically: {reason}", self.assert_does_not_start(scratch, ON, *options))


class AtomicByDevice(Guest):
    """NVMe with atomic writes of up to 64 KiB, also in a power cut (nawun, nawupf)."""

    DISK = "/dev/nvme0n1"
    MESSAGE = "device with RWF_ATOMIC"

    def test_ext4_by_block(self):
        folder = self.formatted("mkfs.ext4", "-q", "-F")
        self.assert_is_not(folder, NO_METHOD)
        self.assert_is_atomic(folder, "rwf", self.MESSAGE, SMALL_PAGES)

    def test_ext4_by_cluster(self):
        folder = self.formatted("mkfs.ext4", "-q", "-F", "-O", "bigalloc", "-C", "16384")
        self.assert_is_atomic(folder, "rwf", self.MESSAGE)

    def test_xfs(self):
        self.assert_is_atomic(self.formatted("mkfs.xfs", "-q", "-f"), "rwf", self.MESSAGE)


class LargeSectors(Guest):
    """NVMe with logical blocks of 4096 bytes."""

    DISK = "/dev/nvme0n1"
    SECTOR = "device sector"

    def test_ext4(self):
        folder = self.formatted("mkfs.ext4", "-q", "-F")
        self.assert_is_atomic(folder, "sector", self.SECTOR, SMALL_PAGES)
        self.assert_is_not(folder, NO_METHOD)

    def test_xfs(self):
        self.assert_is_atomic(self.formatted("mkfs.xfs", "-q", "-f"), "sector", self.SECTOR, SMALL_PAGES)


class UntrustedSectors(Guest):
    """Such blocks on a virtual machine's disk: the device below it is unknown."""

    DISK = "/dev/vda"

    def test_ext4(self):
        folder = self.formatted("mkfs.ext4", "-q", "-F")
        self.assert_is_not(folder, "a page fits into the device's sector, but", SMALL_PAGES)
        self.assert_is_atomic(folder, "sector", LargeSectors.SECTOR, SMALL_PAGES, FS)
