"""What people do on pages, written into the audit trail with their name and where they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voucherd import trail
from voucherd.db import Tx
from voucherd.ids import State
from voucherd.pages.visit import Visit


async def record(
    tx: Tx,
    visit: Visit,
    action: str,
    subject: str,
    detail: Mapping[str, Any] | None = None,
    *,
    company_id: int | None = None,
    state: State | None = None,
) -> None:
    """Write a deed down in the transaction that does it; both are the person's own unless named."""
    await trail.record(tx, visit.actor, action, subject, detail, company_id=company_id, state=state)
