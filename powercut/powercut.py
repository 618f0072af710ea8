#!/usr/bin/env python3
"""Cut a server's power, and see what is left; see powercut/README.md.

    powercut.py run        cut it, or kill the server, in each configuration
    powercut.py report     a table of what came of it
"""

import argparse
import collections
import concurrent.futures
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench/runner"))
import data
import verdict
from common import BUILD, DIES_WITH_US, REPO, Failure, flocked, main, name_outside, say
from instance import DATABASE, Instance, identify

from storage import Storage, need_root

CONFIGURATIONS = REPO / "powercut/configurations.toml"
SCRIPT = REPO / "powercut/transfers.lua"
# The media are in memory: a thousand cuts shall not wear a disk, nor wait for it.
FOLDER = Path("/dev/shm") / name_outside("powercut", REPO)
PROGRAM = BUILD / "fork/release/runtime_output_directory/mysqld"
# Of the first configuration; the others have the next ones.
PORT = 13890
CLIENTS = 8
# The load runs for some of that time, then the power is cut at one of so many writes of a page or more: in the middle
# of what a round of flushing writes, which moments at random would seldom meet.
LEAST_LOAD_SECONDS, MOST_LOAD_SECONDS = 1.0, 3.0
MOST_WRITES = 300
CUT_SECONDS = 10
COUNTER_SECONDS = 30
# Recovery takes a second or two; where it meets torn pages upstream's can wait for ever.
START_SECONDS = 60
# Of each cut so many outcomes are looked at: the same interrupted writes, other survivors.
OUTCOMES = 2
# Where pages have to be lost, so many cuts at the least have to show it.
CUTS_TO_LOSE = 10


# Set when another configuration has failed, or somebody has interrupted: no more cuts begin.
STOPPING = threading.Event()


def read_configurations():
    content = tomllib.loads(CONFIGURATIONS.read_text())
    for name, one in content["configurations"].items():
        if unknown := set(one) - {"filesystem", "plain", "options", "loses", "counts"}:
            raise Failure(f"{CONFIGURATIONS}: {name}: nothing is called {', '.join(unknown)}")
        one["options"] = content["options"] | one.get("options", {})
    return content["configurations"]


class Cases:
    """The cuts of one configuration."""

    def __init__(self, name, configuration, how, port):
        self.name = name
        self.how = how
        self.port = port
        self.options = configuration["options"]
        self.kind = configuration["filesystem"]
        self.fixture_options = [f"--plain={configuration['plain']}"] if "plain" in configuration else []
        self.counter = configuration.get("counts")
        self.page_bytes = int(self.options.get("innodb_page_size", "16K").removesuffix("K")) * 1024
        self.program = identify(PROGRAM)
        self.folder = FOLDER / name
        self.places = self.folder / "acknowledged"

    def storage(self, name):
        return Storage(self.folder / name, self.kind, *self.fixture_options)

    def instance(self, storage):
        return Instance(self.program, storage.mount / "data", storage.folder, self.port, START_SECONDS)

    def sysbench(self, instance):
        options = {"acknowledged": self.places, "threads": CLIENTS, "time": 0}
        return [*DIES_WITH_US, *data.sysbench_command(SCRIPT, instance, options)]

    def prepare(self, base):
        """A medium with a loaded data directory, from which each cut begins."""
        base.format()
        base.switch_on()
        with self.instance(base) as instance:
            instance.initialise(self.options)
            instance.start(self.options)
            instance.sql(f"CREATE DATABASE {DATABASE}")
            data.run_sysbench([*self.sysbench(instance), "prepare"], self.folder / "prepare.log", "loading")
            instance.stop()
        base.switch_off()

    def crash(self, storage, chance):
        """Load the server, and cut the power or kill it; gives what the clients were told."""
        shutil.rmtree(self.places, ignore_errors=True)
        self.places.mkdir()
        log = self.folder / "load.log"
        with self.instance(storage) as instance:
            instance.start(self.options)
            with open(log, "w") as file:
                load = subprocess.Popen([*self.sysbench(instance), "run"], stdin=subprocess.DEVNULL, stdout=file,
                                        stderr=file)  # fmt: skip
            try:
                time.sleep(chance.uniform(LEAST_LOAD_SECONDS, MOST_LOAD_SECONDS))
                if load.poll() is not None:
                    raise Failure(f"the load has ended; {log}:\n{data.last_lines(log)}")
                instance.check_alive()
                self.wait_for_counter(instance)
                if self.how == "cut":
                    cut(storage, chance.randrange(1, MOST_WRITES), self.page_bytes)
            finally:
                instance.process.kill()
                instance.process.wait()
                load.kill()
                load.wait()
        return verdict.acknowledged(self.places)

    def wait_for_counter(self, instance):
        """Until pages are written as this configuration is to show."""
        deadline = time.monotonic() + COUNTER_SECONDS
        while self.counter and not any(
            int(value) for _, value in instance.sql(f"SHOW GLOBAL STATUS LIKE '{self.counter}'")
        ):
            if time.monotonic() > deadline:
                raise Failure(f"{self.name}: {self.counter} has counted nothing")
            time.sleep(0.1)

    def outcome(self, storage, numbers):
        """What is wrong with what is left, or None."""
        with self.instance(storage) as instance:
            try:
                verdict.check(instance, self.options, numbers)
            except verdict.Lost as lost:
                return str(lost)
        return None

    def one(self, base, seed):
        """Cut once, or kill once; gives what came of each outcome."""
        chance = random.Random(seed)
        with self.storage("cut") as cut_storage, self.storage("outcome") as after:
            cut_storage.copy_medium(base)
            cut_storage.switch_on()
            numbers = self.crash(cut_storage, chance)
            result = {"configuration": self.name, "how": self.how, "seed": seed, "acknowledged": sum(numbers.values())}
            if self.how == "kill":
                # The machine goes on, and with it all that the file system was given.
                yield result | {"wrong": self.outcome(cut_storage, numbers)}
                return
            cut_storage.switch_off()
            for _ in range(OUTCOMES):
                survivors = chance.getrandbits(63)
                after.copy_medium(cut_storage)
                settled = after.settle(survivors)
                after.switch_on()
                wrong = self.outcome(after, numbers)
                yield result | {"survivors": survivors, "wrong": wrong} | settled
                after.switch_off()


