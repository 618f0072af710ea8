"""The verification of DDL after a crash; no server."""

import random
import types
import unittest
from pathlib import Path

from powercut import powercut

ddl, Failure = powercut.ddl, powercut.Failure


class Server:
    """Answers like a server whose tables are as prepared. wrong has other answers, by part of a statement."""

    data = Path("/nowhere")

    def __init__(self, indexes=(), **wrong):
        self.indexes = indexes
        self.wrong = wrong

    def sql(self, text):
        for part, answer in self.wrong.items():
            if part in text.replace(" ", "_"):
                if isinstance(answer, Exception):
                    raise answer
                return answer
        if "statistics" in text:
            return [list(each) for each in self.indexes]
        if ddl.MADE in text or ddl.SOURCE in text:
            raise Failure("ERROR 1146 (42S02) at line 1: Table 'ddl_made' does not exist")
        if text.startswith("CHECK"):
            return [["t", "check", "status", "OK"]]
        if "space_type" in text:
            return [[str(ddl.UNDO_TABLESPACES)]]
        if "FORCE INDEX (PRIMARY)" in text:
            return [[str(ddl.ROWS), str(ddl.CHECKSUM), "0", "0"]]
        return [[str(ddl.ROWS), str(ddl.CHECKSUM)]]

    def value(self, text):
        return self.sql(text)[0][0]


class Problems(unittest.TestCase):
    def setUp(self):
        self.ddl = ddl.Ddl(random.Random(1), ddl.COMPRESSIONS)

    def problems(self, **server):
        return list(ddl.problems(Server(**server), self.ddl.expected()))

    def test_as_prepared(self):
        self.assertEqual(self.problems(), [])

    def test_rows_and_indexes(self):
        self.ddl.state["ddl_plain", "k"] = True
        self.assertRegex("".join(self.problems()), "ddl_plain: whether the index k exists: False")
        plain = [("ddl_plain", "k")]
        self.assertEqual(self.problems(indexes=plain), [])
        wrong = {"ddl_plain_FORCE_INDEX_(k)": [["0", "0"]]}
        self.assertRegex("".join(self.problems(indexes=plain, **wrong)), "index k has 0 rows")
        wrong = {"ddl_zipped_FORCE_INDEX_(PRIMARY)": [["1", "5", "0", "0"]]}
        self.assertRegex("".join(self.problems(indexes=plain, **wrong)), "ddl_zipped has 1 rows")
        wrong = {"CHECK_TABLE_bench.ddl_zipped": [["t", "check", "error", "Corrupt"]]}
        self.assertRegex("".join(self.problems(indexes=plain, **wrong)), "CHECK TABLE ddl_zipped: error: Corrupt")

    def test_the_full_text_index(self):
        self.ddl.state["ddl_plain", "f"] = True
        self.assertRegex("".join(self.problems(indexes=[("ddl_plain", "f")], MATCH=[["0"]])), "full-text index has 0")

    def test_an_interrupted_statement_has_its_effect_or_none(self):
        self.ddl.pending = {("ddl_plain", "k"): True}
        self.assertEqual(self.problems(), [])
        self.assertEqual(self.problems(indexes=[("ddl_plain", "k")]), [])
        self.ddl.acknowledge()
        self.assertNotEqual(self.problems(), [])

    def test_a_table_without_its_tablespace(self):
        gone = {"ddl_imported": Failure("ERROR 1814 (HY000) at line 1: Tablespace has been discarded")}
        self.assertIn("ddl_imported is missing", self.problems(**gone))
        self.ddl.state["ddl_imported", "n"] = ddl.GONE
        self.assertEqual([one for one in self.problems(**gone) if "ddl_imported" in one], [])

    def test_undo_tablespaces(self):
        self.assertIn("1 undo tablespaces of 4 are there", self.problems(space_type=[["1"]]))


class Statements(unittest.TestCase):
    def test_the_cut_follows_a_statement(self):
        cuts = []
        one = ddl.Ddl(random.Random(1), ddl.COMPRESSIONS)
        one.query = lambda text: [["OK"]]
        one.n_until_cut, one.cut = 2, lambda: cuts.append(one.last)
        one.rotate()
        self.assertEqual(cuts, [])
        one.toggle("ddl_plain", "k", "INDEX k (a)")
        self.assertEqual(cuts, ["ALTER TABLE ddl_plain ADD INDEX k (a)"])
        one.toggle("ddl_plain", "k", "INDEX k (a)")
        self.assertEqual(one.expected()["ddl_plain", "k"], {False})
        self.assertEqual(len(cuts), 1)

    def test_without_page_compression(self):
        texts = []
        ddl.prepare(types.SimpleNamespace(sql=texts.append), compression=[])
        self.assertNotIn("COMPRESSION=", texts[0])
        self.assertIn("ENCRYPTION='Y'", texts[0])
