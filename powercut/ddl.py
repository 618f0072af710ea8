"""DDL beside the transfers. The load records each statement's effect, so that it can be verified after a crash.

An acknowledged statement must have its whole effect: every row is in its table and in each index. The statement that
the crash interrupted has its effect or none. No other session writes to the tables ddl_*."""

import hashlib
import os
import shutil
import threading
import time
import zlib

from spillway.common import Failure
from spillway.instance import DATABASE

ROWS = 2000
COLUMNS = "id INT PRIMARY KEY, a VARCHAR(150) NOT NULL, n INT NOT NULL"
GENERAL = "ddl_general"
COMPRESSIONS = {"rows": "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4", "pages": "COMPRESSION='zlib'"}
# The options of each table.
TABLES = {
    "ddl_plain": "",
    "ddl_general": f"TABLESPACE {GENERAL}",
    "ddl_zipped": COMPRESSIONS["rows"],
    "ddl_punched": COMPRESSIONS["pages"],
    "ddl_encrypted": "ENCRYPTION='Y'",
    "ddl_punched_encrypted": f"{COMPRESSIONS['pages']} ENCRYPTION='Y'",
    "ddl_imported": "",
}
# The last table is only imported.
ALTERED = list(TABLES)[:-1]
# Created and dropped. The load exports and drops the second before it imports the copy: a server does not start with
# two files of one tablespace ID, as a copy and its source would be after a power cut before IMPORT TABLESPACE.
MADE, SOURCE = "ddl_made", "ddl_source"
UNDO = ("undo_ddl_1", "undo_ddl_2")
UNDO_TABLESPACES = 2 + len(UNDO)
# The words alternate between rows: InnoDB ranks a word that all rows have at 0.
WORDS = ("evenrow", "oddrow")
TRUNCATION_SECONDS = 3
# The range of SET EXTENT_SIZE. A table with its index has about 1 MiB, and a rebuild gives the added space back.
EXTENT_SIZE_MIB = (2, 8)
# The value of property n of a table that does not exist, or whose tablespace is discarded.
GONE = None


FILL = f"""WITH RECURSIVE numbers(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM numbers WHERE id < {ROWS})
  SELECT /*+ SET_VAR(cte_max_recursion_depth = {ROWS}) */ id,
    CONCAT(IF(id % 2, '{WORDS[1]} ', '{WORDS[0]} '), SHA2(id, 256), ' ', REPEAT('.', 60)), 0
  FROM numbers"""


def content(number):
    """The value of column a, as FILL inserts it."""
    return f"{WORDS[number % 2]} {hashlib.sha256(str(number).encode()).hexdigest()} {'.' * 60}"


# The sum of MySQL's CRC32() over all rows.
CHECKSUM = sum(zlib.crc32(f"{number}{content(number)}".encode()) for number in range(1, ROWS + 1))


def prepare(instance, compression):
    """Create the tables and undo tablespaces. compression has the keys of COMPRESSIONS that the storage supports."""
    statements = [f"USE {DATABASE}", f"CREATE TABLESPACE {GENERAL} ADD DATAFILE '{GENERAL}.ibd'"]
    statements += [f"CREATE UNDO TABLESPACE {name} ADD DATAFILE '{name}.ibu'" for name in UNDO]
    for name, how in TABLES.items():
        for kind, option in COMPRESSIONS.items():
            if kind not in compression:
                how = how.replace(option, "")
        statements.append(f"CREATE TABLE {name} ({COLUMNS}) CHARSET latin1 {how}")
        statements.append(f"INSERT INTO {name} {FILL}")
    statements.append("ALTER TABLE ddl_imported ADD INDEX k (a)")
    instance.sql(";\n".join(statements))


