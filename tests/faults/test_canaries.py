"""Canaries: secrets that are put through the whole service, errors included, and are then looked for everywhere."""

from __future__ import annotations

import asyncio
import base64
import re
import secrets
import subprocess
from collections.abc import AsyncIterator
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.faults.processes import REAL_SERVER, Server, environment, running
from tests.faults.test_kill import shop_of
from tests.patience import HANG_S, until_true
from tests.shop import Company, Shop
from voucherd.db import Pool, transaction
from voucherd.embedded import binaries
from voucherd.ids import State
from voucherd.keys.key_text import Scope
from voucherd.people import second_factors, user_store
from voucherd.people.totp import SECRET_BYTES
from voucherd.people.users import UserDraft, hash_password
from voucherd.suppliers.store import SupplierDraft, add_offer, add_supplier

CODE, SERIAL = "CANARYCODE7X1Q", "CANARYSERIAL9Q2Z"
PASSWORD, WRONG = "canary-password-8841", "canary-guess-5512"
SUPPLIER_KEY, SUPPLIER_SAID = "vk_live_canarysupplier4471", "CANARYSUPPLIERCODE3W"
HEADER = "canary-header-2290"
TOKEN = "canary-metrics-token-6630"
HTML: Final = {"accept": "text/html"}


@pytest.fixture
async def shop(pool: Pool, tmp_path: Path) -> AsyncIterator[Shop]:
    """A shop that sells one canary, and one product that a broken supplier has."""
    async with shop_of(pool, tmp_path) as opened:
        await opened.product("gift")
        await opened.product("later", async_delivery=True)
        await opened.stock_codes(
            "gift", [(CODE, SERIAL), (f"{CODE}2", f"{SERIAL}2"), (f"{CODE}3", f"{SERIAL}3")]
        )
        yield opened


