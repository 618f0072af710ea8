"""The base and the source trees: bad bases are refused, edits are kept, and no file is written without need."""

import contextlib
import errno
import hashlib
import http.server
import io
import os
import shutil
import socket
import subprocess
import tarfile
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

import patchqueue
import upstream
from spillway import common, download
from spillway.common import Failure, sha256_of

from .test_patchqueue import DIFF, LINES, NAME, UPSTREAM, patch

VERSION = "MYSQL_VERSION_MAJOR={}\nMYSQL_VERSION_MINOR={}\nMYSQL_VERSION_PATCH=2\n"


def make_archive(path, version=(9, 7), files=None):
    """A small source archive in the form of upstream's."""
    contents = {"MYSQL_VERSION": VERSION.format(*version), UPSTREAM: "".join(f"{line}\n" for line in LINES)}
    contents |= {"sql/main.cc": "int main() {}\n", "mysql-test/suite/sys_vars/t/old.test": "SELECT 1;\n"}
    with tarfile.open(path, "w:gz") as tar:
        for name, text in (contents if files is None else files).items():
            entry = tarfile.TarInfo(f"mysql-9.7.2/{name}")
            entry.size = len(text)
            entry.mtime = 1
            tar.addfile(entry, io.BytesIO(text.encode()))


class Trees(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.repo = self.folder / "repo"
        self.build = self.repo / "build"
        self.build.mkdir(parents=True)
        (self.repo / "mysql-test/suite/spillway/t").mkdir(parents=True)
        (self.repo / "mysql-test/suite/spillway/t/a.test").write_text("SELECT 2;\n")
        (self.repo / "mysql-test/suite/sys_vars/t").mkdir(parents=True)
        (self.repo / "mysql-test/suite/sys_vars/t/new_basic.test").write_text("SELECT 3;\n")
        (self.repo / "mysql-test/upstream.list").write_text("main.1st\n")
        self.archive = self.folder / "cache/spillway/base.orig.tar.gz"
        self.archive.parent.mkdir(parents=True)
        make_archive(self.archive)
        self.patches = [patch()]
        for module, name, value in (
            (upstream, "BUILD", self.build), (upstream, "REPO", self.repo), (upstream, "TREE_BYTES", 1),
            (upstream, "read_pin", self.pin), (patchqueue.Queue, "load", lambda: patchqueue.Queue(self.patches)),
            (upstream, "say", lambda text: None),
        ):  # fmt: skip
            change = mock.patch.object(module, name, value)
            change.start()
            self.addCleanup(change.stop)
        change = mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(self.folder / "cache")})
        change.start()
        self.addCleanup(change.stop)
        os.environ.pop("SPILLWAY_UPSTREAM", None)
        self.sha256, self.bytes = sha256_of(self.archive), self.archive.stat().st_size
        self.files = upstream.files_digest_of_archive(self.archive)
        self.sources = []
        self.source = self.build / "fork/source"

    def pin(self):
        return {"name": "mysql", "version": "9.7.2", "sha256": self.sha256, "bytes": str(self.bytes),
                "debian_file": "pool/base.orig.tar.gz", "files_sha256": self.files,
                "sources": self.sources}  # fmt: skip

    def fork(self):
        return upstream.fork_tree(upstream.obtain_base())

    def refused(self, function, *words):
        with self.assertRaises(Failure) as caught:
            function()
        for word in words:
            self.assertIn(word, str(caught.exception))

    def times(self):
        return {path: os.lstat(path).st_mtime_ns for path in self.source.rglob("*") if not path.is_dir()}


