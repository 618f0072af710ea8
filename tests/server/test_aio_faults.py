"""Calls of libaio fail: the server starts or continues, logs why, leaves no AIO context behind and loses no data."""

import errno
import os
import re
import shutil
import time
import unittest
from pathlib import Path

from .scratch import FORK, Scratch, temporary_folder, to_preload

SOURCE = Path(__file__).resolve().parent / "aio_fault.cc"
DEPTH = 2048
THREADS = 1 + 2 + 2
OPTIONS = (f"--innodb-aio-pending-ios-per-thread={DEPTH}", "--innodb-read-io-threads=2", "--innodb-write-io-threads=2")
EVER = 1 << 40
LOAD = """
CREATE DATABASE d;
CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, a CHAR(200) NOT NULL, b CHAR(200) NOT NULL, KEY (b));
INSERT INTO d.t (a, b) VALUES ('a', UUID()), ('a', UUID()), ('a', UUID()), ('a', UUID());
""" + 12 * "INSERT INTO d.t (a, b) SELECT a, UUID() FROM d.t;\n"
ROWS = 4 << 12
FLUSH_SECONDS = 60
# InnoDB logs this each time before it submits a request again.
EXPECTED_ERROR = re.compile(rf"Operating system error number {errno.EAGAIN} |Error number {errno.EAGAIN} means")


def io_setup_failed(error):
    return f"io_setup() failed with error {error} ({os.strerror(error)}). "


