"""Resources that tools use outside of their checkout, and that are released even if a tool is killed.

A tool records each resource in a folder per user, outside of all checkouts, and holds a lock on the record.
common.main() calls release() before each tool: a record whose lock is free belongs to a killed tool. A resource is
never recognised by its name alone: a folder by its inode, a server by its working directory in such a folder, a mount
and a loop device by their place in such a folder, a setting by its value."""

import contextlib
import ctypes
import fcntl
import itertools
import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from pathlib import Path

from spillway.common import Failure, read_record, say

WAIT_SECONDS = 10
# After a tool was killed: its processes already got their signal.
RELEASE_SECONDS = 2
SERVERS = ("mysqld", "mariadbd")
NUMBERS = itertools.count()
# Constants of unshare(2) and mount(2).
CLONE_NEWNS = 0x20000
MS_REC = 1 << 14
MS_SLAVE = 1 << 19


def records_place():
    """The folder for records; root's is gone after a reboot. Not XDG_RUNTIME_DIR: it is removed when its user logs out,
    although a benchmark may still run."""
    if os.geteuid() == 0 and os.access("/run", os.W_OK):
        return Path("/run/spillway")
    return Path(tempfile.gettempdir()) / f"spillway-{os.geteuid()}"


RECORDS = records_place()


def records_folder():
    with contextlib.suppress(FileExistsError):
        RECORDS.mkdir(mode=0o700)
    status = RECORDS.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise Failure(f"{RECORDS} has to be a folder of yours that only you can enter, and is not: remove it, or set "
                      "TMPDIR to a folder that only you can enter")  # fmt: skip
    return RECORDS


@contextlib.contextmanager
def recorded(kind, **what):
    """Record a resource. Gives a function that removes the record: the caller calls it within the context, when it has
    released the resource. Otherwise the record stays, and the next tool tries to release it."""
    path = records_folder() / f"{time.time_ns()}-{os.getpid()}-{next(NUMBERS)}.json"
    fresh = path.with_suffix(".new")
    with open(fresh, "x") as file:
        # Other tools see it complete and locked.
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps({"kind": kind} | what))
        file.flush()
        fresh.rename(path)
        yield lambda: path.unlink(missing_ok=True)


def identity(path):
    status = path.lstat()
    return [status.st_dev, status.st_ino]


@contextlib.contextmanager
def held_folder(path):
    """Record an existing folder while the context lasts; then remove it, with all mounts and loop devices in it."""
    with recorded("folder", path=str(path), identity=identity(path)) as forget:
        try:
            yield path
        except BaseException:
            # Report the exception itself, not that the folder is still in use. The next tool tries to remove it again.
            with contextlib.suppress(Failure, OSError):
                remove_folder(path)
                forget()
            raise
        remove_folder(path)
        forget()


def folder(path):
    """A new folder; see held_folder()."""
    path.mkdir(mode=0o700)
    return held_folder(path)


def temporary_folder(parent=None):
    """The same, with a unique name."""
    return held_folder(Path(tempfile.mkdtemp(prefix="spw-", dir=parent)))


def keep_mounts_private():
    """Give this process and its future children their own mount namespace, if root runs them. Otherwise a namespace
    that another process makes would have copies of their mounts, which keep folders and devices busy. Mounts of others
    are still seen if / is shared, as under systemd. Call this before the first thread is started."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) == 0:
        libc.mount(None, b"/", None, ctypes.c_ulong(MS_REC | MS_SLAVE), None)
    else:
        say(f"no mount namespace of its own ({os.strerror(ctypes.get_errno())}): others can keep mounts busy")


def is_below(path, top):
    return str(path).startswith(f"{top}/")


def all_mounts():
    """All mounts, the newest first: (path, device number)."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        words = line.split()
        found.append((words[4].encode().decode("unicode_escape"), os.makedev(*map(int, words[2].split(":")))))
    return found[::-1]


def mounts_below(top):
    return [(path, number) for path, number in all_mounts() if is_below(path, top)]


def loops_below(top):
    """The loop devices whose file is in the folder top, or in a file system that is mounted there."""
    mounts = mounts_below(top)
    devices = {number for _, number in mounts}
    for entry in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            file = entry.read_text().rstrip("\n")
            if not is_below(file, top):
                continue
            loop = Path("/dev") / entry.parts[3]
            words = run("losetup", "--noheadings", "--output", "BACK-MAJ:MIN,BACK-INO", loop).split()
            if len(words) < 2:
                # losetup cannot ask: the server of a file system in user space is gone. Only the path is known.
                is_ours = any(is_below(file, path) for path, _ in mounts)
            else:
                number, inode = os.makedev(*map(int, words[0].split(":"))), int(words[1])
                is_ours = number in devices or (
                    number == os.stat(top).st_dev
                    if file.endswith(" (deleted)")
                    else identity(Path(file)) == [number, inode]
                )
            if is_ours:
                yield loop


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))}: {result.stderr.strip()}")
    return result.stdout


