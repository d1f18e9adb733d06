"""The real worker in a process of its own, that a test may kill: settings from the environment, a word to stdout.

A lease lasts so much longer than a call that a test would only wait for it: `LEASE_MARGIN_S` shortens it.
"""

from __future__ import annotations

import asyncio
import os
import sys

from voucherd import worker
from voucherd.purchasing import attempts
from voucherd.settings import Settings


def main() -> None:
    """Work until told to stop, or killed."""
    attempts.LEASE_MARGIN_S = float(os.environ["LEASE_MARGIN_S"])  # type: ignore[misc,assignment]
    settings = Settings.load()
    assert settings.database_url is not None
    sys.stdout.write("working\n")
    sys.stdout.flush()
    asyncio.run(worker.run(settings, settings.database_url))


if __name__ == "__main__":
    main()
