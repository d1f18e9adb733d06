"""Suppliers in the console: how they are doing, their limits, their breakers. Their keys are shown nowhere."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from voucherd.http import Response
from voucherd.pages.console.offers import offer_facts
from voucherd.pages.console.purchase_words import reason_words
from voucherd.pages.console.supplier_forms import KIND_NAMES, WHAT, speak_with
from voucherd.pages.forms import whole
from voucherd.pages.render import in_pages, number, render, sheet
from voucherd.pages.visit import Visit
from voucherd.sheets.writing import Value
from voucherd.sorting import chosen, in_order
from voucherd.suppliers import deeds, overview, registry
from voucherd.suppliers import store as supplier_store
from voucherd.suppliers.deeds import LIMITS, SupplierChanges
from voucherd.suppliers.drafts import ON_UNKNOWN
from voucherd.suppliers.overview import NO_CALLS, Lately, SupplierFigures, judge
from voucherd.suppliers.store import OfferSearch, SupplierRow
from voucherd.suppliers.trial import OFFERS_TRIED

PATH: Final = "/console/suppliers"
OFFERS_SHOWN: Final = 20

_LABELS: Final = {
    "timeout_s": ("Call timeout", "Seconds that one call may take."),
    "settle_s": ("Settling time", "Seconds after a call in which a purchase may still turn up."),
    "quote_age_s": ("Price lifetime", "Seconds that a price may be used."),
    "concurrency_max": ("Parallel calls", "At most so many at once."),
}
_SETTINGS: Final = {
    "url": "Address",
    "base_url": "Address",
    "currency": "Currency",
    "bulk_max": "Codes in one purchase, at most",
    "resolve_upto": "Now or never up to",
    "guard": "Highest price is kept by",
    "price": "Price of one code",
    "outcome": "Outcome",
    "stock": "Stock",
}
"""What a page shows of a config, and what it is called there."""
_STATUSES: Final[dict[str, Callable[[dict[str, Any]], bool]]] = {
    "active": lambda one: one["row"].active,
    "paused": lambda one: not one["row"].active,
    "failing": lambda one: one["judged"].kind in ("bad", "warn"),
}
_SORTS: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "name": lambda one: one["row"].name,
    "status": lambda one: one["judged"].text,
    "failed": lambda one: one["lately"].failed_percent,
    "calls": lambda one: one["counted"].calls,
    "waiting": lambda one: one["counted"].lines,
    "unknown": lambda one: one["counted"].unknown,
    "time": lambda one: one["lately"].middle_ms,
}


async def suppliers(visit: Visit) -> Response:
    """Every supplier of the state, with its health, or those that are looked for."""
    given, rows = await _found(visit)
    return render(
        "console/suppliers.html",
        visit,
        rows=rows,
        given=given,
        sort=given["sort"],
        filtered=bool(given["q"] or given["status"]),
        kinds=KIND_NAMES,
    )


async def suppliers_file(visit: Visit) -> Response:
    """The same as a file."""
    _, rows = await _found(visit)
    columns = ("supplier", "kind", "status", "active", "calls", "failed", "unknown", "in progress", "waiting codes",
               "milliseconds")  # fmt: skip
    lines: list[list[Value]] = [
        [
            *(one["row"].name, one["row"].kind, one["judged"].text, one["row"].active),
            *(one["lately"].calls, one["lately"].failed, one["counted"].unknown, one["counted"].calls),
            *(one["counted"].lines, one["lately"].middle_ms),
        ]
        for one in rows
    ]
    return await sheet(visit, "suppliers", columns, in_pages(lines), title="suppliers")


async def _found(visit: Visit) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """The filters of the address, and the suppliers that they let through, in their order."""
    given = {name: visit.query.get(name)[:60] for name in ("q", "status")}
    given["sort"] = chosen(visit.query.get("sort"), _SORTS, "name")
    async with visit.pool.acquire() as conn:
        found = [row for row in await supplier_store.suppliers(conn) if row.state is visit.state]
        counted = await overview.figures(conn)
        lately = await overview.lately(conn, visit.state)
    rows = [
        _health(row, counted.get(row.id, SupplierFigures()), lately.get(row.id, NO_CALLS))
        for row in found
        if given["q"].lower() in row.name
    ]
    wanted = _STATUSES.get(given["status"])
    rows = rows if wanted is None else [one for one in rows if wanted(one)]
    return given, in_order(rows, _SORTS, given["sort"])


async def supplier(visit: Visit) -> Response:
    """One supplier: its health, its limits and what it sells."""
    async with visit.pool.acquire() as conn:
        row = await supplier_store.supplier(conn, visit.parameters["name"])
        counted = (await overview.figures(conn)).get(row.id, SupplierFigures())
        lately = (await overview.lately(conn, row.state)).get(row.id, NO_CALLS)
        sold = await supplier_store.search_offers(conn, row.id, OfferSearch(), OFFERS_SHOWN)
        count = await supplier_store.count_offers(conn, row.id)
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
        kind_name=KIND_NAMES[row.kind][0],
        # Not its tables: somebody may have put a secret into their headers after all.
        config=[(label, _shown(row.config[key])) for key, label in _SETTINGS.items() if row.config.get(key)],
        reason_words=reason_words,
        offers=[offer_facts(row, offer) for offer in sold],
        offers_count=count,
        offers_more=count > len(sold),
    )


async def change(visit: Visit) -> Response:
    """Change a supplier's limits."""
    row = await visit.look(supplier_store.supplier, visit.parameters["name"])
    form, problems = visit.form, visit.problems
    numbers: dict[str, Any] = {name: whole(form.get(name), *ends) for name, ends in LIMITS.items()}
    for name, (low, high) in LIMITS.items():
        if numbers[name] is None:
            problems[name] = f"Must be a whole number from {number(low)} to {number(high)}."
    slack_bp = None
    try:
        slack_bp = deeds.read_slack(form.get("price_slack"))
    except ValueError:
        problems["price_slack"] = "Must be a share such as 1% or 0.5%, up to 100%."
    on_unknown = form.get("on_unknown")
    if on_unknown not in ON_UNKNOWN:
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
        f"{row.name} is active." if active else f"{row.name} is paused: nothing more is bought there.",
    )


