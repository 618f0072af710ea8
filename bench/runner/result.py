"""The figures of one run, computed from its records and samples: pure functions."""

import os

from . import figures
from .io_account import SECTOR_BYTES
from .sampler import checkpoint_age

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# The fork's stall counters are Innodb_stall_<kind>_count, _time_us and others, among them _sessions_time_us.
STALL_PREFIX, STALL_SUFFIX = "Innodb_stall_", "_count"
# With more steal, the processes' CPU times are too inaccurate for the small remainder that others used.
OTHERS_MAX_STEAL_PCT = 2
# TPC-C counts the new-order transactions.
TPCC_KIND = "new_order"


def added(samples, begin, end):
    """The growth of each counter from begin to end. Gauges are included."""
    times = [sample["time"] for sample in samples]
    found = {}
    for name in samples[-1]:
        values = [sample.get(name) for sample in samples]
        if name == "time" or any(value is None for value in values):
            continue
        before, after = figures.resample(times, values, [begin, end])
        if before is not None and after is not None:
            found[name] = after - before
    return found


def gauge(name, unit, samples, read, begin, end):
    """Return minimum, mean and maximum of read(sample) within the window; nothing if no sample has the value."""
    values = [read(sample) for sample in samples if begin <= sample["time"] < end]
    known = [value for value in values if value is not None]
    if not known:
        return {}
    return {f"{name}_min_{unit}": min(known), f"{name}_mean_{unit}": sum(known) / len(known),
            f"{name}_max_{unit}": max(known)}  # fmt: skip


def per(value, count):
    return None if value is None or not count else value / count


def stalls(counters):
    """{kind: {count, time_ms}} for a server that counts stalls."""
    found = {}
    for name, value in counters.items():
        if name.startswith(STALL_PREFIX) and name.endswith(STALL_SUFFIX):
            kind = name.removeprefix(STALL_PREFIX).removesuffix(STALL_SUFFIX)
            found[kind] = {"count": value, "time_ms": counters[f"{STALL_PREFIX}{kind}_time_us"] / 1000}
    return found


def response_times_by_kind(records, missing):
    """missing is the number of transactions without a record; each may be of any kind."""
    kinds = sorted({kind for _, _, kind in records})
    return {
        kind or "all": {"count": len(own)} | figures.response_times(own, missing)
        for kind in kinds
        for own in [[response for _, response, of_kind in records if of_kind == kind]]
    }


def device_figures(counters, seconds):
    """The kernel's figures of the disk. They include all its users and are measured behind the throttle, so that
    the busy time is the real disk's and not the model's. Busy time and write time are iostat's %util and w_await, and
    %b and svc_t in docs/origins.md, 4."""
    sectors, writes = counters.get("disk.sectors_written"), counters.get("disk.writes")
    merged = counters.get("disk.writes_merged")
    return {
        "disk_writes_per_s": per(writes, seconds),
        "disk_submitted_writes_per_s": None if merged is None else per(writes + merged, seconds),
        "disk_bytes_written_per_s": per(None if sectors is None else sectors * SECTOR_BYTES, seconds),
        "disk_write_ms": per(counters.get("disk.write_ms"), writes),
        "disk_busy_pct": per(counters.get("disk.io_ms"), seconds * 10),
    }


def io_figures(io_account, disk, limits, transactions):
    """Whose the disk's writes are, for each transaction, and how near they are to the limits of its model. io_account:
    what io_account.account() gives, or None."""
    writes, n_bytes = disk["disk_writes_per_s"], disk["disk_bytes_written_per_s"]
    found = {"disk_write_bytes": per(n_bytes, writes)}
    if limits and limits.write_iops:
        # The throttle counts what is submitted, before the kernel merges it.
        found["limit_writes_pct"] = per(disk["disk_submitted_writes_per_s"], limits.write_iops / 100)
    if limits and limits.write_bytes_per_s:
        found["limit_bytes_pct"] = per(n_bytes, limits.write_bytes_per_s / 100)
    if io_account:
        owners, flushes = io_account
        found["disk_writes_per_transaction"] = per(sum(owner["writes"] for owner in owners.values()), transactions)
        found["disk_flushes_per_transaction"] = per(flushes, transactions)
        for name, owner in owners.items():
            found[f"{name}_disk_writes_per_transaction"] = per(owner["writes"], transactions)
            found[f"{name}_disk_bytes_per_transaction"] = per(owner["bytes"], transactions)
    return found


def machine_cpu_pct(counters, name):
    """A part of this machine's CPU time in percent."""
    ticks = per(counters.get(f"machine.{name}_ticks"), counters.get("machine.all_ticks"))
    return None if ticks is None else 100 * ticks


def is_quiet(steal_pcts, max_pct):
    """Return whether the runs of a repetition are comparable: each has at most this steal, and the largest and the
    smallest differ by at most half of it."""
    return max(steal_pcts) <= max_pct and max(steal_pcts) - min(steal_pcts) <= max_pct / 2


