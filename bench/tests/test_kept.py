"""Kept results: which older parts a new one replaces, and the page made from them."""

import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import bench_modules  # noqa: F401
import kept


def part(date, servers, devices=("volume",), ratio=1.25):
    """A result of one workload."""
    figures = {servers[0]: {"median": 100, "ratio": None}} | {
        server: {"median": 100 * ratio, "ratio": {"median": ratio}} for server in servers[1:]
    }
    return {
        "title": "t", "plan": {"servers": dict.fromkeys(servers, {}), "devices": dict.fromkeys(devices, {})},
        "environment": {"date": f"{date} 10:00 +0000", "commit": 40 * "a"}, "devices": dict.fromkeys(devices, {}),
        "comparisons": [{"device": device, "workload": "tpcc", "figures": {"transactions": figures}}
                        for device in devices],
        "runs": [{"device": device, "workload": "tpcc", "server": server, "repetition": 1}
                 for device in devices for server in servers],
        "discarded": [],
    }  # fmt: skip


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
            self.assertEqual([one["device"] for one in only["comparisons"]], [device])

    def test_index(self):
        kept.keep(part("2026-01-01", ["stock", "fork"], ratio=1.25), "plan")
        row = "| [plan/volume](plan/volume.json) | 2026-01-01 | `aaaaaaaaa` | stock | 1 | tpcc: fork 1.25 |"
        self.assertIn(row, kept.index().splitlines())


class Index(unittest.TestCase):
    def test_it_is_of_the_results_that_are_there(self):
        self.assertEqual(kept.INDEX.read_text(), kept.index(), "bench/run.py index")


if __name__ == "__main__":
    unittest.main()
