#!/usr/bin/env python3
"""The patch queue: patches/series and the patches it names.

    patchqueue.py lint                 check form, header and size of every patch (needs no upstream tree)
    patchqueue.py check                lint, apply to build/stock/source and export again: no difference allowed
    patchqueue.py edit [PATH...]       make build/patch-edit, a git repository with one commit per patch, to edit hooks;
                                       PATHs are upstream files that no patch touches yet
    patchqueue.py export               write the commits of build/patch-edit back to patches/, and move it aside;
                                       --remove PATCH: a patch that has no commit any more
    patchqueue.py stats                the lines of each patch and in total

A patch has to apply exactly at the lines it names: fuzz and offsets are errors. In a tree of the user's its hunks may
be at other lines, if their context is there exactly once. tools/upstream.py rebase moves the
queue to another base.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from spillway.common import BUILD, PATCHES, REPO, Failure, locked, main, read_record, say, write_atomically

EDIT = BUILD / "patch-edit"
# In an edit's repository: patches/ as it was when the edit began, and the commit of its base.
BEGAN = ".git/spillway-began"
# In an exported edit: the commit that was exported.
EXPORTED = ".git/spillway-exported"
# Files in .git while a rebase, merge, cherry-pick, revert or bisect is under way.
UNDER_WAY = ("rebase-merge", "rebase-apply", "sequencer", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG")
# Full names: a tag can have the same name as a branch.
QUEUE, BASE = "refs/heads/queue", "refs/tags/base"
# The header of a hunk, with its line in the old file.
HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? .*\n", re.MULTILINE)
NAME = re.compile(r"[a-z0-9-]+\.[A-Za-z0-9_.+-]+\.patch")
# Headers that declare what patches call: of InnoDB, and of the SQL layer.
HOOKS = (
    *sorted((REPO / "storage/innobase").glob("*/hook.h")), REPO / "sql/sql_extent_size.h",
    REPO / "sql/sql_group_commit.h",
)  # fmt: skip
FIELDS = ("Description", "Why", "Calls", "Anchor", "Off-State", "Test", "Remove-When")
OPTIONAL_FIELDS = ("Removes", "Size-Reason")
# A patch with more changed lines needs a Size-Reason. Source: DESIGN, "Patches".
MAX_CHANGED_LINES = 10
DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-renames", "--diff-algorithm=histogram", "-U3", "--src-prefix=a/",
        "--dst-prefix=b/")  # fmt: skip


# Ignore the user's configuration, attributes, ignored files and hooks, and keep line ends as they are.
GIT_CONFIG = {"core.autocrlf": "false", "core.quotepath": "false", "core.attributesFile": os.devnull,
              "core.excludesFile": os.devnull, "core.hooksPath": os.devnull, "commit.gpgSign": "false"}  # fmt: skip


def git(folder, *arguments, check=True, text=None):
    """Run git in folder without the user's configuration and without outer repositories. The output is text with
    unchanged line ends.

    A git that finds an outer repository can skip every hunk of a patch and still exit 0."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {
        "GIT_CEILING_DIRECTORIES": str(Path(folder).parent),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
    }
    for role in ("AUTHOR", "COMMITTER"):
        environment[f"GIT_{role}_NAME"] = "patch queue"
        environment[f"GIT_{role}_EMAIL"] = "patch-queue@localhost"
    options = [word for name, value in GIT_CONFIG.items() for word in ("-c", f"{name}={value}")]
    result = subprocess.run(["git", *options, *arguments], cwd=folder, env=environment, capture_output=True,
                            check=False, input=None if text is None else encoded(text))  # fmt: skip
    result.stdout, result.stderr = decoded(result.stdout), decoded(result.stderr)
    if check and result.returncode != 0:
        raise Failure(f"git {' '.join(arguments)} in {folder}: {result.stderr.strip() or result.stdout.strip()}")
    return result


def decoded(content):
    return content.decode(errors="surrogateescape")


def encoded(text):
    return text.encode(errors="surrogateescape")


def exported(folder, commit):
    """The diff of a commit as a patch has it: without index lines, so that it is the same on all machines."""
    text = git(folder, *DIFF, f"{commit}~1", commit).stdout
    return re.sub(r"^index [0-9a-f]+\.\.[0-9a-f]+.*\n", "", text, flags=re.MULTILINE)


