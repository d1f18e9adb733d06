"""`voucherd order`: every company's orders, for the operator. Codes are printed only for who asks to see them."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from rich.console import RenderableType
from typer import Argument, Option

from voucherd.archive.reader import ArchiveReader
from voucherd.catalogue.cache import VersionCache
from voucherd.cli.command import command, noun, refusing
from voucherd.cli.context import CommandContext
from voucherd.cli.output import Column, CommandRefused, Output, facts, listed, shown, stacked, table_of
from voucherd.cli.words import StateWord, decimal
from voucherd.clock import iso
from voucherd.companies import store as company_store
from voucherd.companies.model import Company
from voucherd.db import Pool, transaction, within
from voucherd.ids import LINES_MAX, ORDER_NUMBER_BITS, Identifiers
from voucherd.orders import archived, cancel_by_operator, deeds, register
from voucherd.orders.answers import delivered_ranges
from voucherd.orders.model import Order
from voucherd.orders.register import Registered
from voucherd.orders.rules.refusals import Refusal
from voucherd.orders.rules.states import Payment, Status
from voucherd.recipients import vouchers
from voucherd.recipients.vouchers import LeftForArchive, NoCode, take_back
from voucherd.vault import store as vault
from voucherd.vault.seal import Sealer

app = noun()

LINES_SHOWN: Final = 50
LINE_NUMBER_MAX: Final = LINES_MAX * (1 << ORDER_NUMBER_BITS) - 1
Trx = Annotated[str, Argument(metavar="TRX")]
StatusWord: TypeAlias = Literal["created", "pending", "finished", "cancelled", "deleted"]


@command(app, "list")
async def list_(
    context: CommandContext,
    company: Annotated[str | None, Option(help="Only this company's.")] = None,
    state: Annotated[StateWord | None, Option(help="Only live ones, or only the sandbox's.")] = None,
    status: Annotated[StatusWord | None, Option(help="Only those that stand so.")] = None,
    limit: Annotated[int, Option(min=1, max=register.PAGE_MAX)] = 20,
) -> Output:
    """List the newest orders."""
    async with context.connection() as connection:
        owner = None if company is None else await company_store.find_company(connection, company)
        orders = await register.newest(
            connection,
            company_id=None if owner is None else owner.id,
            state=None if state is None else state.state,
            status=None if status is None else Status[status.upper()],
            limit=limit,
        )
        names = await context.identifiers(connection)
    return listed(
        [_summary(order, names.trx(order.id), order.company) for order in orders],
        [
            *("trx", "?company", ("status", "orderStatus"), (">total", "total paymentCurrency")),
            (">lines", lambda one: f"{one['linesCompleted']}/{one['linesTotal']}"),
            *("?state", ("?created", "dateCreated"), ("?payment", "paymentStatus")),
        ],
        empty="No orders.",
    )


@command(app, "show")
async def show(
    context: CommandContext,
    trx: Trx,
    reveal: Annotated[bool, Option("--reveal", help="Print the codes.")] = False,
    lines: Annotated[int, Option(min=0, help="How many lines to print.")] = LINES_SHOWN,
) -> Output:
    """Show an order and its lines; the codes only if you ask for them."""
    async with context.pool() as pool:
        async with pool.acquire() as connection:
            key_ring = await context.key_ring(connection)
        names = key_ring.identifiers()
        order, company = await _read(context, pool, names, trx)
        codes = await _codes(context, pool, key_ring.sealer, trx, order) if reveal else []
    found = _lines(order, names, [pair for group in codes for pair in group])
    head = _shown(order, company.name, trx)
    document = {**head.document, "lines": found}
    return Output(document, stacked(head.view, "", _lines_view(found, lines, reveal)))


@command(app, "return")
async def return_(
    context: CommandContext,
    line: Annotated[
        int, Argument(metavar="LINE", min=0, max=LINE_NUMBER_MAX, help="Its id, as in orders and files.")
    ],
) -> Output:
    """Say that a code was taken back: its line tells when, and its link shows it no more. No money moves."""
    async with context.pool() as pool:
        async with pool.acquire() as connection:
            ids = await context.identifiers(connection)
        order_id, number = ids.line_of_number(line)
        trx = ids.trx(order_id)
        # Before the transaction: a file of the archive may take long.
        voucher = await vouchers.look(pool, order_id, number, ArchiveReader(context.settings.archive_folder))
        said = {
            NoCode: f"there is no line {line} with a code",
            LeftForArchive: f"the order of line {line} is being archived: try again",
        }
        with refusing(said):
            async with transaction(pool) as tx:
                returned_at = await take_back(tx, context.actor, trx, voucher)
    document = {"trx": trx, "lineId": line, "dateReturned": iso(returned_at)}
    return Output(document, f"The code of line {number + 1} of {trx} was taken back at {iso(returned_at)}.")


@command(app, "cancel")
async def cancel(context: CommandContext, trx: Trx) -> Output:
    """Delete an order that is not confirmed, or cancel and refund what is undelivered of it."""
    async with context.pool() as pool:
        async with pool.acquire() as connection:
            names = await context.identifiers(connection)
        order, company = await _read(context, pool, names, trx)
        try:
            after = await cancel_by_operator.cancel(pool, context.settings, context.actor, trx, order)
        except Refusal:
            raise CommandRefused(f"order {trx} is {_word(order.status)} and can't be cancelled") from None
    return _shown(after, company.name, trx)


async def _codes(
    context: CommandContext, pool: Pool, sealer: Sealer, trx: str, order: Order
) -> list[list[tuple[str, str]]]:
    """The codes of the order, after it was written down who sees them."""
    async with pool.acquire() as connection:
        if order.lines_finished:
            async with within(connection) as tx:
                await deeds.show_codes(tx, context.actor, trx, order)
        return await vault.read_codes(connection, sealer, delivered_ranges(order))


async def _read(context: CommandContext, pool: Pool, names: Identifiers, trx: str) -> tuple[Order, Company]:
    order_id = names.order_id(trx)
    archive = ArchiveReader(context.settings.archive_folder)
    order = None
    if order_id is not None:
        order = await archived.read_anywhere(pool, archive, order_id, VersionCache())
    if order is None:
        raise CommandRefused(f"there is no order {trx[:40]}")
    async with pool.acquire() as connection:
        companies = await company_store.companies(connection, [order.company_id])
    return order, companies[order.company_id]


def _lines(order: Order, names: Identifiers, codes: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Every line in order; `codes` are those of the delivered ones, or none."""
    products = [item.version.slug for item in order.items for _ in range(item.amount)]
    lines = [
        {"tag": tag, "product": product, "status": "pending"}
        for tag, product in zip(names.tags(order.id, range(order.lines)), products, strict=True)
    ]
    handed_out = iter(codes)
    for outcome in order.outcomes:
        for line in lines[outcome.line_from : outcome.line_to]:
            line["status"] = "cancelled" if outcome.lot_id is None else "finished"
            if codes and outcome.lot_id is not None:
                line["voucherCode"], line["voucherSerial"] = next(handed_out)
    return lines


