"""Commands of sysbench."""

import os
import subprocess
from pathlib import Path

from spillway.common import DIES_WITH_US, Failure
from spillway.instance import DATABASE

SYSBENCH_SCRIPTS = Path("/usr/share/sysbench")


def sysbench_environment():
    """The environment of a sysbench that loads its own scripts only from its own folder. Otherwise it would execute
    scripts of the same name from the working directory or LUA_PATH."""
    return os.environ | {"LUA_PATH": f"{SYSBENCH_SCRIPTS}/?.lua", "LUA_CPATH": ""}


def sysbench_command(script, instance, options):
    command = ["sysbench", str(script), "--db-driver=mysql", f"--mysql-socket={instance.socket}", "--mysql-user=root",
               f"--mysql-db={DATABASE}"]  # fmt: skip
    for name, value in options.items():
        text = {True: "on", False: "off"}[value] if isinstance(value, bool) else value
        command.append(f"--{name.replace('_', '-')}={text}")
    return command


def run_sysbench(words, log, what):
    with open(log, "w") as file:
        status = subprocess.run([*DIES_WITH_US, *words], env=sysbench_environment(), stdout=file,
                                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False).returncode  # fmt: skip
    # If a thread of a parallel command fails, sysbench prints FATAL and still exits with status 0.
    if status != 0 or "FATAL: " in log.read_text(errors="replace"):
        raise Failure(f"{what} failed; {log}:\n{last_lines(log)}")


def last_lines(log, count=10):
    return "\n".join(Path(log).read_text(errors="replace").splitlines()[-count:])
