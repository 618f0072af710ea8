"""The storage that loses power; no server. Skipped on machines that do not allow mounts."""

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import shutil
import struct
import unittest
from pathlib import Path

from powercut import storage
from powercut.storage import DIRECTFS, PROGRAM, Failure, Skip, Storage, command
from spillway.resources import temporary_folder

PAGE = 16384
ATOMIC_WRITES = 0x40049502
SEEDS = range(60)


def pages(letter, length=PAGE):
    """A buffer that is aligned for direct I/O."""
    buffer = mmap.mmap(-1, length)
    buffer.write(letter.encode() * length)
    return buffer


@contextlib.contextmanager
def opened(path, flags=os.O_RDWR | os.O_CREAT | os.O_DIRECT):
    file = os.open(path, flags, 0o600)
    try:
        yield file
    finally:
        os.close(file)


def punch_hole(file, offset, length):
    command = ctypes.CDLL(None, use_errno=True).fallocate
    command.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long)
    # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
    if command(file, 3, offset, length) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


class WithStorage(unittest.TestCase):
    def setUp(self):
        try:
            storage.need_root()
        except Skip as skip:
            self.skipTest(str(skip))
        if not PROGRAM.exists():
            self.skipTest("powercut_fs is not built: make check builds it")
        self.folder = self.enterContext(temporary_folder("/dev/shm"))

    def new(self, kind, *options):
        """New storage whose power is on. options are powercut_fs'."""
        one = self.enterContext(Storage(self.folder / "one", kind, *options))
        one.format()
        one.switch_on()
        return one

    def outcomes(self, cut, seeds):
        """Yield, for each seed, the resolved medium and the report of powercut_fs."""
        cut.switch_off()
        for seed in seeds:
            with Storage(self.folder / "outcome", cut.kind, sector_bytes=cut.sector_bytes) as outcome:
                outcome.copy_medium(cut)
                yield outcome, outcome.resolve(seed)


