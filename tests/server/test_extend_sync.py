"""Syncs of a data file that a statement extends: committed rows are durable, and IMPORT TABLESPACE survives a crash."""

import os
import re
import signal
import time
import unittest

from .scratch import FORK, SYNC_HOLD, WAIT_SECONDS, Scratch, observed, temporary_folder, to_preload, wait_until

MIB = 1 << 20
SETUP = """
CREATE DATABASE d;
CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(8000)) CHARSET latin1 AUTOEXTEND_SIZE = {};
"""
# Two rows fit into a page.
INSERT = """INSERT INTO d.t (a) SELECT REPEAT('a', 7000) FROM
  (WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {}) SELECT n FROM s) x;
"""
WAITING = """SELECT variable_value FROM performance_schema.global_status
WHERE variable_name = 'Innodb_stall_file_extend_waiting'"""
HEADER_SIZE = "SELECT total_extents * extent_size FROM information_schema.files WHERE tablespace_name = 'd/t'"
CHECKPOINT = """SELECT variable_value FROM performance_schema.global_status
WHERE variable_name IN ('Innodb_lsn_current', 'Innodb_lsn_last_checkpoint') ORDER BY variable_name"""
# Max bytes of redo that an idle server generates after a checkpoint.
CHECKPOINT_AGE = 5000


class HeldSyncs(unittest.TestCase):
    """A server whose syncs of one file are logged and can be held."""

    OPTIONS = ("--innodb-flush-method=O_DIRECT", "--skip-log-bin")
    SYNC_FILE = "/d/t.ibd"

    @classmethod
    def setUpClass(cls):
        cls.library = to_preload(SYNC_HOLD, cls.enterClassContext(temporary_folder()))

    def setUp(self):
        self.scratch = self.enterContext(Scratch("/var/tmp"))
        self.syncs = self.scratch.path / "syncs"
        self.hold = self.scratch.path / "hold"
        self.kill = self.scratch.path / "kill"
        self.scratch.initialise(FORK)
        self.start()
        self.addCleanup(self.release)
        self.file = self.scratch.data / "d/t.ibd"

    def start(self):
        self.scratch.start(FORK, *self.OPTIONS, environment=observed(self.library, self.scratch.path, self.SYNC_FILE))

    def release(self):
        self.hold.unlink(missing_ok=True)

    def session(self, text):
        """A session that executes text and ends."""
        session = self.scratch.session()
        self.addCleanup(lambda: (session.kill(), session.wait(), session.stdout.close()))
        session.stdin.write(text)
        session.stdin.close()
        return session

    def exported(self, table):
        """The files of an exported table, by their suffix."""
        with self.scratch.session() as session:
            session.stdin.write(f"FLUSH TABLES d.{table} FOR EXPORT; SELECT 'exported';\n")
            session.stdin.flush()
            self.assertEqual(session.stdout.readline().strip(), "exported")
            copies = {kind: (self.scratch.data / f"d/{table}.{kind}").read_bytes() for kind in ("ibd", "cfg")}
            session.stdin.close()
            session.wait(WAIT_SECONDS)
        return copies

    def put_in_place(self, copies):
        """Copy the files of an exported table to where IMPORT expects those of d.t."""
        for kind, content in copies.items():
            (self.scratch.data / f"d/t.{kind}").write_bytes(content)

    def number(self, text):
        return int(self.scratch.sql(text))

    def is_flushed(self):
        """Whether all pages are flushed: the checkpoint age is that of an idle server."""
        current, checkpoint = map(int, self.scratch.sql(CHECKPOINT).split())
        return current - checkpoint < CHECKPOINT_AGE

    def synced(self, what="end"):
        """The largest file size that a sync has made durable, or ("begin") has begun with."""
        return max(int(size) for size in re.findall(rf"^{what} (\d+)$", self.syncs.read_text(), re.MULTILINE))

    def hold_step_that_ends_at(self, size, target):
        """Begin SET EXTENT_SIZE. The sync of the first step that reaches size is held."""
        self.hold.write_text(str(size))
        statement = self.session(f"ALTER TABLESPACE `d/t` SET EXTENT_SIZE = {target // MIB}M;")
        wait_until(lambda: self.synced("begin") >= size)
        return statement


