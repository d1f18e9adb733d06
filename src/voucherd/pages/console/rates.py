"""Exchange rates with their margins, and VAT rates."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from voucherd.catalogue import fx_feed, fx_store, store, vat_store
from voucherd.catalogue.fx import BASE, MARGIN_BP_MAX, BadRates, parse_ecb, parse_rate
from voucherd.catalogue.texts import read_share
from voucherd.catalogue.vat import EU_COUNTRIES
from voucherd.catalogue.vat_store import BadVatRate
from voucherd.db import transaction
from voucherd.http import Response
from voucherd.money import RATE_DIGITS, plain
from voucherd.pages import deeds
from voucherd.pages.console.inputs import Problems, currency_of, day_of, missing
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, see_other
from voucherd.services import Services

HISTORY_SHOWN_MAX: Final = 90


async def rates(services: Services, visit: Visit) -> Response:
    """The rates in force, the margins on them, and how their refresh stands."""
    return await _rates(services, visit, Problems())


async def set_rate(services: Services, visit: Visit) -> Response:
    """Set today's rate of one currency by hand."""
    problems = Problems()
    currency = problems.read("currency", lambda: currency_of(visit.form.get("currency")))
    eur_e8 = problems.read("rate", lambda: parse_rate(visit.form.get("rate")))
    if currency == BASE:
        problems["currency"] = f"{BASE} is the base and has no rate"
    if problems or currency is None or eur_e8 is None:
        return await _rates(services, visit, problems)
    async with transaction(services.pool) as tx:
        day = await store.set_rate(tx, currency, eur_e8)
        said = {"rate": written(eur_e8), "day": day.isoformat()}
        await deeds.record(tx, visit, "fx.set", f"currency {currency}", said)
    visit.tell(f"1 {currency} = {written(eur_e8)} EUR from {day} on.")
    return see_other("/console/fx")


async def import_rates(services: Services, visit: Visit) -> Response:
    """Take the rates of one of the European Central Bank's files."""
    upload = visit.files.get("file")
    try:
        if upload is None:
            raise BadRates("choose a file first")
        # The whole history is megabytes: orders are not to wait for it.
        days = await asyncio.to_thread(parse_ecb, upload.content)
    except BadRates as bad:
        return await _rates(services, visit, Problems({"file": str(bad)}))
    async with transaction(services.pool) as tx:
        count = await store.set_rates(tx, days, "ecb")
        await deeds.record(tx, visit, "fx.import", "fx", {"file": upload.name[:200], "rates": count})
    visit.tell(f"{count} rates of {len(days)} {'day' if len(days) == 1 else 'days'} are set.")
    return see_other("/console/fx")


async def set_margin(services: Services, visit: Visit) -> Response:
    """Add a share to prices in one currency that are paid in another."""
    form, problems = visit.form, Problems()
    of = problems.read("of", lambda: currency_of(form.get("of")))
    to = problems.read("to", lambda: currency_of(form.get("to")))
    margin_bp = problems.read("share", lambda: read_share("share", form.get("share")))
    if margin_bp is not None and not 1 <= margin_bp <= MARGIN_BP_MAX:
        problems["share"] = f"must be between 0.01% and {MARGIN_BP_MAX // 100}%"
    if of is not None and of == to:
        problems["to"] = "a currency has no margin against itself"
    if problems or of is None or to is None or margin_bp is None:
        return await _rates(services, visit, problems)
    async with transaction(services.pool) as tx:
        await fx_store.set_margin(tx, of, to, margin_bp)
        await deeds.record(tx, visit, "fx.margin.set", f"margin {of} {to}", {"share": share(margin_bp)})
    visit.tell(f"Prices in {of} that are paid in {to} cost {share(margin_bp)} more.")
    return see_other("/console/fx")


async def remove_margin(services: Services, visit: Visit) -> Response:
    """Take the margin of a pair away."""
    of, to = visit.form.get("of"), visit.form.get("to")
    async with transaction(services.pool) as tx:
        if not await fx_store.remove_margin(tx, of, to):
            raise missing()
        await deeds.record(tx, visit, "fx.margin.remove", f"margin {of} {to}")
    visit.tell(f"Prices in {of} that are paid in {to} are converted as they are.", "note")
    return see_other("/console/fx")


