"""Runs a plan, one run after the other, each server on a copy of the same data directory."""

import contextlib
import dataclasses
import itertools
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from spillway import block_throttle, common, filesystem, instance, sysbench, timed_disk
from spillway.common import (
    BUILD,
    DIES_WITH_US,
    REPO,
    Failure,
    Skip,
    check_own,
    flocked,
    read_record,
    say,
    sha256_of,
    write_atomically,
)
from spillway.instance import Instance, identify
from spillway.sysbench import run_sysbench, sysbench_command

from . import data, figures, io_account, result
from .load import MEASURED, Load
from .plan import Device, Server, Workload, check_arrivals
from .sampler import Sampler, redo_generated

WORK = data.BENCH / "work"
# The loop files of devices with in_memory are here, in temporary folders.
MEMORY = Path("/dev/shm")
TOOLS = (block_throttle, common, filesystem, instance, sysbench, timed_disk)
RESULTS = data.BENCH / "results"
POLL_S = 0.25
PROGRESS_S = 15
# How long the runner waits at the end for transactions that began within the window.
DRAIN_S = 30
# Attempts at a repetition while the steal exceeds the plan's limit. The attempt with the least steal counts.
NOISE_ATTEMPTS = 3
# Estimated time of a run beside the window and the minimum warm-up, until a run has finished.
GUESSED_OVERHEAD_S = 60
# InnoDB's counters that a comparison needs and that are off by default. Each server counts those that it has.
MONITORS = ("log_on_file_space_waits", "log_writer_on_file_space_waits", "buffer_flush_sync",
            "buffer_flush_sync_total_pages")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Run:
    """One server under one workload on one device, in one repetition."""

    device: Device
    workload: Workload
    repetition: int
    server: Server

    @property
    def name(self):
        return f"{self.device.name}.{self.workload.name}.{self.repetition}.{self.server.name}"


def runs_of(plan):
    """The runs in order: servers alternate within each workload on each device."""
    return [
        Run(device.of_server(server), workload.of_server(server), repetition, server)
        for device in plan.devices
        for workload in plan.workloads
        for repetition in range(1, plan.repetitions + 1)
        for server in plan.servers
    ]


def options_of(plan, run):
    """The options of a run's server. Later ones override: plan, device, workload, server."""
    return plan.options | run.device.server_options | run.workload.server_options | run.server.options


def first_line(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0].strip()
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def matched(path, pattern):
    found = re.search(pattern, Path(path).read_text(), re.MULTILINE)
    return found.group(1).strip() if found else "unknown"


def environment():
    """Return what figures depend on beside the plan."""
    git = ["git", "-c", "safe.directory=*", "-C", str(REPO)]
    return {
        "date": time.strftime("%Y-%m-%d %H:%M %z"),
        "commit": first_line(*git, "describe", "--always", "--abbrev=40", "--dirty= and changes"),
        "fork": fork_state(),
        "cpu": matched("/proc/cpuinfo", r"^model name\s*: (.*)"),
        "cores": os.cpu_count(),
        "memory": matched("/proc/meminfo", r"^MemTotal:\s*(.*)"),
        "kernel": platform.release(),
        "distribution": matched("/etc/os-release", r'^PRETTY_NAME="?([^"]*)'),
        "file_system": first_line("findmnt", "--noheadings", "--output", "FSTYPE,OPTIONS", "--target", str(WORK)),
        "fs.aio-max-nr": first_line("cat", "/proc/sys/fs/aio-max-nr"),
        "control_groups": f"version {block_throttle.version()}",
        "sysbench": data.sysbench_version(),
    }


def fork_state(top=REPO):
    """Whether this checkout's server is newer than its sources, by the times of the files."""
    program = top / "build/fork/release/runtime_output_directory/mysqld"
    if not program.exists():
        return "not built"
    sources = [path for folder in ("storage", "sql", "patches") for path in (top / folder).rglob("*.[chip]*")]
    newer = [path for path in sources if path.stat().st_mtime > program.stat().st_mtime]
    return f"older than {newer[0].relative_to(top)}: make server" if newer else "newer than its sources"


def disk_of(path):
    """The disk whose counters are sampled; "" if the path is on none, for example in memory."""
    try:
        return block_throttle.device_of(path)
    except Skip:
        return ""


def mounted(device):
    """A context that mounts a new file system for a device and gives its mount point."""
    timing = device.timing if device.timing != timed_disk.Timing() else None
    return filesystem.mounted(device.filesystem, device.size, MEMORY if device.in_memory else WORK, timing=timing)


