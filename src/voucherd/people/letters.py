"""What people are told by mail about their own account."""

from __future__ import annotations

from collections.abc import Sequence

from voucherd.db import Pool, Tx, transaction
from voucherd.mail import outbox
from voucherd.people import links
from voucherd.people.links import LIVES, LinkKind


async def answer_resets(pool: Pool, public_url: str) -> int:
    """Mail a link to everybody who wants a new password and has an account; how many requests there were."""
    async with transaction(pool) as tx:
        count, holders = await links.take_requests(tx)
        for holder in holders:
            link = await links.make(tx, holder.user_id, LinkKind.RESET)
            if link is not None:
                await outbox.write(
                    tx,
                    [holder.email],
                    "A new password",
                    "Someone, probably you, wants a new password for your account. Choose it here,"
                    " within 30 minutes:\n\n"
                    f"    {public_url}/reset/{outbox.LINK}\n\n"
                    "The link works once. If it was not you, do nothing: your password stays as it is.\n",
                    link=link,
                    good_for=LIVES[LinkKind.RESET],
                )
    return count


async def invite(tx: Tx, public_url: str, email: str, link: bytes | None, *, where: str, by: str) -> None:
    """Mail an invitation to somebody who has just been added; without a link where the address has an account."""
    if link is None:
        what = (
            "This address has an account already, and an address belongs to one team at a time, so nothing has"
            " changed for you. If you want to join, tell them another address of yours."
        )
    else:
        what = (
            f"Choose a password here within 7 days:\n\n    {public_url}/invitation/{outbox.LINK}\n\n"
            "The link works once."
        )
    await outbox.write(
        tx,
        [email],
        f"An invitation to {where}",
        f"{by} has invited you to {where}. {what} If you don't know what this is about, do nothing.\n",
        link=link,
        good_for=LIVES[LinkKind.INVITATION],
    )


async def tell(tx: Tx, email: str, what: str) -> None:
    """Tell somebody of a change to the account that may have been made by somebody else."""
    await outbox.write(
        tx,
        [email],
        f"Your account: {what}",
        f"This has just happened to your account:\n\n    {what}\n\n"
        "If it was you, there is nothing to do. If it was not, choose a new password at once and tell the people who "
        "run this service.\n",
    )


async def tell_approvers(tx: Tx, emails: Sequence[str], subject: str, text: str) -> None:
    """Tell those who approve of something that decides who, or what, needs a second person."""
    await outbox.write(
        tx,
        emails,
        subject,
        f"{text}\n\nYou get this because you may approve. If it was not agreed on, speak to your colleagues and to the"
        " people who run this service at once.\n",
    )
