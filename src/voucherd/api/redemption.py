"""A PIN before the codes behind an order's redemption links."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from voucherd.api import requests
from voucherd.api.handlers import Call
from voucherd.api.idempotent import write
from voucherd.api.wire.shapes import Redemption
from voucherd.api.wire.templates import encode
from voucherd.http import JSON, Request, Response
from voucherd.recipients.pins import checked
from voucherd.services import Services


class RedemptionBody(Struct):
    """What is to be asked of recipients before they see a code."""

    pin: str | None


_decode: Final = msgspec.json.Decoder(RedemptionBody).decode


def read_pin(request: Request) -> str | None:
    """The PIN in a request, or None to ask for none."""
    body: RedemptionBody = requests.decode(request, _decode)
    return checked(body.pin)


async def protect(services: Services, call: Call) -> Response:
    """Set the PIN of an order's links, or remove it."""
    pin = read_pin(call.request)
    async with write(services, call) as work:
        await services.recipients.protect(work.tx, call.actor, call.parameter, pin)
        shown = Redemption(trx=call.parameter, hasPin=pin is not None)
        return await work.answered(Response(200, encode(shown), JSON))
