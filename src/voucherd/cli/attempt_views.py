"""How purchases look, to people and to programs. Never a code."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from rich.console import RenderableType

from voucherd.cli.output import Output, stacked, table
from voucherd.cli.output import record as pairs_of
from voucherd.cli.supplier_views import span
from voucherd.cli.words import decimal
from voucherd.ids import Identifiers
from voucherd.money import Money
from voucherd.purchasing.attempts import AttemptPhase
from voucherd.purchasing.records import ID_DIGITS_MIN, BoughtFor, BoughtLot, Deed, Record

_DEEDS: Final = {
    "attempt.settled": "settled",
    "attempt.retried": "asked again",
    "attempt.revealed": "read the quarantined codes",
}


def listed(found: Sequence[Record], *, more: bool) -> Output:
    """Purchases, newest first."""
    view: list[RenderableType] = [
        table(
            ["id", "supplier", "status", ">codes", "problem", "~reason", "?placed", "?>cost"],
            [
                (
                    str(one.id)[:ID_DIGITS_MIN],
                    one.supplier,
                    _word(one),
                    f"{one.codes}/{one.count}",
                    ", ".join(one.problems),
                    one.reason,
                    one.placed_at,
                    _spare_cost(one, " spare") or _cost(one),
                )
                for one in found
            ],
            empty="No purchases.",
        )
    ]
    if more:
        view.append(f"… perhaps more (--before {found[-1].id})")
    return Output([document(one) for one in found], stacked(*view))


def shown(
    one: Record,
    lines: Sequence[BoughtFor],
    lots: Sequence[BoughtLot],
    deeds: Sequence[Deed],
    names: Identifiers,
    now: datetime,
) -> Output:
    """A purchase with all that belongs to it."""
    trxs = {line.order_id: names.trx_unkept(line.order_id) for line in lines}
    told = document(one) | {
        "lines": [
            {
                "trx": trxs[line.order_id],
                "company": line.company,
                "lineFrom": line.line_from + 1,
                "lineTo": line.line_to,
                "waiting": line.waiting,
            }
            for line in lines
        ],
        "lots": [_lot(lot) for lot in lots],
        "history": [{"at": deed.at, "type": deed.type} | deed.data for deed in deeds],
    }
    orders = table(
        ["order", "?company", ">lines", "standing"],
        [
            (
                trxs[line.order_id],
                line.company,
                _range(line),
                f"{line.waiting} wait for it" if line.waiting else "over",
            )
            for line in lines
        ],
        empty="",
    )
    view: list[RenderableType] = [pairs_of(_pairs(one, now)), "", orders]
    if lots:
        view += ["", _lots(lots)]
    if deeds:
        view += ["", _history(deeds)]
    return Output(told, stacked(*view))


def document(one: Record) -> dict[str, Any]:
    """A purchase for programs."""
    currency = one.cost_currency

    def cost(minor: int) -> Decimal | None:
        return None if currency is None else decimal(minor, currency)

    return {
        "attempt": str(one.id),
        "supplier": one.supplier,
        "state": one.state.word,
        "status": _word(one),
        "problems": [problem.value for problem in one.problems],
        "product": one.slug,
        "sku": one.sku,
        "faceValue": decimal(one.face_minor, one.face_currency),
        "faceValueCurrency": one.face_currency,
        "count": one.count,
        "codes": one.codes,
        "spare": one.spare,
        "quarantined": one.quarantined,
        "linesWaiting": one.waiting,
        "urgent": one.urgent,
        "quotedPrice": decimal(one.price_minor, one.currency),
        "highestPrice": decimal(one.price_max_minor, one.currency),
        "priceCurrency": one.currency,
        "cost": cost(one.cost_minor),
        "spareCost": cost(one.spare_cost_minor),
        "costCurrency": currency,
        "externalId": one.external_id,
        "reason": one.reason,
        "settledBy": one.settled_by,
        "lookUps": one.look_ups,
        "callMs": one.call_ms,
        "placedAt": one.placed_at,
        "settlesAt": one.settles_at,
        "askAt": one.ask_at,
        "endedAt": one.ended_at,
    }


def _word(one: Record) -> str:
    return one.phase.name.lower()


def _cost(one: Record) -> Money | None:
    return None if one.cost_currency is None else Money(one.cost_minor, one.cost_currency)


def _spare_cost(one: Record, word: str = "") -> str | None:
    if one.cost_currency is None or not one.spare:
        return None
    return f"{Money(one.spare_cost_minor, one.cost_currency)}{word}"


def _pairs(one: Record, now: datetime) -> list[tuple[str, object]]:
    what = f"{one.count} × {one.slug} of {Money(one.face_minor, one.face_currency)}"
    quoted, highest = Money(one.price_minor, one.currency), Money(one.price_max_minor, one.currency)
    pairs: list[tuple[str, object]] = [
        ("purchase", one.id),
        ("supplier", f"{one.supplier}, {one.state.word}"),
        ("what", f"{what}, there {one.sku}"),
        ("quoted", f"{quoted} each, at most {highest}"),
        ("status", _word(one) + (f" ({', '.join(one.problems)})" if one.problems else "")),
        ("codes", f"{one.codes} of {one.count}, {one.spare} spare, {one.quarantined} in quarantine"),
        ("cost", _cost(one)),
        ("spare cost", _spare_cost(one)),
        ("lines waiting", one.waiting),
        ("their id", one.external_id),
        ("reason", one.reason),
        (
            "placed",
            f"{one.placed_at:%Y-%m-%d %H:%M:%S} UTC, {span(now - one.placed_at)} ago, by {one.worker}",
        ),
        ("call", None if one.call_ms is None else f"{one.call_ms:,} ms"),
        ("look-ups", one.look_ups),
    ]
    if one.phase in (AttemptPhase.CALLING, AttemptPhase.ASKING, AttemptPhase.UNKNOWN):
        pairs.append(("settles", f"{one.settles_at:%Y-%m-%d %H:%M:%S} UTC"))
    if one.ask_at is not None:
        pairs.append(("asked next", f"{one.ask_at:%Y-%m-%d %H:%M:%S} UTC"))
    if one.ended_at is not None:
        pairs.append(("ended", f"{one.ended_at:%Y-%m-%d %H:%M:%S} UTC"))
    if one.settled_by is not None:
        pairs.append(("settled by", one.settled_by))
    return pairs


def _range(line: BoughtFor) -> str:
    first, last = line.line_from + 1, line.line_to
    return str(first) if first == last else f"{first}–{last}"


def _lots(lots: Sequence[BoughtLot]) -> RenderableType:
    return table(
        [">lot", ">codes", ">spare", ">price", "expires", "came"],
        [
            (
                lot.id,
                lot.size,
                lot.spare,
                Money(lot.purchase_minor, lot.currency),
                lot.expires_at and f"{lot.expires_at:%Y-%m-%d}",
                lot.imported_at,
            )
            for lot in lots
        ],
        empty="",
    )


def _lot(lot: BoughtLot) -> dict[str, Any]:
    return {
        "lot": lot.id,
        "size": lot.size,
        "spare": lot.spare,
        "purchasePrice": decimal(lot.purchase_minor, lot.currency),
        "purchaseCurrency": lot.currency,
        "expiresAt": lot.expires_at,
        "importedAt": lot.imported_at,
    }


def _history(deeds: Sequence[Deed]) -> RenderableType:
    return table(
        ["when", "who", "did", "~note"],
        [(deed.at, deed.data.get("by"), _deed(deed), deed.data.get("note")) for deed in deeds],
        empty="",
    )


def _deed(deed: Deed) -> str:
    word = _DEEDS.get(deed.type, deed.type)
    return f"{word}: {deed.data['from']} to {deed.data['to']}" if "to" in deed.data else word
