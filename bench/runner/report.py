"""The report of a folder of results: one HTML page with its plots, the plots as PNG files, one JSON file."""

import base64
import html
import json
import math
import re
import statistics
import tomllib

from spillway.common import Failure, say

from . import comparison, figures, io_account, plots
from .plan import DEFAULT_MAX_STEAL_PCT

# Key of a figure, name, unit, an arrow to where it is better, decimal places, divisor.
FIGURES = (
    ("mean_per_s", "transactions", "1/s", "↑", 0, 1),
    ("new_orders_per_min", "new-order transactions (NOTPM, the 1 % that roll back included)", "1/min", "↑", 0, 1),
    ("second_half_over_first", "transactions, second half of the time over the first", "", "", 2, 1),
    ("worst_second_per_s", "worst second", "1/s", "↑", 0, 1),
    ("worst_second_over_mean", "worst second over what was expected", "", "↑", 2, 1),
    ("stddev_over_mean", "standard deviation over what was expected", "", "↓", 2, 1),
    ("seconds_below_50_pct", "seconds below 50 % of what was expected", "s", "↓", 1, 1),
    ("seconds_below_10_pct", "seconds below 10 % of what was expected", "s", "↓", 1, 1),
    ("seconds_at_zero", "seconds in which no transaction ended", "s", "↓", 1, 1),
    ("longest_below_50_pct_s", "longest time below 50 % of what was expected", "s", "↓", 1, 1),
    ("longest_below_10_pct_s", "longest time below 10 % of what was expected", "s", "↓", 1, 1),
    ("longest_gap_s", "longest time in which no transaction ended", "s", "↓", 2, 1),
    ("p50_ms", "response time, median", "ms", "↓", 1, 1),
    ("p95_ms", "response time, 95 %", "ms", "↓", 1, 1),
    ("p99_ms", "response time, 99 %", "ms", "↓", 1, 1),
    ("p99.9_ms", "response time, 99.9 %", "ms", "↓", 1, 1),
    ("max_ms", "response time, longest", "ms", "↓", 0, 1),
    ("ended_over_due", "transactions ended over those due", "", "↑", 3, 1),
    ("pages_flushed_per_transaction", "pages flushed per transaction", "", "↓", 2, 1),
    ("bytes_written_per_transaction", "written by the server per transaction", "KiB", "↓", 1, 1024),
    ("disk_bytes_written_per_transaction", "written to the disk, by all that use it, per transaction", "KiB", "↓", 1,
     1024),
    ("redo_bytes_per_transaction", "redo written per transaction", "KiB", "↓", 2, 1024),
    ("fsyncs_per_transaction", "InnoDB's fsyncs per transaction", "", "↓", 3, 1),
    ("cpu_us_per_transaction", "CPU time of the server per transaction", "us", "↓", 0, 1),
    ("redo_full_waits", "waits for space in the redo log", "", "↓", 0, 1),
    ("sync_flush_batches", "batches of sync flushing", "", "↓", 0, 1),
    ("sync_flush_pages", "pages of sync flushing", "", "↓", 0, 1),
    ("free_page_waits", "waits for a free page", "", "↓", 0, 1),
    ("deadlocks", "deadlocks", "", "↓", 0, 1),
    ("checkpoint_age_min_bytes", "checkpoint age, least", "MiB", "", 1, 1 << 20),
    ("checkpoint_age_max_bytes", "checkpoint age, greatest", "MiB", "", 1, 1 << 20),
    ("dirty_max_pages", "dirty pages, most", "", "", 0, 1),
    ("disk_writes_per_s", "writes of the real disk, behind the model", "1/s", "", 0, 1),
    ("disk_bytes_written_per_s", "written to the real disk", "MB/s", "", 1, 1e6),
    ("disk_write_ms", "time of a write of the real disk", "ms", "", 2, 1),
    ("disk_busy_pct", "real disk busy", "%", "", 0, 1),
    ("limit_writes_pct", "writes submitted, of the model's limit", "%", "", 0, 1),
    ("limit_bytes_pct", "bytes written, of the model's limit", "%", "", 0, 1),
    ("disk_writes_per_transaction", "writes to the disk per transaction", "", "↓", 3, 1),
    ("disk_flushes_per_transaction", "flushes of the disk per transaction", "", "↓", 3, 1),
    ("disk_write_bytes", "mean size of a write to the disk", "KiB", "", 1, 1024),
    *(
        figure
        for owner, name in io_account.NAMES.items()
        for figure in (
            (f"{owner}_disk_writes_per_transaction", f"of the writes per transaction: {name}", "", "↓", 3, 1),
            (f"{owner}_disk_bytes_per_transaction", f"bytes of these: {name}", "KiB", "↓", 2, 1024),
        )
    ),
    ("cpu_idle_pct", "CPU idle, of the whole machine", "%", "", 1, 1),
    ("cpu_of_others_pct", "CPU time of neither server nor load: others, kernel, interrupts", "%", "", 1, 1),
    ("cpu_steal_pct", "CPU time that the host gave to others", "%", "", 1, 1),
)  # fmt: skip
# With fewer pairs, a result in one direction only has a probability of 1/16 or more between equal servers.
SIGN_TEST_PAIRS = 6
# With one repetition the noise is not known, and no server is called the best.
NAMED_REPETITIONS = 2
# The figures in the table at the top.
GLANCE = ("mean_per_s", "worst_second_over_mean", "p99.9_ms")
# Source: measured. With more steal, throughput follows the host and not the server.
NOISY_STEAL_PCT = 10
# A fifth of the latency of the fastest network volumes.
NOTED_LATE_US = 200
# Settings that say how durable a server is, and the options of a plan that change them.
DURABILITY = {
    "innodb_flush_log_at_trx_commit": {"innodb_flush_log_at_trx_commit"},
    "innodb_doublewrite": {"innodb_doublewrite"},
    "sync_binlog": {"sync_binlog"},
    "log_bin": {"log_bin", "skip_log_bin", "disable_log_bin"},
}
LIMIT_UNITS = {"read_iops": "reads/s", "read_bytes_per_s": "bytes/s read", "write_iops": "writes/s",
               "write_bytes_per_s": "bytes/s written", "latency_ms": "ms latency (median)",
               "latency_sigma": "standard deviation of its logarithm", "ios_per_s": "I/Os/s", "bytes_per_s": "bytes/s",
               "flush_ms": "ms for a flush", "seek_ms": "ms for a seek (mean)",
               "rotation_ms": "ms for a rotation"}  # fmt: skip
