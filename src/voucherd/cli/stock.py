"""`voucherd stock`: the codes on the shelf. They come in here and are never printed."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, BinaryIO, Final

import typer
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from typer import Argument, Option

from voucherd.catalogue import store as catalogue
from voucherd.catalogue.store import UnknownProduct
from voucherd.catalogue.texts import face_text
from voucherd.cli import stock_withheld
from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext
from voucherd.cli.files import FormatOption, OutFile, name_of, save
from voucherd.cli.output import CommandRefused, Output, facts, listed, progress, record, stacked
from voucherd.cli.words import StateOption, StateWord, bad_lines, moment_day, priced, read_money
from voucherd.db import Connection
from voucherd.money import Money
from voucherd.suppliers import stocking
from voucherd.suppliers.stocking import BadSupplierName, FaceMissing, NoRateFor, NoSuchFace, StockTerms
from voucherd.vault import imports
from voucherd.vault import store as vault
from voucherd.vault.imports import ImportRefused, ImportReport
from voucherd.vault.store import LotLine

app = noun()

EXPORT_COLUMNS: Final = {
    "lot": "lot",
    "product": "product",
    "state": "state",
    "face-value": "faceValue",
    "face-currency": "faceValueCurrency",
    "supplier": "supplier",
    "size": "size",
    "left": "left",
    "purchase-price": "purchasePrice",
    "purchase-currency": "purchaseCurrency",
    "value-left": "valueLeft",
    "expires": "expiresAt",
    "imported": "importedAt",
}
"""The columns of an export, and the fields of a lot that they show."""


@command(app, "import")
async def import_(
    context: CommandContext,
    slug: Annotated[str, Argument(metavar="SLUG")],
    file: Annotated[typer.FileBinaryRead, Argument(help="CSV or XLSX of code,serial,expires; - for stdin.")],
    supplier: Annotated[str, Option(help="Who sold them to us.")],
    purchase_price: Annotated[str, Option(metavar="'46.90 EUR'", help="What one code cost.")],
    face_value: Annotated[
        str | None, Option(metavar="'25 EUR'", help="Of these codes; for a variable product.")
    ] = None,
    skip_bad: Annotated[
        bool, Option("--skip-bad", help="Take the good lines of a file with bad ones.")
    ] = False,
) -> Output:
    """Take codes into the vault: all of a file or nothing, unless bad lines are skipped."""
    purchase = read_money("purchase-price", purchase_price)
    face = None if face_value is None else read_money("face-value", face_value)
    async with context.pool() as pool:
        async with pool.acquire() as connection:
            sealer = await context.sealer(connection)
            terms = await _terms(connection, slug, supplier, face, purchase)
        with _progress(file) as told:
            try:
                report = await stocking.import_file(
                    pool,
                    context.actor,
                    sealer,
                    terms,
                    name_of(file),
                    context.stream(file),
                    skip_bad=skip_bad,
                    progress=told,
                )
            except ImportRefused as refused:
                bad = bad_lines(refused.bad, taken=0, alreadyThere=0, badCount=refused.bad_count)
                raise CommandRefused(str(refused), bad if refused.bad else None) from None
    return _imported(report)


@command(app, "list")
async def list_(
    context: CommandContext,
    slug: Annotated[str | None, Argument(metavar="[SLUG]", help="Only this product's.")] = None,
    state: StateOption = StateWord.LIVE,
    sold_out: Annotated[bool, Option("--sold-out", help="Those with nothing left, too.")] = False,
    limit: Annotated[int, Option(min=1, max=vault.LOTS_PAGE_MAX)] = vault.LOTS_PAGE_MAX,
) -> Output:
    """List the lots, newest first: what is left of each, what that cost, when it expires."""
    async with context.connection() as connection:
        if slug is not None and slug not in await catalogue.current(connection, [slug]):
            raise UnknownProduct(slug)
        lots = await vault.list_lots(connection, slug=slug, state=state.state, sold_out=sold_out, limit=limit)
    return listed(
        [_document(lot) for lot in lots],
        [
            *(">lot", "product", (">face value", "faceValue faceValueCurrency"), ">left"),
            *((">value left", "valueLeft purchaseCurrency"), ("expires", moment_day("expiresAt"))),
            *(("?>of", "size"), "?supplier"),
        ],
        empty="Nothing on the shelf.",
    )


@command(app, "export")
async def export(
    context: CommandContext,
    file: OutFile,
    format_: FormatOption = None,
    state: StateOption = StateWord.LIVE,
    sold_out: Annotated[bool, Option("--sold-out", help="Those with nothing left, too.")] = False,
) -> Output | None:
    """Write the lots to a file: counts, values and expiries, never a code."""
    lots: list[LotLine] = []
    async with context.connection() as connection:
        while True:
            before = lots[-1].id if lots else None
            page = await vault.list_lots(connection, state=state.state, sold_out=sold_out, before=before)
            lots += page
            if len(page) < vault.LOTS_PAGE_MAX:
                break
    documents = [_document(lot) for lot in lots]
    return save(
        context,
        file,
        format_,
        "stock",
        list(EXPORT_COLUMNS),
        [[document[name] for name in EXPORT_COLUMNS.values()] for document in documents],
    )


async def _terms(
    connection: Connection, slug: str, supplier: str, face: Money | None, purchase: Money
) -> StockTerms:
    """What the codes are codes of, and what they cost."""
    try:
        return await stocking.terms(connection, slug, supplier, face, purchase)
    except BadSupplierName as bad:
        raise typer.BadParameter(f"supplier: {bad}") from None
    except FaceMissing as missing:
        raise CommandRefused(f"{missing} ({face_text(missing.version)}): give --face-value") from None
    except NoSuchFace as other:
        raise CommandRefused(f"{other}: it has {face_text(other.version)}") from None
    except NoRateFor as missing_rate:
        raise CommandRefused(f"{missing_rate}: set one with `voucherd fx set`") from None


@contextmanager
def _progress(file: BinaryIO) -> Iterator[imports.Progress]:
    """A bar on a terminal; nothing elsewhere."""
    columns = (
        TextColumn("importing"),
        BarColumn(),
        TextColumn("{task.fields[codes]:,} codes, {task.fields[rate]:,} a second"),
        TimeRemainingColumn(),
    )
    began = time.monotonic()
    with progress("importing", *columns, total=_size(file), codes=0, rate=0) as move:
        yield lambda bytes_read, codes: move(
            completed=bytes_read, codes=codes, rate=round(codes / max(time.monotonic() - began, 0.001))
        )


def _size(file: BinaryIO) -> int | None:
    """The bytes of a regular file; None for a pipe, whose end nobody knows."""
    about = os.fstat(file.fileno())
    return about.st_size if stat.S_ISREG(about.st_mode) else None


def _imported(report: ImportReport) -> Output:
    pairs: list[tuple[str, object]] = [
        ("taken", f"{report.taken:,} codes at {report.codes_per_second:,} a second"),
        ("already there", f"{report.already_there:,}"),
        ("bad lines", f"{report.bad_count:,}"),
        ("lots", ", ".join(map(str, report.lots)) or "none"),
    ]
    counts = facts(report, "taken alreadyThere badCount bad lots codesPerSecond")
    bad = bad_lines(report.bad, **counts)
    return Output(bad.document, stacked(record(pairs), bad.view) if report.bad else record(pairs))


def _document(lot: LotLine) -> dict[str, Any]:
    return facts(
        lot,
        " ".join(EXPORT_COLUMNS.values()),
        lot=lot.id,
        product=lot.slug,
        **priced("faceValue", lot.face.minor, lot.face.currency),
        purchasePrice=lot.purchase.decimal(),
        purchaseCurrency=lot.purchase.currency,
        valueLeft=lot.value_left.decimal(),
    )


command(app, "withheld")(stock_withheld.list_withheld)
command(app, "release")(stock_withheld.release)
