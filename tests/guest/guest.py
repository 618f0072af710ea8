#!/usr/bin/env python3
"""Run the tests of storage that this machine does not have (test_storage.py), each class in its own QEMU guest.

QEMU emulates the guest's processor, so this also runs in a virtual machine. The guest has its own kernel, the host's
files read-only, and a disk. The tool installs QEMU and the kernel below build/guest. Needs root.

    guest.py             all classes of tests
    guest.py NAME...     these classes
"""

import contextlib
import lzma
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from spillway.common import BUILD, DIES_WITH_US, REPO, Failure, Skip, main, need_space, say
from spillway.resources import folder

HERE = Path(__file__).resolve().parent
GUEST = BUILD / "guest"
LOGS = BUILD / "test-logs"
SUITE = "trixie"
BACKPORTS = f"{SUITE}-backports"
BASE = ["busybox-static", "ca-certificates", "kmod"]
# APT options and packages of each root. Backports: the suite's QEMU does not emulate NVMe's atomic writes, and its
# Linux has no file system with atomic writes of more than a block.
ROOTS = {
    "newest": (["-t", BACKPORTS], ["qemu-system-x86", "linux-image-amd64"]),
}
MODULES = ["virtio_pci", "9pnet_virtio", "9p", "overlay", "nvme", "virtio_blk", "virtio_rng", "ext4", "xfs"]
# Atomic up to 64 KiB: NVMe counts blocks of 512 bytes, from 0.
ATOMIC = "logical_block_size=512,physical_block_size=4096,atomic.nawun=127,atomic.nawupf=127"
# For each class of tests: the root whose kernel runs, more kernel modules, and QEMU's devices for the disk.
CLASSES = {
    "AtomicByDevice": ("newest", [], ["nvme,serial=spw", f"nvme-ns,drive=disk,{ATOMIC}"]),
    "LargeSectors": ("newest", [], ["nvme,serial=spw", "nvme-ns,drive=disk,logical_block_size=4096"]),
    "UntrustedSectors": ("newest", [], ["virtio-blk-pci,drive=disk,logical_block_size=4096,physical_block_size=4096"]),
}  # fmt: skip
NEEDED_BYTES = 3 << 30
DISK_BYTES = 8 << 30
MEMORY = "5G"
TIMEOUT_SECONDS = 1800


def run(*command, **options):
    """Run a command with its output in the log; it dies with this process."""
    LOGS.mkdir(parents=True, exist_ok=True)
    with open(LOGS / "guest-install.log", "a") as log:
        result = subprocess.run([*DIES_WITH_US, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                check=False, **options)  # fmt: skip
    if result.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))} has failed: see {LOGS}/guest-install.log")


@contextlib.contextmanager
def with_proc(root):
    """Mount /proc in a root, so that commands can run there. Not a new mount namespace: that would keep file systems
    mounted that the machine unmounts meanwhile."""
    run("mount", "-t", "proc", "proc", root / "proc")
    try:
        yield ["chroot", root]
    finally:
        run("umount", root / "proc")


