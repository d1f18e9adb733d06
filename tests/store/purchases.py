"""Purchases in every condition for the audit to look at, and how each promise about them can be broken."""

from __future__ import annotations

from typing import Final, NamedTuple

from tests.purchasing.fake import FakeSupplier, sold_out, too_many
from voucherd.catalogue import store as catalogue
from voucherd.catalogue.products import ProductDraft
from voucherd.catalogue.texts import read_face, read_selling
from voucherd.db import Pool, transaction
from voucherd.ids import State
from voucherd.orders.rules.cart import CartLine, Create
from voucherd.orders.rules.decide import Cancel, Finalise
from voucherd.orders.service import OrderService
from voucherd.purchasing import claims
from voucherd.purchasing.attempts import Attempt
from voucherd.purchasing.dispatcher import Dispatcher
from voucherd.suppliers.protocol import Answer, Bought, Code, WantedCodes
from voucherd.suppliers.store import SupplierDraft, SupplierRow, add_offer, add_supplier, supplier
from voucherd.vault.seal import Sealer

SLUG: Final = "bought-10-eur"


class Break(NamedTuple):
    """Statements that break one thing, and the check that must notice."""

    check: str
    sql: str


BREAKS: Final = {
    "a line waits with a purchase that ended": Break(
        "bought-for-by-one",
        "UPDATE waiting SET attempt_id = (SELECT id FROM attempt WHERE status = 4) WHERE attempt_id IS NOT NULL",
    ),
    "a line waits with somebody else's purchase": Break(
        "bought-for-by-one",
        "UPDATE waiting w SET attempt_id = a.id FROM attempt a WHERE a.status = 0 AND w.attempt_id <> a.id",
    ),
    "a line waits with a purchase of another product": Break(
        "bought-for-by-one", "UPDATE waiting SET face_minor = face_minor + 1 WHERE attempt_id IS NOT NULL"
    ),
    "a purchase is gone that a line waits with": Break(
        "bought-for-by-one",
        "DELETE FROM attempt WHERE id IN (SELECT attempt_id FROM waiting WHERE attempt_id IS NOT NULL)",
    ),
    "a line is in two purchases": Break(
        "purchase-once",
        "UPDATE attempt SET status = 1, ask_at = now(), ended_at = NULL;"
        "UPDATE attempt_line SET order_id = (SELECT min(order_id) FROM attempt_line), line_from = 0, line_to = 1",
    ),
    "a purchase asked for more than its lines": Break(
        "purchase-is-its-lines", "UPDATE attempt SET count = count + 1 WHERE status = 3"
    ),
    "a purchase has no lines": Break("purchase-is-its-lines", "DELETE FROM attempt_line"),
    "a purchase was for another product's lines": Break(
        "purchase-is-its-lines", "UPDATE attempt SET face_minor = face_minor + 1"
    ),
    "a code that came is in no lot": Break(
        "purchase-codes-are-kept", "UPDATE attempt SET codes = codes + 1 WHERE status = 3"
    ),
    "a spare code was not counted": Break(
        "purchase-codes-are-kept", "UPDATE attempt SET spare = 0 WHERE spare > 0"
    ),
    "a code vanished from quarantine": Break("purchase-codes-are-kept", "DELETE FROM quarantined_code"),
    "a failed purchase brought codes": Break(
        "purchase-codes-are-kept", "UPDATE attempt SET status = 4 WHERE status = 3"
    ),
    "a lot is of a purchase that is gone": Break(
        "purchase-codes-are-kept", "UPDATE lot SET attempt_id = gen_random_uuid() WHERE attempt_id IS NOT NULL"
    ),
    "a lot is of another supplier than its purchase": Break(
        "lot-is-its-purchase", "UPDATE lot SET supplier = 'another' WHERE attempt_id IS NOT NULL"
    ),
    "a lot is of another face value than its purchase": Break(
        "lot-is-its-purchase", "UPDATE lot SET face_minor = face_minor + 1 WHERE attempt_id IS NOT NULL"
    ),
    "a supplier is owed more than its codes": Break(
        "purchase-legs-sum-to-zero",
        "CREATE OR REPLACE VIEW purchase_leg AS SELECT l.attempt_id, a.supplier_id, l.state,"
        " l.purchase_currency AS currency, 'supplier' AS account, -l.size * l.purchase_minor AS amount_minor"
        " FROM lot l JOIN attempt a ON a.id = l.attempt_id",
    ),
    "a line waits in two places": Break(
        "wait-in-its-place", "UPDATE waiting SET ask_at = now() WHERE attempt_id IS NOT NULL"
    ),
    "a line waits with a supplier that does not sell it": Break("wait-in-its-place", "DELETE FROM offer"),
    "a line waits with a supplier of the other state": Break(
        "wait-in-its-place", "UPDATE supplier SET state = 1 - state"
    ),
    "a Confirm's line waits ahead of others": Break("wait-in-its-place", "UPDATE waiting SET urgent = NOT urgent"),
    "a cancelled order waits for nothing": Break(
        "cancelled-in-flight", "UPDATE orders SET cancelling = true WHERE status = 1"
    ),
    "a cancelled order's line is to be bought": Break(
        "cancelled-in-flight",
        "UPDATE waiting SET attempt_id = NULL WHERE order_id IN (SELECT id FROM orders WHERE cancelling)",
    ),
    "an order that was never confirmed is being cancelled": Break(
        "cancelled-in-flight", "UPDATE orders SET cancelling = true WHERE status = 0"
    ),
    "a quote changed sides": Break("quotes-are-their-suppliers", "UPDATE quote SET state = 1 - state"),
    "an offer has another product's quote": Break(
        "quotes-are-their-suppliers", "UPDATE quote SET product_id = product_id - 1"
    ),
    "a purchase is of another supplier's quote": Break(
        "quotes-are-their-suppliers", "UPDATE attempt SET supplier_id = supplier_id + 1"
    ),
    "a purchase is of a face value that was not quoted": Break(
        "quotes-are-their-suppliers", "UPDATE attempt SET face_minor = face_minor + 1"
    ),
    "an order was offered a quote that never was": Break(
        "offered-what-was-there", "UPDATE order_item SET offers[1] = offers[1] - 2000 WHERE offers[1] < 0"
    ),
    "an order was offered a quote of the other state": Break(
        "offered-what-was-there", "UPDATE quote SET id = id + 1, state = 1 - state"
    ),
    "an order was offered a lot of another product": Break(
        "offered-what-was-there", "UPDATE lot SET product_id = product_id + 1"
    ),
    "an order was offered a lot of another face value": Break(
        "offered-what-was-there", "UPDATE lot SET face_minor = face_minor + 1 WHERE NOT generated"
    ),
}  # fmt: skip


