"""The arithmetic of the benchmarks: pure functions of recorded data.

Times are seconds of CLOCK_MONOTONIC; records hold microseconds. A window is [begin, begin + seconds).
"""

import math
import statistics
import struct

RECORD = struct.Struct("=QI12s")
WAIT = struct.Struct("=d")
# A second below these percentages of the mean counts as low or as a stall. Source: Small Datum's and Percona's plots.
LOW_PCT = 50
STALL_PCT = 10
# Seconds of the warm-up that the plots show.
SHOWN_WARMUP_S = 60


def read_records(data):
    """The transactions of one client: [(end_us, response_us, kind)]. bench/measured.lua writes the records. An
    incomplete last record, left by a killed load, is dropped."""
    whole = len(data) - len(data) % RECORD.size
    return [(end, response, kind.rstrip(b"\0").decode()) for end, response, kind in RECORD.iter_unpack(data[:whole])]


def per_second(times, begin, seconds):
    """The number of times in each second of the window."""
    return [len(of) for of in by_second(times, times, begin, seconds)]


def by_second(times, values, begin, seconds):
    """The values whose times are in each second of the window, in ascending order."""
    found = [[] for _ in range(seconds)]
    for time, value in zip(times, values, strict=True):
        second = math.floor(time - begin)
        if 0 <= second < seconds:
            found[second].append(value)
    return [sorted(values) for values in found]


def percentile(ordered, pct):
    """The smallest of the values that pct percent of them do not exceed (nearest rank). ordered ascends."""
    if not ordered:
        return None
    # Rounded, because 99.9 % of 1000 is slightly more than 999 in floating point.
    return ordered[max(1, math.ceil(round(pct * len(ordered) / 100, 6))) - 1]


def longest_run(flags):
    """The length of the longest sequence of true flags."""
    longest = current = 0
    for flag in flags:
        current = current + 1 if flag else 0
        longest = max(longest, current)
    return longest


def stability(counts, due=None):
    """Return how steady a series of counts per second is. Each second is compared with the mean or, if due is given,
    with the transactions due in it: otherwise bursts would decide the figures."""
    mean = statistics.fmean(counts)
    expected = due or [mean] * len(counts)
    low = [count < of * LOW_PCT / 100 for count, of in zip(counts, expected, strict=True)]
    stalled = [count < of * STALL_PCT / 100 for count, of in zip(counts, expected, strict=True)]
    ratios = [count / of for count, of in zip(counts, expected, strict=True) if of]
    half = len(counts) // 2
    halves = [sum(counts[part]) / sum(expected[part]) if sum(expected[part]) else 0
              for part in (slice(0, half), slice(half, None))]  # fmt: skip
    return {
        "mean_per_s": mean,
        # Not near 1 if the rate still changes, because the load ages its data or the warm-up was too short.
        "second_half_over_first": halves[1] / halves[0] if halves[0] else None,
        "stddev_over_mean": statistics.pstdev(ratios) / statistics.fmean(ratios) if sum(ratios) else None,
        "worst_second_per_s": min(counts),
        "worst_second_over_mean": min(ratios) if mean else None,
        "seconds_below_50_pct": sum(low),
        "seconds_below_10_pct": sum(stalled),
        "seconds_at_zero": counts.count(0),
        "longest_below_50_pct_s": longest_run(low),
        "longest_below_10_pct_s": longest_run(stalled),
    }


def longest_gap(times, begin, seconds):
    """The longest time within the window without an event."""
    end = begin + seconds
    inside = sorted(time for time in times if begin <= time < end)
    edges = [begin, *inside, end]
    return max(after - before for before, after in zip(edges, edges[1:], strict=False))


def response_times(responses_us, missing=0):
    """Return percentiles. missing is the number of other transactions, which took longer than all known ones. A
    percentile among those is infinite."""
    ordered = sorted(responses_us) + [math.inf] * missing
    if not ordered:
        return {}
    found = {f"p{pct:g}_ms": percentile(ordered, pct) / 1000 for pct in (50, 95, 99, 99.9)}
    return found | {"max_ms": ordered[-1] / 1000, "mean_ms": statistics.fmean(ordered) / 1000}


def due_between(arrivals, bursts, begin, end):
    """The average number of transactions due between two times. bursts is None or (rate, period, length), as in
    bench/measured.lua: that rate in the last length seconds before each multiple of period."""
    if not bursts:
        return arrivals * (end - begin)
    rate, period, length = bursts

    def burst_seconds(until):
        """The burst time from 0 to until."""
        return until // period * length + max(0, until % period - (period - length))

    in_bursts = burst_seconds(end) - burst_seconds(begin)
    return rate * in_bursts + arrivals * (end - begin - in_bursts)


def resample(times, values, grid):
    """Interpolate values linearly at the times of the grid; None outside of the samples. times and grid ascend."""
    found = []
    i = 0
    for moment in grid:
        while i + 1 < len(times) and times[i + 1] < moment:
            i += 1
        if not times or moment < times[0] or moment > times[-1]:
            found.append(None)
        elif i + 1 == len(times):
            found.append(values[i])
        else:
            fraction = (moment - times[i]) / (times[i + 1] - times[i])
            found.append(values[i] + fraction * (values[i + 1] - values[i]))
    return found


def differences(values):
    """The growth from each value to the next; None if one of the two is unknown."""
    return [
        None if before is None or after is None else after - before
        for before, after in zip(values, values[1:], strict=False)
    ]


def spread(values):
    """Return median, minimum, maximum and number of the known values; None if no value is known."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    return {"median": statistics.median(known), "min": known[0], "max": known[-1], "of": len(known)}


def sign_test(above, count):
    """Two-sided sign test: the probability of a count at least this far from half, if a ratio is above 1 as often as
    below."""
    fewer = min(above, count - above)
    return min(1, 2 * sum(math.comb(count, i) for i in range(fewer + 1)) / 2**count)


def ratio(value, reference):
    """Return value / reference; None if one is unknown, or the reference is 0 or infinite (longer than known)."""
    return None if value is None or not reference or math.isinf(reference) else value / reference
