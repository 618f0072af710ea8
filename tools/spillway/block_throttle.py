"""Makes a block device slow for chosen processes, with the block throttle of Linux' control groups, version 1 or 2.

Version 1 throttles buffered writes only if the process itself writes them back, as in fsync(). Version 2 also throttles
the kernel's later writeback. A kernel thread writes a file system's journal; version 1 throttles that thread only if
the whole disk is throttled.
"""

import contextlib
import dataclasses
import os
import time
from pathlib import Path

from spillway.common import Failure, Skip
from spillway.resources import identity, recorded

CGROUPS = Path("/sys/fs/cgroup")
BLOCK_DEVICES = Path("/sys/dev/block")
GROUP_PREFIX = "spillway-"
REMOVE_SECONDS = 5


@dataclasses.dataclass(frozen=True)
class Limits:
    """The max I/Os and bytes that a device does in a second; None: no limit."""

    read_iops: int | None = None
    read_bytes_per_s: int | None = None
    write_iops: int | None = None
    write_bytes_per_s: int | None = None


# The limits' names in version 1 and in version 2 of control groups.
NAMES = {
    "read_iops": ("read_iops", "riops"),
    "read_bytes_per_s": ("read_bps", "rbps"),
    "write_iops": ("write_iops", "wiops"),
    "write_bytes_per_s": ("write_bps", "wbps"),
}


def device_of(path):
    """The major:minor of the whole disk that holds path."""
    number = os.stat(path).st_dev
    entry = BLOCK_DEVICES / f"{os.major(number)}:{os.minor(number)}"
    if not entry.exists():
        raise Skip(f"{path} is not on a block device")
    disk = entry.resolve()
    if (disk / "partition").exists():
        disk = disk.parent
    return (disk / "dev").read_text().strip()


def write(file, text):
    try:
        file.write_text(text)
    except OSError as error:
        raise Failure(f"{file} does not take '{text}': {error.strerror}") from error


def version(root=CGROUPS):
    """The version of control groups that throttles I/O here: 2 if it has the controller io."""
    controllers = root / "cgroup.controllers"
    return 2 if controllers.exists() and "io" in controllers.read_text().split() else 1


def settings(root, device, limits):
    """The parent of new control groups, and the content of a new group's files: {name: text}."""
    given = {NAMES[name]: value for name, value in dataclasses.asdict(limits).items() if value is not None}
    if version(root) == 2:
        words = [device, *(f"{name}={value}" for (_, name), value in given.items())]
        return root, {"io.max": " ".join(words)} if given else {}
    files = {f"blkio.throttle.{name}_device": f"{device} {value}" for (name, _), value in given.items()}
    return root / "blkio", files


def group_of(process_id, parent, controller):
    """The control group that a process is in; controller: of version 1, or "" for version 2."""
    for line in Path(f"/proc/{process_id}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return parent / path.lstrip("/")
    raise Failure(f"/proc/{process_id}/cgroup names no control group of '{controller}'")


def lift(device, root=CGROUPS):
    """Remove the limits of version 1 from a whole disk. A loop device keeps its limits when it gets another file, also
    those that a killed process has left."""
    failures = []
    for name, _ in NAMES.values():
        file = root / "blkio" / f"blkio.throttle.{name}_device"
        try:
            if file.exists():
                write(file, f"{device} 0")
        except Failure as failure:
            failures.append(failure)
    if failures:
        raise failures[0]


@contextlib.contextmanager
def disk_throttled(root, device, files):
    """Throttle a whole disk in version 1 while the context lasts, for all processes in the root group."""
    lift(device, root)
    paths = [str(root / "blkio" / name) for name in files]
    with recorded("throttle", path=device, device=device, files=paths) as forget:
        try:
            for name, text in files.items():
                write(root / "blkio" / name, text)
            yield
        finally:
            lift(device, root)
            forget()


@contextlib.contextmanager
def throttled(process_id, path, limits, is_own_disk=False, root=CGROUPS):
    """Throttle a process and its children on the disk that holds path, while the context lasts.

    is_own_disk: no other process uses that disk, for example a loop device made for this. Version 1 then limits the
    whole disk, including the kernel threads that write its file system's journal."""
    device = device_of(path)
    parent, files = settings(root, device, limits)
    is_version_2 = parent == root
    if not files:
        yield
        return
    if not os.access(parent / "cgroup.procs", os.W_OK):
        raise Skip(f"{parent}/cgroup.procs is not there or not to be written: no root, a container, no such groups")
    before = group_of(process_id, parent, "" if is_version_2 else "blkio")
    if is_own_disk and not is_version_2:
        if before != parent:
            raise Skip(f"a file system's journal is written by threads in {parent}, and this process is in {before}")
        with disk_throttled(root, device, files):
            yield
        return
    group = parent / f"{GROUP_PREFIX}{process_id}"
    if is_version_2:
        # It stays on: another tool may use it when this one ends.
        write(parent / "cgroup.subtree_control", "+io")
    try:
        group.mkdir()
    except OSError as error:
        raise Failure(f"{group} cannot be made: {error.strerror}") from error
    with recorded("group", path=str(group), identity=identity(group), before=str(before)) as forget:
        try:
            for name, text in files.items():
                write(group / name, text)
            write(group / "cgroup.procs", str(process_id))
            yield
        finally:
            for number in (group / "cgroup.procs").read_text().split():
                with contextlib.suppress(OSError):
                    (before / "cgroup.procs").write_text(number)
            if remove_group(group):
                forget()


def remove_group(group):
    """Remove an empty group; return whether it is gone. A group whose last process was just killed is busy for a
    moment."""
    deadline = time.monotonic() + REMOVE_SECONDS
    while True:
        try:
            group.rmdir()
            return True
        except OSError:
            if time.monotonic() > deadline:
                return False
        time.sleep(0.1)
