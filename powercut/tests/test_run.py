"""How a run of cuts treats the outcomes; no server."""

import contextlib
import io
import json
import struct
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

from powercut import powercut


class Run(unittest.TestCase):
    """Made-up cuts: for each seed, what is wrong with the outcome."""

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


class Failures(unittest.TestCase):
    def test_a_failure_is_reported_at_once(self):
        fails = mock.patch.object(powercut, "run_configuration", side_effect=powercut.Failure("no server"))
        with fails, mock.patch.object(powercut, "say") as say, self.assertRaises(powercut.Failure):
            powercut.run_and_report("ext4", {}, Path("nowhere"), None, None)
        say.assert_called_once_with("ext4 ended: no server")


class Report(unittest.TestCase):
    def test_servers_and_repetitions_are_told_apart(self):
        """The same seed with another server, or in a later run, is another cut."""
        def outcome(server, seed, wrong=None):
            return json.dumps({"configuration": "ext4", "how": "cut", "server": server, "seed": seed, "wrong": wrong,
                               "interrupted": 3, "torn": 1})  # fmt: skip

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "outcomes.jsonl"
            # Two cuts of a, the second with a loss; two of b; seed 1 of b again.
            lines = [outcome("a", 1), outcome("a", 1), outcome("a", 2, "lost"), outcome("a", 2),
                     outcome("b", 1), outcome("b", 1), outcome("b", 2), outcome("b", 2), outcome("b", 1)]  # fmt: skip
            file.write_text("\n".join(lines) + "\n")
            with contextlib.redirect_stdout(io.StringIO()) as text:
                powercut.report(types.SimpleNamespace(files=[file]))
        self.assertEqual(text.getvalue().splitlines()[2:],
                         ["| ext4 | cut | a | 2 | 4 | 0 | 12 | 4 | 1 |", "| ext4 | cut | b | 3 | 5 | 0 | 15 | 5 | 0 |"])


class Load(unittest.TestCase):
    def test_a_cut_without_transfers_is_no_cut(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(powercut, "COUNTER_SECONDS", 0.1):
            cases = types.SimpleNamespace(name="ext4", places=Path(folder), folder=Path(folder))
            (cases.folder / "load.log").write_text("FATAL: no server")
            with self.assertRaisesRegex(powercut.Failure, "no transfer is acknowledged.*\n.*no server"):
                powercut.Cases.wait_for_transfers(cases)
            (cases.places / "1").write_bytes(struct.pack("d", 1.0))
            powercut.Cases.wait_for_transfers(cases)
