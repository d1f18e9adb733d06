"""The company's API keys. A key's text is on the page that made it, and nowhere else."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

from markupsafe import Markup

from voucherd import clock
from voucherd.companies import store as company_store
from voucherd.db import tenant
from voucherd.http import HttpError, Response
from voucherd.keys import deeds as key_deeds
from voucherd.keys import store as key_store
from voucherd.keys.deeds import ExpiredAlready, TooManyKeys
from voucherd.keys.grants import KEYS_MAX, OWNER, BeyondOwn, reach_of
from voucherd.keys.key_text import SCOPES_DEFAULT, KeyWish, Network, Scope, read_networks, read_scopes
from voucherd.keys.store import KEY_SORTS, Key, KeyNotUsable
from voucherd.money import Money
from voucherd.pages.buyer.catalogue import page_number
from voucherd.pages.forms import read_day, sentence
from voucherd.pages.render import money, qualified, render
from voucherd.pages.timeline import person_words
from voucherd.pages.visit import Visit, missing
from voucherd.people import members
from voucherd.sorting import chosen
from voucherd.words import Words, phrase

PATH: Final = "/portal/keys"
PAGE_SIZE: Final = 50
OVERLAPS: Final = {
    "0": (phrase("At once"), timedelta()),
    "1h": (phrase("After an hour"), timedelta(hours=1)),
    "24h": (phrase("After a day"), timedelta(days=1)),
    "7d": (phrase("After a week"), timedelta(days=7)),
}
SCOPES: Final = {
    Scope.ORDERS_READ: phrase("See orders"),
    Scope.ORDERS_WRITE: phrase("Create, confirm, resolve and cancel orders"),
    Scope.CODES_READ: phrase("See the codes of orders"),
    Scope.CATALOGUE_READ: phrase("See products, prices and stock"),
    Scope.WALLET_READ: phrase("See balances and statements"),
    Scope.EVENTS_READ: phrase("Follow events"),
    Scope.WEBHOOKS_WRITE: phrase("Manage webhooks"),
    Scope.KEYS_WRITE: phrase("Create and revoke keys"),
}
FIELDS: Final[tuple[tuple[str, str, str, dict[str, object]], ...]] = (
    ("order_max", phrase("Most for one order, in EUR"), "", {"inputmode": "decimal"}),
    ("day_max", phrase("Most for the orders of one day, in EUR"), "", {"inputmode": "decimal"}),
    (
        "allow_ips",
        phrase("Only from these IP addresses"),
        phrase("One on each line, such as 203.0.113.7 or 2001:db8::/32. Empty: from anywhere."),
        {"rows": 3},
    ),
    ("expires", phrase("Last day"), "", {"kind": "date"}),
)
"""What the form asks beside the description and the scopes: name, label, hint and how it is asked."""
_FULL: Final = phrase("A company has at most {most} active keys. Revoke one first.")
_STATUSES: Final = {
    "valid": (phrase("Active"), "good"),
    "replaced": (phrase("Replaced"), "warn"),
    "expired": (phrase("Expired"), ""),
    "revoked": (phrase("Revoked"), "bad"),
}
"""The word for how a key stands, and its badge."""


async def keys(visit: Visit) -> Response:
    """Every key of this mode, newest first unless the address says otherwise."""
    sort, page = chosen(visit.query.get("sort"), KEY_SORTS, "-added"), page_number(visit)
    async with tenant(visit.pool, visit.company_id, visit.state) as connection:
        found = await key_store.sorted_keys(
            connection, visit.company_id, visit.state, sort, PAGE_SIZE + 1, (page - 1) * PAGE_SIZE
        )
    now, more = clock.now(), len(found) > PAGE_SIZE
    return render(
        "buyer/keys.html",
        visit,
        rows=[_row(visit, one, now) for one in found[:PAGE_SIZE]],
        sort=sort,
        before=qualified(PATH, {"sort": sort, "page": page - 1}) if page > 1 else "",
        after=qualified(PATH, {"sort": sort, "page": page + 1}) if more else "",
    )


async def key(visit: Visit) -> Response:
    """One key: what it may do, who answers for it, and what can be done with it."""
    found = await _found(visit)
    async with tenant(visit.pool, visit.company_id, visit.state) as connection:
        parents = await key_store.prefixes(connection, [found.parent_id] if found.parent_id else [])
        children = await key_store.children_of(connection, visit.company_id)
    makers = {
        one.id: person_words(one.name, one.email)
        for one in await members.members(visit.pool, visit.company_id)
    }
    rule = (await company_store.policy(visit.pool, visit.company_id)).approve_from_eur_minor
    return render(
        "buyer/key.html",
        visit,
        **_row(visit, found, clock.now()),
        maker=""
        if found.made_by is None
        else makers.get(found.made_by) or visit.words.text("Somebody who has left"),
        parent="" if found.parent_id is None else parents[found.parent_id],
        children=children.get(found.id, 0),
        limits=_limits(visit.words, found),
        granted=[visit.words.text(SCOPES[scope]) for scope in SCOPES if scope in found.scopes],
        withheld=[visit.words.text(SCOPES[scope]) for scope in SCOPES if scope in found.withheld],
        is_owner=visit.someone.role == OWNER,
        approve_from=None if rule is None else Money(rule, "EUR"),
        overlaps=[(word, visit.words.text(text)) for word, (text, _) in OVERLAPS.items()],
    )


def _row(visit: Visit, found: Key, now: datetime) -> dict[str, Any]:
    """A key as lists and pages show it."""
    return {
        "key": found,
        "name": visit.services.ids.key(found.id),
        "badge": (visit.words.text(_STATUSES[found.standing(now)][0]), _STATUSES[found.standing(now)][1]),
        "usable": found.standing(now) == "valid",
        "may_change": found.standing(now) in ("valid", "replaced"),
        "scopes": sorted(found.scopes),
    }


async def new_key(visit: Visit) -> Response:
    """The form for a new key."""
    chosen = visit.form.all("scope") if visit.problems else [scope.value for scope in sorted(SCOPES_DEFAULT)]
    reach = reach_of(visit.someone.role).scopes
    scopes = [(scope.value, visit.words.text(text)) for scope, text in SCOPES.items() if scope in reach]
    return render("buyer/key_new.html", visit, fields=FIELDS, chosen=chosen, scopes=scopes)


async def add(visit: Visit) -> Response:
    """Make a key and show it, this once."""
    wish = _wish(visit)
    if visit.problems:
        return await new_key(visit)
    try:
        _, text = await visit.do(key_deeds.add, visit.company_id, visit.state, wish)
    except TooManyKeys:
        visit.problems["form"] = visit.words.text(_FULL, most=KEYS_MAX)
    except ExpiredAlready:
        visit.problems["expires"] = visit.words.text("The last day must lie in the future.")
    except BeyondOwn as beyond:
        visit.problems["form"] = _beyond(visit.words, beyond)
    except ValueError as wrong:
        visit.problems["form"] = sentence(wrong)
    return await new_key(visit) if visit.problems else _made(visit, text)


async def rotate(visit: Visit) -> Response:
    """Replace a key by one like it, and show that one, this once."""
    number = (await _found(visit)).id
    chosen = OVERLAPS.get(visit.form.get("overlap"))
    if chosen is None:
        raise HttpError(400, "bad_overlap", visit.words.text("Choose how long the old key goes on."))
    try:
        _, text = await visit.do(key_deeds.rotate, number, chosen[1])
    except KeyNotUsable:
        return visit.go(
            PATH, visit.words.text("This key is not active any more, so it can't be replaced."), "bad"
        )
    except TooManyKeys:
        return visit.go(_path(visit), visit.words.text(_FULL, most=KEYS_MAX), "bad")
    except BeyondOwn as beyond:
        return visit.go(_path(visit), _beyond(visit.words, beyond), "bad")
    return _made(visit, text, until=visit.words.text(chosen[0]))


async def revoke(visit: Visit) -> Response:
    """End a key's life now, and unless the form says otherwise that of the keys that were made with it."""
    number = (await _found(visit)).id
    await visit.do(key_deeds.revoke, number, children_stay=visit.form.get("children") == "keep")
    return visit.go(PATH, visit.words.text("The key is revoked."))


