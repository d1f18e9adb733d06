"""Recipients open their links and have the code shown; the PIN of the sender may stand before it."""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from voucherd import clock
from voucherd.actors import ActorKind
from voucherd.archive.reader import ArchiveReader
from voucherd.db import Pool, transaction
from voucherd.ids import Identifiers, derive
from voucherd.limits import allowances, throttle
from voucherd.limits.throttle import TooManyTries
from voucherd.networks import network_of
from voucherd.recipients import letters, pins, vouchers
from voucherd.recipients.pins import OF_NETWORK, PinCheck, Pins, Tried
from voucherd.recipients.vouchers import Voucher, VoucherStatus
from voucherd.vault import reveals
from voucherd.vault import store as vault
from voucherd.vault.model import Reveal, Via, Viewer
from voucherd.vault.seal import Sealer

FORM_S_MAX: Final = 3_600
"""So long a page may be open before its button has to be loaded anew."""
PIN_CHARS_MAX: Final = 100


class ShownVoucher(Struct, frozen=True):
    """A voucher with its code."""

    voucher: Voucher
    code: str
    serial: str


class Closed(Struct, frozen=True):
    """A voucher whose code is not shown, and what became of the PIN that was tried, if one was."""

    voucher: Voucher
    tried: Tried | None = None


def _reveal(voucher: Voucher, address: str) -> Reveal:
    viewer = Viewer(ActorKind.RECIPIENT, None, address)
    return Reveal(voucher.order_id, voucher.company_id, 1, Via.REDEMPTION, viewer, voucher.line)


class Recipients:
    """Everything that can be done with a link."""

    def __init__(
        self,
        pool: Pool,
        sealer: Sealer,
        ids: Identifiers,
        master: bytes,
        archive: ArchiveReader | None = None,
    ) -> None:
        self._pool = pool
        self._archive = archive
        self._sealer = sealer
        self._ids = ids
        self._form_key = derive(master, "recipient/form")
        self.pins = Pins(master)

    async def open(self, token: str, *, person: bool, sender_id: int | None = None) -> Closed | None:
        """The voucher behind a link; None where there is none.

        Only a person's visit is remembered, and not that of somebody of the company that bought it.
        """
        place = self._ids.line_of_token(token)
        if place is None:
            return None
        voucher = await vouchers.look(self._pool, *place, self._archive)
        if voucher is None:
            return None
        async with self._pool.acquire() as conn:
            if person and voucher.company_id != sender_id:
                await vouchers.note_opened(conn, voucher)
            until = (await pins.guesses(conn, place[0])).blocked_until if voucher.has_pin else None
        return Closed(voucher, None if until is None else Tried(PinCheck.NOT_NOW, blocked_until=until))

    async def reveal(self, token: str, pin: str, address: str) -> ShownVoucher | Closed | None:
        """The code, if the voucher has one to show and the PIN is right. It is written down before it is read."""
        place = self._ids.line_of_token(token)
        if place is None:
            return None
        voucher = await vouchers.look(self._pool, *place, self._archive)
        if voucher is None or voucher.standing is not VoucherStatus.READY:
            return None if voucher is None else Closed(voucher)
        network = allowances.key_of(OF_NETWORK, network_of(address))
        if voucher.has_pin:
            try:
                await throttle.take(self._pool, {network: OF_NETWORK})
            except TooManyTries as pause:
                until = clock.now() + timedelta(seconds=pause.wait_s)
                return Closed(voucher, Tried(PinCheck.NOT_NOW, blocked_until=until))
        tried = await self._try(voucher, pin, address)
        if voucher.has_pin and tried.told is not PinCheck.WRONG:
            await throttle.forgive(self._pool, (), [network])
        return await self._opened(voucher) if tried.told is PinCheck.RIGHT else Closed(voucher, tried)

    async def _try(self, voucher: Voucher, pin: str, address: str) -> Tried:
        """What became of the PIN; a right one is written down as a look at the code, a pause is told to the buyer."""
        async with transaction(self._pool) as tx:
            tried = await self.pins.tried(tx, voucher.order_id, voucher.line, pin[:PIN_CHARS_MAX])
            if tried.told is PinCheck.RIGHT:
                await vouchers.note_shown(tx, voucher)
                await reveals.write(tx, [_reveal(voucher, address)])
            elif tried.told is PinCheck.WRONG and tried.blocked_until is not None:
                await letters.tell_of_guesses(
                    tx, voucher, self._ids.trx(voucher.order_id), tried.blocked_until
                )
        return tried

    async def _opened(self, voucher: Voucher) -> ShownVoucher:
        assert voucher.place is not None
        lot_id, seq = voucher.place
        async with self._pool.acquire() as conn:
            (((code, serial),),) = await vault.read_codes(conn, self._sealer, [(lot_id, seq, seq + 1)])
        return ShownVoucher(voucher, code, serial)

    def form_word(self, token: str, now: datetime) -> str:
        """What the button of a link's page sends along: only a page of ours can know it, and not for long."""
        ends = int(now.timestamp()) + FORM_S_MAX
        return f"{ends:x}.{self._signed(token, ends)}"

    def form_fits(self, token: str, word: str, now: datetime) -> bool:
        """Whether the word comes from the page of this link, and not from one that is too old."""
        ends_hex, _, signature = word.partition(".")
        try:
            ends = int(ends_hex[:16], 16)
        except ValueError:
            return False
        signed = hmac.compare_digest(signature.encode(), self._signed(token, ends).encode())
        return signed and now.timestamp() <= ends

    def _signed(self, token: str, ends: int) -> str:
        return hmac.digest(self._form_key, f"{token}/{ends:x}".encode(), hashlib.sha256).hex()