async def close_breaker(visit: Visit) -> Response:
    """Try a supplier again at once, although it failed."""
    row = await visit.look(supplier_store.supplier, visit.parameters["name"])
    done = await visit.do(deeds.close_breaker, row.name)
    return visit.go(
        f"{PATH}/{row.name}",
        "It is asked again at once." if done else "It was being asked already.",
    )


async def test(visit: Visit) -> Response:
    """Speak with a supplier, if that is asked for; nothing is bought."""
    row = await visit.look(supplier_store.supplier, visit.parameters["name"])
    found = None
    if visit.query.get("run") == "yes":
        sold = await visit.look(supplier_store.search_offers, row.id, OfferSearch(), OFFERS_TRIED)
        found = await speak_with(visit, row.spec(visit.services.sealer), row.on_unknown, sold)
    return render("console/supplier_test.html", visit, row=row, found=found, what=WHAT)


async def _store(visit: Visit, row: SupplierRow, made: SupplierChanges) -> None:
    await visit.do(deeds.change, row.name, made, visit.services.sealer)


def _shown(value: object) -> str:
    """A setting as people read it: the program's own words begin with a capital letter, addresses stay."""
    text = str(value)
    return text.capitalize() if text.isalpha() and text.islower() else text


def _health(row: SupplierRow, counted: SupplierFigures, lately: Lately) -> dict[str, Any]:
    word = row.health.word(row.now)
    quotes = [(counted.fresh, "current"), (counted.stale, "too old"), (counted.none, "without a price")]
    return {
        "row": row,
        "counted": counted,
        "lately": lately,
        "judged": judge(lately, word, active=row.active, quote_error=row.quote_error),
        "breaker": word,
        "open_until": row.health.open_until if word == "open" else None,
        "quotes": ", ".join(f"{count} {what}" for count, what in quotes if count) or "none",
    }
