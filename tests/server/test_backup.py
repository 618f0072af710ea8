"""Backups of a server with every feature on, taken while sessions write: a clone, a dump, snapshots, a cold copy."""

import os
import re
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

from spillway import filesystem
from spillway.common import child, client_command
from spillway.resources import temporary_folder

from .scratch import CLEAN, FORK, MARKER, STEPS, STOCK, WAIT_SECONDS, wait_until
from .transfers import FEATURES, MIB, PREALLOCATED, SETUP, ChecksRows, Load, Server

DISK = "2G"
DUMP = ("--all-databases", "--single-transaction", "--source-data=2", "--routines", "--events", "--skip-add-locks")
# A storage snapshot: the image of the loop device is copied while no write to the file system is in progress. The
# file system is thawed however the script ends.
SNAPSHOT = """
trap 'fsfreeze --unfreeze "$1"' EXIT
trap 'exit 1' HUP INT TERM
fsfreeze --freeze "$1"
cp --sparse=always "$2" "$3"
"""


class Backup(ChecksRows):
    def setUp(self):
        if os.geteuid() != 0 or not os.access("/dev/loop-control", os.W_OK):
            self.skipTest("mounting file systems needs root and /dev/loop-control")
        self.folder = self.enterContext(temporary_folder("/var/tmp"))
        self.xfs = self.enterContext(filesystem.mounted("xfs-reflink", DISK, self.folder))
        self.server = self.enterContext(Server(str(self.xfs)))
        self.server.initialise(FORK)

    def start(self, *options):
        """Start the server with every feature on, and create the tables."""
        self.server.start(FORK, *options)
        self.server.sql(SETUP + f"ALTER TABLESPACE g SET EXTENT_SIZE = {PREALLOCATED // MIB}M")

    def load(self):
        return self.enterContext(Load(self.server))

    def check_features(self, server):
        """Each feature has had an effect on this server, which has a load or had one."""
        self.assertEqual(server.sql("SELECT @@innodb_flush_method, @@innodb_use_atomic_writes, @@innodb_use_fallocate"),
                         "ALL_O_DIRECT\tON\t1")  # fmt: skip
        for name in ("Innodb_atomic_write_pages_rwf_copy", "Innodb_ahead_flush_rounds_age",
                     "Innodb_tablespace_extend_ahead_bytes", "Innodb_tablespace_extent_size_bytes"):  # fmt: skip
            wait_until(lambda name=name: server.counter(name) > 0, f"{name} is still 0")
        self.assertEqual(server.counter("Innodb_dblwr_pages_written"), 0)
        self.assertTrue((server.data / MARKER).exists())

    def size(self, server, name="g"):
        """The size of a data file, as InnoDB has it and as the file system has it."""
        size = int(server.sql(f"SELECT file_size FROM information_schema.innodb_tablespaces WHERE name = '{name}'"))
        self.assertEqual(size, (server.data / f"{name}.ibd").stat().st_size)
        return size

    def allocated(self, server):
        return (server.data / "g.ibd").stat().st_blocks * 512

    def check_use(self, server):
        """The server can be used: rows fill preallocated space, and the statement extends the file."""
        server.sql("INSERT INTO d.general SELECT session + 100, n, a FROM d.own WHERE session = 0;"
                   "CREATE TABLE d.other (a INT); INSERT INTO d.other VALUES (1)")  # fmt: skip
        self.assertEqual(self.size(server), PREALLOCATED)
        self.assertEqual(server.sql("CHECK TABLE d.general EXTENDED").split()[-1], "OK")
        server.sql(f"DELETE FROM d.general WHERE session = 100; ALTER TABLESPACE g SET EXTENT_SIZE = "
                   f"{PREALLOCATED // MIB + 2}M; DROP TABLE d.other")  # fmt: skip
        self.assertEqual(self.size(server), PREALLOCATED + 2 * MIB)

    def check_in_stock(self, data, begin, end):
        """Stock starts on a copy of this data directory, and has the rows. So has this server afterwards."""
        if not STOCK.exists():
            return
        with Server(str(self.xfs)) as copy:
            copy.set("")
            subprocess.run(["cp", "--archive", "--reflink=always", data, copy.data], check=True)
            copy.start(STOCK)
            self.check_rows(copy, begin, end)
            self.assertEqual(self.size(copy), PREALLOCATED)
            self.assertEqual(copy.end(), 0)
            copy.set(FEATURES)
            copy.start(FORK)
            self.check_rows(copy, begin, end)
            self.assertEqual(copy.end(), 0)
            self.assertFalse((copy.data / MARKER).exists())

    def check_in_both(self, copy, begin, end):
        """A copy of the data directory of a running server: stock and then this server start on it."""
        self.check_in_stock(copy.data, begin, end)
        copy.start(FORK)
        rows = self.check_rows(copy, begin, end)
        self.assertEqual(self.size(copy), PREALLOCATED)
        self.check_use(copy)
        self.assertTrue((copy.data / MARKER).exists())
        self.assertEqual(copy.end(), 0)
        self.assertFalse((copy.data / MARKER).exists())
        copy.start(FORK)
        self.check_rows(copy, rows, rows)
        self.assertEqual(copy.end(), 0)

    def test_clone(self):
        plugins = FORK.parent.parent / "plugin_output_directory"
        self.start(f"--plugin-dir={plugins}", "--plugin-load=clone=mysql_clone.so")
        load = self.load()
        self.check_features(self.server)
        copy = self.enterContext(Server(str(self.xfs)))
        begin = load.last()
        self.server.sql(f"CLONE LOCAL DATA DIRECTORY = '{copy.data}'")
        end = load.last()
        self.assertNotEqual(begin, end)
        load.wait_for_more()
        load.stop()
        self.assertEqual(self.server.sql("SELECT state FROM performance_schema.clone_status"), "Completed")
        self.assertFalse((copy.data / MARKER).exists())
        # The clone has the preallocated space, also on disk.
        self.assertEqual((copy.data / "g.ibd").stat().st_size, PREALLOCATED)
        self.assertGreaterEqual(self.allocated(copy), PREALLOCATED)
        self.assertEqual(self.server.end(), 0)
        self.check_in_both(copy, begin, end)

    def test_dump(self):
        """mysqldump writes no CREATE TABLESPACE of InnoDB: the tablespace is created and preallocated before."""
        self.start()
        load = self.load()
        self.check_features(self.server)
        dump = self.folder / "dump.sql"
        begin = load.last()
        with open(dump, "w") as file:
            command = client_command(FORK.parent / "mysqldump", f"{self.server.path}/s", "--user=root", *DUMP)
            subprocess.run(command, stdout=file, check=True, timeout=WAIT_SECONDS)
        end = load.last()
        self.assertNotEqual(begin, end)
        load.wait_for_more()
        # Short parts of lines: a row of mysql.help_topic contains statements, too.
        lines = {line[:100] for line in dump.read_text().splitlines()}
        for text, n in {"-- CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE=": 1, ") /*!50100 TABLESPACE `g` */": 1,
                        "CREATE TABLESPACE": 0, "ALTER TABLESPACE": 0, "LOCK TABLES": 0}.items():  # fmt: skip
            self.assertEqual(sum(line.startswith(text) for line in lines), n, text)
        load.stop()
        self.assertEqual(self.server.end(), 0)
        for mysqld in FORK, STOCK:
            if not mysqld.exists():
                continue
            with self.subTest(mysqld.parts[-4]), Server(str(self.xfs)) as copy:
                copy.set(FEATURES if mysqld == FORK else "")
                copy.initialise(mysqld)
                copy.start(mysqld)
                copy.sql("CREATE TABLESPACE g ADD DATAFILE 'g.ibd'")
                if mysqld == FORK:
                    copy.sql(f"ALTER TABLESPACE g SET EXTENT_SIZE = {PREALLOCATED // MIB}M")
                with open(dump) as file:
                    result = subprocess.run(copy.client_command(), stdin=file, capture_output=True, text=True,
                                            check=False)  # fmt: skip
                self.assertEqual(result.returncode, 0, result.stderr)
                rows = self.check_rows(copy, begin, end)
                if mysqld == FORK:
                    self.check_features(copy)
                    self.check_use(copy)
                else:
                    self.assertLess(self.size(copy), PREALLOCATED)
                self.check_rows(copy, rows, rows)
                self.assertEqual(copy.end(), 0)

    def test_storage_snapshot(self):
        """The image of the loop device is copied while the file system is frozen, as a storage snapshot would do."""
        self.start()
        load = self.load()
        self.check_features(self.server)
        image, mount = self.folder / "snapshot.img", self.folder / "snapshot"
        begin = load.last()
        script = ["sh", "-euc", SNAPSHOT, "sh", self.xfs, self.xfs.with_name("disk.img"), image]
        with child(script) as snapshot:
            self.assertEqual(snapshot.wait(WAIT_SECONDS), 0)
        end = load.last()
        load.wait_for_more()
        load.stop()
        self.assertEqual(self.server.end(), 0)

        # Both file systems have one UUID.
        mount.mkdir()
        filesystem.command("mount", "-o", "loop,nouuid", image, mount)
        source = mount / self.server.data.relative_to(self.xfs)
        self.assertTrue((source / MARKER).exists())
        self.assertEqual((source / "g.ibd").stat().st_size, PREALLOCATED)
        with Server(str(mount)) as copy:
            source.rename(copy.data)
            self.xfs = mount
            self.check_in_both(copy, begin, end)

    def test_reflink_copy_of_a_paused_server(self):
        """A stopped process writes nothing between the copies of two files."""
        self.start()
        load = self.load()
        self.check_features(self.server)
        copy = self.enterContext(Server(str(self.xfs)))
        begin = load.last()
        tasks = Path(f"/proc/{self.server.process.pid}/task")

        def is_paused():
            states = {re.sub(r".*\) (\w) .*", r"\1", (task / "stat").read_text().strip()) for task in tasks.iterdir()}
            return states <= set("TD")

        self.server.process.send_signal(signal.SIGSTOP)
        try:
            wait_until(is_paused, "the server does not stop")
            # The redo log comes first. The copies are apart: data files of a later time would not match the redo log.
            copy.data.mkdir()
            for path in sorted(self.server.data.iterdir()):
                subprocess.run(["cp", "--archive", "--reflink=always", path, copy.data], check=True)
                time.sleep(0.1)
        finally:
            self.server.process.send_signal(signal.SIGCONT)
        end = load.last()
        load.wait_for_more()
        load.stop()
        self.assertEqual(self.server.end(), 0)
        self.check_in_both(copy, begin, end)

    def downgrade_check(self, server, status):
        result = server.downgrade_check()
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result.stdout

    def test_cold_copy(self):
        self.start()
        load = self.load()
        self.check_features(self.server)
        load.wait_for_more()
        load.stop()
        rows = load.last()
        # A transaction can have been committed without an acknowledgement only if a client was killed.
        self.check_rows(self.server, rows, rows)
        self.assertEqual(self.server.end(), 0)
        self.assertFalse((self.server.data / MARKER).exists())
        self.assertGreaterEqual(self.allocated(self.server), PREALLOCATED)
        for sparse in "always", "never", "auto":
            with self.subTest(sparse=sparse), Server(str(self.xfs)) as copy:
                subprocess.run(["cp", "--archive", "--reflink=never", f"--sparse={sparse}", self.server.data,
                                copy.data], check=True)  # fmt: skip
                # A sparse copy has the size, but the preallocated space is not on disk.
                self.assertEqual((copy.data / "g.ibd").stat().st_size, PREALLOCATED)
                self.assertEqual(self.allocated(copy) >= PREALLOCATED, sparse != "always", self.allocated(copy))
                if sparse == "always":
                    subprocess.run(["fallocate", f"--length={PREALLOCATED}", copy.data / "g.ibd"], check=True)
                    self.assertGreaterEqual(self.allocated(copy), PREALLOCATED)
                copy.start(FORK)
                self.check_rows(copy, rows, rows)
                self.check_use(copy)
                self.check_rows(copy, rows, rows)
                self.assertEqual(copy.end(), 0)
        if not STOCK.exists():
            self.skipTest("the stock server is not built: the way back to stock was not tested")
        with Server(str(self.xfs)) as copy:
            shutil.copytree(self.server.data, copy.data)
            copy.start(FORK)
            said = self.downgrade_check(copy, STEPS)
            lines = copy.file.read_text().splitlines()
            named = {int(number) for number in re.findall(rf"^ *\d+\. {copy.file}:(\d+): ", said, re.MULTILINE)}
            self.assertEqual({lines[number - 1] for number in named}, set(FEATURES.splitlines()))
            copy.file.write_text("\n".join(line for number, line in enumerate(lines, 1) if number not in named))
            self.assertEqual(copy.end(), 0)
            copy.start(FORK)
            self.downgrade_check(copy, CLEAN)
            self.assertEqual(copy.end(), 0)
            self.assertFalse((copy.data / MARKER).exists())
            copy.start(STOCK)
            self.check_rows(copy, rows, rows)
            self.assertEqual(self.size(copy), PREALLOCATED)
            self.assertEqual(copy.end(), 0)


if __name__ == "__main__":
    unittest.main()
