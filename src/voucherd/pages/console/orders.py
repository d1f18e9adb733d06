"""Everybody's orders in the console: found, looked at, cancelled. Their codes are shown to no operator."""

from __future__ import annotations

from typing import Any, Final

from voucherd.catalogue.cache import VersionCache
from voucherd.companies import store as company_store
from voucherd.companies.model import CompanyNotFound
from voucherd.db import Connection
from voucherd.http import Response
from voucherd.money import Money
from voucherd.orders import archived, cancel_by_operator, register
from voucherd.orders.model import REFERENCE_CHARS_MAX, TYPES, Order
from voucherd.orders.register import Registered
from voucherd.orders.rules.refusals import Refusal
from voucherd.orders.rules.states import Payment, Status
from voucherd.pages.buyer.orders import items_of
from voucherd.pages.forms import read_period
from voucherd.pages.render import qualified, render
from voucherd.pages.visit import Visit, missing, see_other
from voucherd.people.roles import Right
from voucherd.purchasing import records
from voucherd.services import Services
from voucherd.vault import reveals
from voucherd.wallet import store

PATH: Final = "/console/orders"
PAGE_SIZE: Final = 50
ROWS_SHOWN: Final = 100
"""Ranges of lines, events, deliveries and so on of one order that are shown."""

STATUSES: Final = {status.name.lower(): status for status in Status}
KINDS: Final = {
    Status.CREATED: "note",
    Status.PENDING: "warn",
    Status.FINISHED: "good",
    Status.CANCELLED: "bad",
    Status.DELETED: "",
}
_GIVEN: Final = ("company", "status", "reference", "from", "to")


async def orders(visit: Visit) -> Response:
    """Orders of every company, newest first."""
    query = visit.query
    trx = query.get("trx")
    problem = ""
    if trx:
        if await _read(visit.services, trx) is not None:
            return see_other(f"{PATH}/{trx}")
        problem = "There is no order of that number."
    given = {name: query.get(name)[:REFERENCE_CHARS_MAX] for name in _GIVEN}
    period = read_period(query)
    before = visit.services.ids.order_id(query.get("before")) if query.get("before") else None
    async with visit.pool.acquire() as conn:
        company_id, unknown = await _company(conn, given["company"])
        filters = register.OrderSearch(
            visit.state,
            company_id,
            STATUSES.get(given["status"]),
            given["reference"] or None,
            period.begins,
            period.ends,
        )
        page = register.OrderSearchPage([], None)
        if not unknown:
            page = await register.search(conn, filters, size=PAGE_SIZE, before=before)
    onward = "" if page.before is None else visit.services.ids.trx_unkept(page.before)
    return render(
        "console/orders.html",
        visit,
        rows=[_row(visit.services, one) for one in page.rows],
        given=given,
        trx=trx,
        problem=problem or unknown or period.problem,
        statuses=[("", "Any"), *((word, word) for word in STATUSES)],
        before=qualified(PATH, given) if before else "",
        after=qualified(PATH, given | {"before": onward}) if onward else "",
        filtered=any(given.values()),
    )


async def order(visit: Visit) -> Response:
    """One order: lines, money, events, purchases, deliveries, and who has seen its codes."""
    found = await _found(visit)
    async with visit.pool.acquire() as conn:
        company = (await company_store.companies(conn, [found.company_id]))[found.company_id]
        happened = await register.happened(conn, found.id, ROWS_SHOWN)
        facts: dict[str, Any] = {
            "company": company,
            "happened": happened,
            "told": await register.notifications(conn, [one.id for one in happened], ROWS_SHOWN),
            "movements": await store.movements(conn, found.id, ROWS_SHOWN),
            "purchases": await records.of_order(conn, found.id, ROWS_SHOWN),
            "reveals": await reveals.of_order(conn, found.id, ROWS_SHOWN, created_at=found.created_at),
        }
    can_cancel = found.status in (Status.CREATED, Status.PENDING)
    return render(
        "console/order.html",
        visit,
        **_about(visit, found),
        **facts,
        ranges=_ranges(found),
        items=items_of(found),
        can_cancel=can_cancel and visit.may(Right.ORDERS_CANCEL),
    )


