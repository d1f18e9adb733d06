"""`voucherd vault`: the keys that seal codes and secrets, and their rotation (OP-95)."""

from __future__ import annotations

import hmac
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from typer import Argument, Option

from voucherd.api import idempotent
from voucherd.cli.command import command, noun, refusing
from voucherd.cli.context import CommandContext
from voucherd.cli.output import Output, facts, progress, record, stacked, table_of
from voucherd.idempotency.model import Ticket
from voucherd.people.second_factors import totp_place
from voucherd.settings import Settings
from voucherd.suppliers.store import secret_place as supplier_place
from voucherd.vault import master_key, rotation
from voucherd.vault.key_ring import next_file
from voucherd.vault.purchased import quarantine_place
from voucherd.vault.resealing import Texts, sealed_with
from voucherd.vault.rotation import Count
from voucherd.vault.uploads import place_of
from voucherd.webhooks.endpoints import headers_place, secret_place

app = noun()

OLD_KEY_IN_USE: Final = "a transaction that began with the old key does not end: run it again later"

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
    keys = [
        facts(
            row,
            "version standing createdAt activeAt retiredAt",
            standing=_standing(row, active),
            **dict(zip(("lots", "codes", "texts"), sealed.get(row.version, (0, 0, 0)), strict=True)),
        )
        for row in rows
    ]
    view = table_of(
        keys, [(">key", "version"), "standing", ("since", "activeAt"), ">lots", ">codes", ">texts"]
    )
    said = f"The master key is number {master['generation']}, since {master['changed_at']:%Y-%m-%d %H:%M}."
    key = {"generation": master["generation"], "since": master["changed_at"]}
    return Output({"masterKey": key, "keys": keys}, stacked(said, "", view))


@command(app, "rotate")
async def rotate(
    context: CommandContext,
    master: Annotated[
        bool, Option("--master", help="Replace the master key instead; nothing is sealed again.")
    ] = False,
    new_key_file: Annotated[
        Path | None,
        Option(metavar="FILE", help="Holds the new master key, where it does not come from a file."),
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
        columns = (TextColumn("sealing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with refusing({rotation.SomebodyWrites: OLD_KEY_IN_USE}), progress("sealing", *columns) as move:
            count = await rotation.reseal_all(
                pool, key_ring, version, TEXTS, since, lambda count: _move(move, count)
            )
    seconds = round(time.monotonic() - began, 1)
    document = facts(count, "version codes texts", version=version, seconds=seconds)
    counted = f"{count.codes:,} codes and {count.texts:,} texts"
    return Output(document, f"Key {version} seals everything: {counted} were sealed again.")


@command(app, "retire")
async def retire(context: CommandContext, version: Annotated[int, Argument(metavar="KEY", min=1)]) -> Output:
    """Destroy a key that seals nothing any more."""
    refusals: dict[type[Exception], str] = {
        rotation.NoSuchKey: f"there is no key {version}, or it is retired already",
        rotation.StillUsed: f"key {version} seals something, or what began with it is still open: "
        f"run `voucherd vault rotate`",
    }
    async with context.pool() as pool:
        with refusing(refusals):
            await rotation.retire(pool, context.actor, version, TEXTS)
    said = f"Key {version} is destroyed: what it sealed in old backups can't be read with this database any more."
    if version == master_key.KEY_VERSION:
        said = "Key 1 is not used any more. It is derived from the root, so whoever has that can compute it."
    return Output({"version": version, "retired": True}, said)


async def _rotate_master(context: CommandContext, new_key_file: Path | None) -> Output:
    change = plan_master(context.settings, new_key_file)
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


def _move(move: Callable[..., None], count: Count) -> None:
    done = count.codes + count.texts
    move(completed=done, total=max(count.total, done))


@dataclass(frozen=True)
class KeyFileChange:
    """A new master key, and where it is to be; without a file the operator puts it where it belongs."""

    fresh: bytes
    file: Path | None

    def __repr__(self) -> str:
        return f"Change(file={self.file!r})"

    def done(self, current: bytes) -> bool:
        """Whether the database has taken the new key already, in a try that was killed."""
        return hmac.compare_digest(self.fresh, current)

    def finish(self, old_generation: int) -> Path | None:
        """Put the new file in its place, and the old one beside it."""
        if self.file is None:
            return None
        old = self.file.with_name(f"{self.file.name}.{old_generation}")
        if self.file.exists() and not old.exists():
            os.link(self.file, old)
        next_file(self.file).replace(self.file)
        master_key.sync_folder(self.file.parent)
        return old


def plan_master(settings: Settings, new_key_file: Path | None) -> KeyFileChange:
    """A change that a crash may interrupt: with a file of its own a new key is made, otherwise it is given.

    First the new key is on disk beside the old one, then the database is changed, then the files change places. A crash
    in between leaves two files, of which the database knows the right one: services start with either state, and the
    next try goes on from there.
    """
    if settings.master_key is not None or settings.master_key_command:
        if new_key_file is None:
            raise master_key.VaultKeyError(
                "the master key comes from elsewhere: give the new one with --new-key-file"
            )
        return KeyFileChange(master_key.load_or_create_master(new_key_file), None)
    file = settings.master_key_file
    waiting = next_file(file)
    if not waiting.exists():
        master_key.write_master(
            waiting,
            master_key.new_master()
            if new_key_file is None
            else master_key.load_or_create_master(new_key_file),
        )
    return KeyFileChange(master_key.load_or_create_master(waiting), file)