def can_control(line):
    """Whether a line can be the end of an if, a loop or an else without a brace."""
    is_head = re.search(r"\b(if|for|while|switch)\b", line) or line.count("(") != line.count(")")
    return line.endswith("else") or bool(line.endswith(")") and is_head)


class Patch:
    """One patch file: a header of fields, a line '---', and the diff of one upstream file."""

    def __init__(self, name, text):
        self.name = name
        self.header, separator, self.diff = text.partition("\n---\n")
        if not separator:
            raise Failure(f"patches/{name} has no '---' line between its header and its diff")

    def fields(self):
        """The header's fields. A line that begins with a space continues the field above it."""
        fields = {}
        current = None
        for line in self.header.splitlines():
            if line.startswith(" ") and current:
                fields[current] += " " + line.strip()
                continue
            current, colon, value = line.partition(":")
            if not colon:
                raise Failure(f"patches/{self.name}: header line without a field name: {line!r}")
            fields[current] = value.strip()
        return fields

    def files(self):
        return re.findall(r"^diff --git a/(\S+) b/\S+$", self.diff, re.MULTILINE)

    def changed(self, sign):
        """The lines that the patch adds ('+') or removes ('-'), or its context (' ')."""
        header = sign * 3 + " "
        lines = self.diff.split("\n")
        return [line[1:] for line in lines if line.startswith(sign) and not line.startswith(header)]

    def problems(self):
        """The lint's findings for this patch, one sentence each."""
        fields = self.fields()
        files = self.files()
        added, removed = self.changed("+"), self.changed("-")
        found = []
        for name in FIELDS:
            if not fields.get(name):
                found.append(f"the header lacks {name}")
        for name in fields:
            if name not in FIELDS + OPTIONAL_FIELDS:
                found.append(f"the header has an unknown field {name}")
        if len(fields.get("Description", "")) > 72:
            found.append("the Description is longer than 72 characters")
        if fields.get("Remove-When", "").lower() in ("unknown", "never", "tbd"):
            found.append("Remove-When must name a condition")
        if len(files) != 1:
            found.append(f"it changes {len(files)} files; one patch changes one upstream file")
        elif not re.fullmatch(rf"[a-z0-9-]+\.{re.escape(Path(files[0]).name)}\.patch", self.name):
            found.append(f"its name should be <feature>.{Path(files[0]).name}.patch")
        if re.search(r"^(new file|deleted file|rename|old mode|GIT binary|Binary files)", self.diff, re.MULTILINE):
            found.append("it does more than change lines of a file; new files belong into our own folders")
        # In a file with CR LF, added lines have it, too.
        cr = "\r" if any(line.endswith("\r") for line in self.changed(" ")) else ""
        if any(line.removesuffix(cr) != line.rstrip() for line in added):
            found.append("an added line ends in white space")
        if removed and "Removes" not in fields:
            found.append("it removes lines; say why in Removes, or only add lines")
        if len(added) + len(removed) > MAX_CHANGED_LINES and "Size-Reason" not in fields:
            found.append(f"it changes {len(added) + len(removed)} lines; over {MAX_CHANGED_LINES} need a Size-Reason")
        # An added if or else without braces would control the upstream statement that follows, unnoticed.
        if any(map(can_control, re.findall(r"^\+(.*)\n [^\n]", self.diff, re.MULTILINE))):
            found.append("its control flow ends above an upstream statement: add braces around that")
        declared = "".join(header.read_text() for header in HOOKS)
        calls = set(re.findall(r"spw::(\w+)\b(?:\(|,)", "\n".join(added)))
        for called in sorted(calls):
            if not re.search(rf"\b{called}\(", declared):
                found.append(f"it calls spw::{called}(), which no hook declares")
        named = set(re.findall(r"spw::(\w+)\(\)", fields.get("Calls", "")))
        if calls != named:
            found.append(f"Calls names {sorted(named)}, and it calls {sorted(calls)}")
        for suite, test in re.findall(r"\b(spillway|spillway_off)\.(\w+)", fields.get("Test", "")):
            if not (REPO / "mysql-test/suite" / suite / "t" / f"{test}.test").exists():
                found.append(f"Test names {suite}.{test}, which is not there")
        return found


