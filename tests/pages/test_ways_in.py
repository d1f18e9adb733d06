"""One deed, one row: whichever way in it takes, the trail has the same action, subject and sort of detail."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import Terminal
from tests.pages.people import someone
from tests.shop import Shop
from voucherd import trail
from voucherd.actors import ActorKind
from voucherd.keys.key_text import Scope
from voucherd.trail import TrailRow


class Watch:
    """Looks at what a way in leaves behind."""

    def __init__(self, shop: Shop, terminal: Terminal) -> None:
        self._shop = shop
        self._terminal = terminal
        self.told: dict[str, list[tuple[str, frozenset[str]]]] = {}
        """For each action what its subject was and what its detail held, in each way in."""

    @asynccontextmanager
    async def one(self, kind: ActorKind, action: str, *also: str) -> AsyncIterator[None]:
        """What is done in here leaves exactly this row; and those, where one deed brings another about."""
        before = await self._newest()
        yield
        async with self._shop.pool.acquire() as conn:
            rows = [row for row in (await trail.page(conn)).rows if row.id > before]
        rows.reverse()
        assert [(row.actor_kind, row.action) for row in rows] == [(kind, one) for one in (action, *also)]
        self.told.setdefault(action, []).append((_form(rows[0]), frozenset(rows[0].detail or {})))

    async def command(self, *words: str) -> Any:
        """What a command says; it runs in a process of its own."""
        return await asyncio.to_thread(self._terminal.json, *words)

    async def _newest(self) -> int:
        return int(await self._shop.pool.fetchval("SELECT coalesce(max(id), 0) FROM trail"))

    def assert_alike(self) -> None:
        """Every action looks the same from each side."""
        for action, told in self.told.items():
            assert len(told) > 1, action
            assert len(set(told)) == 1, (action, told)


def _form(row: TrailRow) -> str:
    """The subject without what differs from one to the next."""
    return re.sub(r"(?<= )[\w.+-]+@[\w.]+|\b[0-9]+\b|(?<=company ).+", "…", row.subject)


@pytest.fixture
def watch(shop: Shop, database_url: str, tmp_path: Path) -> Watch:
    """A watch over the shop, and a terminal on the same database."""
    return Watch(shop, Terminal(tmp_path, database_url))


async def test_deeds_to_keys(shop: Shop, watch: Watch) -> None:
    """OP-29, OP-94: by a key, by a person, by the operator in the console and at the command line."""
    company = await shop.company(scopes=frozenset(Scope))
    owner, admin = await someone(shop, "owner", company), await someone(shop, "admin")
    path, page = "/api/1.03/key", "/portal/keys"
    async with watch.one(ActorKind.KEY, "key.add"):
        made = (await shop.call("POST", path, company, json={"description": "a"})).json()
    async with watch.one(ActorKind.KEY, "key.change"):
        limits = {"spendOrderEur": 5, "spendDayEur": 6}
        assert (await shop.call("PATCH", f"{path}/{made['id']}", company, json=limits)).status_code == 200
    async with watch.one(ActorKind.KEY, "key.rotate"):
        heir = (await shop.call("POST", f"{path}/{made['id']}/rotate", company)).json()
    async with watch.one(ActorKind.KEY, "key.revoke"):
        assert (await shop.call("DELETE", f"{path}/{heir['id']}", company)).status_code == 204

    async with watch.one(ActorKind.PERSON, "key.add"):
        assert (await owner.post(page, {"description": "b", "scope": ["orders:read"]})).status_code == 200
    number = await shop.pool.fetchval("SELECT max(id) FROM api_key")
    async with watch.one(ActorKind.PERSON, "key.rotate"):
        turned = await owner.post(f"{page}/{shop.ids.key(number)}/rotate", {"overlap": "1h"})
        assert turned.status_code == 200
    async with watch.one(ActorKind.PERSON, "key.revoke"):
        assert (await owner.post(f"{page}/{shop.ids.key(number + 1)}/revoke")).status_code == 303
    async with watch.one(ActorKind.OPERATOR, "key.revoke"):
        gone = await admin.post(f"/console/companies/{company.id}/keys/{number}/revoke")
        assert gone.status_code == 303

    async with watch.one(ActorKind.COMMAND, "key.add"):
        made = await watch.command("key", "add", company.name, "--state", "live")
    async with watch.one(ActorKind.COMMAND, "key.change"):
        await watch.command("key", "limit", str(made["id"]), "--order", "5 EUR", "--day", "6 EUR")
    async with watch.one(ActorKind.COMMAND, "key.rotate"):
        await watch.command("key", "rotate", str(made["id"]), "--overlap", "1h")
    async with watch.one(ActorKind.COMMAND, "key.revoke"):
        await watch.command("key", "revoke", str(made["id"]))
    watch.assert_alike()


async def test_deeds_to_endpoints(shop: Shop, watch: Watch) -> None:
    """OP-54, OP-94: by a key, by a person and at the command line; and what is sent again."""
    company = await shop.company(scopes=frozenset(Scope))
    owner = await someone(shop, "owner", company)
    api, page, url = "/api/1.03/webhook", "/portal/webhooks", "https://hooks.example.com/in"

    async def called(method: str, rest: str = "", **more: Any) -> Any:
        answer = await shop.call(method, rest if rest.startswith("/api") else api + rest, company, **more)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    async def sent(rest: str = "", **fields: str) -> None:
        assert (await owner.post(page + rest, fields)).status_code in {200, 303}

    async with watch.one(ActorKind.KEY, "webhook.add"):
        name = (await called("POST", json={"url": url}))["id"]
    async with watch.one(ActorKind.PERSON, "webhook.add"):
        await sent(url=url)
    own = shop.ids.webhook(await shop.pool.fetchval("SELECT max(id) FROM webhook"))
    async with watch.one(ActorKind.COMMAND, "webhook.add"):
        third = (await watch.command("webhook", "add", company.name, url))["id"]

    async with watch.one(ActorKind.KEY, "webhook.set"):
        await called("PATCH", f"/{name}", json={"description": "x"})
    async with watch.one(ActorKind.PERSON, "webhook.set"):
        await sent(f"/{own}", url=url, enabled="yes")
    async with watch.one(ActorKind.COMMAND, "webhook.set"):
        await watch.command("webhook", "set", third, "--description", "x")

    async with watch.one(ActorKind.KEY, "webhook.rotate"):
        await called("POST", f"/{name}/rotate", json={})
    async with watch.one(ActorKind.PERSON, "webhook.rotate"):
        await sent(f"/{own}/rotate")
    async with watch.one(ActorKind.COMMAND, "webhook.rotate"):
        await watch.command("webhook", "rotate", third, "--overlap", "1h")

    async with watch.one(ActorKind.KEY, "webhook.test"):
        event = (await called("POST", f"/{name}/test"))["eventId"]
    async with watch.one(ActorKind.PERSON, "webhook.test"):
        await sent(f"/{own}/test")
    async with watch.one(ActorKind.COMMAND, "webhook.test"):
        await watch.command("webhook", "test", third)

    async with watch.one(ActorKind.KEY, "webhook.replay"):
        await called("POST", f"/api/1.03/event/{event}/replay", json={"webhookId": name})
    async with watch.one(ActorKind.PERSON, "webhook.replay"):
        await sent(f"/{own}/replay/{event}")
    async with watch.one(ActorKind.COMMAND, "webhook.replay"):
        await watch.command("webhook", "replay", event, "--webhook", third)

    async with watch.one(ActorKind.KEY, "webhook.recover"):
        await called("POST", f"/{name}/recover?since={await _recently(shop)}")
    async with watch.one(ActorKind.PERSON, "webhook.recover"):
        await sent(f"/{own}/recover", since="1h")
    async with watch.one(ActorKind.COMMAND, "webhook.recover"):
        await watch.command("webhook", "recover", third, "--since", await _recently(shop))

    async with watch.one(ActorKind.KEY, "webhook.remove"):
        await called("DELETE", f"/{name}")
    async with watch.one(ActorKind.PERSON, "webhook.remove"):
        await sent(f"/{own}/remove")
    async with watch.one(ActorKind.COMMAND, "webhook.remove"):
        await watch.command("webhook", "remove", third)
    watch.assert_alike()


async def _recently(shop: Shop) -> str:
    return str(
        await shop.pool.fetchval(
            "SELECT to_char(now() - interval '1 hour', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
        )
    )


async def test_deeds_to_companies(shop: Shop, watch: Watch) -> None:
    """OP-91, OP-94: in the console, at the command line, and a company's own rules in its portal."""
    admin = await someone(shop, "admin")
    async with watch.one(ActorKind.OPERATOR, "company.add", "wallet.top-up"):
        made = await admin.post(
            "/console/companies", {"name": "Acme", "country": "NL", "active": "yes", "expose_costs": "yes"}
        )
    home = made.headers["location"]
    async with watch.one(ActorKind.COMMAND, "company.add", "wallet.top-up"):
        await watch.command("company", "add", "Other", "--country", "DE")
    async with watch.one(ActorKind.OPERATOR, "company.set"):
        assert (await admin.post(f"{home}/standing", {"active": "yes"})).status_code == 303
    async with watch.one(ActorKind.COMMAND, "company.set"):
        await watch.command("company", "set", "Other", "--verified", "--active", "--no-expose-costs")
    async with watch.one(ActorKind.OPERATOR, "company.limit"):
        assert (await admin.post(f"{home}/limits", {"order": "5", "day": "6"})).status_code == 303
    async with watch.one(ActorKind.COMMAND, "company.limit"):
        await watch.command("company", "limit", "Other", "--order", "5 EUR")
    async with watch.one(ActorKind.OPERATOR, "company.people"):
        assert (await admin.post(f"{home}/policy", {"approve_from": "9"})).status_code == 303
    async with watch.one(ActorKind.COMMAND, "company.people"):
        await watch.command("company", "people", "Other", "--second-factor")
    owner = await someone(shop, "owner", await shop.company())
    async with watch.one(ActorKind.PERSON, "company.people"):
        assert (await owner.post("/portal/team/rules", {"approve_from": "250.50"})).status_code == 303
    watch.assert_alike()


