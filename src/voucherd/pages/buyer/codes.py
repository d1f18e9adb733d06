"""An order's codes: on the screen, as CSV for programs, XLSX for spreadsheets, and PDF to print and hand out."""

from __future__ import annotations

import asyncio
import io
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, Final

from fpdf import FPDF
from msgspec import Struct

from voucherd.actors import ActorKind
from voucherd.clock import iso
from voucherd.http import HttpError, Response
from voucherd.ids import State, line_number
from voucherd.money import Money, digits, plain
from voucherd.orders.answers import Answer
from voucherd.orders.model import CODE_COLUMNS, Item, Order, Outcome
from voucherd.pages.buyer import grants
from voucherd.pages.buyer.checkout import answer_of
from voucherd.pages.forms import whole
from voucherd.pages.qr import square
from voucherd.pages.render import attachment, figure, qualified, render
from voucherd.pages.visit import Visit, missing, see_other
from voucherd.sheets import csv_text
from voucherd.sheets.writing import Format, write
from voucherd.vault.model import Reveal, Via, Viewer
from voucherd.words import THIN

SCREEN_MAX: Final = 25
"""Codes on one screen."""
CARDS_MAX: Final = 200
"""Cards of one PDF: twenty-five pages, and about a second of a core."""
CARDS_ACROSS: Final = 2
CARDS_DOWN: Final = 4
CODE_ROW: Final = 40
CODE_ROWS: Final = 3
"""A code that is longer than three rows of forty is none to print."""
_PAGE_MM: Final = (210.0, 297.0)
_EDGE_MM: Final = 12.0
_GAP_MM: Final = 6.0
_CARD_MM: Final = (
    (_PAGE_MM[0] - 2 * _EDGE_MM - _GAP_MM) / CARDS_ACROSS,
    (_PAGE_MM[1] - 2 * _EDGE_MM - 3 * _GAP_MM) / CARDS_DOWN,
)
_QR_MM: Final = 22.0
_ACCENT: Final = (11, 107, 87)
_DIM: Final = (82, 97, 91)
_INK: Final = (22, 33, 29)
_LETTERS: Final = "cp1252"
"""What the fonts that every reader of PDF has can show."""
_printer: Final = ThreadPoolExecutor(1, thread_name_prefix="papers")
"""Large files are made one after another, beside the loop: a workbook of ten thousand codes takes a second."""


class RevealedLine(Struct, frozen=True):
    """One delivered line with its code."""

    line: int
    number: int
    """Its number for ever, as the API has it."""
    tag: str
    item: Item
    code: str
    serial: str
    expires_at: datetime | None
    link: str
    """Where the recipient can see the code."""


class Unprintable(ValueError):
    """A code is too long, or has letters that the fonts don't have: printed, it would be another one."""


async def ask(visit: Visit) -> Response:
    """Let this browser see the order's codes for some minutes, on a page that Back finds again."""
    await _found(visit)
    path = f"/portal/orders/{visit.parameters['trx']}/codes"
    return see_other(qualified(path, {"from": visit.form.get("from"), "grant": grants.grant(visit)}))


async def show(visit: Visit) -> Response:
    """Codes of an order, to a browser that has just asked for them; each showing is written down (OP-94)."""
    answer = await _found(visit)
    trx, granted = visit.parameters["trx"], visit.query.get("grant")
    start = _start(visit, answer)
    if not grants.holds(visit, granted):
        return render("buyer/codes_ask.html", visit, trx=trx, start=start, count=answer.order.lines_finished)
    end = min(start + SCREEN_MAX, answer.order.lines)
    lines = await _revealed(visit, answer, start, end, Via.PORTAL)
    return render(
        "buyer/codes.html",
        visit,
        trx=trx,
        order=answer.order,
        lines=lines,
        start=start,
        end=end,
        size=SCREEN_MAX,
        path=f"/portal/orders/{trx}/codes",
        grant=granted,
    )