def cut(storage, n_writes, page_bytes):
    storage.control(f"cut after {n_writes} writes of {page_bytes}")
    deadline = time.monotonic() + CUT_SECONDS
    while not storage.is_off():
        if time.monotonic() > deadline:
            storage.control("cut")
        time.sleep(0.005)


def run_configuration(name, configuration, port, arguments, out):
    """Cut as often as asked for, where pages have to be lost until one is; gives whether that is what came of it."""
    cases = Cases(name, configuration, arguments.how, port)
    cases.folder.mkdir(parents=True, exist_ok=True)
    loses = configuration["loses"]
    if loses == "pages" and arguments.how == "kill":
        # Direct I/O that has begun is ended, whatever becomes of the process.
        loses = "never"
    n_cuts = max(arguments.cuts, CUTS_TO_LOSE) if loses == "pages" else arguments.cuts
    n_lost = n_outcomes = 0
    with cases.storage("base") as base:
        cases.prepare(base)
        for i in range(n_cuts):
            if STOPPING.is_set():
                raise Failure(f"{name}: stopped after {i} of {n_cuts}")
            for result in cases.one(base, arguments.seed + i):
                n_outcomes += 1
                n_lost += result["wrong"] is not None
                out.write(json.dumps(result) + "\n")
                out.flush()
                if result["wrong"]:
                    say(f"{name}, seed {result['seed']}: {result['wrong']}")
                    if arguments.keep and loses != "pages":
                        keep(cases, arguments.keep / f"{name}-{result['seed']}-{n_outcomes}")
            say(f"{name}: {i + 1} of {n_cuts}; {n_lost} of {n_outcomes} outcomes lost something")
            if n_lost and loses == "pages":
                break
    return loses == "seldom" or (n_lost > 0) == (loses == "pages")


def keep(cases, folder):
    """The media before and after the survivors were drawn, the error log, and what the clients were told."""
    shutil.copytree(cases.folder, folder, ignore=shutil.ignore_patterns("base", "mount", "power"))
    say(f"kept: {folder}")


def run(arguments):
    need_root()
    configurations = read_configurations()
    names = arguments.configuration or list(configurations)
    if unknown := set(names) - set(configurations):
        raise Failure(f"{CONFIGURATIONS} has no {', '.join(sorted(unknown))}")
    FOLDER.mkdir(exist_ok=True)
    with (
        flocked(FOLDER, "cuts the power"),
        open(arguments.output or os.devnull, "a") as out,
        concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool,
    ):
        runs = {name: pool.submit(run_configuration, name, configurations[name], PORT + i, arguments, out)
                for i, name in enumerate(names)}  # fmt: skip
        try:
            wrong = [name for name, is_as_it_has_to_be in runs.items() if not is_as_it_has_to_be.result()]
        except BaseException:
            STOPPING.set()
            pool.shutdown(cancel_futures=True)
            raise
    shutil.rmtree(FOLDER)
    if wrong:
        raise Failure(f"not what has to come of it: {', '.join(wrong)}")


def report(arguments):
    """A table of what the outcomes in files were."""
    rows = {}
    for line in (line for path in arguments.files for line in path.read_text().splitlines()):
        result = json.loads(line)
        row = rows.setdefault((result["configuration"], result["how"]), collections.Counter(seeds=set()))
        row["seeds"].add(result["seed"])
        row["outcomes"] += 1
        row["lost"] += result["wrong"] is not None
        for name in ("interrupted", "torn"):
            row[name] += result.get(name, 0)
    print("| configuration | how | cuts | outcomes | interrupted | torn of them | outcomes that lost something |")
    print("|---|---|---|---|---|---|---|")
    for (name, how), row in rows.items():
        print(f"| {name} | {how} | {len(row['seeds'])} | {row['outcomes']} | {row['interrupted']} | {row['torn']} | "
              f"{row['lost']} |")  # fmt: skip


def command_line():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    cuts = commands.add_parser("run")
    cuts.add_argument("--configuration", action="append", help="of configurations.toml; all, if none is named")
    cuts.add_argument("--cuts", type=int, default=10, help="for each configuration that must lose nothing")
    cuts.add_argument("--seed", type=int, default=1, help="of the first cut; the next has the next")
    cuts.add_argument("--how", choices=["cut", "kill"], default="cut", help="kill: SIGKILL, and the machine goes on")
    cuts.add_argument("--jobs", type=int, default=os.cpu_count(), help="configurations at once, of 1.5 GiB in /dev/shm")
    cuts.add_argument("--output", type=Path, help="file that takes a line of JSON for each outcome, at its end")
    cuts.add_argument("--keep", type=Path, help="folder for what is left where something is lost that must not be")
    commands.add_parser("report").add_argument("files", type=Path, nargs="+")
    arguments = parser.parse_args()
    {"run": run, "report": report}[arguments.command](arguments)


if __name__ == "__main__":
    sys.exit(main(command_line))
