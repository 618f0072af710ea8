"""How programs read the text of SHOW ENGINE INNODB STATUS.

Each function imitates the way in which one program reads: how it finds a line, and which numbers of it it takes. The
names are ours. A result is {what the program looks for: the values, one list for each line that it took for it}; the
program itself may use only the first or the last of them. A text on which the program stops raises Unreadable.

A template is a line of upstream's, with # for each number and * for any text.
"""

import re
from typing import NamedTuple


class Unreadable(Exception):
    """The program ends with an error, or drops everything that it has read."""


def pattern(template):
    """A regular expression for the line. The programs differ in how many spaces they expect: here any number."""
    words = (re.escape(word).replace(r"\#", r"(\d+(?:\.\d+)?)").replace(r"\*", ".+") for word in template.split(" "))
    return " +".join(words)


def add(found, what, values):
    found.setdefault(what, []).append(list(values))


# Programs that test each line for a text. They take the numbers by their position among the words of the line.


class Rule(NamedTuple):
    needle: str
    template: str
    # Anywhere in the line. Otherwise the line has to begin with the needle.
    inside: bool = False


def number_of(word):
    """The first digits of the word: these programs read an unexpected word as 0."""
    digits = re.search(r"\d+", word)
    return int(digits[0]) if digits else 0


def strict_number_of(word):
    """The program stops at a word that is not a number."""
    try:
        return float(word.strip(",;[]"))
    except ValueError:
        raise Unreadable(f"{word!r} instead of a number") from None


def by_lines(text, rules, number=number_of):
    """A line is taken by the first of the rules that fits."""
    found = {}
    for untrimmed in text.split("\n"):
        line = untrimmed.strip()
        words = line.split()
        for rule in rules:
            if rule.needle in line if rule.inside else line.startswith(rule.needle):
                positions = [i for i, word in enumerate(rule.template.split()) if "#" in word]
                add(found, rule.needle, [number(words[i]) for i in positions if i < len(words)])
                break
    return found


LOCKS = (
    Rule("Trx id counter", "Trx id counter #"),
    Rule("History list length", "History list length #"),
    Rule("---TRANSACTION", "---TRANSACTION"),
    Rule("read views open inside InnoDB", "# read views open inside InnoDB", inside=True),
    Rule("mysql tables in use", "mysql tables in use #, locked #"),
    Rule("LOCK WAIT", "LOCK WAIT # lock struct(s)"),
    Rule("lock struct(s)", "# lock struct(s)", inside=True),
)
SPINS = (
    Rule("Mutex spin waits", "Mutex spin waits #, rounds #, OS waits #"),
    Rule("RW-shared spins", "RW-shared spins #, rounds #, OS waits #"),
    Rule("RW-excl spins", "RW-excl spins #, rounds #, OS waits #"),
    Rule("seconds the semaphore:", "--Thread id has waited at file line n for #", inside=True),
)
FILES = (
    Rule(" OS file reads, ", "# OS file reads, # OS file writes, # OS fsyncs", inside=True),
    Rule("Pending flushes (fsync)", "Pending flushes (fsync) log: #; buffer pool: #"),
)
CHANGE_BUFFER = (
    Rule("Ibuf: size ", "Ibuf: size #, free list len #, seg size #, # merges"),
    Rule(", delete mark ", "insert #, delete mark #, delete #", inside=True),
    Rule(" merged recs, ", "# inserts, # merged recs, # merges", inside=True),
    Rule("Hash table size ", "Hash table size #"),
)
LOG = (
    Rule(" log i/o's done, ", "# log i/o's done,", inside=True),
    Rule(" pending log writes, ", "# pending log writes, # pending chkp writes", inside=True),
    Rule("Log sequence number", "Log sequence number #"),
    Rule("Log flushed up to", "Log flushed up to #"),
    Rule("Last checkpoint at", "Last checkpoint at #"),
)
MEMORY = (
    Rule("Total memory allocated", "Total memory allocated #"),
    Rule("Adaptive hash index ", "Adaptive hash index #"),
    Rule("Page hash    ", "Page hash #"),
    Rule("Dictionary cache    ", "Dictionary cache #"),
    Rule("File system    ", "File system #"),
    Rule("Lock system    ", "Lock system #"),
    Rule("Recovery system    ", "Recovery system #"),
    Rule("Threads    ", "Threads #"),
)
POOL = (
    Rule("Buffer pool size ", "Buffer pool size #"),
    Rule("Free buffers", "Free buffers #"),
    Rule("Database pages", "Database pages #"),
    Rule("Modified db pages", "Modified db pages #"),
    Rule("Pages read ahead", "Pages read ahead"),
    Rule("Pages read", "Pages read #, created #, written #"),
)
ROWS = (
    Rule("Number of rows inserted", "Number of rows inserted #, updated #, deleted #, read #"),
    Rule(" queries inside InnoDB, ", "# queries inside InnoDB, # queries in queue", inside=True),
)


