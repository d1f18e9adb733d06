"""`voucherd key`: the API keys of a company. A key is printed once, when it is made (OP-29)."""

from __future__ import annotations

import re
import sys
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, TypeAlias

import typer
from typer import Argument, Option

from voucherd import clock
from voucherd.cli import words
from voucherd.cli.command import command, noun, usage
from voucherd.cli.context import CommandContext
from voucherd.cli.output import Document, Output, facts, listed, once, shown
from voucherd.companies import store as company_store
from voucherd.keys import deeds, key_text
from voucherd.keys import store as key_store
from voucherd.keys.model import Key

app = noun()

Id: TypeAlias = Annotated[int, Argument(metavar="ID")]

_CELL: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)


@command(app, "add")
async def add(
    context: CommandContext,
    company: words.CompanyArgument,
    state: words.StateOption,
    description: Annotated[str, Option(help=key_text.HINTS["description"])] = "",
    scope: Annotated[
        list[str] | None,
        Option(help=f"{key_text.HINTS['scopes']} Repeatable; all but keys:write unless given."),
    ] = None,
    allow_ip: Annotated[
        list[str] | None, Option(metavar="CIDR", help=f"{key_text.HINTS['allow_ips']} Repeatable.")
    ] = None,
    expires: Annotated[
        datetime | None, Option(parser=words.read_moment, metavar="DATE", help=key_text.HINTS["expires_at"])
    ] = None,
    rate_limit: Annotated[int, Option(help=key_text.HINTS["rate_limit"])] = key_text.RATE_LIMIT_DEFAULT,
    spend_order: words.SpendOption = None,
    spend_day: words.SpendOption = None,
    confirms_alone: Annotated[
        bool, Option("--confirms-alone", help=key_text.HINTS["confirms_alone"])
    ] = False,
) -> Output:
    """Make a key and print it, this once."""
    with usage():
        wish = key_text.KeyWish(
            description=description,
            scopes=key_text.read_scopes(scope) if scope else key_text.SCOPES_DEFAULT,
            allow_ips=key_text.read_networks(allow_ip or ()),
            rate_limit=rate_limit,
            expires_at=expires,
            spend_order_eur_minor=words.read_spend("spend-order", spend_order),
            spend_day_eur_minor=words.read_spend("spend-day", spend_day),
            confirms_alone=confirms_alone,
        )
        key_text.KeyDraft(**wish)
    async with context.transaction() as tx:
        owner = await company_store.find_company(tx, company)
        key, text = await deeds.add(tx, context.actor, owner.id, state.state, wish)
    return once({"id": key.id, "key": text})


@command(app, "list")
async def list_(context: CommandContext, company: words.CompanyArgument) -> Output:
    """List a company's keys, newest first, without the keys themselves."""
    async with context.connection() as connection:
        owner = await company_store.find_company(connection, company)
        keys = await key_store.list_keys(connection, owner.id)
    return listed(
        [_document(key) for key in keys],
        [
            *(">id", ("key", lambda key: f"{key['prefix']}…"), "state", ("standing", _standing)),
            (">rate", "rateLimit"),
            ("expires", words.moment_day("expiresAt")),
            ("?last used", "lastUsedAt"),
            "?description",
            ("?may spend", lambda key: _spend(key) if key["spendOrderEur"] or key["spendDayEur"] else None),
        ],
        empty=f"{owner.name} has no keys yet.",
    )


@command(app, "show")
async def show(context: CommandContext, key_id: Id) -> Output:
    """Show all about a key but the key itself."""
    async with context.connection() as connection:
        key = await key_store.find_by_id(connection, key_id)
        [owner] = (await company_store.companies(connection, [key.company_id])).values()
    return shown(
        {"company": owner.name, **_document(key)},
        [
            *("id", "company", ("key", lambda key: f"{key['prefix']}…"), "state", ("standing", _standing)),
            *("description", ("scopes", lambda key: ", ".join(key["scopes"]))),
            ("allowed from", lambda key: ", ".join(key["allowIps"]) or "anywhere"),
            ("rate limit", lambda key: f"{key['rateLimit']} a minute"),
            *(("may spend", _spend), ("made", "createdAt"), ("last used", "lastUsedAt")),
            *(("expires", "expiresAt"), ("revoked", "revokedAt")),
            *(("made with key", "madeWith"), ("answered for by user", "madeBy")),
            ("confirms", lambda key: "alone" if key["confirmsAlone"] else "as the company's rule says"),
            ("waits for an owner", lambda key: ", ".join(key["withheldScopes"]) or None),
        ],
    )


