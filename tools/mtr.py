#!/usr/bin/env python3
"""Run mysql-test-run on a build of this checkout.

    mtr.py [--build fork/release] [--list FILE] [--raise-aio-max-nr] [ARGUMENT...]

ARGUMENTs go to mysql-test-run unchanged: --suite=spillway, or names of tests. If root runs this, the tests run as
another user, who owns root's files in a user namespace. --list runs the tests that a file names, one a line.
--raise-aio-max-nr raises the kernel's limit for the largest AIO arrays while the tests run (root). Lists the skipped
tests with the reason, and ends with a line 'mtr: N passed, N failed, N skipped'.
"""

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from spillway import filesystem, resources
from spillway.common import BUILD, Failure, Skip, child, flocked, main, say

AIO_MAX_NR = Path("/proc/sys/fs/aio-max-nr")
# (64 + 64 + 1) threads x 4096, and the requests of a few more servers of a test run.
# Not a round number: so the value shows that a killed tool has left it.
AIO_MAX_NR_FOR_TESTS = (1 << 20) + 4099
# Upstream's tests that start a mysqld without --user, which fails as root.
NOT_AS_ROOT = {f"innodb.{test}" for test in ("blob-crash", "doublewrite_on_to_reduced", "doublewrite_reduced",
               "doublewrite_reduced_odirect", "log_crash", "log_read_only")}  # fmt: skip
# Max space of the servers of a run on four workers, with headroom.
VARDIR_BYTES = 8 << 30
# Not tests: mysql-test-run's reports on the servers at the end. Their failures count.
REPORTS = "shutdown_report", "sanitize_report", "valgrind_report"
# The lines that say why a test failed, and the max number to keep. Of stack traces the first frames are kept: they are
# those of the thread that failed.
DETAIL = re.compile(r"^[-+](?![-+])|^mysqltest: |^\S*At line |.*(signal|Assertion|ERROR)")
WHY_LINES = 8
ABORTED = re.compile(r"Test suite (timeout|aborted)|Not all tests completed|Too many failed")
FRAME = re.compile(r"^#\d+\s")
WHY_FRAMES = 16
RESULT = re.compile(r"^\[\s*\d+%\]\s+(\S+)(?:\s+'[^']*')?(?:\s+w\d+)?\s+\[ (pass|fail|skipped|disabled) \]\s*(.*)$")


def alone(what):
    """A context that only one process of this user can be in at a time, in any checkout."""
    return flocked(resources.records_folder() / f"{what}.lock", f"of this kind ({what}) runs on this machine")


@contextlib.contextmanager
def raised_aio_max_nr():
    """Raise fs.aio-max-nr while the context lasts. One process at a time: another would take the raised limit for the
    machine's own."""
    with alone("aio-max-nr"), contextlib.ExitStack() as stack:
        try:
            if int(AIO_MAX_NR.read_text()) < AIO_MAX_NR_FOR_TESTS:
                stack.enter_context(resources.setting(AIO_MAX_NR, str(AIO_MAX_NR_FOR_TESTS)))
        except OSError as error:
            say(f"fs.aio-max-nr cannot be raised ({error.strerror}): tests that need it are skipped")
        yield


@contextlib.contextmanager
def storage_for_tests(arguments):
    """For our suite: mount a directFS and an ext4 while the context lasts, if this machine allows it. Gives environment
    variables with their paths."""
    if not any("spillway" in argument for argument in arguments):
        yield {}
        return
    with contextlib.ExitStack() as stack:
        try:
            place = stack.enter_context(filesystem.mounted(filesystem.DIRECTFS, "512M", "/var/tmp"))
        except (Skip, Failure) as why:
            say(f"no directFS: {why}; tests that need one are skipped")
            yield {}
            return
        # directFS stores its files on an ext4.
        plain = filesystem.on_disk(place) / "plain"
        plain.mkdir()
        yield {"SPILLWAY_DIRECTFS": str(place), "SPILLWAY_EXT4": str(plain)}


class Tally:
    """The result of each test, from mysql-test-run's output; why has the first lines that explain a failure. aborted is
    the line that says that not all tests were run, or None."""

    def __init__(self):
        self.passed, self.failed, self.skipped, self.why = set(), set(), {}, {}
        self.aborted = None
        self.speaks_of = None

    def line(self, text):
        found = RESULT.match(text)
        if ABORTED.search(text):
            self.aborted = text.strip()
        if not found:
            self.detail(text.rstrip())
            return
        name, outcome, rest = found.groups()
        self.speaks_of = name if outcome == "fail" else None
        if name in REPORTS and outcome == "pass":
            return
        if outcome == "pass":
            self.passed.add(name)
        elif outcome == "fail":
            self.failed.add(name)
        else:
            self.skipped[name] = rest.strip() or outcome

    def detail(self, text):
        """A line after a result: of the diff, an error of mysqltest or the server, or a stack frame."""
        is_frame = bool(FRAME.match(text))
        if not self.speaks_of or not (is_frame or DETAIL.match(text)):
            return
        lines = self.why.setdefault(self.speaks_of, [])
        if sum(bool(FRAME.match(line)) == is_frame for line in lines) < (WHY_FRAMES if is_frame else WHY_LINES):
            lines.append(text)

    def summary(self):
        passed = self.passed - self.failed
        return len(passed), len(self.failed), len(self.skipped)


