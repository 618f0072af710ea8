"""The server continues when the limit of threads is reached."""

import unittest
from pathlib import Path

from .scratch import FORK, Scratch, temporary_folder, to_preload

SOURCE = Path(__file__).resolve().parent / "no_threads.cc"
WAIT_SECONDS = 60


class NoThreads(unittest.TestCase):
    def test_extend_ahead(self):
        """SET GLOBAL innodb_extend_ahead_pct warns, and works once the limit is gone."""
        library = to_preload(SOURCE, self.enterContext(temporary_folder()))
        scratch = self.enterContext(Scratch())
        limit = scratch.path / "limit"
        scratch.initialise(FORK)
        scratch.start(FORK, environment={"LD_PRELOAD": str(library), "NO_THREADS": str(limit)})
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
