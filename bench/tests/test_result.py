"""The figures of a run: which transactions count, and how counters are read."""

import math
import unittest

from bench.runner import comparison, result
from bench.runner.sampler import checkpoint_age, numbers, redo_generated
from spillway.block_throttle import Limits

BEGIN = 100.0
SECONDS = 10


def record(end, response, kind=""):
    """A transaction with this end and response time, in seconds."""
    return int(end * 1e6), int(response * 1e6), kind


def sample(time, **counters):
    return {"time": time, **counters}


class Window(unittest.TestCase):
    def figures(self, records, samples=()):
        return result.window_figures(records, [*samples] or [sample(99), sample(111)], BEGIN, SECONDS)

    def test_throughput_counts_ends_and_response_times_count_begins(self):
        records = [
            record(99.9, 0.1),  # before
            record(100.5, 2.5),  # began before: throughput only
            record(105.0, 0.5),  # within
            record(114.0, 5.0),  # ended after: a response time only
            record(112.0, 0.1),  # after
        ]
        found = self.figures(records)
        self.assertEqual(found["transactions"], 2)
        self.assertNotIn("ended_over_due", found)
        self.assertEqual(found["max_ms"], 5000)
        self.assertEqual(found["p50_ms"], 500)
        self.assertAlmostEqual(found["longest_gap_s"], 5)

    def test_open_loop_that_is_not_held(self):
        """100 are due in a second and 50 are served: at the end of the window 500 of 1000 have ended, and the runner
        waits for 250 more. The median is known; the slowest are only known to have taken longer."""
        records = [record(BEGIN + 0.02 * i, 0.01 * i) for i in range(1, 751)]
        found = result.window_figures(records, [sample(99), sample(111)], BEGIN, SECONDS, [100] * SECONDS, 250)
        self.assertAlmostEqual(found["ended_over_due"], 0.5, places=2)
        self.assertAlmostEqual(found["p50_ms"], 5000, delta=50)
        unknown = ("p95_ms", "p99_ms", "max_ms", "mean_ms")
        self.assertEqual([found[key] for key in unknown], [math.inf] * 4)
        self.assertEqual([found["by_kind"]["all"][key] for key in unknown], [math.inf] * 4)
        # With the records of all transactions, everything is known.
        found = result.window_figures(records, [sample(99), sample(111)], BEGIN, SECONDS, [100] * SECONDS)
        self.assertEqual(found["max_ms"], 7500)

    def test_client_that_stands_in_a_closed_loop(self):
        found = result.window_figures([record(101, 0.5)] * 999, [sample(99), sample(111)], BEGIN, SECONDS, None, 1)
        self.assertEqual((found["p99.9_ms"], found["max_ms"]), (500, math.inf))

    def test_cpu_of_others(self):
        counters = {"machine.all_ticks": 200, "machine.idle_ticks": 116, "machine.steal_ticks": 4,
                    "process.user_ticks": 30, "process.system_ticks": 10, "load.user_ticks": 15,
                    "load.system_ticks": 5}  # fmt: skip
        self.assertEqual(result.cpu_of_others_pct(counters), 10)
        self.assertEqual(result.cpu_of_others_pct(counters | {"process.user_ticks": 60}), 0)
        # With more steal, the processes' times are too inaccurate.
        self.assertIsNone(result.cpu_of_others_pct(counters | {"machine.steal_ticks": 5}))
        del counters["load.user_ticks"]
        self.assertIsNone(result.cpu_of_others_pct(counters))

    def test_new_orders_per_minute(self):
        records = [record(101 + i, 0.1, kind) for i, kind in enumerate(["new_order", "payment", "new_order"])]
        found = self.figures([*records, record(111, 0.1, "new_order")])
        self.assertEqual(found["new_orders_per_min"], 2 * 60 / SECONDS)
        self.assertEqual({kind: of["count"] for kind, of in found["by_kind"].items()}, {"new_order": 2, "payment": 1})
        self.assertNotIn("new_orders_per_min", self.figures([record(101, 0.1, "read")]))

    def test_counters_are_those_of_the_window(self):
        """Samples at 99.5 and 110.5, interpolated linearly: the window has 10 of 11 parts of the growth."""
        samples = [
            sample(99.5, Innodb_buffer_pool_pages_flushed=1000, Innodb_stall_redo_space_count=5,
                   Innodb_stall_redo_space_time_us=0, Innodb_stall_redo_space_sessions_time_us=0),
            sample(110.5, Innodb_buffer_pool_pages_flushed=2100, Innodb_stall_redo_space_count=16,
                   Innodb_stall_redo_space_time_us=22_000, Innodb_stall_redo_space_sessions_time_us=11_000),
        ]  # fmt: skip
        found = self.figures([record(101, 0.1), record(102, 0.1)], samples)
        self.assertAlmostEqual(found["counters_added"]["Innodb_buffer_pool_pages_flushed"], 1000)
        self.assertAlmostEqual(found["pages_flushed_per_transaction"], 500)
        self.assertEqual(list(found["stalls"]), ["redo_space"])
        self.assertAlmostEqual(found["stalls"]["redo_space"]["count"], 10)
        self.assertAlmostEqual(found["stalls"]["redo_space"]["time_ms"], 20)

    def test_what_a_server_does_not_count_is_not_zero(self):
        found = self.figures([record(101, 0.1)])
        self.assertIsNone(found["redo_full_waits"])
        self.assertIsNone(found["pages_flushed_per_transaction"])
        self.assertNotIn("checkpoint_age_max_bytes", found)
        self.assertEqual(found["stalls"], {})

    def test_disk(self):
        counters = {"disk.writes": 500, "disk.writes_merged": 100, "disk.sectors_written": 20_000,
                    "disk.write_ms": 1000, "disk.io_ms": 2500}  # fmt: skip
        found = result.device_figures(counters, 10)
        self.assertEqual(found, {"disk_writes_per_s": 50, "disk_submitted_writes_per_s": 60,
                                 "disk_bytes_written_per_s": 1_024_000, "disk_write_ms": 2,
                                 "disk_busy_pct": 25})  # fmt: skip
        self.assertEqual(set(result.device_figures({}, 10).values()), {None})
        self.assertEqual(result.machine_cpu_pct({"machine.steal_ticks": 5, "machine.all_ticks": 2000}, "steal"), 0.25)

    def test_account_of_writes(self):
        disk = {"disk_writes_per_s": 50, "disk_submitted_writes_per_s": 60, "disk_bytes_written_per_s": 1_024_000}
        owners = {"pages": {"writes": 400, "bytes": 6_553_600}, "redo": {"writes": 100, "bytes": 409_600}}
        found = result.io_figures((owners, 50), disk, Limits(write_iops=100, write_bytes_per_s=10_240_000), 1000)
        self.assertEqual(found, {
            "disk_write_bytes": 20_480,
            "limit_writes_pct": 60,
            "limit_bytes_pct": 10,
            "disk_writes_per_transaction": 0.5,
            "disk_flushes_per_transaction": 0.05,
            "pages_disk_writes_per_transaction": 0.4,
            "pages_disk_bytes_per_transaction": 6553.6,
            "redo_disk_writes_per_transaction": 0.1,
            "redo_disk_bytes_per_transaction": 409.6,
        })  # fmt: skip
        self.assertEqual(result.io_figures(None, disk, None, 1000), {"disk_write_bytes": 20_480})

    def test_no_transaction_at_all(self):
        found = self.figures([])
        self.assertEqual((found["transactions"], found["seconds_at_zero"]), (0, SECONDS))

    def test_gauges(self):
        samples = [sample(at, Innodb_checkpoint_age=age) for at, age in ((99, 900), (101, 10), (105, 30), (111, 0))]
        found = self.figures([], samples)
        self.assertEqual([found[f"checkpoint_age_{which}_bytes"] for which in ("min", "mean", "max")], [10, 20, 30])