class Base(Trees):
    def test_wrong_checksum(self):
        data = bytearray(self.archive.read_bytes())
        data[-1] ^= 1
        self.archive.write_bytes(data)
        self.refused(upstream.obtain_base, "SHA-256", self.sha256, "Remove it")

    def test_truncated(self):
        self.archive.write_bytes(self.archive.read_bytes()[:-10])
        self.refused(upstream.obtain_base, "truncated", "Remove it")

    def test_truncated_archive_of_the_user(self):
        self.archive.write_bytes(self.archive.read_bytes()[:-10])
        with mock.patch.dict(os.environ, {"SPILLWAY_UPSTREAM": str(self.archive)}):
            self.refused(self.fork, str(self.archive))
        self.assertFalse((self.build / "stock/source").exists())
        self.assertFalse((self.build / "stock/source.new").exists())

    def test_truncated_archive_is_not_fetched(self):
        upstream.check_archive(self.archive)
        self.archive.write_bytes(self.archive.read_bytes()[:-10])
        self.refused(lambda: upstream.check_archive(self.archive), str(self.archive), "not a complete")

    def test_not_an_archive(self):
        self.archive.write_text("hello")
        with mock.patch.dict(os.environ, {"SPILLWAY_UPSTREAM": str(self.archive)}):
            self.refused(self.fork, "neither a source tree nor a tar archive")

    def test_not_mysql(self):
        make_archive(self.archive, files={"README": "something else\n"})
        with mock.patch.dict(os.environ, {"SPILLWAY_UPSTREAM": str(self.archive)}):
            self.refused(self.fork, "not a MySQL source tree or archive")

    def test_not_9_7(self):
        make_archive(self.archive, version=(8, 4))
        with mock.patch.dict(os.environ, {"SPILLWAY_UPSTREAM": str(self.archive)}):
            self.refused(self.fork, "8.4.2", "9.7")

    def test_tree_that_is_not_mysql(self):
        with mock.patch.dict(os.environ, {"SPILLWAY_UPSTREAM": str(self.repo)}):
            self.refused(self.fork, "not a MySQL source tree")

    def test_missing(self):
        with mock.patch.dict(os.environ, {"SPILLWAY_UPSTREAM": "/nonexistent"}):
            self.refused(self.fork, "does not exist")

    def test_tree_of_the_user(self):
        tree = self.folder / "percona"
        upstream.unpack(self.archive, tree)
        (tree / "sql/main.cc").write_text("int main() { return 1; }\n")
        with mock.patch.dict(os.environ, {"SPILLWAY_UPSTREAM": str(tree)}):
            self.fork()
            self.assertIn("return 1", (self.source / "sql/main.cc").read_text())
            # The tool detects a change in the user's tree.
            (tree / "sql/main.cc").write_text("int main() { return 22; }\n")
            self.fork()
        self.assertIn("return 22", (self.source / "sql/main.cc").read_text())
        # Back to the pinned base.
        self.fork()
        self.assertNotIn("return", (self.source / "sql/main.cc").read_text())

    def test_link_to_a_tree_of_the_user(self):
        tree, link = self.folder / "percona", self.folder / "link"
        upstream.unpack(self.archive, tree)
        for folder in (".git", "extra/.git"):
            (tree / folder).mkdir(parents=True)
            (tree / folder / "HEAD").write_text("ref\n")
        link.symlink_to(tree)
        before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
        with mock.patch.dict(os.environ, {"SPILLWAY_UPSTREAM": str(link)}):
            self.fork()
        self.assertEqual({path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}, before)
        self.assertFalse((self.build / "stock/source").is_symlink())
        self.assertFalse((self.build / "stock/source/.git").exists())

    def test_repository_of_the_user_that_is_a_file_or_a_link(self):
        for make in (lambda path: path.write_text("gitdir: /elsewhere\n"), lambda path: path.symlink_to(self.repo)):
            tree = self.folder / "worktree"
            upstream.unpack(self.archive, tree)
            make(tree / ".git")
            with mock.patch.dict(os.environ, {"SPILLWAY_UPSTREAM": str(tree)}):
                self.fork()
            self.assertFalse(os.path.lexists(self.source / ".git"))
            self.assertTrue(self.repo.is_dir())
            shutil.rmtree(tree)

    def test_links_that_lead_out_of_the_base(self):
        """Our tests and patches would be written to the links' targets."""
        outside = self.folder / "outside"
        outside.mkdir()
        for name, target in (("mysql-test", str(outside)), ("storage/innobase/os", "../../../../../outside")):
            tree = self.folder / "percona"
            upstream.unpack(self.archive, tree)
            shutil.rmtree(tree / name)
            (tree / name).symlink_to(target)
            archive = self.folder / "links.tar"
            with tarfile.open(archive, "w") as tar:
                tar.add(tree, "mysql-9.7.2")
            for base in (tree, archive):
                with mock.patch.dict(os.environ, {"SPILLWAY_UPSTREAM": str(base)}):
                    self.refused(self.fork, "link that leads out", name)
            self.assertEqual(list(outside.iterdir()), [])
            self.assertFalse((self.build / "stock/source").exists())
            shutil.rmtree(tree)

    def test_link_within_the_base(self):
        tree = self.folder / "percona"
        upstream.unpack(self.archive, tree)
        (tree / "sql/link.cc").symlink_to("main.cc")
        with mock.patch.dict(os.environ, {"SPILLWAY_UPSTREAM": str(tree)}):
            self.fork()
        self.assertTrue((self.source / "sql/link.cc").is_symlink())

    def test_link_in_place_of_a_tree(self):
        precious = self.folder / "precious"
        precious.mkdir()
        (precious / "file").touch()
        (self.build / "stock").mkdir()
        (self.build / "stock/source").symlink_to(precious)
        self.refused(self.fork, "stock/source is a link")
        self.assertTrue((precious / "file").exists())

    def test_tree_that_all_can_write(self):
        tree = self.folder / "percona"
        upstream.unpack(self.archive, tree)
        os.link(tree / "sql/main.cc", tree / "sql/twin.cc")
        for path in [tree, *tree.rglob("*")]:
            path.chmod(0o2777 if path.is_dir() else 0o666)
        with mock.patch.dict(os.environ, {"SPILLWAY_UPSTREAM": str(tree)}):
            self.fork()
        for name in ("stock", "fork"):
            top = self.build / name / "source"
            for path in [top, *top.rglob("*")]:
                self.assertEqual(path.stat().st_mode & 0o7022 if not path.is_symlink() else 0, 0, path)
            self.assertNotEqual((top / "sql/main.cc").stat().st_ino, (top / "sql/twin.cc").stat().st_ino)

    def test_special_files_and_bits_of_an_archive(self):
        make_archive(self.archive)
        plain = self.folder / "plain.tar"
        with tarfile.open(plain, "w") as tar, tarfile.open(self.archive) as source:
            for member in source:
                member.mode, member.uid, member.gid = 0o6755, 1234, 1234
                tar.addfile(member, source.extractfile(member))
        with mock.patch.dict(os.environ, {"SPILLWAY_UPSTREAM": str(plain)}):
            self.fork()
        for tree in ("stock", "fork"):
            status = (self.build / tree / "source/sql/main.cc").stat()
            self.assertEqual(status.st_mode & 0o7000, 0)
            self.assertEqual(status.st_uid, os.geteuid())
        with tarfile.open(plain, "a") as tar:
            entry = tarfile.TarInfo("mysql-9.7.2/sql/fifo")
            entry.type = tarfile.FIFOTYPE
            tar.addfile(entry)
        with mock.patch.dict(os.environ, {"SPILLWAY_UPSTREAM": str(plain)}):
            self.refused(self.fork, "sql/fifo")

    def test_member_that_would_be_written_elsewhere(self):
        """Without its first part the name, or a hard link's target, would be absolute."""
        outside = self.folder / "outside"
        outside.write_text("theirs\n")
        outside.chmod(0o4711)
        for name, link in (("mysql-9.7.2/" + str(self.folder / "owned"), None), ("mysql-9.7.2/x", f"m/{outside}")):
            with self.subTest(name):
                make_archive(self.archive)
                plain = self.folder / "plain.tar"
                with tarfile.open(plain, "w") as tar, tarfile.open(self.archive) as source:
                    for member in source:
                        tar.addfile(member, source.extractfile(member))
                    entry = tarfile.TarInfo(name)
                    if link:
                        entry.type, entry.linkname = tarfile.LNKTYPE, link
                    tar.addfile(entry)
                with mock.patch.dict(os.environ, {"SPILLWAY_UPSTREAM": str(plain)}), contextlib.suppress(Failure):
                    self.fork()
                self.assertFalse((self.folder / "owned").exists())
                self.assertEqual((outside.stat().st_mode & 0o7777, outside.stat().st_nlink), (0o4711, 1))

    def test_file_that_is_one_with_a_file_outside(self):
        tree, outside = self.folder / "tree", self.folder / "outside"
        upstream.unpack(self.archive, tree)
        outside.write_text("theirs\n")
        outside.chmod(0o4711)
        os.link(outside, tree / "sql/x")
        self.refused(lambda: upstream.check_entries(tree, "base"), "one with a file outside", "sql/x")
        self.assertEqual(outside.stat().st_mode & 0o7777, 0o4711)

    def test_more_than_one_top_folder(self):
        with tarfile.open(self.folder / "two.tar", "w") as tar:
            for name in ("one/MYSQL_VERSION", "two/MYSQL_VERSION"):
                tar.addfile(tarfile.TarInfo(name))
        self.refused(lambda: upstream.unpack(self.folder / "two.tar", self.folder / "new"), "one, two")

    def test_copy_that_has_much_to_say(self):
        """tar prints more errors than a pipe holds."""
        tree = self.folder / "tree"
        tree.mkdir()
        talking = self.folder / "tar"
        talking.write_text(f"""#!/bin/sh
[ "$1" = -c ] || exec {shutil.which("tar")} "$@"
for i in $(seq 3000); do echo 'tar: much to say of each file' >&2; done
exit 2
""")
        talking.chmod(0o755)
        path = f"{self.folder}:{os.environ['PATH']}"
        with mock.patch.dict(os.environ, {"PATH": path}):
            self.refused(lambda: upstream.copy_tree(tree, self.folder / "copy"), "much to say")

    def test_checkout_within_the_users_tree(self):
        upstream.unpack(self.archive, self.folder / "tree")
        with mock.patch.object(upstream, "REPO", self.folder / "tree/spillway"):
            self.refused(lambda: upstream.users_base(self.folder / "tree"), "move it out")

    def test_no_space(self):
        with mock.patch.object(upstream, "TREE_BYTES", 1 << 60):
            self.refused(self.fork, "free", "MiB")
        self.assertFalse((self.build / "stock/source").exists())

    def apt(self, script):
        """Replace apt-helper and the list of archives by stand-ins. In the script $1 is the address, $2 the file."""
        helper = self.folder / "apt-helper"
        helper.write_text(f'#!/bin/sh\nwhile [ "$1" != download-file ]; do shift; done; shift\n{script}\n')
        helper.chmod(0o755)
        for module, name, value in ((download, "APT_HELPER", str(helper)),
                                    (upstream, "apt_archives", lambda: ["http://one.invalid", "http://two.invalid"])):
            change = mock.patch.object(module, name, value)
            change.start()
            self.addCleanup(change.stop)

    def test_no_network(self):
        self.archive.unlink()
        self.apt('echo half > "$2"; echo E: no route >&2; exit 100')
        self.refused(upstream.obtain_base, "SPILLWAY_UPSTREAM", str(self.archive), "APT",
                     "http://one.invalid/pool/base.orig.tar.gz: APT could not download it: E: no route",
                     "http://two.invalid/pool")  # fmt: skip
        self.assertEqual(list(self.archive.parent.iterdir()), [])

    def test_no_apt(self):
        self.archive.unlink()
        with mock.patch.dict(os.environ, {"PATH": "/nonexistent"}):
            self.refused(upstream.obtain_base, "APT does not tell", "SPILLWAY_UPSTREAM")

    def test_apt_without_an_archive(self):
        self.archive.unlink()
        with mock.patch.object(upstream.subprocess, "run", return_value=mock.Mock(stdout="")):
            self.refused(upstream.obtain_base, "configured with no archive", "SPILLWAY_UPSTREAM")

    def test_no_home(self):
        with mock.patch.dict(os.environ), mock.patch.object(Path, "home", side_effect=RuntimeError("no home")):
            del os.environ["XDG_CACHE_HOME"]
            self.refused(upstream.obtain_base, "XDG_CACHE_HOME")

    def test_download_of_something_else(self):
        good = self.archive.with_name("elsewhere")
        self.archive.rename(good)
        self.apt('echo another file > "$2"')
        self.refused(upstream.obtain_base, "one.invalid", "two.invalid", "not a complete MySQL source archive")
        self.assertEqual(list(self.archive.parent.iterdir()), [good])

    def test_download_from_the_second_archive(self):
        good = self.folder / "good"
        shutil.move(self.archive, good)
        self.apt(f'case "$1" in *one*) exit 100;; esac; cp {good} "$2"')
        self.assertEqual(upstream.obtain_base().identity, f"sha256 {self.sha256}")
        self.assertEqual(list(self.archive.parent.iterdir()), [self.archive])

    def test_apt_that_hangs(self):
        good = self.folder / "good"
        shutil.move(self.archive, good)
        self.apt(f'case "$1" in *one*) echo half > "$2"; exec sleep 100;; esac; cp {good} "$2"')
        with mock.patch.object(download, "STALL_SECONDS", 0.5):
            self.assertEqual(upstream.obtain_base().identity, f"sha256 {self.sha256}")
        self.assertEqual(list(self.archive.parent.iterdir()), [self.archive])

    def test_base_beside_the_checkouts_files(self):
        """As in an unpacked source archive."""
        (self.repo / "base").mkdir()
        shutil.move(self.archive, self.repo / "base")
        with mock.patch.object(upstream, "fetch", side_effect=AssertionError), mock.patch.dict(os.environ):
            os.environ.pop("XDG_CACHE_HOME")
            self.assertEqual(upstream.obtain_base().path, self.repo / "base" / self.archive.name)
            self.fork()
        self.assertIn("hook();", (self.source / UPSTREAM).read_text())


