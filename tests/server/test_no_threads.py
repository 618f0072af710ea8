"""The server continues when the limit of threads is reached."""

import unittest
from pathlib import Path

from .scratch import FORK, Scratch, temporary_folder, to_preload, wait_until

SOURCE = Path(__file__).resolve().parent / "no_threads.cc"
WAIT_SECONDS = 60


class NoThreads(unittest.TestCase):
    def started(self):
        """A server, and the file that sets its limit of threads."""
        library = to_preload(SOURCE, self.enterContext(temporary_folder()))
        scratch = self.enterContext(Scratch())
        limit = scratch.path / "limit"
        scratch.initialise(FORK)
        scratch.start(FORK, environment={"LD_PRELOAD": str(library), "NO_THREADS": str(limit)})
        return scratch, limit

    def test_data_sync(self):
        """SET GLOBAL innodb_ahead_flushing warns, and data files are synced one after the other."""
        scratch, limit = self.started()
        # A connection needs a thread, too.
        with scratch.session() as session:
            session.stdin.write("SELECT 1;\n")
            session.stdin.flush()
            session.stdout.readline()
            limit.touch()
            session.stdin.write("SET GLOBAL innodb_ahead_flushing = ON; SHOW WARNINGS;\n")
            session.stdin.flush()
            self.assertIn("Only 0 of 15 threads that sync data files could be created", session.stdout.readline())
            session.stdin.write("SET GLOBAL innodb_max_dirty_pages_pct = 0; CREATE DATABASE d;"
                                " CREATE TABLE d.t (n INT); INSERT INTO d.t VALUES (1);\n")
            session.stdin.close()
            session.wait(WAIT_SECONDS)
        limit.unlink()
        wait_until(lambda: scratch.counter("Innodb_buffer_pool_pages_dirty") == 0)
        self.assertEqual(scratch.end(), 0)

    def test_extend_ahead(self):
        """SET GLOBAL innodb_extend_ahead_pct warns, and works once the limit is gone."""
        scratch, limit = self.started()
        # A connection needs a thread, too.
        with scratch.session() as session:
            session.stdin.write("SELECT 1;\n")
            session.stdin.flush()
            session.stdout.readline()
            limit.touch()
            session.stdin.write("SET GLOBAL innodb_extend_ahead_pct = 10; SHOW WARNINGS;\n")
            session.stdin.flush()
            self.assertIn("the thread of innodb_extend_ahead_pct cannot be created", session.stdout.readline())
            limit.unlink()
            session.stdin.write("SET GLOBAL innodb_extend_ahead_pct = 11;\n"
                                "SELECT COUNT(*) FROM performance_schema.threads WHERE name LIKE '%extend_ahead%';\n")
            session.stdin.close()
            self.assertEqual(session.stdout.readline().strip(), "1")
            session.wait(WAIT_SECONDS)
