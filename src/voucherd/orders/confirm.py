"""Confirm, Resolve and Cancel: load, decide, store, in one transaction for a whole batch of calls."""

from __future__ import annotations

from collections.abc import Sequence

from voucherd import traces, trail
from voucherd.actors import TrailEntry
from voucherd.approvals import store as approvals
from voucherd.db import Tx
from voucherd.idempotency import store as idempotency
from voucherd.idempotency.model import Ticket
from voucherd.limits.spending import spend_key
from voucherd.orders import reading, sale, store
from voucherd.orders.caches import OrderCaches
from voucherd.orders.model import Order
from voucherd.orders.rules import decide
from voucherd.orders.rules.cart import Create
from voucherd.orders.rules.decide import Cancel, Finalise
from voucherd.orders.rules.refusals import DoneBefore, Refusal
from voucherd.orders.rules.ruling import Ruling
from voucherd.orders.store import SealedCodes
from voucherd.people import approvers
from voucherd.people.roles import Right
from voucherd.vault.model import Reveal, Via


async def confirm(
    tx: Tx, caches: OrderCaches, commands: Sequence[Finalise]
) -> tuple[list[Order | Refusal], SealedCodes]:
    """Debit and deliver every order that may be confirmed or resolved; refuse the rest.

    The codes that were sold come back sealed: they are opened once the transaction has ended well.
    """
    spend_keys = {
        spend_key(command.company_id, limit, command.state)
        for command in commands
        for limit in command.limits
        if limit.day_max is not None
    }
    with traces.step("load"):
        facts = await sale.load(tx, caches, commands, spend_keys)
    consents = [command.consent for command in commands]
    if any(consents):
        facts.approvals = await approvals.lock(tx, [one.number for one in consents if one])
        pairs = {
            (one.by, facts.approvals[one.number].requested_by)
            for one in consents
            if one and one.number in facts.approvals
        }
        facts.second_persons = await approvers.second_persons(tx, pairs, Right.ORDERS_APPROVE)
    with traces.step("decide"):
        ruling = decide.finalise(facts, commands)
    with traces.step("save"):
        sealed = await _save(tx, commands, ruling)
    if any(consents):
        answered = zip(consents, ruling.answers, strict=True)
        await approvals.grant(tx, [one for one, answer in answered if one and isinstance(answer, Order)])
    return await _own_deeds_known(tx, commands, ruling.answers), sealed


async def cancel(tx: Tx, caches: OrderCaches, commands: Sequence[Cancel]) -> list[Order | Refusal]:
    """Delete every order that is not confirmed; cancel and refund the undelivered lines of the others."""
    order_ids, owners = reading.owned(commands)
    with traces.step("load"):
        facts = await store.load(tx, order_ids, caches, owners=owners)
    with traces.step("decide"):
        ruling = decide.cancel(facts, commands)
    with traces.step("save"):
        await _save(tx, commands, ruling)
    return await _own_deeds_known(tx, commands, ruling.answers)


async def _save(tx: Tx, commands: Sequence[Finalise | Cancel], ruling: Ruling) -> SealedCodes:
    """Store the ruling, who will see its codes, the trail's rows, and which order each repeatable request changed."""
    sealed = await store.save(tx, ruling, _reveals(commands, ruling.answers))
    entries = _entries(commands, ruling.answers)
    if entries:
        await trail.record_all(tx, entries)
    effects = effects_of(commands, ruling.answers)
    if effects:
        await idempotency.name_effects(tx, effects)
    return sealed


async def _own_deeds_known(
    tx: Tx, commands: Sequence[Finalise | Cancel], answers: Sequence[Order | Refusal]
) -> list[Order | Refusal]:
    """The answers; no call is refused for what its own key has done before, in whichever process (OP-112).

    The order is locked by now, so an earlier try that did it has named it, and one that has not never will.
    """
    asked = [
        (at, command.ticket)
        for at, (command, answer) in enumerate(zip(commands, answers, strict=True))
        if command.ticket is not None and isinstance(answer, Refusal)
    ]
    known = list(answers)
    if asked:
        named = await idempotency.named(tx, [ticket for _, ticket in asked])
        for (at, _), order_id in zip(asked, named, strict=True):
            if order_id is not None and order_id == commands[at].order_id:
                known[at] = DoneBefore(order_id)
    return known


def effects_of(
    commands: Sequence[Create | Finalise | Cancel], answers: Sequence[Order | Refusal]
) -> list[tuple[Ticket, int]]:
    """The orders that were changed for those who may ask again, each with its ticket."""
    return [
        (command.ticket, answer.id)
        for command, answer in zip(commands, answers, strict=True)
        if command.ticket is not None and isinstance(answer, Order)
    ]


def _entries(commands: Sequence[Finalise | Cancel], answers: Sequence[Order | Refusal]) -> list[TrailEntry]:
    """The trail's rows of those commands that carry one and were not refused."""
    return [
        command.entry
        for command, answer in zip(commands, answers, strict=True)
        if command.entry is not None and isinstance(answer, Order)
    ]


def _reveals(commands: Sequence[Finalise | Cancel], answers: Sequence[Order | Refusal]) -> list[Reveal]:
    """The codes that the answers to these commands show, and to whom."""
    return [
        Reveal(answer.id, answer.company_id, answer.lines_finished, _via(command), command.viewer)
        for command, answer in zip(commands, answers, strict=True)
        if command.viewer is not None and isinstance(answer, Order) and answer.lines_finished
    ]


def _via(command: Finalise | Cancel) -> Via:
    if isinstance(command, Cancel):
        return Via.RESOLVE if command.at_limit else Via.CANCEL
    return Via.RESOLVE if command.resolve else Via.CONFIRM
