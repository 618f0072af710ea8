"""Group Replication of three servers with every feature on, while sessions write: a member that is killed, cut from
power, stopped, or new, and a change from stock to this server and back, member by member."""

import shutil
import signal
import uuid

from .replication import ACCOUNT, PASSWORD, WITHOUT_ATOMIC, Member, Members, free_port, plugins
from .scratch import FORK, STOCK, WAIT_SECONDS, wait_until
from .transfers import FEATURES, SETUP, Load

PLUGIN = "group_replication.so"
USER = f"""CHANGE REPLICATION SOURCE TO SOURCE_USER = 'r', SOURCE_PASSWORD = '{PASSWORD}'
  FOR CHANNEL 'group_replication_recovery'"""
# The states of the members as the one that is asked sees them.
STATES = """SELECT IFNULL(GROUP_CONCAT(member_state ORDER BY member_state), '')
  FROM performance_schema.replication_group_members"""
# A server can be linked again later than its plugin, without a change.
BUILD_SECONDS = 3600
# A member that does not answer is suspected after 5 s, and expelled after this time.
EXPEL_SECONDS = 5
DDL = """ALTER TABLE d.own ADD INDEX k (a(20)); OPTIMIZE TABLE d.general; CREATE TABLE d.copy LIKE d.own;
INSERT INTO d.copy SELECT * FROM d.own WHERE session = 0; DROP TABLE d.copy; ALTER TABLE d.own DROP INDEX k;"""


class GroupMember(Member):
    """A server of a group. It listens for the other members at a port of its own."""

    def __init__(self, mysqld, parent, features):
        super().__init__(mysqld, parent, features)
        self.address = f"127.0.0.1:{free_port()}"


class GroupReplication(Members):
    def setUp(self):
        super().setUp()
        self.need_plugin(FORK, "release")
        self.name = str(uuid.uuid4())
        self.group = []

    def need_plugin(self, mysqld, preset):
        plugin = plugins(mysqld) / PLUGIN
        if not plugin.exists() or plugin.stat().st_mtime < mysqld.stat().st_mtime - BUILD_SECONDS:
            self.skipTest(f"{plugin} is not built with the server: tools/build.py {preset} group_replication")

    def run_member(self, member):
        seeds = ",".join(each.address for each in self.group)
        member.run(f"--plugin-load-add={PLUGIN}", "--report-host=127.0.0.1",
                   f"--group-replication-group-name={self.name}", f"--group-replication-group-seeds={seeds}",
                   f"--group-replication-local-address={member.address}", "--group-replication-start-on-boot=OFF",
                   "--group-replication-recovery-get-public-key=ON", "--group-replication-autorejoin-tries=10",
                   f"--group-replication-member-expel-timeout={EXPEL_SECONDS}")  # fmt: skip

    def create(self, *places):
        """Start new servers, each of (program, folder, features), as a group with the tables of a load."""
        for mysqld, parent, features in places:
            self.group.append(self.enterContext(GroupMember(mysqld, parent, features)))
        for member in self.group:
            member.initialise(member.mysqld)
            self.run_member(member)
            member.sql(f"SET sql_log_bin = 0; {ACCOUNT} {USER}")
        self.group[0].sql("SET GLOBAL group_replication_bootstrap_group = ON; START GROUP_REPLICATION;"
                          f"SET GLOBAL group_replication_bootstrap_group = OFF; {SETUP}")  # fmt: skip
        for member in self.group[1:]:
            member.sql("START GROUP_REPLICATION")
        self.wait_for_all()
        return self.group

    def join_again(self, member):
        """Start a member that has ended."""
        self.run_member(member)
        member.sql("START GROUP_REPLICATION")

    def wait_for(self, n, members):
        """Wait until these members see n members, all online."""
        online = ",".join(["ONLINE"] * n)
        for member in members:
            wait_until(lambda member=member: member.sql(STATES) == online,
                       f"member {member.number} does not see {n} members online")  # fmt: skip

    def writable(self, *members):
        return next((member for member in members if member.sql("SELECT @@super_read_only") == "0"), None)

    def wait_for_all(self):
        self.wait_for(len(self.group), self.group)

    def check(self, load):
        """All members have what the load has committed on the primary."""
        for member in self.group:
            member.catch_up(load.server)
            self.check_rows(member, load.last(), load.last())

    def test_members_that_fail(self):
        """Of three, one at a time: killed, stopped until it is expelled, and new by a clone."""
        xfs = self.xfs()
        first, second, third = self.create((FORK, xfs, FEATURES), (FORK, self.folder(), WITHOUT_ATOMIC),
                                           (FORK, xfs, FEATURES))  # fmt: skip
        with Load(first) as load:
            first.sql(DDL)
            with self.subTest("killed"):
                second.end(signal.SIGKILL)
                load.wait_for_more()
                self.join_again(second)
                self.wait_for_all()
            with self.subTest("stopped"):
                third.process.send_signal(signal.SIGSTOP)
                try:
                    self.wait_for(2, (first, second))
                    load.wait_for_more()
                finally:
                    third.process.send_signal(signal.SIGCONT)
                self.wait_for_all()
            with self.subTest("new"):
                self.assertEqual(third.end(), 0)
                shutil.rmtree(third.data)
                third.initialise(FORK)
                self.run_member(third)
                third.sql(f"SET sql_log_bin = 0; {ACCOUNT} {USER}; SET GLOBAL group_replication_clone_threshold = 1")
                third.client("START GROUP_REPLICATION")
                # The clone ends the server, as nothing restarts it.
                third.process.wait(WAIT_SECONDS)
                self.join_again(third)
                self.wait_for_all()
            load.wait_for_more()
        self.check(load)

    def test_power_cut_of_the_primary(self):
        """What it has acknowledged is on the other members, and it joins again."""
        medium = self.medium()
        first, second, third = self.create((FORK, medium.top, FEATURES), (FORK, self.folder(), WITHOUT_ATOMIC),
                                           (FORK, self.folder(), WITHOUT_ATOMIC))  # fmt: skip
        with Load(first) as load:
            first.sql(DDL)
            load.wait_for_more()
            self.power_cut(first, medium)
            rows = load.last()
        self.wait_for(2, (second, third))
        # The new primary applies what it has received before it takes changes.
        wait_until(lambda: self.writable(second, third), "no new primary")
        primary = self.writable(second, third)
        rows = self.check_rows(primary, rows, rows)
        with Load(primary, {session: n for session, n in rows.items() if session}) as load:
            self.join_again(first)
            self.wait_for_all()
            load.wait_for_more()
        self.check(load)

    def test_change_from_stock_and_back(self):
        """One member at a time, the primary last. The rows are there, and the group has always a primary."""
        self.need_plugin(STOCK, "stock")
        xfs = self.xfs()
        primary, *others = self.create(*[(STOCK, xfs, FEATURES)] * 3)
        rows = None
        for mysqld in FORK, STOCK:
            for member in (*others, primary):
                if member is primary:
                    others[0].sql("SELECT group_replication_set_as_primary(@@server_uuid)")
                    primary, others = others[0], [others[1], primary]
                with self.subTest(to=mysqld.parts[-4], member=member.number), Load(primary, rows) as load:
                    self.assertEqual(member.end(), 0)
                    member.use(mysqld)
                    load.wait_for_more()
                    self.join_again(member)
                    self.wait_for_all()
                    load.wait_for_more()
                rows = load.acknowledged
        self.check(load)