async def test_deeds_to_people(shop: Shop, watch: Watch) -> None:
    """OP-92, OP-94: by their own side, and at the command line."""
    company = await shop.company()
    owner, other = await someone(shop, "owner", company), await someone(shop, "viewer", company)
    base = f"/portal/team/{other.user_id}"

    async def sent(rest: str, **fields: str) -> None:
        assert (await owner.post(f"{base}/{rest}", fields)).status_code == 303

    async with watch.one(ActorKind.PERSON, "user.role"):
        await sent("role", role="buyer")
    async with watch.one(ActorKind.COMMAND, "user.role"):
        await watch.command("user", "set", other.email, "--role", "viewer")
    async with watch.one(ActorKind.PERSON, "user.deactivate"):
        await sent("deactivate")
    async with watch.one(ActorKind.PERSON, "user.activate"):
        await sent("activate")
    async with watch.one(ActorKind.COMMAND, "user.deactivate"):
        await watch.command("user", "set", other.email, "--inactive")
    async with watch.one(ActorKind.COMMAND, "user.activate"):
        await watch.command("user", "set", other.email, "--active")
    async with watch.one(ActorKind.PERSON, "second-factor.reset"):
        await sent("second-factor")
    async with watch.one(ActorKind.COMMAND, "second-factor.reset"):
        await watch.command("user", "reset-second-factor", other.email)
    watch.assert_alike()
    async with watch.one(ActorKind.PERSON, "user.password-link"):
        assert (await owner.post(f"{base}/password")).status_code == 200
    async with watch.one(ActorKind.COMMAND, "user.reset-password"):
        await watch.command("user", "reset-password", other.email)
    async with watch.one(ActorKind.COMMAND, "user.add"):
        await watch.command("user", "add", "new@acme.example", "--role", "buyer", "--company", company.name)
    async with watch.one(ActorKind.PERSON, "session.end"):
        assert (await owner.post("/sign-out")).status_code == 303
