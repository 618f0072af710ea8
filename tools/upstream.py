#!/usr/bin/env python3
"""Obtain the base and make the source trees below build/.

    upstream.py fetch              obtain and verify the base; print its path
    upstream.py tree stock|fork    make or update build/<tree>/source; with --flavor, fail if there is no space for a
                                   build of this flavor that has not begun yet
    upstream.py rebase NEW         move the patch queue from the pinned base to NEW, an archive or an unpacked tree:
                                   makes build/patch-edit, to be exported; --old OLD: the queue is for OLD instead;
                                   --moved OLD=NEW: a file that has another name in NEW, if the tool does not find it

build/stock/source is the unmodified base. build/fork/source is a copy of it with the patch queue applied and our
mysql-test files linked in. A tree is written anew only when the base changes. When the patches change, only the files
whose bytes change are written, so that a build compiles only these. If nothing is to do, no file is touched.

The base comes from $SPILLWAY_UPSTREAM (an archive or an unpacked tree), from the folder base/ of an unpacked source
archive (tools/dist.py), from the cache, or from the network, in this order. In the network the Debian archives that
this machine's APT is configured with are tried first, then the sources that UPSTREAM names.
"""

import argparse
import collections
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import zlib
from pathlib import Path

import patchqueue
from spillway.common import (
    BUILD,
    REPO,
    Failure,
    locked,
    main,
    need_space,
    read_record,
    say,
    sha256_of,
    write_atomically,
)
from spillway.download import download, download_by_apt

# Unpacked, 9.7.2 takes 1.3 GiB; this adds a tenth for file system overhead.
TREE_BYTES = 1450 << 20
# Size of build/<tree>/<flavor>, measured; most of it is precompiled headers and debug information.
BUILD_GIB = {"release": 4, "debug": 13, "asan": 13, "deploy": 6}
# -m: files get the time of unpacking. A file of another base must be newer than the objects made from the last one.
EXTRACT = ("tar", "-x", "-m", "--no-same-owner", "--no-same-permissions")
# The field "queue" in a tree's stamp while patches are written to the tree.
BEING_APPLIED = "being applied"
# What upstream's packer adds to the files of the tag: these are left out of the files' digest. A build does not take
# them: bison makes the parsers, and INFO_SRC is only for the reader.
MADE_BY_THE_PACKER = {"Docs/INFO_SRC", *(f"sql/{name}" for name in ("sql_yacc.h", "sql_yacc.cc", "sql_hints.yy.h",
                                                                    "sql_hints.yy.cc"))}  # fmt: skip


def read_pin(path=REPO / "UPSTREAM"):
    """The fields of the UPSTREAM file. "sources" is the list of its source lines."""
    lines = path.read_text().splitlines()
    fields = [line.split("=", 1) for line in lines if line and not line.startswith("#")]
    pin = dict(fields) | {"sources": [field[1] for field in fields if field[0] == "source"]}
    missing = {"name", "version", "sha256", "bytes", "debian_file", "files_sha256"} - pin.keys()
    if missing:
        raise Failure(f"{path} lacks {', '.join(sorted(missing))}")
    return pin


def cache_folder():
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError as error:
        raise Failure("this user has no home: set XDG_CACHE_HOME to the folder that takes the base") from error
    return cache / "spillway"


def pinned_name(pin):
    """The name of the archive with the pinned SHA-256, in the cache and in base/."""
    return Path(pin["debian_file"]).name


def repacked_name(pin):
    """The name of an archive with other bytes and the pinned files."""
    return f"{pin['name']}_{pin['version']}.files-{pin['files_sha256'][:12]}.tar.gz"


def other_ways(pin):
    return (
        "Other ways to the base: SPILLWAY_UPSTREAM=<a MySQL or Percona Server 9.7 archive or unpacked tree>, or the "
        f"pinned archive as the file {cache_folder() / pinned_name(pin)}"
    )


