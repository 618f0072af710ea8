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


@contextlib.contextmanager
def throttled(process_id, path, write_iops, write_bytes_per_s, root=CGROUPS):
    """While this lasts, a process and what it starts do at most so many writes, and write so many bytes, a second to
    the disk that holds path."""
    parent, files = limits(root, device_of(path), write_iops, write_bytes_per_s)
    processes = parent / "cgroup.procs"
    if not os.access(processes, os.W_OK):
        raise Skip(f"{processes} is not there or may not be written: no root, a container, or no such control groups")
    if "io.max" in files:
        write(parent / "cgroup.subtree_control", "+io")
    group = parent / f"spillway-{process_id}"
    group.mkdir()
    try:
        for name, text in files.items():
            write(group / name, text)
        write(group / "cgroup.procs", str(process_id))
        yield
    finally:
        for number in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                processes.write_text(number)
        group.rmdir()
