"""Kept results: bench/results/PLAN/DEVICE.json has a list of what was measured for a plan on a device, the oldest
first. Each part has its plan, environment (machine, commit, date) and runs. The comparisons are left out, because they
follow from the runs, and so are the seconds of the warm-up that no plot shows."""

import json

from spillway.common import REPO, write_atomically

from . import comparison
from .figures import SHOWN_WARMUP_S

KEPT = REPO / "bench/results"
INDEX = KEPT / "README.md"


def files():
    return sorted(KEPT.glob("*/*.json"))


def read(file):
    return json.loads(file.read_text())


def keep(result, plan):
    """Add a result. It replaces each older part whose servers and workloads are all in it."""
    for device, description in result["devices"].items():
        runs = [run for run in result["runs"] if run["device"] == device]
        if not runs:
            continue
        new = result | {
            "plan": result["plan"] | {"devices": {device: result["plan"]["devices"][device]}},
            "devices": {device: description}, "runs": [shortened(run) for run in runs],
        }  # fmt: skip
        del new["comparisons"]
        file = KEPT / plan / f"{device}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        older = read(file) if file.exists() else []
        parts = [*(part for part in older if not measured(part) <= measured(new)), new]
        lines = ",\n".join(json.dumps(part, separators=(",", ":")) for part in parts)
        write_atomically(file, f"[\n{lines}\n]\n")


def shortened(run):
    """A run without the seconds that no plot shows."""
    series = run["series"]
    begin = sum(second < -SHOWN_WARMUP_S for second in series["second"])
    return run | {"series": {name: values[begin:] for name, values in series.items()}}


def measured(part):
    return {(run["workload"], run["server"]) for run in part["runs"]}


def ratios(part):
    """Yield for each workload, as text, the ratio of transactions of each server to the first."""
    for _, workload, by_server in comparison.comparisons(part["plan"], part["runs"]):
        of_servers = comparison.compare(by_server)["transactions"]
        found = [f"{server} {of['ratio']['median']:.2f}" for server, of in of_servers.items() if of["ratio"]]
        if found:
            yield f"{workload}: {', '.join(found)}"


def index():
    """The page of bench/results, made from the kept results."""
    rows = []
    for file in files():
        for part in read(file):
            environment = part["environment"]
            servers = list(part["plan"]["servers"])
            repetitions = max(run["repetition"] for run in part["runs"])
            rows.append(
                f"| [{file.parent.name}/{file.stem}]({file.parent.name}/{file.name}) | {environment['date'][:10]} "
                f"| `{environment['commit'][:9]}` | {servers[0]} | {repetitions} | {'; '.join(ratios(part)) or '-'} |"
            )
    return "\n".join([
        "# Kept results",
        "",
        "`bench/run.py index` makes this page. `bench/run.py report FILE` makes the report of a file, with each",
        "second and all figures. The ratios are of transactions, to the reference in the same repetition; medians.",
        "",
        "| result | date | commit | reference | repetitions | transactions / reference |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
    ])  # fmt: skip
