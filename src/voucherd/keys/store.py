"""The only place that touches api_key and access_epoch."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import asyncpg

from voucherd.companies.model import Company
from voucherd.db import Connection, Pool, Tx
from voucherd.ids import State
from voucherd.keys.grants import bounded
from voucherd.keys.key_text import TERMS, KeyDraft, KeyTerms, Scope, new_key, plain_network, plain_terms
from voucherd.keys.model import STANDINGS, FoundKey, IssuedKey, Key, KeyNotFound, KeyNotUsable
from voucherd.sorting import order_by

__all__ = ["STANDINGS", "FoundKey", "IssuedKey", "Key", "KeyNotFound", "KeyNotUsable"]

OVERLAP_MAX: Final = timedelta(days=90)

_NAMES: Final = (
    *("id", "company_id", "state", "prefix", "revoked_at", "replaced_by", "created_at", "last_used_at"),
    *("made_by", "parent_id", "first_id", "maker_role"),
    *TERMS,
)
_COLUMNS: Final = ", ".join(_NAMES)
_TERMS: Final = ", ".join(TERMS)
_USABLE: Final = "revoked_at IS NULL AND coalesce(expires_at > now(), true)"
_SCOPE_WORDS: Final = frozenset(scope.value for scope in Scope)
_FAMILY: Final = """
    WITH RECURSIVE family (id, company_id) AS (
        SELECT id, company_id FROM api_key WHERE id = $1
        UNION SELECT k.id, k.company_id FROM family f
              JOIN api_key k ON k.company_id = f.company_id AND k.parent_id = f.id)
"""
"""The key $1 and every key that was made with it, directly or not."""
_LIMITS_ABOVE: Final = """
    ARRAY(WITH RECURSIVE above (id) AS (
              SELECT k.parent_id UNION SELECT p.parent_id FROM above a JOIN api_key p ON p.id = a.id)
          SELECT (coalesce(p.first_id, p.id), p.spend_order_eur_minor, p.spend_day_eur_minor)
          FROM above a JOIN api_key p ON p.id = a.id
          WHERE coalesce(p.spend_order_eur_minor, p.spend_day_eur_minor) IS NOT NULL)
"""
"""The limits of the keys that the key k was made with, directly or not: what it spends counts for them, too."""


async def add_key(
    tx: Tx,
    company_id: int,
    state: State,
    draft: KeyDraft,
    *,
    made_by: int | None = None,
    parent_id: int | None = None,
    first_id: int | None = None,
) -> IssuedKey:
    """A new key of this company."""
    made = new_key(state)
    key_id = await tx.fetchval(
        f"INSERT INTO api_key (company_id, state, prefix, hash, made_by, parent_id, first_id, {_TERMS})"  # noqa: S608 - Names of ours.
        f" VALUES ($1, $2, $3, $4, $5, $6, $7, {_places(8)}) RETURNING id",
        company_id,
        int(state),
        made.prefix,
        made.hash,
        made_by,
        parent_id,
        first_id,
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


KEY_SORTS: Final = {
    "added": "id {0}",
    "name": "nullif(lower(description), '') {0} NULLS LAST, id DESC",
    "used": "last_used_at {0} NULLS LAST, id DESC",
}
"""How a list of a company's keys can be sorted."""


async def sorted_keys(
    connection: Connection, company_id: int, state: State, sort: str, limit: int, offset: int = 0
) -> list[Key]:
    """The company's keys in this state; `sort` is a key of KEY_SORTS."""
    rows = await connection.fetch(
        f"SELECT {_COLUMNS} FROM api_key WHERE company_id = $1 AND state = $2"  # noqa: S608 - Constants of ours.
        f" ORDER BY {order_by(KEY_SORTS, sort)} LIMIT $3 OFFSET $4",
        company_id,
        int(state),
        limit,
        offset,
    )
    return [_key(row) for row in rows]


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


async def prefixes(connection: Connection, key_ids: Collection[int]) -> dict[int, str]:
    """How these keys begin."""
    rows = await connection.fetch("SELECT id, prefix FROM api_key WHERE id = ANY ($1::bigint[])", key_ids)
    return {row[0]: row[1] for row in rows}


