"""Replication between stock and this server with every feature on, while sessions write: in both directions, after a
power cut of the replica or of the source, and with a replica that is a clone."""

from .replication import PASSWORD, WITHOUT_ATOMIC, Members, plugins, replicate_from
from .scratch import FORK, STOCK, WAIT_SECONDS, wait_until
from .transfers import MIB, PREALLOCATED, SETUP, Load

# A commit waits until a replica has it, as long as that takes.
SEMI_SYNC_SOURCE = ("--rpl-semi-sync-source-enabled=ON", "--rpl-semi-sync-source-timeout=86400000")
SEMI_SYNC_REPLICA = ("--rpl-semi-sync-replica-enabled=ON",)
APPLIED = """SELECT GTID_SUBSET(received_transaction_set, @@GLOBAL.gtid_executed)
  FROM performance_schema.replication_connection_status WHERE channel_name = ''"""
# Redo generation is limited to what a few pages per second reclaim; other than that a slow disk matters little.
SLOW_REPLICA = ("--innodb-redo-log-capacity=8M", "--innodb-io-capacity=100", "--innodb-io-capacity-max=100",
                "--innodb-adaptive-flushing=OFF", "--innodb-max-dirty-pages-pct-lwm=0", "--innodb-idle-flush-pct=0",
                "--innodb-ahead-flushing=ON", "--innodb-ahead-flushing-age-pct=1", "--innodb-ahead-flushing-device=OFF",
                "--replica-pending-jobs-size-max=1M", "--max-allowed-packet=1M", "--innodb-doublewrite=OFF",
                "--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0")  # fmt: skip
APPLIER_ERROR = "SELECT MAX(last_error_number) FROM performance_schema.replication_applier_status_by_coordinator"
# The statements that go to a replica as statements, while sessions write.
DDL = """ALTER TABLE d.own ADD INDEX k (a(20)); OPTIMIZE TABLE d.general;
CREATE TABLE d.copy SELECT * FROM d.own WHERE session = 0; ALTER TABLE d.copy ADD PRIMARY KEY (n); DROP TABLE d.copy;
ALTER TABLE d.own DROP INDEX k;"""