def cacti(text):
    """Percona Monitoring Plugins: the PHP script of the Cacti templates, which their Zabbix templates run, too. It
    trims each line and goes through a chain of tests. It does not know sections."""
    aio = (
        Rule("Pending normal aio reads:", "Pending normal aio reads: #, aio writes: #"),
        Rule("ibuf aio reads", "ibuf aio reads: #, log i/o's: #, sync i/o's: #"),
        Rule("Purge done for trx", "Purge done for trx's n:o < # undo n:o < #"),
        Rule("------- TRX HAS BEEN", "------- TRX HAS BEEN WAITING #"),
    )
    return by_lines(text, SPINS + LOCKS + FILES + aio + CHANGE_BUFFER + LOG + MEMORY + POOL + ROWS)


def datadog(text):
    """Datadog's mysql check: a chain like Cacti's. An unexpected word ends the collection of all metrics. It reads the
    buffer pool above the first line of an instance only."""
    whole_pool, instance, _ = text.partition("---BUFFER POOL")
    rest = text if instance else ""
    rules = SPINS + LOCKS[1:] + FILES + CHANGE_BUFFER + LOG + MEMORY
    found = by_lines(whole_pool if instance else text, (*rules, *POOL, *ROWS), strict_number_of)
    for what, values in by_lines(rest, ROWS, strict_number_of).items():
        found[what] = values
    for needle in ("Log sequence number", "Last checkpoint at"):
        if needle not in found:
            raise Unreadable(f"no line {needle}: the check cannot compute the checkpoint age")
    return found


def mackerel(text):
    """Mackerel's plugin mysql: a chain like Cacti's, without the buffer pool and the rows."""
    more = (
        Rule("Purge done for trx", "Purge done for trx's n:o < # undo n:o < #"),
        Rule("------- TRX HAS BEEN", "------- TRX HAS BEEN WAITING #"),
        Rule("ibuf aio reads", "ibuf aio reads: #, log i/o's: #, sync i/o's: #"),
        Rule("Total large memory allocated", "Total large memory allocated #"),
    )
    return by_lines(text, SPINS + LOCKS + FILES + more + CHANGE_BUFFER + LOG + MEMORY)


def collectd_python(text):
    """collectd-python-mysql: all its tests are for a text anywhere in the line. It stops at the line "ibuf aio reads:"
    of MySQL 8.0 and later, stock or fork; the imitation goes on."""
    rules = (
        *LOCKS[2:],
        *SPINS[3:],
        *FILES,
        *LOG[:2],
        *MEMORY[2:],
        *ROWS[1:],
        Rule("ibuf aio reads", "ibuf aio reads: #, log i/o's: #, sync i/o's: #"),
        Rule("------- TRX HAS BEEN", "------- TRX HAS BEEN WAITING #"),
    )
    return by_lines(text, [rule._replace(inside=True) for rule in rules])


