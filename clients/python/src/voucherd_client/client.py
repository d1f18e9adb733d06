"""The clients: one that blocks, and one for asyncio. Both have the same nouns with the same operations."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final, Generic, Self

import httpx

from voucherd_client.accounts import Accounts
from voucherd_client.catalogue import Brands, Categories, FxRates, Products
from voucherd_client.engine import TIMEOUT_S, Address, AsyncEngine, Engine
from voucherd_client.events import Events
from voucherd_client.keys import Keys
from voucherd_client.operation import E, Resource, operation
from voucherd_client.orders import Orders
from voucherd_client.sandbox import Requests, Sandbox
from voucherd_client.steps import ANYTHING, Retries, Steps, decode, query
from voucherd_client.webhooks import Webhooks

RETRIES: Final = Retries()


class _Nouns(Resource[E], Generic[E]):
    """What both clients have."""

    def __init__(self, engine: E, retries: Retries) -> None:
        super().__init__(engine, retries)
        self.orders: Final[Orders[E]] = Orders(engine, retries)
        self.products: Final[Products[E]] = Products(engine, retries)
        self.brands: Final[Brands[E]] = Brands(engine, retries)
        self.categories: Final[Categories[E]] = Categories(engine, retries)
        self.fx_rates: Final[FxRates[E]] = FxRates(engine, retries)
        self.accounts: Final[Accounts[E]] = Accounts(engine, retries)
        self.events: Final[Events[E]] = Events(engine, retries)
        self.webhooks: Final[Webhooks[E]] = Webhooks(engine, retries)
        self.keys: Final[Keys[E]] = Keys(engine, retries)
        self.sandbox: Final[Sandbox[E]] = Sandbox(engine, retries)
        self.requests: Final[Requests[E]] = Requests(engine, retries)

    @operation
    def call(
        self,
        /,
        method: str,
        path: str,
        *,
        body: Any = None,
        idempotency_key: str | None = None,
        **given: Any,
    ) -> Steps[Any]:
        """Any call below /api/1.03/ that has no method here; its JSON as it came, with money as Decimal."""
        if method == "GET":
            answer = yield from self._bytes(path, query(**given))
        else:
            answer = yield from self._do(method, path, body, key=idempotency_key, query=query(**given))
        return decode(answer, ANYTHING) if answer else None


class Client(_Nouns[Engine]):
    """Calls the service and waits for its answers. Threads may share one."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout_s: float = TIMEOUT_S,
        retries: Retries = RETRIES,
        http: httpx.Client | None = None,
        allow_http: bool = False,
    ) -> None:
        address = Address.of(url, key, allow_http=allow_http)
        self._http = http or httpx.Client()
        self._owned = http is None
        self._shown = f"Client({address.url!r})"
        super().__init__(Engine(address, self._http, timeout_s), retries)

    def close(self) -> None:
        """Close the connections; a client of httpx that you brought along stays open."""
        if self._owned:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return self._shown


class AsyncClient(_Nouns[AsyncEngine]):
    """Calls the service; every operation is awaited."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout_s: float = TIMEOUT_S,
        retries: Retries = RETRIES,
        http: httpx.AsyncClient | None = None,
        allow_http: bool = False,
    ) -> None:
        address = Address.of(url, key, allow_http=allow_http)
        self._http = http or httpx.AsyncClient()
        self._owned = http is None
        self._shown = f"AsyncClient({address.url!r})"
        super().__init__(AsyncEngine(address, self._http, timeout_s), retries)

    async def close(self) -> None:
        """Close the connections; a client of httpx that you brought along stays open."""
        if self._owned:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return self._shown