class Replication(Members):
    def setUp(self):
        super().setUp()
        for mysqld in FORK, STOCK:
            if not (plugins(mysqld) / "semisync_source.so").exists():
                self.skipTest(f"{plugins(mysqld)} is not complete: make server stock")

    def set_up(self, source, replica):
        """Replicate the tables of a load. The statement that preallocates space is not replicated."""
        replica.sql(replicate_from(source))
        source.sql(SETUP)
        if source.mysqld == FORK:
            source.sql(f"ALTER TABLESPACE g SET EXTENT_SIZE = {PREALLOCATED // MIB}M")

    def check(self, servers, begin, end):
        """All servers have the rows of one moment."""
        for server in servers:
            begin = end = self.check_rows(server, begin, end)
        tables = "CHECKSUM TABLE d.own, d.general, d.account"
        self.assertEqual(len({server.sql(tables) for server in servers}), 1)
        for server in servers:
            self.assertEqual(server.end(), 0)

    def test_both_directions(self):
        xfs = self.xfs()
        for servers in (STOCK, FORK), (FORK, STOCK):
            with self.subTest(source=servers[0].parts[-4]):
                source, replica = (self.member(mysqld, xfs) for mysqld in servers)
                self.set_up(source, replica)
                with Load(source) as load:
                    source.sql(DDL)
                    load.wait_for_more()
                    replica.sql("STOP REPLICA")
                    load.wait_for_more()
                    replica.sql(replicate_from(source))
                    source.sql(DDL)
                    load.wait_for_more()
                replica.catch_up(source)
                fork = source if source.mysqld == FORK else replica
                self.assertGreater(fork.counter("Innodb_atomic_write_pages_rwf_copy"), 0)
                self.assertEqual(fork.counter("Innodb_dblwr_pages_written"), 0)
                self.check([source, replica], load.last(), load.last())

    def test_power_cut_of_the_replica(self):
        medium = self.medium()
        source, replica = self.member(STOCK, self.folder()), self.member(FORK, medium.top)
        self.set_up(source, replica)
        with Load(source) as load:
            source.sql(DDL)
            load.wait_for_more()
            self.power_cut(replica, medium)
            replica.run()
            load.wait_for_more()
        replica.catch_up(source)
        self.check([source, replica], load.last(), load.last())

    def test_power_cut_of_the_source(self):
        """Semi-synchronous, AFTER_SYNC: what the source has acknowledged is on the replica, which takes its place."""
        medium = self.medium()
        source, replica = self.member(FORK, medium.top), self.member(STOCK, self.folder())
        self.set_up(source, replica)
        replica.catch_up(source)
        for member, options in (source, SEMI_SYNC_SOURCE), (replica, SEMI_SYNC_REPLICA):
            self.assertEqual(member.end(), 0)
            member.run(*options)
        wait_until(lambda: source.counter("Rpl_semi_sync_source_clients") == 1, "no semi-synchronous replica")
        with Load(source) as load:
            source.sql(DDL)
            load.wait_for_more()
            self.power_cut(source, medium)
            rows = load.last()
        replica.sql("STOP REPLICA IO_THREAD")
        wait_until(lambda: replica.sql(APPLIED) == "1", "the applier is behind")
        self.check_rows(replica, rows, rows)
        replica.sql("STOP REPLICA; RESET REPLICA ALL")
        with self.subTest("what the source has on its storage"):
            source.run()
            self.check_rows(source, rows, rows)
            self.assertEqual(source.end(), 0)
        with self.subTest("a new replica of the new source"):
            source = self.member(FORK, self.folder(), features=WITHOUT_ATOMIC)
            source.sql(replicate_from(replica))
            source.catch_up(replica)
            self.check([replica, source], rows, rows)

    def clone(self, donor, recipient):
        """Make recipient a clone of donor, which ends it, and a replica of donor."""
        recipient.sql(f"SET GLOBAL clone_valid_donor_list = '127.0.0.1:{donor.port}'")
        said = recipient.client(f"CLONE INSTANCE FROM r@'127.0.0.1':{donor.port} IDENTIFIED BY '{PASSWORD}'").stderr
        self.assertIn("Restart server failed", said)
        recipient.process.wait(WAIT_SECONDS)
        recipient.run()
        # The donor can be a replica itself, and the clone one of the same source.
        recipient.sql("STOP REPLICA; " + replicate_from(donor))

    def test_clones(self):
        """From storage that writes whole pages to storage that does not, to stock, and back, while sessions write."""
        xfs = self.xfs()
        source = self.member(FORK, xfs)
        source.sql(SETUP)
        with Load(source) as load:
            with_copies = self.member(FORK, self.folder(), features=WITHOUT_ATOMIC)
            self.clone(source, with_copies)
            stock = self.member(STOCK, self.folder())
            self.clone(with_copies, stock)
            back = self.member(FORK, xfs)
            self.clone(stock, back)
            load.wait_for_more()
        for replica, donor in (with_copies, source), (stock, with_copies), (back, stock):
            replica.catch_up(donor)
        self.assertGreater(with_copies.counter("Innodb_dblwr_pages_written"), 0)
        self.assertGreater(back.counter("Innodb_atomic_write_pages_rwf_copy"), 0)
        self.check([source, with_copies, stock, back], load.last(), load.last())

    def test_clone_over_another_database(self):
        """The recipient has doublewrite copies of its own pages, which fit no page of the clone."""
        donor = self.member(FORK, self.folder(), features=WITHOUT_ATOMIC)
        donor.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)")
        recipient = self.member(FORK, self.folder(), features="innodb_use_atomic_writes = OFF")
        recipient.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, a CHAR(200) NOT NULL);"
                      "INSERT INTO d.t WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 1000) "
                      "SELECT n, 'of the recipient' FROM r; FLUSH TABLES d.t FOR EXPORT; UNLOCK TABLES;"
                      "SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0, GLOBAL innodb_max_dirty_pages_pct = 0"
                      )  # fmt: skip
        wait_until(lambda: self.copies_contain(recipient, b"of the recipient"), "no page is written")
        self.clone(donor, recipient)
        self.assertFalse(self.copies_contain(recipient, b"of the recipient"))

    def copies_contain(self, server, text):
        return any(text in path.read_bytes() for path in server.data.glob("*.dblwr"))

    def test_events_that_a_stock_replica_does_not_know(self):
        """Their text is in the binary log, and stops the replica; without the binary log it goes on."""
        source = self.member(FORK, self.folder(), features=WITHOUT_ATOMIC)
        replica = self.member(STOCK, self.folder())
        replica.sql(replicate_from(source))
        source.sql("CREATE DATABASE d")
        for n, (statement, error) in enumerate((("ALTER TABLESPACE g SET EXTENT_SIZE = 64M", "1064"),
                                                ("SET GLOBAL innodb_ahead_flushing = ON", "1193"))):  # fmt: skip
            with self.subTest(statement):
                event = f"CREATE EVENT d.e{{}} ON SCHEDULE EVERY 1 DAY DO {statement}"
                source.sql(f"SET sql_log_bin = 0; {event.format(n)}")
                replica.catch_up(source)
                source.sql(event.format(n + 2))
                wait_until(lambda error=error: replica.sql(APPLIER_ERROR) == error, "the replica has not stopped")
                # Leave the statement out, the source's last one.
                uuid, _, numbers = source.sql("SELECT @@GLOBAL.gtid_executed").partition(":")
                gtid = f"{uuid}:{numbers.rpartition('-')[2]}"
                replica.sql(f"STOP REPLICA; SET gtid_next = '{gtid}'; BEGIN; COMMIT; SET gtid_next = AUTOMATIC;"
                            "START REPLICA")  # fmt: skip
        replica.catch_up(source)

    def test_stop_while_an_applier_is_delayed(self):
        """A transaction that does not fit into the queue of its worker: STOP REPLICA gives up waiting after 60 s. The
        delays of the worker end, so that the transaction does."""
        source = self.member(STOCK, self.folder())
        replica = self.member(FORK, self.folder(), *SLOW_REPLICA, features="")
        replica.sql(replicate_from(source))
        source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(3000) NOT NULL) "
                   "CHARSET latin1")  # fmt: skip
        fill = ("INSERT INTO d.t (a) WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < {}) "
                "SELECT REPEAT('a', 3000) FROM r")  # fmt: skip
        source.sql("SET GLOBAL cte_max_recursion_depth = 100000")
        for _ in range(5):
            source.sql(fill.format(500))
        source.sql(fill.format(50_000))
        # The large transaction: the others are there.
        wait_until(lambda: replica.sql("SELECT COUNT(*) FROM d.t") == "2500", "the applier is behind")
        wait_until(lambda: replica.counter("Innodb_ahead_flush_sessions_delayed") > 0, "the applier is not delayed")
        replica.sql("STOP REPLICA")
        self.assertEqual(replica.sql(APPLIER_ERROR), "0")
        replica.sql("SET GLOBAL innodb_ahead_flushing = OFF; START REPLICA")
        replica.catch_up(source)
        self.assertEqual(replica.sql("SELECT COUNT(*) FROM d.t"), "52500")
