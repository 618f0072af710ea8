"""ALL_O_DIRECT holds redo in memory until its file is synced: a commit is one write, and none that is acknowledged is
lost."""

import signal
import unittest

from .scratch import FORK, REDO_FAULT, Scratch, temporary_folder, to_preload, wait_until

DIRECT = ("--innodb-flush-method=ALL_O_DIRECT", "--skip-log-bin")
SETUP = """
CREATE DATABASE d;
CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(300) NOT NULL);
DELIMITER |
CREATE PROCEDURE d.fill(n INT) BEGIN
  WHILE n > 0 DO INSERT INTO d.t (a) VALUES (REPEAT('a', 200)); SET n = n - 1; END WHILE;
END|
"""
# What each client of Scratch.load() executes.
LOAD = """DROP PROCEDURE d.fill|
CREATE PROCEDURE d.fill() BEGIN
  WHILE IS_USED_LOCK('go') IS NOT NULL DO INSERT INTO d.t (a) VALUES (REPEAT('a', 200)); END WHILE;
END|
"""
COMMITS = 300
SESSIONS = 8
LOAD_SECONDS = 60
# The exit status of mysqld after SIGABRT.
ABORTED = 2
WRITES = """SELECT SUM(count_write) FROM performance_schema.file_summary_by_event_name
  WHERE event_name = 'wait/io/file/innodb/innodb_log_file'"""
REDO_COPY = "SELECT state FROM performance_schema.clone_progress WHERE stage = 'REDO COPY'"
CLONE = "CLONE LOCAL DATA DIRECTORY = '{}'"


class RedoHeld(unittest.TestCase):
    def setUp(self):
        self.scratch = self.enterContext(Scratch("/var/tmp"))
        self.scratch.initialise(FORK)

    def start(self, *options, **how):
        self.scratch.start(FORK, *DIRECT, *options, **how)

    def count(self):
        return int(self.scratch.sql("SELECT COUNT(*) FROM d.t"))

    def is_copying_redo(self):
        """Whether a clone has all pages: what was committed before is in it."""
        return self.scratch.sql(REDO_COPY) not in ("", "Not Started")

    def writes_of_commits(self, *options):
        """Writes to the redo log for a commit of a single session."""
        self.start("--innodb-log-writer-threads=OFF", "--performance-schema-instrument=wait/io/file/innodb/%=ON",
                   *options)  # fmt: skip
        self.scratch.sql("DROP DATABASE IF EXISTS d;" + SETUP)
        before = int(self.scratch.sql(WRITES))
        self.scratch.sql(f"CALL d.fill({COMMITS})")
        n_writes = int(self.scratch.sql(WRITES)) - before
        self.assertEqual(self.scratch.end(), 0)
        return n_writes / COMMITS

    def test_a_commit_is_one_write(self):
        """The page cleaners sync the redo log once a second, too."""
        for durability in (1, 2):
            with self.subTest(durability):
                self.assertLess(self.writes_of_commits(f"--innodb-flush-log-at-trx-commit={durability}"), 1.2)

    def test_sessions_share_a_write(self):
        """With innodb_flush_log_at_trx_commit = 2, on a device whose writes take longer than a client."""
        with temporary_folder() as folder:
            environment = {"LD_PRELOAD": str(to_preload(REDO_FAULT, folder)), "REDO_WRITE_MS": "5"}
            self.start("--innodb-flush-log-at-trx-commit=2", "--performance-schema-instrument=wait/io/file/innodb/%=ON",
                       environment=environment)  # fmt: skip
            self.scratch.sql(SETUP + LOAD)
            with self.scratch.load(SESSIONS, LOAD_SECONDS):
                wait_until(lambda: self.count() > SESSIONS, "too few commits", seconds=LOAD_SECONDS)
                n_writes, n_commits = int(self.scratch.sql(WRITES)), self.count()
                wait_until(lambda: self.count() > n_commits + COMMITS, "too few commits", seconds=LOAD_SECONDS)
                n_writes = int(self.scratch.sql(WRITES)) - n_writes
                n_commits = self.count() - n_commits
            self.assertLess(n_writes / n_commits, 0.4)
            self.assertEqual(self.scratch.end(), 0)

    def test_commits_outlive_the_server(self):
        for durability in (1, 2):
            with self.subTest(durability):
                self.start(f"--innodb-flush-log-at-trx-commit={durability}")
                self.scratch.sql("DROP DATABASE IF EXISTS d;" + SETUP)
                client = self.scratch.session()
                for _ in range(COMMITS):
                    client.stdin.write("CALL d.fill(1); SELECT 1;\n")
                    client.stdin.flush()
                    self.assertEqual(client.stdout.readline(), "1\n")
                self.scratch.end(signal.SIGKILL)
                client.communicate()
                self.start()
                self.assertEqual(self.count(), COMMITS)
                self.assertEqual(self.scratch.end(), 0)

    def test_clone(self):
        """The archiver reads the redo log's files itself. No commit makes the server write or sync redo."""
        plugins = FORK.parent.parent / "plugin_output_directory"
        self.start(f"--plugin-dir={plugins}", "--plugin-load=clone=mysql_clone.so",
                   "--innodb-flush-log-at-trx-commit=0", "--innodb-flush-log-at-timeout=2000")  # fmt: skip
        self.scratch.sql(SETUP)
        # A large file, so that the archiver copies redo more than once meanwhile.
        self.scratch.sql("CREATE TABLE d.large (id INT PRIMARY KEY); ALTER TABLESPACE `d/large` SET EXTENT_SIZE = 600M")
        client = self.scratch.session()
        client.stdin.write("CALL d.fill(1000000);\n")
        client.stdin.flush()
        wait_until(lambda: self.count() > COMMITS)
        cloned = self.scratch.path / "clone"
        clone = self.scratch.session()
        clone.stdin.write(CLONE.format(cloned) + "; SELECT 'done';\n")
        clone.stdin.flush()
        committed = COMMITS
        while clone.poll() is None and not self.is_copying_redo():
            n_rows = self.count()
            if not self.is_copying_redo():
                committed = n_rows
        self.assertEqual(clone.communicate()[0], "done\n")
        self.assertGreater(committed, COMMITS)
        self.scratch.end(signal.SIGKILL)
        client.communicate()
        self.scratch.data = cloned
        self.start()
        self.assertEqual(self.scratch.sql("CHECK TABLE d.t EXTENDED").split()[-1], "OK")
        self.assertGreaterEqual(self.count(), committed)
        self.assertEqual(self.scratch.end(), 0)

    def test_a_write_that_fails_ends_the_server(self):
        with temporary_folder() as folder:
            fault = self.scratch.path / "fault"
            library = to_preload(REDO_FAULT, folder)
            self.start(environment={"LD_PRELOAD": str(library), "REDO_FAULT": str(fault)})
            self.scratch.sql(SETUP + "CALL d.fill(10)|")
            fault.touch()
            self.assertNotEqual(self.scratch.client("CALL d.fill(1)").returncode, 0)
            self.assertEqual(self.scratch.process.wait(60), ABORTED)
            fault.unlink()
        message = r"'\S+#ib_redo\d+' could not be written, \d+ bytes at \d+: Input/output error\. "
        self.assertRegex(self.scratch.log.read_text(), message)
        self.start()
        self.assertEqual(self.count(), 10)
        self.assertEqual(self.scratch.end(), 0)
