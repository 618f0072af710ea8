#!/usr/bin/env python3
"""A development server below var/.

    server.py run      initialise if needed, start, run a load with stock's settings and one with Spillway's, print a
                       comparison and how to connect
    server.py start    initialise if needed and start
    server.py stop     stop the server, if it runs
    server.py status   say whether the server runs

The server is the release build of this checkout. It listens on a socket below var/, which only its user can enter. The
password of the server's root is in var/my.cnf. If root runs this, the server runs as another user, and its disk is
slowed down during the loads to that of a small cloud volume. var/my.cnf is written once; you can edit it.
"""

import argparse
import contextlib
import ctypes
import json
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

from spillway import load_report, root_throttle
from spillway.common import (
    BUILD,
    DIES_WITH_US,
    REPO,
    Failure,
    check_path,
    client_command,
    error_log_tail,
    flocked,
    main,
    need_space,
    read_record,
    say,
    write_atomically,
)  # fmt: skip
from spillway.sysbench import SYSBENCH_SCRIPTS, sysbench_environment

VAR = Path(os.path.abspath(os.path.expanduser(os.environ.get("SPILLWAY_VAR") or REPO / "var")))
DATA = VAR / "data"
CONFIG = VAR / "my.cnf"
MARKER = VAR / "spillway.json"
PID_FILE = VAR / "mysqld.pid"
ERROR_LOG = VAR / "error.log"
PROGRAMS = BUILD / "fork/release/runtime_output_directory"
PLOT = VAR / "run.html"
WORKLOAD = SYSBENCH_SCRIPTS / "oltp_write_only.lua"
DATABASE = "spillway_load"
TABLES = 4
# The variables that the server gets from root's environment.
ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TERM", "TZ", "SPILLWAY_VAR")
ENDING_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
# The account of the loads. It has rights in its database only.
LOAD_USER = "spillway_load"
WAS_ROOT = os.geteuid() == 0
# The format of var/, in the marker file. In earlier ones the server's root had no password.
FORMAT = 2
# A new data directory takes about 200 MiB, the tables of the loads 120 MiB; the loads write a binary log.
DATA_BYTES = 2 << 30
START_SECONDS = 120
STOP_SECONDS = 300
# sun_path of unix(7) holds 108 bytes with the final 0.
SOCKET_PATH_BYTES = 107
# Max seconds to write all pages before a load.
DRAIN_SECONDS = 60
DRAINED_PAGES = 100
# What differs between the loads, and what both have. Without a flush of the logs for each commit the loads measure how
# pages are flushed.
STOCK = {"innodb_ahead_flushing": "OFF", "innodb_doublewrite_fsync": "OFF"}
SPILLWAY = {"innodb_ahead_flushing": "ON", "innodb_doublewrite_fsync": "ON"}
BOTH = {"innodb_flush_log_at_trx_commit": "0", "sync_binlog": "0"}
# Rows of the table: {row: the variables of its count and of its microseconds}.
WAITS = {
    "waits for redo space": ("innodb_stall_redo_space_count", "innodb_stall_redo_space_time_us"),
    "waits for sync flushing": ("innodb_stall_sync_flush_count", "innodb_stall_sync_flush_time_us"),
    "waits for a free page": ("innodb_stall_free_page_count", "innodb_stall_free_page_time_us"),
    "delays by the write throttle": ("innodb_ahead_flush_delays", "innodb_ahead_flush_delay_us"),
}
SHOWN_LINES = ("Oldest page age ", "Device write capacity ", "Write throttle: ")
# A constant of prctl(2).
PR_SET_PDEATHSIG = 1

CONFIG_TEXT = """\
# A development server of Spillway, whose own variables are in docs/reference/system-variables.md. It listens on a
# socket in this folder, which only its user can enter. For TCP, set bind_address and port in the place of
# skip_networking.
[mysqld]
datadir = {data}
socket = {socket}
pid_file = {pid_file}
log_error = {error_log}
skip_networking

# Spillway: native asynchronous I/Os that each I/O thread can have pending. Stock has 256 and no way to change it.
# 32 to 4096; the kernel needs room for threads x depth in fs.aio-max-nr, or a smaller depth is used with a warning.
innodb_aio_pending_ios_per_thread = 1024

# A small machine: 2 write threads and 2 read threads are enough, and fit the kernel's default fs.aio-max-nr of 65536.
innodb_read_io_threads = 2
innodb_write_io_threads = 2
innodb_buffer_pool_size = 512M

# Small, so that the loads of make run, which take half a minute, generate this much redo several times. A server in
# production needs more: docs/guide/presets.md has the formula.
innodb_redo_log_capacity = 32M

# Spillway: the settings that each preset in share/spillway has, with its reasons. ON writes pages at a steady rate
# before the redo log is full, and delays sessions that write faster than the device.
innodb_ahead_flushing = ON
# Spillway: syncs the doublewrite files before the pages themselves are written.
innodb_doublewrite_fsync = ON
# Spillway: a warning in the error log if sessions have waited for InnoDB longer than a second.
innodb_stall_log_threshold_ms = 1000

[client]
socket = {socket}
user = root
password = {password}
"""


