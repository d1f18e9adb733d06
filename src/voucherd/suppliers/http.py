"""A supplier that speaks JSON over HTTP, described in a file by the operator (docs/suppliers.md)."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec

from voucherd.suppliers import description, paths, templates
from voucherd.suppliers.answers import AnswerReader
from voucherd.suppliers.description import Auth, DescribedCall
from voucherd.suppliers.exchange import (
    BODY_BYTES_MAX,
    NotSent,
    Reply,
    Result,
    SupplierExchange,
    check_secret,
    room_for,
)
from voucherd.suppliers.patterns import compile_code_pattern
from voucherd.suppliers.protocol import (
    Answer,
    Finding,
    NotFound,
    QuoteFailed,
    Sku,
    SupplierQuote,
    SupplierRefused,
    Unclear,
    WantedCodes,
    Why,
)
from voucherd.suppliers.untrusted import Garbled

QUOTES_AT_ONCE_MAX: Final = 8
GUARD_SHARE: Final = 0.5
"""The part of a purchase's time that asking for the price may take; the rest is for buying."""

_encode: Final = msgspec.json.Encoder(decimal_format="number").encode


class _NoPrice(QuoteFailed):
    """No price could be had because the supplier did not answer at all."""


class HttpSupplier:
    """Buys as its description says."""

    def __init__(self, config: Mapping[str, Any], secret: str | None, timeout_s: float) -> None:
        self._described = described = description.read(config)
        pattern = compile_code_pattern(described.code_pattern) if described.code_pattern else None
        self._url = described.base_url.rstrip("/")
        self._headers, self._query = _credentials(described.auth, secret)
        self._exchange = SupplierExchange(timeout_s)
        self._timeout_s = timeout_s
        self._readers: dict[str, AnswerReader] = {
            name: AnswerReader(operation, described.currency, pattern)
            for name in ("quote", "buy", "look_up", "cancel")
            if (operation := getattr(described, name)) is not None
        }

    @property
    def looks_up(self) -> bool:
        """Whether the description has a look_up."""
        return self._described.look_up is not None

    @property
    def bulk_max(self) -> int:
        """The description's own."""
        return self._described.bulk_max

    async def quote(self, skus: Sequence[Sku]) -> list[SupplierQuote]:
        """One call for a supplier that lists its products, else one for each."""
        return await self._quote(skus, self._exchange.deadline())

    async def buy(self, reference: str, wanted: WantedCodes) -> Answer:
        """The price first, where we are the ones to guard it; then the purchase."""
        ends_at = self._exchange.deadline()
        if self._described.guard == "quote":
            refusal = await self._too_dear(wanted, ends_at)
            if refusal is not None:
                return refusal
        result = await self._ask("buy", self._described.buy, reference, wanted, ends_at)
        if isinstance(result, NotSent):
            return SupplierRefused(Why.UNREACHABLE, result.text)
        finding = self._found("buy", result, reference, wanted)
        return Unclear("the purchase just made is not found") if isinstance(finding, NotFound) else finding

    async def look_up(self, reference: str, wanted: WantedCodes) -> Finding:
        """What the supplier knows under our reference."""
        return await self._look_up(reference, wanted, self._exchange.deadline())

    async def cancel(self, reference: str, wanted: WantedCodes) -> Finding:
        """Cancel where the supplier can; where its answer says nothing, look."""
        ends_at = self._exchange.deadline()
        finding: Finding = Unclear("this supplier can't cancel")
        if self._described.cancel is not None:
            result = await self._ask("cancel", self._described.cancel, reference, wanted, ends_at)
            finding = self._found("cancel", result, reference, wanted)
        if isinstance(finding, Unclear) and self.looks_up:
            return await self._look_up(reference, wanted, ends_at)
        return finding

    async def close(self) -> None:
        """Close the connections."""
        await self._exchange.close()

    async def _look_up(self, reference: str, wanted: WantedCodes, ends_at: float) -> Finding:
        if self._described.look_up is None:
            return Unclear("this supplier can't be asked what became of a purchase")
        result = await self._ask("look_up", self._described.look_up, reference, wanted, ends_at)
        return self._found("look_up", result, reference, wanted)

    def _found(self, name: str, result: Result, reference: str, wanted: WantedCodes) -> Finding:
        if not isinstance(result, Reply):
            return Unclear(result.text)
        return self._readers[name].finding(result, reference, wanted)

    async def _too_dear(self, wanted: WantedCodes, ends_at: float) -> SupplierRefused | None:
        """Why this purchase must not be made, by the price of this moment."""
        try:
            quotes = await self._quote(
                [Sku(wanted.sku, wanted.face)], ends_at - self._timeout_s * (1 - GUARD_SHARE)
            )
        except _NoPrice as failure:
            return SupplierRefused(Why.UNREACHABLE, str(failure))
        except QuoteFailed as failure:
            return SupplierRefused(Why.REJECTED, str(failure))
        if not quotes:
            return SupplierRefused(Why.OUT_OF_STOCK, "not sold any more")
        price = quotes[0].price
        if price.currency != wanted.price_max.currency or price.minor > wanted.price_max.minor:
            return SupplierRefused(Why.PRICE, f"costs {price}")
        return None

    async def _quote(self, skus: Sequence[Sku], ends_at: float) -> list[SupplierQuote]:
        operation = self._described.quote
        if operation is None:
            raise QuoteFailed("this supplier has no prices to ask for")
        if operation.root and paths.is_list(paths.parse(operation.root)):
            return await self._quote_of(operation, list(skus), ends_at) if skus else []
        found: list[SupplierQuote] = []
        for at in range(0, len(skus), QUOTES_AT_ONCE_MAX):
            some = skus[at : at + QUOTES_AT_ONCE_MAX]
            for quotes in await asyncio.gather(*(self._quote_of(operation, [sku], ends_at) for sku in some)):
                found += quotes
        return found

    async def _quote_of(
        self, operation: DescribedCall, skus: list[Sku], ends_at: float
    ) -> list[SupplierQuote]:
        result = await self._ask("quote", operation, "", skus[0], ends_at)
        if not isinstance(result, Reply):
            raise _NoPrice(f"no price: {result.text}")
        try:
            return self._readers["quote"].quotes(result, skus, self.bulk_max)
        except Garbled as reason:
            raise QuoteFailed(f"no price: {reason}") from None

    async def _ask(
        self, name: str, operation: DescribedCall, reference: str, wanted: WantedCodes | Sku, ends_at: float
    ) -> Result:
        values = templates.values_for(reference, wanted)
        try:
            headers = templates.fill_headers({**self._described.headers, **operation.headers}, values)
        except templates.Unsendable as reason:
            return NotSent(f"{name}: {reason}")
        query = "&".join(
            part for part in (templates.fill_query(operation.query, values), self._query) if part
        )
        url = self._url + templates.fill_path(operation.path, values) + (f"?{query}" if query else "")
        body = None
        headers = {"accept": "application/json", **{name.lower(): text for name, text in headers.items()}}
        if operation.body is not None:
            body = _encode(templates.fill_body(operation.body, values))
            headers.setdefault("content-type", "application/json")
        # A list of products is as long as it is; all else is about a number of codes that we know.
        listed = isinstance(wanted, Sku) and operation.root
        reply_max = (
            BODY_BYTES_MAX if listed else room_for(wanted.count if isinstance(wanted, WantedCodes) else 1)
        )
        return await self._exchange.call(
            ends_at, operation.method, url, headers | self._headers, body, reply_max=reply_max
        )


def _credentials(auth: Auth, secret: str | None) -> tuple[dict[str, str], str]:
    """The header and the part of the query that carry the secret."""
    if auth.type == "none":
        return {}, ""
    secret = check_secret(secret)
    if auth.type == "query":
        return {}, f"{auth.name}={quote(secret, safe='')}"
    if auth.type == "header":
        return {auth.name.lower(): secret}, ""
    if auth.type == "basic":
        pair = base64.b64encode(f"{auth.user}:{secret}".encode()).decode()
        return {"authorization": f"Basic {pair}"}, ""
    return {"authorization": f"Bearer {secret}"}, ""
