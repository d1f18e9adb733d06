"""Exchange rates with their margins, and VAT rates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any, Final

from voucherd.catalogue import fx_feed, fx_store, rate_deeds, store, vat_store
from voucherd.catalogue.fx import BadRates, parse_ecb, parse_rate
from voucherd.catalogue.rate_deeds import BadMargin, rate_text, share_text
from voucherd.catalogue.store import FxRate
from voucherd.catalogue.texts import read_share
from voucherd.catalogue.vat import EU_COUNTRIES
from voucherd.catalogue.vat_store import BadVatRate, VatRate
from voucherd.companies.places import countries
from voucherd.db import Connection
from voucherd.http import Response
from voucherd.pages.console.inputs import currency_of, day_of
from voucherd.pages.console.pickers import currency_options
from voucherd.pages.render import in_pages, render, sheet
from voucherd.pages.visit import Visit, missing
from voucherd.sheets.writing import Value
from voucherd.sorting import chosen, in_order

HISTORY_SHOWN_MAX: Final = 90
_SOURCES: Final = {"ecb": "European Central Bank", "manual": "Set by hand"}


def _source(rate: FxRate) -> str:
    """Where a rate is from, in words."""
    return _SOURCES.get(rate.source, rate.source)


_SORTS: Final[dict[str, Callable[[tuple[FxRate, str]], Any]]] = {
    "currency": lambda one: one[1],
    "worth": lambda one: one[0].eur_e8,
    "day": lambda one: one[0].day,
    "source": lambda one: _source(one[0]),
}
_DAY_SORTS: Final[dict[str, Callable[[FxRate], Any]]] = {
    "day": lambda one: one.day,
    "worth": lambda one: one.eur_e8,
    "source": _source,
    "set": lambda one: one.set_at,
}
_VAT_SORTS: Final[dict[str, Callable[[tuple[str, dict[str, Any]]], Any]]] = {
    "country": lambda one: countries()[one[0]],
    "today": lambda one: one[1]["today_bp"],
    "since": lambda one: one[1]["now"] and one[1]["now"][1],
}
_FILE_SORTS: Final[dict[str, Callable[[VatRate], Any]]] = {
    "country": lambda one: countries()[one.country],
    "today": lambda one: one.rate_bp,
    "since": lambda one: one.valid_from,
}
"""The file has the rates of the past and of the future, too."""


async def rates(visit: Visit) -> Response:
    """The rates in force, the margins on them, and how their refresh stands."""
    async with visit.pool.acquire() as conn:
        sort, found = await _rates(conn, visit)
        margins = await fx_store.margins(conn)
        standing = await fx_store.feed(conn)
    today = standing.now.date()
    return render(
        "console/rates.html",
        visit,
        rows=[
            (rate, name, rate_text(rate.eur_e8), (today - rate.day).days, _source(rate))
            for rate, name in found
        ],
        sort=sort,
        wanted=visit.query.get("q"),
        currencies=[("", "Choose …"), *currency_options()],
        margins=[(of, to, share_text(bp)) for (of, to), bp in margins.items()],
        feed=standing,
        due=visit.services.settings.fx_url is not None and fx_feed.is_due(standing),
        url=visit.services.settings.fx_url,
    )


async def rates_file(visit: Visit) -> Response:
    """The rates in force as a file."""
    _, found = await visit.look(_rates, visit)
    rows: list[list[Value]] = [
        [one.currency, Decimal(rate_text(one.eur_e8)), one.day.isoformat(), one.source] for one, _ in found
    ]
    columns = ("currency", "worth in EUR", "day", "source")
    return await sheet(visit, "rates", columns, in_pages(rows), title="rates")


async def _rates(conn: Connection, visit: Visit) -> tuple[str, list[tuple[FxRate, str]]]:
    """What the list is sorted by, and the rates that are looked for with the names of their currencies."""
    sort = chosen(visit.query.get("sort"), _SORTS, "currency")
    names, wanted = dict(currency_options()), visit.query.get("q")[:60].casefold()
    found = [(rate, names[rate.currency]) for rate in await store.list_rates(conn)]
    return sort, in_order([one for one in found if wanted in one[1].casefold()], _SORTS, sort)


async def set_rate(visit: Visit) -> Response:
    """Set today's rate of one currency by hand."""
    currency, eur_e8 = visit.read("currency", currency_of), visit.read("rate", parse_rate)
    if currency is None or eur_e8 is None:
        return await rates(visit)
    try:
        day = await visit.do(rate_deeds.set_rate, currency, eur_e8)
    except BadRates as bad:
        visit.problems["currency"] = str(bad)
        return await rates(visit)
    return visit.go("/console/fx", f"1 {currency} = {rate_text(eur_e8)} EUR from {day} on.")


