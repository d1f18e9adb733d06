"""What clients were promised, and whether it is still true: the service is held to every answer that it gave."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import httpx

from tests.faults.processes import codes_of
from tests.shop import Company, Shop
from voucherd.catalogue.store import brand_of

SHOWN_MAX: Final = 40
"""So many promised orders are asked for again over HTTP; all are looked up in the database."""
READ_MAX: Final = 20_000
"""Orders of one look at the database."""
ALLOWED: Final = frozenset({200, 201, 204, 400, 402, 404, 409, 422, 503})

_STORED: Final = """
    SELECT o.id, o.status, o.charged_minor - o.refunded_minor = o.price_minor + o.vat_minor AS whole,
           (SELECT count(*) FROM entry e WHERE e.order_id = o.id AND e.kind = 2) AS charges,
           ARRAY(SELECT c.blind FROM outcome t
                 JOIN code c ON c.lot_id = t.lot_id AND c.seq >= t.seq_from
                            AND c.seq < t.seq_from + t.line_to - t.line_from
                 WHERE t.order_id = o.id ORDER BY t.line_from, c.seq) AS blinds
    FROM orders o WHERE o.id = ANY($1::bigint[])
"""


@dataclass
class Promises:
    """What the service said."""

    codes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The codes of every order that a client was told is finished."""
    owners: dict[str, Company] = field(default_factory=dict)
    goods: dict[str, str] = field(default_factory=dict)
    paid: set[str] = field(default_factory=set)
    """Orders that a client was told are paid for, and pending."""
    sold_at: dict[str, list[float]] = field(default_factory=dict)
    """When each host said that it sold something."""
    answers: Counter[str] = field(default_factory=Counter)
    strange: Counter[str] = field(default_factory=Counter)
    """Answers that nobody should ever get."""
    resolve_s: dict[str, float] = field(default_factory=dict)
    """The longest that each host took to answer a Resolve."""
    clock: Callable[[], float] = time.monotonic
    retry_s: float = 0.0
    """The longest that a client repeated a call under its key before it heard what had become of it."""
    repeating: dict[int, float] = field(default_factory=dict)
    """The clients that repeat a call now, and since when."""

    def note(self, operation: str, status: int, body: bytes) -> None:
        """Remember an answer."""
        self.answers[f"{operation} {status}"] += 1
        if status not in ALLOWED:
            self.strange[f"{operation}: {status} {body[:120]!r}"] += 1

    def sold(self, host: str, trx: str, order: dict[str, Any], company: Company, goods: str) -> None:
        """A client was told that this order is finished."""
        codes = tuple(codes_of(order))
        if self.codes.setdefault(trx, codes) != codes:
            self.strange[f"{trx} shows other codes than before"] += 1
        self.owners[trx], self.goods[trx] = company, goods
        self.sold_at.setdefault(host, []).append(self.clock())

    def lost(self, client: int, moment: float) -> None:
        """A client does not know what became of a call that it made then, and repeats it."""
        self.repeating.setdefault(client, moment)

    def heard(self, client: int) -> None:
        """It knows now, or gives up."""
        began_at = self.repeating.pop(client, None)
        if began_at is not None:
            self.retry_s = max(self.retry_s, self.clock() - began_at)

    def since(self, host: str, moment: float) -> int:
        """How many orders a host has sold since then."""
        count = 0
        for sold_at in reversed(self.sold_at.get(host, ())):
            if sold_at < moment:
                break
            count += 1
        return count

    def gap_s(self, host: str, begin: float, end: float) -> float:
        """The longest time within these bounds in which a host sold nothing."""
        moments = [begin, *(at for at in self.sold_at.get(host, ()) if begin <= at <= end), end]
        return max(later - earlier for earlier, later in pairwise(moments))

    async def assert_kept(self, shop: Shop, urls: list[str]) -> None:
        """Every promised order is there with the same codes, charged once; no code is on two; the audit is clean."""
        given = [code for codes in self.codes.values() for code in codes]
        assert len(set(given)) == len(given), "a code was given to two orders"
        await self._assert_stored(shop)
        sample = random.Random(len(given)).sample(sorted(self.codes), min(SHOWN_MAX, len(self.codes)))
        for at, trx in enumerate(sample):
            url = f"{urls[at % len(urls)]}/api/1.03/order/{trx}"
            found: httpx.Response = await shop.client.get(url, headers=self.owners[trx].bearer())
            assert (found.status_code, tuple(codes_of(found.json()))) == (200, self.codes[trx])
        await shop.assert_books_balance()

    async def _assert_stored(self, shop: Shop) -> None:
        async with shop.pool.acquire() as conn:
            brands = {
                slug: await brand_of(conn, version.product_id) for slug, version in shop.products.items()
            }
        wanted = {shop.ids.order_id(trx): trx for trx in self.codes}
        numbers = sorted(number for number in wanted if number is not None)
        rows = []
        for at in range(0, len(numbers), READ_MAX):
            rows += await shop.pool.fetch(_STORED, numbers[at : at + READ_MAX])
        assert len(rows) == len(wanted), f"{len(wanted) - len(rows)} promised orders are lost"
        for row in rows:
            trx = wanted[row["id"]]
            assert (row["status"], row["whole"], row["charges"]) == (2, True, 1), (
                f"{trx} is not what was promised"
            )
            blinds = [shop.sealer.blind(brands[self.goods[trx]], code) for code in self.codes[trx]]
            assert row["blinds"] == blinds, f"{trx} has other codes than were promised"
        lost = await shop.pool.fetchval(
            "SELECT count(*) FROM unnest($1::bigint[]) AS w (id) LEFT JOIN orders o USING (id)"
            " WHERE o.id IS NULL OR o.status = 0",
            [shop.ids.order_id(trx) for trx in self.paid],
        )
        assert not lost, "orders that were paid for are lost"
