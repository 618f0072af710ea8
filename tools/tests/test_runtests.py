"""A run that has tested nothing fails: variables that affect tests are cleared, and a part without a result fails."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import runtests
from spillway.common import Failure, Skip

TOOLS = Path(__file__).resolve().parent.parent


class Parts(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.object(runtests, "LOGS", self.folder))
        self.enterContext(mock.patch.object(runtests, "FAILED", []))

    def run_part(self, part):
        """Run one part; return the summary and the output."""
        with contextlib.redirect_stdout(io.StringIO()) as output:
            runtests.run_parts([("a part", part)])
        return (self.folder / "summary").read_text().strip(), output.getvalue()

    def test_results(self):
        self.assertEqual(self.run_part(lambda: (2, 0, 1))[0], "2 passed, 0 failed, 1 skipped")

        def skip():
            raise Skip("why")

        summary, output = self.run_part(skip)
        self.assertEqual(summary, "0 passed, 0 failed, 1 skipped")
        self.assertIn("skipped: a part: why", output)

    def test_only_some_parts(self):
        parts = {"check": [(name, lambda: (1, 0, 0)) for name in ("lint: a", "lint: b", "tests")]}
        for arguments, expected in (
            (["--list"], "lint: a\nlint: b\ntests\n"), (["--list", "--only", "^lint"], "lint: a\nlint: b\n"),
            (["--only", "b$"], "1 passed, 0 failed, 0 skipped\n"),
        ):  # fmt: skip
            with (
                self.subTest(arguments),
                mock.patch.multiple(runtests, PARTS=parts, clear_environment=mock.DEFAULT),
                mock.patch.object(runtests.resources, "keep_mounts_private"),
                mock.patch.object(sys, "argv", ["runtests.py", "check", *arguments]),
                contextlib.redirect_stdout(io.StringIO()) as output,
            ):
                runtests.run()
                self.assertTrue(output.getvalue().endswith(expected), output.getvalue())

    def test_part_without_a_result(self):
        summary, output = self.run_part(lambda: (0, 0, 0))
        self.assertEqual(summary, "0 passed, 1 failed, 0 skipped")
        self.assertIn("a part: no test was run", output)

    def test_folder_without_tests(self):
        with mock.patch.object(runtests, "REPO", self.folder):
            self.assertEqual(self.run_part(runtests.python_tests(self.folder))[0], "0 passed, 1 failed, 0 skipped")

    def test_unexpected_success_and_failed_subtests(self):
        (self.folder / "test_made_up.py").write_text("""import unittest
class Made(unittest.TestCase):
    @unittest.expectedFailure
    def test_success(self):
        pass
    def test_subtests(self):
        for number in range(3):
            with self.subTest(number=number):
                self.fail()
    def test_good(self):
        pass
