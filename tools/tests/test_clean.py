"""make clean removes builds, but nothing that is in use or has unsaved work."""

import contextlib
import fcntl
import io
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import clean
from patchqueue import EXPORTED
from spillway import common
from spillway.common import Failure


class Clean(unittest.TestCase):
    def setUp(self):
        self.build = Path(self.enterContext(tempfile.TemporaryDirectory())) / "build"
        (self.build / "fork/source").mkdir(parents=True)
        (self.build / "fork/source.json").touch()
        (self.build / "source.lock").touch()
        for module in (clean, clean.upstream):
            self.enterContext(mock.patch.object(module, "BUILD", self.build))
        self.enterContext(mock.patch.object(clean.upstream, "REPO", self.build.parent))

    def test_all_but_the_locks(self):
        """A command that waits for a lock has the file open."""
        clean.clean()
        self.assertEqual([path.name for path in self.build.iterdir()], ["source.lock"])
        clean.clean()

    def test_only_the_sources(self):
        for name in ("fork/release", "patch-edit"):
            (self.build / name).mkdir()
        clean.clean(only_sources=True)
        self.assertEqual([path.name for path in (self.build / "fork").iterdir()], ["release"])
        self.assertTrue((self.build / "patch-edit").exists())
        with common.in_use(self.build / "use.lock"), self.assertRaisesRegex(Failure, "at work"):
            clean.clean(only_sources=True)

    def test_while_a_tool_runs(self):
        lock = self.build / "use.lock"
        with common.in_use(lock), common.in_use(lock), self.assertRaisesRegex(Failure, "at work"):
            clean.clean()
        clean.clean()

    def test_lock_of_another_user(self):
        """A command that cannot hold the lock does not run: a clean would remove its files meanwhile."""
        denied = mock.patch.object(os, "open", side_effect=PermissionError(13, "Permission denied"))
        refused = self.assertRaisesRegex(Failure, "Permission denied.*another user.*clone")
        with denied, refused, common.in_use(self.build / "use.lock"):
            self.fail("runs without the lock")

    def test_options(self):
        """--help and unknown options remove nothing."""
        for option in ("--help", "--dry-run", "x"):
            with (
                mock.patch.object(sys, "argv", ["clean.py", option]),
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
                self.assertRaises(SystemExit),
            ):
                clean.run()
        self.assertTrue((self.build / "fork/source").exists())

    def test_while_a_program_of_it_runs(self):
        """For example the development server, which holds no lock."""
        program = self.build / "mysqld"
        shutil.copy(shutil.which("sleep"), program)
        with subprocess.Popen([program, "100"]) as process:
            with self.assertRaisesRegex(Failure, f"mysqld .process {process.pid}.: it runs; end it first .make stop"):
                clean.clean()
            process.kill()
        clean.clean()

    def test_while_something_is_built(self):
        with open(self.build / "source.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with self.assertRaisesRegex(Failure, "at work"):
                clean.clean()
        self.assertTrue((self.build / "fork/source").exists())

    def test_edit_of_patches(self):
        """Also an edit that was moved aside, but not an exported one."""
        for name in ("patch-edit", "patch-edit.mine"):
            (self.build / name / ".git").mkdir(parents=True)
            with self.assertRaisesRegex(Failure, "make patch-export"):
                clean.clean()
            git = ["git", "-c", "user.name=a", "-c", "user.email=a@a", "-C", str(self.build / name)]
            for command in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--message=base"]):
                subprocess.run([*git, *command], check=True)
            head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
            (self.build / name / EXPORTED).write_text(head.strip())
            # A shell that was in the edit when it was exported can still change it.
            (self.build / name / "new").write_text("work")
            with self.assertRaisesRegex(Failure, "not exported"):
                clean.clean()
            (self.build / name / "new").unlink()
            subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message=work"], check=True)
            with self.assertRaisesRegex(Failure, "not exported"):
                clean.clean()
            subprocess.run([*git, "reset", "--quiet", "--hard", "HEAD~"], check=True)
        (self.build / "patch-edit.new").mkdir()
        clean.clean()

    def test_link(self):
        """build/ is a link to another folder, which may have files of others."""
        moved = self.build.with_name("moved")
        self.build.rename(moved)
        self.build.symlink_to(moved)
        with self.assertRaisesRegex(Failure, "is a link"):
            clean.clean()
        self.assertTrue((moved / "fork/source").exists())

    def test_edit_of_a_source_tree(self):
        tree = clean.upstream.Tree("fork")
        (tree.source / "main.cc").write_text("ours")
        tree.write_listing()
        (tree.source / "main.cc").write_text("theirs")
        with self.assertRaisesRegex(Failure, "main.cc.*clean-source"):
            clean.clean()
        clean.clean(only_sources=True)
        clean.clean()

    def test_interrupted(self):
        """After an interrupt, no partly removed folder is in its place, and the next clean removes the rest."""
        interrupted = mock.patch.object(clean.shutil, "rmtree", side_effect=KeyboardInterrupt)
        with interrupted, self.assertRaises(KeyboardInterrupt):
            clean.clean()
        self.assertFalse((self.build / "fork").exists())
        clean.clean()
        self.assertEqual([path.name for path in self.build.iterdir()], ["source.lock"])

    def test_stamps_go_first(self):
        interrupted = mock.patch.object(clean.shutil, "rmtree", side_effect=KeyboardInterrupt)
        with interrupted, self.assertRaises(KeyboardInterrupt):
            clean.clean()
        self.assertFalse((self.build / "fork/source.json").exists())

    def test_nothing_to_do(self):
        with mock.patch.object(clean, "BUILD", self.build / "nowhere"):
            clean.clean()
