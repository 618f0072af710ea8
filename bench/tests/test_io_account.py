"""Whose the writes to a disk are: owners, extents, the tracer's lines, sums."""

import os
import tempfile
import unittest

from bench.runner import io_account
from bench.runner.io_account import Map, account, extents_of, owner_of, request_of

LINE = "      connection-17899   [001] ..s.. {}: block_rq_issue: 7,1 {} 16384 () {} + {} be,0,4 [connection]"


class Owners(unittest.TestCase):
    def test_each_has_a_name(self):
        self.assertEqual(set(io_account.NAMES), {*io_account.OWNERS, io_account.FILE_SYSTEM})

    def test_files_of_mysql_and_mariadb(self):
        for path, owner in {
            "/m/data/d/t.ibd": "pages",
            "/m/data/ibdata1": "pages",
            "/m/data/undo_001": "pages",
            "/m/data/undo001": "pages",
            "/m/data/x.ibu": "pages",
            "/m/data/#ib_16384_0.dblwr": "doublewrite",
            "/m/data/#innodb_redo/#ib_redo12": "redo",
            "/m/data/ib_logfile0": "redo",
            "/m/data/binlog.000003": "binary_log",
            "/m/data/mysql-bin.000003": "binary_log",
            "/m/data/binlog.index": "other_files",
            "/m/data/#innodb_temp/temp_1.ibt": "temporary",
            "/m/data/ibtmp1": "temporary",
            "/m/data/ib_buffer_pool": "other_files",
        }.items():
            self.assertEqual(owner_of(path), owner, path)

    def test_block_belongs_to_the_file_that_has_it(self):
        found = Map(0, [(100, 200, "redo"), (0, 50, "pages")])
        self.assertEqual([found.owner_at(sector) for sector in (0, 49, 50, 99, 100, 199, 200)],
                         ["pages", "pages", None, None, "redo", "redo", None])  # fmt: skip

    def test_extents_of_a_file_have_its_size(self):
        with tempfile.NamedTemporaryFile(dir=os.path.dirname(__file__)) as file:
            file.write(b"x" * 65536)
            file.flush()
            os.fsync(file.fileno())
            try:
                extents = list(extents_of(file.name))
            except OSError as error:
                self.skipTest(f"no FIEMAP here: {error.strerror}")
        self.assertEqual(sum(end - begin for begin, end in extents) * io_account.SECTOR_BYTES, 65536)


class Requests(unittest.TestCase):
    def test_writes_and_flushes_count(self):
        self.assertEqual(request_of(LINE.format("12.5", "WS", 266240, 32)), (12.5, 266240, 16384))
        self.assertEqual(request_of(LINE.format("12.5", "WSM", 8, 8)), (12.5, 8, 4096))
        self.assertEqual(request_of(LINE.format("12.5", "FF", 0, 0)), (12.5, None, 0))
        for flags in ("RM", "RAM", "DS"):
            self.assertIsNone(request_of(LINE.format("12.5", flags, 8, 8)), flags)
        self.assertIsNone(request_of("CPU:0 [LOST 12 EVENTS]"))

    def test_only_the_window_counts(self):
        found, flushes = account([(9.9, 0, 512), (10, 0, 1024), (19.9, None, 0), (20, 0, 512), (20, None, 0)],
                                 [Map(0, [(0, 8, "redo")])], 10, 20)  # fmt: skip
        self.assertEqual(found["redo"], {"writes": 1, "bytes": 1024})
        self.assertEqual(sum(owner["writes"] for owner in found.values()), 1)
        self.assertEqual(flushes, 1)

    def test_what_no_file_has_is_the_file_systems(self):
        found, _ = account([(1, 9, 4096)], [Map(0, [(0, 8, "redo")])], 0, 10)
        self.assertEqual(found["file_system"], {"writes": 1, "bytes": 4096})

    def test_blocks_that_change_hands(self):
        """A file that is new at 2 was written at 1.5; one that was removed at 2 was written then, too."""
        maps = [Map(1, [(0, 8, "redo")]), Map(2, [(8, 16, "binary_log")])]
        found, _ = account([(1.5, 8, 512), (1.5, 0, 512), (3, 8, 512)], maps, 0, 10)
        self.assertEqual(found["binary_log"]["writes"], 2)
        self.assertEqual(found["redo"]["writes"], 1)
        self.assertEqual(found["file_system"]["writes"], 0)
