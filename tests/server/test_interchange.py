"""A data directory moves from stock to the fork and back, after shutdowns and crashes, and loses no data."""

import signal
import subprocess
import unittest

from .scratch import FORK, STOCK, Scratch

INNOCHECKSUM = FORK.parent / "innochecksum"

FILL = """
CREATE DATABASE IF NOT EXISTS d;
CREATE TABLE IF NOT EXISTS d.t (id INT AUTO_INCREMENT PRIMARY KEY, server VARCHAR(20), a CHAR(200), KEY (server));
INSERT INTO d.t (server, a) VALUES ('{0}', 'a'), ('{0}', 'b'), ('{0}', 'c'), ('{0}', 'd');
INSERT INTO d.t (server, a) SELECT '{0}', x.a FROM d.t x, d.t y LIMIT 5000;
"""
ON = ("--innodb-aio-pending-ios-per-thread=1024", "--innodb-read-io-threads=2", "--innodb-write-io-threads=2",
      "--innodb-extend-ahead-pct=20")  # fmt: skip


class Interchange(unittest.TestCase):
    def check(self, scratch, rows):
        self.assertIn("OK", scratch.sql("CHECK TABLE d.t EXTENDED").split())
        self.assertEqual(int(scratch.sql("SELECT COUNT(*) FROM d.t")), rows)

    def test_both_directions(self):
        with Scratch() as scratch:
            scratch.initialise(STOCK)
            rows = 0
            for step, (server, options, end) in enumerate([
                (STOCK, (), signal.SIGTERM),
                (FORK, ON, signal.SIGTERM),
                (STOCK, (), signal.SIGKILL),
                (FORK, ON, signal.SIGKILL),
                (STOCK, (), signal.SIGTERM),
            ]):  # fmt: skip
                with self.subTest(step=step, server=server.parts[-4], end=end):
                    scratch.start(server, *options)
                    is_fork = scratch.sql("SHOW VARIABLES LIKE 'innodb_aio_pending_ios_per_thread'") != ""
                    self.assertEqual(is_fork, server == FORK)
                    # The data dictionary has the fork's own table only while the fork runs.
                    tables = scratch.sql("SELECT table_name FROM information_schema.tables WHERE table_name = "
                                         "'INNODB_ATOMIC_WRITE_FILES'")  # fmt: skip
                    self.assertEqual(tables, "INNODB_ATOMIC_WRITE_FILES" if is_fork else "")
                    if rows:
                        self.check(scratch, rows)
                    scratch.sql(FILL.format(f"step {step}"))
                    rows = int(scratch.sql("SELECT COUNT(*) FROM d.t"))
                    if is_fork:
                        scratch.sql(f"ALTER TABLESPACE `d/t` SET EXTENT_SIZE = {16 * step + 16}M")
                    status = scratch.end(end)
                    self.assertEqual(status, 0 if end == signal.SIGTERM else -signal.SIGKILL)
                    if status == 0:
                        subprocess.run([INNOCHECKSUM, scratch.data / "d/t.ibd"], check=True)
            self.assertNotIn("[ERROR]", scratch.log.read_text())
