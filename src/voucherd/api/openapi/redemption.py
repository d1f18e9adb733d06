"""Redemption links: their words and examples."""

from __future__ import annotations

from typing import Final

from msgspec import Raw

from voucherd.api.errors import Op
from voucherd.api.openapi import examples
from voucherd.api.openapi.parameters import TRX
from voucherd.api.openapi.schemas import REF
from voucherd.api.openapi.words import Body, Success, Words
from voucherd.api.wire.shapes import Redemption
from voucherd.api.wire.templates import encode
from voucherd.recipients.pins import TRIES_MAX

REDEEMING: Final = "Redemption links"


def _body() -> Raw:
    return Raw(encode({"pin": "274913"}))


def _protected(_version: str, _public_url: str) -> Raw:
    return Raw(encode(Redemption(trx=examples.IDS.trx(examples.sample(in_stock=2).id), hasPin=True)))


WORDS: Final = {
    Op.PROTECT: Words(
        "protectOrder",
        "Set a PIN",
        REDEEMING,
        "Puts a PIN before every code behind the order's redemption links, another one, or (`null`) none. Nobody can "
        "read it again: tell it to your recipients by another way than the link. "
        f"After {TRIES_MAX} wrong ones in a row a link waits for 15 minutes, then twice as long each time, up to a "
        "day; a new PIN begins anew. It may be set before the order is confirmed, so that no link is ever without it.",
        (
            Success(
                200,
                "The links ask for the PIN from now on.",
                {"protected": ("With a PIN", _protected)},
                schema={"$ref": REF + "Redemption"},
            ),
        ),
        (TRX,),
        body=Body("RedemptionBody", "A PIN", _body),
    ),
}
