"""How suppliers and their offers look, to people and to programs. Never a key."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from rich.console import RenderableType

from voucherd.cli.output import Output, record, stacked, table
from voucherd.cli.words import decimal
from voucherd.money import Money
from voucherd.suppliers import registry
from voucherd.suppliers.overview import SupplierFigures
from voucherd.suppliers.store import OfferRow, SupplierRow

OFFERS_SHOWN: Final = 50


def described(row: SupplierRow, hint: str | None = None) -> Output:
    """A supplier as the operator wrote it down."""
    view = record(_pairs(row))
    return Output(document(row), view if hint is None else stacked(view, "", hint))


def listed(found: Sequence[tuple[SupplierRow, SupplierFigures]]) -> Output:
    """Every supplier on a line."""
    view = table(
        [
            "supplier",
            "kind",
            "state",
            "active",
            "breaker",
            ">calls",
            ">queue",
            ">unknown",
            "quotes",
            "?~last error",
        ],
        [
            (
                row.name,
                row.kind,
                row.state.word,
                row.active,
                _breaker(row),
                counted.calls,
                _queue(counted),
                counted.unknown,
                _quotes(counted),
                row.quote_error,
            )
            for row, counted in found
        ],
        empty="No suppliers.",
    )
    return Output([document(row) | _figures(counted) for row, counted in found], view)


def shown(row: SupplierRow, counted: SupplierFigures, offers: Sequence[OfferRow], most: int) -> Output:
    """A supplier with what it sells."""
    pairs = [
        *_pairs(row),
        ("breaker", _breaker(row)),
        ("calls", f"{counted.calls} under way, {_queue(counted)} lines wait, {counted.unknown} unknown"),
        ("quotes", _quotes(counted)),
        ("last error", row.quote_error),
    ]
    view: list[RenderableType] = [record(pairs), "", _offers(row, offers[:most])]
    if len(offers) > most:
        view.append(f"… and {len(offers) - most:,} more (--offers {len(offers)})")
    told = document(row) | _figures(counted) | {"offers": [_offer(row, one) for one in offers]}
    return Output(told, stacked(*view))


def offer_line(row: SupplierRow, offer: OfferRow) -> Output:
    """One offer that was just made."""
    text = (
        f"{row.name} sells {offer.slug} ({faces(offer)}) as {offer.sku}. Its price is asked for in a moment."
    )
    return Output({"supplier": row.name} | _offer(row, offer), text)


def document(row: SupplierRow) -> dict[str, Any]:
    """A supplier for programs."""
    return {
        "supplier": row.name,
        "kind": row.kind,
        "state": row.state.word,
        "active": row.active,
        "config": _plain(row),
        "hasKey": row.secret is not None,
        "looksUp": registry.can_look_up(row.kind, row.config),
        "onUnknown": row.on_unknown,
        "timeoutS": row.timeout_s,
        "settleS": row.settle_s,
        "quoteAgeS": row.quote_age_s,
        "concurrency": row.concurrency_max,
        "priceSlackPercent": Decimal(row.price_slack_bp).scaleb(-2),
        "breaker": row.health.word(row.now),
        "lastError": row.quote_error,
    }


def _plain(row: SupplierRow) -> dict[str, Any]:
    """The plain keys of the config: not its tables, in whose headers somebody may have put a secret after all."""
    return {name: value for name, value in row.config.items() if isinstance(value, str | int | float | bool)}


def _pairs(row: SupplierRow) -> list[tuple[str, object]]:
    looks_up = registry.can_look_up(row.kind, row.config)
    lines = "wait for you" if row.on_unknown == "wait" else "are bought again"
    return [
        ("supplier", row.name),
        ("kind", f"{row.kind}, {row.state.word}"),
        ("active", row.active),
        *((name, value) for name, value in _plain(row).items()),
        ("key", "stored, sealed" if row.secret is not None else None),
        (
            "limits",
            f"{row.timeout_s} s a call, {row.concurrency_max} calls at once, prices for {row.quote_age_s} s",
        ),
        ("settles", f"{row.settle_s} s after its call a purchase can't turn up any more"),
        ("price slack", f"{Decimal(row.price_slack_bp).scaleb(-2).normalize():f}%"),
        ("look-up", "yes" if looks_up else "no: nobody can tell what became of a purchase"),
        ("if unknown", f"its lines {lines}"),
    ]


def _figures(counted: SupplierFigures) -> dict[str, Any]:
    return {
        "calls": counted.calls,
        "queueLines": counted.lines,
        "queueIsLonger": counted.many,
        "unknown": counted.unknown,
        "quotes": {"fresh": counted.fresh, "stale": counted.stale, "none": counted.none},
    }


def _queue(counted: SupplierFigures) -> str:
    return f"{counted.lines:,}+" if counted.many else f"{counted.lines:,}"


def _quotes(counted: SupplierFigures) -> str:
    parts = [(counted.fresh, "fresh"), (counted.stale, "stale"), (counted.none, "none")]
    return ", ".join(f"{count} {word}" for count, word in parts if count) or "no offers"


def _breaker(row: SupplierRow) -> str:
    word, until = row.health.word(row.now), row.health.open_until
    return f"{word} until {until:%H:%M:%S}" if word == "open" and until is not None else word


def _offers(row: SupplierRow, offers: Sequence[OfferRow]) -> RenderableType:
    return table(
        ["product", ">face value", ">price", ">stock", ">age", "standing", "?sku"],
        [
            (
                one.slug,
                faces(one),
                _price(one),
                None if one.quote_id is None else one.stock,
                _age(one.quoted_at, row.now),
                _standing(row, one),
                one.sku,
            )
            for one in offers
        ],
        empty=f"It sells nothing yet: voucherd supplier offer {row.name} SLUG",
    )


def faces(offer: OfferRow) -> str:
    """The face value of an offer, or both ends of its range."""
    first = Money(offer.face_minor, offer.face_currency)
    if offer.face_to_minor is None:
        return str(first)
    return f"{first.decimal()}–{Money(offer.face_to_minor, offer.face_currency)}"


def _price(offer: OfferRow) -> str | None:
    if offer.price_minor is None or offer.currency is None:
        return None
    first = Money(offer.price_minor, offer.currency)
    if offer.price_to_minor is None:
        return str(first)
    return f"{first.decimal()}–{Money(offer.price_to_minor, offer.currency)}"


def _age(quoted_at: datetime | None, now: datetime) -> str | None:
    return None if quoted_at is None else span(now - quoted_at)


def span(length: timedelta) -> str:
    """A length of time in its two largest units at most."""
    seconds = max(0, int(length.total_seconds()))
    for unit, size, smaller in (("d", 86_400, "h"), ("h", 3_600, "m"), ("m", 60, "s")):
        if seconds >= size:
            rest = seconds % size // {"h": 3_600, "m": 60, "s": 1}[smaller]
            return f"{seconds // size}{unit} {rest}{smaller}" if rest else f"{seconds // size}{unit}"
    return f"{seconds}s"


def _standing(row: SupplierRow, offer: OfferRow) -> str:
    """Whether the offer can serve now, and why not."""
    if not offer.active:
        return "withdrawn"
    if offer.quoted_at is None:
        return "not quoted yet"
    if offer.quote_id is None:
        return "not sold there"
    if row.now - offer.quoted_at >= timedelta(seconds=row.quote_age_s):
        return "stale"
    return "fresh" if offer.stock else "out of stock"


def _offer(row: SupplierRow, offer: OfferRow) -> dict[str, Any]:
    def amount(minor: int | None, currency: str | None) -> Decimal | None:
        return None if minor is None or currency is None else decimal(minor, currency)

    return {
        "product": offer.slug,
        "sku": offer.sku,
        "active": offer.active,
        "standing": _standing(row, offer),
        "faceValue": amount(offer.face_minor, offer.face_currency),
        "faceValueTo": amount(offer.face_to_minor, offer.face_currency),
        "faceValueCurrency": offer.face_currency,
        "price": amount(offer.price_minor, offer.currency),
        "priceTo": amount(offer.price_to_minor, offer.currency),
        "priceCurrency": offer.currency,
        "stock": offer.stock,
        "quotedAt": offer.quoted_at,
    }
