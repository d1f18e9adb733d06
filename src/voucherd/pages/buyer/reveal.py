"""The one way in which codes of an order reach a person's screen or disk."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from msgspec import Struct

from voucherd.actors import ActorKind
from voucherd.ids import line_id
from voucherd.orders.answers import Answer
from voucherd.orders.model import Item, Order, Outcome
from voucherd.pages.visit import Visit
from voucherd.people import user_store
from voucherd.vault import reveals
from voucherd.vault.model import Reveal, Via, Viewer

SEEN_MAX: Final = 10
_KINDS: Final = {ActorKind.KEY: "A program, with an API key", ActorKind.RECIPIENT: "The recipient"}


class SeenLine(Struct, frozen=True):
    """Somebody saw codes."""

    at: datetime
    who: str
    codes: int
    as_file: bool


class RevealedLine(Struct, frozen=True):
    """One delivered line with its code."""

    line: int
    number: int
    """Its number for ever, as the API has it."""
    tag: str
    item: Item
    code: str
    serial: str
    expires_at: datetime | None
    link: str
    """Where the recipient can see the code."""


async def revealed(
    visit: Visit, answer: Answer, line_from: int, line_to: int, via: Via
) -> list[RevealedLine]:
    """The codes of the delivered lines in this range, after it was written down who sees them (OP-94).

    Every page and file of the portal with codes in it comes through here.
    """
    order = answer.order
    parts = list(delivered(order, line_from, line_to))
    if not parts:
        return []
    viewer = Viewer(ActorKind.PERSON, visit.someone.id, visit.request.client_ip)
    count = sum(part[4] for part in parts)
    await visit.services.orders.reveals.record(
        [Reveal(order.id, order.company_id, count, via, viewer, parts[0][1])]
    )
    opened = await visit.services.orders.reader.codes_of(
        [(lot, start, start + count) for _, _, lot, start, count in parts]
    )
    found = []
    link = f"{visit.services.settings.public_url}/r/"
    for (item, first, lot_id, _, count), codes in zip(parts, opened, strict=True):
        lines = range(first, first + count)
        tags, tokens = visit.services.ids.tags(order.id, lines), visit.services.ids.tokens(order.id, lines)
        expires_at = answer.lots[lot_id].expires_at
        for line, tag, token, (code, serial) in zip(lines, tags, tokens, codes, strict=True):
            number = line_id(order.id, line)
            found.append(RevealedLine(line, number, tag, item, code, serial, expires_at, link + token))
    return found


async def seen_by(visit: Visit, order: Order) -> list[SeenLine]:
    """Who has seen codes of the order, the latest first."""
    async with visit.pool.acquire() as connection:
        rows = await reveals.of_order(connection, order.id, SEEN_MAX)
        people = {user.id: user.email for user in await user_store.list_users(connection, visit.company_id)}
    return [SeenLine(row.at, _who(row, people), row.lines, row.via is Via.FILE) for row in rows]


def _who(row: reveals.RevealRow, people: dict[int, str]) -> str:
    if row.actor_kind is ActorKind.PERSON:
        return people.get(row.actor_id or 0, "Somebody who has left")
    return _KINDS.get(row.actor_kind, "The operator")


def delivered(order: Order, line_from: int, line_to: int) -> Iterator[tuple[Item, int, int, int, int]]:
    """The delivered ranges within these lines: item, first line, lot, first place in the lot, and how many."""
    for item in order.items:
        for outcome in _of(order, item):
            assert outcome.lot_id is not None
            assert outcome.seq_from is not None
            first = max(line_from, item.first_line, outcome.line_from)
            end = min(line_to, item.end_line, outcome.line_to)
            if first < end:
                yield item, first, outcome.lot_id, outcome.seq_from + first - outcome.line_from, end - first


def _of(order: Order, item: Item) -> list[Outcome]:
    """What was delivered of an item, in the order of its lines."""
    found = [
        one
        for one in order.outcomes
        if one.lot_id is not None and one.line_from < item.end_line and one.line_to > item.first_line
    ]
    return sorted(found, key=lambda one: one.line_from)
