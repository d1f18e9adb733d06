"""Who counts as a second person: somebody new rests for a day, unless another approver confirms it (OP-102).

The rule binds both sides of a request. Whoever rests approves nothing, and what it asks for is not approved by the one
who let it in: otherwise one person could act as two.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Final

from voucherd import trail
from voucherd.actors import Actor, ActorKind
from voucherd.db import Connection, Pool, Tx
from voucherd.people import letters, members
from voucherd.people.members import Member
from voucherd.people.readers import Letter
from voucherd.people.roles import Right, approval_right, rights_of
from voucherd.people.users import User

REST: Final = timedelta(hours=24)
SHARED: Final = frozenset(
    {Right.ORDERS_PLACE, Right.ORDERS_APPROVE, Right.MONEY_PROPOSE, Right.MONEY_APPROVE}
)
"""The rights that two people use together: one asks, the other one approves."""


class NoSecondPerson(ValueError):
    """The person, or the one who asked, has not been here for long enough, or lacks the right."""


async def second_persons(
    connection: Connection | Pool, pairs: Collection[tuple[int, int]], right: Right
) -> set[tuple[int, int]]:
    """Those of the pairs (who decides, who asked) in which the first counts as a second person."""
    rows = await connection.fetch(
        """
        SELECT d.id, a.id, d.role, d.company_id IS NOT NULL
        FROM unnest($1::bigint[], $2::bigint[]) AS pair (decider, asker)
        JOIN app_user d ON d.id = pair.decider JOIN app_user a ON a.id = pair.asker
        WHERE d.id <> a.id AND d.active AND d.rests_until <= now()
          AND NOT (a.rests_until > now() AND a.rests_by IS NOT DISTINCT FROM d.id)
        """,
        [decider for decider, _ in pairs],
        [asker for _, asker in pairs],
    )
    return {
        (decider, asker)
        for decider, asker, role, of_company in rows
        if right in rights_of(role, of_company=of_company)
    }


async def refuse_unless_second(connection: Connection | Pool, decider: int, asker: int, right: Right) -> None:
    """Refuse somebody who is no second person to this one."""
    if not await second_persons(connection, [(decider, asker)], right):
        raise NoSecondPerson


async def rest(tx: Tx, actor: Actor, person: Member | User, why: str, before: frozenset[Right]) -> None:
    """Let a person rest who gets a right that two share and lacked it before; tell those who approve."""
    if not (rights_of(person.role, of_company=person.company_id is not None) - before) & SHARED:
        return
    # Whoever rests lets nobody in of its own accord: behind it stands the one who let it in.
    until = await tx.fetchval(
        """
        UPDATE app_user SET rests_until = now() + $3::interval, rests_by =
            (SELECT CASE WHEN by.rests_until > now() THEN coalesce(by.rests_by, by.id) ELSE by.id END
             FROM app_user by WHERE by.id = $2)
        WHERE id = $1 RETURNING rests_until
        """,
        person.id,
        _person(actor),
        REST,
    )
    await tell(tx, person.company_id, letters.rests(why, person.email, person.role, actor.name, until))


async def count_at_once(tx: Tx, user_id: int) -> None:
    """Let the operator's first person count without a rest: nobody was there before who could be deceived."""
    await tx.execute("UPDATE app_user SET rests_until = now() WHERE id = $1", user_id)


async def is_alone(connection: Connection | Pool, user_id: int) -> bool:
    """Whether the operator has never had or invited anybody else (OP-151)."""
    alone: bool = await connection.fetchval(
        """
        SELECT EXISTS (SELECT FROM app_user WHERE id = $1 AND company_id IS NULL AND active)
           AND NOT EXISTS (SELECT FROM app_user WHERE company_id IS NULL AND id <> $1)
        """,
        user_id,
    )
    return alone


async def confirm(tx: Tx, actor: Actor, person: Member) -> None:
    """End a person's rest: by an approver who did not let it in, or by the operator at the command line."""
    if actor.kind is not ActorKind.COMMAND:
        by = _person(actor)
        if by is None or actor.company_id != person.company_id:
            raise NoSecondPerson
        await refuse_unless_second(tx, by, person.id, approval_right(person.company_id))
    await tx.execute(
        "UPDATE app_user SET rests_until = now() WHERE id = $1 AND rests_until > now()", person.id
    )
    await trail.record(
        tx, actor, "user.confirm", f"user {person.email}", {"role": person.role}, company_id=person.company_id
    )
    await tell(tx, person.company_id, letters.confirmed(person.email, person.role, actor.name))


async def tell(tx: Tx, company_id: int | None, letter: Letter) -> None:
    """Write to everybody who may approve here."""
    approvers = await members.with_right(tx, company_id, approval_right(company_id))
    await letters.tell_approvers(tx, [one.email for one in approvers], letter)


def _person(actor: Actor) -> int | None:
    """The number of the person who acts; None for the command line."""
    return actor.id if actor.kind in {ActorKind.PERSON, ActorKind.OPERATOR} else None
