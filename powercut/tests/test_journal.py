"""What ext4 with data=journal writes atomically (docs/origins.md, 1): a block, but not a page of four blocks. A process
writes pages at random, each filled with its own number, and flushes another file all the time; then the power is
cut."""

import os
import random
import struct
import subprocess
import sys

from powercut.storage import Storage, wait_until

from .test_storage import WithStorage

PAGES = 256
SEED = 1
# Source: 11 of 20 cuts tore a page of 16 KiB (Linux 6.18). At that rate no torn page in 30 has a probability of 10^-10.
CUTS = 30
WRITER = """
import mmap, os, random, struct, sys, threading

path, page_bytes, n_pages = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
pages = os.open(path, os.O_WRONLY | os.O_DIRECT)
log = os.open(path + ".log", os.O_WRONLY | os.O_CREAT, 0o600)

def write():
    page = mmap.mmap(-1, page_bytes)
    number = 0
    while True:
        number += 1
        page[:] = struct.pack("Q", number) * (page_bytes // 8)
        os.pwrite(pages, page, random.randrange(n_pages) * page_bytes)

def flush():
    while True:
        os.pwrite(log, b"x" * 512, 0)
        os.fdatasync(log)

for task in (write, flush):
    threading.Thread(target=task).start()
"""


class Journal(WithStorage):
    def torn_pages(self, page_bytes, chance):
        """The number of torn pages after one cut."""
        with Storage(self.folder / "one", "ext4-journal") as disk:
            disk.format()
            disk.switch_on()
            path = disk.mount / "pages"
            path.write_bytes(bytes(PAGES * page_bytes))
            os.sync()
            writer = subprocess.Popen([sys.executable, "-c", WRITER, path, str(page_bytes), str(PAGES)],
                                      stderr=subprocess.DEVNULL)  # fmt: skip
            try:
                wait_until(path.with_suffix(".log").exists, "the writer has begun")
                disk.control(f"cut after {chance.randrange(100, 1000)} writes of 4096")
                wait_until(disk.is_off, "the power is off")
            finally:
                writer.kill()
                writer.wait()
            disk.switch_off()
            disk.resolve(chance.getrandbits(63))
            disk.switch_on()
            numbers = struct.unpack(f"{PAGES * page_bytes // 8}Q", path.read_bytes())
            disk.switch_off()
        per_page = page_bytes // 8
        pages = [set(numbers[i : i + per_page]) for i in range(0, len(numbers), per_page)]
        self.assertGreater(max(map(max, pages)), 0, "nothing was written before the cut")
        return sum(len(page) > 1 for page in pages)

    def test_a_block_is_never_torn(self):
        chance = random.Random(SEED)
        for _ in range(CUTS):
            self.assertEqual(self.torn_pages(4096, chance), 0)

    def test_a_page_of_four_blocks_can_be_torn(self):
        chance = random.Random(SEED)
        self.assertTrue(any(self.torn_pages(16384, chance) for _ in range(CUTS)))
