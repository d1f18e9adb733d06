"""What an answer of a described supplier means. Everything that the description does not name is `Unclear`."""

from __future__ import annotations

from decimal import Decimal
from re import Pattern
from typing import Any, Final

from voucherd.money import Money, divide_half_up
from voucherd.suppliers import paths, untrusted
from voucherd.suppliers.description import DescribedCall, Means, Rule
from voucherd.suppliers.exchange import Reply
from voucherd.suppliers.paths import Path
from voucherd.suppliers.protocol import (
    Bought,
    Code,
    Finding,
    NotFound,
    Sku,
    SupplierQuote,
    SupplierRefused,
    Unclear,
    UnderWay,
    WantedCodes,
    Why,
)
from voucherd.suppliers.untrusted import Garbled

_PATHS: Final = (
    "codes", "serials", "expires", "status", "error", "reference", "external_id", "price", "price_currency", "sku",
    "stock",
)  # fmt: skip


class AnswerReader:
    """Reads the answers of one operation."""

    def __init__(self, operation: DescribedCall, currency: str, pattern: Pattern[str] | None) -> None:
        self._operation = operation
        self._fields = operation.fields
        self._currency = currency
        self._pattern = pattern
        self._root = paths.parse(operation.root) if operation.root else ()
        self._paths: dict[str, Path] = {
            name: paths.parse(text) for name in _PATHS if (text := getattr(operation.fields, name))
        }

    # ── purchases ─────────────────────────────────────────────────────────────────────────────────────

    def finding(self, reply: Reply, reference: str, wanted: WantedCodes) -> Finding:
        """What the answer says of our purchase."""
        try:
            document = self._understood(reply)
            if isinstance(document, Means):
                return self._meant(document, f"HTTP {reply.status}")
            part = self._part(document, reference)
            return NotFound() if part is None else self._purchase(part, wanted)
        except Garbled as reason:
            return Unclear(str(reason))

    def _understood(self, reply: Reply) -> Any:
        """The document of a good answer, or what a rule says of a bad one."""
        document, garbled = None, None
        try:
            document = untrusted.tree(reply.body)
        except Garbled as reason:
            garbled = reason
        for rule in self._operation.errors:
            if self._matches(rule, reply.status, document):
                return rule.means
        if reply.status not in self._operation.ok:
            raise Garbled(f"Supplier error: HTTP {reply.status}, which is not in the description")
        if garbled is not None:
            raise garbled
        return document

    def _matches(self, rule: Rule, status: int, document: Any) -> bool:
        if rule.http is not None and status not in (
            rule.http if isinstance(rule.http, list) else [rule.http]
        ):
            return False
        if rule.code is None:
            return True
        said = _word(self._value(document, "error"))
        codes = rule.code if isinstance(rule.code, list) else [rule.code]
        return said is not None and said in [str(code) for code in codes]

    def _part(self, document: Any, reference: str) -> Any:
        """The part that is about our purchase; None if a list was searched and does not have it."""
        found = paths.values(document, self._root)
        if paths.is_list(self._root):
            ours = [part for part in found if _word(self._value(part, "reference")) == reference]
            if len(ours) > 1:
                raise Garbled("several purchases have our reference")
            if not ours and not all(isinstance(part, dict) for part in found):
                raise Garbled("the answer is not a list of purchases")
            return ours[0] if ours else None
        part = found[0]
        if part is None:
            raise Garbled("the answer has nothing where the purchase should be")
        if "reference" in self._paths and _word(self._value(part, "reference")) != reference:
            raise Garbled("the answer is not about our purchase")
        return part

    def _purchase(self, part: Any, wanted: WantedCodes) -> Finding:
        means, said = Means.BOUGHT, ""
        if "status" in self._paths:
            said = _word(self._value(part, "status")) or ""
            if said not in self._operation.statuses:
                raise Garbled("Supplier error: a status that is not in the description")
            means = self._operation.statuses[said]
        external_id = untrusted.text(self._value(part, "external_id"))
        if means is Means.UNDER_WAY:
            return UnderWay(external_id)
        codes = self._codes(part, wanted.count)
        if means is Means.BOUGHT or (means is Means.CANCELLED and codes):
            if not codes:
                raise Garbled("the purchase is said to be done, without codes")
            return Bought(codes, external_id, self._price_paid(part, wanted.count))
        if codes:
            raise Garbled("the purchase is said to have failed, with codes")
        return self._meant(means, untrusted.reason(said))

    def _codes(self, part: Any, count: int) -> tuple[Code, ...]:
        if "codes" not in self._paths:
            return ()
        found = paths.values(part, self._paths["codes"])
        serials, expiries = (
            self._column(part, "serials", len(found)),
            self._column(part, "expires", len(found)),
        )
        rows = zip(found, serials, expiries, strict=True)
        return untrusted.codes(rows, count, pattern=self._pattern, never=self._fields.never)

    def _column(self, part: Any, name: str, size: int) -> list[Any]:
        """The values beside the codes; a single one holds for all of them."""
        if name not in self._paths:
            return [None] * size
        found = paths.values(part, self._paths[name])
        if not paths.is_list(self._paths[name]):
            return found * size
        if len(found) != size:
            raise Garbled(f"not as many {name} as codes")
        return found

    def _price_paid(self, part: Any, count: int) -> Money | None:
        """What one code cost; a price that can't be read is no reason to lose codes that were paid for."""
        try:
            price = self._price(part)
        except Garbled:
            return None
        if price is None or self._fields.price_of == "code":
            return price
        return Money(divide_half_up(price.minor, count), price.currency)

    def _meant(self, means: Means, said: str) -> Finding:
        if means is Means.UNDER_WAY:
            return UnderWay()
        if means is Means.NOT_FOUND:
            return NotFound()
        return Unclear(said) if means is Means.UNCLEAR else SupplierRefused(Why(means.value), said)

    # ── prices ────────────────────────────────────────────────────────────────────────────────────────

    def quotes(self, reply: Reply, skus: list[Sku], stock_unsaid: int) -> list[SupplierQuote]:
        """The prices in an answer that was asked for one product, or is a list of many; `Garbled` if there are none."""
        document = self._understood(reply)
        if isinstance(document, Means):
            return []
        found = paths.values(document, self._root)
        if not paths.is_list(self._root):
            return [self._quote(found[0], skus[0], stock_unsaid)]
        named: dict[str | None, Any] = {_word(self._value(part, "sku")): part for part in found}
        return [self._quote(named[sku.sku], sku, stock_unsaid) for sku in skus if sku.sku in named]

    def _quote(self, part: Any, sku: Sku, stock_unsaid: int) -> SupplierQuote:
        price = self._price(part)
        if price is None:
            raise Garbled("the answer has no price")
        stock = untrusted.stock(self._value(part, "stock")) if "stock" in self._paths else stock_unsaid
        return SupplierQuote(sku.sku, sku.face, price, stock)

    def _price(self, part: Any) -> Money | None:
        value = self._value(part, "price")
        if value is None:
            return None
        currency = self._value(part, "price_currency") if "price_currency" in self._paths else self._currency
        return untrusted.amount(value, currency, minor=self._fields.price_unit == "minor")

    def _value(self, part: Any, name: str) -> Any:
        return paths.value(part, self._paths[name]) if name in self._paths else None


def _word(value: Any) -> str | None:
    """A value as the description writes it: a text as it is, true, false and numbers in letters."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return str(value)
    return value if isinstance(value, str) else None
