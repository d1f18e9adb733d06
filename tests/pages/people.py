"""People at browsers, without the browser: a session, its cookie, and forms that bring their csrf field along."""

from __future__ import annotations

import itertools
import re
from typing import Any

import httpx

from tests.patience import a_day_later
from tests.shop import Company, Shop
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.people import sessions, user_store
from voucherd.people.users import UserDraft

_count = itertools.count(1)
HTML = {"accept": "text/html"}
PASSWORD = "correct horse battery staple"


class Someone:
    """A person who signed in."""

    def __init__(
        self, shop: Shop, user_id: int, email: str, token: str, csrf: str, state: State = State.LIVE
    ) -> None:
        self.shop = shop
        self.user_id = user_id
        self.email = email
        self.token = token
        self.csrf = csrf
        self.state = state

    @property
    def headers(self) -> dict[str, str]:
        """What the browser sends along."""
        return {"cookie": f"voucherd={self.token}", **HTML}

    def address(self, path: str) -> str:
        """Where the page is in the state that the person looks at."""
        stated = path.startswith(("/portal", "/console", "/account"))
        return f"/sandbox{path}" if stated and self.state is State.SANDBOX else path

    async def get(self, path: str, **more: Any) -> httpx.Response:
        """Open a page."""
        return await self.shop.client.get(self.address(path), headers=self.headers, **more)

    async def post(
        self, path: str, fields: dict[str, Any] | None = None, *, follow: bool = False, **more: Any
    ) -> httpx.Response:
        """Send a form; `follow` opens the page that it leads to."""
        data = {"csrf": self.csrf, "sure": "yes", **(fields or {})}
        answer = await self.shop.client.post(self.address(path), headers=self.headers, data=data, **more)
        if follow:
            assert answer.status_code == 303, answer.text
            page = await self.get(answer.headers["location"])
            assert page.status_code == 200, page.text
            return page
        return answer

    def look_at(self, state: State) -> None:
        """Open the pages of live, or of the sandbox, from now on."""
        self.state = state


class Browser:
    """A browser that keeps its cookies, and sends each form with the csrf field of the page that it is on."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.cookies: dict[str, str] = {}
        self.csrf = ""

    async def get(self, path: str) -> httpx.Response:
        """Open a page."""
        return self._seen(await self.shop.client.get(path, headers=self._headers))

    async def post(self, path: str, **fields: str) -> httpx.Response:
        """Send a form."""
        data = {"csrf": self.csrf, **fields}
        return self._seen(await self.shop.client.post(path, headers=self._headers, data=data))

    async def sign_in(self, email: str, password: str = PASSWORD) -> httpx.Response:
        """Fill in the form."""
        await self.get("/sign-in")
        answer = await self.post("/sign-in", email=email, password=password)
        if answer.status_code == 303:
            await self.get(answer.headers["location"])
        return answer

    @property
    def _headers(self) -> dict[str, str]:
        return {**HTML, "cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}

    def _seen(self, answer: httpx.Response) -> httpx.Response:
        self.shop.client.cookies.clear()
        for line in answer.headers.get_list("set-cookie"):
            name, _, value = line.partition(";")[0].partition("=")
            self.cookies[name] = value
        found = re.search('name="csrf" value="([0-9a-f]+)"', answer.text)
        self.csrf = found[1] if found else self.csrf
        return answer


async def someone(
    shop: Shop,
    role: str,
    company: Company | None = None,
    *,
    state: State = State.LIVE,
    strong: bool | None = None,
) -> Someone:
    """A person of that role, signed in; without a company one of the operator's own, who has a second factor."""
    strong = company is None if strong is None else strong
    email = f"{role}{next(_count)}@people.example"
    async with transaction(shop.pool) as tx:
        draft = UserDraft(email, None if company is None else company.id, role)
        user = await user_store.add_user(tx, draft, "no password opens this")
        await a_day_later(tx)
        token = await sessions.begin(tx, user.id, sessions.Browser("127.0.0.1", "tests"), strong=strong)
    found = await sessions.find(shop.pool, token)
    assert found is not None
    return Someone(shop, user.id, email, token, found.csrf.hex(), state)
