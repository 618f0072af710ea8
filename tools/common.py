"""What the tools share: where things are, how they report, and how they fail."""

import contextlib
import fcntl
import hashlib
import json
import os
import signal
import socket
import sys
import zlib
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
BUILD = REPO / "build"
PATCHES = REPO / "patches"
# Before a command: it does not outlive this process, however that ends. setpriv is part of util-linux.
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")


class Failure(Exception):
    """An expected failure: its text says what happened and what to do about it."""


class Skip(Exception):
    """A test that cannot run here; its text says why."""


def say(text):
    print(f"spillway: {text}", flush=True)


def end_by_signal(number, _):
    # A terminal that is closed sends two: the second would end what the first has begun to set back.
    for other in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


def main(function, *arguments):
    """Run a tool. A failure of the system or of the input is one message and exit status 1, never a traceback.

    SIGTERM and SIGHUP end the tool as an exception, so that what it has changed for a time is set back."""
    for end in (signal.SIGTERM, signal.SIGHUP):
        # Under nohup it stays ignored.
        if signal.getsignal(end) is not signal.SIG_IGN:
            signal.signal(end, end_by_signal)
    try:
        function(*arguments)
    except (Failure, OSError, ValueError) as failure:
        print(f"spillway: error: {failure}", file=sys.stderr)
        sys.exit(1)
    except Skip as skip:
        print(f"spillway: skipped: {skip}")
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
    """Write a file, text or bytes, so that its name has the old content or the new, also when the disk is full or the power
    goes."""
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
    """The JSON object in a file that a tool has written for itself; an empty one if the file is absent or unreadable."""
    try:
        found = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def name_outside(what, path):
    """The name of a folder outside of the checkout, which no other checkout has, for what is in this path."""
    return f"spillway-{what}-{zlib.crc32(os.fsencode(path)):08x}"


def need_space(directory, needed_bytes, purpose):
    """Fail before anything is written if the file system of directory has less than needed_bytes free."""
    status = os.statvfs(directory)
    free = status.f_bavail * status.f_frsize
    if free < needed_bytes:
        raise Failure(
            f"{purpose} needs {needed_bytes >> 20} MiB in {directory}, and {free >> 20} MiB are free; "
            "free some space there, or move it to a larger file system"
        )


def port_is_free(port):
    """Whether a server can listen on this port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def error_log_tail(path, begin=0):
    """What a server's error log says of why it ended: its last errors from that offset on, or its last lines."""
    if not path.exists():
        return "(there is no error log)"
    lines = path.read_bytes()[begin:].decode(errors="replace").splitlines()
    return "\n".join([line for line in lines if "[ERROR]" in line][-5:] or lines[-5:])


@contextlib.contextmanager
def flocked(path, waiting_for):
    """Hold the lock of a folder, or of a file, which is created; say what is waited for if another process holds it."""
    file = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another command {waiting_for}; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


@contextlib.contextmanager
def locked(name):
    """Hold build/<name>.lock, so that two commands in one checkout do not write the same tree."""
    BUILD.mkdir(exist_ok=True)
    with flocked(BUILD / f"{name}.lock", f"works on {name} in this checkout"):
        yield
