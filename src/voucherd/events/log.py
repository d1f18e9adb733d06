"""The event log: every change appends to it in the same transaction. Never a voucher code in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from voucherd.db import Tx


async def append(
    tx: Tx, type_: str, *, company_id: int | None = None, state: int | None = None, data: dict[str, Any]
) -> None:
    """Append an event that is not about an order. Amounts in its data are JSON numbers, written out (OP-07)."""
    await tx.execute(
        "INSERT INTO event (at, company_id, state, type, data) VALUES (now(), $1, $2, $3, $4::jsonb)",
        company_id,
        state,
        type_,
        msgspec.json.encode(data).decode(),
    )


async def append_all(
    tx: Tx,
    type_: str,
    data: Sequence[dict[str, Any]],
    *,
    company_id: int | None = None,
    state: int | None = None,
) -> None:
    """Append events of one kind that are not about orders, in this order, in one statement."""
    await tx.execute(
        """INSERT INTO event (at, company_id, state, type, data)
           SELECT now(), $1, $2, $3, one.data::jsonb FROM unnest($4::text[]) WITH ORDINALITY AS one (data, place)
           ORDER BY place""",
        company_id,
        state,
        type_,
        [msgspec.json.encode(one).decode() for one in data],
    )
