#!/usr/bin/env python3
"""Compare the time of DROP TABLE for a large file that inserts have grown and one that SET EXTENT_SIZE has made.

    drop_bench.py [--gib 8] [--repetitions 3] [--parent FOLDER]

Both alternate on one server of this checkout, without doublewrite. Its files are in a new folder of FOLDER (/var/tmp),
which needs --gib and 6 GiB of free space. All pages are written before the clock starts. Prints one line per DROP.
"""

import argparse
import os
import subprocess
import sys
import time

from spillway.common import REPO, Failure, main

sys.path.insert(0, str(REPO))
from tests.server.scratch import FORK, Scratch

OPTIONS = ["--innodb-doublewrite=OFF", "--innodb-buffer-pool-size=1G", "--innodb-redo-log-capacity=4G",
           "--innodb-flush-log-at-trx-commit=0", "--innodb-io-capacity=20000", "--innodb-io-capacity-max=40000",
           "--innodb-max-dirty-pages-pct-lwm=0", "--innodb-max-dirty-pages-pct=0", "--skip-log-bin",
           "--max-allowed-packet=64M"]  # fmt: skip
# Other tables always have dirty pages.
DIRTY_AT_REST = 50
WRITE_SECONDS = 600


def number(scratch, query):
    return int(scratch.sql(query).split()[-1])


def size(scratch):
    return number(scratch, "SELECT file_size FROM information_schema.innodb_tablespaces WHERE name = 'd/t'")


def grow(scratch, gib):
    for _ in range(4):
        scratch.sql("INSERT INTO d.t (a) VALUES (REPEAT('a', 16000000))")
    while size(scratch) < gib << 30:
        scratch.sql("INSERT INTO d.t (a) SELECT a FROM d.t LIMIT 16")


def preallocate(scratch, gib):
    scratch.sql(f"ALTER TABLESPACE `d/t` SET EXTENT_SIZE = {gib}G")


def write_all(scratch):
    deadline = time.monotonic() + WRITE_SECONDS
    while number(scratch, "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'") > DIRTY_AT_REST:
        if time.monotonic() > deadline:
            raise Failure(f"pages were dirty for {WRITE_SECONDS} s")
        time.sleep(0.5)
    os.sync()


def extents(path):
    """The number of file system extents of a file, by filefrag; unknown without it."""
    try:
        said = subprocess.run(["filefrag", path], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "an unknown number of"
    return said.split(":")[-1].split()[0]


def run():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=int, default=8)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--parent", default="/var/tmp")
    options = parser.parse_args()
    with Scratch(options.parent) as scratch:
        scratch.initialise(FORK)
        scratch.start(FORK, *OPTIONS)
        scratch.sql("CREATE DATABASE d")
        for repetition in range(options.repetitions):
            for make in (grow, preallocate)[:: 1 if repetition % 2 == 0 else -1]:
                scratch.sql("CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, a LONGBLOB NOT NULL)")
                begin = time.monotonic()
                make(scratch, options.gib)
                made_s = time.monotonic() - begin
                write_all(scratch)
                was = f"{size(scratch)} bytes, {extents(scratch.data / 'd/t.ibd')} extents of the file system"
                begin = time.monotonic()
                scratch.sql("DROP TABLE d.t")
                dropped_s = time.monotonic() - begin
                print(f"{make.__name__}: {was}, made in {made_s:.1f} s, dropped in {dropped_s:.2f} s", flush=True)
        scratch.end()


if __name__ == "__main__":
    sys.exit(main(run))
