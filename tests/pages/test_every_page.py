"""Every page of the table of pages, tried by everybody who must not get it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeAlias

import httpx

from tests.pages.people import HTML, Someone, someone
from tests.shop import Company, Shop
from voucherd.actors import SYSTEM, Actor, ActorKind
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.orders import consent
from voucherd.pages.page import Audience, Page
from voucherd.pages.routes import PAGES
from voucherd.people import sessions
from voucherd.people.roles import COMPANY, OPERATOR
from voucherd.request_log import store as request_log
from voucherd.request_log.store import Answered
from voucherd.webhooks import deeds as webhook_deeds
from voucherd.webhooks.endpoints import Draft

Fill: TypeAlias = Callable[[Shop, Company], Awaitable[dict[str, str]]]
"""What to put into a path's places, given another company than the one that asks."""


async def foreign_currency(shop: Shop, other: Company) -> dict[str, str]:
    """A balance that only the other company has."""
    await shop.top_up(other, "5.00 USD")
    return {"currency": "USD"}


async def foreign_key(shop: Shop, other: Company) -> dict[str, str]:
    """A key of the other company."""
    number = await shop.pool.fetchval("SELECT max(id) FROM api_key WHERE company_id = $1", other.id)
    return {"key": shop.ids.key(number)}


async def foreign_webhook(shop: Shop, other: Company) -> dict[str, str]:
    """An endpoint of the other company, and an event of its own."""
    draft = Draft("https://hooks.example.com/")
    async with transaction(shop.pool) as tx:
        endpoint, _ = await webhook_deeds.add(tx, SYSTEM, shop.sealer, other.id, State.LIVE, draft)
        event = await webhook_deeds.test(tx, SYSTEM, endpoint.id)
    return {"webhook": shop.ids.webhook(endpoint.id), "event": shop.ids.event(event)}


async def foreign_request(shop: Shop, other: Company) -> dict[str, str]:
    """A call of the other company."""
    seen = (datetime.now(UTC), "req_foreign", 1, "GET", "/api/1.03/order", 200, 1, "", "")
    await request_log.write(shop.pool, [Answered(other.id, State.LIVE, *seen)])
    return {"number": "1"}


async def an_order(shop: Shop, other: Company) -> dict[str, str]:
    """An order of the other company, which even has a code."""
    if "foreign" not in shop.products:
        await shop.product("foreign", stock=20)
    trx = (await shop.create(other, ("foreign", 1)))["trx"]
    await shop.confirm(other, trx)
    return {"trx": trx}


async def no_product(_shop: Shop, _other: Company) -> dict[str, str]:
    """A product that nobody sells."""
    return {"slug": "no-such-product"}


async def made_up_token(_shop: Shop, _other: Company) -> dict[str, str]:
    """A link that nobody was sent."""
    return {"token": "x" * 43}


async def no_code(_shop: Shop, _other: Company) -> dict[str, str]:
    """An error that nobody ever meets."""
    return {"code": "no_such_error"}


async def foreign_person(shop: Shop, other: Company) -> dict[str, str]:
    """Somebody of the other company."""
    return {"person": str((await someone(shop, "viewer", other)).user_id)}


async def foreign_approval(shop: Shop, other: Company) -> dict[str, str]:
    """A request of the other company's people, about an order of its own."""
    asker = await someone(shop, "owner", other)
    if "gift-1" not in shop.products:
        await shop.product("gift-1", stock=1)
    order = await shop.create(other, ("gift-1", 1))
    answer = await shop.order_service.find(shop.ids.order_id(order["trx"]), other.id, State.LIVE)
    actor = Actor(ActorKind.PERSON, asker.email, asker.user_id, other.id, answer.order.state)
    return {"approval": str((await consent.ask(shop.pool, actor, answer.order)).id)}


async def foreign_passkey(shop: Shop, other: Company) -> dict[str, str]:
    """A passkey of somebody else."""
    owner = await someone(shop, "owner", other)
    number = await shop.pool.fetchval(
        "INSERT INTO passkey (user_id, credential, public_key, sign_count, name) VALUES ($1, 'c', 'k', 0, 'x')"
        " ON CONFLICT (credential) DO UPDATE SET user_id = $1 RETURNING id",
        owner.user_id,
    )
    return {"passkey": str(number)}