class Web(http.server.BaseHTTPRequestHandler):
    """Serves self.server.files, whole or broken. The first part of a path says how."""

    def do_GET(self):
        how, _, name = self.path.lstrip("/").partition("/")
        self.server.asked.append(how)
        if how == "redirect":
            self.send_response(302)
            self.send_header("Location", f"/good/{name}")
            self.end_headers()
            return
        content = self.server.files.get(name)
        if how == "404" or content is None:
            self.send_error(404)
            return
        if how == "silent":
            self.server.ends.wait(60)
            return
        self.send_response(200)
        if how not in ("unsized", "endless"):
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if how == "endless":
            with contextlib.suppress(OSError):
                while not self.server.ends.is_set():
                    self.wfile.write(content)
        elif how == "trickling":
            for byte in content:
                if self.server.ends.wait(0.05):
                    break
                with contextlib.suppress(OSError):
                    self.wfile.write(bytes([byte]))
        elif how in ("truncated", "hanging", "unsized"):
            self.wfile.write(content[: len(content) // 2])
            if how == "hanging":
                self.server.ends.wait(60)
        else:
            self.wfile.write(content)

    def log_message(self, *_):
        pass


class Sources(Trees):
    """The sources of UPSTREAM, served by 127.0.0.1 and broken in turn. APT has no archive."""

    def setUp(self):
        super().setUp()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
        server.daemon_threads = True
        server.ends, server.asked, server.files = threading.Event(), [], {"base": self.archive.read_bytes()}
        thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02))
        thread.start()
        for cleanup in (thread.join, server.server_close, server.shutdown, server.ends.set):
            self.addCleanup(cleanup)
        self.server = server
        self.at = f"http://127.0.0.1:{server.server_port}"
        self.archive.unlink()
        self.said = []
        for module, name, value in (
            (upstream, "apt_archives", mock.Mock(side_effect=Failure("APT is configured with no archive"))),
            (upstream, "say", self.said.append), (download, "STALL_SECONDS", 0.5),
        ):  # fmt: skip
            change = mock.patch.object(module, name, value)
            change.start()
            self.addCleanup(change.stop)
        # A proxy would be asked for 127.0.0.1.
        change = mock.patch.dict(os.environ, {"no_proxy": "*"})
        change.start()
        self.addCleanup(change.stop)

    def repacked(self, name="mysql-server-mysql-9.7.2", without=(), more=(), changed=(), compress="xz"):
        """The bytes of an archive with the base's files in another order and under another top folder."""
        result, entries = io.BytesIO(), dict(more)
        with tarfile.open(fileobj=io.BytesIO(self.server.files["base"])) as tar:
            for member in tar:
                entries[member.name.partition("/")[2]] = tar.extractfile(member).read()
        entries |= dict(changed)
        with tarfile.open(fileobj=result, mode=f"w:{compress}", format=tarfile.PAX_FORMAT,
                          pax_headers={"comment": "008e"}) as tar:  # fmt: skip
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o775
            tar.addfile(folder)
            for inner in sorted(entries.keys() - set(without), reverse=True):
                entry = tarfile.TarInfo(f"{name}/{inner}")
                entry.size, entry.mode, entry.mtime, entry.uname = len(entries[inner]), 0o775, 12345, "root"
                tar.addfile(entry, io.BytesIO(entries[inner]))
        return result.getvalue()

    def test_first_source(self):
        self.sources = [f"{self.at}/good/base", f"{self.at}/404/base"]
        self.assertEqual(upstream.obtain_base().identity, f"sha256 {self.sha256}")
        self.assertEqual(list(self.archive.parent.iterdir()), [self.archive])
        upstream.obtain_base()
        self.assertEqual(self.server.asked, ["good"])

    def test_redirect(self):
        self.sources = [f"{self.at}/redirect/base"]
        self.assertEqual(upstream.obtain_base().identity, f"sha256 {self.sha256}")

    def test_each_failure_goes_on_to_the_next_source(self):
        other = self.folder / "other.tar.gz"
        make_archive(other, version=(9, 7), files={"MYSQL_VERSION": VERSION.format(9, 7), "sql/main.cc": "other\n"})
        self.server.files |= {"other": other.read_bytes(), "text": b"<html>not found</html>\n"}
        self.server.files["changed"] = self.repacked(changed={"sql/main.cc": b"int main() { return 1; }\n"})
        with socket.socket() as unused:
            # Bound and not listening: connections are refused.
            unused.bind(("127.0.0.1", 0))
            for source, reason in (
                ("404/base", "the server answered 404 Not Found"),
                ("truncated/base", f"truncated: {self.bytes // 2} of {self.bytes} bytes"),
                ("unsized/base", "not a complete MySQL source archive"),
                ("good/text", "not a complete MySQL source archive"),
                ("good/other", f"it has other files: their digest is {upstream.files_digest_of_archive(other)}"),
                ("good/changed", "it has other files"),
                ("endless/base", "it has more than"),
                ("silent/base", "in 0.5 s"),
                ("hanging/base", "in 0.5 s"),
                ("trickling/base", "in 0.5 s"),
                (f"http://127.0.0.1:{unused.getsockname()[1]}/base", "Connection refused"),
                ("http://", "no host given"),
            ):
                with self.subTest(source):
                    self.said.clear()
                    url = source if source.startswith("http:") else f"{self.at}/{source}"
                    self.sources = [url, f"{self.at}/good/base"]
                    begin = time.monotonic()
                    self.assertEqual(upstream.obtain_base().identity, f"sha256 {self.sha256}")
                    self.assertLess(time.monotonic() - begin, 15)
                    told = [line for line in self.said if line.startswith(f"{url}: ")]
                    self.assertEqual(len(told), 1, self.said)
                    self.assertIn(reason, told[0])
                    self.assertNotIn("\n", told[0])
                    self.assertEqual(list(self.archive.parent.iterdir()), [self.archive])
                    self.archive.unlink()

    def test_all_fail(self):
        self.sources = [f"{self.at}/{how}/base" for how in ("404", "truncated", "silent")]
        self.refused(upstream.obtain_base, "APT: APT is configured with no archive",
                     f"{self.sources[0]}: the server answered 404 Not Found", f"{self.sources[1]}: truncated",
                     f"{self.sources[2]}: the server sent less than", "SPILLWAY_UPSTREAM",
                     str(self.archive))  # fmt: skip
        self.assertEqual(list(self.archive.parent.iterdir()), [])

    def test_full_disk_ends_the_command(self):
        self.sources = [f"{self.at}/good/base"] * 2
        full = mock.patch.object(download.Download, "write", side_effect=OSError(errno.ENOSPC, "No space left"))
        with full, self.assertRaisesRegex(OSError, "No space left"):
            upstream.obtain_base()
        self.assertEqual(self.server.asked, ["good"])
        self.assertEqual(list(self.archive.parent.iterdir()), [])

    def test_interrupted(self):
        self.sources = [f"{self.at}/hanging/base"]
        interrupted = mock.patch.object(upstream, "download", side_effect=KeyboardInterrupt)
        with interrupted, self.assertRaises(KeyboardInterrupt):
            upstream.obtain_base()
        self.assertEqual(list(self.archive.parent.iterdir()), [])

    def test_other_packing_of_the_same_files(self):
        """An archive as GitHub makes it of a tag: without what upstream's packer adds."""
        self.server.files["tag"] = self.repacked()
        self.sources = [f"{self.at}/404/base", f"{self.at}/good/tag"]
        base = upstream.obtain_base()
        self.assertEqual(base.identity, f"files {self.files}")
        self.assertTrue(base.is_pinned)
        upstream.fork_tree(base)
        self.assertIn("hook();", (self.source / UPSTREAM).read_text())
        before = self.times()
        self.fork()
        self.assertEqual(self.times(), before)
        self.assertEqual(self.server.asked, ["404", "good"])

    def test_what_the_packer_adds_is_not_taken_unchecked(self):
        self.server.files["release"] = self.repacked(more={"sql/sql_yacc.cc": b"evil\n", "Docs/INFO_SRC": b"x\n"})
        self.sources = [f"{self.at}/good/release"]
        self.fork()
        for place in ("stock", "fork"):
            self.assertFalse((self.build / place / "source/sql/sql_yacc.cc").exists())
            self.assertFalse((self.build / place / "source/Docs/INFO_SRC").exists())

    def test_files_more_less_and_links(self):
        self.server.files["more"] = self.repacked(more={"sql/CMakeLists.txt": b"evil\n"})
        self.server.files["less"] = self.repacked(without=["sql/main.cc"])
        self.sources = [f"{self.at}/good/more", f"{self.at}/good/less"]
        self.refused(upstream.obtain_base, *(f"{source}: it has other files" for source in self.sources))
        linked = self.folder / "linked.tar"
        linked.write_bytes(self.repacked(compress=""))
        with tarfile.open(linked, "a") as tar:
            entry = tarfile.TarInfo("mysql-server-mysql-9.7.2/sql/link.cc")
            entry.type, entry.linkname = tarfile.SYMTYPE, "main.cc"
            tar.addfile(entry)
        self.server.files["linked"] = linked.read_bytes()
        self.bytes = len(linked.read_bytes())
        self.sources = [f"{self.at}/good/linked"]
        self.refused(upstream.obtain_base, "neither a file nor a folder: mysql-server-mysql-9.7.2/sql/link.cc")

    def test_tree_that_differs_from_what_was_read_in_the_archive(self):
        self.server.files["tag"] = self.repacked()
        self.sources = [f"{self.at}/good/tag"]
        base = upstream.obtain_base()
        unpack = upstream.unpack

        def another(archive, target):
            unpack(archive, target)
            (target / "sql/more.cc").write_text("evil\n")

        with mock.patch.object(upstream, "unpack", another):
            self.refused(lambda: upstream.stock_tree(base), "do not have the digest")
        self.assertFalse((self.build / "stock/source").exists())

    def test_damaged_in_the_cache(self):
        self.server.files["tag"] = self.repacked()
        self.sources = [f"{self.at}/good/tag"]
        path = upstream.obtain_base().path
        path.write_bytes(self.repacked(changed={"sql/main.cc": b"other\n"}))
        self.refused(upstream.obtain_base, str(path), "Remove it", "SPILLWAY_UPSTREAM")
        path.write_bytes(self.server.files["tag"][:-10])
        self.refused(upstream.obtain_base, str(path), "not a complete")

    def test_digest_is_that_of_the_documented_command(self):
        self.server.files["tag"] = self.repacked(more={"sql/sql_yacc.h": b"made\n", "Docs/INFO_SRC": b"made\n"})
        archive, tree = self.folder / "tag.tar.xz", self.folder / "tree"
        archive.write_bytes(self.server.files["tag"])
        upstream.unpack(archive, tree)
        command = upstream.files_digest.__doc__.split("same:\n", 1)[1]
        printed = subprocess.run(["sh", "-c", command], cwd=tree, capture_output=True, text=True, check=True).stdout
        self.assertEqual(printed.split()[0], self.files)
        self.assertEqual(upstream.files_digest_of_tree(tree, tree), self.files)
        self.assertEqual(upstream.files_digest_of_archive(archive), self.files)

    def test_order_is_of_bytes(self):
        names = ["b", "a/b", "a.b", "\u00e9", "a", "\udcff"]
        expected = b"".join(b"0  " + name + b"\0" for name in sorted(map(os.fsencode, names)))
        self.assertEqual(upstream.files_digest(dict.fromkeys(names, "0")), hashlib.sha256(expected).hexdigest())


