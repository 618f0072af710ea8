"""make run and make stop: what they print, that they can be repeated, and what they refuse."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from scratch import CLIENT

TOOL = Path(__file__).resolve().parent.parent / "server.py"


class Server(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="spw-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.var = Path(folder.name) / "var"
        self.addCleanup(self.tool, "stop")

    def tool_options(self):
        """For subprocess: the tool works on this test's var/."""
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

    def port(self):
        return int(re.search(r"^port = (\d+)$", (self.var / "my.cnf").read_text(), re.MULTILINE).group(1))

    def test_run_twice_and_stop_twice(self):
        output = self.works("run", "--seconds", "3")
        tps = int(re.search(r"^(\d+) transactions per second", output, re.MULTILINE).group(1))
        self.assertGreater(tps, 0)
        self.assertRegex(output, r"AIO writes: 2 threads, depth [0-9]+ \((native|simulated)\)")
        self.assertIn(f"Stop: SPILLWAY_VAR={self.var} make stop", output)
        self.assertIn("runs already", self.works("run", "--seconds", "1"))
        self.works("stop")
        self.assertIn("does not run", self.works("stop"))
        self.assertIn("does not run", self.works("status"))

    def test_beside_another(self):
        """A second var/ has a port of its own, also when the first server did not run while it was made."""
        self.works("start")
        self.works("stop")
        first, first_port = self.var, self.port()
        self.var = first.with_name("other")
        try:
            self.works("start")
            self.assertNotEqual(self.port(), first_port)
            self.var = first
            self.works("start")
        finally:
            self.var = first.with_name("other")
            self.works("stop")
            self.var = first

    def begin(self):
        """The tool, starting the server."""
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

    def test_two_starts_at_once(self):
        with self.begin() as one, self.begin() as other:
            outputs = [tool.communicate()[0] for tool in (one, other)]
        self.assertEqual((one.returncode, other.returncode), (0, 0), outputs)
        self.assertIn("runs already", "".join(outputs))

    def test_roots_password_is_another(self):
        self.works("start")
        command = [CLIENT, f"--defaults-file={self.var}/my.cnf", "-e", "ALTER USER root@localhost IDENTIFIED BY 'p'"]
        subprocess.run(command, check=True)
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
        config.write_text(config.read_text().replace(f"port = {self.port()}", f"port = {self.port()} # mine"))
        self.works("start")

    def test_damaged_marker(self):
        self.var.mkdir()
        (self.var / "spillway.json").write_text("")
        self.refused("spillway.json", "damaged")

    def test_a_file_in_place_of_var(self):
        self.var.write_text("a file")
        self.refused(str(self.var))

    def test_resumes_an_interrupted_initialisation(self):
        self.var.mkdir()
        (self.var / "spillway.json").write_text(json.dumps({"home": str(self.var)}))
        (self.var / "data.new").mkdir()
        (self.var / "data.new/ibdata1").write_text("half a file")
        self.works("start")

    def test_port_in_use(self):
        self.works("start")
        self.works("stop")
        with socket.socket() as other:
            other.bind(("127.0.0.1", self.port()))
            other.listen()
            self.refused(str(self.port()), "my.cnf")

    def test_socket_in_use(self):
        self.works("start")
        self.works("stop")
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(self.var / "mysqld.sock"))
            other.listen()
            self.refused("mysqld.sock", "another server listens")
        (self.var / "mysqld.sock").unlink()

    def test_var_of_another_server(self):
        self.var.mkdir()
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


if __name__ == "__main__":
    unittest.main()
