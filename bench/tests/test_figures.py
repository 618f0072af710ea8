"""The arithmetic of the benchmarks, on values that can be checked by hand."""

import math
import unittest

from bench.runner import figures


class Records(unittest.TestCase):
    def test_records_and_a_piece_of_one(self):
        data = figures.RECORD.pack(5_000_000, 250, b"payment") + figures.RECORD.pack(6_000_000, 2**32 - 1, b"")
        expected = [(5_000_000, 250, "payment"), (6_000_000, 2**32 - 1, "")]
        self.assertEqual(figures.read_records(data), expected)
        self.assertEqual(figures.read_records(data + data[:23]), expected)
        self.assertEqual(figures.read_records(b""), [])

    def test_size_is_the_one_that_is_written(self):
        self.assertEqual(figures.RECORD.size, 24)


class Seconds(unittest.TestCase):
    def test_each_second_begins_where_the_last_ended(self):
        times = [9.999, 10.0, 10.5, 10.999999, 11.0, 13.0, 13.2]
        self.assertEqual(figures.per_second(times, 10, 3), [3, 1, 0])

    def test_begin_within_a_second(self):
        self.assertEqual(figures.per_second([10.2, 10.3, 11.29, 11.3], 10.3, 2), [2, 1])

    def test_stability(self):
        found = figures.stability([100, 100, 0, 9, 41, 200, 150])
        self.assertAlmostEqual(found["mean_per_s"], 600 / 7)
        self.assertEqual(found["worst_second_per_s"], 0)
        self.assertEqual(found["worst_second_over_mean"], 0)
        self.assertEqual(found["seconds_below_50_pct"], 3)
        self.assertEqual(found["longest_below_50_pct_s"], 3)
        # 9 is above 10 % of the mean, 8.57.
        self.assertEqual(found["seconds_below_10_pct"], 1)
        self.assertEqual(found["seconds_at_zero"], 1)

    def test_stability_of_a_steady_series(self):
        found = figures.stability([50] * 10)
        self.assertEqual((found["worst_second_over_mean"], found["stddev_over_mean"]), (1, 0))
        self.assertEqual(found["seconds_below_50_pct"], 0)

    def test_stability_of_bursts_is_against_what_was_due(self):
        """A server that holds low and high rates is steady; one with the same rate at both is not."""
        due = [10, 10, 100, 100]
        held = figures.stability(due, due)
        self.assertEqual((held["worst_second_over_mean"], held["stddev_over_mean"]), (1, 0))
        self.assertEqual((held["seconds_below_50_pct"], held["mean_per_s"]), (0, 55))
        late = figures.stability([10, 10, 9, 40], due)
        self.assertEqual((late["seconds_below_50_pct"], late["seconds_below_10_pct"]), (2, 1))
        self.assertAlmostEqual(late["worst_second_over_mean"], 0.09)

    def test_halves(self):
        self.assertEqual(figures.stability([100, 100, 50, 40])["second_half_over_first"], 0.45)
        # The halves have different lengths, or one has more bursts.
        self.assertAlmostEqual(figures.stability([50] * 5)["second_half_over_first"], 1)
        self.assertAlmostEqual(figures.stability([10, 10, 40, 40], [10, 10, 40, 40])["second_half_over_first"], 1)
        self.assertIsNone(figures.stability([0, 0, 5, 5])["second_half_over_first"])

    def test_due_between(self):
        """A period of 10 s ends with a burst of 2.5 s: from 7.5 s, 17.5 s and so on."""
        self.assertAlmostEqual(figures.due_between(40, None, 3.3, 5.3), 80)
        each = [figures.due_between(40, (200, 10, 2.5), second, second + 1) for second in range(26, 31)]
        self.assertEqual(each, [40, 120, 200, 200, 40])
        self.assertAlmostEqual(figures.due_between(40, (200, 10, 2.5), 3.14, 13.14), 7.5 * 40 + 2.5 * 200)

    def test_nothing_ever_happened(self):
        found = figures.stability([0, 0])
        self.assertEqual((found["mean_per_s"], found["seconds_at_zero"]), (0, 2))
        self.assertIsNone(found["worst_second_over_mean"])

    def test_longest_run(self):
        self.assertEqual(figures.longest_run([True, False, True, True, False]), 2)
        self.assertEqual(figures.longest_run([]), 0)

    def test_gap_at_the_edges_counts(self):
        self.assertAlmostEqual(figures.longest_gap([14.0, 11.0, 3.0], 10, 10), 6)
        self.assertAlmostEqual(figures.longest_gap([18.0], 10, 10), 8)
        self.assertEqual(figures.longest_gap([], 10, 10), 10)


