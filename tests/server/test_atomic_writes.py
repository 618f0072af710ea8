"""innodb_use_atomic_writes: a file bypasses the doublewrite buffer only if its storage writes pages atomically."""

import contextlib
import ctypes
import errno
import fcntl
import os
import re
import shutil
import signal
import struct
import subprocess
import unittest
from pathlib import Path

from spillway import filesystem
from spillway.resources import temporary_folder

from .power_cut import PowerCutFolder
from .scratch import FORK, MARKER, STOCK, SYNC_HOLD, WAIT_SECONDS, Scratch, observed, to_preload, wait_until

SOURCE = Path(__file__).resolve().parent / "aio_fault.cc"
ON = "--innodb-use-atomic-writes=ON"
AUTO = "--innodb-use-atomic-writes=AUTO"
REJECTED = errno.EINVAL
# Upstream's error for DB_UNSUPPORTED; the error log says why.
REFUSED = "ERROR 1112 "
PAGE_BYTES = 16384
PAGE_NO, SPACE_ID = 4, 34
ROOT_PAGE_NO = 4
# The page of the transaction system in the system tablespace.
SYSTEM_PAGE = 5
# The max number of pending writes with RWF_ATOMIC.
RWF_AT_ONCE = 16
RESTORED_FIRST_PAGE = "Restoring page [page id: space=0, page number=0] of datafile './ibdata1'"
# The exit status of mysqld after SIGABRT.
ABORTED = 2
# Flags of an ext4 inode: EXT4_EXTENTS_FL, EXT4_JOURNAL_DATA_FL.
EXTENTS, JOURNAL_DATA = 0x80000, 0x4000
# statx(2) since Linux 6.11: the bit in the mask, and the offset of the min and the max unit, 4 bytes each.
STATX_WRITE_ATOMIC, UNITS_AT = 0x10000, 168
N_TABLES = 60
FILL = """
CREATE DATABASE d;
CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, a CHAR(250) NOT NULL);
INSERT INTO d.t (a) VALUES ('a'), ('a'), ('a'), ('a');
INSERT INTO d.t (a) SELECT x.a FROM d.t x, d.t y, d.t z, d.t v, d.t w;
"""
ROWS = 4 + 4**5


KEEP_DIRTY = ["--innodb-max-dirty-pages-pct=99", "--innodb-max-dirty-pages-pct-lwm=0", "--innodb-idle-flush-pct=0",
              "--innodb-adaptive-flushing=OFF"]  # fmt: skip
# ioctl_xfs_goingdown(2): XFS_IOC_GOINGDOWN, and XFS_FSOP_GOING_FLAGS_NOLOGFLUSH.
GOING_DOWN, WITHOUT_LOG = 0x8004587D, 2


def lose_what_was_not_synced(xfs):
    folder = os.open(xfs, os.O_RDONLY)
    try:
        fcntl.ioctl(folder, GOING_DOWN, struct.pack("I", WITHOUT_LOG))
    finally:
        os.close(folder)


def untorn_writes(path):
    """Untorn writes to a file, from statx(): whether they are supported, and the min and the max unit in bytes."""
    buffer = ctypes.create_string_buffer(256)
    if ctypes.CDLL(None).statx(-1, str(path).encode(), 0, STATX_WRITE_ATOMIC, buffer):
        raise unittest.SkipTest("no statx()")
    (mask,) = struct.unpack_from("=I", buffer)
    return bool(mask & STATX_WRITE_ATOMIC), *struct.unpack_from("=2I", buffer, UNITS_AT)


class Servers(unittest.TestCase):
    """Shared methods of the tests of innodb_use_atomic_writes."""

    def server(self, parent, *options):
        scratch = self.enterContext(Scratch(str(parent)))
        subprocess.run([*scratch.options(FORK), *options, "--initialize-insecure"], check=True)
        return scratch

    def status(self, scratch):
        rows = scratch.sql("SHOW GLOBAL STATUS WHERE variable_name = 'Innodb_dblwr_pages_written' OR "
                           "variable_name LIKE 'Innodb\\_atomic\\_write\\_%'")  # fmt: skip
        return {name.removeprefix("Innodb_"): int(value) for name, value in (row.split() for row in rows.splitlines())}

    def flush(self, scratch, table):
        """The page cleaners flush all pages, which the doublewrite buffer counts; then a session flushes a table."""
        scratch.sql("SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0; SET GLOBAL innodb_max_dirty_pages_pct = 0")
        for _ in range(600):
            if scratch.sql("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'").split()[1] == "0":
                break
            scratch.sql("DO SLEEP(0.1)")
        else:
            self.fail("pages are still dirty")
        scratch.sql(f"SET GLOBAL innodb_max_dirty_pages_pct = DEFAULT; UPDATE d.{table} SET a = CONCAT(a, 'x');"
                    f"FLUSH TABLES d.{table} FOR EXPORT; UNLOCK TABLES")  # fmt: skip

    def check(self, scratch, table="t", rows=ROWS):
        self.assertEqual(scratch.sql(f"CHECK TABLE d.{table} EXTENDED").split()[-1], "OK")
        self.assertEqual(int(scratch.sql(f"SELECT COUNT(*) FROM d.{table}")), rows)

    def assert_does_not_start(self, scratch, *options, server=FORK):
        """Returns the error log of the failed start."""
        begin = scratch.log.stat().st_size if scratch.log.exists() else 0
        status = subprocess.run([*scratch.options(server), *options], stdin=subprocess.DEVNULL, check=False).returncode
        self.assertEqual(status, 1)
        return scratch.log.read_text()[begin:]


