#!/usr/bin/env python3
"""Make build/dist/spillway-<VERSION>-src.tar.gz: the complete source of a release, from which `make server` builds
without a network. Whoever hands out a binary hands out this archive, too: it is the corresponding source of the GPL.

The archive has the files of the last commit (git archive), with the patch queue as patches/, and the unmodified archive
of the base as base/. tools/upstream.py takes the base from there. The same commit and base give the same bytes.

    dist.py            fail if the checkout has changes that are not committed
    dist.py --head     ignore these changes: the archive has the last commit
"""

import argparse
import gzip
import os
import subprocess
import sys
import tarfile

import upstream
from spillway.common import BUILD, REPO, Failure, locked, main, need_space, say, sha256_of

DIST = BUILD / "dist"
# Most of the archive is the base, which is compressed already.
COMPRESSION = 1
# Room for our files beside the base.
OUR_BYTES = 100 << 20


def git_command(*arguments):
    # git accepts a checkout of another owner.
    return ["git", "-C", str(REPO), "-c", f"safe.directory={REPO}", *arguments]


def git(*arguments):
    result = subprocess.run(git_command(*arguments), capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Failure(f"git {arguments[0]} failed in {REPO}: {result.stderr.strip()}")
    return result.stdout


def check_checkout(takes_head):
    """Fail if the archive would not have what the checkout builds."""
    if not (REPO / ".git").exists():
        raise Failure(f"{REPO} is not a git checkout. If it was unpacked from a source archive, hand out that archive")
    changes = [line[3:] for line in git("status", "--porcelain").splitlines()]
    if changes and not takes_head:
        more = f" and {len(changes) - 5} more" if len(changes) > 5 else ""
        raise Failure(
            f"files are changed or new since the last commit: {', '.join(changes[:5])}{more}. The archive has only "
            "what is committed: commit them, or take the last commit without them (make dist DIST_OPTIONS=--head)"
        )
    if git("show", "HEAD:UPSTREAM") != (REPO / "UPSTREAM").read_text():
        raise Failure("UPSTREAM has changes that are not committed, and it says which base the archive gets: commit it")


def dist_base():
    """The pinned base, for the archive."""
    if named := os.environ.get("SPILLWAY_UPSTREAM"):
        raise Failure(
            f"SPILLWAY_UPSTREAM names {named}. A source archive has the base of UPSTREAM: unset the variable. If your "
            'binary was built from another base, move UPSTREAM to it first (BUILD.md, "A new base version")'
        )
    return upstream.pinned_base()


def write_archive(path, base, top):
    """Write the files of HEAD and the base into the new archive path, below the folder top."""
    commit, time = git("log", "-1", "--format=%H %ct").split()
    pack = git_command("-c", "tar.umask=0022", "archive", "--format=tar", f"--prefix={top}/", "HEAD")
    with (
        open(path, "wb") as file,
        gzip.GzipFile("", "wb", COMPRESSION, file, int(time)) as packed,
        # The comment is where git get-tar-commit-id looks for the commit.
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"comment": commit}) as archive,
        subprocess.Popen(pack, stdout=subprocess.PIPE) as packing,
    ):
        with tarfile.open(fileobj=packing.stdout, mode="r|") as ours:
            for member in ours:
                archive.addfile(member, ours.extractfile(member) if member.isfile() else None)
        # The padding at the end: git would get a SIGPIPE.
        while packing.stdout.read(1 << 16):
            pass
        if packing.wait() != 0:
            raise Failure(f"git archive failed in {REPO}")
        entry = tarfile.TarInfo(f"{top}/base/{base.path.name}")
        entry.size, entry.mtime = base.path.stat().st_size, int(time)
        with open(base.path, "rb") as base_file:
            archive.addfile(entry, base_file)


def make(takes_head=False):
    """Make the archive; return its path."""
    check_checkout(takes_head)
    with locked("source"), locked("dist"):
        base = dist_base()
        top = f"spillway-{git('show', 'HEAD:VERSION').strip()}-src"
        DIST.mkdir(parents=True, exist_ok=True)
        need_space(DIST, base.path.stat().st_size + OUR_BYTES, "the source archive")
        path = DIST / f"{top}.tar.gz"
        partial = path.with_name(f"{path.name}.part")
        say(f"packing commit {git('rev-parse', '--short', 'HEAD').strip()} and {base.label}")
        try:
            write_archive(partial, base, top)
            partial.rename(path)
        finally:
            partial.unlink(missing_ok=True)
    say(f"{path}: {path.stat().st_size >> 20} MiB, SHA-256 {sha256_of(path)}")
    return path


def run():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--head", action="store_true")
    make(parser.parse_args().head)


if __name__ == "__main__":
    sys.exit(main(run))
