"""Servers that replicate, for tests that need more than one."""

import contextlib
import os
import random
import secrets
import signal
import socket

from spillway import filesystem
from spillway.resources import temporary_folder

from .power_cut import PowerCutFolder
from .scratch import FORK, WAIT_SECONDS
from .transfers import FEATURES, ChecksRows, Server

DISK = "3G"
SECTOR_BYTES = 512
PLUGINS = "rpl_semi_sync_source=semisync_source.so;rpl_semi_sync_replica=semisync_replica.so;clone=mysql_clone.so"
# The servers run as root: by TCP only the account of replication can connect. With names, root@localhost could.
OPTIONS = ("--skip-networking=OFF", "--bind-address=127.0.0.1", "--skip-name-resolve", "--loose-mysqlx=OFF",
           "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-bin=binlog", "--relay-log=relay",
           "--relay-log-recovery=ON", "--replica-parallel-workers=8", "--replica-preserve-commit-order=ON",
           f"--plugin-load={PLUGINS}")  # fmt: skip
PASSWORD = secrets.token_hex(16)
ACCOUNT = f"""CREATE USER r@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';
GRANT REPLICATION SLAVE, BACKUP_ADMIN, CONNECTION_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO r@'127.0.0.1';"""
REPLICATE = """CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {}, SOURCE_USER = 'r',
  SOURCE_PASSWORD = '{}', SOURCE_SSL = 1, SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 1000;
START REPLICA;"""
WITHOUT_ATOMIC = FEATURES.replace("atomic_writes = ON", "atomic_writes = OFF")


def free_port():
    """A port that no server has and that the kernel gives to no connection."""
    while True:
        port = random.randrange(20_000, 32_768)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def plugins(mysqld):
    return mysqld.parent.parent / "plugin_output_directory"


def replicate_from(source):
    return REPLICATE.format(source.port, PASSWORD)


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
        self.use(self.mysqld)
        self.data = self.parent_of_data / f"data{self.number}"
        return self

    def use(self, mysqld):
        """The program that runs from now on. Only the fork has the features."""
        self.mysqld = mysqld
        self.set(self.features if mysqld == FORK else "")

    def run(self, *options):
        self.start(self.mysqld, *OPTIONS, f"--plugin-dir={plugins(self.mysqld)}", f"--port={self.port}",
                   f"--server-id={self.number}", *options)  # fmt: skip

    def catch_up(self, source):
        """Wait until this replica has executed what its source has."""
        executed = source.sql("SELECT @@GLOBAL.gtid_executed").replace("\\n", "")
        if self.sql(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', {WAIT_SECONDS})") != "0":
            raise AssertionError(f"the replica is behind: {self.sql('SHOW REPLICA STATUS')}")


class Members(ChecksRows):
    """Shared methods of the tests of replication."""

    def setUp(self):
        if os.geteuid() != 0 or not os.access("/dev/loop-control", os.W_OK) or not os.access("/dev/fuse", os.W_OK):
            self.skipTest("mounting file systems needs root, /dev/loop-control and /dev/fuse")

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

    def power_cut(self, member, medium):
        medium.cut()
        member.end(signal.SIGKILL)
        medium.unmount()
        medium.resolve(seed=1)
        medium.mount()
