"""What the operator changes about suppliers: how they are spoken to, and what they sell."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from voucherd.db import Connection, Tx
from voucherd.suppliers.store import SupplierRow, UnknownSupplier, secret_place, supplier
from voucherd.vault.seal import Sealer

SKU_CHARS_MAX: Final = 200


class SupplierChanges(Struct, frozen=True, kw_only=True):
    """What is to be changed; None leaves a thing as it is."""

    config: dict[str, Any] | None = None
    secret: str | None = None
    active: bool | None = None
    timeout_s: int | None = None
    settle_s: int | None = None
    quote_age_s: int | None = None
    concurrency_max: int | None = None
    price_slack_bp: int | None = None
    on_unknown: str | None = None

    @property
    def speaks_anew(self) -> bool:
        """Whether what was said to us before was said under other terms."""
        return self.config is not None or self.secret is not None


async def set_supplier(tx: Tx, name: str, changes: SupplierChanges, sealer: Sealer) -> SupplierRow:
    """The supplier after the changes.

    Another address or key is another conversation: its old prices are forgotten and asked for anew, and old failures
    don't count against it.
    """
    config = None if changes.config is None else msgspec.json.encode(changes.config).decode()
    sealed = None if changes.secret is None else sealer.seal_text(secret_place(name), changes.secret)
    supplier_id = await tx.fetchval(
        """
        UPDATE supplier SET config = coalesce($2::text::jsonb, config), secret = coalesce($3, secret),
               timeout_s = coalesce($4, timeout_s), settle_s = coalesce($5, settle_s),
               quote_age_s = coalesce($6, quote_age_s), concurrency_max = coalesce($7, concurrency_max),
               price_slack_bp = coalesce($8, price_slack_bp), on_unknown = coalesce($9, on_unknown)
        WHERE name = $1 RETURNING id
        """,
        name,
        config,
        sealed,
        changes.timeout_s,
        changes.settle_s,
        changes.quote_age_s,
        changes.concurrency_max,
        changes.price_slack_bp,
        changes.on_unknown,
    )
    if supplier_id is None:
        raise UnknownSupplier(name)
    if changes.active is not None:
        # Apart from the rest: a change of this column makes every process look at the offers again.
        await tx.execute("UPDATE supplier SET active = $2 WHERE id = $1", supplier_id, changes.active)
    if changes.speaks_anew:
        # Its health first, then its offers: a claim takes them in this order too.
        await tx.execute(
            "UPDATE supplier_health SET failures = 0, open_until = NULL, quoting_until = '-infinity', "
            "quote_error = NULL WHERE supplier_id = $1",
            supplier_id,
        )
        await tx.execute(
            "UPDATE offer SET quote_id = NULL, quoted_at = NULL, stock = 0 WHERE supplier_id = $1",
            supplier_id,
        )
    return await supplier(tx, name)


async def overlapping_offer(
    conn: Connection, supplier_id: int, product_id: int, face_minor: int, face_to_minor: int | None
) -> tuple[int, int] | None:
    """Another offer of the supplier for the same face values: which of the two would be bought, nobody could say."""
    row = await conn.fetchrow(
        """
        SELECT face_minor, coalesce(face_to_minor, face_minor) FROM offer
        WHERE supplier_id = $1 AND product_id = $2 AND active AND face_minor <> $3
          AND face_minor <= coalesce($4, $3) AND coalesce(face_to_minor, face_minor) >= $3
        ORDER BY face_minor LIMIT 1
        """,
        supplier_id,
        product_id,
        face_minor,
        face_to_minor,
    )
    return None if row is None else (row[0], row[1])


async def withdraw_offers(tx: Tx, supplier_id: int, product_id: int, face_minor: int | None = None) -> int:
    """Buy a product there no more, at one face value or at all; how many offers that ended."""
    rows = await tx.fetch(
        """
        UPDATE offer SET active = false
        WHERE supplier_id = $1 AND product_id = $2 AND active AND ($3::bigint IS NULL OR face_minor = $3) RETURNING 1
        """,
        supplier_id,
        product_id,
        face_minor,
    )
    return len(rows)


async def close_breaker(tx: Tx, supplier_id: int) -> bool:
    """Forget a supplier's failures, so that it is asked again at once; whether there were any."""
    rows = await tx.fetch(
        """
        UPDATE supplier_health SET failures = 0, open_until = NULL
        WHERE supplier_id = $1 AND (failures > 0 OR open_until IS NOT NULL) RETURNING 1
        """,
        supplier_id,
    )
    return bool(rows)
