"""The only place that touches api_key and access_epoch."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import asyncpg

from voucherd.companies.model import Company
from voucherd.db import Connection, Pool, Tx
from voucherd.ids import State
from voucherd.keys.key_text import TERMS, KeyDraft, Scope, new_key, plain_network, plain_terms
from voucherd.keys.model import STANDINGS, FoundKey, IssuedKey, Key, KeyNotFound, KeyNotUsable

__all__ = ["STANDINGS", "FoundKey", "IssuedKey", "Key", "KeyNotFound", "KeyNotUsable"]

OVERLAP_MAX: Final = timedelta(days=90)

_NAMES: Final = (
    *("id", "company_id", "state", "prefix", "revoked_at", "replaced_by", "created_at", "last_used_at"),
    *TERMS,
)
_COLUMNS: Final = ", ".join(_NAMES)
_TERMS: Final = ", ".join(TERMS)
_USABLE: Final = "revoked_at IS NULL AND coalesce(expires_at > now(), true)"
_SCOPE_WORDS: Final = frozenset(scope.value for scope in Scope)


async def add_key(tx: Tx, company_id: int, state: State, draft: KeyDraft) -> IssuedKey:
    """A new key of this company."""
    made = new_key(state)
    key_id = await tx.fetchval(
        f"INSERT INTO api_key (company_id, state, prefix, hash, {_TERMS})"  # noqa: S608 - Names of ours.
        f" VALUES ($1, $2, $3, $4, {_places(5)}) RETURNING id",
        company_id,
        int(state),
        made.prefix,
        made.hash,
        *plain_terms(draft),
    )
    return IssuedKey(key_id, made.prefix, made.text)


async def list_keys(connection: Connection, company_id: int) -> list[Key]:
    """The company's keys, newest first."""
    rows = await connection.fetch(
        f"SELECT {_COLUMNS} FROM api_key WHERE company_id = $1 ORDER BY id DESC",  # noqa: S608 - A constant of ours.
        company_id,
    )
    return [_key(row) for row in rows]


async def page_of_keys(
    connection: Connection, company_id: int, state: State, *, size: int, before: int | None
) -> tuple[list[Key], bool]:
    """The company's next keys in this state, newest first, and whether there are more."""
    rows = await connection.fetch(
        f"SELECT {_COLUMNS} FROM api_key WHERE company_id = $1 AND state = $2"  # noqa: S608 - A constant of ours.
        " AND ($3::bigint IS NULL OR id < $3) ORDER BY id DESC LIMIT $4",
        company_id,
        int(state),
        before,
        size + 1,
    )
    return [_key(row) for row in rows[:size]], len(rows) > size


async def own_key(connection: Connection, key_id: int, company_id: int, state: State) -> Key:
    """One key of the company in this state."""
    row = await connection.fetchrow(
        f"SELECT {_COLUMNS} FROM api_key WHERE id = $1 AND company_id = $2 AND state = $3",  # noqa: S608 - Ours.
        key_id,
        company_id,
        int(state),
    )
    if row is None:
        raise KeyNotFound(key_id)
    return _key(row)


async def find_by_id(connection: Connection, key_id: int) -> Key:
    """Any key, for the operator."""
    row = await connection.fetchrow(
        f"SELECT {_COLUMNS} FROM api_key WHERE id = $1",  # noqa: S608 - A constant of ours.
        key_id,
    )
    if row is None:
        raise KeyNotFound(key_id)
    return _key(row)


async def lock_keys(tx: Tx, company_id: int) -> None:
    """Be the only one who changes the company's keys on its own behalf, until the transaction ends."""
    await tx.execute("SELECT FROM company WHERE id = $1 FOR NO KEY UPDATE", company_id)


async def usable_key(tx: Tx, key_id: int) -> Key | None:
    """The key, if it can be used now; it stays as it is until the transaction ends."""
    row = await tx.fetchrow(
        f"SELECT {_COLUMNS} FROM api_key WHERE id = $1 AND {_USABLE} FOR SHARE",  # noqa: S608 - Constants of ours.
        key_id,
    )
    return None if row is None else _key(row)


async def count_usable(tx: Tx, company_id: int, state: State) -> int:
    """How many keys of the company can be used."""
    count = await tx.fetchval(
        f"SELECT count(*) FROM api_key WHERE company_id = $1 AND state = $2 AND {_USABLE}",  # noqa: S608 - Ours.
        company_id,
        int(state),
    )
    return int(count)


