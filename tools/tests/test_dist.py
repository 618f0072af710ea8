"""The source archive: it has the commit and the base, and the tools make the trees from it without a network. The build
of a server from it is not tested here."""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

import upstream
from spillway.common import REPO, sha256_of

from .test_patchqueue import NAME, UPSTREAM, patch
from .test_upstream import make_archive

# Nothing listens on the port for discarded data.
UNREACHABLE = "http://127.0.0.1:9/base.tar.gz"
# The tools in the folder, with a base that is smaller than a real one.
MAKE_TREE = "import upstream; upstream.TREE_BYTES = 1; upstream.fork_tree(upstream.obtain_base())"


class Dist(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.repo = self.folder / "repo"
        self.archive = self.folder / "cache/spillway/mysql_9.7.2.orig.tar.gz"
        self.archive.parent.mkdir(parents=True)
        make_archive(self.archive)
        # An APT without an archive.
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        (self.bin / "apt-get").write_text("#!/bin/sh\n")
        (self.bin / "apt-get").chmod(0o755)
        self.environment = {
            "PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(self.folder), "XDG_CACHE_HOME": "",
            "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "no_proxy": "*",
            **{f"GIT_{who}_{what}": "test@test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }  # fmt: skip
        shutil.copytree(REPO / "tools", self.repo / "tools", symlinks=True,
                        ignore=shutil.ignore_patterns("tests", "server_tests", "__pycache__"))  # fmt: skip
        for name in (".gitignore", "VERSION"):
            shutil.copy(REPO / name, self.repo)
        self.write("patches/series", f"{NAME}\n")
        demo = patch()
        self.write(f"patches/{NAME}", f"{demo.header}\n---\n{demo.diff}")
        self.write("mysql-test/suite/spillway/t/a.test", "SELECT 2;\n")
        self.write("UPSTREAM", f"""\
name=mysql
version=9.7.2
sha256={sha256_of(self.archive)}
bytes={self.archive.stat().st_size}
debian_file=pool/{self.archive.name}
files_sha256={upstream.files_digest_of_archive(self.archive)}
source={UNREACHABLE}
""")
        self.git("init", "-q", "-b", "main")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "all")
        self.version = (REPO / "VERSION").read_text().strip()
        self.made = self.repo / f"build/dist/spillway-{self.version}-src.tar.gz"

    def write(self, name, text):
        (self.repo / name).parent.mkdir(parents=True, exist_ok=True)
        (self.repo / name).write_text(text)

    def run_in(self, place, *command, **environment):
        # Git sets variables for its hooks; they would name another repository.
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "SPILLWAY_"))}
        environment = ours | self.environment | environment
        return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=120,
                              check=False)  # fmt: skip

    def git(self, *arguments):
        result = self.run_in(self.repo, "git", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)

    def dist(self, *arguments, place=None, **environment):
        cache = {"XDG_CACHE_HOME": str(self.folder / "cache")}
        return self.run_in(place or self.repo, "tools/dist.py", *arguments, **(cache | environment))

    def make(self, *arguments):
        result = self.dist(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(str(self.made), result.stdout)

    def unpacked(self):
        place = self.folder / "elsewhere"
        place.mkdir()
        subprocess.run(["tar", "-xf", self.made, "-C", place], check=True)
        self.assertEqual([path.name for path in place.iterdir()], [f"spillway-{self.version}-src"])
        return place / f"spillway-{self.version}-src"

    def refused(self, result, *words):
        self.assertEqual(result.returncode, 1, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        self.assertFalse(self.made.exists())

    def tree(self, place):
        return self.run_in(place / "tools", sys.executable, "-c", MAKE_TREE)

    def test_tree_from_the_archive_without_a_network(self):
        self.make()
        place = self.unpacked()
        self.assertEqual(sha256_of(place / "base" / self.archive.name), sha256_of(self.archive))
        result = self.tree(place)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("hook();", (place / "build/fork/source" / UPSTREAM).read_text())
        self.assertTrue((place / "build/fork/source/mysql-test/suite/spillway/t/a.test").exists())
        # It was the archive's base: without it nothing can be had.
        shutil.rmtree(place / "base")
        shutil.rmtree(place / "build")
        result = self.tree(place)
        self.assertNotEqual(result.returncode, 0)
        for word in ("APT is configured with no archive", f"{UNREACHABLE}: ", "SPILLWAY_UPSTREAM"):
            self.assertIn(word, result.stderr)

    def test_content(self):
        self.make()
        listed = self.run_in(self.repo, "git", "ls-tree", "-r", "--name-only", "HEAD").stdout.splitlines()
        with tarfile.open(self.made) as tar:
            members = [member for member in tar if not member.isdir()]
        names = [member.name.partition("/")[2] for member in members]
        self.assertEqual(sorted(names), sorted([*listed, f"base/{self.archive.name}"]))
        self.assertEqual({(member.uid, member.gid) for member in members}, {(0, 0)})
        modes = {member.name.partition("/")[2]: member.mode for member in members}
        self.assertEqual((modes["tools/upstream.py"], modes["UPSTREAM"]), (0o755, 0o644))
        commit = self.run_in(self.repo, "git", "rev-parse", "HEAD").stdout
        found = self.run_in(self.repo, "sh", "-c", f"gzip -dc {self.made} | git get-tar-commit-id").stdout
        self.assertEqual(found, commit)

    def test_same_bytes_again(self):
        self.make()
        first = sha256_of(self.made)
        self.made.unlink()
        os.utime(self.archive)
        self.make()
        self.assertEqual(sha256_of(self.made), first)

    def test_changes_that_are_not_committed(self):
        for name in ("VERSION", "tools/new.py"):
            with self.subTest(name):
                self.write(name, "9.9.9\n")
                self.refused(self.dist(), name, "commit", "--head")
                self.make("--head")
                with tarfile.open(self.made) as tar:
                    texts = {member.name.partition("/")[2] for member in tar}
                    version = tar.extractfile(f"spillway-{self.version}-src/VERSION").read().decode().strip()
                self.assertEqual(version, self.version)
                self.assertNotIn("tools/new.py", texts)
                self.made.unlink()
                self.git("stash", "-u", "-q")

    def test_pin_that_is_not_committed(self):
        self.write("UPSTREAM", (self.repo / "UPSTREAM").read_text() + "# moved\n")
        self.refused(self.dist("--head"), "UPSTREAM", "commit it")

    def test_another_base_is_named(self):
        self.refused(self.dist(SPILLWAY_UPSTREAM=str(self.archive)), "SPILLWAY_UPSTREAM", "unset")

    def test_no_base(self):
        self.archive.unlink()
        self.refused(self.dist(), UNREACHABLE, "no source of the base")

    def test_within_an_unpacked_archive(self):
        self.make()
        place = self.unpacked()
        result = self.dist(place=place)
        self.assertEqual(result.returncode, 1)
        self.assertIn("not a git checkout", result.stderr)
