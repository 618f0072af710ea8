#!/usr/bin/env python3
"""Run the tests, and print how long each part took.

    runtests.py check    lint, policy tests, and the tests of the tools, the benchmarks and the power-cut storage; no
                         server
    runtests.py all      check, the builds of fork and stock, the AIO arrays, our mtr suites, upstream's tests near the
                         patched code, the server tests, tests of atomic writes by a file system's journal, power cuts,
                         the benchmarks' workloads and some tests of their runner. If the compiler cache made the
                         builds fast, also a debug build and the tests that need one
    runtests.py debug    our mtr suites, upstream's tests and the server tests of torn pages, on the debug build, which
                         has to be there
    runtests.py bench    all tests of the benchmarks on servers
    runtests.py package  the packages of the deploy build, or of SPILLWAY_PACKAGE_BUILD=, in fresh roots of Debian; as
                         root, with Debian's packages from the network
    runtests.py asan     our mtr suites and the server tests of torn pages, on the build with AddressSanitizer, which
                         has to be there

--list prints the parts of a set, and --only REGEX runs those whose names match.

The last line is 'N passed, N failed, N skipped'. A part that ends in an error counts as one failed test. Logs are in
build/test-logs/.
"""

import argparse
import concurrent.futures
import contextlib
import io
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
import unittest
from pathlib import Path

import aio_bench
import documents
import mtr
import places
import rooms
import upstream
from spillway import resources
from spillway.common import BUILD, REPO, Failure, Skip, child, main, take_signals, write_atomically

LOGS = BUILD / "test-logs"
TOOLS = REPO / "tools"
VENV = BUILD / "venv"
PYTHON_LINTERS = {"ruff": "0.14.5", "pylint": "4.1.4"}
# What ruff, which reads each file alone, cannot see: names that another module or class lost.
PYLINT_CHECKS = "no-member,no-name-in-module,unexpected-keyword-arg,too-many-function-args"
CLANG_FORMAT = "clang-format-15"

# CI has to end within 80 minutes with a cold compiler cache. The debug build begins only within this time after the
# start: the release build then came from the cache.
DEBUG_BUILD_BEGINS_WITHIN_SECONDS = 34 * 60
START = time.monotonic()
# The tests of our suite that CI runs with InnoDB's assertions: pages through all AIO arrays, crash and recovery, and
# those that need a debug build. Patterns of their names.
DEBUG_TESTS = ["add_index_rollback", "aio_recovery", "aio_status", "doublewrite_encrypted", "extent_size_busy",
               "extent_size_clone*", "extent_size_context", "extent_size_crash", "extent_size_fulltext",
               "extent_size_invalid", "extent_size_kinds", "extent_size_names", "extent_size_privilege",
               "extent_size_progress", "extent_size_rows", "extent_size_step_*", "extent_size_sync",
               "extent_size_units", "extent_size_wait_*", "ahead_flush_ddl", "ahead_flush_delay_*",
               "ahead_flush_stale"]  # fmt: skip
SERVER_TEST_JOBS = 2 * os.cpu_count()
# The benchmark tests that CI runs: each workload with its check, a run with its report, a server that dies in a run,
# two servers on a device. Only a change to the runner can break the others: make test-bench.
BENCH_TESTS = [
    "tests.bench.test_runner.Runner.test_run_report_and_again",
    "tests.bench.test_runner.Runner.test_server_that_dies",
    "tests.bench.test_runner.Runner.test_two_servers_on_a_device",
    "tests.bench.test_workloads.Workloads.test_each",
    "tests.bench.test_workloads.Workloads.test_wrong_data",
]