def program(name):
    path = PROGRAMS / name
    if not path.exists():
        raise Failure(f"{path.relative_to(REPO)} is not built yet: make server")
    return str(path)


def setting(name):
    """A setting in var/my.cnf."""
    found = re.search(rf"^{name}[ \t]*=[ \t]*([^#\s]+)", CONFIG.read_text(), re.MULTILINE)
    if not found:
        raise Failure(f"{CONFIG} has no setting {name}")
    return found.group(1)


def process_is_ours(pid):
    """Whether pid is a running mysqld that was started with our configuration."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        # A client with the same configuration can have the process id of a server that was killed.
        name = Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return False
    return name == "mysqld" and f"--defaults-file={CONFIG}".encode() in command


def running():
    """The process id of our server, or None."""
    try:
        pid = int(PID_FILE.read_text())
    except (OSError, ValueError):
        return None
    return pid if process_is_ours(pid) else None


def check_not_below_build():
    if VAR.resolve().is_relative_to(BUILD.resolve()):
        raise Failure(f"SPILLWAY_VAR: {VAR} is below {BUILD}, which make clean removes: name another place")


def check_var():
    """Fail if var/ is in build/, another user's, not made by this tool, damaged or moved."""
    check_path(VAR)
    check_not_below_build()
    if not VAR.exists():
        return
    if not os.access(VAR, os.R_OK | os.W_OK | os.X_OK):
        raise Failure(f"{VAR} belongs to another user, as does its server, or you may not write in it: name another "
                      "place, SPILLWAY_VAR=<folder>")  # fmt: skip
    if not any(VAR.iterdir()):
        return
    if not MARKER.exists():
        raise Failure(
            f"{VAR} has files and was not made by this command; it may belong to another server. Move it away, or name "
            "another place: SPILLWAY_VAR=<folder> make run"
        )
    home = read_record(MARKER).get("home")
    if home is None:
        raise Failure(f"{MARKER} is damaged; if {VAR} was made by this command, write it anew: "
                      f'{json.dumps({"home": str(VAR), "format": FORMAT})}')  # fmt: skip
    if home != str(VAR):
        raise Failure(
            f"{VAR} was made as {home}, and its my.cnf names that place. Move it back, or move it away and start anew"
        )


def make_config():
    path = VAR / "mysqld.sock"
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES:
        raise Failure(
            f"the socket's path {path} is longer than the {SOCKET_PATH_BYTES} bytes that the system allows; name a "
            "shorter place: SPILLWAY_VAR=<folder> make run"
        )
    text = CONFIG_TEXT.format(data=DATA, socket=path, pid_file=PID_FILE, error_log=ERROR_LOG,
                              password=secrets.token_urlsafe(24))  # fmt: skip
    write_atomically(CONFIG, text)


def error_log_size():
    return ERROR_LOG.stat().st_size if ERROR_LOG.exists() else 0


def initialise():
    """Fill var/: marker file, configuration, data directory. Existing ones are kept."""
    if not MARKER.exists():
        need_space(VAR, DATA_BYTES, "the data directory")
        write_atomically(MARKER, json.dumps({"home": str(VAR), "format": FORMAT}))
    if not CONFIG.exists():
        make_config()
    if not DATA.exists():
        say(f"initialising {DATA}")
        fresh = VAR / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        accounts = VAR / "accounts.sql"
        write_atomically(accounts, f"ALTER USER root@localhost IDENTIFIED BY '{setting('password')}';\n")
        command = [program("mysqld"), f"--defaults-file={CONFIG}", f"--datadir={fresh}", f"--init-file={accounts}",
                   "--initialize-insecure"]  # fmt: skip
        log_begin = error_log_size()
        failed = subprocess.run([*DIES_WITH_US, *command], check=False).returncode != 0
        accounts.unlink()
        if failed:
            shutil.rmtree(fresh, ignore_errors=True)
            why = error_log_tail(ERROR_LOG, log_begin)
            raise Failure(f"the data directory could not be initialised; {ERROR_LOG} says:\n{why}")
        fresh.rename(DATA)


