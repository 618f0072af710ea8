"""With innodb_ahead_flushing = ON several data files are synced at a time."""

import subprocess
import time
import unittest

from .scratch import FORK, SYNC_HOLD, Scratch, observed, to_preload, wait_until

N_TABLES = 8
N_THREADS = 15
CREATE = "CREATE DATABASE d;" + "".join(
    f"CREATE TABLE d.t{i} (id INT PRIMARY KEY, n INT); INSERT INTO d.t{i} VALUES (1, 0);" for i in range(N_TABLES)
)
UPDATE = "BEGIN;" + "".join(f"UPDATE d.t{i} SET n = n + 1;" for i in range(N_TABLES)) + "COMMIT;"
SUM = "SELECT " + " + ".join(f"(SELECT n FROM d.t{i})" for i in range(N_TABLES))
THREADS = "SELECT COUNT(*) FROM performance_schema.threads WHERE name LIKE '%data_sync_thread'"
ON, OFF = (f"SET GLOBAL innodb_ahead_flushing = {value}" for value in ("ON", "OFF"))
# An UPDATE is flushed within a second, and the batch then has a page of each table, or of some in the second try.
TRIES = 10
TRY_SECONDS = 5


class SyncTogether(unittest.TestCase):
    def setUp(self):
        self.scratch = self.enterContext(Scratch())
        self.hold, self.broken, self.syncs = (self.scratch.path / name for name in ("hold", "fail", "syncs"))
        self.library = to_preload(SYNC_HOLD, self.scratch.path)
        self.scratch.initialise(FORK)
        self.start()
        self.scratch.sql(CREATE)

    def start(self, *options):
        self.scratch.start(FORK, "--innodb-max-dirty-pages-pct=0", "--skip-log-bin", *options,
                           environment=observed(self.library, self.scratch.path, ".ibd"))  # fmt: skip

    def under_way(self):
        """The number of syncs that have begun and not ended."""
        lines = self.syncs.read_text().splitlines()
        begun = sum(line.startswith("begin") for line in lines)
        return begun - (len(lines) - begun)

    def n_threads(self):
        return int(self.scratch.sql(THREADS))

    def is_clean(self):
        return self.scratch.counter("Innodb_buffer_pool_pages_dirty") == 0 and self.under_way() == 0

    def update_until_synced_together(self, tries=TRIES):
        """Hold all syncs and update all tables, until as many syncs are under way as there are tables."""
        for _ in range(tries):
            # A page whose write is not completed yet could not be updated while syncs are held.
            wait_until(self.is_clean)
            self.hold.write_text("0")
            self.scratch.sql(UPDATE)
            end = time.monotonic() + TRY_SECONDS
            while time.monotonic() < end:
                if self.under_way() >= N_TABLES:
                    return
                time.sleep(0.05)
            self.hold.unlink()
        raise AssertionError(f"{N_TABLES} syncs were never under way at a time")

    def test_syncs_at_a_time(self):
        """As many as a batch has files. The server ends while they are held, and the threads with it."""
        self.assertEqual(self.n_threads(), 0)
        self.scratch.sql(ON)
        self.update_until_synced_together()
        self.assertEqual(self.n_threads(), N_THREADS)
        self.scratch.process.terminate()
        # It waits for the threads, and they for their syncs.
        wait_until(lambda: "Received SHUTDOWN" in self.scratch.log.read_text())
        with self.assertRaises(subprocess.TimeoutExpired):
            self.scratch.process.wait(2)
        self.hold.unlink()
        self.assertEqual(self.scratch.process.wait(60), 0)

    def test_off(self):
        """OFF makes no thread, and those that are there do nothing."""
        self.assertEqual(self.n_threads(), 0)
        self.scratch.sql(ON)
        self.assertEqual(self.n_threads(), N_THREADS)
        self.scratch.sql(OFF)
        with self.assertRaisesRegex(AssertionError, "never under way"):
            self.update_until_synced_together(tries=1)

    def test_failed_start(self):
        """A server that cannot write its pid file ends, although the threads are there."""
        self.assertEqual(self.scratch.end(), 0)
        self.scratch.launch(FORK, "--innodb-ahead-flushing=ON", f"--pid-file={self.scratch.path}/none/pid")
        self.assertEqual(self.scratch.process.wait(60), 1)

    def test_sync_fails(self):
        """The server ends, as when it syncs one file at a time, and loses nothing."""
        self.scratch.sql(ON)
        self.update_until_synced_together()
        before = self.scratch.sql(SUM)
        self.broken.touch()
        self.hold.unlink()
        self.assertNotEqual(self.scratch.process.wait(60), 0)
        self.broken.unlink()
        self.start()
        self.assertEqual(self.scratch.sql(SUM), before)
