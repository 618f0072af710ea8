"""The figures of make run's loads, from what sysbench prints."""

import unittest

from spillway import load_report
from spillway.common import Failure

OUTPUT = """\
[ 1s ] thds: 32 tps: 196.21 qps: 3.15 (r/w/o: 0.00/7.98/5.17) lat (ms,100%): 549.52 err/s: 0.00 reconn/s: 0.00
[ 2s ] thds: 32 tps: 0.00 qps: 0.00 (r/w/o: 0.00/0.00/0.00) lat (ms,100%): 0.00 err/s: 0.00 reconn/s: 0.00
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       2.264 |****************************************  98
      90.000 |                                         1
     549.520 |                                         1

    total time:                          2.0000s
    total number of events:              100

Latency (ms):
         max:                                  551.00
"""


class LoadReport(unittest.TestCase):
    def load(self, name):
        seconds = [second for line in OUTPUT.splitlines() if (second := load_report.second_of(line))]
        return load_report.load_of(name, seconds, OUTPUT)

    def test_figures(self):
        load = self.load("a")
        self.assertEqual((load.mean, load.p99_ms, load.max_ms, load.over_pct), (50, 90, 551, 1))
        self.assertEqual([second.transactions for second in load.seconds], [196.21, 0])
        self.assertIn("no response", load.seconds[1].text())

    def test_table_leaves_out_stalls_that_are_0(self):
        loads = [self.load("a"), self.load("b")]
        for load in loads:
            load.waits = {"waits for redo space": (0, 0.0), "waits for sync flushing": (0, 0.0)}
        loads[1].waits["waits for sync flushing"] = (3, 1.25)
        names = [row[0] for row in load_report.table(loads)]
        self.assertIn("seconds without a transaction", names)
        self.assertNotIn("waits for redo space", names)
        self.assertEqual(load_report.table(loads)[-1], ["waits for sync flushing", "0, 0.0 s", "3, 1.2 s"])
        self.assertEqual(len({len(line) for line in load_report.table_text(loads).splitlines()}), 1)

    def test_page(self):
        text = load_report.page([self.load("<a>"), self.load("b")], "device")
        self.assertIn("&lt;a&gt;", text)
        self.assertEqual(text.count("<polyline"), 6)
        self.assertNotIn("://", text)

    def test_no_result(self):
        with self.assertRaises(Failure):
            load_report.load_of("a", [], "FATAL: no connection")
        with self.assertRaises(Failure):
            load_report.percentile([], 99)