@command(app, "map")
async def map_(
    context: CommandContext,
    cell: Annotated[str, Argument(metavar="CELL", help="This cell's name, as the front door knows it.")],
) -> Output | None:
    """List the hash of every key that can be used here, for the front door of several cells."""
    if _CELL.fullmatch(cell) is None:
        raise typer.BadParameter("a cell's name has 1 to 63 small letters, digits and hyphens")
    async with context.connection() as connection:
        found = await key_store.usable_hashes(connection)
    # HAProxy writes hashes in capitals.
    hashes = [(one.hash.hex().upper(), one.company_active) for one in found]
    if context.as_json:
        return Output([{"hash": known_by, "cell": cell, "active": active} for known_by, active in hashes], "")
    lines = [f"{known_by} {cell} {'active' if active else 'inactive'}\n" for known_by, active in hashes]
    # The last line tells a list that got lost on its way from one that is whole.
    sys.stdout.write("".join(lines) + f"# {len(lines)} keys\n")
    sys.stdout.flush()
    return None


@command(app, "rotate")
async def rotate(
    context: CommandContext,
    key_id: Id,
    overlap: Annotated[
        timedelta, Option(parser=words.read_duration, metavar="24h", help="How long the old key stays valid.")
    ],
) -> Output:
    """Make a key like this one, print it, and let the old one expire."""
    if overlap > key_store.OVERLAP_MAX:
        raise typer.BadParameter(f"an overlap is at most {key_store.OVERLAP_MAX.days} days")
    async with context.transaction() as tx:
        key, text = await deeds.rotate(tx, context.actor, key_id, overlap)
    return once({"id": key.id, "key": text})


@command(app, "limit")
async def limit(
    context: CommandContext,
    key_id: Id,
    order: words.SpendOption = None,
    day: words.SpendOption = None,
) -> Output:
    """Limit what a key may spend on one order and in one day (UTC); what is not given has no limit."""
    order_minor, day_minor = words.read_spend("order", order), words.read_spend("day", day)
    wish = key_text.KeyWish(spend_order_eur_minor=order_minor, spend_day_eur_minor=day_minor)
    async with context.transaction() as tx:
        await deeds.change(tx, context.actor, key_id, wish)
    document = {"id": key_id, **words.spend_facts(order_minor, day_minor)}
    return Output(document, f"Key {key_id} may spend: {_spend(document)}.")


@command(app, "alone")
async def alone(
    context: CommandContext,
    key_id: Id,
    yes: Annotated[bool, Option("--yes/--no", help=key_text.HINTS["confirms_alone"])],
) -> Output:
    """Let a key confirm orders for which its company asks for a second person, or not any more."""
    async with context.transaction() as tx:
        await deeds.change(tx, context.actor, key_id, key_text.KeyWish(confirms_alone=yes))
    said = "confirms every order alone" if yes else "needs a second person where the company's rule says so"
    return Output({"id": key_id, "confirmsAlone": yes}, f"Key {key_id} {said}.")


@command(app, "keep")
async def keep(context: CommandContext, key_id: Id) -> Output:
    """Answer for a key that lost scopes with the person who made it: it gets them back."""
    async with context.transaction() as tx:
        key = await deeds.keep(tx, context.actor, key_id)
    return Output({"id": key_id, "scopes": sorted(key.scopes)}, f"Key {key_id} may do what it was made for.")


@command(app, "revoke")
async def revoke(
    context: CommandContext,
    key_id: Id,
    keep_children: Annotated[
        bool, Option("--keep-children", help="Keys that were made with it stay; otherwise they end, too.")
    ] = False,
) -> Output:
    """End a key's life now, and that of the keys that were made with it."""
    async with context.transaction() as tx:
        await deeds.revoke(tx, context.actor, key_id, children_stay=keep_children)
    return Output({"id": key_id, "revoked": True}, f"Key {key_id} is revoked.")


def _standing(key: Document) -> str:
    standing: str = key["standing"]
    return f"replaced by {key['replacedBy']}" if standing == "replaced" else standing


def _spend(key: Document) -> str:
    return words.spend_words(key["spendOrderEur"], key["spendDayEur"])


def _document(key: Key) -> dict[str, Any]:
    return facts(
        key,
        "id prefix state description scopes allowIps rateLimit spendOrderEur spendDayEur standing expiresAt revokedAt"
        " replacedBy createdAt lastUsedAt madeBy madeWith confirmsAlone withheldScopes",
        madeWith=key.parent_id,
        withheldScopes=sorted(key.withheld),
        scopes=sorted(key.scopes),
        allowIps=[str(network) for network in key.allow_ips],
        standing=key.standing(clock.now()),
        **words.spend_facts(key.spend_order_eur_minor, key.spend_day_eur_minor),
    )
