"""While the write throttle delays sessions, commits wait for each other and share syncs of the redo log and of the binary
log."""

import time
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
    "--innodb-redo-log-capacity=8M",
    "--innodb-buffer-pool-size=512M",
)
# Changes of random rows, so that few pages have the redo of many transactions.
SETUP = """
CREATE DATABASE d;
CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL, b CHAR(200) NOT NULL DEFAULT '', KEY (a));
INSERT INTO d.t (a) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i FROM n;
INSERT INTO d.t (a) SELECT x.a FROM d.t AS x, d.t AS y WHERE y.id <= 39;
DELIMITER |
CREATE PROCEDURE d.fill() BEGIN
  DECLARE row_id INT;
  WHILE IS_USED_LOCK('go') IS NOT NULL DO
    START TRANSACTION;
    SET row_id = 1 + FLOOR(RAND() * 40000);
    UPDATE d.t SET a = a + 1 WHERE id = row_id;
    DO SLEEP(0.04 * RAND());
    UPDATE d.t SET a = a + 1 WHERE id = row_id + 1;
    COMMIT;
  END WHILE;
END|
"""
# Sessions are delayed for some seconds by then.
DELAYS = 2000
MEASURED_SECONDS = 5
# A group each 10 ms, and syncs before pages are written.
SYNCS_PER_S_MAX = 140


class CommitGroups(unittest.TestCase):
    def setUp(self):
        self.scratch = self.enterContext(Scratch("/var/tmp"))
        self.scratch.initialise(FORK)

    def assert_syncs_are_apart(self, *options):
        """The interval of groups doubles each second until it is the longest. A slow machine syncs less often."""
        self.scratch.start(FORK, *THROTTLED, *options)
        self.scratch.sql(SETUP)
        with self.scratch.load(CONNECTIONS, LOAD_SECONDS):
            delayed = self.scratch.counter("Innodb_ahead_flush_delays")
            wait_until(
                lambda: self.scratch.counter("Innodb_ahead_flush_delays") > delayed + DELAYS,
                "no delays", seconds=LOAD_SECONDS)  # fmt: skip
            start = time.monotonic()
            before = self.scratch.counter("Innodb_os_log_fsyncs")
            time.sleep(MEASURED_SECONDS)
            syncs = self.scratch.counter("Innodb_os_log_fsyncs") - before
            passed = time.monotonic() - start
        self.assertEqual(self.scratch.end(), 0)
        self.assertLess(syncs, SYNCS_PER_S_MAX * passed)

    def test_commits_share_syncs_of_the_redo_log(self):
        self.assert_syncs_are_apart("--skip-log-bin")

    def test_commits_share_syncs_of_the_binary_log(self):
        self.assert_syncs_are_apart("--log-bin=binlog", "--sync-binlog=1")
