"""What a buyer is told by mail about the links of an order."""

from __future__ import annotations

from datetime import datetime

from voucherd.db import Tx
from voucherd.mail import outbox
from voucherd.recipients.vouchers import Voucher


async def tell_of_guesses(tx: Tx, voucher: Voucher, trx: str, until: datetime) -> None:
    """Tell owners and buyers that somebody tries PINs at the links of an order, which wait now."""
    people = await tx.fetch(
        """
        SELECT email FROM app_user WHERE company_id = $1 AND role IN ('owner', 'buyer') AND active
        ORDER BY email LIMIT $2
        """,
        voucher.company_id,
        outbox.RECIPIENTS_MAX,
    )
    await outbox.write(
        tx,
        [row["email"] for row in people],
        "Wrong PINs at the links of an order",
        f"Somebody has tried wrong PINs at the redemption links of this order ({voucher.state.word}):\n\n"
        f"    {trx}\n\n"
        f"None of its links shows a code before {until:%Y-%m-%d %H:%M} UTC. If your recipients have the wrong PIN, set "
        "another one on the order's page of links: it counts at once. If they have not, somebody else has a link.\n",
    )