def kill_servers(top):
    """Kill the servers whose data directory, their working directory, is in a folder."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "comm").read_text().strip() in SERVERS and is_below(os.readlink(entry / "cwd"), top):
                os.kill(int(entry.name), signal.SIGKILL)


def release_mounts(top, wait_s):
    """Unmount everything below a folder, and detach the loop devices of files in it, however they are stacked."""
    deadline = time.monotonic() + wait_s
    while True:
        loops = list(loops_below(top))
        devices = [loop.stat().st_rdev for loop in loops]
        # A file system on one of the loop devices can be mounted elsewhere, too.
        mounts = [path for path, number in all_mounts() if is_below(path, top) or number in devices]
        try:
            # Newest first: a file system on a loop device was mounted after the one that has the loop device's file.
            if mounts:
                run("umount", mounts[0])
            # The kernel detaches it when its last user is gone: it can still be mounted in another namespace.
            for loop in loops:
                run("losetup", "--detach", loop)
            if not mounts:
                return
        except Failure as failure:
            if time.monotonic() > deadline:
                raise Failure(f"{top} stays: {failure}") from None
            time.sleep(0.2)


def remove_folder(path, wait_s=WAIT_SECONDS):
    """Remove a folder of ours and everything in it. wait_s: max seconds to wait for mounts and loop devices in use."""
    if not path.exists():
        return
    top = path.resolve()
    kill_servers(top)
    release_mounts(top, wait_s)
    shutil.rmtree(path)


def is_same(record):
    """Whether the recorded path exists, with the recorded inode."""
    path = Path(record["path"])
    return path.exists() and identity(path) == record["identity"]


def release_folder(record):
    if not is_same(record):
        return False
    remove_folder(Path(record["path"]), 0 if record["is_stuck"] else RELEASE_SECONDS)
    return True


@contextlib.contextmanager
def setting(path, value):
    """Write a value to a file of the kernel while the context lasts; then restore the old value."""
    before = path.read_text().strip()
    with recorded("setting", path=str(path), before=before, value=value) as forget:
        path.write_text(value)
        try:
            yield
        finally:
            path.write_text(before)
            forget()


def release_setting(record):
    path = Path(record["path"])
    if not path.exists() or path.read_text().strip() != record["value"]:
        return False
    path.write_text(record["before"])
    return True


@contextlib.contextmanager
def mounted_tracer():
    """The kernel's tracer, mounted in a folder of our own while the context lasts. Failure: the kernel has none, or
    this user may not mount it."""
    with temporary_folder() as top:
        tracer = top / "tracing"
        tracer.mkdir()
        run("mount", "-t", "tracefs", "nodev", tracer)
        yield tracer


@contextlib.contextmanager
def trace_instance():
    """A new instance of the kernel's tracer, with buffers and events of its own, while the context lasts. Gives its
    folder, whose files are closed when the context ends."""
    name = f"spillway-{os.getpid()}-{next(NUMBERS)}"
    with mounted_tracer() as tracer, recorded("trace", path=name) as forget:
        instance = tracer / "instances" / name
        instance.mkdir()
        try:
            yield instance
        finally:
            instance.rmdir()
            forget()


def release_trace(record):
    with mounted_tracer() as tracer:
        instance = tracer / "instances" / record["path"]
        if not instance.exists():
            return False
        instance.rmdir()
    return True


def release_group(record):
    """Remove a control group. Its processes ended with the tool, as a rule. A server that outlives the tool goes back
    to the group that it came from. Otherwise it would stay throttled."""
    if not is_same(record):
        return False
    group, before = Path(record["path"]), Path(record["before"])
    if not before.exists():
        before = group.parent
    for number in (group / "cgroup.procs").read_text().split():
        # It may just end.
        with contextlib.suppress(OSError):
            (before / "cgroup.procs").write_text(number)
    group.rmdir()
    return True


def release_throttle(record):
    """Remove the limits of a disk from the files of a control group."""
    for path in map(Path, record["files"]):
        if path.exists():
            path.write_text(f"{record['device']} 0")
    return True


RELEASE = {
    "folder": release_folder, "group": release_group, "setting": release_setting,
    "throttle": release_throttle, "trace": release_trace,
}  # fmt: skip


def release():
    """Release the resources of killed tools. Prints those that cannot be released; the next tool tries them again."""
    if not RECORDS.exists():
        return
    for path in sorted(records_folder().glob("*.json"), reverse=True):
        # Its owner may have just removed it.
        with contextlib.suppress(FileNotFoundError):
            release_one(path)


def release_one(path):
    with open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        status = os.fstat(file.fileno())
        if identity(path) != [status.st_dev, status.st_ino]:
            return
        # mtime 0: another tool has tried before, so do not wait again.
        record = read_record(path) | {"is_stuck": status.st_mtime == 0}
        try:
            if record.get("kind") in RELEASE and RELEASE[record["kind"]](record):
                say(f"released what a killed tool has left: {record['path']}")
        except (KeyError, TypeError, ValueError):
            say(f"{path} is no record of ours, and is removed")
        except (Failure, OSError) as failure:
            say(f"left by a killed tool, and cannot be released: {record['path']}: {failure}")
            os.utime(path, (0, 0))
            return
        path.unlink(missing_ok=True)