def pt_mysql_summary(text):
    """Percona Toolkit, pt-mysql-summary: awk and grep, of which each sees all lines and tests for a text anywhere."""
    rules = (
        Rule("Log sequence number", "Log sequence number #"),
        Rule("Last checkpoint at", "Last checkpoint at #"),
        Rule("queries inside", "# queries inside InnoDB, # queries in queue"),
        Rule("History list length", "History list length #"),
        Rule("read views open inside", "# read views open inside InnoDB"),
        Rule("undo log entries", "# lock struct(s), heap size #, # row lock(s), undo log entries #"),
        Rule("Pending normal aio reads", "Pending normal aio reads: #,"),
        Rule("ibuf aio reads", "ibuf aio reads: #, log i/o's: #, sync i/o's: #"),
        Rule("aio writes", "Pending normal aio reads: #, aio writes: #,"),
        Rule("pending preads", "# pending preads, # pending pwrites"),
        Rule("pending pwrites", "# pending preads, # pending pwrites"),
        Rule("pending log writes", "# pending log writes, # pending chkp writes"),
        Rule("Pending reads", "Pending reads #"),
        Rule("Pending writes:", "Pending writes: LRU #, flush list #, single page #"),
        Rule("Pending flushes", "Pending flushes (fsync) log: #; buffer pool: #"),
        Rule("TABLE LOCK table", "TABLE LOCK table"),
        Rule("has waited at", "--Thread has waited at"),
        Rule("reserved it in mode", "has reserved it in mode"),
        Rule("Mutex at", "Mutex at"),
        Rule("lock on", "-lock on"),
    )
    found = {}
    for rule in rules:
        found |= by_lines(text, [rule._replace(inside=True)])
    found["states"] = re.findall(r"^---TRANSACTION[^,]*,(.*?)(?: \d+ sec.*)?$", text, re.M)
    return found


def netdata(text):
    """Netdata's collector mysql: two tests for the begin of a line, which it does not trim."""
    found = {}
    for begin in ("Log sequence number", "Last checkpoint at"):
        for line in text.split("\n"):
            if line.startswith(begin):
                add(found, begin, [line.removeprefix(begin).strip()])
    return found


# Netdata takes a line that begins with one of them, in any case, for a statement.
STATEMENTS = frozenset(
    (
        "ALTER",
        "BEGIN",
        "CALL",
        "COMMIT",
        "CREATE",
        "DELETE",
        "DO",
        "DROP",
        "EXEC",
        "EXECUTE",
        "INSERT",
        "LOCK",
        "MERGE",
        "REPLACE",
        "ROLLBACK",
        "SELECT",
        "SET",
        "SHOW",
        "TRUNCATE",
        "UNLOCK",
        "UPDATE",
        "WITH",
    )
)


def netdata_deadlock(text):
    """Netdata's function deadlock-info: for it the deadlock's section goes on to the end of the text, our lines
    included, and belongs to the last transaction. It shows the first statement, which is one of ours if it has not
    recognized the transaction's (LOAD DATA, a query in parentheses)."""
    _, _, section = text.partition("LATEST DETECTED DEADLOCK")
    found = {}
    for line in section.split("\n"):
        word = re.match(r"[A-Za-z]*\b", line.strip())
        if word and word[0].upper() in STATEMENTS:
            add(found, "statement", [line.strip()])
        for what in (r"thread id\s+(\d+)", r"lock[_ ]mode\s+([\w-]+)"):
            if match := re.search(what, line, re.I):
                add(found, what, match.groups())
    return found


def pt_sift(text):
    """Percona Toolkit, pt-sift: awk like pt-mysql-summary; it adds up all lines with pending I/O. Without the line END
    OF INNODB it calls the text incomplete."""
    if "END OF INNODB" not in text:
        raise Unreadable("incomplete")
    found = {}
    for rule in (
        Rule("Main thread", "Process ID=#, Main thread ID=#"),
        Rule("Pending normal", "Pending normal aio reads: #, aio writes: #"),
        Rule("ibuf aio reads", "ibuf aio reads: #, log i/o's: #, sync i/o's: #"),
        Rule("Pending flushes", "Pending flushes (fsync) log: #; buffer pool: #"),
        Rule("pending preads", "# pending preads, # pending pwrites"),
        Rule("pending log writes", "# pending log writes, # pending chkp writes"),
        Rule("Pending reads", "Pending reads #"),
        Rule("Pending writes", "Pending writes: LRU #, flush list #, single page #"),
        Rule("Log sequence number", "Log sequence number #"),
        Rule("Last checkpoint at", "Last checkpoint at #"),
        Rule("queries inside", "# queries inside InnoDB, # queries in queue"),
        Rule("LOCK WAIT", "LOCK WAIT # lock struct(s)"),
        Rule("has waited at", "--Thread has waited at"),
        Rule("-lock on", "-lock on"),
    ):
        found |= by_lines(text, [rule._replace(inside=True)])
    return found


