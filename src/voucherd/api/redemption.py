"""A PIN before the codes behind an order's redemption links."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Struct

from voucherd.api import requests
from voucherd.api.handlers import Call
from voucherd.api.idempotent import write
from voucherd.api.wire.fields import doc
from voucherd.api.wire.shapes import Redemption
from voucherd.api.wire.templates import encode
from voucherd.http import JSON, Request, Response
from voucherd.recipients.pins import PIN_DIGITS_MAX, PIN_DIGITS_MIN, checked
from voucherd.services import Services


class RedemptionBody(Struct):
    """What is to be asked of recipients before they see a code."""

    pin: Annotated[
        str | None,
        doc(
            f"{PIN_DIGITS_MIN} to {PIN_DIGITS_MAX} digits, or `null` to ask for none any more.",
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
