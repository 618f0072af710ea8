"""The disk becomes full while a data file is extended: the statement fails, and the table is intact."""

import contextlib
import os
import signal
import subprocess
import unittest

from .scratch import FORK, Scratch
from .test_extend_sync import HEADER_SIZE

MIB = 1 << 20
DISK_BYTES = 400 * MIB
# The headroom: a twentieth of the file system, which is a little smaller than its device.
KEPT_BYTES = DISK_BYTES // 20 - 2 * MIB
SETUP = """
CREATE DATABASE d;
CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, a LONGTEXT NOT NULL) {};
INSERT INTO d.t (a) VALUES (REPEAT('a', 2000000));
"""
WAITS = """(SELECT COUNT(*) FROM performance_schema.threads
WHERE processlist_state IN ('Waiting for backup lock', 'Waiting for table metadata lock'))"""
STATUS = "SELECT variable_value FROM performance_schema.global_status WHERE variable_name = '{}'"


class Extension(unittest.TestCase):
    """A table whose file is extended."""

    def setUp(self):
        self.scratch = self.enterContext(Scratch("/var/tmp"))

    def number(self, text):
        return int(self.scratch.sql(text))

    def check(self):
        self.assertEqual(self.scratch.sql("CHECK TABLE d.t EXTENDED").split()[-1], "OK")


class FailedExtension(Extension):
    """The file system adds a part of what an extension asks for, and refuses the rest: here for RLIMIT_FSIZE, as for a
    quota."""

    LIMIT = 200 * MIB + 40 * 1024

    def start(self, *options):
        # Without the signal, which ends a server, a write beyond the limit fails.
        limited = ("env", "--ignore-signal=XFSZ", "prlimit", f"--fsize={self.LIMIT}:")
        self.scratch.start(FORK, *options, wrapper=limited)

    def size(self):
        return self.number(HEADER_SIZE)

    def setUp(self):
        super().setUp()
        self.scratch.initialise(FORK)

    def test_part_of_a_step(self):
        scratch = self.scratch
        self.start()
        scratch.sql(SETUP.format(""))
        result = scratch.client("ALTER TABLESPACE `d/t` SET EXTENT_SIZE = 300M")
        self.assertRegex(result.stderr, r"ERROR 1114 .*was extended to only \d+ pages, \d+ bytes\. The error log")
        size = self.size()
        self.assertEqual(size % MIB, 0)
        self.assertTrue(100 * MIB < size <= self.LIMIT, size)
        self.check()
        scratch.end(signal.SIGKILL)
        self.start()
        self.check()
        scratch.end(signal.SIGKILL)
        # More space: the file grows behind its last part.
        scratch.start(FORK)
        self.assertEqual(self.size(), size)
        self.check()
        scratch.sql("ALTER TABLESPACE `d/t` SET EXTENT_SIZE = 210M")
        for _ in range(7):
            scratch.sql("INSERT INTO d.t (a) SELECT a FROM d.t")
        self.assertGreater(self.size(), self.LIMIT)
        scratch.end(signal.SIGKILL)
        scratch.start(FORK)
        self.check()
        self.assertEqual(scratch.sql("SELECT COUNT(*) FROM d.t"), "128")

    def test_ahead(self):
        scratch = self.scratch
        # The binary log has the limit, too.
        self.start("--innodb-extend-ahead-pct=100", "--skip-log-bin")
        scratch.sql(SETUP.format(""))
        warning = "could not be extended ahead"
        # Not up to the limit: the INSERT itself would fail.
        for _ in range(100):
            if warning in scratch.log.read_text():
                break
            if self.size() > 150 * MIB:
                scratch.sql("DELETE FROM d.t WHERE id > 20; DO SLEEP(0.5)")
            scratch.sql("INSERT INTO d.t (a) SELECT a FROM d.t LIMIT 5")
        else:
            self.fail("no extension has failed")
        self.assertEqual(scratch.counter("Innodb_tablespace_extend_ahead_no_space"), 1)
        self.check()
        scratch.end(signal.SIGKILL)
        self.start()
        self.check()
        self.assertEqual(scratch.log.read_text().count(warning), 1)


