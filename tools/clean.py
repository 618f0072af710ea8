#!/usr/bin/env python3
"""Remove build/: builds, logs and results of benchmarks. var/ stays. Fails while a command of this checkout runs, and
if build/patch-edit has changes that were not exported.

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
from patchqueue import is_as_exported
from spillway.common import BUILD, Failure, main
from spillway.resources import is_below, loops_below, mounts_below


def programs_at_work(top):
    """The processes that run a program below the folder top: (process id, program)."""
    for entry in Path("/proc").glob("[0-9]*/exe"):
        # Only root can read the link of another user's process.
        with contextlib.suppress(OSError):
            if is_below(program := os.readlink(entry), top):
                yield entry.parts[2], program


def check_edits():
    """Fail if build/ has unsaved work: an edit of patches that was not exported, or a changed source tree."""
    for edit in sorted(BUILD.glob("patch-edit*")):
        if edit.name == "patch-edit.new":
            # A killed make patch-edit left it; it is not an edit yet.
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
        # Only with the locks held: while a build runs, its tree differs from the recorded one.
        if not only_sources:
            check_edits()
        # A tree without a stamp is made anew: if this tool is interrupted, the rest of a tree is not used.
        for stamp in BUILD.glob("*/source.json"):
            stamp.unlink()
        # Moved away first, so that no command uses a folder that is partly removed.
        waste = Path(tempfile.mkdtemp(prefix="removed-", dir=BUILD))
        # Lock files stay: a command that waits for a lock has the file open.
        for path in BUILD.glob("*/source") if only_sources else set(BUILD.iterdir()) - {*locks, waste}:
            path.rename(waste / "-".join(path.relative_to(BUILD).parts))
        shutil.rmtree(waste)


def run():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", action="store_true", help="only the source trees")
    clean(parser.parse_args().sources)


if __name__ == "__main__":
    sys.exit(main(run, uses_build=False))
