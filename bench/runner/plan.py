"""A plan: which servers run which workloads on which devices, how often. bench/README.md describes the file."""

import dataclasses
import math
import re
import tomllib
from pathlib import Path

from spillway.block_throttle import Limits
from spillway.common import BUILD, REPO, Failure
from spillway.filesystem import KINDS
from spillway.sysbench import SYSBENCH_SCRIPTS
from spillway.timed_disk import Timing

WORKLOADS = REPO / "bench/workloads"
DEVICES = REPO / "bench/devices.toml"
# The servers that a plan calls "fork" and "stock": this checkout's builds.
BUILT = {
    "fork": BUILD / "fork/release/runtime_output_directory/mysqld",
    "stock": BUILD / "stock/release/runtime_output_directory/mysqld",
}
NUMBER = (int, float)
# Source: measured. With more steal, throughput follows the host and not the server. With a limit of 10, two of three
# repetitions were repeated on a busy host.
DEFAULT_MAX_STEAL_PCT = 20
# Arrivals per second. With fewer, a client might have none due while the runner waits for transactions at the end.
MIN_ARRIVALS_OF_A_CLIENT = 0.5
# Options of every sysbench script that the runner sets: duration, clients, server. Sysbench's own rate is refused,
# because response times would not include the wait in sysbench's queue.
RUNNERS_SYSBENCH_OPTIONS = (
    "threads", "num_threads", "events", "max_requests", "time", "max_time", "warmup_time", "forced_shutdown", "rate",
    "tx_rate", "report_interval", "report_checkpoints", "config_file", "records", "arrivals", "burst_arrivals",
    "burst_period", "burst_length", "db_driver", "mysql_host", "mysql_port", "mysql_socket", "mysql_user",
    "mysql_password", "mysql_db", "mysql_dry_run",
)  # fmt: skip
FILE_SIZE = re.compile(r"[1-9]\d*[KMGT]?")
HINTS = {"rate": "; see the workload's 'arrivals'", "threads": "; see the workload's 'clients'"}
# Matches at the begin of a value, or of a part of it as in innodb_data_file_path.
PATH_OUTSIDE = re.compile(r"(^|[:;])\s*(/|\.\.)")
# Options that Instance sets.
RUNNERS_OPTIONS = ("user", "datadir", "socket", "skip_networking", "port", "bind_address", "pid_file", "log_error",
                   "mysqlx", "lc_messages_dir")  # fmt: skip


@dataclasses.dataclass
class Server:
    name: str
    mysqld: Path
    options: dict
    # Options of the script, if this server's tables differ.
    workload_options: dict
    # Replaces the device's; "" keeps it.
    filesystem: str


@dataclasses.dataclass
class Workload:
    name: str
    script: Path
    clients: int
    options: dict
    server_options: dict
    arrivals: float
    arrivals_pct: float
    burst_arrivals: float
    burst_arrivals_pct: float
    burst_period_s: float
    burst_length_s: float
    of: str
    age_transactions: int

    def of_server(self, server):
        """The workload with this server's options of the script."""
        return dataclasses.replace(self, options=self.options | server.workload_options)

    @property
    def is_open(self):
        return bool(self.arrivals or self.arrivals_pct)

    @property
    def has_check(self):
        """Whether the script has a command that checks the data after the load."""
        return "check = {" in self.script.read_text()


@dataclasses.dataclass
class Device:
    name: str
    limits: Limits
    timing: Timing
    filesystem: str
    size: str
    in_memory: bool
    server_options: dict
    description: str

    def of_server(self, server):
        """The device with this server's file system."""
        return dataclasses.replace(self, filesystem=server.filesystem or self.filesystem)

    @property
    def key(self):
        """The name with the file system, which distinguishes the same device with different file systems."""
        return f"{self.name} {self.filesystem}".strip()


@dataclasses.dataclass
class Plan:
    path: Path
    title: str
    description: str
    repetitions: int
    measured_s: int
    warmup_min_s: int
    warmup_max_s: int
    warmup_redo_writes: float
    max_steal_pct: float
    options: dict
    servers: list
    workloads: list
    devices: list


