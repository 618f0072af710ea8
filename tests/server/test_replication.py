"""Replication between stock and this server with every feature on, while sessions write: in both directions, after a
power cut of the replica or of the source, and with a replica that is a clone."""

import signal
import socket

from spillway import filesystem
from spillway.resources import temporary_folder

from .power_cut import PowerCutFolder
from .scratch import FORK, STOCK, WAIT_SECONDS, wait_until
from .transfers import FEATURES, MIB, PREALLOCATED, SETUP, ChecksRows, Load, Server

DISK = "3G"
SECTOR_BYTES = 512
PLUGINS = "rpl_semi_sync_source=semisync_source.so;rpl_semi_sync_replica=semisync_replica.so;clone=mysql_clone.so"
OPTIONS = ("--skip-networking=OFF", "--bind-address=127.0.0.1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON",
           "--log-bin=binlog", "--relay-log=relay", "--relay-log-recovery=ON", "--replica-parallel-workers=8",
           "--replica-preserve-commit-order=ON", f"--plugin-load={PLUGINS}")  # fmt: skip
# A commit waits until a replica has it, as long as that takes.
SEMI_SYNC_SOURCE = ("--rpl-semi-sync-source-enabled=ON", "--rpl-semi-sync-source-timeout=86400000")
SEMI_SYNC_REPLICA = ("--rpl-semi-sync-replica-enabled=ON",)
ACCOUNT = """CREATE USER r@'127.0.0.1' IDENTIFIED BY 'r';
GRANT REPLICATION SLAVE, BACKUP_ADMIN ON *.* TO r@'127.0.0.1';"""
REPLICATE = """CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {}, SOURCE_USER = 'r',
  SOURCE_PASSWORD = 'r', SOURCE_SSL = 1, SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 1000;
START REPLICA;"""
APPLIED = """SELECT GTID_SUBSET(received_transaction_set, @@GLOBAL.gtid_executed)
  FROM performance_schema.replication_connection_status WHERE channel_name = ''"""
WITHOUT_ATOMIC = FEATURES.replace("atomic_writes = ON", "atomic_writes = OFF")
# The statements that go to a replica as statements, while sessions write.
DDL = """ALTER TABLE d.own ADD INDEX k (a(20)); OPTIMIZE TABLE d.general;
CREATE TABLE d.copy SELECT * FROM d.own WHERE session = 0; ALTER TABLE d.copy ADD PRIMARY KEY (n); DROP TABLE d.copy;
ALTER TABLE d.own DROP INDEX k;"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def plugins(mysqld):
    return mysqld.parent.parent / "plugin_output_directory"


def replicate_from(source):
    return REPLICATE.format(source.port)


class Member(Server):
    """A server that can be a source and a replica. The folder of its data directory can be of another storage."""

    n_members = 0

    def __init__(self, mysqld, parent, features):
        super().__init__("/var/tmp")
        Member.n_members += 1
        self.mysqld, self.parent_of_data, self.features = mysqld, parent, features
        self.port, self.number = free_port(), Member.n_members

    def __enter__(self):
        super().__enter__()
        self.set(self.features if self.mysqld == FORK else "")
        self.data = self.parent_of_data / f"data{self.number}"
        return self

    def run(self, *options):
        self.start(self.mysqld, *OPTIONS, f"--plugin-dir={plugins(self.mysqld)}", f"--port={self.port}",
                   f"--server-id={self.number}", *options)  # fmt: skip

    def catch_up(self, source):
        """Wait until this replica has executed what its source has."""
        executed = source.sql("SELECT @@GLOBAL.gtid_executed").replace("\\n", "")
        if self.sql(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', {WAIT_SECONDS})") != "0":
            raise AssertionError(f"the replica is behind: {self.sql('SHOW REPLICA STATUS')}")


class Replication(ChecksRows):
    def setUp(self):
        for mysqld in FORK, STOCK:
            if not (plugins(mysqld) / "semisync_source.so").exists():
                self.skipTest(f"{plugins(mysqld)} is not complete: make server stock")

    def folder(self):
        return self.enterContext(temporary_folder("/var/tmp"))

    def xfs(self):
        return self.enterContext(filesystem.mounted("xfs-reflink", DISK, self.folder()))

    def medium(self):
        medium = PowerCutFolder(self.folder(), SECTOR_BYTES)
        self.addCleanup(medium.unmount)
        medium.mount()
        return medium

    def member(self, mysqld, parent, *options, features=FEATURES):
        """A new server that runs. parent: the folder of its data directory."""
        member = self.enterContext(Member(mysqld, parent, features))
        member.initialise(mysqld)
        member.run(*options)
        member.sql(f"SET sql_log_bin = 0; {ACCOUNT}")
        return member

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

    def power_cut(self, member, medium):
        medium.cut()
        member.end(signal.SIGKILL)
        medium.unmount()
        medium.resolve(seed=1)
        medium.mount()

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
        said = recipient.client(f"CLONE INSTANCE FROM r@'127.0.0.1':{donor.port} IDENTIFIED BY 'r'").stderr
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
