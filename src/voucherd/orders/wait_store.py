"""The table of waits: who waits for which codes, and where. Locked after orders, wallets and lots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final
from uuid import UUID

from voucherd.db import Tx, numbers
from voucherd.orders.rules.waits import Wait
from voucherd.statements import (
    BIGINT,
    FLAG,
    INT,
    INT_OR_NULL,
    MOMENT,
    NUMBER_LIST,
    SMALLINT,
    RowSet,
    statement,
)
from voucherd.statements import UUID as UUIDS
from voucherd.vault.model import Shelf

_WAITS: Final = RowSet(
    "w",
    state=SMALLINT,
    product_id=INT,
    face_minor=BIGINT,
    company_id=INT,
    order_id=BIGINT,
    line_from=INT,
    line_to=INT,
    not_before=MOMENT,
    deadline_at=MOMENT,
    urgent=FLAG,
    supplier_id=INT_OR_NULL,
    attempt_id=UUIDS,
    ask_at=MOMENT,
    tried=NUMBER_LIST,
    rounds=INT,
)
_NAMES: Final = Wait.__struct_fields__
COLUMNS: Final = ", ".join(f"w.{name}" for name in _NAMES)
"""What `wait_of` reads, from the table by the name of w."""
_TRIED: Final = _NAMES.index("tried")


def wait_of(row: Any) -> Wait:
    """A row of `COLUMNS`, and maybe others behind them, as a wait."""
    values = list(row)[: len(_NAMES)]
    values[_TRIED] = tuple(values[_TRIED])
    return Wait(*values)


async def lock(tx: Tx, order_ids: Sequence[int]) -> dict[int, list[Wait]]:
    """The waits of these orders, by their first line, locked until the transaction ends."""
    rows = await tx.fetch(
        f"SELECT {COLUMNS} FROM waiting w WHERE order_id = ANY($1::bigint[]) "  # noqa: S608 - A constant of ours.
        "ORDER BY order_id, line_from FOR UPDATE",
        order_ids,
    )
    return _by_order(order_ids, rows)


async def lock_bought(tx: Tx, order_ids: Sequence[int], attempt_id: UUID) -> dict[int, list[Wait]]:
    """Those waits of these orders that the purchase is for; the others, thousands maybe, are not touched."""
    rows = await tx.fetch(
        f"SELECT {COLUMNS} FROM waiting w WHERE attempt_id = $2 AND order_id = ANY($1::bigint[]) "  # noqa: S608 - Ours.
        "ORDER BY order_id, line_from FOR UPDATE",
        order_ids,
        attempt_id,
    )
    return _by_order(order_ids, rows)


def _by_order(order_ids: Sequence[int], rows: Sequence[Any]) -> dict[int, list[Wait]]:
    found: dict[int, list[Wait]] = {order_id: [] for order_id in order_ids}
    for row in rows:
        found[row["order_id"]].append(wait_of(row))
    return found


async def queued(tx: Tx, shelves: Iterable[Shelf]) -> set[Shelf]:
    """Those of these shelves that someone waits for and nobody is buying for."""
    wanted = list(shelves)
    rows = await tx.fetch(
        """
        SELECT product_id, face_minor, state
        FROM unnest($1::text::int[], $2::text::bigint[], $3::text::smallint[]) AS w (product_id, face_minor, state)
        WHERE EXISTS (SELECT FROM waiting WHERE state = w.state AND product_id = w.product_id
                      AND face_minor = w.face_minor AND attempt_id IS NULL)
        """,
        numbers([product_id for product_id, _, _ in wanted]),
        numbers([face_minor for _, face_minor, _ in wanted]),
        numbers([state for _, _, state in wanted]),
    )
    return {(row["product_id"], row["face_minor"], row["state"]) for row in rows}


async def save(tx: Tx, fresh: Sequence[Wait], over: Sequence[tuple[int, int]], moved: Sequence[Wait]) -> None:
    """End waits, begin others, and move some to another place."""
    if over:
        await tx.execute(
            """
            DELETE FROM waiting w USING unnest($1::text::bigint[], $2::text::int[]) AS over (order_id, line_from)
            WHERE w.order_id = over.order_id AND w.line_from = over.line_from
            """,
            numbers([order_id for order_id, _ in over]),
            numbers([line_from for _, line_from in over]),
        )
    if fresh:
        await insert(tx, fresh)
    if moved:
        await move(tx, moved)


_INSERT: Final = statement(
    f"""
    INSERT INTO waiting ({_WAITS.names})
    SELECT w.state, w.product_id, w.face_minor, w.company_id, w.order_id, w.line_from, w.line_to, w.not_before,
           w.deadline_at, w.urgent, w.supplier_id, w.attempt_id, w.ask_at,
           coalesce(string_to_array(w.tried, ' '), '{{}}')::int[], w.rounds
    FROM {_WAITS}
    """,  # noqa: S608 - Constants only.
    _WAITS,
)


async def insert(tx: Tx, waits: Sequence[Wait]) -> None:
    """Begin waits."""
    await tx.execute(_INSERT, *_WAITS.values(waits))


_MOVED: Final = RowSet(
    "w",
    order_id=BIGINT,
    line_from=INT,
    supplier_id=INT_OR_NULL,
    ask_at=MOMENT,
    tried=NUMBER_LIST,
    rounds=INT,
)
_MOVE: Final = statement(
    f"""
    UPDATE waiting SET supplier_id = w.supplier_id, attempt_id = NULL, ask_at = w.ask_at, rounds = w.rounds,
           tried = coalesce(string_to_array(w.tried, ' '), '{{}}')::int[]
    FROM {_MOVED} WHERE waiting.order_id = w.order_id AND waiting.line_from = w.line_from
    """,  # noqa: S608 - Constants only.
    _MOVED,
)


async def move(tx: Tx, waits: Sequence[Wait]) -> None:
    """Put waits in another place; the caller holds their locks."""
    await tx.execute(_MOVE, *_MOVED.values(waits))
