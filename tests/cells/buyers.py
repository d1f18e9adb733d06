"""Clients that buy all the time, and remember what they were told and when."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from itertools import pairwise
from typing import Any, Final

import httpx

from tests.faults.processes import codes_of
from tests.shop import Company

PAUSE_S: Final = 0.02
ORDERS_MAX: Final = 100_000


class Buyer:
    """A client of one company that buys one product, order after order."""

    def __init__(self, client: httpx.AsyncClient, company: Company, slug: str, seed: int) -> None:
        self._client = client
        self._company = company
        self._slug = slug
        self._chance = random.Random(seed)
        self.sold_at: list[tuple[float, float]] = []
        """When each sale began and ended that was finished."""
        self.promised: dict[str, list[str]] = {}
        """The codes of each order that it was told is finished."""
        self.answers: Counter[str] = Counter()

    async def buy_until(self, stop: asyncio.Event) -> None:
        """Buy, until told to stop."""
        for _ in range(ORDERS_MAX):
            if stop.is_set():
                return
            try:
                await self._buy()
            except httpx.TransportError as lost:
                self.answers[type(lost).__name__] += 1
            # A client among others: the machine is for all of them.
            await asyncio.sleep(PAUSE_S)

    def sold_since(self, moment: float) -> int:
        """How many sales began after this moment, and are finished."""
        return sum(began >= moment for began, _ in self.sold_at)

    def gap_s(self, begin: float, end: float) -> float:
        """The longest time between two sales."""
        ends = [begin, *(at for _, at in self.sold_at if begin < at < end), end]
        return max(later - sooner for sooner, later in pairwise(ends))

    async def _buy(self) -> None:
        began = time.monotonic()
        body = {"items": [{"productSlug": self._slug, "amount": 1}], "paymentCurrency": "EUR"}
        created = await self._call("POST", "/api/1.03/order", 201, json=body)
        if created is None:
            return
        word = self._chance.choice(("confirm", "resolve"))
        order = await self._call("PATCH", f"/api/1.03/order/{word}/{created['trx']}", 200)
        if order is not None and order["orderStatus"] == "finished":
            self.sold_at.append((began, time.monotonic()))
            self.promised[order["trx"]] = codes_of(order)

    async def _call(self, method: str, path: str, good: int, **body: Any) -> dict[str, Any] | None:
        answer = await self._client.request(method, path, headers=self._company.bearer(), **body)
        self.answers[f"{method} {answer.status_code}"] += 1
        # Refused for want of stock, or told to come again: anything else would be news.
        assert answer.status_code in {good, 422, 502, 503, 504}, answer.text
        return dict(answer.json()) if answer.status_code == good else None
