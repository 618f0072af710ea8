#!/usr/bin/env python3
"""Configure and build a preset of CMakePresets.json: build.py PRESET [TARGET...]

A second build of the same preset in one checkout waits for the first."""

import argparse
import sys

from spillway.common import BUILD, REPO, Failure, child, locked, main


def build(preset, targets):
    with locked(f"build-{preset}") as lock:
        log = BUILD / f"{preset}.configure.log"
        # cmake and its children inherit the lock, so that they hold it until they end, also if this tool is killed.
        with open(log, "w") as file, child(["cmake", "--preset", preset, "-Wno-dev"], cwd=REPO, stdout=file,
                                           stderr=file, pass_fds=[lock]) as process:  # fmt: skip
            status = process.wait()
        if status != 0:
            raise Failure(f"cmake --preset {preset} ended with status {status}; {log}:\n{log.read_text()[-3000:]}")
        command = ["cmake", "--build", "--preset", preset, *(["--target", *targets] if targets else [])]
        with child(command, cwd=REPO, pass_fds=[lock]) as process:
            status = process.wait()
        if status != 0:
            raise Failure(f"{' '.join(command)} ended with status {status}")


def run():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    arguments = parser.parse_args()
    build(arguments.preset, arguments.targets)


if __name__ == "__main__":
    sys.exit(main(run))