# The variables that are kept from the environment. Another one could make a tool test something else, or nothing.
KEPT = re.compile(r"PATH|HOME|USER|LOGNAME|SHELL|TERM|TZ|LANG|LC_\w+|TMPDIR|XDG_\w+"
                  r"|SPILLWAY_(UPSTREAM|PACKAGES|PACKAGE_BUILD)|CCACHE_(DIR|MAXSIZE)|(\w+_proxy|\w+_PROXY)|PIP_\w+|SSL_CERT_\w+|\w+_CA_BUNDLE|SUDO_\w+"
                  r"|DEBIAN_FRONTEND|PYENV_\w+")  # fmt: skip
# Make sets these; dropping them is not reported.
MAKES_OWN = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")


def clear_environment():
    dropped = [name for name in os.environ if not KEPT.fullmatch(name)]
    for name in dropped:
        del os.environ[name]
    if named := sorted(set(dropped) - set(MAKES_OWN)):
        print(f"not taken from the environment: {', '.join(named)}")


def run_logged(name, *command, cwd=REPO, **environment):
    """Run a command with its output in build/test-logs/<name>.log; return the output."""
    log = LOGS / f"{name}.log"
    with open(log, "w") as file, child(command, cwd=cwd, stdout=file, stderr=subprocess.STDOUT,
                                       env=os.environ | environment) as process:  # fmt: skip
        status = process.wait()
    output = log.read_text(errors="replace")
    if status != 0:
        tail = "\n".join(output.splitlines()[-25:])
        raise Failure(f"{' '.join(map(str, command[:4]))} ... ended with status {status}; {log}:\n{tail}")
    return output


def tracked(*patterns):
    """Our files, tracked or new, without links to folders; patterns as for git ls-files. Fails if there is none: a lint
    would check nothing."""
    # git accepts a checkout of another owner.
    git = ["git", "-c", f"safe.directory={REPO}", "ls-files", "-z", "-co", "--exclude-standard", "--", *patterns]
    result = subprocess.run(git, cwd=REPO, capture_output=True, text=True, check=False)
    files = [name for name in result.stdout.split("\0") if name and (REPO / name).is_file()]
    if result.returncode != 0 or not files:
        raise Failure(f"git lists no files {' '.join(patterns)} of {REPO}: {result.stderr.strip()}")
    return files


def lint_patches():
    run_logged("lint-patches", TOOLS / "patchqueue.py", "lint")


def lint_shell():
    scripts = [name for name in tracked() if Path(name).suffix in ("", ".sh") and is_shell(REPO / name)]
    run_logged("lint-shell", "shellcheck", "--norc", *scripts)


def is_shell(path):
    with open(path, "rb") as file:
        return file.readline().startswith((b"#!/usr/bin/env bash", b"#!/bin/sh", b"#!/bin/bash"))


def lint_python():
    if not all((VENV / "bin" / name).exists() for name in PYTHON_LINTERS):
        wanted = [f"{name}=={version}" for name, version in PYTHON_LINTERS.items()]
        shutil.rmtree(VENV, ignore_errors=True)
        try:
            run_logged("lint-venv", sys.executable, "-m", "venv", VENV)
            run_logged("lint-venv", VENV / "bin/pip", "install", "--quiet", *wanted)
        except Failure as failure:
            shutil.rmtree(VENV, ignore_errors=True)
            raise Skip(f"{' and '.join(wanted)} cannot be installed here: {str(failure).splitlines()[-1]}") from failure
    sources = tracked("*.py")
    run_logged("lint-python", VENV / "bin/ruff", "check", "--no-cache", *sources)
    pylint = [VENV / "bin/pylint", "--jobs=0", "--score=no", "--persistent=no", "--disable=all"]
    # tools/ is where our package is.
    run_logged("lint-names", *pylint, f"--enable={PYLINT_CHECKS}", *sources, PYTHONPATH=str(TOOLS))


def lint_format():
    sources = [name for name in tracked("*.cc", "*.h")]
    run_logged("lint-format", CLANG_FORMAT, "--dry-run", "--Werror", *sources)


def fail_on(problems):
    """Fail if problems, an iterator, has a text."""
    if found := list(problems):
        raise Failure("\n".join(found))


def lint_places():
    fail_on(places.forgotten())


