"""Codes as files: CSV for programs, XLSX for people with spreadsheets, PDF to print and hand out."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Sequence
from typing import Any, Final

import segno
from fpdf import FPDF

from voucherd.clock import iso
from voucherd.money import Money, digits, plain
from voucherd.pages.buyer.reveal import RevealedLine
from voucherd.pages.render import THIN, figure
from voucherd.sheets import csv_text
from voucherd.sheets.writing import Format, write

COLUMNS: Final = (
    "lineId",
    "tag",
    "productSlug",
    "faceValueAmount",
    "faceValueCurrency",
    "voucherCode",
    "voucherSerial",
    "voucherDateExpired",
    "redemptionLink",
    "status",
)
"""As in the API's file of codes."""

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
_MASK: Final = 3
"""Every mask can be read; to look for the prettiest takes ten times as long as to draw one."""
_ACCENT: Final = (11, 107, 87)
_DIM: Final = (82, 97, 91)
_INK: Final = (22, 33, 29)
_LETTERS: Final = "cp1252"
"""What the fonts that every reader of PDF has can show."""


class Unprintable(ValueError):
    """A code is too long, or has letters that the fonts don't have: printed, it would be another one."""


def as_csv(lines: Sequence[RevealedLine]) -> bytes:
    """The same file that the API gives."""
    rows = [",".join(COLUMNS)]
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


def as_workbook(lines: Sequence[RevealedLine]) -> bytes:
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


def as_cards(lines: Sequence[RevealedLine], sandbox: bool) -> bytes:
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
    segno.make_qr(link, error="m", mask=_MASK).save(stream, kind="png", scale=4, border=1)
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
