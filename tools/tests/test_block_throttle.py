"""Which control group is used, and what is written to it, for both versions of control groups."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import block_throttle
from common import Skip


class Limits(unittest.TestCase):
    def setUp(self):
        self.root = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def limits(self):
        return block_throttle.limits(self.root, "8:16", 200, 1 << 20)

    def test_version_2(self):
        (self.root / "cgroup.controllers").write_text("cpuset cpu io memory\n")
        self.assertEqual(self.limits(), (self.root, {"io.max": "8:16 wiops=200 wbps=1048576"}))

    def test_version_1(self):
        files = {"blkio.throttle.write_iops_device": "8:16 200", "blkio.throttle.write_bps_device": "8:16 1048576"}
        self.assertEqual(self.limits(), (self.root / "blkio", files))
        (self.root / "cgroup.controllers").write_text("hugetlb\n")
        self.assertEqual(self.limits(), (self.root / "blkio", files))

    def test_none(self):
        path = next((path for path in ("/", "/var/tmp", "/home") if is_on_block_device(path)), None)
        if path is None:
            self.skipTest("no file system here is on a block device")
        with self.assertRaisesRegex(Skip, "cgroup.procs"), block_throttle.throttled(1, path, 1, 1, self.root):
            self.fail("there is no control group")

    def test_not_on_a_block_device(self):
        with self.assertRaisesRegex(Skip, "not on a block device"):
            block_throttle.device_of("/proc")


def is_on_block_device(path):
    try:
        block_throttle.device_of(path)
    except Skip:
        return False
    return True


if __name__ == "__main__":
    unittest.main()
