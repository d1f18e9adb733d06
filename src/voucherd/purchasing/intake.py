"""Taking in what a supplier sold us: which codes are new, which we had, and the lots they lie in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from operator import itemgetter

from msgspec import Struct

from voucherd.catalogue.store import brand_of
from voucherd.db import Tx
from voucherd.money import Money
from voucherd.purchasing.attempts import Attempt
from voucherd.suppliers.protocol import CODE_CHARS_MAX, EXTERNAL_ID_CHARS_MAX, SERIAL_CHARS_MAX, Bought, Code
from voucherd.vault import purchased as purchases
from voucherd.vault import serials
from voucherd.vault.model import Lot, selling_order
from voucherd.vault.seal import Sealer
from voucherd.vault.store import CodeRow, add_codes


class TakenLot(Struct, frozen=True):
    """A new lot, and its codes with their blinded forms, in order."""

    lot: Lot
    codes: list[tuple[bytes, Code]]


class CodeReceipt(Struct, frozen=True):
    """What of a supplier's answer is new to us."""

    lots: list[TakenLot]
    quarantined: int

    @property
    def count(self) -> int:
        """How many codes are new."""
        return sum(len(taken.codes) for taken in self.lots)


async def sort_out(
    tx: Tx, sealer: Sealer, attempt: Attempt, bought: Bought, now: datetime, cost: tuple[Money, int]
) -> CodeReceipt:
    """New codes in lots by their expiry; what can't be sold goes to quarantine, what came before is left out."""
    brand_id = await brand_of(tx, attempt.product_id)
    blinded = {sealer.blind(brand_id, code.code): code for code in bought.codes}
    held = await purchases.holders(tx, list(blinded))
    fresh: dict[datetime | None, list[tuple[bytes, Code]]] = {}
    aside: list[tuple[bytes, str, str]] = []
    for blind, code in blinded.items():
        reason = _unfit(code, now)
        if blind in held:
            # The same answer twice brings the same codes twice; the same code from two purchases is a fraud or a bug.
            if held[blind] != attempt.id:
                aside.append((blind, _text(code), "known"))
        elif reason is not None:
            aside.append((blind, _text(code), reason))
        else:
            fresh.setdefault(code.expires_at, []).append((blind, code))
    quarantined = await purchases.quarantine(tx, sealer, attempt.id, aside)
    price, fx_e8 = cost
    lot_ids = await purchases.draw_lot_ids(tx, len(fresh), attempt.state)
    lots = [
        TakenLot(
            Lot(
                lot_id,
                attempt.product_id,
                attempt.face_minor,
                attempt.state,
                0,
                len(codes),
                expires_at,
                price.minor,
                price.currency,
                fx_e8,
            ),
            codes,
        )
        for lot_id, (expires_at, codes) in zip(lot_ids, fresh.items(), strict=True)
    ]
    return CodeReceipt(sorted(lots, key=lambda taken: selling_order(taken.lot)), quarantined)


def _text(code: Code) -> str:
    return f"{code.code}\0{code.serial}"


def _unfit(code: Code, now: datetime) -> str | None:
    """Why a code can't be sold."""
    text, serial = code.code.strip(), code.serial.strip()
    if not 0 < len(text) <= CODE_CHARS_MAX or len(serial) > SERIAL_CHARS_MAX:
        return "malformed"
    if not text.isprintable() or not serial.isprintable():
        return "malformed"
    if code.expires_at is not None and code.expires_at <= now:
        return "expired"
    return None


async def put_away(
    tx: Tx,
    sealer: Sealer,
    attempt: Attempt,
    delivery: CodeReceipt,
    cursors: Mapping[int, int],
    external_id: str | None,
) -> int:
    """Store the lots and their codes; how many of them no line took, so that they stay on the shelf."""
    if not delivery.lots:
        return 0
    supplier = await tx.fetchval("SELECT name FROM supplier WHERE id = $1", attempt.supplier_id)
    spares = [taken.lot.size - cursors.get(taken.lot.id, 0) for taken in delivery.lots]
    await purchases.add_bought_lots(
        tx,
        [taken.lot for taken in delivery.lots],
        spares,
        supplier=supplier,
        attempt_id=attempt.id,
        external_id=None if external_id is None else external_id[:EXTERNAL_ID_CHARS_MAX],
        key_version=sealer.version,
    )
    rows: list[CodeRow] = [
        (taken.lot.id, seq, sealer.seal(taken.lot.id, seq, code.code.strip(), code.serial.strip()), blind)
        for taken in delivery.lots
        for seq, (blind, code) in enumerate(taken.codes)
    ]
    # In one order everywhere, so that two purchases with the same codes can't deadlock.
    await add_codes(tx, sorted(rows, key=itemgetter(3)))
    found = (
        (taken.lot.id, seq, code.serial.strip().encode())
        for taken in delivery.lots
        for seq, (_, code) in enumerate(taken.codes)
    )
    await serials.note(tx, serials.encoded(sealer, found))
    return sum(spares)
