"""What an UPDATE costs on the fork and on stock, in instructions: everything that is counted is counted on its way.

Instructions and not times: valgrind counts them alike on any machine, to about a tenth of a percent.
"""

import re
import shutil
import subprocess
import unittest

from scratch import FORK, STOCK, Scratch

ROWS = 1000
UPDATES = 500
# Of stock's instructions. The target is the project's, the servers differ in nothing else.
MAX_RATIO = 1.005
SERVER_OPTIONS = (
    "--thread-cache-size=0",
    "--skip-log-bin",
    "--innodb-flush-log-at-trx-commit=0",
    "--performance-schema=OFF",
    "--innodb-buffer-pool-load-at-startup=OFF",
    "--innodb-buffer-pool-dump-at-shutdown=OFF",
)
SETUP = f"""
CREATE DATABASE d;
CREATE TABLE d.t (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, KEY (k)) STATS_AUTO_RECALC=0;
SET cte_max_recursion_depth = {ROWS};
INSERT INTO d.t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
  SELECT i, i * 7919 % {ROWS}, REPEAT('c', 120) FROM n;
"""


def updates(n):
    """A script of n statements, each on another row, and of another value for the secondary index."""
    return "".join(
        f"UPDATE d.t SET k = k + {i % 17 + 1}, c = '{i * 31 % 997}' WHERE id = {i * 37 % ROWS + 1};\n" for i in range(n)
    )


@unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
class StatementCost(unittest.TestCase):
    def instructions(self, mysqld):
        """The instructions of a connection's thread for one UPDATE: what 3 x UPDATES take beyond what UPDATES take."""
        with Scratch() as scratch:
            scratch.initialise(STOCK)
            out = scratch.path / "callgrind"
            wrapper = ("valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={out}")
            scratch.start(mysqld, *SERVER_OPTIONS, wrapper=wrapper)
            scratch.sql(SETUP + updates(100))
            # All connected at once: a thread that ends gives its number, and its file, to the next.
            clients = [subprocess.Popen(scratch.client_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                       for _ in range(2)]  # fmt: skip
            for client in clients:
                client.stdin.write("SELECT 1;\n")
                client.stdin.flush()
            for client, n in zip(clients, (UPDATES, 3 * UPDATES), strict=True):
                client.communicate(updates(n))
                self.assertEqual(client.returncode, 0)
            self.assertEqual(scratch.end(), 0, scratch.log.read_text()[-3000:])

            counts = []
            for file in scratch.path.glob("callgrind*"):
                text = file.read_text(errors="replace")
                if "handle_connection" in text:
                    counts.append(int(re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE).group(1)))
            self.assertGreaterEqual(len(counts), 2, "the threads of the connections are not found")
            counts.sort()
            return (counts[-1] - counts[-2]) / (2 * UPDATES)

    def test_update(self):
        stock, fork = self.instructions(STOCK), self.instructions(FORK)
        print(f"{stock:.0f} instructions for an UPDATE on stock, {fork:.0f} on the fork: {fork / stock:.4f}")
        self.assertGreater(stock, 10000)
        self.assertLessEqual(fork, MAX_RATIO * stock)


if __name__ == "__main__":
    unittest.main()
