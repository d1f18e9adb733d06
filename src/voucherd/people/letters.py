"""What people are told by mail about their own account, and about who may approve."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from functools import partial

from voucherd.db import Pool, Tx, transaction
from voucherd.mail import outbox
from voucherd.people import links, readers
from voucherd.people.links import LIVES, LinkKind
from voucherd.people.readers import Letter
from voucherd.words import Words


async def answer_resets(pool: Pool, public_url: str) -> int:
    """Mail a link to everybody who wants a new password and has an account; how many requests there were."""
    async with transaction(pool) as tx:
        count, holders = await links.take_requests(tx)
        for holder in holders:
            link = await links.make(tx, holder.user_id, LinkKind.RESET)
            if link is not None:
                who = await readers.by_address(tx, [holder.email])
                letter = partial(_reset, f"{public_url}/reset/{outbox.LINK}")
                await readers.write(tx, who, letter, link=link, good_for=LIVES[LinkKind.RESET])
    return count


def _reset(link: str, words: Words) -> tuple[str, str]:
    text = words.text(
        "Somebody, probably you, asked for a new password for your account. Choose it within 30 minutes:\n\n"
        "    {link}\n\n"
        "The link works once. If it was not you, do nothing: your password stays as it is.",
        link=link,
    )
    return words.text("Choose a new password"), f"{text}\n"


async def send_password_link(tx: Tx, public_url: str, email: str, link: bytes, *, by: str) -> None:
    """Mail somebody a link to choose another password, which a colleague or the operator asked for."""

    def letter(words: Words) -> tuple[str, str]:
        text = words.text(
            "{by} sends you a link to choose a new password. Choose it within 30 minutes:\n\n"
            "    {link}\n\n"
            "The link works once. Until you use it your password stays as it is.",
            by=by,
            link=f"{public_url}/reset/{outbox.LINK}",
        )
        return words.text("Choose a new password"), f"{text}\n"

    who = await readers.by_address(tx, [email])
    await readers.write(tx, who, letter, link=link, good_for=LIVES[LinkKind.RESET])


async def invite(
    tx: Tx, public_url: str, email: str, link: bytes | None, *, where: str, by: str, language: str
) -> None:
    """Mail an invitation to somebody who has just been added; without a link where the address has an account."""
    words = Words(language)
    if link is None:
        text = words.text(
            "{by} has invited you to {where}.\n\n"
            "This address has an account already, and an address belongs to one team at a time, so nothing has"
            " changed for you. If you want to join, give them another address of yours. If you do not know what"
            " this is about, do nothing.",
            by=by,
            where=where,
        )
    else:
        text = words.text(
            "{by} has invited you to {where}. Choose a password within 7 days:\n\n"
            "    {link}\n\n"
            "The link works once. If you do not know what this is about, do nothing.",
            by=by,
            where=where,
            link=f"{public_url}/invitation/{outbox.LINK}",
        )
    subject = words.text("Invitation to {where}", where=where)
    good_for = LIVES[LinkKind.INVITATION]
    await outbox.write(tx, [email], subject, f"{text}\n", link=link, good_for=good_for)


async def tell(tx: Tx, email: str, what: str, **values: str) -> None:
    """Tell somebody of a change to the account that may have been made by somebody else."""

    def letter(words: Words) -> tuple[str, str]:
        told = words.text(what, **values)
        text = words.text(
            "This has just happened to your account:\n\n    {what}\n\n"
            "If it was you, there is nothing to do. If it was not, choose a new password at once and tell the people"
            " who run this service.",
            what=told,
        )
        return words.text("Your account: {what}", what=told), f"{text}\n"

    await readers.write(tx, await readers.by_address(tx, [email]), letter)


async def tell_approvers(tx: Tx, emails: Collection[str], letter: Letter) -> None:
    """Tell those who approve of something that decides who, or what, needs a second person."""

    def signed(words: Words) -> tuple[str, str]:
        subject, text = letter(words)
        why = words.text(
            "You get this because you may approve. If it was not agreed on, speak to your colleagues and to the people"
            " who run this service at once."
        )
        return subject, f"{text}\n\n{why}\n"

    await readers.write(tx, await readers.by_address(tx, emails), signed)


def rests(what: str, email: str, role: str, by: str, until: datetime) -> Letter:
    """Somebody is new where two people are needed: `what` says in which way."""

    def letter(words: Words) -> tuple[str, str]:
        told = words.text(what, email=email)
        text = words.text(
            "{what}. Role: {role}. By: {by}.\n\n"
            "Until {when} this person can't approve anything, unless another one of you confirms it on the page where"
            " approvals wait.",
            what=told,
            role=words.find(role.capitalize()),
            by=by,
            when=words.moment_and_zone(until),
        )
        return told, text

    return letter


def confirmed(email: str, role: str, by: str) -> Letter:
    """Somebody who was new may approve at once."""

    def letter(words: Words) -> tuple[str, str]:
        text = words.text(
            "{by} has confirmed {email}. Role: {role}.",
            by=by,
            email=email,
            role=words.find(role.capitalize()),
        )
        return words.text("{email} was confirmed", email=email), text

    return letter