def lint_policy():
    """Each policy file compiles alone, without InnoDB's headers: it includes the standard library and our files."""
    compiler = ["g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c++"]
    for name in tracked("storage/innobase/*/policy/*"):
        run_logged("lint-policy", *compiler, "-I", REPO / "storage/innobase", name)


def lint_links():
    fail_on(documents.dead_links(tracked("*.md")))


def lint_words():
    """One thing has one word, and sentences are short."""
    pages = tracked("*.md")
    sources = tracked("patches/*.patch", "sql/*", "storage/innobase/*")
    fail_on([*documents.wrong_words([*pages, *sources]), *documents.long_sentences(pages)])


def lint_rooms():
    fail_on(rooms.problems())


def single(test):
    """A part with a single test."""

    def part():
        test()
        return 1, 0, 0

    return part


def policy_tests():
    if not (BUILD / "super/policy/unittest/policy_tests").exists():
        print("   the first time they are compiled: a minute or two", flush=True)
    run_logged("policy-build", TOOLS / "build.py", "policy")
    # The tests of the probe examine the file system of TMPDIR; /tmp can be in memory.
    folder = BUILD / "super/policy/temporary"
    folder.mkdir(exist_ok=True)
    output = run_logged("policy-tests", BUILD / "super/policy/unittest/policy_tests", TMPDIR=str(folder))
    skipped = re.findall(r"^\[  SKIPPED \] (\S+) \(", output, re.MULTILINE)
    say_skipped([(test, f"see {LOGS}/policy-tests.log") for test in skipped])
    return int(re.search(r"^\[  PASSED  \] (\d+) test", output, re.MULTILINE).group(1)), 0, len(skipped)


def flush_simulation():
    """Each device with each server, as `make flush-simulation`, for a shorter time."""
    output = run_logged("flush-simulation", TOOLS / "flush_simulation.py", "--seconds", "60")
    rows = [line.split() for line in output.splitlines() if line.split()[1:2] in (["upstream"], ["ahead"])]
    if len(rows) != 10 or not all(float(row[2]) > 0.0 for row in rows):
        raise Failure(f"flush_simulation.py has not printed five devices with two servers:\n{output}")


def discover(folder, names):
    """The tests in a folder; names: only these."""
    loader = unittest.TestLoader()
    suite = loader.discover(str(folder), top_level_dir=str(REPO))
    return loader.loadTestsFromNames(names) if names else suite


def tests_of(suite):
    """The tests of a suite as a list."""
    return [test for part in suite for test in (tests_of(part) if isinstance(part, unittest.TestSuite) else [part])]


def run_python_tests(folder, names=None):
    """Run tests with unittest. Returns the number passed, the failed (test, traceback) and the skipped (test, why)."""
    text = io.StringIO()
    result = unittest.TextTestRunner(stream=text, verbosity=1, buffer=True).run(discover(folder, names))
    if not result.wasSuccessful():
        print(text.getvalue(), flush=True)
    unexpected = [(test, "unexpected success") for test in result.unexpectedSuccesses]
    failed, skipped = result.failures + result.errors + unexpected, result.skipped
    # An entry for a whole class was not run as a test; several subtests of one test can have failed.
    not_passed = {test.id().partition(" ")[0] for test, _ in failed + skipped if isinstance(test, unittest.TestCase)}
    n_passed = result.testsRun - len(not_passed)
    return n_passed, [(test.id(), trace) for test, trace in failed], [(test.id(), why) for test, why in skipped]


def run_python_test(folder, name):
    start = time.monotonic()
    result = run_python_tests(folder, [name])
    print(f"   {time.monotonic() - start:4.0f} s  {name}", flush=True)
    return result


