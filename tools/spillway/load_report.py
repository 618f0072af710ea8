"""The two loads of make run: what sysbench prints, the figures of a load, their table and their plot."""

import dataclasses
import html
import math
import re

from spillway.common import Failure

STALL_MS = 100
COLOURS = ("#d55e00", "#0072b2")
WIDTH, HEIGHT, LEFT, GAP = 900, 170, 60, 50


@dataclasses.dataclass
class Second:
    """One second of a load. worst_ms is None if no transaction ended in it."""

    number: int
    transactions: float
    worst_ms: float | None
    age_pct: float | None = None

    def text(self):
        words = [f"{self.number:4} s {self.transactions:7.0f} transactions/s"]
        words.append("no response" if self.worst_ms is None else f"worst response {self.worst_ms:6.0f} ms")
        if self.age_pct is not None:
            words.append(f"checkpoint age {self.age_pct:5.1f} % of the sync age")
        return ", ".join(words)


@dataclasses.dataclass
class Load:
    """A load that has ended. waits: what sessions waited for, {name: (count, seconds)}."""

    name: str
    seconds: list
    mean: float
    p99_ms: float
    max_ms: float
    over_pct: float
    waits: dict = dataclasses.field(default_factory=dict)


def second_of(line):
    """One second from a line that sysbench prints with --report-interval=1 --percentile=100; None for other lines."""
    found = re.match(r"\[ (\d+)s \] thds: \d+ tps: ([\d.]+) .*lat \(ms,100%\): ([\d.]+)", line)
    if not found:
        return None
    transactions, worst = float(found.group(2)), float(found.group(3))
    return Second(int(found.group(1)), transactions, worst if transactions else None)


def histogram_of(output):
    """The response times that sysbench prints with --histogram: [(ms, transactions)], in rising order."""
    rows = re.findall(r"^ +([\d.]+) \|\**\s+(\d+)$", output, re.MULTILINE)
    return [(float(ms), int(count)) for ms, count in rows]


def percentile(histogram, pct):
    wanted = math.ceil(sum(count for _, count in histogram) * pct / 100)
    for ms, count in histogram:
        wanted -= count
        if wanted <= 0:
            return ms
    raise Failure("sysbench has reported no response time: no transaction has ended; try more --seconds")


def load_of(name, seconds, output):
    """A load, from what sysbench has printed."""
    events = re.search(r"total number of events:\s+(\d+)", output)
    elapsed = re.search(r"total time:\s+([\d.]+)s", output)
    longest = re.search(r"^\s+max:\s+([\d.]+)$", output, re.MULTILINE)
    if not (events and elapsed and longest):
        raise Failure(f"sysbench has printed no result:\n{output[-1000:]}")
    histogram = histogram_of(output)
    over = sum(count for ms, count in histogram if ms > STALL_MS)
    return Load(
        name, seconds, int(events.group(1)) / float(elapsed.group(1)), percentile(histogram, 99),
        float(longest.group(1)), 100 * over / sum(count for _, count in histogram),
    )  # fmt: skip


def table(loads):
    """The rows of the table, each a list of texts. Stalls that neither load had are left out."""
    rows = [
        ("mean transactions/s", [f"{load.mean:.0f}" for load in loads]),
        ("transactions in the worst second",
         [f"{min(second.transactions for second in load.seconds):.0f}" if load.seconds else "-" for load in loads]),
        ("99 % of the responses within, ms", [f"{load.p99_ms:.0f}" for load in loads]),
        ("worst response, ms", [f"{load.max_ms:.0f}" for load in loads]),
    ]  # fmt: skip
    over = [load.over_pct for load in loads]
    if any(over):
        rows.append((f"transactions above {STALL_MS} ms, %", [f"{pct:.1f}" for pct in over]))
    empty = [sum(not second.transactions for second in load.seconds) for load in loads]
    if any(empty):
        rows.append(("seconds without a transaction", [str(count) for count in empty]))
    for name in loads[0].waits:
        waits = [load.waits[name] for load in loads]
        if any(count for count, _ in waits):
            rows.append((name, [f"{count}, {seconds:.1f} s" for count, seconds in waits]))
    return [["", *(load.name for load in loads)], *([name, *values] for name, values in rows)]


def table_text(loads):
    rows = table(loads)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  " + "   ".join([row[0].ljust(widths[0]), *(text.rjust(width) for text, width in
                                                      zip(row[1:], widths[1:], strict=True))])
        for row in rows
    )  # fmt: skip


def panel(top, title, loads, value):
    """One panel of the plot, as SVG: a line for each load."""
    found = [[(second.number, value(second)) for second in load.seconds if value(second) is not None] for load in loads]
    points = [point for line in found for point in line]
    longest = max((second for second, _ in points), default=0) or 1
    highest = max((height for _, height in points), default=0) or 1
    yield f'<text x="{LEFT}" y="{top - 8}">{html.escape(title)}</text>'
    yield f'<rect x="{LEFT}" y="{top}" width="{WIDTH - LEFT}" height="{HEIGHT}" fill="none" stroke="#999"/>'
    for fraction in (0, 0.5, 1):
        y = top + HEIGHT * (1 - fraction)
        yield f'<text x="{LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{highest * fraction:.4g}</text>'
        x = LEFT + (WIDTH - LEFT) * fraction
        yield f'<text x="{x:.0f}" y="{top + HEIGHT + 16}" text-anchor="middle">{longest * fraction:.4g} s</text>'
    for line, colour in zip(found, COLOURS, strict=True):
        places = " ".join(f"{LEFT + (WIDTH - LEFT) * second / longest:.1f},{top + HEIGHT * (1 - height / highest):.1f}"
                          for second, height in line)  # fmt: skip
        yield f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"/>'


def page(loads, device):
    """A page of HTML with the plot and the table. It loads nothing from elsewhere."""
    panels = (
        ("transactions/s", lambda second: second.transactions),
        ("worst response, ms", lambda second: second.worst_ms),
        ("checkpoint age, % of the sync age", lambda second: second.age_pct),
    )
    parts = [part for i, (title, value) in enumerate(panels)
             for part in panel(30 + i * (HEIGHT + GAP), title, loads, value)]  # fmt: skip
    cells = ("".join(f"<td>{html.escape(text)}</td>" for text in row) for row in table(loads))
    rows = "".join(f"<tr>{row}</tr>\n" for row in cells)
    names = " ".join(f'<b style="color:{colour}">{html.escape(load.name)}</b>'
                     for load, colour in zip(loads, COLOURS, strict=True))  # fmt: skip
    drawn = "\n".join(parts)
    return f"""<!DOCTYPE html>
<meta charset="utf-8"><title>Spillway: two loads</title>
<style>body {{font: 14px sans-serif}} text {{font: 12px sans-serif}} td {{padding: 2px 12px; text-align: right}}
td:first-child {{text-align: left}}</style>
<p>{names}</p><p>{html.escape(device)}</p>
<svg width="{WIDTH + 30}" height="{30 + len(panels) * (HEIGHT + GAP)}">
{drawn}
</svg>
<table>{rows}</table>
"""