async def import_rates(visit: Visit) -> Response:
    """Take the rates of one of the European Central Bank's files."""
    upload = visit.files.get("file")
    try:
        if upload is None:
            raise BadRates("choose a file first")
        # The whole history is megabytes: orders are not to wait for it.
        days = await asyncio.to_thread(parse_ecb, upload.content)
    except BadRates as bad:
        visit.problems["file"] = str(bad)
        return await rates(visit)
    count = await visit.do(rate_deeds.import_rates, upload.name, days)
    return visit.go(
        "/console/fx", f"{count} rates of {len(days)} {'day' if len(days) == 1 else 'days'} are imported."
    )


async def set_margin(visit: Visit) -> Response:
    """Add a share to prices in one currency that are paid in another."""
    of, to = visit.read("of", currency_of), visit.read("to", currency_of)
    margin_bp = visit.read("share", partial(read_share, "share"))
    if of is None or to is None or margin_bp is None:
        return await rates(visit)
    try:
        await visit.do(rate_deeds.set_margin, of, to, margin_bp)
    except BadMargin as bad:
        visit.problems[bad.field] = bad.rule
        return await rates(visit)
    return visit.go("/console/fx", f"Prices in {of} that are paid in {to} cost {share_text(margin_bp)} more.")


async def remove_margin(visit: Visit) -> Response:
    """Take the margin of a pair away."""
    of, to = visit.form.get("of"), visit.form.get("to")
    await visit.do(rate_deeds.remove_margin, of, to)
    return visit.go("/console/fx", f"The margin of prices in {of} paid in {to} is removed.", "note")


async def currency(visit: Visit) -> Response:
    """The rates that one currency had."""
    code, (sort, found) = visit.parameters["currency"], await _history(visit)
    return render(
        "console/currency.html",
        visit,
        code=code,
        name=dict(currency_options()).get(code, code),
        rows=[(rate, rate_text(rate.eur_e8), _source(rate)) for rate in found[:HISTORY_SHOWN_MAX]],
        sort=sort,
        count=len(found),
    )


async def currency_file(visit: Visit) -> Response:
    """Every rate that one currency had, as a file."""
    _, found = await _history(visit)
    rows: list[list[Value]] = [
        [one.day.isoformat(), Decimal(rate_text(one.eur_e8)), one.source, one.set_at] for one in found
    ]
    name = f"rates-{visit.parameters['currency']}"
    return await sheet(visit, name, ("day", "worth in EUR", "source", "set"), in_pages(rows), title=name)


async def _history(visit: Visit) -> tuple[str, list[FxRate]]:
    """What the list is sorted by, and every rate of the currency that the address names."""
    found = await visit.look(fx_store.history, visit.parameters["currency"])
    if not found:
        raise missing()
    sort = chosen(visit.query.get("sort"), _DAY_SORTS, "-day")
    return sort, in_order(found, _DAY_SORTS, sort)


async def vat(visit: Visit) -> Response:
    """The VAT rates: what holds, what held, and what is to come."""
    found, names = await visit.look(vat_store.history), countries()
    rows: dict[str, dict[str, Any]] = {}
    for one in found:
        row = rows.setdefault(one.country, {"now": None, "today_bp": None, "past": [], "coming": []})
        told = (share_text(one.rate_bp), one.valid_from)
        if not one.begun:
            row["coming"].append(told)
        elif row["now"] is None:
            row["now"], row["today_bp"] = told, one.rate_bp
        else:
            row["past"].append(told)
    sort = chosen(visit.query.get("sort"), _VAT_SORTS, "country")
    return render(
        "console/vat.html",
        visit,
        rows=in_order(rows.items(), _VAT_SORTS, sort),
        sort=sort,
        names=names,
        choices=sorted(((code, names[code]) for code in EU_COUNTRIES), key=lambda one: one[1]),
    )


async def vat_file(visit: Visit) -> Response:
    """Every VAT rate as a file."""
    found = await visit.look(vat_store.history)
    rows: list[list[Value]] = [
        [one.country, countries()[one.country], Decimal(one.rate_bp).scaleb(-2), one.valid_from.isoformat()]
        for one in in_order(found, _FILE_SORTS, chosen(visit.query.get("sort"), _FILE_SORTS, "country"))
    ]
    columns = ("country", "name", "rate in %", "from")
    return await sheet(visit, "vat-rates", columns, in_pages(rows), title="vat rates")


async def set_vat(visit: Visit) -> Response:
    """Announce a country's rate from a day on."""
    country, first = visit.form.get("country").upper(), visit.read("from", day_of)
    rate_bp = visit.read("rate", partial(read_share, "rate"))
    if first is None or rate_bp is None:
        return await vat(visit)
    try:
        await visit.do(rate_deeds.announce_vat, country, first, rate_bp)
    except BadVatRate as bad:
        visit.problems[bad.field] = bad.rule
        return await vat(visit)
    return visit.go("/console/vat", f"{countries()[country]} has {share_text(rate_bp)} from {first} on.")


async def remove_vat(visit: Visit) -> Response:
    """Take back a rate that has not begun."""
    country, first = visit.form.get("country"), visit.read("from", day_of)
    if first is None:
        raise missing()
    await visit.do(rate_deeds.withdraw_vat, country, first)
    return visit.go("/console/vat", f"{countries().get(country, country)} keeps its rate on {first}.", "note")