class Ddl:
    """A session that executes DDL in a thread, until it is stopped or the server is gone."""

    def __init__(self, chance, compression):
        self.chance = chance
        self.compression = compression
        # What the server has acknowledged, by table and property: for "n" the value in each row, for an index whether
        # it exists.
        self.state = {(name, "n"): 0 for name in TABLES} | {(MADE, "n"): GONE, (SOURCE, "n"): GONE}
        # The changes of the statement that is being executed.
        self.pending = {}
        self.n_acknowledged = 0
        self.n_until_cut = 0
        self.last = None
        self.current = None

    def start(self, instance, is_crash, after=0, cut=None):
        """Start to execute statements. Call cut after this number of acknowledged ones; 0: never. is_crash returns
        whether an error is due to the crash."""
        self.instance = instance
        self.is_crash = is_crash
        self.n_until_cut = after
        self.cut = cut
        self.failure = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def stop(self):
        """Stop after the current step. Raise an error that no crash explains."""
        self.stopping.set()
        self.thread.join()
        if self.failure:
            raise self.failure

    def run(self):
        # Index builds and rebuilds have more weight: they write most of the pages without redo.
        steps = [self.index] * 4 + [self.rebuild] * 2 + [self.optimize] * 2 + [self.change] * 2
        steps += [self.fulltext, self.encrypt_table, self.encrypt_general, self.rotate, self.undo]
        steps += [self.import_table, self.make, self.accounts_index]
        if "pages" in self.compression:
            steps.append(self.compress)
        self.session = self.connect()
        if self.query("SELECT @@version_comment LIKE 'Spillway%'") == [["1"]]:
            steps += [self.extend] * 2
        try:
            while True:
                self.chance.shuffle(steps)
                for step in steps:
                    if self.stopping.is_set():
                        return
                    step()
        except (Failure, OSError) as failure:
            if not self.is_crash():
                self.failure = Failure(f"{self.current}: {failure}")
        finally:
            self.session.close()

    def connect(self):
        session = self.instance.session()
        self.query = session.query
        self.query(f"USE {DATABASE}")
        return session

    def execute(self, statement, changes=None):
        self.pending = changes or {}
        self.current = statement
        rows = self.query(statement)
        if statement.startswith("OPTIMIZE") and rows[-1][-1] != "OK":
            raise Failure(str(rows))
        self.acknowledge()

    def acknowledge(self):
        self.state |= self.pending
        self.pending = {}
        self.last = self.current
        self.n_acknowledged += 1
        if self.n_until_cut:
            self.n_until_cut -= 1
            if not self.n_until_cut:
                self.cut()

    def any_table(self):
        return self.chance.choice(ALTERED)

    def toggle(self, table, index, definition):
        exists = self.state.get((table, index), False)
        how = f"DROP INDEX {index}" if exists else f"ADD {definition}"
        self.execute(f"ALTER TABLE {table} {how}", {(table, index): not exists})

    def index(self):
        self.toggle(self.any_table(), "k", "INDEX k (a)")

    def fulltext(self):
        self.toggle("ddl_plain", "f", "FULLTEXT INDEX f (a)")

    def accounts_index(self):
        self.toggle("accounts", "ddl_note", "INDEX ddl_note (note(50))")

    def optimize(self):
        self.execute(f"OPTIMIZE TABLE {self.any_table()}")

    def rebuild(self):
        how = self.chance.choice(["FORCE", "FORCE", "FORCE, ALGORITHM=COPY"])
        self.execute(f"ALTER TABLE {self.any_table()} {how}")

    def change(self):
        table = self.any_table()
        self.execute(f"UPDATE {table} SET n = {self.n_acknowledged}", {(table, "n"): self.n_acknowledged})

    def extend(self):
        table = self.any_table()
        tablespace = GENERAL if table == "ddl_general" else f"{DATABASE}/{table}"
        self.execute(f"ALTER TABLESPACE `{tablespace}` SET EXTENT_SIZE = {self.chance.randint(*EXTENT_SIZE_MIB)}M")

    def encrypt_table(self):
        self.execute(f"ALTER TABLE ddl_encrypted ENCRYPTION='{self.chance.choice('YN')}'")

    def encrypt_general(self):
        self.execute(f"ALTER TABLESPACE {GENERAL} ENCRYPTION='{self.chance.choice('YN')}'")

    def rotate(self):
        self.execute("ALTER INSTANCE ROTATE INNODB MASTER KEY")

    def compress(self):
        self.execute(f"ALTER TABLE ddl_punched COMPRESSION='{self.chance.choice(['zlib', 'none'])}'")
        self.execute("OPTIMIZE TABLE ddl_punched")

    def undo(self):
        name = self.chance.choice(UNDO)
        self.execute(f"ALTER UNDO TABLESPACE {name} SET INACTIVE")
        deadline = time.monotonic() + TRUNCATION_SECONDS
        query = f"SELECT state FROM information_schema.innodb_tablespaces WHERE name = '{name}'"
        while time.monotonic() < deadline:
            if self.query(query) == [["empty"]]:
                self.current = f"truncation of {name}"
                self.acknowledge()
                break
            time.sleep(0.02)
        self.execute(f"ALTER UNDO TABLESPACE {name} SET ACTIVE")

    def create(self, table, number):
        self.execute(f"CREATE TABLE {table} ({COLUMNS}, KEY k (a)) CHARSET latin1 SELECT id, a, {number} AS n FROM "
                     f"{self.any_table()}", {(table, "n"): number, (table, "k"): True})  # fmt: skip

    def drop(self, table):
        self.execute(f"DROP TABLE {table}", {(table, "n"): GONE, (table, "k"): False})

    def make(self):
        if self.state[MADE, "n"] is GONE:
            self.create(MADE, self.n_acknowledged)
        else:
            self.drop(MADE)

    def import_table(self):
        number = self.n_acknowledged
        self.create(SOURCE, number)
        folder = self.instance.data / DATABASE
        exported = self.instance.data.parent / "exported"
        exported.mkdir(exist_ok=True)
        self.execute(f"FLUSH TABLES {SOURCE} FOR EXPORT")
        for suffix in ("ibd", "cfg"):
            shutil.copyfile(folder / f"{SOURCE}.{suffix}", exported / f"ddl_imported.{suffix}")
        self.query("UNLOCK TABLES")
        self.drop(SOURCE)
        if self.state["ddl_imported", "n"] is not GONE:
            self.execute("ALTER TABLE ddl_imported DISCARD TABLESPACE", {("ddl_imported", "n"): GONE})
        for path in exported.iterdir():
            # Rename a complete copy: a server does not start with part of a copy, and that would be the load's fault.
            copy = folder / f"{path.name}.copy"
            shutil.copyfile(path, copy)
            sync(copy)
            copy.rename(folder / path.name)
        sync(folder)
        self.execute("ALTER TABLE ddl_imported IMPORT TABLESPACE", {("ddl_imported", "n"): number})

    def expected(self):
        """The values, by table and property, that are right if the crash happens now."""
        allowed = {key: {value} for key, value in self.state.items()}
        for key, value in self.pending.items():
            allowed.setdefault(key, {False}).add(value)
        return allowed


