"""Answers as they are kept for whoever asks again (OP-28). Each is sealed, to the one request that it answers.

What is kept is enough to write an answer again, byte for byte: an order is kept as it was shown, and its codes come
from the vault each time; any other answer is kept as bytes.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct, field

from voucherd.api.handlers import Shown
from voucherd.http import Response
from voucherd.idempotency.model import Ticket
from voucherd.orders.model import Order
from voucherd.vault.seal import Sealer


class StoredAnswer(Struct, frozen=True):
    """An answer as it is kept."""

    status: int
    content_type: bytes | None
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""
    order: Order | None = None
    bare: bool = False


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(StoredAnswer).decode


def seal(sealer: Sealer, ticket: Ticket, response: Response) -> bytes:
    """The answer as it is stored."""
    shown = response.shown
    order, bare = (shown.order, shown.bare) if isinstance(shown, Shown) else (None, False)
    body = response.body if isinstance(response.body, bytes) and order is None else b""
    kept = StoredAnswer(response.status, response.content_type, response.headers, body, order, bare)
    return sealer.seal_bytes(place(ticket), _encode(kept))


def open_(sealer: Sealer, ticket: Ticket, sealed: bytes) -> StoredAnswer:
    """The answer as it was given."""
    return _decode(sealer.open_bytes(place(ticket), sealed))


def place(ticket: Ticket) -> bytes:
    """Where the answer is sealed."""
    return b"answer/%d/%d/" % (ticket.company_id, ticket.state) + ticket.key
