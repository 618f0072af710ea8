#!/usr/bin/env python3
"""Remove build/: what was built, logs, results of benchmarks. Not while a command of this checkout is at work, and not
while build/patch-edit has an edit. var/ stays.

    clean.py --sources     only the source trees: the next build makes them anew"""

import argparse
import contextlib
import fcntl
import os
import shutil
import sys
import tempfile
from pathlib import Path

import upstream
from common import BUILD, Failure, main
from patchqueue import is_as_exported
from resources import is_below, loops_below, mounts_below


def programs_at_work(top):
    """The processes whose program is in a folder: (process id, program)."""
    for entry in Path("/proc").glob("[0-9]*/exe"):
        # Another user's process is not ours to see, but for root.
        with contextlib.suppress(OSError):
            if is_below(program := os.readlink(entry), top):
                yield entry.parts[2], program


def check_edits():
    """Fail if something in build/ is somebody's work: an edit of patches that was not exported, or of a source tree."""
    for edit in sorted(BUILD.glob("patch-edit*")):
        if edit.name == "patch-edit.new":
            # Of a make patch-edit that was killed: it is no edit yet.
            continue
        if edit.is_dir() and not is_as_exported(edit):
            raise Failure(f"{edit} has changes of the patches that are not exported: export them (make patch-export), "
                          f"or move it out of {BUILD}")  # fmt: skip
    for tree in (upstream.Tree("stock"), upstream.Tree("fork")):
        tree.check_not_edited()


def clean(only_sources=False):
    if BUILD.is_symlink():
        raise Failure(f"{BUILD} is a link to {os.readlink(BUILD)}, which may have files of others: remove it yourself")
    if not BUILD.exists():
        return
    with contextlib.ExitStack() as stack:
        locks = sorted(BUILD.glob("*.lock"))
        for lock in locks:
            file = os.open(lock, os.O_RDWR)
            stack.callback(os.close, file)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Failure(f"{lock} is held: a command of this checkout is at work; end it first") from None
        top = BUILD.resolve()
        if used := [*(path for path, _ in mounts_below(top)), *loops_below(top)]:
            raise Failure(f"{', '.join(map(str, used))}: a command of this checkout is at work; end it first")
        if servers := [f"{program} (process {pid})" for pid, program in programs_at_work(top)]:
            raise Failure(f"{', '.join(servers)}: it runs; end it first (make stop)")
        # After the locks: a build that is at work has a tree that is not as it was recorded.
        if not only_sources:
            check_edits()
        # A tree without its stamp is made anew, so that what an interrupt leaves is not taken for whole.
        for stamp in BUILD.glob("*/source.json"):
            stamp.unlink()
        # What is removed in part is no longer where something would use it.
        waste = Path(tempfile.mkdtemp(prefix="removed-", dir=BUILD))
        # The locks stay: a command that waits for one has its file open.
        for path in BUILD.glob("*/source") if only_sources else set(BUILD.iterdir()) - {*locks, waste}:
            path.rename(waste / "-".join(path.relative_to(BUILD).parts))
        shutil.rmtree(waste)


def run():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", action="store_true", help="only the source trees")
    clean(parser.parse_args().sources)


if __name__ == "__main__":
    sys.exit(main(run, uses_build=False))
