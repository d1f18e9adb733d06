"""`voucherd supplier reconcile`: what a supplier charges, against what we bought. Changes nothing."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, date, datetime, time
from itertools import islice
from typing import Annotated, Any, BinaryIO, Final

import typer

from voucherd.cli.context import CommandContext
from voucherd.cli.files import InFile
from voucherd.cli.output import CommandRefused, Output, record, stacked, table
from voucherd.cli.report import read_day
from voucherd.cli.signals import InterruptibleStream
from voucherd.cli.supplier_options import Name
from voucherd.cli.words import decimal, read_currency
from voucherd.money import Money
from voucherd.reports import reconcile as books
from voucherd.reports.charges import BadStatement, Charge, Reading, Statement
from voucherd.reports.reconcile import Difference, Discrepancy, NothingToCompare, Result
from voucherd.sheets import reading
from voucherd.suppliers import store as supplier_store

BATCH_ROWS: Final = 10_000
FINDINGS_SHOWN: Final = 100

_WORDS: Final = {
    Difference.NOT_OURS: "they charge it, we know no such purchase",
    Difference.NOT_CHARGED: "we bought it, they don't charge it",
    Difference.NOT_BOUGHT: "they charge it, by our books nothing was bought",
    Difference.REPEATED: "they charge it more than once",
    Difference.COUNT: "another number of codes",
    Difference.AMOUNT: "another amount",
    Difference.CURRENCY: "another currency",
}


def _column(field: str) -> Any:
    return typer.Option(
        f"--{field}-column", metavar="NAME", help=f"Where they write the {field.replace('-', ' ')}."
    )


async def reconcile(
    context: CommandContext,
    name: Name,
    file: InFile,
    since: Annotated[
        date | None,
        typer.Option("--from", metavar="DAY", parser=read_day, help="The first day; else the file's."),
    ] = None,
    until: Annotated[
        date | None,
        typer.Option("--to", metavar="DAY", parser=read_day, help="The day after the last; else the file's."),
    ] = None,
    reference_column: Annotated[str | None, _column("reference")] = None,
    external_id_column: Annotated[str | None, _column("external-id")] = None,
    count_column: Annotated[str | None, _column("count")] = None,
    amount_column: Annotated[str | None, _column("amount")] = None,
    currency_column: Annotated[str | None, _column("currency")] = None,
    date_column: Annotated[str | None, _column("date")] = None,
    status_column: Annotated[str | None, _column("status")] = None,
    currency: Annotated[
        str | None,
        typer.Option("--currency", metavar="EUR", help="Of every amount, where no column says it."),
    ] = None,
    charged: Annotated[
        list[str] | None,
        typer.Option("--charged", metavar="STATUS", help="Only rows of this status are charges; repeatable."),
    ] = None,
    findings: Annotated[int, typer.Option("--findings", min=0, help="How many to print.")] = FINDINGS_SHOWN,
) -> Output:
    """Compare a supplier's statement with our purchases and list what differs. Exits 1 if anything does."""
    if since is not None and until is not None and since >= until:
        raise typer.BadParameter(f"--from {since} must be before --to {until}")
    given = {
        "reference": reference_column,
        "external-id": external_id_column,
        "count": count_column,
        "amount": amount_column,
        "currency": currency_column,
        "date": date_column,
        "status": status_column,
    }
    how = Reading(
        {field: column for field, column in given.items() if column is not None},
        None if currency is None else read_currency(currency),
        frozenset(word.strip().lower() for word in charged or ()),
    )
    statement = Statement(how)
    async with context.pool() as pool:
        async with pool.acquire() as connection:
            row = await supplier_store.supplier(connection, name)
        try:
            result = await books.reconcile(
                pool,
                row.id,
                _batches(context, statement, file),
                since=_midnight(since),
                until=_midnight(until),
            )
        except BadStatement as bad:
            raise CommandRefused(_one_line(bad), _bad(bad)) from None
        except NothingToCompare:
            raise CommandRefused(
                "the file charges nothing: give --from and --to to see what we bought"
            ) from None
    return _told(name, statement, result, findings)


def _midnight(day: date | None) -> datetime | None:
    return None if day is None else datetime.combine(day, time(), UTC)


async def _batches(
    context: CommandContext, statement: Statement, file: BinaryIO
) -> AsyncIterator[Sequence[Charge]]:
    """The charges of the file, some at a time: a file may be longer than memory."""
    stream = io.BufferedReader(InterruptibleStream(file.fileno(), context.ending))
    charges: Iterator[Charge] = statement.charges(reading.streamed(stream))
    while batch := await asyncio.to_thread(lambda: list(islice(charges, BATCH_ROWS))):
        yield batch


