"""Another voucherd, for the tests: uses a data folder until its input ends or a signal comes."""

import os
import signal
import sys
from pathlib import Path

from voucherd.embedded import EmbeddedError, place, running, shutdown_signals, watcher


def main(data: str, system_root: str, kind: str, uid: str = "", look_every_s: str = "") -> int:
    """Prints the address when the server is ready, and leaves at the next line."""
    place.SYSTEM_ROOT = Path(system_root)
    watcher.LOOK_EVERY_S = float(look_every_s or watcher.LOOK_EVERY_S)
    # A test run in the background ignores Ctrl-C, and its children would do so, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if uid:
        # Everything is imported by now: an ordinary user may be unable to read the interpreter's folder.
        os.setgroups([])
        os.setgid(int(uid))
        os.setuid(int(uid))
    try:
        with shutdown_signals(), running(Path(data), exclusive=kind == "owner") as address:
            sys.stdout.write(address + "\n")
            sys.stdout.flush()
            sys.stdin.readline()
    except EmbeddedError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
