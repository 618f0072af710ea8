"""What the tools share: where things are, how they report, and how they fail."""

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

REPO = Path(__file__).resolve().parent.parent
BUILD = REPO / "build"
PATCHES = REPO / "patches"
# Before a command: it does not outlive this process, however that ends. setpriv is part of util-linux.
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
# The same of a command that has something to set back when it ends.
SYSBENCH_SCRIPTS = Path("/usr/share/sysbench")
ENDS_WITH_US = ("setpriv", "--pdeathsig", "TERM")


class Failure(Exception):
    """An expected failure: its text says what happened and what to do about it."""


class Ended(KeyboardInterrupt):
    """A signal has ended this tool. As an interrupt it passes what catches errors, such as a runner of tests."""


class Skip(Exception):
    """A test that cannot run here; its text says why."""


def say(text):
    print(f"spillway: {text}", flush=True)


# While a child is being started a signal waits: who is to be ended is not known yet.
HELD = {"holds": False, "number": None}


def end_by_signal(number, _):
    if HELD["holds"]:
        HELD["number"] = number
        return
    # A terminal that is closed sends two: the second would end what the first has begun to set back.
    for other in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(other, signal.SIG_IGN)
    raise Ended(128 + number)


def take_signals():
    """From now on SIGTERM and SIGHUP end this process as an exception does."""
    for end in (signal.SIGTERM, signal.SIGHUP):
        # Under nohup it stays ignored.
        if signal.getsignal(end) is not signal.SIG_IGN:
            signal.signal(end, end_by_signal)


@contextlib.contextmanager
def child(command, **options):
    """A process that has something to set back when it ends. The context waits for its end; an exception, as a signal
    is, ends it first, with all of its process group: cmake does not pass a signal on to ninja."""
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
    """The descriptor of a file that is locked, which is created. Whoever can open it could hold the lock."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(PermissionError):
        os.fchmod(file, 0o600)
    return file


@contextlib.contextmanager
def in_use(path):
    """A shared lock on a file, which is created: tools/clean.py does not remove build/ meanwhile."""
    try:
        path.parent.mkdir(exist_ok=True)
        file = open_lock(path)
    except OSError:
        # Another user's checkout.
        yield
        return
    try:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield
    finally:
        os.close(file)


def forget_others_settings():
    """What the environment tells tar and MySQL's clients is not for this tool's: an option that lets tar write outside,
    another server, a password."""
    for name in [name for name in os.environ if name == "TAR_OPTIONS" or name.startswith(("MYSQL_", "LIBMYSQL_"))]:
        del os.environ[name]


def main(function, *arguments, uses_build=True):
    """Run a tool. A failure of the system or of the input is one message and exit status 1, never a traceback.

    SIGTERM and SIGHUP end the tool as an exception, so that what it has changed for a time is set back. What tools have
    left that were killed is released first."""
    # It needs this module.
    import resources

    take_signals()
    forget_others_settings()
    if upstream := os.environ.get("SPILLWAY_UPSTREAM"):
        # The build calls tools from its own folder.
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


def write_whole(path, content):
    """Write a file, text or bytes, so that its name has the old content or the new, also if the disk is full or the
    power goes."""
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
    """The JSON object in a file that a tool has written for itself; an empty one if it is absent or cannot be read."""
    try:
        found = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def check_path(path):
    """Fail if a path has characters that end a word or a value in CMake's, Make's or a server's files."""
    if found := sorted(set(re.findall(r"[^\w./+@%~=,-]", str(path), re.ASCII))):
        raise Failure(f"the path {path} has characters that some of the tools take for something else: "
                      f"{' '.join(map(repr, found))}; use another path, of letters, digits and ._+-")  # fmt: skip


def check_own(path):
    """Fail if another user made, or can change, what is at a path: what we start there would be theirs."""
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
    """Whether a client can be told not to read ~/.mylogin.cnf. MariaDB's cannot, and do not read it."""
    command = [client, "--no-defaults", "--no-login-paths", "--version"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def client_command(client, socket, *options, defaults=None):
    """The command of a client that connects to this socket, and to nothing else that its user has configured: a MySQL
    client takes host and password of ~/.mylogin.cnf also with --no-defaults. defaults: a file of options to be read."""
    begin = [client, f"--defaults-file={defaults}" if defaults else "--no-defaults"]
    if ignores_login_paths(client):
        begin.append("--no-login-paths")
    else:
        begin = ["env", f"MYSQL_TEST_LOGIN_FILE={os.devnull}", *begin]
    return [*map(str, begin), "--protocol=SOCKET", f"--socket={socket}", *options]


def sysbench_environment():
    """The environment of a sysbench, which takes its own scripts from its own folder alone. Else it would execute what
    the working directory, or LUA_PATH, has under their names."""
    return os.environ | {"LUA_PATH": f"{SYSBENCH_SCRIPTS}/?.lua", "LUA_CPATH": ""}


def error_log_tail(path, begin=0):
    """What a server's error log says of why it ended: its last errors from that offset on, or its last lines."""
    if not path.exists():
        return "(there is no error log)"
    lines = path.read_bytes()[begin:].decode(errors="replace").splitlines()
    return "\n".join([line for line in lines if "[ERROR]" in line][-5:] or lines[-5:])


@contextlib.contextmanager
def flocked(path, waiting_for):
    """Hold the lock of a folder, or of a file, which is created; say what is waited for if another process holds it.
    Gives the file descriptor: a process that inherits it holds the lock, too."""
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
    """Hold build/<name>.lock, so that two commands in one checkout do not write the same tree."""
    BUILD.mkdir(exist_ok=True)
    with flocked(BUILD / f"{name}.lock", f"works on {name} in this checkout") as lock:
        yield lock
