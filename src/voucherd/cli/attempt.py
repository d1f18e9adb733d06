"""`voucherd attempt`: purchases at suppliers, and what a person does about those that went wrong."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any, BinaryIO, Final, Literal, TypeAlias

import typer
from rich.console import RenderableType
from typer import Argument, Option

from voucherd.cli.command import command, noun, refusing, usage
from voucherd.cli.context import CommandContext
from voucherd.cli.output import (
    Column,
    CommandRefused,
    Document,
    Output,
    facts,
    listed,
    record,
    stacked,
    table_of,
)
from voucherd.cli.words import amount, bad_lines, moment_day, priced, read_money, span
from voucherd.db import Connection, Pool
from voucherd.ids import Identifiers
from voucherd.orders.caches import OrderCaches
from voucherd.purchasing import attempts, by_hand, records
from voucherd.purchasing.attempts import Attempt, AttemptPhase
from voucherd.purchasing.by_hand import BadCodes, TooEarly, TooManyCodes, masked
from voucherd.purchasing.outcomes import AttemptClosed, NothingNew
from voucherd.purchasing.records import ID_DIGITS, ID_DIGITS_MIN, PurchaseProblem, Record
from voucherd.suppliers import registry
from voucherd.suppliers import store as supplier_store
from voucherd.suppliers.protocol import EXTERNAL_ID_CHARS_MAX, SURPLUS_MAX, Bought, Code
from voucherd.suppliers.stocking import NoRateFor

app = noun()

_FACTS: Final = """
    attempt supplier state status problems product sku faceValue faceValueCurrency count codes spare quarantined
    linesWaiting urgent quotedPrice highestPrice priceCurrency cost spareCost costCurrency externalId reason settledBy
    lookUps callMs placedAt settlesAt askAt endedAt
