"""The resources of tools are released, also if a tool is killed. Resources of others are not touched."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from spillway import resources
from spillway.common import Failure

TOOLS = Path(__file__).resolve().parent.parent
# A tool: it takes a resource, prints its path, and waits.
TOOL = """
import subprocess, time
from pathlib import Path
from spillway import filesystem, resources
resources.RECORDS = Path({records!r})
with {context} as place:
    {then}
    print(place, flush=True)
    time.sleep(100)
"""


class Resources(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.records = self.folder / "records"
        self.enterContext(mock.patch.object(resources, "RECORDS", self.records))
        self.said = []
        self.enterContext(mock.patch.object(resources, "say", self.said.append))
        self.place = self.folder / "place"
        self.place.mkdir()

    @contextlib.contextmanager
    def tool(self, context, then="pass"):
        """Run another process that takes a resource; gives the process and the resource's path."""
        text = TOOL.format(records=str(self.records), context=context, then=then)
        with subprocess.Popen([sys.executable, "-c", text], cwd=TOOLS, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process, Path(process.stdout.readline().strip())
            finally:
                process.kill()

    def killed(self, context, then="pass"):
        with self.tool(context, then) as (process, place):
            process.kill()
            process.wait()
        return place

    @unittest.skipUnless(os.geteuid() == 0, "needs root: mounts")
    def test_private_mounts(self):
        """A tool's mounts are not in the namespaces of other processes: copies there would keep them busy."""
        context = f"(resources.keep_mounts_private(), resources.temporary_folder({str(self.place)!r}))[1]"
        mount = "subprocess.run(['mount', '-t', 'tmpfs', 'none', place], check=True)"
        with self.tool(context, mount) as (process, place):
            self.assertTrue(place.exists())
            self.assertNotIn(str(place), Path("/proc/self/mounts").read_text())
            self.assertIn(str(place), Path(f"/proc/{process.pid}/mounts").read_text())

    def test_what_has_happened_is_said(self):
        """A tool's failure is reported, not that its folder stays."""
        busy = mock.patch.object(resources, "remove_folder", side_effect=Failure("busy"))
        with busy, self.assertRaisesRegex(Failure, "^first$"), resources.temporary_folder(self.place) as place:
            raise Failure("first")
        resources.remove_folder(place)

    def test_many_at_once(self):
        """A tool removes its record while another one runs release(); release() does not touch held resources."""
        text = f"""
from pathlib import Path
from spillway import resources
resources.RECORDS = Path({str(self.records)!r})
for _ in range(150):
    with resources.temporary_folder({str(self.place)!r}) as place:
        resources.release()
        assert place.exists()
"""
        command = [sys.executable, "-c", text]
        tools = [subprocess.Popen(command, cwd=TOOLS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                 for _ in range(6)]  # fmt: skip
        for tool in tools:
            output = tool.communicate(timeout=100)[0]
            self.assertEqual((tool.returncode, output), (0, ""))
        self.assertEqual(list(self.records.iterdir()), [])

    def test_what_cannot_be_released_is_waited_for_once(self):
        place = self.killed(self.temporary())
        with mock.patch.object(resources, "remove_folder", side_effect=Failure("busy")) as remove:
            resources.release()
            resources.release()
        self.assertEqual([call.args for call in remove.call_args_list], [(place, 2), (place, 0)])
        resources.release()
        self.assertFalse(place.exists())

    def temporary(self):
        return f"resources.temporary_folder({str(self.place)!r})"

    def test_folder_of_a_killed_tool(self):
        place = self.killed(self.temporary(), "(place / 'file').touch()")
        self.assertTrue((place / "file").exists())
        resources.release()
        self.assertEqual(list(self.place.iterdir()), [])
        self.assertEqual(list(self.records.iterdir()), [])
        self.assertIn(str(place), self.said[0])

    def test_folder_of_a_tool_at_work(self):
        with self.tool(self.temporary()) as (_, place):
            resources.release()
            self.assertTrue(place.exists())

    def test_tool_that_ends_leaves_nothing(self):
        with resources.temporary_folder(self.place) as place:
            self.assertTrue(place.exists())
        self.assertEqual([*self.place.iterdir(), *self.records.iterdir()], [])

    def test_another_folder_of_that_name(self):
        place = self.killed(self.temporary())
        place.rename(place.with_name("away"))
        place.mkdir()
        (place / "file").touch()
        resources.release()
        self.assertTrue((place / "file").exists())
        self.assertTrue(place.with_name("away").exists())
        self.assertEqual(list(self.records.iterdir()), [])

    def test_tool_at_work_in_another_process_namespace(self):
        """A process id means nothing in another namespace; locks work."""
        with self.tool(self.temporary()) as (_, place):
            text = f"""
from pathlib import Path
from spillway import resources
resources.RECORDS = Path({str(self.records)!r})
resources.release()
"""
            apart = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
            if subprocess.run([*apart, sys.executable, "-c", text], cwd=TOOLS, check=False).returncode != 0:
                self.skipTest("no namespaces here")
            self.assertTrue(place.exists())

    def test_folder_that_could_not_be_removed(self):
        """It stays recorded, and the next tool removes it."""
        with (
            self.assertRaisesRegex(OSError, "busy"),
            mock.patch.object(shutil, "rmtree", side_effect=OSError("busy")),
            resources.temporary_folder(self.place) as place,
        ):
            pass
        self.assertTrue(place.exists())
        resources.release()
        self.assertFalse(place.exists())

    def test_setting(self):
        file = self.folder / "aio-max-nr"
        context = f"resources.setting(Path({str(file)!r}), '9')"
        for now, after in (("9", "1"), ("5", "5")):
            file.write_text("1")
            self.killed(context)
            self.assertEqual(file.read_text(), "9")
            # If the value is not the tool's, another process has set it since: it stays.
            file.write_text(now)
            resources.release()
            self.assertEqual(file.read_text(), after)

    def test_record_that_cannot_be_read(self):
        resources.records_folder()
        for text in ('{"kind": ', '{"kind": "folder"}', '{"kind": "folder", "path": 1, "identity": []}', "[]"):
            (self.records / "1-2.json").write_text(text)
            resources.release()
            self.assertEqual(list(self.records.iterdir()), [])

    def test_what_cannot_be_released_is_tried_again(self):
        place = self.killed(self.temporary())
        with mock.patch.object(shutil, "rmtree", side_effect=OSError("busy")):
            resources.release()
        self.assertIn("cannot be released", self.said[0])
        resources.release()
        self.assertFalse(place.exists())

    def test_folder_of_records_that_another_user_has_made(self):
        self.records.mkdir(mode=0o777)
        self.records.chmod(0o777)
        with self.assertRaisesRegex(Failure, "only you can enter"):
            resources.records_folder()
        self.records.rmdir()
        self.records.symlink_to(self.place)
        with self.assertRaisesRegex(Failure, "only you can enter"):
            resources.records_folder()

    def test_server_in_the_folder_of_a_killed_tool(self):
        """release() kills only the server, no other process there."""
        place = self.killed(self.temporary(), "(place / 'data').mkdir()")
        for name in ("mysqld", "other"):
            shutil.copy("/bin/sleep", self.folder / name)
        with (
            subprocess.Popen([self.folder / "mysqld", "60"], cwd=place / "data") as server,
            subprocess.Popen([self.folder / "mysqld", "60"], cwd=self.folder) as elsewhere,
            subprocess.Popen([self.folder / "other", "60"], cwd=place / "data") as other,
        ):
            try:
                time.sleep(0.1)
                resources.release()
                self.assertEqual(server.wait(10), -signal.SIGKILL)
                self.assertIsNone(elsewhere.poll())
                self.assertIsNone(other.poll())
            finally:
                for process in (server, elsewhere, other):
                    process.kill()
        self.assertFalse(place.exists())

    def loops(self):
        return subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True).stdout

    def test_mounts_of_a_killed_tool(self):
        if os.geteuid() != 0 or not os.access("/dev/loop-control", os.W_OK):
            self.skipTest("mounting needs root and loop devices")
        for kind in ("ext4", "directfs"):
            with self.subTest(kind):
                self.killed(f"filesystem.mounted({kind!r}, '64M', {str(self.place)!r})", "(place / 'file').touch()")
                self.assertIn(str(self.place), Path("/proc/mounts").read_text())
                self.assertIn(str(self.place), self.loops())
                resources.release()
                self.assertNotIn(str(self.place), Path("/proc/mounts").read_text())
                self.assertNotIn(str(self.place), self.loops())
                self.assertEqual(list(self.place.iterdir()), [])

    def test_loop_device_on_a_file_system_whose_server_is_gone(self):
        """As a killed power-cut test leaves it: losetup cannot find the loop device's file."""
        if os.geteuid() != 0 or not os.access("/dev/loop-control", os.W_OK):
            self.skipTest("mounting needs root and loop devices")
        then = """
    disk = place / 'disk.img'
    with open(disk, 'wb') as file:
        file.truncate(64 << 20)
    loop = subprocess.run(['losetup', '--find', '--show', disk], check=True, capture_output=True, text=True).stdout
    subprocess.run(['mkfs.ext4', '-q', loop.strip()], check=True)
    inner = place.parent / 'inner'
    inner.mkdir()
    subprocess.run(['mount', loop.strip(), inner], check=True)
"""
        self.killed(f"filesystem.mounted('directfs', '256M', {str(self.place)!r})", then.strip())
        self.assertIn("inner", Path("/proc/mounts").read_text())
        resources.release()
        self.assertNotIn(str(self.place), Path("/proc/mounts").read_text())
        self.assertNotIn(str(self.place), self.loops())
        self.assertEqual([*self.place.iterdir(), *self.records.iterdir()], [])

    def test_file_that_was_removed_below_its_loop_device(self):
        if os.geteuid() != 0 or not os.access("/dev/loop-control", os.W_OK):
            self.skipTest("mounting needs root and loop devices")
        context = f"filesystem.mounted('ext4', '64M', {str(self.place)!r})"
        self.killed(context, "(place.parent / 'disk.img').unlink()")
        resources.release()
        self.assertNotIn(str(self.place), self.loops())

    def test_file_system_that_is_mounted_elsewhere_too(self):
        if os.geteuid() != 0 or not os.access("/dev/loop-control", os.W_OK):
            self.skipTest("mounting needs root and loop devices")
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        context = f"filesystem.mounted('ext4', '64M', {str(self.place)!r})"
        self.killed(context, f"subprocess.run(['mount', '--bind', place, {str(elsewhere)!r}], check=True)")
        resources.release()
        self.assertNotIn(str(self.folder), Path("/proc/mounts").read_text())
        self.assertNotIn(str(self.place), self.loops())

    def test_file_system_that_another_namespace_has_mounted(self):
        """The loop device is detached when that namespace ends."""
        if os.geteuid() != 0 or not os.access("/dev/loop-control", os.W_OK):
            self.skipTest("mounting needs root and loop devices")
        context = f"filesystem.mounted('ext4', '64M', {str(self.place)!r})"
        with self.tool(context) as (process, _), subprocess.Popen(["unshare", "--mount", "sleep", "60"]) as other:
            time.sleep(0.5)
            process.kill()
            process.wait()
            resources.release()
            self.assertEqual([*self.place.iterdir(), *self.records.iterdir()], [])
            other.kill()
        deadline = time.monotonic() + 10
        while str(self.place) in self.loops():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)

    def test_signal_is_passed_on(self):
        """A tool that gets SIGTERM sends it to its child, and waits until the child has cleaned up."""
        text = f"""
from spillway import common, resources
resources.RECORDS = common.Path({str(self.records)!r})
def work():
    script = "trap 'sleep 1; touch {self.folder}/set-back; exit' TERM; echo begun; sleep 60 & wait"
    with common.child(["sh", "-c", script]):
        pass
common.main(work)
"""
        with subprocess.Popen([sys.executable, "-c", text], cwd=TOOLS, stdout=subprocess.PIPE, text=True) as tool:
            self.assertEqual(tool.stdout.readline(), "begun\n")
            tool.terminate()
            self.assertEqual(tool.wait(), 128 + signal.SIGTERM)
        self.assertTrue((self.folder / "set-back").exists())