""")
        with mock.patch.object(runtests, "REPO", self.folder):
            self.assertEqual(self.run_part(runtests.python_tests(self.folder))[0], "1 passed, 4 failed, 0 skipped")

    def test_policy_tests_that_were_skipped_or_filtered(self):
        def output(text):
            return lambda name, *_, **__: text if name == "policy-tests" else ""

        text = "[  SKIPPED ] AtomicProbe.One (0 ms)\n[  PASSED  ] 3 tests.\n[  SKIPPED ] 1 test, listed below:\n"
        (self.folder / "super/policy").mkdir(parents=True)
        with mock.patch.object(runtests, "BUILD", self.folder):
            with mock.patch.object(runtests, "run_logged", output(text)):
                summary, printed = self.run_part(runtests.policy_tests)
            self.assertEqual(summary, "3 passed, 0 failed, 1 skipped")
            self.assertIn("policy-tests.log): AtomicProbe.One", printed)
            with mock.patch.object(runtests, "run_logged", output("[  PASSED  ] 0 tests.\n")):
                self.assertEqual(self.run_part(runtests.policy_tests)[0], "0 passed, 1 failed, 0 skipped")

    def test_lint_of_no_files(self):
        subprocess.run(["git", "init", "--quiet", self.folder], check=True)
        with mock.patch.object(runtests, "REPO", self.folder):
            for lint in (runtests.lint_shell, runtests.lint_format, runtests.lint_policy):
                with self.subTest(lint.__name__), self.assertRaisesRegex(Failure, "lists no files"):
                    lint()
        nowhere = self.folder / "nowhere"
        nowhere.mkdir()
        with (
            mock.patch.object(runtests, "REPO", nowhere),
            mock.patch.dict(os.environ, {"GIT_CEILING_DIRECTORIES": str(self.folder)}),
            self.assertRaisesRegex(Failure, "not a git repository"),
        ):
            runtests.tracked("*.py")

    @unittest.skipIf(os.geteuid() != 0, "only root can give files to another user")
    def test_lint_of_a_checkout_of_another_user(self):
        subprocess.run(["git", "init", "--quiet", self.folder], check=True)
        (self.folder / "with space.py").touch()
        for path in [self.folder, *self.folder.rglob("*")]:
            os.chown(path, 65534, 65534)
        with mock.patch.object(runtests, "REPO", self.folder):
            self.assertEqual(runtests.tracked("*.py"), ["with space.py"])

    def test_environment(self):
        steering = {"MAKEFLAGS": "n", "GTEST_FILTER": "none", "MTR_PARALLEL": "0", "PYTHONPATH": "/x", "GIT_DIR": "/x",
                    "SERVER_TESTS_FLAVOR": "debug", "SPILLWAY_VAR": "/x", "LD_PRELOAD": "x", "CXX": "g++",
                    "TESTBRIDGE_TEST_ONLY": "x", "CPATH": "/x", "CCACHE_PREFIX": "x"}  # fmt: skip
        with mock.patch.dict(os.environ, steering | {"SPILLWAY_UPSTREAM": "/base", "CCACHE_DIR": "/cache"}):
            with contextlib.redirect_stdout(io.StringIO()) as output:
                runtests.clear_environment()
            self.assertFalse(steering.keys() & os.environ.keys())
            self.assertEqual((os.environ["SPILLWAY_UPSTREAM"], os.environ["CCACHE_DIR"]), ("/base", "/cache"))
        self.assertIn("GTEST_FILTER", output.getvalue())


class CiRun(unittest.TestCase):
    """.ci/run with stand-ins for install-packages and runtests.py."""

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / ".ci").mkdir()
        (self.folder / "tools").mkdir()
        (self.folder / "build/test-logs").mkdir(parents=True)
        self.script = self.folder / ".ci/run"
        self.script.write_text((TOOLS.parent / ".ci/run").read_text())
        self.script.chmod(0o755)

    def tool(self, name, text):
        path = self.folder / "tools" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def run_ci(self, runtests, packages="exit 0", **environment):
        self.tool("install-packages", packages)
        self.tool("runtests.py", runtests)
        result = subprocess.run([self.script], capture_output=True, text=True, check=False,
                                env=os.environ | environment)  # fmt: skip
        return result.returncode, result.stdout.splitlines()[-1:]

    def test_green(self):
        run = "echo '3 passed, 0 failed, 1 skipped' | tee build/test-logs/summary"
        self.assertEqual(self.run_ci(run), (0, ["3 passed, 0 failed, 1 skipped"]))
        (self.folder / "exit").write_text("exit 0\n")
        for steering in ({"MAKEFLAGS": "n"}, {"BASH_ENV": str(self.folder / "exit")}, {"SHELLOPTS": "noexec"},
                         {"BASH_FUNC_cd%%": "() { exit 0; }"}):  # fmt: skip
            self.assertEqual(self.run_ci(run, **steering), (0, ["3 passed, 0 failed, 1 skipped"]))

    def test_not_green(self):
        for run in ("exit 0", "exit 1", "echo '3 passed' > build/test-logs/summary"):
            (self.folder / "build/test-logs/summary").write_text("9 passed, 0 failed, 0 skipped\n")
            self.assertEqual(self.run_ci(run), (1, ["0 passed, 1 failed, 0 skipped"]))
        for summary in ("0 passed, 0 failed, 0 skipped", "3 passed, 1 failed, 0 skipped",
                        "0 passed, 0 failed, 9 skipped"):  # fmt: skip
            run = f"echo '{summary}' | tee build/test-logs/summary"
            self.assertEqual(self.run_ci(run), (1, [summary]))
        run = "echo '3 passed, 0 failed, 1 skipped' | tee build/test-logs/summary; exit 1"
        self.assertEqual(self.run_ci(run)[0], 1)
        self.assertEqual(self.run_ci("exit 0", packages="exit 1"), (1, ["0 passed, 1 failed, 0 skipped"]))
