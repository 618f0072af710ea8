#!/usr/bin/env python3
"""Measure how fast a replica on a slow device applies transactions, with and without ahead flushing and its delays.

    replica_bench.py [--transactions 20000] [--repetitions 3] [--parent FOLDER]

A source of this checkout executes sysbench's oltp_write_only. Its replicas, one of stock (make stock) and three of
this checkout, have 8 workers that preserve the commit order. Their data is on a file system of its own, which is
limited to cloud-volume of bench/devices.toml. They receive the transactions first. Then they apply that number each,
one replica at a time, in turn. Prints for each the transactions per second, and the worst second divided by the mean.
Needs root, sysbench, and 16 GiB in FOLDER (/var/tmp).
"""

import argparse
import contextlib
import itertools
import statistics
import sys
import time
import tomllib
from pathlib import Path

from spillway import filesystem
from spillway.block_throttle import Limits, throttled
from spillway.common import REPO, Failure, main, need_space
from spillway.instance import DATABASE
from spillway.resources import temporary_folder
from spillway.sysbench import SYSBENCH_SCRIPTS, run_sysbench, sysbench_command

sys.path.insert(0, str(REPO))
from tests.server.replication import ACCOUNT, Member, replicate_from
from tests.server.scratch import FORK, STOCK, wait_until

DEVICE = "cloud-volume"
DISK = "14G"
NEEDED_BYTES = 16 << 30
SIZES = ("--innodb-buffer-pool-size=512M", "--innodb-redo-log-capacity=96M")
SOURCE = ("--innodb-buffer-pool-size=1G", "--innodb-redo-log-capacity=2G", "--innodb-flush-log-at-trx-commit=0",
          "--sync-binlog=0")  # fmt: skip
ON = "--innodb-ahead-flushing=ON"
REPLICAS = {
    "stock": (STOCK, ()),
    "ahead flushing OFF": (FORK, ()),
    "ahead flushing ON": (FORK, (ON,)),
    "ON, max delay 0": (FORK, (ON, "--innodb-ahead-flushing-max-delay-us=0")),
}
LOAD = {"tables": 4, "table_size": 250_000, "threads": 16}
WAIT_SECONDS = 1800
# The idle page cleaners write all but those that InnoDB's own threads change.
CLEAN_PAGES = 100
RECEIVED = """SELECT GTID_SUBSET('{}', CONCAT(received_transaction_set, ',', @@GLOBAL.gtid_executed))
  FROM performance_schema.replication_connection_status WHERE channel_name = ''"""


def sysbench(source, verb, options=None):
    command = sysbench_command(SYSBENCH_SCRIPTS / "oltp_write_only.lua", source, LOAD | (options or {}))
    run_sysbench([*command, verb], source.path / "sysbench.log", verb)


def n_executed(server, uuid):
    """Transactions of the source that the server has executed, if there is no gap."""
    for part in server.sql("SELECT @@GLOBAL.gtid_executed").replace("\\n", "").split(","):
        found, _, interval = part.strip().partition(":")
        if found == uuid and ":" not in interval:
            return int(interval.rpartition("-")[2])
    return 0


def apply(replica, uuid, n, limits):
    """Let the replica apply its next n transactions on the slow device. Returns the numbers applied in each second; the
    last second, which is not a whole one, is left out."""
    wait_until(lambda: replica.counter("Innodb_buffer_pool_pages_dirty") < CLEAN_PAGES, "pages are dirty", WAIT_SECONDS)
    seen = [n_executed(replica, uuid)]
    end = seen[0] + n
    with throttled(replica.process.pid, replica.data, limits, is_own_disk=True):
        started = time.monotonic()
        replica.sql(f"START REPLICA SQL_THREAD UNTIL SQL_AFTER_GTIDS = '{uuid}:1-{end}'")
        while seen[-1] < end:
            time.sleep(max(0, started + len(seen) - time.monotonic()))
            seen.append(n_executed(replica, uuid))
            if len(seen) > WAIT_SECONDS:
                raise Failure(f"{n} transactions take too long: {replica.sql('SHOW REPLICA STATUS')}")
    replica.sql("STOP REPLICA SQL_THREAD")
    if len(seen) < 3:
        raise Failure(f"{n} transactions take less than a second: set more --transactions")
    return [after - before for before, after in itertools.pairwise(seen)][:-1]


def has_received(replica, uuid, n):
    return replica.sql(RECEIVED.format(f"{uuid}:1-{n}")) == "1"


def measure(options, parent, disk, stack):
    device = tomllib.loads((REPO / "bench/devices.toml").read_text())[DEVICE]
    limits = Limits(**{name: value for name, value in device.items() if name != "description"})
    source = stack.enter_context(Member(FORK, parent, ""))
    source.initialise(FORK)
    source.run(*SOURCE)
    source.sql(f"SET sql_log_bin = 0; {ACCOUNT} SET sql_log_bin = 1; CREATE DATABASE {DATABASE}")
    uuid = source.sql("SELECT @@server_uuid")
    sysbench(source, "prepare")
    replicas = {}
    for name, (mysqld, settings) in REPLICAS.items():
        replicas[name] = replica = stack.enter_context(Member(mysqld, disk, ""))
        replica.initialise(mysqld)
        replica.run(*SIZES, *settings)
        replica.sql(replicate_from(source))
    for replica in replicas.values():
        n = n_executed(source, uuid)
        wait_until(lambda replica=replica, n=n: n_executed(replica, uuid) == n, "no tables", WAIT_SECONDS)
        replica.sql("STOP REPLICA SQL_THREAD")
    sysbench(source, "run", {"events": options.transactions * options.repetitions, "time": 0})
    n = n_executed(source, uuid)
    for replica in replicas.values():
        wait_until(lambda replica=replica: has_received(replica, uuid, n), "not received", WAIT_SECONDS)
    if source.end() != 0:
        raise Failure(f"the source ended with an error: {source.log.read_text()[-1000:]}")
    for repetition in range(options.repetitions):
        for name in list(replicas)[:: 1 if repetition % 2 == 0 else -1]:
            by_second = apply(replicas[name], uuid, options.transactions, limits)
            mean = statistics.mean(by_second)
            print(f"{name}: {mean:.0f} transactions/s, worst second {min(by_second) / mean:.2f}", flush=True)


def run():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transactions", type=int, default=20_000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--parent", type=Path, default="/var/tmp")
    options = parser.parse_args()
    need_space(options.parent, NEEDED_BYTES, "a source and four replicas")
    with contextlib.ExitStack() as stack:
        parent = stack.enter_context(temporary_folder(options.parent))
        disk = stack.enter_context(filesystem.mounted("ext4", DISK, parent))
        measure(options, parent, disk, stack)


if __name__ == "__main__":
    sys.exit(main(run))
