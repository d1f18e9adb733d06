"""The tables supplier, supplier_health, offer and quote."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from voucherd.db import Connection, Tx
from voucherd.ids import State
from voucherd.sorting import order_by
from voucherd.suppliers.breaker import Health, after_call
from voucherd.suppliers.registry import Spec
from voucherd.vault.seal import Sealer

OFFERS_MAX: Final = 100_000
"""Offers of one supplier; a larger range of goods is more than one supplier."""


class SupplierRow(Struct, frozen=True):
    """A supplier as the operator wrote it down, and how it has been lately."""

    id: int
    name: str
    kind: str
    state: State
    active: bool
    config: dict[str, Any]
    secret: bytes | None
    timeout_s: int
    settle_s: int
    quote_age_s: int
    concurrency_max: int
    price_slack_bp: int
    on_unknown: str
    health: Health
    quote_error: str | None
    now: datetime
    """When all this was so, by the database's clock."""

    @property
    def fails(self) -> bool:
        """Whether its breaker is open."""
        return self.health.word(self.now) == "open"

    @property
    def written(self) -> tuple[object, ...]:
        """All that an adapter depends on: another one is made when this changes."""
        return self.name, self.kind, self.state, self.config, self.secret, self.timeout_s

    def spec(self, sealer: Sealer) -> Spec:
        """What an adapter is made from."""
        secret = None if self.secret is None else sealer.open_text(secret_place(self.name), self.secret)
        return Spec(self.name, self.kind, self.state, self.config, secret, float(self.timeout_s))


class SupplierDraft(Struct, frozen=True):
    """A supplier to be."""

    name: str
    kind: str
    state: State
    config: dict[str, Any]
    secret: str | None = None
    timeout_s: int = 20
    settle_s: int = 120
    quote_age_s: int = 300
    concurrency_max: int = 8
    price_slack_bp: int = 100
    on_unknown: str = "wait"


class OfferRow(Struct, frozen=True):
    """One product of ours that a supplier sells, and the last that it said about it."""

    product_id: int
    slug: str
    face_currency: str
    face_minor: int
    face_to_minor: int | None
    sku: str
    active: bool
    stock: int
    quoted_at: datetime | None
    quote_id: int | None
    price_minor: int | None
    price_to_minor: int | None
    currency: str | None
    refused_until: datetime | None = None
    """It has refused a purchase for good, and is not asked until then (OP-140)."""
    name: str = ""
    """What our product is called."""


class SupplierExists(Exception):
    """The name is taken."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a supplier {name} already")


class UnknownSupplier(LookupError):
    """No supplier has that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no supplier {name[:60]!a}")


def secret_place(name: str) -> bytes:
    """What binds a sealed secret to its supplier."""
    return b"supplier/" + name.encode()


_COLUMNS: Final = """
    s.id, s.name, s.kind, s.state, s.active, s.config::text, s.secret, s.timeout_s, s.settle_s, s.quote_age_s,
    s.concurrency_max, s.price_slack_bp, s.on_unknown, h.failures, h.open_until, h.quote_error, now()
"""


def _row(row: Any) -> SupplierRow:
    values = dict(row)
    health = Health(values.pop("failures"), values.pop("open_until"))
    config = msgspec.json.decode(values.pop("config"))
    return SupplierRow(state=State(values.pop("state")), config=config, health=health, **values)


async def suppliers(conn: Connection, *, only_active: bool = False) -> list[SupplierRow]:
    """Every supplier, by name."""
    rows = await conn.fetch(
        f"SELECT {_COLUMNS} FROM supplier s JOIN supplier_health h ON h.supplier_id = s.id "  # noqa: S608 - Ours.
        "WHERE s.active OR NOT $1 ORDER BY s.name",
        only_active,
    )
    return [_row(row) for row in rows]


async def supplier(conn: Connection, name: str) -> SupplierRow:
    """The supplier of that name, or UnknownSupplier."""
    row = await conn.fetchrow(
        f"SELECT {_COLUMNS} FROM supplier s JOIN supplier_health h ON h.supplier_id = s.id WHERE s.name = $1",  # noqa: S608 - Ours.
        name,
    )
    if row is None:
        raise UnknownSupplier(name)
    return _row(row)


