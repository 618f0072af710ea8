#!/usr/bin/env python3
"""Make the packages of a build: a tarball that runs from any folder, and two Debian packages, in build/package/.

    package.py [--build FOLDER] [--output FOLDER] [tarball] [deb]

Nothing is compiled: FOLDER, by default build/fork/deploy, is a complete build. The packages run on the Debian on which
it was compiled and on newer ones. Libraries that other Debians have in another version are part of the packages. The
variables DEBFULLNAME and DEBEMAIL name the maintainer of the Debian packages.
"""

import argparse
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from spillway.common import BUILD, REPO, Failure, locked, main, need_space, say
from upstream import read_pin

PACKAGING = REPO / "packaging"
# All components of the build except its tests.
COMPONENTS = ("Server", "Client", "SharedLibraries", "Development", "ManPages", "Info", "Readme", "SupportFiles",
              "Server_Scripts")
# The first words of the libraries that the packages contain: Debian 12 and 13 have them in different versions.
BUNDLED = ("libaio", "libicu", "libprotobuf")
HOME = "usr/lib/spillway"
# Programs of the package spillway-client; that of the server has all others, except those for other layouts.
CLIENTS = {
    "mysql", "mysql_config_editor", "mysql_secure_installation", "mysql_tzinfo_to_sql", "mysqladmin", "mysqlbinlog",
    "mysqlcheck", "mysqldump", "mysqlimport", "mysqlshow", "mysqlslap",
}  # fmt: skip
NOT_IN_DEB = {"mysql_config", "mysqld_multi", "mysqld_safe"}
# Packages with the same files, of Debian, Oracle and Percona.
STOCK = ["mysql-{}", "mysql-{}-core", "mysql-community-{}", "mysql-community-{}-core", "percona-server-{}",
         *(f"mysql-{{}}-{version}" for version in ("8.0", "8.4", "9.7")),
         *(f"mysql-{{}}-core-{version}" for version in ("8.0", "8.4", "9.7"))]  # fmt: skip
KINDS = ("tarball", "deb")
NEEDED_BYTES = 4 << 30


def run(*command, **options):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    if result.returncode != 0:
        raise Failure(f"{' '.join(map(str, command[:5]))} ... failed: {(result.stderr or result.stdout)[-2000:]}")
    return result.stdout


def need_programs():
    packages = {"dpkg-shlibdeps": "dpkg-dev", "patchelf": "patchelf", "readelf": "binutils", "xz": "xz-utils"}
    if missing := [package for program, package in packages.items() if not shutil.which(program)]:
        raise Failure(f"packages cannot be made without {', '.join(missing)}: tools/install-packages package")


def base_version():
    return read_pin()["version"]


def version():
    return (REPO / "VERSION").read_text().strip()