def run_client(*arguments, text=None):
    command = client_command(program("mysql"), setting("socket"), "--batch", "--skip-column-names", *arguments,
                             defaults=CONFIG)  # fmt: skip
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def client(statements, *arguments):
    result = run_client(*arguments, text=statements)
    if result.returncode != 0:
        raise Failure(f"the server answers: {result.stderr.strip()}")
    return result.stdout


def answers():
    """Whether the server answers, if only that root's password was changed."""
    result = run_client("-e", "SELECT 1")
    return result.returncode == 0 or "Access denied" in result.stderr


def var_locked():
    """Lock the folder var/, so that only one command at a time starts or stops its server."""
    return flocked(VAR, f"starts or stops the server of {VAR}")


def make_var(user):
    """Make var/ as root, for another user, in a folder in which only these two can replace it."""
    check_not_below_build()
    VAR.parent.mkdir(parents=True, exist_ok=True)
    if os.path.realpath(VAR.parent) != str(VAR.parent):
        raise Failure(f"{VAR.parent} is reached by a link, which root does not follow: SPILLWAY_VAR="
                      f"{os.path.realpath(VAR.parent)}/{VAR.name}")  # fmt: skip
    status = os.stat(VAR.parent)
    if status.st_uid not in (0, user.pw_uid) or (status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX):
        raise Failure(f"{VAR.parent} can be changed by other users than root and '{user.pw_name}': name another place, "
                      "SPILLWAY_VAR=<folder>")  # fmt: skip
    try:
        VAR.mkdir(mode=0o700)
    except FileExistsError:
        # Another call as root has just made it, and gives it to the user next.
        for _ in range(50):
            if VAR.lstat().st_uid == user.pw_uid:
                break
            time.sleep(0.02)
        return
    os.chown(VAR, user.pw_uid, user.pw_gid, follow_symlinks=False)


def other_user():
    """The user that the server gets if root runs this tool."""
    owner = REPO.stat().st_uid
    try:
        return pwd.getpwuid(owner) if owner else pwd.getpwnam("nobody")
    except KeyError:
        raise Failure(f"{REPO} belongs to {owner}, who is no user of this machine: chown it, or run this as another "
                      "user than root") from None  # fmt: skip


def give_up_root(makes_var):
    """If root runs this tool, continue as the owner of the checkout or, if that is root, as the user nobody. This comes
    before anything below var/ is read or started: root in a server that runs as root is root of the machine."""
    if os.geteuid() != 0:
        return
    if makes_var and not PROGRAMS.exists():
        raise Failure(f"{PROGRAMS.relative_to(REPO)} is not built yet: make server")
    user = other_user()
    if makes_var and not os.path.lexists(VAR):
        make_var(user)
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    # The server must not show root's environment to its user.
    kept = {name: value for name, value in os.environ.items() if name in ENVIRONMENT}
    os.environ.clear()
    os.environ.update(kept | {"HOME": user.pw_dir})
    who = f"root starts the server as the user '{user.pw_name}', who"
    if makes_var and not (os.access(PROGRAMS, os.X_OK) and os.access(__file__, os.R_OK)):
        raise Failure(f"{who} cannot read {REPO}: let all users read it and enter the folders above it, or run this as "
                      "another user than root")  # fmt: skip
    try:
        is_usable = not VAR.exists() or os.access(VAR, os.W_OK | os.X_OK)
    except PermissionError:
        is_usable = False
    if not is_usable:
        raise Failure(f"{who} cannot write in {VAR}: name another place, SPILLWAY_VAR=<folder>, or remove {VAR} if it "
                      "is an old one of yours")  # fmt: skip


def start():
    VAR.mkdir(mode=0o700, parents=True, exist_ok=True)
    with var_locked():
        check_var()
        VAR.chmod(0o700)
        start_locked()