def apt_archives():
    """The archives that this machine's APT is configured with, in APT's order."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError) as error:
        raise Failure(f"APT does not tell its archives ({error})") from error
    if not listed:
        raise Failure("APT is configured with no archive")
    return list(dict.fromkeys(uri.rstrip("/") for uri in listed))


def verify(path, pin):
    """Fail unless the file at path is the pinned archive."""
    size = path.stat().st_size
    if size != int(pin["bytes"]):
        what = "truncated" if size < int(pin["bytes"]) else "another file"
        raise Failure(
            f"{path} is {what}: {size} bytes, {pin['bytes']} expected. Remove it and try again. {other_ways(pin)}"
        )
    digest = sha256_of(path)
    if digest != pin["sha256"]:
        raise Failure(
            f"{path} has SHA-256 {digest}, {pin['sha256']} expected. Remove it and try again. {other_ways(pin)}"
        )


def files_digest(digests):
    """The digest of a base that does not depend on the packing. digests: the SHA-256 of each file, by its name.

    It is the SHA-256 of one record per file, `<SHA-256 in hexadecimal><two spaces><name><NUL>`, in the order of the
    names' bytes. A name is relative to the top folder. Modes, times, owners and folders do not count. The files
    MADE_BY_THE_PACKER are left out. All other files count: the build and the tests can read any of them. A base with
    links or other special files has no such digest. In an unpacked tree this prints the same:

        find . -type f -printf '%P\\0' | grep -zvxE 'Docs/INFO_SRC|sql/sql_(yacc|hints\\.yy)\\.(h|cc)' |
            LC_ALL=C sort -z | xargs -0 sha256sum -z | sha256sum
    """
    names = sorted((name for name in digests if name not in MADE_BY_THE_PACKER), key=os.fsencode)
    records = (f"{digests[name]}  {name}\0" for name in names)
    return hashlib.sha256(b"".join(map(os.fsencode, records))).hexdigest()


def files_digest_of_archive(path):
    """The files' digest of an archive, without unpacking it. Fails if the archive is not complete, or not a base."""
    check_archive(path)
    digests = {}
    try:
        with tarfile.open(path) as tar:
            for member in tar:
                if member.isfile():
                    digest = hashlib.file_digest(tar.extractfile(member), "sha256").hexdigest()
                    digests[member.name.partition("/")[2]] = digest
                elif not member.isdir():
                    raise Failure(f"{path} has something that is neither a file nor a folder: {member.name}")
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise Failure(f"{path} is not a complete MySQL source archive: {error}") from error
    return files_digest(digests)


def files_digest_of_tree(tree, where):
    """The files' digest of an unpacked base; where: its name in messages."""
    for name, status in entries(tree):
        if not stat.S_ISREG(status.st_mode):
            raise Failure(f"{where} has something that is neither a file nor a folder: {name}")
    return files_digest({name: sha256_of(tree / name) for name, _ in entries(tree)})


def fetch(pin, folder):
    """Download the base into folder from the first source that has it. A source that fails is reported, and the next
    is tried. A failed download leaves no file."""
    folder.mkdir(parents=True, exist_ok=True)
    need_space(folder, int(pin["bytes"]), "the download of the base")
    partial = folder / f"{pinned_name(pin)}.{os.getpid()}.part"
    failed = {}

    def fails(source, failure):
        failed[source] = " ".join(str(failure).split())
        say(f"{source}: {failed[source]}")

    sources = [(url, download) for url in pin["sources"]]
    try:
        sources = [(f"{archive}/{pin['debian_file']}", download_by_apt) for archive in apt_archives()] + sources
    except Failure as failure:
        fails("APT", failure)
    for url, get in sources:
        say(f"downloading the base, {int(pin['bytes']) >> 20} MiB, from {url}")
        try:
            get(url, partial, pin)
            return keep_download(partial, pin, folder)
        except Failure as failure:
            fails(url, failure)
        finally:
            partial.unlink(missing_ok=True)
    reasons = "".join(f"\n  {source}: {reason}" for source, reason in failed.items())
    raise Failure(f"no source of the base could be used:{reasons}\n{other_ways(pin)}")


def keep_download(partial, pin, folder):
    """Check a download, and move it into folder under the name for its content. Fails if it is not the base."""
    sha256 = sha256_of(partial)
    if sha256 == pin["sha256"]:
        partial.rename(folder / pinned_name(pin))
    else:
        digest = files_digest_of_archive(partial)
        if digest != pin["files_sha256"]:
            raise Failure(f"it has other files: their digest is {digest}, and UPSTREAM has {pin['files_sha256']}")
        say(f"other bytes (SHA-256 {sha256}), and the files of UPSTREAM: taken")
        partial.rename(folder / repacked_name(pin))
    return find_base(folder, pin)


