"""A mysqld in a scratch folder, for tests that need their own server."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

# For scripts outside of the checkout, which import this module from its folder. At the end of the path: tools/ has
# another package tests.
sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
from spillway.common import BUILD, DIES_WITH_US, REPO, client_command, forget_others_settings
from spillway.resources import temporary_folder

forget_others_settings()

STOCK = BUILD / "stock/release/runtime_output_directory/mysqld"
# SERVER_TESTS_FLAVOR=debug or asan: the fork with InnoDB's assertions or AddressSanitizer. That build has to be there.
FORK = BUILD / "fork" / os.environ.get("SERVER_TESTS_FLAVOR", "release") / "runtime_output_directory/mysqld"
CLIENT = FORK.parent / "mysql"
# With atomic writes it is in the data directory while pages have no doublewrite copies.
MARKER = "#spw_atomic_writes"
CHECK = REPO / "scripts/spillway-downgrade-check"
# Its exit status.
CLEAN, STEPS, INCOMPLETE = 0, 1, 2
REDO_FAULT, SYNC_HOLD = (Path(__file__).resolve().parent / name for name in ("redo_fault.cc", "sync_hold.cc"))
START_SECONDS = 120
STOP_SECONDS = 120
# For conditions that a test waits for: a hang is bounded.
WAIT_SECONDS = 90


def to_preload(source, folder):
    """Compile a source as a shared object in folder, for LD_PRELOAD of a server."""
    library = folder / f"{source.stem}.so"
    options = ["-std=c++20", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["g++", *options, source, "-o", library], check=True)
    return library


def observed(library, folder, name):
    """Variables for a server with the preloaded library of sync_hold.cc, which says what they do: it observes the file
    whose path ends with name. folder takes syncs, the log, and the files hold, kill and fail."""
    return {"LD_PRELOAD": str(library), "SYNC_FILE": name, "SYNC_LOG": str(folder / "syncs"),
            "SYNC_HOLD": str(folder / "hold"), "SYNC_KILL": str(folder / "kill"),
            "SYNC_FAIL": str(folder / "fail")}  # fmt: skip


def wait_until(condition, what="waited too long", seconds=WAIT_SECONDS):
    """Wait until a function returns true; fail with a text if it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(what)
        time.sleep(0.05)


class Folder(contextlib.ExitStack):
    """The scratch folder. A script without a with statement removes it by cleanup(), like a TemporaryDirectory."""

    cleanup = contextlib.ExitStack.close


class Scratch:
    """A data directory with one mysqld at a time. The end of the context kills the server and removes the folder, which
    is in parent. Its path has to be short, because the socket is there, too."""

    def __init__(self, parent="/tmp", page_bytes=16384):
        self.parent = parent
        self.page_bytes = page_bytes

    def __enter__(self):
        self.folder = Folder()
        self.path = self.folder.enter_context(temporary_folder(self.parent))
        self.data = self.path / "data"
        self.socket = self.path / "s"
        self.log = self.path / "error.log"
        self.process = None
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.folder.close()

    def options(self, mysqld):
        messages = mysqld.parent.parent / "share"
        return [str(mysqld), "--no-defaults", "--user=root", f"--datadir={self.data}", f"--log-error={self.log}",
                f"--lc-messages-dir={messages}", f"--socket={self.socket}", f"--pid-file={self.path}/pid",
                "--skip-networking", f"--innodb-page-size={self.page_bytes}",
                "--innodb-buffer-pool-size=64M", "--innodb-redo-log-capacity=64M"]  # fmt: skip

    def initialise(self, mysqld):
        subprocess.run([*self.options(mysqld), "--initialize-insecure"], check=True)

    def launch(self, mysqld, *options, environment=None, wrapper=()):
        """Run mysqld. environment: more variables; wrapper: a command that runs mysqld. AddressSanitizer's library may
        come after those of LD_PRELOAD."""
        its_own = {"ASAN_OPTIONS": "verify_asan_link_order=0"} | os.environ | (environment or {})
        command = [*DIES_WITH_US, *wrapper, *self.options(mysqld), *options]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=its_own)

    def start(self, mysqld, *options, **how):
        """launch(), and wait until mysqld answers."""
        self.launch(mysqld, *options, **how)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            if self.client("SELECT 1").returncode == 0:
                return
            time.sleep(0.2)
        raise AssertionError(f"{mysqld} did not start:\n{self.log.read_text()[-3000:]}")

    def end(self, how=signal.SIGTERM):
        """Stop or kill the server; return its exit status."""
        self.process.send_signal(how)
        return self.process.wait(STOP_SECONDS)

    def client_command(self):
        return client_command(CLIENT, self.socket, "--user=root", "--batch", "--unbuffered", "--skip-column-names")

    def session(self):
        """A client that stays connected and executes the statements written to its stdin."""
        return subprocess.Popen(self.client_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def client(self, text):
        return subprocess.run(self.client_command(), input=text, capture_output=True, text=True, check=False)

    def sql(self, text):
        result = self.client(text)
        if result.returncode != 0:
            raise AssertionError(f"{text}: {result.stderr}")
        return result.stdout.strip()

    @contextlib.contextmanager
    def load(self, n_connections, seconds):
        """That many clients execute d.fill() while the context lasts: it ends when nobody has the lock 'go'. Gives the
        clients, which end within seconds."""
        clients = [self.session() for _ in range(1 + n_connections)]
        clients[0].stdin.write("SELECT GET_LOCK('go', 0);\n")
        clients[0].stdin.flush()
        if clients[0].stdout.readline() != "1\n":
            raise AssertionError("the lock of the load")
        for client in clients[1:]:
            client.stdin.write("CALL d.fill();\n")
            client.stdin.flush()
        try:
            yield clients
        finally:
            for client in clients:
                client.communicate(timeout=seconds)

    def start_script(self, program, *options, user="root", wrapper=(), folders=(FORK.parent,)):
        """Start one of scripts/, which runs the client. folders: where it finds the client. Returns the process."""
        path = ":".join((*map(str, folders), os.environ["PATH"]))
        command = [*wrapper, program, "--no-defaults", f"--socket={self.socket}", f"--user={user}", *options]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=os.environ | {"PATH": path})  # fmt: skip

    def run_script(self, program, *options, **how):
        """start_script(), and wait for its end. Returns the process."""
        with self.start_script(program, *options, **how) as process:
            stdout, stderr = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    def counter(self, name):
        """The value of a status variable that is a number."""
        return int(self.sql(f"SHOW GLOBAL STATUS LIKE '{name}'").split("\t")[1])

    def space_id(self, table):
        """The ID of a table's tablespace; table: database/table."""
        return int(self.sql(f"SELECT space FROM information_schema.innodb_tablespaces WHERE name = '{table}'"))


class ScratchWithFile(Scratch):
    """A server with an option file. Not below the fork's basedir, which spillway-downgrade-check names: the messages
    are those of stock, if that is built."""

    def __enter__(self):
        super().__enter__()
        self.file = self.path / "my.cnf"
        self.defaults = [f"--defaults-file={self.file}"]
        self.file.write_text("[mysqld]\n")
        return self

    def options(self, mysqld):
        _, no_defaults, *rest = super().options(STOCK if STOCK.exists() else mysqld)
        assert no_defaults == "--no-defaults"
        return [str(mysqld), *self.defaults, *rest]

    def downgrade_check(self, *options, program=CHECK, **how):
        """Run spillway-downgrade-check on the server. Returns the process."""
        return self.run_script(program, *options, **how)