class DirectFs(WithStorage):
    def setUp(self):
        super().setUp()
        self.one = self.new(DIRECTFS)
        self.file = self.one.mount / "file"

    def on_medium(self, which=None, name="file"):
        return ((which or self.one).store / "content" / name).read_bytes()

    def test_only_what_is_flushed_is_on_the_medium(self):
        with opened(self.file) as file:
            os.pwrite(file, pages("A"), 0)
            self.assertEqual(os.pread(file, PAGE, 0), b"A" * PAGE)
            self.assertEqual(self.on_medium(), bytes(PAGE))
            os.fdatasync(file)
            self.assertEqual(self.on_medium(), b"A" * PAGE)
            os.pwrite(file, pages("B", 4096), 4096)
            self.assertEqual(os.pread(file, PAGE, 0), b"A" * 4096 + b"B" * 4096 + b"A" * 8192)
            self.assertEqual(self.on_medium(), b"A" * PAGE)

    def test_switched_off_in_order_all_is_there(self):
        with opened(self.file) as file:
            os.pwrite(file, pages("A"), 0)
        self.one.switch_off()
        self.assertEqual(self.on_medium(), b"A" * PAGE)

    def test_without_power_everything_fails(self):
        with opened(self.file) as file:
            self.one.control("cut")
            self.assertTrue(self.one.is_off())
            for what in (lambda: os.pwrite(file, pages("A"), 0), lambda: os.pread(file, 1, 0), lambda: os.fsync(file),
                         lambda: os.mkdir(self.one.mount / "folder"), lambda: os.unlink(self.file)):  # fmt: skip
                with self.assertRaises(OSError) as caught:
                    what()
                self.assertEqual(caught.exception.errno, errno.EIO)
        self.assertEqual(self.on_medium(), b"")

    def test_write_through(self):
        self.one.__exit__()
        one = self.new(DIRECTFS, "--write-through")
        with opened(one.mount / "file") as file:
            fcntl.ioctl(file, ATOMIC_WRITES, struct.pack("I", 1))
            os.pwrite(file, pages("A"), 0)
            self.assertEqual(self.on_medium(one), b"A" * PAGE)
            self.assertEqual(os.pread(file, PAGE, 0), b"A" * PAGE)
            one.control("cut")
        one.switch_off()
        self.assertEqual(one.resolve(1)["interrupted"], 0)
        one.switch_on()
        # Not a whole block.
        with opened(one.mount / "file", os.O_RDWR) as file:
            os.pwrite(file, b"B" * 600, 5000)
            self.assertEqual(os.pread(file, 800, 4900), b"A" * 100 + b"B" * 600 + b"A" * 100)
            os.fsync(file)
        self.assertEqual(self.on_medium(one), b"A" * 5000 + b"B" * 600 + b"A" * (PAGE - 5600))

    def test_a_cut_at_a_write(self):
        self.one.control("cut after 2 writes of 8192")
        with opened(self.file) as file:
            for _ in range(5):
                os.pwrite(file, pages("A", 4096), 0)
            os.pwrite(file, pages("B"), 0)
            self.assertFalse(self.one.is_off())
            with self.assertRaises(OSError):
                os.pwrite(file, pages("C"), PAGE)
        self.assertTrue(self.one.is_off())
        # The write at which the power goes is one of the interrupted.
        found = {said["interrupted"] for _, said in self.outcomes(self.one, [1])}
        self.assertEqual(found, {7})

    def test_what_is_not_a_command(self):
        for text in ("", "cut it", "cut after 0 writes of 1"):
            if text:
                with self.assertRaises(OSError):
                    self.one.control(text)
        self.assertFalse(self.one.is_off())

    def test_a_cut_keeps_what_was_flushed_and_tears_the_rest(self):
        with opened(self.file) as file:
            os.pwrite(file, pages("A", 2 * PAGE), 0)
            os.fsync(file)
            os.pwrite(file, pages("B"), PAGE)
            self.one.control("cut")
        seen = set()
        for outcome, said in self.outcomes(self.one, SEEDS):
            content = self.on_medium(outcome)
            self.assertEqual(content[:PAGE], b"A" * PAGE)
            sectors = [content[i : i + 512] for i in range(PAGE, 2 * PAGE, 512)]
            self.assertLessEqual(set(sectors), {b"A" * 512, b"B" * 512})
            n_survive = sectors.count(b"B" * 512)
            fate = {0: "lost", len(sectors): "survived"}.get(n_survive, "torn")
            self.assertEqual(said, {"interrupted": 1, "survived": 0, "lost": 0, "torn": 0} | {fate: 1})
            seen.add(fate)
        self.assertEqual(seen, {"lost", "survived", "torn"})

    def test_the_ioctl_makes_writes_atomic(self):
        with opened(self.file) as file:
            fcntl.ioctl(file, ATOMIC_WRITES, struct.pack("I", 1))
            for place in range(4):
                os.pwrite(file, pages("A"), place * PAGE)
            # Larger than the writes that the ioctl covers.
            os.pwrite(file, pages("B", 2 * storage.ATOMIC_BYTES), 4 * PAGE)
            self.one.control("cut")
        n_torn = 0
        for outcome, _ in self.outcomes(self.one, SEEDS):
            content = self.on_medium(outcome)
            for place in range(4):
                self.assertIn(content[place * PAGE : (place + 1) * PAGE], (bytes(PAGE), b"A" * PAGE))
            n_torn += content.count(b"B") not in (0, 2 * storage.ATOMIC_BYTES)
        self.assertGreater(n_torn, 0)

    def test_files_without_the_ioctl(self):
        one = self.new(DIRECTFS, "--plain=/plain")
        with opened(one.mount / "plain.ibd") as plain, opened(one.mount / "other") as other:
            fcntl.ioctl(other, ATOMIC_WRITES, struct.pack("I", 1))
            with self.assertRaises(OSError) as caught:
                fcntl.ioctl(plain, ATOMIC_WRITES, struct.pack("I", 1))
            self.assertEqual(caught.exception.errno, errno.ENOTTY)

    def test_the_ioctl_can_be_taken_back(self):
        with opened(self.file) as file:
            for value in (1, 0):
                fcntl.ioctl(file, ATOMIC_WRITES, struct.pack("I", value))
            os.pwrite(file, pages("A"), 0)
            self.one.control("cut")
        self.assertIn(1, {said["torn"] for _, said in self.outcomes(self.one, SEEDS)})

    def test_a_seed_has_one_outcome(self):
        with opened(self.file) as file:
            for place in range(8):
                os.pwrite(file, pages("A"), place * PAGE)
            self.one.control("cut")
        self.assertEqual(len({self.on_medium(outcome) for outcome, _ in self.outcomes(self.one, [7, 7, 7])}), 1)

    def test_the_newer_of_two_writes(self):
        with opened(self.file) as file:
            os.pwrite(file, pages("A"), 0)
            os.pwrite(file, pages("B"), 0)
            self.one.control("cut")
        both = 0
        for outcome, said in self.outcomes(self.one, SEEDS):
            if said["survived"] == 2:
                self.assertEqual(self.on_medium(outcome), b"B" * PAGE)
                both += 1
        self.assertGreater(both, 0)

    def test_what_is_cut_off_or_removed_is_gone(self):
        with opened(self.file) as file, opened(self.one.mount / "other") as other:
            os.pwrite(file, pages("A", 2 * PAGE), 0)
            os.ftruncate(file, 4096)
            os.ftruncate(file, PAGE)
            self.assertEqual(os.pread(file, PAGE, 0), b"A" * 4096 + bytes(PAGE - 4096))
            os.pwrite(other, pages("B"), 0)
            os.unlink(self.one.mount / "other")
            self.assertEqual(os.pread(other, PAGE, 0), b"B" * PAGE)
            self.one.control("cut")
        for outcome, said in self.outcomes(self.one, SEEDS):
            self.assertEqual(said["interrupted"], 1)
            self.assertEqual(self.on_medium(outcome)[4096:], bytes(PAGE - 4096))

    def test_a_hole_is_volatile_like_a_write(self):
        with opened(self.file) as file:
            os.pwrite(file, pages("A", 2 * PAGE), 0)
            os.fsync(file)
            punch_hole(file, 4096, PAGE)
            self.assertEqual(os.pread(file, 2 * PAGE, 0), b"A" * 4096 + bytes(PAGE) + b"A" * (PAGE - 4096))
            self.assertEqual(self.on_medium(), b"A" * 2 * PAGE)
            os.fsync(file)
            self.assertEqual(self.on_medium(), b"A" * 4096 + bytes(PAGE) + b"A" * (PAGE - 4096))
            self.assertLessEqual((self.one.store / "content/file").stat().st_blocks * 512, PAGE)
            # The size stays, also if the hole would end beyond it.
            punch_hole(file, PAGE, 4 * PAGE)
            self.assertEqual(os.fstat(file).st_size, 2 * PAGE)
            self.one.control("cut")
        found = {self.on_medium(outcome)[PAGE:] for outcome, _ in self.outcomes(self.one, SEEDS)}
        self.assertLess({bytes(PAGE), bytes(4096) + b"A" * (PAGE - 4096)}, found)

    def test_names_are_kept(self):
        with opened(self.file) as file:
            os.pwrite(file, pages("A"), 0)
            os.fsync(file)
            os.mkdir(self.one.mount / "folder")
            os.rename(self.file, self.one.mount / "folder/renamed")
            os.pwrite(file, pages("B"), 0)
            self.assertEqual(os.listdir(self.one.mount), ["folder"])
            self.one.control("cut")
        found = {self.on_medium(outcome, "folder/renamed") for outcome, _ in self.outcomes(self.one, SEEDS)}
        self.assertLess({b"A" * PAGE, b"B" * PAGE}, found)

    def test_a_full_cache_is_written(self):
        with opened(self.file) as file:
            for place in range(65):
                os.pwrite(file, pages("A", 1 << 20), place << 20)
            content = self.on_medium()
            self.assertEqual(content[: 1 << 20], b"A" * (1 << 20))
            self.assertEqual(content[1 << 20 :].count(b"A"), 0)

    def test_power_is_not_switched_on_before_a_cut_is_resolved(self):
        with opened(self.file) as file:
            os.pwrite(file, pages("A"), 0)
            self.one.control("cut")
        self.one.switch_off()
        with self.assertRaisesRegex(Failure, "--settle ends a cut"):
            self.one.switch_on()
        self.one.resolve(1)
        self.one.switch_on()
        with self.assertRaisesRegex(Failure, "no power was cut"):
            self.one.resolve(1)


