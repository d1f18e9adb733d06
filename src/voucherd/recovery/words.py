"""What the operator does after a recovery, and what clients are told, in words. Pure."""

from __future__ import annotations

from datetime import datetime


def client_letter(moment: datetime, until: datetime) -> str:
    """The text for clients, to be sent as it is or changed."""
    return (
        f"We had to restore our order service to {moment:%Y-%m-%d %H:%M:%S} UTC. Whatever was done between then and "
        f"{until:%Y-%m-%d %H:%M:%S} UTC is unknown to it.\n"
        "- Orders created in that time are gone: their trx answers 404. Codes that you received for them are yours; "
        "tell us the trx and the codes' serials, so that we can charge them.\n"
        "- Orders created before and confirmed or cancelled in that time are open again. Do not confirm again what you "
        "have received codes for.\n"
        "- An Idempotency-Key of that time is unknown: a repeated call is a new one.\n"
        "- Your balance is that of the moment, without top-ups and purchases after it. Please compare.\n"
        "- Webhooks may come again, with ids that you know. No trx, order number or id of an event of that time is "
        "given to anything else.\n"
        "- API keys, people and webhook endpoints are as they were at the moment."
    )


OPERATOR_STEPS = (
    "Run `voucherd audit`, then start the servers and workers.",
    "Top-ups after the moment are lost: enter them again from the bank's statement, under their references.",
    "Sales after the moment are lost: correct the wallets of clients that report codes which they received.",
    "Codes imported after the moment are unknown: before a file is imported again, take out what was sold of it.",
    "Codes bought after the moment are unknown: `voucherd supplier reconcile` finds what suppliers charge for them.",
    "API keys, people and roles that were revoked after the moment are back: revoke them again.",
    "Codes that prove unsold go back on the shelf: `voucherd stock withheld`, `voucherd stock release LOT --sold N`.",
)
"""What is left to do by hand, in this order."""
