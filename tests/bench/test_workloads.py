"""Each workload for a few seconds on the fork, and its check on damaged data."""

import contextlib
import tempfile
from pathlib import Path

from bench.runner import data
from bench.runner.plan import BUILT, read_plan
from spillway.common import Failure
from spillway.instance import DATABASE, Instance, identify
from spillway.sysbench import run_sysbench, sysbench_command

from .bench_run import DEVICE, BenchTest

SYSBENCHS_OWN = ("oltp_write_only", "oltp_update_index", "oltp_read_write")
# The data of this workload is aged.
AGED = "oltp_update_index"
WORKLOADS = {
    "insert12": {},
    "tpcc": {"warehouses": 2},
    "dbstress_rw": {"objects": 500},
    **{name: {"tables": 1, "table_size": 500} for name in SYSBENCHS_OWN},
}
# A statement that damages rows, the message of the check, and a statement that repairs them.
TPCC_DAMAGE = (
    ("UPDATE warehouse SET w_ytd = w_ytd + 1", "condition 1: violated", "UPDATE warehouse SET w_ytd = w_ytd - 1"),
    ("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 7", "condition 2: violated",
     "UPDATE district SET d_next_o_id = d_next_o_id - 1 WHERE d_id = 7"),
    # After the load the oldest new order is 2101.
    ("UPDATE new_order SET no_o_id = 1 WHERE no_w_id = 2 AND no_d_id = 3 AND no_o_id = 2101", "condition 3: violated",
     "UPDATE new_order SET no_o_id = 2101 WHERE no_w_id = 2 AND no_d_id = 3 AND no_o_id = 1"),
    ("UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_d_id = 2 AND o_id = 9", "condition 4: violated",
     "UPDATE orders SET o_ol_cnt = o_ol_cnt - 1 WHERE o_d_id = 2 AND o_id = 9"),
)  # fmt: skip
DBSTRESS_DAMAGE = (
    ("DELETE FROM HISTORY WHERE REF_OBJECT = '0000000007' LIMIT 1", "VIOLATED", "DO 0"),
)  # fmt: skip
INSERT12_DAMAGE = (("INSERT INTO trade5 (account, amount, text) VALUES (1, 1, '')", "0, 0, 0, 0, 1, 0", "DO 0"),)


class Workloads(BenchTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tables = "".join(
            f'[workloads.{name}]\nscript = "{name}"\nclients = 8\n'
            f"options = {{ {', '.join(f'{option} = {value}' for option, value in options.items())} }}\n"
            + ("age_transactions = 100\n" if name == AGED else "")
            for name, options in WORKLOADS.items()
        )

    def test_each(self):
        plan = self.plan("each", self.tables + DEVICE, measured_s=2)
        self.works("run", plan)
        runs = {run["workload"]: run for run in self.runs(plan).values()}
        self.assertEqual(set(runs), set(WORKLOADS))
        for name, run in runs.items():
            self.assertGreater(run["figures"]["transactions"], 0, name)
            self.assertEqual(run["check"] is None, name in SYSBENCHS_OWN, name)
        (log,) = (self.folder / "loaded").glob("*/ageing.log")
        self.assertIn(AGED, log.parent.name)
        self.assertRegex(log.read_text(), r"total number of events: +100\b")
        # The table at the top of the report has all workloads.
        page = (self.results(plan) / "report.html").read_text()
        self.assertIn("<td>dbstress_rw on disk: transactions, 1/s ↑</td>", page)
        for condition in (1, 2, 3, 4):
            self.assertIn(f"consistency condition {condition}: holds", runs["tpcc"]["check"])
        self.assertGreater(runs["tpcc"]["figures"]["new_orders_per_min"], 0)
        kinds = set(runs["tpcc"]["figures"]["by_kind"])
        self.assertLessEqual(kinds, {"new_order", "payment", "order_stat", "delivery", "stock_level"})
        self.assertLessEqual({"new_order", "payment"}, kinds)
        count = {kind: of["count"] for kind, of in runs["dbstress_rw"]["figures"]["by_kind"].items()}
        # Each of 8 clients alternates, so it has at most one more of one kind.
        self.assertLessEqual(abs(count["read"] - count["write"]), 8)

    def test_think_times(self):
        """20 clients have keying times of at least 2 s, then think times: none does more than two transactions in 4 s,
        and response times do not include these waits."""
        options = "options = { warehouses = 2, think_times = true }\n"
        workload = f'[workloads.think]\nscript = "tpcc"\nclients = 20\n{options}'
        plan = self.plan("think", workload + DEVICE, measured_s=4)
        self.works("run", plan)
        (run,) = self.runs(plan).values()
        self.assertTrue(0 < run["figures"]["transactions"] < 40, run["figures"]["transactions"])
        self.assertLess(run["figures"]["p50_ms"], 1500)
        self.assertEqual(run["clients_behind"], 0)

    @contextlib.contextmanager
    def loaded(self, name):
        """Gives a workload of test_each's plan, a server on a copy of its data, and a folder."""
        (workload,) = (one for one in read_plan(self.folder / "each.toml").workloads if one.name == name)
        program = identify(BUILT["fork"])
        of_name = data.loaded_for(workload, program.family, {"innodb_buffer_pool_size": "128M"}).folder.name
        found = self.folder / "loaded" / of_name / "data"
        self.assertTrue(found.exists(), "test_each loads it")
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            folder = Path(place)
            copied = data.copy(found, folder)
            with Instance(program, copied, folder) as instance:
                instance.start({"innodb_buffer_pool_size": "128M", "skip_log_bin": True})
                yield workload, instance, folder

    def damage(self, name, damages):
        """The check of this workload's loaded data passes, and fails after each damage."""
        with self.loaded(name) as (workload, instance, folder):
            command = [*sysbench_command(workload.script, instance, workload.options), "check"]
            log = folder / "check.log"
            run_sysbench(command, log, "before")
            for damage, message, repair in damages:
                instance.sql(f"USE {DATABASE}; {damage}")
                with self.assertRaisesRegex(Failure, "^the check failed"):
                    run_sysbench(command, log, "the check")
                self.assertIn(message, log.read_text())
                instance.sql(f"USE {DATABASE}; {repair}")
            if repair != "DO 0":
                run_sysbench(command, log, "after")

    def test_wrong_data(self):
        for name, damages in (("tpcc", TPCC_DAMAGE), ("dbstress_rw", DBSTRESS_DAMAGE), ("insert12", INSERT12_DAMAGE)):
            with self.subTest(name):
                self.damage(name, damages)


    def test_wrong_data_of_sysbenchs_own(self):
        with self.loaded("oltp_write_only") as (workload, instance, _):
            data.check_sysbenchs_own(workload, instance)
            instance.sql(f"DELETE FROM {DATABASE}.sbtest1 LIMIT 1")
            with self.assertRaisesRegex(Failure, "sbtest1 has 499 rows of 500"):
                data.check_sysbenchs_own(workload, instance)
            instance.sql(f"DROP INDEX k_1 ON {DATABASE}.sbtest1")
            with self.assertRaisesRegex(Failure, "k_1"):
                data.check_sysbenchs_own(workload, instance)
