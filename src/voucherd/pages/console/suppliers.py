"""Suppliers in the console: how they are doing, their limits, their breakers. Their keys are shown nowhere."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from voucherd.http import Response
from voucherd.money import Money
from voucherd.pages.forms import whole
from voucherd.pages.render import render
from voucherd.pages.visit import Visit
from voucherd.suppliers import deeds, overview, registry, trial
from voucherd.suppliers import store as supplier_store
from voucherd.suppliers.deeds import LIMITS, SupplierChanges
from voucherd.suppliers.overview import Lately, SupplierFigures
from voucherd.suppliers.store import OfferRow, SupplierRow
from voucherd.suppliers.trial import TrialFinding

PATH: Final = "/console/suppliers"
OFFERS_SHOWN: Final = 100
TEST_S_MAX: Final = 25.0

_LABELS: Final = {
    "timeout_s": "Seconds for a call",
    "settle_s": "Seconds until a purchase can’t turn up any more",
    "quote_age_s": "Seconds that a price may be used",
    "concurrency_max": "Calls at once",
}
_NOTHING: Final = Lately(0, 0, 0, None, None)
_BREAKERS: Final = {"closed": "good", "half-open": "warn", "open": "bad"}
_ON_UNKNOWN: Final = ("wait", "rebuy")


async def suppliers(visit: Visit) -> Response:
    """Every supplier of the state, with its health."""
    async with visit.pool.acquire() as conn:
        found = [row for row in await supplier_store.suppliers(conn) if row.state is visit.state]
        counted = await overview.figures(conn)
        lately = await overview.lately(conn, visit.state)
    return render(
        "console/suppliers.html",
        visit,
        rows=[
            _health(row, counted.get(row.id, SupplierFigures()), lately.get(row.id, _NOTHING))
            for row in found
        ],
    )


async def supplier(visit: Visit) -> Response:
    """One supplier: its health, its limits and what it sells."""
    async with visit.pool.acquire() as conn:
        row = await supplier_store.supplier(conn, visit.parameters["name"])
        counted = (await overview.figures(conn)).get(row.id, SupplierFigures())
        lately = (await overview.lately(conn, row.state)).get(row.id, _NOTHING)
        sold = await supplier_store.offers(conn, row.id)
    slack = Decimal(row.price_slack_bp).scaleb(-2).normalize()
    values = {name: str(getattr(row, name)) for name in LIMITS}
    values |= {"price_slack": f"{slack:f}%", "on_unknown": row.on_unknown}
    if visit.problems:
        values = {name: visit.form.get(name) for name in values}
    return render(
        "console/supplier.html",
        visit,
        one=_health(row, counted, lately),
        limits=_LABELS,
        values=values,
        looks_up=registry.can_look_up(row.kind, row.config),
        # Not its tables: somebody may have put a secret into their headers after all.
        config={name: value for name, value in row.config.items() if isinstance(value, str | int | bool)},
        offers=[_offer(row, offer) for offer in sold[:OFFERS_SHOWN]],
        offers_more=max(len(sold) - OFFERS_SHOWN, 0),
    )


async def change(visit: Visit) -> Response:
    """Change a supplier's limits."""
    row = await visit.look(supplier_store.supplier, visit.parameters["name"])
    form, problems = visit.form, visit.problems
    numbers: dict[str, Any] = {name: whole(form.get(name), *ends) for name, ends in LIMITS.items()}
    for name, (low, high) in LIMITS.items():
        if numbers[name] is None:
            problems[name] = f"Must be a whole number from {low:,} to {high:,}."
    slack_bp = None
    try:
        slack_bp = deeds.read_slack(form.get("price_slack"))
    except ValueError:
        problems["price_slack"] = "Must be a share such as 1% or 0.5%, up to 100%."
    on_unknown = form.get("on_unknown")
    if on_unknown not in _ON_UNKNOWN:
        problems["on_unknown"] = "Choose one."
    if problems:
        return await supplier(visit)
    await _store(visit, row, SupplierChanges(**numbers, price_slack_bp=slack_bp, on_unknown=on_unknown))
    return visit.go(f"{PATH}/{row.name}", "Saved.")


