"""What those who may approve are told by mail."""

from __future__ import annotations

from collections.abc import Sequence

from voucherd.approvals.model import Approval
from voucherd.db import Tx
from voucherd.mail import outbox


async def ask(tx: Tx, recipients: Sequence[str], approval: Approval) -> None:
    """Tell those who may approve that an order waits for one of them."""
    await outbox.write(
        tx,
        recipients,
        f"An order of {approval.money} waits for approval",
        f"{approval.requester} wants to confirm an order of {approval.money} ({approval.state.word}). At"
        f" {approval.company} that takes a second person.\n\n"
        "Sign in and look at Approvals: one of you can approve or reject it until"
        f" {approval.ends_at:%Y-%m-%d %H:%M} UTC.\n",
    )
