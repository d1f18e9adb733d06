"""`voucherd worker`: the background work, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib

from voucherd import logs, worker
from voucherd.cli.answers import Answer
from voucherd.cli.frame import command, noun
from voucherd.cli.office import Office
from voucherd.cli.serve import refuse_old_schema

app = noun()


@command(app, "worker")
async def work(office: Office) -> None:
    """Run the background work: deliveries to orders that wait, and what time does to orders."""
    logs.configure(office.settings.log_level, office.settings.log_format)
    async with office.database() as url:
        await refuse_old_schema(url)
        office.say(Answer({"working": True}, "Working; Ctrl-C stops it."))
        # To be told to stop is how a worker ends, not a failure.
        with contextlib.suppress(asyncio.CancelledError):
            await worker.run(office.settings, url)