def take_signals(mask):
    """Before a child becomes mysqld: drop pending signals, which were sent to this tool; it ends the child itself."""
    for number in ENDING_SIGNALS:
        # Ignoring a signal drops a pending one.
        signal.signal(number, signal.SIG_IGN)
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def start_locked():
    if MARKER.exists() and read_record(MARKER).get("format") != FORMAT:
        raise Failure(
            f"{VAR} was made by an earlier version of this command: every user of this machine can be root of its "
            "server. Stop it (make stop), and move it away or remove it"
        )
    initialise()
    if pid := running():
        say(f"the server runs already, process {pid}")
        return
    place = Path(setting("socket"))
    if place.exists() and socket_answers(place):
        raise Failure(f"another server listens on {place}; stop it, or set another socket in {CONFIG}")
    say("starting mysqld")
    log_begin = error_log_size()
    # Block signals until the process to end is known.
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
    process = subprocess.Popen(
        [program("mysqld"), f"--defaults-file={CONFIG}"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        preexec_fn=lambda: take_signals(old_mask),
    )  # fmt: skip
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)
        wait_for_answer(process, log_begin)
    except BaseException:
        # Interrupted or failed: end the server, which would otherwise go on starting unnoticed.
        process.terminate()
        process.wait()
        raise


def wait_for_answer(process, log_begin):
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Failure(
                f"mysqld ended with status {process.returncode}; {ERROR_LOG} says:\n"
                f"{error_log_tail(ERROR_LOG, log_begin)}"
            )
        if PID_FILE.exists() and running() == process.pid and answers():
            return
        time.sleep(0.2)
    raise Failure(
        f"mysqld did not answer within {START_SECONDS} s on the socket and with the pid_file that {CONFIG} had when "
        f"it was made; {ERROR_LOG} says:\n{error_log_tail(ERROR_LOG, log_begin)}"
    )


def socket_answers(path):
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except PermissionError:
            # Another user's server may listen.
            return True
    return True


def stop():
    if not VAR.exists():
        say("the server does not run")
        return
    with var_locked():
        check_var()
        stop_locked()


def stop_locked():
    pid = running()
    if pid is None:
        say("the server does not run")
        return
    say(f"stopping mysqld, process {pid}")
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while process_is_ours(pid):
        if time.monotonic() > deadline:
            raise Failure(f"process {pid} has not ended after {STOP_SECONDS} s; see {ERROR_LOG}")
        time.sleep(0.2)