class ExtendSync(HeldSyncs):
    """With O_DIRECT, the default."""

    def test_rows_in_a_step_that_is_not_synced(self):
        """An INSERT that needs the space of a step waits until the step is synced."""
        self.scratch.sql(SETUP.format(0) + INSERT.format(1000))
        before = self.file.stat().st_size
        # The first step is 1 MiB, the second one 2 MiB; an INSERT extends a file of this size by 1 MiB.
        statement = self.hold_step_that_ends_at(before + 2 * MIB, before + 64 * MIB)
        insert = self.session(1000 * "INSERT INTO d.t (a) VALUES (REPEAT('b', 7000));\n")
        wait_until(lambda: self.number(WAITING) > 0 or self.number(HEADER_SIZE) > self.synced())
        self.assertLessEqual(self.number(HEADER_SIZE), self.synced())
        self.release()
        self.assertEqual(statement.wait(WAIT_SECONDS), 0)
        self.assertEqual(insert.wait(WAIT_SECONDS), 0)
        self.assertGreaterEqual(self.synced(), self.number(HEADER_SIZE))

    def test_kill_beside_an_extension(self):
        """While an INSERT extends the file, SET EXTENT_SIZE does not begin. KILL ends its wait."""
        self.scratch.sql(SETUP.format("16M"))
        self.hold.write_text(str(self.file.stat().st_size + MIB))
        insert = self.session("SET cte_max_recursion_depth = 10000;" + INSERT.format(21 * MIB // 8192))
        wait_until(lambda: self.synced("begin") > 16 * MIB)
        statement = self.session("ALTER TABLESPACE `d/t` SET EXTENT_SIZE = 64M;")
        query = "SELECT id FROM performance_schema.processlist WHERE info LIKE 'ALTER TABLESPACE%'"
        wait_until(lambda: self.scratch.sql(query))
        time.sleep(1)
        self.scratch.sql(f"KILL QUERY {self.scratch.sql(query)}")
        self.assertEqual(statement.wait(WAIT_SECONDS), 1)
        self.assertTrue(self.hold.exists())
        self.release()
        self.assertEqual(insert.wait(WAIT_SECONDS), 0)

    def extend_after_checkpoint(self, size):
        """SET EXTENT_SIZE, whose redo record is the first after a checkpoint."""
        self.scratch.sql("SET GLOBAL innodb_max_dirty_pages_pct = 0")
        wait_until(self.is_flushed)
        self.scratch.sql(f"SET GLOBAL innodb_max_dirty_pages_pct = 90; ALTER TABLESPACE `d/t` SET EXTENT_SIZE = {size}")

    def kill_in_a_step(self):
        """Kill the server when a step has extended the file, and has not synced it. No page of the file is dirty, and
        no checkpoint comes after the step. Returns the sizes before and after the step."""
        self.scratch.sql(SETUP.format(0) + INSERT.format(1000) + "CREATE TABLE d.other LIKE d.t;")
        self.scratch.sql("SET GLOBAL innodb_max_dirty_pages_pct = 0")
        wait_until(self.is_flushed)
        self.scratch.sql("SET GLOBAL innodb_max_dirty_pages_pct = 90; SET GLOBAL innodb_adaptive_flushing = OFF;"
                         "SET GLOBAL innodb_idle_flush_pct = 0; INSERT INTO d.other VALUES (1, 'a')")  # fmt: skip
        before = self.file.stat().st_size
        self.hold_step_that_ends_at(before + MIB, before + 64 * MIB)
        # The step's redo record is durable.
        self.scratch.sql("INSERT INTO d.other VALUES (2, 'a')")
        self.scratch.end(signal.SIGKILL)
        self.release()
        self.syncs.write_text("")
        return before, self.file.stat().st_size

    def test_killed_in_a_step(self):
        """The space that a step has added before the server died is synced before a session can use it."""
        before, size = self.kill_in_a_step()
        self.assertGreater(size, before)
        self.start()
        self.assertEqual(self.number("SELECT COUNT(*) FROM d.t"), 1000)
        self.assertGreaterEqual(self.synced(), size)

    def test_power_cut_in_a_step(self):
        """The space that recovery adds, because a power cut took it, is synced."""
        before, size = self.kill_in_a_step()
        os.truncate(self.file, before)
        self.start()
        self.assertGreaterEqual(self.file.stat().st_size, size)
        self.assertGreaterEqual(self.synced(), size)

    def test_file_copied_before_a_crash(self):
        """A file that was copied into place, and a server that died before IMPORT: the start says what to do."""
        self.scratch.sql(SETUP.format(0) + "CREATE TABLE d.small LIKE d.t; INSERT INTO d.small VALUES (1, 'a');")
        self.scratch.sql("INSERT INTO d.t VALUES (1, 'a')")
        copies = self.exported("t")
        self.scratch.sql("ALTER TABLESPACE `d/t` SET EXTENT_SIZE = 20M")
        self.extend_after_checkpoint("40M")
        self.scratch.sql("ALTER TABLE d.t DISCARD TABLESPACE")
        self.put_in_place(copies)
        self.scratch.end(signal.SIGKILL)
        self.scratch.launch(FORK, *self.OPTIONS)
        self.assertNotEqual(self.scratch.process.wait(WAIT_SECONDS), 0)
        expected = r"The redo log extends the file '.*d/t.ibd' from byte \d+ on, and it has"
        self.assertRegex(self.scratch.log.read_text(), expected)
        self.file.rename(self.scratch.path / "moved.ibd")
        self.scratch.start(FORK, *self.OPTIONS)
        self.put_in_place(copies)
        self.scratch.sql("ALTER TABLE d.t IMPORT TABLESPACE")
        self.assertEqual(self.number("SELECT COUNT(*) FROM d.t"), 1)

    def test_import_crash(self):
        """The server starts after it died while IMPORT gave a smaller file the ID of an extended file."""
        self.scratch.sql(SETUP.format(0) + "CREATE TABLE d.small LIKE d.t; INSERT INTO d.small VALUES (1, 'a');")
        copies = self.exported("small")
        self.scratch.sql("ALTER TABLESPACE `d/t` SET EXTENT_SIZE = 20M")
        self.extend_after_checkpoint("40M")
        self.scratch.sql("ALTER TABLE d.t DISCARD TABLESPACE")
        self.put_in_place(copies)
        self.kill.touch()
        self.assertIn("Lost connection", self.scratch.client("ALTER TABLE d.t IMPORT TABLESPACE").stderr)
        self.scratch.process.wait(WAIT_SECONDS)
        # A power cut can tear the first page, too: IMPORT writes it without a copy.
        with open(self.file, "r+b") as file:
            file.seek(100)
            file.write(bytes(8000))
        self.scratch.start(FORK, *self.OPTIONS)
        self.assertEqual(self.number("SELECT COUNT(*) FROM d.small"), 1)
        self.scratch.client("ALTER TABLE d.t DISCARD TABLESPACE")
        self.put_in_place(copies)
        self.scratch.sql("ALTER TABLE d.t IMPORT TABLESPACE")
        self.assertEqual(self.number("SELECT COUNT(*) FROM d.t"), 1)


class ImportWaits(HeldSyncs):
    """The sync of another file takes long, as on a mount that does not answer."""

    SYNC_FILE = "/d/other.ibd"

    def test_killed_import(self):
        """IMPORT waits for a checkpoint, and so for syncs of all files; a waiting IMPORT can be killed. DISCARD does
        not wait."""
        scratch = self.scratch
        scratch.sql(SETUP.format(0) + "CREATE TABLE d.other LIKE d.t; INSERT INTO d.t VALUES (1, 'a');")
        copies = self.exported("t")
        self.hold.write_text("0")
        scratch.sql("INSERT INTO d.other VALUES (1, 'a'); ALTER TABLE d.t DISCARD TABLESPACE")
        self.put_in_place(copies)
        statement = self.session("ALTER TABLE d.t IMPORT TABLESPACE;")
        waiting = "SELECT id FROM performance_schema.processlist WHERE info LIKE 'ALTER TABLE d.t IMPORT%'"
        wait_until(lambda: scratch.sql(waiting) and self.synced("begin") > 0)
        time.sleep(1)
        scratch.sql(f"KILL QUERY {scratch.sql(waiting)}")
        self.assertEqual(statement.wait(WAIT_SECONDS), 1)
        self.assertTrue(self.hold.exists())
        self.assertEqual(self.file.read_bytes(), copies["ibd"])
        self.release()
        scratch.sql("ALTER TABLE d.t IMPORT TABLESPACE")
        self.assertEqual(self.number("SELECT COUNT(*) FROM d.t"), 1)


class ExtendSyncOfSizeOnly(ExtendSync):
    """A file is synced only when its size has changed."""

    OPTIONS = ("--innodb-flush-method=O_DIRECT_NO_FSYNC", "--skip-log-bin")

    def test_extension_while_another_is_synced(self):
        self.scratch.sql(SETUP.format("16M"))
        while self.file.stat().st_size < 32 * MIB:
            self.scratch.sql(INSERT.format(100))
        size = self.file.stat().st_size
        rows = self.number("SELECT COUNT(*) FROM d.t")
        statement = self.hold_step_that_ends_at(size + MIB, size + MIB)
        # This INSERT needs one extension, by AUTOEXTEND_SIZE.
        added = 21 * MIB // 8192
        insert = self.session("SET cte_max_recursion_depth = 10000;" + INSERT.format(added))
        wait_until(lambda: self.number(WAITING) > 0)
        self.release()
        self.assertEqual(statement.wait(WAIT_SECONDS), 0)
        self.assertEqual(insert.wait(WAIT_SECONDS), 0)
        rows += added
        self.scratch.sql("SET GLOBAL innodb_max_dirty_pages_pct = 0")
        wait_until(self.is_flushed)
        self.scratch.end(signal.SIGKILL)
        # The smallest size that a power cut can leave.
        os.truncate(self.file, min(self.synced(), self.file.stat().st_size))
        self.scratch.start(FORK, *self.OPTIONS)
        self.assertEqual(self.number("SELECT COUNT(*) FROM d.t"), rows)
        self.assertEqual(self.scratch.sql("CHECK TABLE d.t").split()[-1], "OK")
