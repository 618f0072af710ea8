"""The image: its Containerfile's lines run in a root, and its entrypoint starts servers there, as root and as another
user. No container engine is needed."""

import glob
import gzip
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from spillway.common import REPO

from . import roots

CONTAINER = REPO / "packaging/container"
ANY_USER = 12345
WAIT_SECONDS = 60
DATA = "var/lib/mysql"
PASSWORD = "it's a \"secret\" \\ %_"


def image_lines():
    """The instructions of the Containerfile: (name, rest)."""
    text = re.sub(r"^#.*\n", "", (CONTAINER / "Containerfile").read_text(), flags=re.MULTILINE)
    return [line.split(" ", 1) for line in text.replace("\\\n", "").splitlines()]


class Container(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        server, client, _ = roots.make_packages()
        cls.root = cls.enterClassContext(roots.fresh("bookworm"))
        context = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        for path in (server, client, CONTAINER / "my.cnf", CONTAINER / "entrypoint"):
            shutil.copy(path, context)
        cls.environment = {}
        for name, rest in image_lines():
            if name == "RUN":
                cls.root.run("sh", "-c", rest)
            elif name == "COPY":
                pattern, target = rest.split()
                path = cls.root.path / target[1:]
                (path if target.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
                for source in glob.glob(str(context / pattern)):
                    shutil.copy(source, path)
            elif name == "ENV":
                cls.environment |= dict([rest.split("=")])

    def setUp(self):
        self.data = self.root.path / DATA
        for name in (DATA, "docker-entrypoint-initdb.d", "etc/mysql/conf.d", "run/mysqld"):
            for path in (self.root.path / name).iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
        os.chown(self.data, *self.root.account("mysql"))

    def write(self, name, text, mode=0o644):
        return self.root.write(name, text, mode)

    def start(self, *arguments, user=None, until="ready for connections.*port: [1-9]", **environment):
        """Start a container; return (its process, its output until clients can connect, or until it ends). until: the
        last line to read, a pattern."""
        command = self.root.command("docker-entrypoint.sh", *(arguments or ["mysqld"]), user=user)
        environment = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"} | self.environment | environment
        # A network of its own, as in a container, and a signal that nohup makes a process ignore.
        process = subprocess.Popen(["env", "--default-signal=HUP", "unshare", "--net", *command], text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   env=environment)  # fmt: skip
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        output = ""
        for line in process.stdout:
            output += line
            if re.search(until, line):
                break
        return process, output

    def ends(self, *arguments, status=1, **options):
        """Start a container that ends by itself; return its output."""
        process, output = self.start(*arguments, **options)
        if "ready for connections" in output.splitlines()[-1]:
            self.fail(f"it has not ended:\n{output}")
        self.assertEqual(process.wait(), status, output)
        return output

    def wait_until(self, process, condition):
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.2)

    def end(self, process):
        process.terminate()
        output = process.stdout.read()
        self.assertEqual(process.wait(), 0, output)

    def sql(self, statements, user="root", password=None):
        # An option file can name another host.
        client = ["mysql", "--host=localhost", f"--user={user}", "--batch", "--skip-column-names"]
        return self.root.run(*client, text=statements, **({"MYSQL_PWD": password} if password else {}))

    def test_first_start(self):
        self.write("run/secret", PASSWORD + "\n")
        self.write("docker-entrypoint-initdb.d/1.sql", "CREATE TABLE first (a INT PRIMARY KEY);\n")
        with gzip.open(self.root.path / "docker-entrypoint-initdb.d/2.sql.gz", "wt") as file:
            file.write("INSERT INTO first VALUES (1);\n")
        self.write("docker-entrypoint-initdb.d/3.sh", 'docker_process_sql -e "INSERT INTO my_shop.first VALUES (3)"\n')
        self.write("docker-entrypoint-initdb.d/4.sh", "#!/bin/sh\ntouch /var/lib/mysql/.ran\n", 0o755)
        self.write("docker-entrypoint-initdb.d/5.txt", "")
        process, output = self.start(
            MYSQL_ROOT_PASSWORD_FILE="/run/secret", MYSQL_DATABASE="my_shop", MYSQL_USER="app", MYSQL_PASSWORD=PASSWORD,
            MYSQL_HOST="host.invalid", MYSQL_PWD="other", MYSQL_TCP_PORT="3306",
        )  # fmt: skip
        self.assertIn("ready for connections", output)
        self.assertIn("ignoring /docker-entrypoint-initdb.d/5.txt", output)
        self.assertNotIn("secret", output)
        self.assertEqual(self.sql("SELECT a FROM my_shop.first", "app", PASSWORD).split(), ["1", "3"])
        self.assertTrue((self.data / ".ran").exists())
        self.assertIn("Access denied", self.root.run("mysql", "--user=root", fails=True))
        accounts = self.sql("SELECT user, host FROM mysql.user WHERE user IN ('root', 'app')", password=PASSWORD)
        self.assertEqual(sorted(accounts.splitlines()), ["app\t%", "root\t%", "root\tlocalhost"])
        self.assertEqual(self.sql("SELECT COUNT(*) > 0 FROM mysql.time_zone_name", password=PASSWORD).strip(), "1")
        grants = self.sql("SHOW GRANTS", "app", PASSWORD)
        self.assertIn("`my\\_shop`.*", grants.replace("\\\\", "\\"))
        with self.subTest("the server is process 1, and its user is mysql"):
            status = Path(f"/proc/{process.pid}/status").read_text()
            self.assertIn("Name:\tmysqld", status)
            self.assertIn(f"Uid:\t{self.root.account('mysql')[0]}\t", status)
            self.assertEqual(self.root.account("mysql"), (999, 999))
            self.assertNotIn(b"secret", Path(f"/proc/{process.pid}/environ").read_bytes())
        self.end(process)
        with self.subTest("data that is there"):
            process, output = self.start(MYSQL_ROOT_PASSWORD="other")
            self.assertIn("no effect", output)
            self.assertEqual(self.sql("SELECT COUNT(*) FROM my_shop.first", "app", PASSWORD).strip(), "2")
            self.end(process)

    def test_any_user(self):
        """An image that wants root."""
        os.chown(self.data, ANY_USER, ANY_USER)
        process, output = self.start(user=ANY_USER, MYSQL_ALLOW_EMPTY_PASSWORD="yes")
        self.assertIn("ready for connections", output)
        self.assertEqual({path.stat().st_uid for path in self.data.rglob("*")}, {ANY_USER})
        self.sql("SELECT 1")
        self.end(process)

    def test_volume_of_root(self):
        os.chown(self.data, 0, 0)
        self.data.chmod(0o755)
        self.assertIn("cannot write in", self.ends(user=ANY_USER, MYSQL_ALLOW_EMPTY_PASSWORD="yes"))
        (self.data / ".link").symlink_to("/run/file-of-root")
        self.write("run/file-of-root", "")
        process, output = self.start(MYSQL_RANDOM_ROOT_PASSWORD="yes")
        password = re.search("GENERATED ROOT PASSWORD: (.*)", output).group(1)
        self.assertIn("Spillway", self.sql("SELECT @@version_comment", password=password))
        self.assertEqual((self.root.path / "run/file-of-root").stat().st_uid, 0)
        self.end(process)

    def test_variables_that_are_wrong(self):
        for message, environment in (
            ("which password root gets", {}),
            ("both MYSQL_ROOT_PASSWORD and", {"MYSQL_ROOT_PASSWORD": "a", "MYSQL_ROOT_PASSWORD_FILE": "/run/secret"}),
            ("cannot read", {"MYSQL_ROOT_PASSWORD_FILE": "/run/missing"}),
            ("without MYSQL_PASSWORD", {"MYSQL_ALLOW_EMPTY_PASSWORD": "1", "MYSQL_USER": "app"}),
            ("MYSQL_USER is root", {"MYSQL_ALLOW_EMPTY_PASSWORD": "1", "MYSQL_USER": "root", "MYSQL_PASSWORD": "a"}),
        ):
            with self.subTest(message):
                self.assertIn(message, self.ends(**environment))
                self.assertEqual(list(self.data.iterdir()), [])

    def test_option_file_that_it_does_not_like(self):
        """An image that ends without a word for such a file, or ignores one that everyone can write."""
        file = "etc/mysql/conf.d/local.cnf"
        self.write(file, "[mysqld]\nno_such_variable = 1\nlog_error = /var/lib/mysql/error.log\n")
        output = self.ends(MYSQL_ALLOW_EMPTY_PASSWORD="yes")
        self.assertIn("no_such_variable", output)
        self.assertIn("Correct the option file", output)
        self.write(file, "[mysqld]\nserver_id = 7\n", 0o666)
        output = self.ends(MYSQL_ALLOW_EMPTY_PASSWORD="yes")
        self.assertIn(f"/{file}", output)
        self.assertIn("chmod o-w", output)
        self.write(file, "server_id = 7\n")
        self.assertIn("without preceding group", self.ends(MYSQL_ALLOW_EMPTY_PASSWORD="yes"))
        self.assertEqual(list(self.data.iterdir()), [])
        with self.subTest("a value that only the start refuses, and a log in a file"):
            self.write(file, "[mysqld]\nlog_error = error.log\ninnodb_data_file_path = nonsense\n")
            self.assertIn("innodb_data_file_path", self.ends(MYSQL_ALLOW_EMPTY_PASSWORD="yes"))
            self.assertIn("was interrupted", self.ends(MYSQL_ALLOW_EMPTY_PASSWORD="yes"))
        with self.subTest("on data that is there"):
            self.setUp()
            process, _ = self.start(MYSQL_ALLOW_EMPTY_PASSWORD="yes", MYSQL_INITDB_SKIP_TZINFO="1")
            self.end(process)
            self.write(file, "[mysqld]\nlog_error = error.log\ninnodb_page_size = 8192\n")
            output = self.ends()
            self.assertIn("the error log is '/var/lib/mysql/error.log'", output)
            self.assertIn("[ERROR] [MY-", output)

    def test_log_in_a_file(self):
        """The entrypoint stays process 1, and passes on the signal that ends the container."""
        self.write("etc/mysql/conf.d/local.cnf", "[mysqld]\nlog_error = /var/lib/mysql/error.log\n")
        process, output = self.start(until="the error log is", MYSQL_ALLOW_EMPTY_PASSWORD="yes",
                                     MYSQL_INITDB_SKIP_TZINFO="1")  # fmt: skip
        self.assertIn("the error log is '/var/lib/mysql/error.log'", output)
        self.wait_until(process, lambda: "port: 3306" in (self.data / "error.log").read_text())
        with self.subTest("SIGHUP, after the log was rotated"):
            (self.data / "error.log").rename(self.data / "error.log.1")
            process.send_signal(signal.SIGHUP)
            self.wait_until(process, (self.data / "error.log").exists)
        self.end(process)
        self.assertIn("Shutdown complete", (self.data / "error.log").read_text())

    def test_option_file_with_gtid_settings(self):
        self.write("etc/mysql/conf.d/replica.cnf", "[mysqld]\nserver_id = 7\ngtid_mode = ON\nlog_bin = b\n"
                   "enforce_gtid_consistency = ON\nsuper_read_only = ON\nsql_require_primary_key = ON\n"
                   "default_time_zone = Europe/Berlin\n[client]\nhost = host.invalid\n")  # fmt: skip
        process, output = self.start("--port=3400", MYSQL_ROOT_PASSWORD="a", MYSQL_DATABASE="shop")
        self.assertIn("port: 3400", output)
        self.assertEqual(self.sql("SELECT @@gtid_mode, @@gtid_executed, @@super_read_only", password="a").split(),
                         ["ON", "1"])  # fmt: skip
        self.assertIn("shop", self.sql("SHOW DATABASES", password="a"))
        with self.subTest("an option of a plugin that the data directory names"):
            self.sql("SET GLOBAL super_read_only = OFF; INSTALL PLUGIN clone SONAME 'mysql_clone.so'", password="a")
            self.end(process)
            self.write("etc/mysql/conf.d/plugin.cnf", "[mysqld]\nclone_max_concurrency = 8\n")
            process, _ = self.start()
            self.assertEqual(self.sql("SELECT @@clone_max_concurrency", password="a").strip(), "8")
        self.end(process)

    def test_files_that_are_there(self):
        self.write(f"{DATA}/ibdata1", "data of another server")
        self.assertIn("Nothing was changed", self.ends(MYSQL_ALLOW_EMPTY_PASSWORD="yes"))
        self.assertEqual([path.name for path in self.data.iterdir()], ["ibdata1"])

    def test_script_that_fails(self):
        """A first start that did not end is not taken for a complete one."""
        self.write("docker-entrypoint-initdb.d/1.sql", "nonsense;\n")
        self.assertIn("nonsense", self.ends(MYSQL_ALLOW_EMPTY_PASSWORD="yes", MYSQL_INITDB_SKIP_TZINFO="1"))
        self.assertIn("was interrupted", self.ends(MYSQL_ALLOW_EMPTY_PASSWORD="yes"))

    def test_signal_during_the_first_start(self):
        for moment in ("initialising '", "running /docker"):
            with self.subTest(moment):
                self.setUp()
                self.write("docker-entrypoint-initdb.d/1.sh", "sleep 2\n")
                process, _ = self.start(until=moment, MYSQL_ALLOW_EMPTY_PASSWORD="yes", MYSQL_INITDB_SKIP_TZINFO="1")
                process.terminate()
                self.assertIn("a signal has stopped the first start", process.stdout.read())
                self.assertEqual(process.wait(), 1)
                left = [path for path in Path("/proc").glob("[0-9]*/cwd") if os.path.realpath(path) == str(self.data)]
                self.assertEqual(left, [])
                self.assertIn("was interrupted", self.ends(MYSQL_ALLOW_EMPTY_PASSWORD="yes"))

    def test_other_commands(self):
        for command in (("mysqld", "--datadir", "/srv"), ("-h", "/srv"), ("-h/srv",)):
            self.assertIn("--datadir=PATH", self.ends(*command))
        self.assertIn("Spillway", self.ends("--version", status=0))
        self.assertEqual(self.ends("echo", "hello", status=0), "hello\n")


class BuildScript(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        for name in ("bash", "cat", "cp", "dirname", "mktemp", "rm"):
            (self.bin / name).symlink_to(shutil.which(name))
        for name in ("server", "client"):
            (self.folder / f"spillway-{name}_1.0.0_amd64.deb").touch()

    def build(self):
        return subprocess.run(["bash", CONTAINER / "build", self.folder, "spillway:test"], capture_output=True,
                              text=True, check=False, env={"PATH": str(self.bin)})  # fmt: skip

    def test_engines(self):
        self.assertIn("neither podman nor buildah", self.build().stderr)
        for engine in ("buildah", "podman"):
            (self.bin / engine).write_text('#!/bin/bash\necho "$0 $@" "${@: -1}"/*\n')
            (self.bin / engine).chmod(0o755)
            output = self.build().stdout
            self.assertIn(f"{engine} build --squash --tag spillway:test --file", output)
            for name in ("Containerfile", "entrypoint", "my.cnf", "spillway-server_1.0.0_amd64.deb"):
                self.assertIn(f"/{name}", output)

    def test_packages_are_missing(self):
        (self.folder / "spillway-client_1.0.0_amd64.deb").unlink()
        self.assertIn("make package", self.build().stderr)


if __name__ == "__main__":
    unittest.main()
