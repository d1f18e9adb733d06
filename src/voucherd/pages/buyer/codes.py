"""An order's codes: on the screen when asked for, and as files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from voucherd.http import HttpError, Response
from voucherd.ids import State
from voucherd.orders.answers import Answer
from voucherd.pages.buyer import code_files
from voucherd.pages.buyer.reveal import revealed
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, missing
from voucherd.sheets import csv_text
from voucherd.vault.model import Via

SCREEN_MAX: Final = 100
"""Codes on one screen."""
CARDS_MAX: Final = 200
"""Cards of one PDF: twenty-five pages, and about a second of a core."""
_XLSX: Final = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_PDF: Final = b"application/pdf"
_printer: Final = ThreadPoolExecutor(1, thread_name_prefix="papers")
"""Large files are made one after another, beside the loop: a workbook of ten thousand codes takes a second."""


async def show(visit: Visit) -> Response:
    """Show codes of an order. Not a page to come back to: a browser keeps no page that a form gave."""
    answer = await _found(visit)
    start = _start(visit, answer)
    end = min(start + SCREEN_MAX, answer.order.lines)
    lines = await revealed(visit, answer, start, end, Via.PORTAL)
    return render(
        "buyer/codes.html",
        visit,
        trx=visit.parameters["trx"],
        order=answer.order,
        lines=lines,
        start=start,
        end=end,
        size=SCREEN_MAX,
    )


async def download(visit: Visit) -> Response:
    """The codes as a file; the order remembers that they left (OP-56)."""
    trx = visit.parameters["trx"]
    answer = await _found(visit)
    kind = visit.form.get("format")
    if kind not in ("csv", "xlsx", "pdf"):
        raise HttpError(400, "bad_format", "Choose CSV, XLSX or PDF.")
    if kind == "pdf" and answer.order.lines_finished > CARDS_MAX:
        return visit.go(
            f"/portal/orders/{trx}",
            f"A PDF holds up to {CARDS_MAX} codes. Take the CSV or XLSX file for this order.",
            "bad",
        )
    lines = await revealed(visit, answer, 0, answer.order.lines, Via.FILE)
    if kind == "csv":
        body, content_type = code_files.as_csv(lines), csv_text.CSV
    elif kind == "xlsx":
        body, content_type = await _printed(code_files.as_workbook, lines), _XLSX
    else:
        try:
            sandbox = visit.state is State.SANDBOX
            body, content_type = await _printed(code_files.as_cards, lines, sandbox), _PDF
        except code_files.Unprintable:
            text = "Some of these codes can't be printed as they are. Take the CSV or XLSX file."
            return visit.go(f"/portal/orders/{trx}", text, "bad")
    if not answer.order.downloaded:
        await visit.services.orders.note_download(answer.order)
    name = f"codes-{visit.services.ids.trx_unkept(answer.order.id)}.{kind}"
    disposition = f'attachment; filename="{name}"'.encode()
    return Response(200, body, content_type, [(b"content-disposition", disposition)])


async def _printed(paper: Callable[..., bytes], *about: object) -> bytes:
    return await asyncio.get_running_loop().run_in_executor(_printer, paper, *about)


async def _found(visit: Visit) -> Answer:
    answer = await visit.services.orders.find(
        visit.services.ids.order_id(visit.parameters["trx"]), visit.company_id, visit.state
    )
    if not answer.order.lines_finished:
        raise missing()
    return answer


def _start(visit: Visit, answer: Answer) -> int:
    text = visit.form.get("from", "0")
    start = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
    return start if start < answer.order.lines else 0
