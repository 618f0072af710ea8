"""The lints find dead links, long sentences and words to avoid."""

import tempfile
import unittest
from pathlib import Path

import documents


class Links(unittest.TestCase):
    def test_links(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "b.md").write_text("# One `two`, three\n## [Four](x)\n    # code\n")
        for link, problem in (
            ("b.md", None), ("b.md#one-two-three", None), ("b.md#four", None), ("https://x.invalid/y", None),
            ("#a", None), ("c.md", "is not there"), ("b.md#five", "no such heading"), ("b.md#code", "no such heading"),
            ("#b", "no such heading"),
        ):  # fmt: skip
            with self.subTest(link):
                (folder / "a.md").write_text(f"# A\nsee [it]({link})\n")
                found = list(documents.dead_links(["a.md"], folder))
                self.assertEqual(len(found), 1 if problem else 0, found)
                self.assertIn(problem or "", "".join(found))


class Words(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def found(self, name, text):
        (self.folder / name).write_text(text)
        return list(documents.wrong_words([name], self.folder))

    def test_only_text_counts(self):
        """Code in pages and sources does not count."""
        self.assertEqual(len(self.found("a.md", "A session takes turns.\n")), 1)
        self.assertEqual(self.found("a.md", "The command `takes turns`.\n\n    takes turns\n"), [])
        self.assertEqual(len(self.found("a.cc", "/** Takes\nturns. */ int i; // as ever\n")), 2)
        self.assertEqual(len(self.found("a.cc", 'say("5 in all");\n')), 1)
        self.assertEqual(self.found("a.cc", "in = all; takes(turns);\n"), [])
        self.assertEqual(len(self.found("a.patch", "Why: who writes waits\n---\n+ who writes\n")), 1)

    def test_parts_of_words_do_not_count(self):
        self.assertEqual(self.found("a.md", "It returns in allowed time. The outlook atrium.\n"), [])

    def test_long_sentences(self):
        def found(text):
            (self.folder / "a.md").write_text(text)
            return len(list(documents.long_sentences(["a.md"], self.folder)))

        words = " ".join(["word"] * 41)
        self.assertEqual(found(f"{words}.\n"), 1)
        self.assertEqual(found(f"| {words[:-5]} | {words} |\n"), 1)
        self.assertEqual(found(words[:-5] + ". " + words[:-5] + ".\n"), 0)
        self.assertEqual(found(words[:-5] + "\n\n" + words[:-5] + "\n- " + words[:-5] + "\n"), 0)
        self.assertEqual(found(f"    {words}\n"), 0)
