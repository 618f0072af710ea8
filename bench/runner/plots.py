"""The plots of a comparison as PNG files, and README.md's picture as SVG."""

import io
import itertools
import math

import matplotlib

from . import comparison, figures

matplotlib.use("Agg")
from matplotlib import pyplot
from PIL import Image

PERCENTILES = (("p50_ms", "50"), ("p95_ms", "95"), ("p99_ms", "99"), ("p99.9_ms", "99.9"), ("max_ms", "longest"))
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
# Tints of each server's colour in the palette: the colour, paler lines, and edges.
FRACTIONS_KEPT = (1, 0.75, 0.5, 0.3)
GREYS_KEPT = (255, 238, 200, 150, 100, 50, 0)
SMOOTHED_S = 5
THROUGHPUT = "transactions"
# One for each of PERCENTILES.
MARKS = ("o", "s", "D", "^", "x")
# More lines in one panel cannot be told apart.
LINES_MAX = 4
GREY = "#999999"
# What is drawn: the series, its name, the divisor of its values. Small panels have the first MULTIPLES_PANELS.
PANELS = (
    (THROUGHPUT, "transactions/s", 1),
    ("max_ms", "longest\nresponse, ms", 1),
    ("checkpoint_age_bytes", "checkpoint\nage, MiB", 1 << 20),
    ("dirty_pages", "dirty pages,\nthousands", 1000),
    ("pages_flushed", "pages\nflushed/s", 1),
)
MULTIPLES_PANELS = 3


def save(figure, path, n_servers):
    """Save as PNG with few colours: lines need no more, and the page that holds all plots stays small."""
    figure.savefig(path, dpi=85)
    pyplot.close(figure)
    kept = [value for grey in GREYS_KEPT for value in (grey, grey, grey)]
    for colour in COLOURS[:n_servers]:
        of_colour = bytes.fromhex(colour[1:])
        kept += [round(fraction * value + (1 - fraction) * 255) for fraction in FRACTIONS_KEPT for value in of_colour]
    palette = Image.new("P", (1, 1))
    palette.putpalette(kept)
    with Image.open(path) as image:
        image.convert("RGB").quantize(palette=palette, dither=Image.Dither.NONE).save(path, optimize=True)


def for_page(path):
    """A plot as lossless WebP, which is smaller than PNG."""
    with Image.open(path) as image, io.BytesIO() as file:
        image.convert("RGB").save(file, "WEBP", lossless=True, quality=100, method=6)
        return file.getvalue()


