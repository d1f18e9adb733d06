"""Writes that are no orders: one transaction that holds the effect and, with an Idempotency-Key, its answer (OP-28).

A new key or secret is in its first answer and nowhere else. So it is not enough to know, after a crash, that the work
was done: either both are there, or neither.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec import Struct

from voucherd import trail
from voucherd.api import idempotent
from voucherd.api.handlers import Call
from voucherd.db import Tx, transaction
from voucherd.http import Response
from voucherd.idempotency import store as idempotency
from voucherd.services import Services
from voucherd.trail import TrailEntry


class Effect(Struct):
    """A write under way: do it in `tx`, then say what its answer is."""

    tx: Tx
    services: Services
    call: Call
    recorded: bool = False

    async def record(self, action: str, subject: str, **detail: Any) -> None:
        """Write into the audit trail what the calling key does here."""
        self.recorded = True
        await trail.record(self.tx, self.call.actor, action, subject, detail)

    async def answered(self, response: Response) -> Response:
        """The answer, which holds from now on for whoever sends the same request again."""
        ticket = self.call.ticket
        if ticket is not None:
            await idempotency.keep_with(
                self.tx, ticket, idempotent.seal(self.services.sealer, ticket, response)
            )
        if not self.recorded:
            await trail.record_all(self.tx, [self._deed(response)])
        return response

    def _deed(self, response: Response) -> TrailEntry:
        """What the audit trail says of it: `add_webhook` is `webhook.add`, and its subject what was made or named."""
        call = self.call
        assert call.op is not None, "every route names its operation"
        verb, _, noun = call.op.value.partition("_")
        made = [value.rpartition(b"/")[2].decode() for name, value in response.headers if name == b"location"]
        named = list(call.parameters) or made
        detail = {"made": made[0]} if call.parameters and made else None
        return trail.entry(
            call.actor, f"{noun or 'order'}.{verb}", " ".join([noun or "order", *named]), detail
        )


@asynccontextmanager
async def effect(services: Services, call: Call) -> AsyncIterator[Effect]:
    """The transaction of a write; a refusal that is raised in it undoes it."""
    async with transaction(services.pool) as tx:
        yield Effect(tx, services, call)
