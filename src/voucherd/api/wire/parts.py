"""Parts of an order: some of its lines as JSON, or all of its codes as CSV, a few at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Final

from voucherd.api.wire.lines import extended_lines
from voucherd.api.wire.order import ReadCodes, opened
from voucherd.api.wire.shapes import WalkMetadata
from voucherd.api.wire.templates import encode
from voucherd.api.wire.view import Piece, View, small_pieces
from voucherd.clock import iso
from voucherd.ids import line_number
from voucherd.money import digits, plain
from voucherd.orders.model import CODE_COLUMNS
from voucherd.sheets.csv_text import quoted

CODES_HEAD: Final = (",".join(CODE_COLUMNS) + "\r\n").encode()


async def lines_page(
    view: View, start: int, stop: int, metadata: WalkMetadata, read_codes: ReadCodes
) -> AsyncIterator[bytes]:
    """These lines of the order, in the shape of version 1.03."""
    before = b'{"data":['
    for piece in _pieces(view, range(start, stop)):
        yield before + extended_lines(view, await opened(view, piece, read_codes))
        before = b","
    head = before if before != b"," else b""
    yield head + b'],"metadata":' + encode(metadata) + b"}"


async def codes_file(
    view: View, read_codes: ReadCodes, before_first: Callable[[], Awaitable[None]]
) -> AsyncIterator[bytes]:
    """The order's finished lines with their codes. `before_first` runs before the first code leaves."""
    yield CODES_HEAD
    noted = False
    for piece in _pieces(view, range(view.order.lines)):
        if piece.delivered:
            rows = code_rows(view, await opened(view, piece, read_codes))
            if not noted:
                await before_first()
                noted = True
            yield rows


def _pieces(view: View, within: range) -> Iterator[Piece]:
    """The order's lines among these, a few at a time."""
    for item in view.order.items:
        yield from small_pieces(view, item, within)


def code_rows(view: View, piece: Piece) -> bytes:
    """Finished lines. A code that begins like a formula stays as it is: changed, it would be worth nothing."""
    assert piece.codes is not None
    assert piece.outcome is not None
    assert piece.outcome.lot_id is not None
    order, version = view.order, piece.item.version
    expires_at = view.answer.lots[piece.outcome.lot_id].expires_at
    expires = "" if expires_at is None else iso(expires_at)
    face = plain(piece.item.unit.face_minor, digits(version.face_currency))
    product = f"{version.slug},{face},{version.face_currency.lower()}"
    link, first_id = view.public_url + "/r/", line_number(view.ids.order_number(order.id), piece.line_from)
    tags, tokens = view.ids.tags(order.id, piece.lines), view.ids.tokens(order.id, piece.lines)
    return "".join(
        [
            f"{first_id + at},{tag},{product},{quoted(code)},{quoted(serial)},{expires},{quoted(link + token)},"
            f"finished\r\n"
            for at, (tag, token, (code, serial)) in enumerate(zip(tags, tokens, piece.codes, strict=True))
        ]
    ).encode()
