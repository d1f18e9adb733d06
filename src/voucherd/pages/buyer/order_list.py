"""The company's orders as a list and as a file: searched, filtered and sorted by what stands in the address."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from voucherd.http import HttpError, Response
from voucherd.money import Money
from voucherd.orders.answers import OrderListing
from voucherd.orders.find import SCAN_MAX, OrderFilters
from voucherd.orders.model import TYPES, Order
from voucherd.orders.rules.states import Status
from voucherd.pages.buyer import words
from voucherd.pages.buyer.catalogue import page_number
from voucherd.pages.buyer.orders import asked_for, rows_of
from voucherd.pages.forms import read_day
from voucherd.pages.render import render, sheet
from voucherd.pages.visit import Visit
from voucherd.sheets.writing import Row
from voucherd.words import phrase

PAGE_SIZE: Final = 25
COUNT_MAX: Final = 1_000
"""Orders that the list counts: nobody turns so many pages, and to count more takes longer than to show one."""
FILE_PAGE_SIZE: Final = 200
FILE_PAGES_MAX: Final = 50_000
OLDEST_FIRST: Final = "created"
STATUSES: Final = {
    "": (phrase("All statuses"), ()),
    "created": (phrase("Not confirmed"), (Status.CREATED,)),
    "pending": (phrase("In progress"), (Status.PENDING,)),
    "finished": (phrase("Delivered"), (Status.FINISHED,)),
    "cancelled": (phrase("Cancelled"), (Status.CANCELLED,)),
}
KINDS: Final = (("", phrase("API and portal")), ("api", phrase("API")), ("portal", phrase("Portal")))
COLUMNS: Final = (
    *(phrase("Number"), phrase("Reference"), phrase("Created"), phrase("Status"), phrase("From")),
    *(phrase("Products"), phrase("Codes"), phrase("Delivered"), phrase("Cancelled"), phrase("Price")),
    *(phrase("VAT"), phrase("Total"), phrase("Refunded"), phrase("Currency")),
)


async def orders(visit: Visit) -> Response:
    """The company's orders, the newest first unless the address says otherwise."""
    filters, asked = _filters(visit)
    number = page_number(visit)
    skip = (number - 1) * PAGE_SIZE
    filters, found = await _first_page(visit, filters, asked["q"], skip=skip, count_max=COUNT_MAX)
    passed = skip + len(found.orders) if found.orders else 0
    total = max(passed, found.total.count if found.total is not None else 0)
    return render(
        "buyer/orders.html",
        visit,
        rows=await rows_of(visit, found.orders),
        asked=asked,
        statuses=[(key, visit.words.text(label)) for key, (label, _) in STATUSES.items()],
        kinds=[(key, visit.words.text(label)) for key, label in KINDS],
        sort=asked["sort"] or "-created",
        total=total,
        many=found.total is not None and found.total.more and found.after is not None,
        most=COUNT_MAX,
        looked_at=None if found.whole else SCAN_MAX,
        archived_before=found.archived_before,
        number=number,
        pages=max(-(-total // PAGE_SIZE), number + (found.whole and found.after is not None)),
    )


async def export(visit: Visit) -> Response:
    """The same orders as a file, all pages of them."""
    filters, asked = _filters(visit)
    filters, found = await _first_page(visit, filters, asked["q"], skip=0)
    if visit.query.get("format") == "xlsx" and found.total is not None and found.total.more:
        text = visit.words.text(
            "There are more than {most} orders: choose dates, or take the CSV file.",
            most=visit.words.number(SCAN_MAX),
        )
        raise HttpError(400, "too_many_orders", text)
    columns = [visit.words.text(column) for column in COLUMNS]
    return await sheet(
        visit, "orders", columns, _file_pages(visit, filters), title=visit.words.text("Orders")
    )


async def _file_pages(visit: Visit, filters: OrderFilters) -> AsyncIterator[list[Row]]:
    """The rows as they are read; no connection is held while the visitor takes them."""
    after: tuple[datetime, int] | None = None
    for _ in range(FILE_PAGES_MAX):
        found = await visit.services.orders.browse(
            visit.company_id, visit.state, filters, size=FILE_PAGE_SIZE, after=after
        )
        asked = await asked_for(visit, found.orders)
        yield [_file_row(visit, one, asked_for=one.id in asked) for one in found.orders]
        after = found.after
        if after is None:
            return


def _file_row(visit: Visit, found: Order, *, asked_for: bool) -> Row:
    currency = found.payment_currency
    amounts = (found.price_minor, found.vat_minor, found.total_minor, found.refunded_minor)
    return (
        visit.services.ids.trx_unkept(found.id),
        found.reference,
        found.created_at,
        visit.words.text(words.standing(found, asked_for=asked_for).word),
        TYPES[found.type],
        "; ".join(f"{item.amount} × {item.version.name}" for item in found.items),
        found.lines,
        found.lines_finished,
        found.lines_cancelled,
        *(Money(minor, currency).decimal() for minor in amounts),
        currency,
    )


async def _first_page(
    visit: Visit, filters: OrderFilters, text: str, *, skip: int, count_max: int | None = None
) -> tuple[OrderFilters, OrderListing]:
    """A page; where no order has this very reference, those are looked for that have the text in theirs."""

    async def browse() -> OrderListing:
        return await visit.services.orders.browse(
            visit.company_id, visit.state, filters, size=PAGE_SIZE, skip=skip, count_max=count_max
        )

    found = await browse()
    if filters.reference is not None and found.total is not None and not found.total.count:
        filters = replace(filters, reference=None, reference_part=text)
        found = await browse()
    return filters, found


def _filters(visit: Visit) -> tuple[OrderFilters, dict[str, str]]:
    """Which orders are asked for; a text is an order's number, or a reference or a part of one."""
    asked = {name: visit.query.get(name) for name in ("status", "q", "type", "from", "to", "sort")}
    if asked["status"] not in STATUSES or asked["type"] not in ("", *TYPES):
        raise HttpError(400, "bad_filter", visit.words.text("There is no such status or type."))
    asked["sort"] = asked["sort"] if asked["sort"] == OLDEST_FIRST else ""
    order_id = visit.services.ids.order_id(asked["q"]) if asked["q"] else None
    begins, ends = _day(visit, asked["from"]), _day(visit, asked["to"], days=1)
    filters = OrderFilters(
        order_id=order_id,
        statuses=STATUSES[asked["status"]][1],
        type=TYPES.index(asked["type"]) if asked["type"] else None,
        reference=asked["q"] if asked["q"] and order_id is None else None,
        date_from=begins,
        date_to=None if ends is None else ends - timedelta(microseconds=1),
        oldest_first=bool(asked["sort"]),
    )
    return filters, asked


def _day(visit: Visit, text: str, days: int = 0) -> datetime | None:
    """When a day begins where the reader is, or the one that is so many days later."""
    try:
        day = read_day(text)
        return None if day is None else visit.words.midnight(day + timedelta(days=days))
    except ValueError:
        raise HttpError(400, "bad_date", visit.words.text("A day looks like 2026-01-31.")) from None