class Base:
    """The path and the identity of a base.

    path is an archive or a folder. identity changes whenever the content may have changed: it is the SHA-256 of an
    archive, the files' digest of a repacked archive, or a digest of the names, sizes and times in a folder. is_pinned:
    UPSTREAM names this digest. files: the files' digest that the tree has to have, if the archive has other bytes.
    """

    def __init__(self, path, identity, label, is_pinned=False, files=None):
        self.path = path
        self.identity = identity
        self.label = label
        self.is_pinned = is_pinned
        self.files = files


def known_digest(path, record, digest_of=sha256_of):
    """The digest of path. It is taken from record if path, size and times are those that it was computed for."""
    key = [str(path.resolve()), *state_of(path.stat())]
    known = read_record(record)
    if known.get("key") == key and "sha256" in known:
        return known["sha256"]
    digest = digest_of(path)
    record.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(record, json.dumps({"key": key, "sha256": digest}))
    return digest


def version_of(text, where):
    """The version, x.y.z, in the text of a MYSQL_VERSION file; fails unless it is 9.7.z."""
    fields = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    version = ".".join(fields.get(f"MYSQL_VERSION_{part}", "?") for part in ("MAJOR", "MINOR", "PATCH"))
    if not version.startswith("9.7."):
        raise Failure(f"{where} is version {version}; this fork builds on MySQL or Percona Server 9.7")
    return version


def version_of_tree(tree, where):
    """The version of a source tree; where: the name of the tree or archive in messages."""
    version_file = tree / "MYSQL_VERSION"
    if not version_file.is_file():
        raise Failure(f"{where} is not a MySQL source tree or archive: it has no MYSQL_VERSION")
    return version_of(version_file.read_text(), where)


