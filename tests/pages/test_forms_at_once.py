"""Every form of signing in and of one's own account, sent several times at once: refused or taken, never an error."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence

import httpx
import pytest

from tests.apps import set_up
from tests.mailed import mailed
from tests.pages.people import HTML
from tests.shop import Shop
from voucherd.db import Pool, transaction
from voucherd.limits import allowances, throttle
from voucherd.limits.allowances import SECOND_FACTOR
from voucherd.pages.routes import PEOPLE, SIGN_IN
from voucherd.people import links, second_factors, sessions, totp, user_store
from voucherd.people.links import LinkKind
from voucherd.people.sessions import Browser
from voucherd.people.users import UserDraft

AT_ONCE = 6
ROUNDS = 30
LINKS = {"/reset/{token}": LinkKind.RESET, "/invitation/{token}": LinkKind.INVITATION}
FORMS = sorted(
    page.path
    for page in SIGN_IN + PEOPLE
    if page.method == "POST" and not page.path.startswith(("/portal/", "/console/"))
)


async def test_counting_and_forgiving_tries_at_once_loses_none(pool: Pool) -> None:
    """OP-92: a right try removes the tally while others are counted; two tallies of one try never wait crosswise."""
    account, network = sorted(allowances.key_of(SECOND_FACTOR, name) for name in ("a", "b"))
    wanted = {account: SECOND_FACTOR, network: SECOND_FACTOR}

    async def come(cleared: Sequence[bytes], given_back: Sequence[bytes]) -> None:
        for _ in range(ROUNDS):
            with contextlib.suppress(throttle.TooManyTries):
                await throttle.take(pool, wanted)
            await throttle.forgive(pool, cleared, given_back)

    ways = [([account, network], []), ([network], [account]), ([account], [network])] * 2
    await asyncio.gather(*(come(cleared, given_back) for cleared, given_back in ways))


async def test_two_links_of_one_person_used_at_once_open_once(pool: Pool) -> None:
    """OP-92: each link takes the others along, and neither waits for the other for ever."""
    async with transaction(pool) as tx:
        user = await user_store.add_user(tx, UserDraft("ann@shop.example", None, "admin"), "x")

    async def use(token: str) -> bool:
        async with transaction(pool) as tx:
            return await links.use(tx, token, LinkKind.RESET) is not None

    for _ in range(ROUNDS):
        async with transaction(pool) as tx:
            tokens = [await mailed(tx, user.id, LinkKind.RESET) for _ in range(links.OPEN_MAX)]
        used = await asyncio.gather(*(use(token) for token in tokens))
        assert sorted(used) == [False, False, True]


async def test_recovery_codes_asked_for_at_once_are_ten(pool: Pool) -> None:
    """OP-92: new codes void those before, whoever comes first."""
    async with transaction(pool) as tx:
        user = await user_store.add_user(tx, UserDraft("ann@shop.example", None, "admin"), "x")

    async def ask() -> None:
        async with transaction(pool) as tx:
            await second_factors.new_recovery_codes(tx, user.id)

    await asyncio.gather(*(ask() for _ in range(AT_ONCE)))
    assert await pool.fetchval("SELECT count(*) FROM recovery_code") == second_factors.CODES


@pytest.mark.parametrize("path", FORMS)
async def test_a_form_that_is_sent_several_times_at_once_is_answered(shop: Shop, path: str) -> None:
    """OP-92: the table of pages says which forms there are; none answers with an error of the service."""
    async with transaction(shop.pool) as tx:
        draft = UserDraft("ann@shop.example", None, "admin")
        user = await user_store.add_user(tx, draft, "x")
        app = await set_up(tx, shop.sealer, user.id)
        pending = path == "/sign-in/second-factor"
        token = await sessions.begin(tx, user.id, Browser("127.0.0.1", "tests"), pending=pending)
        link = await mailed(tx, user.id, LINKS[path]) if path in LINKS else ""
    found = await sessions.find(shop.pool, token)
    assert found is not None
    fields = {
        "csrf": found.csrf.hex(),
        "email": user.email,
        "password": "correct horse battery staple",
        "current": "x",
        "code": totp.code(app.secret, app.step + 1),
        "state": "sandbox",
        "answer": "{}",
        "name": "key",
    }
    target = path.replace("{token}", link).replace("{passkey}", "1")
    target = target.replace("{session}", sessions.key_of(token)[:8].hex())

    async def send() -> httpx.Response:
        headers = {**HTML, "cookie": f"voucherd={token}"}
        return await shop.client.post(target, headers=headers, data=fields)

    began = time.monotonic()
    answers = await asyncio.gather(*(send() for _ in range(AT_ONCE)))
    assert all(one.status_code < 500 for one in answers), [one.status_code for one in answers]
    if pending:
        assert [one.headers["location"] for one in answers if one.headers.get("location") == "/console"] == [
            "/console"
        ]
    assert time.monotonic() - began < 60
