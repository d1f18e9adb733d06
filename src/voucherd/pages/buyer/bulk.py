"""Orders by file: rows of product, amount, value and reference, checked one by one, priced, then ordered.

Rows without a reference go into the cart. Where rows have references, those with the same one become one order. Nothing
is kept between the pages: the rows travel with the form, and are read and checked anew each time.
"""

from __future__ import annotations

import asyncio
import io
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlencode

from voucherd import clock
from voucherd.approvals.model import Approval
from voucherd.db import transaction
from voucherd.http import Response
from voucherd.money import Money, to_minor
from voucherd.orders import bulk, carts, consent
from voucherd.orders.bulk import COLUMNS, ORDERS_MAX, ROWS_MAX, BulkOrder, BulkRow
from voucherd.orders.deeds import confirm_entry
from voucherd.orders.model import ITEMS_MAX, Order
from voucherd.orders.rules.cart import Create
from voucherd.orders.rules.refusals import Refusal
from voucherd.orders.rules.states import Status
from voucherd.pages.buyer import words
from voucherd.pages.buyer.balances import purses_of
from voucherd.pages.buyer.catalogue import payment_currency
from voucherd.pages.buyer.checkout import buyer_of
from voucherd.pages.buyer.orders import rows_of
from voucherd.pages.buyer.prices import rates_of, vat_of
from voucherd.pages.buyer.quoting import PORTAL, QuotedLine, quote_lines
from voucherd.pages.forms import sentence
from voucherd.pages.render import in_pages, render, sheet
from voucherd.pages.visit import Visit, missing, see_other
from voucherd.sheets import reading
from voucherd.sheets.model import SheetRefused
from voucherd.sheets.writing import csv_rows
from voucherd.words import Words

PATH: Final = "/portal/bulk"
FILE_BYTES_MAX: Final = 1024 * 1024
BODY_BYTES_MAX: Final = FILE_BYTES_MAX + 64 * 1024
SAMPLE: Final = (
    ("nimbari-play-10-eur", "25", "", "PO 4711"),
    ("brontano-gift-card", "10", "35.00", "PO 4712"),
)


async def form(visit: Visit) -> Response:
    """Where a file is chosen, or rows are pasted."""
    return render(
        "buyer/bulk.html",
        visit,
        columns=COLUMNS,
        rows_max=ROWS_MAX,
        orders_max=ORDERS_MAX,
        pasted=visit.form.get("rows"),
    )


async def sample(visit: Visit) -> Response:
    """A file to begin with, as the address asks for it: CSV or XLSX."""
    return await sheet(visit, "orders", COLUMNS, in_pages(SAMPLE), title="Orders")


async def check(visit: Visit) -> Response:
    """Read the rows, say what is wrong with which, and what all of it costs."""
    rows = await _rows(visit)
    if rows is None:
        return await form(visit)
    found = await carts.read(visit.pool, visit.someone.id, visit.state)
    currency = await payment_currency(visit, found)
    quoted = await _quoted(visit, rows, currency)
    shown = [_shown(visit.words, one, quoted, currency) for one in rows]
    orders = bulk.group(rows)
    good = not any(one["problem"] for one in shown)
    units = [one.item.unit for one in quoted.values() if one.item is not None]
    total = sum(one["sum"].minor for one in shown)
    purse = next((one for one in await purses_of(visit) if one.currency == currency), None)
    available = 0 if purse is None else purse.available.minor
    return render(
        "buyer/bulk_check.html",
        visit,
        status=200 if good else 422,
        rows=shown,
        bad=sum(1 for one in shown if one["problem"]),
        orders=orders,
        by_reference=any(one.reference for one in orders),
        currency=currency,
        total=Money(total, currency),
        short=Money(total - available, currency) if total > available else None,
        purse=purse,
        rates=rates_of(units, currency),
        vat=await vat_of(visit, clock.now().date()),
        kept=csv_rows([COLUMNS, *(one.cells for one in rows)]).decode(),
    )


async def take(visit: Visit) -> Response:
    """Put the rows into the cart; where they have references, fix the price of one order for each."""
    rows = await _rows(visit)
    if rows is None:
        return await form(visit)
    orders = bulk.group(rows)
    found = await carts.read(visit.pool, visit.someone.id, visit.state)
    currency = await payment_currency(visit, found)
    quoted = await _quoted(visit, rows, currency)
    if any(_shown(visit.words, one, quoted, currency)["problem"] for one in rows):
        return await check(visit)
    if not any(one.reference for one in orders):
        return await _into_cart(visit, orders, quoted, currency)
    made: list[str] = []
    for one in orders:
        lines = tuple(bulk.merged(one.rows))
        wanted = Create(visit.company_id, visit.state, PORTAL, lines, currency, one.reference or None)
        try:
            answer = await visit.services.orders.create(wanted)
        except Refusal as refusal:
            text = visit.words.text(
                "The order {reference} was not made: {why}",
                reference=one.reference or "–",
                why=words.said(visit.words, refusal),
            )
            visit.tell(text, "bad")
            continue
        made.append(visit.services.ids.trx(answer.order.id))
    if not made:
        return see_other(PATH)
    if len(made) == 1:
        return see_other(f"/portal/orders/{made[0]}")
    return see_other(_listed(made))