class Disk(WithStorage):
    def test_file_systems(self):
        for kind in ("ext4", "ext4-journal", "xfs-reflink"):
            with self.subTest(kind):
                if not shutil.which("mkfs.xfs"):
                    self.skipTest("mkfs.xfs is not installed")
                with Storage(self.folder / kind, kind) as disk:
                    disk.format()
                    disk.switch_on()
                    with opened(disk.mount / "file") as file:
                        os.pwrite(file, pages("A"), 0)
                        os.fsync(file)
                        os.pwrite(file, pages("B"), PAGE)
                        disk.control("cut")
                    self.assertTrue(disk.is_off())
                    for outcome, said in self.outcomes(disk, range(3)):
                        # With data=journal there is no direct I/O: the kernel still has the page that was not flushed.
                        self.assertEqual(said["interrupted"] > 0, kind != "ext4-journal")
                        outcome.switch_on()
                        content = (outcome.mount / "file").read_bytes()
                        self.assertEqual(content[:PAGE], b"A" * PAGE)
                        outcome.switch_off()

    def test_sectors_of_16_KiB(self):
        if not shutil.which("mkfs.xfs"):
            self.skipTest("mkfs.xfs is not installed")
        with Storage(self.folder / "one", "xfs-reflink", sector_bytes=PAGE) as disk:
            disk.format()
            try:
                disk.switch_on()
            except Failure as failure:
                self.skipTest(f"this kernel does not mount XFS with such sectors: {failure}")
            with opened(disk.mount / "file") as file:
                os.pwrite(file, pages("A", 4 * PAGE), 0)
                os.fsync(file)
                os.pwrite(file, pages("B", 4 * PAGE), 0)
                disk.control("cut")
            torn = 0
            for outcome, _ in self.outcomes(disk, range(20)):
                outcome.switch_on()
                content = (outcome.mount / "file").read_bytes()
                outcome.switch_off()
                found = [content[place : place + PAGE] for place in range(0, 4 * PAGE, PAGE)]
                self.assertLessEqual(set(found), {b"A" * PAGE, b"B" * PAGE})
                torn += len(set(found)) == 2
            self.assertGreater(torn, 0)

    def test_nothing_is_left_of_what_fails(self):
        def mounts():
            return [line for line in Path("/proc/mounts").read_text().splitlines() if str(self.folder) in line]

        with self.assertRaisesRegex(Failure, "on purpose"), Storage(self.folder / "one", "ext4") as disk:
            disk.format()
            disk.switch_on()
            self.assertEqual(len(mounts()), 2)
            raise Failure("on purpose")
        self.assertEqual(mounts(), [])
        self.assertNotIn(str(self.folder), command("losetup", "--list"))

    def test_two_at_once(self):
        """A disk is switched off while one is on that was switched on later: that one has no copy of its mounts."""
        with Storage(self.folder / "one", "ext4") as one, Storage(self.folder / "two", "ext4") as two:
            one.format()
            one.switch_on()
            two.format()
            two.switch_on()
            one.switch_off()
            self.assertEqual(Path(f"/proc/{two.process.pid}/mounts").read_text(), "")

    def test_powercut_fs_that_was_killed_leaves_nothing(self):
        with Storage(self.folder / "one", "ext4") as disk:
            disk.format()
            disk.switch_on()
            disk.process.kill()
            disk.process.wait()
        self.assertNotIn(str(self.folder), Path("/proc/mounts").read_text())
        self.assertNotIn(str(self.folder), command("losetup", "--list"))
