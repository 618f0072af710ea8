"""With ahead flushing, redo log files are initialised ahead of the redo: its syncs do not wait for the file system's
journal. What is written beside them is nothing that a recovery would miss."""

import os
import signal
import tempfile
import unittest
from pathlib import Path

from spillway import filesystem
from spillway.common import Skip

from .scratch import FORK, Scratch

OPTIONS = ("--skip-log-bin", "--innodb-redo-log-capacity=64M", "--innodb-log-writer-threads=OFF")
AHEAD = "--innodb-ahead-flushing=ON"
SETUP = """
CREATE DATABASE d;
CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(7000) NOT NULL) CHARSET latin1 AUTOEXTEND_SIZE = 16M;
DELIMITER |
CREATE PROCEDURE d.fill(n INT, size INT) BEGIN
  WHILE n > 0 DO INSERT INTO d.t (a) VALUES (REPEAT('a', size)); SET n = n - 1; END WHILE;
END|
"""
COMMITS = 500


class RedoAhead(unittest.TestCase):
    def setUp(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(dir="/var/tmp")))
        try:
            self.mount = self.enterContext(filesystem.mounted("ext4", "1G", folder))
        except Skip as skip:
            self.skipTest(str(skip))
        self.scratch = self.enterContext(Scratch(self.mount))
        self.scratch.initialise(FORK)

    def journal_commits(self):
        """Commits of the file system's journal since it was mounted."""
        number = self.mount.stat().st_dev
        device = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve().name
        info = next(Path("/proc/fs/jbd2").glob(f"{device}-*")) / "info"
        return int(info.read_text().split()[0])

    def journal_commits_of_commits(self, *options):
        """Of COMMITS transactions, each of which is synced."""
        self.scratch.start(FORK, *OPTIONS, *options)
        self.scratch.sql("DROP DATABASE IF EXISTS d;" + SETUP)
        before = self.journal_commits()
        # More than InnoDB's write-ahead of 8 KiB, with the redo of the undo log.
        self.scratch.sql(f"CALL d.fill({COMMITS}, 7000)")
        found = self.journal_commits() - before
        # Redo that has been written ahead of must be found.
        self.scratch.end(signal.SIGKILL)
        self.scratch.start(FORK, *OPTIONS, *options)
        self.assertEqual(self.scratch.sql("SELECT COUNT(*) FROM d.t"), str(COMMITS))
        self.assertEqual(self.scratch.end(), 0)
        return found

    def test_syncs_do_not_wait_for_the_journal(self):
        """Without ahead flushing each commit waits for it: off means stock."""
        self.assertGreater(self.journal_commits_of_commits(), 0.8 * COMMITS)
        for method in ("O_DIRECT", "ALL_O_DIRECT"):
            with self.subTest(method):
                commits = self.journal_commits_of_commits(AHEAD, f"--innodb-flush-method={method}")
                self.assertLess(commits, 0.1 * COMMITS)

    def test_files_that_have_been_written_over(self):
        """The redo goes through all files twice, in small and in large writes, and is recovered."""
        self.scratch.start(FORK, *OPTIONS, AHEAD, "--innodb-redo-log-capacity=8M")
        self.scratch.sql(SETUP)
        n_rows = 0
        for size in (500, 3000, 50):
            self.scratch.sql(f"CALL d.fill({COMMITS}, {size})")
            self.scratch.sql("INSERT INTO d.t (a) SELECT a FROM d.t")
            n_rows = 2 * (n_rows + COMMITS)
        self.scratch.sql("SET GLOBAL innodb_redo_log_capacity = 16777216")
        for size in (3000, 500):
            self.scratch.sql(f"CALL d.fill({COMMITS}, {size})")
            n_rows += COMMITS
        self.scratch.sql("SET GLOBAL innodb_redo_log_capacity = 8388608")
        self.scratch.sql("INSERT INTO d.t (a) SELECT a FROM d.t")
        n_rows *= 2
        self.scratch.end(signal.SIGKILL)
        self.scratch.start(FORK, *OPTIONS)
        self.assertEqual(self.scratch.sql("SELECT COUNT(*) FROM d.t"), str(n_rows))
        self.assertEqual(self.scratch.sql("CHECK TABLE d.t").split("\t")[-1], "OK")
        self.assertEqual(self.scratch.end(), 0)