async def orders(visit: Visit) -> Response:
    """The orders that a file became, to be confirmed together."""
    trxs = visit.query.all("trx")
    if not trxs:
        return see_other(PATH)
    found = await _found(visit, trxs)
    rows = await rows_of(visit, found)
    totals: dict[str, int] = {}
    for one in found:
        if one.status is Status.CREATED and not words.is_expired(one):
            totals[one.payment_currency] = totals.get(one.payment_currency, 0) + one.total_minor
    return render(
        "buyer/bulk_orders.html",
        visit,
        rows=rows,
        trxs=trxs,
        open=sum(1 for one in found if one.status is Status.CREATED and not words.is_expired(one)),
        totals=[Money(minor, currency) for currency, minor in totals.items()],
    )


async def confirm(visit: Visit) -> Response:
    """Confirm the orders one after another. An order is confirmed once, however often this is asked."""
    trxs = visit.form.all("trx")
    buyer = await buyer_of(visit)
    paid = asked = 0
    refused = ""
    for order in await _found(visit, trxs):
        if order.status is not Status.CREATED:
            continue
        trx = visit.services.ids.trx_unkept(order.id)
        try:
            answer = await consent.confirm(
                visit.services.orders,
                visit.pool,
                buyer,
                order.id,
                entry=confirm_entry(visit.actor, trx),
                wait_s_max=0,
            )
        except Refusal as refusal:
            refused = refused or words.said(visit.words, refusal)
            continue
        if isinstance(answer, Approval):
            asked += 1
        else:
            paid += 1
    speak = visit.words
    said = [speak.text("Confirmed: {orders}.", orders=paid)] if paid else []
    said += [speak.text("Waiting for approval: {orders}.", orders=asked)] if asked else []
    said += [speak.text("Not confirmed: {why}", why=refused)] if refused else []
    text = " ".join(said) or speak.text("There was nothing left to confirm.")
    visit.tell(text, "bad" if refused else "good")
    return see_other(_listed(trxs))


async def _rows(visit: Visit) -> list[BulkRow] | None:
    """The rows of the file, or those that were pasted; None, and a problem beside the field, if they can't be read."""
    file = visit.files.get("file")
    text = visit.form.raw("rows")
    field = "file" if file is not None else "rows"
    content = text.encode() if file is None else file.content
    if not content.strip():
        visit.problems["file"] = visit.words.text("Choose a file, or paste rows below.")
        return None
    if len(content) > FILE_BYTES_MAX:
        visit.problems[field] = visit.words.text("The file is larger than 1 MB.")
        return None
    try:
        rows = await asyncio.to_thread(_read, content)
        bulk.group(rows)
    except SheetRefused as refused:
        visit.problems[field] = sentence(words.sheet_refusal(visit.words, refused))
        return None
    return rows


def _read(content: bytes) -> list[BulkRow]:
    return bulk.parse(reading.rows(io.BytesIO(content)))


async def _quoted(
    visit: Visit, rows: list[BulkRow], currency: str
) -> dict[tuple[str, Decimal | None], QuotedLine]:
    """What each product and value of the file costs; of several orders the amounts count together."""
    lines = bulk.merged(rows)
    found = await quote_lines(visit, lines, currency)
    return {(one.line.slug, one.line.face_value): one for one in found}


def _shown(
    speak: Words, one: BulkRow, quoted: dict[tuple[str, Decimal | None], QuotedLine], currency: str
) -> dict[str, Any]:
    """A row with its price, or with what is wrong with it."""
    if one.problem is not None:
        return {
            "row": one,
            "problem": words.row_problem(speak, one.problem),
            "sum": Money(0, currency),
            "item": None,
        }
    line = quoted[one.key]
    if line.item is None:
        problem = words.line_problem(speak, line)
        return {"row": one, "problem": problem, "sum": Money(0, currency), "item": None}
    sum_minor = line.item.unit_charge_minor * one.amount
    return {"row": one, "problem": "", "sum": Money(sum_minor, currency), "item": line.item}


async def _into_cart(
    visit: Visit,
    orders: list[BulkOrder],
    quoted: dict[tuple[str, Decimal | None], QuotedLine],
    currency: str,
) -> Response:
    """Put everything into the cart, or nothing, if it does not fit."""
    me, state = visit.someone.id, visit.state
    lines = [line for one in orders for line in bulk.merged(one.rows)]
    try:
        async with transaction(visit.pool) as tx:
            await carts.choose_currency(tx, me, state, currency)
            for line in lines:
                item = quoted[line.slug, line.face_value].item
                assert item is not None, "every line has a price"
                face = line.face_value if item.version.is_variable else None
                face_minor = 0 if face is None else to_minor(face, item.version.face_currency)
                await carts.add(tx, me, state, line.slug, face_minor, line.amount)
    except (carts.CartFull, carts.NotForSale):
        text = visit.words.text(
            "It does not fit into your cart: an order has at most {most} products.", most=ITEMS_MAX
        )
        return visit.go(PATH, text, "bad")
    count = sum(one.amount for one in lines)
    text = visit.words.plural(
        "{count} code was put into your cart.", "{count} codes were put into your cart.", count
    )
    return visit.go("/portal/cart", text)


async def _found(visit: Visit, trxs: list[str]) -> list[Order]:
    """The orders that the form or the address names, all of them the company's own."""
    if not 0 < len(trxs) <= ORDERS_MAX:
        raise missing()
    find, order_id = visit.services.orders.find, visit.services.ids.order_id
    answers = await asyncio.gather(*(find(order_id(trx), visit.company_id, visit.state) for trx in trxs))
    return [answer.order for answer in answers]


def _listed(trxs: list[str]) -> str:
    return f"{PATH}/orders?{urlencode([('trx', trx) for trx in trxs])}"
