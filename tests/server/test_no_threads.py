"""The server continues when the limit of threads is reached."""

import contextlib
import unittest
from pathlib import Path

from .scratch import FORK, Scratch, temporary_folder, to_preload, wait_until

SOURCE = Path(__file__).resolve().parent / "no_threads.cc"
WAIT_SECONDS = 60


class NoThreads(unittest.TestCase):
    def setUp(self):
        library = to_preload(SOURCE, self.enterContext(temporary_folder()))
        self.scratch = self.enterContext(Scratch())
        self.limit = self.scratch.path / "limit"
        self.scratch.initialise(FORK)
        self.scratch.start(FORK, environment={"LD_PRELOAD": str(library), "NO_THREADS": str(self.limit)})

    @contextlib.contextmanager
    def limited(self, setting, warning):
        """A session that has changed a variable at the limit of threads, and got a warning."""
        # A connection needs a thread, too.
        with self.scratch.session() as session:
            session.stdin.write("SELECT 1;\n")
            session.stdin.flush()
            session.stdout.readline()
            self.limit.touch()
            session.stdin.write(f"SET GLOBAL {setting}; SHOW WARNINGS;\n")
            session.stdin.flush()
            self.assertIn(warning, session.stdout.readline())
            yield session
            session.wait(WAIT_SECONDS)

    def test_data_sync(self):
        """SET GLOBAL innodb_ahead_flushing warns, and data files are synced one after the other."""
        with self.limited("innodb_ahead_flushing = ON",
                          "Only 0 of 15 threads that sync data files could be created") as session:  # fmt: skip
            session.stdin.write("SET GLOBAL innodb_max_dirty_pages_pct = 0; CREATE DATABASE d;"
                                " CREATE TABLE d.t (n INT); INSERT INTO d.t VALUES (1);\n")
            session.stdin.close()
        self.limit.unlink()
        wait_until(lambda: self.scratch.counter("Innodb_buffer_pool_pages_dirty") == 0)
        self.assertEqual(self.scratch.end(), 0)

    def test_extend_ahead(self):
        """SET GLOBAL innodb_extend_ahead_pct warns, and works once the limit is gone."""
        with self.limited("innodb_extend_ahead_pct = 10",
                          "the thread of innodb_extend_ahead_pct cannot be created") as session:  # fmt: skip
            self.limit.unlink()
            session.stdin.write("SET GLOBAL innodb_extend_ahead_pct = 11;\n"
                                "SELECT COUNT(*) FROM performance_schema.threads WHERE name LIKE '%extend_ahead%';\n")
            session.stdin.close()
            self.assertEqual(session.stdout.readline().strip(), "1")