def cpu_of_others_pct(counters):
    """The CPU time that neither server nor load generator used, in percent: other programs, kernel threads,
    interrupts."""
    ticks = [counters.get(f"machine.{name}_ticks") for name in ("all", "idle", "steal")]
    ticks += [counters.get(f"{whose}.{kind}_ticks") for whose in ("process", "load") for kind in ("user", "system")]
    if None in ticks or not ticks[0]:
        return None
    # The kernel charges a process for part of the time that the host took while it ran.
    if 100 * ticks[2] / ticks[0] > OTHERS_MAX_STEAL_PCT:
        return None
    # The kernel's sums are read at slightly different times, so the difference can be negative.
    return max(0, 100 * (ticks[0] - sum(ticks[1:])) / ticks[0])


def window_figures(records, samples, begin, seconds, due=None, missing=0, io_account=None, limits=None):
    """The figures of a window. Transactions count where they end. Response times are of transactions that began
    within the window, also if they ended after it, so that the end of the window hides no long one.

    due is the average number due in each second, in an open loop. missing is the number of transactions of the window
    that had not ended when the runner stopped waiting: they took longer than is known. io_account and limits are of the
    disk, see io_figures()."""
    end = begin + seconds
    ends = [end_us / 1e6 for end_us, _, _ in records]
    counts = figures.per_second(ends, begin, seconds)
    transactions = sum(counts)
    begun = [record for record in records if begin * 1e6 <= record[0] - record[1] < end * 1e6]
    counters = added(samples, begin, end)
    disk = device_figures(counters, seconds)
    new_orders = sum(
        1 for at, (_, _, kind) in zip(ends, records, strict=True) if kind == TPCC_KIND and begin <= at < end
    )
    ticks = counters.get("process.user_ticks", 0) + counters.get("process.system_ticks", 0)
    return {
        "transactions": transactions,
        # Of the actual number due, not the average: below 1 if a server does not hold the rate.
        **({"ended_over_due": per(transactions, len(begun) + missing)} if due else {}),
        **figures.stability(counts, due),
        **({"new_orders_per_min": new_orders * 60 / seconds} if new_orders else {}),
        **figures.response_times([response for _, response, _ in begun], missing),
        "longest_gap_s": figures.longest_gap(ends, begin, seconds),
        "pages_flushed_per_transaction": per(counters.get("Innodb_buffer_pool_pages_flushed"), transactions),
        "bytes_written_per_transaction": per(counters.get("process.write_bytes"), transactions),
        # This includes the file system's journal, which the kernel writes.
        "disk_bytes_written_per_transaction": per(disk["disk_bytes_written_per_s"], transactions / seconds),
        "redo_bytes_per_transaction": per(counters.get("Innodb_os_log_written"), transactions),
        # This includes those of the redo log, which MySQL counts again in Innodb_os_log_fsyncs.
        "fsyncs_per_transaction": per(counters.get("Innodb_data_fsyncs"), transactions),
        "cpu_us_per_transaction": per(ticks * 1e6 / TICKS_PER_S or None, transactions),
        "redo_full_waits": counters.get("metric.log_on_file_space_waits"),
        "sync_flush_batches": counters.get("metric.buffer_flush_sync"),
        "sync_flush_pages": counters.get("metric.buffer_flush_sync_total_pages"),
        "free_page_waits": counters.get("Innodb_buffer_pool_wait_free"),
        "deadlocks": counters.get("metric.lock_deadlocks"),
        **disk,
        **io_figures(io_account, disk, limits, transactions),
        # The machine's spare CPU time and its noise.
        "cpu_idle_pct": machine_cpu_pct(counters, "idle"),
        "cpu_steal_pct": machine_cpu_pct(counters, "steal"),
        "cpu_of_others_pct": cpu_of_others_pct(counters),
        **gauge("checkpoint_age", "bytes", samples, checkpoint_age, begin, end),
        **gauge("dirty", "pages", samples, lambda sample: sample.get("Innodb_buffer_pool_pages_dirty"), begin, end),
        "by_kind": response_times_by_kind(begun, missing),
        "stalls": stalls(counters),
        "counters_added": counters,
    }  # fmt: skip


def in_ms(microseconds):
    return None if microseconds is None else microseconds / 1000


def series(records, samples, load_begin, begin, seconds):
    """Return what a plot shows, for whole seconds: the window begins at 0, the warm-up is negative."""
    first = -int(begin - load_begin)
    grid = [begin + second for second in range(first, seconds + 1)]
    times = [sample["time"] for sample in samples]

    def line(read):
        values = [read(sample) for sample in samples]
        return [] if any(value is None for value in values) else figures.resample(times, values, grid)

    written = line(lambda sample: sample.get("Innodb_buffer_pool_pages_flushed"))
    ends, responses = [end_us / 1e6 for end_us, _, _ in records], [response for _, response, _ in records]
    by_second = figures.by_second(ends, responses, grid[0], seconds - first)
    return {
        "second": list(range(first, seconds)),
        "transactions": [len(of) for of in by_second],
        "p99_ms": [in_ms(figures.percentile(of, 99)) for of in by_second],
        "max_ms": [in_ms(of[-1] if of else None) for of in by_second],
        "checkpoint_age_bytes": line(checkpoint_age)[:-1],
        "dirty_pages": line(lambda sample: sample.get("Innodb_buffer_pool_pages_dirty"))[:-1],
        "pages_flushed": figures.differences(written),
    }