@contextlib.contextmanager
def throttled(device, process_id, place):
    """A context in which the device's model applies to a process and to its files in place. Gives a function that
    returns a timed disk's counters; {} for other devices."""
    if device.timing != timed_disk.Timing():
        with timed_disk.timed(filesystem.on_disk(place)) as counters:
            yield counters
        return
    disk = filesystem.on_disk(place)
    if disk != place and block_throttle.version() == 2:
        # powercut_fs writes in place of the server, and version 2 limits processes, not the disk.
        raise Skip("powercut_fs is not throttled with control groups of version 2")
    with block_throttle.throttled(process_id, disk, device.limits, is_own_disk=place != WORK):
        yield dict


def make_work():
    """Create the folder that each run empties. Refuse one with files that this tool did not make, and folders that
    other users can write to, since servers start on their content."""
    marker = data.BENCH / "made-by-spillway"
    for path in (data.BENCH, WORK, data.LOADED):
        check_own(path)
    if data.BENCH != BUILD / "bench" and not marker.exists() and WORK.exists() and any(WORK.iterdir()):
        raise Failure(f"SPILLWAY_BENCH: {WORK} has files and was not made by this command, which empties it: "
                      "name another folder")  # fmt: skip
    WORK.mkdir(mode=0o700, parents=True, exist_ok=True)
    marker.touch()


