"""Programs that read SHOW ENGINE INNODB STATUS extract from the fork's text what they extract from stock's.

Their ways of reading are imitated in monitor_parsers.py. What a program extracts must not change when the lines that
are not upstream's are taken out. If this fails for a new line: some programs know no sections, so no line of ours may
begin like one of upstream's ("Pages read", "Log sequence number") or contain what they look for ("lock struct(s)").
"""

import contextlib
import re
import time
import unittest

from . import monitor_parsers as parsers
from .monitor_parsers import END, PARSERS, Unreadable
from .scratch import FORK, STOCK, Scratch, wait_until

LOADS = 4
ROWS = 400
SETUP = f"""
CREATE DATABASE d;
CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(4000) NOT NULL) CHARSET latin1;
CREATE TABLE d.parent (id INT PRIMARY KEY);
CREATE TABLE d.child (id INT, FOREIGN KEY (id) REFERENCES d.parent (id));
CREATE TABLESPACE s ADD DATAFILE 's.ibd';
CREATE TABLE d.k (id INT PRIMARY KEY, v INT NOT NULL) TABLESPACE s;
INSERT INTO d.k VALUES (1, 0), (2, 0);
DELIMITER |
CREATE PROCEDURE d.fill() BEGIN
  DECLARE i INT DEFAULT 0;
  WHILE i < {ROWS} DO INSERT INTO d.t (a) VALUES (REPEAT('a', 3000)); SET i = i + 1; END WHILE;
END|
CREATE PROCEDURE d.change(row_id INT) BEGIN
  DECLARE CONTINUE HANDLER FOR 1213 BEGIN END;
  UPDATE d.k SET v = v + 1 WHERE id = row_id;
END|
"""
STATUS = "SHOW ENGINE INNODB STATUS"
LOCK_WAITS = "SELECT COUNT(*) FROM performance_schema.data_lock_waits"
# Stock prints errors of foreign keys only with native ones. innodb_status_output_locks is OFF, as by default: with it,
# Munin 2.0 stops at stock's lines of a transaction that waits.
OPTIONS = ("--innodb-lock-wait-timeout=600", "--innodb-native-foreign-keys=ON")
# The redo log is small, so that sessions wait for space in it.
ALL_ON = ("--innodb-ahead-flushing=ON", "--innodb-use-atomic-writes=AUTO", "--innodb-redo-log-capacity=8M")
# How each kind of line that all features print begins.
PRINTED = (
    "AIO reads: ",
    "AIO writes: ",
    "Checkpoint age ",
    "Flushed  ",
    "Flush rounds by trigger ",
    "Oldest page age ",
    "Ahead flushing: ",
    "Device write capacity ",
    "Write throttle: ",
    "Torn-page protection ",
    "Doublewrite buffer: ",
    "  'mysql.ibd': ",
    "Stalls ",
    "Stalls up to ",
    "Data files extended ",
)
HEADING = "Flushing and stalls"
DASHES = "-" * 28
# These would read a line of upstream's form among ours, or would stop at it. The others read other sections only, or
# take the first line that matches.
SEES_ALL_LINES = (
    parsers.cacti,
    parsers.collectd_python,
    parsers.datadog,
    parsers.mackerel,
    parsers.munin_new,
    parsers.mysqld_exporter,
    parsers.nagios,
    parsers.netdata,
    parsers.netdata_deadlock,
    parsers.pt_mysql_summary,
    parsers.pt_sift,
)


def parts(text):
    """The fork's text in three parts: to the heading of our lines, our lines, the rest."""
    before, heading, after = text.partition(f"\n{HEADING}\n")
    ours, dashes, end = after.rpartition(f"\n{DASHES}\n{END}\n")
    if not heading or not dashes:
        raise AssertionError(f"no line {HEADING!r}, or nothing below it:\n{text}")
    return f"{before}\n", f"{heading[1:]}{ours}\n", f"{dashes[1:]}{end}"


def without_ours(text):
    before, _, end = parts(text)
    return re.sub("^AIO (?:reads|writes): .*\n", "", before, flags=re.M) + end


def outcome(parser, text):
    """What the parser extracts, or how it fails."""
    try:
        return parser(text)
    except Unreadable as unreadable:
        return str(unreadable)


def do(session, statement):
    """Send a statement and wait until it has ended."""
    session.stdin.write(f"{statement}; SELECT 'done';\n")
    session.stdin.flush()
    while session.stdout.readline() != "done\n":
        pass


def send(session, statement):
    session.stdin.write(f"{statement};\n")
    session.stdin.flush()


