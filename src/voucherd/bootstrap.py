"""Bootstrap: where the database is, for every command alike."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from voucherd.embedded import archive, running
from voucherd.settings import Settings


@asynccontextmanager
async def database(settings: Settings, *, exclusive: bool) -> AsyncIterator[str]:
    """The URL of the operator's server, or of the embedded one, which runs as long as someone needs it."""
    if settings.database_url is not None:
        yield settings.database_url
        return
    # The same for every command: a server that ran without its archive would leave a gap in it.
    kept = archive.settings_for(settings.data, settings.backup_folder) if settings.backup_keep else {}
    # Starting blocks the loop, on purpose: nothing else runs yet, and a thread that outlives a cancelled
    # start would leave a server behind.
    with running(settings.data, exclusive=exclusive, settings=kept) as url:
        yield url
