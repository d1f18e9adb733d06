"""A witness of what a person does on a page: the audit trail gets its row in whichever transaction does it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from voucherd import db, trail
from voucherd.db import Tx
from voucherd.ids import State
from voucherd.pages.visit import Visit


@contextmanager
def witnessed(
    visit: Visit,
    action: str,
    subject: str,
    *,
    company_id: int | None = None,
    state: State | None = None,
    detail: Mapping[str, Any] | None = None,
) -> Iterator[None]:
    """Write the deed down with the first transaction in here that changes something; what only reads leaves no row."""
    deed = trail.entry(visit.actor, action, subject, detail, company_id=company_id, state=state)
    written = False

    async def look(tx: Tx) -> None:
        nonlocal written
        if not written and await tx.fetchval("SELECT pg_current_xact_id_if_assigned() IS NOT NULL"):
            await trail.record_all(tx, [deed])
            written = True

    before = db.witness.set(look)
    try:
        yield
    finally:
        db.witness.reset(before)
