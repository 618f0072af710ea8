#!/usr/bin/env python3
"""Run upstream's tests on the fork, and report what differs from stock.

    upstream_tests.py [--flavor release|debug] [--results FILE] [ARGUMENT...]

ARGUMENTs go to mysql-test-run, as for mtr.py: --suite=innodb, or names of tests. What fails on the fork runs again
there and on stock; what is skipped runs on stock. --results appends the outcome to a file. Differences that are known,
with the reason, are in mysql-test/upstream-differences.list. The last line is
'upstream: N passed, N failed on both, N differ, N unsteady, N skipped'; the status is 1 if a difference is not known.
"""

import argparse
import sys
import time
from pathlib import Path

import mtr
from spillway import resources
from spillway.common import BUILD, REPO, Failure, main, say

KNOWN = REPO / "mysql-test/upstream-differences.list"
SUITES = "--suite=innodb,innodb_undo,innodb_zip,innodb_fts,sys_vars,main"


def known_differences(text):
    """The reasons, by test, in the text of a list: a test and its reason a line."""
    lines = [line.split("#")[0].split(None, 1) for line in text.splitlines()]
    if short := [line[0] for line in lines if len(line) == 1]:
        raise Failure(f"{KNOWN.name} has no reason for {', '.join(short)}")
    return {test: reason.strip() for test, reason in filter(None, lines)}


class Comparison:
    """What differs. fork, again: the Tally of all tests, and of those that failed; stock: of those that failed and of
    those that were skipped."""

    def __init__(self, fork, again, stock):
        # A report fails if a server did at its end. It is not a test that can run again.
        failed = fork.failed & (again.failed | set(mtr.REPORTS))
        self.failed_on_both = failed & stock.failed
        self.differ = {test: "fails, and not on stock" for test in failed - stock.failed}
        self.differ |= {test: f"is skipped ({why}), and not on stock" for test, why in fork.skipped.items()
                        if test in stock.passed | stock.failed}  # fmt: skip
        self.unsteady = fork.failed & again.passed - again.failed
        self.not_repeated = fork.failed - failed - self.unsteady
        self.passed = fork.passed - fork.failed
        self.skipped = fork.skipped.keys() - self.differ.keys()

    def report(self, known):
        """The lines to print; the last one is the summary."""
        lines = [f"differs: {test} {how}" + (f": known: {known[test]}" if test in known else "")
                 for test, how in sorted(self.differ.items())]  # fmt: skip
        lines += [f"unsteady: {test} failed on the fork, and not again" for test in sorted(self.unsteady)]
        lines += [f"failed on the fork, and was not run again: {test}" for test in sorted(self.not_repeated)]
        lines += [f"failed on both: {test}" for test in sorted(self.failed_on_both)]
        lines += [f"known to differ, and does not: {test}" for test in sorted(known.keys() & self.passed)]
        counts = (f"{len(group)} {name}" for group, name in (
            (self.passed, "passed"), (self.failed_on_both, "failed on both"), (self.differ, "differ"),
            (self.unsteady, "unsteady"), (self.skipped, "skipped")))  # fmt: skip
        return [*lines, f"upstream: {', '.join(counts)}"]


def run_tests(build, arguments, tests):
    """The Tally of these tests. Options of mysql-test-run among the arguments apply; suites do not."""
    if not tests:
        return mtr.Tally()
    options = [argument for argument in arguments if argument.startswith("--") and not argument.startswith("--suite")]
    say(f"{len(tests)} tests on {build}")
    return mtr.run_mtr(build, [*options, *sorted(tests)], log=BUILD / f"upstream-tests-{build.replace('/', '-')}.log")


def run():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flavor", choices=["release", "debug"], default="release")
    parser.add_argument("--results", type=Path, metavar="FILE")
    options, arguments = parser.parse_known_args()
    resources.keep_mounts_private()
    known = known_differences(KNOWN.read_text())
    fork_build, stock_build = (f"{tree}/{options.flavor}" for tree in ("fork", "stock"))
    if all(argument.startswith("--") and not argument.startswith("--suite") for argument in arguments):
        arguments.append(SUITES)
    fork = mtr.run_mtr(fork_build, arguments, log=BUILD / "upstream-tests.log")
    failed = fork.failed - set(mtr.REPORTS)
    comparison = Comparison(
        fork,
        run_tests(fork_build, arguments, failed),
        run_tests(stock_build, arguments, failed | fork.skipped.keys()),
    )
    lines = comparison.report(known)
    print("\n".join(lines))
    if options.results:
        with open(options.results, "a") as file:
            file.write(f"{time.strftime('%Y-%m-%d')} {fork_build} {' '.join(arguments)}\n" + "\n".join(lines) + "\n\n")
    if not comparison.passed:
        raise Failure("no test passed")
    if new := sorted((comparison.differ.keys() | comparison.not_repeated) - known.keys()):
        raise Failure(f"differences that are not known: {', '.join(new)}")


if __name__ == "__main__":
    sys.exit(main(run))
