"""`voucherd backup verify`: a drill. The newest backup is restored beside the database, and its books are checked."""

from __future__ import annotations

import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from voucherd import audit as books
from voucherd import backups
from voucherd.backups import BackupFailed, Drill, base_backups
from voucherd.backups.base_backups import Kept
from voucherd.cli.context import CommandContext, pool_of
from voucherd.cli.output import CommandRefused, Output
from voucherd.db import Connection
from voucherd.embedded import EmbeddedError, running
from voucherd.migrate import migrate
from voucherd.recovery import deeds, store
from voucherd.vault.key_ring import open_key_ring
from voucherd.vault.master_key import has_master


async def verify(context: CommandContext, path: Path) -> Output:
    """Restore a backup into a server that goes away again, plan a recovery and audit it; refused if it is no good."""
    started = time.monotonic()
    try:
        chosen = base_backups.choose(path, None)
    except BackupFailed as none:
        raise CommandRefused(str(none)) from None
    codes, said = 0, ""
    try:
        async with _restored(chosen) as url, pool_of(url) as pool, pool.acquire() as connection:
            codes, said = await _looked_at(context, connection)
    except (BackupFailed, EmbeddedError) as failed:
        said = str(failed)
    drill = Drill(chosen.path.name, chosen.at, said, round(time.monotonic() - started, 3))
    async with context.transaction() as tx:
        await backups.record_drill(tx, context.actor, drill)
    document = {
        "backup": str(chosen.path.resolve()),
        "takenAt": chosen.at,
        "ok": drill.ok,
        "problem": said or None,
        "codesAtRisk": codes,
        "seconds": drill.seconds,
    }
    if not drill.ok:
        raise CommandRefused(f"{chosen.path} is no good: {said}", Output(document, ""))
    line = f"{chosen.path} is good: restored, audited, nothing wrong, in {drill.seconds:.1f} s."
    risk = f"Restored now it would withhold {codes:,} codes that may have been sold since."
    return Output(document, f"{line}\n{risk}")


@contextmanager
def _trial_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="voucherd-drill-", ignore_cleanup_errors=True) as folder:
        # The server may run as another account; what lies below is private by itself.
        Path(folder).chmod(0o711)
        yield Path(folder) / "data"


@asynccontextmanager
async def _restored(one: Kept) -> AsyncIterator[str]:
    """The address of the backup's database in a folder that goes with the block."""
    with _trial_folder() as data:
        if one.is_base:
            with base_backups.replayed(data, one, None) as url:
                await migrate(url)
                yield url
        else:
            with running(data, exclusive=True) as url:
                await backups.put_back(url, one.path)
                await migrate(url)
                yield url


async def _looked_at(context: CommandContext, connection: Connection) -> tuple[int, str]:
    """How many codes a recovery would withhold, and what is wrong with the books; nothing if all is well."""
    plan = await deeds.plan(connection, await store.last_trace(connection), {})
    sealer = None
    if has_master(context.settings):
        sealer = (await open_key_ring(connection, context.settings)).sealer
    findings = await books.audit(connection, sealer)
    said = "; ".join(f"{finding.check}: {finding.promise}" for finding in findings)
    return sum(one.count for one in plan.live), said
