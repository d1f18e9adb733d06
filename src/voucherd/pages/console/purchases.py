"""Purchases that need a hand: what became of each, asking again, and settling what nobody can tell."""

from __future__ import annotations

import asyncio
import io
import re
from typing import Any, Final

from voucherd.catalogue.rules import BadProduct
from voucherd.catalogue.texts import read_amount
from voucherd.db import Connection
from voucherd.http import Response
from voucherd.money import Money
from voucherd.orders.model import Order
from voucherd.orders.store import OrderCaches
from voucherd.pages.console import settling
from voucherd.pages.render import qualified, render
from voucherd.pages.visit import Visit, missing, see_other
from voucherd.purchasing import attempts, by_hand, records
from voucherd.purchasing.attempts import Attempt, AttemptPhase
from voucherd.purchasing.by_hand import BadCodes, BadHand, TooEarly, TooManyCodes, masked
from voucherd.purchasing.outcomes import AttemptClosed, Hand, NothingNew
from voucherd.purchasing.records import ID_DIGITS, PurchaseProblem, Record
from voucherd.suppliers import registry
from voucherd.suppliers import store as supplier_store
from voucherd.suppliers.protocol import EXTERNAL_ID_CHARS_MAX, SURPLUS_MAX, Bought
from voucherd.suppliers.stocking import NoRateFor

PATH: Final = "/console/purchases"
PAGE_SIZE: Final = 50

_PHASES: Final = {phase.name.lower(): phase for phase in AttemptPhase}
_ID: Final = re.compile(rf"[0-9a-f]{{{ID_DIGITS}}}")


