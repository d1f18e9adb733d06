"""What those who may approve are told by mail."""

from __future__ import annotations

from collections.abc import Sequence

from voucherd.approvals.model import Approval
from voucherd.db import Tx
from voucherd.ids import State
from voucherd.people import readers
from voucherd.words import Words


async def ask(tx: Tx, recipients: Sequence[str], approval: Approval) -> None:
    """Tell those who may approve that an order waits for one of them."""

    def letter(words: Words) -> tuple[str, str]:
        amount = words.amount(approval.money)
        text = words.text(
            "{who} wants to confirm an order of {amount}. At {company} that needs the approval of a colleague.\n\n"
            "Approve or reject it until {when}:\n\n    {link}",
            who=approval.requester,
            amount=amount,
            company=approval.company,
            when=words.moment_and_zone(approval.ends_at),
            link=readers.portal(approval.state, "/approvals"),
        )
        if approval.state is State.SANDBOX:
            text += "\n\n" + words.text("This is an order of the sandbox: no money moves.")
        return words.text("An order of {amount} waits for your approval", amount=amount), f"{text}\n"

    await readers.write(tx, await readers.by_address(tx, recipients), letter)
