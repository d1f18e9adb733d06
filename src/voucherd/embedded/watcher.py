"""The watcher: a small process that stops a server which nobody uses any more.

The last user stops the server when it leaves. One that is killed outright can't, but its locks go with it. So whoever
starts the server leaves this process behind, which looks at the locks now and then. It keeps no file open.
"""

import logging
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from voucherd.embedded import account, locks, place, processes
from voucherd.embedded.errors import EmbeddedError
from voucherd.embedded.place import DataFolder
from voucherd.embedded.server import EmbeddedPostgres

LOOK_EVERY_S: float = 15.0
LEAVES_S_MAX: Final = 5.0
PID_FILE: Final = "watcher.pid"
# Without the packages of the site, which it does not need, it starts in half the time.
_PROGRAM: Final = """\
import sys
sys.path.insert(0, sys.argv[1])
from voucherd.embedded.watcher import main
main(*sys.argv[2:])
"""

logger = logging.getLogger(__name__)


def ensure(where: DataFolder) -> None:
    """There is a watcher; the caller holds the start-stop lock."""
    pid = _pid(where)
    if pid is not None and processes.is_watcher(pid, where):
        return
    package = Path(__file__).parents[2]
    try:
        child = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                "-c",
                _PROGRAM,
                package,
                where.data,
                place.SYSTEM_ROOT,
                str(LOOK_EVERY_S),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=account.ENVIRONMENT,
            start_new_session=True,
        )
    except OSError as error:
        # The server is good without one; only after a kill it stays until the next command.
        logger.warning("nobody watches the embedded database: %s", error)
        return
    processes.keep(child)
    try:
        _pid_file(where).write_text(f"{child.pid}\n")
    except OSError:
        child.terminate()
        raise


def dismiss(where: DataFolder) -> None:
    """The server is stopped, so there is nothing to watch; the caller holds the start-stop lock."""
    pid = _pid(where)
    if pid is not None:
        processes.send(pid, signal.SIGTERM, lambda one: processes.is_watcher(one, where))
        processes.wait_until(lambda: not processes.is_watcher(pid, where), wait_s_max=LEAVES_S_MAX)
        _pid_file(where).unlink(missing_ok=True)


def main(data: str, system_root: str, look_every_s: str) -> None:
    """Stop the server once nobody uses it, then leave."""
    place.SYSTEM_ROOT = Path(system_root)
    if place.find(Path(data)) is None:
        return
    server = EmbeddedPostgres(Path(data))
    while True:
        time.sleep(float(look_every_s))
        try:
            if _is_over(server):
                return
        except EmbeddedError:
            continue  # It does not stop; perhaps it will at the next look.
        except OSError:
            return  # The folder is gone.


def _is_over(server: EmbeddedPostgres) -> bool:
    """Whether nobody uses the server any more; then it is stopped, and nobody watches it."""
    with locks.start_stop_lock_if_free(server.place) as held:
        if not held or locks.is_used(server.place):
            return False
        server.stop()
        # Whoever starts it next finds, under this same lock, that there is no watcher.
        _pid_file(server.place).unlink(missing_ok=True)
        return True


def _pid(where: DataFolder) -> int | None:
    try:
        return int(_pid_file(where).read_text())
    except (FileNotFoundError, ValueError):
        return None


def _pid_file(where: DataFolder) -> Path:
    return where.home / PID_FILE
