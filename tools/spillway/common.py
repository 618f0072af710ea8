"""Shared by all tools: paths, messages, failures, signals, locks and child processes."""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
BUILD = REPO / "build"
PATCHES = REPO / "patches"
# A prefix of a command: the kernel kills the command when this process ends. setpriv is part of util-linux.
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
# The same with SIGTERM, for a command that has to clean up when it ends.
ENDS_WITH_US = ("setpriv", "--pdeathsig", "TERM")


class Failure(Exception):
    """An expected failure: its text says what happened and what to do about it."""


class Ended(KeyboardInterrupt):
    """A signal ends this tool. A KeyboardInterrupt, so that code that catches errors (unittest) lets it pass."""


class Skip(Exception):
    """A test cannot run here; the text says why."""


def say(text):
    print(f"spillway: {text}", flush=True)


# While a child is being started, signals are held: the process to end is not known yet.
HELD = {"holds": False, "number": None}


def end_by_signal(number, _):
    if HELD["holds"]:
        HELD["number"] = number
        return
    # A terminal that is closed sends two signals: the second would interrupt the cleanup that the first began.
    for other in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(other, signal.SIG_IGN)
    raise Ended(128 + number)


def take_signals():
    """From now on SIGTERM and SIGHUP raise an exception in this process."""
    for end in (signal.SIGTERM, signal.SIGHUP):
        # A signal that nohup ignores stays ignored.
        if signal.getsignal(end) is not signal.SIG_IGN:
            signal.signal(end, end_by_signal)


@contextlib.contextmanager
def child(command, **options):
    """A child process that cleans up when it ends. The context waits for its end. An exception (a signal raises one)
    first sends SIGTERM to its whole process group: cmake does not pass a signal on to ninja."""
    HELD["holds"] = True
    try:
        process = subprocess.Popen([*ENDS_WITH_US, *command], stdin=subprocess.DEVNULL, process_group=0, **options)
    finally:
        HELD["holds"] = False
    with process:
        try:
            if HELD["number"]:
                end_by_signal(HELD["number"], None)
            yield process
            process.wait()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise


def open_lock(path):
    """Open or create a lock file. Mode 0600: a user who can open it could hold the lock."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(PermissionError):
        os.fchmod(file, 0o600)
    return file


@contextlib.contextmanager
def in_use(path):
    """Hold a shared lock on a file, created if absent: tools/clean.py does not remove build/ meanwhile."""
    try:
        path.parent.mkdir(exist_ok=True)
        file = open_lock(path)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}. This command keeps its files in {path.parent}, and the checkout "
                      "belongs to another user, or its file system cannot be written: work in a clone of your own "
                      "(git clone)") from None  # fmt: skip
    try:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield
    finally:
        os.close(file)


def forget_others_settings():
    """Remove environment variables of tar and MySQL's clients: an option that lets tar write outside, another server, a
    password."""
    for name in [name for name in os.environ if name == "TAR_OPTIONS" or name.startswith(("MYSQL_", "LIBMYSQL_"))]:
        del os.environ[name]


def main(function, *arguments, uses_build=True):
    """Run a tool. A failure of the system or of the input ends it with one message and exit status 1, no traceback.

    SIGTERM and SIGHUP end the tool with an exception, so that it undoes its temporary changes. Resources that killed
    tools have left are released first."""
    # resources imports this module.
    from spillway import resources

    take_signals()
    forget_others_settings()
    if upstream := os.environ.get("SPILLWAY_UPSTREAM"):
        # Absolute: the build calls tools from its own folder.
        os.environ["SPILLWAY_UPSTREAM"] = os.path.abspath(os.path.expanduser(upstream))
    try:
        check_path(REPO)
        resources.release()
        with in_use(BUILD / "use.lock") if uses_build else contextlib.nullcontext():
            function(*arguments)
    except (Failure, OSError, ValueError) as failure:
        print(f"spillway: error: {failure}", file=sys.stderr)
        sys.exit(1)
    except Skip as skip:
        print(f"spillway: skipped: {skip}")
    except Ended as ended:
        sys.exit(ended.args[0])
    except KeyboardInterrupt:
        print("spillway: interrupted; run the same command again to go on", file=sys.stderr)
        sys.exit(130)


def sha256_of(path, progress=None):
    """The SHA-256 of a file in hexadecimal; progress(bytes so far) is called as it is read."""
    digest = hashlib.sha256()
    done = 0
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
            done += len(block)
            if progress:
                progress(done)
    return digest.hexdigest()


def write_atomically(path, content):
    """Write a file, text or bytes, atomically: if the disk is full or the power fails, the file has either the old
    content or the new."""
    fresh = path.with_name(f"{path.name}.new")
    try:
        with open(fresh, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def read_record(path):
    """The JSON object in a file that a tool wrote; an empty one if the file is absent or damaged."""
    try:
        found = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def check_path(path):
    """Fail if a path has characters with a special meaning in files of CMake, Make or a server."""
    if found := sorted(set(re.findall(r"[^\w./+@%~=,-]", str(path), re.ASCII))):
        raise Failure(f"the path {path} has characters that some of the tools take for something else: "
                      f"{' '.join(map(repr, found))}; use another path, of letters, digits and ._+-")  # fmt: skip


def check_own(path):
    """Fail if path exists and is not a folder that only we can change: others could replace what we start there."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise Failure(f"{path} is a link, belongs to another user, or can be changed by others: chown it, chmod go-w "
                      "it, or name another place")  # fmt: skip


