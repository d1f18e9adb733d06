"""The stock of now: lots, codes, their cost, and those that expire soon."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from voucherd.db import Connection
from voucherd.ids import State
from voucherd.reports.model import (
    PLANNING,
    REPORT_S_MAX,
    ROWS_MAX,
    By,
    Measure,
    Report,
    Unit,
    assembled,
    rounded,
)

_LEFT: Final = "(l.size - l.cursor)"
_GOOD: Final = "(l.expires_at IS NULL OR l.expires_at > now())"
_SOON: Final = "(l.expires_at > now() AND l.expires_at <= now() + $2)"


def _sum(of: str, which: str) -> str:
    return f"coalesce(sum({of}) FILTER (WHERE {which}), 0)"


STOCK: Final = (
    Measure("lots", Unit.COUNT, f"count(*) FILTER (WHERE {_GOOD})"),
    Measure("codes", Unit.COUNT, _sum(_LEFT, _GOOD)),
    Measure("value", Unit.OWN, _sum(f"{_LEFT} * l.purchase_minor", _GOOD)),
    Measure(
        "valueEur",
        Unit.EUR,
        _sum(f"{_LEFT} * {rounded('l.purchase_minor', 'l.purchase_currency', 'l.purchase_fx_e8')}", _GOOD),
    ),
    Measure("expiringCodes", Unit.COUNT, _sum(_LEFT, _SOON)),
    Measure("expiringValue", Unit.OWN, _sum(f"{_LEFT} * l.purchase_minor", _SOON)),
    Measure("expiredCodes", Unit.COUNT, _sum(_LEFT, f"NOT {_GOOD}")),
    Measure("expiredValue", Unit.OWN, _sum(f"{_LEFT} * l.purchase_minor", f"NOT {_GOOD}")),
)
LABELS: Final = {By.PRODUCT: "p.slug", By.BRAND: "b.slug", By.SUPPLIER: "l.supplier"}
"""What stock can be told apart by, besides the currency that it was bought in."""


async def stock(conn: Connection, by: Sequence[By], expiring: timedelta) -> Report:
    """The live lots that have codes left, by the database's clock. The sandbox makes its codes up and has none."""
    labels = {one.value: LABELS[one] for one in by if one is not By.CURRENCY}
    places = ", ".join(str(at + 1) for at in range(len(labels) + 1))
    async with conn.transaction(isolation="repeatable_read", readonly=True):
        await conn.execute(PLANNING)
        rows = await conn.fetch(
            f"""
            SELECT {", ".join([*labels.values(), "l.purchase_currency"])}, {", ".join(m.sql for m in STOCK)}
            FROM lot l
            JOIN product p ON p.id = l.product_id
            JOIN product_version v ON v.id = p.version_id
            JOIN brand b ON b.id = v.brand_id
            WHERE l.state = $1 AND NOT l.exhausted
            GROUP BY {places} ORDER BY {places} LIMIT {ROWS_MAX + 1}
            """,  # noqa: S608 - Constants of ours.
            State.LIVE,
            expiring,
            timeout=REPORT_S_MAX,
        )
    return assembled(tuple(labels), STOCK, rows)


async def left_of(conn: Connection, product_ids: Sequence[int], state: State) -> dict[int, int]:
    """How many codes of each of these products can be had now: on our shelf, and at suppliers."""
    rows = await conn.fetch(
        """
        SELECT w.product_id,
               coalesce((SELECT sum(size - cursor) FROM lot
                         WHERE product_id = w.product_id AND state = $2 AND NOT exhausted
                           AND (expires_at IS NULL OR expires_at > now())), 0)::bigint
               + coalesce((SELECT sum(o.stock) FROM offer o JOIN supplier s ON s.id = o.supplier_id
                           WHERE o.product_id = w.product_id AND o.state = $2 AND o.active AND s.active), 0)::bigint
        FROM unnest($1::int[]) AS w (product_id)
        """,
        list(product_ids),
        int(state),
    )
    return {row[0]: row[1] for row in rows}
