"""The arithmetic of the benchmarks: pure functions of what was recorded.

Times are seconds of CLOCK_MONOTONIC, except in records, which hold microseconds. A window is [begin, begin + seconds).
"""

import math
import statistics
import struct

RECORD = struct.Struct("=QI12s")
WAIT = struct.Struct("=d")
# What users call a stall, of the mean (Small Datum's and Percona's plots of seconds): half, and next to nothing.
LOW_PCT = 50
STALL_PCT = 10


def read_records(data):
    """The transactions of one client, as bench/measured.lua writes them: [(end_us, response_us, kind)]. A record that
    is not whole, where the load was killed, is left out."""
    whole = len(data) - len(data) % RECORD.size
    return [(end, response, kind.rstrip(b"\0").decode()) for end, response, kind in RECORD.iter_unpack(data[:whole])]


def per_second(times, begin, seconds):
    """How many of the times are in each second of the window."""
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
    """The smallest of the values, in ascending order, that pct percent of them do not exceed (nearest rank)."""
    if not ordered:
        return None
    # Rounded, so that 99.9 % of 1000 is 999 and not a little more.
    return ordered[max(1, math.ceil(round(pct * len(ordered) / 100, 6))) - 1]


def longest_run(flags):
    """The length of the longest sequence of true ones."""
    longest = current = 0
    for flag in flags:
        current = current + 1 if flag else 0
        longest = max(longest, current)
    return longest


def stability(counts, due=None):
    """What a series of counts for each second says of its steadiness. Each second is held against the mean; where due
    says how many were due in each second, against that, or else the figures would be those of the bursts."""
    mean = statistics.fmean(counts)
    expected = due or [mean] * len(counts)
    low = [count < of * LOW_PCT / 100 for count, of in zip(counts, expected, strict=True)]
    stalled = [count < of * STALL_PCT / 100 for count, of in zip(counts, expected, strict=True)]
    shares = [count / of for count, of in zip(counts, expected, strict=True) if of]
    half = len(counts) // 2
    halves = [sum(counts[part]) / sum(expected[part]) if sum(expected[part]) else 0
              for part in (slice(0, half), slice(half, None))]  # fmt: skip
    return {
        "mean_per_s": mean,
        # Whether it still changes: a load that ages its data, a warm-up that was too short.
        "second_half_over_first": halves[1] / halves[0] if halves[0] else None,
        "stddev_over_mean": statistics.pstdev(shares) / statistics.fmean(shares) if sum(shares) else None,
        "worst_second_per_s": min(counts),
        "worst_second_over_mean": min(shares) if mean else None,
        "seconds_below_50_pct": sum(low),
        "seconds_below_10_pct": sum(stalled),
        "seconds_at_zero": counts.count(0),
        "longest_below_50_pct_s": longest_run(low),
        "longest_below_10_pct_s": longest_run(stalled),
    }


def longest_gap(times, begin, seconds):
    """The longest time within the window in which nothing happened."""
    end = begin + seconds
    inside = sorted(time for time in times if begin <= time < end)
    edges = [begin, *inside, end]
    return max(after - before for before, after in zip(edges, edges[1:], strict=False))


def response_times(responses_us, missing=0):
    """Percentiles; missing is how many others there were that took longer than any that is known. A percentile that is
    among those is infinite."""
    ordered = sorted(responses_us) + [math.inf] * missing
    if not ordered:
        return {}
    found = {f"p{pct:g}_ms": percentile(ordered, pct) / 1000 for pct in (50, 95, 99, 99.9)}
    return found | {"max_ms": ordered[-1] / 1000, "mean_ms": statistics.fmean(ordered) / 1000}


def due_between(arrivals, bursts, begin, end):
    """How many transactions are due between two times, on average. bursts are None, or (rate, period, length) as
    bench/measured.lua has them: that rate in the last length seconds before each multiple of period."""
    if not bursts:
        return arrivals * (end - begin)
    rate, period, length = bursts

    def burst_seconds(until):
        """The time within bursts from 0 to then."""
        return until // period * length + max(0, until % period - (period - length))

    in_bursts = burst_seconds(end) - burst_seconds(begin)
    return rate * in_bursts + arrivals * (end - begin - in_bursts)


def resample(times, values, grid):
    """The values at the times of the grid, on the straight lines between samples, which come at irregular times; None
    outside of them. times ascend, and so does the grid."""
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
            share = (moment - times[i]) / (times[i + 1] - times[i])
            found.append(values[i] + share * (values[i + 1] - values[i]))
    return found


def differences(values):
    """What was added from each value to the next; None where one of them is not known."""
    return [
        None if before is None or after is None else after - before
        for before, after in zip(values, values[1:], strict=False)
    ]


def spread(values):
    """Median, least and greatest of the values that are known; None if none is."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    return {"median": statistics.median(known), "min": known[0], "max": known[-1], "of": len(known)}


def sign_test(above, count):
    """How probable it is, if a ratio is as often above 1 as below it, that of so many no more, or no more than that
    below, are above."""
    fewer = min(above, count - above)
    return min(1, 2 * sum(math.comb(count, i) for i in range(fewer + 1)) / 2**count)


def ratio(value, reference):
    """None where one of both is not known, or the reference is 0, or longer than is known."""
    return None if value is None or not reference or math.isinf(reference) else value / reference
