"""Records of bench/measured.lua for scripts made for these tests; no server."""

import os
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from bench.runner import figures
from spillway import common, sysbench

MEASURED = common.REPO / "bench/measured.lua"
# A transaction here is a pause whose length can depend on its number.
SLEEP = """
local ffi = require("ffi")
ffi.cdef("int test_usleep(unsigned) __asm__(\\"usleep\\");")
local function pause(seconds) ffi.C.test_usleep(seconds * 1e6) end
local count = 0
"""


@unittest.skipUnless(shutil.which("sysbench"), "sysbench is not installed")
class Measured(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def records(self, script, seconds, *options, threads=1):
        """Run a script for this time and return the records of each client."""
        path = self.folder / "workload.lua"
        path.write_text(SLEEP + script)
        command = ["sysbench", MEASURED, f"--records={self.folder}", f"--threads={threads}", f"--time={seconds}",
                   "--events=0", *options, "run"]  # fmt: skip
        self.begin_us = time.monotonic() * 1e6
        result = subprocess.run(command, capture_output=True, text=True, check=False,
                                env=os.environ | {"SPILLWAY_WORKLOAD": str(path)})  # fmt: skip
        self.end_us = time.monotonic() * 1e6
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return [figures.read_records((self.folder / str(i)).read_bytes()) for i in range(threads)]

    def test_scripts_of_others_are_not_run(self):
        """sysbench searches the working directory first for its scripts; sysbench_environment() prevents that."""
        (self.folder / "oltp_common.lua").write_text('print("of others")')
        command = ["sysbench", str(sysbench.SYSBENCH_SCRIPTS / "oltp_write_only.lua"), "help"]
        for environment, is_run in ((os.environ, True), (sysbench.sysbench_environment(), False)):
            result = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True,
                                    check=False)  # fmt: skip
            self.assertEqual("of others" in result.stdout, is_run, result)

    def test_times_and_kinds(self):
        script = """
        function event()
           count = count + 1
           transaction_kind = count == 1 and "a_name_too_long_for_it" or "short"
           pause(0.1)
        end"""
        (found,) = self.records(script, 1)
        self.assertGreater(len(found), 3)
        self.assertEqual([kind for _, _, kind in found[:2]], ["a_name_too_", "short"])
        for end_us, response_us, _ in found:
            self.assertGreaterEqual(response_us, 100_000)
            self.assertTrue(self.begin_us < end_us - response_us < end_us < self.end_us)

    def test_error_that_is_ignored(self):
        """As after a deadlock, sysbench calls event() again, and the response time continues."""
        script = """
        function event()
           count = count + 1
           if count == 1 then
              pause(0.3)
              error({errcode = sysbench.error.RESTART_EVENT})
           end
           pause(0.1)
        end"""
        (found,) = self.records(script, 1)
        self.assertGreaterEqual(found[0][1], 400_000)
        self.assertGreaterEqual(found[1][1], 100_000)
        self.assertLess(found[1][1], found[0][1])

    def test_client_that_waits_of_its_own_will(self):
        """A client's own wait is not part of the response time, also if the transaction is tried again."""
        script = """
        function event()
           count = count + 1
           if count ~= 2 then
              client_waits(0.3)
           end
           if count == 1 then
              error({errcode = sysbench.error.RESTART_EVENT})
           end
           pause(0.1)
        end"""
        (self.folder / "waits").mkdir()
        (found,) = self.records(script, 1)
        self.assertTrue(100_000 <= found[0][1] < 300_000, found)
        self.assertTrue(100_000 <= found[1][1] < 300_000, found)
        self.assertGreaterEqual(found[1][0] - found[0][0], 400_000)
        (until,) = figures.WAIT.unpack((self.folder / "waits/0").read_bytes())
        self.assertTrue(found[-1][0] - 300_000 < until * 1e6 < self.end_us)

    def test_backlog_of_an_open_loop(self):
        """While the first transaction takes a second, others become due: their response times include that wait."""
        script = """
        function event()
           count = count + 1
           pause(count == 1 and 1 or 0)
        end"""
        (found,) = self.records(script, 3, "--arrivals=100")
        waited = [response_us for _, response_us, _ in found]
        self.assertGreaterEqual(waited[0], 1_000_000)
        # On average 100 are due in that second, and each waits for the rest of it.
        late = [response_us for response_us in waited[1:150] if response_us > 100_000]
        self.assertTrue(50 < len(late) < 150, len(late))
        self.assertGreater(max(late), 800_000)

    def test_clients_have_arrivals_of_their_own(self):
        found = self.records("function event() end", 2, "--arrivals=200", threads=4)
        counts = [len(records) for records in found]
        # 400 are due on average; five standard deviations are 100. A client that begins late misses some.
        self.assertTrue(250 < sum(counts) < 500, counts)
        begins = [[end_us - response_us for end_us, response_us, _ in records[:20]] for records in found]
        self.assertEqual(len({tuple(b - own[0] for b in own) for own in begins}), 4)
