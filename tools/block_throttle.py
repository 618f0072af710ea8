"""A slow block device for chosen processes, by the block throttle of Linux' control groups, version 1 or 2.

What a process writes without O_DIRECT is throttled where that process itself has it written, as fsync() does; in
version 2 also where the kernel does so later.
"""

import contextlib
import os
from pathlib import Path

from common import Failure, Skip

CGROUPS = Path("/sys/fs/cgroup")
BLOCK_DEVICES = Path("/sys/dev/block")


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


def limits(root, device, write_iops, write_bytes_per_s):
    """The control group that new ones are made in, and what a new one's files are to hold: {name: text}."""
    controllers = root / "cgroup.controllers"
    if controllers.exists() and "io" in controllers.read_text().split():
        return root, {"io.max": f"{device} wiops={write_iops} wbps={write_bytes_per_s}"}
    return root / "blkio", {
        "blkio.throttle.write_iops_device": f"{device} {write_iops}",
        "blkio.throttle.write_bps_device": f"{device} {write_bytes_per_s}",
    }


def group_of(process_id, parent, controller):
    """The control group of this controller, "" for version 2, that a process is in."""
    for line in Path(f"/proc/{process_id}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return parent / path.lstrip("/")
    raise Failure(f"/proc/{process_id}/cgroup names no control group of '{controller}'")


@contextlib.contextmanager
def controller_enabled(parent):
    """In version 2, have the groups below parent throttle."""
    file = parent / "cgroup.subtree_control"
    was_enabled = "io" in file.read_text().split()
    write(file, "+io")
    try:
        yield
    finally:
        if not was_enabled:
            write(file, "-io")


@contextlib.contextmanager
def throttled(process_id, path, write_iops, write_bytes_per_s, root=CGROUPS):
    """While this lasts, a process and what it starts do at most so many writes, and write so many bytes, a second to
    the disk that holds path."""
    parent, files = limits(root, device_of(path), write_iops, write_bytes_per_s)
    if not os.access(parent / "cgroup.procs", os.W_OK):
        raise Skip(f"{parent}/cgroup.procs is not there or not to be written: no root, a container, no such groups")
    is_version_2 = "io.max" in files
    before = group_of(process_id, parent, "" if is_version_2 else "blkio")
    group = parent / f"spillway-{process_id}"
    with controller_enabled(parent) if is_version_2 else contextlib.nullcontext():
        try:
            group.mkdir()
        except OSError as error:
            raise Failure(f"{group} cannot be made: {error.strerror}; a killed test may have left it") from error
        try:
            for name, text in files.items():
                write(group / name, text)
            write(group / "cgroup.procs", str(process_id))
            yield
        finally:
            for number in (group / "cgroup.procs").read_text().split():
                with contextlib.suppress(OSError):
                    (before / "cgroup.procs").write_text(number)
            group.rmdir()