def _lines_view(lines: list[dict[str, Any]], most: int, reveal: bool) -> RenderableType:
    secrets: list[Column] = [
        ("~code", lambda one: one.get("voucherCode")),
        ("~serial", lambda one: one.get("voucherSerial")),
    ]
    more: list[Column] = [*secrets, "?product", "?tag"] if reveal else ["tag", "?product"]
    rows = [line | {"line": number} for number, line in enumerate(lines[:most], 1)]
    view = table_of(rows, [">line", "status", *more])
    left = len(lines) - len(rows)
    return stacked(view, f"… and {left:,} more (--lines {len(lines)})") if left else view


def _shown(order: Order, company: str, trx: str) -> Output:
    currency = order.payment_currency
    document = _summary(order, trx, company) | {
        "charged": decimal(order.charged_minor, currency),
        "refunded": decimal(order.refunded_minor, currency),
        "held": decimal(order.held_minor, currency),
        "items": [{"product": item.version.slug, "amount": item.amount} for item in order.items],
    }
    done = f"{order.lines_finished} of {order.lines} delivered"
    if order.lines_cancelled:
        done += f", {order.lines_cancelled} cancelled"
    return shown(
        document,
        [
            *(("order", "trx"), "company", "state", ("status", "orderStatus"), ("payment", "paymentStatus")),
            ("total", "total paymentCurrency"),
            ("charged", lambda one: f"{one['charged'] - one['refunded']} {currency}"),
            (
                "items",
                lambda one: ", ".join(f"{item['amount']} × {item['product']}" for item in one["items"]),
            ),
            *(("lines", lambda _: done), ("created", "dateCreated"), "reference"),
        ],
    )


def _summary(order: Registered | Order, trx: str, company: str) -> dict[str, Any]:
    return facts(
        order,
        "trx company state orderStatus paymentStatus paymentCurrency total linesTotal linesCompleted linesCancelled"
        " dateCreated reference",
        trx=trx,
        company=company,
        orderStatus=_word(order.status),
        paymentStatus=_word(order.payment_status),
        total=decimal(order.total_minor, order.payment_currency),
        linesTotal=order.lines,
        linesCompleted=order.lines_finished,
        dateCreated=order.created_at,
    )


def _word(status: Status | Payment) -> str:
    return status.name.lower()
