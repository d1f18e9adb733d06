"""Commands from a process that has the libraries loaded already, so that each takes a third of its time."""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Final

from tests.patience import HANG_S

WARM: Final = Path(__file__).with_name("warm.py")
STOP_S_MAX: Final = HANG_S


class Forge:
    """Asks the warm process for commands."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests

    def run(
        self,
        words: Sequence[str],
        stdin: bytes,
        env: Mapping[str, str],
        *,
        wait_s_max: float,
        folder: str | None = None,
    ) -> tuple[int, bytes, bytes]:
        """Run one command to its end, in this folder: how it ended, and what it printed."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            code = self._run(words, stdin, env, folder or str(Path.cwd()), wait_s_max, out, err)
            out.seek(0)
            err.seek(0)
            return code, out.read(), err.read()

    def _run(
        self,
        words: Sequence[str],
        stdin: bytes,
        env: Mapping[str, str],
        folder: str,
        wait_s_max: float,
        out: IO[bytes],
        err: IO[bytes],
    ) -> int:
        given, giving = os.pipe()
        line, theirs = socket.socketpair()
        with theirs, open(given, "rb", 0) as reader:
            socket.send_fds(
                self._requests, [b"."], [reader.fileno(), out.fileno(), err.fileno(), theirs.fileno()]
            )
        with line, line.makefile() as told:
            line.settimeout(wait_s_max)
            request = {"words": words, "env": dict(env), "folder": folder}
            line.sendall(json.dumps(request).encode() + b"\n")
            pid = int(told.readline())
            # A command need not read what it is given.
            with suppress(BrokenPipeError), open(giving, "wb", 0) as writer:
                writer.write(stdin)
            try:
                return int(told.readline())
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise


@cache
def forge() -> Forge:
    """The forge of this process, lit when the first command is wanted; it goes out when this process ends."""
    ours, theirs = socket.socketpair()
    # It must not find the tests' own modules where it looks for libraries.
    words = [sys.executable, "-P", str(WARM), str(theirs.fileno()), str(HANG_S)]
    warm = subprocess.Popen(words, pass_fds=[theirs.fileno()])
    theirs.close()

    def put_out() -> None:
        ours.close()
        warm.wait(STOP_S_MAX)

    atexit.register(put_out)
    return Forge(ours)
