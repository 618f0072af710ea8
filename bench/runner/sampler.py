"""Samples the counters of a server and its disk once a second while a load runs."""

import json
import threading
import time
from pathlib import Path

from spillway.common import Failure

STATUS = "SHOW GLOBAL STATUS WHERE Variable_name LIKE 'Innodb%' OR Variable_name IN ('Threads_running', 'Com_commit')"
METRICS = "SELECT CONCAT('metric.', name), count FROM information_schema.innodb_metrics WHERE {}"
# Fields of /proc/diskstats (the kernel's Documentation/admin-guide/iostats.rst). A sector has 512 bytes.
DISK_FIELDS = (
    "reads", "reads_merged", "sectors_read", "read_ms", "writes", "writes_merged", "sectors_written", "write_ms",
    "in_flight", "io_ms", "weighted_io_ms",
)  # fmt: skip

NO_LOAD = {"load.user_ticks": 0, "load.system_ticks": 0}


def disk_counters(device):
    """The kernel's counters of the disk with this major:minor."""
    for line in Path("/proc/diskstats").read_text().splitlines():
        major, minor, _, *fields = line.split()
        if f"{major}:{minor}" == device:
            return {f"disk.{name}": int(value) for name, value in zip(DISK_FIELDS, fields, strict=False)}
    return {}


def machine_counters():
    """The CPU time of all cores in clock ticks: total, idle, and steal (the host gave it to others)."""
    ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return {"machine.all_ticks": sum(ticks), "machine.idle_ticks": ticks[3] + ticks[4],
            "machine.steal_ticks": ticks[7]}  # fmt: skip


def cpu_counters(pid, whose):
    """The CPU time of a process in clock ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return {f"{whose}.user_ticks": int(fields[11]), f"{whose}.system_ticks": int(fields[12])}


def process_counters(pid):
    """The CPU time of a process, and the bytes that it read from and wrote to disks."""
    counters = cpu_counters(pid, "process")
    for line in Path(f"/proc/{pid}/io").read_text().splitlines():
        name, _, value = line.partition(": ")
        if name in ("read_bytes", "write_bytes"):
            counters[f"process.{name}"] = int(value)
    return counters


def numbers(rows):
    """Return name and value of the rows with a numeric value."""
    found = {}
    for row in rows:
        if len(row) == 2 and row[1].lstrip("-").replace(".", "", 1).isdigit():
            found[row[0]] = float(row[1]) if "." in row[1] else int(row[1])
    return found


def checkpoint_age(sample):
    """The checkpoint age in bytes, by the names that the server has; None if it has none."""
    if "Innodb_checkpoint_age" in sample:
        return sample["Innodb_checkpoint_age"]
    current, checkpoint = sample.get("Innodb_redo_log_current_lsn"), sample.get("Innodb_redo_log_checkpoint_lsn")
    return None if current is None or checkpoint is None else current - checkpoint


def redo_generated(sample):
    """The redo generated so far in bytes, by the names that the server has. The bytes written to the files are
    more, because a block that is not full is written again."""
    names = ("Innodb_redo_log_current_lsn", "Innodb_lsn_current", "Innodb_os_log_written")
    return next(sample[name] for name in names if name in sample)


class Sampler(threading.Thread):
    """Takes a sample each second until it is stopped, and writes each to a file as a line of JSON."""

    def __init__(self, instance, device, path):
        super().__init__(daemon=True)
        self.instance = instance
        self.device = device
        self.path = path
        # The load generator's process ID, once it runs.
        self.load_pid = None
        self.samples = []
        self.failure = None
        self.ended = threading.Event()

    def __enter__(self):
        self.session = self.instance.session()
        enabled = "enabled" if self.instance.program.is_mariadb else "status = 'enabled'"
        self.questions = f"{STATUS};\n{METRICS.format(enabled)}"
        self.samples.append(self.sample())
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join(2)
        # This ends a sample that waits for a stalled server.
        self.session.close()
        self.join()

    def sample(self):
        begin = time.monotonic()
        found = numbers(self.session.query(self.questions))
        # The server counted at some time between these two.
        found["time"] = (begin + time.monotonic()) / 2
        pid = self.instance.process.pid
        load = cpu_counters(self.load_pid, "load") if self.load_pid else NO_LOAD
        return found | load | disk_counters(self.device) | process_counters(pid) | machine_counters()

    def run(self):
        due = time.monotonic()
        try:
            with open(self.path, "w") as file:
                file.write(json.dumps(self.samples[0]) + "\n")
                while True:
                    due = max(due + 1, time.monotonic())
                    if self.ended.wait(due - time.monotonic()):
                        return
                    self.samples.append(self.sample())
                    file.write(json.dumps(self.samples[-1]) + "\n")
        except (Failure, OSError, ValueError) as failure:
            if not self.ended.is_set():
                self.failure = failure

    def latest(self):
        return self.samples[-1]