"""
_DEEDS: Final = {
    "attempt.settled": "settled",
    "attempt.retried": "asked again",
    "attempt.revealed": "read the quarantined codes",
}

Id: TypeAlias = Annotated[
    str, Argument(metavar="ID", help="Its id, or at least the first eight digits of it.")
]
StatusWord: TypeAlias = Literal["calling", "asking", "unknown", "bought", "failed"]
By: TypeAlias = Annotated[str, Option("--by", metavar="NAME", help="Who you are: it is written down.")]
Note: TypeAlias = Annotated[str, Option("--note", metavar="TEXT", help="Why: it is written down.")]


@command(app, "list")
async def list_(
    context: CommandContext,
    status: Annotated[StatusWord | None, Option(help="Only those that stand so.")] = None,
    supplier: Annotated[str | None, Option(help="Only this supplier's.")] = None,
    problem: Annotated[PurchaseProblem | None, Option(help="Only those with this trouble.")] = None,
    before: Annotated[str | None, Option(metavar="ID", help="Go on behind this one.")] = None,
    limit: Annotated[int, Option(min=1, max=records.PAGE_MAX)] = 20,
) -> Output:
    """List the newest purchases at suppliers."""
    async with context.connection() as connection:
        if supplier is not None:
            await supplier_store.supplier(connection, supplier)
        found = await records.by_age(
            connection,
            supplier=supplier,
            phase=None if status is None else AttemptPhase[status.upper()],
            problem=problem,
            before=None if before is None else await _record(connection, before),
            limit=limit,
        )
    shown = listed(
        [_document(one) for one in found],
        [
            ("id", lambda one: one["attempt"][:ID_DIGITS_MIN]),
            "supplier",
            "status",
            (">codes", lambda one: f"{one['codes']}/{one['count']}"),
            ("problem", lambda one: ", ".join(one["problems"])),
            "~reason",
            ("?placed", "placedAt"),
            ("?>cost", lambda one: f"{cost} spare" if (cost := _spare_cost(one)) else _cost(one)),
        ],
        empty="No purchases.",
    )
    if len(found) < limit:
        return shown
    return Output(shown.document, stacked(shown.view, f"… perhaps more (--before {found[-1].id})"))


@command(app, "show")
async def show(context: CommandContext, attempt_id: Id) -> Output:
    """Show a purchase: for whom it was made, what it brought, and what people did about it."""
    async with context.connection() as connection:
        purchase = await _record(connection, attempt_id)
        names = await context.identifiers(connection)
        lines = await records.bought_for(connection, purchase.id)
        lots = await records.lots(connection, purchase.id)
        deeds = await records.deeds(connection, purchase.id)
        now = await connection.fetchval("SELECT now()")
    document = _document(purchase) | {
        "lines": [_line(line, names) for line in lines],
        "lots": [_lot(lot) for lot in lots],
        "history": [{"at": deed.at, "type": deed.type} | deed.data for deed in deeds],
    }
    view: list[RenderableType] = [_view(purchase, document, now), "", _lines_view(document["lines"])]
    if lots:
        view += ["", _lots_view(document["lots"])]
    if deeds:
        did: list[Column] = [
            ("who", lambda one: one.get("by")),
            ("did", _deed),
            ("~note", lambda one: one.get("note")),
        ]
        view += ["", table_of(document["history"], [("when", "at"), *did])]
    return Output(document, stacked(*view))


@command(app, "retry")
async def retry(context: CommandContext, attempt_id: Id, by: By, note: Note = "") -> Output:
    """Ask the supplier once more what became of an unknown purchase. Nothing is bought."""
    with usage():
        hand = by_hand.hand_of(context.actor, by, note)
    async with context.pool() as pool:
        record, attempt = await _both(pool, attempt_id)
        async with pool.acquire() as connection:
            row = await supplier_store.supplier(connection, record.supplier)
        if not registry.can_look_up(row.kind, row.config):
            raise CommandRefused(
                f"{row.name} can't be asked about purchases: settle it with `voucherd attempt settle`"
            )
        with _refusals(record):
            await by_hand.retry(pool, attempt, hand)
    return Output({"attempt": attempt.reference, "retried": True}, f"{row.name} is asked again now.")


@command(app, "settle")
async def settle(
    context: CommandContext,
    attempt_id: Id,
    by: By,
    note: Note,
    failed: Annotated[bool, Option("--failed", help="Nothing (more) was bought.")] = False,
    codes: Annotated[
        typer.FileBinaryRead | None,
        Option(metavar="FILE", help="These were bought: CSV or XLSX of code,serial,expires."),
    ] = None,
    price: Annotated[
        str | None, Option(metavar="'9.10 EUR'", help="What one code cost; else as quoted.")
    ] = None,
    external_id: Annotated[
        str | None, Option(metavar="ID", help="The supplier's name for the purchase.")
    ] = None,
) -> Output:
    """Say what became of a purchase: nothing, so that its lines are bought elsewhere; or these codes."""
    with usage():
        hand = by_hand.hand_of(context.actor, by, note)
    if failed == (codes is not None):
        raise typer.BadParameter("give --failed or --codes FILE")
    if failed and (price or external_id):
        raise typer.BadParameter("--price and --external-id go with --codes")
    if external_id is not None and not 1 <= len(external_id) <= EXTERNAL_ID_CHARS_MAX:
        raise typer.BadParameter(f"--external-id: must be 1 to {EXTERNAL_ID_CHARS_MAX} characters")
    cost = None if price is None else read_money("price", price)
    async with context.pool() as pool:
        record, attempt = await _both(pool, attempt_id)
        caches = OrderCaches.empty(context.settings)
        taken = () if codes is None else await _read_codes(context, codes)
        with _refusals(record, len(taken)):
            if codes is None:
                await by_hand.fail(pool, caches, attempt, hand)
            else:
                async with pool.acquire() as connection:
                    sealer = await context.sealer(connection)
                bought = Bought(taken, external_id, cost)
                await by_hand.receive(pool, caches, sealer, attempt, bought, hand)
        async with pool.acquire() as connection:
            after = await _record(connection, str(record.id))
    return _settled(record, after)


@command(app, "quarantine")
async def quarantine(
    context: CommandContext,
    attempt_id: Id,
    by: By,
    reveal: Annotated[bool, Option("--reveal", help="Print the codes: it is written down.")] = False,
    note: Note = "",
) -> Output:
    """List the codes of a purchase that can't be sold, masked unless you ask to see them."""
    with usage():
        hand = by_hand.hand_of(context.actor, by, note)
    async with context.pool() as pool:
        _, attempt = await _both(pool, attempt_id)
        async with pool.acquire() as connection:
            sealer = await context.sealer(connection)
        found = await by_hand.quarantined(pool, sealer, attempt, hand, reveal=reveal)
    show = str if reveal else masked
    codes = [
        facts(one, "code serial reason at", code=show(one.code), serial=show(one.serial)) for one in found
    ]
    view = table_of(
        codes,
        ["~code", "~serial", "reason", ("since", "at")],
        empty="Nothing of this purchase is in quarantine.",
    )
    return Output({"attempt": attempt.reference, "revealed": reveal and bool(found), "codes": codes}, view)


