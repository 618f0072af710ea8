"""A server of the benchmarks, any mysqld or mariadbd on one data directory, and its clients."""

import contextlib
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

from spillway.common import DIES_WITH_US, Failure, client_command, error_log_tail, sha256_of
from spillway.resources import temporary_folder

START_SECONDS = 600
STOP_SECONDS = 1800
SQL_SECONDS = 600
DATABASE = "bench"
# The folders of the sockets are here: a short path.
PLACES = Path("/tmp")
# Options that define the layout of a data directory. The server is initialised with them.
INITIAL_OPTIONS = (
    "innodb_page_size", "innodb_data_file_path", "innodb_undo_directory", "innodb_undo_tablespaces",
    "innodb_log_group_home_dir", "lower_case_table_names",
)  # fmt: skip
# Variables that define how durable a server is, and how it writes.
SETTINGS = (
    "log_bin", "sync_binlog", "innodb_flush_log_at_trx_commit", "innodb_doublewrite", "innodb_flush_method",
    "innodb_use_native_aio", "innodb_page_size", "innodb_buffer_pool_size", "innodb_io_capacity",
    "innodb_io_capacity_max", "innodb_flush_neighbors", "performance_schema", "version_comment",
)  # fmt: skip
HOW_TO_BUILD = "build the fork with make server and stock with make stock, or name another"
HOW_TO_GET = {"mariadbd": "apt install mariadb-server-core mariadb-client-core, or name another"}


@dataclasses.dataclass(frozen=True)
class Program:
    """A server's program and its identity."""

    path: Path
    vendor: str
    version: str
    sha256: str

    @property
    def is_mariadb(self):
        return self.vendor == "mariadb"

    @property
    def release(self):
        return tuple(int(part) for part in re.findall(r"\d+", self.version)[:3])

    @property
    def family(self):
        """Programs of one family can use each other's data directories. 8.0 releases cannot: they only upgrade."""
        alike = self.release if self.release[:2] == (8, 0) else self.release[:2]
        return f"{self.vendor}-{'.'.join(map(str, alike))}"

    def companion(self, *names):
        """A program that comes with the server: beside it, in its installation, or in PATH."""
        folders = (self.path.parent, self.path.parent.parent / "bin", self.path.parent.parent / "scripts")
        for name in names:
            for folder in folders:
                if (folder / name).exists():
                    return str(folder / name)
        for name in names:
            if found := shutil.which(name):
                return found
        raise Failure(f"{self.path} has no {' or '.join(names)} beside it, and none is installed")