class Wrong(Exception):
    """A field of the form that can't be used."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field
        self.text = text


async def purchases(visit: Visit) -> Response:
    """Purchases that need a hand, or any others; newest first."""
    problem = visit.query.get("problem", "any" if visit.query.get("supplier") else "unknown")
    supplier, status = visit.query.get("supplier"), visit.query.get("status")
    async with visit.pool.acquire() as conn:
        known = [row.name for row in await supplier_store.suppliers(conn) if row.state is visit.state]
        found = await records.newest(
            conn,
            supplier=supplier if supplier in known else None,
            phase=_PHASES.get(status),
            problem=PurchaseProblem(problem) if problem in set(PurchaseProblem) else None,
            state=visit.state,
            before=await before_of(conn, visit),
            limit=PAGE_SIZE + 1,
        )
    page = found[:PAGE_SIZE]
    given = {"problem": problem, "supplier": supplier, "status": status}
    onward = qualified(PATH, given | {"before": page[-1].id}) if page else ""
    return render(
        "console/purchases.html",
        visit,
        rows=page,
        given=given,
        problems=[
            ("unknown", "Need a hand"),
            ("any", "Any"),
            *((p, p) for p in PurchaseProblem if p != "unknown"),
        ],
        suppliers=[("", "Every supplier"), *((name, name) for name in known)],
        statuses=[("", "Any"), *((word, word) for word in _PHASES)],
        after=onward if len(found) > PAGE_SIZE else "",
    )


async def purchase(visit: Visit) -> Response:
    """One purchase: for whom it was made, what it brought, and what people did about it."""
    async with visit.pool.acquire() as conn:
        record, attempt = await _both(conn, visit)
        row = await supplier_store.supplier(conn, record.supplier)
        lines = await records.bought_for(conn, record.id)
        facts: dict[str, Any] = {
            "lots": await records.lots(conn, record.id),
            "deeds": await records.deeds(conn, record.id),
        }
    kept = await by_hand.quarantined(visit.pool, visit.services.sealer, attempt, _hand(visit), reveal=False)
    facts["quarantined"] = [(masked(one.code), masked(one.serial), one.reason, one.at) for one in kept]
    facts["lines"] = [(visit.services.ids.trx_unkept(line.order_id), line) for line in lines]
    facts["can_ask"] = record.phase is AttemptPhase.UNKNOWN and registry.can_look_up(row.kind, row.config)
    facts["can_settle"] = settling.can_be_settled(record)
    facts["price"] = Money(record.price_minor, record.currency)
    facts["price_max"] = Money(record.price_max_minor, record.currency)
    facts["face"] = Money(record.face_minor, record.face_currency)
    return render("console/purchase.html", visit, one=record, **facts)


async def ask(visit: Visit) -> Response:
    """Ask the supplier once more what became of it. Nothing is bought."""
    async with visit.pool.acquire() as conn:
        record, attempt = await _both(conn, visit)
        row = await supplier_store.supplier(conn, record.supplier)
    back = see_other(f"{PATH}/{record.id}")
    if not registry.can_look_up(row.kind, row.config):
        visit.tell(f"{row.name} can’t be asked about purchases: settle it by hand.", "bad")
        return back
    try:
        await by_hand.retry(visit.pool, attempt, _hand(visit))
    except AttemptClosed as refused:
        visit.tell(settling.standing_words(record, refused.phase), "bad")
        return back
    visit.tell(f"{row.name} is asked again now.")
    return back


async def settle_page(visit: Visit) -> Response:
    """What settling would do to money and codes, and the two forms that do it."""
    return await _settle_form(visit)


async def settle_failed(visit: Visit) -> Response:
    """Nothing (more) was bought: its lines are bought elsewhere, or refunded."""
    async with visit.pool.acquire() as conn:
        record, attempt = await _both(conn, visit)
    try:
        caches, hand = OrderCaches.empty(visit.services.settings), _reason(visit, "failed_note")
        moved = await by_hand.fail(visit.pool, caches, attempt, hand)
    except Wrong as wrong:
        return await _settle_form(visit, {wrong.field: wrong.text})
    except (AttemptClosed, TooEarly) as refused:
        return _refused(visit, record, refused)
    return await _settled(visit, record, moved)


async def settle_bought(visit: Visit) -> Response:
    """These codes were bought: they are stored and delivered like any others."""
    async with visit.pool.acquire() as conn:
        record, attempt = await _both(conn, visit)
    try:
        caches, hand = OrderCaches.empty(visit.services.settings), _reason(visit, "bought_note")
        bought = await _bought(visit)
        moved = await by_hand.receive(visit.pool, caches, visit.services.sealer, attempt, bought, hand)
    except Wrong as wrong:
        return await _settle_form(visit, {wrong.field: wrong.text})
    except NoRateFor as missing:
        text = f"There is no exchange rate for {missing.currency}."
        return await _settle_form(visit, {"price": text})
    except NothingNew:
        text = "None of these codes can be taken: they are known, malformed or expired."
        return await _settle_form(visit, {"codes": text})
    except TooManyCodes:
        text = f"{attempt.count} were asked for: at most {attempt.count + SURPLUS_MAX} are believed."
        return await _settle_form(visit, {"codes": text})
    except AttemptClosed as refused:
        return _refused(visit, record, refused)
    return await _settled(visit, record, moved)


async def before_of(conn: Connection, visit: Visit) -> Record | None:
    """The purchase that the page before ended with."""
    digits = visit.query.get("before").replace("-", "")
    found = await records.find(conn, digits) if _ID.fullmatch(digits) else []
    return found[0] if found else None


async def _both(conn: Connection, visit: Visit) -> tuple[Record, Attempt]:
    """The purchase as the operator sees it, and as the dispatcher does."""
    digits = visit.parameters["purchase"].replace("-", "")
    found = await records.find(conn, digits) if _ID.fullmatch(digits) else []
    attempt = await attempts.find(conn, found[0].id) if found else None
    if attempt is None:
        raise missing()
    return found[0], attempt


async def _bought(visit: Visit) -> Bought:
    """What the form says was bought: codes from a file or from the field, each code once."""
    file, text = visit.files.get("file"), visit.form.raw("codes")
    content = file.content if file is not None and file.content else text.replace("\r\n", "\n").encode()
    try:
        codes = await asyncio.to_thread(by_hand.read_codes, io.BytesIO(content))
    except BadCodes as bad:
        first = "".join(f" Line {line.line}: {line.reason}." for line in bad.bad[:3])
        words = str(bad)
        raise Wrong("codes", f"{words[:1].upper()}{words[1:]}.{first}") from None
    external_id = visit.form.get("external_id") or None
    if external_id is not None and len(external_id) > EXTERNAL_ID_CHARS_MAX:
        raise Wrong("external_id", f"Must be at most {EXTERNAL_ID_CHARS_MAX} characters.")
    return Bought(codes, external_id, _price(visit.form.get("price")))


def _price(text: str) -> Money | None:
    try:
        return read_amount("price", text) if text else None
    except BadProduct:
        raise Wrong("price", "Must be an amount and a currency, such as 9.10 EUR.") from None


def _hand(visit: Visit, note: str = "") -> Hand:
    return by_hand.hand_of(visit.actor, visit.someone.email[: by_hand.BY_CHARS_MAX], note)


def _reason(visit: Visit, field: str) -> Hand:
    """Who settles it, with the reason that the form gives."""
    try:
        hand = _hand(visit, visit.form.get(field))
    except BadHand:
        hand = None
    if hand is None or not hand.note:
        most = by_hand.NOTE_CHARS_MAX
        raise Wrong(field, f"Say why, in 1 to {most} characters on one line: it is written down.")
    return hand


def _refused(visit: Visit, record: Record, refused: AttemptClosed | TooEarly) -> Response:
    if isinstance(refused, TooEarly):
        at = f"{record.settles_at:%H:%M:%S}"
        text = f"A request may be on its way to {record.supplier} until {at} UTC: it could be bought twice."
    else:
        text = settling.standing_words(record, refused.phase)
    return visit.go(f"{PATH}/{record.id}", text, "bad")


async def _settled(visit: Visit, before: Record, moved: list[Order]) -> Response:
    for order in moved:
        visit.services.orders.watch.wake(order.id)
    async with visit.pool.acquire() as conn:
        after = (await records.find(conn, before.id.hex))[0]
    return visit.go(f"{PATH}/{before.id}", by_hand.settled_words(before, after))


async def _settle_form(visit: Visit, problems: dict[str, str] | None = None) -> Response:
    async with visit.pool.acquire() as conn:
        record, attempt = await _both(conn, visit)
        at_stake = await settling.at_stake(conn, record)
    if not settling.can_be_settled(record):
        return visit.go(f"{PATH}/{record.id}", settling.standing_words(record, record.phase), "bad")
    return render(
        "console/settle.html",
        visit,
        status=422 if problems else 200,
        one=record,
        settled=attempt.settled,
        at_stake=at_stake,
        quoted=Money(record.price_minor, record.currency),
        face=Money(record.face_minor, record.face_currency),
        problems=problems or {},
        # Never the codes themselves: they are bearer secrets, and are pasted again.
        values={
            name: visit.form.get(name) for name in ("failed_note", "bought_note", "price", "external_id")
        },
    )