async def _record(connection: Connection, text: str) -> Record:
    """The purchase of that id, or of the only one that begins so."""
    digits = text.strip().lower().replace("-", "")
    if not re.fullmatch(rf"[0-9a-f]{{{ID_DIGITS_MIN},{ID_DIGITS}}}", digits):
        raise typer.BadParameter(
            f"{text[:40]!r} is not the id of a purchase, nor {ID_DIGITS_MIN} digits of one"
        )
    found = await records.find(connection, digits)
    if not found:
        raise CommandRefused(f"there is no purchase {text[:40]}")
    if len(found) > 1:
        raise CommandRefused(f"more than one purchase begins with {text[:40]}: give more digits")
    return found[0]


async def _both(pool: Pool, text: str) -> tuple[Record, Attempt]:
    """The purchase as the operator sees it, and as the dispatcher does."""
    async with pool.acquire() as connection:
        record = await _record(connection, text)
        attempt = await attempts.find(connection, record.id)
    assert attempt is not None, "attempts are never deleted"
    return record, attempt


def _standing(record: Record, phase: AttemptPhase) -> str:
    """Why nothing can be done about a purchase as it stands."""
    why = {
        AttemptPhase.CALLING: "is being made at this moment: wait until the call has ended",
        AttemptPhase.ASKING: "is being asked about already",
        AttemptPhase.UNKNOWN: "is unknown: settle it or ask again",
        AttemptPhase.BOUGHT: f"is bought already ({record.codes} of {record.count} codes)",
        AttemptPhase.FAILED: "has failed already",
    }
    return f"purchase {record.id} {why[phase]}"


@contextmanager
def _refusals(record: Record, code_count: int = 0) -> Iterator[None]:
    """Says in words why a purchase can't be settled so, or asked about."""
    words: dict[type[Exception], str] = {
        NothingNew: "none of these codes can be taken: they are known, malformed or expired",
        TooManyCodes: f"the file has {code_count} codes, and {record.count} were asked for: "
        f"at most {record.count + SURPLUS_MAX} are believed",
        TooEarly: f"a request may be on its way to {record.supplier} until {record.settles_at:%H:%M:%S} UTC: "
        f"what is settled before may be bought twice",
    }
    try:
        with refusing(words):
            yield
    except AttemptClosed as refused:
        raise CommandRefused(_standing(record, refused.phase)) from None
    except NoRateFor as missing:
        raise CommandRefused(f"{missing}: set one with `voucherd fx set`") from None


async def _read_codes(context: CommandContext, file: BinaryIO) -> tuple[Code, ...]:
    """The codes of a file: all of them or none."""
    try:
        return await asyncio.to_thread(by_hand.read_codes, context.stream(file))
    except BadCodes as refused:
        raise CommandRefused(str(refused), bad_lines(refused.bad) if refused.bad else None) from None


def _settled(before: Record, after: Record) -> Output:
    """The difference that settling made."""
    document = {
        "attempt": str(after.id),
        "status": _word(after),
        "codesTaken": after.codes - before.codes,
        "spare": after.spare - before.spare,
        "quarantined": after.quarantined - before.quarantined,
        "linesReleased": by_hand.released(before, after),
        "settledBy": after.settled_by,
    }
    return Output(document, by_hand.settled_words(before, after))


