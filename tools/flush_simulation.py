#!/usr/bin/python3
"""Simulate ahead flushing and upstream's page cleaner on five devices; print figures and make a plot.

The policy is the server's code. unittest/flush/flush_simulator.h simulates buffer pool, redo log, clients, device."""

import argparse
import csv
import statistics
import subprocess
import sys
from collections import defaultdict

import matplotlib

from spillway.common import BUILD

matplotlib.use("svg")
from matplotlib import pyplot

SIMULATE = BUILD / "super/policy/unittest/flush_simulate"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--redo-mib", type=int, default=64, help="innodb_redo_log_capacity (%(default)s)")
    parser.add_argument("--pool-gb", type=int, default=16, help="a tenth of it is changed (%(default)s)")
    parser.add_argument("--load", choices=("closed", "bursts", "ramp"), default="closed",
                        help="32 clients in a closed loop; or an open loop, in shares of what upstream's server did in"
                        " the closed one: half of it with 10 of 30 seconds of three times that, or a ramp from nothing"
                        " to 1.2 times (%(default)s)")  # fmt: skip
    parser.add_argument("--seconds", type=int, default=300, help="of each simulation (%(default)s)")
    options = parser.parse_args()
    arguments = [str(options.redo_mib), str(options.seconds), str(options.pool_gb), options.load]
    output = subprocess.run([SIMULATE, *arguments], check=True, text=True, stdout=subprocess.PIPE).stdout
    runs = defaultdict(list)
    for row in csv.DictReader(output.splitlines()):
        runs[row["device"], row["server"]].append(row)
    devices = list(dict.fromkeys(device for device, _ in runs))
    figure, axes = pyplot.subplots(len(devices), 2, figsize=(12, 2.6 * len(devices)), squeeze=False)
    print(f"{'device':16}{'server':10}{'mean':>10}{'worst/mean':>12}{'pages/transaction':>20}{'waiting':>10}")
    for (device, server), rows in runs.items():
        transactions = [float(row["transactions"]) for row in rows]
        names = ("transactions", "written", "waiting")
        done, written, waiting = ([float(row[name]) for row in rows[len(rows) // 2 :]] for name in names)
        mean = statistics.mean(done)
        # A server without a transaction in all that time has no ratios.
        amounts = (min(done), statistics.mean(written), max(waiting))
        worst, pages, max_waiting = (amount / mean if mean else 0.0 for amount in amounts)
        print(f"{device:16}{server:10}{mean:10.1f}{worst:12.2f}{pages:20.2f}{max_waiting:10.2f}")
        left, right = axes[devices.index(device)]
        left.plot(transactions, label=server, linewidth=0.8)
        left.set_ylabel(device)
        right.plot([float(row["oldest_page_age"]) for row in rows], label=server, linewidth=0.8)
    axes[0][0].set_title("transactions a second")
    axes[0][1].set_title("age of the oldest dirty page over that of sync flushing")
    axes[0][0].legend()
    figure.tight_layout()
    plot = BUILD / "flush-simulation.svg"
    figure.savefig(plot)
    print("The figures are of the second half. waiting: the most that came and found no room, in seconds of the mean.")
    print(f"Plot: {plot}")


if __name__ == "__main__":
    sys.exit(main())
