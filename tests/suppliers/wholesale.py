"""A wholesaler of codes: a small but real supplier in a process of its own, with a memory, that misbehaves when told.

    python -m tests.suppliers.wholesale --port 0 --data FILE

prints its address. What buyers call needs `Authorization: Bearer <key>`; the rest is for whoever runs the test.

    GET    /products/SKU      price and stock
    POST   /orders            {"reference", "sku", "quantity", "max_price"?}: buy
    GET    /orders/REFERENCE  what became of it
    DELETE /orders/REFERENCE  take it back, while it is not done
    PUT    /products/SKU      {"price": "9.00", "currency": "EUR", "stock": 100}
    POST   /control           {"sku": SKU or "*", "mode": one of MODES, "seconds"?, "hidden_s"?, "times"?}
    DELETE /control           be honest again
    GET    /asked/REFERENCE   {"asked": whether somebody has tried to buy with it}
    POST   /time              whatever was to come in `seconds` or `hidden_s` has come now
    GET    /late              {"sales": how many are still to be made of what was asked for}
    GET    /sales             {"sales": [{"reference", "sku", "status", "codes", "count"}], "repeats": [reference]}

With `hidden_s` a purchase can't be looked up for so many seconds, though it is made.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.suppliers.book import Behaviour, Book, codes_of, status_of
from tests.suppliers.plain_http import HEAD_BYTES_MAX, Reset, Response, serve

KEY = "wholesale-secret-9f2c"
HANG_S = 900.0

MODES = {
    "honest": "sells and says so",
    "hang-before": "never answers, and sells nothing",
    "hang-after": "sells, and never answers",
    "reset-before": "resets the connection, and sells nothing",
    "reset-after": "sells, and resets the connection",
    "error-before": "answers 500, and sells nothing",
    "error-after": "sells, and answers 500",
    "malformed": "sells, and answers with a page of HTML",
    "cut-off": "sells, and hangs up in the middle of the answer",
    "slow": "sells at once, and answers after `seconds`",
    "late-sale": "sells after `seconds`, whether the buyer still waits or not",
    "duplicate": "sells, and lists every code twice",
    "partial": "sells half of what was asked for, at least one code, and calls it done",
    "too-many": "sells two codes more than were asked for",
    "accepted": "takes the purchase, and delivers after `seconds`",
    "accepted-then-fails": "takes the purchase, and gives it up after `seconds`",
    "yes-then-no": "sells and says so, and says after `seconds` that it failed",
    "same-code": "sells a code that somebody has already",
    "control-characters": "sells a code with a bell in it",
    "out-of-stock": "says that it has none",
    "funds": "says that the buyer's balance is too low",
    "rejected": "says no, without a reason",
}


class Wholesale:
    """Answers requests from its book."""

    def __init__(self, book: Book, key: str) -> None:
        self._book = book
        self._key = key
        self._later: set[asyncio.Task[None]] = set()
        self._asked: set[str] = set()

    async def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Response:
        """The answer to one request."""
        kind, _, name = unquote(path).lstrip("/").partition("/")
        open_to_all: dict[tuple[str, str], Callable[[str, Any], Response]] = {
            ("PUT", "products"): self._put_product,
            ("POST", "control"): self._control,
            ("DELETE", "control"): self._be_honest,
            ("GET", "sales"): self._sales,
            ("GET", "late"): self._late,
            ("GET", "asked"): self._was_asked,
            ("POST", "time"): self._pass_time,
        }
        for_buyers: dict[tuple[str, str], Callable[[str, Any], Awaitable[Response]]] = {
            ("GET", "products"): self._product,
            ("POST", "orders"): self._buy,
            ("GET", "orders"): self._order,
            ("DELETE", "orders"): self._cancel,
        }
        try:
            document = json.loads(body) if body else None
            if (method, kind) in open_to_all:
                return open_to_all[method, kind](name, document)
            if (method, kind) not in for_buyers:
                return Response(404, {"error": {"code": "NO_SUCH_PATH"}})
            if headers.get("authorization") != f"Bearer {self._key}":
                return Response(401, {"error": {"code": "UNAUTHORIZED"}})
            return await for_buyers[method, kind](name, document)
        except Response as response:
            return response

    # ── for buyers ────────────────────────────────────────────────────────────────────────────────────

    async def _product(self, sku: str, _document: Any) -> Response:
        product = self._sold(sku)
        price = {"amount": float(product["price"]), "currency": product["currency"]}
        return Response(200, {"sku": sku, "price": price, "stock": product["stock"]})

    async def _buy(self, _name: str, order: Any) -> Response:
        self._asked.add(order["reference"])
        product = self._sold(order["sku"])
        if self._book.purchase(order["reference"]) is not None:
            self._book.note_repeat(order["reference"])
            return Response(409, {"error": {"code": "REFERENCE_USED"}})
        if "max_price" in order and float(product["price"]) > float(order["max_price"]):
            return Response(422, {"error": {"code": "PRICE_ABOVE_LIMIT"}})
        behaviour = self._book.next_behaviour(order["sku"])
        if behaviour.mode == "out-of-stock" or product["stock"] < order["quantity"]:
            return Response(409, {"error": {"code": "NO_STOCK"}})
        if behaviour.mode == "funds":
            return Response(402, {"error": {"code": "BALANCE"}})
        if behaviour.mode == "rejected":
            return Response(403, {"error": {"code": "NOT_ALLOWED"}})
        return await self._misbehave(order, product, behaviour)

    async def _misbehave(self, order: dict[str, Any], product: sqlite3.Row, how: Behaviour) -> Response:
        mode = how.mode
        if mode == "hang-before":
            await asyncio.sleep(how.seconds or HANG_S)
            raise Reset
        if mode == "reset-before":
            raise Reset
        if mode == "error-before":
            return Response(500, {"error": {"code": "INTERNAL"}})
        if mode == "late-sale":
            # Its own task: a buyer who hangs up does not stop it.
            sale = asyncio.create_task(self._sell_later(order, product, how))
            self._later.add(sale)
            sale.add_done_callback(self._later.discard)
            await asyncio.shield(sale)
            return Response(201, _shown(self._bought(order["reference"])))
        sold = self._sell(order, product, how)
        return await self._say(sold, how)

    async def _sell_later(self, order: dict[str, Any], product: sqlite3.Row, how: Behaviour) -> None:
        await asyncio.sleep(how.seconds)
        self._sell(order, product, how)

    def _sell(self, order: dict[str, Any], product: sqlite3.Row, how: Behaviour) -> sqlite3.Row:
        count = order["quantity"]
        if how.mode == "partial":
            count = max(1, count // 2)
        if how.mode == "too-many":
            count += 2
        codes = [_new_code() for _ in range(0 if how.mode == "accepted-then-fails" else count)]
        before = self._book.a_code_sold_before() if how.mode == "same-code" else None
        if before is not None:
            codes[0] = before
        if how.mode == "control-characters":
            codes[0]["pin"] += "\a"
        status = {
            "accepted": ("processing", "done", how.seconds),
            "accepted-then-fails": ("processing", "failed", how.seconds),
            "yes-then-no": ("done", "failed", how.seconds),
        }.get(how.mode, ("done", "done", 0.0))
        return self._book.sell(order, product, codes, hidden_s=how.hidden_s, status=status)

    async def _say(self, sold: sqlite3.Row, how: Behaviour) -> Response:
        if how.mode == "reset-after":
            raise Reset
        if how.mode == "hang-after":
            await asyncio.sleep(how.seconds or HANG_S)
            raise Reset
        if how.mode == "error-after":
            return Response(500, {"error": {"code": "INTERNAL"}})
        if how.mode == "malformed":
            return Response(
                200, None, raw=b"<!doctype html><title>Thank you</title><p>Your order is complete."
            )
        if how.mode == "slow":
            await asyncio.sleep(how.seconds)
        body = _shown(sold)
        if how.mode == "duplicate":
            body["items"] = [item for item in body["items"] for _ in range(2)]
        return Response(202 if body["status"] == "processing" else 201, body, cut=how.mode == "cut-off")

    async def _order(self, reference: str, _document: Any) -> Response:
        return Response(200, _shown(self._bought(reference)))

    async def _cancel(self, reference: str, _document: Any) -> Response:
        if status_of(self._bought(reference)) == "processing":
            self._book.cancel(reference)
        return Response(200, _shown(self._bought(reference)))

    def _sold(self, sku: str) -> sqlite3.Row:
        product = self._book.product(sku)
        if product is None:
            raise Response(404, {"error": {"code": "UNKNOWN_SKU"}})
        return product

    def _bought(self, reference: str) -> sqlite3.Row:
        found = self._book.purchase(reference)
        if found is None or found["visible_at"] > time.time():
            raise Response(404, {"error": {"code": "UNKNOWN_REFERENCE"}})
        return found

    # ── for whoever runs the test ─────────────────────────────────────────────────────────────────────

    def _put_product(self, sku: str, document: Any) -> Response:
        self._book.put_product(sku, document["price"], document["currency"], document["stock"])
        return Response(200, {})

    def _control(self, _name: str, document: Any) -> Response:
        sku = document.pop("sku", "*")
        behaviour = Behaviour(**document)
        if behaviour.mode not in MODES:
            return Response(400, {"error": {"code": "NO_SUCH_MODE"}})
        self._book.behave(sku, behaviour)
        return Response(200, {})

    def _be_honest(self, _name: str, _document: Any) -> Response:
        self._book.be_honest()
        return Response(200, {})

    def _pass_time(self, _name: str, _document: Any) -> Response:
        self._book.pass_time()
        return Response(200, {})

    def _was_asked(self, reference: str, _document: Any) -> Response:
        return Response(200, {"asked": reference in self._asked})

    def _late(self, _name: str, _document: Any) -> Response:
        return Response(200, {"sales": len(self._later)})

    def _sales(self, _name: str, _document: Any) -> Response:
        sales = [
            {
                "reference": row["reference"],
                "sku": row["sku"],
                "count": row["count"],
                "status": status_of(row),
                "codes": [code["pin"] for code in json.loads(row["codes"])],
            }
            for row in self._book.sales()
        ]
        return Response(200, {"sales": sales, "repeats": self._book.repeats()})


def _new_code() -> dict[str, str]:
    return {
        "pin": "-".join(secrets.token_hex(2).upper() for _ in range(4)),
        "serial": f"WS{secrets.randbelow(10**10):010d}",
        "valid_until": "2031-12-31",
    }


def _shown(purchase: sqlite3.Row) -> dict[str, Any]:
    return {
        "id": purchase["id"],
        "reference": purchase["reference"],
        "status": status_of(purchase),
        "unit_price": {"amount": float(purchase["price"]), "currency": purchase["currency"]},
        "items": codes_of(purchase),
    }


async def _run(port: int, data: Path, key: str) -> None:
    wholesale = Wholesale(Book(data), key)
    server = await asyncio.start_server(
        lambda reader, writer: serve(wholesale.answer, reader, writer),
        "127.0.0.1",
        port,
        limit=HEAD_BYTES_MAX,
    )
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    async with server:
        await server.serve_forever()


def main() -> None:
    """Sell until told to stop, or killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.suppliers.wholesale")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--key", default=KEY)
    given = parser.parse_args()
    try:
        asyncio.run(_run(given.port, given.data, given.key))
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
