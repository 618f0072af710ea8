"""make run and make stop: their output, repeated calls, and what they refuse."""

import contextlib
import json
import os
import pwd
import re
import signal
import socket
import subprocess
import sys
import time
import unittest
from pathlib import Path
from unittest import mock

from spillway.common import REPO

from .scratch import CLIENT, WAIT_SECONDS, client_command, temporary_folder, wait_until

TOOL = REPO / "tools/server.py"
# Two short loads on small tables.
RUN = ("run", "--rows", "2000", "--seconds", "1")


class Server(unittest.TestCase):
    def setUp(self):
        # The folder is recorded: if the test is killed, the next tool ends the server.
        folder = self.enterContext(temporary_folder("/tmp"))
        # If root runs the test, the server runs as another user, who has to enter the folder.
        folder.chmod(0o711)
        self.var = folder / "var"
        self.addCleanup(self.tool, "stop")

    def make_var(self):
        """Make var/, owned by the user that the tool runs as."""
        self.var.mkdir()
        if os.geteuid() == 0:
            owner = TOOL.stat().st_uid or pwd.getpwnam("nobody").pw_uid
            os.chown(self.var, owner, -1)

    def tool_options(self):
        """For subprocess: the tool uses this test's var/."""
        return {"text": True, "env": os.environ | {"SPILLWAY_VAR": str(self.var)}}

    def tool(self, *arguments):
        command = [sys.executable, TOOL, *arguments]
        return subprocess.run(command, capture_output=True, check=False, **self.tool_options())

    def works(self, *arguments):
        result = self.tool(*arguments)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def refused(self, *words):
        result = self.tool("start")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertNotIn("Traceback", result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def sql(self, statement, *options, **how):
        command = client_command(CLIENT, self.var / "mysqld.sock", *options, "--batch", "--skip-column-names",
                                 defaults=self.var / "my.cnf")  # fmt: skip
        return subprocess.run(command, input=statement, capture_output=True, text=True, check=False, **how)

    def server(self):
        return int((self.var / "mysqld.pid").read_text())

    def test_run_twice_and_stop_twice(self):
        output = self.works(*RUN, "--seconds", "3")
        means = re.search(r"^  mean transactions/s +(\d+) +(\d+)$", output, re.MULTILINE).groups()
        self.assertGreater(min(map(int, means)), 0)
        stock, spillway = output.index("innodb_ahead_flushing = OFF"), output.index("innodb_ahead_flushing = ON")
        live = r"^ +\d s +\d+ transactions/s, (no response|worst response +\d+ ms), checkpoint age +[\d.]+ %"
        for part in (output[stock:spillway], output[spillway:]):
            self.assertRegex(part, re.compile(live, re.MULTILINE))
        self.assertRegex(output, "The server's disk was (not throttled: .+|throttled to [0-9]+ writes/s and [0-9]+ MB)")
        self.assertRegex(output, r"Device write capacity .*; redo generation ")
        self.assertRegex(output, r"Write throttle: \d+ delays")
        # No zeros: a kind of wait that neither load had is not in the table, and SHOW is not printed as a whole.
        self.assertNotRegex(output, r"waits [a-z ]+0, 0\.0 s +0, 0\.0 s")
        self.assertNotIn("Flushing and stalls", output)
        self.assertEqual((self.var / "run.html").read_text().count("<polyline"), 6)
        self.assertIn(f"Stop: SPILLWAY_VAR={self.var} make stop", output)
        # The server has its own settings again, and is not throttled any more.
        names = "@@innodb_ahead_flushing, @@innodb_doublewrite_fsync, @@innodb_flush_log_at_trx_commit, @@sync_binlog"
        self.assertEqual(self.sql(f"SELECT {names}, @@innodb_max_dirty_pages_pct").stdout, "1\t1\t1\t1\t90.000000\n")
        self.assertEqual(self.throttling_groups(), [])
        self.assertIn("runs already", self.works(*RUN))
        self.works("stop")
        self.assertIn("does not run", self.works("stop"))
        self.assertIn("does not run", self.works("status"))

    @contextlib.contextmanager
    def loaded(self):
        """The tool, whose first load has begun and goes on."""
        command = [sys.executable, TOOL, *RUN[:-2], "--seconds", "600"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              **self.tool_options()) as process:  # fmt: skip
            for line in process.stdout:
                if "worst response" in line:
                    break
            yield process

    def throttling_groups(self):
        """The server's control groups that throttle it."""
        groups = Path(f"/proc/{self.server()}/cgroup").read_text().splitlines()
        return [line for line in groups if "/spillway-" in line]

    @unittest.skipIf(os.geteuid() != 0, "root's")
    def test_killed_root_leaves_no_throttle(self):
        """The load ends with root's process, and the next command lifts the throttle of the server, which goes on."""
        with self.loaded() as process:
            was_throttled = self.throttling_groups()
            process.kill()
            output = process.stdout.read()
        if not was_throttled:
            self.skipTest("no control groups that throttle I/O")
        wait_until(lambda: not list(self.processes("--threads=32")))
        self.assertIn("the load has ended early", output)
        # A tool of another test can have lifted it before.
        self.assertIn("the server runs", self.works("status"))
        self.assertEqual(self.throttling_groups(), [])

    def test_nobody_else_reaches_the_server(self):
        """No TCP, no other user in the socket's folder, a password, and a server that does not run as root."""
        self.works("start")
        command = ["ss", "--listening", "--tcp", "--numeric", "--processes"]
        sockets = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        self.assertNotIn(f"pid={self.server()},", sockets)
        self.assertEqual(self.sql("SELECT @@port, @@skip_networking").stdout, "0\t1\n")
        self.assertEqual(self.var.stat().st_mode & 0o777, 0o700)
        self.assertEqual((self.var / "my.cnf").stat().st_mode & 0o077, 0)
        self.assertFalse((self.var / "accounts.sql").exists())
        self.assertIn("Access denied", self.sql("SELECT 1", "--password=").stderr)
        self.assertNotIn(" 0 ", f" {self.user_ids()} ")
        self.assertEqual(self.user_ids().split()[0], str(self.var.stat().st_uid))

    def user_ids(self):
        status = Path(f"/proc/{self.server()}/status").read_text()
        return " ".join(re.search(r"^Uid:\s(.*)$", status, re.MULTILINE).group(1).split())

    @unittest.skipIf(os.geteuid() != 0, "root's")
    def test_what_root_cannot_give_to_another_user(self):
        closed = self.var.parent / "closed"
        closed.mkdir(mode=0o700)
        other, self.var = self.var, closed / "var"
        self.refused("cannot write", "SPILLWAY_VAR")
        self.var = other
        self.var.mkdir()
        (self.var / "spillway.json").write_text(json.dumps({"home": str(self.var), "format": 2}))
        self.refused("cannot write", "old one of yours")
        self.assertEqual(self.var.stat().st_uid, 0)
        self.var.rename(closed / "old")

    def test_password_of_the_load_is_for_its_database(self):
        self.works(*RUN)
        grants = self.sql("SHOW GRANTS FOR spillway_load@localhost").stdout.splitlines()
        self.assertEqual(len(grants), 2)
        self.assertIn("GRANT USAGE ON *.*", grants[0])
        self.assertIn("`spillway_load`.*", grants[1])

    def test_login_paths_are_not_read(self):
        """Otherwise our clients would connect to the server that a login path names."""
        self.works("start")
        login = self.var.parent / "login.cnf"
        editor = CLIENT.with_name("mysql_config_editor")
        command = [editor, "set", "--login-path=client", "--host=192.0.2.1", "--user=x"]
        environment = os.environ | {"MYSQL_TEST_LOGIN_FILE": str(login)}
        subprocess.run(command, env=environment, check=True)
        login.chmod(0o600)
        self.assertEqual(self.sql("SELECT CURRENT_USER()", env=environment).stdout, "root@localhost\n")
        with mock.patch.dict(os.environ, {"MYSQL_TEST_LOGIN_FILE": str(login)}):
            self.works(*RUN)

    def test_beside_another(self):
        self.works("start")
        first = self.var
        self.var = first.with_name("other")
        try:
            self.works("start")
        finally:
            self.works("stop")
            self.var = first

    def begin(self):
        """Run the tool, which starts the server."""
        return subprocess.Popen([sys.executable, TOOL, "start"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                start_new_session=True, **self.tool_options())  # fmt: skip

    def test_interrupted_start_leaves_no_server(self):
        self.works("start")
        self.works("stop")
        # A server that takes some seconds before it answers.
        slow = self.var / "slow.sql"
        slow.write_text("DO SLEEP(5);\n")
        config = self.var / "my.cnf"
        config.write_text(f"{config.read_text()}\n[mysqld]\ninit_file = {slow}\n")
        with self.begin() as tool:
            for line in tool.stdout:
                if "starting mysqld" in line:
                    break
            os.killpg(tool.pid, signal.SIGINT)
            output = tool.stdout.read()
        self.assertEqual(tool.returncode, 130, output)
        servers = subprocess.run(["pgrep", "-f", f"defaults-file={self.var}/my.cnf"], capture_output=True, text=True,
                                 check=False).stdout  # fmt: skip
        self.assertEqual(servers, "")
        self.works("start")

    def processes(self, word):
        """The processes whose command line has this folder and a word."""
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                text = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if str(self.var.parent) in text and word in text:
                    yield entry.parent

    def test_killed_while_it_initialises(self):
        """The server that initialises ends with the tool: else it writes to the error log until the disk is full."""
        command = [sys.executable, TOOL, "start"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              **self.tool_options()) as process:  # fmt: skip
            wait_until((self.var / "data.new/mysql.ibd").exists)
            process.kill()
        # This start removes the folder that the first server works in.
        self.works("start")
        self.assertEqual(list(self.processes("--initialize-insecure")), [])

    def test_signal_ends_the_load(self):
        with self.loaded() as process:
            process.terminate()
            try:
                process.wait(WAIT_SECONDS)
            finally:
                process.kill()
        self.assertEqual(list(self.processes("--threads=32")), [])
        self.assertEqual(self.sql("SELECT @@innodb_ahead_flushing, @@sync_binlog").stdout, "1\t1\n")
        self.assertEqual(self.throttling_groups(), [])
        self.works("stop")

    def test_a_client_is_not_the_server(self):
        """It can have got the number of a server that was killed."""
        self.works("start")
        self.works("stop")
        options = [f"--defaults-file={self.var}/my.cnf"]
        with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)", *options]) as client:
            (self.var / "mysqld.pid").write_text(str(client.pid))
            self.assertIn("does not run", self.works("status"))
            self.works("stop")
            self.assertIsNone(client.poll())
            client.kill()

    def test_var_below_build(self):
        """make clean removes what is there."""
        self.var = REPO / "build/var"
        self.refused("make clean removes", "SPILLWAY_VAR")
        self.assertFalse(self.var.exists())

    def test_two_starts_at_once(self):
        with self.begin() as one, self.begin() as other:
            outputs = [tool.communicate()[0] for tool in (one, other)]
        self.assertEqual((one.returncode, other.returncode), (0, 0), outputs)
        self.assertIn("runs already", "".join(outputs))

    @unittest.skipUnless(os.geteuid() == 0, "only root makes the folder for another user")
    def test_two_calls_as_root_make_the_folder(self):
        self.var.mkdir()
        program = f"import sys; sys.path.insert(0, {str(TOOL.parent)!r}); import server; "
        command = [sys.executable, "-c", program + "server.make_var(server.other_user()); print(server.VAR.stat())"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, **self.tool_options()) as second:
            time.sleep(0.2)
            owner = TOOL.stat().st_uid or pwd.getpwnam("nobody").pw_uid
            os.chown(self.var, owner, -1)
            self.assertIn(f"st_uid={owner},", second.communicate()[0])
        self.assertEqual(second.returncode, 0)

    def test_roots_password_is_another(self):
        self.works("start")
        self.assertEqual(self.sql("ALTER USER root@localhost IDENTIFIED BY 'p'").returncode, 0)
        self.works("stop")
        self.works("start")

    def test_error_of_an_earlier_start_is_not_shown(self):
        self.works("start")
        self.works("stop")
        config = self.var / "my.cnf"
        text = config.read_text()
        config.write_text(text + "\n[mysqld]\ninnodb_buffer_pool_size = deep\n")
        self.refused("deep")
        config.write_text(text + "\n[mysqld]\nlc_messages = nowhere_LAND\ninnodb_data_file_path = wrong\n")
        result = self.tool("start")
        self.assertEqual(result.returncode, 1)
        self.assertNotIn("deep", result.stderr)

    def test_comment_after_a_setting(self):
        self.works("start")
        self.works("stop")
        config = self.var / "my.cnf"
        place = f"socket = {self.var}/mysqld.sock"
        config.write_text(config.read_text().replace(place, f"{place} # mine"))
        self.works("start")

    def test_damaged_marker(self):
        self.make_var()
        (self.var / "spillway.json").write_text("")
        self.refused("spillway.json", "damaged")

    def test_var_of_an_earlier_version(self):
        self.make_var()
        (self.var / "spillway.json").write_text(json.dumps({"home": str(self.var)}))
        self.refused("every user of this machine", "make stop")

    @unittest.skipIf(os.geteuid() != 0, "root's")
    def test_what_root_gives_away(self):
        """Root does not follow another user's link, and does not use files that another user can write."""
        parent = self.var.parent
        parent.chmod(0o777)
        self.refused("can be changed by other users")
        parent.chmod(0o711)
        precious = parent / "precious"
        precious.mkdir()
        self.var.symlink_to(precious)
        self.refused("cannot write")
        self.assertEqual(precious.stat().st_uid, 0)
        self.var.unlink()
        with mock.patch.dict(os.environ, {"SECRET": "root's"}):
            output = self.works(*RUN)
        self.assertNotIn(b"SECRET", Path(f"/proc/{self.server()}/environ").read_bytes())
        connect = re.search("^Connect: (.*)$", output, re.MULTILINE).group(1)
        self.assertTrue(connect.startswith(f"setpriv --reuid={self.var.stat().st_uid} "), connect)
        command = [*connect.split(), "--batch", "--skip-column-names", "-e", "SELECT CURRENT_USER()"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(result.stdout, "root@localhost\n", result.stderr)

    def test_a_file_in_place_of_var(self):
        self.var.write_text("a file")
        self.refused(str(self.var))

    def test_resumes_an_interrupted_initialisation(self):
        self.make_var()
        (self.var / "spillway.json").write_text(json.dumps({"home": str(self.var), "format": 2}))
        (self.var / "data.new").mkdir()
        (self.var / "data.new/ibdata1").write_text("half a file")
        if os.geteuid() == 0:
            os.chown(self.var / "data.new", self.var.stat().st_uid, -1)
        self.works("start")

    def test_socket_in_use(self):
        self.works("start")
        self.works("stop")
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(self.var / "mysqld.sock"))
            other.listen()
            self.refused("mysqld.sock", "another server listens")
        (self.var / "mysqld.sock").unlink()

    def test_var_of_another_server(self):
        self.make_var()
        (self.var / "ibdata1").write_text("data of somebody")
        self.refused("another server", "SPILLWAY_VAR")
        self.assertEqual((self.var / "ibdata1").read_text(), "data of somebody")
        self.assertEqual(len(list(self.var.iterdir())), 1)

    def test_var_that_was_moved(self):
        self.works("start")
        self.works("stop")
        moved = self.var.with_name("moved")
        self.var.rename(moved)
        self.var = moved
        self.refused("was made as")

    def test_error_in_my_cnf(self):
        self.works("start")
        self.works("stop")
        config = self.var / "my.cnf"
        config.write_text(config.read_text().replace("[client]", "no_such_variable = 1\n[client]"))
        self.refused("no_such_variable")

    def test_path_too_long_for_a_socket(self):
        short = self.var
        self.var = short / ("long" * 30)
        self.refused("socket", "SPILLWAY_VAR")
        self.var = short