def nagios(text):
    """Percona Monitoring Plugins, pmp-check-mysql-innodb: below the line TRANSACTIONS it looks for the oldest
    transaction and counts lock waits, to the end of the text."""
    _, heading, rest = text.partition("\nTRANSACTIONS\n")
    found = {"lock waits": rest.count("TRX HAS BEEN WAITING")} if heading else {}
    age = None
    for line in rest.split("\n"):
        if line.startswith("---TRANSACTION"):
            age = re.search(r"(\d+) sec", line)
        elif line.startswith("MySQL thread id") and age:
            add(found, "transaction", [int(age[1]), line.split()[3]])
    return found


# Programs with regular expressions for whole lines.


def mysqld_exporter(text):
    """Prometheus' mysqld_exporter: two expressions that may match anywhere in a line. A metric that comes twice makes
    the scrape fail."""
    found = {}
    for template in ("# queries inside InnoDB, # queries in queue", "# read views open inside InnoDB"):
        for line in text.split("\n"):
            match = re.search(pattern(template), line)
            if match and template in found:
                raise Unreadable(f"two lines {template}")
            if match:
                add(found, template, match.groups())
    return found


PATTERNS = {
    "SEMAPHORES": (
        "OS WAIT ARRAY INFO: reservation count #",
        "OS WAIT ARRAY INFO: signal count #",
        "Mutex spin waits #, rounds #, OS waits #",
        "RW-shared spins #, rounds #, OS waits #",
        "RW-excl spins #, rounds #, OS waits #",
    ),
    "TRANSACTIONS": (
        "Trx id counter #",
        "Purge done for trx's n:o < # undo n:o < #",
        "History list length #",
    ),
    "FILE I/O": (
        "Pending normal aio reads: #, aio writes: #,",
        "Pending flushes (fsync) log: #; buffer pool: #",
        "# OS file reads, # OS file writes, # OS fsyncs",
        "# reads/s, # avg bytes/read, # writes/s, # fsyncs/s",
        "# pending preads, # pending pwrites",
    ),
    "INSERT BUFFER AND ADAPTIVE HASH INDEX": (
        "# inserts, # merged recs, # merges",
        " insert #, delete mark #, delete #",
        "Ibuf: size #, free list len #, seg size #, # merges",
        "Hash table size #, node heap has # buffer(s)",
        "# hash searches/s, # non-hash searches/s",
    ),
    "LOG": (
        "Log sequence number #",
        "Log flushed up to #",
        "Pages flushed up to #",
        "Last checkpoint at #",
        "# pending log writes, # pending chkp writes",
        "# log i/o's done, # log i/o's/second",
    ),
    "BUFFER POOL AND MEMORY": (
        "Total large memory allocated #",
        "Dictionary memory allocated #",
        "Buffer pool size #",
        "Free buffers #",
        "Database pages #",
        "Old database pages #",
        "Modified db pages #",
        "Pending reads #",
        "Pending writes: LRU #, flush list #, single page #",
        "Pages made young #, not young #",
        "Pages read #, created #, written #",
        "# reads/s, # creates/s, # writes/s",
    ),
    "ROW OPERATIONS": (
        "# queries inside InnoDB, # queries in queue",
        "# read views open inside InnoDB",
        "# out of # descriptors used",
        "# tablespace extents now reserved for B-tree split operations",
        "Process ID=#, Main thread ID=# , state=*",
        "Number of rows inserted #, updated #, deleted #, read #",
        "# inserts/s, # updates/s, # deletes/s, # reads/s",
    ),
}
SKIPPED = ("BACKGROUND THREAD", "INDIVIDUAL BUFFER POOL INFO", "LATEST DETECTED DEADLOCK", "LATEST FOREIGN KEY ERROR")
END = "END OF INNODB MONITOR OUTPUT"


