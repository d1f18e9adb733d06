"""Endpoints: where a company wants its events sent. The only place that touches their rows.

The row of `webhook_queue` is an endpoint's lock: a change of an endpoint or of its deliveries takes it first.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import asyncpg
import msgspec
from msgspec import UNSET, Struct, UnsetType

from voucherd.db import Connection, Tx
from voucherd.ids import State
from voucherd.vault.seal import Sealer
from voucherd.webhooks import signing
from voucherd.webhooks.messages import MessageFormat

ENDPOINTS_MAX: Final = 20
"""Of a company in one state."""
DESCRIPTION_CHARS_MAX: Final = 200
OVERLAP_MAX: Final = timedelta(days=7)
OVERLAP: Final = timedelta(days=1)


class EndpointNotFound(Exception):
    """The company has no such endpoint in this state."""

    def __init__(self) -> None:
        super().__init__("there is no such endpoint")


class TooManyEndpoints(Exception):
    """The company has as many endpoints as it may have."""

    def __init__(self) -> None:
        super().__init__(f"a company has at most {ENDPOINTS_MAX} endpoints in each state")


class PerOrderTaken(Exception):
    """There is one endpoint for orders' own addresses already."""

    def __init__(self) -> None:
        super().__init__("there is an endpoint for the addresses of orders already")


class Draft(Struct, frozen=True):
    """A new endpoint; without a URL each order names its own."""

    url: str | None
    types: tuple[str, ...] = ()
    description: str = ""
    enabled: bool = True
    headers: Mapping[str, str] = {}
    secret: str | None = None
    format: MessageFormat = MessageFormat.STANDARD


class Changes(Struct, frozen=True):
    """The fields to change; the rest stays."""

    url: str | UnsetType = UNSET
    types: tuple[str, ...] | UnsetType = UNSET
    description: str | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    headers: Mapping[str, str] | UnsetType = UNSET
    format: MessageFormat | UnsetType = UNSET


class Endpoint(Struct, frozen=True):
    """Where events go, without its secrets."""

    id: int
    company_id: int
    state: State
    url: str | None
    format: MessageFormat
    types: tuple[str, ...]
    description: str
    enabled: bool
    disabled_reason: str | None
    header_names: tuple[str, ...]
    old_until: datetime | None
    created_at: datetime
    updated_at: datetime
    failures: int
    failing_since: datetime | None


class Keyring(Struct, frozen=True):
    """What messages to an endpoint are signed with and carry; never shown."""

    secrets: tuple[str, ...]
    headers: tuple[tuple[bytes, bytes], ...]

    def __repr__(self) -> str:
        return f"Keyring({len(self.secrets)} secrets)"


_COLUMNS: Final = """
    w.id, w.company_id, w.state, w.url, w.format, w.types, w.description, w.enabled, w.disabled_reason, w.header_names,
    CASE WHEN w.old_until > now() THEN w.old_until END AS old_until, w.created_at, w.updated_at, q.failures,
    q.failing_since
"""
_FROM: Final = "FROM webhook w JOIN webhook_queue q ON q.webhook_id = w.id"


async def add(tx: Tx, sealer: Sealer, company_id: int, state: State, draft: Draft) -> tuple[Endpoint, str]:
    """A new endpoint and its secret, which is not to be had again."""
    # One at a time for each company: the slots are counted, and the last one is given once.
    await tx.execute("SELECT FROM company WHERE id = $1 FOR NO KEY UPDATE", company_id)
    slots = await tx.fetch(
        "SELECT slot, url IS NULL AS per_order FROM webhook WHERE company_id = $1 AND state = $2",
        company_id,
        int(state),
    )
    free = sorted(set(range(1, ENDPOINTS_MAX + 1)) - {row["slot"] for row in slots})
    if not free:
        raise TooManyEndpoints
    if draft.url is None and any(row["per_order"] for row in slots):
        raise PerOrderTaken
    number = await tx.fetchval("SELECT nextval('webhook_number')")
    secret = draft.secret or signing.new_secret()
    await tx.execute(
        """
        WITH made AS (
            INSERT INTO webhook (id, company_id, state, slot, url, description, types, enabled, secret, headers,
                                 header_names, format)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING id)
        INSERT INTO webhook_queue (webhook_id) SELECT id FROM made
        """,
        number,
        company_id,
        int(state),
        free[0],
        draft.url,
        draft.description,
        list(draft.types),
        draft.enabled,
        sealer.seal_text(secret_place(number), secret),
        _sealed_headers(sealer, number, draft.headers),
        sorted(draft.headers),
        draft.format,
    )
    return await find(tx, number, company_id, state), secret


async def find(conn: Connection, number: int, company_id: int, state: State) -> Endpoint:
    """One endpoint of the company."""
    row = await conn.fetchrow(
        f"SELECT {_COLUMNS} {_FROM} WHERE w.id = $1 AND w.company_id = $2 AND w.state = $3",
        number,
        company_id,
        int(state),
    )
    if row is None:
        raise EndpointNotFound
    return _endpoint(row)


async def find_any(conn: Connection, number: int) -> Endpoint:
    """One endpoint, for the operator."""
    row = await conn.fetchrow(f"SELECT {_COLUMNS} {_FROM} WHERE w.id = $1", number)
    if row is None:
        raise EndpointNotFound
    return _endpoint(row)


