"""Another service that speaks this contract (sections 2 to 8), as a supplier.

Create charges nothing, so everything that goes wrong before Confirm or Resolve is a refusal. From there on only an
answer that is surely a no is one; the rest is looked up by our reference. An order that a look-up finds unconfirmed is
cancelled: a Confirm of ours that is still on its way then finds no order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote as quoted

import msgspec

from voucherd.ids import State
from voucherd.suppliers import remote_orders, untrusted
from voucherd.suppliers.contract import key_for, read_config
from voucherd.suppliers.exchange import NotSent, Reply, Result, SupplierExchange, room_for
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
from voucherd.suppliers.remote_orders import OrderSeen
from voucherd.suppliers.untrusted import Garbled

QUOTES_AT_ONCE_MAX: Final = 8
FIND_MAX: Final = 10
CREATE_SHARE: Final = 0.5
"""The part of a purchase's time that Create may take; the rest is for Confirm or Resolve."""
_SURELY_NO: Final = frozenset({401, 402, 403, 404, 422, 429})
"""What a Confirm or Resolve is refused with before anything is paid (Contract 7, OP-24, OP-27)."""
_encode: Final = msgspec.json.Encoder(decimal_format="number").encode


class VoucherdSupplier:
    """Buys with Create and Confirm or Resolve, looks up with Find all."""

    looks_up = True

    def __init__(self, config: dict[str, Any], secret: str | None, state: State, timeout_s: float) -> None:
        self._config = read_config(config)
        self._secret = key_for(state, self._config, secret)
        self._state = state
        self._url = self._config.url.rstrip("/")
        self._exchange = SupplierExchange(timeout_s)
        self._timeout_s = timeout_s
        self._variable: set[str] = set()
        """Products of which the other side wants to hear the face value."""

    @property
    def bulk_max(self) -> int:
        """The operator's choice."""
        return self._config.bulk_max

    async def quote(self, skus: Sequence[Sku]) -> list[SupplierQuote]:
        """A price check is an order of one that is cancelled at once; it costs nothing."""
        ends_at = self._exchange.deadline()
        found: list[SupplierQuote] = []
        for at in range(0, len(skus), QUOTES_AT_ONCE_MAX):
            some = skus[at : at + QUOTES_AT_ONCE_MAX]
            found += [
                q for q in await asyncio.gather(*(self._quote(sku, ends_at) for sku in some)) if q is not None
            ]
        return found

    async def buy(self, reference: str, wanted: WantedCodes) -> Answer:
        """Create, look at the price, then Confirm or Resolve."""
        ends_at = self._exchange.deadline()
        created = await self._create(
            wanted, wanted.count, reference, ends_at - self._timeout_s * (1 - CREATE_SHARE)
        )
        if not isinstance(created, OrderSeen):
            return created
        refusal = self._refusal(created, wanted)
        if refusal is None:
            operation = "resolve" if wanted.count <= self._config.resolve_upto else "confirm"
            result = await self._finalise(operation, created.trx, reference, ends_at)
            answer = self._finalised(result, wanted)
            if not isinstance(answer, SupplierRefused) or (
                isinstance(result, Reply) and result.status == 200
            ):
                return answer
            refusal = answer
        # Nothing was bought; an order that is left behind would only puzzle people.
        await self._change("cancel", created.trx, ends_at)
        return refusal

    async def look_up(self, reference: str, wanted: WantedCodes) -> Finding:
        """What became of the order with our reference; one that is not confirmed never will be."""
        ends_at = self._exchange.deadline()
        found = await self._find(reference, ends_at)
        if isinstance(found, OrderSeen) and found.status == "created":
            return await self._cancel(found, reference, wanted, ends_at)
        return self._found(found, wanted)

    async def cancel(self, reference: str, wanted: WantedCodes) -> Finding:
        """Cancel the order, if it can still be."""
        ends_at = self._exchange.deadline()
        found = await self._find(reference, ends_at)
        if isinstance(found, OrderSeen) and found.status in ("created", "pending"):
            return await self._cancel(found, reference, wanted, ends_at)
        return self._found(found, wanted)

    async def close(self) -> None:
        """Close the connections."""
        await self._exchange.close()

    # ── the steps ─────────────────────────────────────────────────────────────────────────────────────

    async def _quote(self, sku: Sku, ends_at: float) -> SupplierQuote | None:
        created = await self._create(sku, 1, None, ends_at)
        if isinstance(created, SupplierRefused) and created.why is Why.OUT_OF_STOCK:
            return None
        if not isinstance(created, OrderSeen):
            raise QuoteFailed(f"no price: {created.text}")
        await self._change("cancel", created.trx, ends_at)
        try:
            if created.state not in (None, self._state.word) or not remote_orders.has_face(created, sku.face):
                return None
            return SupplierQuote(
                sku.sku, sku.face, remote_orders.price(created), remote_orders.stock(created)
            )
        except Garbled as reason:
            raise QuoteFailed(f"no price: {reason}") from None

    async def _create(
        self, sku: Sku | WantedCodes, count: int, reference: str | None, ends_at: float
    ) -> OrderSeen | SupplierRefused | Unclear:
        """A new order. Create charges nothing, so one that failed was surely no purchase."""
        result: Result = NotSent("")
        for attempt in range(2):
            variable = sku.sku in self._variable
            body = remote_orders.create_body(
                sku, self._config.currency, count, variable=variable, reference=reference
            )
            headers = {} if reference is None else {"idempotency-key": f"{reference}:create:{attempt}"}
            result = await self._call("POST", "1.03/order", headers, _encode(body), ends_at)
            if (
                not isinstance(result, Reply)
                or result.status != 400
                or "faceValue" not in remote_orders.text(result)
            ):
                break
            # A variable product wants its face value, a fixed one must not be sent any (OP-10): try the other way.
            # Each call by what it sent itself: prices at both ends of a range are asked for at once.
            self._variable = self._variable - {sku.sku} if variable else self._variable | {sku.sku}
        if not isinstance(result, Reply):
            return SupplierRefused(Why.UNREACHABLE, f"create: {result.text}")
        if result.status >= 500:
            return SupplierRefused(Why.UNREACHABLE, f"create: HTTP {result.status}")
        return (
            remote_orders.created(result)
            if result.status in (200, 201)
            else remote_orders.refused(result, self._secret)
        )

    def _refusal(self, created: OrderSeen, wanted: WantedCodes) -> SupplierRefused | None:
        """Why this order must not be paid."""
        try:
            price = remote_orders.price(created)
            if created.state not in (None, self._state.word):
                return SupplierRefused(
                    Why.REJECTED, f"the other side answers as {untrusted.reason(created.state or '')}"
                )
            if not remote_orders.has_face(created, wanted.face):
                return SupplierRefused(Why.REJECTED, "the other side's product has another face value")
        except Garbled as reason:
            return SupplierRefused(Why.REJECTED, str(reason))
        if price.currency != wanted.price_max.currency or price.minor > wanted.price_max.minor:
            return SupplierRefused(Why.PRICE, f"costs {price}")
        return None

    async def _finalise(self, operation: str, trx: str, reference: str, ends_at: float) -> Result:
        headers = {"idempotency-key": f"{reference}:{operation}"}
        if self._config.sandbox_outcome:
            headers["x-sandbox-outcome"] = self._config.sandbox_outcome
        # The versions with short lines: a tenth of the bytes, and all that we want to know.
        version = "Next" if operation == "resolve" else "1.00"
        return await self._call("PATCH", f"{version}/order/{operation}/{trx}", headers, None, ends_at)

    def _finalised(self, result: Result, wanted: WantedCodes) -> Answer:
        if isinstance(result, NotSent):
            return SupplierRefused(Why.UNREACHABLE, result.text)
        if not isinstance(result, Reply):
            return Unclear(result.text)
        if result.status in _SURELY_NO or (
            # The order may have been confirmed by this very call, sent twice on its way.
            result.status == 400 and "can not be confirmed" not in remote_orders.text(result)
        ):
            return remote_orders.refused(result, self._secret)
        if result.status != 200:
            return Unclear(f"HTTP {result.status}")
        try:
            found = remote_orders.finding(remote_orders.order(untrusted.tree(result.body)), wanted)
        except Garbled as reason:
            return Unclear(str(reason))
        return Unclear("the order just paid is not found") if isinstance(found, NotFound) else found

    async def _find(self, reference: str, ends_at: float) -> OrderSeen | NotFound | Unclear:
        path = f"1.00/order?reference={quoted(reference, safe='')}&limit={FIND_MAX}"
        result = await self._call("GET", path, {}, None, ends_at)
        if not isinstance(result, Reply):
            return Unclear(result.text)
        if result.status != 200:
            return Unclear(f"HTTP {result.status}")
        try:
            document = untrusted.tree(result.body)
            data = document.get("data") if isinstance(document, dict) else None
            if not isinstance(data, list):
                raise Garbled("the answer is not a page of orders")
            ours = [one for one in data if isinstance(one, dict) and one.get("reference") == reference]
            if len(data) != len(ours) or len(ours) > 1:
                raise Garbled("the page has orders of other references, or several of ours")
            return remote_orders.order(ours[0]) if ours else NotFound()
        except Garbled as reason:
            return Unclear(str(reason))

    async def _cancel(self, order: OrderSeen, reference: str, wanted: WantedCodes, ends_at: float) -> Finding:
        result = await self._change("cancel", order.trx, ends_at)
        if not isinstance(result, Reply):
            return Unclear(result.text)
        if result.status == 204:
            return SupplierRefused(Why.CANCELLED)
        if result.status == 200:
            try:
                return remote_orders.finding(
                    remote_orders.order(untrusted.tree(result.body)), wanted, Why.CANCELLED
                )
            except Garbled as reason:
                return Unclear(str(reason))
        # It was finished, or deleted, between our look and our word.
        return self._found(await self._find(reference, ends_at), wanted)

    def _found(self, found: OrderSeen | NotFound | Unclear, wanted: WantedCodes) -> Finding:
        if not isinstance(found, OrderSeen):
            return found
        try:
            return remote_orders.finding(found, wanted)
        except Garbled as reason:
            return Unclear(str(reason))

    async def _change(self, operation: str, trx: str, ends_at: float) -> Result:
        return await self._call("PATCH", f"1.03/order/{operation}/{trx}", {}, None, ends_at)

    async def _call(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None, ends_at: float
    ) -> Result:
        headers = {
            "authorization": f"Bearer {self._secret}",
            "accept": "application/json, text/plain",
        } | headers
        if body is not None:
            headers["content-type"] = "application/json"
        url, reply_max = f"{self._url}/api/{path}", room_for(self.bulk_max)
        return await self._exchange.call(ends_at, method, url, headers, body, reply_max=reply_max)