def identify(path):
    """A server's program with its vendor, version and checksum."""
    if not path.exists():
        raise Failure(f"there is no server {path}; {HOW_TO_GET.get(path.name, HOW_TO_BUILD)}")
    result = subprocess.run([path, "--no-defaults", "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"Ver (\d+\.\d+\.\d+\S*)", result.stdout)
    if result.returncode != 0 or not found:
        raise Failure(f"{path} --version does not say that it is a server: {(result.stdout + result.stderr).strip()}")
    vendor = next((name for name in ("mariadb", "percona") if name in result.stdout.lower()), "mysql")
    return Program(path, vendor, found.group(1), sha256_of(path))


class Session:
    """A client that stays connected. Only one thread at a time may use it."""

    END = "end of the answer"

    def __init__(self, command):
        self.process = subprocess.Popen(
            [*DIES_WITH_US, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace",
        )  # fmt: skip

    def query(self, text):
        """Execute statements. Return their rows, each a list of strings. An error ends the client, and so does
        SQL_SECONDS without an answer."""
        rows = []
        timer = threading.Timer(SQL_SECONDS, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(f"{text};\nSELECT '{self.END}';\n")
            self.process.stdin.flush()
            for line in self.process.stdout:
                row = line.rstrip("\n").split("\t")
                if row == [self.END]:
                    return rows
                rows.append(row)
        except OSError:
            raise self.lost(text) from None
        finally:
            timer.cancel()
        raise self.lost(text)

    def lost(self, text):
        self.process.wait()
        return Failure(f"'{text}': a client's connection has ended: {self.process.stderr.read().strip()}")

    def close(self):
        self.process.kill()
        self.process.communicate()


class Instance:
    """A server that runs while the context lasts, without TCP. The caller owns the data directory."""

    def __init__(self, program, data, folder, start_seconds=START_SECONDS):
        """folder takes the configuration and the error log. start_seconds is the time limit of a start and of the waits
        after it."""
        self.program = program
        self.data = data
        self.folder = folder
        self.start_seconds = start_seconds
        self.log = folder / "error.log"
        self.config = folder / "my.cnf"
        self.process = None
        self.kept = None
        self.place = None

    def __enter__(self):
        # A socket's path has at most 107 bytes. Other users cannot enter the folder: a user who reaches the socket can
        # connect as the server's root, which has no password, and can make the server write files.
        self.holds_place = contextlib.ExitStack()
        self.place = self.holds_place.enter_context(temporary_folder(PLACES))
        self.socket = self.place / "s"
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.holds_place.close()

    def configure(self, options):
        """Write the configuration: the settings of every server here, then options."""
        settings = {"user": "root"} if os.geteuid() == 0 else {}
        settings |= {
            "datadir": self.data, "socket": self.socket, "skip_networking": 1, "pid_file": self.place / "pid",
            "log_error": self.log,
        }  # fmt: skip
        messages = self.program.path.parent.parent / "share"
        if (messages / "english").exists():
            settings["lc_messages_dir"] = messages
        if not self.program.is_mariadb:
            settings["loose_mysqlx"] = 0
        # In my.cnf a truth value is a number.
        settings |= {name: int(value) if isinstance(value, bool) else value for name, value in options.items()}
        lines = [f"{name} = {value}\n" for name, value in settings.items()]
        self.config.write_text("[mysqld]\n" + "".join(lines))

    def initialise(self, options):
        """Create a new data directory."""
        self.configure({name: value for name, value in options.items() if name in INITIAL_OPTIONS})
        if self.program.is_mariadb:
            command = [
                self.program.companion("mariadb-install-db", "mysql_install_db"), f"--defaults-file={self.config}",
                "--auth-root-authentication-method=normal", "--skip-test-db",
            ]  # fmt: skip
        else:
            command = [self.program.path, f"--defaults-file={self.config}", "--initialize-insecure"]
        result = subprocess.run([*DIES_WITH_US, *command], capture_output=True, text=True, errors="replace",
                                check=False)  # fmt: skip
        if result.returncode != 0:
            output = (result.stdout + result.stderr).strip()[-2000:]
            raise Failure(f"{self.program.path} cannot initialise {self.data}: {output}\n{self.errors()}")

    def launch(self, options):
        """Start the server, and do not wait until it answers."""
        self.configure(options)
        self.process = subprocess.Popen(
            [*DIES_WITH_US, self.program.path, f"--defaults-file={self.config}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def start(self, options):
        self.launch(options)
        self.wait_until(self.answers, f"{self.program.path} answers")

    def answers(self):
        # The start of a client costs a good part of the start of a server.
        if not self.socket.exists():
            return False
        try:
            self.sql("SELECT 1")
        except Failure:
            return False
        return True

    def check_alive(self):
        if (status := self.process.poll()) is not None:
            how = f"by signal {-status}" if status < 0 else f"with status {status}"
            raise Failure(f"{self.program.path} ended {how}; {self.log} says:\n{self.errors()}")

    def stop(self):
        """Shut the server down cleanly."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.program.path} has not ended after {STOP_SECONDS} s; see {self.log}") from None
        if status != 0:
            raise Failure(f"{self.program.path} ended with status {status}; {self.log} says:\n{self.errors()}")

    def check_options(self, options):
        """Fail if the server does not know an option, without a start. MariaDB and MySQL before 8.0.16 cannot check
        options in this way."""
        if self.program.is_mariadb or self.program.release < (8, 0, 16):
            return
        self.configure(options)
        result = subprocess.run([*DIES_WITH_US, self.program.path, f"--defaults-file={self.config}",
                                 "--validate-config"], capture_output=True, text=True, errors="replace",
                                check=False)  # fmt: skip
        if result.returncode != 0:
            output = (result.stdout + result.stderr).strip()
            raise Failure(f"{self.program.path} does not take its options: {output}")

    def settings(self):
        """The variables that a comparison depends on most, by the names that this server has."""
        names = ", ".join(f"'{name}'" for name in SETTINGS)
        return dict(self.sql(f"SHOW GLOBAL VARIABLES WHERE variable_name IN ({names})"))

    def errors(self):
        return error_log_tail(self.log)

    def client_command(self):
        names = ("mariadb",) if self.program.is_mariadb else ("mysql", "mariadb")
        client = self.program.companion(*names)
        return client_command(client, self.socket, "--user=root", "--batch", "--raw", "--unbuffered",
                              "--skip-column-names")  # fmt: skip

    def session(self):
        return Session(self.client_command())

    @contextlib.contextmanager
    def one_client(self):
        """Let sql() use one client while the context lasts: a client's start takes longer than most statements."""
        self.kept = self.session()
        try:
            yield
        finally:
            self.kept.close()
            self.kept = None

    def sql(self, text):
        """Execute statements. Return their rows, each a list of strings."""
        if self.kept:
            try:
                return self.kept.query(text.strip().removesuffix(";"))
            except Failure:
                self.kept.close()
                self.kept = self.session()
                raise
        try:
            result = subprocess.run(self.client_command(), input=text, capture_output=True, text=True,
                                    errors="replace", timeout=SQL_SECONDS, check=False)  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Failure(f"'{text}': no answer after {SQL_SECONDS} s; {self.log} says:\n{self.errors()}") from None
        if result.returncode != 0:
            raise Failure(f"'{text}': {result.stderr.strip()}")
        return [line.split("\t") for line in result.stdout.splitlines()]

    def value(self, text):
        return self.sql(text)[0][0]

    def redo_capacity_bytes(self):
        """The size of the redo log. The variables differ between versions."""
        found = dict(self.sql("SHOW GLOBAL VARIABLES LIKE 'innodb%log%'"))
        if "innodb_redo_log_capacity" in found:
            return int(found["innodb_redo_log_capacity"])
        return int(found["innodb_log_file_size"]) * int(found.get("innodb_log_files_in_group", 1))

    def wait_until(self, done, what):
        deadline = time.monotonic() + self.start_seconds
        while not done():
            self.check_alive()
            if time.monotonic() > deadline:
                raise Failure(f"{what}: not after {self.start_seconds} s; {self.log} says:\n{self.errors()}")
            time.sleep(0.2)

    def wait_until_ready(self):
        """Wait until the server has loaded its buffer pool and the redo log has its capacity."""

        def pool_is_loaded():
            status = self.sql("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_load_status'")[0][1]
            return any(text in status for text in ("completed", "aborted", "Cannot open"))

        if self.value("SELECT @@innodb_buffer_pool_load_at_startup") == "1":
            self.wait_until(pool_is_loaded, "the buffer pool's contents are loaded")
        self.wait_until_redo_is_resized()

    def resize_redo(self, size):
        """Resize the redo log, if the server can do that online."""
        if self.sql("SHOW GLOBAL VARIABLES LIKE 'innodb_redo_log_capacity'"):
            self.sql(f"SET GLOBAL innodb_redo_log_capacity = {size}")
            self.wait_until_redo_is_resized()

    def wait_until_redo_is_resized(self):
        """Wait until the redo log has its capacity. A server that resizes only at startup has nothing to wait for."""
        capacity = self.redo_capacity_bytes()

        def is_resized():
            status = self.sql("SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_capacity_resized'")
            return not status or int(status[0][1]) == capacity

        self.wait_until(is_resized, "the redo log is resized")
