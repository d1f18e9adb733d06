"""`voucherd supplier reconcile`: what a supplier charges, against what we bought. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, Final

import typer
from rich.console import RenderableType
from typer import Option

from voucherd.cli.command import refusing
from voucherd.cli.context import CommandContext
from voucherd.cli.files import InFile
from voucherd.cli.output import Column, CommandRefused, Document, Output, facts, record, stacked, table_of
from voucherd.cli.report import read_day
from voucherd.cli.supplier_options import Name
from voucherd.cli.words import amount, decimal, midnight, read_currency
from voucherd.reports import reconcile as books
from voucherd.reports.charges import BadStatement, Reading, Statement
from voucherd.reports.reconcile import DIFFERENCES, Difference, Discrepancy, NothingToCompare, Result
from voucherd.sheets import reading
from voucherd.suppliers import store as supplier_store

FINDINGS_SHOWN: Final = 100
NOTHING_CHARGED: Final = "the file charges nothing: give --from and --to to see what we bought"


def _column(field: str) -> Any:
    return Option(
        f"--{field}-column", metavar="NAME", help=f"Where they write the {field.replace('-', ' ')}."
    )


async def reconcile(
    context: CommandContext,
    name: Name,
    file: InFile,
    since: Annotated[
        date | None,
        Option("--from", metavar="DAY", parser=read_day, help="The first day; else the file's."),
    ] = None,
    until: Annotated[
        date | None,
        Option("--to", metavar="DAY", parser=read_day, help="The day after the last; else the file's."),
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
        Option(metavar="EUR", help="Of every amount, where no column says it."),
    ] = None,
    charged: Annotated[
        list[str] | None,
        Option(metavar="STATUS", help="Only rows of this status are charges; repeatable."),
    ] = None,
    findings: Annotated[int, Option(min=0, help="How many to print.")] = FINDINGS_SHOWN,
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
            with refusing({NothingToCompare: NOTHING_CHARGED}):
                result = await books.reconcile(
                    pool,
                    row.id,
                    books.batches(statement.charges(reading.streamed(context.stream(file)))),
                    since=None if since is None else midnight(since),
                    until=None if until is None else midnight(until),
                )
        except BadStatement as bad:
            raise _refusal(bad.lines) from None
    document = _document(name, statement, result)
    answer = Output(document, _view(document, findings))
    count = sum(result.counts.values())
    if count:
        raise CommandRefused(f"{count:,} {'difference' if count == 1 else 'differences'} with {name}", answer)
    return answer


def _refusal(lines: Sequence[str]) -> CommandRefused:
    if len(lines) == 1:
        return CommandRefused(lines[0])
    report = Output({"errors": lines}, "\n".join(lines))
    return CommandRefused(f"{len(lines)} cells are wrong; nothing was compared", report)


def _view(told: Document, most: int) -> RenderableType:
    pairs: list[tuple[str, object]] = [
        ("supplier", told["supplier"]),
        ("period", f"{told['from']} up to {told['to']}"),
        ("their rows", f"{told['charges']:,}{_also(told)}"),
        ("our purchases", f"{told['purchases']:,}"),
    ]
    for currency, theirs, ours in (one.values() for one in told["totals"]):
        said = f"{theirs} {currency} there, {ours} {currency} here: {theirs - ours} {currency}"
        pairs.append((currency, said))
    pairs += [
        (one, f"{count:,}: {DIFFERENCES[Difference(one)]}") for one, count in told["differences"].items()
    ]
    found = told["findings"][:most]
    parts: list[RenderableType] = [record(pairs)]
    if found:
        parts += ["", table_of(found, _COLUMNS)]
    left = sum(told["differences"].values()) - len(found)
    if left > 0:
        parts.append(f"… and {left:,} more (--findings, or --json for all)")
    if not told["differences"]:
        parts += ["", "Nothing differs."]
    return stacked(*parts)


def _also(told: Document) -> str:
    parts = [(told["outsidePeriod"], "outside the period"), (told["notCharged"], "not charged")]
    return "".join(f", {count:,} {what}" for count, what in parts if count)


def _codes(one: Document) -> str:
    there, here = ("–" if one[name] is None else one[name] for name in ("theirCount", "ourCount"))
    return f"{there} / {here}" + (f" + {one['quarantined']} aside" if one["quarantined"] else "")


_COLUMNS: Final[list[Column]] = [
    *("difference", ">row", ("purchase", lambda one: one["attempt"] or one["key"])),
    *((">theirs", "theirAmount theirCurrency"), (">ours", "ourAmount ourCurrency")),
    *(("?>codes", _codes), ("?ours is", "status")),
]


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
    return facts(
        one,
        "difference row rows key attempt status theirCount ourCount quarantined"
        " theirAmount theirCurrency ourAmount ourCurrency",
        difference=one.difference.value,
        attempt=None if one.attempt_id is None else str(one.attempt_id),
        status=None if one.phase is None else one.phase.name.lower(),
        theirAmount=amount(one.their_minor, one.their_currency),
        ourAmount=amount(one.our_minor, one.our_currency),
    )