class Queue:
    """The patches in the order of patches/series."""

    def __init__(self, patches):
        self.patches = patches
        # The names of those that apply() has found at other lines.
        self.moved = []

    @classmethod
    def load(cls, folder=PATCHES):
        series = folder / "series"
        names = [line.strip() for line in series.read_text().splitlines()]
        names = [name for name in names if name and not name.startswith("#")]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise Failure(f"patches/series names {', '.join(sorted(twice))} more than once")
        present = {path.name for path in folder.glob("*.patch")}
        if missing := sorted(set(names) - present):
            raise Failure(f"patches/series names {', '.join(missing)}, which is not there")
        if unlisted := sorted(present - set(names)):
            raise Failure(f"patches/series does not name {', '.join(unlisted)}")
        return cls([Patch(name, decoded((folder / name).read_bytes())) for name in names])

    def digest(self):
        """A digest of names, diffs and order of the patches."""
        digest = hashlib.sha256()
        for patch in self.patches:
            digest.update(encoded(f"{patch.name}\n{patch.diff}\n"))
        return digest.hexdigest()

    def files(self):
        return {name for patch in self.patches for name in patch.files()}

    def lint(self):
        problems = [f"patches/{patch.name}: {problem}" for patch in self.patches for problem in patch.problems()]
        if problems:
            raise Failure("\n".join(["the patches need work:", *problems]))

    def apply(self, pristine, may_move=False):
        """The patched files, as name -> bytes. Fails unless every hunk applies exactly at its line. may_move: a hunk
        may be at another line, if its context is there exactly, and only once."""
        with tempfile.TemporaryDirectory(prefix="spillway-patches-") as folder:
            self.commit_all(Path(folder), pristine, may_move=may_move)
            return {name: (Path(folder) / name).read_bytes() for name in sorted(self.files())}

    def commit_all(self, folder, pristine, more_files=(), may_move=False):
        """Make folder a git repository: a commit with the pristine files, tagged base, then one per patch. may_move: as
        for apply()."""
        git(folder, "init", "--quiet", "--initial-branch=queue", "--template=")
        # For a user who runs git there by hand.
        for name, value in ({"user.name": "patch queue", "user.email": "patch-queue@localhost"} | GIT_CONFIG).items():
            git(folder, "config", name, value)
        copy_files(pristine, folder, self.files() | set(more_files))
        git(folder, "add", "--all", "--force")
        git(folder, "commit", "--quiet", "--allow-empty", "--message=base")
        git(folder, "tag", "base")
        self.moved = [patch.name for patch in self.patches if commit_one(folder, patch, may_move)]


def copy_files(tree, folder, names):
    for name in sorted(names):
        if os.path.isabs(name) or ".." in Path(name).parts:
            raise Failure(f"{name} is not a file of {tree}: name it from the tree's top")
        if not (tree / name).is_file():
            raise Failure(f"{name} is not a file of {tree}")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(tree / name, folder / name)


def ambiguous_hunk(diff, text):
    """The line of a hunk of diff whose old lines are not exactly once in text, or None."""
    hunks = HUNK.split(diff)[1:]
    for line, hunk in zip(hunks[::2], hunks[1::2], strict=True):
        old = "".join(row[1:] for row in hunk.splitlines(keepends=True) if row[0] in " -")
        if f"\n{text}".count(f"\n{old}") != 1:
            return line
    return None


