"""spillway-downgrade-check: what it finds, its exit status, and that stock uses the data directory after its steps."""

import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

from .scratch import CHECK, CLEAN, FORK, INCOMPLETE, MARKER, START_SECONDS, STEPS, STOCK, ScratchWithFile, wait_until

PLUGINS, STOCK_PLUGINS = (mysqld.parents[1] / "plugin_output_directory" for mysqld in (FORK, STOCK))
NOBODY = 65534
FILL = "CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY); INSERT INTO d.t VALUES (1), (2), (3);"
# A folder with this name cannot be cleared like a doublewrite file.
NOT_A_DOUBLEWRITE_FILE = "#ib_16384_other.dblwr"


def variables(text):
    return re.findall(r"^  (innodb_\w+)$", text.partition('\nvariables="')[2].partition('\n"')[0], re.MULTILINE)


def accepts(mysqld, *options):
    """Whether a server starts with these options, as far as it says so without a data directory."""
    command = [mysqld, "--no-defaults", "--user=root", "--validate-config", *options]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


class Refused(unittest.TestCase):
    def test_stock_refuses(self):
        """Stock refuses what the command says that it refuses, and the fork does not."""
        for name in variables(CHECK.read_text()):
            with self.subTest(name=name):
                self.assertTrue(accepts(FORK, f"--skip-{name}") or accepts(FORK, f"--{name}=1"))
                self.assertFalse(accepts(STOCK, f"--skip-{name}") or accepts(STOCK, f"--{name}=1"))
                self.assertTrue(accepts(STOCK, f"--loose-{name}=1"))
        for value in "ALL_O_DIRECT", "all_o", "6":
            with self.subTest(value=value):
                self.assertTrue(accepts(FORK, f"--innodb-flush-method={value}"))
                self.assertFalse(accepts(STOCK, f"--innodb-flush-method={value}"))


