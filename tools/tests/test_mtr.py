"""mtr.Tally reads mysql-test-run's output: a skipped test does not count as passed, and no failure is lost."""

import tempfile
import unittest
from pathlib import Path

import mtr


class Tally(unittest.TestCase):
    def tally(self, *lines):
        tally = mtr.Tally()
        for line in lines:
            tally.line(line + "\n")
        return tally

    def test_outcomes(self):
        tally = self.tally(
            "[ 25%] spillway.aio_depth                       w1  [ pass ]  10532",
            "[ 50%] innodb.doublewrite                       w2  [ skipped ]  Test needs debug binaries.",
            "[ 75%] innodb.monitor                           w1  [ fail ]",
            "[100%] main.disabled                                [ disabled ]   Bug#1",
        )
        self.assertEqual(tally.summary(), (1, 1, 2))
        self.assertEqual(tally.skipped["innodb.doublewrite"], "Test needs debug binaries.")
        self.assertEqual(tally.failed, {"innodb.monitor"})

    def test_a_test_in_two_combinations_fails_if_one_does(self):
        tally = self.tally(
            "[ 50%] innodb.log_crash 'mix'                   w1  [ pass ]   1",
            "[100%] innodb.log_crash 'row'                   w1  [ fail ]",
        )
        self.assertEqual(tally.summary(), (0, 1, 0))

    def test_reports_count_only_when_they_fail(self):
        self.assertEqual(self.tally("[100%] shutdown_report                  [ pass ]").summary(), (0, 0, 0))
        self.assertEqual(self.tally("[100%] shutdown_report                  [ fail ]").summary(), (0, 1, 0))
        self.assertEqual(self.tally("[100%] sanitize_report                  [ fail ]").summary(), (0, 1, 0))

    def test_a_run_that_is_aborted(self):
        self.assertIsNone(self.tally("[100%] innodb.a                                 w1  [ pass ]  1").aborted)
        self.assertEqual(self.tally("Test suite timeout! Terminating...").aborted, "Test suite timeout! Terminating...")

    def test_why_it_failed(self):
        tally = self.tally(
            "[ 25%] innodb.a                                 w1  [ fail ]",
            "        Test ended at 2026-11-23 08:00:00",
            "CURRENT_TEST: innodb.a",
            "--- /a/r/a.result",
            "+++ /a/r/a.reject",
            "@@ -1,2 +1,2 @@",
            "-1",
            "+0",
            *["+more"] * 20,
            "[ 50%] innodb.b                                 w2  [ pass ]  1",
            "mysqltest: of another's",
            "[ 75%] innodb.c                                 w1  [ fail ]",
            "mysqltest: At line 7: Timeout in wait_condition.inc",
        )
        self.assertEqual(tally.why["innodb.a"], ["-1", "+0", *["+more"] * 6])
        self.assertEqual(tally.why["innodb.c"], ["mysqltest: At line 7: Timeout in wait_condition.inc"])
        self.assertEqual(tally.why.keys(), {"innodb.a", "innodb.c"})

    def test_other_lines(self):
        self.assertEqual(self.tally("Completed: All 4 tests were successful.", "", "w1: [ pass ]").summary(), (0, 0, 0))

    def test_why_the_server_ended(self):
        tally = self.tally(
            "[100%] innodb.a                                 w1  [ fail ]",
            "Program terminated with signal SIGABRT, Aborted.",
            *[f"#{n}  0x0000 in frame_{n} ()" for n in range(20)],
            "Thread 2 (Thread 0x7f (LWP 7)):",
            *["#1  <signal handler called>"] * 10,
            "2026-11-25T20:01:00Z 0 [ERROR] [MY-013183] [InnoDB] Assertion failure: buf0buf.cc:7",
        )
        self.assertEqual(
            tally.why["innodb.a"],
            [
                "Program terminated with signal SIGABRT, Aborted.",
                *[f"#{n}  0x0000 in frame_{n} ()" for n in range(16)],
                "2026-11-25T20:01:00Z 0 [ERROR] [MY-013183] [InnoDB] Assertion failure: buf0buf.cc:7",
            ],
        )


class List(unittest.TestCase):
    def test_long(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("# a comment\n\nmain.a\ninnodb.b long # as it says\ninnodb.long # not\n")
            file.flush()
            self.assertEqual(mtr.read_list(Path(file.name), long=False), ["main.a", "innodb.long"])
            self.assertEqual(mtr.read_list(Path(file.name), long=True), ["main.a", "innodb.b", "innodb.long"])