async def download(visit: Visit) -> Response:
    """The codes as a file; the order remembers that they left (OP-56)."""
    trx = visit.parameters["trx"]
    answer = await _found(visit)
    kind = visit.form.get("format")
    if kind not in ("csv", "xlsx", "pdf"):
        raise HttpError(400, "bad_format", visit.words.text("Choose CSV, XLSX or PDF."))
    if kind == "pdf" and answer.order.lines_finished > CARDS_MAX:
        return visit.go(
            f"/portal/orders/{trx}",
            visit.words.text("A PDF holds up to {most} codes. Take the CSV or Excel file.", most=CARDS_MAX),
            "bad",
        )
    lines = await _revealed(visit, answer, 0, answer.order.lines, Via.FILE)
    if kind == "csv":
        body = _csv(lines)
    elif kind == "xlsx":
        body = await _printed(_workbook, lines)
    else:
        try:
            body = await _printed(_cards, lines, visit.state is State.SANDBOX)
        except Unprintable:
            text = visit.words.text(
                "Some of these codes can't be printed as they are. Take the CSV or Excel file."
            )
            return visit.go(f"/portal/orders/{trx}", text, "bad")
    if not answer.order.downloaded:
        await visit.services.orders.note_download(answer.order)
    name = f"codes-{visit.services.ids.trx_unkept(answer.order.id)}.{kind}"
    return attachment(name, body, csv_text.CSV if kind == "csv" else None)


async def _printed(paper: Callable[..., bytes], *about: object) -> bytes:
    return await asyncio.get_running_loop().run_in_executor(_printer, paper, *about)


async def _found(visit: Visit) -> Answer:
    answer = await answer_of(visit)
    if not answer.order.lines_finished:
        raise missing()
    return answer


def _start(visit: Visit, answer: Answer) -> int:
    start = whole(visit.query.get("from"), high=99_999) or 0
    return start if start < answer.order.lines else 0


def _csv(lines: Sequence[RevealedLine]) -> bytes:
    """The same file that the API gives."""
    rows = [",".join(CODE_COLUMNS)]
    for one in lines:
        version = one.item.version
        face = plain(one.item.unit.face_minor, digits(version.face_currency))
        expires = "" if one.expires_at is None else iso(one.expires_at)
        quoted = csv_text.quoted
        rows.append(
            f"{one.number},{one.tag},{version.slug},{face},{version.face_currency.lower()},{quoted(one.code)},"
            f"{quoted(one.serial)},{expires},{quoted(one.link)},finished"
        )
    return ("\r\n".join(rows) + "\r\n").encode()


def _workbook(lines: Sequence[RevealedLine]) -> bytes:
    """A workbook, in which every code is a text and no cell a formula."""
    stream = io.BytesIO()
    columns = ("Product", "Face value", "Currency", "Code", "Serial", "Expires", "Link", "Tag")
    rows = (
        (
            one.item.version.name,
            Money(one.item.unit.face_minor, one.item.version.face_currency).decimal(),
            one.item.version.face_currency,
            one.code,
            one.serial,
            None if one.expires_at is None else f"{one.expires_at:%Y-%m-%d}",
            one.link,
            one.tag,
        )
        for one in lines
    )
    write(stream, Format.XLSX, "Codes", columns, rows)
    return stream.getvalue()


def _cards(lines: Sequence[RevealedLine], sandbox: bool) -> bytes:
    """One card for each voucher, eight on a page, to be cut out."""
    for one in lines:
        if not (_fits(one.code) and _fits(one.serial)) or len(one.code) > CODE_ROW * CODE_ROWS:
            raise Unprintable
    page = FPDF(format="A4")
    page.core_fonts_encoding = _LETTERS
    page.set_auto_page_break(False)
    page.set_title("Vouchers")
    per_page = CARDS_ACROSS * CARDS_DOWN
    for at, one in enumerate(lines):
        if at % per_page == 0:
            page.add_page()
        row, column = divmod(at % per_page, CARDS_ACROSS)
        left = _EDGE_MM + column * (_CARD_MM[0] + _GAP_MM)
        top = _EDGE_MM + row * (_CARD_MM[1] + _GAP_MM)
        _card(page, one, left, top, sandbox=sandbox)
    return bytes(page.output())


