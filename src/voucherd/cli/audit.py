"""`voucherd audit`: checks every invariant on the live database."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from rich.console import RenderableType
from typer import Option

from voucherd import audit as books
from voucherd import clock
from voucherd.archive.block_files import BlockReader
from voucherd.archive.files import trouble
from voucherd.audit import AuditSince, Finding
from voucherd.audit import noted as books_noted
from voucherd.audit.noted import LastAudit
from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused, Output, facts, progress, stacked, table_of
from voucherd.cli.trail import noted_head
from voucherd.clock import iso
from voucherd.db import TABLES_OWNED, TENANTS_NOT_LOCKED, Connection, owns_tables, tenants_locked
from voucherd.trail import archived, chain
from voucherd.trail.chain import Head
from voucherd.trail.heads import FILE, NoHead, missing, read_notes
from voucherd.vault.master_key import has_master
from voucherd.vault.seal import Sealer

app = noun()


@command(app, "audit")
async def audit(
    context: CommandContext,
    head: Annotated[
        list[str] | None,
        Option(
            metavar="FILE|BOOK:BLOCK:HASH", help="A head of the trail that was noted; must be in the chain."
        ),
    ] = None,
    full: Annotated[
        bool,
        Option(
            "--full/--since-last",
            help="Every row, or only what changed since the last clean run with --since-last.",
        ),
    ] = True,
) -> Output:
    """Check every invariant on the live database; exit 1 with the offending rows if one is broken."""
    own, brought = _noted(context.settings.data / FILE, head or [])
    async with context.connection() as connection:
        # Heads of a time that a restore has lost prove nothing any more, once the operator has recovered.
        lost = set(await missing(connection, own))
        noted = [one for one, _ in own if one in lost or await chain.holds(connection, one)] + brought
        sealer, note = await _sealer(context, connection)
        archive, unread = await _archive(context, connection)
        locked = await tenants_locked(connection)
        owned = await owns_tables(connection)
        since: AuditSince | None = None
        with progress("audit") as move:
            told = partial(_tell, move)
            if full:
                findings = await books.audit(connection, sealer, noted=noted, progress=told, archive=archive)
            else:
                since = await books.audit_since(
                    connection, context.actor, sealer, noted=noted, progress=told, archive=archive
                )
                findings = since.findings
        heads = [str(head) for head in await chain.heads(connection)]
    _note(context.settings.data, len({finding.check for finding in findings}))
    names = books.check_names(with_seals=sealer is not None)
    broken = {finding.check for finding in findings}
    document: dict[str, Any] = {
        "ok": not findings,
        "checks": [{"name": name, "ok": name not in broken} for name in names],
        "findings": [facts(finding, "check promise rows more") for finding in findings],
        "note": note,
        "archiveUnread": unread,
        "heads": heads,
        "noted": [str(one) for one in noted],
        "tenantsLocked": locked,
        "tablesOwned": owned,
    }
    document |= _facts_since(since)
    if findings:
        count = "1 invariant is" if len(findings) == 1 else f"{len(findings)} invariants are"
        raise CommandRefused(f"{count} broken", Output(document, stacked(*map(_view, findings))))
    notes = [note, unread, *_cautions(locked=locked, owned=owned)]
    trail = [f"Head of the trail: {head}" for head in heads]
    held = f"All {len(names)} invariants hold{_of_what(since)}."
    return Output(document, "\n".join([held, *filter(None, notes), *trail]))


def _cautions(*, locked: bool, owned: bool) -> list[str]:
    """What the operator should know of the roles of his database."""
    missing_locks = [] if locked else [f"Note: {TENANTS_NOT_LOCKED}."]
    return missing_locks + ([f"Note: {TABLES_OWNED}."] if owned else [])


def _tell(move: Callable[..., None], name: str, done: int, total: int) -> None:
    move(description=name, completed=done, total=total)


def _facts_since(since: AuditSince | None) -> dict[str, Any]:
    """What a run since the last one says beside the rest."""
    if since is None:
        return {}
    at = None if since.mark is None else since.mark.at
    return {"since": at, "ordersLookedAt": since.orders, "marked": since.marked}


def _of_what(since: AuditSince | None) -> str:
    if since is None or since.mark is None:
        return ""
    return f" for what changed since {iso(since.mark.at)} ({since.orders:,} orders)"


def _note(folder: Path, broken: int) -> None:
    """Let the metrics tell when the books were last audited; an auditor without a data folder leaves no note."""
    with contextlib.suppress(OSError):
        books_noted.write(folder, LastAudit(clock.now(), broken))


def _noted(own: Path, given: Sequence[str]) -> tuple[list[tuple[Head, datetime | None]], list[Head]]:
    """The heads that must be in the chain: those of the worker's file, and those that the auditor brings along."""
    brought = [head for one in given if Path(one).is_file() for head, _ in _read(Path(one))]
    return _read(own), brought + [noted_head(one) for one in given if not Path(one).is_file()]


def _read(file: Path) -> list[tuple[Head, datetime | None]]:
    try:
        return read_notes(file)
    except NoHead as wrong:
        raise CommandRefused(f"{file}: {str(wrong)!r} is not a head of the trail") from None


async def _sealer(context: CommandContext, connection: Connection) -> tuple[Sealer | None, str | None]:
    """What opens codes, if the key is at hand; an auditor may well work without it."""
    if not has_master(context.settings):
        file = context.settings.master_key_file
        return None, f"No master key at {file}: no code was opened, and no block of the trail checked."
    return await context.sealer(connection), None


async def _archive(context: CommandContext, connection: Connection) -> tuple[BlockReader | None, str | None]:
    """What reads blocks of the trail that are in the archive; or how many nobody can read here, and why."""
    folder = context.settings.archive_folder
    count = await archived.count(connection)
    if count and (why := trouble(folder)):
        return None, f"{count:,} blocks of the trail are in the archive and were not read: {why}."
    return BlockReader(folder) if count else None, None


def _view(finding: Finding) -> RenderableType:
    rows = table_of(finding.rows, [(f"~{name}", name) for name in finding.rows[0]])
    more = ["…"] if finding.more else []
    return stacked(f"{finding.check}: {finding.promise}", rows, *more, "")
