"""Dead links are found."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
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


if __name__ == "__main__":
    unittest.main()