def python_tests(folder, names=None, jobs=1):
    """A part: the tests in a folder, or only names, with this number of jobs."""

    def part():
        if jobs == 1:
            results = [run_python_tests(folder, names)]
        else:
            # Each test gets a new process, so that it cannot affect the next one.
            context = multiprocessing.get_context("spawn")
            with concurrent.futures.ProcessPoolExecutor(jobs, context, take_signals, max_tasks_per_child=1) as pool:
                ids = [test.id() for test in tests_of(discover(folder, names))]
                try:
                    results = list(pool.map(run_python_test, [folder] * len(ids), ids))
                except KeyboardInterrupt:
                    pool.shutdown(wait=False, cancel_futures=True)
                    for process in multiprocessing.active_children():
                        process.terminate()
                    raise
        n_passed = sum(result[0] for result in results)
        failed = [each for result in results for each in result[1]]
        skipped = [each for result in results for each in result[2]]
        for test, trace in failed:
            say_failed(test, why=trace.splitlines()[-1:])
        say_skipped(skipped)
        return n_passed, len(failed), len(skipped)

    return part


def server_tests(names=None):
    """A part: the server tests. Jobs exceed processors, because servers mostly wait."""
    return python_tests(REPO / "tests/server", names, SERVER_TEST_JOBS)


# The presets that this run has built.
BUILT = set()


def page_tests(flavor):
    """The server tests of atomic writes and torn pages, on a build of this flavor instead of the release build."""

    def part():
        os.environ["SERVER_TESTS_FLAVOR"] = flavor
        return server_tests(["tests.server.test_doublewrite", "tests.server.test_atomic_writes"])()

    return part


def build(preset, *targets):
    def part():
        run_logged(f"build-{preset}", TOOLS / "build.py", preset, *targets)
        BUILT.add(preset)
        return 1, 0, 0

    return part


def check_patches():
    run_logged("check-patches", TOOLS / "patchqueue.py", "check")


def check_neighbour():
    run_logged("check-neighbour", TOOLS / "neighbour.py", "check")


# Those that must never lose a page, and ext4-without, which has to.
CUT = ("ext4-doublewrite", "xfs-doublewrite", "ext4-without", "xfs-rwf", "directfs-ioctl", "directfs-auto",
       "directfs-doublewrite", "ext4-journal-4k", "xfs-all-direct-encrypted", "xfs-sector-16k")  # fmt: skip
# One at each moment of powercut.py.
CUTS = 3
# Without doublewrite copies: a page that is written in part would be lost.
KILLED = ("ext4-journal-4k", "xfs-rwf", "directfs-ioctl")


def power_cuts():
    """A few cuts of each configuration, then a few kills."""
    for how, configurations in (("cut", CUT), ("kill", KILLED)):
        names = [f"--configuration={name}" for name in configurations]
        options = ["--how", how, "--cuts", str(CUTS), *names]
        output = run_logged(f"power-cuts-{how}", REPO / "powercut/powercut.py", "run", *options)
        if skipped := re.search("skipped: (.*)", output):
            raise Skip(skipped.group(1))


def check_aio_arrays():
    """InnoDB's AIO arrays in several shapes: reads complete, no AIO context is left, a deep array costs no more."""
    aio_bench.run_checks()


# The mtr.Tally of each mtr part of this run, by name and flavor.
TALLIES = {}
# The failures, with lines that say why; printed again at the end, where readers look first.
FAILED = []


def say_skipped(skipped):
    """Print one line for each reason; skipped: (test, why)."""
    tests = {}
    for test, why in skipped:
        tests.setdefault(why, []).append(test)
    for why, names in tests.items():
        print(f"skipped ({why}): {', '.join(names)}")


def say_failed(what, details="", why=()):
    FAILED.append((what, why))
    print(f"failed: {what}{details}")


