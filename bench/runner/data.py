"""Loaded data directories: each is loaded once and kept. A run uses a copy, never the original."""

import dataclasses
import hashlib
import json
import os
import shutil
from pathlib import Path

from spillway import sysbench
from spillway.common import BUILD, Failure, check_own, need_space, say
from spillway.filesystem import command
from spillway.instance import DATABASE, INITIAL_OPTIONS, Instance
from spillway.sysbench import SYSBENCH_SCRIPTS, run_sysbench, sysbench_command

from .plan import Workload

# Data directories and running servers are below this folder. The benchmark measures the disk that it is on.
BENCH = Path(os.path.abspath(os.path.expanduser(os.environ.get("SPILLWAY_BENCH") or BUILD / "bench")))
LOADED = BENCH / "loaded"
LOAD_CLIENTS = 4
# The load is fast and not durable: a clean shutdown flushes its pages, and after a crash the data is loaded again.
LOAD_OPTIONS = {"innodb_flush_log_at_trx_commit": 0, "innodb_doublewrite": 0, "skip_log_bin": 1,
                "loose_innodb_log_file_size": "256M"}  # fmt: skip
# Redo log capacity during the load and in the kept copy, if the server can resize it online. In a run the server sets
# its plan's capacity at startup.
LOAD_REDO_BYTES = 2 << 30
KEPT_REDO_BYTES = 64 << 20


@dataclasses.dataclass(frozen=True)
class Loaded:
    """A loaded data directory, described by what it is made from."""

    workload: Workload
    family: str
    options: tuple

    @property
    def key(self):
        # These files are part of the key, because they define the load.
        files = (self.workload.script, Path(__file__), Path(sysbench.__file__))
        texts = [path.read_text() for path in files]
        parts = [texts, sysbench_version(), self.workload.options, self.workload.age_transactions, self.family,
                 self.options]  # fmt: skip
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    @property
    def folder(self):
        return LOADED / f"{self.workload.script.stem}-{self.family}-{self.key}"


def loaded_for(workload, family, options):
    """The loaded data that a server with these options needs. The buffer pool size is part of it, since the
    pool's content is kept, too."""
    chosen = (*INITIAL_OPTIONS, "innodb_buffer_pool_size")
    return Loaded(workload, family, tuple((name, options[name]) for name in chosen if name in options))


def sysbench_version():
    return command("sysbench", "--version")


def load(loaded, program, options):
    """The folder of the loaded data directory. If it does not exist, load it first."""
    folder = loaded.folder
    check_own(folder)
    if folder.exists():
        return folder / "data"
    say(f"loading the data of {loaded.workload.name} with {program.path}")
    LOADED.mkdir(mode=0o700, parents=True, exist_ok=True)
    need_space(LOADED, 2 << 30, "loading a data directory")
    fresh = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    with Instance(program, fresh / "data", fresh) as instance:
        instance.initialise(options)
        instance.start(dict(loaded.options) | LOAD_OPTIONS)
        instance.resize_redo(LOAD_REDO_BYTES)
        # Default character sets differ between servers, and with them the cost of a string comparison.
        instance.sql(f"CREATE DATABASE {DATABASE} CHARACTER SET latin1")
        words = sysbench_command(loaded.workload.script, instance, loaded.workload.options)
        run_sysbench([*words, f"--threads={LOAD_CLIENTS}", "prepare"], fresh / "sysbench.log",
                     f"loading the data of {loaded.workload.name}")  # fmt: skip
        check_loaded(loaded.workload, words, instance, fresh / "check.log")
        if loaded.workload.age_transactions:
            run_sysbench([*words, f"--threads={LOAD_CLIENTS}", "--time=0",
                          f"--events={loaded.workload.age_transactions}", "run"],
                         fresh / "ageing.log", f"ageing the data of {loaded.workload.name}")  # fmt: skip
        analyze(instance)
        instance.resize_redo(KEPT_REDO_BYTES)
        # The next start loads the whole buffer pool, and the slow shutdown leaves no purge work to a run.
        instance.sql("SET GLOBAL innodb_buffer_pool_dump_pct = 100; SET GLOBAL innodb_fast_shutdown = 0")
        instance.stop()
    # Invariant: a folder with its final name is complete on disk.
    command("sync", "--file-system", fresh)
    fresh.rename(folder)
    return folder / "data"


def check_loaded(workload, words, instance, log):
    """Raise Failure if the loaded data is incomplete: every run would use it."""
    if workload.has_check:
        run_sysbench([*words, "check"], log, f"the check of the data that was loaded for {workload.name}")
    elif workload.script.is_relative_to(SYSBENCH_SCRIPTS) and workload.script.stem.startswith("oltp_"):
        check_sysbenchs_own(workload, instance)


def check_sysbenchs_own(workload, instance):
    """Check sysbench's own tables: all rows of all tables, and the secondary index, which sysbench creates last."""
    rows = int(workload.options.get("table_size", 10_000))
    index = "" if workload.options.get("create_secondary") in (False, "off", "false") else " FORCE INDEX (k_{0})"
    for table in range(1, int(workload.options.get("tables", 1)) + 1):
        found = int(instance.value(f"SELECT COUNT(k) FROM {DATABASE}.sbtest{table}{index.format(table)}"))
        if found != rows:
            raise Failure(f"loading the data of {workload.name} failed: sbtest{table} has {found} rows of {rows}")


def analyze(instance):
    """Compute the tables' statistics, so that no run has worse query plans than another."""
    tables = instance.sql(f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{DATABASE}'")
    for (table,) in tables:
        instance.sql(f"ANALYZE TABLE {DATABASE}.{table}")


def copy(source, parent):
    """Copy a loaded data directory into parent, sync it and return its path."""
    size = sum(path.stat().st_blocks * 512 for path in source.rglob("*") if path.is_file())
    # A run adds redo logs, binary logs and rows: 2 GiB.
    need_space(parent, size + (2 << 30), "a copy of the loaded data (on a file system of the plan's own: 'size')")
    data = parent / "data"
    if data.exists():
        shutil.rmtree(data)
    # -T: never copy into an existing directory.
    command("cp", "-aT", "--reflink=auto", source, data)
    command("sync", "--file-system", parent)
    return data
