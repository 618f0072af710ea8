"""spillway-status on a server: what it prints, its exit status, and that a stalled server answers it.

tools/tests/test_status_report.py tests its conclusions, on recorded samples.
"""

import re
import shutil
import signal
import subprocess
import time
import unittest

from .scratch import FORK, REPO, STOCK, Scratch, wait_until

STATUS = REPO / "scripts/spillway-status"
# Its exit status.
WELL, FINDINGS, UNREADABLE = 0, 1, 2
COLUMNS = 100
CONNECTIONS = 4
LOAD_SECONDS = 120
# No page is flushed before sync flushing, so that any device stalls sessions.
STALLING = ("--innodb-redo-log-capacity=8M", "--innodb-adaptive-flushing=OFF", "--innodb-max-dirty-pages-pct-lwm=0",
            "--innodb-flush-log-at-trx-commit=0", "--skip-log-bin")  # fmt: skip
SETUP = """
CREATE DATABASE d;
CREATE TABLE d.t (id BIGINT PRIMARY KEY, a VARCHAR(4000) NOT NULL) CHARSET latin1;
DELIMITER |
CREATE PROCEDURE d.fill() BEGIN
  WHILE IS_USED_LOCK('go') IS NOT NULL DO
    INSERT INTO d.t VALUES (FLOOR(RAND() * 1e9) * 1e9 + FLOOR(RAND() * 1e9), REPEAT('a', 3000));
  END WHILE;
END|
"""
WATCHER = "SELECT id FROM information_schema.processlist WHERE user = 'root' AND id <> CONNECTION_ID()"


