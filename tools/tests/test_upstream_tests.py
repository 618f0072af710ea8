"""upstream_tests.py says which of upstream's tests differ between the fork and stock."""

import unittest

import mtr
import upstream_tests
from spillway.common import Failure


def tally(passed=(), failed=(), skipped=()):
    result = mtr.Tally()
    result.passed, result.failed = set(passed), set(failed)
    result.skipped = dict.fromkeys(skipped, "no debug build")
    return result


class Differences(unittest.TestCase):
    def report(self, fork, again, stock, known=()):
        return upstream_tests.Comparison(fork, again, stock).report(dict(known))

    def test_fails_on_the_fork_alone(self):
        lines = self.report(tally(["m.a"], ["m.b"]), tally(failed=["m.b"]), tally(["m.b"]))
        self.assertEqual(lines, ["differs: m.b fails, and not on stock",
                                 "upstream: 1 passed, 0 failed on both, 1 differ, 0 unsteady, 0 skipped"])  # fmt: skip

    def test_known(self):
        lines = self.report(tally(["m.a"], ["m.b"]), tally(failed=["m.b"]), tally(["m.b"]),
                            {"m.b": "one more table", "m.a": "gone"})  # fmt: skip
        self.assertEqual(lines[:2], ["differs: m.b fails, and not on stock: known: one more table",
                                     "known to differ, and does not: m.a"])  # fmt: skip

    def test_fails_on_both(self):
        lines = self.report(tally(["m.a"], ["m.b"]), tally(failed=["m.b"]), tally(failed=["m.b"]))
        self.assertEqual(lines, ["failed on both: m.b",
                                 "upstream: 1 passed, 1 failed on both, 0 differ, 0 unsteady, 0 skipped"])  # fmt: skip

    def test_does_not_fail_again(self):
        lines = self.report(tally(["m.a"], ["m.b"]), tally(["m.b"]), tally(["m.b"]))
        self.assertEqual(lines[0], "unsteady: m.b failed on the fork, and not again")

    def test_server_that_fails_at_its_end(self):
        lines = self.report(tally(["m.a"], ["shutdown_report"]), tally(), tally())
        self.assertEqual(lines[0], "differs: shutdown_report fails, and not on stock")

    def test_not_run_again(self):
        lines = self.report(tally(["m.a"], ["m.b"]), tally(skipped=["m.b"]), tally(["m.b"]))
        self.assertEqual(lines[0], "failed on the fork, and was not run again: m.b")

    def test_skipped_on_the_fork_alone(self):
        lines = self.report(tally(["m.a"], skipped=["m.b", "m.c"]), tally(), tally(["m.b"], skipped=["m.c"]))
        self.assertEqual(lines, ["differs: m.b is skipped (no debug build), and not on stock",
                                 "upstream: 1 passed, 0 failed on both, 1 differ, 0 unsteady, 1 skipped"])  # fmt: skip

    def test_list(self):
        text = "# a list\n\nm.a  one more table # yes\n"
        self.assertEqual(upstream_tests.known_differences(text), {"m.a": "one more table"})
        with self.assertRaisesRegex(Failure, "no reason for m.b"):
            upstream_tests.known_differences("m.b\n")

    def test_the_list_is_well_formed(self):
        self.assertIn("main.mysqlshow_cs", upstream_tests.known_differences(upstream_tests.KNOWN.read_text()))
