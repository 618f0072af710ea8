"""Which doublewrite copy recovery restores for a torn page. The tests tear pages and make copies while no server runs,
so that they know the content of each."""

import os
import shutil
import signal
import subprocess
import time
import unittest

from .scratch import FORK, REDO_FAULT, START_SECONDS, STOCK, SYNC_HOLD, Scratch, observed, to_preload, wait_until

# innodb_redo_log_capacity of Scratch.
REDO_BYTES = 64 << 20
# More than an UPDATE of three rows generates, and less than is left of a redo log file.
BEYOND_REDO_BYTES = 64 << 10
SYSTEM_SPACE = 0
# The page of the transaction system in the system tablespace.
SYSTEM_PAGE = 5
# Offset of FIL_PAGE_LSN.
LSN = 16
# The first row page of a file-per-table tablespace, and an unused page.
ROOT_PAGE = 4
UNUSED_PAGE = 6
# Offset of FIL_PAGE_TYPE, FIL_PAGE_ENCRYPTED, offset of FIL_PAGE_SPACE_ID.
TYPE, ENCRYPTED, SPACE_ID = 24, 15, 34
# A redo log file: its header, offset of LOG_HEADER_START_LSN; its blocks, their header, offset of
# LOG_BLOCK_FIRST_REC_GROUP, which is 0 where no group begins.
REDO_HEADER_BYTES, START_LSN = 2048, 8
BLOCK_BYTES, BLOCK_HEADER_BYTES, FIRST_GROUP = 512, 12, 6
# To compare each of them with each other takes longer than START_SECONDS.
MANY_SLOTS = 65_536
# Dirty pages stay dirty.
KEEP_DIRTY = ["--innodb-max-dirty-pages-pct=99", "--innodb-max-dirty-pages-pct-lwm=0", "--innodb-idle-flush-pct=0"]
FILL = """
CREATE DATABASE d;
CREATE TABLE d.t (id INT PRIMARY KEY, a CHAR(100) NOT NULL, b INT NOT NULL);
INSERT INTO d.t VALUES (1, 'old', 0), (2, 'old', 0), (3, 'old', 0);
"""


def crc32c(content):
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def checksum(page):
    """InnoDB's crc32 checksum of a page."""
    return crc32c(page[4:26]) ^ crc32c(page[38:-8])


def with_lsn(page, lsn):
    """An intact page, with this LSN as that of its last change."""
    assert int.from_bytes(page[:4], "big") == checksum(page)
    page = page[:LSN] + lsn.to_bytes(8, "big") + page[LSN + 8 :]
    sum_ = checksum(page).to_bytes(4, "big")
    return sum_ + page[4:-8] + sum_ + (lsn & 0xFFFFFFFF).to_bytes(4, "big")


