#!/usr/bin/env python3
"""A development server below var/.

    server.py run      initialise if needed, start, run a short load, print its results and how to connect
    server.py start    initialise if needed and start
    server.py stop     stop the server, if it runs
    server.py status   say whether the server runs

The server is the release build of this checkout. It listens on a socket below var/, which only its user can enter. The
password of the server's root is in var/my.cnf. If root runs this, the server runs as another user. var/my.cnf is
written once; you can edit it.
"""

import argparse
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
    write_whole,
)  # fmt: skip
from spillway.sysbench import sysbench_environment

VAR = Path(os.path.abspath(os.path.expanduser(os.environ.get("SPILLWAY_VAR") or REPO / "var")))
DATA = VAR / "data"
CONFIG = VAR / "my.cnf"
MARKER = VAR / "spillway.json"
PID_FILE = VAR / "mysqld.pid"
ERROR_LOG = VAR / "error.log"
PROGRAMS = BUILD / "fork/release/runtime_output_directory"
WORKLOAD = REPO / "bench/workloads/insert12.lua"
DATABASE = "insert12"
# The variables that the server gets from root's environment.
ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TERM", "TZ", "SPILLWAY_VAR")
ENDING_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
# The account of the short load. It has rights in its database only.
LOAD_USER = "spillway_load"
WAS_ROOT = os.geteuid() == 0
# The format of var/, in the marker file. In earlier ones the server's root had no password.
FORMAT = 2
# A new data directory with its redo logs takes about 200 MiB; the short load writes for 20 s.
DATA_BYTES = 2 << 30
START_SECONDS = 120
STOP_SECONDS = 300
# sun_path of unix(7) holds 108 bytes with the final 0.
SOCKET_PATH_BYTES = 107

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
innodb_redo_log_capacity = 256M

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
    write_whole(CONFIG, text)


def error_log_size():
    return ERROR_LOG.stat().st_size if ERROR_LOG.exists() else 0


def initialise():
    """Fill var/: marker file, configuration, data directory. Existing ones are kept."""
    if not MARKER.exists():
        need_space(VAR, DATA_BYTES, "the data directory")
        write_whole(MARKER, json.dumps({"home": str(VAR), "format": FORMAT}))
    if not CONFIG.exists():
        make_config()
    if not DATA.exists():
        say(f"initialising {DATA}")
        fresh = VAR / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        accounts = VAR / "accounts.sql"
        write_whole(accounts, f"ALTER USER root@localhost IDENTIFIED BY '{setting('password')}';\n")
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
    VAR.mkdir(mode=0o700)
    os.chown(VAR, user.pw_uid, user.pw_gid, follow_symlinks=False)


def give_up_root(makes_var):
    """If root runs this tool, continue as the owner of the checkout or, if that is root, as the user nobody. This comes
    before anything below var/ is read or started: root in a server that runs as root is root of the machine."""
    if os.geteuid() != 0:
        return
    if makes_var and not PROGRAMS.exists():
        raise Failure(f"{PROGRAMS.relative_to(REPO)} is not built yet: make server")
    owner = REPO.stat().st_uid
    try:
        user = pwd.getpwuid(owner) if owner else pwd.getpwnam("nobody")
    except KeyError:
        raise Failure(f"{REPO} belongs to {owner}, who is no user of this machine: chown it, or run this as another "
                      "user than root") from None  # fmt: skip
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
    if makes_var and not (os.access(PROGRAMS, os.X_OK) and os.access(WORKLOAD, os.R_OK)):
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


