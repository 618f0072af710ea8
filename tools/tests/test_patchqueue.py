"""The patch queue: patches apply exactly or not at all, and the lint and the export refuse what is wrong."""

import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import patchqueue
import upstream
from spillway.common import Failure

UPSTREAM = "storage/innobase/os/os0demo.cc"
LINES = [f"line {number}" for number in range(1, 41)]
HEADER = """\
Description: call the demonstration
Why: upstream does not
 call it.
Calls: none
Anchor: line 20, by its name
Off-State: stock
Test: none
Remove-When: upstream calls it"""
DIFF = f"""\
diff --git a/{UPSTREAM} b/{UPSTREAM}
--- a/{UPSTREAM}
+++ b/{UPSTREAM}
@@ -18,6 +18,7 @@ line 17
 line 18
 line 19
 line 20
+  hook();
 line 21
 line 22
 line 23
"""
NAME = "demo.os0demo.cc.patch"


def patch(diff=DIFF, header=HEADER, name=NAME):
    return patchqueue.Patch(name, f"{header}\n---\n{diff}")


class Folders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.tree = self.folder / "tree"
        (self.tree / UPSTREAM).parent.mkdir(parents=True)
        self.write(LINES)

    def write(self, lines):
        (self.tree / UPSTREAM).write_text("".join(f"{line}\n" for line in lines))

    def refused(self, function, *words):
        with self.assertRaises(Failure) as caught:
            function()
        for word in words:
            self.assertIn(word, str(caught.exception))


class Apply(Folders):
    def apply(self, *patches):
        return patchqueue.Queue(patches or [patch()]).apply(self.tree)

    def test_exact(self):
        self.assertEqual(
            self.apply()[UPSTREAM].decode().splitlines(), [*LINES[:20], "  hook();", *LINES[20:]]
        )

    def test_the_pristine_tree_is_not_written(self):
        self.apply()
        self.assertEqual((self.tree / UPSTREAM).read_text().splitlines(), LINES)

    def test_offset_is_refused(self):
        self.write(["new line", *LINES])
        self.refused(self.apply, NAME, "the hunk at line 18 belongs at 19")

    def test_offset_in_a_tree_of_the_user(self):
        self.write(["new line", *LINES])
        queue = patchqueue.Queue([patch()])
        lines = queue.apply(self.tree, may_move=True)[UPSTREAM].decode().splitlines()
        self.assertEqual(lines, ["new line", *LINES[:20], "  hook();", *LINES[20:]])
        self.assertEqual(queue.moved, [NAME])

    def test_offset_where_the_context_is_twice(self):
        self.write(["new line", *LINES, *LINES[16:24]])
        queue = patchqueue.Queue([patch()])
        self.refused(lambda: queue.apply(self.tree, may_move=True), NAME, "line 18", "more than once")

    def test_fuzz_in_a_tree_of_the_user(self):
        self.write(["new line", *LINES[:17], "line 18, changed", *LINES[18:]])
        self.refused(lambda: patchqueue.Queue([patch()]).apply(self.tree, may_move=True), NAME, "does not apply")

    def test_fuzz_is_refused(self):
        changed = list(LINES)
        changed[17] = "line 18, changed upstream"
        self.write(changed)
        self.refused(self.apply, NAME, UPSTREAM, "18", "does not apply", "Anchor")

    def test_two_patches_of_one_file(self):
        second = f"""\
diff --git a/{UPSTREAM} b/{UPSTREAM}
--- a/{UPSTREAM}
+++ b/{UPSTREAM}
@@ -30,6 +30,7 @@ line 28
 line 29
 line 30
 line 31
+  other_hook();
 line 32
 line 33
 line 34
"""
        result = self.apply(patch(), patch(second, name="other.os0demo.cc.patch"))
        self.assertEqual(result[UPSTREAM].decode().count("hook();"), 2)

    def test_missing_upstream_file(self):
        (self.tree / UPSTREAM).unlink()
        self.refused(self.apply, UPSTREAM)

    def test_below_another_repository(self):
        """If git found the outer repository, it would skip the patch and exit 0."""
        patchqueue.git(self.folder, "init", "--quiet")
        with mock.patch.object(tempfile, "tempdir", str(self.folder)):
            self.assertIn(b"hook();", self.apply()[UPSTREAM])


