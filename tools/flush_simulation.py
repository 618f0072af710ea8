#!/usr/bin/python3
"""Simulate ahead flushing beside upstream's page cleaner, on five devices: figures, and a plot.

The policy is the server's; buffer pool, redo log, clients and device are unittest/policy/flush_simulator.h."""

import argparse
import csv
import statistics
import subprocess
import sys
from collections import defaultdict

import matplotlib
from common import BUILD

matplotlib.use("svg")
from matplotlib import pyplot

SIMULATE = BUILD / "super/policy/unittest/flush_simulate"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--redo-mib", type=int, default=64, help="innodb_redo_log_capacity (%(default)s)")
    parser.add_argument("--seconds", type=int, default=300, help="of each simulation (%(default)s)")
    options = parser.parse_args()
    output = subprocess.run([SIMULATE, str(options.redo_mib), str(options.seconds)], check=True, text=True,
                            stdout=subprocess.PIPE).stdout  # fmt: skip
    runs = defaultdict(list)
    for row in csv.DictReader(output.splitlines()):
        runs[row["device"], row["server"]].append(row)
    devices = list(dict.fromkeys(device for device, _ in runs))
    figure, axes = pyplot.subplots(len(devices), 2, figsize=(12, 2.6 * len(devices)), squeeze=False)
    print(f"{'device':16}{'server':10}{'mean':>10}{'worst/mean':>12}{'pages/transaction':>20}")
    for (device, server), rows in runs.items():
        transactions = [float(row["transactions"]) for row in rows]
        counted = transactions[len(rows) // 2 :]
        mean = statistics.mean(counted)
        pages = sum(float(row["written"]) for row in rows[len(rows) // 2 :]) / sum(counted)
        print(f"{device:16}{server:10}{mean:10.1f}{min(counted) / mean:12.2f}{pages:20.2f}")
        left, right = axes[devices.index(device)]
        left.plot(transactions, label=server, linewidth=0.8)
        left.set_ylabel(device)
        right.plot([float(row["age"]) for row in rows], label=server, linewidth=0.8)
    axes[0][0].set_title("transactions a second")
    axes[0][1].set_title("age of the oldest dirty page over that of sync flushing")
    axes[0][0].legend()
    figure.tight_layout()
    plot = BUILD / "flush-simulation.svg"
    figure.savefig(plot)
    print(f"The figures are of the second half. Plot: {plot}")


if __name__ == "__main__":
    sys.exit(main())
