"""A program that has everything loaded, and becomes a command of ours by forking: loading is most of a command.

Loaded, not run: each command is a process of its own that has its own words, environment, streams and end. Whoever
wants commands of this sort asks `tests.cli.forge`.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import runpy
import signal
import socket
import sys
import threading
from importlib import import_module
from typing import Any, Final, NoReturn

import typer

import voucherd
from voucherd import connections
from voucherd.cli import context

LIBRARIES: Final = (
    *("argon2", "asyncpg", "cryptography.hazmat.primitives.ciphers.aead", "httpx", "msgspec", "uvloop"),
    *("rich.console", "rich.markdown", "rich.progress", "rich.table", "structlog", "xml.etree.ElementTree"),
)
STREAMS: Final = 4
"""A request brings the standard streams and a line to whoever asked."""


def load() -> None:
    """Load what the commands would load."""
    for name in LIBRARIES:
        import_module(name)
    for module in pkgutil.walk_packages(voucherd.__path__, "voucherd."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    # Typer loads half of itself when a command is run.
    app = typer.Typer(add_completion=False)
    app.command()(lambda: None)
    app([], standalone_mode=False)
    # What is here by now is shared with every command; the collector would copy it by looking at it.
    gc.freeze()


def be_patient(hang_s: float) -> None:
    """Let the commands wait for a database that is only slow."""
    connections.CONNECT_S_MAX = connections.HOST_S_MAX = hang_s  # type: ignore[misc]
    vars(context)["COMMAND"] = connections.COMMAND._replace(idle_s=hang_s)


def asked(requests: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The request and the streams that this process is to become a command for; the others stay here for ever."""
    # Neither Ctrl-C nor an ended child is this process's own business.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        word, streams, _, _ = socket.recv_fds(requests, 1, STREAMS)
        if not word:
            os._exit(0)
        if os.fork() == 0:
            requests.close()
            return _watched(streams)
        for stream in streams:
            os.close(stream)


def _watched(streams: list[int]) -> tuple[dict[str, Any], list[int]]:
    """Returns in the command; the process around it tells the command's number, waits, and tells how it ended."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    line = socket.socket(fileno=streams.pop())
    request = json.loads(line.makefile().readline())
    pid = os.fork()
    if pid == 0:
        line.close()
        return request, streams
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line.sendall(b"%d\n" % pid)
    _, status = os.waitpid(pid, 0)
    line.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def become(request: dict[str, Any], streams: list[int]) -> None:
    """Run the program in this process, as if it had been started so."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["folder"])
    sys.argv = ["voucherd", *request["words"]]
    try:
        runpy.run_module("voucherd.cli", run_name="__main__", alter_sys=True)
    except SystemExit as left:
        if left.code is None or isinstance(left.code, int):
            leave(left.code or 0)
        raise
    leave(0)


def leave(code: int) -> NoReturn:
    """End as Python does, but for taking apart all that was loaded: that takes longer than most commands."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    # What the command left behind says so now, as it would later.
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    load()
    be_patient(float(sys.argv[2]))
    become(*asked(socket.socket(fileno=int(sys.argv[1]))))
