"""The control group that is used, and the limits written to it, for both versions of control groups."""

import tempfile
import unittest
from pathlib import Path

from spillway import block_throttle
from spillway.common import Skip


class Limits(unittest.TestCase):
    def setUp(self):
        self.root = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def limits(self):
        limits = block_throttle.Limits(write_iops=200, write_bytes_per_s=1 << 20)
        return block_throttle.settings(self.root, "8:16", limits)

    def test_version_2(self):
        (self.root / "cgroup.controllers").write_text("cpuset cpu io memory\n")
        self.assertEqual(self.limits(), (self.root, {"io.max": "8:16 wiops=200 wbps=1048576"}))

    def test_version_1(self):
        files = {"blkio.throttle.write_iops_device": "8:16 200", "blkio.throttle.write_bps_device": "8:16 1048576"}
        self.assertEqual(self.limits(), (self.root / "blkio", files))
        (self.root / "cgroup.controllers").write_text("hugetlb\n")
        self.assertEqual(self.limits(), (self.root / "blkio", files))

    def test_all_four(self):
        limits = block_throttle.Limits(1, 2, 3, 4)
        files = block_throttle.settings(self.root, "8:16", limits)[1]
        names = ("read_iops", "read_bps", "write_iops", "write_bps")
        self.assertEqual(files, {f"blkio.throttle.{name}_device": f"8:16 {i}" for i, name in enumerate(names, 1)})
        (self.root / "cgroup.controllers").write_text("io\n")
        files = block_throttle.settings(self.root, "8:16", limits)[1]
        self.assertEqual(files, {"io.max": "8:16 riops=1 rbps=2 wiops=3 wbps=4"})

    def test_no_limits(self):
        """Without limits no group is made, in either version: the kernel rejects an io.max without a limit."""
        path = some_path_on_a_disk()
        if path is None:
            self.skipTest("no file system here is on a block device")
        for controllers in ("", "io\n"):
            (self.root / "cgroup.controllers").write_text(controllers)
            with block_throttle.throttled(1, path, block_throttle.Limits(), root=self.root):
                self.assertEqual([file.name for file in self.root.iterdir()], ["cgroup.controllers"])

    def test_disk(self):
        """The context removes its limits of a whole disk, also after an error, and first those that a killed process
        has left."""
        (self.root / "blkio").mkdir()
        file = self.root / "blkio/blkio.throttle.write_iops_device"
        other = self.root / "blkio/blkio.throttle.read_bps_device"
        file.write_text("")
        other.write_text("7:0 1")
        with self.assertRaises(KeyError), block_throttle.disk_throttled(self.root, "7:0", {file.name: "7:0 9"}):
            self.assertEqual((file.read_text(), other.read_text()), ("7:0 9", "7:0 0"))
            raise KeyError
        self.assertEqual(file.read_text(), "7:0 0")

    def test_none(self):
        path = some_path_on_a_disk()
        if path is None:
            self.skipTest("no file system here is on a block device")
        with self.assertRaisesRegex(Skip, "cgroup.procs"), throttling(path, self.root):
            self.fail("there is no control group")

    def test_not_on_a_block_device(self):
        with self.assertRaisesRegex(Skip, "not on a block device"):
            block_throttle.device_of("/proc")


def some_path_on_a_disk():
    return next((path for path in ("/", "/var/tmp", "/home") if is_on_block_device(path)), None)


def throttling(path, root):
    return block_throttle.throttled(1, path, block_throttle.Limits(write_iops=1), root=root)


def is_on_block_device(path):
    try:
        block_throttle.device_of(path)
    except Skip:
        return False
    return True
