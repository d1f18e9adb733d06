"""`voucherd vault`: the keys that seal codes and secrets, and their rotation (OP-95)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from voucherd.api import idempotent
from voucherd.cli import master_files
from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused, Output, record, screen, stacked, table
from voucherd.idempotency.model import Ticket
from voucherd.people.second_factors import totp_place
from voucherd.suppliers.store import secret_place as supplier_place
from voucherd.vault import rotation
from voucherd.vault.master_key import KEY_VERSION
from voucherd.vault.purchased import quarantine_place
from voucherd.vault.resealing import Texts, sealed_with
from voucherd.vault.rotation import Count
from voucherd.vault.uploads import place_of
from voucherd.webhooks.endpoints import headers_place, secret_place

app = noun()

TEXTS: Final = (
    Texts("supplier", ("name",), "secret", supplier_place),
    Texts("webhook", ("id",), "secret", secret_place),
    Texts("webhook", ("id",), "old_secret", secret_place),
    Texts("webhook", ("id",), "headers", headers_place),
    Texts("totp", ("user_id",), "secret", totp_place),
    Texts("upload", ("id",), "sealed", place_of, batch_max=1),
    Texts("quarantined_code", ("attempt_id", "place"), "sealed", quarantine_place),
    Texts(
        "idempotency",
        ("company_id", "state", "key"),
        "answer",
        lambda company_id, state, key: idempotent.place(Ticket(company_id, state, key)),
    ),
)
"""Everything that is sealed and no code on a shelf."""


@command(app, "status")
async def status(context: CommandContext) -> Output:
    """Say which keys there are, and what each of them seals."""
    async with context.connection() as connection:
        await context.key_ring(connection)
        rows = await rotation.keys(connection)
        sealed = await sealed_with(connection, TEXTS)
        master = await connection.fetchrow("SELECT generation, changed_at FROM vault_master")
    assert master is not None, "the ring has made it"
    active = max(row.version for row in rows if row.active_at is not None and row.retired_at is None)
    document = {
        "masterKey": {"generation": master["generation"], "since": master["changed_at"]},
        "keys": [
            {
                "version": row.version,
                "standing": _standing(row, active),
                "createdAt": row.created_at,
                "activeAt": row.active_at,
                "retiredAt": row.retired_at,
                **dict(zip(("lots", "codes", "texts"), sealed.get(row.version, (0, 0, 0)), strict=True)),
            }
            for row in rows
        ],
    }
    view = table(
        [">key", "standing", "since", ">lots", ">codes", ">texts"],
        [
            (row.version, _standing(row, active), row.active_at, *sealed.get(row.version, (0, 0, 0)))
            for row in rows
        ],
        empty="",
    )
    said = f"The master key is number {master['generation']}, since {master['changed_at']:%Y-%m-%d %H:%M}."
    return Output(document, stacked(said, "", view))


@command(app, "rotate")
async def rotate(
    context: CommandContext,
    master: Annotated[
        bool, typer.Option("--master", help="Replace the master key instead; nothing is sealed again.")
    ] = False,
    new_key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Holds the new master key, where it does not come from a file."),
    ] = None,
) -> Output:
    """Make a new key and seal everything with it, while the service runs. If stopped, it goes on when run again."""
    if new_key_file is not None and not master:
        raise typer.BadParameter("--new-key-file goes with --master")
    if master:
        return await _rotate_master(context, new_key_file)
    began = time.monotonic()
    async with context.pool() as pool:
        async with pool.acquire() as connection:
            key_ring = await context.key_ring(connection)
        version = await rotation.begin(pool, key_ring, TEXTS)
        since = await rotation.activate(pool, context.actor, key_ring, version)
        try:
            with _progress() as told:
                count = await rotation.reseal_all(pool, key_ring, version, TEXTS, since, told)
        except rotation.SomebodyWrites:
            raise CommandRefused(
                "a transaction that began with the old key does not end: run it again later"
            ) from None
    document = {
        "version": version,
        "codes": count.codes,
        "texts": count.texts,
        "seconds": round(time.monotonic() - began, 1),
    }
    return Output(
        document,
        f"Key {version} seals everything: {count.codes:,} codes and {count.texts:,} texts were sealed again.",
    )


@command(app, "retire")
async def retire(
    context: CommandContext, version: Annotated[int, typer.Argument(metavar="KEY", min=1)]
) -> Output:
    """Destroy a key that seals nothing any more."""
    async with context.pool() as pool:
        try:
            await rotation.retire(pool, context.actor, version, TEXTS)
        except rotation.NoSuchKey:
            raise CommandRefused(f"there is no key {version}, or it is retired already") from None
        except rotation.StillUsed:
            raise CommandRefused(
                f"key {version} seals something, or what began with it is still open: run `voucherd vault rotate`"
            ) from None
    said = f"Key {version} is destroyed: what it sealed in old backups can't be read with this database any more."
    if version == KEY_VERSION:
        said = "Key 1 is not used any more. It is derived from the root, so whoever has that can compute it."
    return Output({"version": version, "retired": True}, said)


async def _rotate_master(context: CommandContext, new_key_file: Path | None) -> Output:
    change = master_files.plan(context.settings, new_key_file)
    async with context.transaction() as tx:
        key_ring = await context.key_ring(tx)
        # Whoever begins in this moment reads either the old state of the database or the new one.
        await tx.execute("LOCK TABLE vault_master IN SHARE ROW EXCLUSIVE MODE")
        if not change.done(key_ring.master):
            await rotation.replace_master(tx, context.actor, key_ring, change.fresh)
        generation = await tx.fetchval("SELECT generation FROM vault_master")
    kept_at = change.finish(generation - 1)
    rows: list[tuple[str, object]] = [("master key", f"number {generation}")]
    if kept_at is None:
        rows.append(("", "Give the services the new key: with the old one they start no more."))
    else:
        rows += [("file", change.file), ("old key", kept_at)]
        rows.append(("", "Older backups need the old key: keep it with them, and not here."))
    document = {
        "generation": generation,
        "file": change.file and str(change.file),
        "oldKey": kept_at and str(kept_at),
    }
    return Output(document, record(rows))


def _standing(row: rotation.KeyRow, active: int) -> str:
    if row.retired_at is not None:
        return "retired"
    if row.active_at is None:
        return "announced"
    return "seals" if row.version == active else "opens"


@contextmanager
def _progress() -> Iterator[Callable[[Count], Any]]:
    """A bar on a terminal; nothing elsewhere."""
    console = screen(stderr=True)
    columns = (TextColumn("sealing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("sealing")

        def told(count: Count) -> None:
            bar.update(
                task, completed=count.codes + count.texts, total=max(count.total, count.codes + count.texts)
            )

        yield told
