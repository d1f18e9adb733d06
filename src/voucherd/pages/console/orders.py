"""Everybody's orders in the console: found, looked at, cancelled. Their codes are shown to no operator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from voucherd import trail
from voucherd.actors import ActorKind
from voucherd.catalogue.cache import VersionCache
from voucherd.companies import store as company_store
from voucherd.db import Connection
from voucherd.http import HttpError, Response
from voucherd.ids import Identifiers
from voucherd.keys import store as key_store
from voucherd.money import Money
from voucherd.orders import archived, cancel_by_operator, register
from voucherd.orders.model import REFERENCE_CHARS_MAX, TYPES, Order
from voucherd.orders.register import Leading, Registered
from voucherd.orders.rules.refusals import Refusal
from voucherd.orders.rules.states import Payment, Status
from voucherd.pages.buyer.orders import items_of
from voucherd.pages.console.inputs import FILE_ROWS_MAX, company_in_query, company_options
from voucherd.pages.console.timeline import OrderHistory, timeline
from voucherd.pages.forms import read_period
from voucherd.pages.render import qualified, render, sheet
from voucherd.pages.statuses import STATUSES as SHOWN
from voucherd.pages.timeline import person_words
from voucherd.pages.visit import Visit, missing, see_other
from voucherd.people import user_store
from voucherd.people.roles import Right
from voucherd.purchasing import records
from voucherd.services import Services
from voucherd.sheets.writing import Row
from voucherd.sorting import chosen
from voucherd.trail import TrailRow
from voucherd.vault import reveals
from voucherd.vault.reveals import RevealRow
from voucherd.wallet import store

PATH: Final = "/console/orders"
PAGE_SIZE: Final = 50
ROWS_SHOWN: Final = 100
"""Ranges of lines, events, deliveries and so on of one order that are shown."""

STATUSES: Final = {status.name.lower(): status for status in Status}
FILE_PAGE: Final = 1_000
FILE_COLUMNS: Final = (
    *(
        "order",
        "company",
        "product",
        "amount",
        "items",
        "status",
        "payment",
        "delivered",
        "cancelled",
        "codes",
    ),
    *("total", "currency", "reference", "created"),
)
_GIVEN: Final = ("q", "company", "status", "from", "to", "sort")
OLDEST: Final = "created"
NEWEST: Final = "-created"


async def orders(visit: Visit) -> Response:
    """Orders of every company, newest first."""
    number = visit.query.get("q")
    if number and (found := await _read(visit.services, number)) is not None:
        return see_other(f"{PATH}/{visit.services.ids.trx_unkept(found.id)}")
    before = visit.services.ids.order_id(visit.query.get("before")) if visit.query.get("before") else None
    async with visit.pool.acquire() as conn:
        filters = await _filters(conn, visit)
        companies = await company_options(conn)
        page = register.OrderSearchPage([], None)
        if not visit.problems:
            oldest = _sort(visit) == OLDEST
            page = await register.search(conn, filters, size=PAGE_SIZE, before=before, oldest=oldest)
        leading = await register.leading(conn, [one.id for one in page.rows])
    given = _given(visit)
    onward = "" if page.before is None else visit.services.ids.trx_unkept(page.before)
    return render(
        "console/orders.html",
        visit,
        rows=[_row(visit.services, one, leading.get(one.id)) for one in page.rows],
        given=given,
        companies=[("", "Every company"), *companies],
        statuses=[("", "Any status"), *((word, SHOWN[word][0]) for word in STATUSES)],
        sort=_sort(visit),
        first=qualified(PATH, given) if before else "",
        after=qualified(PATH, given | {"before": onward}) if onward else "",
        filtered=any(given[name] for name in _GIVEN if name != "sort"),
    )


async def orders_file(visit: Visit) -> Response:
    """The same orders as a file."""
    filters = await visit.look(_filters, visit)
    if visit.problems:
        raise HttpError(400, "bad_filter", " ".join(visit.problems.values()))
    return await sheet(visit, "orders", FILE_COLUMNS, _file_rows(visit, filters), title="Orders")


async def _file_rows(visit: Visit, filters: register.OrderSearch) -> AsyncIterator[list[Row]]:
    before, ids = None, visit.services.ids
    for _ in range(FILE_ROWS_MAX // FILE_PAGE):
        async with visit.pool.acquire() as conn:
            oldest = _sort(visit) == OLDEST
            page = await register.search(conn, filters, size=FILE_PAGE, before=before, oldest=oldest)
            leading = await register.leading(conn, [one.id for one in page.rows])
        yield [_file_row(ids, one, leading.get(one.id)) for one in page.rows]
        before = page.before
        if before is None:
            return


def _file_row(ids: Identifiers, one: Registered, leading: Leading | None) -> Row:
    return (
        ids.trx_unkept(one.id),
        one.company,
        *(("", 0, 0) if leading is None else (leading.name, leading.amount, leading.items)),
        SHOWN[one.status.name.lower()][0],
        SHOWN[one.payment_status.name.lower()][0],
        *(one.lines_finished, one.lines_cancelled, one.lines),
        Money(one.total_minor, one.payment_currency).decimal(),
        one.payment_currency,
        one.reference,
        one.created_at,
    )


def _given(visit: Visit) -> dict[str, str]:
    return {name: visit.query.get(name)[:REFERENCE_CHARS_MAX] for name in _GIVEN}


def _sort(visit: Visit) -> str:
    return chosen(visit.query.get("sort"), {OLDEST}, NEWEST)


async def _filters(conn: Connection, visit: Visit) -> register.OrderSearch:
    """What the address asks for; what it asks wrongly is a problem beside its field."""
    given, period = _given(visit), read_period(visit.query, visit.words)
    if period.problem:
        visit.problems["from"] = period.problem
    if given["q"].startswith("TRX"):
        visit.problems["q"] = "There is no order with this number."
    return register.OrderSearch(
        visit.state,
        await company_in_query(conn, visit),
        STATUSES.get(given["status"]),
        given["q"] or None,
        period.begins,
        period.ends,
    )


async def order(visit: Visit) -> Response:
    """One order: what happened to it, its codes by their lots, and who was told."""
    found = await _found(visit)
    trx = visit.parameters["trx"]
    async with visit.pool.acquire() as conn:
        company = (await company_store.companies(conn, [found.company_id]))[found.company_id]
        happened = await register.happened(conn, found.id, ROWS_SHOWN)
        told = await register.notifications(conn, [one.id for one in happened], ROWS_SHOWN)
        seen = await reveals.of_order(conn, found.id, ROWS_SHOWN, created_at=found.created_at)
        subject, until = f"order {trx}", found.updated_at
        deeds = await trail.about(conn, found.company_id, subject, found.created_at, until, ROWS_SHOWN)
        purchases = await records.of_order(conn, found.id, ROWS_SHOWN)
        history = OrderHistory(
            found,
            happened,
            deeds,
            await store.movements(conn, found.id, ROWS_SHOWN),
            purchases,
            seen.rows,
            await names_of(conn, [*seen.rows, *deeds]),
            await names_at(conn, [one.settled_by for one in purchases]),
            visit.may(Right.ATTEMPTS_MANAGE),
        )
    can_cancel = found.status in (Status.CREATED, Status.PENDING)
    return render(
        "console/order.html",
        visit,
        **_about(visit, found),
        company=company,
        timeline=timeline(history),
        archived_until=seen.archived_until if found.lines_finished else None,
        told=told,
        ranges=_ranges(found),
        items=items_of(found),
        can_cancel=can_cancel and visit.may(Right.ORDERS_CANCEL),
    )


async def names_of(
    conn: Connection, rows: Sequence[RevealRow | TrailRow]
) -> dict[tuple[ActorKind, int], str]:
    """What the keys and people are called that saw codes or did something."""

    def of(*kinds: ActorKind) -> set[int]:
        return {one.actor_id for one in rows if one.actor_kind in kinds and one.actor_id is not None}

    keys = await key_store.prefixes(conn, of(ActorKind.KEY))
    people = await user_store.find_users(conn, of(ActorKind.PERSON, ActorKind.OPERATOR))
    named = {(ActorKind.KEY, number): f"{prefix}…" for number, prefix in keys.items()}
    for kind in (ActorKind.PERSON, ActorKind.OPERATOR):
        named |= {(kind, one.id): person_words(one.name, one.email) for one in people}
    return named


async def names_at(conn: Connection, emails: Sequence[str | None]) -> dict[str, str]:
    """What the people with these addresses are called, as far as they are any."""
    wanted = {email for email in emails if email}
    found = await user_store.find_users(conn, [], wanted) if wanted else []
    return {one.email: person_words(one.name, one.email) for one in found}


async def cancel_page(visit: Visit) -> Response:
    """What cancelling would do, before it is done."""
    found = await _found(visit)
    foretold = await cancel_by_operator.preview(visit.pool, visit.services.settings, found)
    if isinstance(foretold, Refusal):
        return visit.go(
            f"{PATH}/{visit.parameters['trx']}",
            f"The order is {SHOWN[found.status.name.lower()][0].lower()}: there is nothing left to cancel.",
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


def _row(services: Services, one: Registered, leading: Leading | None) -> dict[str, Any]:
    return {
        "trx": services.ids.trx_unkept(one.id),
        "order": one,
        "leading": leading,
        "total": Money(one.total_minor, one.payment_currency),
        "status": one.status.name.lower(),
    }


def _about(visit: Visit, found: Order) -> dict[str, Any]:
    """What the head of an order's pages says."""
    currency = found.payment_currency
    return {
        "trx": visit.parameters["trx"],
        "order": found,
        "type": TYPES[found.type],
        "order_status": found.status.name.lower(),
        "payment": Payment(found.payment_status).name.lower(),
        "total": Money(found.total_minor, currency),
        "vat": Money(found.vat_minor, currency),
        "charged": Money(found.charged_minor, currency),
        "refunded": Money(found.refunded_minor, currency),
        "held": Money(found.held_minor, currency),
    }


def _ranges(found: Order) -> list[dict[str, Any]]:
    """What became of which lines: a range a row, never a code."""
    names = [(item.first_line, item.version.name) for item in found.items]

    def product(line: int) -> str:
        return next(name for first, name in reversed(names) if first <= line)

    rows: list[dict[str, Any]] = [
        {
            "first": one.line_from,
            "last": one.line_to,
            "product": product(one.line_from),
            "status": "cancelled" if one.lot_id is None else "delivered",
            "lot": one.lot_id,
        }
        for one in found.outcomes
    ]
    rows += [
        {
            "first": start,
            "last": end,
            "product": item.version.name,
            "status": "waiting",
            "lot": None,
        }
        for item, start, end in found.open_ranges()
        if found.status is not Status.DELETED
    ]
    return sorted(rows, key=lambda row: row["first"])[:ROWS_SHOWN]
