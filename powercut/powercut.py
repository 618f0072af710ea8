#!/usr/bin/env python3
"""Cut the power of a server and check what is left; see powercut/README.md.

    powercut.py run        cut the power, or kill the server, in each configuration
    powercut.py report     print a table of the outcomes
"""

import argparse
import collections
import concurrent.futures
import contextlib
import dataclasses
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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from powercut import ddl, verdict
from powercut.storage import SECTOR_BYTES, Storage, happens, need_root
from spillway.common import BUILD, DIES_WITH_US, REPO, Failure, main, say
from spillway.instance import DATABASE, Instance, identify
from spillway.resources import keep_mounts_private, temporary_folder
from spillway.sysbench import last_lines, run_sysbench, sysbench_command, sysbench_environment

CONFIGURATIONS = REPO / "powercut/configurations.toml"
SCRIPT = REPO / "powercut/transfers.lua"
# The media are in memory: a thousand cuts should neither wear out a disk nor wait for it.
MEMORY = Path("/dev/shm")
PROGRAM = BUILD / "fork/release/runtime_output_directory/mysqld"
# When the power goes; successive seeds alternate: at a write during the load, right after the server has acknowledged
# a DDL statement, or within seconds after a clean restart.
MOMENTS = ("load", "ddl", "restart")
MAX_STATEMENTS = 6
MAX_RESTART_SECONDS = 2.0
DDL_SECONDS = 60
# In one of three cuts after DDL the power goes at one of the next writes instead.
MAX_WRITES_AFTER_DDL = 30
CLIENTS = 8
# The load runs for a time in this range. Then the power goes at one of the next MAX_WRITES writes of a page or more:
# in the middle of a flush round, which a random time would seldom hit.
MIN_LOAD_SECONDS, MAX_LOAD_SECONDS = 1.0, 3.0
MAX_WRITES = 300
CUT_SECONDS = 10
# For recoveries in which the power goes again: a small pool makes recovery apply the redo log in several batches, and
# reuse the slots of the doublewrite files.
RECOVERY_OPTIONS = {"innodb_buffer_pool_size": "8M"}
MAX_RECOVERY_WRITES = 600
COUNTER_SECONDS = 30
# Recovery takes a second or two. Stock's recovery can wait for ever when it reads torn pages.
START_SECONDS = 60
# Outcomes of each cut: the same interrupted writes, different survivors.
OUTCOMES = 2
# Minimum number of cuts to show a loss, in a configuration that has to lose pages.
CUTS_TO_LOSE = 10


# Set when another configuration has failed or the user interrupts: no more cuts begin.
STOPPING = threading.Event()


def read_configurations():
    content = tomllib.loads(CONFIGURATIONS.read_text())
    for name, one in content["configurations"].items():
        if unknown := set(one) - {"filesystem", "plain", "sector_bytes", "compression", "options", "loses", "counts"}:
            raise Failure(f"{CONFIGURATIONS}: {name}: nothing is called {', '.join(unknown)}")
        one["options"] = content["options"] | one.get("options", {})
    return content["configurations"]


# A run copies these, so that a build does not disturb it.
COPIED = ("mysqld", "mysql", "innochecksum")


