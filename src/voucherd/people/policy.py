"""What a company asks of its people: a looser rule waits for a day, or for a second person (OP-103)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from voucherd import trail
from voucherd.actors import SYSTEM, Actor, ActorKind
from voucherd.companies import store
from voucherd.companies.model import Company, Policy, RuleChange
from voucherd.db import Pool, Tx, transaction
from voucherd.money import Money
from voucherd.people import approvers
from voucherd.people.readers import Letter
from voucherd.people.roles import Right
from voucherd.words import Words

CHANGES_MAX: Final = 100
"""Of one round of the worker."""


class NoSuchChange(LookupError):
    """The change was confirmed, withdrawn or replaced meanwhile."""


async def set_policy(tx: Tx, actor: Actor, company: Company, chosen: Policy) -> RuleChange | None:
    """Ask this of the company's people; a looser rule about second persons waits, and comes back as it waits."""
    before = await store.lock_policy(tx, company.id)
    at_once = actor.kind is ActorKind.COMMAND or not chosen.looser_than(before)
    holds = chosen if at_once else replace(chosen, approve_from_eur_minor=before.approve_from_eur_minor)
    await store.set_policy(tx, company.id, holds)
    waiting = await store.find_rule_change(tx, company.id)
    amount = chosen.approve_from_eur_minor
    if at_once:
        await store.remove_rule_change(tx, company.id)
    elif waiting is None or waiting.approve_from_eur_minor != amount:
        assert actor.id is not None, "a person asks for it"
        waiting = await store.ask_rule_change(tx, company.id, amount, actor.id)
        await approvers.tell(tx, company.id, _about_to_change(actor.name, before, waiting))
    detail: dict[str, object] = {"second_factor": chosen.second_factor, "approve_from_eur_minor": amount}
    if not at_once:
        assert waiting is not None, "it has just been asked for"
        detail["holds_from"] = waiting.holds_from.isoformat()
    await _record(tx, actor, company, detail)
    if at_once and amount != before.approve_from_eur_minor:
        await _tell_changed(tx, company.id, amount, actor.name)
    return None if at_once else waiting


async def confirm_rule(tx: Tx, actor: Actor, company: Company, amount: int | None) -> None:
    """Put a looser rule into force at once, as its second person; refused if it is not this one that waits."""
    assert actor.id is not None, "a person confirms"
    if actor.company_id != company.id:
        raise NoSuchChange
    before = await store.lock_policy(tx, company.id)
    waiting = await store.find_rule_change(tx, company.id)
    if waiting is None or waiting.approve_from_eur_minor != amount:
        raise NoSuchChange
    await approvers.refuse_unless_second(tx, actor.id, waiting.asked_by, Right.ORDERS_APPROVE)
    await _put_in_force(tx, actor, company, before, waiting)


async def put_in_force(pool: Pool) -> int:
    """Put the rules into force whose day is over; how many."""
    done = 0
    for _ in range(CHANGES_MAX):
        async with transaction(pool) as tx:
            company_id = await store.company_with_due_rule(tx)
            if company_id is None:
                break
            # The company first, as everybody who changes a rule does; by now it may be confirmed or replaced.
            before = await store.lock_policy(tx, company_id)
            waiting = await store.due_rule_change(tx, company_id)
            if waiting is not None:
                company = (await store.companies(tx, [company_id]))[company_id]
                await _put_in_force(tx, SYSTEM, company, before, waiting)
                done += 1
    return done


async def _put_in_force(tx: Tx, actor: Actor, company: Company, before: Policy, change: RuleChange) -> None:
    amount = change.approve_from_eur_minor
    await store.set_policy(tx, company.id, replace(before, approve_from_eur_minor=amount))
    await store.remove_rule_change(tx, company.id)
    detail = {"second_factor": before.second_factor, "approve_from_eur_minor": amount}
    await _record(tx, actor, company, detail)
    await _tell_changed(tx, company.id, amount, actor.name)


async def _tell_changed(tx: Tx, company_id: int, amount: int | None, by: str) -> None:
    def letter(words: Words) -> tuple[str, str]:
        text = words.text("From now on: {rule} By: {by}.", rule=_rule(words, amount), by=by)
        return words.text("The approval rule has changed"), text

    await approvers.tell(tx, company_id, letter)


def _about_to_change(by: str, before: Policy, change: RuleChange) -> Letter:
    def letter(words: Words) -> tuple[str, str]:
        text = words.text(
            "{by} wants to change the approval rule. New: {new} Until then: {now}\n\n"
            "It changes on {when}, or once another one of you confirms it.",
            by=by,
            new=_rule(words, change.approve_from_eur_minor),
            now=_rule(words, before.approve_from_eur_minor),
            when=words.moment_and_zone(change.holds_from),
        )
        return words.text("The approval rule is about to change"), text

    return letter


async def _record(tx: Tx, actor: Actor, company: Company, detail: Mapping[str, object]) -> None:
    assert actor.company_id in {None, company.id}, "nobody changes another company"
    await trail.record(tx, actor, "company.people", f"company {company.name}", detail, company_id=company.id)


def _rule(words: Words, amount: int | None) -> str:
    if amount is None:
        return words.text("No order needs approval.")
    return words.text("Orders from {amount} need approval.", amount=words.amount(Money(amount, "EUR")))