def commit_one(folder, patch, may_move=False):
    """Apply one patch in folder and commit it. The commit's message is the patch's name and header. may_move: as for
    Queue.apply(). Returns whether a hunk is at another line."""
    todo = (
        "If the base is another version, tools/upstream.py rebase <its tree or archive> moves the queue to it "
        "(BUILD.md, 'A new base version'); the patch's Anchor, not its line, says where it belongs."
    )
    result = git(folder, "apply", "--index", "--verbose", "--whitespace=nowarn", "-", check=False, text=patch.diff)
    if result.returncode != 0:
        places = re.findall(r"patch failed: (\S+):(\d+)", result.stderr)
        where = ", ".join(f"the hunk at line {line} of {name}" for name, line in places) or result.stderr.strip()
        raise Failure(f"patches/{patch.name} does not apply: {where} does not match the base. {todo}")
    git(folder, "commit", "--quiet", "--allow-empty", f"--message={patch.name}\n\n{patch.header}\n")
    again = exported(folder, "HEAD")
    if again == patch.diff:
        return False
    if may_move and HUNK.sub("", again) == HUNK.sub("", patch.diff):
        for name in patch.files():
            if line := ambiguous_hunk(patch.diff, git(folder, "show", f"HEAD~1:{name}").stdout):
                raise Failure(f"patches/{patch.name} does not apply: the hunk at line {line} of {name} is at another "
                              f"line, and its context is there more than once. {todo}")  # fmt: skip
        return True
    places = [HUNK.findall(text) for text in (patch.diff, again)]
    moved = [f"the hunk at line {old} belongs at {new}" for old, new in zip(*places, strict=False) if old != new]
    raise Failure(
        f"patches/{patch.name} is not what exporting it again gives: "
        f"{', '.join(moved) or 'its text differs'}. {todo}"
    )


def pristine_tree():
    tree = BUILD / "stock/source"
    if not read_record(BUILD / "stock/source.json"):
        raise Failure("there is no pristine tree yet: tools/upstream.py tree stock")
    return tree


