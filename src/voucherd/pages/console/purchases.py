"""Purchases that need a hand: what became of each, asking again, and settling what nobody can tell."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from msgspec import Struct

from voucherd.catalogue.cache import VersionCache
from voucherd.catalogue.rules import BadProduct
from voucherd.catalogue.texts import read_amount
from voucherd.db import Connection
from voucherd.http import Response
from voucherd.ids import State
from voucherd.money import Money
from voucherd.orders import reading
from voucherd.orders.caches import OrderCaches
from voucherd.orders.model import Order
from voucherd.pages.console.inputs import FILE_ROWS_MAX, product_names
from voucherd.pages.console.orders import names_at
from voucherd.pages.console.purchase_words import PHASES, PROBLEMS, reason_words
from voucherd.pages.forms import sentence
from voucherd.pages.render import qualified, render, sheet
from voucherd.pages.visit import Visit, missing, see_other
from voucherd.purchasing import attempts, by_hand, records
from voucherd.purchasing.attempts import Attempt, AttemptPhase
from voucherd.purchasing.by_hand import BadCodes, BadHand, TooEarly, TooManyCodes, masked
from voucherd.purchasing.outcomes import AttemptClosed, Hand, NothingNew
from voucherd.purchasing.records import ID_DIGITS, PurchaseProblem, Record
from voucherd.sheets.writing import Row
from voucherd.sorting import chosen
from voucherd.suppliers import registry
from voucherd.suppliers import store as supplier_store
from voucherd.suppliers.protocol import EXTERNAL_ID_CHARS_MAX, SURPLUS_MAX, Bought
from voucherd.suppliers.stocking import NoRateFor

PATH: Final = "/console/purchases"
PAGE_SIZE: Final = 50

WORDS: Final[dict[str, Any]] = {
    "PHASES": PHASES,
    "PROBLEMS": PROBLEMS,
    "WORD_OF": {phase.name.lower(): text for phase, (text, _) in PHASES.items()},
    "reason_words": reason_words,
}
"""What templates say of purchases with."""
FILE_COLUMNS: Final = (
    *(
        "purchase",
        "supplier",
        "product",
        "face value",
        "face currency",
        "ordered",
        "codes",
        "late",
        "quarantined",
    ),
    *("status", "reason", "cost", "currency", "supplier's id", "placed", "ended"),
)
_PHASES: Final = {phase.name.lower(): phase for phase in AttemptPhase}
_ID: Final = re.compile(rf"[0-9a-f]{{{ID_DIGITS}}}")
_WORDS: Final = {
    AttemptPhase.CALLING: "This purchase is being made at this moment: wait until the call has ended.",
    AttemptPhase.ASKING: "This purchase is being asked about already.",
    AttemptPhase.FAILED: "This purchase has failed already.",
    AttemptPhase.UNKNOWN: "Its outcome is unknown: decide it, or check again.",
}


class Stake(Struct, frozen=True):
    """The lines of one currency that wait for a purchase, and what their buyers paid or hold for them."""

    lines: int
    amount: Money


class PurchaseFilters(NamedTuple):
    """Which purchases the address asks for."""

    supplier: str | None
    phase: AttemptPhase | None
    problem: PurchaseProblem | None
    state: State
    oldest: bool

    async def page(self, conn: Connection, before: Record | None, limit: int) -> list[Record]:
        """Those that fit, behind that one."""
        return await records.by_age(conn, **self._asdict(), before=before, limit=limit)


def _filters(visit: Visit, known: Sequence[str]) -> PurchaseFilters:
    supplier, problem = visit.query.get("supplier"), visit.query.get("problem")
    return PurchaseFilters(
        supplier if supplier in known else None,
        _PHASES.get(visit.query.get("status")),
        PurchaseProblem(problem) if problem in set(PurchaseProblem) else None,
        visit.state,
        visit.query.get("sort") == "placed",
    )


async def _known_suppliers(conn: Connection, state: State) -> list[str]:
    return [row.name for row in await supplier_store.suppliers(conn) if row.state is state]


async def purchases(visit: Visit) -> Response:
    """Purchases at suppliers, newest first unless the address says otherwise."""
    async with visit.pool.acquire() as conn:
        known = await _known_suppliers(conn, visit.state)
        before = await before_of(conn, visit)
        found = await _filters(visit, known).page(conn, before, PAGE_SIZE + 1)
        names = await product_names(conn, [one.slug for one in found])
    page = found[:PAGE_SIZE]
    given = {name: visit.query.get(name) for name in ("problem", "supplier", "status")}
    given["sort"] = chosen(visit.query.get("sort"), {"placed"}, "-placed")
    onward = qualified(PATH, given | {"before": page[-1].id}) if page else ""
    return render(
        "console/purchases.html",
        visit,
        rows=[(one, names.get(one.slug, one.slug)) for one in page],
        given=given,
        sort=given["sort"],
        choices=[("", "All"), *((one.value, text) for one, text in PROBLEMS.items())],
        suppliers=[("", "Every supplier"), *((name, name) for name in known)],
        statuses=[("", "Any status"), *((word, PHASES[phase][0]) for word, phase in _PHASES.items())],
        first=qualified(PATH, given) if before else "",
        after=onward if len(found) > PAGE_SIZE else "",
        **WORDS,
    )


async def purchases_file(visit: Visit) -> Response:
    """The same purchases as a file."""
    filters = _filters(visit, await visit.look(_known_suppliers, visit.state))
    return await sheet(visit, "purchases", FILE_COLUMNS, _file_rows(visit, filters), title="Purchases")


async def _file_rows(visit: Visit, filters: PurchaseFilters) -> AsyncIterator[list[Row]]:
    before = None
    for _ in range(FILE_ROWS_MAX // records.PAGE_MAX):
        async with visit.pool.acquire() as conn:
            found = await filters.page(conn, before, records.PAGE_MAX)
        yield [_file_row(one) for one in found]
        if len(found) < records.PAGE_MAX:
            return
        before = found[-1]


def _file_row(one: Record) -> Row:
    cost = one.cost
    return (
        *(
            str(one.id),
            one.supplier,
            one.slug,
            Money(one.face_minor, one.face_currency).decimal(),
            one.face_currency,
        ),
        *(one.count, one.codes, one.spare, one.quarantined, PHASES[one.phase][0], reason_words(one.reason)),
        *(
            None if cost is None else cost.decimal(),
            one.cost_currency,
            one.external_id,
            one.placed_at,
            one.ended_at,
        ),
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
        doers = [record.settled_by, *(deed.data.get("by") for deed in facts["deeds"])]
        facts["names"] = await names_at(conn, doers)
        facts["product"] = await _product_name(conn, record)
    kept = await by_hand.quarantined(visit.pool, visit.services.sealer, attempt, _hand(visit), reveal=False)
    facts["quarantined"] = [(masked(one.code), masked(one.serial), one.reason, one.at) for one in kept]
    facts["lines"] = [(visit.services.ids.trx_unkept(line.order_id), line) for line in lines]
    facts["can_ask"] = record.phase is AttemptPhase.UNKNOWN and registry.can_look_up(row.kind, row.config)
    facts["can_settle"] = _can_be_settled(record)
    facts["price"] = Money(record.price_minor, record.currency)
    facts["price_max"] = Money(record.price_max_minor, record.currency)
    facts["face"] = Money(record.face_minor, record.face_currency)
    return render("console/purchase.html", visit, one=record, **facts, **WORDS)


async def ask(visit: Visit) -> Response:
    """Ask the supplier once more what became of it. Nothing is bought."""
    async with visit.pool.acquire() as conn:
        record, attempt = await _both(conn, visit)
        row = await supplier_store.supplier(conn, record.supplier)
    back = see_other(f"{PATH}/{record.id}")
    if not registry.can_look_up(row.kind, row.config):
        visit.tell(f"{row.name} can’t be asked about purchases: decide it by hand.", "bad")
        return back
    try:
        await by_hand.retry(visit.pool, attempt, _hand(visit))
    except AttemptClosed as refused:
        visit.tell(_standing_words(record, refused.phase), "bad")
        return back
    visit.tell(f"{row.name} is asked again now.")
    return back


async def _product_name(conn: Connection, record: Record) -> str:
    return (await product_names(conn, [record.slug])).get(record.slug, record.slug)


async def settle_page(visit: Visit) -> Response:
    """What settling would do to money and codes, and the two forms that do it."""
    async with visit.pool.acquire() as conn:
        record, attempt = await _both(conn, visit)
        at_stake = await _at_stake(conn, record)
        product = await _product_name(conn, record)
    if not _can_be_settled(record):
        return visit.go(f"{PATH}/{record.id}", _standing_words(record, record.phase), "bad")
    return render(
        "console/settle.html",
        visit,
        one=record,
        product=product,
        settled=attempt.settled,
        at_stake=at_stake,
        quoted=Money(record.price_minor, record.currency),
        face=Money(record.face_minor, record.face_currency),
        # Never the codes themselves: they are bearer secrets, and are pasted again.
        values={
            name: visit.form.get(name) for name in ("failed_note", "bought_note", "price", "external_id")
        },
    )


async def settle_failed(visit: Visit) -> Response:
    """Nothing (more) was bought: its lines are bought elsewhere, or refunded."""
    record, attempt = await visit.look(_both, visit)
    hand = _reason(visit, "failed_note")
    if hand is None:
        return await settle_page(visit)
    try:
        caches = OrderCaches.empty(visit.services.settings)
        moved = await by_hand.fail(visit.pool, caches, attempt, hand)
    except (AttemptClosed, TooEarly) as refused:
        return _refused(visit, record, refused)
    return await _settled(visit, record, moved)


async def settle_bought(visit: Visit) -> Response:
    """These codes were bought: they are stored and delivered like any others."""
    record, attempt = await visit.look(_both, visit)
    hand = _reason(visit, "bought_note")
    bought = None if hand is None else await _bought(visit)
    if hand is None or bought is None:
        return await settle_page(visit)
    try:
        caches = OrderCaches.empty(visit.services.settings)
        moved = await by_hand.receive(visit.pool, caches, visit.services.sealer, attempt, bought, hand)
    except NoRateFor as unrated:
        visit.problems["price"] = f"There is no exchange rate for {unrated.currency}."
    except NothingNew:
        visit.problems["codes"] = "None of these codes can be taken: they are known, malformed or expired."
    except TooManyCodes:
        most = attempt.count + SURPLUS_MAX
        visit.problems["codes"] = f"{attempt.count} were asked for: at most {most} are believed."
    except AttemptClosed as refused:
        return _refused(visit, record, refused)
    else:
        return await _settled(visit, record, moved)
    return await settle_page(visit)


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


async def _bought(visit: Visit) -> Bought | None:
    """What the form says was bought: codes from a file or from the field, each code once; None with a problem."""
    file, text = visit.files.get("file"), visit.form.raw("codes")
    content = file.content if file is not None and file.content else text.replace("\r\n", "\n").encode()
    try:
        codes = await asyncio.to_thread(by_hand.read_codes, io.BytesIO(content))
    except BadCodes as bad:
        first = "".join(f" Line {line.line}: {line.reason}." for line in bad.bad[:3])
        visit.problems["codes"] = sentence(bad) + first
        return None
    external_id = visit.form.get("external_id") or None
    if external_id is not None and len(external_id) > EXTERNAL_ID_CHARS_MAX:
        visit.problems["external_id"] = f"Must be at most {EXTERNAL_ID_CHARS_MAX} characters."
        return None
    try:
        price = read_amount("price", visit.form.get("price")) if visit.form.get("price") else None
    except BadProduct:
        visit.problems["price"] = "Must be an amount and a currency, such as 9.10 EUR."
        return None
    return Bought(codes, external_id, price)


def _hand(visit: Visit, note: str = "") -> Hand:
    return by_hand.hand_of(visit.actor, visit.someone.email[: by_hand.BY_CHARS_MAX], note)


def _reason(visit: Visit, field: str) -> Hand | None:
    """The person who settles it, with the reason that the form gives; None, and a problem, without one."""
    with suppress(BadHand):
        hand = _hand(visit, visit.form.get(field))
        if hand.note:
            return hand
    most = by_hand.NOTE_CHARS_MAX
    visit.problems[field] = f"Say why, in 1 to {most} characters on one line: it is written down."
    return None


def _refused(visit: Visit, record: Record, refused: AttemptClosed | TooEarly) -> Response:
    if isinstance(refused, TooEarly):
        at = f"{record.settles_at:%H:%M:%S}"
        text = f"The purchase can still arrive from {record.supplier} until {at} UTC: wait until then."
    else:
        text = _standing_words(record, refused.phase)
    return visit.go(f"{PATH}/{record.id}", text, "bad")


async def _settled(visit: Visit, before: Record, moved: list[Order]) -> Response:
    for order in moved:
        visit.services.orders.watch.wake(order.id)
    after = (await visit.look(records.find, before.id.hex))[0]
    return visit.go(f"{PATH}/{before.id}", by_hand.settled_words(before, after))


def _can_be_settled(record: Record) -> bool:
    """Whether a person may say what became of it."""
    return record.phase in (AttemptPhase.ASKING, AttemptPhase.UNKNOWN) or (
        record.phase in (AttemptPhase.BOUGHT, AttemptPhase.FAILED) and record.codes < record.count
    )


def _standing_words(record: Record, phase: AttemptPhase) -> str:
    """Why nothing can be done about a purchase as it stands."""
    if phase is AttemptPhase.BOUGHT:
        return f"This purchase is bought already: {record.codes} of {record.count} codes came."
    return _WORDS[phase]


async def _at_stake(conn: Connection, record: Record) -> list[Stake]:
    """What the lines that wait for a purchase cost their buyers, by currency."""
    lines = [line for line in await records.bought_for(conn, record.id) if line.waiting]
    orders = await reading.read(conn, list({line.order_id for line in lines}), VersionCache())
    found: dict[str, tuple[int, int]] = {}
    for line in lines:
        order = orders.get(line.order_id)
        if order is None:
            continue
        item = next(one for one in order.items if one.first_line <= line.line_from < one.end_line)
        count, minor = found.get(order.payment_currency, (0, 0))
        added = line.waiting * item.unit_charge_minor
        found[order.payment_currency] = (count + line.waiting, minor + added)
    return [Stake(count, Money(minor, currency)) for currency, (count, minor) in sorted(found.items())]