def mtr_part(name, flavor, arguments, raise_aio_max_nr=False):
    options = ["--sanitize"] if flavor == "asan" else []

    def part():
        with mtr.raised_aio_max_nr() if raise_aio_max_nr else contextlib.nullcontext():
            tally = mtr.run_mtr(f"fork/{flavor}", [*options, *arguments()], LOGS / f"mtr-{name}-{flavor}.log")
        TALLIES[name, flavor] = tally
        say_skipped(sorted(tally.skipped.items()))
        for test in sorted(tally.failed):
            say_failed(f"{test}, {flavor}", f"; see {LOGS}/mtr-{name}-{flavor}.log", tally.why.get(test, ()))
        return tally.summary()

    return part


def sys_vars_tests():
    """The _basic tests of our system variables, which are in upstream's suite sys_vars."""
    return [f"sys_vars.{path.stem}" for path in sorted((REPO / "mysql-test/suite/sys_vars/t").glob("*.test"))]


def debug_tests():
    """The tests that DEBUG_TESTS names."""
    folder = REPO / "mysql-test/suite/spillway/t"
    found = {pattern: sorted(folder.glob(f"{pattern}.test")) for pattern in DEBUG_TESTS}
    if missing := [pattern for pattern, paths in found.items() if not paths]:
        raise Failure(f"DEBUG_TESTS names tests that are not there: {', '.join(missing)}")
    return [f"spillway.{path.stem}" for paths in found.values() for path in paths]


def our_mtr_parts(flavor):
    return [
        ("mtr: spillway", mtr_part("spillway", flavor, lambda: ["--suite=spillway"])),
        ("mtr: largest arrays", mtr_part("largest", flavor, lambda: ["spillway.aio_depth_max"], True)),
        ("mtr: our system variables", mtr_part("sys-vars", flavor, sys_vars_tests)),
        ("mtr: spillway_off", mtr_part("off", flavor, lambda: ["--suite=spillway_off"])),
    ]


def mtr_parts(flavor, long):
    upstream_list = REPO / "mysql-test/upstream.list"
    return [
        *our_mtr_parts(flavor),
        ("mtr: upstream's tests", mtr_part("upstream", flavor, lambda: mtr.read_list(upstream_list, long))),
    ]


def needs_debug():
    """The tests that the release build skipped because they need a debug build."""
    if ("upstream", "release") not in TALLIES:
        raise Failure("the release build did not run upstream's tests")
    skipped = TALLIES["upstream", "release"].skipped
    tests = [test for test, why in sorted(skipped.items()) if "debug" in why]
    if not tests:
        raise Skip("the release build ran all of upstream's tests")
    return tests


def debug_build():
    elapsed = time.monotonic() - START
    if elapsed > DEBUG_BUILD_BEGINS_WITHIN_SECONDS:
        raise Skip(f"{elapsed / 60:.0f} minutes have passed, and a debug build may take too long now: make test-debug")
    try:
        upstream.need_space_for_build("fork", "debug")
    except Failure as failure:
        raise Skip(str(failure)) from failure
    return build("debug")()


def on_debug_build(part):
    def part_or_skip():
        if "debug" not in BUILT:
            raise Skip("this run made no debug build")
        return part()

    return part_or_skip