def need_space(directory, needed_bytes, purpose):
    """Fail before anything is written if the file system of directory has less than needed_bytes free."""
    status = os.statvfs(directory)
    free = status.f_bavail * status.f_frsize
    if free < needed_bytes:
        raise Failure(
            f"{purpose} needs {needed_bytes >> 20} MiB in {directory}, and {free >> 20} MiB are free; "
            "free some space there, or move it to a larger file system"
        )


@functools.cache
def ignores_login_paths(client):
    """Whether a client has the option --no-login-paths. MariaDB's clients do not, and never read ~/.mylogin.cnf."""
    command = [client, "--no-defaults", "--no-login-paths", "--version"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def client_command(client, socket, *options, defaults=None):
    """The command of a client that connects to this socket and ignores the user's configuration. A MySQL client reads
    host and password from ~/.mylogin.cnf even with --no-defaults. defaults: an option file to read instead."""
    begin = [client, f"--defaults-file={defaults}" if defaults else "--no-defaults"]
    if ignores_login_paths(client):
        begin.append("--no-login-paths")
    else:
        begin = ["env", f"MYSQL_TEST_LOGIN_FILE={os.devnull}", *begin]
    return [*map(str, begin), "--protocol=SOCKET", f"--socket={socket}", *options]


def error_log_tail(path, begin=0):
    """Why a server ended: the last errors in its error log from the offset begin on, or the last lines."""
    if not path.exists():
        return "(there is no error log)"
    lines = path.read_bytes()[begin:].decode(errors="replace").splitlines()
    return "\n".join([line for line in lines if "[ERROR]" in line][-5:] or lines[-5:])


@contextlib.contextmanager
def flocked(path, waiting_for):
    """Lock a folder, or a file, which is created if absent. Prints waiting_for if another process holds the lock.
    Gives the file descriptor: a child that inherits it holds the lock, too."""
    file = os.open(path, os.O_RDONLY) if path.is_dir() else open_lock(path)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another command {waiting_for}; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


@contextlib.contextmanager
def locked(name):
    """Hold build/<name>.lock, so that only one command at a time writes a tree of this checkout."""
    BUILD.mkdir(exist_ok=True)
    with flocked(BUILD / f"{name}.lock", f"works on {name} in this checkout") as lock:
        yield lock