@contextlib.contextmanager
def locks(server):
    """An error of a foreign key, a deadlock, and as long as the context lasts a transaction that waits for another."""
    server.client("INSERT INTO d.child VALUES (1)")
    sessions = [server.session() for _ in range(3)]
    try:
        for row, session in enumerate(sessions[:2], start=1):
            do(session, f"BEGIN; CALL d.change({row})")
        send(sessions[0], "CALL d.change(2)")
        wait_until(lambda: server.sql(LOCK_WAITS) != "0", "no lock wait")
        do(sessions[1], "CALL d.change(1)")
        send(sessions[2], "UPDATE d.k SET v = v + 1")
        wait_until(lambda: server.sql(LOCK_WAITS) != "0", "no lock wait")
        yield
    finally:
        for session in sessions:
            session.communicate()


class MonitorParsers(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(Scratch())

    def text(self):
        _, _, text = self.server.sql(STATUS).split("\t")
        return text.replace("\\n", "\n")

    def quiet_text(self):
        """A text without the lines of threads that wait for a latch and of pending I/O, which are there by chance."""
        texts = []

        def is_quiet():
            texts.append(self.text())
            return not any(line in texts[-1] for line in (" has waited at ", " pending preads, "))

        wait_until(is_quiet, "threads wait for latches or I/O is pending")
        return texts[-1]

    def run_server(self, mysqld, *options):
        """Start a server, and return its text during a load and after it."""
        self.server.start(mysqld, *OPTIONS, *options)
        if self.server.sql("SHOW DATABASES LIKE 'd'") == "":
            self.server.sql(SETUP)
        loaded = []
        with locks(self.server):
            loads = [self.server.session() for _ in range(LOADS)]
            for load in loads:
                send(load, "CALL d.fill()")
                load.stdin.close()
            while any(load.poll() is None for load in loads):
                loaded.append(self.text())
                time.sleep(0.5)
            for load in loads:
                load.stdout.close()
            quiet = self.quiet_text()
            if "--innodb-ahead-flushing=ON" in options:
                self.server.sql("SET GLOBAL innodb_flush_sync = OFF")
                loaded.append(self.text())
        self.assertEqual(self.server.end(), 0)
        return loaded, quiet

    def check(self, text):
        """No parser takes anything from our lines."""
        upstreams = without_ours(text)
        for parser in PARSERS:
            with self.subTest(parser.__name__):
                self.assertEqual(outcome(parser, text), parser(upstreams), text)

    def check_kinds(self, text, stock):
        """Each parser extracts what it extracts from stock's text, in as many places of it."""
        for parser in PARSERS:
            with self.subTest(parser.__name__):
                found, of_stock = parser(text), parser(stock)
                self.assertEqual(found.keys(), of_stock.keys())
                self.assertNotEqual(found, {})

    def check_values(self, text):
        rows = parsers.cacti(text)["Number of rows inserted"]
        self.assertEqual(len(rows), 1)
        self.assertGreaterEqual(rows[0][0], LOADS * ROWS)
        lsn = parsers.pt_mysql_summary(text)
        self.assertGreaterEqual(lsn["Log sequence number"], lsn["Last checkpoint at"])
        self.assertEqual(parsers.nagios(text)["lock waits"], 1)

    def check_that_the_check_can_fail(self, text):
        before, ours, end = parts(text)
        section = f"-------------------\nFLUSHING AND STALLS\n-------------------\n{ours}"
        self.assertIn("FLUSHING AND STALLS", outcome(parsers.munin, before + section + end))
        self.assertIn("not complete", outcome(parsers.innotop, before + end + ours))
        # Upstream's lines with other numbers, but no headings.
        upstreams = (line for line in before.splitlines() if not re.fullmatch("[A-Z/ =-]*", line))
        others = "".join(re.sub(r"\d+", "777", line) + "\n" for line in upstreams)
        for parser in PARSERS:
            with self.subTest(parser.__name__):
                reads = outcome(parser, before + ours + others + end) != parser(text)
                self.assertEqual(reads, parser in SEES_ALL_LINES)

    def test_parsers_skip_our_lines(self):
        first = STOCK if STOCK.exists() else FORK
        self.server.initialise(first)
        stock = self.run_server(STOCK)[1] if first == STOCK else None
        for options in ((), ALL_ON):
            loaded, quiet = self.run_server(FORK, *options)
            for text in (*loaded, quiet):
                self.check(text)
            self.check_kinds(quiet, stock or without_ours(quiet))
            self.check_values(quiet)
        for begin in PRINTED:
            self.assertTrue(any(f"\n{begin}" in text for text in loaded), f"no line {begin!r}")
        self.check_that_the_check_can_fail(quiet)
