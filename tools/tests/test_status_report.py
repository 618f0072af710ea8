"""spillway-status --read: what it concludes from recorded samples. tests/server/test_status_report.py has a server."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import documents
from spillway.common import REPO

STATUS = REPO / "scripts/spillway-status"
# Its exit status.
WELL, FINDINGS, UNREADABLE = 0, 1, 2
SECONDS = 10
COLUMNS = 100
MIB = 1 << 20
ON = {"ahead_flushing": "ON"}
SETTINGS = {
    "adaptive_flushing": "ON", "ahead_flushing": "OFF", "ahead_flushing_age_pct": "75.000000",
    "ahead_flushing_device": "LATENCY", "ahead_flushing_max_delay_us": "500000", "aio_pending_ios_per_thread": "256",
    "buffer_pool_size": str(64 * MIB), "doublewrite": "ON", "doublewrite_files": "2", "doublewrite_pages": "128",
    "extend_ahead_pct": "0", "extend_and_initialize": "ON", "flush_log_at_trx_commit": "1",
    "flush_method": "O_DIRECT", "io_capacity": "10000", "io_capacity_max": "20000",
    "buffer_pool_instances": "1", "log_buffer_size": str(64 * MIB), "lru_scan_depth": "1024", "page_cleaners": "1",
    "redo_log_capacity": str(64 * MIB), "use_atomic_writes": "OFF",
}  # fmt: skip
OTHERS = {"version_comment": "Spillway 1.0.0 (GPL), MySQL Community Server 9.7.2", "log_bin": "ON", "sync_binlog": "1"}
STATE = {
    "ahead_flush_delays": 0, "ahead_flush_delay_us": 0, "ahead_flush_sessions_delayed": 0,
    "ahead_flush_throttle_state": "off", "ahead_flush_oldest_page_age_bytes": 0,
    "ahead_flush_measured_capacity": 0, "aio_read_depth": 256, "aio_read_threads": 4, "aio_read_slots_used": 0,
    "aio_write_depth": 256, "aio_write_threads": 4, "aio_write_slots_used": 3, "buffer_pool_pages_dirty": 100,
    "buffer_pool_pages_total": 4096, "checkpoint_age": 5 * MIB, "checkpoint_sync_age": 50 * MIB,
    "checkpoint_max_age": 53 * MIB, "lsn_current": 1000 * MIB, "rows_inserted": 500,
    "threads_connected": 21, "threads_running": 1, "row_lock_current_waits": 0, "row_lock_waits": 0,
}  # fmt: skip
KINDS = ("aio_read", "aio_write", "binlog_group", "binlog_sync", "binlog_write", "checkpoint", "commit", "doublewrite",
         "file_delete", "file_extend", "file_extend_others", "file_sync", "free_page", "latch", "log_buffer",
         "log_writer", "page_cleaner", "page_read", "page_write", "redo_space", "sync_flush",
         "write_throttle")  # fmt: skip
# Of no session.
INTERNAL = ("checkpoint", "log_writer", "page_cleaner", "sync_flush")
# A finding only if sessions wait meanwhile.
OF_INNODB = ("checkpoint", "doublewrite", "file_sync", "latch", "page_cleaner")
HEADLINE = "InnoDB writes well: there are no findings."
# Kinds of which any wait is a finding, and its words.
AT_ONCE = {"log_writer": "The log writer waited", "redo_space": "Redo space ran out",
           "page_cleaner": "The page cleaners were slow: 1 pass of more than 1 s.",
           "sync_flush": "1 episode of sync flushing"}  # fmt: skip
FIGURES = ("count", "waiting", "time_us", "sessions_time_us", "max_us", "over_10ms", "over_100ms", "over_1s")
# The page that a finding names.
PAGE = re.compile(r"\(([a-z-]+\.md(?:#[a-z-]+)?)\)$", re.MULTILINE)


def stall(kind, **figures):
    """Figures of a kind of stall. Its time is that of sessions, unless the figures say otherwise."""
    if "time_us" in figures and kind not in INTERNAL:
        figures = {"sessions_time_us": figures["time_us"]} | figures
    return {f"stall_{kind}_{name}": value for name, value in figures.items()}


def long_wait(kind):
    """A wait of two seconds of a session has ended."""
    return stall(kind, count=1, time_us=2_000_000, over_1s=1)


def rows(values, prefix="Innodb_"):
    return [f"{prefix}{name}\t{value}" for name, value in values.items()]


def record(*changes, settings=None, others=None, kinds=KINDS, uptime=5000):
    """What a server has sent: a sample each second. changes: the status that begins with sample 1, 2, ...; the last
    one stays."""
    lines = [f"#settings\t{SECONDS}", *rows(SETTINGS | (settings or {}), "innodb_"), *rows(OTHERS | (others or {}), "")]
    status = STATE | {f"stall_{kind}_{figure}": 0 for kind in kinds for figure in FIGURES}
    changes = list(changes) or [{}]
    for second in range(max(SECONDS, len(changes) - 1) + 1):
        status |= changes[min(second, len(changes) - 1)]
        lines += [f"#sample\t{1_700_000_000 + second}.25\t2026-11-27 00:00:00", *rows(status)]
        lines += [f"Uptime\t{uptime + second}", "#done"]
    return "\n".join([*lines, "#end\t0", "#message\t", ""])


class Recorded(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_on(self, text, *options, locale="C"):
        file = self.folder / "record"
        file.write_text(text)
        return subprocess.run([STATUS, f"--read={file}", *options], capture_output=True, text=True, check=False,
                              env=os.environ | {"LC_ALL": locale}, cwd=self.folder)  # fmt: skip

    def report(self, status, text, *options, **how):
        """Make the report of a record; check its exit status and form. Returns it."""
        result = self.run_on(text, *options, **how)
        self.assertEqual((result.returncode, result.stderr), (status, ""), result.stdout + result.stderr)
        for line in result.stdout.splitlines():
            self.assertLessEqual(len(line), COLUMNS, line)
        for page, _, anchor in (name.partition("#") for name in PAGE.findall(result.stdout)):
            text = (REPO / "docs/guide" / page).read_text()
            self.assertTrue(not anchor or anchor in documents.anchors(text), f"{page} has no heading {anchor}")
        self.assertEqual(HEADLINE in result.stdout, status == WELL)
        return result.stdout

    def found(self, expected, *changes, page="", **how):
        """There is one finding, with these words and this page."""
        said = " ".join(self.report(FINDINGS, record({}, *changes, **how)).partition("1 finding; ")[2].split())
        self.assertNotEqual(said, "")
        for words in expected:
            self.assertIn(words, said)
        self.assertIn(f"({page}", said)

    def noted(self, expected, *changes, page, **how):
        """The server is well, and there is a note."""
        said = " ".join(self.report(WELL, record({}, *changes, **how)).partition(HEADLINE)[2].split())
        self.assertIn(expected, said)
        self.assertIn(f"({page}", said)


class Report(Recorded):
    def test_well(self):
        said = self.report(WELL, record({}, {"lsn_current": 1000 * MIB + 100 * MIB}))
        for words in ("Up 83 min. Watched for 10 s, until 2026-11-27 00:00:00 UTC", "innodb_ahead_flushing=OFF",
                      "innodb_redo_log_capacity=64M", "sync_binlog=1", "redo generation 10.0 MiB/s",
                      "checkpoint age 5.0 MiB, 10 % of sync age 50.0 MiB; sessions wait above 53.0 MiB",
                      "21 connected, 1 running, 0 waiting for row locks", "dirty pages 100 of 4096, 2 %",
                      "writes 3 of 1024 in use, 0 waits", "\n  none\n"):  # fmt: skip
            self.assertIn(words, said)

    def test_ahead_flushing(self):
        said = self.report(WELL, record(
            {"ahead_flush_oldest_page_age_bytes": 40 * MIB},
            {"ahead_flush_rounds_age": 75, "ahead_flush_rounds_none": 25, "buffer_pool_flush_ahead_pages": 900,
             "buffer_pool_flush_lru_pages": 100, "buffer_pool_pages_flushed": 1000, "ahead_flush_delays": 10,
             "ahead_flush_delay_us": 320000, "ahead_flush_throttle_state": "limited",
             "ahead_flush_redo_limit_bytes_per_s": 3 * MIB, "ahead_flush_measured_capacity": 1438,
             "ahead_flush_sessions_delayed": 0} | stall("write_throttle", count=10),
            *[{}] * 8,
            # A delay that has not ended has no time.
            stall("write_throttle", count=11, waiting=1)
            | {"ahead_flush_delays": 11, "ahead_flush_sessions_delayed": 1},
            settings=ON))  # fmt: skip
        for words in ("oldest page age 40.0 MiB, 80 % of the sync age", "100 pages/s", "ahead 90 %, lru 10 %",
                      "flush rounds by trigger: none 25 %, age 75 %", "device write capacity 1438 pages/s (measured)",
                      "limited to 3.0 MiB/s of redo; 1 session delayed now; 11 delays, mean 32 ms"):  # fmt: skip
            self.assertIn(words, said)

    def test_server_that_does_not_write(self):
        nothing = {name: 0 for name in STATE if name.startswith("checkpoint_")}
        self.assertIn("the server does not write", self.report(WELL, record(nothing, settings={"read_only": "ON"})))
        samples = "".join(f"#sample\t{i}\tx\nUptime\t{i}\n#done\n" for i in "123")
        few = self.report(WELL, f"#settings\nversion_comment\tSpillway\n{samples}", "--plot")
        self.assertIn("innodb_ahead_flushing=not known", few)

    def test_files(self):
        said = self.report(WELL, record({"atomic_write_files_doublewrite": 0, "atomic_write_files_rwf": 7},
                                        {"atomic_write_doublewrite_avoided": 55, "file_extend_bytes": 4 * MIB},
                                        settings={"use_atomic_writes": "AUTO"}))  # fmt: skip
        self.assertIn("files by method: 0 doublewrite, 7 rwf; 55 pages written atomically", said)
        self.assertIn("extended by sessions 4.0 MiB, ahead 0 bytes", said)

    def test_hostile_values(self):
        said = self.report(WELL, record(
            settings={"flush_method": "$(touch made)`touch made`\x1b[2J", "io_capacity": "%s%n", "doublewrite": "'x'"},
            others={"version_comment": "Spillway \x9b2J'; touch made; '" + "x" * 500}))  # fmt: skip
        self.assertIsNone(re.search(r"[^ -~\n]", said))
        self.assertEqual([path.name for path in self.folder.iterdir()], ["record"])


class Stalls(Recorded):
    def sessions(self, kind, *changes, **how):
        """The column of sessions that waited on average."""
        said = self.run_on(record(*changes, **how)).stdout
        return float(re.search(rf"^  {kind} +(\S+) ", said, re.MULTILINE).group(1))

    def test_waits_that_ended(self):
        changes = stall("commit", count=500, time_us=900_000), {}, stall("commit", count=900, time_us=30_900_000)
        self.assertEqual(self.sessions("commit", {}, *changes, kinds=("commit",)), 3.1)

    def test_waits_in_progress(self):
        """Eight sessions wait from before the first sample, and after the last one."""
        self.assertEqual(self.sessions("redo_space", stall("redo_space", count=8, waiting=8)), 8.0)

    def test_wait_that_began_earlier(self):
        """Its time is longer than the watch."""
        ended = stall("redo_space", count=2, waiting=0, time_us=120_000_000)
        waiting = stall("redo_space", count=2, waiting=2)
        self.assertEqual(self.sessions("redo_space", waiting, *[{}] * 4, ended), 1.0)

    def test_sessions_are_not_threads(self):
        """Three quarters of the waiting time were those of InnoDB's threads, or counted in another kind."""
        waited = stall("doublewrite", count=90, time_us=40_000_000, sessions_time_us=10_000_000)
        self.assertEqual(self.sessions("doublewrite", {}, *(
            {name: value * second // 10 for name, value in waited.items()} for second in range(1, 11)
        ), kinds=("doublewrite", "commit")), 1.0)  # fmt: skip

    def test_most_waited_for_comes_first(self):
        changes = [
            stall("commit", count=9 * i, time_us=500_000 * i, sessions_time_us=500_000 * i)
            | stall("doublewrite", count=9 * i, time_us=900_000 * i, sessions_time_us=0)
            for i in range(11)
        ]
        said = self.report(WELL, record(*changes))
        self.assertRegex(said, r"sessions .*\n  commit +0\.5 .*\n  doublewrite +0\.0 ")
        self.assertNotIn("redo_space", said)

    def test_many_kinds(self):
        changes = {}
        for kind in KINDS:
            changes |= stall(kind, count=1)
        said = self.report(FINDINGS, record({}, changes))
        self.assertIn(f"and {len(KINDS) - 6} kinds more", said)

    def test_no_more_sessions_than_there_are(self):
        """Three waits of 9 s end in the same second as many short ones."""
        waits = [stall("commit", count=3 + 500 * i, waiting=3, time_us=0) for i in range(10)]
        ended = stall("commit", count=5003, waiting=0, time_us=27_000_000)
        for connections, waiting in (({"threads_connected": 9}, 8), ({}, 20), ({"threads_connected": 0}, 3)):
            said = self.run_on(record(waits[0] | connections, *waits[1:], ended), "--plot").stdout
            self.assertIn(f"| max {waiting}\n", said.partition("sessions waiting ")[2])

    def test_standstill(self):
        waiting = stall("redo_space", count=4, waiting=4)
        said = self.report(FINDINGS, record(*({"rows_inserted": 100 * i} for i in range(6)), waiting))
        self.assertIn("No row was changed in 4 seconds in which sessions waited.", said)


class Findings(Recorded):
    """One finding each; what causes it and its page."""

    def test_redo_space(self):
        wait = stall("redo_space", count=3, time_us=900)
        self.found(["Redo space ran out: 3 waits.", "SET GLOBAL innodb_ahead_flushing = ON;", "64.0 MiB"], wait,
                   page="steady-flushing.md#switch-it-on")  # fmt: skip
        self.found(["innodb_ahead_flushing_max_delay_us = DEFAULT;"], wait, page="steady-flushing.md#backups",
                   settings=ON | {"ahead_flushing_max_delay_us": "0"})  # fmt: skip
        self.found(["a lower innodb_ahead_flushing_age_pct"], wait, settings=ON,
                   page="read-a-stall.md#with-ahead-flushing")  # fmt: skip

    def test_redo_space_that_sessions_wait_for_now(self):
        self.found(["Redo space ran out: 9 waits, 8 in progress."], stall("redo_space", count=9, waiting=8),
                   page="steady-flushing.md")  # fmt: skip
        before = record(stall("redo_space", count=1, waiting=1))
        said = self.report(FINDINGS, before)
        self.assertIn("Redo space ran out: 1 wait in progress, begun before the watch.", said)
        self.assertRegex(said, r"\n  redo_space +1\.0 +1 ")

    def test_late_checkpoints(self):
        """With ahead flushing pages are flushed in time, and syncs take long."""
        late = stall("redo_space", count=1) | {"checkpoint_age": 49 * MIB}
        self.found(["(oldest page age 80 % of the sync age)", "(checkpoint age 98 %)", "checkpoint and file_sync"],
                   late | {"ahead_flush_oldest_page_age_bytes": 40 * MIB}, settings=ON,
                   page="read-a-stall.md#cause-and-action")  # fmt: skip
        self.found(["a lower innodb_ahead_flushing_age_pct"], late | {"ahead_flush_oldest_page_age_bytes": 48 * MIB},
                   settings=ON, page="read-a-stall.md#with-ahead-flushing")  # fmt: skip

    def test_row_locks(self):
        """Waits that come and go are no finding."""
        self.found(["8 sessions waited for row locks", "sys.innodb_lock_waits"],
                   {"row_lock_current_waits": 8, "row_lock_waits": 8}, page="read-a-stall.md#locks")  # fmt: skip
        said = self.report(WELL, record(*({"row_lock_current_waits": 2, "row_lock_waits": 9 * i} for i in range(11))))
        self.assertIn("2 waiting for row locks", said)

    def test_sync_flushing(self):
        self.found(["about to run out: 2 episodes of sync flushing", "innodb_ahead_flushing = ON"],
                   stall("sync_flush", count=2), page="steady-flushing.md")  # fmt: skip

    def test_stopped(self):
        stopped, limited = ({"ahead_flush_throttle_state": state} for state in ("stopped", "limited"))
        self.found(["redo generation was stopped in 2 samples"], stopped, {}, limited, settings=ON,
                   page="read-a-stall.md#with-ahead-flushing")  # fmt: skip
        self.report(WELL, record(stopped, limited, settings=ON))

    def test_log_writer(self):
        self.found(["The log writer waited for redo space", "innodb_redo_log_capacity (now 64.0 MiB)"],
                   stall("log_writer", count=1), page="read-a-stall.md#a-log-writer-that-waits")  # fmt: skip

    def test_hang(self):
        hangs = stall("log_writer", count=1, waiting=1) | stall("redo_space", count=9, waiting=9)
        said = self.report(FINDINGS, record(hangs))
        self.assertIn("no commit that writes redo ends", said)
        self.assertIn(f"SET GLOBAL innodb_redo_log_capacity = {8 * 64 * MIB};", said)
        self.assertIn("1 finding;", said)
        self.assertIn("A restart loses it", said)
        large = record(hangs, settings={"redo_log_capacity": str(100 << 30)})
        self.assertIn(f"innodb_redo_log_capacity = {512 << 30};", self.report(FINDINGS, large))

    def test_disk_that_does_not_answer(self):
        """Its waits in progress are one finding, and neither redo space nor ahead flushing is the cause."""
        commits = stall("commit", count=18, waiting=8)
        checkpoint = stall("checkpoint", count=1, waiting=1)
        space = stall("redo_space", count=4, waiting=4)
        page = "read-a-stall.md#a-disk-that-does-not-answer"
        self.found(["In 8 s no wait of these kinds has ended: commit (8 in progress).", "The disk of the redo log does",
                    "Do not run SET GLOBAL"], stall("commit", count=10), commits, page=page)  # fmt: skip
        self.found(["redo log and the data files does", "(8 in progress), checkpoint (1 in progress), redo_space (4"],
                   commits | checkpoint | space, page=page)  # fmt: skip
        self.found(["The disk of the data files does"], space | checkpoint | stall("log_writer", count=1, waiting=1),
                   page=page)  # fmt: skip
        self.found(["The disk of the binary log does"], stall("binlog_sync", count=1, waiting=1), page=page)
        # A leader writes, and the groups behind wait.
        self.found(["no write to the binary log has ended", "the disk of the binary log is full"],
                   stall("binlog_write", count=1, waiting=1) | stall("binlog_group", count=9, waiting=9), page=page)

    def test_disk_that_answers(self):
        """Waits of the same disk end."""
        slow = [stall("commit", count=8 + i, waiting=8, over_1s=i) for i in range(11)]
        self.found(["Long waits of kind 'commit': 17 waits, 9 of more than 1 s, 8 in progress"], *slow[:10])
        ended = [stall("checkpoint", count=1, waiting=1) | stall("file_sync", count=i) for i in range(11)]
        self.assertNotIn("does not answer", self.run_on(record({}, *ended)).stdout)

    def test_threads_of_innodb(self):
        """If no session waits, their waits are a note."""
        for kind in OF_INNODB:
            with self.subTest(kind):
                wait = stall(kind, count=1, time_us=2_000_000, sessions_time_us=0, over_1s=1)
                self.noted("Threads of InnoDB waited; no session did.", wait, page="read-a-stall.md#cause-and-action")

    def test_delayed_sessions(self):
        """Short delays. Below one session on average they are a note."""
        for sessions, status in ((0.9, WELL), (4.7, FINDINGS)):
            changes = [
                stall("write_throttle", count=99 * i, time_us=int(sessions * 1e6 * i)) | {"ahead_flush_delays": 99 * i}
                for i in range(11)
            ]
            said = self.report(status, record(*changes, settings=ON))
            self.assertEqual("The write throttle delayed 4.7 sessions on average." in said, status == FINDINGS)
            self.assertEqual(said.count("The device is the limit."), 1)

    def test_long_waits(self):
        """Every kind: its advice with ahead flushing off and on. A wait of less than a second is no finding."""
        for kind in (*KINDS, "a_later_kind"):
            for settings in ({}, ON):
                with self.subTest(kind=kind, settings=settings):
                    kinds = {*KINDS, kind}
                    others = stall("log_buffer", count=900, time_us=900_000) if kind in OF_INNODB else {}
                    self.found([AT_ONCE.get(kind, f"Long waits of kind '{kind}': 1 wait, 1 of more than 1 s.")],
                               long_wait(kind) | others, kinds=kinds, settings=settings)  # fmt: skip
                    in_progress = stall(kind, count=1, waiting=1) | others
                    self.assertEqual(self.run_on(record({}, in_progress, kinds=kinds)).returncode, FINDINGS)
                    short = record({}, stall(kind, count=10, time_us=900_000, over_100ms=10) | others, kinds=kinds)
                    self.assertEqual(self.run_on(short).returncode, FINDINGS if kind in AT_ONCE else WELL)

    def test_advice(self):
        """The variable that depends on a setting."""
        small, last = {"log_buffer_size": str(MIB)}, {"extend_ahead_pct": "10", "extend_and_initialize": "OFF"}
        for kind, settings, words, page in (
            ("log_buffer", {}, "the device of the redo log is slow", "read-a-stall.md#cause"),
            ("log_buffer", small, "innodb_log_buffer_size (now 1.0 MiB)", "read-a-stall.md#cause"),
            ("free_page", {}, "innodb_lru_scan_depth (now 1024)", "read-a-stall.md#cause"),
            ("aio_write", {}, "innodb_aio_pending_ios_per_thread", "aio-depth.md"),
            ("file_extend", {}, "SET PERSIST innodb_extend_ahead_pct = 10;", "preallocate.md#on-a"),
            ("file_extend_others", {"extend_ahead_pct": "10"}, "innodb_extend_and_initialize = OFF", "preallocate.md"),
            ("file_extend", last, "or SET EXTENT_SIZE of the table", "preallocate.md#on-a"),
            ("doublewrite", {}, "innodb_doublewrite_files (now 2)", "read-a-stall.md#cause"),
            ("commit", {}, "innodb_flush_log_at_trx_commit = 2", "read-a-stall.md#cause"),
            ("commit", ON, "innodb_flush_log_at_trx_commit = 2", "read-a-stall.md#cause"),
            ("binlog_sync", ON, "sync_binlog = 0", "read-a-stall.md#cause"),
            ("page_read", {}, "innodb_buffer_pool_size", "read-a-stall.md#cause"),
            ("page_cleaner", {}, "a lower innodb_io_capacity (now 10000) and then", "read-a-stall.md#cause"),
            ("page_cleaner", ON, "set a lower innodb_lru_scan_depth", "read-a-stall.md#cause"),
            ("free_page", {"buffer_pool_instances": "8"}, "more innodb_page_cleaners (now 1)", "read-a-stall.md#cause"),
            ("write_throttle", ON, "innodb_redo_log_capacity (now 64.0 MiB)", "steady-flushing.md#a-delayed"),
        ):  # fmt: skip
            with self.subTest(kind=kind, settings=settings):
                others = stall("log_buffer", count=900, time_us=900_000) if kind in OF_INNODB else {}
                self.found([words], long_wait(kind) | others, settings=settings, page=page)
        for kind in ("commit", "page_read"):
            self.found(["innodb_ahead_flushing = ON"], long_wait(kind) | {"buffer_pool_pages_flushed": 900},
                       page="steady-flushing.md#switch-it-on")  # fmt: skip
        self.found(["a lower innodb_io_capacity (now 10000) and then"],
                   long_wait("page_cleaner") | stall("log_buffer", count=900, time_us=900_000)
                   | {"buffer_pool_pages_flushed": 900}, page="read-a-stall.md#cause")  # fmt: skip
        self.found(["Wait a minute"], long_wait("write_throttle"), settings=ON, uptime=20)

    def test_extension_is_one_finding(self):
        """Others wait for the thread that extends the file."""
        self.found(["kind 'file_extend': 1 wait"], long_wait("file_extend") | long_wait("file_extend_others"))

    def test_single_pages(self):
        self.found(["No free page: threads flushed 7 single pages."],
                   {"buffer_pool_flush_single_page_pages": 7}, page="read-a-stall.md#cause-and-action")  # fmt: skip

    def test_io_capacity_max(self):
        self.found(["innodb_io_capacity_max (now 400)", "SET GLOBAL innodb_io_capacity_max = 20000"],
                   {"ahead_flush_rounds_limited_io_capacity_max": 5}, page="steady-flushing.md#switch-it-on",
                   settings=ON | {"io_capacity_max": "400"})  # fmt: skip
        # In the other order the server would change the second value.
        self.found(["SET GLOBAL innodb_io_capacity = 10000, GLOBAL innodb_io_capacity_max = 20000;"],
                   {"ahead_flush_rounds_limited_io_capacity_max": 5},
                   settings=ON | {"io_capacity": "30000", "io_capacity_max": "40000"})  # fmt: skip
        self.found(["set a higher innodb_io_capacity_max."], {"ahead_flush_rounds_limited_io_capacity_max": 5},
                   settings=ON | {"ahead_flushing_device": "UTIL"})  # fmt: skip

    def test_no_space(self):
        self.found(["its disk is nearly full", "Free disk space"], {"tablespace_extend_ahead_no_space": 1},
                   page="preallocate.md#check-it")  # fmt: skip

    def test_lowered_depth(self):
        depths = {"aio_write_depth": 480, "aio_read_depth": 4096}
        self.found(["The AIO depth of writes is 480", "fs.aio-max-nr"], depths,
                   settings={"aio_pending_ios_per_thread": "4096"}, page="aio-depth.md#check-it")  # fmt: skip

    def test_notes(self):
        kept = {"atomic_write_files_doublewrite": 3}
        for expected, change, settings, page in (
            ("5 reads waited for an AIO slot", {"aio_read_slot_waits": 5}, {}, "aio-depth.md"),
            ("The device is the limit.", {"ahead_flush_rounds_limited_device": 1}, ON, "read-a-stall.md#with-ahead"),
            ("The device is the limit.", {"ahead_flush_delays": 100}, ON, "read-a-stall.md#with-ahead-flushing"),
            ("percentage of dirty pages", {"ahead_flush_rounds_dirty": 1}, ON, "read-a-stall.md#with-ahead-flushing"),
            ("innodb_flush_neighbors = 0", {"buffer_pool_flush_neighbor_pages": 1}, {}, "read-a-stall.md#what-is"),
            ("3 files keep the doublewrite buffer", kept, {"use_atomic_writes": "AUTO"}, "atomic-writes.md#check-it"),
        ):  # fmt: skip
            with self.subTest(expected):
                self.noted(expected, change, settings=settings, page=page)


class Picture(Recorded):
    def bars(self, text, name, locale="C"):
        """The lowest row of a drawing, without its frame."""
        lines = self.report(self.run_on(text).returncode, text, "--plot", locale=locale).splitlines()
        begin = next(i for i, line in enumerate(lines) if line.startswith(name))
        return next(line.split("|")[1] for line in lines[begin:] if " min " in line)

    def test_columns(self):
        changed = record(*({"rows_inserted": n} for n in (0, 100, 200, 200, 300, 400, 500, 600, 700, 800, 900)))
        self.assertEqual(self.bars(changed, "row changes/s"), "##_#######")
        self.assertEqual(self.bars(changed, "row changes/s", "C.UTF-8"), "██·███████")
        self.assertNotIn("row changes/s", self.report(WELL, changed))
        self.assertNotIn("row changes/s", self.report(WELL, changed, "--plot", "--no-plot"))

    def test_heights(self):
        waiting = record({}, *(stall("doublewrite", count=0, waiting=n) for n in (1, 2, 3, 4, 8, 8, 8, 8, 8, 8)))
        self.assertEqual(self.bars(waiting, "sessions waiting", "C.UTF-8"), "·▂▄▆██████")
        self.assertEqual(self.bars(waiting, "sessions waiting"), "_.::######")

    def test_a_long_watch(self):
        """Up to 60 columns. A short wait stays visible."""
        ages = record(*({"checkpoint_age": 60 * MIB if i == 77 else 0} for i in range(131)))
        bars = self.bars(ages, "checkpoint age")
        self.assertEqual(len(bars), 44)
        self.assertEqual(bars.replace("_", ""), "#")
        self.assertIn("One column is 3 seconds", self.report(WELL, ages, "--plot"))
        minute = record(*({"checkpoint_age": i * MIB // 2} for i in range(61)))
        self.assertEqual(len(self.bars(minute, "checkpoint age")), 60)
        self.assertIn("One column is 1 second", self.report(WELL, minute, "--plot"))


class Refused(Recorded):
    def error(self, expected, text, *options):
        result = self.run_on(text, *options)
        self.assertEqual(result.returncode, UNREADABLE, result.stdout)
        self.assertIn(expected, result.stderr)
        return result.stdout

    def test_not_a_record(self):
        self.error("is no record", "")
        self.error("is no record", "root:x:0:0:root:/root:/bin/bash\n")
        self.error("mysql could not read the server: ERROR 2002", "#end\t1\n#message\tERROR 2002 no server\n")
        self.error("use an account with CONNECTION_ADMIN", "#end\t1\n#message\tERROR 1040 (HY000): Too many\n")
        self.error("The server does not answer", "#end\t1\n#message\tERROR 2013 'initial communication packet'\n")
        self.error("the server did not answer for 60 s.", "#end\t137\tthe server did not answer for 60 s\n#message\t\n")
        whole = record()
        self.error("less than two samples", whole[: whole.index("#done")])

    def test_not_spillway(self):
        self.error("this server is 'MySQL Community Server - GPL', not Spillway",
                   record(others={"version_comment": "MySQL Community Server - GPL"}))  # fmt: skip

    def test_connection_that_ended(self):
        """The report is made of the samples that are there. The last one is not complete."""
        text = record({}, stall("redo_space", count=1))
        text = text[: text.rindex("#done")] + "#end\t1\n#message\tERROR 2013 (HY000): Lost connection\n"
        said = self.error("the report is incomplete: the connection was lost: ERROR 2013", text)
        self.assertIn("Incomplete: the connection was lost, after 9 of 10 s.\n1 finding;", said)
        self.assertNotIn("writes well", self.error("incomplete", record().replace("#end\t0", "#end\t1\tinterrupted")))
        self.assertIn("Watched for 9 s", said)
        self.assertIn("Redo space ran out", said)

    def test_options(self):
        for option, expected in (
            *((f"--seconds={n}", "a number from 1 to 600") for n in ("0", "601", "1x", "", "9" * 30)),
            ("--read", "needs its value"), ("--read=/no/such", "cannot be read"), ("--read=/", "is no record"),
            ("-eSELECT 1", "its own statements"), ("--execute=SELECT 1", "its own statements"),
            ("--record=x", "remove '--record'"), ("--user=root", "remove '--user=root'"),
        ):  # fmt: skip
            with self.subTest(option):
                self.error(expected, record(), option)

    def test_help(self):
        result = subprocess.run([STATUS, "--help"], capture_output=True, text=True, check=True)
        self.assertIn("Usage: spillway-status", result.stdout)


if __name__ == "__main__":
    unittest.main()
