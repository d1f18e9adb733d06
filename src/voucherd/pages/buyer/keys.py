"""The company's API keys. A key's text is on the page that made it, and nowhere else."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Final

from markupsafe import Markup, escape

from voucherd import clock
from voucherd.companies import store as company_store
from voucherd.db import tenant
from voucherd.http import HttpError, Response
from voucherd.keys import deeds as key_deeds
from voucherd.keys import store as key_store
from voucherd.keys.deeds import ExpiredAlready, TooManyKeys
from voucherd.keys.grants import KEYS_MAX, OWNER, BeyondOwn, reach_of
from voucherd.keys.key_text import SCOPES_DEFAULT, KeyWish, Scope, read_networks, read_scopes
from voucherd.keys.store import Key, KeyNotUsable
from voucherd.money import Money
from voucherd.pages.forms import FormFields, read_day, sentence
from voucherd.pages.render import money, qualified, render
from voucherd.pages.visit import Visit, missing
from voucherd.people import members

PATH: Final = "/portal/keys"
PAGE_SIZE: Final = 50
OVERLAPS: Final = {
    "0": ("at once", timedelta()),
    "1h": ("after an hour", timedelta(hours=1)),
    "24h": ("after a day", timedelta(days=1)),
    "7d": ("after a week", timedelta(days=7)),
}
SCOPES: Final = {
    Scope.ORDERS_READ: "see orders",
    Scope.ORDERS_WRITE: "create, confirm, resolve and cancel orders",
    Scope.CODES_READ: "see the codes of orders",
    Scope.CATALOGUE_READ: "see products, prices and stock",
    Scope.WALLET_READ: "see balances and statements",
    Scope.EVENTS_READ: "follow events",
    Scope.WEBHOOKS_WRITE: "manage webhooks",
    Scope.KEYS_WRITE: "make and revoke keys",
}
FIELDS: Final[tuple[tuple[str, str, dict[str, object]], ...]] = (
    ("order_max", "Most that one order may cost, in EUR", {"inputmode": "decimal"}),
    ("day_max", "Most that the orders of one day may cost, in EUR", {"inputmode": "decimal"}),
    (
        "allow_ips",
        "Only from these addresses",
        {"rows": 3, "hint": "One on each line, such as 203.0.113.7 or 2001:db8::/32. Empty: from anywhere."},
    ),
    ("expires", "Last day", {"kind": "date"}),
)
"""What the form asks beside the description and the scopes: name, label and how it is asked."""
_FULL: Final = f"A company has at most {KEYS_MAX} keys that work. Revoke one first."


async def keys(visit: Visit) -> Response:
    """Every key of this mode, newest first."""
    before = visit.query.get("before")
    number = visit.services.ids.key_number(before) if before else None
    if before and number is None:
        raise HttpError(400, "bad_place", "This place in the list does not exist.")
    async with tenant(visit.pool, visit.company_id, visit.state) as connection:
        found, more = await key_store.page_of_keys(
            connection, visit.company_id, visit.state, size=PAGE_SIZE, before=number
        )
        parents = await key_store.prefixes(connection, [key.parent_id for key in found if key.parent_id])
        children = await key_store.children_of(connection, visit.company_id)
    makers = {one.id: one.email for one in await members.members(visit.pool, visit.company_id)}
    rule = (await company_store.policy(visit.pool, visit.company_id)).approve_from_eur_minor
    now = clock.now()
    return render(
        "buyer/keys.html",
        visit,
        rows=[
            {
                "key": key,
                "name": visit.services.ids.key(key.id),
                "standing": key.standing(now),
                "limits": _limits(key),
                "scopes": sorted(key.scopes),
                "withheld": sorted(key.withheld),
                "maker": "" if key.made_by is None else makers.get(key.made_by, "somebody"),
                "parent": "" if key.parent_id is None else parents[key.parent_id],
                "children": children.get(key.id, 0),
            }
            for key in found
        ],
        is_owner=visit.someone.role == OWNER,
        approve_from=None if rule is None else Money(rule, "EUR"),
        overlaps=[(word, text) for word, (text, _) in OVERLAPS.items()],
        older=qualified(PATH, {"before": visit.services.ids.key(found[-1].id)}) if more else "",
    )


async def new_key(visit: Visit) -> Response:
    """The form for a new key."""
    chosen = visit.form.all("scope") if visit.problems else [scope.value for scope in sorted(SCOPES_DEFAULT)]
    reach = reach_of(visit.someone.role).scopes
    scopes = [(scope.value, text) for scope, text in SCOPES.items() if scope in reach]
    return render("buyer/key_new.html", visit, fields=FIELDS, chosen=chosen, scopes=scopes)


async def add(visit: Visit) -> Response:
    """Make a key and show it, this once."""
    try:
        _, text = await visit.do(key_deeds.add, visit.company_id, visit.state, _wish(visit.form))
    except TooManyKeys:
        visit.problems["form"] = _FULL
    except ExpiredAlready:
        visit.problems["form"] = "The last day must lie in the future."
    except BeyondOwn as beyond:
        visit.problems["form"] = _beyond(beyond)
    except ValueError as wrong:
        visit.problems["form"] = sentence(wrong)
    return await new_key(visit) if visit.problems else _made(visit, text)


async def rotate(visit: Visit) -> Response:
    """Replace a key by one like it, and show that one, this once."""
    number = await _number(visit)
    chosen = OVERLAPS.get(visit.form.get("overlap"))
    if chosen is None:
        raise HttpError(400, "bad_overlap", "Choose how long the old key goes on.")
    try:
        _, text = await visit.do(key_deeds.rotate, number, chosen[1])
    except KeyNotUsable:
        return visit.go(
            PATH, "That key does not work any more, so it can't be replaced. Make a new one.", "bad"
        )
    except TooManyKeys:
        return visit.go(PATH, _FULL, "bad")
    except BeyondOwn as beyond:
        return visit.go(PATH, _beyond(beyond), "bad")
    return _made(visit, text, until=chosen[0])


async def revoke(visit: Visit) -> Response:
    """End a key's life now, and unless the form says otherwise that of the keys that were made with it."""
    number = await _number(visit)
    await visit.do(key_deeds.revoke, number, children_stay=visit.form.get("children") == "keep")
    return visit.go(PATH, "The key is revoked. Nothing that uses it works from now on.")