def check_archive(path):
    """Fail unless the archive is complete and has a version that this fork builds on. Reads the whole archive."""
    command = ["tar", "-x", "-O", "--wildcards", "--no-wildcards-match-slash", "-f", str(path), "*/MYSQL_VERSION"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Failure(f"{path} is not a complete MySQL source archive: {result.stderr.strip()[-400:]}")
    version_of(result.stdout, path)


def entries(root, inside=""):
    """Each file and link of a tree, except in the top folder .git: (path relative to the root, status)."""
    with os.scandir(f"{root}/{inside}") as found:
        for entry in found:
            name = f"{inside}{entry.name}"
            if not entry.is_dir(follow_symlinks=False):
                yield name, entry.stat(follow_symlinks=False)
            elif name != ".git":
                yield from entries(root, f"{name}/")


def state_of(status):
    """What differs after a file was written: its size and times. A user can set the time of modification (touch -r,
    rsync -t), but not that of the last change (ctime)."""
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def states(root, without=()):
    """state_of() each file of a tree, by name."""
    return {name: state_of(status) for name, status in entries(root) if name not in without}


def content_digest(path):
    """The SHA-256 of a file, or the target of a link."""
    return f"link {os.readlink(path)}" if os.path.islink(path) else sha256_of(path)


def tree_digest(root):
    lines = sorted(f"{root}/{name} {state}\n" for name, state in states(root).items())
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


def users_base(path):
    """The base that SPILLWAY_UPSTREAM names. A link is resolved here, so that all other code gets its target."""
    path = path.resolve()
    if path.is_dir():
        version = version_of_tree(path, path)
        if not (path / "storage/innobase").is_dir():
            raise Failure(f"{path} is not a MySQL source tree: it has no storage/innobase")
        if REPO.is_relative_to(path):
            raise Failure(f"this checkout lies in {path}, which it shall copy: move it out of there")
        return Base(path, "tree " + tree_digest(path), f"{path} ({version})")
    if path.is_file():
        if not tarfile.is_tarfile(path):
            raise Failure(f"{path} is neither a source tree nor a tar archive")
        return Base(path, "sha256 " + known_digest(path, BUILD / "users-base.json"), str(path))
    raise Failure(f"{path} does not exist; it is the path of an archive or an unpacked tree")


def obtain_base():
    """Find the base, download it if necessary, and verify it."""
    if named := os.environ.get("SPILLWAY_UPSTREAM"):
        return users_base(Path(os.path.expanduser(named)).absolute())
    return pinned_base()


def pinned_base():
    """The base that UPSTREAM names."""
    pin = read_pin()
    if base := find_base(REPO / "base", pin):
        return base
    cache = cache_folder()
    return find_base(cache, pin) or fetch(pin, cache)


def find_base(folder, pin):
    """The verified base in a folder, or None. An archive with the pinned SHA-256 is preferred."""
    label = f"{pin['name']} {pin['version']}"
    path = folder / pinned_name(pin)
    if path.exists():
        if path.stat().st_size != int(pin["bytes"]) or known_digest(path, BUILD / "pinned-base.json") != pin["sha256"]:
            verify(path, pin)
        return Base(path, "sha256 " + pin["sha256"], label, is_pinned=True)
    path = folder / repacked_name(pin)
    if path.exists():
        digest = known_digest(path, BUILD / "repacked-base.json", files_digest_of_archive)
        if digest != pin["files_sha256"]:
            raise Failure(
                f"the files in {path} have the digest {digest}, {pin['files_sha256']} expected. Remove it and try "
                f"again. {other_ways(pin)}"
            )
        return Base(path, "files " + digest, f"{label}, repacked", is_pinned=True, files=digest)
    return None


def unpack_base(base, target):
    """Unpack an archive as the new folder target. If only its files' digest is pinned, the tree has to have it, since
    tar and tarfile could read an archive differently; files that the digest leaves out are removed."""
    unpack(base.path, target)
    if base.files:
        if files_digest_of_tree(target, base.path) != base.files:
            raise Failure(f"the files unpacked from {base.path} do not have the digest {base.files}: remove it")
        for name in MADE_BY_THE_PACKER:
            (target / name).unlink(missing_ok=True)


def unpack(archive, target):
    """Unpack the top folder of a source archive as the new folder target."""
    whole = target.with_name(f"{target.name}.whole")
    whole.mkdir()
    # Without --strip-components: tar would take the rest of a name, or of a link's target, for an absolute path.
    command = [*EXTRACT, "-C", str(whole), "-f", str(archive)]
    result = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        raise Failure(f"{archive} could not be unpacked (truncated, or no space?): {result.stderr.strip()[-400:]}")
    tops = list(whole.iterdir())
    if len(tops) != 1 or tops[0].is_symlink() or not tops[0].is_dir():
        names = ", ".join(sorted(top.name for top in tops)[:5]) or "nothing"
        raise Failure(f"{archive} is not a MySQL source archive: it has not one top folder, but {names}")
    tops[0].rename(target)
    whole.rmdir()
    version_of_tree(target, archive)


def copy_tree(source, target):
    """Copy a folder, without its .git, to the new folder target. Hard links become separate files, so that a patch
    changes only one of them."""
    target.mkdir()
    pack = ["tar", "-c", "--hard-dereference", "--anchored", "--exclude=./.git", "-C", str(source), "."]
    # Errors go to a file: a full pipe without a reader would stop both tars.
    with (
        tempfile.TemporaryFile("w+", errors="replace") as said,
        subprocess.Popen(pack, stdout=subprocess.PIPE, stderr=said) as packing,
    ):
        unpacking = subprocess.Popen([*EXTRACT, "-C", str(target)], stdin=packing.stdout, stderr=said)
        # When unpacking has ended, packing gets a SIGPIPE.
        packing.stdout.close()
        unpacking.wait()
        packing.wait()
        said.seek(0)
        errors = said.read()
    if packing.returncode != 0 or unpacking.returncode != 0:
        raise Failure(f"copying {source} failed: {errors.strip()[-400:]}")


def check_entries(tree, base):
    """Fail if a base has a device, or a link that leads out of the tree, through which a later step could write there.
    Remove write permission of group and others, and set-user-ID and set-group-ID bits."""
    root = os.path.realpath(tree)
    names = collections.Counter(status.st_ino for _, status in entries(tree))
    for name, status in entries(tree):
        if stat.S_ISREG(status.st_mode) and status.st_nlink > names[status.st_ino]:
            raise Failure(f"{base} has a file that is one with a file outside of it: {name}")
    for folder, _, _ in os.walk(tree):
        os.chmod(folder, stat.S_IMODE(os.stat(folder).st_mode) & 0o755)
    for name, status in entries(tree):
        path = os.path.join(tree, name)
        if stat.S_ISLNK(status.st_mode):
            if not os.path.realpath(path).startswith(root + os.sep):
                raise Failure(f"{base} has a link that leads out of it: {name} -> {os.readlink(path)}")
        elif not stat.S_ISREG(status.st_mode):
            raise Failure(f"{base} has something that is neither a file nor a folder nor a link: {name}")
        elif stat.S_IMODE(status.st_mode) & ~0o755:
            os.chmod(path, stat.S_IMODE(status.st_mode) & 0o755)


def last_build_ns(tree):
    """When a build of this tree last wrote an object, from Ninja's log; 0 without a build."""
    return max((path.stat().st_mtime_ns for path in (BUILD / tree).glob("*/.ninja_log")), default=0)


def make_newer(path, than_ns):
    """Make sure that a file just written has a time after than_ns, also if the clock was set back. Otherwise Ninja
    would keep the objects that were made from the old content."""
    if os.lstat(path).st_mtime_ns <= than_ns:
        os.utime(path, ns=(than_ns + 10**9,) * 2, follow_symlinks=False)


class Tree:
    """A source tree, build/<name>/source. Beside it are source.json, its stamp, and source.digests, its listing with
    the digests of its files."""

    def __init__(self, name):
        self.name = name
        self.source = BUILD / name / "source"
        self.stamp_file = BUILD / name / "source.json"
        self.listing_file = BUILD / name / "source.digests"

    def stamp(self):
        """The base and the patches of the tree; empty if there is no tree, or if making it was interrupted."""
        return read_record(self.stamp_file) if self.source.is_dir() else {}

    def write_stamp(self, stamp):
        write_atomically(self.stamp_file, json.dumps(stamp, indent=1))

    def write_listing(self, without=(), root=None):
        """Record state and digest of each file in the tree; root: its place, if it is not in its final one yet."""
        root = root or self.source
        recorded = read_record(self.listing_file)
        files = {}
        for name, state in states(root, without).items():
            known = recorded.get(name, {})
            digest = known["digest"] if known.get("state") == state else content_digest(root / name)
            files[name] = {"state": state, "digest": digest}
        write_atomically(self.listing_file, json.dumps(files, indent=0))

    def differences(self, without=()):
        """The files that are missing, new or changed since write_listing(). Files of which only the times differ, for
        example in a copy of the checkout, are not among them; they are recorded anew."""
        recorded, now = read_record(self.listing_file), states(self.source, without)
        changed, touched = [], False
        for name in recorded.keys() | now.keys():
            if name not in recorded or name not in now:
                changed.append(name)
            elif recorded[name]["state"] != now[name]:
                if recorded[name]["digest"] == content_digest(self.source / name):
                    touched = True
                else:
                    changed.append(name)
        if touched and not changed:
            self.write_listing(without)
        return sorted(changed)

    def check_not_edited(self):
        """Fail if the tree, which is about to be removed, was edited or has a git repository."""
        if not self.source.exists():
            return
        if (self.source / ".git").exists():
            raise Failure(f"{self.source.relative_to(REPO)} has a .git, which is not this command's: move it away")
        stamp = read_record(self.stamp_file)
        # If applying patches was interrupted, the patched files can be old or new.
        ignored = set(stamp.get("files", ())) if stamp.get("queue") == BEING_APPLIED else set()
        if not read_record(self.listing_file):
            return
        if changed := [name for name in self.differences() if name not in ignored and not self.is_our_link(name)]:
            raise Failure(changed_text(self, changed))

    def is_our_link(self, name):
        """Whether link_tests() made this link."""
        path = self.source / name
        return path.is_symlink() and os.readlink(path).startswith(f"{REPO}/")

    def lay_down(self, base, fill, accept=lambda fresh: None):
        """Replace the tree by the one that fill() writes. If fill() or accept() fails, the old tree stays.

        The stamp of the old tree is removed first, so that an interrupted replacement is repeated. Fails if the old
        tree was edited."""
        self.check_not_edited()
        for folder in (self.source, self.source.parent):
            if folder.is_symlink():
                raise Failure(f"{folder} is a link, and a source tree is made in this checkout: remove the link")
        # Other users cannot enter it before its files are checked.
        private = self.source.with_name("source.new")
        fresh = private / "source"
        shutil.rmtree(private, ignore_errors=True)
        private.parent.mkdir(parents=True, exist_ok=True)
        private.mkdir(mode=0o700)
        try:
            need_space(private, TREE_BYTES, f"the source tree {self.source.relative_to(REPO)}")
            fill(fresh)
            check_entries(fresh, base.label)
            accept(fresh)
            last_ns = last_build_ns(self.name)
            for name, _ in entries(fresh):
                make_newer(fresh / name, last_ns)
            self.stamp_file.unlink(missing_ok=True)
            if self.source.exists():
                self.source.rename(private / "old")
            self.write_listing(root=fresh)
            fresh.rename(self.source)
        finally:
            shutil.rmtree(private, ignore_errors=True)


def stock_tree(base, accept=lambda fresh: None):
    """Make build/stock/source the unmodified base. If accept() fails for the base, the old tree stays."""
    tree = Tree("stock")
    if tree.stamp().get("base") == base.identity and read_record(tree.listing_file):
        if changed := tree.differences():
            raise Failure(changed_text(tree, changed))
        return tree.source
    say(f"unpacking the base, {base.label}")
    if base.path.is_dir():
        tree.lay_down(base, lambda fresh: copy_tree(base.path, fresh), accept)
    else:
        tree.lay_down(base, lambda fresh: unpack_base(base, fresh), accept)
    tree.write_stamp({"base": base.identity})
    return tree.source


def changed_text(tree, names):
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return (
        f"{tree.source.relative_to(REPO)} is not as it was written; changed, new or missing: {', '.join(names[:5])}"
        f"{more}. Take a change that you need into a patch (patches/README.md, 'Editing a hook'); then make "
        "clean-source, and the next build writes the tree anew"
    )


def link_tests(tree):
    """Link our mysql-test files into the tree: our own suites as folders, single tests in upstream's suites as files.

    Returns the links, relative to the tree."""
    links = []
    ours = REPO / "mysql-test"
    for folder, folders, files in os.walk(ours):
        place = tree / Path(folder).relative_to(REPO)
        for name in list(folders):
            if not (place / name).is_dir() or (place / name).is_symlink():
                folders.remove(name)
                links.append((place / name, Path(folder) / name))
        links += [(place / name, Path(folder) / name) for name in files if place != tree / "mysql-test"]
    for link, target in links:
        if link.is_symlink():
            if os.readlink(link) == str(target):
                continue
            link.unlink()
        elif link.exists():
            raise Failure(f"{target.relative_to(REPO)} exists upstream; a file of ours needs a path of its own")
        link.symlink_to(target)
    return [str(link.relative_to(tree)) for link, _ in links]


def fork_tree(base):
    """Make build/fork/source the base plus the patch queue plus our tests."""
    queue = patchqueue.Queue.load()
    # The pinned base is known line by line. A neighbour's tree can have more lines above a hunk.
    may_move = not base.is_pinned
    pristine = stock_tree(base, lambda fresh: queue.apply(fresh, may_move))
    tree = Tree("fork")
    stamp = tree.stamp()
    if stamp.get("base") != base.identity:
        say("copying the base for the fork")
        tree.lay_down(base, lambda fresh: copy_tree(pristine, fresh))
        stamp = {"base": base.identity, "queue": None, "files": {}, "links": []}
    else:
        check_unchanged(tree, stamp, pristine)
    before = dict(stamp)
    if stamp["queue"] != queue.digest():
        apply_queue(queue, pristine, tree, stamp, may_move)
    links = link_tests(tree.source)
    for gone in set(stamp["links"]) - set(links):
        (tree.source / gone).unlink(missing_ok=True)
    stamp |= {"links": links, "queue": queue.digest()}
    if stamp != before:
        tree.write_listing(without=set(links))
        tree.write_stamp(stamp)
    return tree.source


def check_unchanged(tree, stamp, pristine):
    """Fail if a file of the fork's tree is not what base and patches make it. If applying patches was interrupted,
    patched files are not checked: they are written again."""
    links = set(stamp["links"])
    # Without a listing, check all files that are there or should be.
    changed = tree.differences(without=links) if read_record(tree.listing_file) else (
        states(tree.source, links).keys() | states(pristine).keys()
    )
    if not changed:
        return

    def is_as_written(name):
        path = tree.source / name
        if name in stamp["files"] and stamp["queue"] == BEING_APPLIED:
            return True
        if path.is_symlink() or not path.is_file():
            return path.is_symlink() and (pristine / name).is_symlink()
        digest = stamp["files"].get(name) or ((pristine / name).is_file() and sha256_of(pristine / name))
        return sha256_of(path) == digest

    if wrong := sorted(name for name in changed if not is_as_written(name)):
        raise Failure(changed_text(tree, wrong))
    # The listing was lost, or applying patches was interrupted.
    tree.write_listing(without=links)


def apply_queue(queue, pristine, tree, stamp, may_move):
    """Write the patched files whose bytes change, and restore the files that no patch touches any more. may_move: as
    for Queue.apply().

    Meanwhile the stamp says so, and an interrupted run is repeated."""
    patched = queue.apply(pristine, may_move)
    for name in set(stamp["files"]) - set(patched):
        patched[name] = (pristine / name).read_bytes()
    stamp["files"] = stamp["files"] | dict.fromkeys(patched, "")
    tree.write_stamp(stamp | {"queue": BEING_APPLIED})
    last_ns = last_build_ns(tree.name)
    written = 0
    for name, content in sorted(patched.items()):
        path = tree.source / name
        if path.read_bytes() != content:
            old_ns = path.stat().st_mtime_ns
            path.write_bytes(content)
            make_newer(path, max(last_ns, old_ns))
            written += 1
        stamp["files"][name] = hashlib.sha256(content).hexdigest()
    stamp["files"] = {name: stamp["files"][name] for name in sorted(queue.files())}
    at_other_lines = f", {len(queue.moved)} of them at other lines than in the pinned base" if queue.moved else ""
    say(f"{len(queue.patches)} patches applied to {len(queue.files())} files{at_other_lines}; {written} files written")


def need_space_for_build(tree, flavor):
    if not (BUILD / tree / flavor / "build.ninja").exists():
        need_space(BUILD, BUILD_GIB[flavor] << 30, f"the build build/{tree}/{flavor}")


def some_files(path, names, folder):
    """A tree with the named files of the tree or archive at path: path itself or, for an archive, folder, with all of
    its files that have the same last part."""
    base = users_base(path.expanduser().absolute())
    if base.path.is_dir():
        return base.path
    lasts = {Path(name).name for name in names}
    with tarfile.open(base.path) as tar:
        for member in tar:
            name = member.name.partition("/")[2]
            is_inside = not Path(name).is_absolute() and ".." not in Path(name).parts
            if member.isfile() and Path(name).name in lasts and is_inside:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(tar.extractfile(member).read())
    return folder


def moved_files(tree, names, moved):
    """The files that have another place in tree: {name: place}. moved: those that the user named."""
    places = dict(moved)
    for name in names:
        if (tree / places.get(name, name)).is_file():
            continue
        found = [place for place, _ in entries(tree) if Path(place).name == Path(name).name]
        if name in places or len(found) != 1:
            where = f"; files of that name: {', '.join(found)}" if found else ""
            raise Failure(f"the new base has no {places.get(name, name)}{where}. Where is it? --moved {name}=PLACE")
        places[name] = found[0]
        say(f"{name} is {found[0]} in the new base")
    return places


def rebase(old, new, moved):
    queued = patchqueue.Queue.load().files()
    names = {"MYSQL_VERSION", *queued, *moved.values()}
    with tempfile.TemporaryDirectory(prefix="spillway-rebase-") as folder:
        trees = [some_files(path, names, Path(folder) / which) for which, path in (("old", old), ("new", new))]
        for tree, path in zip(trees, (old, new), strict=True):
            version_of_tree(tree, path)
        patchqueue.rebase(*trees, moved_files(trees[1], queued, moved))


def moved_file(text):
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise argparse.ArgumentTypeError(f"{text!r} is not OLD=NEW")
    return old, new


def run():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch")
    tree = commands.add_parser("tree")
    tree.add_argument("tree", choices=["stock", "fork"])
    tree.add_argument("--flavor", choices=BUILD_GIB)
    move = commands.add_parser("rebase")
    move.add_argument("new", type=Path)
    move.add_argument("--old", type=Path)
    move.add_argument("--moved", type=moved_file, action="append", default=[], metavar="OLD=NEW")
    arguments = parser.parse_args()
    if arguments.command == "rebase":
        with locked("source"), locked("patch-edit"):
            rebase(arguments.old or pinned_base().path, arguments.new, dict(arguments.moved))
        return
    with locked("source"):
        base = obtain_base()
        if arguments.command == "fetch":
            if base.path.is_file() and not base.is_pinned:
                check_archive(base.path)
            say(f"the base is {base.path}")
        else:
            {"stock": stock_tree, "fork": fork_tree}[arguments.tree](base)
            if arguments.flavor:
                need_space_for_build(arguments.tree, arguments.flavor)


if __name__ == "__main__":
    sys.exit(main(run))