class Table:
    """A table of a plan, read key by key. Keys that remain are mistakes."""

    def __init__(self, path, name, values):
        if not isinstance(values, dict):
            raise Failure(f"{path}: {name} is not a table")
        self.path = path
        self.name = name
        self.values = dict(values)

    def wrong(self, text):
        where = f"[{self.name}]: " if self.name else ""
        return Failure(f"{self.path}: {where}{text}")

    def take(self, key, types, default=None, minimum=None, maximum=None):
        """Take the value of a key. A key without a default is mandatory."""
        if key not in self.values:
            if default is None:
                raise self.wrong(f"'{key}' is missing")
            return default
        value = self.values.pop(key)
        if isinstance(value, float) and not math.isfinite(value):
            raise self.wrong(f"'{key}' is {value}")
        kinds = types if isinstance(types, tuple) else (types,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise self.wrong(f"'{key}' is {value!r}, not of type {' or '.join(kind.__name__ for kind in kinds)}")
        if (minimum is not None and value < minimum) or (maximum is not None and value > maximum):
            limit = "any number" if maximum is None else maximum
            raise self.wrong(f"'{key}' is {value}, not from {minimum} to {limit}")
        return value

    def take_options(self, key, runners):
        """Take options of a program: names to strings, numbers or truth values. Refuse those in runners."""
        options = {name.replace("-", "_"): value for name, value in self.take(key, dict, {}).items()}
        for name, value in options.items():
            if not isinstance(value, (str, int, float, bool)):
                raise self.wrong(f"'{key}.{name}' is neither a string nor a number nor a truth value")
            if name.removeprefix("loose_") in runners:
                raise self.wrong(f"'{key}.{name}' is set by the runner{HINTS.get(name, '')}")
        return options

    def take_server_options(self, key):
        """Take options of a server. Refuse paths outside of its data directory, which is new for each run."""
        options = self.take_options(key, RUNNERS_OPTIONS)
        for name, value in options.items():
            if PATH_OUTSIDE.search(str(value)):
                raise self.wrong(f"'{key}.{name}' is a path outside of the server's data directory")
        return options

    def take_tables(self, key):
        tables = self.take(key, dict)
        if not tables:
            raise self.wrong(f"[{key}] has no table: [{key}.NAME]")
        for name in tables:
            if not name.replace("-", "").replace("_", "").isalnum():
                raise self.wrong(f"the name '{name}' has other characters than letters, digits, - and _")
        return [Table(self.path, f"{key}.{name}", values) for name, values in tables.items()]

    @property
    def last_name(self):
        return self.name.rpartition(".")[2]

    def end(self):
        if self.values:
            raise self.wrong(f"unknown: {', '.join(self.values)}")


def find_server(text):
    return BUILT.get(text) or REPO / Path(text).expanduser()


def find_script(text):
    """Find a script: a name is one of ours or of sysbench's, a text with / is a path from the checkout's top."""
    if "/" in text:
        return REPO / text
    ours = WORKLOADS / f"{text}.lua"
    return ours if ours.exists() else SYSBENCH_SCRIPTS / f"{text}.lua"


def read_server(table):
    server = Server(table.last_name, find_server(table.take("mysqld", str)), table.take_server_options("options"),
                    table.take_options("workload_options", RUNNERS_SYSBENCH_OPTIONS),
                    take_filesystem(table))  # fmt: skip
    table.end()
    return server


def take_filesystem(table):
    filesystem = table.take("filesystem", str, "")
    if filesystem and filesystem not in KINDS:
        raise table.wrong(f"filesystem '{filesystem}' is none of {', '.join(KINDS)}")
    return filesystem


def read_workload(table):
    workload = Workload(
        name=table.last_name,
        script=find_script(table.take("script", str)),
        clients=table.take("clients", int, 32, minimum=1, maximum=10000),
        options=table.take_options("options", RUNNERS_SYSBENCH_OPTIONS),
        server_options=table.take_server_options("server_options"),
        arrivals=table.take("arrivals", NUMBER, 0, minimum=0),
        arrivals_pct=table.take("arrivals_pct", NUMBER, 0, minimum=0),
        burst_arrivals=table.take("burst_arrivals", NUMBER, 0, minimum=0),
        burst_arrivals_pct=table.take("burst_arrivals_pct", NUMBER, 0, minimum=0),
        burst_period_s=table.take("burst_period_s", NUMBER, 30, minimum=1),
        burst_length_s=table.take("burst_length_s", NUMBER, 10, minimum=1),
        of=table.take("of", str, ""),
        age_transactions=table.take("age_transactions", int, 0, minimum=0),
    )
    table.end()
    if not workload.script.exists():
        raise table.wrong(f"there is no script {workload.script}; sysbench's own come with it: make packages")
    if workload.options.get("think_times") and (workload.is_open or workload.age_transactions):
        raise table.wrong("clients that think follow no arrivals, and age no data")
    check_arrivals(f"{table.path}: [{table.name}]", workload.clients, workload.arrivals)
    if workload.arrivals and workload.arrivals_pct:
        raise table.wrong("arrivals and arrivals_pct are two ways to say the same; give one")
    if workload.burst_arrivals and workload.burst_arrivals_pct:
        raise table.wrong("burst_arrivals and burst_arrivals_pct are two ways to say the same; give one")
    if (workload.burst_arrivals or workload.burst_arrivals_pct) and not workload.is_open:
        raise table.wrong("bursts need arrivals or arrivals_pct for the time between them")
    if workload.burst_length_s >= workload.burst_period_s:
        raise table.wrong("burst_length_s is not less than burst_period_s")
    if (workload.arrivals_pct or workload.burst_arrivals_pct) and not workload.of:
        raise table.wrong("a percentage needs 'of': the workload whose throughput is 100")
    return workload


def read_model(table):
    """What the block throttle limits, and what a timed disk takes. A device has one of the two, or none."""
    model = {
        "limits": Limits(**{
            field.name: table.take(field.name, int, 0, minimum=0) or None for field in dataclasses.fields(Limits)
        }),
        "timing": Timing(**{
            field.name: table.take(field.name, NUMBER, 0, minimum=0) for field in dataclasses.fields(Timing)
        }),
        "description": table.take("description", str, ""),
    }  # fmt: skip
    if model["limits"] != Limits() and model["timing"] != Timing():
        raise table.wrong("a timed disk has no limits of the block throttle; give ios_per_s and bytes_per_s")
    return model


def check_arrivals(where, clients, arrivals):
    """Raise Failure if a client would have no transaction due for so long that it looks as if it were behind."""
    if 0 < arrivals < MIN_ARRIVALS_OF_A_CLIENT * clients:
        max_clients = int(arrivals / MIN_ARRIVALS_OF_A_CLIENT) or 1
        raise Failure(f"{where}: {arrivals:.1f} transactions/s are too few for {clients} clients; take {max_clients}")


def device_models():
    """The models of bench/devices.toml: {name: {limits, timing, description}}."""
    models = {}
    for table in Table(DEVICES, "", {"models": load(DEVICES)}).take_tables("models"):
        models[table.last_name] = read_model(table)
        table.end()
    return models


def read_device(table, models):
    name = table.last_name
    filesystem = take_filesystem(table)
    size = table.take("size", str, "8G")
    in_memory = table.take("in_memory", bool, False)
    model = table.take("model", str, "")
    server_options = table.take_server_options("server_options")
    if not FILE_SIZE.fullmatch(size):
        raise table.wrong(f"size '{size}' is not a number of bytes with K, M, G or T")
    if in_memory and not filesystem:
        raise table.wrong("what is 'in_memory' has a 'filesystem'")
    if model and model not in models:
        raise table.wrong(f"model '{model}' is none of {', '.join(models)} ({DEVICES.relative_to(REPO)})")
    what = models[model] if model else read_model(table)
    if what["timing"] != Timing() and not in_memory:
        raise table.wrong("a timed disk is in memory: in_memory = true")
    table.end()
    return Device(name, filesystem=filesystem, size=size, in_memory=in_memory, server_options=server_options, **what)


def load(path):
    try:
        return tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise Failure(f"{path}: {error}") from error


def read_plan(path):
    """Read the plan in a file. A mistake raises a Failure that names its place."""
    top = Table(path, "", load(path))
    run = Table(path, "run", top.take("run", dict))
    models = device_models()
    plan = Plan(
        path=path,
        title=top.take("title", str),
        description=top.take("description", str),
        repetitions=run.take("repetitions", int, minimum=1, maximum=100),
        measured_s=run.take("measured_s", int, minimum=1, maximum=86400),
        warmup_min_s=run.take("warmup_min_s", int, 10, minimum=0),
        warmup_max_s=run.take("warmup_max_s", int, 900, minimum=1),
        warmup_redo_writes=run.take("warmup_redo_writes", NUMBER, 3, minimum=0),
        max_steal_pct=run.take("max_steal_pct", NUMBER, DEFAULT_MAX_STEAL_PCT, minimum=0, maximum=100),
        options=top.take_server_options("options"),
        servers=[read_server(table) for table in top.take_tables("servers")],
        workloads=[read_workload(table) for table in top.take_tables("workloads")],
        devices=[read_device(table, models) for table in top.take_tables("devices")],
    )
    run.end()
    top.end()
    if plan.warmup_max_s < plan.warmup_min_s:
        raise Failure(f"{path}: [run]: warmup_max_s is less than warmup_min_s")
    closed = []
    for workload in plan.workloads:
        if workload.of and workload.of not in closed:
            raise Failure(f"{path}: [workloads.{workload.name}]: '{workload.of}' is no workload above it whose clients "
                          "ask as fast as they can")  # fmt: skip
        if not workload.is_open:
            closed.append(workload.name)
        if (workload.burst_arrivals or workload.burst_arrivals_pct) and plan.measured_s % workload.burst_period_s:
            raise Failure(f"{path}: [workloads.{workload.name}]: measured_s is no multiple of burst_period_s, so that "
                          "bursts would not have their share of what is counted")  # fmt: skip
    return plan