def empty(folder):
    """Remove the content of a folder. The folder itself stays, because other commands wait for its lock."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


class Experiment:
    def __init__(self, plan, folder, without_device_models):
        self.plan = plan
        self.folder = folder
        self.without_device_models = without_device_models
        self.runs = runs_of(plan)
        self.programs = {}
        self.stamps = None
        # Whether take_folder() found that the folder belongs to this plan.
        self.has_folder = False
        # What this machine supports, by device key: (the file system is mounted, the limits apply).
        self.device_support = {}

    def path(self, run):
        return self.folder / "runs" / run.name

    def finished(self, run):
        return (self.path(run) / "run.json").exists()

    def result(self, run):
        return json.loads((self.path(run) / "run.json").read_text())

    def execute(self):
        """Do the unfinished runs. Finished runs stay, whatever happens."""
        if not shutil.which("sysbench"):
            raise Failure("sysbench is not installed: make packages")
        make_work()
        with flocked(WORK, "runs a benchmark in this checkout"):
            self.programs = {server.name: identify(server.mysqld) for server in self.plan.servers}
            self.check_unchanged()
            empty(WORK)
            self.try_devices()
            self.try_options()
            self.take_folder()
            self.has_folder = True
            for repetition in self.repetitions():
                self.carry_out_repetition(repetition)

    def try_devices(self):
        """Find out before the first measurement what this machine supports, so that all servers get the same."""
        unfinished = {run.device.key: run.device for run in self.runs if not self.finished(run)}
        for device in unfinished.values():
            with subprocess.Popen([*DIES_WITH_US, "sleep", "infinity"]) as anyone, contextlib.ExitStack() as stack:
                # The with statement waits for the process after the stack has killed it.
                stack.callback(anyone.kill)
                place, mounts, throttles = WORK, False, True
                try:
                    if device.filesystem:
                        place = stack.enter_context(mounted(device))
                        mounts = True
                except (Skip, Failure) as why:
                    self.fall_back(device, why)
                try:
                    stack.enter_context(throttled(device, anyone.pid, place))
                except (Skip, Failure) as why:
                    self.fall_back(device, why)
                    throttles = False
                self.device_support[device.key] = mounts, throttles

    def try_options(self):
        """Fail before the first measurement if a server does not know one of its options."""
        tried = []
        for run in self.runs:
            tried_with = run.server.name, options_of(self.plan, run)
            if tried_with not in tried and not self.finished(run):
                tried.append(tried_with)
                with tempfile.TemporaryDirectory(dir=WORK) as folder:
                    place = Path(folder)
                    with Instance(self.programs[run.server.name], place / "data", place) as instance:
                        instance.check_options(tried_with[1])

    def repetitions(self):
        """The runs in groups: the runs of a group are compared with each other and follow one another."""
        return [list(runs) for _, runs in itertools.groupby(self.runs, lambda run: run.name.rpartition(".")[0])]

    def carry_out_repetition(self, runs):
        """Do all runs of a repetition: a finished run cannot be compared with one of another day."""
        first = self.runs.index(runs[0]) + 1
        if all(self.finished(run) for run in runs):
            say(f"runs {first} to {first + len(runs) - 1} of {len(self.runs)} are done already")
            return
        noisy = self.folder / "noisy"
        self.discard(noisy)
        worst = []
        for attempt in range(NOISE_ATTEMPTS):
            for run in runs:
                shutil.rmtree(self.path(run), ignore_errors=True)
            for number, run in enumerate(runs, first):
                self.number = number
                self.check_unchanged()
                self.run_one(run)
            steal = {run.name: self.result(run)["figures"]["cpu_steal_pct"] or 0 for run in runs}
            if result.is_quiet(steal.values(), self.plan.max_steal_pct):
                break
            text = ", ".join(f"{name} {pct:.0f} %" for name, pct in steal.items())
            say(f"noisy: CPU time that the host gave to others: {text}")
            worst.append(max(steal.values()))
            for run in runs:
                shutil.copytree(self.path(run), noisy / str(attempt) / run.name)
        else:
            for run in runs:
                shutil.rmtree(self.path(run))
                (noisy / str(worst.index(min(worst))) / run.name).rename(self.path(run))
        self.discard(noisy)

    def discard(self, noisy):
        """Move the figures of noisy attempts to discarded.json, which the report shows."""
        if not noisy.exists():
            return
        path = self.folder / "discarded.json"
        found = []
        with contextlib.suppress(FileNotFoundError, ValueError):
            found = json.loads(path.read_text())
        for one in sorted(noisy.glob("*/*/run.json")):
            of_run = json.loads(one.read_text())["figures"]
            found.append({"run": one.parent.name, **{key: of_run[key] for key in ("mean_per_s", "cpu_steal_pct")}})
        write_atomically(path, json.dumps(found, indent=1))
        shutil.rmtree(noisy)

    def files_used(self):
        """The files that a result depends on, beside the plan."""
        ours = {MEASURED, *Path(__file__).parent.glob("*.py"), *(Path(module.__file__) for module in TOOLS)}
        return sorted(ours | {server.mysqld for server in self.plan.servers} |
                      {workload.script for workload in self.plan.workloads})  # fmt: skip

    def check_unchanged(self):
        """End the plan if a program or a script has changed since the command began."""
        stamps = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in self.files_used()}
        if self.stamps is None:
            self.stamps = stamps
        changed = [str(path) for path, stamp in stamps.items() if stamp != self.stamps[path]]
        if changed:
            raise Failure(f"changed since this command began: {', '.join(changed)}; runs with it cannot be compared")

    def take_folder(self):
        """Begin a folder of results, or resume one that was begun with the same plan and the same programs."""
        made_with = {
            "plan": sha256_of(self.plan.path),
            "devices": {device.name: dataclasses.asdict(device) for device in self.plan.devices},
            "programs": {name: program.sha256 for name, program in self.programs.items()},
            "scripts": {str(path): sha256_of(path) for path in self.files_used() if path.suffix},
            "sysbench": data.sysbench_version(),
            "kernel": platform.release(),
            "given": {device: list(given) for device, given in self.device_support.items()},
        }
        marker = self.folder / "made-with.json"
        if before := read_record(marker):
            # try_devices() skips a device whose runs are finished.
            made_with["given"] = before.get("given", {}) | made_with["given"]
            if before != made_with:
                differs = ", ".join(key for key in made_with if before.get(key) != made_with[key])
                raise Failure(
                    f"{self.folder} was begun with other things ({differs}), and its runs cannot be compared with new "
                    "ones; name another place with --output, or remove it"
                )
            return
        if self.folder.exists() and any(path != marker for path in self.folder.iterdir()):
            raise Failure(f"{self.folder} has files and was not made by this command; name another with --output")
        found = environment()
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.plan.path, self.folder / "plan.toml")
        write_atomically(self.folder / "environment.json", json.dumps(found, indent=1))
        write_atomically(marker, json.dumps(made_with, indent=1))

    def seconds_left(self, warmup_s=None):
        """Estimate the time of all unfinished runs from the finished ones. Before the first has finished, assume a
        warm-up of warmup_s for each; None: the plan's minimum."""
        took = [(run, self.result(run)["took_s"]) for run in self.runs if self.finished(run)]
        guess = self.plan.measured_s + (warmup_s or self.plan.warmup_min_s) + GUESSED_OVERHEAD_S

        def estimate(run):
            alike = [seconds for other, seconds in took
                     if (other.workload.name, other.device.name) == (run.workload.name, run.device.name)]  # fmt: skip
            return statistics.fmean(alike or [seconds for _, seconds in took] or [guess])

        return sum(estimate(run) for run in self.runs if not self.finished(run))

    def progress(self, run, text):
        left = max(0, self.left_at_begin - (time.monotonic() - self.run_begin))
        say(f"[{self.number}/{len(self.runs)}] {run.name}: {text}; about {left / 60:.0f} min left")

    def arrivals(self, run):
        """Return arrivals per second outside of and during bursts. Percentages are of the first server's median."""
        workload = run.workload
        peak = 0
        if workload.of:
            reference = self.plan.servers[0].name
            means = [self.result(other)["figures"]["mean_per_s"] for other in self.runs
                     if (other.device.name, other.workload.name, other.server.name)
                     == (run.device.name, workload.of, reference)]  # fmt: skip
            peak = statistics.median(means)
            if not peak:
                raise Failure(f"{run.name}: {reference} has done nothing in {workload.of}, and a share of it is wanted")
        arrivals = workload.arrivals or peak * workload.arrivals_pct / 100
        check_arrivals(run.name, workload.clients, arrivals)
        return arrivals, workload.burst_arrivals or peak * workload.burst_arrivals_pct / 100

    def run_one(self, run):
        """Do one run, from the copy of the loaded data to run.json."""
        program = self.programs[run.server.name]
        options = options_of(self.plan, run)
        loaded = data.loaded_for(run.workload, program.family, options)
        source = data.load(loaded, program, options)
        self.run_begin = time.monotonic()
        self.left_at_begin = self.seconds_left()
        folder = self.path(run)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.progress(run, "copying the data")
        try:
            with contextlib.ExitStack() as stack:
                found = self.measure(stack, run, program, options, source, folder)
        finally:
            shutil.rmtree(WORK / "data", ignore_errors=True)
        found["took_s"] = time.monotonic() - self.run_begin
        fresh = folder / "run.json.new"
        fresh.write_text(json.dumps(found))
        fresh.rename(folder / "run.json")
        shutil.rmtree(folder / "records")
        self.progress(run, f"{found['figures']['mean_per_s']:.0f} transactions/s, worst second "
                           f"{found['figures']['worst_second_per_s']}")  # fmt: skip

    def fall_back(self, device, why):
        """Continue without a device model if --without-device-models is given; otherwise fail."""
        if not self.without_device_models:
            raise Failure(f"{device.key}: {why}; to go on with the machine's own disk: --without-device-models")
        say(f"without a device model: {device.key}: {why}")

    def measure(self, stack, run, program, options, source, folder):
        mounts, throttles = self.device_support[run.device.key]
        place = WORK
        if mounts:
            place = stack.enter_context(mounted(run.device))
        copied = data.copy(source, place)
        instance = stack.enter_context(Instance(program, copied, folder))
        instance.start(options)
        instance.wait_until_ready()
        self.enable_monitors(instance)
        capacity = instance.redo_capacity_bytes()
        settings = instance.settings()
        arrivals, burst_arrivals = self.arrivals(run)
        with contextlib.ExitStack() as loaded:
            began = time.strftime("%Y-%m-%d %H:%M:%S %z")
            disk_counters = dict
            if throttles:
                disk_counters = loaded.enter_context(throttled(run.device, instance.process.pid, place))
            top = filesystem.on_disk(place)
            disk = disk_of(top)
            trace = self.trace(loaded, disk, top) if mounts else None
            sampler = loaded.enter_context(Sampler(instance, disk, folder / "samples.jsonl"))
            load_begin = time.monotonic()
            load = loaded.enter_context(Load(run, instance, folder, arrivals, burst_arrivals))
            sampler.load_pid = load.process.pid
            watch = Watch(self, run, instance, sampler, load)
            warmed = watch.warm_up(capacity)
            if burst_arrivals:
                # As in bench/measured.lua, a period begins where the clock is a multiple of it.
                period = run.workload.burst_period_s
                watch.until(time.monotonic() // period * period + period, "waiting for the next period of bursts")
            begin = time.monotonic()
            end = begin + self.plan.measured_s
            watch.until(end, "measuring")
            behind = watch.drain(end)
            timed = disk_counters()
            status = instance.sql("SHOW ENGINE INNODB STATUS")
        (folder / "innodb-status.txt").write_text("\n".join("\t".join(row) for row in status) + "\n")
        checked = self.check(run, instance, folder)
        instance.stop()
        records = load.all_records()
        seconds = self.plan.measured_s
        due, missing = None, len(behind)
        if arrivals:
            period = run.workload.burst_period_s, run.workload.burst_length_s
            bursts = (burst_arrivals, *period) if burst_arrivals else None
            due = [figures.due_between(arrivals, bursts, begin + i, begin + i + 1) for i in range(seconds)]
            # Arrivals belong to a client: a client that is behind has at least one transaction under way.
            missing = sum(
                max(1, round(figures.due_between(arrivals, bursts, max(last, begin), end) / run.workload.clients))
                for last in behind
            )
        return {
            "device": run.device.name, "filesystem": run.device.filesystem, "workload": run.workload.name,
            "server": run.server.name,
            "repetition": run.repetition, "version": program.version, "sha256": program.sha256, "options": options,
            "settings": settings, "redo_capacity_bytes": capacity, "clients": run.workload.clients, "began": began,
            "measured_s": self.plan.measured_s, "is_throttled": throttles, "is_mounted": mounts,
            "timed_disk": timed,
            "clients_behind": len(behind), "arrivals_per_s": arrivals,
            "burst_arrivals_per_s": burst_arrivals, "check": checked, **warmed,
            "figures": result.window_figures(records, sampler.samples, begin, seconds, due, missing,
                                             trace and trace.account(begin, end), throttles and run.device.limits),
            "series": result.series(records, sampler.samples, load_begin, begin, seconds),
        }  # fmt: skip

    def trace(self, stack, disk, top):
        """Trace the writes to the disk that is mounted at top; None where the kernel cannot."""
        try:
            return stack.enter_context(io_account.Trace(disk, top))
        except (Failure, OSError) as failure:
            say(f"no account of the disk's writes: {failure}")
            return None

    def enable_monitors(self, instance):
        names = ", ".join(f"'{name}'" for name in MONITORS)
        for (name,) in instance.sql(f"SELECT name FROM information_schema.innodb_metrics WHERE name IN ({names})"):
            instance.sql(f"SET GLOBAL innodb_monitor_enable = '{name}'")

    def check(self, run, instance, folder):
        """Run the workload's check on the data after the load. Return its output, or None if there is no check."""
        if not run.workload.has_check:
            return None
        log = folder / "check.log"
        command = sysbench_command(run.workload.script, instance, run.workload.options)
        run_sysbench([*command, "check"], log, f"the check of {run.workload.name}'s data on {run.server.name}")
        return log.read_text()


class Watch:
    """Watches a run during its load."""

    def __init__(self, experiment, run, instance, sampler, load):
        self.experiment = experiment
        self.run = run
        self.instance = instance
        self.sampler = sampler
        self.load = load
        self.said = time.monotonic()
        self.transactions = 0

    def poll(self, text):
        """Fail if the server, the load or the sampler has ended. Report the progress every PROGRESS_S seconds."""
        self.instance.check_alive()
        self.load.check_alive()
        if self.sampler.failure:
            raise self.sampler.failure
        now = time.monotonic()
        if now - self.said >= PROGRESS_S:
            transactions = self.load.transactions()
            rate = (transactions - self.transactions) / (now - self.said)
            self.experiment.progress(self.run, f"{text}, {rate:.0f} transactions/s")
            self.said, self.transactions = now, transactions
        time.sleep(POLL_S)

    def warm_up(self, capacity):
        """Wait until the redo log was written over warmup_redo_writes times, so that flushing is steady."""
        plan = self.experiment.plan
        begin = time.monotonic()
        first = redo_generated(self.sampler.latest())
        while True:
            elapsed = time.monotonic() - begin
            writes = (redo_generated(self.sampler.latest()) - first) / capacity
            is_steady = writes >= plan.warmup_redo_writes
            if (is_steady and elapsed >= plan.warmup_min_s) or elapsed >= plan.warmup_max_s:
                return {"is_steady": is_steady, "warmup_s": elapsed, "warmup_redo_writes": writes}
            self.poll(f"warm-up, redo log written {writes:.1f} of {plan.warmup_redo_writes:g} times")

    def until(self, moment, text):
        while time.monotonic() < moment:
            self.poll(f"{text}, {moment - time.monotonic():.0f} s")

    def drain(self, moment):
        """Wait until every transaction that began before that time has ended and a later sample exists, at most
        DRAIN_S. Return the clients that are still behind, as Load.behind()."""
        while (behind := self.load.behind(moment)) or self.sampler.latest()["time"] <= moment:
            if time.monotonic() > moment + DRAIN_S:
                break
            self.poll("waiting for the last transactions")
        return behind