CHECK = [
    ("lint: patches", single(lint_patches)),
    ("lint: shell", single(lint_shell)),
    ("lint: python", single(lint_python)),
    ("lint: C++ format", single(lint_format)),
    ("lint: policies are pure", single(lint_policy)),
    ("lint: rooms do not include each other", single(lint_rooms)),
    ("lint: nothing is forgotten", single(lint_places)),
    ("lint: links", single(lint_links)),
    ("lint: words and sentences", single(lint_words)),
    ("policy tests", policy_tests),
    ("flush simulation", single(flush_simulation)),
    ("tools' tests", python_tests(TOOLS / "tests")),
    ("benchmarks' arithmetic and plans", python_tests(REPO / "bench/tests")),
    ("cuts, and storage that loses power",
     python_tests(REPO / "powercut/tests",
                  ["powercut.tests.test_storage", "powercut.tests.test_run", "powercut.tests.test_ddl"])),
]
ALL = [
    *CHECK,
    ("build: fork", build("release")),
    ("patches export to themselves", single(check_patches)),
    ("patches apply to a neighbour's tree", single(check_neighbour)),
    ("build: stock", build("stock")),
    ("AIO arrays of every shape", single(check_aio_arrays)),
    *mtr_parts("release", long=False),
    ("server tests", server_tests()),
    ("build: debug", debug_build),
    ("mtr: spillway, debug", on_debug_build(mtr_part("spillway", "debug", debug_tests))),
    ("mtr: tests of debug builds", on_debug_build(mtr_part("debug-only", "debug", needs_debug))),
    ("what a journal makes whole", python_tests(REPO / "powercut/tests", ["powercut.tests.test_journal"])),
    ("power cuts", single(power_cuts)),
    ("benchmarks on servers", python_tests(REPO / "tests/bench", BENCH_TESTS)),
]
BENCH = [("benchmarks on servers", python_tests(REPO / "tests/bench"))]
DEBUG = [*mtr_parts("debug", long=True), ("server tests of pages", page_tests("debug"))]
ASAN = [*our_mtr_parts("asan"), ("server tests of pages", page_tests("asan"))]
PACKAGE = [("packages in fresh roots", python_tests(REPO / "tests/package"))]
PARTS = {"check": CHECK, "all": ALL, "debug": DEBUG, "bench": BENCH, "asan": ASAN, "package": PACKAGE}


def run_parts(parts):
    """Run the parts; return whether at least one test passed and none failed."""
    passed = failed = skipped = 0
    rows = []
    for name, part in parts:
        print(f"== {name}", flush=True)
        start = time.monotonic()
        try:
            counts = part()
        except Skip as skip:
            print(f"skipped: {name}: {skip}")
            counts = 0, 0, 1
        except Failure as failure:
            say_failed(name, f": {failure}", str(failure).splitlines()[-mtr.WHY_LINES:])
            counts = 0, 1, 0
        except Exception:
            say_failed(name, f":\n{traceback.format_exc()}", traceback.format_exc().splitlines()[-1:])
            counts = 0, 1, 0
        if not sum(counts):
            say_failed(name, ": no test was run")
            counts = 0, 1, 0
        rows.append((time.monotonic() - start, name, counts))
        passed, failed, skipped = (sum(pair) for pair in zip((passed, failed, skipped), counts, strict=True))
        print(f"   {rows[-1][0]:.0f} s: {counts[0]} passed, {counts[1]} failed, {counts[2]} skipped", flush=True)
        if counts[1] and name.startswith("build:"):
            print("nothing further can be tested without this build")
            break
    print("\nseconds  part")
    for seconds, name, counts in rows:
        print(f"{seconds:7.0f}  {name}{'  FAILED' if counts[1] else ''}")
    print(f"{sum(row[0] for row in rows):7.0f}  all\n")
    if base := os.environ.get("SPILLWAY_UPSTREAM"):
        print(f"on the base {base}, not on the pinned one")
    for what, why in FAILED:
        print(f"failed: {what}")
        for line in why:
            print(f"    {line}")
    summary = f"{passed} passed, {failed} failed, {skipped} skipped"
    print(summary, flush=True)
    write_atomically(LOGS / "summary", summary + "\n")
    return passed > 0 and failed == 0


def run():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=PARTS)
    parser.add_argument("--list", action="store_true", help="only print the names of the parts")
    parser.add_argument("--only", metavar="REGEX", default="", help="run the parts whose names match it")
    arguments = parser.parse_args()
    parts = [(name, part) for name, part in PARTS[arguments.set] if re.search(arguments.only, name)]
    if arguments.list:
        print("\n".join(name for name, _ in parts))
        return
    LOGS.mkdir(parents=True, exist_ok=True)
    clear_environment()
    resources.keep_mounts_private()
    # A shell script's background job ignores SIGINT, and the tools that tests interrupt would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not run_parts(parts):
        sys.exit(1)


if __name__ == "__main__":
    sys.exit(main(run))
