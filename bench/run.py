#!/usr/bin/python3
"""Run benchmarks of servers side by side; see bench/README.md.

    run.py run PLAN       run a plan and write its report; the same command resumes after an interruption
    run.py show PLAN      list the runs of a plan and the time that is left
    run.py report FOLDER  write the report of a folder of results, also of an unfinished one
    run.py report FILE    write the reports of a kept result (bench/results/PLAN/DEVICE.json) to build/bench/reports
    run.py keep FOLDER    copy the result of a folder to bench/results
    run.py index          write bench/results/README.md from the results
    run.py picture        draw docs/throughput.svg, the picture in README.md, from a kept result

The interpreter is Debian's, whose package python3-matplotlib draws the plots.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from bench.runner import kept
from bench.runner.experiment import RESULTS, Experiment, options_of
from bench.runner.plan import read_plan
from spillway.common import REPO, Failure, main, say, write_atomically
from spillway.resources import keep_mounts_private

# The picture in README.md: a closed loop on a device that is limited to 1,500 I/Os and 30 MB a second.
PICTURE_RESULT, PICTURE_WORKLOAD = "ahead-flushing/cloud-volume.json", "tpcc"
PICTURE_TITLE = "tpcc, 1,500 I/Os and 30 MB/s; thin: each second, thick: mean of 5 s"
PICTURE_SERVERS = {"stock-tuned": "stock, innodb_io_capacity = 700",
                   "ahead": "Spillway, innodb_ahead_flushing = ON, first edition"}  # fmt: skip


def run(arguments):
    report = report_module()
    plan = read_plan(arguments.plan)
    keep_mounts_private()
    folder = arguments.output or RESULTS / arguments.plan.stem
    experiment = Experiment(plan, folder.absolute(), arguments.without_device_models)
    try:
        experiment.execute()
    except (Failure, KeyboardInterrupt, SystemExit):
        if experiment.has_folder and any(experiment.finished(one) for one in experiment.runs):
            say(f"what is done is kept in {folder}; the same command goes on there; {sys.argv[0]} report {folder} "
                "shows it")  # fmt: skip
        raise
    report.write(folder)


def report_module():
    """Import the module that writes reports. Only reports need the packages that draw plots."""
    try:
        from bench.runner import report
    except ImportError as error:
        raise Failure(f"{error}: make packages; and let bench/run.py choose its interpreter") from error
    return report


def write_report(arguments):
    if arguments.path.suffix == ".json":
        report_module().write_kept(arguments.path, RESULTS.parent / "reports")
    else:
        report_module().write(arguments.path)


def keep(arguments):
    kept.keep(json.loads((arguments.path / "result.json").read_text()), arguments.path.name)
    index(arguments)


def picture(_):
    report_module()
    from bench.runner import plots

    runs = {run["server"]: run for run in kept.read(kept.KEPT / PICTURE_RESULT)[0]["runs"]
            if run["workload"] == PICTURE_WORKLOAD}  # fmt: skip
    plots.throughput(REPO / "docs/throughput.svg", PICTURE_TITLE,
                     {label: runs[server] for server, label in PICTURE_SERVERS.items()})  # fmt: skip


def index(_):
    write_atomically(kept.INDEX, kept.index())


def show(arguments):
    plan = read_plan(arguments.plan)
    experiment = Experiment(plan, RESULTS / arguments.plan.stem, False)
    done = sum(experiment.finished(one) for one in experiment.runs)
    min_left, max_left = (experiment.seconds_left(warmup_s) / 60 for warmup_s in (plan.warmup_min_s, plan.warmup_max_s))
    left = f"{min_left:.0f} minutes" if done else f"{min_left:.0f} to {max_left:.0f} minutes"
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
    for name in ("report", "keep"):
        commands.add_parser(name).add_argument("path", type=Path)
    for name in ("index", "picture"):
        commands.add_parser(name)
    arguments = parser.parse_args()
    {"run": run, "show": show, "report": write_report, "keep": keep, "index": index,
     "picture": picture}[arguments.command](arguments)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(command_line))
