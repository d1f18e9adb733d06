"""Writes that are no orders: one transaction that holds the effect and, with an Idempotency-Key, its answer (OP-28).

A new key or secret is in its first answer and nowhere else. So it is not enough to know, after a crash, that the work
was done: either both are there, or neither.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from voucherd.access import idempotency
from voucherd.api import kept
from voucherd.api.handlers import Call, Service
from voucherd.db import Tx, transaction
from voucherd.http import Response


class Effect(Struct):
    """A write under way: do it in `tx`, then say what its answer is."""

    tx: Tx
    service: Service
    call: Call

    async def answered(self, response: Response) -> Response:
        """The answer, which holds from now on for whoever sends the same request again."""
        ticket = self.call.ticket
        if ticket is not None:
            await idempotency.keep_with(self.tx, ticket, kept.seal(self.service.sealer, ticket, response))
        return response


@asynccontextmanager
async def effect(service: Service, call: Call) -> AsyncIterator[Effect]:
    """The transaction of a write; a refusal that is raised in it undoes it."""
    async with transaction(service.pool) as tx:
        yield Effect(tx, service, call)