async def add_supplier(tx: Tx, draft: SupplierDraft, sealer: Sealer) -> SupplierRow:
    """A new supplier; its secret is sealed."""
    sealed = None if draft.secret is None else sealer.seal_text(secret_place(draft.name), draft.secret)
    supplier_id = await tx.fetchval(
        """
        INSERT INTO supplier (name, kind, state, config, secret, timeout_s, settle_s, quote_age_s, concurrency_max,
                              price_slack_bp, on_unknown)
        VALUES ($1, $2, $3, $4::text::jsonb, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (name) DO NOTHING RETURNING id
        """,
        draft.name,
        draft.kind,
        int(draft.state),
        msgspec.json.encode(draft.config).decode(),
        sealed,
        draft.timeout_s,
        draft.settle_s,
        draft.quote_age_s,
        draft.concurrency_max,
        draft.price_slack_bp,
        draft.on_unknown,
    )
    if supplier_id is None:
        raise SupplierExists(draft.name)
    await tx.execute("INSERT INTO supplier_health (supplier_id) VALUES ($1)", supplier_id)
    return await supplier(tx, draft.name)


async def note_call(tx: Tx, supplier_id: int, *, failed: bool) -> None:
    """Count a call for the breaker."""
    # A supplier that is well and stays well needs no lock: claims of work would have to go round it.
    if not failed and not await tx.fetchval(
        "SELECT failures FROM supplier_health WHERE supplier_id = $1", supplier_id
    ):
        return
    row = await tx.fetchrow(
        "SELECT failures, open_until, now() FROM supplier_health WHERE supplier_id = $1 FOR UPDATE",
        supplier_id,
    )
    assert row is not None, "Every supplier has a row of health."
    before = Health(row[0], row[1])
    after = after_call(before, row[2], failed=failed)
    if after != before:
        await tx.execute(
            "UPDATE supplier_health SET failures = $2, open_until = $3 WHERE supplier_id = $1",
            supplier_id,
            after.failures,
            after.open_until,
        )


async def add_offer(
    tx: Tx, row: SupplierRow, product_id: int, *, sku: str, face_minor: int, face_to_minor: int | None = None
) -> None:
    """Say that a supplier sells a product of ours, under this name; said again, the newest name counts."""
    await tx.execute(
        """
        INSERT INTO offer (supplier_id, state, product_id, face_minor, face_to_minor, sku)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (supplier_id, product_id, face_minor) DO UPDATE
        SET sku = excluded.sku, face_to_minor = excluded.face_to_minor, active = true, quote_id = NULL,
            quoted_at = NULL, stock = 0, quoted_stock = NULL
        """,
        row.id,
        int(row.state),
        product_id,
        face_minor,
        face_to_minor,
        sku,
    )


_OFFERS: Final = """
    SELECT o.product_id, p.slug, v.face_currency, o.face_minor, o.face_to_minor, o.sku, o.active, o.stock,
           o.quoted_at, o.quote_id, q.price_minor, q.price_to_minor, q.currency, r.refused_until, v.name
    FROM offer o JOIN product p ON p.id = o.product_id JOIN product_version v ON v.id = p.version_id
    LEFT JOIN quote q ON q.id = o.quote_id
    LEFT JOIN refused_offer r ON r.supplier_id = o.supplier_id AND r.product_id = o.product_id
         AND r.face_minor = o.face_minor AND r.stock = 0 AND r.refused_until > now()
    WHERE o.supplier_id = $1
"""


async def offers(conn: Connection, supplier_id: int) -> list[OfferRow]:
    """What a supplier sells of ours."""
    rows = await conn.fetch(f"{_OFFERS} ORDER BY p.slug, o.face_minor LIMIT $2", supplier_id, OFFERS_MAX)
    return [OfferRow(*row) for row in rows]


OFFER_SORTS: Final = {
    "name": "v.name {0}, p.slug, o.face_minor",
    "sku": "o.sku {0}, p.slug, o.face_minor",
    "face": "v.face_currency {0}, o.face_minor {0}, p.slug",
    "price": "q.currency {0} NULLS LAST, q.price_minor {0}, p.slug, o.face_minor",
    "stock": "(CASE WHEN q.id IS NOT NULL THEN o.stock END) {0} NULLS LAST, p.slug, o.face_minor",
    "asked": "o.quoted_at {0} NULLS LAST, p.slug, o.face_minor",
}
"""How a list of offers can be sorted."""