async def children_of(connection: Connection, company_id: int) -> dict[int, int]:
    """How many keys that can be used were made with each of the company's keys."""
    rows = await connection.fetch(
        "SELECT parent_id, count(*) FROM api_key"  # noqa: S608 - A constant of ours.
        f" WHERE company_id = $1 AND parent_id IS NOT NULL AND {_USABLE} GROUP BY parent_id",
        company_id,
    )
    return {row[0]: row[1] for row in rows}


async def descends(connection: Connection, key_id: int, ancestor_id: int) -> bool:
    """Whether the one key was made with the other, directly or not."""
    found = await connection.fetchval(
        f"{_FAMILY} SELECT EXISTS (SELECT FROM family WHERE id = $2 AND id <> $1)",  # noqa: S608 - Ours.
        ancestor_id,
        key_id,
    )
    return bool(found)


async def change_key(tx: Tx, key_id: int, draft: KeyDraft) -> None:
    """Let the key be as the draft says; keys that were made with it reach no further from now on."""
    await tx.execute(
        f"UPDATE api_key SET ({_TERMS}) = ({_places(2)}) WHERE id = $1",  # noqa: S608 - Names of ours.
        key_id,
        *plain_terms(draft),
    )
    await tx.execute(
        f"""
        {_FAMILY}
        UPDATE api_key k
        SET scopes = ARRAY(SELECT unnest(k.scopes) INTERSECT SELECT unnest(p.scopes) ORDER BY 1),
            expires_at = least(k.expires_at, p.expires_at), confirms_alone = k.confirms_alone AND p.confirms_alone
        FROM api_key p WHERE p.id = $1 AND k.id <> $1 AND k.id IN (SELECT id FROM family)
        """,  # noqa: S608 - A constant of ours.
        key_id,
    )


async def answer_for(tx: Tx, key: Key, person: int | None) -> None:
    """Let this person, or the operator for None, answer for the key and for those that were made with it."""
    await tx.execute(
        f"{_FAMILY} UPDATE api_key SET made_by = $2"  # noqa: S608 - A constant of ours.
        " WHERE id IN (SELECT id FROM family) AND made_by IS NOT DISTINCT FROM $3",
        key.id,
        person,
        key.made_by,
    )


async def rotate_key(
    tx: Tx, key_id: int, overlap: timedelta, *, made_by: int | None = None, parent_id: int | None = None
) -> IssuedKey:
    """A new key like this one, which stays valid for the overlap and then expires.

    The keys that were made with the old one belong to the new one from now on.
    """
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
    issued = await add_key(
        tx,
        old.company_id,
        old.state,
        old.draft,
        made_by=old.made_by if made_by is None else made_by,
        parent_id=old.parent_id if parent_id is None else parent_id,
        first_id=old.counter_id,
    )
    await _hand_over(tx, old, issued.id)
    await tx.execute(
        "UPDATE api_key SET replaced_by = $2, expires_at = least(expires_at, now() + $3) WHERE id = $1",
        key_id,
        issued.id,
        overlap,
    )
    return issued


async def revoke_key(tx: Tx, key_id: int) -> list[int]:
    """End the key's life now, and that of those that were made with it; those whose life it ends beside its own."""
    rows = await tx.fetch(
        f"{_FAMILY} UPDATE api_key SET revoked_at = coalesce(revoked_at, now())"  # noqa: S608 - A constant of ours.
        " WHERE id IN (SELECT id FROM family) RETURNING id, revoked_at = now()",
        key_id,
    )
    if not rows:
        raise KeyNotFound(key_id)
    return sorted(number for number, new in rows if new and number != key_id)


async def let_go_of_children(tx: Tx, key: Key) -> None:
    """Let the keys that were made with this one belong to the key that it was made with, if there is one."""
    await _hand_over(tx, key, key.parent_id)


async def _hand_over(tx: Tx, key: Key, parent_id: int | None) -> None:
    await tx.execute(
        "UPDATE api_key SET parent_id = $3 WHERE company_id = $2 AND parent_id = $1 AND id IS DISTINCT FROM $3",
        key.id,
        key.company_id,
        parent_id,
    )


