"""A slow device: the stall counters count the waits that it causes, no others, and account for what clients wait."""

import contextlib
import dataclasses
import functools
import re
import time
import unittest

from spillway.block_throttle import Limits, throttled
from spillway.common import Skip

from . import scratch
from .scratch import FORK, Scratch

CONNECTIONS = 8
LOAD_SECONDS = 120
wait_until = functools.partial(scratch.wait_until, seconds=LOAD_SECONDS)
# So slow that a redo log of 8M is full at once on any machine.
LIMITS = Limits(write_iops=200, write_bytes_per_s=4 << 20)
OPTIONS = (
    "--innodb-redo-log-capacity=8M",
    "--innodb-buffer-pool-size=1G",
    "--innodb-buffer-pool-instances=2",
    "--innodb-page-cleaners=2",
    "--innodb-log-buffer-size=64M",
    "--innodb-flush-log-at-trx-commit=0",
    "--skip-log-bin",
    "--innodb-stall-log-threshold-ms=100",
    "--innodb-monitor-enable=dblwr_flush_wait_events",
)
ACCOUNTED_SECONDS = 10
ACCOUNTED_MIN = 0.9
CAPACITY = "Innodb_ahead_flush_measured_capacity"
# Upstream's metric counts waits until a doublewrite batch is written to the data files. Until these are synced, the
# next batch waits for the segment.
BATCH_WAITS = "SELECT count FROM information_schema.innodb_metrics WHERE name = 'dblwr_flush_wait_events'"
SETUP = """
CREATE DATABASE d;
CREATE TABLE d.t (id BIGINT PRIMARY KEY, a VARCHAR(4000) NOT NULL) CHARSET latin1 AUTOEXTEND_SIZE = 64M;
CREATE TABLE d.clients (time_us BIGINT NOT NULL) ENGINE = MEMORY;
DELIMITER |
CREATE PROCEDURE d.fill() BEGIN
  DECLARE start DATETIME(6) DEFAULT SYSDATE(6);
  WHILE IS_USED_LOCK('go') IS NOT NULL DO
    INSERT INTO d.t VALUES (FLOOR(RAND() * 1e9) * 1e9 + FLOOR(RAND() * 1e9), REPEAT('a', 3000));
  END WHILE;
  INSERT INTO d.clients VALUES (TIMESTAMPDIFF(MICROSECOND, start, SYSDATE(6)));
END|
"""


