"""A process that fans out and sends, and nothing else: for tests that kill it. Its leases are short."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path

from tests.webhooks.receiver import LOOPBACK
from voucherd.db import open_pool
from voucherd.ids import Identifiers
from voucherd.vault.master_key import load_or_create_master
from voucherd.vault.seal import Sealer
from voucherd.webhooks import claims, fanout, sender
from voucherd.webhooks.messages import message


async def run(url: str, key_file: str) -> None:
    """Send until killed."""
    claims.LEASE = timedelta(seconds=1)  # type: ignore[misc]
    sender.RENEW_S = 0.3  # type: ignore[misc]
    master = load_or_create_master(Path(key_file))
    pool = await open_pool(url, size_max=4, look_ups=True)
    hired = sender.Sender(pool, Sealer(master), partial(message, Identifiers(master)), LOOPBACK)
    hired.start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        if not await fanout.fan_out(pool):
            await asyncio.sleep(0.05)
        hired.wake()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], sys.argv[2]))
