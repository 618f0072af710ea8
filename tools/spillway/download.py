"""Downloads in bounded time. A server that sends nothing, or next to nothing, ends the download.

download(url, path, pin) and download_by_apt(url, path, pin) write the file at url to path. If the source fails, they
raise a Failure with the reason, and can leave a part of the file. A full disk is an OSError. download() does not check
the content; APT does."""

import contextlib
import errno
import http.client
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

from spillway.common import Failure, child, say

# A download ends if it grows by less than STALL_BYTES in STALL_SECONDS.
STALL_SECONDS = 60
STALL_BYTES = 64 << 10
SAY_SECONDS = 30
BLOCK_BYTES = 1 << 18
# No packing of the base is this many times as large as the pinned archive.
MAX_GROWTH = 2
APT_HELPER = "/usr/lib/apt/apt-helper"


def wait_for_download(has_ended, received):
    """Wait until has_ended(seconds), which waits for at most that time, is true. Fail if the download stalls;
    received() is its size in bytes."""
    size, since = received(), time.monotonic()
    say_at = since + SAY_SECONDS
    while not has_ended(min(1, STALL_SECONDS / 4)):
        now = time.monotonic()
        if received() >= size + STALL_BYTES:
            size, since = received(), now
        elif now > since + STALL_SECONDS:
            raise Failure(f"the server sent less than {STALL_BYTES >> 10} KiB in {STALL_SECONDS} s")
        if now > say_at:
            say(f"{received() >> 20} MiB")
            say_at = now + SAY_SECONDS


class Download(threading.Thread):
    """Copies a URL to a file. A thread of its own, which can be abandoned: a time limit of a socket does not end a name
    lookup, or an answer that comes byte by byte."""

    def __init__(self, url, file, max_bytes):
        super().__init__(daemon=True)
        self.url = url
        self.file = file
        self.max_bytes = max_bytes
        self.received = 0
        self.is_abandoned = False
        self.error = None

    def run(self):
        try:
            self.copy()
        except urllib.error.HTTPError as error:
            self.error = Failure(f"the server answered {error.code} {error.reason}")
        except (Failure, MemoryError) as error:
            self.error = error
        # ValueError: the server redirects to something that is no address.
        except (OSError, http.client.HTTPException, ValueError) as error:
            is_ours = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
            self.error = error if is_ours else Failure(str(getattr(error, "reason", error)) or type(error).__name__)

    def copy(self):
        request = urllib.request.Request(self.url, headers={"User-Agent": "spillway"})
        # The time limit only ends an abandoned thread: wait_for_download() is earlier.
        with urllib.request.urlopen(request, timeout=2 * STALL_SECONDS) as response:
            length = response.headers.get("Content-Length")
            while not self.is_abandoned and (block := response.read1(BLOCK_BYTES)):
                self.write(block)
        if length and self.received != int(length):
            raise Failure(f"truncated: {self.received} of {length} bytes")

    def write(self, block):
        if self.received + len(block) > self.max_bytes:
            raise Failure(f"it has more than {self.max_bytes} bytes")
        self.file.write(block)
        self.received += len(block)


def download(url, path, pin):
    with open(path, "wb") as file:
        thread = Download(url, file, MAX_GROWTH * int(pin["bytes"]))
        thread.start()

        def has_ended(seconds):
            thread.join(seconds)
            return not thread.is_alive()

        try:
            wait_for_download(has_ended, lambda: thread.received)
        finally:
            thread.is_abandoned = True
    if thread.error:
        raise thread.error


def download_by_apt(url, path, pin):
    options = [f"Acquire::{scheme}::Timeout={STALL_SECONDS}" for scheme in ("http", "https")]
    options = [word for option in ("APT::Sandbox::User=root", *options) for word in ("-o", option)]
    command = [APT_HELPER, *options, "download-file", url, str(path), f"SHA256:{pin['sha256']}"]

    def size():
        with contextlib.suppress(FileNotFoundError):
            return path.stat().st_size
        return 0

    with tempfile.TemporaryFile("w+", errors="replace") as said:
        try:
            with child(command, stderr=said) as process:

                def has_ended(seconds):
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(seconds)
                    return process.returncode is not None

                wait_for_download(has_ended, size)
        finally:
            path.with_name(f"{path.name}.FAILED").unlink(missing_ok=True)
        if process.returncode != 0:
            said.seek(0)
            errors = " ".join(said.read().split())
            raise Failure(f"APT could not download it: {errors[-300:] or f'status {process.returncode}'}")