def load(seconds):
    """Run a short load. Prints sysbench's line every 5 s; returns transactions per second."""
    if not shutil.which("sysbench"):
        raise Failure("sysbench is not installed: make packages")
    # Other users can see it on sysbench's command line, so it is valid for this run and database only.
    password = secrets.token_urlsafe(24)
    client(f"""CREATE DATABASE IF NOT EXISTS {DATABASE};
      CREATE USER IF NOT EXISTS {LOAD_USER}@localhost;
      ALTER USER {LOAD_USER}@localhost IDENTIFIED BY '{password}';
      GRANT ALL ON {DATABASE}.* TO {LOAD_USER}@localhost;""")
    common = [
        "sysbench", str(WORKLOAD), "--db-driver=mysql", f"--mysql-socket={setting('socket')}",
        f"--mysql-user={LOAD_USER}", f"--mysql-password={password}", f"--mysql-db={DATABASE}",
    ]  # fmt: skip
    prepared = subprocess.run([*DIES_WITH_US, *common, "prepare"], env=sysbench_environment(), capture_output=True,
                              text=True, check=False)  # fmt: skip
    if prepared.returncode != 0:
        raise Failure(f"sysbench could not prepare its tables: {prepared.stdout}{prepared.stderr}")
    say(f"load: {seconds} s of transactions with one INSERT into each of 12 tables, 32 connections")
    command = [*common, "--threads=32", f"--time={seconds}", "--report-interval=5", "run"]
    output = []
    with subprocess.Popen([*DIES_WITH_US, *command], env=sysbench_environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as process:  # fmt: skip
        try:
            for line in process.stdout:
                output.append(line)
                if line.startswith("["):
                    print("  " + line.rstrip(), flush=True)
        except BaseException:
            # Leaving the context waits for the end of sysbench.
            process.kill()
            raise
    found = re.search(r"transactions:\s+\d+\s+\(([\d.]+) per sec", "".join(output))
    events = re.search(r"total number of events:\s+(\d+)", "".join(output))
    elapsed = re.search(r"total time:\s+([\d.]+)s", "".join(output))
    if process.returncode != 0 or not (found and events and elapsed):
        raise Failure(f"sysbench failed:\n{''.join(output[-15:])}")
    return int(events.group(1)) / float(elapsed.group(1))


def run(seconds):
    start()
    try:
        tps = load(seconds)
    except BaseException:
        say("the load has ended early; the server still runs: make stop")
        raise
    status = client("SHOW ENGINE INNODB STATUS", "--raw")
    version = client("SELECT VERSION()").strip()
    lines = [line for line in status.splitlines() if line.startswith("AIO ")]
    if len(lines) != 2:
        raise Failure("SHOW ENGINE INNODB STATUS has no AIO lines: is this the fork?")
    print(f"\n{tps:.0f} transactions per second ({12 * tps:.0f} INSERTs), version {version}\n")
    print("SHOW ENGINE INNODB STATUS, section FILE I/O:")
    print("".join(f"  {line}\n" for line in lines))
    print(status[status.index("FLUSHING AND STALLS") : status.index("-" * 28 + "\nEND OF INNODB")])
    # Root must not use an option file that another user can write.
    by = f"setpriv --reuid={os.getuid()} --regid={os.getgid()} --clear-groups " if WAS_ROOT else ""
    print(f"Connect: {by}{program('mysql')} --defaults-file={CONFIG} --no-login-paths")
    elsewhere = f"SPILLWAY_VAR={VAR} " if "SPILLWAY_VAR" in os.environ else ""
    print(f"Configuration: {CONFIG}\nStop: {elsewhere}make stop")


def status():
    check_var()
    pid = running()
    say(f"the server runs, process {pid}" if pid else "the server does not run")


def load_seconds(text):
    seconds = int(text)
    if not 1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{seconds} is not from 1 to 3600")
    return seconds


def command_line():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run").add_argument(
        "--seconds", type=load_seconds, metavar="1..3600", default=20, help="length of the load"
    )
    for name in ("start", "stop", "status"):
        commands.add_parser(name)
    arguments = parser.parse_args()
    give_up_root(makes_var=arguments.command in ("run", "start"))
    # Only their user can read the files of this tool and its server.
    os.umask(0o077)
    if arguments.command == "run":
        run(arguments.seconds)
    else:
        {"start": start, "stop": stop, "status": status}[arguments.command]()


if __name__ == "__main__":
    sys.exit(main(command_line))
