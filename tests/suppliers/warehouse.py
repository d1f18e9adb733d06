"""The wholesaler as tests use it: started, told how to behave, killed, started again, and asked what it sold."""

from __future__ import annotations

import asyncio
import os
import sys
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.patience import HANG_S
from tests.suppliers.wholesale import KEY

START_S_MAX = HANG_S
STOP_S_MAX = HANG_S
DESCRIPTION = Path(__file__).with_name("wholesale.toml")


class Warehouse:
    """A wholesaler in a process of its own; its memory outlives it."""

    key = KEY

    def __init__(self, data: Path) -> None:
        self._data = data
        self._process: asyncio.subprocess.Process | None = None
        self._http = httpx.AsyncClient(timeout=HANG_S, trust_env=False)
        self._port = 0

    @property
    def url(self) -> str:
        """Its address, the same after each start."""
        return f"http://127.0.0.1:{self._port}"

    async def start(self) -> None:
        """Start it, until it answers."""
        assert self._process is None
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.suppliers.wholesale"),
            *("--port", str(self._port), "--data", str(self._data)),
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), START_S_MAX)
        assert line, "the wholesaler did not start"
        self._port = int(line.decode().rpartition(":")[2])

    async def kill(self) -> None:
        """SIGKILL: only what is on disk is remembered."""
        if self._process is not None:
            if self._process.returncode is None:
                self._process.kill()
            await asyncio.wait_for(self._process.communicate(), STOP_S_MAX)
            self._process = None

    async def close(self) -> None:
        """Kill it for good."""
        await self.kill()
        await self._http.aclose()

    def description(self, **changes: Any) -> dict[str, Any]:
        """The config of an `http` supplier that buys here; its secret is `key`."""
        return tomllib.loads(DESCRIPTION.read_text(encoding="utf-8")) | {"base_url": self.url} | changes

    async def stock(
        self, sku: str, *, price: str = "9.00", currency: str = "EUR", stock: int = 1_000
    ) -> None:
        """Sell a product, or sell it differently."""
        await self._call("PUT", f"/products/{sku}", {"price": price, "currency": currency, "stock": stock})

    async def behave(
        self, sku: str, mode: str, *, seconds: float = 0.0, hidden_s: float = 0.0, times: int | None = None
    ) -> None:
        """Treat purchases of this product (`*` for all) like that, always or so many times: see wholesale.MODES."""
        how = {"sku": sku, "mode": mode, "seconds": seconds, "hidden_s": hidden_s, "times": times}
        await self._call("POST", "/control", how)

    async def be_honest(self) -> None:
        """Forget all misbehaviour."""
        await self._call("DELETE", "/control")

    async def pass_time(self) -> None:
        """Let whatever was to come later have come, but for late sales."""
        await self._call("POST", "/time", {})

    async def was_asked(self, reference: str) -> bool:
        """Whether a purchase with this reference has come in, whatever was done with it."""
        return bool((await self._call("GET", f"/asked/{reference}"))["asked"])

    async def late_sales(self) -> int:
        """How many sales it still has to make for purchases that it has got."""
        return int((await self._call("GET", "/late"))["sales"])

    async def sales(self) -> dict[str, dict[str, Any]]:
        """What was sold, by our reference: {"sku", "count", "status", "codes"}."""
        return {sale["reference"]: sale for sale in (await self._call("GET", "/sales"))["sales"]}

    async def codes_sold(self) -> list[str]:
        """Every code that was ever sold, oldest first."""
        return [code for sale in (await self.sales()).values() for code in sale["codes"]]

    async def repeats(self) -> list[str]:
        """References that were bought with more than once."""
        return list((await self._call("GET", "/sales"))["repeats"])

    async def _call(self, method: str, path: str, document: Any = None) -> Any:
        response = await self._http.request(method, self.url + path, json=document)
        assert response.status_code == 200, response.text
        return response.json()


@asynccontextmanager
async def warehouse(folder: Path) -> AsyncIterator[Warehouse]:
    """A running wholesaler with nothing on sale; it is gone afterwards."""
    opened = Warehouse(folder / "wholesale.sqlite")
    try:
        await opened.start()
        yield opened
    finally:
        await opened.close()
