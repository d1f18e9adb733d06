"""Deeds on suppliers: how they are spoken to, and what they sell.

Each writes its row of the trail, in the caller's transaction. Of a key and a description, which may hold one, the trail
only says that they are new.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import Struct

from voucherd import trail
from voucherd.actors import Actor, ActorKind
from voucherd.catalogue.products import ProductVersion
from voucherd.catalogue.rules import BadProduct
from voucherd.catalogue.search import find as find_product
from voucherd.catalogue.texts import face_text, read_share
from voucherd.db import Connection, Tx
from voucherd.ids import State
from voucherd.money import Money
from voucherd.setting_values import Network
from voucherd.suppliers import drafts, registry, store
from voucherd.suppliers.store import (
    OfferRow,
    SupplierDraft,
    SupplierRow,
    UnknownSupplier,
    secret_place,
    supplier,
)
from voucherd.vault.seal import Sealer

SKU_CHARS_MAX: Final = 200
LIMITS: Final = {
    "timeout_s": (1, 300),
    "settle_s": (0, 86_400),
    "quote_age_s": (1, 86_400),
    "concurrency_max": (1, 1_000),
}
"""The lowest and the highest of what a supplier's numbers may be."""
PRICE_SLACK_BP_MAX: Final = 10_000
_TOLD: Final = (*LIMITS, "price_slack_bp", "on_unknown", "active")


class BadSku(ValueError):
    """It can't be a supplier's name for a product."""

    def __init__(self) -> None:
        super().__init__(f"sku: must be 1 to {SKU_CHARS_MAX} printable characters")


class SandboxIsNotLive(ValueError):
    """A sandbox supplier sells nothing real."""

    def __init__(self) -> None:
        super().__init__("--state: a sandbox supplier is for sandbox orders only")


class RiskNotDeclared(Exception):
    """Nobody could ask the supplier what became of a purchase, and nobody said what then."""

    def __init__(self) -> None:
        super().__init__(
            "the description has no look_up, so nobody can tell what became of a purchase whose answer is lost: "
            "say --on-unknown wait (its lines wait for you) or rebuy (they are bought again, perhaps twice)"
        )


class NoKeyTaken(Exception):
    """The supplier is spoken to without a key."""

    def __init__(self, name: str) -> None:
        super().__init__(f"supplier {name} takes no key")


class FaceNotOffered(Exception):
    """The product has no such face value."""

    def __init__(self, version: ProductVersion, face: Money) -> None:
        super().__init__(f"{version.slug} has no face value of {face}: it has {face_text(version)}")


class OfferedAlready(Exception):
    """The supplier has another offer for some of the same face values."""

    def __init__(self, name: str, slug: str, low: Money, high: Money) -> None:
        faces = f"{low}" if low == high else f"{low} to {high}"
        super().__init__(f"{name} is down for {slug} of {faces} already: withdraw that first")


class NotOffered(Exception):
    """The supplier has no such offer."""

    def __init__(self, name: str, slug: str, face: Money | None) -> None:
        super().__init__(f"{name} is not down for {slug}" + ("" if face is None else f" of {face}"))


class SupplierChanges(Struct, frozen=True, kw_only=True):
    """The fields to change; None leaves a field as it is."""

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


def read_slack(text: str) -> int:
    """How much dearer than quoted a purchase may be, in basis points, from a text such as 0.5%."""
    with suppress(BadProduct):
        if (found := read_share("price-slack", text)) <= PRICE_SLACK_BP_MAX:
            return found
    raise ValueError(f"{text[:40]!r} is not a part such as 1% or 0.5%, up to 100%")


def check_state(kind: str, state: State) -> None:
    """Refuse a sandbox supplier for real orders."""
    if kind == "sandbox" and state is State.LIVE:
        raise SandboxIsNotLive


def declare_risk(kind: str, config: dict[str, Any], on_unknown: str | None) -> None:
    """Refuse a supplier that can't be asked what became of a purchase, unless that risk is accepted."""
    if on_unknown is None and not registry.can_look_up(kind, config):
        raise RiskNotDeclared


async def add(
    tx: Tx, actor: Actor, draft: SupplierDraft, sealer: Sealer, own: Sequence[Network] = ()
) -> SupplierRow:
    """A new supplier; its key is sealed. Refused if its name is taken, or a person may not send the server there."""
    drafts.check_name(draft.name)
    check_state(draft.kind, draft.state)
    drafts.check_config(draft.kind, draft.config)
    if actor.kind is not ActorKind.COMMAND:
        drafts.check_reach(draft.kind, draft.config, own)
    row = await store.add_supplier(tx, draft, sealer)
    detail = {"kind": row.kind, "key": draft.secret is not None}
    detail |= {name: getattr(row, name) for name in _TOLD}
    await _record(tx, actor, "supplier.add", row, detail)
    return row