async def change_key(tx: Tx, key_id: int, draft: KeyDraft) -> None:
    """Let the key be as the draft says."""
    await tx.execute(
        f"UPDATE api_key SET ({_TERMS}) = ({_places(2)}) WHERE id = $1",  # noqa: S608 - Names of ours.
        key_id,
        *plain_terms(draft),
    )


async def rotate_key(tx: Tx, key_id: int, overlap: timedelta) -> IssuedKey:
    """A new key like this one, which stays valid for the overlap and then expires."""
    if not timedelta() <= overlap <= OVERLAP_MAX:
        raise ValueError(f"an overlap is between 0 and {OVERLAP_MAX.days} days")
    row = await tx.fetchrow(
        f"SELECT {_COLUMNS}, replaced_by IS NULL AND {_USABLE} AS usable FROM api_key"  # noqa: S608 - Ours.
        " WHERE id = $1 FOR UPDATE",
        key_id,
    )
    if row is None:
        raise KeyNotFound(key_id)
    if not row["usable"]:
        raise KeyNotUsable(key_id)
    old = _key(row)
    issued = await add_key(tx, old.company_id, old.state, old.draft)
    await tx.execute(
        "UPDATE api_key SET replaced_by = $2, expires_at = least(expires_at, now() + $3) WHERE id = $1",
        key_id,
        issued.id,
        overlap,
    )
    return issued


async def revoke_key(tx: Tx, key_id: int) -> None:
    """End the key's life now; to revoke it again changes nothing."""
    found = await tx.fetchval(
        "UPDATE api_key SET revoked_at = coalesce(revoked_at, now()) WHERE id = $1 RETURNING true", key_id
    )
    if not found:
        raise KeyNotFound(key_id)


async def find_key(connection: Connection | Pool, key_hash: bytes) -> FoundKey | None:
    """The key with this hash and its company, unless it was revoked."""
    # The epoch comes from the same snapshot, so the answer is known to be as old as that epoch, never older.
    row = await connection.fetchrow(
        f"SELECT {', '.join(f'k.{name}' for name in _NAMES)}, k.hash,"  # noqa: S608 - Names of ours.
        " c.id, c.name, c.country, c.vat_number, c.active, c.verified, c.expose_costs, c.spend_order_eur_minor,"
        " c.spend_day_eur_minor,"
        " (SELECT epoch FROM access_epoch)"
        " FROM api_key k JOIN company c ON c.id = k.company_id WHERE k.hash = $1 AND k.revoked_at IS NULL",
        key_hash,
    )
    if row is None:
        return None
    values = tuple(row)
    width = len(_NAMES)
    return FoundKey(_key(row), values[width], Company(*values[width + 1 : -1]), values[-1])


async def owner_of(connection: Connection, key_id: int) -> tuple[int, State] | None:
    """The company and the state of a key."""
    row = await connection.fetchrow("SELECT company_id, state FROM api_key WHERE id = $1", key_id)
    return None if row is None else (row["company_id"], State(row["state"]))


async def read_epoch(connection: Connection | Pool) -> int:
    """The number that grows whenever a key or a company changes."""
    epoch = await connection.fetchval("SELECT epoch FROM access_epoch")
    assert isinstance(epoch, int), "the first migration puts the row there"
    return epoch


async def record_last_use(connection: Connection | Pool, used_at: Mapping[int, datetime]) -> None:
    """Note when these keys were used last."""
    # A row that another process is noting just now is skipped: it is noting about the same moment, and two
    # processes that wait for each other's rows could deadlock.
    await connection.execute(
        "UPDATE api_key k SET last_used_at = greatest(k.last_used_at, u.at)"
        " FROM unnest($1::bigint[], $2::timestamptz[]) AS u (id, at)"
        " WHERE k.id = u.id AND k.id IN"
        " (SELECT id FROM api_key WHERE id = ANY ($1::bigint[]) FOR NO KEY UPDATE SKIP LOCKED)",
        list(used_at.keys()),
        list(used_at.values()),
    )


def _places(first: int) -> str:
    """The parameters of a key's fields, from this one on."""
    return ", ".join(f"${first + at}" for at in range(len(TERMS)))


def _key(row: asyncpg.Record) -> Key:
    values: dict[str, Any] = dict(zip(_NAMES, tuple(row), strict=False))
    # A scope that a newer version of the program stored means nothing to this one.
    known = frozenset(Scope(word) for word in values["scopes"] if word in _SCOPE_WORDS)
    lists = {name: tuple(map(plain_network, one)) for name, one in values.items() if isinstance(one, list)}
    return Key(**(values | lists | {"state": State(values["state"]), "scopes": known}))
