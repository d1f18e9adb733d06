"""What an integrator asks of a large order: its lines in pages, and its codes as a file."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Struct

from voucherd.api import query, requests
from voucherd.api.handlers import Call, view_of
from voucherd.api.idempotent import write
from voucherd.api.wire.fields import doc
from voucherd.api.wire.parts import codes_file, lines_page
from voucherd.api.wire.shapes import Redemption, WalkMetadata
from voucherd.api.wire.templates import encode
from voucherd.http import JSON, Request, Response
from voucherd.orders.model import Order
from voucherd.recipients.pins import PIN_DIGITS_MAX, PIN_DIGITS_MIN, PIN_DIGITS_PROPOSED, checked
from voucherd.services import Services
from voucherd.sheets import csv_text as csv
from voucherd.vault.model import Reveal, Via, Viewer

LINES_PAGE: Final = 100
LINES_PAGE_MAX: Final = 1_000


async def lines(services: Services, call: Call) -> Response:
    """A page of the order's lines, in the shape of Find in version 1.03."""
    start, size = read_lines(call.request)
    order_id = services.ids.order_id(call.parameter)
    answer = await services.orders.find_apart(order_id, call.caller.company_id, call.caller.state)
    stop = min(start + size, answer.order.lines)
    metadata = WalkMetadata(size, query.write_place(stop) if stop < answer.order.lines else None)
    view = view_of(services, call, answer, bare=False)
    viewer, delivered = call.viewer, delivered_lines(answer.order, start, stop)
    if viewer is not None and delivered:
        await services.orders.reveals.record([_reveal(answer.order, delivered, Via.LINES, viewer)])
    return Response(200, lines_page(view, start, stop, metadata, services.orders.reader.codes_of), JSON)


async def codes(services: Services, call: Call) -> Response:
    """The codes of the order's finished lines as a file."""
    order_id = services.ids.order_id(call.parameter)
    answer = await services.orders.find_apart(order_id, call.caller.company_id, call.caller.state)
    order = answer.order
    view = view_of(services, call, answer, bare=False)

    viewer, delivered = call.viewer, delivered_lines(order, 0, order.lines)

    async def note() -> None:
        if viewer is not None:
            await services.orders.reveals.record([_reveal(order, delivered, Via.FILE, viewer)])
        if not order.downloaded:
            await services.orders.note_download(order)

    # Noted when the first code leaves, so HEAD, and a file without codes, note nothing.
    body = codes_file(view, services.orders.reader.codes_of, note)
    return Response(200, body, csv.CSV, csv.headers(f"codes-{call.parameter}.csv"))


def delivered_lines(order: Order, start: int, stop: int) -> list[range]:
    """The delivered lines of this part of the order, as ranges in order."""
    return [lines for _, _, lines in order.delivered(range(start, stop))]


def _reveal(order: Order, delivered: list[range], via: Via, viewer: Viewer) -> Reveal:
    return Reveal(order.id, order.company_id, sum(map(len, delivered)), via, viewer, delivered[0].start)


_CURSOR: Final = query.cursor(
    "Where to go on: the `nextCursor` of the last page.", query.write_place(LINES_PAGE)
)
_LIMIT: Final = query.limit("lines", default=LINES_PAGE, most=LINES_PAGE_MAX)
LINES: Final = (_CURSOR, _LIMIT)


def read_lines(request: Request) -> tuple[int, int]:
    """The first line and the size of the page that is asked for."""
    given = query.read(request)
    cursor, size = _CURSOR.read(given), _LIMIT.read(given)
    return query.read_place(cursor) if cursor else 0, size


class RedemptionBody(Struct):
    """What is to be asked of recipients before they see a code."""

    pin: Annotated[
        str | None,
        doc(
            f"{PIN_DIGITS_MIN} to {PIN_DIGITS_MAX} digits, better {PIN_DIGITS_PROPOSED} or more; `null` to ask for "
            "none any more.",
            pattern=f"^[0-9]{{{PIN_DIGITS_MIN},{PIN_DIGITS_MAX}}}$",
        ),
    ]


_decode: Final = msgspec.json.Decoder(RedemptionBody).decode


def read_pin(request: Request) -> str | None:
    """The PIN in a request, or None to ask for none."""
    body: RedemptionBody = requests.decode(request, _decode)
    return checked(body.pin)


async def protect(services: Services, call: Call) -> Response:
    """Set the PIN of an order's links, or remove it."""
    pin = read_pin(call.request)
    order_id = services.ids.order_id(call.parameter)
    async with write(services, call) as work:
        await services.recipients.pins.set(work.tx, call.actor, call.parameter, order_id, pin)
        shown = Redemption(trx=call.parameter, hasPin=pin is not None)
        return await work.answered(Response(200, encode(shown), JSON))
