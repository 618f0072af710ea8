"""The option files in share/spillway: fork and stock start with each, and each setting is in effect."""

import re
import unittest

from spillway.common import REPO

from .scratch import FORK, STOCK, Scratch

PRESETS = sorted((REPO / "share/spillway").glob("*.cnf"))
SETTING = re.compile(r"(\w+)\s*=\s*(\S+)")
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
# scratch.py gives these on its command line: a preset's size can be too large for the machine of the test.
SIZES = ("innodb_buffer_pool_size", "innodb_redo_log_capacity")
# A comment has more words than this. A shorter one can hardly give a reason.
FEWEST_WORDS = 8
# The defaults of what makes commits and pages durable: no preset changes these.
DURABILITY = {
    "innodb_doublewrite": "ON",
    "innodb_flush_log_at_trx_commit": "1",
    "innodb_flush_method": "O_DIRECT",
    "sync_binlog": "1",
}


def settings(preset):
    """The settings of a preset, as (name, value, comment): the comment above it without an empty line, and in its
    line."""
    found, comment = [], []
    for line in preset.read_text().splitlines():
        text, _, remark = (part.strip() for part in line.partition("#"))
        if text in ("", "[mysqld]"):
            comment = [*comment, remark] if remark else []
        else:
            name, value = SETTING.fullmatch(text).groups()
            found.append((name, value, " ".join([*comment, remark])))
            comment = []
    return found


def in_bytes(value):
    """A value as SHOW VARIABLES shows it: without a unit."""
    number, unit = re.fullmatch(r"(\d*)([KMGT]?).*", value).groups()
    return str(int(number) * UNITS[unit]) if number and unit else value


class PresetScratch(Scratch):
    """A server that reads a preset. None: no option file."""

    preset = None

    def options(self, mysqld):
        program, no_defaults, *others = super().options(mysqld)
        # Other tests can have all of fs.aio-max-nr in use, and a server then has an error or warnings of its own.
        others.append("--innodb-use-native-aio=OFF")
        return [program, f"--defaults-file={self.preset}" if self.preset else no_defaults, *others]

    def variables(self):
        return dict(line.split("\t") for line in self.sql("SHOW GLOBAL VARIABLES").splitlines() if "\t" in line)

    def complaints(self):
        """The warnings and errors in the error log, without the time."""
        lines = self.log.read_text().splitlines()
        return {line.split(" ", 1)[1] for line in lines if "[Warning]" in line or "[ERROR]" in line}


class Presets(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(PresetScratch())
        self.server.initialise(STOCK)

    def run_server(self, mysqld, preset):
        """Start and stop a server. Returns its variables, and its complaints."""
        self.server.log.unlink(missing_ok=True)
        self.server.preset = preset
        self.server.start(mysqld)
        variables = self.server.variables()
        self.assertEqual(self.server.end(), 0)
        return variables, self.server.complaints()

    def test_fork(self):
        """Each setting has the value of the file, and the error log has only what it has without the preset."""
        _, usual = self.run_server(FORK, None)
        for preset in PRESETS:
            with self.subTest(preset.name):
                variables, complaints = self.run_server(FORK, preset)
                self.assertEqual(complaints - usual, set())
                wanted = {name.removeprefix("loose_"): in_bytes(value) for name, value, _ in settings(preset)}
                actual = {name: variables.get(name) for name in wanted}
                self.assertEqual(actual, wanted | {name: actual[name] for name in SIZES})
                self.assertEqual({name: variables[name] for name in DURABILITY}, DURABILITY)

    def test_stock(self):
        """Stock warns of each setting with loose_, and of nothing else."""
        _, usual = self.run_server(STOCK, None)
        for preset in PRESETS:
            with self.subTest(preset.name):
                _, complaints = self.run_server(STOCK, preset)
                found = re.findall(r"unknown variable '(\w+)=", "\n".join(complaints - usual))
                self.assertEqual(len(complaints - usual), len(found), complaints - usual)
                loose = [name for name, _, _ in settings(preset) if name.startswith("loose_")]
                self.assertEqual(sorted(found), sorted(loose))


class Text(unittest.TestCase):
    def test_reasons(self):
        """Each setting has a comment, and the pages that comments name are there."""
        self.assertTrue(PRESETS)
        for preset in PRESETS:
            with self.subTest(preset.name):
                self.assertTrue(settings(preset))
                for name, _, comment in settings(preset):
                    self.assertGreater(len(comment.split()), FEWEST_WORDS, name)
                for page in re.findall(r"[\w/-]+\.md", preset.read_text()):
                    self.assertTrue((REPO / page).is_file(), page)

    def test_sizes(self):
        """The sizes, which test_fork replaces, have a valid form, and a marker that they have to be adapted."""
        for preset in PRESETS:
            found = {name: (value, comment) for name, value, comment in settings(preset)}
            for name in SIZES:
                with self.subTest(preset.name, variable=name):
                    self.assertRegex(found[name][0], r"^\d+[MG]$")
                    self.assertIn("ADAPT: ", found[name][1])

    def test_guide(self):
        """The guide has a row for each preset, and names all of its settings."""
        guide = (REPO / "docs/guide/presets.md").read_text()
        for preset in PRESETS:
            with self.subTest(preset.name):
                row = re.search(rf"^\| `{re.escape(preset.name)}` \|.*$", guide, re.MULTILINE)
                self.assertTrue(row)
                for name, _, _ in settings(preset):
                    self.assertIn(f"`{name.removeprefix('loose_')}`", guide)


if __name__ == "__main__":
    unittest.main()