class Lint(Folders):
    def setUp(self):
        super().setUp()
        hooks = self.folder / "hook.h"
        hooks.write_text("void declared(int);\n")
        change = mock.patch.object(patchqueue, "HOOKS", (hooks,))
        change.start()
        self.addCleanup(change.stop)

    def problems(self, **change):
        return "\n".join(patch(**change).problems())

    def test_good(self):
        self.assertEqual(self.problems(), "")

    def test_control_flow(self):
        """An added if must not control an upstream statement."""
        for line in ("  if (spw::declared(1))", "  if (spw::declared(1)) {} else", "      spw::declared(1))"):
            with self.subTest(line):
                self.assertIn("add braces", self.problems(diff=DIFF.replace("+  hook();", f"+{line}")))
        self.assertNotIn("add braces", self.problems(diff=DIFF.replace("+  hook();", "+      m_member()")))

    def test_every_field_is_needed(self):
        for field in patchqueue.FIELDS:
            lines = [line for line in HEADER.splitlines() if not line.startswith((field + ":", " "))]
            self.assertIn(f"lacks {field}", self.problems(header="\n".join(lines)))

    def test_unknown_field(self):
        self.assertIn("unknown field Author", self.problems(header=HEADER + "\nAuthor: me"))

    def test_removal_condition(self):
        self.assertIn("Remove-When", self.problems(header=HEADER.replace("upstream calls it", "unknown")))

    def test_name(self):
        self.assertIn("its name should be", self.problems(name="0001-demo.patch"))

    def test_two_files(self):
        self.assertIn("2 files", self.problems(diff=DIFF + DIFF.replace("os0demo", "os0more")))

    def test_removed_line_needs_a_reason(self):
        diff = DIFF.replace(" line 21\n", "-line 21\n")
        self.assertIn("removes lines", self.problems(diff=diff))
        self.assertNotIn("removes lines", self.problems(diff=diff, header=HEADER + "\nRemoves: line 21"))

    def test_size_needs_a_reason(self):
        diff = DIFF.replace("+  hook();\n", "+  hook();\n" * 11)
        self.assertIn("11 lines", self.problems(diff=diff))
        self.assertEqual("", self.problems(diff=diff, header=HEADER + "\nSize-Reason: eleven hooks"))

    def test_white_space(self):
        self.assertIn("white space", self.problems(diff=DIFF.replace("hook();", "hook(); ")))

    def test_hook_has_to_be_declared(self):
        self.assertIn("spw::lost()", self.problems(diff=DIFF.replace("hook();", "spw::lost(1);")))
        header = HEADER.replace("Calls: none", "Calls: spw::declared()")
        self.assertEqual("", self.problems(diff=DIFF.replace("hook();", "spw::declared(1);"), header=header))

    def test_calls_are_named(self):
        self.assertIn("Calls names []", self.problems(diff=DIFF.replace("hook();", "spw::declared(1);")))
        self.assertIn("it calls []", self.problems(header=HEADER.replace("Calls: none", "Calls: spw::declared()")))

    def test_tests_are_there(self):
        self.assertIn("spillway.lost", self.problems(header=HEADER.replace("Test: none", "Test: mtr spillway.lost")))
        self.assertEqual("", self.problems(header=HEADER.replace("Test: none", "Test: mtr spillway.aio_status")))

    def test_new_file(self):
        diff = DIFF.replace("--- a/", "new file mode 100644\n--- a/")
        self.assertIn("new files", self.problems(diff=diff))

    def test_no_separator(self):
        self.refused(lambda: patchqueue.Patch(NAME, HEADER + DIFF), "'---'")


class Series(Folders):
    def setUp(self):
        super().setUp()
        self.patches = self.folder / "patches"
        self.patches.mkdir()
        (self.patches / NAME).write_text(f"{HEADER}\n---\n{DIFF}")

    def load(self, series):
        (self.patches / "series").write_text(series)
        return patchqueue.Queue.load(self.patches)

    def test_bijection(self):
        self.assertEqual([p.name for p in self.load(f"# order\n{NAME}\n").patches], [NAME])
        self.refused(lambda: self.load(f"{NAME}\n{NAME}\n"), "more than once")
        self.refused(lambda: self.load(f"{NAME}\ngone.x.patch\n"), "gone.x.patch", "not there")
        self.refused(lambda: self.load("# nothing\n"), "does not name", NAME)