class StatusReport(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(Scratch("/var/tmp"))
        self.server.initialise(FORK)

    def run_status(self, *options, **how):
        return self.server.run_script(STATUS, *options, **how)

    def status(self, expected, *options, **how):
        """Run the command, and check its exit status and width. Returns what it has printed."""
        result = self.run_status(*options, **how)
        said = result.stdout + result.stderr
        self.assertEqual(result.returncode, expected, said)
        self.assertEqual(result.stderr != "", expected == UNREADABLE, said)
        for line in result.stdout.splitlines():
            self.assertLessEqual(len(line), COLUMNS, line)
        return said

    def load(self):
        """CONNECTIONS clients insert rows as fast as they can."""
        return self.server.load(CONNECTIONS, LOAD_SECONDS)

    def test_well(self):
        self.server.start(FORK)
        self.server.sql("CREATE USER limited IDENTIFIED BY 'a b'")
        connections = self.server.counter("Connections")
        said = self.status(WELL, "--seconds=3", "--plot")
        self.assertEqual(self.server.counter("Connections"), connections + 2)
        for words in ("Spillway ", "Watched for 3 s", "innodb_ahead_flushing=OFF", "innodb_redo_log_capacity=64M",
                      "AIO slots       reads 0 of ", "Sessions        1 connected",
                      "InnoDB writes well: there are no findings.", "One column is 1 second"):  # fmt: skip
            self.assertIn(words, said)
        # No privilege is needed; the password's warning is not repeated.
        self.assertNotIn("One column", self.status(WELL, "--seconds=1", "--password=a b", user="limited"))
        self.server.sql("SET GLOBAL innodb_ahead_flushing = ON")
        self.assertIn("flush rounds by trigger: ", self.status(WELL, "--seconds=2"))

    def test_all_names(self):
        """Each setting and status variable that the command asks for is there, except those of other versions."""
        self.server.start(FORK, "--innodb-ahead-flushing=ON", "--innodb-use-atomic-writes=AUTO")
        script = STATUS.read_text()
        there = self.server.sql("SHOW GLOBAL VARIABLES").lower() + self.server.sql("SHOW GLOBAL STATUS").lower()
        there = {line.split("\t")[0].removeprefix("innodb_") for line in there.splitlines()}
        asked = re.findall(r"\b(?:setting|number|short|present|is_on|now|grew)\(\"(\w+)\"\)", script)
        asked += re.findall(r"\b(?:status|grew_at)\(i, \"(\w+)\"\)", script)
        self.assertGreater(len(set(asked)), 40)
        self.assertEqual({name for name in asked if name not in there and not name.startswith("stall_")}, set())
        self.assertNotIn("not known", self.status(WELL, "--seconds=1"))

    def test_stall(self):
        """The load stalls until the command says so; a record gives the same report."""
        self.server.start(FORK, *STALLING)
        self.server.sql(SETUP)
        record = self.server.path / "record"
        with self.load():
            wait_until(lambda: self.server.counter("Innodb_stall_sync_flush_count") > 0, "no sync flushing")
            watch = "--seconds=3", f"--record={record}"
            wait_until(lambda: self.run_status(*watch).returncode == FINDINGS, "no finding")
        said = subprocess.run([STATUS, f"--read={record}"], capture_output=True, text=True, check=False).stdout
        self.assertRegex(said, r"Redo space (ran|was about to run) out: ")
        self.assertIn("SET GLOBAL innodb_ahead_flushing = ON;", said)
        self.assertRegex(said, r"pages by cause: .*sync \d+ %")

    def test_row_locks(self):
        self.server.start(FORK)
        self.server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, a INT); INSERT INTO d.t SELECT 1, 1")
        sessions = [self.server.session() for _ in range(3)]
        for session in sessions:
            session.stdin.write("BEGIN; UPDATE d.t SET a = a + 1; SELECT 1;\n")
            session.stdin.flush()
        wait_until(lambda: self.server.counter("Innodb_row_lock_current_waits") == 2, "no waits for row locks")
        said = self.status(FINDINGS, "--seconds=2")
        self.assertIn("2 waiting for row locks", said)
        self.assertIn("2 sessions waited for row locks", said)
        for session in sessions:
            session.stdin.write("ROLLBACK;\n")
            session.stdin.close()
        for session in sessions:
            session.wait(60)
            session.stdout.close()

    def cut_short(self, end, expected, *options):
        """Watch for a while, then do what ends the watch. Returns the errors."""
        with self.server.start_script(STATUS, "--seconds=60", *options) as process:
            wait_until(lambda: self.server.sql(WATCHER), "no connection")
            watcher = self.server.sql(WATCHER)
            time.sleep(2.5)
            end(process, watcher)
            said, error = process.communicate(timeout=30)
        self.assertEqual(process.returncode, UNREADABLE, said + error)
        self.assertRegex(said, rf"\nIncomplete: {expected}, after [23] of 60 s\.\n")
        self.assertNotIn("writes well", said)
        return error

    def test_watch_that_ends(self):
        """A connection, an interrupted command, a server that hangs, and one that is killed."""
        self.server.start(FORK)
        record = self.server.path / "record"
        error = self.cut_short(lambda _, watcher: self.server.sql(f"KILL {watcher}"), "the connection was lost",
                               f"--record={record}")  # fmt: skip
        self.assertRegex(error, "the report is incomplete: the connection was lost: ERROR ")
        self.assertGreaterEqual(record.read_text().count("#done"), 3)
        self.cut_short(lambda process, _: process.send_signal(signal.SIGINT), "interrupted")
        self.cut_short(lambda *_: self.server.process.send_signal(signal.SIGSTOP), "the server did not answer for 10 s")
        self.assertIn("The server does not answer: see", self.status(UNREADABLE, "--seconds=1"))
        self.server.process.send_signal(signal.SIGCONT)
        wait_until(lambda: not self.server.sql(WATCHER), "connections remain")
        self.cut_short(lambda *_: self.server.end(signal.SIGKILL), "the connection was lost")

    def test_limits_of_rows(self):
        self.server.start(FORK)
        self.server.sql("SET GLOBAL sql_select_limit = 1")
        self.status(WELL, "--seconds=1", "--safe-updates", "--select-limit=1")

    def test_all_connections_are_in_use(self):
        self.server.start(FORK, "--max-connections=1")
        self.server.sql("CREATE USER limited")
        with self.server.session() as session:
            wait_until(lambda: self.server.counter("Threads_connected") == 2, "no session")
            said = self.status(UNREADABLE, user="limited")
            session.communicate("")
        self.assertIn("use an account with CONNECTION_ADMIN", said)

    def test_refused(self):
        self.assertIn("Can't connect", self.status(UNREADABLE, "--seconds=1"))
        self.server.start(FORK)
        self.assertIn("another format", self.status(UNREADABLE, "--seconds=1", "--table"))
        self.assertIn("unknown option", self.status(UNREADABLE, "--no-such-option"))
        self.assertIn("Access denied", self.status(UNREADABLE, "--seconds=1", user="nobody"))
        self.assertIn("cannot be written", self.status(UNREADABLE, "--record=/no/such/file"))
        self.assertIn("'/dev/full' is incomplete", self.status(UNREADABLE, "--seconds=1", "--record=/dev/full"))
        if STOCK.exists():
            self.assertEqual(self.server.end(), 0)
            self.server.start(STOCK)
            self.assertIn("not Spillway", self.status(UNREADABLE))

    def test_installed(self):
        """The command uses the client beside it. It says so if there is none."""
        installed = self.server.path / "bin"
        installed.mkdir()
        program = shutil.copy(STATUS, installed)
        self.server.start(FORK)
        if not shutil.which("mysql"):
            said = self.server.run_script(program, folders=()).stderr
            self.assertIn("the program 'mysql' is neither beside this script", said)
        (installed / "mysql").symlink_to(FORK.parent / "mysql")
        result = self.server.run_script(program, "--seconds=1", folders=())
        self.assertEqual(result.returncode, WELL, result.stderr)


if __name__ == "__main__":
    unittest.main()
