"""Throttles the disk of a server for a tool that has given up root.

The tool forks before it gives up root. The parent keeps root and does only this: it reads process ids from a socket,
and throttles a process that is a mysqld of this checkout and of the tool's user. The limits are constants. The parent
opens no path that the tool's user can change, so a link of that user leads it nowhere. It holds a file descriptor of
the process, so it detects that another process has got the id; that process then leaves the control group at once.
The worst that the tool's user can achieve is that its own server is slow.
"""

import contextlib
import os
import re
import select
from pathlib import Path

from spillway import block_throttle
from spillway.common import Failure, Skip

# A small cloud volume.
LIMITS = block_throttle.Limits(write_iops=1500, write_bytes_per_s=30_000_000)
THROTTLED = "throttled"
LIFT = 0
MAX_REQUEST_BYTES = 32


def check_server(process_id, user_id, program):
    """Fail if the process is not this program, or runs with another user's rights."""
    entry = Path(f"/proc/{process_id}")
    ids = re.search(r"^Uid:\s(.*)$", (entry / "status").read_text(), re.MULTILINE).group(1).split()
    if user_id == 0 or set(ids) != {str(user_id)}:
        raise Failure(f"process {process_id} is of another user")
    if not os.path.samestat(os.stat(entry / "exe"), os.stat(program)):
        raise Failure(f"process {process_id} is not {program}")


@contextlib.contextmanager
def throttled_server(process_id, user_id, program):
    """Throttle a server on the disk of its data directory, which is its working directory, while the context lasts."""
    process = os.pidfd_open(process_id)
    try:
        check_server(process_id, user_id, program)
        with block_throttle.throttled(process_id, f"/proc/{process_id}/cwd", LIMITS):
            # The file descriptor is readable once the process has ended. Its id can belong to another process then.
            if select.select([process], [], [], 0)[0]:
                raise Failure(f"process {process_id} has ended")
            yield
    finally:
        os.close(process)


def serve(channel, user_id, program):
    """Root's part. Each request is a line with a process id, or with LIFT. The answer is THROTTLED, or why not. The
    throttle is lifted when the other end of the socket is closed, and if an exception ends this process."""
    with channel.makefile("r") as requests, contextlib.ExitStack() as stack:
        while request := requests.readline(MAX_REQUEST_BYTES):
            try:
                stack.close()
                if (process_id := int(request)) != LIFT:
                    stack.enter_context(throttled_server(process_id, user_id, program))
                answer = THROTTLED
            except (Failure, Skip, OSError, ValueError) as failure:
                answer = " ".join(str(failure).split())
            # The tool can have ended: then the next read finds that.
            with contextlib.suppress(OSError):
                channel.sendall(f"{answer}\n".encode())


def ask(channel, process_id):
    """The tool's part: have a server throttled. Returns why it is not, or None."""
    channel.sendall(f"{process_id}\n".encode())
    answer = b""
    while not answer.endswith(b"\n"):
        if not (received := channel.recv(4096)):
            return "the process that kept root has ended"
        answer += received
    text = answer.decode().strip()
    return None if text == THROTTLED else text
