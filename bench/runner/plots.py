"""The plots of a comparison, as PNG files."""

import itertools

import comparison
import figures
import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

PERCENTILES = (("p50_ms", "50"), ("p95_ms", "95"), ("p99_ms", "99"), ("p99.9_ms", "99.9"), ("longest_ms", "longest"))
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
# Of the warm-up, how much the plots show.
SHOWN_WARMUP_S = 60


def middle(runs):
    """Of the repetitions, the one of median throughput."""
    return sorted(runs, key=lambda run: run["figures"]["mean_per_s"])[len(runs) // 2]


def draw_line(axes, run, name, colour, is_middle, label, scale=1):
    line = run["series"][name]
    points = [(second, value / scale) for second, value in zip(run["series"]["second"], line, strict=False)
              if value is not None and second >= -SHOWN_WARMUP_S]  # fmt: skip
    if points:
        axes.plot(*zip(*points, strict=True), color=colour, linewidth=1.3 if is_middle else 0.7,
                  alpha=1 if is_middle else 0.3, label=label if is_middle else None)  # fmt: skip


def timeline(path, title, by_server):
    panels = (
        ("transactions", "transactions/s", 1),
        ("longest_ms", "longest\nresponse, ms", 1),
        ("checkpoint_age_bytes", "checkpoint\nage, MiB", 1 << 20),
        ("dirty_pages", "dirty pages,\nthousands", 1000),
        ("pages_flushed", "pages\nflushed/s", 1),
    )
    figure, all_axes = pyplot.subplots(
        len(panels), 1, sharex=True, figsize=(11, 10), height_ratios=(2.2, 1, 1, 1, 1), constrained_layout=True
    )
    for axes, (name, label, scale) in zip(all_axes, panels, strict=True):
        for (server, runs), colour in zip(by_server.items(), itertools.cycle(COLOURS), strict=False):
            chosen = middle(runs)
            for run in runs:
                draw_line(axes, run, name, colour, run is chosen, server, scale)
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        left = axes.get_xlim()[0]
        if left < 0:
            axes.axvspan(left, 0, color="#eeeeee", zorder=0)
            axes.set_xlim(left=left)
    all_axes[0].legend(loc="upper right", ncols=len(by_server))
    all_axes[0].set_title(f"{title}: each second; grey: warm-up; pale: the other repetitions", fontsize=11)
    all_axes[-1].set_xlabel("seconds from the begin of what is counted")
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def percentiles(path, title, by_server):
    figure, axes = pyplot.subplots(figsize=(8, 4), constrained_layout=True)
    shift = 0.12
    for i, ((server, runs), colour) in enumerate(zip(by_server.items(), itertools.cycle(COLOURS), strict=False)):
        places, medians, below, above = [], [], [], []
        for place, (key, _) in enumerate(PERCENTILES):
            spread = figures.spread(comparison.values(runs, key))
            if spread:
                places.append(place + (i - (len(by_server) - 1) / 2) * shift)
                medians.append(spread["median"])
                below.append(spread["median"] - spread["min"])
                above.append(spread["max"] - spread["median"])
        axes.errorbar(places, medians, yerr=(below, above), fmt="o", color=colour, capsize=3, label=server)
    axes.set_yscale("log")
    axes.set_xticks(range(len(PERCENTILES)), [text for _, text in PERCENTILES])
    axes.set_xlabel("percent of the transactions that took no longer")
    axes.set_ylabel("response time, ms")
    axes.set_title(f"{title}: median of the repetitions, least and greatest", fontsize=11)
    axes.grid(alpha=0.3, which="both", axis="y")
    axes.legend()
    figure.savefig(path, dpi=100)
    pyplot.close(figure)