async def keep(visit: Visit) -> Response:
    """Answer for a key whose maker has lost a right, so that it stays as it was."""
    number = (await _found(visit)).id
    await visit.do(key_deeds.keep, number)
    return visit.go(
        _path(visit), visit.words.text("You are responsible for the key now. It may do what it was made for.")
    )


async def set_alone(visit: Visit) -> Response:
    """Let a key confirm orders for which the company asks for a second person, or not any more."""
    number, alone = (await _found(visit)).id, visit.form.get("alone") == "yes"
    try:
        await visit.do(key_deeds.change, number, KeyWish(confirms_alone=alone))
    except BeyondOwn as beyond:
        return visit.go(_path(visit), _beyond(visit.words, beyond), "bad")
    except KeyNotUsable:
        return visit.go(
            PATH, visit.words.text("This key is not active any more, so it can't be changed."), "bad"
        )
    speak = visit.words
    said = (
        speak.text("The key confirms large orders alone.")
        if alone
        else speak.text("Large orders of this key need a second person.")
    )
    return visit.go(_path(visit), said)


def _path(visit: Visit) -> str:
    return f"{PATH}/{quote(visit.parameters['key'])}"


def _beyond(speak: Words, beyond: BeyondOwn) -> str:
    """Why a key is out of reach for a person, in words."""
    return speak.text(
        "This key may do more than you may yourself ({permission}). Ask an owner.", permission=beyond.field
    )