async def activate(visit: Visit) -> Response:
    """Pause a supplier, or buy there again."""
    row = await visit.look(supplier_store.supplier, visit.parameters["name"])
    active = visit.form.get("active") == "yes"
    await _store(visit, row, SupplierChanges(active=active))
    return visit.go(
        f"{PATH}/{row.name}",
        f"{row.name} is asked again." if active else f"Nothing more is bought at {row.name}.",
    )


async def close_breaker(visit: Visit) -> Response:
    """Try a supplier again at once, although it failed."""
    row = await visit.look(supplier_store.supplier, visit.parameters["name"])
    done = await visit.do(deeds.close_breaker, row.name)
    return visit.go(
        f"{PATH}/{row.name}",
        "Its failures are forgotten: it is asked again at once." if done else "Its breaker was closed.",
    )


async def test(visit: Visit) -> Response:
    """Speak with a supplier, if that is asked for; nothing is bought."""
    row = await visit.look(supplier_store.supplier, visit.parameters["name"])
    found: list[TrialFinding] | None = None
    if visit.query.get("run") == "yes":
        try:
            async with asyncio.timeout(TEST_S_MAX):
                found, _ = await trial.try_out(visit.pool, visit.services.sealer, row)
        except TimeoutError:
            found = [TrialFinding("answers", False, f"it took longer than {TEST_S_MAX:.0f} seconds")]
    return render("console/supplier_test.html", visit, row=row, found=found)


async def _store(visit: Visit, row: SupplierRow, made: SupplierChanges) -> None:
    await visit.do(deeds.change, row.name, made, visit.services.sealer)


def _health(row: SupplierRow, counted: SupplierFigures, lately: Lately) -> dict[str, Any]:
    word = row.health.word(row.now)
    quotes = [(counted.fresh, "fresh"), (counted.stale, "stale"), (counted.none, "without a price")]
    return {
        "row": row,
        "counted": counted,
        "lately": lately,
        "breaker": word,
        "breaker_kind": _BREAKERS[word],
        "open_until": row.health.open_until if word == "open" else None,
        "quotes": ", ".join(f"{count} {what}" for count, what in quotes if count) or "none",
    }


def _offer(row: SupplierRow, offer: OfferRow) -> dict[str, Any]:
    first = Money(offer.face_minor, offer.face_currency)
    last = None if offer.face_to_minor is None else Money(offer.face_to_minor, offer.face_currency)
    price = price_to = None
    if offer.price_minor is not None and offer.currency is not None:
        price = Money(offer.price_minor, offer.currency)
        price_to = None if offer.price_to_minor is None else Money(offer.price_to_minor, offer.currency)
    kind, standing = _standing(row, offer)
    return {
        "offer": offer,
        "face": first,
        "face_to": last,
        "price": price,
        "price_to": price_to,
        "age": age_words(offer.quoted_at, row.now),
        "kind": kind,
        "standing": standing,
    }


def _standing(row: SupplierRow, offer: OfferRow) -> tuple[str, str]:
    """Whether the offer can serve now, and why not."""
    if not offer.active:
        return "", "withdrawn"
    if offer.quoted_at is None:
        return "note", "not quoted yet"
    if offer.quote_id is None:
        return "bad", "not sold there"
    if row.now - offer.quoted_at >= timedelta(seconds=row.quote_age_s):
        return "warn", "stale"
    return ("good", "fresh") if offer.stock else ("warn", "out of stock")


def age_words(then: datetime | None, now: datetime) -> str:
    """How long ago that was, in its largest unit."""
    if then is None:
        return "–"
    seconds = max(0, int((now - then).total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
