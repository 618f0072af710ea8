"""Whose the writes to a disk are: each of the kernel's requests, by the file whose blocks it writes.

The kernel's tracer gives the requests that are issued to the disk, after the kernel has merged and split what was
written. FIEMAP gives the blocks of each file. What belongs to no file is the file system's: its journal and
metadata."""

import contextlib
import fcntl
import os
import re
import struct
import threading
import time
from bisect import bisect_left, bisect_right

from spillway.resources import trace_instance

SECTOR_BYTES = 512
FILE_SYSTEM = "file_system"
# The first pattern that is found in a file's path decides. Names as MySQL and MariaDB give them.
OWNERS = {
    "doublewrite": r"\.dblwr$",
    "redo": r"/#innodb_redo/|/ib_logfile\d+$",
    "binary_log": r"/[^/]*bin(log)?\.\d{6}$",
    "temporary": r"/#innodb_temp/|/ibtmp\d*$",
    "pages": r"\.ib[du]$|/ibdata\d+$|/undo_?\d{3}$",
    "other_files": r"",
}
# The tracer's line of a request: device, flags, bytes, command, first sector, sectors. F: flush, W: write. A flush has
# no sectors.
REQUEST = re.compile(r" (\d+\.\d+): block_rq_issue: \d+,\d+ ([A-Z]+) \d+ \([^)]*\) (\d+) \+ (\d+) ")
LOST = re.compile(r"\[LOST (\d+) EVENTS\]")
# FS_IOC_FIEMAP of linux/fs.h: struct fiemap, then n of struct fiemap_extent (linux/fiemap.h).
FIEMAP = 0xC020660B
FIEMAP_HEAD = struct.Struct("=QQIIII")
FIEMAP_EXTENT = struct.Struct("=QQQQQIIII")
FIEMAP_EXTENTS = 512
EXTENT_LAST = 0x1
# Extents whose place is not known yet, or that lie in other structures: UNKNOWN, DELALLOC, ENCODED, INLINE, TAIL.
NO_PLACE = 0x2 | 0x4 | 0x8 | 0x200 | 0x400
# The owners as the report calls them.
NAMES = {
    "pages": "pages", "doublewrite": "doublewrite buffer", "redo": "redo log", "binary_log": "binary log",
    "temporary": "temporary tables", "other_files": "other files",
    FILE_SYSTEM: "the file system's journal and metadata",
}  # fmt: skip
BUFFER_KIB = 8192
READ_S = 0.2
READ_BYTES = 1 << 18


def owner_of(path):
    return next(owner for owner, pattern in OWNERS.items() if re.search(pattern, path))


def extents_of(path):
    """The places of a file on its disk: (first sector, end)."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        begin = 0
        while True:
            answer = bytearray(FIEMAP_HEAD.size + FIEMAP_EXTENTS * FIEMAP_EXTENT.size)
            FIEMAP_HEAD.pack_into(answer, 0, begin, (1 << 64) - 1 - begin, 0, 0, FIEMAP_EXTENTS, 0)
            fcntl.ioctl(file, FIEMAP, answer)
            n = FIEMAP_HEAD.unpack_from(answer)[3]
            flags = EXTENT_LAST
            for i in range(n):
                logical, physical, length, _, _, flags, *_ = FIEMAP_EXTENT.unpack_from(
                    answer, FIEMAP_HEAD.size + i * FIEMAP_EXTENT.size
                )
                if not flags & NO_PLACE:
                    yield physical // SECTOR_BYTES, (physical + length) // SECTOR_BYTES
                begin = logical + length
            if flags & EXTENT_LAST:
                return
    finally:
        os.close(file)


class Map:
    """The owners of a disk's blocks at one time."""

    def __init__(self, time_s, extents):
        """extents: (first sector, end, owner), no two of which overlap."""
        self.time_s = time_s
        self.extents = sorted(extents)
        self.begins = [begin for begin, _, _ in self.extents]

    @classmethod
    def of_folder(cls, top):
        """The files below a folder, which is a whole file system."""
        found = []
        begin = time.monotonic()
        for folder, _, names in os.walk(top):
            for name in names:
                path = f"{folder}/{name}"
                # A file may just be removed.
                with contextlib.suppress(OSError):
                    found += [(first, end, owner_of(path)) for first, end in extents_of(path)]
        return cls(begin, found)

    def owner_at(self, sector):
        """The owner, or None."""
        i = bisect_right(self.begins, sector) - 1
        return self.extents[i][2] if i >= 0 and sector < self.extents[i][1] else None


def request_of(line):
    """A write or a flush from a line of the trace: (time in seconds, first sector, bytes); a flush has no sector. None:
    another request, or none."""
    found = REQUEST.search(line)
    if not found:
        return None
    time_s, flags, sector, sectors = found.groups()
    if int(sectors) == 0:
        return (float(time_s), None, 0) if "F" in flags else None
    return (float(time_s), int(sector), int(sectors) * SECTOR_BYTES) if "W" in flags else None


def account(requests, maps, begin, end):
    """{owner: {writes, bytes}} and the number of flushes, of the requests from begin to end. The blocks of a request
    are those of the first map that was made after it, or, if the file was removed before, of the one before it."""
    found = {owner: {"writes": 0, "bytes": 0} for owner in NAMES}
    flushes = 0
    times = [of.time_s for of in maps]
    for time_s, sector, n_bytes in requests:
        if not begin <= time_s < end:
            continue
        if sector is None:
            flushes += 1
            continue
        after = bisect_left(times, time_s)
        owners = (of.owner_at(sector) for of in (*maps[after : after + 1], *maps[max(after - 1, 0) : after]))
        owner = found[next(filter(None, owners), FILE_SYSTEM)]
        owner["writes"] += 1
        owner["bytes"] += n_bytes
    return found, flushes


class Trace(threading.Thread):
    """Traces the writes to a disk with a file system of its own, until the context ends."""

    def __init__(self, device, top):
        """device: major:minor; top: where its file system is mounted."""
        super().__init__(daemon=True)
        major, minor = map(int, device.split(":"))
        self.number = major << 20 | minor
        self.top = top
        self.requests = []
        self.maps = []
        self.lost = 0
        self.ended = threading.Event()
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            instance = stack.enter_context(trace_instance())
            event = instance / "events/block/block_rq_issue"
            # The clock of time.monotonic().
            (instance / "trace_clock").write_text("mono")
            (instance / "buffer_size_kb").write_text(str(BUFFER_KIB))
            (event / "filter").write_text(f"dev == {self.number}")
            self.pipe = os.open(instance / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            stack.callback(os.close, self.pipe)
            (event / "enable").write_text("1")
            self.stack = stack.pop_all()
        self.maps.append(Map.of_folder(self.top))
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()
        self.stack.close()

    def read(self):
        """Take what the tracer has."""
        text = b""
        with contextlib.suppress(BlockingIOError):
            while part := os.read(self.pipe, READ_BYTES):
                text += part
        return text

    def run(self):
        rest = b""
        while True:
            is_last = self.ended.wait(READ_S)
            *lines, rest = (rest + self.read()).decode().split("\n")
            rest = rest.encode()
            self.requests += filter(None, map(request_of, lines))
            self.lost += sum(int(found.group(1)) for found in map(LOST.search, lines) if found)
            if is_last or time.monotonic() - self.maps[-1].time_s >= 1:
                self.maps.append(Map.of_folder(self.top))
            if is_last:
                return

    def account(self, begin, end):
        """account() of what was traced, after the context; None if events were lost."""
        return None if self.lost else account(self.requests, self.maps, begin, end)
