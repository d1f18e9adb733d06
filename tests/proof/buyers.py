"""Clients that buy without a pause, write down what they are promised, and repeat under its key what they lost."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

from tests.faults.processes import Server
from tests.proof.promises import Promises
from tests.shop import Company

CALL_S_MAX: Final = 8.0
"""A patient client: longer than anything that the settings of the installation allow."""
TRIES_MAX: Final = 400
PAUSE_S: Final = 0.1
UNHEARD: Final = frozenset({409, 503})
HEAD_END: Final = b"\r\n\r\n"


class Lost(Exception):
    """The client does not know what became of its call."""


class Caller:
    """One kept-alive connection to one host, without an HTTP library: it must not be the bottleneck."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._url = ""
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def call(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer."""
        try:
            async with asyncio.timeout(CALL_S_MAX):
                return await self._call(method, path, headers, body)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            self.close()
            raise Lost from None

    async def _call(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        if self._writer is None or self._url != self._server.url or self._writer.is_closing():
            self.close()
            self._url = self._server.url
            parts = urlsplit(self._url)
            self._reader, self._writer = await asyncio.open_connection(parts.hostname, parts.port)
        assert self._reader is not None
        fields = {"host": "shop", "content-length": str(len(body)), **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        answer = (await self._reader.readuntil(HEAD_END)).decode("latin-1").lower()
        status = int(answer[9:12])
        length = 0
        if "content-length: " in answer:
            length = int(answer.partition("content-length: ")[2].partition("\r\n")[0])
        body = await self._reader.readexactly(length)
        if "connection: close" in answer:
            self.close()
        return status, body

    def close(self) -> None:
        """Hang up."""
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None


@dataclass
class Buyer:
    """A program of a company. It calls the host at home, and the other one when that gives no answer."""

    servers: dict[str, Server]
    home: str
    company: Company
    promises: Promises
    seed: int
    goods: tuple[str, ...] = (*("now",) * 9, "bought")
    resolves: float = 0.4
    """How many of its orders it resolves; the others it confirms."""

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._callers = {name: Caller(server) for name, server in self.servers.items()}
        self._away = next(name for name in self.servers if name != self.home)

    async def buy_until(self, stop: asyncio.Event) -> None:
        """Buy, until told to stop."""
        try:
            while not stop.is_set():
                await self._buy(stop)
        finally:
            for caller in self._callers.values():
                caller.close()

    async def _buy(self, stop: asyncio.Event) -> None:
        goods = self._chance.choice(self.goods)
        item = {"productSlug": goods, "amount": self._chance.choice([1, 1, 2])}
        body = json.dumps({"items": [item], "paymentCurrency": "EUR"}).encode()
        created = await self._until_heard(stop, "create", "POST", "/api/1.03/order", body)
        if created is None or created[1] != 201:
            return
        trx = created[2]["trx"]
        operation = "resolve" if self._chance.random() < self.resolves else "confirm"
        path = f"/api/1.03/order/{operation}/{trx}"
        heard = await self._until_heard(stop, operation, "PATCH", path)
        if heard is None:
            return
        host, status, order = heard
        if status != 200:
            await self._suspect(stop, trx, operation, status)
        elif order["orderStatus"] == "finished":
            self.promises.sold(host, trx, order, self.company, goods)
        elif order["orderStatus"] == "pending":
            self.promises.paid.add(trx)

    async def _until_heard(
        self, stop: asyncio.Event, operation: str, method: str, path: str, body: bytes = b""
    ) -> tuple[str, int, Any] | None:
        """Host, status and document of the first real answer; the same key with every repetition."""
        headers = self.company.bearer() | {"idempotency-key": uuid4().hex}
        if body:
            headers["content-type"] = "application/json"
        try:
            return await self._repeated(stop, operation, (method, path, headers, body))
        finally:
            self.promises.heard(self.seed)

    async def _repeated(
        self, stop: asyncio.Event, operation: str, request: tuple[str, str, dict[str, str], bytes]
    ) -> tuple[str, int, Any] | None:
        host, other = self.home, self._away
        for _ in range(TRIES_MAX):
            began_at = self.promises.clock()
            try:
                status, answer = await self._callers[host].call(*request)
            except Lost:
                self.promises.answers["lost"] += 1
                status, answer = 503, b""
            else:
                self.promises.note(operation, status, answer)
            if operation == "resolve":
                took_s = self.promises.clock() - began_at
                self.promises.resolve_s[host] = max(self.promises.resolve_s.get(host, 0.0), took_s)
            if status not in UNHEARD:
                return host, status, json.loads(answer) if status in {200, 201} else None
            if stop.is_set():
                return None
            self.promises.lost(self.seed, began_at)
            if not answer:
                # Only silence sends it elsewhere: who says "come again" is there.
                host, other = other, host
            await asyncio.sleep(PAUSE_S)
        return None

    async def _suspect(self, stop: asyncio.Event, trx: str, operation: str, status: int) -> None:
        """A refusal must be true: who believes a wrong one buys again."""
        found = await self._until_heard(stop, "find", "GET", f"/api/1.03/order/{trx}")
        if found is not None and found[1] == 200 and found[2]["orderStatus"] == "finished":
            self.promises.strange[f"{operation} was refused with {status}, but this very call did it"] += 1
