"""Plans: the runner can read the suite's own, and names the place of a mistake."""

import contextlib
import json
import os
import shutil
import tempfile
import types
import unittest
import unittest.mock as mock
from pathlib import Path

from bench.runner import experiment, figures, plan
from bench.runner.load import Load
from spillway.block_throttle import Limits
from spillway.common import REPO, Failure, Skip

PLANS = REPO / "bench/plans"
GOOD = """
title = "t"
description = "d"
[run]
repetitions = 2
measured_s = 5
[options]
a = 1
b = 1
c = 1
d = 1
[servers.one]
mysqld = "stock"
options = { d = 4 }
[servers.two]
mysqld = "/nowhere/mariadbd"
[workloads.w]
script = "insert12"
server_options = { c = 3, d = 3 }
[workloads.open]
script = "insert12"
arrivals_pct = 75
of = "w"
[devices.d]
model = "hdd-mirror"
server_options = { b = 2, c = 2, d = 2 }
"""


class Plan(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def read(self, text):
        path = self.folder / "plan.toml"
        path.write_text(text)
        return plan.read_plan(path)

    def wrong(self, message, before, after):
        self.assertIn(before, GOOD)
        with self.assertRaisesRegex(Failure, message):
            self.read(GOOD.replace(before, after, 1))

    def test_all_that_come_with_the_suite(self):
        paths = sorted(PLANS.glob("*.toml"))
        self.assertGreater(len(paths), 5)
        for path in paths:
            with self.subTest(path.name):
                self.assertTrue(experiment.runs_of(plan.read_plan(path)))

    def test_servers_alternate(self):
        names = [run.name for run in experiment.runs_of(self.read(GOOD))]
        self.assertEqual(names[:4], ["d.w.1.one", "d.w.1.two", "d.w.2.one", "d.w.2.two"])
        self.assertEqual(len(names), 8)

    def test_file_system_of_a_server(self):
        read = self.read(GOOD.replace('[servers.two]', '[servers.two]\nfilesystem = "xfs-reflink"', 1))
        first, second, *_ = experiment.runs_of(read)
        self.assertEqual((first.device.filesystem, second.device.filesystem), ("", "xfs-reflink"))
        self.assertEqual((first.device.name, second.device.name), ("d", "d"))
        self.assertNotEqual(first.device.key, second.device.key)

    def test_options_of_the_server_come_last(self):
        read = self.read(GOOD)
        first, second, *_ = experiment.runs_of(read)
        self.assertEqual(experiment.options_of(read, first), {"a": 1, "b": 2, "c": 3, "d": 4})
        self.assertEqual(experiment.options_of(read, second)["d"], 3)

    def test_values(self):
        read = self.read(GOOD)
        self.assertEqual(read.servers[0].mysqld, plan.BUILT["stock"])
        self.assertEqual(read.workloads[0].script, plan.WORKLOADS / "insert12.lua")
        self.assertTrue(read.workloads[0].has_check)
        self.assertEqual(read.devices[0].limits.write_iops, 120)
        self.assertEqual((read.workloads[0].clients, read.warmup_redo_writes), (32, 3))

    def test_device_of_ones_own(self):
        read = self.read(GOOD.replace('model = "hdd-mirror"', "write_iops = 7\nread_bytes_per_s = 9"))
        limits = read.devices[0].limits
        self.assertEqual((limits.write_iops, limits.read_bytes_per_s, limits.read_iops), (7, 9, None))

    def test_timed_disk(self):
        timed = 'model = "replicated"\nfilesystem = "ext4"\nin_memory = true'
        device = self.read(GOOD.replace('model = "hdd-mirror"', timed)).devices[0]
        self.assertEqual((device.timing.latency_ms, device.limits), (25, Limits()))
        self.wrong("a timed disk is in memory: in_memory = true", 'model = "hdd-mirror"', 'model = "replicated"')
        self.wrong("has no limits of the block throttle", 'model = "hdd-mirror"', "latency_ms = 1.5\nwrite_iops = 7")

    def test_mistakes(self):
        self.wrong("Expected", "[run]", "[run")
        self.wrong(r"'title' is missing", 'title = "t"', "")
        self.wrong(r"\[run\]: 'measured_s' is missing", "measured_s = 5", "")
        self.wrong(r"'measured_s' is 0, not from 1 to 86400", "measured_s = 5", "measured_s = 0")
        self.wrong(r"'measured_s' is '5', not of type int", "measured_s = 5", 'measured_s = "5"')
        self.wrong(r"'repetitions' is True", "repetitions = 2", "repetitions = true")
        self.wrong(r"\[run\]: unknown: measured", "measured_s = 5", "measured_s = 5\nmeasured = 5")
        self.wrong(r"unknown: other", 'title = "t"', 'title = "t"\nother = 1')
        self.wrong(r"\[workloads.w\]: there is no script .*nothing.lua", '"insert12"', '"nothing"')
        self.wrong(r"\[devices.d\]: model 'ssd' is none of hdd-mirror, ", "hdd-mirror", "ssd")
        self.wrong(r"filesystem 'fat' is none of ext4, ", "model =", 'filesystem = "fat"\nmodel =')
        self.wrong(r"\[servers.one\]: filesystem 'fat' is none", "options = { d = 4 }", 'filesystem = "fat"')
        self.wrong(r"what is 'in_memory' has a 'filesystem'", "model =", "in_memory = true\nmodel =")
        self.wrong(r"\[devices.d\]: unknown: write_iops", "model =", "write_iops = 1\nmodel =")
        self.wrong(r"\[workloads.open\]: 'x' is no workload above it", 'of = "w"', 'of = "x"')
        self.wrong(r"\[workloads.open\]: 'open' is no workload above it", 'of = "w"', 'of = "open"')
        self.wrong(r"\[workloads.w\]: 'w' is no workload above it whose", "[workloads.open]",
                   'arrivals_pct = 5\nof = "w"\n[workloads.open]')  # fmt: skip
        self.wrong(r"warmup_max_s is less than warmup_min_s", "measured_s = 5", "measured_s = 5\nwarmup_max_s = 9")
        self.wrong(r"'warmup_redo_writes' is nan", "measured_s = 5", "measured_s = 5\nwarmup_redo_writes = nan")
        self.wrong(r"size 'lots' is not a number of bytes", "model =", 'size = "lots"\nmodel =')
        self.wrong(r"'options.rate' is set by the runner; .*'arrivals'", "arrivals_pct = 75", "options = { rate = 5 }")
        self.wrong(r"clients that think follow no arrivals", "arrivals_pct = 75",
                   "arrivals_pct = 75\noptions = { think_times = true }")  # fmt: skip
        self.wrong(r"'options.tx_rate' is set by the runner", "arrivals_pct = 75", "options = { tx_rate = 5 }")
        self.wrong(r"'options.mysql_db' is set by the runner", "arrivals_pct = 75", 'options = { mysql-db = "x" }')
        self.wrong(r"\[workloads.open\]: a percentage needs 'of'", 'of = "w"', "")
        self.wrong(r"9\.0 transactions/s are too few for 32 clients; take 18", "arrivals_pct = 75", "arrivals = 9")
        self.wrong(r"arrivals and arrivals_pct are two ways", "arrivals_pct = 75", "arrivals_pct = 75\narrivals = 99")
        self.wrong(r"bursts need arrivals", "arrivals_pct = 75", "burst_arrivals = 9")
        self.wrong(r"measured_s is no multiple", "arrivals_pct = 75", "arrivals_pct = 75\nburst_arrivals = 9")
        self.wrong(r"'server_options.datadir' is set by the runner", "c = 3", 'datadir = "x"')
        self.wrong(r"'server_options.bind_address' is set by", "c = 3", 'bind-address = "x"')
        self.wrong(r"'server_options.loose_datadir' is set by", "c = 3", 'loose-datadir = "x"')
        self.wrong(r"'server_options.f' is a path outside", "c = 3", 'f = "/dev/sda:10M"')
        self.wrong(r"'server_options.f' is a path outside", "c = 3", 'f = "a:10M;/dev/sda:10M"')
        self.wrong(r"burst_length_s is not less", "arrivals_pct = 75", "arrivals_pct = 75\nburst_length_s = 30")
        self.wrong(r"\[servers.one\]: 'options' is 4", "options = { d = 4 }", "options = 4")
        self.wrong(r"'options.d' is neither", "options = { d = 4 }", "options = { d = [4] }")
        self.wrong(r"the name 'a b' has other characters", "[servers.one]", '[servers."a b"]')
        with self.assertRaisesRegex(Failure, r"'servers' is missing"):
            self.read(GOOD.replace("[servers.", "[server."))

    def test_no_file(self):
        with self.assertRaises(FileNotFoundError):
            plan.read_plan(self.folder / "nothing.toml")


class Grace(unittest.TestCase):
    """The runner waits for a client until it has ended a transaction that began or was due after the window."""

    def test_behind(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        # Ended and begun after 100 s; ended after it, due before; one record and a piece of another; an empty file.
        contents = (figures.RECORD.pack(102_000_000, 1_000_000, b""), figures.RECORD.pack(130_000_000, 31_000_000, b""),
                    figures.RECORD.pack(102_000_000, 1_000_000, b"") + b"x", b"")  # fmt: skip
        for name, content in enumerate(contents):
            (folder / str(name)).write_bytes(content)
        waits = folder / "waits"
        waits.mkdir()
        load = types.SimpleNamespace(records=folder, waits=waits, clients=5)
        load.files = lambda: Load.files(load)
        self.assertEqual(sorted(Load.behind(load, 100)), [0, 0, 99])
        self.assertEqual(sorted(Load.behind(load, 98.9)), [0, 0])
        # A client that waits beyond the moment has no transaction under way; one whose wait ended before it may have.
        (waits / "1").write_bytes(figures.WAIT.pack(100.5))
        (waits / "3").write_bytes(figures.WAIT.pack(99.5))
        self.assertEqual(sorted(Load.behind(load, 100)), [0, 0])


class Folder(unittest.TestCase):
    """A folder of results belongs to one plan and one set of programs."""

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.plan_path = self.folder / "plan.toml"
        self.text = GOOD.replace('"stock"', '"/bin/true"').replace("/nowhere/mariadbd", "/bin/false")
        self.plan_path.write_text(self.text)
        self.results = self.folder / "results"
        experiment.WORK.mkdir(parents=True, exist_ok=True)

    def experiment(self):
        return experiment.Experiment(plan.read_plan(self.plan_path), self.results, False)

    def test_goes_on_with_the_same(self):
        self.experiment().take_folder()
        self.experiment().take_folder()
        self.assertEqual((self.results / "plan.toml").read_text(), self.text)

    def test_another_plan(self):
        self.experiment().take_folder()
        self.plan_path.write_text(self.text + "\n")
        with self.assertRaisesRegex(Failure, r"begun with other things \(plan\).*--output"):
            self.experiment().take_folder()

    def test_somebody_elses_folder(self):
        self.results.mkdir()
        (self.results / "thesis.txt").write_text("x")
        with self.assertRaisesRegex(Failure, "was not made by this command"):
            self.experiment().take_folder()

    def test_device_that_the_machine_does_not_have(self):
        one = self.experiment()
        with self.assertRaisesRegex(Failure, "no such groups; to go on .*--without-device-models"):
            one.fall_back(one.plan.devices[0], Skip("no such groups"))
        experiment.Experiment(one.plan, self.results, True).fall_back(one.plan.devices[0], Skip("no such groups"))

    def test_devices_are_tried(self):
        """If the machine lacks a device model, the plan ends; or, with --without-device-models, goes on without it."""

        @contextlib.contextmanager
        def refused(*_, **__):
            raise Skip("not here")
            yield

        self.plan_path.write_text(self.text + 'filesystem = "ext4"\n[devices.plain]\nmodel = "unlimited"\n')
        without_throttle = mock.patch("spillway.block_throttle.throttled", refused)
        with mock.patch("spillway.filesystem.mounted", refused), without_throttle:
            with self.assertRaisesRegex(Failure, "d ext4: not here; to go on"):
                self.experiment().try_devices()
            one = experiment.Experiment(plan.read_plan(self.plan_path), self.results, True)
            one.try_devices()
        self.assertEqual(one.device_support, {"d ext4": (False, False), "plain": (False, False)})
        one.take_folder()
        # The machine supports it later: runs with it cannot be compared with those without.
        one.device_support["d ext4"] = (True, True)
        with self.assertRaisesRegex(Failure, r"begun with other things \(given\)"):
            one.take_folder()
        # Devices of finished runs are not tried again, and the earlier findings are kept.
        one.device_support = {}
        one.take_folder()
        for run in one.runs:
            one.path(run).mkdir(parents=True)
            (one.path(run) / "run.json").write_text("{}")
        with without_throttle:
            self.experiment().try_devices()

    def test_seconds_left_follow_what_runs_took(self):
        one = self.experiment()
        self.assertEqual(one.seconds_left(), 8 * (5 + 10 + experiment.GUESSED_OVERHEAD_S))
        self.assertEqual(one.seconds_left(900), 8 * (5 + 900 + experiment.GUESSED_OVERHEAD_S))
        path = one.path(one.runs[0])
        path.mkdir(parents=True)
        (path / "run.json").write_text('{"took_s": 100}')
        self.assertTrue(one.finished(one.runs[0]))
        self.assertEqual(one.seconds_left(), 700)

    def test_a_repetition_is_done_as_a_whole(self):
        """An interrupted repetition is repeated as a whole, and a finished one is not."""
        one = self.experiment()
        for run in one.runs[:3]:
            one.path(run).mkdir(parents=True)
            (one.path(run) / "run.json").write_text("{}")
        done = []
        one.run_one = done.append
        one.result = lambda run: {"figures": {"cpu_steal_pct": None}}
        for runs in one.repetitions()[:2]:
            one.carry_out_repetition(runs)
        self.assertEqual([run.name for run in done], ["d.w.2.one", "d.w.2.two"])
        self.assertEqual([one.finished(run) for run in one.runs[:4]], [True, True, False, False])

    def test_a_noisy_repetition_is_done_again(self):
        """All its runs are repeated, three attempts in total. The quietest counts; the report shows the others, too."""
        for steals, kept in (((5, 5), 0), ((5, 11, 4, 3), 1), ((9, 3, 4, 4), 1), ((50, 1, 30, 1, 40, 40, 0, 0), 1)):
            one = self.experiment()
            shutil.rmtree(self.results, ignore_errors=True)
            self.results.mkdir()
            one.plan.max_steal_pct = 10
            left = list(steals)

            def measure(run, one=one, left=left):
                one.path(run).mkdir(parents=True)
                of_run = {"figures": {"cpu_steal_pct": left.pop(0), "mean_per_s": 1}}
                (one.path(run) / "run.json").write_text(json.dumps(of_run))

            one.run_one = measure
            runs = one.repetitions()[0]
            one.carry_out_repetition(runs)
            pairs = list(zip(*[iter(steals[: len(steals) - len(left)])] * 2, strict=True))
            self.assertLessEqual(len(pairs), 3)
            self.assertEqual(tuple(one.result(run)["figures"]["cpu_steal_pct"] for run in runs), pairs.pop(kept))
            path = self.results / "discarded.json"
            discarded = json.loads(path.read_text()) if path.exists() else []
            self.assertEqual([run["cpu_steal_pct"] for run in discarded], [steal for pair in pairs for steal in pair])

    def test_folder_of_somebody_elses(self):
        """SPILLWAY_BENCH with files of others is refused, because the runner would empty work/."""
        (self.folder / "work").mkdir()
        (self.folder / "work/thesis").touch()
        with (
            mock.patch.object(experiment.data, "BENCH", self.folder),
            mock.patch.object(experiment, "WORK", self.folder / "work"),
        ):
            with self.assertRaisesRegex(Failure, "was not made by this command"):
                experiment.make_work()
            (self.folder / "made-by-spillway").touch()
            with mock.patch.object(experiment.data, "LOADED", self.folder / "loaded"):
                experiment.make_work()
                # Others could put a data directory there, on which the runner would start a server.
                (self.folder / "loaded").mkdir()
                (self.folder / "loaded").chmod(0o777)
                with self.assertRaisesRegex(Failure, "can be changed by others"):
                    experiment.make_work()
                (self.folder / "loaded").rmdir()
                (self.folder / "loaded").symlink_to(self.folder / "work")
                with self.assertRaisesRegex(Failure, "is a link"):
                    experiment.make_work()

    def test_stale_server(self):
        """A result names the checkout's commit, but the server may have been built earlier."""
        program = self.folder / "build/fork/release/runtime_output_directory/mysqld"
        source = self.folder / "storage/innobase/x.cc"
        self.assertEqual(experiment.fork_state(self.folder), "not built")
        for path in (program, source):
            path.parent.mkdir(parents=True)
            path.touch()
        os.utime(source, (1, 1))
        self.assertEqual(experiment.fork_state(self.folder), "newer than its sources")
        os.utime(program, (0, 0))
        self.assertEqual(experiment.fork_state(self.folder), "older than storage/innobase/x.cc: make server")

    def test_changed_while_it_runs(self):
        one = self.experiment()
        program = self.folder / "server"
        program.write_text("1")
        one.plan.servers[0].mysqld = program
        one.check_unchanged()
        one.check_unchanged()
        program.write_text("22")
        with self.assertRaisesRegex(Failure, "changed since this command began: .*server"):
            one.check_unchanged()

    def test_other_limits(self):
        self.experiment().take_folder()
        one = self.experiment()
        one.plan.devices[0].limits = Limits(write_iops=1)
        with self.assertRaisesRegex(Failure, r"begun with other things \(devices\)"):
            one.take_folder()

    def test_rate_of_the_reference(self):
        one = self.experiment()
        for run, mean in zip(one.runs[:4], (100, 900, 300, 900), strict=True):
            path = one.path(run)
            path.mkdir(parents=True)
            (path / "run.json").write_text(f'{{"figures": {{"mean_per_s": {mean}}}}}')
        self.assertEqual(one.arrivals(one.runs[4]), (150, 0))
        self.assertEqual(one.arrivals(one.runs[0]), (0, 0))
        one.runs[4].workload.clients = 301
        with self.assertRaisesRegex(Failure, "150.0 transactions/s are too few for 301 clients; take 300"):
            one.arrivals(one.runs[4])