class SlowDevice(unittest.TestCase):
    def setUp(self):
        self.scratch = self.enterContext(Scratch("/var/tmp"))
        self.scratch.initialise(FORK)

    def stalls(self):
        """Some of the stall counters: {(kind, figure): value}."""
        found = {}
        for line in self.scratch.sql("SHOW GLOBAL STATUS LIKE 'Innodb\\_stall\\_%'").splitlines():
            name, value = line.split("\t")
            for figure in ("count", "waiting", "over_10ms", "over_100ms"):
                if name.endswith(f"_{figure}"):
                    found[name.removeprefix("Innodb_stall_").removesuffix(f"_{figure}"), figure] = int(value)
        return found

    def waiting(self):
        """Threads that wait now, of all kinds of stalls."""
        return sum(value for (_, figure), value in self.stalls().items() if figure == "waiting")

    def segment_waits(self):
        """Waits for a segment of the doublewrite buffer: all its waits less those for a batch, which are read later."""
        return self.stalls()["doublewrite", "count"] - int(self.scratch.sql(BATCH_WAITS))

    def segment_waits_from_now(self):
        """A condition: there have been such waits. One that begins between the two reads can count once too often."""
        before = self.segment_waits()
        return lambda: self.segment_waits() > before + 1

    @contextlib.contextmanager
    def load(self):
        """CONNECTIONS clients insert rows as fast as they can."""
        with self.scratch.load(CONNECTIONS, LOAD_SECONDS) as clients:
            yield clients
        for client in clients:
            self.assertEqual(client.returncode, 0)

    def sessions_time(self):
        """Seconds that sessions have waited, by the kind of stall."""
        rows = self.scratch.sql("SELECT kind, sessions_time_us FROM information_schema.innodb_stalls").splitlines()
        return {kind: int(us) / 1e6 for kind, us in (row.split("\t") for row in rows)}

    def assert_waits_account_for_what_clients_saw(self, kind, *options, n_rows=0):
        """The first load makes sessions wait for kind. The second one is measured: they wait from its begin on."""
        self.scratch.start(FORK, *OPTIONS, *options)
        # Files that grow by 64 MB would make all sessions wait.
        self.scratch.sql(SETUP.replace("AUTOEXTEND_SIZE = 64M", ""))
        with self.load():
            wait_until(lambda: int(self.scratch.sql("SELECT COUNT(*) FROM d.t")) >= n_rows, "too few rows")
        try:
            with throttled(self.scratch.process.pid, self.scratch.path, dataclasses.replace(LIMITS, read_iops=100)):
                with self.load():
                    wait_until(lambda: self.sessions_time()[kind] > 5, f"no waits for {kind}")
                # A session can wait as it ends, when its client has.
                wait_until(lambda: self.scratch.counter("Threads_connected") == 1, "sessions do not end")
                self.scratch.sql("DELETE FROM d.clients")
                before = self.sessions_time()
                with self.load() as clients:
                    time.sleep(ACCOUNTED_SECONDS)
                    clients[0].stdin.write("DO RELEASE_LOCK('go');\n")
                    clients[0].stdin.flush()
                    n_done = "SELECT COUNT(*) FROM d.clients"
                    wait_until(lambda: self.scratch.sql(n_done) == str(CONNECTIONS), "clients do not end")
                    after = self.sessions_time()
        except Skip as skip:
            self.skipTest(str(skip))
        waits = {kind: after[kind] - before[kind] for kind in after}
        clients_saw = int(self.scratch.sql("SELECT SUM(time_us) FROM d.clients")) / 1e6
        self.assertGreaterEqual(sum(waits.values()), ACCOUNTED_MIN * clients_saw, waits)
        self.assertLessEqual(sum(waits.values()), clients_saw, waits)
        self.assertGreater(waits[kind], 1, waits)
        self.assertEqual(self.scratch.end(), 0)

    def test_account_of_commits(self):
        self.assert_waits_account_for_what_clients_saw(
            "commit", "--innodb-redo-log-capacity=1G", "--innodb-flush-log-at-trx-commit=1")  # fmt: skip

    def test_account_of_group_commit(self):
        # Upstream accepts --log-bin after --skip-log-bin.
        self.assert_waits_account_for_what_clients_saw(
            "binlog_group", "--innodb-redo-log-capacity=1G", "--innodb-flush-log-at-trx-commit=1", "--log-bin=binlog",
            "--sync-binlog=1")  # fmt: skip

    def test_account_of_redo_space(self):
        self.assert_waits_account_for_what_clients_saw("redo_space")

    def test_account_of_the_write_throttle(self):
        self.assert_waits_account_for_what_clients_saw(
            "write_throttle", "--innodb-redo-log-capacity=64M", "--innodb-ahead-flushing=ON",
            "--innodb-ahead-flushing-device=OFF", "--innodb-io-capacity=50", "--innodb-io-capacity-max=50")  # fmt: skip

    def test_account_of_reads_behind_writes(self):
        self.assert_waits_account_for_what_clients_saw(
            "page_read", "--innodb-redo-log-capacity=1G", "--innodb-buffer-pool-size=32M",
            "--innodb-buffer-pool-instances=1", n_rows=50000)  # fmt: skip

    def test_who_waits(self):
        self.scratch.start(FORK, *OPTIONS)
        self.scratch.sql(SETUP)
        before = self.stalls()
        try:
            with throttled(self.scratch.process.pid, self.scratch.path, LIMITS), self.load():
                for figure in (("redo_space", "over_100ms"), ("doublewrite", "over_10ms")):
                    wait_until(lambda figure=figure: self.stalls()[figure] > before[figure], figure)
                for mode in ("ON", "DETECT_ONLY"):
                    self.scratch.sql(f"SET GLOBAL innodb_doublewrite = {mode}")
                    wait_until(self.segment_waits_from_now(), f"segments, innodb_doublewrite = {mode}")
        except Skip as skip:
            self.skipTest(str(skip))
        after = self.stalls()
        for kind in ("log_buffer", "free_page", "aio_read"):
            self.assertEqual(after[kind, "count"], before[kind, "count"], kind)
        wait_until(lambda: self.waiting() == 0, "a stall goes on")
        # The message comes within 10 s if there was one before.
        message = re.compile(r"\[Warning\].* Waits for space in the redo log, longer than \S+: \d+ since the last ")
        wait_until(lambda: message.search(self.scratch.log.read_text()), "no message in the error log")
        self.assertEqual(self.scratch.sql("CHECK TABLE d.t").split("\t")[-1], "OK")
        self.assertEqual(self.scratch.end(), 0)

    def test_an_episode_of_sync_flushing_begins_with_its_first_pass(self):
        self.scratch.start(FORK, *OPTIONS, "--innodb-flush-sync=OFF", "--innodb-adaptive-flushing=OFF",
                           "--innodb-max-dirty-pages-pct-lwm=0")  # fmt: skip
        self.scratch.sql(SETUP)
        try:
            with throttled(self.scratch.process.pid, self.scratch.path, LIMITS), self.load():
                wait_until(lambda: self.stalls()["redo_space", "waiting"] > 0, "redo space has not run out")
                self.assertEqual(self.scratch.counter("Innodb_buffer_pool_flush_sync_batches"), 0)
                self.scratch.sql("SET GLOBAL innodb_flush_sync = ON")
                wait_until(lambda: self.stalls()["sync_flush", "waiting"] > 0, "no episode")
                self.assertEqual(self.scratch.counter("Innodb_buffer_pool_flush_sync_batches"), 0)
        except Skip as skip:
            self.skipTest(str(skip))
        wait_until(lambda: self.waiting() == 0, "the episode goes on")
        self.assertEqual(self.scratch.end(), 0)

    def test_an_idle_server_flushes_up_to_the_device_write_capacity(self):
        options = [option for option in OPTIONS if "redo-log-capacity" not in option]
        self.scratch.start(FORK, *options, "--innodb-redo-log-capacity=256M", "--innodb-ahead-flushing=ON",
                           "--innodb-ahead-flushing-device=LATENCY", "--innodb-ahead-flushing-age-pct=5",
                           "--innodb-adaptive-flushing=OFF", "--innodb-max-dirty-pages-pct-lwm=0")  # fmt: skip
        self.scratch.sql(SETUP)
        try:
            with throttled(self.scratch.process.pid, self.scratch.path, LIMITS):
                with self.load():
                    # About half of the 200 I/Os a second write pages to data files; measurements scatter.
                    wait_until(lambda: 50 <= self.scratch.counter(CAPACITY) <= 300,
                                    "not measured")  # fmt: skip
                    # From now on no rule flushes pages, until 10 s of the device's write capacity are dirty.
                    self.scratch.sql("SET GLOBAL innodb_ahead_flushing_age_pct = 95")
                    capacity = self.scratch.counter(CAPACITY)
                    dirty = "Innodb_buffer_pool_pages_dirty"
                    wait_until(lambda: self.scratch.counter(dirty) > 10 * capacity, "not dirty")
                before = self.scratch.counter("Innodb_buffer_pool_flush_idle_pages")
                wait_until(lambda: self.scratch.counter("Innodb_buffer_pool_flush_idle_pages") > before, "not idle")
                flushed = self.scratch.counter("Innodb_buffer_pool_flush_idle_pages") - before
                self.assertLessEqual(flushed, 2 * max(capacity, self.scratch.counter(CAPACITY)))
            # Without the throttle the server measures a higher capacity.
            capacity = self.scratch.counter(CAPACITY)
            wait_until(lambda: self.scratch.counter(CAPACITY) > 2 * capacity, "not learned")
        except Skip as skip:
            self.skipTest(str(skip))
        self.assertEqual(self.scratch.sql("CHECK TABLE d.t").split("\t")[-1], "OK")
        self.assertEqual(self.scratch.end(), 0)
