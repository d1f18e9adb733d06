"""How endpoints and deliveries look, to people and to programs. A secret is shown once, when it is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from voucherd.api.wire import webhooks as wire
from voucherd.cli.output import Output, record, stacked, table
from voucherd.events.feed import Event
from voucherd.ids import Identifiers
from voucherd.webhooks.endpoints import Endpoint
from voucherd.webhooks.history import Logged, Recovered

_WHY: Final = {"gone": "disabled: 410", "failing": "disabled: failing"}


def once(ids: Identifiers, endpoint: Endpoint, secret: str) -> Output:
    """An endpoint with its secret."""
    shown_id = ids.webhook(endpoint.id)
    view = record([("id", shown_id), ("secret", secret), ("", "It is not shown again.")])
    return Output({"id": shown_id, "secret": secret}, view)


def listed(ids: Identifiers, found: Sequence[Endpoint], names: Mapping[int, str]) -> Output:
    """Endpoints, one a line."""
    view = table(
        ["id", "state", "standing", "~address", "?events", "?company"],
        [
            (
                ids.webhook(one.id),
                one.state.word,
                _standing(one),
                one.url or "of each order",
                len(one.types) or "all",
                names.get(one.company_id),
            )
            for one in found
        ],
        empty="No endpoints.",
    )
    return Output([_document(ids, one, names) for one in found], view)


def shown(ids: Identifiers, one: Endpoint, names: Mapping[int, str]) -> Output:
    """One endpoint."""
    view = record(
        [
            ("id", ids.webhook(one.id)),
            ("company", names.get(one.company_id)),
            ("state", one.state.word),
            ("address", one.url or "of each order"),
            ("events", ", ".join(one.types) or "all"),
            ("headers", ", ".join(one.header_names)),
            ("description", one.description),
            ("standing", _standing(one)),
            ("failing since", one.failing_since),
            ("old secret until", one.old_until),
            ("made", one.created_at),
        ]
    )
    return Output(_document(ids, one, names), view)


def deliveries(ids: Identifiers, found: Sequence[Logged], about: Mapping[int, Event]) -> Output:
    """Deliveries, one a line, with the last attempt of each."""
    view = table(
        ["event", "type", "status", ">tries", "~last answer", ">ms", "?next", "?endpoint"],
        [
            (
                ids.event(one.event_id),
                one.type,
                one.status,
                len(one.attempts),
                _last(one),
                one.attempts[-1].ms if one.attempts else None,
                one.next_at,
                ids.webhook(one.webhook_id),
            )
            for one in found
        ],
        empty="Nothing was sent yet.",
    )
    return Output(
        [
            {"webhookId": ids.webhook(one.webhook_id)}
            | _plain(wire.delivery(ids, one, about.get(one.event_id)))
            for one in found
        ],
        view,
    )


def queued(event: str) -> Output:
    """A test message that is on its way."""
    return Output({"eventId": event}, stacked(f"A ping is on its way: {event}"))


def counted(count: int) -> Output:
    """How often an event is sent once more."""
    places = "1 endpoint" if count == 1 else f"{count} endpoints"
    return Output({"queued": count}, f"On its way to {places}.")


def recovered(found: Recovered) -> Output:
    """What a recovery queued."""
    text = "1 event is on its way." if found.queued == 1 else f"{found.queued} events are on their way."
    if found.next_since is not None:
        text += f" There are more: recover again since {found.next_since:%Y-%m-%dT%H:%M:%SZ}."
    return Output({"queued": found.queued, "dateNext": found.next_since}, text)


def _document(ids: Identifiers, one: Endpoint, names: Mapping[int, str]) -> dict[str, Any]:
    return {"company": names.get(one.company_id)} | _plain(wire.webhook(ids, one))


def _plain(shape: msgspec.Struct) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(shape))
    return found


def _standing(one: Endpoint) -> str:
    if not one.enabled:
        return _WHY.get(one.disabled_reason or "", "disabled")
    return f"{one.failures} failures" if one.failures else "fine"


def _last(one: Logged) -> str | None:
    if not one.attempts:
        return None
    last = one.attempts[-1]
    return last.error if last.http is None else str(last.http)
