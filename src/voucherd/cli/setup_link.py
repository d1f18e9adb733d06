"""`voucherd setup-link`: the link by which the operator's first person comes in."""

from __future__ import annotations

from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused, Output
from voucherd.db import transaction
from voucherd.setup import deeds
from voucherd.setup.deeds import SetUpAlready

app = noun()


@command(app, "setup-link")
async def setup_link(context: CommandContext) -> Output:
    """Print a new link to set the shop up with; those before it lead nowhere any more."""
    async with context.pool() as pool:
        async with pool.acquire() as connection:
            root = (await context.key_ring(connection)).root
        async with transaction(pool) as tx:
            try:
                token = await deeds.open_link(tx, context.actor, root, renew=True)
            except SetUpAlready:
                raise CommandRefused(
                    "the shop is set up: people sign in, and are invited in the console (Staff);"
                    " `voucherd user reset-password` helps who has lost a password"
                ) from None
    link = f"{context.settings.public_url}/set-up/{token}"
    return Output({"setupUrl": link}, f"{link}\nIt is good for 24 hours and can be used once.")