def sync(path):
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def count(instance, table, index="PRIMARY"):
    """The number of rows, the sum of their checksums, and the smallest and largest n; or GONE."""
    what = "COUNT(*), IFNULL(SUM(CRC32(CONCAT(id, a))), 0)"
    if index == "PRIMARY":
        what += ", IFNULL(MIN(n), -1), IFNULL(MAX(n), -1)"
    try:
        return [int(value) for value in instance.sql(f"SELECT {what} FROM {DATABASE}.{table} FORCE INDEX ({index})")[0]]
    except Failure as failure:
        # ER_NO_SUCH_TABLE; between DISCARD and IMPORT, ER_TABLESPACE_MISSING or ER_TABLESPACE_DISCARDED.
        if any(f"ERROR {number} " in str(failure) for number in (1146, 1812, 1814)):
            return GONE
        raise


def problems(instance, expected):
    """Yield a text for each error after a crash."""
    rows = instance.sql("SELECT table_name, index_name FROM information_schema.statistics WHERE table_schema = "
                        f"'{DATABASE}' AND index_name <> 'PRIMARY' GROUP BY 1, 2")  # fmt: skip
    indexes = {tuple(row) for row in rows}
    for table in (*TABLES, MADE, SOURCE):
        found = count(instance, table)
        if found is GONE:
            if GONE not in expected[table, "n"]:
                yield f"{table} is missing"
            if table == "ddl_imported":
                # A crash can leave a copy that was not imported; it belongs to no table.
                (instance.data / DATABASE / f"{table}.ibd").unlink(missing_ok=True)
            continue
        if found[:2] != [ROWS, CHECKSUM]:
            yield f"{table} has {found[0]} rows of {ROWS}, or other content"
        if found[2] != found[3] or found[2] not in expected[table, "n"]:
            yield f"{table}.n is {found[2]} to {found[3]}; right is {expected[table, 'n']}"
        if (table, "k") in indexes and count(instance, table, "k") != found[:2]:
            yield f"{table}: the index k has {count(instance, table, 'k')[0]} rows of {ROWS}, or other content"
        for _, _, kind, text in instance.sql(f"CHECK TABLE {DATABASE}.{table} EXTENDED"):
            if kind != "status" or text != "OK":
                yield f"CHECK TABLE {table}: {kind}: {text}"
    for (table, name), values in expected.items():
        # An interrupted DROP TABLE allows both. If the table is there, its rows were verified above.
        if name != "n" and ((table, name) in indexes) not in values:
            yield f"{table}: whether the index {name} exists: {(table, name) in indexes}"
    if ("ddl_plain", "f") in indexes:
        for word in WORDS:
            matched = instance.value(f"SELECT COUNT(*) FROM {DATABASE}.ddl_plain WHERE MATCH (a) AGAINST ('{word}')")
            if int(matched) != ROWS // len(WORDS):
                yield f"ddl_plain: the full-text index has {matched} rows of {ROWS // len(WORDS)} for {word}"
    undo = instance.sql("SELECT COUNT(*) FROM information_schema.innodb_tablespaces WHERE space_type = 'Undo'")
    if undo != [[str(UNDO_TABLESPACES)]]:
        yield f"{undo[0][0]} undo tablespaces of {UNDO_TABLESPACES} are there"