def _one_line(bad: BadStatement) -> str:
    return bad.lines[0] if len(bad.lines) == 1 else f"{len(bad.lines)} cells are wrong; nothing was compared"


def _bad(bad: BadStatement) -> Output | None:
    return Output({"errors": bad.lines}, "\n".join(bad.lines)) if len(bad.lines) > 1 else None


def _told(name: str, statement: Statement, result: Result, most: int) -> Output:
    answer = Output(_document(name, statement, result), _view(name, statement, result, most))
    count = sum(result.counts.values())
    if count:
        raise CommandRefused(f"{count:,} {'difference' if count == 1 else 'differences'} with {name}", answer)
    return answer


def _view(name: str, statement: Statement, result: Result, most: int) -> Any:
    pairs: list[tuple[str, object]] = [
        ("supplier", name),
        ("period", f"{result.since:%Y-%m-%d} up to {result.until:%Y-%m-%d}"),
        ("their rows", f"{result.charges:,}{_also(statement, result)}"),
        ("our purchases", f"{result.purchases:,}"),
    ]
    for currency, theirs, ours in result.totals:
        difference = Money(theirs - ours, currency)
        pairs.append(
            (currency, f"{Money(theirs, currency)} there, {Money(ours, currency)} here: {difference}")
        )
    pairs += [(one.value, f"{count:,}: {_WORDS[one]}") for one, count in result.counts.items()]
    shown = result.findings[:most]
    parts: list[Any] = [record(pairs)]
    if shown:
        parts += ["", table(_COLUMNS, [_row(one) for one in shown], empty="")]
    left = sum(result.counts.values()) - len(shown)
    if left > 0:
        parts.append(f"… and {left:,} more (--findings, or --json for all)")
    if not result.counts:
        parts += ["", "Nothing differs."]
    return stacked(*parts)


_COLUMNS: Final = ["difference", ">row", "purchase", ">theirs", ">ours", "?>codes", "?ours is"]


def _also(statement: Statement, result: Result) -> str:
    parts = [(result.left_out, "outside the period"), (statement.not_charged, "not charged")]
    return "".join(f", {count:,} {what}" for count, what in parts if count)


def _row(one: Discrepancy) -> tuple[object, ...]:
    there = "–" if one.their_count is None else str(one.their_count)
    here = "–" if one.our_count is None else str(one.our_count)
    return (
        one.difference.value,
        one.row,
        one.key if one.attempt_id is None else one.attempt_id,
        _money(one.their_minor, one.their_currency),
        _money(one.our_minor, one.our_currency),
        f"{there} / {here}" + (f" + {one.quarantined} aside" if one.quarantined else ""),
        None if one.phase is None else one.phase.name.lower(),
    )


def _money(minor: int | None, currency: str | None) -> Money | None:
    return None if minor is None or currency is None else Money(minor, currency)


def _document(name: str, statement: Statement, result: Result) -> dict[str, Any]:
    return {
        "supplier": name,
        "from": result.since.date(),
        "to": result.until.date(),
        "rows": statement.rows,
        "charges": result.charges,
        "outsidePeriod": result.left_out,
        "notCharged": statement.not_charged,
        "purchases": result.purchases,
        "totals": [
            {"currency": currency, "theirs": decimal(theirs, currency), "ours": decimal(ours, currency)}
            for currency, theirs, ours in result.totals
        ],
        "differences": {one.value: count for one, count in result.counts.items()},
        "findings": [_finding(one) for one in result.findings],
    }


def _finding(one: Discrepancy) -> dict[str, Any]:
    def amount(minor: int | None, currency: str | None) -> Any:
        return None if minor is None or currency is None else decimal(minor, currency)

    return {
        "difference": one.difference.value,
        "row": one.row,
        "rows": one.rows,
        "key": one.key,
        "attempt": None if one.attempt_id is None else str(one.attempt_id),
        "status": None if one.phase is None else one.phase.name.lower(),
        "theirCount": one.their_count,
        "ourCount": one.our_count,
        "quarantined": one.quarantined,
        "theirAmount": amount(one.their_minor, one.their_currency),
        "theirCurrency": one.their_currency,
        "ourAmount": amount(one.our_minor, one.our_currency),
        "ourCurrency": one.our_currency,
    }
