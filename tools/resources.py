#!/usr/bin/env python3
"""What tools take of the machine outside of their checkout, and give back also if they are killed.

    resources.py    give back what killed tools have taken; fail if something is mounted in build/ all the same

A tool records what it takes, in a folder that belongs to its user and to no checkout. Each tool begins with release(),
and so does make clean. A thing is recognised by what it is, never by its name alone: a folder by its inode, a server by
working in such a folder, a mount and a loop device by lying there, a setting by its value."""

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import BUILD, Failure, flocked, main, read_record, say, write_whole

# What is recorded does not outlive the machine's run, and neither does /run.
RECORDS = Path("/run" if os.geteuid() == 0 else tempfile.gettempdir()) / f"spillway-{os.geteuid()}"
WAIT_SECONDS = 10
SERVERS = ("mysqld", "mariadbd")


def start_of(pid):
    """When a process began, in clock ticks since the machine's start; None if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[19])


def records_folder():
    RECORDS.mkdir(mode=0o700, exist_ok=True)
    status = RECORDS.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise Failure(f"{RECORDS} has to be a folder that only you can enter: somebody else has made it; remove it")
    return RECORDS


@contextlib.contextmanager
def recorded(kind, **what):
    """A thing is recorded while the context lasts; the caller gives it back before."""
    path = records_folder() / f"{time.time_ns()}-{os.getpid()}.json"
    owner = [os.getpid(), start_of(os.getpid())]
    write_whole(path, json.dumps({"kind": kind, "owner": owner} | what))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def identity(path):
    status = path.lstat()
    return [status.st_dev, status.st_ino]


@contextlib.contextmanager
def folder(path):
    """A new folder, while the context lasts; then what lies in it is gone, with mounts and loop devices."""
    path.mkdir(mode=0o700)
    with recorded("folder", path=str(path), identity=identity(path)):
        try:
            yield path
        finally:
            remove_folder(path)


@contextlib.contextmanager
def temporary_folder(parent=None):
    """The same, with a name of its own."""
    path = Path(tempfile.mkdtemp(prefix="spw-", dir=parent))
    with recorded("folder", path=str(path), identity=identity(path)):
        try:
            yield path
        finally:
            remove_folder(path)


def is_below(path, top):
    return str(path).startswith(f"{top}/")


def all_mounts():
    """The mounts, the newest first: (path, device number)."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        words = line.split()
        found.append((words[4].encode().decode("unicode_escape"), os.makedev(*map(int, words[2].split(":")))))
    return found[::-1]


def mounts_below(top):
    return [(path, number) for path, number in all_mounts() if is_below(path, top)]


def loops_below(top):
    """The loop devices whose file is in a folder, or on something that is mounted there."""
    devices = {number for _, number in mounts_below(top)}
    for entry in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            if not is_below(entry.read_text().rstrip("\n"), top):
                continue
            loop = Path("/dev") / entry.parts[3]
            words = run("losetup", "--noheadings", "--output", "BACK-MAJ:MIN,BACK-INO", loop).split()
            number, inode = os.makedev(*map(int, words[0].split(":"))), int(words[1])
            file = Path(entry.read_text().rstrip("\n"))
            if number in devices or identity(file) == [number, inode]:
                yield loop


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))}: {result.stderr.strip()}")
    return result.stdout


def kill_servers(top):
    """End the servers that work in a folder: a server works in its data directory."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "comm").read_text().strip() in SERVERS and is_below(os.readlink(entry / "cwd"), top):
                os.kill(int(entry.name), signal.SIGKILL)


def release_mounts(top):
    """Unmount all below a folder, and detach the loop devices of files in it, whatever lies on what."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        loops = list(loops_below(top))
        devices = [loop.stat().st_rdev for loop in loops]
        # What is on one of the loop devices can be mounted elsewhere, too.
        mounts = [path for path, number in all_mounts() if is_below(path, top) or number in devices]
        if not loops and not mounts:
            return
        why = "it is in use"
        try:
            # The mounts of a file system on a loop device come after the one that the loop device's file is on.
            if mounts:
                run("umount", mounts[0])
            # It stays attached while it is mounted, or open.
            for loop in loops:
                run("losetup", "--detach", loop)
        except Failure as failure:
            why = failure
        if time.monotonic() > deadline:
            raise Failure(f"{top} stays: {why}")
        time.sleep(0.02)


def remove_folder(path):
    """Remove a folder that is ours, with all that lies in it."""
    if not path.exists():
        return
    top = path.resolve()
    kill_servers(top)
    release_mounts(top)
    shutil.rmtree(path)


def release_folder(record):
    path = Path(record["path"])
    if path.exists() and identity(path) == record["identity"]:
        remove_folder(path)


@contextlib.contextmanager
def setting(path, value):
    """A file of the kernel's has this value while the context lasts, then what it had before."""
    before = path.read_text().strip()
    with recorded("setting", path=str(path), before=before, value=value):
        path.write_text(value)
        try:
            yield
        finally:
            path.write_text(before)


def release_setting(record):
    path = Path(record["path"])
    if path.exists() and path.read_text().strip() == record["value"]:
        path.write_text(record["before"])


def release_group(record):
    """A control group: its processes have ended with the tool."""
    path = Path(record["path"])
    if path.exists() and identity(path) == record["identity"]:
        path.rmdir()


def release_throttle(record):
    """The limits of a disk, in the files of a control group."""
    for path in map(Path, record["files"]):
        if path.exists():
            path.write_text(f"{record['device']} 0")


RELEASE = {
    "folder": release_folder, "group": release_group, "setting": release_setting, "throttle": release_throttle
}  # fmt: skip


def is_left(record):
    pid, start = record.get("owner", [0, 0])
    return start_of(pid) != start


def release():
    """Give back what processes that are no more have taken. What cannot be given back is named, and tried again."""
    if not RECORDS.exists() or not any(RECORDS.iterdir()):
        return
    with flocked(records_folder(), "releases what killed tools have left"):
        for path in sorted(RECORDS.glob("*.json"), reverse=True):
            record = read_record(path)
            if not is_left(record):
                continue
            try:
                if record.get("kind") in RELEASE:
                    RELEASE[record["kind"]](record)
                    say(f"released what a killed tool has left: {record['path']}")
            except (Failure, OSError) as failure:
                say(f"left by a killed tool, and cannot be released: {record['path']}: {failure}")
                continue
            path.unlink(missing_ok=True)


def release_for_clean():
    release()
    if used := [*(path for path, _ in mounts_below(BUILD.resolve())), *loops_below(BUILD.resolve())]:
        raise Failure(f"{', '.join(map(str, used))}: a command of this checkout is at work; end it first")


if __name__ == "__main__":
    sys.exit(main(release_for_clean))
