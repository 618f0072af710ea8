#!/usr/bin/python3
"""Benchmarks that run servers side by side; see bench/README.md.

    run.py run PLAN       carry out a plan and write its report; the same command goes on after an interruption
    run.py show PLAN      what a plan would run
    run.py report FOLDER  write the report of a folder of results, as far as it has come

The interpreter is Debian's, whose package python3-matplotlib draws the plots.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parent / "runner"))
from common import Failure, main, say
from experiment import RESULTS, Experiment, options_of
from plan import read_plan
from resources import keep_mounts_private


def run(arguments):
    write_report = report_writer()
    plan = read_plan(arguments.plan)
    keep_mounts_private()
    folder = arguments.output or RESULTS / arguments.plan.stem
    experiment = Experiment(plan, folder.absolute(), arguments.without_device_models)
    try:
        experiment.carry_out()
    except (Failure, KeyboardInterrupt, SystemExit):
        if experiment.has_folder and any(experiment.finished(one) for one in experiment.runs):
            say(f"what is done is kept in {folder}; the same command goes on there; {sys.argv[0]} report {folder} "
                "shows it")  # fmt: skip
        raise
    write_report(folder)


def report_writer():
    """Needs the packages that draw plots, which nothing else does."""
    try:
        from report import write
    except ImportError as error:
        raise Failure(f"{error}: make packages; and let bench/run.py choose its interpreter") from error
    return write


def show(arguments):
    plan = read_plan(arguments.plan)
    experiment = Experiment(plan, RESULTS / arguments.plan.stem, False)
    done = sum(experiment.finished(one) for one in experiment.runs)
    least, most = (experiment.seconds_left(warmup_s) / 60 for warmup_s in (plan.warmup_min_s, plan.warmup_max_s))
    left = f"{least:.0f} minutes" if done else f"{least:.0f} to {most:.0f} minutes"
    print(f"{plan.title}: {len(experiment.runs)} runs of {plan.measured_s} s after a warm-up of {plan.warmup_min_s} to "
          f"{plan.warmup_max_s} s; {done} are done, {left} left\n")  # fmt: skip
    for one in experiment.runs:
        options = " ".join(f"{name}={value}" for name, value in options_of(plan, one).items())
        print(f"{one.name}: {one.workload.clients} clients; {options}")


def command_line():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("run", "show"):
        commands.add_parser(name).add_argument("plan", type=Path)
    commands.choices["run"].add_argument("--output", type=Path, help="folder of the results")
    commands.choices["run"].add_argument(
        "--without-device-models", action="store_true",
        help="where this machine allows no throttle or mount, go on with its disk as it is",
    )  # fmt: skip
    commands.add_parser("report").add_argument("folder", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "report":
        report_writer()(arguments.folder)
    else:
        {"run": run, "show": show}[arguments.command](arguments)


if __name__ == "__main__":
    sys.exit(main(command_line))
