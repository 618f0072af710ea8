"""The runner in success and in failure."""

import json
import os
import signal
import time
from pathlib import Path

from bench.runner.io_account import NAMES

from .bench_run import DEVICE, WORKLOAD, BenchTest


class Runner(BenchTest):
    def wait_for(self, tool, text):
        """Read the tool's output up to a line that contains text."""
        said = []
        for line in tool.stdout:
            said.append(line)
            if text in line:
                return
        self.fail(f"'{text}' was not said:\n{''.join(said)}")

    def test_run_report_and_again(self):
        plan = self.plan("twice", repetitions=2)
        output = self.works("run", plan)
        self.assertIn("[2/2] disk.small.2.fork", output)
        self.assertIn("about 0 min left", output)
        self.assert_nothing_is_left()
        runs = self.runs(plan)
        self.assertEqual(sorted(runs), ["disk.small.1.fork", "disk.small.2.fork"])
        for run in runs.values():
            found = run["figures"]
            self.assertGreater(found["transactions"], 0)
            self.assertEqual(sum(run["series"]["transactions"][-3:]), found["transactions"])
            self.assertGreater(found["p50_ms"], 0)
            # From InnoDB's status variables, InnoDB's metrics and the process.
            for name in ("Innodb_os_log_written", "metric.buffer_flush_sync_total_pages", "process.user_ticks"):
                self.assertIn(name, found["counters_added"])
            self.assertGreater(found["redo_bytes_per_transaction"], 0)
            self.assertIn("redo_space", found["stalls"])
            self.assertTrue(run["is_steady"])
        page = (self.results(plan) / "report.html").read_text()
        for text in ("small on disk", "data:image/webp;base64,", "redo_space", "innodb_redo_log_capacity"):
            self.assertIn(text, page)
        self.assertNotIn("src=\"http", page)
        self.assertNotIn(str(self.folder), page)
        result = (self.results(plan) / "result.json").read_text()
        self.assertNotIn(str(self.folder), result)
        spread = json.loads(result)["comparisons"][0]["figures"]["mean_per_s"]["fork"]
        self.assertEqual(spread["of"], 2)
        self.assertTrue((self.results(plan) / "disk.small.seconds.png").read_bytes().startswith(b"\x89PNG"))
        # The tool does not repeat a finished run.
        self.assertEqual(self.works("run", plan).count("of 2 are done already"), 2)
        self.assertEqual(self.runs(plan), runs)
        # A changed plan cannot resume in this folder.
        self.plan("twice", repetitions=3)
        self.assertIn("was begun with other things (plan)", self.fails("run", plan))

    def test_warm_up_lasts_until_the_redo_log_was_written_over(self):
        plan = self.plan("steady", measured_s=1, warmup_redo_writes=0.5)
        self.works("run", plan)
        (run,) = self.runs(plan).values()
        self.assertTrue(run["is_steady"])
        self.assertGreaterEqual(run["warmup_redo_writes"], 0.5)
        plan = self.plan("unsteady", measured_s=1, warmup_redo_writes=1000, warmup_max_s=2)
        self.works("run", plan)
        (run,) = self.runs(plan).values()
        self.assertFalse(run["is_steady"])
        self.assertIn("not steady", (self.results(plan) / "report.html").read_text())

    def test_server_that_dies(self):
        """The run is lost, earlier ones are kept, and the same command resumes."""
        plan = self.plan("death", repetitions=2, measured_s=4)
        with self.begin("run", plan) as tool:
            self.wait_for(tool, "[2/2] disk.small.2.fork: copying")
            while "--records=" not in self.processes():
                self.assertIsNone(tool.poll())
            server = next(line for line in self.processes().splitlines() if "--defaults-file=" in line)
            os.kill(int(server.split()[0]), signal.SIGKILL)
            output = tool.stdout.read()
        self.assertEqual(tool.returncode, 1, output)
        self.assertRegex(output, r"error: \S*mysqld ended by signal 9; \S*error.log says:")
        self.assertIn("what is done is kept in", output)
        self.assertNotIn("Traceback", output)
        self.assert_nothing_is_left()
        first = self.runs(plan)
        self.assertEqual(list(first), ["disk.small.1.fork"])
        self.works("report", self.results(plan))
        self.assertIn("1 of 2 runs are done", (self.results(plan) / "report.html").read_text())
        output = self.works("run", plan)
        self.assertEqual(output.count("of 2 are done already"), 1)
        self.assertEqual(self.runs(plan)["disk.small.1.fork"], first["disk.small.1.fork"])
        self.assertNotIn("runs are done", (self.results(plan) / "report.html").read_text())

    def test_interrupt(self):
        plan = self.plan("interrupt", measured_s=60)
        for end, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            with self.begin("run", plan) as tool:
                self.wait_for(tool, "copying")
                while "--records=" not in self.processes():
                    self.assertIsNone(tool.poll())
                tool.send_signal(end)
                if end == signal.SIGHUP:
                    # A closing terminal sends two signals; the second must not interrupt the cleanup after the first.
                    tool.send_signal(end)
                output = tool.stdout.read()
            self.assertEqual(tool.returncode, status, output)
            self.assert_nothing_is_left()

    def test_killed(self):
        """The processes that it started end with it, and the next start discards what it left."""
        plan = self.plan("killed", measured_s=2)
        with self.begin("run", plan) as tool:
            self.wait_for(tool, "copying")
            while "--records=" not in self.processes():
                self.assertIsNone(tool.poll())
            tool.kill()
        deadline = time.monotonic() + 30
        while self.processes():
            self.assertLess(time.monotonic(), deadline, self.processes())
        self.assertTrue((self.folder / "work/data").exists())
        (self.folder / "work/data/ibdata1").write_bytes(b"torn")
        (self.folder / "work/of-another-kind").mkdir()
        self.works("run", plan)
        self.assert_nothing_is_left()

    def test_loaded_data_that_does_not_pass_the_check(self):
        """The runner checks loaded data with the workload's own check, if there is one."""
        script = self.folder / "wrong.lua"
        script.write_text("""sysbench.cmdline.commands = {
           prepare = {function() end}, check = {function() error("no rows", 0) end}}""")
        wrong = f'[workloads.small]\nscript = "{script}"\n'
        output = self.fails("run", self.plan("wrong", wrong + DEVICE))
        self.assertRegex(output, "the check of the data that was loaded for small failed(?s:.*)no rows")
        self.assert_nothing_is_left()

    def test_what_is_missing(self):
        plan = self.plan("missing")
        nothing = self.environment | {"PATH": "/nowhere"}
        self.assertIn("sysbench is not installed: make packages", self.fails("run", plan, env=nothing))
        self.assertIn("No such file", self.fails("run", self.folder / "no.toml"))
        text = plan.read_text()
        plan.write_text(text.replace("measured_s = 3", ""))
        self.assertIn("[run]: 'measured_s' is missing", self.fails("run", plan))
        plan.write_text(text.replace('mysqld = "fork"', 'mysqld = "/nowhere/mysqld"'))
        self.assertIn("there is no server /nowhere/mysqld; build", self.fails("run", plan))
        plan.write_text(text.replace('mysqld = "fork"', 'mysqld = "/bin/true"'))
        self.assertIn("does not say that it is a server", self.fails("run", plan))
        self.assertIn("is no folder of results", self.fails("report", self.folder))

    def test_option_that_the_server_does_not_know(self):
        wrong = WORKLOAD.replace("clients = 4", "clients = 4\nserver_options = { innodb_no_such = 1 }")
        output = self.fails("run", self.plan("option", wrong + DEVICE))
        self.assertIn("unknown variable 'innodb_no_such=1'", output)
        self.assertNotIn("loading", output)
        self.assert_nothing_is_left()

    def test_load_that_fails(self):
        wrong = WORKLOAD.replace("table_size = 1000", "table_sise = 1000")
        output = self.fails("run", self.plan("load", wrong + DEVICE))
        self.assertIn("loading the data of small failed; ", output)
        self.assertIn("table-sise", output)
        self.assert_nothing_is_left()

    def test_load_that_fails_in_one_of_its_threads(self):
        """sysbench then exits with status 0; no run uses the data that it loaded."""
        wrong = WORKLOAD.replace("table_size = 1000", 'table_size = 1000, mysql_storage_engine = "none"')
        plan = self.plan("engine", wrong + DEVICE)
        for _ in range(2):
            output = self.fails("run", plan)
            self.assertIn("loading the data of small failed; ", output)
            self.assertIn("Unknown storage engine", output)

    def test_two_servers_on_a_device(self):
        """A user's comparison: two servers on a file system in memory, with limits."""
        server = '[servers.other]\nmysqld = "fork"\noptions = { innodb_doublewrite = false }\n'
        device = """
        [devices.disk]
        filesystem = "ext4"
        size = "3G"
        in_memory = true
        write_iops = 500
        write_bytes_per_s = 20_000_000
        """
        plan = self.plan("two", server + WORKLOAD + device)
        status, output = self.run_tool("run", plan)
        if status and "--without-device-models" in output:
            output = self.works("run", plan, "--without-device-models")
            self.assertIn("without a device model", output)
            self.assertRegex((self.results(plan) / "report.html").read_text(), "own file system|not held to its model")
            self.skipTest("this machine gives no such device")
        self.assertEqual(status, 0, output)
        runs = self.runs(plan)
        self.assertEqual(set(runs), {"disk.small.1.fork", "disk.small.1.other"})
        for run in runs.values():
            self.assertTrue(run["is_mounted"] and run["is_throttled"])
            # The sampled disk is the loop device.
            self.assertTrue(0 < run["figures"]["disk_writes_per_s"] <= 510, run["figures"]["disk_writes_per_s"])
            if "no account of the disk's writes" not in output:
                self.assert_is_account(run["figures"])
        page = (self.results(plan) / "report.html").read_text()
        self.assertIn('<span class="ratio">×', page)
        # The plan sets it.
        self.assertIn("innodb_flush_log_at_trx_commit=0, innodb_doublewrite=OFF, no binary log", page)
        self.assertNotIn("not equally durable", page)
        self.assertIn("500 writes/s, 20,000,000 bytes/s written; ext4 on a loop device", page)
        compared = json.loads((self.results(plan) / "result.json").read_text())["comparisons"][0]["figures"]
        ratio = compared["mean_per_s"]["other"]["ratio"]["median"]
        means = [runs[f"disk.small.1.{server}"]["figures"]["mean_per_s"] for server in ("other", "fork")]
        self.assertAlmostEqual(ratio, means[0] / means[1], places=4)
        self.assertEqual(list((self.folder / "work").iterdir()), [])

    def assert_is_account(self, found):
        """Each owner is found by its files, and the tracer counts what the kernel's own counters do."""
        owned = {owner: found[f"{owner}_disk_writes_per_transaction"] for owner in NAMES}
        self.assertAlmostEqual(sum(owned.values()), found["disk_writes_per_transaction"])
        per_s = found["disk_writes_per_transaction"] * found["mean_per_s"]
        self.assertAlmostEqual(per_s / found["disk_writes_per_s"], 1, delta=0.2)
        self.assertGreater(owned["redo"], 0)
        self.assertEqual(owned["binary_log"], 0)

    def test_mariadb(self):
        """Debian's package, if installed: the runner loads its data separately and samples it by its own names."""
        mariadbd = Path("/usr/sbin/mariadbd")
        if not mariadbd.exists():
            self.skipTest("mariadb-server-core is not installed")
        server = f'[servers.peer]\nmysqld = "{mariadbd}"\noptions = {{ innodb_log_file_size = "8M" }}\n'
        plan = self.plan("peer", server + WORKLOAD + DEVICE, warmup_redo_writes=0.2)
        self.works("run", plan)
        run = self.runs(plan)["disk.small.1.peer"]
        self.assertEqual(run["redo_capacity_bytes"], 8 << 20)
        self.assertGreaterEqual(run["warmup_redo_writes"], 0.2)
        for name in ("checkpoint_age_max_bytes", "redo_bytes_per_transaction", "dirty_max_pages"):
            self.assertGreater(run["figures"][name], 0, name)
        self.assertIn("not counted", (self.results(plan) / "report.html").read_text())

    def test_open_loop_and_bursts(self):
        """Two burst periods, which begin with the window: two slow seconds, two fast ones."""
        wanted = "arrivals = 40\nburst_arrivals = 160\nburst_period_s = 4\nburst_length_s = 2\n"
        plan = self.plan("bursts", f"{WORKLOAD}{wanted}{DEVICE}", measured_s=8)
        self.works("run", plan)
        (run,) = self.runs(plan).values()
        # 800 are due on average, with a standard deviation of 28; on a slow machine some are still queued.
        self.assertLess(abs(run["figures"]["transactions"] - 800), 200, run["series"]["transactions"])
        each = run["series"]["transactions"][-8:]
        slow, fast = each[0:2] + each[4:6], each[2:4] + each[6:8]
        self.assertLess(sum(slow), sum(fast) / 2, each)