def shown_repetition(by_server):
    """The repetition in which the first server's throughput was its median, or just below it."""
    ordered = sorted(next(iter(by_server.values())), key=lambda run: run["figures"]["mean_per_s"])
    return ordered[(len(ordered) - 1) // 2]["repetition"]


def draw_line(axes, run, name, scale, **style):
    points = [(second, value / scale) for second, value in zip(run["series"]["second"], run["series"][name],
              strict=False) if value is not None and second >= -figures.SHOWN_WARMUP_S]  # fmt: skip
    if points:
        axes.plot(*zip(*points, strict=True), **style)


def smoothed(values):
    """The mean of SMOOTHED_S seconds around each value, so that two fluctuating lines can be told apart."""
    half = SMOOTHED_S // 2
    parts = [values[max(0, i - half) : i + half + 1] for i in range(len(values))]
    return [sum(part) / len(part) for part in parts]


def draw(axes, runs, shown, name, scale, colour, server):
    """Draw one server's line in a panel, of the repetition shown. For throughput add the others' means, pale."""
    chosen = next((run for run in runs if run["repetition"] == shown), runs[0])
    if name != THROUGHPUT:
        draw_line(axes, chosen, name, scale, color=colour, linewidth=1.3)
        return
    draw_line(axes, chosen, name, scale, color=colour, linewidth=0.8, alpha=0.7)
    for run in runs:
        means = {"series": run["series"] | {name: smoothed(run["series"][name])}}
        style = {"linewidth": 2.4, "label": server} if run is chosen else {"linewidth": 1.2, "alpha": 0.35}
        draw_line(axes, means, name, scale, color=colour, **style)


def timeline(path, title, by_server):
    """Each second of one repetition: a few servers as lines in common panels, more in small panels of their own."""
    how = lines if len(by_server) <= LINES_MAX else multiples
    save(how(title, by_server, shown_repetition(by_server)), path, min(len(by_server), LINES_MAX))


def decorate(axes, name, scale, by_server):
    """What all panels of a figure have: a grid, the warm-up in grey, the capacity of the redo log."""
    if name == "checkpoint_age_bytes":
        for capacity in {runs[0]["redo_capacity_bytes"] / scale for runs in by_server.values()}:
            axes.axhline(capacity, color="black", linewidth=0.8, linestyle=":")
            axes.annotate("redo log's capacity", (0.005, capacity), xycoords=("axes fraction", "data"), fontsize=8,
                          verticalalignment="top")  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    left = axes.get_xlim()[0]
    if left < 0:
        axes.axvspan(left, 0, color="#eeeeee", zorder=0)
        axes.set_xlim(left=left)


def lines(title, by_server, shown):
    figure, all_axes = pyplot.subplots(
        len(PANELS), 1, sharex=True, figsize=(11, 10), height_ratios=(2.2, 1, 1, 1, 1), constrained_layout=True
    )
    for axes, (name, label, scale) in zip(all_axes, PANELS, strict=True):
        for (server, runs), colour in zip(by_server.items(), COLOURS, strict=False):
            draw(axes, runs, shown, name, scale, colour, server)
        axes.set_ylabel(label)
        decorate(axes, name, scale, by_server)
    # The legend is below the plots, where it hides no line.
    all_axes[-1].legend(*all_axes[0].get_legend_handles_labels(), loc="upper center", bbox_to_anchor=(0.5, -0.45),
                        ncols=len(by_server), frameon=False)  # fmt: skip
    explained = f"repetition {shown}, thick: mean of {SMOOTHED_S} s; pale: that of the others; grey: warm-up"
    all_axes[0].set_title(f"{title}: {explained}", fontsize=11)
    all_axes[-1].set_xlabel("seconds from the begin of what is counted")
    return figure


def multiples(title, by_server, shown):
    """One row of panels for each server, with the first server's lines in grey."""
    figure, all_axes = pyplot.subplots(
        len(by_server), MULTIPLES_PANELS, sharex=True, sharey="col", figsize=(11, 0.7 + 1.15 * len(by_server)),
        constrained_layout=True,
    )  # fmt: skip
    reference = next(iter(by_server))
    for row, (server, runs) in zip(all_axes, by_server.items(), strict=True):
        for axes, (name, _, scale) in zip(row, PANELS, strict=False):
            if server != reference:
                draw(axes, by_server[reference], shown, name, scale, GREY, reference)
            draw(axes, runs, shown, name, scale, COLOURS[0], server)
        row[0].set_ylabel(server, fontsize=9)
    # The panels of a column have one scale, which has to hold for all lines.
    for column, (name, label, scale) in zip(all_axes.T, PANELS, strict=False):
        column[0].set_title(label.replace("\n", " "), fontsize=10)
        for axes, runs in zip(column, by_server.values(), strict=True):
            axes.tick_params(labelsize=8)
            decorate(axes, name, scale, {reference: runs})
    figure.suptitle(f"{title}: repetition {shown}; grey lines: {reference}; grey area: warm-up", fontsize=11)
    all_axes[-1][0].set_xlabel("seconds from the begin of what is counted")
    return figure


def throughput(path, title, by_label):
    """Draw one panel as SVG: the transactions per second of one run of each server. Same runs, same bytes."""
    matplotlib.rcParams["svg.hashsalt"] = title
    figure, axes = pyplot.subplots(figsize=(8, 2.8), constrained_layout=True)
    for (label, run), colour in zip(by_label.items(), itertools.cycle(COLOURS), strict=False):
        means = {"series": run["series"] | {THROUGHPUT: smoothed(run["series"][THROUGHPUT])}}
        draw_line(axes, run, THROUGHPUT, 1, color=colour, linewidth=0.8, alpha=0.6)
        draw_line(axes, means, THROUGHPUT, 1, color=colour, linewidth=2.2, label=label)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds")
    axes.set_ylabel("transactions/s")
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", fontsize=9)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def rows_figure(n_rows, n_panels=1):
    """A figure with a row for each server, the first on top."""
    return pyplot.subplots(1, n_panels, sharey=True, figsize=(8.5, 1.2 + 0.3 * n_rows), constrained_layout=True)


def draw_spread(axes, row, spread, **style):
    """Draw a median as a mark in its row, and the least and the greatest value as a line."""
    # A response time that is only known to be longer has no place.
    if spread and math.isfinite(spread["max"]):
        axes.plot([spread["min"], spread["max"]], [row, row], color=style["color"], linewidth=1)
        axes.plot([spread["median"]], [row], linestyle="none", **style)


def name_rows(axes, names):
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(alpha=0.3, which="both", axis="x")


def percentiles(path, title, by_server):
    figure, axes = rows_figure(len(by_server))
    for row, runs in enumerate(by_server.values()):
        for (key, _), mark in zip(PERCENTILES, MARKS, strict=True):
            spread = figures.spread(comparison.values(runs, key))
            draw_spread(axes, row, spread, color=COLOURS[0], marker=mark, markersize=6)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    name_rows(axes, by_server)
    axes.set_xlabel("response time, ms, that so many percent of the transactions did not exceed")
    axes.set_title(f"{title}: median of the repetitions, least and greatest", fontsize=11)
    # Beside the plot, where it hides no mark. Not of the marks drawn: a server may lack one.
    for (_, label), mark in zip(PERCENTILES, MARKS, strict=True):
        axes.plot([], [], linestyle="none", color=COLOURS[0], marker=mark, label=label)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize=9)
    save(figure, path, 1)


def summary(path, rows):
    """Two panels: transactions as a ratio to the first server's, and the worst second over the mean. rows: a name and
    the spreads of both, of which each can be None."""
    figure, (ratios, steadiness) = rows_figure(len(rows), 2)
    for row, (_, ratio, steady) in enumerate(rows):
        draw_spread(ratios, row, ratio, color=COLOURS[0], marker="o", markersize=5)
        draw_spread(steadiness, row, steady, color=COLOURS[1], marker="o", markersize=5)
    ratios.axvline(1, color="black", linewidth=0.8)
    ratios.set_xlabel("transactions, ratio to the first server's", fontsize=9)
    steadiness.set_xlabel("worst second over what was expected", fontsize=9)
    steadiness.set_xlim(0, 1)
    for axes in ratios, steadiness:
        name_rows(axes, [name for name, _, _ in rows])
        axes.tick_params(labelsize=8)
    save(figure, path, 2)
