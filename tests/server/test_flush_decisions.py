"""With the fork's variables at their defaults, the page cleaners flush what adaptive flushing recommends, every second.
The test runs on stock, which shows that recommendation() is upstream's, and on the fork. test_text compares the
code."""

import threading
import time
import unittest
from itertools import pairwise

from .scratch import BUILD, FORK, STOCK, Scratch

IO_CAPACITY = 2000
IO_CAPACITY_MAX = 6000
OPTIONS = (
    "--innodb-monitor-enable=buffer_flush_%",
    f"--innodb-io-capacity={IO_CAPACITY}",
    f"--innodb-io-capacity-max={IO_CAPACITY_MAX}",
    "--innodb-buffer-pool-size=256M",
    "--innodb-flush-method=fsync",
    "--innodb-flushing-avg-loops=1",
    "--innodb-max-dirty-pages-pct-lwm=1",
    "--innodb-max-dirty-pages-pct=10",
    "--skip-log-bin",
)
SETUP = """
CREATE DATABASE d;
CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(6000) NOT NULL) CHARSET latin1;
INSERT INTO d.t (a) VALUES (REPEAT('a', 6000)), (REPEAT('b', 6000)), (REPEAT('c', 6000)), (REPEAT('d', 6000));
INSERT INTO d.t (a) SELECT x.a FROM d.t x, d.t y, d.t z, d.t v, d.t w;
"""
SAMPLE = """
SELECT name, count FROM information_schema.innodb_metrics WHERE name IN ('buffer_flush_n_to_flush_requested',
  'buffer_flush_n_to_flush_by_age', 'buffer_flush_pct_for_dirty', 'buffer_flush_pct_for_lsn',
  'buffer_flush_avg_page_rate', 'buffer_flush_adaptive_total_pages', 'buffer_flush_adaptive',
  'buffer_flush_sync_total_pages')
"""
IDLE_PCT = 1
IDLE_PASSES = 3
IDLE = """
SELECT name, count FROM information_schema.innodb_metrics WHERE name IN ('buffer_flush_background',
  'buffer_flush_background_total_pages')
"""
DECISIONS = 12
SECONDS = 120


def recommendation(decision):
    """The pages to flush: the mean of a percentage of innodb_io_capacity, the average page rate, and the pages that the
    redo generation rate requires."""
    by_pct = IO_CAPACITY * max(decision["pct_for_dirty"], decision["pct_for_lsn"]) // 100
    by_age = min(decision["n_to_flush_by_age"], 2 * IO_CAPACITY_MAX)
    return min((by_pct + decision["avg_page_rate"] + by_age) // 3, IO_CAPACITY_MAX)


class FlushDecisions(unittest.TestCase):
    def sample(self, scratch):
        """The metrics, all of the same decision: decisions are a second apart."""
        while True:
            first = scratch.sql(SAMPLE)
            if scratch.sql(SAMPLE) == first:
                lines = (line.split("\t") for line in first.splitlines())
                return {name.removeprefix("buffer_flush_"): int(count) for name, count in lines}

    def recorded(self, mysqld):
        """Decisions of a server under load, each with the number of pages that the next pass flushed."""
        scratch = self.enterContext(Scratch("/dev/shm"))
        scratch.initialise(mysqld)
        scratch.start(mysqld, *OPTIONS)
        scratch.sql(SETUP)
        is_done = threading.Event()

        def write():
            number = 0
            while not is_done.wait(0.1):
                number += 1
                scratch.sql(f"UPDATE d.t SET a = REPEAT(CHAR(97 + {number} % 26), 6000) WHERE id % 8 = {number} % 8")

        writer = threading.Thread(target=write)
        writer.start()
        decisions = []
        try:
            last = self.sample(scratch)
            begin = last_time = time.monotonic()
            while len(decisions) < DECISIONS:
                now = self.sample(scratch)
                now_time = time.monotonic()
                self.assertLess(now_time, begin + SECONDS, f"{len(decisions)} decisions in {SECONDS} s")
                # Two samples within half a second: the pages are of this decision's pass, not of the next.
                if now["adaptive"] == last["adaptive"] + 1 and now_time - last_time < 0.5:
                    flushed = now["adaptive_total_pages"] - last["adaptive_total_pages"]
                    decisions.append(now | {"flushed": flushed})
                last, last_time = now, now_time
                time.sleep(0.05)
        finally:
            is_done.set()
            writer.join()
        self.check_idle(scratch)
        self.assertEqual(scratch.end(), 0)
        return decisions

    def check_idle(self, scratch):
        """Without a load each pass flushes innodb_idle_flush_pct percent of innodb_io_capacity."""
        scratch.sql(f"SET GLOBAL innodb_adaptive_flushing = OFF; SET GLOBAL innodb_max_dirty_pages_pct = 99;"
                    f"SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0; SET GLOBAL innodb_idle_flush_pct = {IDLE_PCT};"
                    "UPDATE d.t SET a = REPEAT('z', 6000)")  # fmt: skip

        def idle():
            counts = dict(line.split("\t") for line in scratch.sql(IDLE).splitlines())
            return int(counts["buffer_flush_background"]), int(counts["buffer_flush_background_total_pages"])

        deadline = time.monotonic() + SECONDS
        before = idle()[0]
        first = None
        while True:
            passes, pages = idle()
            # The first pass that ends now may have begun before the settings: count from its end.
            if first is None and passes > before:
                first = passes, pages
            if first and passes >= first[0] + IDLE_PASSES:
                break
            self.assertLess(time.monotonic(), deadline, f"{passes} idle passes in {SECONDS} s")
            time.sleep(0.3)
        self.assertEqual(pages - first[1], (passes - first[0]) * IO_CAPACITY * IDLE_PCT // 100)

    def check(self, mysqld):
        decisions = self.recorded(mysqld)
        for decision in decisions:
            requested = decision["n_to_flush_requested"]
            self.assertEqual(requested, recommendation(decision), decision)
            # Upstream requests one page more per buffer pool instance than by_age, and scales by requested / by_age.
            by_age = decision["n_to_flush_by_age"]
            self.assertGreaterEqual(decision["flushed"], requested, decision)
            self.assertLessEqual(decision["flushed"], (by_age + 1) * requested // by_age + 1, decision)
            self.assertEqual(decision["sync_total_pages"], 0, decision)
        self.assertGreater(len({decision["n_to_flush_requested"] for decision in decisions}), DECISIONS // 2)
        # Adaptive flushing counts the pages that were flushed: its average rate is the mean of the last one and of the
        # pages per second.
        pairs = [(last, now) for last, now in pairwise(decisions) if now["adaptive"] == last["adaptive"] + 1]
        self.assertGreater(len(pairs), DECISIONS // 2, decisions)
        for last, now in pairs:
            average, before, flushed = now["avg_page_rate"], last["avg_page_rate"], last["flushed"]
            self.assertLessEqual(average, (flushed + before) // 2, (last, now))
            self.assertGreaterEqual(average, (flushed / 1.5 + before) // 2, (last, now))

    def test_text(self):
        """No patch touches the namespace with the code of adaptive flushing, from its inputs to its recommendation."""
        texts = []
        for tree in "stock", "fork":
            source = (BUILD / tree / "source/storage/innobase/buf/buf0flu.cc").read_text()
            begin = source.index("namespace Adaptive_flush {")
            texts.append(source[begin : source.index("}  // namespace Adaptive_flush", begin)])
        self.assertIn("page_recommendation", texts[0])
        self.assertEqual(*texts)

    def test_stock(self):
        self.check(STOCK)

    def test_fork(self):
        self.check(FORK)
