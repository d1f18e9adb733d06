"""What the people of a company are told about its endpoints."""

from __future__ import annotations

from typing import Final

from voucherd.db import Tx
from voucherd.ids import State
from voucherd.people import readers
from voucherd.words import Words, phrase

_ROLES: Final = ("owner", "developer")
WHY_DISABLED: Final = {
    "gone": phrase("It answered “410 Gone”."),
    "failing": phrase("Every delivery to it has failed for five days."),
}


async def tell_disabled(tx: Tx, company_id: int, state: State, url: str, reason: str) -> None:
    """Tell owners and developers that nothing is sent to this address any more."""

    def letter(words: Words) -> tuple[str, str]:
        text = words.text(
            "We have stopped sending events to this webhook endpoint:\n\n    {url}\n\n{why}\n\n"
            "Once it works again, enable it and send what it missed:\n\n    {link}",
            url=url,
            why=words.text(WHY_DISABLED[reason]),
            link=readers.portal(state, "/webhooks"),
        )
        if state is State.SANDBOX:
            return words.text("Webhook endpoint disabled (sandbox)"), f"{text}\n"
        return words.text("Webhook endpoint disabled"), f"{text}\n"

    await readers.write(tx, await readers.of_company(tx, company_id, _ROLES), letter)
