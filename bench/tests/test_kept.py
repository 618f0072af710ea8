"""Kept results: which older parts a new one replaces, and the page made from them."""

import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from bench.runner import kept


def part(date, servers, devices=("volume",), ratio=1.25):
    """A result of one workload. The first server has 100 transactions, the others have this ratio to it."""
    plan = {"servers": dict.fromkeys(servers, {}), "devices": dict.fromkeys(devices, {}), "workloads": {"tpcc": {}}}
    runs = [{"device": device, "workload": "tpcc", "server": server, "repetition": 1,
             "figures": {"transactions": 100 * (1 if server == servers[0] else ratio)},
             "series": {"second": list(range(-70, 30)), "transactions": list(range(100))}}
            for device in devices for server in servers]  # fmt: skip
    environment = {"date": f"{date} 10:00 +0000", "commit": 40 * "a"}
    return {"title": "t", "plan": plan, "environment": environment, "devices": dict.fromkeys(devices, {}),
            "comparisons": ["derived"], "runs": runs, "discarded": []}  # fmt: skip


class Kept(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.object(kept, "KEPT", self.folder))

    def dates(self, device):
        parts = json.loads((self.folder / f"plan/{device}.json").read_text())
        return [one["environment"]["date"][:10] for one in parts]

    def test_newest_only(self):
        """A new part replaces an older one if it has all of its servers."""
        kept.keep(part("2026-01-01", ["stock", "fork"]), "plan")
        kept.keep(part("2026-01-02", ["stock", "other"]), "plan")
        self.assertEqual(self.dates("volume"), ["2026-01-01", "2026-01-02"])
        kept.keep(part("2026-01-03", ["stock", "fork"]), "plan")
        self.assertEqual(self.dates("volume"), ["2026-01-02", "2026-01-03"])

    def test_a_file_for_each_device(self):
        kept.keep(part("2026-01-01", ["stock", "fork"], devices=("volume", "disk")), "plan")
        for device in ("volume", "disk"):
            (only,) = json.loads((self.folder / f"plan/{device}.json").read_text())
            self.assertEqual(list(only["devices"]), [device])
            self.assertEqual({run["device"] for run in only["runs"]}, {device})

    def test_what_follows_from_the_rest_is_left_out(self):
        """The comparisons, and what no plot shows of the warm-up."""
        kept.keep(part("2026-01-01", ["stock", "fork"]), "plan")
        (only,) = json.loads((self.folder / "plan/volume.json").read_text())
        self.assertNotIn("comparisons", only)
        series = only["runs"][0]["series"]
        self.assertEqual(series, {"second": list(range(-60, 30)), "transactions": list(range(10, 100))})

    def test_index(self):
        kept.keep(part("2026-01-01", ["stock", "fork"], ratio=1.25), "plan")
        row = "| [plan/volume](plan/volume.json) | 2026-01-01 | `aaaaaaaaa` | stock | 1 | tpcc: fork 1.25 |"
        self.assertIn(row, kept.index().splitlines())


class Index(unittest.TestCase):
    def test_it_is_of_the_results_that_are_there(self):
        self.assertEqual(kept.INDEX.read_text(), kept.index(), "bench/run.py index")


class Reports(unittest.TestCase):
    """The plots, which need matplotlib, are left out."""

    def setUp(self):
        self.enterContext(mock.patch.dict(sys.modules, {"bench.runner.plots": mock.MagicMock()}))
        from bench.runner import report

        self.report = report
        self.enterContext(mock.patch.object(report, "image", return_value=""))
        self.enterContext(mock.patch.object(report, "say"))
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def page(self, file, number=1):
        return (self.folder / file.parent.name / f"{file.stem}-{number}/report.html").read_text()

    def test_each_kept_result_has_a_report(self):
        """Also those that an earlier version of the tool made."""
        for file in kept.files():
            with self.subTest(file=file):
                self.report.write_kept(file, self.folder)
                pages = list(self.folder.glob(f"{file.parent.name}/{file.stem}-[0-9]*/report.html"))
                self.assertEqual(len(pages), len(kept.read(file)))

    def test_summary(self):
        """The first sentence names the best server, if it differs beyond the noise."""
        file = kept.KEPT / "doublewrite-volume/cloud-volume.json"
        self.report.write_kept(file, self.folder)
        expected = ("<b>Most transactions: xfs-rwf, 1.97 times those of stock; steadiest: no server is better than "
                    "stock beyond the noise.</b>")  # fmt: skip
        self.assertIn(expected, self.page(file))
        for name in "defaults-equal-stock/cloud-volume.json", "flushing-methods/cloud-volume.json":
            self.report.write_kept(kept.KEPT / name, self.folder)
            self.assertIn("<b>Most transactions: no server is better than ", self.page(kept.KEPT / name))

    def test_server_without_a_transaction(self):
        (result,) = kept.read(kept.KEPT / "flushing-methods/cloud-volume.json")
        for run in result["runs"]:
            run["figures"]["mean_per_s"] = 0
        self.report.write_page(result, self.folder)

    def test_what_the_plan_wants_is_no_warning(self):
        """Other durability and other file systems. Without the plan's words each is a warning."""
        (result,) = kept.read(kept.KEPT / "doublewrite-volume/cloud-volume.json")
        self.report.write_page(result, self.folder)
        page = (self.folder / "report.html").read_text()
        self.assertNotIn("not equally durable", page)
        self.assertNotIn(": on xfs-reflink", page)
        for server in result["plan"]["servers"].values():
            server.pop("options", None)
            server.pop("filesystem", None)
        self.report.write_page(result, self.folder)
        page = (self.folder / "report.html").read_text()
        self.assertIn("not equally durable", page)
        self.assertIn(": on xfs-reflink", page)
