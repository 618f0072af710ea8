"""Backups of a server with every feature on, taken while sessions write: a clone, a dump, snapshots, a cold copy."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
import time
import unittest
from pathlib import Path

from spillway import filesystem
from spillway.common import child, client_command
from spillway.resources import temporary_folder

from .scratch import CLEAN, FORK, MARKER, STEPS, STOCK, WAIT_SECONDS, ScratchWithFile, wait_until

MIB = 1 << 20
DISK = "2G"
# The option file's lines. XFS writes pages by copy on write. The age threshold is so low that this load reaches it.
FEATURES = """\
innodb_ahead_flushing = ON
innodb_ahead_flushing_age_pct = 1
innodb_adaptive_flushing_method = estimate
innodb_use_atomic_writes = ON
innodb_doublewrite_fsync = ON
innodb_flush_method = ALL_O_DIRECT
innodb_use_fallocate = ON
innodb_extend_ahead_pct = 20
innodb_aio_pending_ios_per_thread = 64
innodb_stall_log_threshold_ms = 60000
"""
# Fewer asynchronous I/Os, because other tests run at the same time. Stock accepts these.
ALWAYS = ("innodb_read_io_threads = 2", "innodb_write_io_threads = 2")
PREALLOCATED = 64 * MIB
SESSIONS = range(1, 5)
# Between two transactions of a session: on a fast machine the rows still fit into the preallocated space.
PAUSE_SECONDS = 0.01
# Session 0's transactions are all there before the load. Each row is the digest of its key, repeated.
FIRST = 3000
CONTENT = "REPEAT(SHA2(CONCAT(session, ':', n), 256), 20)"
SETUP = f"""
CREATE DATABASE d;
USE d;
CREATE TABLESPACE g ADD DATAFILE 'g.ibd';
CREATE TABLE d.own (session INT, n INT, a VARCHAR(2000) NOT NULL, PRIMARY KEY (session, n)) CHARSET latin1;
CREATE TABLE d.general (session INT, n INT, a VARCHAR(2000) NOT NULL, PRIMARY KEY (session, n)) CHARSET latin1
  TABLESPACE g;
CREATE TABLE d.account (id INT PRIMARY KEY, balance BIGINT NOT NULL);
ALTER TABLESPACE g SET EXTENT_SIZE = {PREALLOCATED // MIB}M;
SET cte_max_recursion_depth = {FIRST};
INSERT INTO d.own (session, n, a) WITH RECURSIVE r (session, n) AS (SELECT 0, 1 UNION ALL
  SELECT 0, n + 1 FROM r WHERE n < {FIRST}) SELECT session, n, {CONTENT} FROM r;
INSERT INTO d.general SELECT * FROM d.own;
INSERT INTO d.account VALUES (0, -{FIRST} * ({FIRST} + 1) / 2), (-1, {FIRST} * ({FIRST} + 1) / 2);
"""
ACCOUNTS = "INSERT INTO d.account VALUES ({0}, 0), (-{0} - 1, 0);"
# Transaction n of a session: a row in both tables, and a transfer of n.
TRANSACTION = """BEGIN;
INSERT INTO d.own SELECT {0}, {1}, REPEAT(SHA2('{0}:{1}', 256), 20);
INSERT INTO d.general SELECT {0}, {1}, REPEAT(SHA2('{0}:{1}', 256), 20);
UPDATE d.account SET balance = balance - {1} WHERE id = {0};
UPDATE d.account SET balance = balance + {1} WHERE id = -{0} - 1;
COMMIT; SELECT {1};
"""
DUMP = ("--all-databases", "--single-transaction", "--source-data=2", "--routines", "--events", "--skip-add-locks")
ROWS = """SELECT session, COUNT(*), MIN(n), MAX(n), SUM(a <> {content}) FROM d.{table}
GROUP BY session ORDER BY session"""
# A storage snapshot: the image of the loop device is copied while no write to the file system is in progress. The
# file system is thawed however the script ends.
SNAPSHOT = """
trap 'fsfreeze --unfreeze "$1"' EXIT
trap 'exit 1' HUP INT TERM
fsfreeze --freeze "$1"
cp --sparse=always "$2" "$3"
"""


class Server(ScratchWithFile):
    """A server with the features, until set() takes them away."""

    def __enter__(self):
        super().__enter__()
        self.set(FEATURES)
        return self

    def set(self, features):
        self.file.write_text("\n".join(["[mysqld]", *ALWAYS, features]))


class Load:
    """Sessions that commit transactions one after the other. acknowledged: the last one of each."""

    def __init__(self, server):
        self.server = server
        self.acknowledged = dict.fromkeys(SESSIONS, 0)
        self.is_stopped = threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(number,), daemon=True) for number in SESSIONS]
        self.clients = []

    def __enter__(self):
        self.server.sql("".join(map(ACCOUNTS.format, SESSIONS)))
        for thread in self.threads:
            thread.start()
        self.wait_for_more()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Let each session end its transaction."""
        self.is_stopped.set()
        for thread in self.threads:
            thread.join(WAIT_SECONDS)
        for client in self.clients:
            client.kill()
            client.wait()
            client.stdout.close()
        self.clients.clear()

    def work(self, number):
        client = self.server.session()
        self.clients.append(client)
        with contextlib.suppress(BrokenPipeError):
            while not self.is_stopped.wait(PAUSE_SECONDS):
                n = self.acknowledged[number] + 1
                client.stdin.write(TRANSACTION.format(number, n))
                client.stdin.flush()
                if client.stdout.readline() != f"{n}\n":
                    break
                self.acknowledged[number] = n
            client.stdin.close()

    def last(self):
        """The last acknowledged transaction of each session."""
        return {0: FIRST} | self.acknowledged

    def wait_for_more(self, n=20):
        """Wait until each session has committed more transactions."""
        before = self.last()
        wait_until(lambda: all(self.last()[each] >= before[each] + n for each in SESSIONS),
                   f"the load stands still: {before}, {self.last()}")  # fmt: skip


class Backup(unittest.TestCase):
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
        self.server.sql(SETUP)

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

    def check_rows(self, server, begin, end):
        """Each session's transactions from 1 to one number are there as a whole. Those acknowledged before the backup
        began are there, and none of after it ended; one more can be under way then."""
        found = {}
        for table in "own", "general":
            self.assertEqual(server.sql(f"CHECK TABLE d.{table} EXTENDED").split()[-1], "OK")
            rows = [[*map(int, row.split())] for row in
                    server.sql(ROWS.format(content=CONTENT, table=table)).splitlines()]  # fmt: skip
            for session, count, first, last, wrong in rows:
                self.assertEqual((first, count, wrong), (1, last, 0), (table, session))
            found[table] = {row[0]: row[3] for row in rows}
        self.assertEqual(found["own"], found["general"])
        self.assertEqual(list(found["own"]), list(begin))
        for session, last in found["own"].items():
            self.assertGreaterEqual(last, begin[session], session)
            self.assertLessEqual(last, end[session] + (session != 0), session)
        self.assertEqual(server.sql("CHECK TABLE d.account EXTENDED").split()[-1], "OK")
        balances = dict(map(int, row.split()) for row in server.sql("SELECT * FROM d.account").splitlines())
        expected = {each: last * (last + 1) // 2 for each, last in found["own"].items()}
        self.assertEqual(balances, {each: -sum_ for each, sum_ in expected.items()}
                         | {-each - 1: sum_ for each, sum_ in expected.items()})  # fmt: skip
        return found["own"]

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
