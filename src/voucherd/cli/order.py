"""`voucherd order`: every company's orders, for the operator. Codes are printed only for who asks to see them."""

from __future__ import annotations

from enum import StrEnum
from itertools import islice
from typing import Annotated, Any, Final, NamedTuple

import typer

from voucherd.catalogue.cache import VersionCache
from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused, Output, record, stacked, table
from voucherd.cli.words import StateWord, decimal
from voucherd.clock import iso
from voucherd.companies import store as company_store
from voucherd.db import Connection, within
from voucherd.ids import LINES_MAX, Identifiers
from voucherd.money import Money
from voucherd.orders import cancel_by_operator, deeds, reading, register
from voucherd.orders.answers import delivered_ranges
from voucherd.orders.model import Order
from voucherd.orders.register import Registered
from voucherd.orders.rules.refusals import Refusal
from voucherd.orders.rules.states import Payment, Status
from voucherd.recipients.vouchers import NoCode, take_back
from voucherd.vault import store as vault

app = noun()

LINES_SHOWN: Final = 50
LINE_IDS_MAX: Final = (1 << 63) * LINES_MAX - 1
Trx = Annotated[str, typer.Argument(metavar="TRX")]


class OrderStatusWord(StrEnum):
    """An order's status, as it is written."""

    CREATED = "created"
    PENDING = "pending"
    FINISHED = "finished"
    CANCELLED = "cancelled"
    DELETED = "deleted"


class OrderLineRow(NamedTuple):
    """One line of an order, as the operator sees it."""

    number: int
    product: str
    status: str
    tag: str
    code: str | None
    serial: str | None


