#!/usr/bin/env python3
"""Measure the cost of one asynchronous read through InnoDB's AIO arrays, by the depth of the array.

Runs bench/micro/aio_bench.cc, built on this checkout's server, with 64 I/O threads, alternating between the depths.
Prints medians, their spread and the ratio to a depth of 256. If there is a stock build (make stock), stock's array of
64 x 256 is measured, too. Needs 65 x 4096 AIO requests: run by root, the tool raises fs.aio-max-nr meanwhile.

--check makes one short run of each shape, and fails if a context is left after the arrays are freed. Then it counts the
instructions for one read with valgrind, which repeats exactly, and fails if they grow with the depth.
"""

import argparse
import contextlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import mtr
from spillway.common import BUILD, DIES_WITH_US, Failure, Skip, locked, main, say

THREADS = 64
DEPTHS = (256, 1024, 4096)
# Max ratio of a read's instructions to those at the smallest depth.
MAX_GROWTH = 1.1
RESULT = re.compile(r"depth=(\d+) cpu_ns=(\d+) elapsed_ns=(\d+) leaked_contexts=(-?\d+)")


def build(tree):
    folder = BUILD / tree / "release"
    command = ["cmake", "--build", str(folder), "--target", "aio_bench"]
    # The locks of tools/build.py: one command at a time per folder.
    with locked("build-stock" if tree == "stock" else "build-release"):
        result = subprocess.run([*DIES_WITH_US, *command], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Failure(f"aio_bench cannot be built on {tree}:\n{result.stdout[-2000:]}{result.stderr[-500:]}")
    return folder / "runtime_output_directory/aio_bench"


def measure(program, threads, depth, in_flight, reads, file):
    command = [str(program), str(threads), str(depth), str(in_flight), str(reads), file]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    found = RESULT.search(result.stdout)
    if "native AIO is not available" in result.stderr:
        raise Skip("native AIO is not available here")
    if result.returncode != 0 or not found:
        raise Failure(f"{' '.join(command)}: {result.stdout}{result.stderr}")
    real_depth, cpu_ns, elapsed_ns, leaked = map(int, found.groups())
    if real_depth != depth:
        raise Skip(f"there is no room in fs.aio-max-nr for {threads + 1} x {depth} requests")
    return cpu_ns, elapsed_ns, leaked


def compare(rounds, reads, file):
    fork = build("fork")
    shapes = [("fork", fork, depth) for depth in DEPTHS]
    if (BUILD / "stock/release/build.ninja").exists():
        shapes.append(("stock", build("stock"), 256))
    for in_flight in (1, 32, 1024):
        figures = {shape: [] for shape in shapes}
        for _ in range(rounds):
            for shape in shapes:
                figures[shape].append(measure(shape[1], THREADS, shape[2], in_flight, reads, file))
        print(f"\n{THREADS} threads, {in_flight} reads in flight, {rounds} rounds of {reads} reads, alternating")
        print("tree   depth   CPU ns/read (min-max)       elapsed ns/read (min-max)   CPU ratio to fork, 256 (min-max)")
        first = figures["fork", fork, 256]
        for shape in shapes:
            cpu, elapsed = ([row[i] for row in figures[shape]] for i in (0, 1))
            ratios = [row[0] / base[0] for row, base in zip(figures[shape], first, strict=True)]
            print(
                f"{shape[0]:6} {shape[2]:5}   {spread(cpu, '.0f'):27} {spread(elapsed, '.0f'):27} "
                f"{spread(ratios, '.3f')}"
            )


def spread(values, form):
    return f"{statistics.median(values):{form}} ({min(values):{form}}-{max(values):{form}})"


def instructions(program, depth, file):
    """The instructions of all threads for one read, from the difference between 3000 and 1000 reads."""
    counts = []
    for reads in (1000, 3000):
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program), str(THREADS),
                   str(depth), "1", str(reads), file]  # fmt: skip
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        found = re.search(r"Collected : (\d+)", result.stderr)
        if result.returncode != 0 or not found or f"depth={depth} " not in result.stdout:
            raise Failure(f"{' '.join(command)}: {result.stdout}{result.stderr[-1000:]}")
        counts.append(int(found.group(1)))
    # The program warms up with a tenth of its reads.
    return (counts[1] - counts[0]) / (1.1 * 2000)


def check_instructions(file):
    if not shutil.which("valgrind"):
        raise Failure("valgrind is not installed: make packages")
    program = build("fork")
    counts = {depth: instructions(program, depth, file) for depth in DEPTHS}
    for depth, count in counts.items():
        say(f"{THREADS} threads x {depth}: {count:.0f} instructions for one read")
    if max(counts.values()) > MAX_GROWTH * counts[DEPTHS[0]]:
        raise Failure(f"a read in a deep array takes more than {MAX_GROWTH} times the instructions of one in a shallow")


def check(file):
    program = build("fork")
    for threads, depth in ((1, 32), (2, 4096), (64, 256), (64, 4096)):
        leaked = measure(program, threads, depth, 64, 5000, file)[2]
        if leaked != 0:
            raise Failure(f"{threads} threads x {depth}: {leaked} AIO contexts are left")
        say(f"{threads} threads x {depth}: no AIO context is left")


@contextlib.contextmanager
def prepared():
    """Raise the limit for the largest array; gives a file to read."""
    with mtr.raised_aio_max_nr(), tempfile.NamedTemporaryFile() as file:
        file.write(b"\0" * 4096)
        file.flush()
        yield file.name


def run_checks():
    with prepared() as file:
        check(file)
        check_instructions(file)


def run():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--reads", type=int, default=200000)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        run_checks()
        return
    with prepared() as file:
        compare(options.rounds, options.reads, file)


if __name__ == "__main__":
    sys.exit(main(run))
