"""Orders as another service of this contract shows them (Contract 2), read without trusting a field of them."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from voucherd.money import Money
from voucherd.suppliers import untrusted
from voucherd.suppliers.exchange import Reply
from voucherd.suppliers.protocol import (
    Bought,
    Code,
    Finding,
    Sku,
    SupplierRefused,
    Unclear,
    UnderWay,
    WantedCodes,
    Why,
)
from voucherd.suppliers.untrusted import Garbled

TRX_CHARS_MAX: Final = 100
STOCK_UNSEEN: Final = 1
"""What a price check tells of the stock where the other side does not show it: the one that it priced."""


class OrderSeen(Struct, frozen=True):
    """The parts of an order that a purchase depends on."""

    trx: str
    status: str
    state: str | None
    reference: str | None
    item: dict[str, Any]
    lines: list[dict[str, Any]]

    def __repr__(self) -> str:
        return f"OrderSeen({self.trx}, {self.status})"


def order(document: Any) -> OrderSeen:
    """The order in a document; `Garbled` if it is none, or not of one item."""
    if not isinstance(document, dict):
        raise Garbled("the answer is not an order")
    trx, status = untrusted.text(document.get("trx"), TRX_CHARS_MAX), document.get("orderStatus")
    items = document.get("items")
    if trx is None or not isinstance(status, str):
        raise Garbled("the order has no trx or no status")
    # The trx becomes a segment of our next path.
    if not trx.isascii() or not trx.replace("-", "").replace("_", "").isalnum():
        raise Garbled("the order's trx is not a plain word")
    if not isinstance(items, list) or len(items) != 1 or not isinstance(items[0], dict):
        raise Garbled("the order does not have one item")
    lines = items[0].get("orderLines")
    if not isinstance(lines, list) or not all(isinstance(line, dict) for line in lines):
        raise Garbled("the order has no lines")
    state, reference = document.get("state"), document.get("reference")
    return OrderSeen(
        trx,
        status,
        state if isinstance(state, str) else None,
        reference if isinstance(reference, str) else None,
        items[0],
        lines,
    )


def price(seen: OrderSeen) -> Money:
    """The unit price before VAT, in the currency that we pay in."""
    return untrusted.amount(
        seen.item.get("singlePriceAmountInPaymentCurrency"), seen.item.get("paymentCurrency")
    )


def has_face(seen: OrderSeen, face: Money) -> bool:
    """Whether the codes are worth what we sell them for; an order that does not say is believed."""
    value, currency = seen.item.get("faceValueAmount"), seen.item.get("faceValueCurrency")
    if value is None and currency is None:
        return True
    return untrusted.amount(value, currency) == face


def stock(seen: OrderSeen) -> int:
    """How many the other side says it has, in the description of the product that extended lines carry."""
    try:
        described = untrusted.tree(str(seen.lines[0]["product"]).encode())
        return untrusted.stock(described["stockCount"])
    except (Garbled, LookupError, TypeError, UnicodeError):
        return STOCK_UNSEEN


def codes(seen: OrderSeen, count: int) -> tuple[Code, ...]:
    """The codes on the lines that are finished."""
    finished = [line for line in seen.lines if line.get("status") == "finished"]
    found = untrusted.codes(
        (
            (line.get("voucherCode"), line.get("voucherSerial"), line.get("voucherDateExpired"))
            for line in finished
        ),
        count,
    )
    if finished and not found:
        raise Garbled("lines are finished, without codes")
    return found


def finding(seen: OrderSeen, wanted: WantedCodes, cancelled: Why = Why.REJECTED) -> Finding:
    """What an order says of our purchase. One that is cancelled keeps the codes that it delivered before (OP-45)."""
    if seen.status == "pending":
        return UnderWay(seen.trx)
    if seen.status not in ("finished", "cancelled"):
        return Unclear("the order has a status that was not expected")
    if any(line.get("status") == "pending" for line in seen.lines):
        return UnderWay(seen.trx)
    delivered = codes(seen, wanted.count)
    if delivered:
        try:
            return Bought(delivered, seen.trx, price(seen), final=True)
        except Garbled:
            # A price that can't be read is no reason to lose codes that were paid for.
            return Bought(delivered, seen.trx, final=True)
    return (
        Unclear("the order is finished, without codes")
        if seen.status == "finished"
        else SupplierRefused(cancelled)
    )


def create_body(
    sku: Sku | WantedCodes, currency: str, count: int, *, variable: bool, reference: str | None
) -> dict[str, Any]:
    """The body of a Create."""
    item: dict[str, Any] = {"productSlug": sku.sku, "amount": count}
    if variable:
        item["faceValue"] = sku.face.decimal()
    body: dict[str, Any] = {"items": [item], "paymentCurrency": currency}
    return body if reference is None else body | {"reference": reference}


def created(reply: Reply) -> OrderSeen | Unclear:
    """The order of a Create that was answered well."""
    try:
        seen = order(untrusted.tree(reply.body))
    except Garbled as reason:
        return Unclear(str(reason))
    # Whatever answers a Create with anything else does not keep the contract: nobody knows what it did.
    return seen if seen.status == "created" else Unclear("the new order is not just created")


def text(reply: Reply) -> str:
    """The words of a refusal."""
    return reply.body[:1_000].decode(errors="replace")


def refused(reply: Reply, secret: str) -> SupplierRefused:
    """The refusals of Contract 7, in the words that a purchase knows."""
    # The other side may say back whatever we sent.
    said = text(reply).replace(secret, "***")
    why = {402: Why.FUNDS, 404: Why.CANCELLED}.get(reply.status, Why.REJECTED)
    # A product or face value that can't be ordered (OP-25 names the item) is as good as none in stock.
    if any(words in said for words in ("offers not available", "out of stock", "items[0].")):
        why = Why.OUT_OF_STOCK
    return SupplierRefused(why, untrusted.reason(said))