async def keep(visit: Visit) -> Response:
    """Answer for a key whose maker has lost a right, so that it stays as it was."""
    number = await _number(visit)
    await visit.do(key_deeds.keep, number)
    return visit.go(PATH, "You answer for the key from now on, and it may do what it was made for.")


async def set_alone(visit: Visit) -> Response:
    """Let a key confirm orders for which the company asks for a second person, or not any more."""
    number, alone = await _number(visit), visit.form.get("alone") == "yes"
    try:
        await visit.do(key_deeds.change, number, KeyWish(confirms_alone=alone))
    except BeyondOwn as beyond:
        return visit.go(PATH, _beyond(beyond), "bad")
    except KeyNotUsable:
        return visit.go(PATH, "That key does not work any more, so it can't be changed.", "bad")
    said = "The key confirms every order alone." if alone else "Large orders of the key need a second person."
    return visit.go(PATH, said)


def _beyond(beyond: BeyondOwn) -> str:
    """Why a key is out of reach for a person, in words."""
    return f"This key may do more than you may yourself ({beyond.field}). Ask an owner."


def _made(visit: Visit, text: str, *, until: str | None = None) -> Response:
    address = visit.services.settings.public_url
    return render("buyer/key_made.html", visit, text=text, until=until, address=address)


def _wish(form: FormFields) -> KeyWish:
    """What the form asks for; a ValueError says what is wrong with it."""
    try:
        day = read_day(form.get("expires"))
    except ValueError:
        raise ValueError("a day looks like 2026-01-31") from None
    try:
        networks = read_networks(form.get("allow_ips").replace(",", " ").split())
    except ValueError:
        raise ValueError("addresses look like 203.0.113.7 or 203.0.113.0/24, one on each line") from None
    return KeyWish(
        description=form.get("description"),
        scopes=read_scopes(form.all("scope")),
        allow_ips=networks,
        expires_at=None if day is None else datetime.combine(day, time(23, 59, 59), UTC),
        spend_order_eur_minor=_amount(form.get("order_max")),
        spend_day_eur_minor=_amount(form.get("day_max")),
    )


def _amount(text: str) -> int | None:
    if not text:
        return None
    try:
        minor = Money.parse(text.replace(",", "."), "EUR").minor
    except ValueError:
        raise ValueError("an amount looks like 250 or 250.00") from None
    if not 0 < minor <= 10**13:
        raise ValueError("a limit is more than nothing and less than a hundred billion")
    return minor


async def _number(visit: Visit) -> int:
    """The key that the path names, if it is one of this mode."""
    number = visit.services.ids.key_number(visit.parameters["key"])
    if number is None:
        raise missing()
    async with tenant(visit.pool, visit.company_id, visit.state) as connection:
        return (await key_store.own_key(connection, number, visit.company_id, visit.state)).id


def _limits(key: Key) -> list[Markup]:
    """What holds a key back, for people."""
    caps = (("an order", key.spend_order_eur_minor), ("a day", key.spend_day_eur_minor))
    said = [
        Markup("{} {}").format(money(Money(minor, "EUR")), each) for each, minor in caps if minor is not None
    ]
    if key.allow_ips:
        said.append(escape(f"from {', '.join(map(str, key.allow_ips))}"))
    return said
