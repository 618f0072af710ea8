"""The Debian packages in fresh roots of Debian 12 and 13: install, start, load, upgrade, remove, purge, and what the
packages of other servers fail at."""

import os
import shutil
import subprocess
import unittest

from spillway.common import BUILD, DIES_WITH_US

from . import roots

STOCK = BUILD / "stock/release"
# A data directory of stock has a table with these rows.
STOCK_SQL = """\
CREATE DATABASE shop;
CREATE TABLE shop.items (id INT PRIMARY KEY, name VARCHAR(20));
INSERT INTO shop.items VALUES (1, 'one'), (2, 'two');
CREATE USER app@localhost IDENTIFIED BY 'secret';
GRANT ALL ON shop.* TO app@localhost;
"""
# As Debian's packages of MySQL do it: data goes with the purge if no server is there.
STOCK_POSTRM = """\
if [ "$1" = purge ] && [ ! -x /usr/sbin/mysqld ]; then
  rm -rf /var/lib/mysql /var/log/mysql
fi"""


class Debian12(unittest.TestCase):
    suite = "bookworm"

    def setUp(self):
        self.server, self.client, self.tarball = roots.make_packages()
        self.root = self.enterContext(roots.fresh(self.suite))
        self.unit = roots.Unit(self.root)

    def install(self, has_systemd=True):
        if has_systemd:
            self.root.stand_in_for_systemd()
        return self.root.install(self.server, self.client)

    def contents(self, name):
        """Names, sizes, times and owners of a folder's files."""
        paths = sorted((self.root.path / name).rglob("*"))
        return [(str(path), path.lstat().st_size, path.lstat().st_mtime, path.lstat().st_uid) for path in paths]

    def test_life(self):
        """Install on an empty machine, load, upgrade, remove, purge."""
        output = self.install()
        self.assertIn("'/var/lib/mysql' is initialised", output)
        self.assertTrue(self.root.requested("start"))
        self.assertNotIn("not found", self.root.run("ldd", "/usr/sbin/mysqld"))
        for name in ("balanced.cnf", "grafana-flushing-and-stalls.json", "prometheus-alerts.yml"):
            self.assertTrue((self.root.path / "usr/lib/spillway/share/spillway" / name).exists(), name)
        self.assertIn("Spillway", self.root.run("mysqld", "--version"))
        with self.unit.running():
            self.assertIn("Spillway", self.root.sql("SELECT @@version_comment, CURRENT_USER()"))
            self.assertEqual(self.root.sql("SELECT @@plugin_dir").strip(), "/usr/lib/spillway/lib/plugin/")
            self.root.sql("CREATE DATABASE kept; CREATE TABLE kept.t (a INT PRIMARY KEY)")
            self.root.sql("INSERT INTO kept.t VALUES (7)")
            self.root.run("mysqlslap", "--user=root", "--auto-generate-sql", "--auto-generate-sql-load-type=mixed",
                          "--concurrency=4", "--number-of-queries=400")  # fmt: skip
            output = self.root.run("mysql", "--user=root", user="mysql", fails=True)
            self.assertIn("Access denied", output)

        self.root.run("dpkg", "--install", f"/packages/{self.server.name}")
        with self.subTest("a stopped server that an upgrade starts"):
            self.assertFalse(self.root.requested("(re)?start"))
        with self.subTest("the statement RESTART"):
            self.assertEqual(self.unit.lines["RestartForceExitStatus"], "16")
            with self.unit.running():
                self.root.sql("RESTART")
                self.unit.wait(16)
        self.root.write("active", "")
        self.root.run("dpkg", "--install", f"/packages/{self.server.name}")
        self.assertTrue(self.root.requested("restart"))

        before = self.contents("var/lib/mysql")
        self.script("prerm", "deconfigure", "in-favour", "other", "1")
        self.assertFalse(self.root.requested("stop"))
        self.root.run("apt-get", "remove", "--yes", "spillway-server")
        self.assertTrue(self.root.requested("stop"))
        with self.subTest("installed again after a removal"):
            (self.root.path / "active").unlink()
            output = self.root.install(self.server, self.client)
            self.assertIn("it was not started", output)
            self.assertFalse(self.root.requested("(re)?start"))
            self.root.run("apt-get", "remove", "--yes", "spillway-server")
        self.assertNotEqual(os.readlink(self.root.path / "etc/alternatives/my.cnf"), "/etc/mysql/spillway.cnf")
        output = self.root.run("apt-get", "purge", "--yes", "spillway-server", "spillway-client")
        self.assertIn("the data in '/var/lib/mysql' and the user 'mysql' stay", output)
        self.assertEqual(self.contents("var/lib/mysql"), before)
        self.root.account("mysql")
        left = self.root.run("find", "/etc", "/usr", "/lib", "-name", "*spillway*")
        self.assertEqual(left, "")

        with self.subTest("installed again"):
            output = self.root.install(self.server, self.client)
            self.assertIn("has the data of a server. Nothing was changed", output)
            self.assertFalse(self.root.requested("(re)?start"))
            with self.unit.running():
                self.assertEqual(self.root.sql("SELECT a FROM kept.t").strip(), "7")

    def install_stock(self):
        """A package with the names and paths of Oracle's, and data that stock's server has made."""
        binary = STOCK / "runtime_output_directory/mysqld"
        if not binary.exists():
            self.skipTest(f"{binary} is not built: make stock")
        mysqld_cnf = "[mysqld]\ndatadir = /var/lib/mysql\ngtid_mode = ON\nenforce_gtid_consistency = ON\nport = 3317\n"
        package = self.root.make_package(
            "mysql-community-server",
            "Version: 9.7.2-1debian12\nProvides: virtual-mysql-server\nDepends: mysql-common\n",
            [("usr/sbin/mysqld", "#!/bin/sh\n", 0o755),
             ("lib/systemd/system/mysql.service", "[Service]\nExecStart=/usr/sbin/mysqld\n", 0o644),
             ("etc/mysql/mysql.conf.d/mysqld.cnf", mysqld_cnf, 0o644)],
            postrm=STOCK_POSTRM)  # fmt: skip
        self.root.install("passwd")
        self.root.run("adduser", "--system", "--group", "--quiet", "--no-create-home", "--home=/nonexistent", "mysql")
        self.root.install(package)
        data = self.root.path / "var/lib/mysql"
        data.mkdir(mode=0o700)
        user, group = self.root.account("mysql")
        os.chown(data, user, group)
        init = self.root.write("stock.sql", STOCK_SQL)
        # The folders above are not open to the user of the root.
        command = [binary, "--no-defaults", f"--datadir={data}", f"--init-file={init}", "--initialize-insecure",
                   "--log-error-verbosity=1", "--user=root"]  # fmt: skip
        result = subprocess.run([*DIES_WITH_US, *command], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        for path in (data, *data.rglob("*")):
            os.chown(path, user, group)
        return package

    def script(self, name, *arguments):
        """Run a script of the package as dpkg does; return its output."""
        return self.root.run(f"/var/lib/dpkg/info/spillway-server.{name}", *arguments)

    def test_settings_elsewhere(self):
        """An option file that no longer applies, or another command of the unit: no second server is made."""
        mysql_cnf = self.root.write("etc/mysql/mysql.cnf", "[mysqld]\ndatadir = /srv/theirs\n")
        output = self.install()
        self.assertIn("'/etc/mysql/mysql.cnf' sets the data directory '/srv/theirs'", output)
        mysql_cnf.unlink()
        with self.subTest("MariaDB"):
            self.root.write("etc/mysql/mariadb.cnf", "[mariadb]\ndatadir = /srv/theirs\n")
            self.assertIn("'/etc/mysql/mariadb.cnf' sets", self.script("postinst", "configure"))
            self.root.write("etc/mysql/mariadb.cnf", "[mariadb]\ndatadir = /var/lib/mysql/\n!includedir /missing\n")
            self.assertIn("'/etc/mysql/mariadb.cnf' cannot be read", self.script("postinst", "configure"))
            (self.root.path / "etc/mysql/mariadb.cnf").unlink()
        with self.subTest("a drop-in of the unit"):
            drop_in = self.root.write("etc/systemd/system/mysql.service.d/override.conf",
                                      "[Service]\nExecStart=\nExecStart=/opt/mysqld --console\n")  # fmt: skip
            self.assertIn("'/opt/mysqld --console'", self.script("postinst", "configure"))
            drop_in.unlink()
        self.assertFalse(self.root.requested("(re)?start"))
        self.assertFalse((self.root.path / "var/lib/mysql").exists())
        with self.subTest("a removal that dpkg aborts"):
            self.script("prerm", "remove")
            self.assertIn("may have been stopped", self.script("postinst", "abort-remove"))
            self.assertEqual(os.readlink(self.root.path / "etc/alternatives/my.cnf"), "/etc/mysql/spillway.cnf")
        with self.subTest("another my.cnf"):
            self.root.run("update-alternatives", "--set", "my.cnf", "/etc/mysql/my.cnf.fallback")
            # A file that mysqld reads is not another one.
            self.root.write("etc/my.cnf", "[mysqld]\ndatadir = /srv/ours\nsocket = /run/mysqld/s.sock\n[client]\n"
                            "socket = /run/mysqld/s.sock\n")  # fmt: skip
            output = self.script("postinst", "configure")
            self.assertIn("'/etc/mysql/my.cnf' is not a link to", output)
            self.assertIn("'/srv/ours' is initialised", output)
            self.assertTrue(self.root.requested("start"))
            with self.unit.running():
                self.assertEqual(self.root.sql("SELECT @@datadir").strip(), "/srv/ours/")
        with self.subTest("no file sets the data directory"):
            self.root.write("etc/my.cnf", "")
            self.assertIn("'/var/lib/mysql' is absent", self.unit.check(fails=True))
        with self.subTest("a folder of conf.d that is missing"):
            self.root.write("etc/my.cnf", "!includedir /missing\n")
            self.assertIn("cannot read its option files", self.unit.check(fails=True))

    def test_upgrade_over_stock(self):
        self.root.stand_in_for_systemd()
        package = self.install_stock()
        before = self.contents("var/lib/mysql")
        output = self.root.install(self.server, self.client)
        self.assertIn("has the data of a server. Nothing was changed", output)
        self.assertEqual(self.contents("var/lib/mysql"), before)
        with self.subTest("a stopped server that an upgrade starts"):
            self.assertFalse(self.root.requested("(re)?start"))
        self.assertIn("notify", self.root.read("lib/systemd/system/mysql.service"))

        with self.subTest("data of one package removed by the purge of another"):
            self.root.run("dpkg", "--purge", "mysql-community-server")
            self.assertEqual(self.contents("var/lib/mysql"), before)
        self.root.write("etc/mysql/mysql.conf.d/mysqld.cnf", "[mysqld]\ngtid_mode = ON\nenforce_gtid_consistency = ON\n"
                        "port = 3317\n")  # fmt: skip
        with self.unit.running():
            self.assertEqual(self.root.sql("SELECT @@port").strip(), "3317")
            self.assertEqual(self.root.sql("SELECT name FROM shop.items ORDER BY id").split(), ["one", "two"])
            self.root.run("mysql", "--user=app", "--password=secret", "--execute=SELECT 1", "shop")

        with self.subTest("back to stock, and a purge of ours"):
            self.root.install(package)
            (self.root.path / "var/lib/systemd/deb-systemd-helper-enabled").mkdir(parents=True, exist_ok=True)
            state = self.root.write("var/lib/systemd/deb-systemd-helper-enabled/mysql.service.dsh-also", "")
            before = self.contents("var/lib/mysql")
            self.root.run("dpkg", "--purge", "spillway-server")
            self.assertEqual(self.contents("var/lib/mysql"), before)
            self.assertTrue(state.exists())
            self.assertTrue((self.root.path / "lib/systemd/system/mysql.service").exists())

    def test_unit_of_the_removed_package_below_usr(self):
        """A stock server's unit can be the same file by another name, as /lib is a link to /usr/lib."""
        # The libraries that the packages depend on stay.
        self.install()
        self.root.run("dpkg", "--purge", "spillway-server", "spillway-client")
        package = self.root.make_package(
            "mysql-server", "Version: 9.7.2\nProvides: virtual-mysql-server\n",
            [("usr/lib/systemd/system/mysql.service", "[Service]\n", 0o644)])  # fmt: skip
        self.root.install(package)
        self.install_by_dpkg()
        self.assertIn("notify", self.root.read("lib/systemd/system/mysql.service"))

    def install_by_dpkg(self):
        """dpkg itself removes the packages that conflict."""
        for path in (self.server, self.client):
            (self.root.path / "packages" / path.name).write_bytes(path.read_bytes())
        self.root.run("dpkg", "--force-confold", "--auto-deconfigure", "-B", "--install",
                      *(f"/packages/{path.name}" for path in (self.client, self.server)))  # fmt: skip

    def test_flag_files(self):
        """A flag file that refuses to install for good. Files of another server stay, and the message says why."""
        self.root.write("etc/mysql/FROZEN", "")
        self.root.write("var/lib/mysql/debian-10.11.flag", "")
        self.root.write("var/lib/mysql/ibdata1", "data of MariaDB")
        before = self.contents("var/lib/mysql")
        output = self.install()
        self.assertIn("no data directory of MySQL 8.0 or newer", output)
        self.assertEqual(self.contents("var/lib/mysql"), before)
        self.assertFalse(self.root.requested("start"))
        self.assertIn("no data directory", self.unit.check(fails=True))
        self.assertIn("no data directory", self.root.run("spillway-datadir", "initialise", fails=True))
        self.root.write("etc/mysql/conf.d/local.cnf", "[mysqld]\ndatadir = /srv/mysql\n")
        self.root.run("spillway-datadir", "initialise")
        with self.unit.running():
            self.assertEqual(self.root.sql("SELECT @@datadir").strip(), "/srv/mysql/")
        self.assertEqual(self.contents("var/lib/mysql"), before)

    def test_option_file_with_gtid_settings(self):
        self.root.write("etc/mysql/conf.d/replica.cnf", "[mysqld]\nserver_id = 7\ngtid_mode = ON\nlog_bin = b\n"
                        "enforce_gtid_consistency = ON\nsuper_read_only = ON\nsql_require_primary_key = ON\n"
                        "plugin_load_add = mysql_clone.so\ninnodb_page_size = 8192\n"
                        "default_time_zone = Europe/Berlin\n")  # fmt: skip
        output = self.install()
        self.assertIn("is initialised", output)
        self.assertIn("'default_time_zone' names a time zone", output)
        self.root.write("etc/mysql/conf.d/zone.cnf", "[mysqld]\ndefault_time_zone = SYSTEM\n")
        with self.unit.running():
            self.assertEqual(self.root.sql("SELECT @@gtid_mode, @@gtid_executed, @@innodb_page_size").split(),
                             ["ON", "8192"])  # fmt: skip
            self.assertEqual(self.root.sql("SELECT plugin FROM mysql.user WHERE user = 'root'").strip(), "auth_socket")

    def test_data_that_is_there_is_not_initialised(self):
        self.install()
        before = self.contents("var/lib/mysql")
        self.assertIn("Nothing was changed", self.root.run("spillway-datadir", "initialise", fails=True))
        self.assertEqual(self.contents("var/lib/mysql"), before)
        with self.subTest("interrupted"):
            self.root.write("var/lib/mysql/.spillway-initialising", "")
            self.assertIn("was interrupted", self.unit.check(fails=True))
            self.assertIn("was interrupted", self.root.run("spillway-datadir", "initialise", fails=True))
        with self.subTest("a volume that is not mounted"):
            self.root.write("etc/mysql/conf.d/local.cnf", "[mysqld]\ndatadir = /srv/empty\n")
            (self.root.path / "srv/empty").mkdir()
            self.assertIn("If it is on a volume of its own, mount it", self.unit.check(fails=True))
        with self.subTest("another owner"):
            self.root.write("srv/empty/mysql.ibd", "")
            self.assertIn("Change the owner", self.unit.check(fails=True))
        with self.subTest("a folder that the user cannot enter"):
            (self.root.path / "srv/empty").chmod(0o700)
            self.assertIn("cannot read the folder '/srv/empty', which belongs to 'root:root'",
                          self.unit.check(fails=True))  # fmt: skip
            (self.root.path / "srv").chmod(0o700)
            self.assertIn("cannot read the folder '/srv'", self.unit.check(fails=True))

    def test_data_of_another_version(self):
        """The first start would convert data of MySQL 8.4, which 8.4 cannot read again."""
        self.install()
        history = self.root.path / "var/lib/mysql/mysql_upgrade_history"
        ours = history.read_text()
        history.write_text(ours.replace('"version":"9.7', '"version":"8.4'))
        said = self.root.run("spillway-datadir", "check", user="mysql", fails=True)
        self.assertIn("has the data of version 8.4", said)
        self.root.run("touch", "/var/lib/mysql/.spillway-convert")
        self.root.run("spillway-datadir", "check", user="mysql")

    def test_keyring(self):
        """A manifest of the server that was here names a keyring, whose settings are in that server's plugin folder."""
        self.install()
        self.root.write("usr/sbin/mysqld.my", '{"components": "file://component_keyring_file"}')
        self.assertIn("'component_keyring_file.cnf' are not in",
                      self.root.run("spillway-datadir", "check", user="mysql", fails=True))  # fmt: skip
        self.root.write("usr/lib/spillway/lib/plugin/component_keyring_file.cnf", "{}")
        self.root.run("spillway-datadir", "check", user="mysql")

    def test_option_file_that_everyone_can_write(self):
        """mysqld ignores it. A new data directory would be at another place than the one that it names."""
        self.install()
        self.root.write("etc/mysql/conf.d/local.cnf", "[mysqld]\ndatadir = /srv/db\n")
        (self.root.path / "etc/mysql/conf.d/local.cnf").chmod(0o666)
        self.assertIn("ignores an option file", self.root.run("spillway-datadir", "check", user="mysql"))
        shutil.rmtree(self.root.path / "var/lib/mysql")
        self.assertIn("ignores an option file", self.root.run("spillway-datadir", "initialise", fails=True))

    def test_option_that_cannot_be_initialised(self):
        """The packages are installed all the same, and the message names the cause."""
        self.root.write("etc/mysql/conf.d/bad.cnf", "[mysqld]\nno_such_variable = 1\n")
        output = self.install()
        self.assertIn("no_such_variable", output)
        self.assertFalse(self.root.requested("start"))
        self.assertIn("install ok installed", self.root.run("dpkg", "--status", "spillway-server"))

    def test_over_mariadb(self):
        """Its packages are replaced, its data stays, and its purge does not touch ours."""
        self.root.install("mariadb-server")
        before = self.contents("var/lib/mysql")
        output = self.install()
        self.assertIn("no data directory of MySQL 8.0 or newer", output)
        self.assertEqual(self.contents("var/lib/mysql"), before)
        self.assertNotIn("ii  mariadb-server", self.root.run("dpkg", "--list", "mariadb-server"))
        self.root.write("etc/mysql/conf.d/local.cnf", "[mysqld]\ndatadir = /srv/mysql\n")
        self.root.run("spillway-datadir", "initialise")
        with self.unit.running():
            self.assertIn("Spillway", self.root.sql("SELECT @@version_comment"))
        self.root.run("apt-get", "purge", "--yes", "mariadb-server")
        self.assertEqual(self.contents("var/lib/mysql"), before)
        with self.unit.running():
            self.assertIn("Spillway", self.root.sql("SELECT @@version_comment"))

    def test_everything_elsewhere(self):
        """A moved data directory below AppArmor; a socket and a PID file elsewhere while the unit waits."""
        profile = self.root.write("etc/apparmor.d/usr.sbin.mysqld", "/usr/sbin/mysqld { /var/lib/mysql/** rwk, }\n")
        self.root.write("etc/mysql/conf.d/local.cnf", "[mysqld]\ndatadir = /srv/my/data\nsocket = /srv/my/s.sock\n"
                        "pid_file = /srv/my/s.pid\n[client]\nsocket = /srv/my/s.sock\n")  # fmt: skip
        (self.root.path / "srv/my").mkdir(mode=0o777)
        (self.root.path / "srv/my").chmod(0o777)
        before = profile.stat().st_mtime_ns
        output = self.install()
        self.assertIn("'/srv/my/data/** rwk,'", output)
        self.assertIn("'/srv/my/data' is initialised", output)
        self.assertEqual(profile.stat().st_mtime_ns, before)
        with self.unit.running():
            self.assertIn("Spillway", self.root.sql("SELECT @@version_comment"))
            self.assertTrue((self.root.path / "srv/my/s.pid").exists())
        with self.subTest("the profile names the folder"):
            self.root.write("etc/apparmor.d/local/usr.sbin.mysqld", "/srv/my/data/** rwk,\n")
            self.assertNotIn("AppArmor", self.unit.check())
        self.assertFalse((self.root.path / "var/lib/mysql").exists())

    def test_other_packages(self):
        """Packages that depend on virtual-mysql-server, and a plugin file that another package owns (libmariadb3)."""
        self.root.install("libmariadb3")
        self.install()
        owner = self.root.run("cat", "/var/lib/dpkg/info/libmariadb3:amd64.list").split()
        ours = self.root.run("dpkg", "--listfiles", "spillway-server", "spillway-client").split()
        shared = [path for path in set(owner) & set(ours) if not (self.root.path / path[1:]).is_dir()]
        self.assertEqual(shared, [])
        dependent = self.root.make_package(
            "dependent", "Version: 1\nDepends: virtual-mysql-server, default-mysql-server | virtual-mysql-server, "
            "mysql-server (>= 9.7), mysql-client (>= 8.0)\n")  # fmt: skip
        self.root.install(dependent, "dbconfig-mysql")
        self.assertIn("install ok installed", self.root.run("dpkg", "--status", "spillway-server"))
        with self.unit.running():
            self.assertIn("Spillway", self.root.sql("SELECT @@version_comment"))
        self.root.run("apt-get", "purge", "--yes", "libmariadb3", "mariadb-common", "dbconfig-mysql")
        with self.unit.running():
            self.assertIn("Spillway", self.root.sql("SELECT @@version_comment"))

    def test_without_systemd(self):
        """An image or a chroot: no data, no server, and no setting of the machine's kernel."""
        self.assertIn("No data directory was made", self.install(has_systemd=False))
        self.assertFalse((self.root.path / "var/lib/mysql").exists())
        self.root.run("spillway-datadir", "initialise")
        with self.unit.running():
            self.assertIn("Spillway", self.root.sql("SELECT @@version_comment"))

    def test_files(self):
        self.install()
        self.assertIn("fs.aio-max-nr = 1048576", self.root.read("usr/lib/sysctl.d/10-spillway.conf"))
        # No file is named, so that those of the administrator also count.
        self.assertIn("sysctl --prefix=/fs/aio-max-nr\n", self.root.read("systemctl.log"))
        self.assertEqual((self.root.path / "var/lib/mysql").stat().st_mode & 0o777, 0o700)
        self.assertEqual(self.root.run("dpkg", "--verify", "spillway-server", "spillway-client"), "")
        for name in ("ibd2sdi", "innochecksum", "mysqldump", "mysqlbinlog", "perror", "mysql_config_editor"):
            self.root.run(name, "--version")

    def test_unit(self):
        """systemd accepts the unit, and it waits for no file."""
        self.install()
        self.assertNotIn("PIDFile", self.unit.lines)
        self.assertEqual(self.unit.lines["User"], "mysql")
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd-analyze is not there")
        unit = self.root.path / "lib/systemd/system/mysql.service"
        result = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True,
                                check=False)  # fmt: skip
        # The programs are in the root.
        found = [line for line in result.stderr.splitlines() if "mysql.service" in line and "/sbin/" not in line]
        self.assertEqual(found, [])

    def test_tarball(self):
        """It runs from any folder, as any user, also after it was moved."""
        (self.root.path / "packages").mkdir()
        (self.root.path / "opt/one").mkdir()
        subprocess.run(["tar", "-C", self.root.path / "opt/one", "-xf", self.tarball, "--strip-components=1"],
                       check=True)  # fmt: skip
        for name in ("LICENSE", "bin/mysqld", "bin/spillway-downgrade-check", "bin/spillway-status", "include/mysql.h",
                     "lib/plugin", "share/spillway/balanced.cnf", "support-files", "docs/licenses", "man"):  # fmt: skip
            self.assertTrue((self.root.path / "opt/one" / name).exists(), name)
        self.assertFalse((self.root.path / "opt/one/mysql-test").exists())
        (self.root.path / "opt/one").rename(self.root.path / "opt/two")
        (self.root.path / "srv/data").mkdir()
        os.chown(self.root.path / "srv/data", 12345, 12345)
        mysqld = ["/opt/two/bin/mysqld", "--no-defaults", "--datadir=/srv/data", "--log-error-verbosity=3"]
        output = self.root.run(*mysqld, "--initialize-insecure", user=12345)
        self.assertNotIn("errmsg.sys", output)
        self.assertIn("lib/plugin/\n", self.root.run(*mysqld, "--verbose", "--help", user=12345))


class Debian13(Debian12):
    suite = "trixie"


if __name__ == "__main__":
    unittest.main()
