"""What a buyer is told by mail about the links of an order."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from voucherd.db import Tx
from voucherd.people import readers
from voucherd.recipients.vouchers import Voucher
from voucherd.words import Words

_ROLES: Final = ("owner", "buyer")


async def tell_of_guesses(tx: Tx, voucher: Voucher, trx: str, until: datetime) -> None:
    """Tell owners and buyers that somebody tries PINs at the links of an order, which wait now."""

    def letter(words: Words) -> tuple[str, str]:
        text = words.text(
            "Somebody has entered wrong PINs at the redemption links of this order:\n\n    {link}\n\n"
            "None of its links shows a code before {when}. If your recipients have the wrong PIN, set another one:"
            " it counts at once. If they have the right one, somebody else has a link.",
            link=readers.portal(voucher.state, f"/orders/{trx}/links"),
            when=words.moment_and_zone(until),
        )
        return words.text("Wrong PINs at the links of an order"), f"{text}\n"

    await readers.write(tx, await readers.of_company(tx, voucher.company_id, _ROLES), letter)