async def foreign_session(shop: Shop, other: Company) -> dict[str, str]:
    """A browser of somebody else."""
    return {"session": sessions.key_of((await someone(shop, "owner", other)).token)[:8].hex()}


FOREIGN: dict[str, Fill] = {
    "/docs/errors/{code}": no_code,
    "/set-up/{token}": made_up_token,
    "/reset/{token}": made_up_token,
    "/invitation/{token}": made_up_token,
    "/account/passkeys/{passkey}/remove": foreign_passkey,
    "/account/sessions/{session}/end": foreign_session,
    "/portal/team/{person}": foreign_person,
    "/portal/team/{person}/invite": foreign_person,
    "/portal/team/{person}/password": foreign_person,
    "/portal/team/{person}/role": foreign_person,
    "/portal/team/{person}/deactivate": foreign_person,
    "/portal/team/{person}/activate": foreign_person,
    "/portal/team/{person}/second-factor": foreign_person,
    "/portal/approvals/-/people/{person}": foreign_person,
    "/portal/approvals/{approval}/approve": foreign_approval,
    "/portal/approvals/{approval}/reject": foreign_approval,
    "/portal/approvals/{approval}/withdraw": foreign_approval,
    "/portal/catalogue/{slug}": no_product,
    "/portal/orders/{trx}": an_order,
    "/portal/orders/{trx}/live": an_order,
    "/portal/orders/{trx}/confirm": an_order,
    "/portal/orders/{trx}/reopen": an_order,
    "/portal/orders/{trx}/again": an_order,
    "/portal/orders/{trx}/cancel": an_order,
    "/portal/orders/{trx}/codes": an_order,
    "/portal/orders/{trx}/links": an_order,
    "/portal/orders/{trx}/links/show": an_order,
    "/portal/orders/{trx}/links/file": an_order,
    "/portal/orders/{trx}/download": an_order,
    "/portal/balances/{currency}": foreign_currency,
    "/portal/balances/{currency}/statement.csv": foreign_currency,
    "/portal/keys/{key}": foreign_key,
    "/portal/keys/{key}/rotate": foreign_key,
    "/portal/keys/{key}/revoke": foreign_key,
    "/portal/keys/{key}/keep": foreign_key,
    "/portal/keys/{key}/alone": foreign_key,
    "/portal/requests/{number}": foreign_request,
    "/portal/webhooks/{webhook}": foreign_webhook,
    "/portal/webhooks/{webhook}/edit": foreign_webhook,
    "/portal/webhooks/{webhook}/remove": foreign_webhook,
    "/portal/webhooks/{webhook}/rotate": foreign_webhook,
    "/portal/webhooks/{webhook}/test": foreign_webhook,
    "/portal/webhooks/{webhook}/recover": foreign_webhook,
    "/portal/webhooks/{webhook}/replay/{event}": foreign_webhook,
}
"""For each path of companies with places: a thing that is not the caller's.

A company's page with places that has no row here fails the tests below. The operator's people see everything, so
theirs are tried with a number that nothing has.
"""
NOWHERE = "999999999"
INLINE = r"<[^>]+ (style|on[a-z]+)=|<style|<script(?![^>]* src=)"
"""Styles and scripts in the page itself: the content policy lets none be used."""
WEIGHT_BYTES_MAX = 150_000


async def filled(shop: Shop, other: Company, page: Page) -> str:
    """The page's path with things of another company in its places."""
    if "{" not in page.path:
        return page.path
    of_all = page.audience is Audience.OPERATOR or page.path.startswith("/docs/")
    if of_all and page.path not in FOREIGN:
        return re.sub(r"\{[a-z_]+\}", NOWHERE, page.path)
    assert page.path in FOREIGN, f"{page.path} needs a row in FOREIGN"
    return page.path.format(**await FOREIGN[page.path](shop, other))