def is_rule(line):
    return re.fullmatch("-+", line) is not None


def take_line(found, section, line):
    for template in PATTERNS.get(section, ()):
        match = re.fullmatch(pattern(template), line)
        if match:
            add(found, template, match.groups())


def munin(text):
    """Munin 2.0, plugin mysql_: a section ends at a line of dashes, and the line below is the next section's name. It
    dies if it does not know the name. ROW OPERATIONS is among the sections that it skips."""
    lines = text.split("\n")[6:]
    found = {}
    try:
        while (section := lines.pop(0)) != END:
            if section not in SKIPPED and section not in PATTERNS:
                raise Unreadable(f"unknown section {section}")
            if not is_rule(lines.pop(0)):
                raise Unreadable(f"no dashes below {section}")
            while not (is_rule(lines[0]) and not lines[1].startswith("-")):
                take_line(found, "" if section == "ROW OPERATIONS" else section, lines.pop(0))
            lines.pop(0)
    except IndexError:
        raise Unreadable("the text ends within a section") from None
    return found


def munin_new(text):
    """Munin's development branch: dashes, capitals and dashes again begin a section. It skips those that it does not
    know, and reads ROW OPERATIONS."""
    found = {}
    parts = re.split(r"^-+\n(?=[A-Z/ ]+\n[=-]+\n)", text, flags=re.M)
    for part in parts[1:]:
        section, _, *lines = part.split("\n")
        for line in lines:
            take_line(found, section, line)
    return found


def sections_in_rules(text):
    """Sections as innotop and Percona Toolkit split them: a name in capitals between two lines of as many dashes."""
    text = re.sub(r"\n+", "\n", text)
    parts = re.split(r"\n(---+)\n([A-Z /]+)\n\1(?=\n)", text)
    return dict(zip(parts[2::3], parts[3::3], strict=True))


def innotop(text):
    """innotop: the first line of a section that matches as a whole. It drops sections that it does not know. The last
    section ends at the line END OF INNODB MONITOR OUTPUT and the equals signs below it, which have to end the text."""
    found = {}
    if not re.search(rf"\n---+\n{END}\n=+\n?$", text):
        raise Unreadable("the last section is not complete")
    for section, body in sections_in_rules(text).items():
        for template in PATTERNS.get(section, ()):
            match = re.search(f"^{pattern(template)}$", body, re.M)
            if match:
                add(found, template, match.groups())
    threads = re.findall("^I/O thread .*$", sections_in_rules(text)["FILE I/O"], re.M)
    add(found, "threads", threads)
    return found


def pt_deadlock_logger(text):
    """Percona Toolkit, pt-deadlock-logger: the section with the deadlock, cut at lines with three stars."""
    body = sections_in_rules(text).get("LATEST DETECTED DEADLOCK")
    return {"deadlock": re.split(r"^\*{3} ", body, flags=re.M)} if body else {}


def pt_fk_error_logger(text):
    """Percona Toolkit, pt-fk-error-logger: from a time below the heading to the next three dashes."""
    match = re.search(r"LATEST FOREIGN KEY ERROR.+?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(.+?)---", text, re.S)
    return {"error": match.groups()} if match else {}


def diamond(text):
    """Diamond's MySQLCollector: each expression has to match at the begin of a line, whatever the section. The first
    line that matches is taken."""
    found = {}
    for template in (template for templates in PATTERNS.values() for template in templates):
        match = re.search(f"^{pattern(template)}", text, re.M)
        if match:
            add(found, template, match.groups())
    return found


PARSERS = (
    cacti,
    collectd_python,
    datadog,
    diamond,
    innotop,
    mackerel,
    munin,
    munin_new,
    mysqld_exporter,
    nagios,
    netdata,
    netdata_deadlock,
    pt_deadlock_logger,
    pt_fk_error_logger,
    pt_mysql_summary,
    pt_sift,
)
