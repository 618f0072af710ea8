"""A disk in memory with latency, seeks and slow flushes (bench/disk/timed_disk.cc). The block throttle models neither.
filesystem.mounted() mounts a file system on it."""

import contextlib
import dataclasses
import re

from spillway.common import BUILD, Failure, Skip

PROGRAM = BUILD / "super/policy/bench/disk/timed_disk"
# Where filesystem.mounted() mounts it, beside the file system.
FOLDER = "timed"
# The lowest real-time priority: a device does not wait until the server has left it a processor.
REAL_TIME = ("chrt", "--rr", "1")
COUNTER = re.compile(r"(\w+) (\d+)")


@dataclasses.dataclass(frozen=True)
class Timing:
    """bench/disk/disk_timing.h says what each means. 0: takes no time, or is not limited."""

    latency_ms: float = 0
    latency_sigma: float = 0
    ios_per_s: float = 0
    bytes_per_s: float = 0
    flush_ms: float = 0
    seek_ms: float = 0
    rotation_ms: float = 0


def command_line(image, timing):
    """The command that serves an image; the mount point is to be added. The disk takes no time until timed()."""
    if not PROGRAM.exists():
        raise Failure(f"{PROGRAM} is not built: make check builds it")
    options = [f"--{name.replace('_', '-')}={value}" for name, value in dataclasses.asdict(timing).items()]
    return [*REAL_TIME, PROGRAM, "-f", f"--image={image}", *options]


@contextlib.contextmanager
def timed(place):
    """Let the disk below a file system that is mounted in place take its time while the context lasts. Gives a function
    that returns what it has done: {name: number}; late_mean_us and late_max_us are by how much it was late."""
    control = place.parent / FOLDER / "control"
    if not control.exists():
        raise Skip("the timed disk is not mounted")
    control.write_text("on")
    try:
        yield lambda: {name: int(value) for name, value in COUNTER.findall(control.read_text())}
    finally:
        control.write_text("off")
