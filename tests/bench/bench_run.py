"""Runs bench/run.py as a user does, in a folder of the test's own."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from spillway.common import BUILD, REPO

RUN = REPO / "bench/run.py"
PLAN = """
title = "A test"
description = "Of the runner."
[run]
repetitions = {repetitions}
measured_s = {measured_s}
warmup_min_s = 1
warmup_max_s = {warmup_max_s}
warmup_redo_writes = {warmup_redo_writes}
[options]
innodb_buffer_pool_size = "128M"
innodb_flush_log_at_trx_commit = 0
skip_log_bin = true
[servers.fork]
mysqld = "fork"
options = {{ innodb_redo_log_capacity = "8M" }}
{more}
"""
WORKLOAD = """
[workloads.small]
script = "oltp_write_only"
clients = 4
options = { tables = 1, table_size = 1000 }
"""
DEVICE = """
[devices.disk]
model = "unlimited"
"""


class BenchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Below build/, like the benchmarks' own folder: on a disk with space. All tests of a class share the loaded
        # data.
        BUILD.mkdir(exist_ok=True)
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bench-test-", dir=BUILD)))
        cls.environment = os.environ | {"SPILLWAY_BENCH": str(cls.folder)}

    def plan(self, name, more=WORKLOAD + DEVICE, **values):
        """Write a plan and return its path. values replace those in PLAN."""
        chosen = {"repetitions": 1, "measured_s": 3, "warmup_max_s": 60, "warmup_redo_writes": 0} | values
        path = self.folder / f"{name}.toml"
        path.write_text(PLAN.format(**chosen, more=more))
        return path

    def begin(self, *arguments, **options):
        """Start the tool; standard output and error are one stream."""
        return subprocess.Popen([RUN, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                stdin=subprocess.DEVNULL, start_new_session=True,
                                **{"env": self.environment} | options)  # fmt: skip

    def run_tool(self, *arguments, **options):
        with self.begin(*arguments, **options) as tool:
            output = tool.communicate()[0]
        self.assertNotIn("Traceback", output)
        return tool.returncode, output

    def works(self, *arguments):
        status, output = self.run_tool(*arguments)
        self.assertEqual(status, 0, output)
        return output

    def fails(self, *arguments, **options):
        status, output = self.run_tool(*arguments, **options)
        self.assertEqual(status, 1, output)
        self.assertIn("spillway: error: ", output)
        return output

    def results(self, plan):
        return self.folder / "results" / plan.stem

    def runs(self, plan):
        """The finished runs: {name: content of run.json}."""
        return {path.parent.name: json.loads(path.read_text()) for path in self.results(plan).glob("runs/*/run.json")}

    def processes(self):
        """The servers and load generators of this test that still run."""
        found = subprocess.run(["pgrep", "-af", f"^(sysbench|[^ ]*mysqld) .*{self.folder}"], capture_output=True,
                               text=True, check=False)  # fmt: skip
        return found.stdout

    def assert_nothing_is_left(self):
        self.assertEqual(self.processes(), "")
        work = self.folder / "work"
        self.assertEqual(list(work.iterdir()) if work.exists() else [], [])
        for leftovers in (Path("/tmp").glob("spillway-bench-*"), Path("/sys/fs/cgroup").glob("**/spillway-*")):
            for path in leftovers:
                pid = path.name.removeprefix("spillway-").removeprefix("bench-").partition("-")[0]
                self.assertTrue(Path("/proc", pid).exists(), path)
