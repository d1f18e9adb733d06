"""`voucherd migrate`: bring the database to this program's schema."""

from __future__ import annotations

import sys

from voucherd import bootstrap
from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext
from voucherd.cli.output import Output
from voucherd.migrate import migrate as run_migrations

app = noun()


@command(app, "migrate")
async def migrate(context: CommandContext) -> Output:
    """Bring the database to this program's schema."""
    async with bootstrap.database(context.settings, exclusive=False) as url:
        owners = context.settings.migration_url or url
        await bootstrap.refuse_transaction_pooling(owners)
        labels = await run_migrations(owners, _tell)
    view = "\n".join(f"ran {label}" for label in labels) or "Nothing to do: the schema is this program's."
    return Output({"ran": labels}, view)


def _tell(line: str) -> None:
    """Say on stderr what is waited for: the answer of the command comes at its end."""
    sys.stderr.write(f"voucherd: {line}\n")
    sys.stderr.flush()
