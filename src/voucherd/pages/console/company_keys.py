"""The API keys of a company, as the operator makes and changes them. A key's text is shown once (OP-156)."""

from __future__ import annotations

from datetime import UTC, datetime, time
from functools import partial
from typing import Any, Final

from voucherd import clock
from voucherd.companies import store as company_store
from voucherd.companies.model import Company
from voucherd.db import Connection, transaction
from voucherd.http import Response
from voucherd.ids import State
from voucherd.keys import deeds as key_deeds
from voucherd.keys import store as key_store
from voucherd.keys.deeds import ExpiredAlready
from voucherd.keys.key_text import (
    RATE_LIMIT_DEFAULT,
    RATE_LIMIT_MAX,
    SCOPES_DEFAULT,
    KeyDraft,
    KeyWish,
    Network,
    read_networks,
    read_scopes,
)
from voucherd.keys.model import Key, KeyNotUsable
from voucherd.money import Money
from voucherd.pages.buyer.keys import OVERLAPS, SCOPES
from voucherd.pages.console.inputs import company_of, euros_of, number_in, optional_day, plain_euros
from voucherd.pages.forms import sentence, whole
from voucherd.pages.render import number, render
from voucherd.pages.visit import Visit, missing

_STATES: Final = {"live": State.LIVE, "sandbox": State.SANDBOX}
_FIELDS: Final = ("description", "allow_ips", "rate_limit", "expires", "order_max", "day_max")


async def new_key(visit: Visit) -> Response:
    """The form for a new key."""
    company = await visit.look(company_of, visit)
    values: dict[str, Any] = dict.fromkeys(_FIELDS, "") | {"rate_limit": str(RATE_LIMIT_DEFAULT)}
    values |= {"scopes": SCOPES_DEFAULT, "state": visit.state.word, "confirms_alone": False}
    return await _form(visit, company, values)


async def add(visit: Visit) -> Response:
    """Make a key and show it, this once."""
    company = await visit.look(company_of, visit)
    state = _STATES.get(visit.form.get("state"))
    if state is None:
        visit.problems["state"] = "Choose one."
    wish = _wish(visit)
    if wish is not None and state is not None:
        try:
            _, text = await visit.do(key_deeds.add, company.id, state, wish)
            return _made(visit, company, text)
        except ExpiredAlready:
            visit.problems["expires"] = "The last day must lie in the future."
    return await _form(visit, company, _sent(visit))


async def key(visit: Visit) -> Response:
    """One key: all about it but the key itself, and what can be done to it."""
    async with visit.pool.acquire() as conn:
        company = await company_of(conn, visit)
        found = await _key(conn, visit, company)
        children = (await key_store.children_of(conn, company.id)).get(found.id, 0)
        rule = (await company_store.policy(conn, company.id)).approve_from_eur_minor
    values: dict[str, Any] = {
        "description": found.description,
        "allow_ips": "\n".join(map(str, found.allow_ips)),
        "rate_limit": str(found.rate_limit),
        "expires": "" if found.expires_at is None else f"{found.expires_at:%Y-%m-%d}",
        "order_max": plain_euros(found.spend_order_eur_minor),
        "day_max": plain_euros(found.spend_day_eur_minor),
        "scopes": found.scopes | found.withheld,
        "confirms_alone": found.confirms_alone,
    }
    return render(
        "console/company_key.html",
        visit,
        company=company,
        key=found,
        status_word=found.standing(clock.now()),
        children=children,
        approve_from=None if rule is None else Money(rule, "EUR"),
        overlaps=[(word, text.capitalize()) for word, (text, _) in OVERLAPS.items()],
        scopes=SCOPES,
        values=_sent(visit) if visit.problems else values,
        path=_path(company, found),
    )


async def change(visit: Visit) -> Response:
    """Change what a key may do."""
    async with visit.pool.acquire() as conn:
        company = await company_of(conn, visit)
        found = await _key(conn, visit, company)
    wish = _wish(visit)
    if wish is not None:
        if found.expires_at is not None and visit.form.get("expires") == f"{found.expires_at:%Y-%m-%d}":
            # The form knows the day alone: a key keeps its moment unless another day is written.
            del wish["expires_at"]
        try:
            await visit.do(key_deeds.change, found.id, wish)
            return visit.go(_path(company, found), "Saved.")
        except ExpiredAlready:
            visit.problems["expires"] = "The last day must lie in the future."
    return await key(visit)


