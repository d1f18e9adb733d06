"""What people do on pages, written into the audit trail with their name and where they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voucherd import trail
from voucherd.db import Tx
from voucherd.ids import State
from voucherd.pages.visit import Visit
from voucherd.trail import Actor, ActorKind, TrailEntry


def actor(visit: Visit) -> Actor:
    """Who is at the page."""
    person = visit.someone
    kind = ActorKind.OPERATOR if person.company is None else ActorKind.PERSON
    return Actor(kind, person.email, person.id)


def entry(
    visit: Visit,
    action: str,
    subject: str,
    detail: Mapping[str, Any] | None,
    *,
    company_id: int | None,
    state: State | None,
) -> TrailEntry:
    """What the trail says of a deed; the company is the person's own, unless it is one of the operator's people."""
    own = visit.someone.company
    return TrailEntry(
        actor(visit),
        action,
        subject,
        company_id=company_id if own is None else own.id,
        state=state,
        address=visit.request.client_ip or None,
        request_id=visit.request.id or None,
        detail=detail,
    )


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
    in_state = visit.state if state is None else state
    await trail.record(tx, entry(visit, action, subject, detail, company_id=company_id, state=in_state))