class Space(Trees):
    def test_for_a_build(self):
        self.refused(lambda: self.space(3), "the build build/fork/release needs 4096 MiB", "3072 MiB are free")
        self.space(5)

    def test_a_build_that_has_begun_has_its_space(self):
        (self.build / "fork/release").mkdir(parents=True)
        (self.build / "fork/release/build.ninja").touch()
        self.space(1)

    def space(self, gib):
        status = mock.Mock(f_bavail=gib << 18, f_frsize=4096)
        with mock.patch.object(os, "statvfs", lambda _: status):
            upstream.need_space_for_build("fork", "release")


class Fork(Trees):
    def test_patched_and_linked(self):
        self.fork()
        self.assertIn("hook();", (self.source / UPSTREAM).read_text())
        self.assertNotIn("hook();", (self.build / "stock/source" / UPSTREAM).read_text())
        self.assertEqual((self.source / "mysql-test/suite/spillway/t/a.test").read_text(), "SELECT 2;\n")
        self.assertEqual((self.source / "mysql-test/suite/sys_vars/t/new_basic.test").read_text(), "SELECT 3;\n")
        self.assertFalse((self.source / "mysql-test/upstream.list").exists())

    def test_nothing_to_do_touches_nothing(self):
        self.fork()
        before = self.times()
        self.fork()
        self.assertEqual(self.times(), before)

    def test_changed_patch_touches_one_file(self):
        self.fork()
        before = self.times()
        self.patches = [patch(DIFF.replace("hook();", "hook(1);"))]
        self.fork()
        changed = {path for path, time in self.times().items() if before[path] != time}
        self.assertEqual(changed, {self.source / UPSTREAM})
        self.assertIn("hook(1);", (self.source / UPSTREAM).read_text())

    def test_header_of_a_patch_touches_nothing(self):
        self.fork()
        before = self.times()
        self.patches[0].header += "\nSize-Reason: none"
        self.fork()
        self.assertEqual(self.times(), before)

    def test_removed_patch_gives_the_file_back_as_new(self):
        self.fork()
        before = self.times()[self.source / UPSTREAM]
        self.patches = []
        self.fork()
        self.assertEqual((self.source / UPSTREAM).read_text().splitlines(), LINES)
        # The file is newer than an object made from the patched one, so that it is compiled.
        self.assertGreater(self.times()[self.source / UPSTREAM], before)

    def test_hand_edit_is_not_lost(self):
        self.fork()
        (self.source / UPSTREAM).write_text("edited\n")
        self.refused(self.fork, UPSTREAM, "not as it was written", "make clean-source")
        self.assertEqual((self.source / UPSTREAM).read_text(), "edited\n")

    def test_edit_of_a_file_without_a_patch_is_seen(self):
        self.fork()
        (self.source / "sql/main.cc").write_text("int main() { return 1; }\n")
        self.refused(self.fork, "build/fork/source", "sql/main.cc", "make clean-source")
        self.assertIn("return 1", (self.source / "sql/main.cc").read_text())

    def test_edit_of_the_stock_tree_is_seen(self):
        self.fork()
        (self.build / "stock/source/sql/main.cc").write_text("int main() { return 1; }\n")
        self.refused(self.fork, "build/stock/source", "sql/main.cc", "make clean-source")

    def test_edit_that_keeps_size_and_time_is_seen(self):
        """As after rsync -t, cp -p or touch -r."""
        self.fork()
        for place in ("stock", "fork"):
            path = self.build / place / "source/sql/main.cc"
            before, status = path.read_text(), path.stat()
            path.write_text(before.replace("main", "niam"))
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
            self.assertEqual(path.stat().st_size, status.st_size)
            self.refused(self.fork, f"build/{place}/source", "sql/main.cc", "make clean-source")
            path.write_text(before)
            self.fork()

    def test_archive_that_changed_but_for_its_size_and_time(self):
        self.fork()
        status = self.archive.stat()
        content = bytearray(self.archive.read_bytes())
        content[-1] ^= 1
        self.archive.write_bytes(content)
        os.utime(self.archive, ns=(status.st_atime_ns, status.st_mtime_ns))
        self.refused(self.fork, "SHA-256")

    def test_edit_is_not_replaced_by_another_base(self):
        self.fork()
        for place in ("stock", "fork"):
            path = self.build / place / "source/sql/main.cc"
            before = path.read_bytes()
            path.write_text("mine\n")
            another = self.folder / "another"
            shutil.copytree(self.build / "stock/source", another, dirs_exist_ok=True)
            (another / "sql/another.cc").write_text(place)
            with mock.patch.dict(os.environ, {"SPILLWAY_UPSTREAM": str(another)}):
                self.refused(self.fork, "sql/main.cc", "make clean-source")
            self.assertEqual(path.read_text(), "mine\n")
            path.write_bytes(before)
            upstream.Tree(place).write_listing()
            shutil.rmtree(another)

    def test_repository_in_a_tree_is_not_removed(self):
        self.fork()
        (self.source / ".git").mkdir()
        (self.source.parent / "source.json").write_text("{}")
        self.refused(self.fork, ".git")

    def test_missing_and_new_files_are_seen(self):
        self.fork()
        (self.source / "sql/main.cc").unlink()
        (self.source / "sql/added.cc").touch()
        self.refused(self.fork, "sql/main.cc", "sql/added.cc")

    def test_other_times_of_the_same_content(self):
        self.fork()
        for place in ("stock", "fork"):
            for name in (UPSTREAM, "sql/main.cc"):
                os.utime(self.build / place / "source" / name)
        with mock.patch.object(upstream, "unpack", side_effect=AssertionError):
            self.fork()
        # They are recorded: the content is not read again.
        with mock.patch.object(upstream, "content_digest", side_effect=AssertionError):
            self.fork()

    def test_clock_that_was_set_back(self):
        self.fork()
        late_ns = (self.source / UPSTREAM).stat().st_mtime_ns + 10**15
        log = self.build / "fork/release/.ninja_log"
        log.parent.mkdir()
        log.touch()
        os.utime(log, ns=(late_ns, late_ns))
        self.patches = [patch(DIFF.replace("hook();", "hook(1);"))]
        self.fork()
        self.assertGreater((self.source / UPSTREAM).stat().st_mtime_ns, late_ns)
        # The same with a whole new tree.
        make_archive(self.archive, files={"MYSQL_VERSION": VERSION.format(9, 7), "sql/main.cc": "int main() {}\n",
                                          UPSTREAM: "".join(f"{line}\n" for line in LINES),
                                          "mysql-test/suite/sys_vars/t/x": ""})  # fmt: skip
        self.sha256, self.bytes = sha256_of(self.archive), self.archive.stat().st_size
        self.fork()
        self.assertGreater((self.source / "sql/main.cc").stat().st_mtime_ns, late_ns)
        self.fork()

    def test_file_older_than_the_one_that_it_replaces(self):
        self.fork()
        late_ns = (self.source / UPSTREAM).stat().st_mtime_ns + 10**15
        os.utime(self.source / UPSTREAM, ns=(late_ns, late_ns))
        self.patches = [patch(DIFF.replace("hook();", "hook(1);"))]
        self.fork()
        self.assertGreater((self.source / UPSTREAM).stat().st_mtime_ns, late_ns)

    def test_stamps_that_cannot_be_read(self):
        """Damaged records, as by a full disk: the tree is checked or made anew."""
        self.fork()
        records = [*self.build.glob("*.json"), *self.build.glob("*/source.json"), *self.build.glob("*/source.digests")]
        self.assertEqual(len(records), 5)
        for damaged in (*([path] for path in records), records):
            for path in damaged:
                path.write_text('{"base": ')
            self.fork()
            self.assertIn("hook();", (self.source / UPSTREAM).read_text())

    def test_patch_at_another_line(self):
        """The pinned base has each hunk at its line. A tree of the user's may have more lines above."""
        moved = {"MYSQL_VERSION": VERSION.format(9, 7), UPSTREAM: "".join(f"{line}\n" for line in ["new", *LINES])}
        moved["mysql-test/suite/sys_vars/t/old.test"] = "SELECT 1;\n"
        make_archive(self.archive, files=moved)
        with mock.patch.dict(os.environ, {"SPILLWAY_UPSTREAM": str(self.archive)}):
            with mock.patch.object(upstream, "say") as say:
                self.fork()
            self.assertIn("1 of them at other lines", "".join(map(str, say.mock_calls)))
            self.assertEqual((self.source / UPSTREAM).read_text().splitlines()[21], "  hook();")
        self.sha256, self.bytes = sha256_of(self.archive), self.archive.stat().st_size
        shutil.rmtree(self.build / "fork")
        shutil.rmtree(self.build / "stock")
        self.refused(self.fork, NAME, "belongs at 19")

    def test_patch_that_does_not_apply_stops(self):
        self.fork()
        before = self.times()
        self.patches = [patch(DIFF.replace(" line 21", " line twenty-one"))]
        self.refused(self.fork, NAME, "does not apply", "18")
        self.assertEqual(self.times(), before)

    def test_edit_while_writing_was_interrupted(self):
        self.fork()
        self.patches = [patch(DIFF.replace("hook();", "hook(1);"))]
        interrupted = mock.patch.object(Path, "write_bytes", side_effect=KeyboardInterrupt)
        with interrupted, self.assertRaises(KeyboardInterrupt):
            self.fork()
        (self.source / "sql/main.cc").write_text("int main() { return 1; }\n")
        for _ in range(2):
            self.refused(self.fork, "sql/main.cc")

    def test_missing_file_where_the_listing_is_lost(self):
        self.fork()
        (self.build / "fork/source.digests").unlink()
        (self.source / "sql/main.cc").unlink()
        self.refused(self.fork, "sql/main.cc")

    def test_interrupted_while_writing(self):
        self.fork()
        self.patches = [patch(DIFF.replace("hook();", "hook(1);"))]
        write = Path.write_bytes

        def interrupted(path, content):
            write(path, content[:10])
            raise KeyboardInterrupt

        with mock.patch.object(Path, "write_bytes", interrupted), self.assertRaises(KeyboardInterrupt):
            self.fork()
        self.fork()
        self.assertIn("hook(1);", (self.source / UPSTREAM).read_text())

    def test_removed_test_is_unlinked(self):
        self.fork()
        (self.repo / "mysql-test/suite/sys_vars/t/new_basic.test").unlink()
        self.fork()
        self.assertFalse((self.source / "mysql-test/suite/sys_vars/t/new_basic.test").is_symlink())

    def test_test_of_upstreams_name_is_refused(self):
        (self.repo / "mysql-test/suite/sys_vars/t/old.test").write_text("ours\n")
        self.refused(self.fork, "old.test", "exists upstream")

    def test_bad_base_leaves_the_trees_as_they_were(self):
        self.fork()
        before = self.times()
        other = self.folder / "other.tar.gz"
        changed = "".join(f"{line}\n" for line in LINES).replace("line 19\n", "line nineteen\n")
        make_archive(other, files={"MYSQL_VERSION": VERSION.format(9, 7), UPSTREAM: changed})
        with mock.patch.dict(os.environ, {"SPILLWAY_UPSTREAM": str(other)}):
            self.refused(self.fork, NAME, "does not match the base")
            other.write_bytes(other.read_bytes()[:-10])
            self.refused(self.fork, str(other))
        self.fork()
        self.assertEqual(self.times(), before)

    def test_new_base_looks_newer_than_the_last_build(self):
        self.fork()
        last = max(self.times().values())
        make_archive(self.archive)
        with mock.patch.dict(os.environ, {"SPILLWAY_UPSTREAM": str(self.folder / "other.tar.gz")}):
            make_archive(self.folder / "other.tar.gz", files={
                "MYSQL_VERSION": VERSION.format(9, 7), UPSTREAM: "".join(f"{line}\n" for line in LINES),
                "sql/main.cc": "int main() { return 3; }\n", "mysql-test/suite/sys_vars/t/x": "", })  # fmt: skip
            self.fork()
        self.assertGreater(self.times()[self.source / "sql/main.cc"], last)


