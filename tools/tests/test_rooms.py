"""The lint of rooms finds forbidden includes."""

import tempfile
import unittest
from pathlib import Path

import rooms


class Rooms(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for room in ("aio", "base", "report", "stall"):
            (self.folder / room / "policy").mkdir(parents=True)
        self.write("base/base0rate.h")
        self.write("stall/hook.h")
        self.write("aio/hook.h")
        self.write("aio/policy/aio0depth.h", "base/base0rate.h")
        self.write("aio/aio0array.cc", "aio/hook.h", "stall/hook.h", "srv0srv.h", "mysql/plugin.h")
        self.write("report/report0status.cc", "aio/hook.h", "stall/hook.h")
        self.write("aio-slots.os0file.cc.patch", "aio/hook.h", before="+")

    def write(self, name, *includes, before=""):
        (self.folder / name).write_text("".join(f'{before}#include "{include}"\n' for include in includes))

    def problems(self):
        return "\n".join(rooms.problems(self.folder, self.folder))

    def test_none(self):
        self.assertEqual(self.problems(), "")

    def test_cycle(self):
        (self.folder / "redo").mkdir()
        self.write("redo/redo0state.h", "aio/hook.h")
        self.write("aio/aio0array.h", "redo/redo0state.h")
        self.assertRegex(self.problems(), "include each other: .*aio -> redo|redo -> aio")

    def test_rules(self):
        for name, includes, problem in (
            ("stall/stall0stall.cc", ["aio/hook.h"], "stall and base include aio"),
            ("aio/aio0array.cc", ["report/report0status.inc"], "aio includes report"),
            ("aio/aio0array.cc", ["aio/nothing.h"], "includes aio/nothing.h, which is not there"),
            ("aio/policy/aio0depth.h", ["aio/hook.h"], "aio/policy/aio0depth.h is policy, and includes aio/hook.h"),
        ):
            with self.subTest(problem):
                before = (self.folder / name).read_text() if (self.folder / name).exists() else None
                self.write(name, *includes)
                self.assertIn(problem, self.problems())
                (self.folder / name).unlink() if before is None else (self.folder / name).write_text(before)

    def test_patch(self):
        self.write("aio/aio0array.h")
        self.write("aio-slots.os0file.cc.patch", "aio/aio0array.h", before="+")
        self.assertIn("a patch includes hook.h of a room", self.problems())

    def test_semaphores_of_the_standard_library(self):
        (self.folder / "aio/aio0array.cc").write_text("#include <semaphore>\n")
        (self.folder / "aio/aio0wait.cc").write_text("  s_n.wait(0, std::memory_order_acquire);\n")
        (self.folder / "aio-slots.os0file.cc.patch").write_text("---\n+#include <semaphore>\n")
        self.assertEqual(self.problems().count("a waiter can miss that it is woken"), 3)

    def test_ours(self):
        self.assertEqual(list(rooms.problems()), [])
