"""With ahead flushing, groups in group commit of the binary log wait for more sessions on a device that is limited to a
number of I/Os in an interval, and is fast in between."""

import unittest

from spillway.block_throttle import Limits, throttled
from spillway.common import Skip

from .scratch import FORK, Scratch, wait_until

CONNECTIONS = 16
LOAD_SECONDS = 120
LIMITS = Limits(write_iops=600, write_bytes_per_s=64 << 20)
OPTIONS = ("--log-bin=binlog", "--sync-binlog=1", "--innodb-redo-log-capacity=256M", "--innodb-buffer-pool-size=256M")
SETUP = """
CREATE DATABASE d;
CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL);
DELIMITER |
CREATE PROCEDURE d.fill() BEGIN
  WHILE IS_USED_LOCK('go') IS NOT NULL DO INSERT INTO d.t (a) VALUES (1); END WHILE;
END|
"""
COMMITS = 1500


class CommitGroups(unittest.TestCase):
    def commits_of_a_group(self, *options):
        """Commits for each sync of the binary log, on a throttled device."""
        scratch = self.enterContext(Scratch("/var/tmp"))
        scratch.initialise(FORK)
        scratch.start(FORK, *OPTIONS, *options)
        scratch.sql(SETUP)

        def commits():
            return int(scratch.sql("SELECT COUNT(*) FROM d.t"))

        def wait_for_commits():
            n = commits() + COMMITS
            wait_until(lambda: commits() > n, "too few commits", seconds=LOAD_SECONDS)

        with throttled(scratch.process.pid, scratch.path, LIMITS), scratch.load(CONNECTIONS, LOAD_SECONDS):
            wait_for_commits()
            n_commits, n_syncs = commits(), scratch.counter("Innodb_stall_binlog_sync_count")
            wait_for_commits()
            n_syncs = scratch.counter("Innodb_stall_binlog_sync_count") - n_syncs
            n_commits = commits() - n_commits
        self.assertEqual(scratch.end(), 0)
        return n_commits / n_syncs

    def test_groups_are_larger(self):
        try:
            without = self.commits_of_a_group()
            with_groups = self.commits_of_a_group("--innodb-ahead-flushing=ON")
        except Skip as skip:
            self.skipTest(str(skip))
        self.assertGreater(with_groups, 1.3 * without)