async def change(
    tx: Tx,
    actor: Actor,
    name: str,
    changes: SupplierChanges,
    sealer: Sealer,
    own: Sequence[Network] = (),
) -> SupplierRow:
    """The supplier after the changes.

    Another address or key is another conversation: its old prices are forgotten and asked for anew, and old failures
    don't count against it.
    """
    if changes.config is not None:
        kind = (await supplier(tx, name)).kind
        drafts.check_config(kind, changes.config)
        if actor.kind is not ActorKind.COMMAND:
            drafts.check_reach(kind, changes.config, own)
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
        await _begin_anew(tx, supplier_id)
    after = await supplier(tx, name)
    if changes.secret is not None and not registry.needs_secret(after.kind, after.config):
        raise NoKeyTaken(name)
    detail = {one: getattr(changes, one) for one in _TOLD if getattr(changes, one) is not None}
    detail |= {"config": "new"} if changes.config is not None else {}
    detail |= {"key": "new"} if changes.secret is not None else {}
    await _record(tx, actor, "supplier.set", after, detail)
    return after


async def _begin_anew(tx: Tx, supplier_id: int) -> None:
    """Forget prices and failures. Its health first, then its offers: a claim takes them in this order too."""
    await tx.execute(
        "UPDATE supplier_health SET failures = 0, open_until = NULL, quoting_until = '-infinity', "
        "quote_error = NULL WHERE supplier_id = $1",
        supplier_id,
    )
    await tx.execute(
        "UPDATE offer SET quote_id = NULL, quoted_at = NULL, stock = 0 WHERE supplier_id = $1", supplier_id
    )


async def offer(
    tx: Tx, actor: Actor, name: str, slug: str, sku: str | None = None, face: Money | None = None
) -> tuple[SupplierRow, OfferRow]:
    """Say that a supplier sells a product; of a variable one every face value, unless one is named."""
    sku = slug if sku is None else sku.strip()
    if not 1 <= len(sku) <= SKU_CHARS_MAX or not sku.isprintable():
        raise BadSku
    row = await supplier(tx, name)
    version = (await find_product(tx, slug)).version
    first, last = _faces(version, face)
    other = await _overlapping_offer(tx, row.id, version.product_id, first, last)
    if other is not None:
        low, high = (Money(minor, version.face_currency) for minor in other)
        raise OfferedAlready(name, slug, low, high)
    await store.add_offer(tx, row, version.product_id, sku=sku, face_minor=first, face_to_minor=last)
    made = next(
        one
        for one in await store.offers(tx, row.id)
        if (one.product_id, one.face_minor) == (version.product_id, first)
    )
    await _record(tx, actor, "supplier.offer", row, _offered(slug, face) | {"sku": sku})
    return row, made


async def withdraw(tx: Tx, actor: Actor, name: str, slug: str, face: Money | None = None) -> int:
    """Buy a product there no more, at one face value or at all; how many offers that ended."""
    row = await supplier(tx, name)
    version = (await find_product(tx, slug)).version
    minor = None if face is None else _faces(version, face)[0]
    ended = await _withdraw_offers(tx, row.id, version.product_id, minor)
    if not ended:
        raise NotOffered(name, slug, face)
    await _record(tx, actor, "supplier.withdraw", row, _offered(slug, face) | {"offers": ended})
    return ended


async def close_breaker(tx: Tx, actor: Actor, name: str) -> bool:
    """Forget a supplier's failures, so that it is asked again at once; whether there were any."""
    row = await supplier(tx, name)
    rows = await tx.fetch(
        """
        UPDATE supplier_health SET failures = 0, open_until = NULL
        WHERE supplier_id = $1 AND (failures > 0 OR open_until IS NOT NULL) RETURNING 1
        """,
        row.id,
    )
    if rows:
        await _record(tx, actor, "supplier.close_breaker", row)
    return bool(rows)


async def _record(
    tx: Tx, actor: Actor, action: str, row: SupplierRow, detail: dict[str, Any] | None = None
) -> None:
    await trail.record(tx, actor, action, f"supplier {row.name}", detail, state=row.state)


def _offered(slug: str, face: Money | None) -> dict[str, Any]:
    return {"product": slug} | ({} if face is None else {"face": str(face)})


def _faces(version: ProductVersion, face: Money | None) -> tuple[int, int | None]:
    """The face value that is meant, or both ends of the whole range."""
    if face is not None:
        if face.currency != version.face_currency or not version.accepts_face(face.minor):
            raise FaceNotOffered(version, face)
        return face.minor, None
    if version.face_minor is not None:
        return version.face_minor, None
    assert version.face_min_minor is not None, "a product has a face value or a range of them"
    return version.face_min_minor, version.face_max_minor


async def _overlapping_offer(
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


async def _withdraw_offers(tx: Tx, supplier_id: int, product_id: int, face_minor: int | None) -> int:
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
