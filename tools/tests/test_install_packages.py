"""install-packages: the packages that it requests from APT, and its message without APT."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parent.parent / "install-packages"


class InstallPackages(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in ("bash", "id"):
            (self.folder / name).symlink_to(f"/usr/bin/{name}")

    def stand_in(self, name, text):
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def run_tool(self, *arguments, **environment):
        return subprocess.run(["/usr/bin/bash", TOOL, *arguments], capture_output=True, text=True, check=False,
                              env=os.environ | {"PATH": str(self.folder)} | environment)  # fmt: skip

    def asked(self, *arguments):
        """The packages that the tool requests from APT, if none is installed."""
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("sudo", 'exec "$@"')
        self.stand_in("apt-get", f'echo "$@" >> {self.folder}/asked')
        self.assertEqual(self.run_tool(*arguments).returncode, 0)
        return (self.folder / "asked").read_text().split()

    def test_building_needs_nothing_of_lint(self):
        packages = self.asked("build")
        self.assertIn("ninja-build", packages)
        self.assertFalse({"clang-format-15", "shellcheck", "sysbench"} & set(packages))

    def test_all(self):
        self.assertTrue({"ninja-build", "clang-format-15", "sysbench"} <= set(self.asked()))

    def test_packaging_is_not_part_of_all(self):
        self.assertNotIn("patchelf", self.asked())
        self.assertIn("patchelf", self.asked("package"))

    def test_services_are_not_part_of_all(self):
        self.assertNotIn("prometheus", self.asked())
        self.assertIn("prometheus", self.asked("monitoring"))

    def test_one_more(self):
        self.assertEqual(self.asked("debootstrap")[-1], "debootstrap")

    def test_not_debian(self):
        result = self.run_tool("build")
        self.assertEqual(result.returncode, 1)
        for word in ("not Debian", "SPILLWAY_PACKAGES=no", "ninja-build"):
            self.assertIn(word, result.stderr)
        self.assertEqual(self.run_tool("build", SPILLWAY_PACKAGES="no").returncode, 0)

    def test_apt_fails(self):
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("sudo", 'exec "$@"')
        self.stand_in("apt-get", "exit 100")
        result = self.run_tool("lint")
        self.assertEqual(result.returncode, 1)
        self.assertIn("shellcheck (see above)", result.stderr)
