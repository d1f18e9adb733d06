"""`voucherd worker`: the background work, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib

from voucherd import logs, worker
from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext, pool_of, refuse_pending, refuse_restored
from voucherd.cli.output import Output
from voucherd.metrics import worker_status

app = noun()


@command(app, "worker")
async def work(context: CommandContext) -> None:
    """Run the background work: deliveries to orders that wait, and what time does to orders."""
    logs.configure(context.settings.log_level, context.settings.log_format)
    async with context.database(wait=True) as url:
        async with pool_of(url) as pool:
            await refuse_pending(pool)
            await refuse_restored(pool, context.settings)
        context.say(Output({"working": True}, "Working; Ctrl-C stops it."))
        # To be told to stop is how a worker ends, not a failure.
        with contextlib.suppress(asyncio.CancelledError):
            await worker.run(context.settings, url, worker_status.shown)