@command(app, "list")
async def list_(
    context: CommandContext,
    company: Annotated[str | None, typer.Option(help="Only this company's.")] = None,
    state: Annotated[StateWord | None, typer.Option(help="Only live ones, or only the sandbox's.")] = None,
    status: Annotated[OrderStatusWord | None, typer.Option(help="Only those that stand so.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=register.PAGE_MAX)] = 20,
) -> Output:
    """List the newest orders."""
    async with context.connection() as connection:
        owner = None if company is None else await company_store.find_company(connection, company)
        orders = await register.newest(
            connection,
            company_id=None if owner is None else owner.id,
            state=None if state is None else state.state,
            status=None if status is None else Status[status.name],
            limit=limit,
        )
        names = await context.identifiers(connection)
    view = table(
        ["trx", "?company", "status", ">total", ">lines", "?state", "?created", "?payment"],
        [
            (
                names.trx(order.id),
                order.company,
                _word(order.status),
                Money(order.total_minor, order.payment_currency),
                f"{order.lines_finished}/{order.lines}",
                order.state.word,
                order.created_at,
                _word(order.payment_status),
            )
            for order in orders
        ],
        empty="No orders.",
    )
    return Output([_summary(order, names.trx(order.id)) for order in orders], view)


@command(app, "show")
async def show(
    context: CommandContext,
    trx: Trx,
    reveal: Annotated[bool, typer.Option("--reveal", help="Print the codes.")] = False,
    lines: Annotated[int, typer.Option(min=0, help="How many lines to print.")] = LINES_SHOWN,
) -> Output:
    """Show an order and its lines; the codes only if you ask for them."""
    async with context.connection() as connection:
        key_ring = await context.key_ring(connection)
        names = key_ring.identifiers()
        order = await _read(connection, names, trx)
        company = (await company_store.companies(connection, [order.company_id]))[order.company_id]
        if reveal and order.lines_finished:
            async with within(connection) as tx:
                await deeds.show_codes(tx, context.actor, trx, order)
        codes = await vault.read_codes(connection, key_ring.sealer, delivered_ranges(order)) if reveal else []
    shown = _lines(order, names, [pair for group in codes for pair in group])
    document = _document(order, company.name, trx) | {
        "lines": [_line_document(line, reveal) for line in shown]
    }
    return Output(document, stacked(_head(order, company.name, trx), "", _lines_view(shown, lines, reveal)))


@command(app, "return")
async def return_(
    context: CommandContext,
    line: Annotated[
        int, typer.Argument(metavar="LINE", min=0, max=LINE_IDS_MAX, help="Its id, as in orders and files.")
    ],
) -> Output:
    """Say that a code was taken back: its line tells when, and its link shows it no more. No money moves."""
    order_id, number = divmod(line, LINES_MAX)
    async with context.transaction() as tx:
        trx = (await context.identifiers(tx)).trx(order_id)
        try:
            returned_at = await take_back(tx, context.actor, trx, order_id, number)
        except NoCode:
            raise CommandRefused(f"there is no line {line} with a code") from None
    document = {"trx": trx, "lineId": line, "dateReturned": iso(returned_at)}
    return Output(document, f"The code of line {number + 1} of {trx} was taken back at {iso(returned_at)}.")


@command(app, "cancel")
async def cancel(context: CommandContext, trx: Trx) -> Output:
    """Delete an order that is not confirmed, or cancel and refund what is undelivered of it."""
    async with context.pool() as pool:
        async with pool.acquire() as connection:
            key_ring = await context.key_ring(connection)
            order = await _read(connection, key_ring.identifiers(), trx)
            company = (await company_store.companies(connection, [order.company_id]))[order.company_id]
        try:
            after = await cancel_by_operator.cancel(pool, context.settings, context.actor, trx, order)
        except Refusal:
            raise CommandRefused(f"order {trx} is {_word(order.status)} and can't be cancelled") from None
    return Output(_document(after, company.name, trx), _head(after, company.name, trx))


async def _read(connection: Connection, names: Identifiers, trx: str) -> Order:
    order_id = names.order_id(trx)
    order = (
        None
        if order_id is None
        else (await reading.read(connection, [order_id], VersionCache())).get(order_id)
    )
    if order is None:
        raise CommandRefused(f"there is no order {trx[:40]}")
    return order


def _lines(order: Order, names: Identifiers, codes: list[tuple[str, str]]) -> list[OrderLineRow]:
    """Every line in order; `codes` are those of the delivered ones, or none."""
    statuses = ["pending"] * order.lines
    secrets: dict[int, tuple[str, str]] = {}
    handed_out = iter(codes)
    for outcome in order.outcomes:
        word = "cancelled" if outcome.lot_id is None else "finished"
        span = range(outcome.line_from, outcome.line_to)
        statuses[outcome.line_from : outcome.line_to] = [word] * len(span)
        if codes and outcome.lot_id is not None:
            secrets |= dict(zip(span, islice(handed_out, len(span)), strict=True))
    products = [item.version.slug for item in order.items for _ in range(item.amount)]
    tags = names.tags(order.id, range(order.lines))
    return [
        OrderLineRow(
            number, products[number], statuses[number], tags[number], *secrets.get(number, (None, None))
        )
        for number in range(order.lines)
    ]


def _lines_view(lines: list[OrderLineRow], most: int, reveal: bool) -> Any:
    rows: list[tuple[object, ...]]
    if reveal:
        columns = [">line", "status", "~code", "~serial", "?product", "?tag"]
        rows = [(at.number + 1, at.status, at.code, at.serial, at.product, at.tag) for at in lines[:most]]
    else:
        columns = [">line", "status", "tag", "?product"]
        rows = [(at.number + 1, at.status, at.tag, at.product) for at in lines[:most]]
    view = table(columns, rows, empty="")
    left = len(lines) - len(rows)
    return stacked(view, f"… and {left:,} more (--lines {len(lines)})") if left else view


def _head(order: Order, company: str, trx: str) -> Any:
    items = [f"{item.amount} × {item.version.slug}" for item in order.items]
    done = f"{order.lines_finished} of {order.lines} delivered"
    if order.lines_cancelled:
        done += f", {order.lines_cancelled} cancelled"
    pairs: list[tuple[str, object]] = [
        ("order", trx),
        ("company", company),
        ("state", order.state.word),
        ("status", _word(order.status)),
        ("payment", _word(order.payment_status)),
        ("total", Money(order.total_minor, order.payment_currency)),
        ("charged", Money(order.charged_minor - order.refunded_minor, order.payment_currency)),
        ("items", ", ".join(items)),
        ("lines", done),
        ("created", order.created_at),
        ("reference", order.reference),
    ]
    return record(pairs)


def _document(order: Order, company: str, trx: str) -> dict[str, Any]:
    summary = Registered(
        order.id,
        company,
        order.status,
        order.payment_status,
        order.payment_currency,
        order.total_minor,
        order.lines,
        order.lines_finished,
        order.lines_cancelled,
        order.created_at,
        order.reference,
    )
    currency = order.payment_currency
    return _summary(summary, trx) | {
        "charged": decimal(order.charged_minor, currency),
        "refunded": decimal(order.refunded_minor, currency),
        "held": decimal(order.held_minor, currency),
        "items": [{"product": item.version.slug, "amount": item.amount} for item in order.items],
    }


def _summary(order: Registered, trx: str) -> dict[str, Any]:
    return {
        "trx": trx,
        "company": order.company,
        "state": order.state.word,
        "orderStatus": _word(order.status),
        "paymentStatus": _word(order.payment_status),
        "paymentCurrency": order.payment_currency,
        "total": decimal(order.total_minor, order.payment_currency),
        "linesTotal": order.lines,
        "linesCompleted": order.lines_finished,
        "linesCancelled": order.lines_cancelled,
        "dateCreated": order.created_at,
        "reference": order.reference,
    }


def _line_document(line: OrderLineRow, reveal: bool) -> dict[str, Any]:
    document: dict[str, Any] = {"tag": line.tag, "product": line.product, "status": line.status}
    if reveal and line.code is not None:
        document |= {"voucherCode": line.code, "voucherSerial": line.serial}
    return document


def _word(status: Status | Payment) -> str:
    return status.name.lower()