class Series(unittest.TestCase):
    def test_seconds_of_the_warm_up_are_negative(self):
        samples = [sample(at, Innodb_buffer_pool_pages_flushed=(at - 97) * 10, Innodb_buffer_pool_pages_dirty=3)
                   for at in range(97, 104)]  # fmt: skip
        records = [record(98.5, 0.004), record(100.5, 0.002), record(100.6, 0.003)]
        found = result.series(records, samples, 97.4, BEGIN, 3)
        self.assertEqual(found["second"], [-2, -1, 0, 1, 2])
        self.assertEqual(found["transactions"], [1, 0, 2, 0, 0])
        self.assertEqual(found["max_ms"], [4, None, 3, None, None])
        self.assertEqual(found["p99_ms"], found["max_ms"])
        self.assertEqual(found["pages_flushed"], [10] * 5)
        self.assertEqual(found["dirty_pages"], [3] * 5)
        self.assertEqual(found["checkpoint_age_bytes"], [])


class Samples(unittest.TestCase):
    def test_numbers(self):
        rows = [["a", "12"], ["b", "-1.5"], ["c", "ON"], ["d", ""], ["e"], ["f", "1.2.3"]]
        self.assertEqual(numbers(rows), {"a": 12, "b": -1.5})

    def test_redo_by_any_name(self):
        written = {"Innodb_os_log_written": 1}
        self.assertEqual(redo_generated(written), 1)
        self.assertEqual(redo_generated(written | {"Innodb_lsn_current": 2}), 2)
        self.assertEqual(redo_generated(written | {"Innodb_redo_log_current_lsn": 3}), 3)

    def test_checkpoint_age_by_either_name(self):
        self.assertEqual(checkpoint_age({"Innodb_checkpoint_age": 7}), 7)
        stock = {"Innodb_redo_log_current_lsn": 50, "Innodb_redo_log_checkpoint_lsn": 20}
        self.assertEqual(checkpoint_age(stock), 30)
        self.assertIsNone(checkpoint_age({}))


def run(server, repetition, **figures):
    return {"device": "d", "workload": "w", "server": server, "repetition": repetition, "figures": figures,
            "arrivals_per_s": 0}  # fmt: skip