class OfferSearch(Struct, frozen=True):
    """Which of a supplier's offers are looked for."""

    text: str = ""
    """Part of our name or slug, or of the supplier's name for it."""
    active: bool | None = True
    lacking: bool = False
    """Only those without a price or without stock."""
    sort: str = "name"
    """A key of OFFER_SORTS."""


async def search_offers(
    conn: Connection, supplier_id: int, search: OfferSearch, limit: int, offset: int = 0
) -> list[OfferRow]:
    """The offers that are looked for."""
    rows = await conn.fetch(
        f"""{_OFFERS} AND ($2 = '' OR strpos(lower(v.name || ' ' || p.slug || ' ' || o.sku), lower($2)) > 0)
              AND ($3::boolean IS NULL OR o.active = $3) AND (NOT $4 OR o.quote_id IS NULL OR o.stock = 0)
            ORDER BY {order_by(OFFER_SORTS, search.sort)} LIMIT $5 OFFSET $6""",
        supplier_id,
        search.text,
        search.active,
        search.lacking,
        limit,
        offset,
    )
    return [OfferRow(*row) for row in rows]


async def count_offers(conn: Connection, supplier_id: int) -> int:
    """How many of our products and face values a supplier sells."""
    count: int = await conn.fetchval(
        "SELECT count(*) FROM offer WHERE supplier_id = $1 AND active", supplier_id
    )
    return count


class FreshQuote(Struct, frozen=True):
    """What a supplier has just said about one of its offers."""

    product_id: int
    face_minor: int
    stock: int
    price_minor: int
    price_to_minor: int | None
    currency: str
    fx_e8: int


async def save_quotes(
    tx: Tx, row: SupplierRow, fresh: Sequence[FreshQuote], gone: Sequence[OfferRow]
) -> None:
    """Remember what a supplier said: a new quote where a price changed, the stock everywhere.

    Where it says something new, what it has refused before is forgotten (OP-140). `gone` are offers that it said
    nothing about: it does not sell them any more, or not now.
    """
    await tx.executemany(
        """
        WITH known AS (
            SELECT o.*, q.price_minor, q.price_to_minor, q.currency, q.fx_e8, q.face_to_minor AS quoted_to_minor
            FROM offer o LEFT JOIN quote q ON q.id = o.quote_id
            WHERE o.supplier_id = $1 AND o.product_id = $2 AND o.face_minor = $3 FOR UPDATE OF o
        ), drawn AS (
            INSERT INTO quote (id, supplier_id, state, product_id, face_minor, price_minor, face_to_minor,
                               price_to_minor, currency, fx_e8)
            SELECT nextval('quote_number') * 2 + state, supplier_id, state, product_id, face_minor, $5,
                   face_to_minor, $6, $7, $8
            FROM known WHERE (price_minor, price_to_minor, currency, fx_e8, quoted_to_minor)
                             IS DISTINCT FROM ($5, $6, $7, $8, face_to_minor)
            RETURNING id
        ), changed AS (
            DELETE FROM refused_offer r USING known k
            WHERE r.supplier_id = k.supplier_id AND r.product_id = k.product_id
              AND r.face_minor BETWEEN k.face_minor AND coalesce(k.face_to_minor, k.face_minor)
              AND (k.quoted_stock IS DISTINCT FROM $4 OR EXISTS (SELECT FROM drawn) OR r.refused_until <= now())
        )
        UPDATE offer o SET stock = $4, quoted_stock = $4, quoted_at = now(),
               quote_id = coalesce((SELECT id FROM drawn), o.quote_id)
        FROM known k
        WHERE o.supplier_id = k.supplier_id AND o.product_id = k.product_id AND o.face_minor = k.face_minor
        """,
        [
            (
                row.id,
                one.product_id,
                one.face_minor,
                one.stock,
                one.price_minor,
                one.price_to_minor,
                one.currency,
                one.fx_e8,
            )
            for one in fresh
        ],
    )
    await tx.executemany(
        "UPDATE offer SET stock = 0, quoted_stock = 0, quoted_at = now()"
        " WHERE supplier_id = $1 AND product_id = $2 AND face_minor = $3",
        [(row.id, one.product_id, one.face_minor) for one in gone],
    )
