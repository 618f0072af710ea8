"""The verdict after a crash: the server starts, each page is intact, each acknowledged change is there."""

import struct
import subprocess

from powercut import ddl
from spillway.common import DIES_WITH_US, Failure
from spillway.instance import DATABASE

TABLES = ("accounts", "accounts_compressed", "journal", "documents")
# Rows of the table that each client creates anew.
MADE_ROWS = 4
# Each row that these return describes an error. moved is the balance of each account by the journal.
STATEMENTS = f"""
USE {DATABASE};
CREATE TEMPORARY TABLE moved (PRIMARY KEY (place, id)) SELECT place, id, SUM(amount) AS balance FROM (
  SELECT place, payer AS id, -amount AS amount FROM journal UNION ALL SELECT place, payee, amount FROM journal) sides
  GROUP BY place, id;
SELECT CONCAT('client ', client, ' has ', COUNT(*), ' transfers in the journal, and the last is ', MAX(number))
  FROM journal GROUP BY client HAVING COUNT(*) <> MAX(number);
""" + "".join(
    f"""
SELECT CONCAT('the balances of {table} add up to ', SUM(balance)) FROM {table} HAVING SUM(balance) <> 0;
SELECT CONCAT('an account of {table}, ', id, ', has ', {table}.balance, '; the journal says ', IFNULL(moved.balance, 0))
  FROM {table} LEFT JOIN moved USING (id) WHERE IFNULL(place, {place}) = {place}
  AND {table}.balance <> IFNULL(moved.balance, 0) LIMIT 1;
SELECT 'the index of {table} has other rows than it' FROM {table} FORCE INDEX (balance)
  HAVING COUNT(balance) <> (SELECT COUNT(*) FROM {table} FORCE INDEX (PRIMARY));
"""
    for place, table in enumerate(TABLES[:2], start=1)
)


# FSP_SPACE_FLAGS of page 0, and FSP_FLAGS_MASK_ENCRYPTION of it.
FLAGS_OFFSET = 54
ENCRYPTED_FLAG = 1 << 13
# Shorter than the page dumps in InnoDB's error log, which a reader does not need.
MAX_CHARACTERS = 400


class Lost(Exception):
    """An outcome has lost something; the text says what."""


def acknowledged(folder):
    """The number of each client's last transfer that the server acknowledged as committed."""
    numbers = {}
    for path in folder.iterdir():
        if len(content := path.read_bytes()) == 8:
            numbers[int(path.name)] = int(struct.unpack("d", content)[0])
    return numbers


def check_start(instance, options):
    """Start the server: recovery must succeed."""
    try:
        instance.start(options)
    except Failure as failure:
        raise Lost(f"the server does not start: {str(failure)[:MAX_CHARACTERS]}") from None


def check_data(instance, numbers, expected):
    """Check that acknowledged changes are there, and no transaction in part. expected is Ddl.expected()."""
    try:
        with instance.one_client():
            # The tables are small: to start threads would take longer than to read.
            instance.sql("SET SESSION innodb_parallel_read_threads = 1")
            check_transfers(instance, numbers)
            if found := list(ddl.problems(instance, expected)):
                raise Lost("; ".join(found))
        instance.stop()
    except Failure as failure:
        raise Lost(f"the server fails: {str(failure)[-MAX_CHARACTERS:]}") from None


def check_transfers(instance, numbers):
    made = [name for (name,) in instance.sql(f"SHOW TABLES IN {DATABASE} LIKE 'made%'")]
    for table in (*TABLES, *made):
        for _, _, kind, text in instance.sql(f"CHECK TABLE {DATABASE}.{table} EXTENDED"):
            if kind != "status" or text != "OK":
                raise Lost(f"CHECK TABLE {table}: {kind}: {text}")
    if found := instance.sql(STATEMENTS):
        raise Lost("; ".join(row[0] for row in found))
    rows = instance.sql(f"SELECT client, MAX(number) FROM {DATABASE}.journal GROUP BY client")
    last = {int(client): int(number) for client, number in rows}
    for client, number in numbers.items():
        # The next one may have been committed without an answer.
        if last.get(client, 0) not in (number, number + 1):
            raise Lost(f"client {client} was told that {number} is committed, and has {last.get(client, 0)}")
    counts = {name: int(instance.sql(f"SELECT COUNT(*) FROM {DATABASE}.{name}")[0][0]) for name in made}
    for client, number in last.items():
        name = f"made_{client}"
        if number and counts.get(name, counts.get(f"{name}_new")) != MADE_ROWS:
            raise Lost(f"of {name} and {name}_new one has to have {MADE_ROWS} rows: {counts}")


def is_encrypted(path):
    """Whether a tablespace file has the encryption flag in its first page."""
    with open(path, "rb") as file:
        file.seek(FLAGS_OFFSET)
        return bool(int.from_bytes(file.read(4), "big") & ENCRYPTED_FLAG)


def check_pages(instance):
    """Check the checksum of each page of each file. The server is stopped."""
    program = instance.program.companion("innochecksum")
    files = [path for pattern in ("ibdata*", "*.ibd", "undo_*", "*/*.ibd") for path in instance.data.glob(pattern)]
    if len(files) < len(TABLES):
        raise Failure(f"{instance.data} has only {len(files)} files to check")
    for path in files:
        if is_encrypted(path):
            # innochecksum has no keys. CHECK TABLE has read the pages.
            continue
        result = subprocess.run([*DIES_WITH_US, program, path], capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise Lost(f"innochecksum {path.name}: {result.stderr.strip()[-MAX_CHARACTERS:]}")


def check(instance, options, numbers, expected):
    """Raise Lost if anything is lost. numbers and expected are the acknowledged transfers and DDL."""
    check_start(instance, options)
    check_data(instance, numbers, expected)
    check_pages(instance)
