"""cmake/compile, the compiler launcher: the settings of ccache, which never sees an old precompiled header."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

LAUNCHER = Path(__file__).resolve().parents[2] / "cmake/compile"


class Launcher(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        stand_in = self.folder / "ccache"
        stand_in.write_text('#!/bin/sh\nls\nenv | grep ^CCACHE_\nfor a; do echo "argument $a"; done\nexit 7\n')
        stand_in.chmod(0o755)
        (self.folder / "old.gch").touch()

    def launch(self, *arguments):
        environment = os.environ | {"PATH": f"{self.folder}:{os.environ['PATH']}"}
        return subprocess.run([LAUNCHER, *arguments], cwd=self.folder, env=environment, text=True, check=False,
                              capture_output=True)  # fmt: skip

    def test_old_precompiled_header_is_gone(self):
        result = self.launch("c++", "-o", "old.gch", "-c", "x.cxx")
        self.assertNotIn("old.gch", result.stdout.splitlines())
        self.assertIn("argument old.gch", result.stdout)

    def test_other_compilations_leave_it(self):
        result = self.launch("c++", "-include", "old", "-o", "a b.o", "-c", "x.cc")
        self.assertIn("old.gch", result.stdout.splitlines())
        self.assertIn("argument a b.o", result.stdout)
        self.assertEqual(result.returncode, 7)

    def test_paths_are_relative_to_the_checkout(self):
        self.assertIn(f"CCACHE_BASEDIR={LAUNCHER.parents[1]}\n", self.launch("c++").stdout)
