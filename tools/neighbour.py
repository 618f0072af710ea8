#!/usr/bin/env python3
"""A source tree that differs from the pinned base where Percona Server's does. Nothing of Percona's source is in it.

    neighbour.py tree FOLDER   make FOLDER, a tree to build from: SPILLWAY_UPSTREAM=FOLDER make server
    neighbour.py check         apply the patches to such a tree's files
"""

import argparse
import re
import tempfile
from pathlib import Path

import patchqueue
import upstream
from spillway.common import Failure, main, say

INNOBASE = "storage/innobase"
HA_INNODB, OS0FILE, BUF0LRU, SRV0START, FIL0FIL, FIL0FIL_H = (
    f"{INNOBASE}/{name}"
    for name in ("handler/ha_innodb.cc", "os/os0file.cc", "buf/buf0lru.cc", "srv/srv0start.cc", "fil/fil0fil.cc",
                 "include/fil0fil.h")
)  # fmt: skip
# Names that our status variables have as well.
STATUS_NAMES = ("buffer_pool_pages_LRU_flushed", "checkpoint_age", "checkpoint_max_age", "lsn_current", "lsn_flushed",
                "lsn_last_checkpoint")  # fmt: skip
STATUS_VARIABLES = "".join(
    f'    {{"{name}", (char *)&export_vars.innodb_data_reads, SHOW_LONG, SHOW_SCOPE_GLOBAL}},\n'
    for name in STATUS_NAMES
)
# Each edit: the file, a line that is in it once, and what stands in its place in the neighbour's tree; @ is the line.
EDITS = [
    ("MYSQL_VERSION", "MYSQL_VERSION_EXTRA=\n", "MYSQL_VERSION_EXTRA=-1\n"),
    (HA_INNODB, "static SYS_VAR *innobase_system_variables[] = {\n",
     "static bool neighbours_variable;\n"
     "static MYSQL_SYSVAR_BOOL(neighbours, neighbours_variable, PLUGIN_VAR_OPCMDARG,\n"
     '                         "A variable of the neighbour.", nullptr, nullptr, false);\n'
     "@    MYSQL_SYSVAR(neighbours),\n"),
    (HA_INNODB, "static SHOW_VAR innodb_status_variables[] = {\n", "@" + STATUS_VARIABLES),
    (OS0FILE, '#include "srv0start.h"\n', '@#include "trx0trx.h"\n'),
    (BUF0LRU, '#include "srv0srv.h"\n', '@#include "srv0start.h"\n'),
    (SRV0START, "void srv_shutdown() {\n", "static void neighbours_deinit() {}\n\n@"),
    (SRV0START, "  dblwr::close();\n", "@  neighbours_deinit();\n"),
    (FIL0FIL_H, '#include "fil0types.h"\n', "@struct trx_t;\n"),
]  # fmt: skip


def edited(name, text):
    """The neighbour's form of a file of the pinned base."""
    for place, line, replacement in EDITS:
        if place == name:
            if text.count(f"\n{line}") != 1:
                raise Failure(f"{name} has not one line {line.strip()!r}: tools/neighbour.py has to look for another")
            text = text.replace(f"\n{line}", f"\n{replacement.replace('@', line)}")
    if not name.startswith(INNOBASE):
        return text
    # fil_io() has two parameters more. The base's callers get a function of another name, with its parameters.
    if name == FIL0FIL_H:
        declared = re.search(r"\[\[nodiscard\]\] dberr_t fil_io\(.*?\);\n", text, re.DOTALL)[0]
        short = declared.replace("fil_io(", "neighbours_fil_io(")
        return text.replace(declared, short + declared.replace("void *message)", "void *message, trx_t *, bool)"))
    if name == FIL0FIL:
        head = re.search(r"^dberr_t fil_io\(.*?\) \{\n", text, re.DOTALL | re.MULTILINE)[0]
        short = head.replace("fil_io(", "neighbours_fil_io(")
        arguments = "type, sync, page_id, page_size, byte_offset, len, buf, message"
        long = head.replace("void *message)", "void *message, trx_t *, bool)")
        text = text.replace(head, f"{long}  return neighbours_fil_io({arguments});\n}}\n\n{short}")
        return text.replace(" = fil_io(", " = neighbours_fil_io(")
    return re.sub(r"(?<![\w.>])fil_io\(", "neighbours_fil_io(", text) if name.endswith(".cc") else text


def write(tree, names):
    """Give these files of a copy of the base the neighbour's form, with a line more at the top of each source."""
    for name in names:
        path = tree / name
        text = path.read_text(errors="surrogateescape")
        new = edited(name, text)
        if name.endswith((".cc", ".h")):
            new = "/* A line of the neighbour. */\n" + new
        if new != text:
            path.write_text(new, errors="surrogateescape")


def make_tree(folder):
    upstream.copy_tree(patchqueue.pristine_tree(), folder)
    touched = patchqueue.Queue.load().files() | {name for name, *_ in EDITS}
    callers = {str(path.relative_to(folder)) for path in (folder / INNOBASE).rglob("*.cc")
               if "fil_io(" in path.read_text(errors="surrogateescape")}  # fmt: skip
    write(folder, sorted(touched | callers | {FIL0FIL_H}))
    say(f"{folder} is made: SPILLWAY_UPSTREAM={folder} make server")


def check():
    queue = patchqueue.Queue.load()
    with tempfile.TemporaryDirectory(prefix="spillway-neighbour-") as name:
        tree = Path(name)
        names = queue.files() | {place for place, *_ in EDITS}
        patchqueue.copy_files(patchqueue.pristine_tree(), tree, names)
        write(tree, sorted(names))
        queue.apply(tree, may_move=True)
    say(f"{len(queue.patches)} patches apply, {len(queue.moved)} of them at other lines")


def run():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("tree").add_argument("folder", type=Path)
    commands.add_parser("check")
    arguments = parser.parse_args()
    if arguments.command == "check":
        check()
    else:
        make_tree(arguments.folder.absolute())


if __name__ == "__main__":
    main(run)