class Keyring:
    """A keyring for encryption, outside of the medium: a power cut never loses a key.

    The server reads its list of components beside its program, so the program gets a folder of its own."""

    CONTENT = {
        "bin/mysqld.my": {"components": "file://component_keyring_file"},
        "plugins/component_keyring_file.cnf": {"path": "keys", "read_only": False},
    }

    def __init__(self, folder, program):
        self.folder = folder
        self.original = program
        self.program = folder / "bin" / program.name
        self.plugins = folder / "plugins"

    def create(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        build = self.original.parent.parent
        for name, source in (("bin", self.original.parent), ("plugins", build / "plugin_output_directory")):
            (self.folder / name).mkdir(parents=True)
            for path in source.iterdir():
                if path.name in COPIED:
                    shutil.copy(path, self.folder / name)
                else:
                    (self.folder / name / path.name).symlink_to(path)
        (self.folder / "share").symlink_to(build / "share")
        for name, content in self.CONTENT.items():
            if "path" in content:
                content = content | {"path": str(self.folder / content["path"])}
            (self.folder / name).unlink(missing_ok=True)
            (self.folder / name).write_text(json.dumps(content))

    def save(self):
        shutil.copy(self.folder / "keys", self.folder / "keys.base")

    def restore(self):
        (self.folder / "keys.backup").unlink(missing_ok=True)
        shutil.copy(self.folder / "keys.base", self.folder / "keys")


class Cases:
    """The cuts of one configuration."""

    def __init__(self, name, configuration, how, parent, server=PROGRAM):
        self.name = name
        self.how = how
        self.folder = parent / name
        self.keyring = Keyring(self.folder / "server", server)
        self.options = configuration["options"] | {"plugin_dir": self.keyring.plugins}
        self.sector_bytes = configuration.get("sector_bytes", SECTOR_BYTES)
        self.compression = configuration.get("compression", ["rows", "pages"])
        self.kind = configuration["filesystem"]
        self.fixture_options = [f"--plain={configuration['plain']}"] if "plain" in configuration else []
        self.counter = configuration.get("counts")
        self.page_bytes = int(self.options.get("innodb_page_size", "16K").removesuffix("K")) * 1024
        self.program = identify(server)
        self.places = self.folder / "acknowledged"

    def storage(self, name):
        return Storage(self.folder / name, self.kind, *self.fixture_options, sector_bytes=self.sector_bytes)

    def instance(self, storage, program=None):
        return Instance(program or self.with_keyring, storage.mount / "data", storage.folder, START_SECONDS)

    def sysbench(self, instance):
        options = {"acknowledged": self.places, "threads": CLIENTS, "time": 0, "compressed": "rows" in self.compression}
        return [*DIES_WITH_US, *sysbench_command(SCRIPT, instance, options)]

    def prepare(self, base):
        """Make the medium from which each cut begins: a loaded data directory."""
        self.keyring.create()
        self.with_keyring = dataclasses.replace(self.program, path=self.keyring.program)
        base.format()
        base.switch_on()
        with self.instance(base, self.program) as instance:
            instance.initialise(self.options)
        with self.instance(base) as instance:
            instance.start(self.options)
            instance.sql(f"CREATE DATABASE {DATABASE}")
            run_sysbench([*self.sysbench(instance), "prepare"], self.folder / "prepare.log", "loading")
            ddl.prepare(instance, self.compression)
            instance.stop()
        self.keyring.save()
        base.switch_off()

    @contextlib.contextmanager
    def load(self, instance, statements, crashes, **cut):
        """Run transfers and DDL while the context lasts; gives the process of the transfers. crashes returns whether an
        error is due to the crash."""
        log = self.folder / "load.log"
        with open(log, "w") as file:
            transfers = subprocess.Popen([*self.sysbench(instance), "run"], env=sysbench_environment(),
                                         stdin=subprocess.DEVNULL, stdout=file, stderr=file)  # fmt: skip
        try:
            statements.start(instance, crashes, **cut)
            yield transfers
        finally:
            try:
                statements.stop()
            finally:
                transfers.kill()
                transfers.wait()

    def crash(self, storage, chance, moment):
        """Load the server, then cut the power or kill it. Return what it has acknowledged: transfers, and DDL."""
        shutil.rmtree(self.places, ignore_errors=True)
        self.places.mkdir()
        self.keyring.restore()
        statements = ddl.Ddl(chance, self.compression)
        killed = threading.Event()

        def is_crash():
            return killed.is_set() or storage.is_off()

        with self.instance(storage) as instance:
            instance.start(self.options)
            seconds = chance.uniform(MIN_LOAD_SECONDS, MAX_LOAD_SECONDS)
            n_writes = chance.randrange(1, MAX_WRITES)
            after = {}
            if moment == "restart":
                with self.load(instance, statements, is_crash):
                    time.sleep(seconds)
                    self.wait_for_counter(instance)
                instance.stop()
                instance.start(self.options)
                seconds = chance.uniform(0, MAX_RESTART_SECONDS)
            if moment == "ddl":
                n_writes = chance.choice([0, 0, chance.randrange(1, MAX_WRITES_AFTER_DDL)])
                acknowledged = threading.Event()

                def acknowledge():
                    self.wait_for_transfers()
                    if self.how != "kill":
                        self.begin_cut(storage, n_writes)
                    acknowledged.set()

                after = {"after": chance.randint(1, MAX_STATEMENTS), "cut": acknowledge}
            with self.load(instance, statements, is_crash, **after) as transfers:
                try:
                    if moment == "ddl":
                        deadline = time.monotonic() + DDL_SECONDS
                        while not acknowledged.wait(0.02) and statements.thread.is_alive():
                            if time.monotonic() > deadline:
                                raise Failure(f"{self.name}: DDL is not acknowledged: {statements.current}")
                    else:
                        time.sleep(seconds)
                        if transfers.poll() is not None:
                            log = self.folder / "load.log"
                            raise Failure(f"the load has ended; {log}:\n{last_lines(log)}")
                        instance.check_alive()
                        if moment == "load":
                            self.wait_for_counter(instance)
                        if self.how != "kill":
                            self.begin_cut(storage, n_writes)
                    if self.how != "kill" and not statements.failure:
                        wait_for_cut(storage)
                finally:
                    killed.set()
                    instance.process.kill()
                    instance.process.wait()
        return verdict.acknowledged(self.places), statements

    def wait_for_transfers(self):
        """Wait until the server has acknowledged a transfer: a cut without one tests nothing."""
        if not happens(lambda: sum(verdict.acknowledged(self.places).values()), COUNTER_SECONDS):
            log = self.folder / "load.log"
            raise Failure(f"{self.name}: no transfer is acknowledged; {log}:\n{last_lines(log)}")

    def begin_cut(self, storage, n_writes):
        storage.control(f"cut after {n_writes} writes of {self.page_bytes}" if n_writes else "cut")

    def wait_for_counter(self, instance):
        """Wait until the server has written pages by this configuration's method."""
        def has_counted():
            rows = instance.sql(f"SHOW GLOBAL STATUS LIKE '{self.counter}'")
            return any(int(value) for _, value in rows)

        if self.counter and not happens(has_counted, COUNTER_SECONDS):
            raise Failure(f"{self.name}: {self.counter} has counted nothing")

    def cut_recovery(self, storage, chance):
        """Start the server on what a cut has left, and cut the power again: at a write in recovery, or once the server
        answers. Return whether the server had not answered, and what is wrong, or None."""
        with self.instance(storage) as instance:
            self.begin_cut(storage, chance.randrange(1, MAX_RECOVERY_WRITES))
            instance.launch(self.options | RECOVERY_OPTIONS)
            ended = (storage.is_off, instance.answers, lambda: instance.process.poll() is not None)
            happens(lambda: any(condition() for condition in ended), START_SECONDS)
            is_cut, wrong = not instance.answers(), None
            if is_cut and not storage.is_off():
                wrong = f"the first recovery has not ended:\n{instance.errors()}"
            storage.control("cut")
            wait_for_cut(storage)
            instance.process.kill()
            instance.process.wait()
        return is_cut, wrong

    def outcome(self, storage, numbers, expected):
        """Return what is wrong with an outcome, or None."""
        with self.instance(storage) as instance:
            try:
                verdict.check(instance, self.options, numbers, expected)
            except verdict.Lost as lost:
                return str(lost)
        return None

    def one(self, base, seed):
        """Cut or kill once; yield the result of each outcome."""
        chance = random.Random(seed)
        with self.storage("cut") as cut_storage, self.storage("outcome") as after:
            cut_storage.copy_medium(base)
            cut_storage.switch_on()
            moment = MOMENTS[seed % len(MOMENTS)]
            numbers, statements = self.crash(cut_storage, chance, moment)
            expected = statements.expected()
            result = {"configuration": self.name, "how": self.how, "seed": seed, "moment": moment,
                      "server": self.program.sha256[:12], "acknowledged": sum(numbers.values()),
                      "statements": statements.n_acknowledged,
                      "last_statement": statements.last, "interrupted_statement": statements.current}  # fmt: skip
            if self.how == "kill":
                # The machine keeps running, so nothing that the file system was given is lost.
                yield result | {"wrong": self.outcome(cut_storage, numbers, expected)}
                return
            cut_storage.switch_off()
            for _ in range(OUTCOMES):
                survivors = chance.getrandbits(63)
                after.copy_medium(cut_storage)
                resolved = after.resolve(survivors)
                wrong = None
                if self.how == "recovery":
                    after.switch_on()
                    resolved["cut_in_recovery"], wrong = self.cut_recovery(after, chance)
                    after.switch_off()
                    after.resolve(chance.getrandbits(63))
                after.switch_on()
                wrong = wrong or self.outcome(after, numbers, expected)
                yield result | {"survivors": survivors, "wrong": wrong} | resolved
                after.switch_off()


def wait_for_cut(storage):
    """Wait until the power is off. If the writes do not come in time, cut it."""
    deadline = time.monotonic() + CUT_SECONDS
    while not storage.is_off():
        if time.monotonic() > deadline:
            storage.control("cut")
        time.sleep(0.005)


def run_configuration(name, configuration, folder, arguments, out):
    """Make the cuts. If pages have to be lost, stop at the first loss. Return whether the result is as expected."""
    cases = Cases(name, configuration, arguments.how, folder, arguments.server)
    cases.folder.mkdir()
    loses = configuration["loses"]
    if loses == "pages" and arguments.how == "kill":
        # The kernel completes direct I/O that has begun, also if the process is killed.
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


def run_and_report(name, *arguments):
    """Run a configuration and report a failure at once, because the others can continue for hours."""
    try:
        return run_configuration(name, *arguments)
    except Failure as failure:
        say(f"{name} ended: {failure}")
        raise


def keep(cases, folder):
    """Keep the media before and after the survivors were drawn, the error log, and what the clients were told."""
    shutil.copytree(cases.folder, folder, ignore=shutil.ignore_patterns("base", "mount", "power"))
    say(f"kept: {folder}")


def run(arguments):
    need_root()
    keep_mounts_private()
    configurations = read_configurations()
    names = arguments.configuration or list(configurations)
    if unknown := set(names) - set(configurations):
        raise Failure(f"{CONFIGURATIONS} has no {', '.join(sorted(unknown))}")
    with (
        temporary_folder(MEMORY) as folder,
        open(arguments.output or os.devnull, "a") as out,
        concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool,
    ):
        runs = {name: pool.submit(run_and_report, name, configurations[name], folder, arguments, out)
                for name in names}  # fmt: skip
        try:
            wrong = [name for name, is_as_it_has_to_be in runs.items() if not is_as_it_has_to_be.result()]
        except BaseException:
            STOPPING.set()
            pool.shutdown(cancel_futures=True)
            raise
    if wrong:
        raise Failure(f"not what has to come of it: {', '.join(wrong)}")


def report(arguments):
    """Print a table of the outcomes in files."""
    rows = {}
    for line in (line for path in arguments.files for line in path.read_text().splitlines()):
        result = json.loads(line)
        row = rows.setdefault((result["configuration"], result["how"], result["server"]), collections.Counter())
        # A cut has two outcomes, a kill has one; the outcomes of one cut are adjacent.
        row["cuts"] += result["seed"] != row["last"]
        row["last"] = result["seed"]
        row["outcomes"] += 1
        row["lost"] += result["wrong"] is not None
        for name in ("interrupted", "torn", "cut_in_recovery"):
            row[name] += result.get(name, 0)
    print("| configuration | how | server | cuts | outcomes | cut in recovery | interrupted | torn of them | that lost "
          "something |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|")
    for (name, how, server), row in rows.items():
        print(f"| {name} | {how} | {server} | {row['cuts']} | {row['outcomes']} | {row['cut_in_recovery']} | "
              f"{row['interrupted']} | "
              f"{row['torn']} | {row['lost']} |")  # fmt: skip


def at_least_one(text):
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def command_line():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    cuts = commands.add_parser("run")
    cuts.add_argument("--configuration", action="append", help="of configurations.toml; all, if none is named")
    cuts.add_argument("--cuts", type=at_least_one, default=10, help="for each configuration that must lose nothing")
    cuts.add_argument("--seed", type=int, default=1, help="of the first cut; the next has the next")
    cuts.add_argument("--server", type=lambda text: Path(text).resolve(), default=PROGRAM,
                      help="another mysqld, as stock's")  # fmt: skip
    cuts.add_argument("--how", choices=["cut", "kill", "recovery"], default="cut",
                      help="kill: SIGKILL, and the machine goes on; recovery: cut again in each recovery")  # fmt: skip
    cuts.add_argument("--jobs", type=int, default=os.cpu_count(), help="configurations at once, of 1.5 GiB in /dev/shm")
    cuts.add_argument("--output", type=Path, help="file that takes a line of JSON for each outcome, at its end")
    cuts.add_argument("--keep", type=Path, help="folder for what is left where something is lost that must not be")
    commands.add_parser("report").add_argument("files", type=Path, nargs="+")
    arguments = parser.parse_args()
    {"run": run, "report": report}[arguments.command](arguments)


if __name__ == "__main__":
    sys.exit(main(command_line))