class Percentiles(unittest.TestCase):
    def test_nearest_rank(self):
        ordered = [15, 20, 35, 40, 50]
        for pct, expected in ((5, 15), (20, 15), (30, 20), (40, 20), (50, 35), (99.9, 50), (100, 50), (0, 15)):
            self.assertEqual(figures.percentile(ordered, pct), expected, pct)

    def test_of_a_thousand(self):
        ordered = list(range(1, 1001))
        self.assertEqual([figures.percentile(ordered, pct) for pct in (50, 99, 99.9)], [500, 990, 999])

    def test_none(self):
        self.assertIsNone(figures.percentile([], 50))
        self.assertEqual(figures.response_times([]), {})

    def test_response_times_that_are_not_known(self):
        """The 2 longest of 10 are unknown."""
        found = figures.response_times([1000 * i for i in range(1, 9)], 2)
        self.assertEqual((found["p50_ms"], found["p95_ms"], found["max_ms"]), (5, math.inf, math.inf))
        self.assertEqual(figures.response_times([], 1)["p50_ms"], math.inf)

    def test_response_times(self):
        found = figures.response_times([3000, 1000, 2000])
        self.assertEqual((found["p50_ms"], found["p99.9_ms"], found["max_ms"], found["mean_ms"]), (2, 3, 3, 2))


class Resampling(unittest.TestCase):
    def test_on_straight_lines(self):
        times, values = [0.5, 1.5, 4.5], [10, 20, 80]
        self.assertEqual(figures.resample(times, values, [0, 0.5, 1, 1.5, 2, 3, 4.5, 5]),
                         [None, 10, 15, 20, 30, 50, 80, None])  # fmt: skip

    def test_one_sample(self):
        self.assertEqual(figures.resample([2], [7], [1, 2, 3]), [None, 7, None])
        self.assertEqual(figures.resample([], [], [1]), [None])

    def test_a_late_sample_is_spread_over_its_time(self):
        """A server that stalls for 3 s gives one sample: the growth belongs to all three seconds."""
        at_seconds = figures.resample([0, 3], [0, 300], [0, 1, 2, 3])
        self.assertEqual(figures.differences(at_seconds), [100, 100, 100])

    def test_differences(self):
        self.assertEqual(figures.differences([1, 4, None, 9, 9]), [3, None, None, 0])


class Ratios(unittest.TestCase):
    def test_unknown_and_zero(self):
        self.assertEqual(figures.ratio(90, 100), 0.9)
        self.assertEqual(figures.ratio(0, 10), 0)
        for value, reference in ((None, 1), (1, None), (5, 0), (5, math.inf), (math.inf, math.inf)):
            self.assertIsNone(figures.ratio(value, reference))
        self.assertEqual(figures.ratio(math.inf, 5), math.inf)

    def test_sign_test(self):
        """Of 6, all or none: 2 * 0.5^6. Of 18, 6 or fewer: 2 * 0.1189, from tables of the binomial distribution."""
        self.assertAlmostEqual(figures.sign_test(0, 6), 0.03125)
        self.assertAlmostEqual(figures.sign_test(6, 6), 0.03125)
        self.assertAlmostEqual(figures.sign_test(6, 18), 0.238, places=3)
        self.assertEqual(figures.sign_test(9, 18), 1)

    def test_spread(self):
        self.assertEqual(figures.spread([3, None, 1, 2]), {"median": 2, "min": 1, "max": 3, "of": 3})
        self.assertIsNone(figures.spread([None]))
