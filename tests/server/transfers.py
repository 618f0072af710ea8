"""A server with every feature on, sessions that write while a test takes a backup or cuts the power, and what has to be
there afterwards."""

import contextlib
import threading
import unittest

from .scratch import WAIT_SECONDS, ScratchWithFile, wait_until

MIB = 1 << 20
PREALLOCATED = 64 * MIB
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
ROWS = """SELECT session, COUNT(*), MIN(n), MAX(n), SUM(a <> {content}) FROM d.{table}
GROUP BY session ORDER BY session"""


class Server(ScratchWithFile):
    """A server with the features, until set() takes them away."""

    def __enter__(self):
        super().__enter__()
        self.set(FEATURES)
        return self

    def set(self, features):
        self.file.write_text("\n".join(["[mysqld]", *ALWAYS, features]))


class Load:
    """Sessions that commit transactions one after the other. acknowledged: the last one of each; those of an earlier
    load, to go on with its rows."""

    def __init__(self, server, acknowledged=None):
        self.server = server
        self.is_first = not acknowledged
        self.acknowledged = acknowledged or dict.fromkeys(SESSIONS, 0)
        self.is_stopped = threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(number,), daemon=True) for number in SESSIONS]
        self.clients = []

    def __enter__(self):
        if self.is_first:
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


class ChecksRows(unittest.TestCase):
    """Shared methods of the tests that have such sessions."""

    def check_rows(self, server, begin, end):
        """Each session's transactions from 1 to one number are there as a whole. The number is at least that in begin,
        and at most that in end and one more, which can be under way then."""
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
