"""While the write throttle delays sessions, commits wait for each other and share syncs of the redo log and of the binary
log. No commit waits while it delays none."""

import unittest

from .scratch import FORK, Scratch, wait_until

CONNECTIONS = 16
LOAD_SECONDS = 120
# 100 pages a second are flushed, whatever the machine carries.
THROTTLED = (
    "--innodb-ahead-flushing=ON",
    "--innodb-ahead-flushing-device=OFF",
    "--innodb-io-capacity=100",
    "--innodb-io-capacity-max=100",
    "--innodb-redo-log-capacity=32M",
    "--innodb-buffer-pool-size=512M",
)
# Changes of random rows, so that few pages have the redo of many transactions.
SETUP = """
CREATE DATABASE d;
CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL, b CHAR(200) NOT NULL DEFAULT '', KEY (a));
INSERT INTO d.t (a) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i FROM n;
INSERT INTO d.t (a) SELECT x.a FROM d.t AS x, d.t AS y WHERE y.id <= 99;
DELIMITER |
CREATE PROCEDURE d.fill() BEGIN
  WHILE IS_USED_LOCK('go') IS NOT NULL DO
    UPDATE d.t SET a = a + 1 WHERE id = 1 + FLOOR(RAND() * 100000);
  END WHILE;
END|
"""
COMMITS = 3000


class CommitGroups(unittest.TestCase):
    def setUp(self):
        self.scratch = self.enterContext(Scratch("/var/tmp"))
        self.scratch.initialise(FORK)

    def syncs_of_commits(self, *options):
        """Syncs of the redo log for each commit of the load, while its sessions are delayed."""
        self.scratch.start(FORK, *THROTTLED, *options)
        self.scratch.sql(SETUP)
        with self.scratch.load(CONNECTIONS, LOAD_SECONDS):
            # The interval of groups doubles each second until then.
            delayed = self.scratch.counter("Innodb_ahead_flush_delays")
            wait_until(
                lambda: self.scratch.counter("Innodb_ahead_flush_delays") > delayed + 20 * CONNECTIONS,
                "no delays", seconds=LOAD_SECONDS)  # fmt: skip
            counters = "Handler_commit", "Innodb_os_log_fsyncs"
            before = [self.scratch.counter(name) for name in counters]
            wait_until(
                lambda: self.scratch.counter("Handler_commit") > before[0] + COMMITS, "commits", seconds=LOAD_SECONDS)
            commits, syncs = (self.scratch.counter(name) - value for name, value in zip(counters, before))
        self.assertEqual(self.scratch.end(), 0)
        return syncs / commits

    def test_commits_share_syncs_of_the_redo_log(self):
        print(self.syncs_of_commits("--skip-log-bin"))

    def test_commits_share_syncs_of_the_binary_log(self):
        print(self.syncs_of_commits("--log-bin=binlog", "--sync-binlog=1"))