async def currency(services: Services, visit: Visit) -> Response:
    """Every rate that one currency had."""
    code = visit.parameters["currency"]
    async with services.pool.acquire() as conn:
        found = await fx_store.history(conn, code)
    if not found:
        raise missing()
    rows = [(rate, written(rate.eur_e8)) for rate in found[:HISTORY_SHOWN_MAX]]
    return render("console/currency.html", visit, code=code, rows=rows, count=len(found))


async def vat(services: Services, visit: Visit) -> Response:
    """The VAT rates: what holds, what held, and what is to come."""
    return await _vat(services, visit, Problems())


async def set_vat(services: Services, visit: Visit) -> Response:
    """Announce a country's rate from a day on."""
    form, problems = visit.form, Problems()
    country = form.get("country").upper()
    first = problems.read("from", lambda: day_of(form.get("from")))
    rate_bp = problems.read("rate", lambda: read_share("rate", form.get("rate")))
    if problems or first is None or rate_bp is None:
        return await _vat(services, visit, problems)
    try:
        async with transaction(services.pool) as tx:
            await vat_store.announce(tx, country, first, rate_bp)
            said = {"from": first.isoformat(), "rate": share(rate_bp)}
            await deeds.record(tx, visit, "vat.set", f"country {country}", said)
    except BadVatRate as bad:
        problems[bad.field] = bad.rule
        return await _vat(services, visit, problems)
    visit.tell(f"{country} has {share(rate_bp)} from {first} on.")
    return see_other("/console/vat")


async def remove_vat(services: Services, visit: Visit) -> Response:
    """Take back a rate that has not begun."""
    country, problems = visit.form.get("country"), Problems()
    first = problems.read("from", lambda: day_of(visit.form.get("from")))
    if first is None:
        raise missing()
    async with transaction(services.pool) as tx:
        if not await vat_store.withdraw(tx, country, first):
            raise missing()
        await deeds.record(tx, visit, "vat.remove", f"country {country}", {"from": first.isoformat()})
    visit.tell(f"{country} keeps its rate on {first}.", "note")
    return see_other("/console/vat")


def written(eur_e8: int) -> str:
    """A rate as people write it."""
    whole, _, part = plain(eur_e8, RATE_DIGITS).partition(".")
    return f"{whole}.{part.rstrip('0').ljust(4, '0')}"


def share(bp: int) -> str:
    """A share as people write it: 1.5%."""
    return f"{plain(bp, 2).rstrip('0').rstrip('.')}%"


async def _rates(services: Services, visit: Visit, problems: Problems) -> Response:
    async with services.pool.acquire() as conn:
        found = await store.list_rates(conn)
        margins = await fx_store.margins(conn)
        standing = await fx_store.feed(conn)
    today = standing.now.date()
    return render(
        "console/rates.html",
        visit,
        status=422 if problems else 200,
        problems=problems,
        form=visit.form,
        rows=[(rate, written(rate.eur_e8), (today - rate.day).days) for rate in found],
        margins=[(of, to, share(bp)) for (of, to), bp in margins.items()],
        feed=standing,
        due=services.settings.fx_url is not None and fx_feed.is_due(standing),
        url=services.settings.fx_url,
    )


async def _vat(services: Services, visit: Visit, problems: Problems) -> Response:
    async with services.pool.acquire() as conn:
        found = await vat_store.history(conn)
    countries: dict[str, dict[str, Any]] = {}
    for one in found:
        row = countries.setdefault(one.country, {"now": None, "past": [], "coming": []})
        told = (share(one.rate_bp), one.valid_from)
        if not one.begun:
            row["coming"].append(told)
        elif row["now"] is None:
            row["now"] = told
        else:
            row["past"].append(told)
    return render(
        "console/vat.html",
        visit,
        status=422 if problems else 200,
        problems=problems,
        form=visit.form,
        countries=countries,
        choices=[(code, code) for code in sorted(EU_COUNTRIES)],
    )
