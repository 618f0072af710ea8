#!/usr/bin/env python3
"""Take out each rule of ahead flushing and of the write throttle, one at a time: a unit test has to fail.

    ablation.py [CONSTANT...]     all that unittest/ablation.toml has, or these"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from spillway.common import BUILD, REPO, Failure, main, say

TABLE = REPO / "unittest/ablation.toml"
INNOBASE = REPO / "storage/innobase"
ROOMS = ("flush", "throttle")
CONSTANT = re.compile(r"^ *(?:static )?constexpr \w+(?: \w+)? ([A-Z]\w*)(?:\{| =)", re.MULTILINE)
# What the unit tests are built from.
SOURCES = ("CMakeLists.txt", "bench/disk", "cmake", "powercut", "storage/innobase", "unittest")
# The simulations take minutes, and run only where no other test has failed.
QUICK, SIMULATIONS = "Flush*:AheadFlush*:*Dirty*:Throttle*:*Method*:*Util*:-FlushSimulation.*", "FlushSimulation.*"


def read_table():
    """The rules and the other constants: {header: {constant: value}}, {constant}."""
    table = tomllib.loads(TABLE.read_text())
    return table, set(table.pop("exempt")["names"])


def policy_constants():
    """The constants in the headers of the policies: {header: [constant]}."""
    headers = sorted(path for room in ROOMS for path in (INNOBASE / room / "policy").glob("*.h"))
    return {str(path.relative_to(INNOBASE)): CONSTANT.findall(path.read_text()) for path in headers}


def ablated(text, constant, value):
    """The text of a header with another value of a constant."""
    changed, n = re.subn(rf"(constexpr [\w ]+ {constant} =)[^;]+;", rf"\1 {value};", text)
    if n != 1:
        raise Failure(f"{TABLE}: {constant} is defined {n} times")
    return changed


def run(*command, cwd=None):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


class Tests:
    """The unit tests in a copy of the sources."""

    def __init__(self, folder):
        self.tree, self.build = folder / "tree", folder / "build"
        for name in SOURCES:
            source = REPO / name
            if source.is_dir():
                shutil.copytree(source, self.tree / name)
            else:
                self.tree.mkdir(exist_ok=True)
                shutil.copy(source, self.tree / name)
        result = run("cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja", "-DSPILLWAY_TREE=none")
        if result.returncode != 0:
            raise Failure(f"the tests could not be configured: {result.stderr}")

    def failing(self):
        """The tests that fail, or [] if all pass."""
        result = run("cmake", "--build", self.build, "--target", "policy_tests")
        if result.returncode != 0:
            raise Failure(f"the tests could not be built: {result.stdout[-2000:]}")
        for tests in (QUICK, SIMULATIONS):
            result = run(self.build / "unittest/policy_tests", "--gtest_brief=1", f"--gtest_filter={tests}")
            if result.returncode != 0:
                return sorted(set(re.findall(r"\[  FAILED  \] (\w+\.\w+) ", result.stdout))) or ["no test: it crashed"]
        return []

    def failing_without(self, header, constant, value):
        path = self.tree / "storage/innobase" / header
        text = path.read_text()
        path.write_text(ablated(text, constant, value))
        try:
            return self.failing()
        finally:
            path.write_text(text)


def ablate():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("constants", nargs="*", metavar="CONSTANT")
    wanted = parser.parse_args().constants
    rules, _ = read_table()
    chosen = [(header, name, value) for header, values in rules.items() for name, value in values.items()
              if not wanted or name in wanted]  # fmt: skip
    if missing := set(wanted) - {name for _, name, _ in chosen}:
        raise Failure(f"{TABLE} has no {', '.join(sorted(missing))}")
    BUILD.mkdir(exist_ok=True)
    unseen = []
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="ablation-") as folder:
        tests = Tests(Path(folder))
        if failing := tests.failing():
            raise Failure(f"these fail with all rules: {', '.join(failing)}")
        for header, name, value in chosen:
            failing = tests.failing_without(header, name, value)
            say(f"{name} = {value}: {', '.join(failing) or 'NO TEST FAILS'}")
            if not failing:
                unseen.append(name)
    if unseen:
        raise Failure(f"no test fails without {', '.join(unseen)}")


if __name__ == "__main__":
    sys.exit(main(ablate))