async def find_key(connection: Connection | Pool, key_hash: bytes) -> FoundKey | None:
    """The key with this hash and its company, unless it was revoked."""
    # The epoch comes from the same snapshot, so the answer is known to be as old as that epoch, never older.
    row = await connection.fetchrow(
        f"SELECT {', '.join(f'k.{name}' for name in _NAMES)}, k.hash,"  # noqa: S608 - Names of ours.
        " c.id, c.name, c.country, c.vat_number, c.active, c.verified, c.expose_costs, c.spend_order_eur_minor,"
        f" c.spend_day_eur_minor, c.approve_from_eur_minor, {_LIMITS_ABOVE},"
        " (SELECT epoch FROM access_epoch)"
        " FROM api_key k JOIN company c ON c.id = k.company_id WHERE k.hash = $1 AND k.revoked_at IS NULL",
        key_hash,
    )
    if row is None:
        return None
    values = tuple(row)
    width = len(_NAMES)
    *company, above, epoch = values[width + 1 :]
    return FoundKey(_key(row), values[width], Company(*company), [tuple(one) for one in above], epoch)


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


class UsableHash(NamedTuple):
    """A key that can be used, by its number and its hash."""

    id: int
    hash: bytes
    company_active: bool


async def usable_hashes(connection: Connection, company_id: int | None = None) -> list[UsableHash]:
    """Every key that can be used, of one company or of all, oldest first."""
    rows = await connection.fetch(
        "SELECT k.id, k.hash, c.active FROM api_key k JOIN company c ON c.id = k.company_id"  # noqa: S608 - Ours.
        f" WHERE ($1::int IS NULL OR k.company_id = $1) AND {_USABLE} ORDER BY k.id",
        company_id,
    )
    return [UsableHash(*row) for row in rows]


async def put_key(
    tx: Tx,
    company_id: int,
    state: State,
    prefix: str,
    known_by: bytes,
    draft: KeyDraft,
    parent_id: int | None,
) -> int | None:
    """A key that was made elsewhere, as the draft says; None if it is revoked here, or another company's."""
    number: int | None = await tx.fetchval(
        f"INSERT INTO api_key (company_id, state, prefix, hash, parent_id, {_TERMS})"  # noqa: S608 - Names of ours.
        f" VALUES ($1, $2, $3, $4, $5, {_places(6)})"
        f" ON CONFLICT (hash) DO UPDATE SET ({_TERMS}) = ROW({', '.join(f'excluded.{name}' for name in TERMS)}),"
        " parent_id = excluded.parent_id, made_by = NULL"
        " WHERE api_key.company_id = $1 AND api_key.state = $2 AND api_key.revoked_at IS NULL RETURNING id",
        company_id,
        int(state),
        prefix,
        known_by,
        parent_id,
        *plain_terms(draft),
    )
    return number


async def revoke_all_but(tx: Tx, company_id: int, kept: Collection[int]) -> list[str]:
    """End the life of all keys of the company but these; how those begin whose life it ends."""
    rows = await tx.fetch(
        "UPDATE api_key SET revoked_at = now() WHERE company_id = $1 AND id <> ALL ($2::bigint[])"
        " AND revoked_at IS NULL RETURNING prefix",
        company_id,
        kept,
    )
    return sorted(row["prefix"] for row in rows)


def _places(first: int) -> str:
    """The parameters of a key's fields, from this one on."""
    return ", ".join(f"${first + at}" for at in range(len(TERMS)))


def _key(row: asyncpg.Record) -> Key:
    values: dict[str, Any] = dict(zip(_NAMES, tuple(row), strict=False))
    # A scope that a newer version of the program stored means nothing to this one.
    known = frozenset(Scope(word) for word in values["scopes"] if word in _SCOPE_WORDS)
    lists = {name: tuple(map(plain_network, one)) for name, one in values.items() if isinstance(one, list)}
    role = values.pop("maker_role")
    left = bounded(KeyTerms(scopes=known, confirms_alone=values["confirms_alone"]), role)
    rest = {
        "state": State(values["state"]),
        "scopes": left.scopes,
        "withheld": known - left.scopes,
        "withheld_alone": values["confirms_alone"] and not left.confirms_alone,
        "confirms_alone": left.confirms_alone,
    }
    return Key(**(values | lists | rest))