async def weight(shop: Shop, page: httpx.Response) -> int:
    """The bytes of a page with all that it has the browser fetch, unpacked."""
    paths = set(re.findall(r' (?:href|src)="(/static/[^"]+)"', page.text))
    return len(page.content) + sum([len((await shop.client.get(path)).content) for path in paths])


async def visit(person: Someone, page: Page, path: str) -> int:
    """What the person gets there."""
    answer = await (person.get(path) if page.method == "GET" else person.post(path))
    return answer.status_code


def roles_without(page: Page) -> list[str]:
    """Roles of the page's audience that lack its right."""
    roles = OPERATOR if page.audience is Audience.OPERATOR else COMPANY
    return [role for role, rights in roles.items() if page.right is not None and page.right not in rights]


async def test_every_page_turns_away_whoever_it_is_not_for(shop: Shop) -> None:
    """OP-91: signed out, of the other kind, without the right, without the form's secret, or another company's."""
    ours, other = await shop.company(), await shop.company()
    people = {role: await someone(shop, role, ours) for role in COMPANY}
    staff = {role: await someone(shop, role) for role in OPERATOR}
    for page in PAGES:
        path = await filled(shop, other, page) if page.audience is not Audience.LINK else page.path
        named = f"{page.method} {page.path}"
        if page.audience is Audience.LINK:
            continue  # Nobody is asked who he is: tests/portal/test_recipient.py.
        if page.method == "POST":
            bare = await shop.client.post(
                path, headers={**HTML, "cookie": f"voucherd={people['owner'].token}"}
            )
            assert bare.status_code in ((403,) if page.audience is not Audience.OPERATOR else (403, 404)), (
                named
            )
        if page.audience is Audience.PUBLIC:
            continue
        out = await shop.client.request(page.method, path, headers=HTML)
        if page.method == "GET":
            assert out.status_code == 303, named
            assert out.headers["location"].startswith("/sign-in?next="), named
        else:
            assert out.status_code == 403, named
        if page.audience is Audience.SIGNED_IN:
            if "{" in page.path:
                assert await visit(people["owner"], page, path) == 404, named
            continue
        operators = page.audience is Audience.OPERATOR
        wrong, right = (people["owner"], staff) if operators else (staff["admin"], people)
        assert await visit(wrong, page, path) in (403, 404), named
        for role in roles_without(page):
            assert await visit(right[role], page, path) == 403, (named, role)
        if "{" in page.path:
            chief = right["admin" if operators else "owner"]
            assert await visit(chief, page, path) == 404, named


async def test_every_page_without_places_opens_for_those_whom_it_is_for(shop: Shop) -> None:
    """OP-91: in both states, for an owner or an admin, in a shop that has nothing in it yet."""
    owner, admin = await someone(shop, "owner", await shop.company()), await someone(shop, "admin")
    for page in PAGES:
        if page.method != "GET" or "{" in page.path:
            continue
        person = admin if page.audience is Audience.OPERATOR else owner
        for state in State:
            person.look_at(state)
            answer = await person.get(page.path)
            assert answer.status_code in (200, 303), f"{page.path} in {state.word}: {answer.status_code}"
            assert answer.headers["content-security-policy"].startswith("default-src 'none'")
            assert answer.headers["cache-control"] == "no-store"
            if answer.headers.get("content-type", "").startswith("text/html"):
                assert not re.search(INLINE, answer.text), page.path
                assert await weight(shop, answer) < WEIGHT_BYTES_MAX, page.path
                if page.audience is not Audience.PUBLIC:
                    assert ('class="band"' in answer.text) is (state is State.SANDBOX), page.path


def test_every_page_says_what_it_is_for() -> None:
    """OP-91: pages of companies lie under /portal, the operator's under /console, and what changes is a POST."""
    for page in PAGES:
        assert page.method in ("GET", "POST")
        assert page.handler.__doc__, page.path
        if page.audience is Audience.COMPANY:
            assert page.path == "/portal" or page.path.startswith("/portal/")
        if page.audience is Audience.OPERATOR:
            assert page.path == "/console" or page.path.startswith("/console/")
