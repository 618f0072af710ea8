"""innodb_ahead_flushing_device = UTIL finds the disk of the data directory, or logs that there is none."""

import os
import threading
import time
import unittest
from pathlib import Path

from spillway.common import Skip
from spillway.filesystem import mounted
from spillway.resources import temporary_folder

from .scratch import FORK, Scratch

OPTIONS = (
    "--innodb-ahead-flushing=ON",
    "--innodb-ahead-flushing-device=UTIL",
    "--innodb-ahead-flushing-dirty-pct=0.1",
    "--innodb-ahead-flushing-io-pct=1",
    "--innodb-max-dirty-pages-pct-lwm=0",
    "--innodb-adaptive-flushing=OFF",
    "--innodb-idle-flush-pct=0",
    "--skip-log-bin",
)
SECONDS = 60
SESSIONS = 4
NO_DEVICE = "innodb_ahead_flushing_device = UTIL has no effect"
SETUP = """
CREATE DATABASE d;
CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(3000) NOT NULL) CHARSET latin1;
INSERT INTO d.t (a) VALUES (REPEAT('a', 3000)), (REPEAT('b', 3000)), (REPEAT('c', 3000)), (REPEAT('d', 3000));
"""


class AheadFlushDevice(unittest.TestCase):
    def start(self, parent):
        scratch = self.enterContext(Scratch(parent))
        scratch.initialise(FORK)
        scratch.start(FORK, *OPTIONS)
        scratch.sql(SETUP)
        return scratch

    def write_until(self, scratch, counter):
        """Sessions insert, update and delete until a status variable is above 0, and then for 2 s more."""
        deadline = time.monotonic() + SECONDS
        is_done = threading.Event()
        errors = []

        def write(number):
            while not is_done.wait(0.05):
                for statement in ("INSERT INTO d.t (a) SELECT a FROM d.t LIMIT 200",
                                  f"UPDATE d.t SET a = REPEAT('{number}', 3000 * RAND()) WHERE RAND() < 0.1 LIMIT 50",
                                  "DELETE FROM d.t WHERE id > 1000 AND RAND() < 0.1 LIMIT 100"):  # fmt: skip
                    result = scratch.client(statement)
                    # The sessions lock rows at random, so a deadlock can end a statement.
                    if result.returncode and "ERROR 1213 " not in result.stderr:
                        errors.append(result.stderr)
                        return

        writers = [threading.Thread(target=write, args=(number,)) for number in range(SESSIONS)]
        for writer in writers:
            writer.start()
        try:
            while scratch.counter(counter) == 0:
                self.assertLess(time.monotonic(), deadline, f"{counter} is 0 after {SECONDS} s of writing")
                time.sleep(0.2)
            time.sleep(2)
        finally:
            is_done.set()
            for writer in writers:
                writer.join()
        self.assertEqual(errors, [])
        self.assertEqual(scratch.sql("CHECK TABLE d.t").split("\t")[-1], "OK")

    def check_disk(self, parent):
        scratch = self.start(parent)
        self.write_until(scratch, "Innodb_ahead_flush_rounds_util")
        self.assertNotIn(NO_DEVICE, scratch.log.read_text())
        self.assertEqual(scratch.end(), 0)

    def test_the_disk_is_found(self):
        if os.major(os.stat("/var/tmp").st_dev) == 0:
            raise Skip("/var/tmp is on no block device")
        self.check_disk("/var/tmp")

    def test_the_disk_is_found_through_a_loop_device(self):
        if os.major(os.stat("/var/tmp").st_dev) == 0:
            raise Skip("/var/tmp is on no block device")
        folder = self.enterContext(temporary_folder("/var/tmp"))
        self.check_disk(self.enterContext(mounted("ext4", "1G", folder)))

    def test_without_a_disk_it_says_so_and_flushes_all_the_same(self):
        if not Path("/dev/shm").is_dir() or os.major(os.stat("/dev/shm").st_dev) != 0:
            raise Skip("/dev/shm is not in memory")
        scratch = self.start("/dev/shm")
        self.write_until(scratch, "Innodb_ahead_flush_rounds_dirty")
        self.assertEqual(scratch.log.read_text().count(NO_DEVICE), 1)
        scratch.sql("SET GLOBAL innodb_ahead_flushing_device = OFF; DO SLEEP(2)")
        scratch.sql("SET GLOBAL innodb_ahead_flushing_device = UTIL; DO SLEEP(2)")
        self.assertEqual(scratch.log.read_text().count(NO_DEVICE), 2)
        self.assertEqual(scratch.end(), 0)