class Edit(Folders):
    """After edit, commits and export, the patches are what was committed; then the queue moves to another base."""

    def setUp(self):
        super().setUp()
        self.patches = self.folder / "patches"
        self.patches.mkdir()
        (self.patches / NAME).write_text(f"{HEADER}\n---\n{DIFF}")
        (self.patches / "series").write_text(f"# order\n{NAME}\n")
        hooks = self.folder / "hook.h"
        hooks.write_text("")
        changes = {"PATCHES": self.patches, "EDIT": self.folder / "edit", "REPO": self.folder, "HOOKS": (hooks,)}
        for name, value in changes.items():
            change = mock.patch.object(patchqueue, name, value)
            change.start()
            self.addCleanup(change.stop)
        load = patchqueue.Queue.load
        change = mock.patch.object(patchqueue.Queue, "load", lambda folder=self.patches: load(folder))
        change.start()
        self.addCleanup(change.stop)
        change = mock.patch.object(patchqueue, "pristine_tree", lambda: self.tree)
        change.start()
        self.addCleanup(change.stop)
        self.edit = self.folder / "edit"

    def test_unchanged_export_is_the_same_bytes(self):
        patchqueue.edit([])
        patchqueue.export()
        self.assertEqual((self.patches / NAME).read_text(), f"{HEADER}\n---\n{DIFF}")
        self.assertEqual((self.patches / "series").read_text(), f"# order\n{NAME}\n")

    def test_new_commit_becomes_a_patch(self):
        patchqueue.edit([])
        file = self.edit / UPSTREAM
        file.write_text(file.read_text().replace("line 31\n", "line 31\n  second();\n"))
        message = f"second.os0demo.cc.patch\n\n{HEADER}"
        patchqueue.git(self.edit, "commit", "--quiet", "--all", f"--message={message}")
        patchqueue.export()
        self.assertIn("+  second();", (self.patches / "second.os0demo.cc.patch").read_text())
        self.assertEqual(len(patchqueue.Queue.load().patches), 2)

    def commit(self, message, old="line 31\n", new="line 31\n  second();\n", folder=None):
        file = (folder or self.edit) / UPSTREAM
        file.write_bytes(file.read_bytes().replace(old.encode(), new.encode()))
        patchqueue.git(folder or self.edit, "commit", "--quiet", "--all", f"--message={message}")

    def files(self):
        return {path.name: path.read_bytes() for path in self.patches.iterdir()}

    def refused_and_kept(self, *words):
        """Export fails; patches/ and the edit stay unchanged."""
        before, head = self.files(), patchqueue.git(self.edit, "rev-parse", "HEAD").stdout
        self.refused(patchqueue.export, *words)
        self.assertEqual(self.files(), before)
        self.assertEqual(patchqueue.git(self.edit, "rev-parse", "HEAD").stdout, head)

    def conflict(self):
        """Begin a rebase that stops at a conflict."""
        patchqueue.edit([])
        self.commit(f"second.os0demo.cc.patch\n\n{HEADER}")
        patchqueue.git(self.edit, "checkout", "--quiet", "-b", "other", "base")
        self.commit("other", "line 31\n", "line 31\n  other();\n")
        patchqueue.git(self.edit, "checkout", "--quiet", "queue")
        patchqueue.git(self.edit, "rebase", "--quiet", "other", check=False)

    def test_the_edit_is_kept_aside(self):
        patchqueue.edit([])
        patchqueue.export()
        self.assertFalse(self.edit.exists())
        [aside] = self.folder.glob("edit.*")
        self.assertIn("  hook();", (aside / UPSTREAM).read_text())
        patchqueue.edit([])

    def test_uncommitted_change_is_not_lost(self):
        patchqueue.edit([])
        (self.edit / UPSTREAM).write_text("half an edit\n")
        self.refused_and_kept("not committed")
        self.assertEqual((self.edit / UPSTREAM).read_text(), "half an edit\n")
        self.refused(lambda: patchqueue.edit([]), "exists")

    def test_unfinished_rebase(self):
        self.conflict()
        self.refused_and_kept("rebase-merge under way")

    def test_conflict_that_was_ended_with_a_commit(self):
        self.conflict()
        (self.edit / UPSTREAM).write_text("".join(f"{line}\n" for line in [*LINES, "resolved"]))
        patchqueue.git(self.edit, "commit", "--quiet", "--all", "--message=resolved")
        self.assertEqual(patchqueue.git(self.edit, "status", "--porcelain").stdout, "")
        self.refused_and_kept("rebase-merge under way")

    def test_work_on_another_branch(self):
        patchqueue.edit([])
        patchqueue.git(self.edit, "checkout", "--quiet", "-b", "mine")
        self.commit(f"second.os0demo.cc.patch\n\n{HEADER}")
        self.refused_and_kept("not on the branch queue")

    def test_tag_with_the_name_of_the_branch(self):
        patchqueue.edit([])
        patchqueue.git(self.edit, "tag", "queue")
        self.commit(f"second.os0demo.cc.patch\n\n{HEADER}")
        patchqueue.export()
        self.assertIn("second.os0demo.cc.patch", self.files())

    def test_cherry_picks_that_were_ended_with_a_commit(self):
        patchqueue.edit([])
        patchqueue.git(self.edit, "checkout", "--quiet", "-b", "other")
        for name in ("second", "third"):
            self.commit(f"{name}.os0demo.cc.patch\n\n{HEADER}", "line 31\n", f"line 31\n  {name}();\n")
        patchqueue.git(self.edit, "checkout", "--quiet", "queue")
        self.commit(f"fourth.os0demo.cc.patch\n\n{HEADER}", "line 31\n", "line 31\n  fourth();\n")
        patchqueue.git(self.edit, "cherry-pick", "other~1", "other", check=False)
        (self.edit / UPSTREAM).write_text("".join(f"{line}\n" for line in [*LINES, "resolved"]))
        patchqueue.git(self.edit, "commit", "--quiet", "--all", "--message=resolved")
        self.refused_and_kept("sequencer under way")

    def test_what_git_does_not_look_at(self):
        patchqueue.edit([])
        patchqueue.git(self.edit, "update-index", "--assume-unchanged", UPSTREAM)
        (self.edit / UPSTREAM).write_text("edited\n")
        self.refused_and_kept("told not to look at", UPSTREAM)
        patchqueue.git(self.edit, "update-index", "--no-assume-unchanged", UPSTREAM)
        patchqueue.git(self.edit, "stash", "--quiet")
        self.refused_and_kept("has a stash")

    def test_commits_elsewhere(self):
        """Commits on another branch, in another worktree."""
        patchqueue.edit([])
        patchqueue.git(self.edit, "branch", "mine")
        patchqueue.git(self.edit, "worktree", "add", "--quiet", str(self.folder / "worktree"), "mine")
        self.refused_and_kept("another worktree")
        self.commit("fix", folder=self.folder / "worktree")
        self.refused_and_kept("does not have the commits of mine")

    def test_commit_on_no_branch(self):
        patchqueue.edit([])
        patchqueue.git(self.edit, "checkout", "--quiet", "--detach")
        self.commit("fix")
        patchqueue.git(self.edit, "checkout", "--quiet", "queue")
        self.refused_and_kept("HEAD was on no branch", "cherry-pick")
        patchqueue.git(self.edit, "reflog", "expire", "--expire=now", "--all")
        patchqueue.export()

    def test_file_outside_of_the_tree(self):
        """edit would write such a file outside of build/patch-edit."""
        for name in ("../../README.md", str(self.tree / UPSTREAM)):
            self.refused(lambda name=name: patchqueue.edit([name]), "name it from the tree's top")

    def test_base_that_was_moved(self):
        patchqueue.edit([])
        patchqueue.git(self.edit, "tag", "--force", "base", "queue")
        self.refused_and_kept("tag base was moved")

    def test_merge(self):
        patchqueue.edit([])
        patchqueue.git(self.edit, "checkout", "--quiet", "-b", "mine", "base")
        self.commit(f"second.os0demo.cc.patch\n\n{HEADER}")
        patchqueue.git(self.edit, "checkout", "--quiet", "queue")
        patchqueue.git(self.edit, "merge", "--quiet", "--no-edit", "mine")
        self.refused_and_kept("is a merge")

    def test_edit_that_was_killed_at_its_begin(self):
        second = (self.patches / NAME).read_text().replace(UPSTREAM, "sql/other.cc")
        (self.patches / "b.other.cc.patch").write_text(second)
        (self.patches / "series").write_text(f"{NAME}\nb.other.cc.patch\n")
        (self.tree / "sql").mkdir()
        (self.tree / "sql/other.cc").write_text((self.tree / UPSTREAM).read_text())
        before = self.files()
        one = patchqueue.commit_one

        def killed_at_the_second(folder, patch, may_move):
            if patch.name != NAME:
                os._exit(1)
            one(folder, patch, may_move)

        if (child := os.fork()) == 0:
            patchqueue.commit_one = killed_at_the_second
            patchqueue.edit([])
        os.waitpid(child, 0)
        self.refused(patchqueue.export, "nothing to export")
        patchqueue.edit([])
        patchqueue.export()
        self.assertEqual(self.files(), before)

    def test_patch_that_came_meanwhile(self):
        patchqueue.edit([])
        (self.patches / NAME).write_text(f"{HEADER}\nSize-Reason: pulled\n---\n{DIFF}")
        self.refused_and_kept("has changed since the edit began", NAME)
        (self.patches / NAME).write_text(f"{HEADER}\n---\n{DIFF}")
        (self.patches / "new.os0demo.cc.patch").write_text("pulled")
        self.refused_and_kept("new.os0demo.cc.patch")

    def test_interrupted_export_can_be_done_again(self):
        patchqueue.edit([])
        patchqueue.git(self.edit, "commit", "--quiet", "--amend", f"--message=first.os0demo.cc.patch\n\n{HEADER}")
        write, written = patchqueue.write_atomically, []

        def interrupted(path, content):
            if written:
                raise KeyboardInterrupt
            written.append(path)
            write(path, content)

        with mock.patch.object(patchqueue, "write_atomically", interrupted), self.assertRaises(KeyboardInterrupt):
            patchqueue.export([NAME])
        patchqueue.export([NAME])
        self.assertEqual(sorted(self.files()), ["first.os0demo.cc.patch", "series"])

    def test_patch_that_vanishes_is_named(self):
        patchqueue.edit([])
        self.commit(f"second.os0demo.cc.patch\n\n{HEADER}")
        patchqueue.git(self.edit, "rebase", "--quiet", "--onto", "base", "queue~1", "queue")
        self.refused_and_kept("no commit has the name", f"--remove {NAME}")
        said = []
        with mock.patch.object(patchqueue, "say", said.append):
            patchqueue.export([NAME])
        self.assertIn(f"removed: {NAME}", said)

    def test_bad_patch_changes_nothing(self):
        patchqueue.edit([])
        self.commit("second.os0demo.cc.patch\n\nDescription: no more than this")
        self.refused_and_kept("second.os0demo.cc.patch", "lacks Why")

    def test_commit_that_became_empty(self):
        patchqueue.edit([])
        message = f"--message=second.os0demo.cc.patch\n\n{HEADER}"
        patchqueue.git(self.edit, "commit", "--quiet", "--allow-empty", message)
        self.refused_and_kept("changes nothing")

    def test_binary_change(self):
        patchqueue.edit([])
        self.commit(f"second.os0demo.cc.patch\n\n{HEADER}", "line 31\n", "line 31\n\0")
        self.refused_and_kept("does more than change lines")

    def test_lines_that_end_in_cr_lf(self):
        self.write([f"{line}\r" for line in LINES])
        (self.patches / NAME).unlink()
        (self.patches / "series").write_text("")
        patchqueue.edit([UPSTREAM])
        self.commit(f"{NAME}\n\n{HEADER}", "line 31\r\n", "line 31\r\n  hook();\r\n")
        patchqueue.export()
        self.assertIn(b"+  hook();\r\n", (self.patches / NAME).read_bytes())
        self.assertIn(b"line 31\r\n  hook();\r\nline 32\r\n", patchqueue.Queue.load().apply(self.tree)[UPSTREAM])

    def test_other_encodings_and_separators(self):
        (self.tree / UPSTREAM).write_bytes(b"".join(f"{line}\n".encode() for line in LINES[:32]) + b"\x0c\xe9 \x85\n")
        patchqueue.edit([])
        self.commit(f"second.os0demo.cc.patch\n\n{HEADER}")
        patchqueue.export()
        patched = patchqueue.Queue.load().apply(self.tree)[UPSTREAM]
        self.assertTrue(patched.endswith(b"second();\nline 32\n\x0c\xe9 \x85\n"))

    def test_name_with_a_hyphen(self):
        (self.tree / "sql").mkdir()
        (self.tree / "sql/my-file+x.cc").write_text((self.tree / UPSTREAM).read_text())
        patchqueue.edit(["sql/my-file+x.cc"])
        file = self.edit / "sql/my-file+x.cc"
        file.write_text(file.read_text().replace("line 31\n", "line 31\n  second();\n"))
        patchqueue.git(self.edit, "commit", "--quiet", "--all", f"--message=a-b.my-file+x.cc.patch\n\n{HEADER}")
        patchqueue.export()
        self.assertIn("a-b.my-file+x.cc.patch", self.files())

    def test_users_git_configuration(self):
        home = self.folder / "home"
        (home / "git").mkdir(parents=True)
        (home / "git/attributes").write_text("* text eol=crlf\n*.cc binary\n")
        (home / "git/ignore").write_text("*\n")
        users = {"XDG_CONFIG_HOME": str(home), "GIT_DIR": "/nonexistent", "GIT_INDEX_FILE": "x"}
        with mock.patch.dict(os.environ, users):
            patchqueue.edit([])
            self.commit(f"second.os0demo.cc.patch\n\n{HEADER}")
            patchqueue.export()
        self.assertIn(b"+  second();\n", self.files()["second.os0demo.cc.patch"])

    def move(self):
        """Make a base with the file in another folder."""
        new = self.folder / "new"
        (new / "storage/innobase/moved").mkdir(parents=True)
        (new / "storage/innobase/moved/os0demo.cc").write_text("".join(f"{line}\n" for line in ["added", *LINES]))
        return new

    def test_rebase_to_a_moved_file(self):
        new, place = self.move(), "storage/innobase/moved/os0demo.cc"
        with mock.patch.object(upstream, "say"):
            patchqueue.rebase(self.tree, new, upstream.moved_files(new, {UPSTREAM}, {}))
        patchqueue.export()
        self.assertEqual(patchqueue.Queue.load().files(), {place})
        self.assertIn(b"hook();", patchqueue.Queue.load().apply(new)[place])

    def test_where_a_moved_file_is_can_be_said(self):
        new = self.move()
        (new / "storage/innobase/os0demo.cc").touch()
        self.refused(lambda: upstream.moved_files(new, {UPSTREAM}, {}), UPSTREAM, "moved/os0demo.cc", "--moved")
        places = {UPSTREAM: "storage/innobase/moved/os0demo.cc"}
        self.assertEqual(upstream.moved_files(new, {UPSTREAM}, places), places)
        self.refused(lambda: upstream.moved_files(new, {UPSTREAM}, {UPSTREAM: "gone.cc"}), "gone.cc")

    def test_rebase_moves_the_hunk(self):
        new = self.folder / "new"
        (new / UPSTREAM).parent.mkdir(parents=True)
        (new / UPSTREAM).write_text("".join(f"{line}\n" for line in ["added", "upstream", *LINES]))
        patchqueue.rebase(self.tree, new, {})
        patchqueue.export()
        self.assertIn("@@ -20,6 +20,7 @@", (self.patches / NAME).read_text())
        self.assertIn(b"hook();", patchqueue.Queue.load().apply(new)[UPSTREAM])

    def test_rebase_conflict_says_what_to_do(self):
        new = self.folder / "new"
        (new / UPSTREAM).parent.mkdir(parents=True)
        changed = [line.replace("line 20", "renamed 20").replace("line 21", "renamed 21") for line in LINES]
        (new / UPSTREAM).write_text("".join(f"{line}\n" for line in changed))
        self.refused(lambda: patchqueue.rebase(self.tree, new, {}), "conflicts", "rebase --continue")