class DowngradeCheck(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(ScratchWithFile())
        self.server.initialise(FORK)

    def start(self, *options, mysqld=FORK, **how):
        self.server.start(mysqld, *options, **how)

    def check(self, status, *options, **how):
        """Run the command, and check its exit status. Returns what it has printed."""
        result = self.server.downgrade_check(*options, **how)
        said = result.stdout + result.stderr
        self.assertEqual(result.returncode, status, said)
        self.assertEqual(result.stderr != "", status == INCOMPLETE, said)
        self.assertEqual("Do this first:" in said, status == STEPS, said)
        return said

    def refused(self, *options):
        self.server.launch(STOCK, *options)
        self.assertEqual(self.server.process.wait(START_SECONDS), 1)

    def go_back(self, *options):
        """The steps after the last one: stop, start stock with the same option files, read."""
        self.assertEqual(self.server.end(), 0)
        self.assertIn("Shutdown complete", self.server.log.read_text())
        self.assertFalse((self.server.data / MARKER).exists())
        subprocess.run([STOCK, *self.server.defaults, "--user=root", "--validate-config"], check=True)
        self.start(*options, mysqld=STOCK)
        self.assertEqual(self.server.sql("SELECT SUM(a) FROM d.t"), "6")

    def test_list_of_variables(self):
        """The list in the command is the difference between the variables of fork and stock."""
        names = {}
        for mysqld in FORK, STOCK:
            self.start(mysqld=mysqld)
            rows = self.server.sql("SHOW GLOBAL VARIABLES").splitlines()
            names[mysqld] = {row.split("\t")[0] for row in rows}
            self.server.end()
        self.assertEqual(set(variables(CHECK.read_text())), names[FORK] - names[STOCK])
        self.assertEqual(names[STOCK] - names[FORK], set())

    def test_nothing_to_do(self):
        self.server.file.write_text("[mysqld]\nloose_innodb_ahead_flushing = ON\nloose_innodb_doublewrite_fsync\n"
                                    "loose-innodb-use-atomic-writes = AUTO\n")  # fmt: skip
        self.start()
        self.server.sql(FILL + """SET GLOBAL innodb_ahead_flushing_age_pct = 50;
            SET PERSIST innodb_extend_ahead_pct = 10;
            CREATE VIEW d.v AS SELECT * FROM information_schema.innodb_atomic_write_files""")
        said = self.check(CLEAN)
        for expected in (
            f"{self.server.file}:2: 'loose_innodb_ahead_flushing=ON'. Stock ignores the variable, with a warning",
            "mysqld-auto.cnf: 'innodb_extend_ahead_pct'. Stock ignores the variable, with a warning",
            "'innodb_ahead_flushing_age_pct' is 50.000000 by SET GLOBAL",
            "Ahead flushing is on",
            "Atomic writes are AUTO",
            "innodb_doublewrite_fsync is ON",
            "the view d.v uses something of Spillway's",
        ):
            self.assertIn(expected, said)
        self.go_back()
        log = self.server.log.read_text()
        for warning in "'loose_innodb_ahead_flushing=ON'", "Currently unknown variable 'innodb_extend_ahead_pct'":
            self.assertIn(warning, log)
        self.assertIn("ERROR 1109", self.server.client("SELECT * FROM d.v").stderr)

    def test_settings(self):
        """Settings that stock refuses, in each place that a server reads. The steps are followed as printed."""
        other = self.server.path / "conf.d/other.cnf"
        other.parent.mkdir()
        self.server.file.write_text(f"[mysqld]\ninnodb_ahead_flushing=ON\n!includedir {other.parent}\n"
                                    "[client]\nloose_innodb_use_fallocate=ON\n")  # fmt: skip
        other.write_text(f"[server]\n# ours\n  skip-innodb-use-fallocate\ninnodb_flush_method = 'All_O_Direct'\n"
                         f"[mysqld-9.7]\nplugin_dir = {PLUGINS}\n")  # fmt: skip
        self.start("--innodb-extend-ahead-pct=20", "--loose-innodb-flush-method=6")
        self.server.sql(FILL + "SET PERSIST_ONLY innodb_flush_method = ALL_O_DIRECT;"
                        "SET GLOBAL innodb_fast_shutdown = 2")  # fmt: skip
        said = self.check(STEPS)
        for expected in (
            f"{self.server.file}:2: 'innodb_ahead_flushing=ON'. Stock does not know the variable",
            f"{other}:3: 'skip-innodb-use-fallocate'. Stock does not know the variable",
            f"{other}:4: 'innodb_flush_method=All_O_Direct'. Stock does not know the value",
            f"{other}:6: 'plugin_dir={PLUGINS}'. Stock would use files of this build",
            "the command that started the server: '--innodb-extend-ahead-pct=20'. Stock does not know the variable",
            "the command that started the server: '--loose-innodb-flush-method=6'. Stock does not know the value",
            "RESET PERSIST innodb_flush_method;",
            "SET GLOBAL innodb_fast_shutdown = 1;",
        ):
            self.assertIn(expected, said)
        self.assertIn("8. ", said)
        self.assertNotIn("\n 9. ", said)

        # Stock refuses each alone: the option file, the command line, and the persisted value.
        self.assertEqual(self.server.end(), 0)
        persisted = self.server.data / "mysqld-auto.cnf"
        kept = persisted.rename(self.server.path / "kept")
        self.refused()
        with_settings = self.server.file.rename(self.server.path / "with-settings")
        self.server.file.write_text("[mysqld]\n")
        self.refused("--loose-innodb-flush-method=ALL_O_DIRECT")
        kept.rename(persisted)
        self.refused()
        with_settings.rename(self.server.file)

        self.start()
        for statement in re.findall(r"Execute: (.*;)$", said, re.MULTILINE):
            self.server.sql(statement)
        for file, line in reversed(re.findall(r"^ *\d+\. (/\S+):(\d+): ", said, re.MULTILINE)):
            lines = Path(file).read_text().splitlines()
            del lines[int(line) - 1]
            Path(file).write_text("\n".join(lines) + "\n")
        self.check(CLEAN)
        self.go_back()

    def test_files_of_home(self):
        """Without --defaults-file a server reads the file in the home that its environment names."""
        (self.server.path / ".my.cnf").write_text("[mysqld]\ninnodb_extend_ahead_pct = 7\n")
        self.server.defaults = []
        self.start(environment={"HOME": str(self.server.path)})
        self.assertIn(f"{self.server.path}/.my.cnf:2: 'innodb_extend_ahead_pct=7'", self.check(STEPS))

    def test_plugins(self):
        self.server.file.write_text(f"[mysqld]\nloose_plugin_dir = {self.server.path}/plugins\n")
        shutil.copytree(PLUGINS, self.server.path / "plugins")
        self.start()
        self.server.sql(FILL + "INSTALL PLUGIN clone SONAME 'mysql_clone.so';"
                        "INSTALL COMPONENT 'file://component_test_sys_var_service'")  # fmt: skip
        said = self.check(STEPS)
        self.assertIn("has loaded 'clone' from 'mysql_clone.so'. Stock needs its own build", said)
        self.assertIn("'component_test_sys_var_service.so'", said)
        empty = self.server.path / "empty"
        empty.mkdir()
        self.assertIn(f"which is not in '{empty}'", self.check(STEPS, f"--stock-plugin-dir={empty}"))
        self.check(CLEAN, f"--stock-plugin-dir={STOCK_PLUGINS}")
        self.server.file.write_text("[mysqld]\n")
        self.go_back(f"--plugin-dir={STOCK_PLUGINS}")
        self.assertEqual(self.server.sql("SELECT plugin_status FROM information_schema.plugins "
                                         "WHERE plugin_name = 'clone'"), "ACTIVE")  # fmt: skip

    def test_keyring(self):
        """A keyring's manifest is beside mysqld. Stock cannot read encrypted tables without it."""
        names = "fork/bin", "stock/bin", "plugins", "stock_plugins"
        fork, stock, plugins, stock_plugins = (self.server.path / name for name in names)
        copies = (FORK, fork, PLUGINS, plugins), (STOCK, stock, STOCK_PLUGINS, stock_plugins)
        for mysqld, folder, source, target in copies:
            folder.mkdir(parents=True)
            shutil.copy(mysqld, folder)
            shutil.copytree(source, target)
        (fork / "mysqld.my").write_text('{"components": "file://component_keyring_file"}')
        settings = plugins / "component_keyring_file.cnf"
        settings.write_text(f'{{"path": "{self.server.path}/keys", "read_only": false}}')
        self.start(f"--plugin-dir={plugins}", mysqld=fork / "mysqld")
        self.server.sql(FILL + "ALTER TABLE d.t ENCRYPTION = 'Y'")
        self.assertIn("The server uses the keyring 'component_keyring_file'.", self.check(STEPS))
        shutil.copy(settings, stock_plugins)
        self.assertIn("Check that the manifest is, too.", self.check(CLEAN, f"--stock-plugin-dir={stock_plugins}"))
        self.assertEqual(self.server.end(), 0)
        self.start(f"--plugin-dir={stock_plugins}", mysqld=stock / "mysqld")
        self.assertIn("ERROR", self.server.client("SELECT * FROM d.t").stderr)
        self.server.end()
        shutil.copy(fork / "mysqld.my", stock)
        self.start(f"--plugin-dir={stock_plugins}", mysqld=stock / "mysqld")
        self.assertEqual(self.server.sql("SELECT SUM(a) FROM d.t"), "6")

    def test_files_that_are_not_synced(self):
        """Space without zeros, and O_DIRECT_NO_FSYNC: a power cut can lose rows, with stock more of them."""
        self.server.file.write_text("[mysqld]\ninnodb_flush_method = O_DIRECT_NO_FSYNC\n"
                                    "innodb_extend_and_initialize = OFF\n")  # fmt: skip
        self.start()
        self.assertIn("innodb_flush_method is O_DIRECT_NO_FSYNC, and innodb_extend_and", self.check(STEPS))
        self.server.sql("SET GLOBAL innodb_extend_and_initialize = ON")
        self.assertIn("If files were ever extended", self.check(CLEAN))

    def test_option_file_with_an_error(self):
        """The server has started before the error was made. The settings below it count, and cannot be read."""
        self.server.file.write_text("[mysqld]\ninnodb_ahead_flushing = ON\n")
        self.start()
        self.server.file.write_text("no_group\n[mysqld]\ninnodb_ahead_flushing = ON\n")
        said = self.check(INCOMPLETE)
        self.assertIn("the server's option files cannot be read", said)
        self.assertIn("without preceding group", said)

    def test_running_ddl(self):
        self.start()
        self.server.sql(FILL)
        self.check(CLEAN)
        with self.server.session() as holder, self.server.session() as waiter:
            holder.stdin.write("BEGIN; SELECT * FROM d.t; SELECT SLEEP(0);\n")
            holder.stdin.flush()
            for _ in range(4):
                holder.stdout.readline()
            waiter.stdin.write("/* a comment */ ALTER TABLE d.t ADD b INT;\n")
            waiter.stdin.flush()
            waiting = "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE '%metadata lock'"
            wait_until(lambda: self.server.sql(waiting) == "1")
            self.assertRegex(self.check(STEPS), r"Session \d+ executes: .*ALTER TABLE d\.t ADD b INT\. Wait")
            holder.stdin.close()
            waiter.stdin.close()
        self.check(CLEAN)

    def test_recovery_and_read_only(self):
        for option, finding in ("--innodb-force-recovery=1", "innodb_force_recovery is 1"), ("--innodb-read-only",) * 2:
            with self.subTest(option=option):
                self.start(option)
                self.assertIn(finding.lstrip("-").replace("-", "_"), self.check(STEPS))
                self.server.end()

    def test_doublewrite_file_that_cannot_be_cleared(self):
        self.start()
        self.server.sql(FILL)
        self.assertEqual(self.server.end(), 0)
        (self.server.data / NOT_A_DOUBLEWRITE_FILE).mkdir()
        (self.server.data / MARKER).touch()
        self.start()
        self.assertIn("a doublewrite file could not be cleared", self.check(STEPS))
        self.assertEqual(self.server.end(), 0)
        self.assertTrue((self.server.data / MARKER).exists())
        (self.server.data / NOT_A_DOUBLEWRITE_FILE).rmdir()
        self.start()
        self.check(CLEAN)
        self.go_back()

    def test_installed(self):
        """The command uses the programs beside it. It says so if there is none."""
        installed = self.server.path / "bin"
        installed.mkdir()
        shutil.copy(CHECK, installed)
        program = installed / CHECK.name
        self.start()
        command = [program, "--no-defaults", f"--socket={self.server.path}/s", "--user=root"]
        for name in "mysql", "my_print_defaults":
            if not shutil.which(name):
                result = subprocess.run(command, capture_output=True, text=True, check=False)
                self.assertEqual(result.returncode, INCOMPLETE)
                self.assertIn(f"the program '{name}' is neither beside this script", result.stderr)
            (installed / name).symlink_to(FORK.parent / name)
        self.check(CLEAN, program=program, folders=())

    def test_incomplete(self):
        self.assertIn("Can't connect", self.check(INCOMPLETE))
        self.start()
        self.server.sql("CREATE USER limited, other; GRANT SELECT ON *.* TO limited; GRANT PROCESS ON *.* TO other")
        self.assertIn("PROCESS privilege", self.check(INCOMPLETE, user="limited"))
        self.assertIn("denied", self.check(INCOMPLETE, user="other"))
        self.assertIn("another format", self.check(INCOMPLETE, "--vertical"))
        self.assertIn("unknown option", self.check(INCOMPLETE, "--no-such-option"))
        self.assertIn("is not a folder", self.check(INCOMPLETE, "--stock-plugin-dir=/no/such"))
        self.assertIn("is not there", self.check(INCOMPLETE, "--server-defaults-file=/no/such"))
        pid = self.server.path / "pid"
        pid.rename(self.server.path / "elsewhere")
        self.assertIn("the command line of the server cannot be read", self.check(INCOMPLETE))
        self.assertIn("check its options yourself", self.check(CLEAN, f"--server-defaults-file={self.server.file}"))
        (self.server.path / "elsewhere").rename(pid)
        self.server.end()
        self.start(mysqld=STOCK)
        self.assertIn("not Spillway", self.check(INCOMPLETE))

    def test_options_in_other_forms(self):
        """A value that is an argument of its own, and InnoDB's prefix plugin_."""
        self.server.file.write_text("[mysqld]\nplugin_innodb_ahead_flushing = ON\n")
        self.start("--innodb-flush-method", "ALL_O_DIRECT")
        said = self.check(STEPS)
        self.assertIn("'--innodb-flush-method=ALL_O_DIRECT'. Stock does not know the value", said)
        self.assertIn("'plugin_innodb_ahead_flushing=ON'. Stock does not know the variable", said)

    def test_files_of_another_user(self):
        """The server's user names the home folder, includes files and writes the pid file; root may run the command."""
        made = self.server.path / "made"
        self.server.file.write_text(f"[mysqld]\n!include {self.server.file}\n")
        self.server.defaults = [f"--defaults-extra-file={self.server.file}"]
        self.start(environment={"HOME": f"|;e touch {made} #"})
        self.check(CLEAN)
        self.assertFalse(made.exists())
        (self.server.path / "pid").write_text(f"../{self.server.path}")
        self.assertIn("the command line of the server cannot be read", self.check(INCOMPLETE))

    @unittest.skipUnless(os.geteuid() == 0, "needs root: another user reads the files")
    def test_unreadable_option_file(self):
        self.start()
        self.server.path.chmod(0o755)
        self.server.file.chmod(0o600)
        nobody = ["setpriv", f"--reuid={NOBODY}", "--clear-groups"]
        self.assertIn(f"'{self.server.file}' cannot be read", self.check(INCOMPLETE, wrapper=nobody))
        self.check(CLEAN)


if __name__ == "__main__":
    unittest.main()