class AtomicWrites(Servers):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0 or not os.access("/dev/loop-control", os.W_OK):
            raise unittest.SkipTest("mounting file systems needs root and /dev/loop-control")

    def mount(self, kind, *options):
        """Mount a new file system, on a loop device with these options."""
        folder = self.enterContext(temporary_folder("/var/tmp"))
        return self.enterContext(filesystem.mounted(kind, "2G", folder, *options))

    def test_a_claim_alone(self):
        """ext4 sets statx()'s bit for untorn writes also on a device without them, with units of 0."""
        ext4 = self.mount("ext4")
        (ext4 / "file").touch()
        claims, *units = untorn_writes(ext4 / "file")
        if not claims:
            self.skipTest("ext4 claims nothing on this kernel")
        self.assertEqual(units, [0, 0])
        scratch = self.server(ext4)
        why = "the storage does not write 16 KiB atomically"
        ends = {"OFF": ". Set innodb_use_atomic_writes = AUTO to use the doublewrite buffer for it, together with "
                       "innodb_doublewrite = ON.",
                "ON": ". Set innodb_use_atomic_writes = AUTO to use the doublewrite buffer for it."}  # fmt: skip
        for doublewrite, end in ends.items():
            log = self.assert_does_not_start(scratch, ON, f"--innodb-doublewrite={doublewrite}")
            self.assertIn(f"would not be written atomically: {why}{end}\n", log)
        scratch.start(FORK, AUTO)
        scratch.sql(FILL)
        self.check(scratch)
        method = scratch.sql("SELECT DISTINCT method, reason FROM information_schema.innodb_atomic_write_files")
        self.assertEqual(method.strip().split("\t"), ["doublewrite", why])

    def test_on(self):
        """XFS copies pages. Other storage is refused; page-compressed tables keep the doublewrite buffer."""
        xfs, ext4 = self.mount("xfs-reflink"), self.mount("ext4")
        scratch = self.server(xfs)
        other = f"--innodb-directories={ext4}"
        scratch.start(FORK, ON, other, "--innodb-flush-method=fsync")
        settings = scratch.sql("SELECT @@innodb_flush_method, @@innodb_use_fallocate, @@innodb_doublewrite")
        self.assertEqual(settings.split(), ["O_DIRECT", "1", "ON"])
        scratch.sql(FILL)
        self.flush(scratch, "t")
        self.check(scratch)
        status = self.status(scratch)
        self.assertEqual(status["dblwr_pages_written"], 0)
        self.assertEqual(status["atomic_write_files_doublewrite"], 0)
        self.assertGreater(status["atomic_write_files_rwf_copy"], 3)
        self.assertGreater(status["atomic_write_pages_rwf_copy"], 20)
        self.assertEqual(status["atomic_write_pages_rwf_copy"], status["atomic_write_doublewrite_avoided"])
        monitor = scratch.sql("SHOW ENGINE INNODB STATUS")
        self.assertRegex(monitor, r"  copy on write with RWF_ATOMIC +\d+ +\d+")
        log = scratch.log.read_text()
        self.assertEqual(log.count("torn-page protection by copy on write with RWF_ATOMIC"), 1)
        self.assertIn("the server changed innodb_flush_method to O_DIRECT", log)

        # Storage without atomic writes, and pages smaller than a block, are refused, and no file is left.
        result = scratch.client(f"CREATE TABLE d.u (a INT) DATA DIRECTORY = '{ext4}'")
        self.assertRegex(result.stderr, REFUSED)
        self.assertIn("the storage does not write 16 KiB atomically", scratch.log.read_text())
        self.assertEqual(list(ext4.rglob("*.ibd")), [])
        result = scratch.client("CREATE TABLE d.u (a INT) ROW_FORMAT = COMPRESSED KEY_BLOCK_SIZE = 1")
        self.assertRegex(result.stderr, REFUSED)
        scratch.sql("CREATE TABLE d.u (a INT); INSERT INTO d.u VALUES (1); DROP TABLE d.u")

        # Compressed pages of a block or more are written atomically; page-compressed ones use the doublewrite buffer.
        scratch.sql("CREATE TABLE d.z LIKE d.t; ALTER TABLE d.z ROW_FORMAT = COMPRESSED KEY_BLOCK_SIZE = 4;"
                    "INSERT INTO d.z SELECT * FROM d.t;")  # fmt: skip
        self.flush(scratch, "z")
        self.assertEqual(self.status(scratch)["dblwr_pages_written"], 0)
        scratch.sql("CREATE TABLE d.c (id INT PRIMARY KEY, a CHAR(250) NOT NULL) COMPRESSION = 'zlib';"
                    "INSERT INTO d.c SELECT * FROM d.t;")  # fmt: skip
        self.flush(scratch, "c")
        self.assertEqual(scratch.sql("SELECT method, reason FROM information_schema.innodb_atomic_write_files"
                                     " WHERE path = './d/c.ibd'").split("\t"),
                         ["doublewrite", "the table is page-compressed"])  # fmt: skip
        status = self.status(scratch)
        self.assertGreater(status["dblwr_pages_written"], 0)
        self.assertGreaterEqual(status["atomic_write_page_compressed"], status["dblwr_pages_written"])

        # Export and import, an undo tablespace, a temporary table.
        scratch.sql("CREATE TABLE d.i LIKE d.t; ALTER TABLE d.i DISCARD TABLESPACE; FLUSH TABLES d.t FOR EXPORT;")
        with scratch.session() as session:
            session.stdin.write("FLUSH TABLES d.t FOR EXPORT; SELECT 1;\n")
            session.stdin.flush()
            session.stdout.readline()
            for suffix in ("ibd", "cfg"):
                shutil.copy(scratch.data / f"d/t.{suffix}", scratch.data / f"d/i.{suffix}")
            session.stdin.close()
        scratch.sql("ALTER TABLE d.i IMPORT TABLESPACE; UPDATE d.i SET a = 'i';"
                    "CREATE UNDO TABLESPACE u ADD DATAFILE 'u.ibu'; ALTER UNDO TABLESPACE u SET INACTIVE;"
                    "CREATE TEMPORARY TABLE d.x SELECT * FROM d.t;")  # fmt: skip

        # A refused undo tablespace leaves nothing behind; the shutdown would fail on it.
        result = scratch.client(f"CREATE UNDO TABLESPACE r ADD DATAFILE '{ext4}/r.ibu'")
        self.assertIn("ERROR 1528 ", result.stderr)
        self.assertIn("r.ibu' cannot be used", scratch.log.read_text())
        self.assertEqual(list(ext4.rglob("*.ibu")), [])
        scratch.sql("CREATE UNDO TABLESPACE r ADD DATAFILE 'r.ibu'; ALTER UNDO TABLESPACE r SET INACTIVE")

        # A table on such storage: the server starts without it, and logs why. If the table needs recovery, the server
        # does not start.
        self.assertEqual(scratch.end(), 0)
        scratch.start(FORK, other)
        scratch.sql(f"CREATE TABLE d.e (a INT) DATA DIRECTORY = '{ext4}'; INSERT INTO d.e VALUES (1)")
        self.assertEqual(scratch.end(), 0)
        scratch.start(FORK, ON, other)
        self.assertIn("ERROR", scratch.client("SELECT * FROM d.e").stderr)
        self.assertIn("e.ibd' cannot be used", scratch.log.read_text())
        self.check(scratch)
        scratch.end(signal.SIGKILL)
        scratch.start(FORK, other)
        scratch.sql("INSERT INTO d.e VALUES (2)")
        scratch.end(signal.SIGKILL)
        begin = scratch.log.stat().st_size
        with self.assertRaises(AssertionError):
            scratch.start(FORK, ON, other)
        self.assertIsNotNone(scratch.process.poll())
        self.assertIn("Restart it with innodb_use_atomic_writes = AUTO, or move the file to storage",
                      scratch.log.read_text()[begin:])  # fmt: skip
        scratch.start(FORK, AUTO, other)
        self.assertEqual(scratch.sql("SELECT SUM(a) FROM d.e"), "3")
        scratch.sql("DROP TABLE d.e")

        # A kill, and a start with each other setting.
        scratch.sql("UPDATE d.t SET a = 'b'")
        for options in ((ON,), (), (AUTO,), (ON, "--innodb-doublewrite=DETECT_ONLY"), ("--innodb-doublewrite=OFF", ON)):
            scratch.end(signal.SIGKILL)
            scratch.start(FORK, other, *options)
            for table in "tzci":
                self.check(scratch, table)
            self.assertEqual(int(scratch.sql("SELECT COUNT(*) FROM d.t WHERE a = 'b'")), ROWS)
            scratch.sql("UPDATE d.c SET a = UUID(); UPDATE d.z SET a = UUID(); UPDATE d.i SET a = UUID()")
        self.assertEqual(scratch.end(), 0)

    def test_page_sizes(self):
        xfs = self.mount("xfs-reflink")
        for page_bytes in (4096, 8192, 32768, 65536):
            with self.subTest(page_bytes=page_bytes):
                size = f"--innodb-page-size={page_bytes}"
                scratch = self.server(xfs, size)
                scratch.start(FORK, ON, size)
                scratch.sql(FILL)
                self.flush(scratch, "t")
                status = self.status(scratch)
                self.assertGreater(status["atomic_write_pages_rwf_copy"], 0)
                self.assertEqual(status["dblwr_pages_written"], 0)
                scratch.end(signal.SIGKILL)
                scratch.start(FORK, ON, size)
                self.check(scratch)
                self.assertEqual(scratch.end(), 0)

    def with_plugins(self, folder):
        """A mysqld with a keyring, and the options for the clone plugin. All new files are in folder."""
        for name in ("bin", "plugins"):
            (folder / name).mkdir()
        server = folder / "bin/mysqld"
        server.symlink_to(FORK)
        (folder / "share").symlink_to(FORK.parent.parent / "share")
        for library in (FORK.parent.parent / "plugin_output_directory").glob("*.so"):
            (folder / "plugins" / library.name).symlink_to(library)
        server.with_suffix(".my").write_text('{"components": "file://component_keyring_file"}')
        (folder / "plugins/component_keyring_file.cnf").write_text(
            f'{{"path": "{folder}/keyring", "read_only": false}}')  # fmt: skip
        return server, [f"--plugin-dir={folder}/plugins", "--plugin-load=clone=mysql_clone.so"]

    def test_encrypted_and_cloned(self):
        """Tables, undo and redo are encrypted. The server is killed, and cloned to other storage while it writes."""
        xfs, ext4 = self.mount("xfs-reflink"), self.mount("ext4")
        server, plugins = self.with_plugins(self.enterContext(temporary_folder()))
        encrypted = ["--default-table-encryption=ON", "--innodb-undo-log-encrypt=ON", "--innodb-redo-log-encrypt=ON"]
        scratch = self.server(xfs)
        scratch.start(server, ON, *plugins, *encrypted)
        scratch.sql(FILL + "ALTER TABLESPACE mysql ENCRYPTION = 'Y'; ALTER INSTANCE ROTATE INNODB MASTER KEY")
        scratch.sql("UPDATE d.t SET a = 'plaintext'")
        self.flush(scratch, "t")
        status = self.status(scratch)
        self.assertGreater(status["atomic_write_pages_rwf_copy"], 20)
        self.assertEqual(status["dblwr_pages_written"], 0)
        self.assertNotIn(b"plaintext", (scratch.data / "d/t.ibd").read_bytes())
        scratch.sql("UPDATE d.t SET a = UUID()")
        scratch.end(signal.SIGKILL)
        for options in ([ON], []):
            scratch.start(server, *options, *plugins, *encrypted)
            self.check(scratch)
            scratch.end(signal.SIGKILL)

        # A clone while a session writes. The donor's storage has atomic writes by copying, the clone's has none.
        scratch.start(server, ON, *plugins, *encrypted)
        copy = self.enterContext(Scratch(str(ext4)))
        with scratch.session() as session:
            session.stdin.write("UPDATE d.t SET a = UUID();\n" * 200)
            session.stdin.flush()
            scratch.sql(f"CLONE LOCAL DATA DIRECTORY = '{copy.data}'")
            session.stdin.close()
        self.assertFalse((copy.data / MARKER).exists())
        self.assertIn("cannot be used", self.assert_does_not_start(copy, ON, *plugins, server=server))
        copy.start(server, AUTO, *plugins)
        self.check(copy)
        self.flush(copy, "t")
        status = self.status(copy)
        self.assertEqual(status["atomic_write_doublewrite_avoided"], 0)
        self.assertGreater(status["dblwr_pages_written"], 0)
        self.assertEqual(copy.end(), 0)
        self.check(scratch)
        self.assertEqual(scratch.end(), 0)

    def test_each_file_by_itself(self):
        """One of two file systems has atomic writes. A loop device's large sectors do not count: its disk's can be
        smaller."""
        plain, atomic = self.mount("ext4"), self.mount(filesystem.DIRECTFS)
        options = [f"--innodb-directories={atomic}"]
        scratch = self.server(plain)
        scratch.start(FORK, AUTO, *options)
        scratch.sql(FILL + f"CREATE TABLE d.u (id INT PRIMARY KEY, a CHAR(250)) DATA DIRECTORY = '{atomic}';")
        before = self.status(scratch)
        scratch.sql("INSERT INTO d.u SELECT * FROM d.t;")
        self.flush(scratch, "u")
        status = self.status(scratch)
        self.assertEqual(status["atomic_write_files_ioctl"], 1)
        self.assertGreater(status["atomic_write_files_doublewrite"], 3)
        self.assertGreaterEqual(status["atomic_write_pages_ioctl"], 16)
        self.assertGreater(status["dblwr_pages_written"], before["dblwr_pages_written"])
        monitor = scratch.sql("SHOW ENGINE INNODB STATUS").replace("\\n", "\n")
        kept = re.findall(r"^  (\S+): doublewrite buffer", monitor, re.MULTILINE)
        self.assertIn("'./d/t.ibd'", kept)
        self.assertFalse([path for path in kept if path.endswith("u.ibd'")])
        self.assertRegex(monitor, r"u\.ibd': directFS ioctl\n")
        method = dict(row.split("\t") for row in scratch.sql(
            "SELECT SUBSTRING_INDEX(path, '/', -1), method FROM information_schema.innodb_atomic_write_files"
            " WHERE path LIKE '%/d/%'").splitlines())  # fmt: skip
        self.assertEqual(method, {"t.ibd": "doublewrite", "u.ibd": "ioctl"})
        self.assertIn(f" bypassed it, 0 page-compressed pages did not; {status['atomic_write_fallbacks']} files opened "
                      "without atomic writes\n", monitor)  # fmt: skip
        # One message per file system, with the default verbosity.
        log = scratch.log.read_text()
        self.assertEqual(log.count("torn-page protection by the directFS ioctl, doublewrite buffer bypassed."), 1)
        kept = "torn-page protection: doublewrite buffer (the storage does not write 16 KiB atomically)"
        self.assertEqual(log.count(kept), 1)
        scratch.end(signal.SIGKILL)
        self.assertIn("cannot be used", self.assert_does_not_start(scratch, ON, *options))
        scratch.start(FORK, *options)
        self.check(scratch, "u")
        self.assertEqual(scratch.end(), 0)

        large = self.mount("ext4", "--sector-size=4096")
        log = self.assert_does_not_start(scratch, "--innodb-flush-method=ALL_O_DIRECT", *options,
                                         f"--innodb-log-group-home-dir={large}")  # fmt: skip
        self.assertIn("does not take direct I/O of the redo log's blocks of 512 bytes", log)
        redo = scratch.data / "#innodb_redo"
        # A read-only server does not write the redo log.
        shutil.copytree(redo, large / redo.name)
        scratch.start(FORK, "--innodb-flush-method=ALL_O_DIRECT", "--innodb-read-only", *options,
                      f"--innodb-log-group-home-dir={large}")  # fmt: skip
        self.assertEqual(int(scratch.sql("SELECT COUNT(*) FROM d.u")), ROWS)
        self.assertEqual(scratch.end(), 0)
        small = ["--innodb-page-size=4096", AUTO]
        scratch = self.server(large, *small)
        scratch.start(FORK, *small)
        # Only if the disk below has smaller sectors.
        if self.sector_bytes("/var/tmp") < 4096:
            self.assertEqual(self.status(scratch)["atomic_write_files_sector"], 0)
        self.assertEqual(scratch.end(), 0)

    def test_redo_on_a_full_disk(self):
        """ALL_O_DIRECT starts, and says no more than O_DIRECT: a redo log file can be read with direct I/O."""
        disk = self.mount("ext4")
        options = ["--innodb-redo-log-capacity=8M", f"--innodb-log-group-home-dir={disk}"]
        scratch = self.server("/var/tmp", *options)
        scratch.start(FORK, *options)
        scratch.sql(FILL)
        self.assertEqual(scratch.end(), 0)
        with open(disk / "full", "wb", buffering=0) as full, contextlib.suppress(OSError):
            while full.write(bytes(1 << 20)):
                pass
        self.assertEqual(shutil.disk_usage(disk).free // 4096, 0)
        scratch.start(FORK, "--innodb-flush-method=ALL_O_DIRECT", *options)
        self.assertEqual(int(scratch.sql("SELECT COUNT(*) FROM d.t")), ROWS)
        scratch.sql("INSERT INTO d.t (a) VALUES ('b')")
        self.assertNotIn("cannot be tried", scratch.log.read_text())
        self.assertEqual(scratch.end(), 0)
        # Without a redo log file nothing can be tried.
        log = self.assert_does_not_start(scratch, "--innodb-flush-method=ALL_O_DIRECT",
                                         f"--innodb-log-group-home-dir={disk / 'none'}")  # fmt: skip
        self.assertIn("cannot be tried on a file there: No such file or directory. The server assumes that", log)

    def test_redo_on_directfs(self):
        """ALL_O_DIRECT works on a file system without O_TMPFILE, too."""
        directfs = self.mount(filesystem.DIRECTFS)
        options = [AUTO, "--innodb-flush-method=ALL_O_DIRECT", f"--innodb-log-group-home-dir={directfs}"]
        # directFS has no sockets.
        scratch = self.server(self.mount("ext4"), *options)
        scratch.start(FORK, *options)
        scratch.sql(FILL)
        self.assertEqual(scratch.sql("SELECT @@innodb_flush_method"), "ALL_O_DIRECT")
        self.assertEqual([path.name for path in directfs.iterdir()], ["#innodb_redo"])
        self.assertEqual(list(directfs.rglob("#spw_scratch_*")), [])
        scratch.end(signal.SIGKILL)
        scratch.start(FORK, *options)
        self.check(scratch)
        self.assertEqual(scratch.end(), 0)

    def sector_bytes(self, path):
        number = os.stat(path).st_dev
        device = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
        queues = [folder / "queue/logical_block_size" for folder in (device, device.parent)]
        return next((int(queue.read_text()) for queue in queues if queue.exists()), 512)

    def test_without_copies(self):
        """With innodb_doublewrite = DETECT_ONLY or OFF, the server reports that there is no torn-page protection."""
        plain = self.mount("ext4")
        scratch = self.server(plain)
        for mode in ("DETECT_ONLY", "OFF"):
            begin = scratch.log.stat().st_size
            scratch.start(FORK, AUTO, f"--innodb-doublewrite={mode}")
            log = scratch.log.read_text()[begin:]
            self.assertIn(f"[Warning] [MY-010000] [InnoDB] innodb_doublewrite = {mode}: torn pages cannot be repaired "
                          "in files on storage", re.sub(r"MY-\d+", "MY-010000", log))  # fmt: skip
            self.assertIn(f"torn-page protection: none with innodb_doublewrite = {mode} (", log)
            monitor = scratch.sql("SHOW ENGINE INNODB STATUS")
            self.assertIn(f"ibdata1': none with innodb_doublewrite = {mode} (the storage", monitor)
            self.assertNotIn("doublewrite buffer   ", monitor)
            method = scratch.sql("SELECT DISTINCT method FROM information_schema.innodb_atomic_write_files")
            self.assertEqual(method, "none")
            self.assertEqual(scratch.end(), 0)
        # The report follows a SET GLOBAL.
        scratch.start(FORK, AUTO)
        self.assertIn("ibdata1': doublewrite buffer (", scratch.sql("SHOW ENGINE INNODB STATUS"))
        scratch.sql("SET GLOBAL innodb_doublewrite = DETECT_ONLY")
        self.assertIn("ibdata1': none with innodb_doublewrite = DETECT_ONLY (",
                      scratch.sql("SHOW ENGINE INNODB STATUS"))  # fmt: skip
        self.assertEqual(scratch.end(), 0)
        begin = scratch.log.stat().st_size
        scratch.start(FORK, AUTO, "--innodb-read-only")
        self.assertIn("innodb_use_atomic_writes is ignored: a read-only server does not write data files.",
                      scratch.log.read_text()[begin:])  # fmt: skip
        self.assertEqual(scratch.end(), 0)

    def test_not_synced(self):
        """O_DIRECT_NO_FSYNC does not sync data files: none bypasses the doublewrite buffer."""
        plain, atomic = self.mount("ext4"), self.mount(filesystem.DIRECTFS)
        no_fsync = "--innodb-flush-method=O_DIRECT_NO_FSYNC"
        scratch = self.server(plain)
        scratch.start(FORK, AUTO, no_fsync, "--innodb-use-fallocate", f"--innodb-directories={atomic}")
        scratch.sql(FILL + f"CREATE TABLE d.u (a INT) DATA DIRECTORY = '{atomic}'; INSERT INTO d.u VALUES (1);"
                    "FLUSH TABLES d.u FOR EXPORT")  # fmt: skip
        self.assertEqual(scratch.sql("SELECT @@innodb_flush_method, @@innodb_use_fallocate").split(),
                         ["O_DIRECT_NO_FSYNC", "0"])  # fmt: skip
        self.assertIn("The server changed innodb_use_fallocate to OFF", scratch.log.read_text())
        self.assertEqual(self.status(scratch)["atomic_write_files_ioctl"], 0)
        self.assertIn("u.ibd': doublewrite buffer (InnoDB does not sync data files with this innodb_flush_method)",
                      scratch.sql("SHOW ENGINE INNODB STATUS"))  # fmt: skip
        self.assertEqual(scratch.end(), 0)
        # ON changes innodb_flush_method to O_DIRECT.
        scratch = self.server(self.mount("xfs-reflink"))
        scratch.start(FORK, ON, no_fsync)
        self.assertEqual(scratch.sql("SELECT @@innodb_flush_method, @@innodb_use_fallocate").split(), ["O_DIRECT", "1"])
        self.assertIn("the server changed innodb_flush_method to O_DIRECT because a file", scratch.log.read_text())
        self.assertEqual(scratch.end(), 0)

    def test_no_direct_io(self):
        """A file system without direct I/O is refused at CREATE, not when a page is written."""
        scratch = self.server(self.mount("xfs-reflink"))
        folder = self.enterContext(temporary_folder("/var/tmp"))
        subprocess.run(["mount", "-t", "ramfs", "ramfs", folder], check=True)
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        scratch.start(FORK, ON, f"--innodb-directories={folder}")
        scratch.sql(FILL)
        result = scratch.client(f"CREATE TABLE d.u (a INT) DATA DIRECTORY = '{folder}'")
        self.assertRegex(result.stderr, REFUSED)
        self.assertIn("the file is not open for direct I/O", scratch.log.read_text())
        self.assertEqual(scratch.end(), 0)

    def test_flag_without_effect(self):
        """ext4 has a file flag to journal data, but ignores it with delayed allocation (delalloc, the default)."""
        with temporary_folder("/var/tmp") as place:
            image = place / "image"
            with open(image, "wb") as file:
                file.truncate(512 << 20)
            subprocess.run(["mkfs.ext4", "-q", image], check=True)
            for command in ("mkdir /j", f"set_inode_field /j flags {EXTENTS | JOURNAL_DATA:#x}"):
                subprocess.run(["debugfs", "-w", "-R", command, image], check=True, capture_output=True)
            folder = place / "mount"
            folder.mkdir()
            # Files with the flag that have effect are not written by direct I/O, although they are open for it.
            buffered = "the file is not open for direct I/O, check innodb_flush_method"
            for option, page_bytes, method in (("delalloc", 4096, "doublewrite"), ("nodelalloc", 4096, "fs"),
                                               ("nodelalloc", 16384, f"doublewrite\t{buffered}")):  # fmt: skip
                subprocess.run(["mount", "-o", f"loop,{option}", image, folder], check=True)
                try:
                    options = [f"--innodb-page-size={page_bytes}", AUTO, "--innodb-use-atomic-writes-fs=ON"]
                    with Scratch(str(folder / "j"), page_bytes) as scratch:
                        subprocess.run([*scratch.options(FORK), *options, "--initialize-insecure"], check=True)
                        scratch.start(FORK, *options)
                        found = scratch.sql("SELECT DISTINCT method, reason"
                                            " FROM information_schema.innodb_atomic_write_files")  # fmt: skip
                        self.assertTrue(found.startswith(method), found)
                        self.assertEqual(scratch.end(), 0)
                finally:
                    subprocess.run(["umount", folder], check=True)

    def test_written_in_part(self):
        """A partial write to a file with atomic writes by ioctl: the server stops, and does not write the rest."""
        plain, atomic = self.mount("ext4"), self.mount(filesystem.DIRECTFS)
        options = [AUTO, f"--innodb-directories={atomic}"]
        scratch = self.server(plain)
        scratch.start(FORK, *options)
        scratch.sql(FILL + f"CREATE TABLE d.u (id INT PRIMARY KEY, a CHAR(250)) DATA DIRECTORY = '{atomic}';"
                    "INSERT INTO d.u SELECT * FROM d.t")  # fmt: skip
        self.assertEqual(self.status(scratch)["atomic_write_files_ioctl"], 1)
        self.assertEqual(scratch.end(), 0)
        begin = scratch.log.stat().st_size
        scratch.start(FORK, *options, environment={"LD_PRELOAD": str(self.faults()), "AIO_FAULT_PARTIAL": "1"})
        # With a doublewrite copy, the server writes the rest.
        scratch.sql("UPDATE d.t SET a = 'b'; FLUSH TABLES d.t FOR EXPORT")
        scratch.client("UPDATE d.u SET a = UUID(); FLUSH TABLES d.u FOR EXPORT")
        self.assertEqual(scratch.process.wait(30), ABORTED)
        self.assertRegex(scratch.log.read_text()[begin:],
                         r"u\.ibd' cannot be written atomically: the kernel wrote only a part of it")  # fmt: skip

    def test_closed_files(self):
        """The server knows a file's method only while the file is open. Pages of files that are closed, or not open
        yet, are still written atomically. With ON they never use the doublewrite buffer; with AUTO they may."""
        cases = ((ON, "xfs-reflink", "rwf_copy", ("OFF", "DETECT_ONLY", "ON")),
                 (AUTO, filesystem.DIRECTFS, "ioctl", ("OFF", "ON")))  # fmt: skip
        faults = {"LD_PRELOAD": str(self.faults()), "AIO_FAULT_PLAIN": "1"}
        few = f"--innodb-open-files={N_TABLES // 4}"
        for setting, kind, method, modes in cases:
            atomic = self.mount(kind)
            # directFS has no sockets, so with AUTO only the tables are there.
            scratch = self.server(atomic if setting == ON else self.mount("ext4"))
            folder = "" if setting == ON else f"DATA DIRECTORY = '{atomic}'"
            options = [setting, f"--innodb-directories={atomic}"]
            scratch.start(FORK, *options)
            # The page cleaners flush at once, also pages of files that are not open.
            scratch.sql("SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0; SET GLOBAL innodb_max_dirty_pages_pct = 0;"
                        + FILL + "".join(f"CREATE TABLE d.t{number} (a INT) {folder};"
                                         f"INSERT INTO d.t{number} VALUES (1);" for number in range(N_TABLES))
                        + "CREATE UNDO TABLESPACE u ADD DATAFILE 'u.ibu'; RENAME TABLE d.t0 TO d.r;"
                        + "UPDATE d.r SET a = 1; RENAME TABLE d.r TO d.t0;")  # fmt: skip
            self.flush(scratch, "t")
            copies = self.status(scratch)["dblwr_pages_written"]
            self.assertTrue(copies == 0 if setting == ON else copies > 0)
            self.assertEqual(scratch.end(), 0)
            for mode in modes:
                with self.subTest(setting=setting, mode=mode):
                    scratch.start(FORK, *options, few, f"--innodb-doublewrite={mode}",
                                  environment=faults if setting == ON else {})  # fmt: skip
                    scratch.sql("".join(f"UPDATE d.t{number} SET a = a + 1;" for number in range(N_TABLES)))
                    self.flush(scratch, "t")
                    status = self.status(scratch)
                    self.assertGreaterEqual(status[f"atomic_write_pages_{method}"], N_TABLES)
                    self.assertEqual(status["atomic_write_fallbacks"] == 0, setting == ON)
                    if setting == ON:
                        self.assertEqual(status["dblwr_pages_written"], 0)
                    self.assertEqual(scratch.end(), 0)

    def test_hung_mount(self):
        """A file system that does not answer stops whoever uses it. Files on others are examined and opened. (The first
        use of a table waits, as with stock: InnoDB opens its file with the dictionary's mutex.)"""
        plain, hung, atomic = self.mount("ext4"), self.mount(filesystem.DIRECTFS), self.mount(filesystem.DIRECTFS)
        scratch = self.server(plain)
        # Without the validation no file of these tables is open after a start. Later some tables' files are closed.
        options = [AUTO, f"--innodb-directories={hung};{atomic}", "--innodb-validate-tablespace-paths=OFF",
                   "--innodb-open-files=10", "--table-open-cache-instances=1", *KEEP_DIRTY]  # fmt: skip
        scratch.start(FORK, *options)
        folders = {"hung": f"DATA DIRECTORY = '{hung}'"}
        folders |= {f"t{n}": f"DATA DIRECTORY = '{atomic}'" if n % 2 else "" for n in range(20)}
        scratch.sql("CREATE DATABASE d;" + "".join(f"CREATE TABLE d.{table} (a INT) {folder};"
                                                   f"INSERT INTO d.{table} VALUES (1);"
                                                   for table, folder in folders.items()))  # fmt: skip
        self.assertEqual(scratch.end(), 0)
        hold, log = scratch.path / "hold", scratch.path / "syncs"
        hold.write_text("0")
        library = to_preload(SYNC_HOLD, self.enterContext(temporary_folder("/tmp")))
        scratch.start(FORK, *options, environment=observed(library, scratch.path, "/d/hung.ibd"))
        update = "".join(f"UPDATE d.t{n} SET a = a + 1;" for n in range(20))
        scratch.sql(update)
        try:
            waiting = scratch.session()
            waiting.stdin.write("SELECT a FROM d.hung;\n")
            waiting.stdin.close()
            wait_until(log.exists, "the file is not examined")
            other = scratch.session()
            self.addCleanup(other.kill)
            other.communicate(update + "SET GLOBAL innodb_max_dirty_pages_pct = 0;", timeout=WAIT_SECONDS)
            wait_until(lambda: scratch.counter("Innodb_buffer_pool_pages_dirty") == 0, "pages are not written")
            self.assertNotIn("end", log.read_text())
        finally:
            hold.unlink()
        self.assertEqual(waiting.stdout.read(), "1\n")
        waiting.wait(WAIT_SECONDS)
        sums = "UNION ALL ".join(f"SELECT a FROM d.t{n} " for n in range(20))
        self.assertEqual(scratch.sql(f"SELECT SUM(a) FROM ({sums}) t"), "60")
        self.assertEqual(scratch.end(), 0)

    def test_changed_below(self):
        """A closed file is on other storage, without atomic writes, when a page of it is flushed. With ON there is no
        copy, and the server stops before it writes the page."""
        other, plain = self.mount("xfs-reflink"), self.mount("ext4")
        scratch = self.server(self.mount("xfs-reflink"))
        directories = f"--innodb-directories={other}"
        scratch.start(FORK, ON, directories)
        scratch.sql(FILL + f"CREATE TABLE d.u (a INT) DATA DIRECTORY = '{other}'; INSERT INTO d.u VALUES (1);"
                    + "".join(f"CREATE TABLE d.t{number} (a INT);" for number in range(N_TABLES)))  # fmt: skip
        self.assertEqual(scratch.end(), 0)
        # No page is flushed before FLUSH TABLES.
        scratch.start(FORK, ON, directories, f"--innodb-open-files={N_TABLES // 4}", "--innodb-idle-flush-pct=0",
                      "--innodb-max-dirty-pages-pct=99", "--innodb-max-dirty-pages-pct-lwm=0",
                      "--innodb-adaptive-flushing=OFF", "--innodb-buffer-pool-load-at-startup=OFF")  # fmt: skip
        scratch.sql("UPDATE d.u SET a = 2;" + "".join(f"SELECT * FROM d.t{number};" for number in range(N_TABLES)))
        is_open = "SELECT COUNT(*) FROM information_schema.innodb_atomic_write_files WHERE path LIKE '%/d/u.ibd'"
        self.assertEqual(scratch.sql(is_open), "0")
        shutil.copytree(other / "d", plain / "d")
        subprocess.run(["umount", other], check=True)
        subprocess.run(["mount", "--bind", plain, other], check=True)
        before = (plain / "d/u.ibd").read_bytes()
        scratch.client("FLUSH TABLES d.u FOR EXPORT")
        self.assertEqual(scratch.process.wait(60), ABORTED)
        self.assertIn(f"The server has to open '{other}/d/u.ibd', but", scratch.log.read_text())
        self.assertEqual((plain / "d/u.ibd").read_bytes(), before)
        scratch.start(FORK, AUTO, directories)
        self.assertEqual(scratch.sql("SELECT a FROM d.u"), "2")
        self.assertEqual(scratch.end(), 0)

    def test_other_doublewrite_folder(self):
        """The server clears copies in innodb_doublewrite_dir, and only in files of its page size."""
        scratch = self.server(self.mount("xfs-reflink"))
        # InnoDB puts a relative name without a / below the data directory, and prefixes it with #.
        folder = scratch.data / "#three"
        folder.mkdir()
        other = folder / "#ib_4096_0.dblwr"
        other.write_bytes(b"x" * 4096)
        own = folder / "#ib_16384_0.dblwr"
        own.write_bytes(b"x" * (4 << 20))
        for mode in ("ON", "OFF"):
            scratch.start(FORK, ON, "--innodb-doublewrite-dir=three", f"--innodb-doublewrite={mode}")
            self.assertTrue((scratch.data / MARKER).exists())
            self.assertFalse(any(own.read_bytes()))
            own.write_bytes(b"x" * own.stat().st_size)
            self.assertEqual(scratch.end(), 0)
            self.assertFalse((scratch.data / MARKER).exists())
            self.assertFalse(any(own.read_bytes()))
            self.assertEqual(other.read_bytes(), b"x" * 4096)

    def test_no_marker_file(self):
        """The marker file cannot be written: pages keep their doublewrite copies, also with ON, and also those of a
        file that RENAME TABLE closes."""
        atomic = self.mount(filesystem.DIRECTFS)
        folders = {ON: "", AUTO: f"DATA DIRECTORY = '{atomic}'"}
        for setting, mount in ((AUTO, self.mount("ext4")), (ON, self.mount("xfs-reflink"))):
            scratch = self.server(mount)
            (scratch.data / MARKER / "in the way").mkdir(parents=True)
            scratch.start(FORK, setting, *KEEP_DIRTY, f"--innodb-directories={atomic}")
            scratch.sql(FILL.replace("NOT NULL);", f"NOT NULL) {folders[setting]};")
                        + "UPDATE d.t SET a = UUID(); RENAME TABLE d.t TO d.r")  # fmt: skip
            scratch.sql("SET GLOBAL innodb_max_dirty_pages_pct = 0")
            wait_until(lambda scratch=scratch: scratch.counter("Innodb_buffer_pool_pages_dirty") == 0)
            scratch.sql("RENAME TABLE d.r TO d.t; UPDATE d.t SET a = UUID()")
            self.flush(scratch, "t")
            status = self.status(scratch)
            self.assertGreater(status["dblwr_pages_written"], 0)
            self.assertEqual(status["atomic_write_doublewrite_avoided"], 0)
            self.assertIn("could not be written to the data directory: Is a directory", scratch.log.read_text())
            self.assertEqual(scratch.end(), 0)
        # With innodb_doublewrite = OFF the server stops.
        begin = scratch.log.stat().st_size
        with contextlib.suppress(AssertionError):
            scratch.start(FORK, ON, "--innodb-doublewrite=OFF")
            scratch.client("UPDATE d.t SET a = UUID(); FLUSH TABLES d.t FOR EXPORT")
        self.assertEqual(scratch.process.wait(60), ABORTED)
        self.assertIn("has no atomic write method now (the marker file '#spw_atomic_writes' could not",
                      scratch.log.read_text()[begin:])  # fmt: skip
        shutil.rmtree(scratch.data / MARKER)
        scratch.start(FORK, ON)
        self.check(scratch)
        self.assertEqual(scratch.end(), 0)

    def faults(self):
        return to_preload(SOURCE, self.enterContext(temporary_folder("/tmp")))

    def test_tried_again(self):
        """The kernel sometimes has no free request (EAGAIN): the repeated write still has RWF_ATOMIC, and the permits
        for such writes are released."""
        scratch = self.server(self.mount("xfs-reflink"))
        scratch.start(FORK, ON, environment={"LD_PRELOAD": str(self.faults()), "AIO_FAULT_PLAIN": "1",
                                             "AIO_FAULT_SUBMIT": "11 3 1 1000000000"})  # fmt: skip
        scratch.sql(FILL)
        for _ in range(3):
            self.flush(scratch, "t")
        self.check(scratch)
        retries = scratch.counter("Innodb_aio_write_submit_retries")
        self.assertGreater(retries, 2 * RWF_AT_ONCE)
        self.assertEqual(self.status(scratch)["dblwr_pages_written"], 0)
        self.assertEqual(scratch.end(), 0)

    def test_synchronous(self):
        """A session that finds no free page writes one by pwritev2(). If the kernel rejects that, the server stops. The
        first two calls are test writes."""
        scratch = self.server(self.mount("xfs-reflink"))
        small = ["--innodb-buffer-pool-size=5M", "--innodb-lru-scan-depth=100", "--innodb-io-capacity=100",
                 "--innodb-max-dirty-pages-pct=99", "--innodb-adaptive-flushing=OFF"]  # fmt: skip
        scratch.start(FORK, ON, *small)
        scratch.sql(FILL + "CREATE TABLE d.w LIKE d.t; INSERT INTO d.w (a) SELECT x.a FROM d.t x, d.t y LIMIT 60000")

        def write():
            """Write until a session has flushed pages, or the server ends; returns their number."""
            count = 0
            for _ in range(60):
                sessions = [scratch.session() for _ in range(8)]
                for number, session in enumerate(sessions):
                    with contextlib.suppress(BrokenPipeError):
                        session.stdin.write(f"UPDATE d.w SET a = UUID() WHERE id % 8 = {number};\n")
                        session.stdin.flush()
                # All sessions run by now; communicate() ends their input and waits.
                for session in sessions:
                    with contextlib.suppress(BrokenPipeError):
                        session.communicate()
                result = scratch.client("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_flush_single_page_pages'")
                if result.returncode or (count := int(result.stdout.split()[1])):
                    break
            return count

        self.assertGreater(write(), 0)
        self.assertEqual(self.status(scratch)["dblwr_pages_written"], 0)
        self.assertEqual(scratch.end(), 0)
        begin = scratch.log.stat().st_size
        # The server may answer before it stops.
        with contextlib.suppress(AssertionError):
            scratch.start(FORK, ON, *small, environment={"LD_PRELOAD": str(self.faults()),
                                                         "AIO_FAULT_PWRITEV2": f"{REJECTED} 3"})  # fmt: skip
            write()
        self.assertEqual(scratch.process.wait(60), ABORTED)
        self.assertIn("the kernel rejected the atomic write", scratch.log.read_text()[begin:])
        scratch.start(FORK)
        self.check(scratch)
        self.assertEqual(scratch.end(), 0)

    def test_not_tried(self):
        """The test write fails for lack of space: the server refuses no file. With ON each write has RWF_ATOMIC, with
        AUTO a doublewrite copy."""
        scratch = self.server(self.mount("xfs-reflink"))
        scratch.start(FORK, ON)
        scratch.sql(FILL)
        self.assertEqual(scratch.end(), 0)
        faults = {"LD_PRELOAD": str(self.faults()), "AIO_FAULT_PWRITEV2": f"{errno.ENOSPC} 1", "AIO_FAULT_PLAIN": "1"}
        begin = scratch.log.stat().st_size
        scratch.start(FORK, ON, environment=faults)
        self.assertIn("but the test write failed: No space left on device", scratch.log.read_text()[begin:])
        self.flush(scratch, "t")
        self.check(scratch)
        self.assertEqual(self.status(scratch)["dblwr_pages_written"], 0)
        self.assertEqual(scratch.end(), 0)
        del faults["AIO_FAULT_PLAIN"]
        scratch.start(FORK, AUTO, environment=faults)
        self.check(scratch)
        self.assertEqual(self.status(scratch)["atomic_write_files_rwf_copy"], 0)
        self.assertEqual(scratch.end(), 0)

    def test_rejected(self):
        """The kernel rejects a write that it accepted before, has no space, or writes only a part: the server stops.
        It loses no data, except if a page was written in part."""
        library = self.faults()
        scratch = self.server(self.mount("xfs-reflink"))
        scratch.start(FORK, ON)
        scratch.sql(FILL)
        self.assertEqual(scratch.end(), 0)
        faults = (("AIO_FAULT_ATOMIC", str(REJECTED), "the kernel rejected the atomic write"),
                  ("AIO_FAULT_ATOMIC", str(errno.ENOSPC), "needs free space, too. The server stops"),
                  ("AIO_FAULT_PARTIAL", "1", "the kernel wrote only a part of it"))  # fmt: skip
        for fault, value, message in faults:
            begin = scratch.log.stat().st_size
            # The server may answer before it stops.
            with contextlib.suppress(AssertionError):
                scratch.start(FORK, ON, environment={"LD_PRELOAD": str(library), fault: value})
                scratch.client("UPDATE d.t SET a = UUID(); FLUSH TABLES d.t FOR EXPORT")
            self.assertEqual(scratch.process.wait(30), ABORTED)
            self.assertIn(message, scratch.log.read_text()[begin:])
            if fault == "AIO_FAULT_ATOMIC":
                scratch.start(FORK)
                self.check(scratch)
                self.assertEqual(scratch.end(), 0)

    @unittest.skipIf("/debug/" in str(FORK), "upstream asserts there that it succeeds")
    def test_undo_without_log(self):
        """OFF, as stock: without its truncation log file, an undo tablespace is not created."""
        folder = self.enterContext(temporary_folder())
        subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=16", "spw-undo", folder], check=True)
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        scratch = self.enterContext(Scratch())
        undo = f"--innodb-undo-directory={folder}"
        subprocess.run([*scratch.options(FORK), undo, "--initialize-insecure"], check=True)
        scratch.start(FORK, undo)
        create = f"CREATE UNDO TABLESPACE u ADD DATAFILE '{scratch.data}/u.ibu'"
        with self.assertRaises(OSError):
            for number in range(16):
                (folder / str(number)).touch()
        self.assertIn("ERROR 1528 ", scratch.client(create).stderr)
        self.assertFalse((scratch.data / "u.ibu").exists())
        (folder / "0").unlink()
        scratch.sql(create)
        self.assertEqual(scratch.end(), 0)

    def test_stale_copy(self):
        """A page is corrupt, and its copy is from before the checkpoint. After a run that bypassed the doublewrite
        buffer the copy may be of an earlier write: stock restores it, the fork does not. Without such a run both do."""
        scratch = self.server(self.mount("xfs-reflink"))
        scratch.start(FORK)
        scratch.sql(FILL)
        self.flush(scratch, "t")
        space = scratch.space_id("d/t")
        self.assertEqual(scratch.end(), 0)
        without_marker = scratch.path / "without_marker"
        shutil.copytree(scratch.data, without_marker)
        page_no = self.copies(scratch, space)[0]

        scratch.start(FORK, ON)
        self.assertTrue((scratch.data / MARKER).exists())
        # The copies of the run before are cleared: recovery has flushed all pages.
        self.assertEqual(self.copies(scratch, space), [])
        scratch.sql("UPDATE d.t SET a = 'b'")
        self.kill_behind_checkpoint(scratch)
        self.put_copy(scratch, self.page(without_marker / "d/t.ibd", page_no))
        self.tear(scratch.data / "d/t.ibd", page_no)
        with_marker = scratch.path / "with_marker"
        shutil.copytree(scratch.data, with_marker)

        restored = f"Recovered page [page id: space={space}, page number={page_no}] from the doublewrite buffer"
        self.assertIn(restored, self.recover(scratch, STOCK))
        # Rows from before the update are back.
        self.assertGreater(int(scratch.sql("SELECT COUNT(*) FROM d.t WHERE a IN ('a', 'ax')")), 0)
        scratch.end(signal.SIGKILL)

        # Without syncs of data files a page can need such a copy.
        for method, is_used in (("O_DIRECT_NO_FSYNC", True), ("O_DIRECT", False)):
            self.replace(scratch, with_marker)
            log = self.recover(scratch, FORK, f"--innodb-flush-method={method}")
            self.assertEqual(restored in log, is_used)
            self.assertIn(f"page number={page_no}]", log)
            scratch.end(signal.SIGKILL)

        # The page of the transaction system, which the server reads before recovery.
        self.replace(scratch, with_marker)
        self.put_copy(scratch, self.page(without_marker / "ibdata1", SYSTEM_PAGE))
        self.tear(scratch.data / "ibdata1", SYSTEM_PAGE)
        with self.assertRaises(AssertionError):
            scratch.start(FORK, "--log-error-verbosity=3")
        self.assertIsNotNone(scratch.process.poll())
        self.assertNotIn("page number=5] from the doublewrite buffer", scratch.log.read_text(errors="replace"))

        # The first page of the system tablespace is restored before the checkpoint is known: the server does not start,
        # now or later.
        self.replace(scratch, with_marker)
        self.put_copy(scratch, self.page(without_marker / "ibdata1", 0))
        self.tear(scratch.data / "ibdata1", 0)
        for _ in range(2):
            scratch.log.unlink()
            with self.assertRaises(AssertionError):
                scratch.start(FORK)
            self.assertIsNotNone(scratch.process.poll())
            self.assertIn("replaced it with a copy of an earlier write", scratch.log.read_text(errors="replace"))

        self.replace(scratch, without_marker)
        scratch.start(FORK)
        scratch.sql("UPDATE d.t SET a = 'b'")
        self.kill_behind_checkpoint(scratch)
        self.assertFalse((scratch.data / MARKER).exists())
        page_no = self.copies(scratch, space)[0]
        self.tear(scratch.data / "d/t.ibd", page_no)
        restored = f"Recovered page [page id: space={space}, page number={page_no}] from the doublewrite buffer"
        self.assertIn(restored, self.recover(scratch, FORK))
        scratch.end(signal.SIGKILL)

    def test_copies_are_cleared(self):
        """Copies are cleared at each start, and by a clean shutdown after pages were written without copies."""
        scratch = self.server(self.mount("xfs-reflink"))
        scratch.start(FORK)
        scratch.sql(FILL)
        self.flush(scratch, "t")
        space = scratch.space_id("d/t")
        self.assertEqual(scratch.end(), 0)
        kept = self.page(scratch.data / "d/t.ibd", ROOT_PAGE_NO + 1)
        self.assertTrue(self.copies(scratch, space))
        # With the flush method that does not sync, a later recovery may need them.
        for options in (["--innodb-flush-method=O_DIRECT_NO_FSYNC"], ["--innodb-read-only"],
                        ["--innodb-force-recovery=1", "--skip-log-bin"]):  # fmt: skip
            scratch.start(FORK, *options)
            self.assertTrue(self.copies(scratch, space), options)
            self.assertEqual(scratch.end(), 0)
        for option in ("ON", "OFF"):
            self.put_copy(scratch, kept)
            scratch.start(FORK, f"--innodb-doublewrite={option}")
            self.assertTrue((scratch.data / "#ib_16384_0.dblwr").exists())
            self.assertEqual(self.copies(scratch, space), [])
            self.assertEqual(scratch.end(), 0)
        # Another server has the file open.
        self.put_copy(scratch, kept)
        with open(scratch.data / "#ib_16384_0.dblwr", "r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            scratch.start(FORK, "--innodb-doublewrite=OFF")
            self.assertTrue(self.copies(scratch, space))
            self.assertIn("could not be cleared: another server has it open", scratch.log.read_text())
            self.assertEqual(scratch.end(), 0)

        scratch.start(FORK, ON)
        self.assertEqual(self.copies(scratch, space), [])
        scratch.end(signal.SIGKILL)
        self.put_copy(scratch, kept)
        scratch.start(FORK)
        self.assertEqual(self.copies(scratch, space), [])
        self.assertFalse((scratch.data / MARKER).exists())
        self.assertEqual(scratch.end(), 0)

        # A fast shutdown leaves it to the next start.
        scratch.start(FORK, ON)
        scratch.sql("SET GLOBAL innodb_fast_shutdown = 2")
        self.assertEqual(scratch.end(), 0)
        self.assertTrue((scratch.data / MARKER).exists())
        # A clean shutdown clears the copies, also in files that OFF does not use.
        scratch.start(FORK, ON, "--innodb-doublewrite=OFF")
        self.put_copy(scratch, kept)
        self.assertEqual(scratch.end(), 0)
        self.assertEqual(self.copies(scratch, space), [])
        self.assertFalse((scratch.data / MARKER).exists())
        scratch.start(STOCK)
        self.check(scratch)
        self.assertEqual(scratch.end(), 0)

    def test_new_doublewrite_files(self):
        """New doublewrite files, extensions of them, and zeros by which a start clears old copies are durable at once:
        they survive a loss of all unsynced data."""
        xfs = self.mount("xfs-reflink")
        scratch = self.server(self.mount("ext4"))
        folder = xfs / "dw"
        folder.mkdir()
        os.sync()
        sizes = {}
        for pages in (16, 256):
            larger = self.doublewrite_sizes_after_power_cut(scratch, xfs, folder, pages)
            self.assertGreater(len(larger), 1)
            self.assertTrue(all(size > sizes.get(name, 0) for name, size in larger.items()), (sizes, larger))
            sizes = larger

    def doublewrite_sizes_after_power_cut(self, scratch, xfs, folder, pages):
        old_copy = b"\1" * PAGE_BYTES
        last_slots = {path: path.stat().st_size - PAGE_BYTES for path in folder.iterdir()}
        for path, offset in last_slots.items():
            with open(path, "r+b") as file:
                os.pwrite(file.fileno(), old_copy, offset)
                os.fsync(file.fileno())
        scratch.start(FORK, f"--innodb-doublewrite-dir={folder}", f"--innodb-doublewrite-pages={pages}")
        sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
        lose_what_was_not_synced(xfs)
        scratch.end(signal.SIGKILL)
        subprocess.run(["umount", xfs], check=True)
        subprocess.run(["mount", "-o", "loop", xfs.parent / "disk.img", xfs], check=True)
        self.assertEqual({path.name: path.stat().st_size for path in folder.iterdir()}, sizes)
        for path, offset in last_slots.items():
            self.assertNotEqual(path.read_bytes()[offset : offset + PAGE_BYTES], old_copy)
        return sizes

    def locked(self, scratch):
        """Names of the files that the server has locked against a second one. Which redo files are open changes."""
        inodes = {line.split()[5].split(":")[2] for line in Path("/proc/locks").read_text().splitlines()
                  if line.split()[4] == str(scratch.process.pid)}  # fmt: skip
        files = [path for path in scratch.data.rglob("*") if path.suffix != ".ibt" and "#ib_redo" not in path.name]
        return {path.name for path in files if str(path.stat().st_ino) in inodes}

    def refused(self, scratch):
        """The error log of a second server on the data directory."""
        log = scratch.path / "second.log"
        own = (f"--{name}={scratch.path}/second.{name}" for name in ("socket", "pid-file"))
        second = subprocess.Popen([*scratch.options(FORK), f"--log-error={log}", *own])
        self.addCleanup(second.kill)
        wait_until(lambda: log.exists() and "Unable to lock" in log.read_text())
        second.kill()
        second.wait()
        return log.read_text()

    def test_locks(self):
        """InnoDB's files stay locked when our code opens them, too."""
        scratch = self.server(self.mount("xfs-reflink"))
        scratch.start(FORK)
        scratch.sql(FILL)
        locked = self.locked(scratch)
        self.assertTrue({"ibdata1", "t.ibd", "#ib_16384_0.dblwr"} <= locked, locked)
        self.assertEqual(scratch.end(), 0)
        # The server clears copies in open files. Later it restores and syncs a file's first page.
        for setting in (AUTO, ON, AUTO):
            scratch.start(FORK, setting, "--log-error-verbosity=3")
            self.check(scratch)
            self.assertEqual(self.locked(scratch), locked)
            self.assertIn("Unable to lock ./ibdata1", self.refused(scratch))
            scratch.end(signal.SIGKILL)
            first = self.page(scratch.data / "ibdata1", 0)
            self.put_copy(scratch, first)
            self.tear(scratch.data / "ibdata1", 0)
            (scratch.data / MARKER).unlink(missing_ok=True)
        self.assertEqual(scratch.log.read_text().count(RESTORED_FIRST_PAGE), 2)

    def test_marker_file_says_that_copies_were_cleared(self):
        """Also a marker file that is made after the start. A server that does not sync its data files removes it, also
        with innodb_force_recovery."""
        plain, atomic = self.mount("ext4"), self.mount(filesystem.DIRECTFS)
        scratch = self.server(plain)
        options = (AUTO, f"--innodb-directories={atomic}")
        scratch.start(FORK, *options)
        self.assertFalse((scratch.data / MARKER).exists())
        scratch.sql(f"CREATE DATABASE d; CREATE TABLE d.u (a INT) DATA DIRECTORY = '{atomic}';"
                    "INSERT INTO d.u VALUES (1); FLUSH TABLES d.u FOR EXPORT")  # fmt: skip
        self.assertEqual((scratch.data / MARKER).read_text(), "copies of before are cleared\n")
        scratch.end(signal.SIGKILL)
        scratch.start(FORK, *options[1:], "--innodb-flush-method=O_DIRECT_NO_FSYNC", "--innodb-force-recovery=1")
        self.assertFalse((scratch.data / MARKER).exists())
        scratch.end(signal.SIGKILL)

    def test_marker_file_that_cannot_be_read(self):
        """The server stops, as what it says is not known, and leaves it alone; to rescue data it starts."""
        scratch = self.server(self.mount("ext4"))
        marker = scratch.data / MARKER
        marker.symlink_to(MARKER)
        with self.assertRaises(AssertionError):
            scratch.start(FORK)
        # Not by a signal: systemd does not start it again.
        self.assertEqual(scratch.process.wait(), 1)
        self.assertIn("cannot be read: Too many levels of symbolic links. It says", scratch.log.read_text())
        with self.assertRaises(AssertionError):
            scratch.start(FORK, "--innodb-force-recovery=1", "--innodb-flush-method=O_DIRECT_NO_FSYNC")
        self.assertIn("the file would have to be removed", scratch.log.read_text())
        for option in ("--innodb-force-recovery=1", "--innodb-read-only"):
            scratch.start(FORK, option)
            self.assertEqual(scratch.end(), 0)
            self.assertTrue(marker.is_symlink())
        marker.unlink()
        scratch.start(FORK)
        self.assertEqual(scratch.end(), 0)

    def test_marker_file_that_cannot_be_removed(self):
        """A server that does not sync its data files stops if the file has the rule that needs these syncs."""
        scratch = self.server(self.mount("ext4"))
        marker = scratch.data / MARKER
        unsynced = "--innodb-flush-method=O_DIRECT_NO_FSYNC"
        self.addCleanup(subprocess.run, ["chattr", "-f", "-i", marker], check=False)
        marker.touch()
        subprocess.run(["chattr", "+i", marker], check=True)
        scratch.start(FORK, unsynced)
        self.assertEqual(scratch.end(), 0)
        self.assertIn("could not be removed from the data directory: Operation not permitted", scratch.log.read_text())
        subprocess.run(["chattr", "-i", marker], check=True)
        marker.write_text("copies of before are cleared\n")
        subprocess.run(["chattr", "+i", marker], check=True)
        with self.assertRaises(AssertionError):
            scratch.start(FORK, unsynced)
        self.assertEqual(scratch.process.wait(60), ABORTED)
        self.assertIn("would ignore copies that it needs. The server stops", scratch.log.read_text())
        subprocess.run(["chattr", "-i", marker], check=True)
        scratch.start(FORK, unsynced)
        self.assertFalse(marker.exists())
        self.assertEqual(scratch.end(), 0)

    def test_pages_without_redo(self):
        """A power cut after a statement that builds an index has returned loses nothing of it, with any setting."""
        # A full-text index has its own files.
        statements = (("ALTER TABLE d.w ADD INDEX k (a)", "FORCE INDEX (k)"), ("OPTIMIZE TABLE d.w", ""),
                      ("ALTER TABLE d.w ADD FULLTEXT INDEX f (a)", "WHERE MATCH (a) AGAINST ('some')"),
                      ("ALTER TABLE d.w TABLESPACE g", ""),
                      ("ALTER TABLE d.w ADD SPATIAL INDEX s (p)",
                       "FORCE INDEX (s) WHERE MBRCovers(ST_GeomFromText('POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))'), p)")
                      )  # fmt: skip
        settings = (ON, "--innodb-doublewrite-fsync=ON", AUTO, ON, AUTO)
        for seed, (statement, what) in enumerate(statements):
            # With OFF, the medium tears no page: its sectors are as large as pages.
            for setting, sector_bytes in ((settings[seed], 512), ("--innodb-doublewrite=OFF", PAGE_BYTES)):
                with self.subTest(statement=statement, setting=setting), temporary_folder("/var/tmp") as folder:
                    medium = PowerCutFolder(folder, sector_bytes)
                    self.addCleanup(medium.unmount)
                    medium.mount()
                    scratch = self.enterContext(Scratch())
                    scratch.data = medium.top / "data"
                    scratch.initialise(FORK)
                    scratch.start(FORK, setting, *KEEP_DIRTY)
                    scratch.sql(FILL + "CREATE TABLESPACE g; CREATE TABLE d.w LIKE d.t;"
                                "ALTER TABLE d.w ADD p POINT NOT NULL SRID 0 DEFAULT (POINT(1, 1));"
                                "INSERT INTO d.w (a) SELECT CONCAT('some ', x.a) FROM d.t x, d.t y LIMIT 20000"
                                )  # fmt: skip
                    scratch.sql(statement)
                    medium.cut()
                    scratch.end(signal.SIGKILL)
                    medium.unmount()
                    medium.resolve(seed)
                    medium.mount()
                    scratch.start(FORK)
                    self.assertEqual(scratch.sql(f"SELECT COUNT(*) FROM d.w {what}"), "20000")
                    self.assertEqual(scratch.sql("CHECK TABLE d.w EXTENDED").split()[-1], "OK")
                    self.assertEqual(scratch.end(), 0)
                    medium.unmount()

    def replace(self, scratch, data):
        """Replace the data directory by a copy of data."""
        shutil.rmtree(scratch.data)
        shutil.copytree(data, scratch.data)

    def page(self, path, page_no):
        with open(path, "rb") as file:
            file.seek(page_no * PAGE_BYTES)
            return file.read(PAGE_BYTES)

    def put_copy(self, scratch, page):
        """Write a page into the first slot of a doublewrite file."""
        with open(scratch.data / "#ib_16384_0.dblwr", "r+b") as file:
            file.write(page)

    def tear(self, path, page_no):
        with open(path, "r+b") as file:
            file.seek(page_no * PAGE_BYTES + PAGE_BYTES // 2)
            file.write(bytes(PAGE_BYTES // 2))

    def kill_behind_checkpoint(self, scratch):
        """Kill the server after a checkpoint of all writes and a change of another page, so that recovery opens the
        file."""
        self.flush(scratch, "t")
        lsn = scratch.counter("Innodb_redo_log_current_lsn")
        for _ in range(600):
            if scratch.counter("Innodb_redo_log_checkpoint_lsn") >= lsn:
                break
            scratch.sql("DO SLEEP(0.1)")
        else:
            self.fail("no checkpoint")
        scratch.sql("UPDATE d.t SET a = 'c' ORDER BY id DESC LIMIT 1")
        scratch.end(signal.SIGKILL)

    def recover(self, scratch, server, *options):
        """Start the server and check the table; return the error log."""
        scratch.log.unlink()
        scratch.start(server, "--log-error-verbosity=3", *options)
        scratch.client("CHECK TABLE d.t EXTENDED")
        return scratch.log.read_text()

    def copies(self, scratch, space):
        """The numbers of a tablespace's row pages that have copies in the doublewrite files."""
        found = []
        for path in scratch.data.glob("*.dblwr"):
            content = path.read_bytes()
            for begin in range(0, len(content) - PAGE_BYTES + 1, PAGE_BYTES):
                page = content[begin : begin + PAGE_BYTES]
                number, owner = (int.from_bytes(page[at : at + 4], "big") for at in (PAGE_NO, SPACE_ID))
                if owner == space and number > ROOT_PAGE_NO:
                    found.append(number)
        return sorted(found)