class Session:
    """A client that stays connected while a load runs."""

    def __enter__(self):
        command = client_command(program("mysql"), setting("socket"), "--batch", "--skip-column-names", "--unbuffered",
                                 defaults=CONFIG)  # fmt: skip
        self.process = subprocess.Popen([*DIES_WITH_US, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)  # fmt: skip
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def status(self):
        """The status variables of InnoDB that the report needs: {name in lower case: number}."""
        names = ["innodb_checkpoint_age", "innodb_checkpoint_sync_age", "innodb_buffer_pool_pages_dirty",
                 *(name for both in WAITS.values() for name in both)]  # fmt: skip
        words = ", ".join(f"'{name}'" for name in names)
        self.process.stdin.write(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({words});\nSELECT 'end';\n")
        self.process.stdin.flush()
        found = {}
        for line in self.process.stdout:
            if line == "end\n":
                return found
            name, value = line.split()
            found[name.lower()] = int(value)
        raise Failure(f"the server does not answer any more; see {ERROR_LOG}")


def set_variables(values):
    client("SET " + ", ".join(f"GLOBAL {name} = {value}" for name, value in values.items()))


@contextlib.contextmanager
def variables_kept():
    """Set the variables of the loads back to what they were when the context ends."""
    names = [*STOCK, *BOTH]
    before = client("SELECT " + ", ".join(f"@@GLOBAL.{name}" for name in names)).split()
    try:
        yield
    finally:
        set_variables(dict(zip(names, before, strict=True)))


def sysbench(password, rows, *arguments):
    # Other users can see the password on the command line, so it is valid for this run and database only.
    return [
        *DIES_WITH_US, "sysbench", str(WORKLOAD), "--db-driver=mysql", f"--mysql-socket={setting('socket')}",
        f"--mysql-user={LOAD_USER}", f"--mysql-password={password}", f"--mysql-db={DATABASE}", f"--tables={TABLES}",
        f"--table-size={rows}", *arguments,
    ]  # fmt: skip


def prepare(rows):
    """Make the tables of the loads, if they are not there. Returns the password of the loads' account."""
    if not shutil.which("sysbench"):
        raise Failure("sysbench is not installed: make packages")
    password = secrets.token_urlsafe(24)
    client(f"""CREATE USER IF NOT EXISTS {LOAD_USER}@localhost;
      ALTER USER {LOAD_USER}@localhost IDENTIFIED BY '{password}';
      GRANT ALL ON {DATABASE}.* TO {LOAD_USER}@localhost;""")
    # This table is made last, so it is there only if the others are complete.
    if run_client("-e", f"SELECT number FROM {DATABASE}.row_count").stdout.strip() == str(rows):
        return password
    say(f"filling {TABLES} tables with {rows} rows each")
    client(f"DROP DATABASE IF EXISTS {DATABASE}; CREATE DATABASE {DATABASE};")
    command = sysbench(password, rows, f"--threads={TABLES}", "prepare")
    made = subprocess.run(command, env=sysbench_environment(), capture_output=True, text=True, check=False)
    if made.returncode != 0 or "FATAL: " in made.stdout + made.stderr:
        raise Failure(f"sysbench could not prepare its tables: {made.stdout}{made.stderr}")
    client(f"CREATE TABLE {DATABASE}.row_count AS SELECT {rows} AS number;")
    return password


def drain(session):
    """Write the pages that earlier work has left, so that both loads begin alike."""
    before = client("SELECT @@GLOBAL.innodb_max_dirty_pages_pct, @@GLOBAL.innodb_max_dirty_pages_pct_lwm").split()
    names = ("innodb_max_dirty_pages_pct", "innodb_max_dirty_pages_pct_lwm")
    # The low water mark comes first: it must not be above the other.
    set_variables({"innodb_max_dirty_pages_pct_lwm": 0, "innodb_max_dirty_pages_pct": 0})
    try:
        deadline = time.monotonic() + DRAIN_SECONDS
        while session.status()["innodb_buffer_pool_pages_dirty"] > DRAINED_PAGES and time.monotonic() < deadline:
            time.sleep(0.2)
    finally:
        set_variables(dict(zip(names, before, strict=True)))


def load(name, settings, seconds, command, throttle):
    """Run one load. Prints a line for each second. Returns its figures, and why the disk is not throttled, or None."""
    set_variables(settings | BOTH)
    with Session() as session:
        drain(session)
        why_not = throttle(running())
        say(f"{name}: {', '.join(f'{variable} = {value}' for variable, value in settings.items())}")
        shown, output, before = [], [], session.status()
        with subprocess.Popen(command, env=sysbench_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as process:  # fmt: skip
            try:
                for line in process.stdout:
                    output.append(line)
                    if second := load_report.second_of(line):
                        now = session.status()
                        second.age_pct = 100 * now["innodb_checkpoint_age"] / now["innodb_checkpoint_sync_age"]
                        shown.append(second)
                        print(second.text(), flush=True)
            except BaseException:
                # Leaving the context waits for the end of sysbench.
                process.kill()
                raise
        after = session.status()
    if process.returncode != 0:
        raise Failure(f"sysbench failed:\n{''.join(output[-15:])}")
    result = load_report.load_of(name, shown, "".join(output))
    for wait, (count, microseconds) in WAITS.items():
        result.waits[wait] = (after[count] - before[count], (after[microseconds] - before[microseconds]) / 1e6)
    return result, why_not


def compare(seconds, rows, throttle):
    """Run both loads on the same server. Returns them, what the device was, and the lines of SHOW after the second."""
    password = prepare(rows)
    command = sysbench(password, rows, "--threads=32", f"--time={seconds}", "--report-interval=1", "--percentile=100",
                       "--histogram=on", "run")  # fmt: skip
    say(f"two loads of {seconds} s: 32 connections change random rows; commits do not wait for the disk "
        "(innodb_flush_log_at_trx_commit = 0)")  # fmt: skip
    loads, reasons = [], []
    with variables_kept():
        for name, settings in (("stock's settings", STOCK), ("Spillway's settings", SPILLWAY)):
            result, why_not = load(name, settings, seconds, command, throttle)
            status = client("SHOW ENGINE INNODB STATUS", "--raw")
            throttle(root_throttle.LIFT)
            loads.append(result)
            reasons.append(why_not)
    limits = root_throttle.LIMITS
    device = (f"The server's disk was throttled to {limits.write_iops} writes/s and "
              f"{limits.write_bytes_per_s / 1e6:.0f} MB/s, as a small cloud volume is.")  # fmt: skip
    if why := next(filter(None, reasons), None):
        device = f"The server's disk was not throttled: {why}. If it keeps up with the loads, they look alike."
    return loads, device, [line for line in status.splitlines() if line.startswith(SHOWN_LINES)]


def run(seconds, rows, throttle):
    start()
    try:
        loads, device, lines = compare(seconds, rows, throttle)
    except BaseException:
        say("the load has ended early; the server still runs: make stop")
        raise
    if not lines:
        raise Failure("SHOW ENGINE INNODB STATUS has no lines of ahead flushing: is this the fork?")
    capacity, threshold = client("SELECT @@innodb_io_capacity, ROUND(@@innodb_ahead_flushing_age_pct)").split()
    write_atomically(PLOT, load_report.page(loads, device))
    print(f"\n{device}\n\n{load_report.table_text(loads)}\n")
    print("SHOW ENGINE INNODB STATUS, after the second load:")
    print("".join(f"  {line}\n" for line in lines))
    print("Expect a difference where the device is slower than the sessions, and none where it keeps up. Stock\n"
          f"depends on innodb_io_capacity, which was {capacity} in both loads. Set to the device's capacity, stock is\n"
          "as a rule closer to Spillway. One load each is no measurement: those are in docs/measurements/README.md.")
    if max((second.age_pct for load in loads for second in load.seconds), default=0) < float(threshold):
        print("The redo log did not fill: the checkpoint age stayed below innodb_ahead_flushing_age_pct "
              f"({threshold} %).")  # fmt: skip
    print()
    print(f"Plot: {PLOT}")
    # Root must not use an option file that another user can write.
    by = f"setpriv --reuid={os.getuid()} --regid={os.getgid()} --clear-groups " if WAS_ROOT else ""
    print(f"Connect: {by}{program('mysql')} --defaults-file={CONFIG} --no-login-paths")
    elsewhere = f"SPILLWAY_VAR={VAR} " if "SPILLWAY_VAR" in os.environ else ""
    print(f"Configuration: {CONFIG}\nStop: {elsewhere}make stop")


def end_with_parent(parent):
    """Have the kernel send SIGTERM to this process when its parent, which kept root, is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        raise Failure("the process that kept root has ended")


def run_from_root(arguments):
    """Run both loads in a child that gives up root. This process keeps root, for root_throttle.serve() only.

    The child has a process group of its own, so Ctrl-C reaches this process alone. It ends the child by SIGTERM."""
    user = other_user()
    ours, childs = socket.socketpair()
    parent = os.getpid()
    # Block signals until the process to end is known.
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
    child = os.fork()
    if child == 0:
        ours.close()
        os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)
        give_up_root(makes_var=True)
        # The kernel forgets this when the user changes.
        end_with_parent(parent)
        os.umask(0o077)
        run(arguments.seconds, arguments.rows, lambda process_id: root_throttle.ask(childs, process_id))
        return
    childs.close()
    with contextlib.suppress(PermissionError):
        # The child does the same; the first of the two is in time for a signal.
        os.setpgid(child, child)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)
        root_throttle.serve(ours, user.pw_uid, PROGRAMS / "mysqld")
        _, status = os.waitpid(child, 0)
    except BaseException:
        for number in ENDING_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGTERM)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
        raise
    code = os.waitstatus_to_exitcode(status)
    sys.exit(code if code >= 0 else 128 - code)


def status():
    check_var()
    pid = running()
    say(f"the server runs, process {pid}" if pid else "the server does not run")


def number_to(greatest):
    """A type of argparse: an integer from 1 to greatest."""

    def number(text):
        value = int(text)
        if not 1 <= value <= greatest:
            raise argparse.ArgumentTypeError(f"{value} is not from 1 to {greatest}")
        return value

    return number


def command_line():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    of_run = commands.add_parser("run")
    of_run.add_argument("--seconds", type=number_to(3600), metavar="1..3600", default=30, help="length of each load")
    of_run.add_argument("--rows", type=number_to(10_000_000), metavar="1..10000000", default=100_000,
                        help=f"rows in each of the loads' {TABLES} tables")  # fmt: skip
    for name in ("start", "stop", "status"):
        commands.add_parser(name)
    arguments = parser.parse_args()
    if arguments.command == "run" and os.geteuid() == 0:
        run_from_root(arguments)
        return
    give_up_root(makes_var=arguments.command in ("run", "start"))
    # Only their user can read the files of this tool and its server.
    os.umask(0o077)
    if arguments.command == "run":
        run(arguments.seconds, arguments.rows, lambda _: "this needs root and control groups that throttle I/O")
    else:
        {"start": start, "stop": stop, "status": status}[arguments.command]()


if __name__ == "__main__":
    sys.exit(main(command_line))
