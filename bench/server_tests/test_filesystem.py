"""File systems on loop devices: they come and go, whatever happens in between."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import bench_run  # noqa: F401
import filesystem
from block_throttle import device_of
from common import Skip


class Mounted(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(dir="/var/tmp")))

    def loops(self):
        found = subprocess.run(["losetup", "--associated", self.folder / "disk.img"], capture_output=True, text=True,
                               check=False)  # fmt: skip
        return found.stdout

    def assert_nothing_is_left(self):
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertNotIn(str(self.folder), Path("/proc/mounts").read_text())

    def mount(self, kind):
        """The options that a file system of this kind is mounted with; it ends by an error."""
        with self.assertRaises(KeyError), filesystem.mounted(kind, "400M", self.folder) as place:
            (place / "file").write_text("x")
            self.assertTrue(os.path.ismount(place))
            self.assertIn("disk.img", self.loops())
            self.assertTrue(device_of(filesystem.on_disk(place)).startswith("7:"))
            options = subprocess.run(["findmnt", "--noheadings", "--output", "FSTYPE,OPTIONS", place],
                                     capture_output=True, text=True, check=True).stdout  # fmt: skip
            raise KeyError
        self.assert_nothing_is_left()
        return options

    def test_kinds(self):
        try:
            self.assertNotIn("data=journal", self.mount("ext4"))
        except Skip as skip:
            self.skipTest(str(skip))
        self.assertRegex(self.mount("ext4-journal"), "ext4.*data=journal")
        self.assertRegex(self.mount("xfs-reflink"), "^xfs ")
        self.assertRegex(self.mount("directfs"), "^fuse")

    def test_what_a_killed_run_left_is_removed(self):
        context = filesystem.mounted("ext4", "64M", self.folder)
        try:
            context.__enter__()
        except Skip as skip:
            self.skipTest(str(skip))
        self.addCleanup(filesystem.remove, self.folder)
        # Its limits go with it, or the next file on that loop device would have them.
        device = device_of(self.folder / "mount")
        limits = Path("/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device")
        if os.access(limits, os.W_OK):
            limits.write_text(f"{device} 100000")
            self.assertIn(device, limits.read_text())
        # It is in use for a moment more.
        with subprocess.Popen(["sleep", "2"], cwd=self.folder / "mount"):
            filesystem.remove(self.folder)
        self.assert_nothing_is_left()
        if os.access(limits, os.W_OK):
            self.assertNotIn(device, limits.read_text())
        # The second time there is nothing to do.
        filesystem.remove(self.folder)

    def test_too_large(self):
        try:
            with self.assertRaisesRegex(Exception, "fallocate"), filesystem.mounted("ext4", "900T", self.folder):
                self.fail("mounted")
        except Skip as skip:
            self.skipTest(str(skip))
        self.assert_nothing_is_left()


if __name__ == "__main__":
    unittest.main()