class AioFaults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = to_preload(SOURCE, cls.enterClassContext(temporary_folder()))
        cls.initialised = cls.enterClassContext(Scratch())
        cls.initialised.initialise(FORK)
        cls.initialised.start(FORK, *OPTIONS)
        depth = cls.initialised.sql("SHOW GLOBAL STATUS LIKE 'Innodb_aio_write_depth'").split()[1]
        native = cls.initialised.sql("SELECT @@innodb_use_native_aio")
        cls.initialised.end()
        if native != "1" or depth != str(DEPTH):
            raise unittest.SkipTest(f"there is no native AIO here, or no room for {THREADS} x {DEPTH} requests")

    def setUp(self):
        self.scratch = self.enterContext(Scratch())
        shutil.copytree(self.initialised.data, self.scratch.data)

    def start(self, *options, **faults):
        self.scratch.start(FORK, *OPTIONS, *options, environment={"LD_PRELOAD": str(self.library)} | faults)

    def contexts(self):
        """The number of AIO contexts of the server: each has a memory mapping."""
        return Path(f"/proc/{self.scratch.process.pid}/maps").read_text().count("/[aio]")

    def status(self, name):
        return self.scratch.counter(f"Innodb_aio_{name}")

    def warnings(self):
        return re.findall(r"\[Warning\].*AIO requests;.*", self.scratch.log.read_text())

    def load_and_check(self, **faults):
        """Write and flush pages, restart, check them. Returns submit retries and max used slots."""
        self.scratch.sql(LOAD)
        self.scratch.sql("SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0; SET GLOBAL innodb_max_dirty_pages_pct = 0")
        deadline = time.monotonic() + FLUSH_SECONDS
        while self.scratch.sql("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'").split()[1] != "0":
            self.assertLess(time.monotonic(), deadline, "the pages are not written")
            time.sleep(0.2)
        retries = self.status("write_submit_retries")
        used = self.status("write_slots_used_max")
        self.assertEqual(self.scratch.end(), 0)
        errors = [line for line in self.scratch.log.read_text().splitlines() if "[ERROR]" in line]
        self.assertEqual([line for line in errors if not EXPECTED_ERROR.search(line)], [])
        self.start(**faults)
        self.assertIn("OK", self.scratch.sql("CHECK TABLE d.t EXTENDED").split())
        self.assertEqual(int(self.scratch.sql("SELECT COUNT(*) FROM d.t WHERE a = 'a'")), ROWS)
        return retries, used

    def test_no_fault(self):
        """The baseline for the other tests."""
        self.start()
        self.assertEqual(self.contexts(), THREADS)
        self.assertEqual(self.status("write_depth"), DEPTH)
        self.assertEqual(self.warnings(), [])
        retries, _ = self.load_and_check()
        self.assertEqual(retries, 0)

    def test_io_submit_is_tried_again(self):
        """The kernel returns EAGAIN if it has no free request. The first io_submit() is the probe's and succeeds."""
        fault = {"AIO_FAULT_SUBMIT": f"{errno.EAGAIN} 3 2 {EVER}"}
        self.start(**fault)
        retries, used = self.load_and_check(**fault)
        self.assertGreater(used, 0)
        self.assertGreater(retries, 0)
        lines = self.scratch.sql("SHOW ENGINE INNODB STATUS").replace("\\n", "\n")
        self.assertRegex(lines, r"AIO writes: .* [0-9]+ io_submit retries")

    def test_partial_writes_are_completed(self):
        """InnoDB submits the rest of a partial write again, so its slot is in the list of completed slots twice."""
        fault = {"AIO_FAULT_PARTIAL": "2"}
        self.start(**fault)
        _, used = self.load_and_check(**fault)
        self.assertGreater(used, 0)

    def test_probe_fails(self):
        """tmpdir has no native AIO: the server uses simulated AIO with its own depth, and frees the contexts."""
        fault = {"AIO_FAULT_SUBMIT": f"{errno.EINVAL} 1 1 1"}
        self.start(**fault)
        self.assertIn("Linux Native AIO disabled", self.scratch.log.read_text())
        self.assertEqual(self.scratch.sql("SELECT @@innodb_use_native_aio"), "0")
        self.assertEqual(self.contexts(), 0)
        self.assertEqual(self.status("write_depth"), 256)
        self.scratch.sql(LOAD)
        self.assertEqual(self.scratch.end(), 0)

    def test_a_limit_that_the_figures_do_not_show(self):
        """No memory for more than 1024 events: half the depth, and no suggestion of a sysctl."""
        self.start(AIO_FAULT_SETUP=f"{errno.ENOMEM} 1025 1 {EVER}")
        self.assertEqual(self.status("write_depth"), 1024)
        self.assertEqual(self.contexts(), THREADS)
        (warning,) = self.warnings()
        self.assertIn(io_setup_failed(errno.ENOMEM) + "The depth is lowered to 1024.", warning)
        self.assertNotIn("set the sysctl", warning)

    def test_another_process_takes_the_free_requests(self):
        """io_setup() fails from the third time on: the server destroys contexts, tries again for 2.5 s, and uses half
        the depth. It does not suggest a larger fs.aio-max-nr, because the kernel's figures show free requests."""
        self.start(AIO_FAULT_SETUP=f"{errno.EAGAIN} {DEPTH} 3 {EVER}")
        self.assertEqual(self.status("write_depth"), DEPTH // 2)
        self.assertEqual(self.contexts(), THREADS)
        (warning,) = self.warnings()
        self.assertIn(io_setup_failed(errno.EAGAIN) + f"The depth is lowered to {DEPTH // 2}.", warning)
        self.assertNotIn("set the sysctl", warning)

    def test_another_process_releases_requests(self):
        """The third io_setup() fails, and the next ones do not: the depth is that of the setting."""
        self.start(AIO_FAULT_SETUP=f"{errno.EAGAIN} 1 3 3")
        self.assertEqual(self.status("write_depth"), DEPTH)
        self.assertEqual(self.contexts(), THREADS)
        self.assertEqual(self.warnings(), [])

    def test_a_kernel_without_aio(self):
        """io_setup() fails with ENOSYS, as in a sandbox that blocks it."""
        self.start(AIO_FAULT_SETUP=f"{errno.ENOSYS} 1 1 {EVER}")
        self.assertEqual(self.scratch.sql("SELECT @@innodb_use_native_aio"), "0")
        self.assertEqual(self.contexts(), 0)
        (warning,) = self.warnings()
        self.assertIn(io_setup_failed(errno.ENOSYS) + "Not even a depth of 32 is possible", warning)
        self.assertNotIn("set the sysctl", warning)
