"""The AIO benchmark builds its program while no other tool builds in the same folder."""

import fcntl
import subprocess
import unittest
from unittest import mock

import aio_bench


class Build(unittest.TestCase):
    def test_it_has_the_lock_of_the_folder(self):
        for tree, lock in (("fork", "build-release.lock"), ("stock", "build-stock.lock")):

            def run(command, lock=lock, **_):
                with open(aio_bench.BUILD / lock) as file, self.assertRaises(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return subprocess.CompletedProcess(command, 0, "", "")

            with self.subTest(tree), mock.patch.object(aio_bench.subprocess, "run", run):
                self.assertEqual(aio_bench.build(tree).name, "aio_bench")