async def rotate(visit: Visit) -> Response:
    """Replace a key by one like it, and show that one, this once."""
    async with visit.pool.acquire() as conn:
        company = await company_of(conn, visit)
        found = await _key(conn, visit, company)
    chosen = OVERLAPS.get(visit.form.get("overlap"))
    if chosen is None:
        visit.problems["overlap"] = "Choose how long the old key goes on."
        return await key(visit)
    try:
        _, text = await visit.do(key_deeds.rotate, found.id, chosen[1])
    except KeyNotUsable:
        said = "This key can’t be used any more, so it can’t be replaced. Make a new one."
        return visit.go(_path(company, found), said, "bad")
    return _made(visit, company, text, until=chosen[0])


async def revoke(visit: Visit) -> Response:
    """End the life of one of a company's keys."""
    async with transaction(visit.pool) as tx:
        company = await company_of(tx, visit)
        found = await _key(tx, visit, company)
        stay = visit.form.get("children") == "keep"
        await key_deeds.revoke(tx, visit.actor, found.id, children_stay=stay)
    said = f"The key {found.prefix}… is revoked: nothing that uses it works any more."
    return visit.go(f"/console/companies/{company.id}#keys", said)


async def keep(visit: Visit) -> Response:
    """Answer for a key that lost something with the person who made it."""
    async with transaction(visit.pool) as tx:
        company = await company_of(tx, visit)
        found = await _key(tx, visit, company)
        await key_deeds.keep(tx, visit.actor, found.id)
    return visit.go(_path(company, found), "The key may do again what it was made for.")


async def _form(visit: Visit, company: Company, values: dict[str, Any]) -> Response:
    rule = (await company_store.policy(visit.pool, company.id)).approve_from_eur_minor
    return render(
        "console/company_key_new.html",
        visit,
        company=company,
        approve_from=None if rule is None else Money(rule, "EUR"),
        scopes=SCOPES,
        values=values,
    )


def _sent(visit: Visit) -> dict[str, Any]:
    """The form as it was sent."""
    sent: dict[str, Any] = {name: visit.form.get(name) for name in _FIELDS}
    chosen = {"scopes": set(visit.form.all("scope")), "state": visit.form.get("state")}
    return sent | chosen | {"confirms_alone": "confirms_alone" in visit.form}


def _wish(visit: Visit) -> KeyWish | None:
    """What the form asks for; None, and problems beside the fields, if it can't be read."""
    form, problems = visit.form, visit.problems
    rate_limit = whole(form.get("rate_limit"), 1, RATE_LIMIT_MAX)
    if rate_limit is None:
        problems["rate_limit"] = f"Must be a whole number from 1 to {number(RATE_LIMIT_MAX)}."
    last = visit.read("expires", optional_day)
    order_max, day_max = visit.read("order_max", euros_of), visit.read("day_max", euros_of)
    networks = visit.read("allow_ips", _networks)
    scopes = problems.read("scopes", partial(_scopes, form.all("scope")), "")
    if problems or networks is None or scopes is None or rate_limit is None:
        return None
    wish = KeyWish(
        description=form.get("description"),
        scopes=scopes,
        allow_ips=networks,
        rate_limit=rate_limit,
        expires_at=None if last is None else datetime.combine(last, time(23, 59, 59), UTC),
        spend_order_eur_minor=order_max,
        spend_day_eur_minor=day_max,
        confirms_alone="confirms_alone" in form,
    )
    try:
        KeyDraft(**wish)
    except ValueError as wrong:
        problems["description" if "description" in str(wrong) else "allow_ips"] = sentence(wrong)
        return None
    return wish


def _networks(text: str) -> tuple[Network, ...]:
    try:
        return read_networks(text.replace(",", " ").split())
    except ValueError:
        raise ValueError("Addresses look like 203.0.113.7 or 203.0.113.0/24, one on each line.") from None


def _scopes(words: list[str], _text: str) -> Any:
    if not words:
        raise ValueError("Choose at least one.")
    return read_scopes(words)


def _made(visit: Visit, company: Company, text: str, *, until: str = "") -> Response:
    address = visit.services.settings.public_url
    return render(
        "console/company_key_made.html", visit, company=company, text=text, until=until, address=address
    )


async def _key(conn: Connection, visit: Visit, company: Company) -> Key:
    """The key in the path, if it is one of the company's."""
    found = await key_store.find_by_id(conn, number_in(visit, "key"))
    if found.company_id != company.id:
        raise missing()
    return found


def _path(company: Company, found: Key) -> str:
    return f"/console/companies/{company.id}/keys/{found.id}"