async def cancel_page(visit: Visit) -> Response:
    """What cancelling would do, before it is done."""
    found = await _found(visit)
    foretold = await cancel_by_operator.preview(visit.pool, visit.services.settings, found)
    if isinstance(foretold, Refusal):
        return visit.go(
            f"{PATH}/{visit.parameters['trx']}",
            f"The order is {found.status.name.lower()} and can’t be cancelled.",
            "bad",
        )
    company = (await visit.look(company_store.companies, [found.company_id]))[found.company_id]
    return render("console/order_cancel.html", visit, **_about(visit, found), company=company, would=foretold)


async def cancel(visit: Visit) -> Response:
    """Delete an order that is not confirmed, or cancel and refund what is undelivered of it."""
    found = await _found(visit)
    trx = visit.parameters["trx"]
    try:
        after = await cancel_by_operator.cancel(visit.pool, visit.services.settings, visit.actor, trx, found)
    except Refusal:
        return visit.go(
            f"{PATH}/{trx}", "The order has ended by itself and can’t be cancelled any more.", "bad"
        )
    visit.services.orders.watch.wake(after.id)
    if after.status is Status.DELETED:
        visit.tell("The order is withdrawn. Nothing was charged.")
    else:
        back = Money(after.refunded_minor - found.refunded_minor, after.payment_currency)
        visit.tell(f"Cancelled. {back} went back to the buyer’s balance.")
    return see_other(f"{PATH}/{trx}")


async def _company(conn: Connection, name: str) -> tuple[int | None, str]:
    if not name:
        return None, ""
    try:
        return (await company_store.find_company(conn, name)).id, ""
    except CompanyNotFound:
        return None, "There is no company of that name."


async def _read(services: Services, trx: str) -> Order | None:
    order_id = services.ids.order_id(trx)
    if order_id is None:
        return None
    return await archived.read_anywhere(services.pool, services.orders.archive, order_id, VersionCache())


async def _found(visit: Visit) -> Order:
    found = await _read(visit.services, visit.parameters["trx"])
    if found is None:
        raise missing()
    return found


def _row(services: Services, one: Registered) -> dict[str, Any]:
    return {
        "trx": services.ids.trx_unkept(one.id),
        "order": one,
        "total": Money(one.total_minor, one.payment_currency),
        "status": one.status.name.lower(),
        "kind": KINDS[one.status],
    }


def _about(visit: Visit, found: Order) -> dict[str, Any]:
    """What the head of an order's pages says."""
    currency = found.payment_currency
    return {
        "trx": visit.parameters["trx"],
        "order": found,
        "type": TYPES[found.type],
        "standing": found.status.name.lower(),
        "kind": KINDS[found.status],
        "payment": Payment(found.payment_status).name.lower().replace("_", " "),
        "total": Money(found.total_minor, currency),
        "vat": Money(found.vat_minor, currency),
        "charged": Money(found.charged_minor, currency),
        "refunded": Money(found.refunded_minor, currency),
        "held": Money(found.held_minor, currency),
    }


def _ranges(found: Order) -> list[dict[str, Any]]:
    """What became of which lines: a range a row, never a code."""
    slugs = [(item.first_line, item.version.slug) for item in found.items]

    def product(line: int) -> str:
        return next(slug for first, slug in reversed(slugs) if first <= line)

    rows: list[dict[str, Any]] = [
        {
            "first": one.line_from,
            "last": one.line_to,
            "product": product(one.line_from),
            "standing": "cancelled" if one.lot_id is None else "delivered",
            "kind": "bad" if one.lot_id is None else "good",
            "lot": one.lot_id,
        }
        for one in found.outcomes
    ]
    rows += [
        {
            "first": start,
            "last": end,
            "product": item.version.slug,
            "standing": "open",
            "kind": "warn",
            "lot": None,
        }
        for item, start, end in found.open_ranges()
        if found.status is not Status.DELETED
    ]
    return sorted(rows, key=lambda row: row["first"])[:ROWS_SHOWN]