def mirror():
    """The address of the Debian mirror that this machine's APT uses."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Identifier: Packages"],
                            check=True, capture_output=True, text=True).stdout  # fmt: skip
    for line in listed.splitlines():
        origin, _, address = line.partition(" ")
        if origin == "Debian":
            return address
    raise Failure("APT has no list of Debian's packages: run apt-get update, or use a machine with Debian")


def install(name):
    """Make a root, unless it is there. The partial one of an interrupted run is made anew."""
    root = GUEST / name
    if root.exists():
        return root
    options, packages = ROOTS[name]
    GUEST.mkdir(parents=True, exist_ok=True)
    need_space(GUEST, NEEDED_BYTES, "the guest's root")
    say(f"installing {root}: {' '.join(packages)}")
    partial = root.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    with folder(partial):
        # Other users can enter it, too.
        partial.chmod(0o755)
        fill(partial, options, packages)
        partial.rename(root)
    return root


def fill(partial, options, packages):
    """Install Debian and packages in an empty folder."""
    address = mirror()
    run("debootstrap", "--variant=minbase", f"--include={','.join(BASE)}", SUITE, partial, address)
    for copied in (Path("/etc/resolv.conf"), *Path("/etc/apt/apt.conf.d").iterdir()):
        shutil.copy(copied, partial / copied.relative_to("/"))
    sources = "".join(f"deb {address} {suite} main contrib\n" for suite in (SUITE, BACKPORTS))
    (partial / "etc/apt/sources.list").write_text(sources)
    with with_proc(partial) as chroot:
        run(*chroot, "apt-get", "update")
        run(*chroot, "apt-get", "install", "--yes", "--no-install-recommends", *options, *packages,
            env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"})  # fmt: skip


def make_initrd(root, modules):
    """Make the guest's initrd: init, and the kernel modules in the order of their dependencies."""
    tree = GUEST / "initrd"
    shutil.rmtree(tree, ignore_errors=True)
    for name in ("bin", "dev", "host", "modules", "proc", "root", "sys", "written"):
        (tree / name).mkdir(parents=True)
    shutil.copy(HERE / "init", tree / "init")
    shutil.copy(root / "bin/busybox", tree / "bin/busybox")
    (tree / "bin/sh").symlink_to("busybox")
    release = next((root / "lib/modules").iterdir()).name
    order = []
    for module in modules:
        listed = subprocess.run(["chroot", root, "modprobe", "--set-version", release, "--show-depends", module],
                                check=True, capture_output=True, text=True).stdout  # fmt: skip
        # A module that is built into the kernel has the word "builtin" and no file.
        for path in re.findall(r"^insmod (\S+)", listed, re.MULTILINE):
            name = Path(path).name.removesuffix(".xz")
            if name in order:
                continue
            order.append(name)
            content = Path(f"{root}{path}").read_bytes()
            (tree / "modules" / name).write_bytes(lzma.decompress(content) if path.endswith(".xz") else content)
    (tree / "modules/order").write_text("".join(f"{name}\n" for name in order))
    image = GUEST / "initrd.cpio"
    subprocess.run(["sh", "-c", 'find . | bin/busybox cpio -o -H newc >"$1"', "sh", image], cwd=tree, check=True,
                   stderr=subprocess.DEVNULL)  # fmt: skip
    return image


def run_class(name):
    """Run a class of tests in its guest; return whether they passed."""
    which, modules, devices = CLASSES[name]
    emulator, root = install("newest"), install(which)
    initrd = make_initrd(root, [*MODULES, *modules])
    kernel = next((root / "boot").glob("vmlinuz-*"))
    script = GUEST / "script.sh"
    script.write_text(f"cd {REPO} && exec python3 -B -m unittest -v tests.guest.test_storage.{name}\n")
    disk = GUEST / "disk.img"
    disk.unlink(missing_ok=True)
    with open(disk, "wb") as file:
        file.truncate(DISK_BYTES)
    libraries = emulator / "usr/lib/x86_64-linux-gnu"
    qemu = [libraries / "ld-linux-x86-64.so.2", "--library-path", libraries, emulator / "usr/bin/qemu-system-x86_64",
            "-L", emulator / "usr/share/qemu", "-L", emulator / "usr/share/seabios",
            "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", MEMORY,
            "-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio", "-kernel", kernel, "-initrd", initrd,
            "-append", f"console=ttyS0 quiet panic=-1 spw_script={script}", "-device", "virtio-rng-pci",
            "-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap",
            "-device", "virtio-9p-pci,fsdev=host,mount_tag=host",
            "-drive", f"file={disk},if=none,id=disk,format=raw,discard=unmap"]  # fmt: skip
    for device in devices:
        qemu += ["-device", device]
    log = LOGS / f"guest-{name}.log"
    LOGS.mkdir(parents=True, exist_ok=True)
    say(f"{name}, in a guest of {kernel.name}")
    try:
        with open(log, "w") as file:
            subprocess.run([*DIES_WITH_US, *qemu], stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                           check=False, timeout=TIMEOUT_SECONDS)  # fmt: skip
    except subprocess.TimeoutExpired:
        say(f"{name}: the guest was ended, as it was not done after {TIMEOUT_SECONDS} s")
    disk.unlink()
    text = log.read_text(errors="replace")
    # Without the kernel's messages.
    print("\n".join(line for line in text.splitlines() if not line.startswith("[")), flush=True)
    return re.search(r"^spillway: guest: exit status 0\r?$", text, re.MULTILINE) is not None


def run_tests():
    if os.geteuid() != 0:
        raise Skip("a root of another Debian needs root")
    names = sys.argv[1:] or list(CLASSES)
    for name in names:
        if name not in CLASSES:
            raise Failure(f"{name} is none of {', '.join(CLASSES)}")
    failed = [name for name in names if not run_class(name)]
    if failed:
        raise Failure(f"in guests: {', '.join(failed)} failed: see {LOGS}/guest-*.log")


if __name__ == "__main__":
    main(run_tests)