class Doublewrite(unittest.TestCase):
    page_bytes = 16384

    def setUp(self):
        self.scratch = self.enterContext(Scratch(page_bytes=self.page_bytes))
        self.scratch.initialise(FORK)
        self.system = self.scratch.data / "ibdata1"
        self.table = self.scratch.data / "d/t.ibd"

    def fill_and_restart(self):
        """Start a server on the table, which a clean shutdown has written. From now on dirty pages stay dirty."""
        self.scratch.start(FORK)
        self.scratch.sql(FILL)
        self.assertEqual(self.scratch.end(), 0)
        self.scratch.start(FORK, *KEEP_DIRTY)

    def read_page(self, path, page_no):
        with open(path, "rb") as file:
            file.seek(page_no * self.page_bytes)
            return file.read(self.page_bytes)

    def write_page(self, path, page_no, page):
        with open(path, "r+b") as file:
            file.seek(page_no * self.page_bytes)
            file.write(page)

    def half_of(self, page):
        return page[: self.page_bytes // 2] + bytes(self.page_bytes // 2)

    def tear(self, path, page_no):
        self.write_page(path, page_no, self.half_of(self.read_page(path, page_no)))

    def copy_to_slot(self, slot, page):
        """Write to a slot of a doublewrite file; -1 is the last."""
        path = self.scratch.data / f"#ib_{self.page_bytes}_0.dblwr"
        self.write_page(path, slot % (path.stat().st_size // self.page_bytes), page)

    def does_not_start(self, server):
        """Returns the error log of the failed start."""
        begin = self.scratch.log.stat().st_size
        status = subprocess.run([*self.scratch.options(server), "--skip-stack-trace",
                                 "--log-error-verbosity=3"], stdin=subprocess.DEVNULL,
                                check=False, timeout=START_SECONDS).returncode  # fmt: skip
        self.assertNotEqual(status, 0)
        return self.scratch.log.read_text(errors="replace")[begin:]

    def assert_restored(self, space, page_no):
        self.assertIn(f"Recovered page [page id: space={space}, page number={page_no}] from the doublewrite buffer",
                      self.scratch.log.read_text(errors="replace"))  # fmt: skip

    def test_transaction_system(self):
        """Upstream reads this page before recovery, and ends if it is torn."""
        scratch = self.scratch
        scratch.start(FORK)
        scratch.sql(FILL)
        scratch.end(signal.SIGKILL)
        self.copy_to_slot(-1, self.read_page(self.system, SYSTEM_PAGE))
        self.tear(self.system, SYSTEM_PAGE)
        kept = scratch.path / "kept"
        shutil.copytree(scratch.data, kept)
        self.assertIn("page number=5", self.does_not_start(STOCK))

        shutil.rmtree(scratch.data)
        kept.rename(scratch.data)
        scratch.start(FORK, "--log-error-verbosity=3")
        self.assert_restored(SYSTEM_SPACE, SYSTEM_PAGE)
        self.assertEqual(scratch.sql("CHECK TABLE d.t EXTENDED").split()[-1], "OK")
        self.assertEqual(scratch.sql("SELECT COUNT(*) FROM d.t"), "3")
        self.assertEqual(scratch.end(), 0)

        # After a clean shutdown there is no recovery, and the copy could be older than the page: it is not used.
        self.tear(self.system, SYSTEM_PAGE)
        self.does_not_start(FORK)
        # There is no copy at all.
        for path in scratch.data.glob("*.dblwr"):
            path.unlink()
        self.does_not_start(FORK)

    def test_undo_truncation_log(self):
        """A power cut while an undo truncation creates its log file, before it begins: upstream ends at each start."""
        scratch = self.scratch
        log = scratch.data / "undo_1_trunc.log"
        log.touch()
        self.assertIn("undo_1_trunc.log", self.does_not_start(STOCK))
        log.touch()
        scratch.start(FORK, "--innodb-read-only")
        self.assertTrue(log.exists())
        self.assertEqual(scratch.end(), 0)
        for length in (0, self.page_bytes - 1):
            log.write_bytes(bytes(length))
            scratch.start(FORK)
            self.assertIn(f"'./undo_1_trunc.log' has only {length} bytes", scratch.log.read_text(errors="replace"))
            self.assertFalse(log.exists())
            self.assertEqual(scratch.end(), 0)

        # A complete log, or an empty one and no undo file: the truncation had begun, and recovery makes the tablespace
        # anew.
        for length in (self.page_bytes, 0):
            log.write_bytes(bytes(length))
            (scratch.data / "undo_001").unlink()
            scratch.start(FORK)
            self.assertFalse(log.exists())
            self.assertTrue((scratch.data / "undo_001").exists())
            # The data dictionary has the new tablespace.
            if not (scratch.data / "more.ibu").exists():
                scratch.sql("CREATE UNDO TABLESPACE more ADD DATAFILE 'more.ibu'")
            for statement in ("SET INACTIVE", "SET ACTIVE"):
                scratch.sql(f"ALTER UNDO TABLESPACE innodb_undo_001 {statement}")
            self.assertEqual(scratch.end(), 0)

    def test_first_page(self):
        """Upstream scans the file for its tablespace ID, and takes half a page that looks like the begin of an
        encrypted one for a page of another tablespace. Row data can; a power cut has shown it."""
        scratch = self.scratch
        scratch.start(FORK)
        scratch.sql(FILL)
        space = scratch.space_id("d/t")
        self.assertEqual(scratch.end(), 0)
        scratch.start(FORK)
        scratch.sql("UPDATE d.t SET b = 1")
        scratch.end(signal.SIGKILL)
        self.copy_to_slot(-1, self.read_page(self.table, 0))
        self.tear(self.table, 0)
        torn = scratch.path / "torn"
        shutil.copytree(scratch.data, torn)
        with open(self.table, "r+b") as file:
            file.seek(UNUSED_PAGE * self.page_bytes + self.page_bytes // 2)
            half = bytearray(file.read(64))
            half[TYPE : TYPE + 2] = ENCRYPTED.to_bytes(2, "big")
            half[SPACE_ID : SPACE_ID + 4] = bytes.fromhex("7fffffff")
            file.seek(UNUSED_PAGE * self.page_bytes + self.page_bytes // 2)
            file.write(half)
        kept = scratch.path / "kept"
        shutil.copytree(scratch.data, kept)
        self.assertIn("space=2147483647, page number=0", self.does_not_start(STOCK))

        shutil.rmtree(scratch.data)
        shutil.copytree(kept, scratch.data)
        scratch.start(FORK, "--log-error-verbosity=3")
        self.assertIn(f"It names tablespace {space}, and the doublewrite", scratch.log.read_text(errors="replace"))
        self.assertEqual(scratch.sql("CHECK TABLE d.t EXTENDED").split()[-1], "OK")
        self.assertEqual(scratch.sql("SELECT SUM(b) FROM d.t"), "3")
        self.assertEqual(scratch.end(), 0)

        # The torn page names another tablespace.
        shutil.rmtree(scratch.data)
        kept.rename(scratch.data)
        with open(self.table, "r+b") as file:
            file.seek(SPACE_ID)
            file.write((space + 1).to_bytes(4, "big"))
        self.assertNotIn("It names tablespace", self.does_not_start(FORK))

        # All its pages are torn, and the scan finds nothing.
        shutil.rmtree(scratch.data)
        torn.rename(scratch.data)
        for page_no in range(1, self.table.stat().st_size // self.page_bytes):
            if any(page := self.read_page(self.table, page_no)):
                self.copy_to_slot(page_no, page)
                self.tear(self.table, page_no)
        scratch.start(FORK)
        self.assertEqual(scratch.sql("CHECK TABLE d.t EXTENDED").split()[-1], "OK")
        self.assertEqual(scratch.sql("SELECT SUM(b) FROM d.t"), "3")
        self.assertEqual(scratch.end(), 0)

    def test_first_page_with_a_torn_copy(self):
        """Upstream restores the newest copy of a file's first page without a check, and ends if the copy is torn."""
        scratch = self.scratch
        self.fill_and_restart()
        lsn = scratch.counter("Innodb_redo_log_current_lsn")
        scratch.sql("UPDATE d.t SET b = 1")
        scratch.end(signal.SIGKILL)
        kept = scratch.path / "kept"
        shutil.copytree(scratch.data, kept)

        def prepare(path, *copies):
            """Tear a file's first page; write a torn copy of LSN lsn + 1, and the given copies."""
            shutil.rmtree(scratch.data)
            shutil.copytree(kept, scratch.data)
            old = self.read_page(path, 0)
            self.copy_to_slot(0, self.half_of(with_lsn(old, lsn + 1)))
            for copy in copies:
                self.copy_to_slot(-1, copy(old))
            self.tear(path, 0)

        not_found = "of datafile '{}' could not be found in the doublewrite buffer"
        # No intact copy, or one from before the checkpoint. The system tablespace's page is restored before the
        # checkpoint is known: no older copy is used.
        for path, name, copies in ((self.table, "./d/t.ibd", ()), (self.table, "./d/t.ibd", (lambda old: old,)),
                                   (self.system, "./ibdata1", ()),
                                   (self.system, "./ibdata1", (lambda old: with_lsn(old, lsn),))):  # fmt: skip
            with self.subTest(path=name, copies=len(copies)):
                prepare(path, *copies)
                self.assertIn(not_found.format(name), self.does_not_start(FORK))

        # An older copy, but from after the checkpoint: the redo log has all later changes.
        prepare(self.table, lambda old: with_lsn(old, lsn))
        self.assertIn("Restoring page", self.does_not_start(STOCK))
        prepare(self.table, lambda old: with_lsn(old, lsn))
        scratch.start(FORK)
        self.assertEqual(scratch.sql("CHECK TABLE d.t EXTENDED").split()[-1], "OK")
        self.assertEqual(scratch.sql("SELECT SUM(b) FROM d.t"), "3")
        self.assertEqual(scratch.end(), 0)

        # The system tablespace's copy is from another data directory.
        prepare(self.system, lambda old: with_lsn(old, lsn + REDO_BYTES))
        self.assertIn("or of another data directory", self.does_not_start(FORK))

        # The newest copy is intact. Each of the many slots without a copy looks like the same page.
        prepare(self.system, lambda old: with_lsn(old, lsn + 2))
        os.truncate(scratch.data / f"#ib_{self.page_bytes}_0.dblwr", MANY_SLOTS * self.page_bytes)
        scratch.start(FORK)
        self.assertEqual(scratch.sql("SELECT SUM(b) FROM d.t"), "3")
        self.assertEqual(scratch.end(), 0)

    def test_older_copy(self):
        """Recovery uses the newest copy of a page, in whichever slot it is."""
        scratch = self.scratch
        scratch.start(FORK)
        scratch.sql(FILL)
        space = scratch.space_id("d/t")
        self.assertEqual(scratch.end(), 0)
        old = self.read_page(self.table, ROOT_PAGE)
        scratch.start(FORK)
        scratch.sql("UPDATE d.t SET a = 'new'")
        self.assertEqual(scratch.end(), 0)
        new = self.read_page(self.table, ROOT_PAGE)
        # A change after the checkpoint: recovery reads the page, but has no redo of the change before it.
        scratch.start(FORK)
        scratch.sql("UPDATE d.t SET b = 1 WHERE id = 1")
        scratch.end(signal.SIGKILL)
        self.copy_to_slot(0, old)
        self.copy_to_slot(-1, new)
        self.write_page(self.table, ROOT_PAGE, new)
        self.tear(self.table, ROOT_PAGE)
        scratch.start(FORK, "--log-error-verbosity=3")
        self.assert_restored(space, ROOT_PAGE)
        self.assertEqual(scratch.sql("SELECT GROUP_CONCAT(a, b ORDER BY id) FROM d.t"), "new1,new0,new0")
        self.assertEqual(scratch.end(), 0)

        # A copy newer than the redo log is from another data directory. One from before the checkpoint is not used.
        scratch.start(FORK, *KEEP_DIRTY)
        lsn = scratch.counter("Innodb_redo_log_current_lsn")
        scratch.sql("UPDATE d.t SET b = 2 WHERE id = 1")
        scratch.end(signal.SIGKILL)
        self.copy_to_slot(0, with_lsn(old, lsn + REDO_BYTES))
        self.write_page(self.table, ROOT_PAGE, new)
        self.tear(self.table, ROOT_PAGE)
        kept = scratch.path / "kept"
        shutil.copytree(scratch.data, kept)
        self.copy_to_slot(-1, old)
        # Stock waits for a corrupt page for ever.
        log = self.does_not_start(FORK)
        self.assertIn(f"page number={ROOT_PAGE}] is corrupt, and the doublewrite files have no copy of it", log)
        self.assertNotIn(f"Recovered page [page id: space={space}, ", log)
        shutil.rmtree(scratch.data)
        kept.rename(scratch.data)
        self.copy_to_slot(-1, with_lsn(new, lsn))
        scratch.start(FORK, "--log-error-verbosity=3")
        self.assertIn("newer than the redo log", scratch.log.read_text(errors="replace"))
        self.assertEqual(scratch.sql("SELECT GROUP_CONCAT(a, b ORDER BY id) FROM d.t"), "new2,new0,new0")
        self.assertEqual(scratch.end(), 0)

    def test_copy_newer_than_the_redo_log(self):
        """A copy of another data directory, older than the end of the redo log files: that shows when the redo log was
        applied. The server stops, now and later."""
        scratch = self.scratch
        self.fill_and_restart()
        old = self.read_page(self.table, ROOT_PAGE)
        lsn = scratch.counter("Innodb_redo_log_current_lsn")
        scratch.sql("UPDATE d.t SET a = 'new'")
        scratch.end(signal.SIGKILL)
        self.copy_to_slot(0, with_lsn(old, lsn))
        self.copy_to_slot(-1, with_lsn(old, lsn + BEYOND_REDO_BYTES))
        self.tear(self.table, ROOT_PAGE)
        log = self.does_not_start(FORK)
        self.assertIn(f"with a doublewrite copy of LSN {lsn + BEYOND_REDO_BYTES}, and the redo log ends at LSN", log)
        self.assertIn("or of another data directory", log)
        log = self.does_not_start(FORK)
        self.assertIn("or of another data directory", log)
        self.assertNotIn("Applying a batch", log)
        # To dump data.
        scratch.start(FORK, "--innodb-force-recovery=1", "--skip-log-bin")
        self.assertEqual(scratch.sql("SELECT COUNT(*) FROM d.t"), "3")
        scratch.end()
        self.assertIn("or of another data directory", self.does_not_start(FORK))

    def test_copy_as_new_as_the_redo_log(self):
        """The redo log ends in the middle of a mini-transaction. A page that an index build has changed without redo
        can have the LSN of that end, and the server starts with its copy."""
        scratch = self.scratch
        self.fill_and_restart()
        old = self.read_page(self.table, ROOT_PAGE)
        scratch.sql("UPDATE d.t SET a = 'new'; CREATE TABLE d.u (id INT PRIMARY KEY, a LONGBLOB)")
        begin = scratch.counter("Innodb_redo_log_current_lsn")
        scratch.sql("INSERT INTO d.u VALUES (1, REPEAT('a', 1000000))")
        end = scratch.counter("Innodb_redo_log_current_lsn")
        scratch.end(signal.SIGKILL)
        lsn = self.end_redo_within_a_mini_transaction(begin, end)
        self.copy_to_slot(-1, with_lsn(old, lsn + BLOCK_HEADER_BYTES))
        self.tear(self.table, ROOT_PAGE)
        scratch.start(FORK, "--log-error-verbosity=3")
        self.assert_restored(scratch.space_id("d/t"), ROOT_PAGE)
        self.assertEqual(scratch.sql("SELECT COUNT(*) FROM d.t"), "3")
        self.assertEqual(scratch.sql("SELECT COUNT(*) FROM d.u"), "0")
        self.assertEqual(scratch.end(), 0)

    def end_redo_within_a_mini_transaction(self, begin, end):
        """Write zeros to the redo log from the first block after begin in which no mini-transaction begins. Returns its
        LSN."""
        for path in (self.scratch.data / "#innodb_redo").glob("#ib_redo*[0-9]"):
            redo = bytearray(path.read_bytes())
            start = int.from_bytes(redo[START_LSN : START_LSN + 8], "big")
            for lsn in range(begin - begin % BLOCK_BYTES + BLOCK_BYTES, end, BLOCK_BYTES):
                offset = REDO_HEADER_BYTES + lsn - start
                if not REDO_HEADER_BYTES <= offset < len(redo):
                    continue
                if redo[offset + FIRST_GROUP : offset + FIRST_GROUP + 2] == bytes(2):
                    redo[offset:] = bytes(len(redo) - offset)
                    path.write_bytes(redo)
                    return lsn
        raise AssertionError(f"all blocks between {begin} and {end} begin a mini-transaction")

    def test_first_page_is_synced(self):
        """InnoDB does not sync a first page that it has restored. It is synced before redo is applied to pages: they
        can overwrite its copy."""
        scratch = self.scratch
        self.fill_and_restart()
        scratch.sql("UPDATE d.t SET b = 1")
        scratch.end(signal.SIGKILL)
        hold, log = scratch.path / "hold", scratch.path / "syncs"
        library = to_preload(SYNC_HOLD, scratch.path)
        for path, name in ((self.table, "/d/t.ibd"), (self.system, "/ibdata1")):
            with self.subTest(path=name):
                self.copy_to_slot(-1, self.read_page(path, 0))
                self.tear(path, 0)
                hold.write_text("0")
                log.unlink(missing_ok=True)
                begin = scratch.log.stat().st_size
                row_page = self.read_page(self.table, ROOT_PAGE)
                scratch.launch(FORK, *KEEP_DIRTY, "--log-error-verbosity=3",
                               environment=observed(library, scratch.path, name))  # fmt: skip
                wait_until(log.exists, "the file is not synced")
                written = scratch.log.read_text(errors="replace")[begin:]
                self.assertIn("Restoring page", written)
                self.assertNotIn("Apply batch completed", written)
                self.assertEqual(self.read_page(self.table, ROOT_PAGE), row_page)
                if path == self.system:
                    self.assertNotIn("Applying a batch", written)
                hold.unlink()
                wait_until(lambda: scratch.client("SELECT 1").returncode == 0)
                self.assertEqual(scratch.sql("SELECT SUM(b) FROM d.t"), "3")
                scratch.end(signal.SIGKILL)

    def test_files_are_synced_after_a_crash(self):
        """The server had written a page: recovery does not write the file. It is synced all the same."""
        scratch = self.scratch
        self.fill_and_restart()
        library = to_preload(SYNC_HOLD, scratch.path)
        for options in [], ["--innodb-flush-method=O_DIRECT_NO_FSYNC"]:
            with self.subTest(options=options):
                scratch.sql("UPDATE d.t SET b = b + 1; FLUSH TABLES d.t FOR EXPORT; UNLOCK TABLES")
                rows = scratch.sql("SELECT SUM(b) FROM d.t")
                scratch.end(signal.SIGKILL)
                (scratch.path / "syncs").unlink(missing_ok=True)
                page = self.read_page(self.table, ROOT_PAGE)
                scratch.start(FORK, *KEEP_DIRTY, *options, environment=observed(library, scratch.path, "/d/t.ibd"))
                self.assertTrue((scratch.path / "syncs").exists())
                self.assertEqual(self.read_page(self.table, ROOT_PAGE), page)
                self.assertEqual(scratch.sql("SELECT SUM(b) FROM d.t"), rows)
        scratch.end(signal.SIGKILL)

    def test_crash_in_recovery(self):
        """Recovery has overwritten the copies of the first crash with those of pages that it has written, and another
        power cut tears a page again."""
        scratch = self.scratch
        self.fill_and_restart()
        space = scratch.space_id("d/t")
        scratch.sql("UPDATE d.t SET b = 1")
        scratch.end(signal.SIGKILL)
        files = sorted(scratch.data.glob("#ib_*.dblwr"))
        self.copy_to_slot(-1, self.read_page(self.table, ROOT_PAGE))
        self.tear(self.table, ROOT_PAGE)
        torn = self.read_page(self.table, ROOT_PAGE)
        hold, log = scratch.path / "hold", scratch.path / "syncs"
        library = to_preload(SYNC_HOLD, scratch.path)
        # Two recoveries end when they have restored the page.
        for _ in range(2):
            hold.write_text("0")
            log.unlink(missing_ok=True)
            scratch.launch(FORK, *KEEP_DIRTY, environment=observed(library, scratch.path, "/d/t.ibd"))
            wait_until(log.exists, "the file is not synced")
            scratch.end(signal.SIGKILL)
            for path in files:
                path.write_bytes(bytes(path.stat().st_size))
            self.write_page(self.table, ROOT_PAGE, torn)
            self.assertEqual(len(list(scratch.data.glob("#ib_*.dblwr"))), len(files) + 1)
        begin = scratch.log.stat().st_size
        scratch.start(FORK, *KEEP_DIRTY, "--log-error-verbosity=3")
        self.assertIn(f"Recovered page [page id: space={space}, page number={ROOT_PAGE}] from the doublewrite buffer",
                      scratch.log.read_text(errors="replace")[begin:])  # fmt: skip
        self.assertEqual(scratch.sql("SELECT SUM(b) FROM d.t"), "3")
        self.assertEqual(sorted(scratch.data.glob("#ib_*.dblwr*")), files)
        scratch.end(signal.SIGKILL)

        # The copies cannot be written.
        self.copy_to_slot(-1, self.read_page(self.table, ROOT_PAGE))
        (scratch.data / f"#ib_{self.page_bytes}_new").mkdir()
        self.assertIn("The doublewrite copies could not be written to", self.does_not_start(FORK))
        scratch.start(FORK, "--innodb-force-recovery=1", "--skip-log-bin")
        self.assertEqual(scratch.sql("SELECT SUM(b) FROM d.t"), "3")
        scratch.end()

    def test_extension_of_a_torn_file(self):
        """The first redo of a table extends it, and its first page is torn without a copy. Stock starts without the
        rest of the redo log."""
        scratch = self.scratch
        scratch.start(FORK)
        scratch.sql(FILL + "CREATE TABLE d.u SELECT * FROM d.t;")
        self.assertEqual(scratch.end(), 0)
        for server in STOCK, FORK:
            with self.subTest(server=server):
                scratch.start(FORK, *KEEP_DIRTY)
                size = self.table.stat().st_size + (8 << 20)
                scratch.sql(f"SET GLOBAL innodb_extend_and_initialize = OFF;"
                            f"ALTER TABLESPACE `d/t` SET EXTENT_SIZE = {size >> 20}M; UPDATE d.u SET b = b + 1")
                rows = scratch.sql("SELECT SUM(b) FROM d.u")
                scratch.end(signal.SIGKILL)
                kept = scratch.path / "kept"
                shutil.copytree(scratch.data, kept)
                first = self.read_page(self.table, 0)
                self.tear(self.table, 0)
                for path in scratch.data.glob("#ib_*.dblwr"):
                    path.write_bytes(bytes(path.stat().st_size))
                if server == STOCK:
                    scratch.start(STOCK)
                    self.assertNotEqual(scratch.sql("SELECT SUM(b) FROM d.u"), rows)
                    scratch.end(signal.SIGKILL)
                    shutil.rmtree(scratch.data)
                    kept.rename(scratch.data)
                else:
                    self.assertRegex(self.does_not_start(FORK), r"The redo log has changes of tablespace \d+, which")
                    self.write_page(self.table, 0, first)
                scratch.start(FORK)
                self.assertEqual(scratch.sql("SELECT SUM(b) FROM d.u"), rows)
                self.assertEqual(scratch.end(), 0)

    def test_torn_copy(self):
        """The newest copy is torn itself: it was being written when an earlier write tore the page."""
        scratch = self.scratch
        self.fill_and_restart()
        space = scratch.space_id("d/t")
        old = self.read_page(self.table, ROOT_PAGE)
        # An LSN just before the update, which is after the checkpoint.
        lsn = scratch.counter("Innodb_redo_log_current_lsn")
        scratch.sql("UPDATE d.t SET a = 'new'")
        scratch.end(signal.SIGKILL)
        torn = self.half_of(with_lsn(old, lsn + 1))
        self.copy_to_slot(0, torn)
        self.tear(self.table, ROOT_PAGE)
        kept = scratch.path / "kept"
        shutil.copytree(scratch.data, kept)

        # A copy from before the checkpoint lacks changes that are not in the redo log.
        self.copy_to_slot(-1, old)
        self.assertNotIn("Recovered page [page id: space=" + str(space), self.does_not_start(FORK))
        # With a flush method that does not sync it may be the copy that is needed: here it is, as nothing lies between.
        shutil.rmtree(scratch.data)
        shutil.copytree(kept, scratch.data)
        self.copy_to_slot(-1, old)
        scratch.log.unlink()
        scratch.start(FORK, "--innodb-flush-method=O_DIRECT_NO_FSYNC", "--log-error-verbosity=3")
        self.assert_restored(space, ROOT_PAGE)
        self.assertEqual(scratch.sql("SELECT GROUP_CONCAT(a ORDER BY id) FROM d.t"), "new,new,new")
        self.assertEqual(scratch.end(), 0)

        # An intact copy that is older, or as old.
        for whole in (lsn, lsn + 1):
            with self.subTest(whole=whole - lsn):
                shutil.rmtree(scratch.data)
                shutil.copytree(kept, scratch.data)
                scratch.log.unlink()
                self.copy_to_slot(-1, with_lsn(old, whole))
                scratch.start(FORK, "--log-error-verbosity=3")
                self.assert_restored(space, ROOT_PAGE)
                self.assertEqual(scratch.sql("SELECT GROUP_CONCAT(a ORDER BY id) FROM d.t"), "new,new,new")
                self.assertEqual(scratch.end(), 0)


class FullFolder(unittest.TestCase):
    """The folder of the doublewrite files has no space for one more."""

    def test_recovery_continues(self):
        if os.geteuid() != 0:
            self.skipTest("a mount needs root")
        scratch = self.enterContext(Scratch())
        folder = scratch.path / "dw"
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24M", "tmpfs", folder], check=True)
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        scratch.initialise(FORK)
        option = f"--innodb-doublewrite-dir={folder}"
        scratch.start(FORK, option)
        self.addCleanup(lambda: scratch.process.poll() is None and scratch.end(signal.SIGKILL))
        scratch.sql(FILL)
        scratch.end(signal.SIGKILL)
        files = sorted(folder.iterdir())
        # Each copy differs.
        for path in files:
            with open(path, "r+b") as file:
                for offset in range(0, path.stat().st_size, 16384):
                    os.pwrite(file.fileno(), os.urandom(16384), offset)
        scratch.start(FORK, option)
        log = scratch.log.read_text(errors="replace")
        self.assertRegex(log, r"The doublewrite copies could not be written to '\S+': No space left on device")
        self.assertEqual(scratch.sql("SELECT COUNT(*) FROM d.t"), "3")
        self.assertEqual(scratch.end(), 0)
        self.assertEqual(sorted(folder.iterdir()), files)


class UndoTruncation(unittest.TestCase):
    """A crash beside the truncation of an undo tablespace, in one of two, with a rollback segment each."""

    # A transaction that changes all rows needs more undo log than the size from which purge truncates, 16 MiB.
    FILL = """
    CREATE DATABASE d;
    CREATE TABLE d.large (id INT PRIMARY KEY, a CHAR(250) NOT NULL, b CHAR(250) NOT NULL, c CHAR(250) NOT NULL);
    CREATE TABLE d.t (id INT PRIMARY KEY);
    SET SESSION cte_max_recursion_depth = 40000;
    INSERT INTO d.large WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
        SELECT i, '', '', '' FROM n;
    """

    # Syncs of the redo log make the truncation last, so that transactions begin in each part of it.
    REDO_SYNC_MS = 300
    N_SESSIONS = 80

    def test_undo_after_truncation(self):
        """Upstream lets transactions use the tablespace before the truncation log is removed. Recovery creates the
        tablespace again while there is a log, and their rows stayed."""
        with Scratch() as scratch:
            scratch.initialise(FORK)
            libraries = [to_preload(source, scratch.path) for source in (SYNC_HOLD, REDO_FAULT)]
            environment = observed(":".join(map(str, libraries)), scratch.path, "_trunc.log")
            scratch.start(FORK, "--innodb-rollback-segments=1", "--innodb-max-undo-log-size=10M",
                          "--innodb-purge-rseg-truncate-frequency=1",
                          environment={**environment, "REDO_SYNC_MS": str(self.REDO_SYNC_MS)})  # fmt: skip
            sessions = [self.enterContext(scratch.session()) for _ in range(self.N_SESSIONS)]
            scratch.sql(self.FILL)
            hold, log = scratch.path / "hold", scratch.path / "syncs"
            # The log is synced when it is created, and when the truncation has ended.
            hold.write_text("0")

            def begins():
                scratch.sql("UPDATE d.large SET a = CONCAT('a', a), b = CONCAT('b', b), c = CONCAT('c', c)")
                return log.exists()

            wait_until(begins, "no undo tablespace is truncated")
            hold.write_text("0 1")
            for i, session in enumerate(sessions):
                session.stdin.write(f"BEGIN; INSERT INTO d.t VALUES ({i});\n")
                session.stdin.flush()
                time.sleep(0.05)
                if log.read_text().count("begin") == 2:
                    break
            else:
                self.fail("the truncation does not end")
            scratch.end(signal.SIGKILL)
            for session in sessions:
                session.kill()

            # What a power cut leaves of the log, as its end was not synced.
            (truncation_log,) = scratch.data.glob("undo_*_trunc.log")
            truncation_log.write_bytes(bytes(truncation_log.stat().st_size))
            scratch.start(FORK)
            self.assertFalse(truncation_log.exists())
            # Recovery rolls transactions back in the background; a row of one is locked until then.
            self.assertEqual(scratch.sql("SET innodb_lock_wait_timeout = 60; SELECT id FROM d.t FOR SHARE"), "")
            self.assertEqual(scratch.end(), 0)


class DoublewriteOfSmallPages(Doublewrite):
    """Pages below 8 KiB: a copy is shorter than one of a page of 16 KiB."""

    page_bytes = 4096
    # It needs offset 8 KiB of a page.
    test_first_page = None