def _made(visit: Visit, text: str, *, until: str | None = None) -> Response:
    address = visit.services.settings.public_url
    return render("buyer/key_made.html", visit, text=text, until=until, address=address)


def _wish(visit: Visit) -> KeyWish:
    """What the form asks for; what is wrong with it stands beside its field."""
    form = visit.form
    try:
        scopes = read_scopes(form.all("scope"))
    except ValueError as wrong:
        scopes = frozenset()
        visit.problems["scope"] = sentence(wrong)
    day = visit.read("expires", _day)
    return KeyWish(
        description=form.get("description"),
        scopes=scopes,
        allow_ips=visit.read("allow_ips", _networks) or (),
        expires_at=None
        if day is None
        else visit.words.midnight(day + timedelta(days=1)) - timedelta(seconds=1),
        spend_order_eur_minor=visit.read("order_max", _amount),
        spend_day_eur_minor=visit.read("day_max", _amount),
    )


def _day(text: str) -> date | None:
    try:
        return read_day(text)
    except ValueError:
        raise ValueError(phrase("A day looks like 2026-01-31.")) from None


def _networks(text: str) -> tuple[Network, ...]:
    try:
        return read_networks(text.replace(",", " ").split())
    except ValueError:
        raise ValueError(
            phrase("Addresses look like 203.0.113.7 or 203.0.113.0/24, one on each line.")
        ) from None


def _amount(text: str) -> int | None:
    if not text:
        return None
    try:
        minor = Money.parse(text.replace(",", "."), "EUR").minor
    except ValueError:
        raise ValueError(phrase("An amount looks like 250 or 250.00.")) from None
    if not 0 < minor <= 10**13:
        raise ValueError(phrase("A limit is more than nothing and less than a hundred billion."))
    return minor


async def _found(visit: Visit) -> Key:
    """The key that the path names, if it is one of this mode."""
    number = visit.services.ids.key_number(visit.parameters["key"])
    if number is None:
        raise missing()
    async with tenant(visit.pool, visit.company_id, visit.state) as connection:
        return await key_store.own_key(connection, number, visit.company_id, visit.state)


def _limits(speak: Words, found: Key) -> list[tuple[str, str | Markup]]:
    """What holds a key back, for people."""
    caps = (
        (phrase("Most for one order"), found.spend_order_eur_minor),
        (phrase("Most in one day"), found.spend_day_eur_minor),
    )
    said: list[tuple[str, str | Markup]] = [
        (speak.text(label), money(Money(minor, "EUR"))) for label, minor in caps if minor is not None
    ]
    if found.allow_ips:
        said.append((speak.text("Only from"), ", ".join(map(str, found.allow_ips))))
    return said
