"""The real server in a process of its own, that a test may kill: settings from the environment, address to stdout.

With `--no-worker` it leaves the background work to others, with `--patient` it waits for a database that is slow.
"""

from __future__ import annotations

import asyncio
import sys

from tests.patience import be_patient
from voucherd.app import serve
from voucherd.settings import Settings


def main() -> None:
    """Serve until told to stop, or killed."""
    if "--patient" in sys.argv:
        be_patient()
    settings = Settings.load()
    assert settings.database_url is not None
    with_worker = "--no-worker" not in sys.argv
    asyncio.run(serve(settings, settings.database_url, with_worker=with_worker, on_ready=_say))


def _say(address: str) -> None:
    sys.stdout.write(address + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
