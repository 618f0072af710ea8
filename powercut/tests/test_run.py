"""What a run of cuts does with what comes of them; without a server."""

import io
import sys
import types
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import powercut


class Run(unittest.TestCase):
    """Cuts that are made up: of each seed, what is wrong with what is left."""

    def run_cuts(self, loses, wrong):
        self.seeds = []

        def one(_, base, seed):
            self.seeds.append(seed)
            yield {"seed": seed, "wrong": wrong(seed)}

        arguments = types.SimpleNamespace(how="cut", cuts=5, seed=1, keep=None, server=Path("mysqld"))
        configuration = {"filesystem": "ext4", "options": {}, "loses": loses}
        with (
            mock.patch.object(powercut, "identify"),
            mock.patch.object(powercut, "say"),
            mock.patch.multiple(powercut.Cases, storage=mock.MagicMock(), prepare=mock.MagicMock(), one=one),
        ):
            return powercut.run_configuration("made-up", configuration, Path("nowhere"), arguments, io.StringIO())

    def setUp(self):
        self.addCleanup(powercut.STOPPING.clear)
        self.enterContext(mock.patch.object(Path, "mkdir"))

    def test_nothing_may_be_lost(self):
        self.assertTrue(self.run_cuts("never", lambda seed: None))
        self.assertEqual(self.seeds, [1, 2, 3, 4, 5])
        self.assertFalse(self.run_cuts("never", lambda seed: "lost" if seed == 2 else None))
        self.assertEqual(self.seeds, [1, 2, 3, 4, 5])

    def test_something_has_to_be_lost(self):
        self.assertTrue(self.run_cuts("pages", lambda seed: "lost" if seed == 7 else None))
        self.assertEqual(self.seeds[-1], 7)
        self.assertFalse(self.run_cuts("pages", lambda seed: None))

    def test_no_cut_begins_when_it_is_to_stop(self):
        def stop(seed):
            if seed == 2:
                powercut.STOPPING.set()

        with self.assertRaisesRegex(powercut.Failure, "stopped after 2 of 5"):
            self.run_cuts("never", stop)
        self.assertEqual(self.seeds, [1, 2])


if __name__ == "__main__":
    unittest.main()