async def broken_supplier() -> asyncio.Server:
    """A supplier that answers everything with a code in the middle of nonsense."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        body = f'{{"items": [{{"voucherCode": "{SUPPLIER_SAID}", "nonsense'.encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        )
        writer.write(body)
        await writer.drain()
        writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", 0)


def forms(secret: str) -> list[bytes]:
    """A secret as it is, in hex, and in base64 wherever it may begin in a longer text."""
    plain = secret.encode()
    turned = [base64.b64encode(b"\0" * at + plain)[at and at + 1 : -4].rstrip(b"=") for at in (0, 1, 2)]
    return [plain, plain.hex().encode(), plain.hex().upper().encode(), *turned]


class Visit:
    """What is done with the service, the secrets that this makes, and every answer that must not tell them."""

    def __init__(self, shop: Shop, server: Server, company: Company) -> None:
        self.shop = shop
        self.server = server
        self.company = company
        self.secrets: dict[str, str] = {
            "code": CODE,
            "serial": SERIAL,
            "password": PASSWORD,
            "guessed password": WRONG,
            "key": company.keys[State.LIVE],
            "supplier's key": SUPPLIER_KEY,
            "supplier's code": SUPPLIER_SAID,
            "webhook header": HEADER,
        }
        self.refusals: list[bytes] = []

    async def call(self, method: str, path: str, *, refused: bool = False, **more: Any) -> httpx.Response:
        """One call; the answer to one that is refused must not hold a secret."""
        headers = self.company.bearer() | more.pop("headers", {})
        answer = await self.shop.client.request(method, self.server.url + path, headers=headers, **more)
        if refused:
            assert answer.status_code >= 400, answer.text
            self.refusals.append(str(answer.headers).encode() + answer.content)
        return answer

    async def buy(self) -> str:
        """An order with the canary, seen in every way; its trx."""
        order = {"items": [{"productSlug": "gift", "amount": 1}], "paymentCurrency": "EUR"}
        created = await self.call(
            "POST", "/api/1.03/order", json=order, headers={"idempotency-key": "canary-1"}
        )
        trx: str = created.json()["trx"]
        for key in ("canary-2", "canary-2"):
            path = f"/api/1.03/order/confirm/{trx}"
            shown = await self.call("PATCH", path, headers={"idempotency-key": key})
            assert CODE in shown.text
            assert shown.headers["cache-control"] == "no-store"
        line = shown.json()["items"][0]["orderLines"][0]
        self.secrets["redemption token"] = line["redemptionLink"].rpartition("/")[2]
        for path in (f"/{trx}", "", f"/{trx}/line", f"/{trx}/codes.csv"):
            shown = await self.call("GET", f"/api/1.03/order{path}")
            assert CODE in shown.text
            assert shown.headers["cache-control"] == "no-store"
        return trx

    async def make_secrets(self) -> None:
        """Secrets of webhooks and keys, which their answers tell once; and of people."""
        hook = {"url": "https://canary.com/in", "headers": {"X-Token": HEADER}}
        made = await self.call(
            "POST", "/api/1.03/webhook", json=hook, headers={"idempotency-key": "canary-3"}
        )
        self.secrets["webhook secret"] = made.json()["secret"].removeprefix("whsec_")
        made = await self.call("POST", "/api/1.03/key", json={"description": "x", "scopes": ["orders:read"]})
        assert made.status_code == 201, made.text
        self.secrets["second key"] = made.json()["key"]
        async with transaction(self.shop.pool) as tx:
            user = await user_store.add_user(
                tx,
                UserDraft("ann@canary.example", self.company.id, "owner"),
                await hash_password(PASSWORD, []),
            )
            totp = secrets.token_bytes(SECRET_BYTES)
            sealed = self.shop.sealer.seal_bytes(second_factors.totp_place(user.id), totp)
            await tx.execute("INSERT INTO totp (user_id, secret) VALUES ($1, $2)", user.id, sealed)
        self.secrets["second factor"] = base64.b32encode(totp).decode().rstrip("=")

    async def sign_in(self) -> None:
        """Pages: a wrong password, the right one, and a forgotten one."""
        for form, fields in (
            ("/sign-in", {"email": "ann@canary.example", "password": WRONG}),
            ("/sign-in", {"email": "ann@canary.example", "password": PASSWORD}),
            ("/forgotten", {"email": "ann@canary.example"}),
        ):
            async with httpx.AsyncClient(base_url=self.server.url, timeout=HANG_S) as browser:
                page = await browser.get(form, headers=HTML)
                csrf = re.search('name="csrf" value="([0-9a-f]+)"', page.text)
                assert csrf is not None, page.text
                cookies = {line.partition(";")[0] for line in page.headers.get_list("set-cookie")}
                answer = await browser.post(
                    form, headers=HTML | {"cookie": "; ".join(cookies)}, data={"csrf": csrf[1], **fields}
                )
                self.refusals.append(answer.content)
        self.secrets["reset link"] = await self._reset_token()
        await self.call("GET", f"/reset/{self.secrets['reset link']}", headers=HTML)
        await self.call("GET", f"/r/{self.secrets['redemption token']}", headers=HTML)

    async def _reset_token(self) -> str:
        folder = self.shop.settings.mail_folder
        await until_true(lambda: list(folder.glob("*.eml")), "no mail came")
        texts = [
            message_from_bytes(file.read_bytes(), policy=default).get_content()
            for file in folder.glob("*.eml")
        ]
        found = re.search(r"/reset/(\S+)", "".join(texts))
        assert found is not None, texts
        return found[1]

    async def provoke(self, trx: str) -> None:
        """Everything that goes wrong: with the client, with the vault, and with the database under it."""
        token = self.company.keys[State.LIVE]
        await self.call("GET", "/api/1.03/order", refused=True, headers={"authorization": f"Bearer {token}x"})
        await self.call("GET", f"/api/1.03/order?page={token}", refused=True)
        await self.call("POST", "/api/1.03/order", refused=True, content=b'{"items": [' + token.encode())
        await self.call("PATCH", f"/api/1.03/order/confirm/{trx}", refused=True)
        await self.call("DELETE", "/api/1.03/order", refused=True)
        pool = self.shop.pool
        await pool.execute("ALTER TABLE reveal ADD CONSTRAINT broken CHECK (false) NOT VALID")
        await pool.execute("ALTER TABLE app_user RENAME TO gone")
        fresh = {"items": [{"productSlug": "gift", "amount": 1}], "paymentCurrency": "EUR"}
        made = (await self.call("POST", "/api/1.03/order", json=fresh)).json()["trx"]
        for method, path in (
            ("GET", f"/api/1.03/order/{trx}"),
            ("PATCH", f"/api/1.03/order/confirm/{made}"),
            ("PATCH", f"/api/1.03/order/resolve/{made}"),
            ("GET", f"/reset/{self.secrets['reset link']}"),
            ("GET", f"/r/{self.secrets['redemption token']}"),
        ):
            answer = await self.call(method, path, headers={} if path.startswith("/api") else HTML)
            if answer.status_code >= 400:
                self.refusals.append(answer.content)
        await pool.execute("ALTER TABLE gone RENAME TO app_user")
        await pool.execute("ALTER TABLE reveal DROP CONSTRAINT broken")
        kept = await pool.fetchval("SELECT sealed FROM code LIMIT 1")
        await pool.execute("UPDATE code SET sealed = sealed || '\\x00'")
        await self.call("GET", f"/api/1.03/order/{trx}", refused=True)
        assert kept is not None


async def _with_supplier(shop: Shop, port: int) -> None:
    config = {"url": f"http://127.0.0.1:{port}", "currency": "EUR"}
    async with transaction(shop.pool) as tx:
        draft = SupplierDraft("canary", "voucherd", State.LIVE, config, SUPPLIER_KEY)
        row = await add_supplier(tx, draft, shop.sealer)
        product = shop.products["later"]
        await add_offer(tx, row, product.product_id, sku="gift", face_minor=product.face_minor or 0)


def _command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def _dump(database_url: str) -> bytes:
    plain = database_url.partition("search_path=")[0].rstrip("?&")
    done = subprocess.run([binaries() / "pg_dump", plain], capture_output=True, check=True, timeout=HANG_S)
    return done.stdout


async def test_no_secret_is_found_anywhere(shop: Shop, database_url: str, tmp_path: Path) -> None:
    """OP-94, OP-95: not in logs, metrics, refusals, tracebacks, the database, kept answers or a process's words."""
    company = await shop.company(balance="500.00 EUR", scopes=frozenset(Scope))
    supplier = await broken_supplier()
    await _with_supplier(shop, supplier.sockets[0].getsockname()[1])
    log = tmp_path / "server.log"
    env = environment(database_url, tmp_path, log_level="debug", log_format="json", metrics_token=TOKEN)
    server = Server(tuple(word for word in REAL_SERVER if word != "--no-worker"), env, log)
    async with supplier, running(server):
        visit = Visit(shop, server, company)
        await visit.make_secrets()
        trx = await visit.buy()
        await visit.sign_in()
        await visit.provoke(trx)
        trusted = {"authorization": f"Bearer {TOKEN}"}
        answer = await shop.client.get(f"{server.url}/metrics", headers=trusted)
        assert answer.status_code == 200
        metrics = answer.content
        assert server._process is not None
        words = _command_line(server._process.pid)

    hay = {
        "log": log.read_bytes(),
        "metrics": metrics,
        "refusals": b"\n".join(visit.refusals),
        "database": _dump(database_url),
        "command line": words,
        "mail": b"\n".join(file.read_bytes() for file in shop.settings.mail_folder.glob("*.eml")),
    }
    assert b"request_failed" in hay["log"], "errors were provoked"
    assert b"Traceback" in hay["log"]
    assert b"idempotency" in hay["database"]
    found = [
        (name, place)
        for name, secret in visit.secrets.items()
        for place, text in hay.items()
        if any(form in text for form in forms(secret))
    ]
    # The link that was mailed to its owner is in that mail, and nowhere else.
    assert found == [("reset link", "mail")]


def test_the_search_itself_finds_what_is_there() -> None:
    """A search that finds nothing because it can't is no proof."""
    for at in range(3):
        text = base64.b64encode(b"x" * at + CODE.encode() + b"behind it")
        assert any(form in text for form in forms(CODE)), at
    assert forms(CODE)[1] in f"\\x{CODE.encode().hex()}".encode()
