"""The identity of the server: where it names Spillway, and where upstream."""

import re
import signal
import subprocess
import unittest

from spillway.common import REPO

from .scratch import CLIENT, FORK, Scratch

VERSION = (REPO / "VERSION").read_text().strip()
# As in the error log. A base of Percona has its own comment after the comma.
COMMENT = rf"Spillway {re.escape(VERSION)} \(GPL\), (MySQL Community Server|Percona Server) ?[^)]*"


class Version(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(Scratch())
        self.server.initialise(FORK)
        self.server.start(FORK)

    def test_variables(self):
        """version_comment names Spillway and MySQL. version is upstream's number, as clients and tools expect."""
        self.assertRegex(self.server.sql("SELECT @@version_comment"), rf"^{COMMENT}$")
        self.assertRegex(self.server.sql("SELECT @@version"), r"^9\.\d+\.\d+(-\w+)?$")

    def test_programs(self):
        for program in FORK, CLIENT:
            said = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
            self.assertRegex(said, rf"Ver 9\.\d+\.\d+\S* for .* \({COMMENT}\)$")

    def test_help(self):
        """--help names the value that innodb_flush_method has more than stock's."""
        command = [FORK, "--no-defaults", "--verbose", "--help"]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        self.assertIn("O_DIRECT_NO_FSYNC or ALL_O_DIRECT", " ".join(said.split()))

    def test_error_log(self):
        """The second line of the log names Spillway, as do those that upstream ends with the comment."""
        lines = self.server.log.read_text().splitlines()
        start = next(i for i, line in enumerate(lines) if " starting as process " in line)
        self.assertRegex(lines[start + 1], rf"{COMMENT}$")
        self.assertTrue(any(re.search(rf"ready for connections.*{COMMENT}", line) for line in lines), lines)

    def test_crash(self):
        """A crash report says where to report it, and does not name upstream's bug site."""
        self.server.end(signal.SIGSEGV)
        report = self.server.log.read_text().split("mysqld got signal 11", 1)[1]
        self.assertIn(f"This is Spillway {VERSION}: BUGS.md", report)
        self.assertNotIn("bugs.mysql.com", report)

    def test_assertion(self):
        """The text of a failed assertion of InnoDB: none can be made to fail from outside."""
        self.assertIn(b"Submit a detailed bug report. This is Spillway", FORK.read_bytes())
        self.assertTrue((REPO / "BUGS.md").is_file())


if __name__ == "__main__":
    unittest.main()