class Quiet(unittest.TestCase):
    def test_is_quiet(self):
        for steals, quiet in (((0, 0), True), ((20, 10), True), ((20, 9.9), False), ((21, 20), False), ((3,), True)):
            self.assertEqual(result.is_quiet(steals, 20), quiet, steals)


class Comparison(unittest.TestCase):
    PLAN = {"devices": {"d": {}}, "workloads": {"w": {}}, "servers": {"stock": {}, "fork": {}}}  # noqa: RUF012

    def test_ratios_are_of_one_repetition(self):
        """Each run is compared with the reference's run of the same repetition; without one there is no ratio."""
        runs = [run("fork", 2, mean_per_s=220), run("fork", 1, mean_per_s=99), run("stock", 1, mean_per_s=100),
                run("stock", 2, mean_per_s=200), run("fork", 3, mean_per_s=5)]  # fmt: skip
        ((device, workload, by_server),) = comparison.comparisons(self.PLAN, runs)
        self.assertEqual((device, workload, list(by_server)), ("d", "w", ["stock", "fork"]))
        found = comparison.compare(by_server)["mean_per_s"]
        self.assertEqual(found["fork"]["ratio"], {"median": 1.045, "min": 0.99, "max": 1.1, "of": 2})
        self.assertIsNone(found["stock"]["ratio"])
        self.assertEqual(found["fork"]["of"], 3)

    def test_ratios_of_all_sections(self):
        sections = [
            {"stock": [run("stock", 1, mean_per_s=100), run("stock", 2, mean_per_s=0)],
             "fork": [run("fork", 1, mean_per_s=90), run("fork", 2, mean_per_s=5)]},
            {"stock": [run("stock", 1, mean_per_s=10)]},
            {"stock": [run("stock", 1, mean_per_s=10)], "fork": [run("fork", 1, mean_per_s=12)]},
            {"stock": [run("stock", 1, mean_per_s=5) | {"arrivals_per_s": 5}], "fork": [run("fork", 1, mean_per_s=5)]},
            {"stock": [run("stock", 1, mean_per_s=10)], "fork": [run("fork", 1, mean_per_s=7, cpu_steal_pct=11)]},
        ]  # fmt: skip
        self.assertEqual(comparison.throughput_ratios(sections, 20), {"fork": [0.9, 1.2]})

    def test_what_one_server_does_not_count(self):
        runs = [run("stock", 1, waits=None, name="x"), run("fork", 1, waits=3, name="y")]
        ((_, _, by_server),) = comparison.comparisons(self.PLAN, runs)
        found = comparison.compare(by_server)
        self.assertEqual(list(found), ["waits"])
        self.assertNotIn("stock", found["waits"])
        self.assertIsNone(found["waits"]["fork"]["ratio"])

    def test_what_differs_is_outside_of_the_noise(self):
        """The reference's repetitions lie between 10 % below and 20 % above their median."""
        for ratios, expected in (((1.3, 1.4, 1.21, 1.3), True), ((1.3, 1.4, 1.19, 1.3), False),
                                 ((0.8, 0.89, 0.7, 0.8), True), ((0.95, 1.1, 1, 1), False),
                                 ((1.3, 1.4, 1.3), False)):  # fmt: skip
            means = (90, 100, 120, 100)[: len(ratios)]
            runs = [run("stock", i, mean_per_s=mean) for i, mean in enumerate(means)]
            runs += [run("fork", i, mean_per_s=means[i] * ratio) for i, ratio in enumerate(ratios)]
            ((_, _, by_server),) = comparison.comparisons(self.PLAN, runs)
            found = comparison.compare(by_server)["mean_per_s"]
            self.assertEqual(comparison.differs(found, "stock", "fork"), expected, ratios)
        self.assertFalse(comparison.differs({}, "stock", "fork"))

    def test_what_is_not_known_of_all_does_not_differ(self):
        """One repetition of each server has a p99 that is only known to be longer."""
        runs = [run("stock", i, p99_ms=of) for i, of in enumerate((10, 10, 11, math.inf))]
        runs += [run("fork", i, p99_ms=of) for i, of in enumerate((5, 5, math.inf, 5))]
        ((_, _, by_server),) = comparison.comparisons(self.PLAN, runs)
        found = comparison.compare(by_server)["p99_ms"]
        self.assertIsNone(found["fork"]["ratio"])
        self.assertEqual((found["stock"]["median"], found["stock"]["max"]), (10.5, math.inf))
        self.assertFalse(comparison.differs(found, "stock", "fork"))

    def test_no_ratio_where_the_reference_is_0(self):
        """The other repetition, in which the reference is not 0, would say the contrary."""
        runs = [run("stock", i, worst=of) for i, of in enumerate((0, 96))]
        runs += [run("fork", i, worst=of) for i, of in enumerate((39, 28))]
        ((_, _, by_server),) = comparison.comparisons(self.PLAN, runs)
        self.assertIsNone(comparison.compare(by_server)["worst"]["fork"]["ratio"])

    def test_nothing_done_yet(self):
        self.assertEqual(comparison.comparisons(self.PLAN, []), [])