def _card(page: Any, one: RevealedLine, left: float, top: float, *, sandbox: bool) -> None:
    version, width = one.item.version, _CARD_MM[0] - 10
    page.set_draw_color(*_DIM)
    page.set_dash_pattern(dash=1, gap=1)
    page.rect(left, top, *_CARD_MM, round_corners=True, corner_radius=3, style="D")
    page.set_dash_pattern()
    face = Money(one.item.unit.face_minor, version.face_currency)
    worth = f"{figure(face).replace(THIN, ' ')} {face.currency}"
    beside = width - _QR_MM - 3
    _write(page, left, top + 5, beside, 5, version.brand_name, size=9, colour=_DIM)
    _write(page, left, top + 10, beside, 6, version.name, size=12, style="B")
    _write(page, left, top + 17, beside, 8, worth, size=17, style="B", colour=_ACCENT)
    page.image(_picture(one.link), left + 8 + beside, top + 4, _QR_MM, _QR_MM)
    page.set_fill_color(238, 242, 240)
    page.rect(left + 5, top + 28, width, 13, round_corners=True, corner_radius=2, style="F")
    rows = [one.code[at : at + CODE_ROW] for at in range(0, len(one.code), CODE_ROW)]
    size, height = (15.0, 9.0) if len(rows) == 1 else (8.0, 3.6)
    begin = top + 28 + (13 - height * len(rows)) / 2
    for at, text in enumerate(rows):
        row = begin + at * height
        _write(page, left, row, width, height, text, size=size, style="B", family="Courier", align="C")
    facts = [f"Serial {one.serial}"] if one.serial else []
    if one.expires_at is not None:
        facts.append(f"Valid until {one.expires_at:%Y-%m-%d}")
    _write(page, left, top + 43, width, 5, "   ".join(facts), size=8.5, colour=_DIM)
    _write(page, left, top + 49, width, 4, one.link, size=7, colour=_DIM)
    if sandbox:
        text = "SANDBOX: this code is not real"
        _write(page, left, top + 54, width, 4, text, size=8, style="B", colour=(163, 48, 28))


def _picture(link: str) -> io.BytesIO:
    """The link as a QR code, for a telephone."""
    stream = io.BytesIO()
    square(link).save(stream, kind="png", scale=4, border=1)
    return stream


def _write(
    page: Any,
    left: float,
    top: float,
    width: float,
    height: float,
    text: str,
    *,
    size: float,
    style: str = "",
    family: str = "Helvetica",
    align: str = "L",
    colour: tuple[int, int, int] = _INK,
) -> None:
    """One line, made smaller until it fits."""
    shown = _printable(text)
    page.set_font(family, style, size)
    page.set_text_color(*colour)
    wide = page.get_string_width(shown)
    if wide > width:
        page.set_font(family, style, size * width / wide)
    page.set_xy(left + 5, top)
    page.cell(width, height, shown, align=align)


def _fits(text: str) -> bool:
    try:
        text.encode(_LETTERS)
    except UnicodeEncodeError:
        return False
    return True


def _printable(text: str) -> str:
    """A name in letters that the fonts have; what they lack loses its accents, or becomes a question mark."""
    if _fits(text):
        return text
    return "".join(
        letter
        if _fits(letter)
        else unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode() or "?"
        for letter in text
    )


async def _revealed(
    visit: Visit, answer: Answer, line_from: int, line_to: int, via: Via
) -> list[RevealedLine]:
    """The codes of the delivered lines in this range, after it was written down who sees them (OP-94).

    Every page and file of the portal with codes in it comes through here.
    """
    order = answer.order
    parts = list(_delivered(order, line_from, line_to))
    if not parts:
        return []
    viewer = Viewer(ActorKind.PERSON, visit.someone.id, visit.request.client_ip)
    count = sum(part[4] for part in parts)
    await visit.services.orders.reveals.record(
        [Reveal(order.id, order.company_id, count, via, viewer, parts[0][1])]
    )
    opened = await visit.services.orders.reader.codes_of(
        [(lot, start, start + count) for _, _, lot, start, count in parts]
    )
    found = []
    link = f"{visit.services.settings.public_url}/r/"
    for (item, first, lot_id, _, count), codes in zip(parts, opened, strict=True):
        lines = range(first, first + count)
        tags, tokens = visit.services.ids.tags(order.id, lines), visit.services.ids.tokens(order.id, lines)
        expires_at = answer.lots[lot_id].expires_at
        for line, tag, token, (code, serial) in zip(lines, tags, tokens, codes, strict=True):
            number = line_number(visit.services.ids.order_number(order.id), line)
            found.append(RevealedLine(line, number, tag, item, code, serial, expires_at, link + token))
    return found


def _delivered(order: Order, line_from: int, line_to: int) -> Iterator[tuple[Item, int, int, int, int]]:
    """The delivered ranges within these lines: item, first line, lot, first place in the lot, and how many."""
    for item in order.items:
        for outcome in _of(order, item):
            assert outcome.lot_id is not None
            assert outcome.seq_from is not None
            first = max(line_from, item.first_line, outcome.line_from)
            end = min(line_to, item.end_line, outcome.line_to)
            if first < end:
                yield item, first, outcome.lot_id, outcome.seq_from + first - outcome.line_from, end - first


def _of(order: Order, item: Item) -> list[Outcome]:
    """What was delivered of an item, in the order of its lines."""
    found = [
        one
        for one in order.outcomes
        if one.lot_id is not None and one.line_from < item.end_line and one.line_to > item.first_line
    ]
    return sorted(found, key=lambda one: one.line_from)