class FullDisk(Extension):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("a mount needs root")
        super().setUp()
        image, self.disk = self.scratch.path / "image", self.scratch.path / "disk"
        with open(image, "wb") as file:
            file.truncate(DISK_BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-F", image], check=True)
        self.disk.mkdir()
        mount = subprocess.run(["mount", "-o", "loop", image, self.disk], capture_output=True, text=True, check=False)
        if mount.returncode != 0:
            self.skipTest(mount.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", self.disk], check=True)
        self.addCleanup(self.end)
        self.scratch.initialise(FORK)
        self.start()
        self.scratch.sql(SETUP.format(f"DATA DIRECTORY = '{self.disk}'"))

    def start(self, *options):
        self.scratch.start(FORK, f"--innodb-directories={self.disk}", *options)

    def end(self):
        """End the server before the disk is unmounted."""
        if self.scratch.process.poll() is None:
            self.scratch.end()

    def free(self):
        found = os.statvfs(self.disk)
        return found.f_bavail * found.f_frsize

    def fill_up_to(self, left):
        """Fill the disk up to this number of free bytes."""
        with open(self.disk / "other", "ab") as file:
            os.posix_fallocate(file.fileno(), file.tell(), self.free() - left)

    def size(self):
        return self.number("SELECT file_size FROM information_schema.innodb_tablespaces WHERE name = 'd/t'")

    def status(self, name):
        return self.number(STATUS.format(name))

    def wait_until(self, condition):
        for _ in range(600):
            if self.number(f"SELECT {condition}"):
                return
            self.scratch.sql("DO SLEEP(0.1)")
        self.fail(condition)

    def test_statement(self):
        result = self.scratch.client("ALTER TABLESPACE `d/t` SET EXTENT_SIZE = 500M")
        self.assertRegex(result.stderr, r"Tablespace `d/t` needs \d+ bytes more\. The file system has \d+ bytes free\.")
        before = self.size()

        # There is enough space when the statement checks it, but not when it extends the file.
        with self.scratch.session() as backup, self.scratch.session() as statement:
            backup.stdin.write("LOCK INSTANCE FOR BACKUP;\nSELECT 1;\n")
            backup.stdin.flush()
            backup.stdout.readline()
            statement.stdin.write("ALTER TABLESPACE `d/t` SET EXTENT_SIZE = 300M;\n")
            statement.stdin.close()
            self.wait_until(WAITS)
            self.fill_up_to(100 * MIB)
            backup.stdin.close()
            self.assertEqual(statement.wait(), 1)
            backup.wait()
        after = self.size()
        self.assertGreater(after, before)
        self.assertGreaterEqual(self.free(), KEPT_BYTES)
        self.check()
        self.assertEqual(self.scratch.end(signal.SIGKILL), -signal.SIGKILL)
        self.start()
        self.check()
        (self.disk / "other").unlink()
        self.scratch.sql("ALTER TABLESPACE `d/t` SET EXTENT_SIZE = 300M")
        self.assertEqual(self.size(), 300 * MIB)
        self.scratch.sql("INSERT INTO d.t (a) SELECT a FROM d.t")

        # Part of the headroom: an error. The headroom stays free.
        size = 300 + (self.free() - KEPT_BYTES // 2) // MIB
        result = self.scratch.client(f"ALTER TABLESPACE `d/t` SET EXTENT_SIZE = {size}M")
        self.assertRegex(result.stderr, r"Tablespace `d/t` needs \d+ bytes more.* stay free")
        size = 300 + (self.free() - DISK_BYTES // 20) // MIB
        self.scratch.sql(f"ALTER TABLESPACE `d/t` SET EXTENT_SIZE = {size}M")
        self.assertGreaterEqual(self.free(), KEPT_BYTES)
        self.check()

    def test_two_statements(self):
        """There is space for one statement, not for both: the second subtracts what the first still needs."""
        self.scratch.sql(f"CREATE TABLE d.u (id INT PRIMARY KEY) DATA DIRECTORY = '{self.disk}'")
        megabytes = int(self.free() * 0.7) // MIB
        with self.scratch.session() as lock, self.scratch.session() as first:
            lock.stdin.write("LOCK TABLES d.t READ;\nSELECT 1;\n")
            lock.stdin.flush()
            lock.stdout.readline()
            first.stdin.write(f"ALTER TABLESPACE `d/t` SET EXTENT_SIZE = {megabytes}M;\n")
            first.stdin.close()
            self.wait_until(WAITS)
            second = self.scratch.client(f"ALTER TABLESPACE `d/u` SET EXTENT_SIZE = {megabytes}M")
            self.assertRegex(second.stderr, r"Other statements have reserved [1-9]\d{7,} of them")
            lock.stdin.close()
            self.assertEqual(first.wait(), 0)
            lock.wait()
        self.assertEqual(self.size(), megabytes * MIB)
        self.assertGreaterEqual(self.free(), KEPT_BYTES)
        # The first statement's reservation is released.
        second = self.scratch.client(f"ALTER TABLESPACE `d/u` SET EXTENT_SIZE = {megabytes}M")
        self.assertIn("Other statements have reserved 0 of them", second.stderr)
        self.scratch.sql("ALTER TABLESPACE `d/u` SET EXTENT_SIZE = 40M")

    def test_space_of_another_statement(self):
        """Another file takes space after two statements have begun. The second stops where it would take what the
        first needs; the thread does not begin."""
        scratch = self.scratch
        for name in ("u", "v"):
            scratch.sql(f"CREATE TABLE d.{name} (a LONGTEXT NOT NULL) DATA DIRECTORY = '{self.disk}'")
        sizes = {"t": 180, "u": 80}
        with contextlib.ExitStack() as stack:
            # The locks end first.
            statements, locks = ({name: stack.enter_context(scratch.session()) for name in sizes} for _ in range(2))
            for i, (name, megabytes) in enumerate(sizes.items()):
                locks[name].stdin.write(f"LOCK TABLES d.{name} READ;\nSELECT 1;\n")
                locks[name].stdin.flush()
                locks[name].stdout.readline()
                statements[name].stdin.write(f"ALTER TABLESPACE `d/{name}` SET EXTENT_SIZE = {megabytes}M;\n")
                statements[name].stdin.close()
                self.wait_until(f"{WAITS} = {i + 1}")
            self.fill_up_to(KEPT_BYTES + 180 * MIB)

            before = self.status("Innodb_tablespace_extend_ahead_bytes")
            scratch.sql("SET GLOBAL innodb_extend_ahead_pct = 50")
            for _ in range(4):
                scratch.sql("INSERT INTO d.v VALUES (REPEAT('b', 1000000))")
                scratch.sql("DO SLEEP(1.5)")
            self.wait_until(f"({STATUS.format('Innodb_tablespace_extend_ahead_no_space')}) > 0")
            self.assertEqual(self.status("Innodb_tablespace_extend_ahead_bytes"), before)
            scratch.sql("SET GLOBAL innodb_extend_ahead_pct = 0; DROP TABLE d.v")

            locks["u"].stdin.close()
            self.assertNotEqual(statements["u"].wait(), 0)
            locks["t"].stdin.close()
            self.assertEqual(statements["t"].wait(), 0)
            for lock in locks.values():
                lock.wait()
        self.assertEqual(self.size(), sizes["t"] * MIB)
        self.assertGreaterEqual(self.free(), KEPT_BYTES)
        self.check()

    def test_ahead(self):
        """innodb_extend_ahead_pct leaves the headroom free."""
        left = 60 * MIB
        self.fill_up_to(left)
        self.scratch.sql("SET GLOBAL innodb_extend_ahead_pct = 50")
        for _ in range(3):
            self.scratch.sql("INSERT INTO d.t (a) SELECT REPEAT('b', 2000000) FROM d.t")
            self.scratch.sql("DO SLEEP(1.5)")
        self.wait_until(f"({STATUS.format('Innodb_tablespace_extend_ahead_no_space')}) > 0")
        self.assertGreater(self.status("Innodb_tablespace_extend_ahead_bytes"), 0)
        self.assertGreater(self.free(), DISK_BYTES * 0.05 - 4 * MIB)
        self.check()