class Rebase(Trees):
    """Move the queue from the pinned archive to another base, as BUILD.md describes it."""

    def setUp(self):
        super().setUp()
        for name, value in (("EDIT", self.build / "patch-edit"), ("REPO", self.repo), ("say", lambda text: None)):
            change = mock.patch.object(patchqueue, name, value)
            change.start()
            self.addCleanup(change.stop)
        moved = {"MYSQL_VERSION": VERSION.format(9, 7), UPSTREAM: "".join(f"{line}\n" for line in ["new", *LINES])}
        self.new = self.folder / "new.tar.gz"
        make_archive(self.new, files=moved)

    def test_to_an_archive(self):
        upstream.rebase(self.archive, self.new, {})
        self.assertEqual((self.build / "patch-edit" / UPSTREAM).read_text().splitlines()[21], "  hook();")

    def test_to_a_tree_when_the_build_has_met_it_already(self):
        """A build on the tree has failed at the patches before."""
        tree = self.folder / "tree"
        upstream.unpack(self.new, tree)
        text = (tree / UPSTREAM).read_text()
        (tree / UPSTREAM).write_text(text.replace("line 18\n", "line eighteen\n"))
        with mock.patch.dict(os.environ, {"SPILLWAY_UPSTREAM": str(tree)}):
            self.refused(self.fork, NAME, "does not match the base", "upstream.py rebase")
        (tree / UPSTREAM).write_text(text)
        upstream.rebase(upstream.pinned_base().path, tree, {})
        self.assertEqual((self.build / "patch-edit" / UPSTREAM).read_text().splitlines()[21], "  hook();")

    def test_a_queue_for_another_base_leaves_nothing(self):
        self.refused(lambda: upstream.rebase(self.new, self.archive, {}), NAME)
        self.assertFalse((self.build / "patch-edit").exists())

    def test_absolute_names_in_an_archive(self):
        evil, target = self.folder / "evil.tar", self.folder / "target/MYSQL_VERSION"
        with tarfile.open(evil, "w") as tar:
            for name in (f"top/{target}", "top/../target/MYSQL_VERSION", "top/MYSQL_VERSION"):
                entry = tarfile.TarInfo(name)
                entry.size = len(VERSION)
                tar.addfile(entry, io.BytesIO(VERSION.encode()))
        self.refused(lambda: upstream.rebase(self.archive, evil, {}), "9.7")
        self.assertFalse(target.exists())

    def test_not_9_7(self):
        make_archive(self.new, version=(8, 4))
        self.refused(lambda: upstream.rebase(self.archive, self.new, {}), "8.4.2")