def read_list(path, long):
    """The tests that the file names, one a line. Those followed by the word long are returned only if long is true."""
    lines = [line.split("#")[0].split() for line in path.read_text().splitlines()]
    return [words[0] for words in lines if words and (long or "long" not in words[1:])]


def apart():
    """The prefix of a command that isolates it from the machine, as far as this machine allows it.

    The command gets its own network: mysql-test-run's servers listen on TCP, and their root has no password. It does
    not run as root, as some of upstream's tests fail as root. In its user namespace it owns root's files.
    """
    root = os.geteuid() == 0
    user, group = (65534, 65534) if root else (os.geteuid(), os.getegid())
    network = ["unshare", "--net", *([] if root else ["--map-root-user"]), "sh", "-c", 'ip link set lo up && exec "$@"',
               "sh"]  # fmt: skip
    somebody = ["unshare", "--user", f"--map-user={user}", f"--map-group={group}"]
    for words in ([*network, *somebody], somebody if root else [], []):
        if not words or subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
            break
    if "--net" not in words:
        say("no network of its own: the servers of mysql-test-run can be reached by other users of this machine")
    return words


def folder_of_servers():
    """A new folder for servers and their logs, in memory if that has enough free."""
    shm = Path("/dev/shm")
    in_memory = shm.is_dir() and shutil.disk_usage(shm).free > VARDIR_BYTES
    BUILD.mkdir(exist_ok=True)
    return resources.temporary_folder(shm if in_memory else BUILD)


def keep_logs(vardir, build):
    """Keep the servers' logs of the failed tests."""
    kept = BUILD / "test-logs" / f"mtr-{build.replace('/', '-')}"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(vardir / "log", kept, symlinks=True, ignore=shutil.ignore_patterns("data"))
    say(f"logs of the failed tests: {kept}")


def run_mtr(build, arguments, log=None):
    """Run mysql-test-run; its output goes to the screen, or to the file log. Returns the Tally."""
    folder = BUILD / build / "mysql-test"
    if not (folder / "mysql-test-run.pl").exists():
        raise Failure(f"build/{build} has no server: make server")
    tally = Tally()
    words = apart()
    if not words and os.geteuid() == 0:
        tally.skipped = {test: "it does not run as root" for test in arguments if test in NOT_AS_ROOT}
        arguments = [argument for argument in arguments if argument not in NOT_AS_ROOT]
        if tally.skipped and not arguments:
            return tally  # without a name mysql-test-run would run its default suites
    # One run at a time: some tests use up the machine's AIO requests, which lowers the AIO depth of other servers.
    with contextlib.ExitStack() as stack:
        stack.enter_context(alone("mysql-test-run"))
        # In a private folder: mysql-test-run makes var/ for all to enter, and a folder of ids for all to write.
        vardir = stack.enter_context(folder_of_servers())
        ids = {"MTR_UNIQUE_IDS_DIR": str(vardir / "ids")}
        # Release servers mostly wait; those of other builds need the processors.
        workers = os.cpu_count() * (2 if build.endswith("/release") else 1)
        command = [*words, "perl", "mysql-test-run.pl", f"--vardir={vardir}/var", f"--parallel={workers}", "--force",
                   "--max-test-fail=0", "--retry=0", "--suite-timeout=600", "--nounit-tests", *arguments]  # fmt: skip
        out = stack.enter_context(open(log, "w")) if log else sys.stdout
        storage = stack.enter_context(storage_for_tests(arguments))
        process = stack.enter_context(child(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                            text=True, errors="replace", env=os.environ | storage | ids))  # fmt: skip
        for line in process.stdout:
            tally.line(line)
            out.write(line)
            out.flush()
        process.wait()
        if tally.failed:
            keep_logs(vardir / "var", build)
    if tally.aborted:
        raise Failure(f"mysql-test-run did not run all tests: {tally.aborted}" + (f"; see {log}" if log else ""))
    if process.returncode != 0 and not tally.failed:
        raise Failure(f"mysql-test-run ended with status {process.returncode} and no failed test" +
                      (f"; see {log}" if log else ""))  # fmt: skip
    return tally


def run():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="fork/release", metavar="TREE/FLAVOR")
    parser.add_argument("--list", type=Path, metavar="FILE")
    parser.add_argument("--raise-aio-max-nr", action="store_true")
    options, arguments = parser.parse_known_args()
    resources.keep_mounts_private()
    if options.list:
        arguments += read_list(options.list, long=True)
    with raised_aio_max_nr() if options.raise_aio_max_nr else contextlib.nullcontext():
        tally = run_mtr(options.build, arguments)
    for name, why in sorted(tally.skipped.items()):
        print(f"skipped: {name}: {why}")
    passed, failed, skipped = tally.summary()
    print(f"mtr: {passed} passed, {failed} failed, {skipped} skipped")
    if failed or not passed + skipped:
        raise Failure(f"failed: {', '.join(sorted(tally.failed)) or 'no test was run'}")


if __name__ == "__main__":
    sys.exit(main(run))
