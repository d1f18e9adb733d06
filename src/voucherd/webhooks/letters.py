"""What the people of a company are told about its endpoints."""

from __future__ import annotations

from typing import Final

from voucherd.db import Tx
from voucherd.ids import State
from voucherd.mail import outbox

_WHY: Final = {
    "gone": "it answered 410 Gone",
    "failing": "every delivery to it has failed for five days",
}


async def tell_disabled(tx: Tx, company_id: int, state: State, url: str, reason: str) -> None:
    """Tell owners and developers that nothing is sent to this address any more."""
    people = await tx.fetch(
        """
        SELECT email FROM app_user WHERE company_id = $1 AND role IN ('owner', 'developer') AND active
          AND invited_as IS NULL
        ORDER BY email LIMIT $2
        """,
        company_id,
        outbox.RECIPIENTS_MAX,
    )
    await outbox.write(
        tx,
        [row["email"] for row in people],
        f"Webhook endpoint disabled ({state.word})",
        f"We have stopped sending {state.word} events to\n\n    {url}\n\nbecause {_WHY[reason]}.\n\n"
        "Once it works again, enable the endpoint and ask for what it missed:\n"
        "PATCH webhook/{id} with enabled: true, then POST webhook/{id}/recover?since=...\n",
    )