async def buy(pool: Pool, sealer: Sealer, order_service: OrderService, company_id: int) -> None:
    """One purchase that brought too much and one that brought nothing, one under way, one of a cancelled order, one of
    an order that a program before 0.2 only marked as cancelled (OP-45), and lines that wait to be bought."""
    fake = FakeSupplier(price="8.00 EUR")
    row = await _supplier(pool, sealer)
    dispatcher = Dispatcher(pool, sealer, order_service._caches, lambda _: None, lambda _spec, _pool: fake)
    await dispatcher.refresh_quotes()
    await dispatcher.settled()
    order_service._caches.offers._checked_at = -10.0

    async def confirmed(amount: int) -> int:
        answer = await order_service.create(
            Create(company_id, State.LIVE, 0, (CartLine(SLUG, amount, None),), "EUR")
        )
        await order_service.confirm(Finalise(answer.order.id, company_id, State.LIVE, resolve=False))
        return answer.order.id

    async def claimed() -> list[Attempt]:
        return await claims.claim(
            pool, order_service._caches.offers, row, bulk_max=100, worker="w", turns=claims.Turns()
        )

    for deed in (too_many, _sold_again, sold_out):
        fake.deeds.append(deed)
        await confirmed(3)
        await dispatcher.dispatch()
        await dispatcher.settled()
    await pool.execute("DELETE FROM refused_offer")
    await confirmed(2)
    assert len(await claimed()) == 1
    # Two are to be had, the other two pause.
    await pool.execute("UPDATE offer SET stock = 2")
    cancelled = await confirmed(4)
    assert len(await claimed()) == 1
    await order_service.cancel(Cancel(cancelled, company_id, State.LIVE))
    await pool.execute("UPDATE offer SET stock = 2")
    marked = await confirmed(2)
    assert len(await claimed()) == 1
    await pool.execute("UPDATE orders SET cancelling = true WHERE id = $1", marked)
    await pool.execute("UPDATE offer SET stock = 5")
    await confirmed(1)
    await dispatcher.stop()


async def _supplier(pool: Pool, sealer: Sealer) -> SupplierRow:
    draft = ProductDraft(
        slug=SLUG,
        name="Bought 10",
        brand="Elsewhere",
        product_type="giftcard",
        category="gifts",
        redeem_type="currency",
        region="ww",
        face=read_face("10.00 EUR", None),
        selling=read_selling("9.00 EUR", None),
        vat_category="multi_purpose",
        async_delivery=True,
    )
    async with transaction(pool) as tx:
        product = await catalogue.add_product(tx, draft)
        row = await add_supplier(tx, SupplierDraft("wholesaler", "http", State.LIVE, {}, settle_s=0), sealer)
        await add_offer(tx, row, product.product_id, sku="B10", face_minor=1_000)
        return await supplier(tx, "wholesaler")


async def _sold_again(supplier: FakeSupplier, reference: str, wanted: WantedCodes) -> Answer:
    """Sells what is wanted, and one code that it sold before."""
    before = next(iter(supplier.sold.values())).codes[0]
    sold = supplier.sell(reference, wanted)
    return Bought((*sold.codes, Code(before.code)), sold.external_id, sold.price)