def install(build, tree):
    """Install the components of a build, stripped, in a folder."""
    if not (build / "cmake_install.cmake").exists():
        raise Failure(f"{build} is no build: make deploy")
    for component in COMPONENTS:
        run("cmake", "--install", build, "--strip", "--prefix", tree, "--component", component)
    for needed in ("bin/mysqld", "bin/mysql", "lib/plugin/auth_socket.so", "share/english/errmsg.sys"):
        if not (tree / needed).exists():
            raise Failure(f"{build} has not installed {needed}: it is not complete, or of another layout")
    # Plugins of a debug build, if one is in the folder beside.
    shutil.rmtree(tree / "lib/plugin/debug", ignore_errors=True)
    for folder in sorted(filter(Path.is_dir, tree.rglob("*")), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


def elf_files(tree):
    for path in sorted(tree.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def needs(path):
    """The libraries that a program or library needs itself."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "--dynamic", path))


def needs_of(paths, private):
    """The libraries in lib/private that programs and libraries need, directly or by others."""
    found, new = set(), {name for path in paths for name in needs(path)}
    while new:
        name = new.pop()
        if name not in found and (private / name).exists():
            found.add(name)
            new.update(needs(private / name))
    return found


def library_path(name):
    """The file of this machine's library of that name, or None."""
    found = re.search(rf"^\s*{re.escape(name)} \(.*x86-64.*\) => (\S+)$", run("/sbin/ldconfig", "-p"), re.MULTILINE)
    return Path(found.group(1)).resolve() if found else None


def owner(path):
    """The Debian package of a file of this machine."""
    return run("dpkg-query", "-S", path).partition(":")[0]


def bundle(tree):
    """Copy the libraries of BUNDLED to lib/private, with their licences."""
    private = tree / "lib/private"
    wanted = {name for path in elf_files(tree) for name in needs(path)}
    while wanted:
        name = wanted.pop()
        if not name.startswith(BUNDLED) or (private / name).exists():
            continue
        source = library_path(name)
        if not source:
            raise Failure(f"the build needs the library {name}, which is not on this machine: pack where it was built")
        private.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, private / name)
        wanted.update(needs(source))
        licences = tree / "docs/licenses"
        licences.mkdir(parents=True, exist_ok=True)
        shutil.copy(f"/usr/share/doc/{owner(source)}/copyright", licences / owner(source))


def set_library_path(tree, private, places):
    """Tell each program and library that needs the folder private where it is. places: folder to run path."""
    for path in elf_files(tree):
        if needs_of([path], private):
            folder = str(path.parent.relative_to(tree))
            if folder not in places:
                raise Failure(f"{folder}/{path.name} needs a library of lib/private, which is not expected there")
            run("patchelf", "--set-rpath", places[folder], path)


def timestamp():
    """The time of the last commit, so that the same commit gives the same packages."""
    git = ["git", "-C", REPO, "-c", f"safe.directory={REPO}", "log", "-1", "--format=%ct"]
    result = subprocess.run(git, capture_output=True, text=True, check=False)
    return result.stdout.strip() or str(int((REPO / "VERSION").stat().st_mtime))


def make_tarball(tree, work, output, level):
    libc = os.confstr("CS_GNU_LIBC_VERSION").replace(" ", "")
    name = f"spillway-{version()}-mysql-{base_version()}-linux-{libc}-{os.uname().machine}"
    top = work / name
    shutil.copytree(tree, top, symlinks=True)
    set_library_path(top, top / "lib/private", {"bin": "$ORIGIN/../lib/private", "lib/plugin": "$ORIGIN/../private",
                                                "lib/private": "$ORIGIN"})  # fmt: skip
    path = output / f"{name}.tar.xz"
    run("tar", "-C", work, "--sort=name", f"--mtime=@{timestamp()}", "--owner=root:0", "--group=root:0",
        "--mode=u+w,go-w", f"--use-compress-program=xz -T2 -{level}", "-cf", path, name)  # fmt: skip
    return path


def compress(source, target):
    """gzip without a time or name, as Debian's packages have manual pages."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(source.read_bytes(), mtime=0))


def place(root, target, *sources, mode=None):
    """Copy files or folders to a folder of a package."""
    folder = root / target
    folder.mkdir(parents=True, exist_ok=True)
    for source in sources:
        if source.is_dir():
            shutil.copytree(source, folder / source.name, symlinks=True)
        else:
            shutil.copy(source, folder, follow_symlinks=False)
            if mode:
                (folder / source.name).chmod(mode)


def fill_roots(tree, server, client):
    """Copy the files of a tree to the roots of the two packages."""
    for program in sorted((tree / "bin").iterdir()):
        if program.name in NOT_IN_DEB:
            continue
        root = client if program.name in CLIENTS else server
        place(root, "usr/sbin" if program.name == "mysqld" else "usr/bin", program)
        for page in tree.glob(f"man/man?/{program.name}.[1-8]"):
            compress(page, root / "usr/share/man" / page.parent.name / f"{page.name}.gz")
    for plugin in sorted((tree / "lib/plugin").iterdir()):
        place(client if plugin.name.endswith("_client.so") else server, f"{HOME}/lib/plugin", plugin)
    # The package of the server depends on that of the clients.
    private = tree / "lib/private"
    for_clients = needs_of(elf_files(client), private)
    for path in sorted(private.glob("*")):
        place(client if path.name in for_clients else server, f"{HOME}/lib/private", path)
    place(server, f"{HOME}/share", *(path for path in (tree / "share").iterdir() if path.name != "aclocal"))
    deb = PACKAGING / "deb"
    place(server, "usr/sbin", deb / "spillway-datadir", mode=0o755)
    place(server, "lib/systemd/system", deb / "mysql.service", mode=0o644)
    place(server, HOME, deb / "mysql.service", mode=0o644)
    place(server, "etc/mysql", deb / "spillway.cnf", mode=0o644)
    # !includedir fails without the folder.
    place(server, "etc/mysql/mysql.conf.d")
    place(server, "usr/lib/sysctl.d", deb / "sysctl.conf", mode=0o644)
    (server / "usr/lib/sysctl.d/sysctl.conf").rename(server / "usr/lib/sysctl.d/10-spillway.conf")
    for root, package in ((server, "spillway-server"), (client, "spillway-client")):
        documents = root / "usr/share/doc" / package
        place(root, documents.relative_to(root), *sorted((tree / "docs").glob("[A-KM-Z]*")))
        (documents / "copyright").write_text(
            f"Spillway, a fork of MySQL {base_version()}. Copyright: the authors of Spillway, and Oracle and/or its\n"
            "affiliates. Free software: GNU General Public License, version 2, /usr/share/common-licenses/GPL-2.\n"
            "LICENSE.gz has the licences of the libraries that are compiled in; licenses/ those of the libraries in\n"
            f"/{HOME}/lib/private.\n"
        )
        compress(tree / "LICENSE", documents / "LICENSE.gz")
    place(server, "usr/share/doc/spillway-server", *filter(Path.exists, [tree / "docs/licenses"]))


def dependencies(root, tree, work):
    """What dpkg-shlibdeps finds; the libraries in lib/private are of no other package."""
    files = [f"-e{path}" for path in elf_files(root)]
    (work / "debian").mkdir(exist_ok=True)
    (work / "debian/control").write_text("Source: spillway\n\nPackage: spillway\nArchitecture: any\n")
    same_name = filter(None, (library_path(path.name) for path in (tree / "lib/private").glob("*.so*")))
    excluded = [f"-x{package}" for package in sorted(set(map(owner, same_name)))]
    output = run("dpkg-shlibdeps", "-O", "--ignore-missing-info", f"-l{tree}/lib/private", *excluded, *files, cwd=work)
    return output.strip().removeprefix("shlibs:Depends=")


def build_deb(name, root, tree, work, output, level):
    source = PACKAGING / "deb" / name.removeprefix("spillway-")
    full_name, address = os.environ.get("DEBFULLNAME", "Spillway"), os.environ.get("DEBEMAIL", "root@localhost")
    architecture = run("dpkg", "--print-architecture").strip()
    values = {
        "VERSION": version(), "BASE": base_version(), "ARCHITECTURE": architecture,
        "MAINTAINER": f"{full_name} <{address}>", "SHLIBDEPS": dependencies(root, tree, work),
        "STOCK_SERVERS": ", ".join(each.format("server") for each in STOCK),
        "STOCK_CLIENTS": ", ".join(each.format("client") for each in STOCK),
    }  # fmt: skip
    for path in (root, *filter(Path.is_dir, root.rglob("*"))):
        path.chmod(0o755)
    files = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    sums = [f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in files]
    control = root / "DEBIAN"
    control.mkdir()
    text = re.sub(r"@(\w+)@", lambda found: values[found.group(1)], (source / "control").read_text())
    size = sum(path.stat().st_size for path in files) >> 10
    (control / "control").write_text(text.replace("Section:", f"Installed-Size: {size}\nSection:", 1))
    (control / "md5sums").write_text("".join(line for line in sums if "  etc/" not in line))
    for script in source.iterdir():
        if script.name != "control":
            shutil.copy(script, control)
            (control / script.name).chmod(0o644 if script.name == "conffiles" else 0o755)
    path = output / f"{name}_{version()}_{architecture}.deb"
    run("dpkg-deb", "--root-owner-group", "-Zxz", f"-z{level}", "--build", root, path,
        env=os.environ | {"SOURCE_DATE_EPOCH": timestamp()})  # fmt: skip
    return path


def make_debs(tree, work, output, level):
    server, client = work / "server", work / "client"
    fill_roots(tree, server, client)
    private = f"{HOME}/lib/private"
    places = {"usr/sbin": f"/{private}", "usr/bin": f"/{private}", private: "$ORIGIN",
              f"{HOME}/lib/plugin": "$ORIGIN/../private"}  # fmt: skip
    for root in (server, client):
        set_library_path(root, tree / "lib/private", places)
    return [build_deb(f"spillway-{root.name}", root, tree, work, output, level) for root in (server, client)]


def make(build, output, kinds=KINDS, level=6):
    """Make the packages of a build; return their paths. level: of xz."""
    need_programs()
    output.mkdir(parents=True, exist_ok=True)
    need_space(output, NEEDED_BYTES, "packaging")
    # In the folder of the output: /tmp can be in memory.
    with locked("package"), tempfile.TemporaryDirectory(prefix=".work-", dir=output) as name:
        work = Path(name)
        tree = work / "tree"
        say(f"installing {build}")
        install(build, tree)
        bundle(tree)
        made = []
        if "tarball" in kinds:
            made.append(make_tarball(tree, work, output, level))
        if "deb" in kinds:
            made += make_debs(tree, work, output, level)
    for path in made:
        say(f"{path}: {path.stat().st_size / (1 << 20):.1f} MiB")
    return made


def run_tool():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=BUILD / "fork/deploy", metavar="FOLDER")
    parser.add_argument("--output", type=Path, default=BUILD / "package", metavar="FOLDER")
    parser.add_argument("kinds", nargs="*", metavar="tarball|deb")
    arguments = parser.parse_args()
    if unknown := set(arguments.kinds) - set(KINDS):
        raise Failure(f"no kind of package: {', '.join(sorted(unknown))}")
    make(arguments.build.resolve(), arguments.output.resolve(), arguments.kinds or KINDS)


if __name__ == "__main__":
    sys.exit(main(run_tool))
