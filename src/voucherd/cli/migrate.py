"""`voucherd migrate`: bring the database to this program's schema."""

from __future__ import annotations

from voucherd import bootstrap
from voucherd.cli.answers import Answer
from voucherd.cli.frame import command, noun
from voucherd.cli.office import Office
from voucherd.migrate import migrate as run_migrations

app = noun()


@command(app, "migrate")
async def migrate(office: Office) -> Answer:
    """Bring the database to this program's schema."""
    async with bootstrap.database(office.settings, exclusive=False) as url:
        labels = await run_migrations(url)
    view = "\n".join(f"ran {label}" for label in labels) or "Nothing to do: the schema is this program's."
    return Answer({"ran": labels}, view)
