"""Builds of one preset wait for each other, also for the children of a killed build."""

import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent
# Logs its begin and end, and ignores SIGTERM, like a compiler at work.
CMAKE = """#!/bin/sh
trap '' TERM
echo begin >> {folder}/log
sleep 0.5
echo end >> {folder}/log
exit ${{CMAKE_STATUS:-0}}
"""


class Build(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "cmake").write_text(CMAKE.format(folder=self.folder))
        (self.folder / "cmake").chmod(0o755)
        self.environment = os.environ | {"PATH": f"{self.folder}:{os.environ['PATH']}"}
        # No real preset has this name.
        self.preset = f"test-{os.getpid()}"
        for name in (f"build-{self.preset}.lock", f"{self.preset}.configure.log"):
            self.addCleanup((TOOLS.parent / "build" / name).unlink, missing_ok=True)

    def begin(self, **environment):
        return subprocess.Popen([sys.executable, TOOLS / "build.py", self.preset], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, env=self.environment | environment)  # fmt: skip

    def log(self):
        path = self.folder / "log"
        return path.read_text().split() if path.exists() else []

    def wait_for_log(self):
        deadline = time.monotonic() + 60
        while not self.log():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def test_two_at_once(self):
        with self.begin() as one, self.begin() as other:
            outputs = [tool.communicate(timeout=60)[0] for tool in (one, other)]
        self.assertEqual((one.returncode, other.returncode), (0, 0), outputs)
        # Each build calls cmake twice.
        self.assertEqual(self.log(), ["begin", "end"] * 4)
        self.assertIn("waiting for it", "".join(outputs))

    def test_after_one_that_was_killed(self):
        with self.begin() as tool:
            self.wait_for_log()
            tool.kill()
        with self.begin() as tool:
            tool.communicate(timeout=60)
        self.assertEqual(tool.returncode, 0)
        running = 0
        for word in self.log():
            running += 1 if word == "begin" else -1
            self.assertLessEqual(running, 1)

    def test_signal_reaches_what_cmake_has_started(self):
        """cmake does not pass it on to ninja."""
        (self.folder / "ninja").write_text(f"""#!/bin/sh
trap 'touch {self.folder}/ended; exit' TERM
echo begin >> {self.folder}/log
sleep 60 & wait
""")
        (self.folder / "ninja").chmod(0o755)
        (self.folder / "cmake").write_text(f"#!/bin/sh\ntrap : TERM\n{self.folder}/ninja\n")
        with self.begin() as tool:
            self.wait_for_log()
            tool.terminate()
            tool.communicate(timeout=20)
        self.assertTrue((self.folder / "ended").exists())

    def test_failure(self):
        with self.begin(CMAKE_STATUS="3") as tool:
            output = tool.communicate(timeout=60)[0]
        self.assertEqual(tool.returncode, 1)
        self.assertIn("ended with status 3", output)
