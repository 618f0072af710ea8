"""File systems on loop devices: none is left behind, whatever happens in between."""

import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from spillway import filesystem, resources
from spillway.block_throttle import device_of
from spillway.common import REPO, Skip
from spillway.timed_disk import Timing, timed


class Mounted(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(dir="/var/tmp")))

    def loops(self):
        return subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True).stdout

    def assert_nothing_is_left(self):
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertNotIn(str(self.folder), Path("/proc/mounts").read_text())
        self.assertNotIn(str(self.folder), self.loops())

    def mount(self, kind):
        """The mount options of a file system of this kind. An error ends the context."""
        with self.assertRaises(KeyError), filesystem.mounted(kind, "400M", self.folder) as place:
            (place / "file").write_text("x")
            self.assertTrue(os.path.ismount(place))
            self.assertIn(f"{filesystem.on_disk(place).parent}/disk.img", self.loops())
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

    def test_timed(self):
        """A write that is synced takes the latency and the flush, but only within timed()."""
        timing = Timing(latency_ms=40, flush_ms=60)
        try:
            with (
                self.assertRaises(KeyError),
                filesystem.mounted("ext4", "400M", "/dev/shm", timing=timing) as place,
                open(place / "file", "wb") as file,
            ):
                top = place.parent
                with timed(place) as counters:
                    file.write(b"x")
                    begin = time.monotonic()
                    os.fsync(file.fileno())
                    taken_s = time.monotonic() - begin
                    done = counters()
                # The page, and the journal's record of the new file; then the disk's cache is flushed.
                self.assertGreater(taken_s, 0.1)
                self.assertGreater(done["writes"], 1)
                self.assertGreater(done["flushes"], 0)
                self.assertGreaterEqual(done["bytes"], 4096)
                raise KeyError
        except Skip as skip:
            self.skipTest(str(skip))
        self.assertFalse(top.exists())
        self.assertNotIn(str(top), self.loops())

    def test_timed_ends(self):
        """Without an error the disk's server ends by itself when it is unmounted."""
        try:
            with filesystem.mounted("xfs-reflink", "400M", "/dev/shm", timing=Timing(ios_per_s=1000)) as place:
                (place / "file").write_text("x")
                top = place.parent
        except Skip as skip:
            self.skipTest(str(skip))
        self.assertFalse(top.exists())
        self.assertNotIn(str(top), self.loops())

    def test_killed(self):
        """A tool that is killed has a mount namespace of its own. Its end unmounts the file system, which writes to the
        disk, and leaves neither the loop device nor the disk's server behind."""
        program = ("import subprocess\n"
                   "from spillway import filesystem, resources\n"
                   "from spillway.timed_disk import Timing\n"
                   "resources.keep_mounts_private()\n"
                   "with filesystem.mounted('ext4', '400M', '/dev/shm', timing=Timing(latency_ms=1)) as place:\n"
                   "    (place / 'file').write_text('x')\n"
                   "    print(place.parent, flush=True)\n"
                   "    subprocess.run(['findmnt', '--noheadings', '--output', 'SOURCE', place], check=True)\n"
                   "    input()\n")  # fmt: skip
        with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env={"PYTHONPATH": str(REPO / "tools"), "PATH": os.environ["PATH"]}) as tool:  # fmt: skip
            top, loop = (tool.stdout.readline().strip() for _ in range(2))
            tool.kill()
        if not top:
            self.skipTest("this machine mounts no timed disk")
        self.addCleanup(resources.remove_folder, Path(top))
        backing = Path("/sys/block") / Path(loop).name / "loop"
        deadline = time.monotonic() + 20
        while backing.exists():
            self.assertLess(time.monotonic(), deadline, f"{loop} is in use")
            time.sleep(0.1)

    def test_too_large(self):
        try:
            with self.assertRaisesRegex(Exception, "fallocate"), filesystem.mounted("ext4", "900T", self.folder):
                self.fail("mounted")
        except Skip as skip:
            self.skipTest(str(skip))
        self.assert_nothing_is_left()