def _document(one: Record) -> dict[str, Any]:
    """A purchase for programs. Never a code."""
    return facts(
        one,
        _FACTS,
        attempt=str(one.id),
        status=_word(one),
        problems=[problem.value for problem in one.problems],
        product=one.slug,
        **priced("faceValue", one.face_minor, one.face_currency),
        linesWaiting=one.waiting,
        quotedPrice=amount(one.price_minor, one.currency),
        highestPrice=amount(one.price_max_minor, one.currency),
        priceCurrency=one.currency,
        spareCost=amount(one.spare_cost_minor, one.cost_currency),
        **priced("cost", one.cost_minor, one.cost_currency),
    )


def _word(one: Record) -> str:
    return one.phase.name.lower()


def _cost(one: Document) -> str | None:
    return None if one["cost"] is None else f"{one['cost']} {one['costCurrency']}"


def _spare_cost(one: Document) -> str | None:
    return (
        f"{one['spareCost']} {one['costCurrency']}" if one["spareCost"] is not None and one["spare"] else None
    )


def _view(one: Record, told: Document, now: datetime) -> RenderableType:
    what = f"{one.count} × {one.slug} of {told['faceValue']} {one.face_currency}"
    quoted, highest = (f"{told[name]} {one.currency}" for name in ("quotedPrice", "highestPrice"))
    said: list[tuple[str, object]] = [
        ("purchase", one.id),
        ("supplier", f"{one.supplier}, {one.state.word}"),
        ("what", f"{what}, there {one.sku}"),
        ("quoted", f"{quoted} each, at most {highest}"),
        ("status", _word(one) + (f" ({', '.join(one.problems)})" if one.problems else "")),
        ("codes", f"{one.codes} of {one.count}, {one.spare} spare, {one.quarantined} in quarantine"),
        ("cost", _cost(told)),
        ("spare cost", _spare_cost(told)),
        ("lines waiting", one.waiting),
        ("their id", one.external_id),
        ("reason", one.reason),
        ("placed", f"{_second(one.placed_at)}, {span(now - one.placed_at)} ago, by {one.worker}"),
        ("call", None if one.call_ms is None else f"{one.call_ms:,} ms"),
        ("look-ups", one.look_ups),
    ]
    open_ = one.phase in (AttemptPhase.CALLING, AttemptPhase.ASKING, AttemptPhase.UNKNOWN)
    moments = {"settles": one.settles_at if open_ else None, "asked next": one.ask_at, "ended": one.ended_at}
    said += [(name, _second(moment)) for name, moment in moments.items() if moment is not None]
    if one.settled_by is not None:
        said.append(("settled by", one.settled_by))
    return record(said)


def _second(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _line(line: records.BoughtFor, names: Identifiers) -> dict[str, Any]:
    trx, first = names.trx_unkept(line.order_id), line.line_from + 1
    return facts(line, "trx company lineFrom lineTo waiting", trx=trx, lineFrom=first)


def _lines_view(lines: Sequence[Document]) -> RenderableType:
    columns: list[Column] = [("order", "trx"), "?company"]
    columns += [(">lines", lambda one: "–".join(map(str, sorted({one["lineFrom"], one["lineTo"]}))))]
    columns += [("standing", lambda one: f"{one['waiting']} wait for it" if one["waiting"] else "over")]
    return table_of(lines, columns)


def _lot(lot: records.BoughtLot) -> dict[str, Any]:
    return facts(
        lot,
        "lot size spare purchasePrice purchaseCurrency expiresAt importedAt",
        lot=lot.id,
        purchasePrice=amount(lot.purchase_minor, lot.currency),
        purchaseCurrency=lot.currency,
    )


def _lots_view(lots: Sequence[Document]) -> RenderableType:
    columns: list[Column] = [
        ">lot",
        (">codes", "size"),
        ">spare",
        (">price", "purchasePrice purchaseCurrency"),
    ]
    columns += [("expires", moment_day("expiresAt")), ("came", "importedAt")]
    return table_of(lots, columns)


def _deed(deed: Document) -> str:
    word = _DEEDS.get(deed["type"]) or str(deed["type"])
    return f"{word}: {deed['from']} to {deed['to']}" if "to" in deed else word
