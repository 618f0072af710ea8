"""Fresh roots of Debian 12 and 13 for the tests of packages: debootstrap fills one per release, an overlay each test.

systemd does not run in a root. A stand-in for systemctl records what the packages' scripts request, and Unit starts a
server as the lines of its unit say."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import unittest
from pathlib import Path

import package
from spillway.common import BUILD, DIES_WITH_US, need_space
from spillway.resources import folder, temporary_folder
from tests.guest.guest import mirror, run, with_proc

ROOTS = BUILD / "roots"
MADE = BUILD / "package-test"
# The build that is packed.
SERVER_BUILD = Path(os.environ.get("SPILLWAY_PACKAGE_BUILD") or BUILD / "fork/deploy")
NEEDED_BYTES = 2 << 30
# Installed in each base, so that a test seldom needs the network; those of DOWNLOADED are only in APT's cache.
INSTALLED = ["adduser", "mysql-common", "libedit2", "liblz4-1", "libnuma1", "libssl3", "xz-utils", "zstd"]
DOWNLOADED = ["libmariadb3", "dbconfig-mysql", "mariadb-server", "tzdata"]
SYSTEMCTL = """\
#!/bin/sh
echo "$*" >>/systemctl.log
case "$*" in
  *is-active*) [ -e /active ] ;;
  *is-enabled*) echo enabled ;;
  cat*) cat /lib/systemd/system/mysql.service /etc/systemd/system/mysql.service.d/*.conf 2>/dev/null ;;
esac
"""


def make_packages():
    """The packages of SERVER_BUILD, made once per process and quickly; the server's, the client's and the tarball."""
    if not hasattr(make_packages, "made"):
        if os.geteuid() != 0:
            raise unittest.SkipTest("a root of another Debian needs root")
        if not (SERVER_BUILD / "cmake_install.cmake").exists():
            raise unittest.SkipTest(f"{SERVER_BUILD} is not built: make deploy")
        shutil.rmtree(MADE, ignore_errors=True)
        tarball, server, client = package.make(SERVER_BUILD, MADE, level=0)
        make_packages.made = server, client, tarball
    return make_packages.made


def base(suite):
    """The root of a release, which debootstrap fills the first time."""
    root = ROOTS / suite
    if root.exists():
        return root
    ROOTS.mkdir(parents=True, exist_ok=True)
    need_space(ROOTS, NEEDED_BYTES, f"a root of Debian {suite}")
    partial = root.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    with folder(partial):
        partial.chmod(0o755)
        run("debootstrap", "--variant=minbase", suite, partial, mirror())
        for copied in (Path("/etc/resolv.conf"), *Path("/etc/apt/apt.conf.d").iterdir()):
            shutil.copy(copied, partial / copied.relative_to("/"))
        with with_proc(partial) as chroot:
            environment = {"env": os.environ | {"DEBIAN_FRONTEND": "noninteractive"}}
            run(*chroot, "apt-get", "update")
            install = [*chroot, "apt-get", "install", "--yes", "--no-install-recommends"]
            run(*install, *INSTALLED, **environment)
            run(*install, "--download-only", *DOWNLOADED, **environment)
        partial.rename(root)
    return root


class Root:
    def __init__(self, path):
        self.path = path

    def command(self, *command, user=None):
        """A command in the root, which dies with this process."""
        drop = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--pdeathsig=KILL"] if user else []
        return [*DIES_WITH_US, "chroot", str(self.path), *drop, *map(str, command)]

    def run(self, *command, user=None, text=None, fails=False, **environment):
        """Run a command in the root; return its output with its messages."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
                       "DEBIAN_FRONTEND": "noninteractive"} | environment  # fmt: skip
        result = subprocess.run(self.command(*command, user=user), input=text, stdout=subprocess.PIPE, text=True,
                                stderr=subprocess.STDOUT, env=environment, check=False)  # fmt: skip
        if (result.returncode != 0) != fails:
            raise AssertionError(f"{command} ended with status {result.returncode}:\n{result.stdout}")
        return result.stdout

    def write(self, name, text, mode=0o644):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def read(self, name):
        return (self.path / name).read_text()

    def install(self, *packages):
        """Install packages: files of this machine, or names."""
        names = []
        (self.path / "packages").mkdir(exist_ok=True)
        for each in packages:
            if isinstance(each, Path):
                shutil.copy(each, self.path / "packages")
            names.append(f"/packages/{each.name}" if isinstance(each, Path) else each)
        return self.run("apt-get", "install", "--yes", "--no-install-recommends", "--allow-downgrades",
                        "--option=Dpkg::Options::=--force-confold", *names)  # fmt: skip

    def stand_in_for_systemd(self):
        (self.path / "run/systemd/system").mkdir(parents=True)
        self.write("usr/bin/systemctl", SYSTEMCTL, 0o755)
        self.write("lib/systemd/systemd-sysctl", '#!/bin/sh\necho "sysctl $*" >>/systemctl.log\n', 0o755)

    def requested(self, verb):
        """Whether the scripts have requested this of systemd; forgets what they have requested."""
        log = self.path / "systemctl.log"
        text = log.read_text() if log.exists() else ""
        log.unlink(missing_ok=True)
        return re.search(rf"^(.* )?{verb} mysql\.service$", text, re.MULTILINE) is not None

    def sql(self, statements, *options):
        return self.run("mysql", "--user=root", "--batch", "--skip-column-names", *options, text=statements)

    def account(self, name):
        """User and group of an account in the root."""
        found = re.search(rf"^{name}:[^:]*:(\d+):(\d+):", self.read("etc/passwd"), re.MULTILINE)
        return int(found.group(1)), int(found.group(2))

    def make_package(self, name, control, files=(), **scripts):
        """A small Debian package in the root. files: (path, text, mode)."""
        top = self.path / "packages" / name
        for path, text, mode in files:
            self.write(top / path, text, mode)
        text = f"Package: {name}\nArchitecture: all\nMaintainer: Test <root@localhost>\nDescription: test\n{control}"
        self.write(top / "DEBIAN/control", text)
        if conffiles := [f"/{path}\n" for path, _, _ in files if path.startswith("etc/")]:
            self.write(top / "DEBIAN/conffiles", "".join(conffiles))
        for script, body in scripts.items():
            self.write(top / "DEBIAN" / script, f"#!/bin/sh\nset -e\n{body}\n", 0o755)
        self.run("dpkg-deb", "--root-owner-group", "--build", f"/packages/{name}", f"/packages/{name}.deb")
        return f"/packages/{name}.deb"


class Unit:
    """mysql.service of a root, started and stopped as systemd does it."""

    def __init__(self, root):
        self.root = root
        self.process = None

    @property
    def lines(self):
        text = self.root.read("lib/systemd/system/mysql.service")
        return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))

    def before(self):
        """The folder of RuntimeDirectory."""
        runtime = self.root.path / "run" / self.lines["RuntimeDirectory"]
        runtime.mkdir(exist_ok=True)
        os.chown(runtime, *self.root.account(self.lines["User"]))

    def check(self, fails=False):
        self.before()
        return self.root.run("spillway-datadir", "check", user=self.lines["User"], fails=fails)

    def start(self):
        """Start the server; return when it notifies that it is ready. Fails if it ends before."""
        assert self.lines["Type"] == "notify"
        self.before()
        notify = self.root.path / "run/notify"
        notify.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.bind(str(notify))
            notify.chmod(0o666)
            channel.settimeout(1)
            log = self.root.path / "server.log"
            with open(log, "a") as file:
                command = self.root.command(*self.lines["ExecStart"].split(), user=self.lines["User"])
                # A network of its own: the port can be in use on this machine.
                command = ["unshare", "--net", *command]
                environment = {"NOTIFY_SOCKET": "/run/notify", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
                # This process is the parent, as process 1 is that of a unit.
                name, _, value = self.lines["Environment"].partition("=")
                environment[name] = str(os.getpid()) if value == "1" else value
                self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd="/",
                                                env=environment)  # fmt: skip
            told = ""
            while "READY=1" not in told:
                with contextlib.suppress(TimeoutError):
                    told += channel.recv(4096).decode()
                if self.process.poll() is not None:
                    raise AssertionError(f"the server has ended:\n{log.read_text()[-3000:]}")

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            self.wait(0)

    def wait(self, expected):
        """Wait until the server has ended with this status."""
        if self.process:
            status = self.process.wait()
            self.process = None
            if status != expected:
                raise AssertionError(f"the server ended with {status}")

    @contextlib.contextmanager
    def running(self):
        try:
            self.start()
            yield
        except BaseException:
            if self.process:
                self.process.kill()
                self.process.wait()
            raise
        self.stop()


@contextlib.contextmanager
def fresh(suite):
    """A root that a test can change; it is removed with its mounts."""
    lower = base(suite)
    with temporary_folder(ROOTS) as top:
        top.chmod(0o755)
        for name in ("upper", "work", "root"):
            (top / name).mkdir()
        layers = f"lowerdir={lower},upperdir={top}/upper,workdir={top}/work"
        run("mount", "-t", "overlay", "overlay", "-o", layers, top / "root")
        run("mount", "-t", "proc", "proc", top / "root/proc")
        yield Root(top / "root")
