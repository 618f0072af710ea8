"""A lint: which rooms (folders) of storage/innobase may include which. See storage/innobase/README.md."""

import graphlib
import re

from spillway.common import REPO

INNOBASE = REPO / "storage/innobase"
# A waiter of the standard library's semaphores and atomics can sleep although it may go on (GCC bug 104928).
SLEEPS_ON = re.compile(r"#include <(?:semaphore|latch|barrier)>|\.wait\([^)]*std::memory_order")
INCLUDE = re.compile(r'^\+?#include "((\w+)/[\w./]+)"', re.MULTILINE)


def includes(text, rooms):
    """The (file, room) that a source text includes."""
    return [(name, room) for name, room in INCLUDE.findall(text) if room in rooms]


def problems(innobase=INNOBASE, patches=REPO / "patches"):
    rooms = {path.name for path in innobase.iterdir() if path.is_dir()}
    uses = {room: set() for room in rooms}
    for path in sorted(innobase.rglob("*.*")):
        if path.suffix not in (".h", ".cc", ".inc"):
            continue
        own = path.relative_to(innobase)
        text = path.read_text()
        if found := SLEEPS_ON.search(text):
            yield f"{own} has {found.group()}: a waiter can miss that it is woken; use ut::counting_semaphore"
        for name, room in includes(text, rooms):
            if not (innobase / name).exists():
                yield f"{own} includes {name}, which is not there"
            if room != own.parts[0]:
                uses[own.parts[0]].add(room)
            if "policy" in own.parts and "policy" not in name.split("/") and room != "base":
                yield f"{own} is policy, and includes {name}"
    for room in sorted(rooms):
        if "report" in uses[room]:
            yield f"{room} includes report, which shows what all others do"
    if others := uses.get("stall", set()) | uses.get("base", set()):
        yield f"stall and base include {', '.join(sorted(others))}: they are for all others"
    try:
        graphlib.TopologicalSorter(uses).prepare()
    except graphlib.CycleError as error:
        yield f"these rooms include each other: {' -> '.join(reversed(error.args[1]))}"
    for path in sorted(patches.glob("*.patch")):
        text = path.read_text()
        if found := re.search(rf"^\+.*({SLEEPS_ON.pattern})", text, re.MULTILINE):
            yield f"patches/{path.name} has {found.group(1)}: a waiter can miss that it is woken"
        for name, room in includes(text, rooms):
            if name != f"{room}/hook.h" and not name.endswith(".inc"):
                yield f"patches/{path.name} includes {name}: a patch includes hook.h of a room"
