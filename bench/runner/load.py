"""The load generator: sysbench with bench/measured.lua around a workload."""

import os
import subprocess

from spillway.common import DIES_WITH_US, REPO, Failure
from spillway.sysbench import SYSBENCH_SCRIPTS, last_lines, sysbench_command, sysbench_environment

from . import figures

MEASURED = REPO / "bench/measured.lua"


class Load:
    """The load runs while the context lasts."""

    def __init__(self, run, instance, folder, arrivals, burst_arrivals):
        self.clients = run.workload.clients
        self.records = folder / "records"
        self.waits = self.records / "waits"
        self.log = folder / "sysbench.log"
        options = run.workload.options | {
            "records": self.records, "threads": self.clients, "time": 0, "report-interval": 10,
            "arrivals": arrivals, "burst_arrivals": burst_arrivals, "burst_period": run.workload.burst_period_s,
            "burst_length": run.workload.burst_length_s,
        }  # fmt: skip
        self.command = [*DIES_WITH_US, *sysbench_command(MEASURED, instance, options), "run"]
        self.environment = sysbench_environment() | {"SPILLWAY_WORKLOAD": script_for_lua(run.workload.script)}

    def __enter__(self):
        self.waits.mkdir(parents=True)
        with open(self.log, "w") as file:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=file,
                                            stderr=subprocess.STDOUT, env=self.environment,
                                            start_new_session=True)  # fmt: skip
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def check_alive(self):
        if (status := self.process.poll()) is not None:
            raise Failure(f"sysbench ended with status {status}; {self.log}:\n{last_lines(self.log)}")

    def files(self):
        """The record files, one per client."""
        return [path for path in self.records.iterdir() if path != self.waits]

    def transactions(self):
        """The number of transactions that have ended since the load began."""
        return sum(path.stat().st_size for path in self.files()) // figures.RECORD.size

    def behind(self, moment):
        """The clients that may have a transaction from before moment under way: for each, when its last ended
        transaction began or was due; 0 if none has ended. A client is not behind if it has ended a transaction that
        began or was due after moment, or if its own wait ends after moment."""
        last = [last_begin_s(path) for path in self.files()
                if max(last_begin_s(path), waits_until_s(self.waits / path.name)) <= moment]  # fmt: skip
        # Clients that have no file yet.
        return last + [0] * (self.clients - len(self.files()))

    def all_records(self):
        return [record for path in self.files() for record in figures.read_records(path.read_bytes())]


def last_begin_s(path):
    """Return when the last transaction that a client has ended began or was due; 0 if none has ended."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        whole = size - size % figures.RECORD.size
        if not whole:
            return 0
        file.seek(whole - figures.RECORD.size)
        ((end_us, response_us, _),) = figures.read_records(file.read(figures.RECORD.size))
        return (end_us - response_us) / 1e6


def waits_until_s(path):
    """The time until which a client waits before its next transaction; 0 if it has never waited."""
    content = path.read_bytes() if path.exists() else b""
    return figures.WAIT.unpack(content)[0] if len(content) == figures.WAIT.size else 0


def script_for_lua(script):
    """The script as bench/measured.lua takes it: sysbench's own by name, as they are in its search path."""
    return script.stem if script.is_relative_to(SYSBENCH_SCRIPTS) else str(script)