class Pin(unittest.TestCase):
    def test_this_repositorys_pin_is_complete(self):
        pin = upstream.read_pin()
        self.assertRegex(pin["sha256"], "^[0-9a-f]{64}$")
        self.assertRegex(pin["files_sha256"], "^[0-9a-f]{64}$")
        self.assertIn(pin["version"], pin["debian_file"])
        self.assertGreaterEqual(len(pin["sources"]), 4)
        for source in pin["sources"]:
            # Not snapshot's, whose address is a digest.
            if "/file/" not in source:
                self.assertIn(pin["version"], source)

    def test_missing_field(self):
        with tempfile.NamedTemporaryFile("w", suffix="UPSTREAM") as file:
            file.write("name=x\n")
            file.flush()
            with self.assertRaises(Failure) as caught:
                upstream.read_pin(Path(file.name))
            self.assertIn("sha256", str(caught.exception))


class Common(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "record.json"

    def test_path(self):
        common.check_path("/home/me/spillway-2.0_x")
        for path in ("/home/me/my spillway", "/home/me/#1", "/home/m$e", "/home/a'b", "/home/\u00e9"):
            with self.assertRaisesRegex(Failure, "characters"):
                common.check_path(path)

    def test_space(self):
        with self.assertRaises(Failure):
            common.need_space("/", 1 << 62, "a test")

    def test_a_full_disk_leaves_the_old_text(self):
        common.write_atomically(self.path, '{"a": 1}')
        full = OSError(28, "No space left")
        with mock.patch.object(common.os, "fsync", side_effect=full), self.assertRaises(OSError):
            common.write_atomically(self.path, '{"a": 2}')
        self.assertEqual(common.read_record(self.path), {"a": 1})
        self.assertEqual(list(self.path.parent.iterdir()), [self.path])

    def test_what_cannot_be_read_is_absent(self):
        for text in ('{"a": ', "", "[1]", "7"):
            self.path.write_text(text)
            self.assertEqual(common.read_record(self.path), {})