# The part of an absolute path before its last name.
PLACE = re.compile(r"^/.*/")
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; padding: 0 1em; color: #222 }
table { border-collapse: collapse; margin: 1em 0 }
td, th { border: 1px solid #ccc; padding: 3px 9px; text-align: right }
td:first-child, th:first-child { text-align: left; position: sticky; left: 0; background: #fff; max-width: 16em }
th, th:first-child { background: #f3f3f3 } img { max-width: 100% } .wide { overflow-x: auto }
.spread { color: #777; font-size: 85% } td .spread, td .ratio { display: block; white-space: nowrap }
.note { color: #a00 }
@media (max-width: 700px) { body { margin: 1em auto; padding: 0 .5em } td, th { padding: 2px 5px; font-size: 85% } }
"""


def number(value, digits, divisor=1):
    """Format a number. None is "not known"; infinite is only known to be longer than the others."""
    if value is None:
        return "not known"
    return f"{value / divisor:,.{digits}f}" if math.isfinite(value) else "longer than known"


def pale(text):
    return f'<span class="spread">{text}</span>'


def with_spread(spread, digits, divisor=1, of=0):
    """Format the median with minimum and maximum, and note how many of the values are unknown."""
    notes = []
    if spread["of"] > 1:
        notes.append(f"{number(spread['min'], digits, divisor)} to {number(spread['max'], digits, divisor)}")
    if spread["of"] < of:
        notes.append(f"the others of {of} not known")
    return " ".join([number(spread["median"], digits, divisor), *(pale(note) for note in notes)])


def table(head, rows):
    """An HTML table, which scrolls if it is wider than the page. The cells are HTML."""

    def line(tag, cells):
        return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"

    lines = "".join(line("td", row) for row in rows)
    return f'<div class="wide"><table>{line("th", head) if head else ""}{lines}</table></div>'


def noise_text(spread):
    """The spread of the reference's own repetitions around their median."""
    if not spread or spread["of"] < 2 or not spread["median"] or math.isinf(spread["max"]):
        return ""
    return pale(f"noise {spread['min'] / spread['median']:.2f} to {spread['max'] / spread['median']:.2f}")


def ratio_text(of_servers, reference, server):
    ratio = of_servers[server]["ratio"]
    if ratio is None:
        return ""
    text = f"× {with_spread(ratio, 3)}"
    if comparison.differs(of_servers, reference, server):
        text = f"<b>{text}</b>"
    return f'<span class="ratio">{text}</span>'


def figure_rows(compared, repetitions, keys=None):
    """A row for each figure: of each server the value, and its ratio to the first server's. repetitions is {server:
    number of runs}; keys selects figures."""
    reference = next(iter(repetitions))
    rows = []
    for key, name, unit, better, digits, divisor in FIGURES:
        of_servers = compared.get(key)
        if not of_servers or (keys and key not in keys):
            continue
        row = [f"{name}{f', {unit}' if unit else ''} {better}"]
        for server, of in repetitions.items():
            if server not in of_servers:
                row.append("not known" if of else "")
                continue
            cell = with_spread(of_servers[server], digits, divisor, of)
            if better:
                is_reference = server == reference
                cell += noise_text(of_servers[server]) if is_reference else ratio_text(of_servers, reference, server)
            row.append(cell)
        rows.append(row)
    return rows


def count_repetitions(by_server):
    return {server: len(runs) for server, runs in by_server.items()}


def glance_table(compared, servers):
    """The figures that a reader wants first, for all workloads and devices."""
    rows = []
    for device, workload, by_server, found in compared:
        repetitions = dict.fromkeys(servers, 0) | count_repetitions(by_server)
        for name, *cells in figure_rows(found, repetitions, GLANCE):
            rows.append([f"{workload} on {device}: {name}", *cells])
    return table(["", *servers], rows)


def best(compared, key, servers):
    """The server with the best median of a figure in all comparisons, if it differs from the first server in each; None
    without such a server."""
    medians = {server: statistics.median(of[key][server]["median"] for of in compared) for server in servers}
    server = max(servers, key=medians.get)
    is_better = all(comparison.differs(of[key], servers[0], server, NAMED_REPETITIONS) for of in compared)
    return server if server != servers[0] and is_better else None


def summary_sentence(compared, servers):
    """Who does most, and who is steadiest, as far as the differences exceed the noise in all comparisons."""
    reference, *others = servers
    # An open loop's throughput is the plan's.
    closed = [found for _, _, by_server, found in compared if not next(iter(by_server.values()))[0]["arrivals_per_s"]]
    parts = []
    every = [found for *_, found in compared]
    for key, name, all_found in (("mean_per_s", "most transactions", closed),
                                 ("worst_second_over_mean", "steadiest", every)):  # fmt: skip
        of_all = [found for found in all_found if len(found.get(key, ())) == len(servers)]
        if not others or not of_all:
            continue
        server = best(of_all, key, servers)
        if not server:
            parts.append(f"{name}: no server is better than {reference} beyond the noise")
        elif key == "mean_per_s":
            ratio = statistics.median(found[key][server]["ratio"]["median"] for found in of_all)
            parts.append(f"{name}: {server}, {ratio:.2f} times those of {reference}")
        else:
            own, base = (statistics.median(found[key][one]["median"] for found in of_all)
                         for one in (server, reference))  # fmt: skip
            parts.append(f"{name}: {server}, worst second {own:.2f} of what was expected ({reference}: {base:.2f})")
    text = "; ".join(parts)
    return f"<p><b>{html.escape(text[:1].upper() + text[1:])}.</b></p>" if text else ""


def summary(folder, compared, servers):
    """What a reader sees first: one sentence and one plot of all workloads and devices."""
    if not compared:
        return ""
    rows = []
    for device, workload, by_server, found in compared:
        for server in by_server:
            of_mean = found.get("mean_per_s", {}).get(server, {"median": 0, "ratio": None})
            ratio = of_mean["ratio"]
            if server == next(iter(by_server)) and of_mean["median"]:
                ratio = {key: of_mean[key] / of_mean["median"] for key in ("median", "min", "max")}
            place = f"{workload}, {device}: " if len(compared) > 1 else ""
            rows.append((place + server, ratio, found.get("worst_second_over_mean", {}).get(server)))
    path = folder / "summary.png"
    plots.summary(path, rows)
    return summary_sentence(compared, servers) + image(path, "transactions and steadiness of each server")


def repetition_table(by_server):
    """The throughput of each run, in the order of the runs, with its ratio to the first server's."""
    means = {server: {run["repetition"]: run["figures"]["mean_per_s"] for run in runs}
             for server, runs in by_server.items()}  # fmt: skip
    rows = []
    for repetition, base in next(iter(means.values())).items():
        row = [repetition]
        for server, of in means.items():
            own = of.get(repetition)
            is_compared = own and base and server != next(iter(means))
            ratio = f'<span class="ratio">× {number(own / base, 3)}</span>' if is_compared else ""
            row.append(number(own, 0) + ratio if repetition in of else "")
        rows.append(row)
    return table(["repetition: transactions/s", *by_server], rows)


def stall_table(by_server):
    """The stalls by kind, the median of the repetitions, for the servers that count stalls."""
    counting = {server: [run["figures"]["stalls"] for run in runs] for server, runs in by_server.items()
                if all(run["figures"]["stalls"] for run in runs)}  # fmt: skip
    if not counting:
        return "<p>No server here counts stalls by kind.</p>"
    rows = []
    for kind in sorted({kind for runs in counting.values() for stalls in runs for kind in stalls}):
        row = [kind]
        for runs in counting.values():
            count, time_ms = (statistics.median(stalls[kind][key] for stalls in runs) for key in ("count", "time_ms"))
            row += [number(count, 0), number(time_ms / 1000, 2)]
        rows.append(row)
    head = [f"{server}, {what}" for server in counting for what in ("waits", "s of all threads")]
    others = ", ".join(server for server in by_server if server not in counting)
    return (f"<p>Stalls by kind{f'; {others}: not counted' if others else ''}:</p>" + table(["", *head], rows))


def kind_table(by_server):
    """The response times by kind of transaction, if there is more than one kind."""
    kinds = sorted({kind for runs in by_server.values() for run in runs for kind in run["figures"]["by_kind"]})
    if len(kinds) < 2:
        return ""
    rows = []
    for kind in kinds:
        for server, runs in by_server.items():
            own = [run["figures"]["by_kind"][kind] for run in runs if kind in run["figures"]["by_kind"]]
            if own:
                count, *times = (statistics.median(one[key] for one in own)
                                 for key in ("count", *(key for key, _ in plots.PERCENTILES)))  # fmt: skip
                rows.append([kind, server, number(count, 0), *(number(time, 1) for time in times)])
    return table(["kind", "server", "count", *(f"{text}, ms" for _, text in plots.PERCENTILES)], rows)


def image(path, text):
    encoded = base64.b64encode(plots.for_page(path)).decode()
    return f'<p><img alt="{html.escape(text)}" src="data:image/webp;base64,{encoded}"></p>'


def durability(settings):
    """The settings with which a server protects commits and pages."""
    binlog = f"sync_binlog={settings['sync_binlog']}" if settings["log_bin"] == "ON" else "no binary log"
    names = ("innodb_flush_log_at_trx_commit", "innodb_doublewrite")
    return ", ".join([*(f"{name}={settings[name]}" for name in names), binlog])


def notes(by_server, filesystem, planned):
    """Return what a reader has to know about these runs before the figures, and does not expect from the plan's servers
    (planned)."""
    found = []
    for server, runs in by_server.items():
        for run in runs:
            which = f"{server}, repetition {run['repetition']}"
            if not run["is_steady"]:
                found.append(f"{which}: not steady: the redo log was written {run['warmup_redo_writes']:.1f} times "
                             "before it was counted")  # fmt: skip
            if not run["is_throttled"]:
                found.append(f"{which}: the device was not held to its model")
            late_us = run.get("timed_disk", {}).get("late_mean_us", 0)
            if late_us > NOTED_LATE_US:
                found.append(f"{which}: the timed disk answered {late_us} us late in the mean")
            # Older results have no file system per run.
            its_own = run.get("filesystem", filesystem)
            if its_own and not run["is_mounted"]:
                found.append(f"{which}: on the machine's own file system")
            elif its_own != planned[server].get("filesystem", filesystem):
                found.append(f"{which}: on {its_own}")
            steal = run["figures"]["cpu_steal_pct"]
            if steal is not None and steal > NOISY_STEAL_PCT:
                found.append(f"{which}: noisy: the host gave {steal:.0f} % of the CPU time to others")
            if run["clients_behind"]:
                found.append(f"{which}: {run['clients_behind']} clients still had transactions of the time that counts "
                             "long after it: what they took is not known")  # fmt: skip
    wanted = {name for server in by_server for name in planned[server].get("options", {})}
    settings = {server: runs[0]["settings"] for server, runs in by_server.items()}
    for name, options in DURABILITY.items():
        of_each = {server: of[name] for server, of in settings.items() if name in of}
        if len(set(of_each.values())) > 1 and not wanted & options:
            text = "; ".join(f"{server}: {value}" for server, value in of_each.items())
            found.append(f"the servers are not equally durable, {name}: {text}")
    return "".join(f'<p class="note">{html.escape(text)}</p>' for text in found)


def facts(by_server):
    """Return one line for each server: its program, runs and warm-up."""
    lines = []
    for server, runs in by_server.items():
        warmups = figures.spread([run["warmup_s"] for run in runs])
        writes = figures.spread([run["warmup_redo_writes"] for run in runs])
        checked = "checked" if all(run["check"] for run in runs) else "no check"
        lines.append(f"<li>{server}: {runs[0]['version']} ({runs[0]['sha256'][:8]}), "
                     f"{len(runs)} repetitions of {runs[0]['measured_s']} s, {runs[0]['clients']} clients, "
                     f"warm-up {with_spread(warmups, 0)} s, redo log of {runs[0]['redo_capacity_bytes'] >> 20} MiB "
                     f"written {with_spread(writes, 1)} times before; {durability(runs[0]['settings'])}; "
                     f"data afterwards: {checked}</li>")  # fmt: skip
    arrivals = runs[0]["arrivals_per_s"]
    if arrivals:
        bursts = runs[0]["burst_arrivals_per_s"]
        text = f"open loop: {arrivals:.0f} transactions/s are due" + (f", {bursts:.0f} in bursts" if bursts else "")
        lines.append(f"<li>{text}</li>")
    return f"<ul>{''.join(lines)}</ul>"


def option_table(by_server, key, title):
    """The names and values of options for each server. read_run() has removed this machine's paths."""
    options = [runs[0][key] for runs in by_server.values()]
    names = sorted({name for own in options for name in own})
    rows = [[html.escape(str(text)) for text in (name, *(own.get(name, "") for own in options))] for name in names]
    return f"<details><summary>{title}</summary>{table(['', *by_server], rows)}</details>"


def section(folder, device, workload, by_server, compared, planned):
    """The part of the page about one workload on one device. planned: the plan's servers."""
    title = f"{workload} on {device['name']}"
    place = f"{device['name']}.{workload}"
    timeline, percentiles = (folder / f"{place}.{what}.png" for what in ("seconds", "response-times"))
    plots.timeline(timeline, title, by_server)
    plots.percentiles(percentiles, title, by_server)
    page = [
        f"<h2>{title}</h2><p>{html.escape(limits_text(device))}</p>", notes(by_server, device["filesystem"], planned),
        facts(by_server),
        image(timeline, f"{title}, second by second"), repetition_table(by_server),
        table(["", *by_server], figure_rows(compared, count_repetitions(by_server))),
        image(percentiles, f"{title}, response times"), kind_table(by_server), stall_table(by_server),
        option_table(by_server, "my_cnf", "my.cnf"), option_table(by_server, "settings", "settings in effect"),
    ]  # fmt: skip
    return "".join(page)


def limits_text(device):
    """A device's limits and file system as text."""
    # Older results have no timing.
    model = device["limits"] | device.get("timing", {})
    limits = [f"{value:,} {LIMIT_UNITS[name]}" for name, value in model.items() if value]
    text = ": ".join(part for part in (device["description"], ", ".join(limits)) if part)
    where = " in memory" if device["in_memory"] else ""
    return text + (f"; {device['filesystem']} on a loop device{where}" if device["filesystem"] else "")


def rounded(value, digits):
    """Round for the JSON file: more digits would pretend a precision, and JSON has no infinity."""
    if isinstance(value, float):
        short = float(f"{value:.{digits}g}") if math.isfinite(value) else None
        return int(short) if short is not None and short.is_integer() else short
    if isinstance(value, dict):
        return {key: rounded(of, digits) for key, of in value.items()}
    return [rounded(of, digits) for of in value] if isinstance(value, list) else value


def without_zeros(run):
    """A run with only those counters that moved."""
    moved = {name: value for name, value in run["figures"]["counters_added"].items() if value}
    return run | {"figures": run["figures"] | {"counters_added": moved}}


def read_json(path):
    return json.loads(path.read_text())


def read_run(path):
    """Read run.json and the my.cnf beside it, without this machine's paths."""
    lines = (path.parent / "my.cnf").read_text().splitlines()
    settings = dict(line.split(" = ", 1) for line in lines if " = " in line)
    return read_json(path) | {"my_cnf": {name: PLACE.sub("…/", value) for name, value in settings.items()}}


def discarded_table(discarded):
    """The runs that were repeated because of steal, so that none is hidden."""
    if not discarded:
        return ""
    rows = [[run["run"], number(run["mean_per_s"], 0), number(run["cpu_steal_pct"], 1)] for run in discarded]
    return ("<h2>Discarded as noisy</h2><p>Repetitions in which the host gave more CPU time to others than the plan "
            "allows; they were done again.</p>"
            + table(["run", "transactions, 1/s", "CPU time that the host gave to others, %"], rows))  # fmt: skip


def overall_text(sections, max_steal_pct):
    """A sign test of throughput over all quiet pairs of all workloads and devices, if there are enough."""
    reference = next(iter(sections[0]))
    found = []
    for server, ratios in comparison.throughput_ratios(sections, max_steal_pct).items():
        if len(ratios) >= SIGN_TEST_PAIRS:
            above = sum(ratio > 1 for ratio in ratios)
            probability = figures.sign_test(above, len(ratios))
            found.append(f"<p>{server} in all {len(ratios)} quiet pairs: more transactions than {reference} in "
                         f"{above} of them, in the median {statistics.median(ratios):.3f} times as many. Between equal "
                         "servers a count so far from half of the pairs, or farther, has a probability of "
                         f"{probability:.2f}.</p>")  # fmt: skip
    return "".join(found)


def collect(folder):
    """Collect the finished runs of a folder of results, in the form of result.json."""
    if not (folder / "plan.toml").exists():
        raise Failure(f"{folder} is no folder of results: there is no plan.toml in it")
    plan = tomllib.loads((folder / "plan.toml").read_text())
    runs = [read_run(path) for path in sorted(folder.glob("runs/*/run.json"))]
    if not all("settings" in run for run in runs):
        raise Failure(f"{folder} was made by an earlier version of this tool, whose figures were others")
    if not runs:
        raise Failure(f"{folder} has no run that is done")
    discarded = folder / "discarded.json"
    return {
        "title": plan["title"], "plan": plan, "environment": read_json(folder / "environment.json"),
        "devices": read_json(folder / "made-with.json")["devices"],
        "comparisons": [{"device": device, "workload": workload, "figures": comparison.compare(by_server)}
                        for device, workload, by_server in comparison.comparisons(plan, runs)],
        "runs": rounded([without_zeros(run) for run in runs], 4),
        "discarded": read_json(discarded) if discarded.exists() else [],
    }  # fmt: skip


def write_page(result, folder):
    """Write report.html and the plots of a result into a folder."""
    plan, runs = result["plan"], result["runs"]
    planned = len(plan["devices"]) * len(plan["workloads"]) * len(plan["servers"]) * plan["run"]["repetitions"]
    max_steal_pct = plan["run"].get("max_steal_pct", DEFAULT_MAX_STEAL_PCT)
    compared = [(*one, comparison.compare(one[2])) for one in comparison.comparisons(plan, runs)]
    sections = [section(folder, result["devices"][device], *of_device, plan["servers"])
                for device, *of_device in compared]  # fmt: skip
    missing = "" if len(runs) == planned else f'<p class="note">{len(runs)} of {planned} runs are done.</p>'
    min_repetitions = comparison.MIN_REPETITIONS
    verdict = ("A ratio in bold type lies outside of that noise in every repetition."
               if plan["run"]["repetitions"] >= min_repetitions else
               f"With fewer than {min_repetitions} repetitions no single ratio is called a difference: of equal "
               "servers many would lie outside of that noise by chance.")  # fmt: skip
    plan_text = json.dumps(plan, indent=2)
    page = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(plan["title"])}</title><style>{STYLE}</style></head>
<body><h1>{html.escape(plan["title"])}</h1><p>{html.escape(plan["description"])}</p>{missing}
{summary(folder, compared, list(plan["servers"]))}
<p>Figures are medians of the repetitions, with minimum and maximum. A ratio is of the runs of one repetition, which
followed one another, the first server first. Noise is the spread of the first server's own repetitions around their
median; × is the ratio. An arrow points to where a figure is better. {verdict}
What is expected of a second is the mean or, in an open loop, what was due. Response times count from when a transaction
began or, in an open loop, was due.</p>
{glance_table(compared, plan["servers"]) if len(compared) > 1 else ""}
{overall_text([by_server for _, _, by_server, _ in compared], max_steal_pct)}
{"".join(sections)}
{discarded_table(result["discarded"])}
<h2>Plan</h2><details><summary>{html.escape(plan["title"])}</summary><pre>{html.escape(plan_text)}</pre></details>
<h2>Environment</h2>
{table([], [[name, html.escape(str(value))] for name, value in result["environment"].items()])}</body></html>
"""
    (folder / "report.html").write_text(page)
    say(f"report: {folder / 'report.html'}")


def write(folder):
    """Write report.html, result.json and the plots of a folder of results."""
    result = collect(folder)
    (folder / "result.json").write_text(json.dumps(rounded(result, 6), separators=(",", ":")) + "\n")
    write_page(result, folder)


def write_kept(file, top):
    """Write the reports of a kept result, one folder for each of its parts."""
    for number, result in enumerate(read_json(file), start=1):
        folder = top / file.parent.name / f"{file.stem}-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        write_page(result, folder)
