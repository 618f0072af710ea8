"""What root does for a tool that gave up root: which processes it throttles, and what it answers."""

import contextlib
import os
import pwd
import socket
import subprocess
import sys
import threading
import unittest
from unittest import mock

from spillway import root_throttle
from spillway.common import Failure

NOBODY = pwd.getpwnam("nobody").pw_uid


class RootThrottle(unittest.TestCase):
    def sleeper(self, **options):
        process = subprocess.Popen(["sleep", "100"], **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process.pid

    def test_other_program(self):
        options = {} if os.geteuid() else {"user": NOBODY}
        with self.assertRaisesRegex(Failure, "is not"):
            root_throttle.check_server(self.sleeper(**options), os.geteuid() or NOBODY, sys.executable)

    @unittest.skipIf(os.geteuid() != 0, "root's")
    def test_only_of_that_user(self):
        program = f"/proc/{self.sleeper()}/exe"
        root_throttle.check_server(self.sleeper(user=NOBODY), NOBODY, program)
        for process_id, user_id in ((self.sleeper(), NOBODY), (self.sleeper(user=1), NOBODY), (self.sleeper(), 0)):
            with self.assertRaisesRegex(Failure, "of another user"):
                root_throttle.check_server(process_id, user_id, program)

    def test_requests(self):
        """Each is answered, and the throttle is lifted when it is replaced, on request and at the end."""
        steps = []

        @contextlib.contextmanager
        def throttled_server(process_id, *_):
            if process_id == 13:
                raise Failure("two\nlines")
            steps.append(process_id)
            yield
            steps.append(-process_id)

        ours, theirs = socket.socketpair()
        with mock.patch.object(root_throttle, "throttled_server", throttled_server):
            root = threading.Thread(target=root_throttle.serve, args=(ours, NOBODY, "mysqld"))
            root.start()
            self.assertIsNone(root_throttle.ask(theirs, 11))
            self.assertIsNone(root_throttle.ask(theirs, 12))
            self.assertIsNone(root_throttle.ask(theirs, root_throttle.LIFT))
            self.assertEqual(steps, [11, -11, 12, -12])
            self.assertEqual(root_throttle.ask(theirs, 13), "two lines")
            self.assertIn("invalid literal", root_throttle.ask(theirs, "/etc/passwd"))
            self.assertIsNone(root_throttle.ask(theirs, 14))
            theirs.close()
            root.join()
            ours.close()
        self.assertEqual(steps[4:], [14, -14])

    def test_process_that_has_ended(self):
        process = subprocess.Popen(["true"])
        process.wait()
        with self.assertRaises(ProcessLookupError), root_throttle.throttled_server(process.pid, NOBODY, "mysqld"):
            self.fail("throttled")

    def test_root_has_ended(self):
        ours, theirs = socket.socketpair()
        with theirs:
            threading.Thread(target=lambda: (ours.recv(100), ours.close())).start()
            self.assertIn("has ended", root_throttle.ask(theirs, 11))
