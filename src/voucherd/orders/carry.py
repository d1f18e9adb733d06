"""Carrying out a batch of calls that pay, deliver or cancel: load, decide, store, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from voucherd import idempotency, trail
from voucherd.approvals import store as approvals
from voucherd.db import Connection, within
from voucherd.limits.spending import SpendKey
from voucherd.orders import store
from voucherd.orders.create import effects_of
from voucherd.orders.model import Order
from voucherd.orders.owned import owned
from voucherd.orders.rules.decide import Cancel, Finalise
from voucherd.orders.rules.refusals import Refusal
from voucherd.orders.rules.ruling import Facts, Ruling
from voucherd.orders.store import Memory
from voucherd.trail import TrailEntry
from voucherd.vault.reveals import Reveal, Via


async def carry_out(
    conn: Connection,
    memory: Memory,
    commands: Sequence[Finalise | Cancel],
    decision: Callable[[Facts], Ruling],
    *,
    with_lines: bool,
    purses: Collection[SpendKey] = (),
) -> Ruling:
    """What was decided about these calls, stored with all that belongs to it."""
    order_ids, owners = owned(commands)
    async with within(conn):
        facts = await store.load(
            conn,
            order_ids,
            memory,
            owners=owners,
            with_lines=with_lines,
            with_shelves=not with_lines,
            purses=purses,
        )
        consents = [command.consent for command in commands if isinstance(command, Finalise)]
        if any(consents):
            facts.approvals = await approvals.lock(conn, [one.number for one in consents if one])
        ruling = decision(facts)
        await store.save(conn, ruling, reveals_of(commands, ruling.answers))
        if any(consents):
            pairs = zip(consents, ruling.answers, strict=True)
            await approvals.grant(conn, [one for one, answer in pairs if one and isinstance(answer, Order)])
        entries = entries_of(commands, ruling.answers)
        if entries:
            await trail.record_all(conn, entries)
        effects = effects_of(commands, ruling.answers)
        if effects:
            await idempotency.name_effects(conn, effects)
    return ruling


def entries_of(commands: Sequence[Finalise | Cancel], answers: Sequence[Order | Refusal]) -> list[TrailEntry]:
    """What the audit trail says of those of these commands that were not refused."""
    return [
        command.entry
        for command, answer in zip(commands, answers, strict=True)
        if command.entry is not None and isinstance(answer, Order)
    ]


def reveals_of(commands: Sequence[Finalise | Cancel], answers: Sequence[Order | Refusal]) -> list[Reveal]:
    """What the answers to these commands show to whom."""
    return [
        Reveal(answer.id, answer.company_id, answer.lines_finished, _via(command), command.viewer)
        for command, answer in zip(commands, answers, strict=True)
        if command.viewer is not None and isinstance(answer, Order) and answer.lines_finished
    ]


def _via(command: Finalise | Cancel) -> Via:
    if isinstance(command, Cancel):
        return Via.RESOLVE if command.at_limit else Via.CANCEL
    return Via.RESOLVE if command.resolve else Via.CONFIRM