def begin_edit(queue, tree, more_files=()):
    """Make build/patch-edit, with the queue on top of the files of tree. If that fails, nothing of it is left."""
    if EDIT.exists():
        raise Failure(f"{EDIT.relative_to(REPO)} exists: make patch-export writes it to patches/, rm -r drops it")
    fresh = EDIT.with_name(f"{EDIT.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        queue.commit_all(fresh, tree, more_files)
        (fresh / BEGAN).mkdir()
        for path in patch_files(PATCHES):
            shutil.copyfile(path, fresh / BEGAN / path.name)
        record_base(fresh)
        fresh.rename(EDIT)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def commit_of(folder, name):
    return git(folder, "rev-parse", f"{name}^{{commit}}").stdout.strip()


def record_base(folder):
    write_atomically(folder / BEGAN / "base", commit_of(folder, BASE))


def patch_files(folder):
    return [folder / "series", *sorted(folder.glob("*.patch"))]


def edit(paths):
    begin_edit(Queue.load(), pristine_tree(), paths)
    say(f"{EDIT.relative_to(REPO)} has one commit per patch. Change them there (git commit --fixup, git rebase -i)")
    say("or add a commit whose message is <feature>.<file>.patch, an empty line and the header fields; then export.")


def rebase(old, new, moved):
    """Commit the queue on the files of the tree old, and carry it over to the files of the tree new by git rebase.
    moved: the new names of files that have another name in the tree new."""
    queue = Queue.load()
    begin_edit(queue, old)
    git(EDIT, "checkout", "--quiet", "-B", "new-base", "base")
    for name in moved:
        (EDIT / name).unlink()
    copy_files(new, EDIT, {moved.get(name, name) for name in queue.files()})
    git(EDIT, "add", "--all", "--force")
    git(EDIT, "commit", "--quiet", "--allow-empty", "--message=base")
    git(EDIT, "tag", "old-base", "base")
    git(EDIT, "tag", "--force", "base", "new-base")
    record_base(EDIT)
    result = git(EDIT, "rebase", "--quiet", "--onto", "new-base", "old-base", "queue", check=False)
    if result.returncode != 0:
        patch = git(EDIT, "log", "-1", "--format=%s", "REBASE_HEAD", check=False).stdout.strip()
        files = git(EDIT, "diff", "--name-only", "--diff-filter=U", check=False).stdout.split()
        raise Failure(
            f"patches/{patch} conflicts with the new base in {', '.join(files)}; resolve it by its Anchor in "
            f"{EDIT.relative_to(REPO)} (git diff shows the hunks; git add, git rebase --continue), then: "
            "tools/patchqueue.py export"
        )
    say("the queue applies to the new base; write it back with: tools/patchqueue.py export")


def check_edit():
    """Fail unless the edit is complete: every change is committed to the branch queue, on the base, without merges."""
    place = EDIT.relative_to(REPO)
    if not EDIT.is_dir():
        raise Failure("there is nothing to export: make patch-edit begins an edit")
    if not (EDIT / BEGAN / "series").is_file():
        raise Failure(f"{place} was not made by tools/patchqueue.py edit; move it aside")
    for name in UNDER_WAY:
        if (EDIT / ".git" / name).exists():
            raise Failure(f"{place} has a {name.lower().removesuffix('_head')} under way: end it (git status says how)")
    if git(EDIT, "symbolic-ref", "--quiet", "HEAD", check=False).stdout.strip() != QUEUE:
        raise Failure(f"{place} is not on the branch queue, which is what is exported: git checkout queue")
    if git(EDIT, "status", "--porcelain").stdout.strip():
        raise Failure(f"{place} has changes that are not committed")
    if git(EDIT, "rev-parse", "--quiet", "--verify", "refs/stash", check=False).returncode == 0:
        raise Failure(f"{place} has a stash: git stash pop, or git stash drop")
    if lost := lost_commits(EDIT):
        raise Failure(f"{place}: the branch queue does not have commit {lost[0][:9]}, which was made while HEAD was on "
                      f"no branch: take it over (git cherry-pick {lost[0][:9]}), or drop it (git reflog expire "
                      "--expire=now --all)")  # fmt: skip
    others = git(EDIT, "for-each-ref", f"--no-merged={QUEUE}", "--format=%(refname:short)", "refs/heads").stdout.split()
    if others:
        raise Failure(f"{place}: the branch queue does not have the commits of {', '.join(others)}: take them over "
                      "(git cherry-pick), or drop them (git branch -D)")  # fmt: skip
    if len(worktrees := re.findall("^worktree (.*)$", git(EDIT, "worktree", "list", "--porcelain").stdout, re.M)) > 1:
        raise Failure(f"{place} has another worktree, {worktrees[1]}: git worktree remove {worktrees[1]}")
    listed = git(EDIT, "ls-files", "-v").stdout.splitlines()
    if marked := [line[2:] for line in listed if line[0].islower() or line[0] == "S"]:
        raise Failure(f"{place}: git is told not to look at {', '.join(marked)}: git update-index "
                      "--no-assume-unchanged --no-skip-worktree FILE")  # fmt: skip
    base = (EDIT / BEGAN / "base").read_text()
    if commit_of(EDIT, BASE) != base:
        raise Failure(f"{place}: the tag base was moved; put it back: git tag --force base {base[:9]}")
    if git(EDIT, "merge-base", "--is-ancestor", BASE, QUEUE, check=False).returncode != 0:
        raise Failure(f"{place}: the branch queue does not begin at the tag base")
    if merges := git(EDIT, "rev-list", "--merges", f"{BASE}..{QUEUE}").stdout.split():
        raise Failure(f"{place}: commit {merges[0][:9]} is a merge; a patch is a commit with one parent")


def lost_commits(folder):
    """The commits that no branch has, at which HEAD was detached before another checkout."""
    reflog = git(folder, "reflog", "show", "--format=%gs", "HEAD", check=False).stdout
    left = re.findall(r"^checkout: moving from ([0-9a-f]{40,}) to ", reflog, re.MULTILINE)
    return [commit for commit in left if not git(folder, "for-each-ref", f"--contains={commit}", "refs/heads").stdout]


def is_as_exported(folder):
    """Whether an edit was exported and not changed since. A user's shell can still be in an exported edit."""
    exported_file = folder / EXPORTED
    return (exported_file.is_file() and commit_of(folder, "HEAD") == exported_file.read_text()
            and not git(folder, "status", "--porcelain").stdout.strip() and not lost_commits(folder))  # fmt: skip


def edited_patches():
    """The patches from the commits after the tag base, in their order: {name: text}."""
    patches = {}
    for commit in git(EDIT, "rev-list", "--reverse", f"{BASE}..{QUEUE}").stdout.split():
        name, _, header = git(EDIT, "log", "-1", "--format=%B", commit).stdout.strip().partition("\n\n")
        if not NAME.fullmatch(name):
            raise Failure(f"commit {commit[:9]}: its first line, {name!r}, is not a patch's name")
        if name in patches:
            raise Failure(f"two commits are called {name}: squash them")
        diff = exported(EDIT, commit)
        if not diff:
            raise Failure(f"commit {commit[:9]}, {name}, changes nothing: drop it (git rebase -i base)")
        patches[name] = f"{header.strip()}\n---\n{diff}"
    return patches


def export(removed=()):
    """Write the commits after the tag base to patches/, and their order to the series. removed: patches to remove.

    The patches are linted and applied in another folder first. An interrupted export can be repeated."""
    check_edit()
    new = {name: encoded(text) for name, text in edited_patches().items()}
    comments = [line for line in (PATCHES / "series").read_text().splitlines() if line.startswith("#")]
    new["series"] = encoded("\n".join([*comments, *new]) + "\n")
    began = {path.name: path.read_bytes() for path in patch_files(EDIT / BEGAN)}
    now = {path.name: path.read_bytes() for path in patch_files(PATCHES)}
    changed = [name for name in sorted(now.keys() | began.keys())
               if now.get(name) not in (began.get(name), new.get(name))]  # fmt: skip
    if changed:
        raise Failure(
            f"patches/ has changed since the edit began: {', '.join(changed)}. Put it back as it was (git stash), "
            "export, and merge the two (git stash pop)"
        )
    gone = sorted(now.keys() - new.keys())
    if unnamed := [name for name in gone if name not in removed]:
        raise Failure(
            f"no commit has the name of these patches: {', '.join(unnamed)}. If they are to go, say so: "
            f"tools/patchqueue.py export {' '.join(f'--remove {name}' for name in unnamed)}"
        )
    with tempfile.TemporaryDirectory(prefix="spillway-export-") as folder:
        check_export(Path(folder), new)
    changed = [name for name, content in new.items() if now.get(name) != content]
    for name in changed:
        if name != "series":
            write_atomically(PATCHES / name, new[name])
    write_atomically(PATCHES / "series", new["series"])
    for name in gone:
        (PATCHES / name).unlink()
    write_atomically(EDIT / EXPORTED, commit_of(EDIT, QUEUE))
    aside = EDIT.with_name(f"{EDIT.name}.{time.strftime('%Y%m%d-%H%M%S')}")
    EDIT.rename(aside)
    say(f"changed, of {len(new) - 1} patches: {', '.join(changed) or 'nothing'}; see the change with: git diff patches")
    if gone:
        say(f"removed: {', '.join(gone)}")
    say(f"the edit is kept in {aside.relative_to(REPO)}")


def check_export(folder, files):
    """Fail unless these files of patches/ pass the lint and apply to the edit's base."""
    queue_folder, base = folder / "patches", folder / "base"
    queue_folder.mkdir()
    for name, content in files.items():
        (queue_folder / name).write_bytes(content)
    queue = Queue.load(queue_folder)
    queue.lint()
    for name in queue.files():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_bytes(encoded(git(EDIT, "show", f"{BASE}:{name}").stdout))
    queue.apply(base)


def check():
    queue = Queue.load()
    queue.lint()
    queue.apply(pristine_tree())
    say(f"{len(queue.patches)} patches apply without fuzz or offset and export to the same bytes")


def stats():
    queue = Queue.load()
    rows = sorted(((len(p.changed("+")), len(p.changed("-")), p.name) for p in queue.patches), reverse=True)
    for added, removed, name in rows:
        print(f"{added:4} added {removed:3} removed  {name}")
    added, removed = sum(row[0] for row in rows), sum(row[1] for row in rows)
    say(f"{len(rows)} patches, {len(queue.files())} upstream files, {added} lines added, {removed} removed")


def run():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("lint", "check", "stats"):
        commands.add_parser(name)
    commands.add_parser("export").add_argument("--remove", action="append", default=[], metavar="PATCH")
    commands.add_parser("edit").add_argument("paths", nargs="*", metavar="PATH")
    arguments = parser.parse_args()
    if arguments.command in ("edit", "export"):
        with locked("patch-edit"):
            edit(arguments.paths) if arguments.command == "edit" else export(arguments.remove)
    else:
        {"lint": lambda: Queue.load().lint(), "check": check, "stats": stats}[arguments.command]()


if __name__ == "__main__":
    sys.exit(main(run))