async def list_all(
    conn: Connection, company_id: int | None = None, state: State | None = None
) -> list[Endpoint]:
    """The endpoints of a company, or of all, oldest first."""
    rows = await conn.fetch(
        f"SELECT {_COLUMNS} {_FROM} WHERE ($1::int IS NULL OR w.company_id = $1)"
        " AND ($2::smallint IS NULL OR w.state = $2) ORDER BY w.id",
        company_id,
        None if state is None else int(state),
    )
    return [_endpoint(row) for row in rows]


async def has_per_order(conn: Connection, company_id: int, state: State) -> bool:
    """Whether orders of the company may name addresses of their own."""
    return bool(
        await conn.fetchval(
            "SELECT EXISTS (SELECT FROM webhook WHERE company_id = $1 AND state = $2 AND url IS NULL)",
            company_id,
            int(state),
        )
    )


async def change(tx: Tx, sealer: Sealer, endpoint: Endpoint, changes: Changes) -> Endpoint:
    """The endpoint as it is to be from now on. One that is enabled goes on with what still waits."""
    await lock(tx, endpoint.id)
    headers = None if changes.headers is UNSET else changes.headers
    await tx.execute(
        """
        UPDATE webhook SET url = coalesce($2, url), types = coalesce($3, types),
            description = coalesce($4, description), enabled = coalesce($5, enabled),
            disabled_reason = CASE WHEN $5 IS NULL THEN disabled_reason END,
            headers = CASE WHEN $6 THEN $7 ELSE headers END,
            header_names = CASE WHEN $6 THEN $8 ELSE header_names END, format = coalesce($9, format),
            updated_at = now()
        WHERE id = $1
        """,
        endpoint.id,
        _or_none(changes.url),
        None if changes.types is UNSET else list(changes.types),
        _or_none(changes.description),
        _or_none(changes.enabled),
        headers is not None,
        None if headers is None else _sealed_headers(sealer, endpoint.id, headers),
        sorted(headers or ()),
        _or_none(changes.format),
    )
    if changes.enabled is not UNSET and changes.enabled != endpoint.enabled:
        await _restart(tx, endpoint.id)
    return await find(tx, endpoint.id, endpoint.company_id, endpoint.state)


async def _restart(tx: Tx, number: int) -> None:
    """Forget failures; what waits is due when it says, or never while the endpoint is disabled."""
    await tx.execute(
        """
        UPDATE webhook_queue SET failures = 0, failing_since = NULL, leased = false, fence = fence + 1,
            next_at = (SELECT d.next_at FROM webhook_delivery d JOIN webhook w ON w.id = d.webhook_id
                       WHERE d.webhook_id = $1 AND d.status = 0 AND w.enabled ORDER BY d.next_at LIMIT 1)
        WHERE webhook_id = $1
        """,
        number,
    )


async def remove(tx: Tx, number: int) -> None:
    """Remove an endpoint with its deliveries."""
    await lock(tx, number)
    await tx.execute("DELETE FROM webhook WHERE id = $1", number)


async def rotate(tx: Tx, sealer: Sealer, endpoint: Endpoint, overlap: timedelta, secret: str | None) -> str:
    """A new secret, not to be had again; the one so far signs beside it for a while."""
    assert timedelta() <= overlap <= OVERLAP_MAX, "the reader of the request checks it"
    await lock(tx, endpoint.id)
    fresh = secret or signing.new_secret()
    await tx.execute(
        """
        UPDATE webhook SET secret = $2, old_secret = CASE WHEN $3 > interval '0' THEN secret END,
            old_until = CASE WHEN $3 > interval '0' THEN now() + $3 END, updated_at = now()
        WHERE id = $1
        """,
        endpoint.id,
        sealer.seal_text(secret_place(endpoint.id), fresh),
        overlap,
    )
    return fresh


async def lock(tx: Tx, number: int) -> None:
    """Be the only one who changes this endpoint or its deliveries."""
    if await tx.fetchval("SELECT true FROM webhook_queue WHERE webhook_id = $1 FOR UPDATE", number) is None:
        raise EndpointNotFound


def keyring(sealer: Sealer, row: asyncpg.Record) -> Keyring:
    """What messages of this row's endpoint are signed with and carry."""
    place = secret_place(row["id"])
    sealed = [row["secret"], *([row["old_secret"]] if row["old_secret"] is not None else [])]
    headers: dict[str, str] = {}
    if row["headers"] is not None:
        headers = msgspec.json.decode(sealer.open_text(headers_place(row["id"]), row["headers"]))
    return Keyring(
        tuple(sealer.open_text(place, one) for one in sealed),
        tuple((name.encode(), value.encode()) for name, value in headers.items()),
    )


def _sealed_headers(sealer: Sealer, number: int, headers: Mapping[str, str]) -> bytes | None:
    if not headers:
        return None
    return sealer.seal_text(headers_place(number), msgspec.json.encode(dict(headers)).decode())


def secret_place(number: int) -> bytes:
    """Where an endpoint's secrets are sealed."""
    return b"webhook/%d" % number


def headers_place(number: int) -> bytes:
    """Where its headers are sealed."""
    return b"webhook-headers/%d" % number


def _or_none(value: Any) -> Any:
    return None if value is UNSET else value


def _endpoint(row: asyncpg.Record) -> Endpoint:
    values = dict(row)
    values["state"] = State(values["state"])
    values["format"] = MessageFormat(values["format"])
    values["types"] = tuple(values["types"])
    values["header_names"] = tuple(values["header_names"])
    return Endpoint(**values)
