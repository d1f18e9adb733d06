"""A supplier's statement against our purchases. The file is read and compared, and nothing is kept of it."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any, Final

from voucherd.http import Response
from voucherd.money import DIGITS, Money
from voucherd.pages.console.pickers import currency_options
from voucherd.pages.console.purchase_words import PHASES
from voucherd.pages.forms import midnight, read_period, sentence
from voucherd.pages.render import attachment, render
from voucherd.pages.visit import Visit
from voucherd.reports import reconcile as books
from voucherd.reports.charges import FIELDS, BadStatement, Reading, Statement
from voucherd.reports.reconcile import DIFFERENCES, Discrepancy, NothingToCompare, Result
from voucherd.sheets import reading
from voucherd.sheets.writing import csv_rows
from voucherd.suppliers import store as supplier_store

BODY_BYTES_MAX: Final = (8 * 1024 + 64) * 1024
"""A file of 8 MiB, and the fields around it."""
SHOWN_MAX: Final = 100
NAME_CHARS_MAX: Final = 100
COLUMNS: Final = {
    "reference": "Our reference",
    "external-id": "Their number",
    "count": "Number of codes",
    "amount": "Amount",
    "currency": "Currency",
    "date": "Date",
    "status": "Status",
}
"""What a statement says of each purchase."""


async def page(visit: Visit) -> Response:
    """The form, and what came of comparing a file."""
    return await _shown(visit)


async def compare(visit: Visit) -> Response:
    """Compare a file with our purchases; as a file, if that is asked for."""
    row = await visit.look(supplier_store.supplier, visit.parameters["name"])
    statement = Statement(_reading(visit))
    period = read_period(visit.form, visit.words)
    if period.problem:
        visit.problems["from"] = period.problem
    upload = visit.files.get("file")
    if upload is None or not upload.content:
        visit.problems["file"] = "Choose a file."
    if visit.problems or upload is None:
        return await _shown(visit)
    try:
        found = await books.reconcile(
            visit.pool,
            row.id,
            books.batches(statement.charges(reading.streamed(io.BytesIO(upload.content)))),
            since=None if period.first is None else midnight(period.first),
            until=None if period.last is None else midnight(period.last + timedelta(days=1)),
        )
    except NothingToCompare:
        visit.problems["file"] = "The file charges nothing. Choose the days to see what we bought."
    except BadStatement as bad:
        visit.problems["file"] = " ".join(sentence(line) for line in bad.lines)
    if visit.problems:
        return await _shown(visit)
    if visit.form.get("as") == "csv":
        return attachment(f"differences-{row.name}.csv", csv_rows(_rows(found)))
    return await _shown(visit, found, statement)


async def _shown(visit: Visit, found: Result | None = None, statement: Statement | None = None) -> Response:
    row = await visit.look(supplier_store.supplier, visit.parameters["name"])
    return render(
        "console/supplier_statement.html",
        visit,
        status=422 if visit.problems else 200,
        row=row,
        columns=COLUMNS,
        currencies=[("", "As a column says"), *currency_options([])],
        statement=statement,
        found=found,
        last=None if found is None else found.until - timedelta(days=1),
        totals=[] if found is None else [_total(*one) for one in found.totals],
        counts=[] if found is None else [(DIFFERENCES[one], count) for one, count in found.counts.items()],
        differences=[] if found is None else [_told(one) for one in found.findings[:SHOWN_MAX]],
        left=0 if found is None else sum(found.counts.values()) - min(len(found.findings), SHOWN_MAX),
    )


def _reading(visit: Visit) -> Reading:
    """How the form says that the file is to be read."""
    form = visit.form
    columns = {field: form.get(field)[:NAME_CHARS_MAX] for field in FIELDS}
    currency = form.get("all-in")
    if currency and currency not in DIGITS:
        visit.problems["all-in"] = "Choose one."
        currency = ""
    words = (word.strip().lower() for word in form.get("charged")[:NAME_CHARS_MAX].split(","))
    return Reading(
        {field: name for field, name in columns.items() if name},
        currency or None,
        frozenset(word for word in words if word),
    )


def _total(currency: str, theirs_minor: int, ours_minor: int) -> tuple[Money, Money, Money]:
    return (
        Money(theirs_minor, currency),
        Money(ours_minor, currency),
        Money(theirs_minor - ours_minor, currency),
    )


def _money(minor: int | None, currency: str | None) -> Money | None:
    return None if minor is None or currency is None else Money(minor, currency)


def _told(one: Discrepancy) -> dict[str, Any]:
    """A difference as the page shows it."""
    return {
        "one": one,
        "said": DIFFERENCES[one.difference],
        "theirs": _money(one.their_minor, one.their_currency),
        "ours": _money(one.our_minor, one.our_currency),
        "phase": None if one.phase is None else PHASES[one.phase],
    }


def _rows(found: Result) -> list[list[str]]:
    """The differences as rows of a file."""
    rows = [["difference", "row", "purchase", "their codes", "our codes", "their amount", "their currency",
             "our amount", "our currency", "status"]]  # fmt: skip
    for one in found.findings:
        theirs, ours = _money(one.their_minor, one.their_currency), _money(one.our_minor, one.our_currency)
        cells = (
            *(one.difference.value, one.row, one.attempt_id or one.key, one.their_count, one.our_count),
            *(theirs and theirs.decimal(), one.their_currency, ours and ours.decimal(), one.our_currency),
            None if one.phase is None else one.phase.name.lower(),
        )
        rows.append(["" if cell is None else str(cell) for cell in cells])
    return rows
