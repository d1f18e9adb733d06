"""`voucherd key`: the API keys of a company. A key is printed once, when it is made (OP-29)."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

import typer

from voucherd import clock
from voucherd.cli.command import command, noun, usage
from voucherd.cli.context import CommandContext
from voucherd.cli.output import Output, record, table
from voucherd.cli.words import (
    CompanyArgument,
    SpendOption,
    StateOption,
    decimal,
    read_duration,
    read_moment,
    read_spend,
    spend_words,
)
from voucherd.companies import store as company_store
from voucherd.keys import deeds
from voucherd.keys import store as key_store
from voucherd.keys.key_text import (
    HINTS,
    RATE_LIMIT_DEFAULT,
    SCOPES_DEFAULT,
    KeyDraft,
    KeyWish,
    read_networks,
    read_scopes,
)
from voucherd.keys.model import Key

app = noun()


@command(app, "add")
async def add(
    context: CommandContext,
    company: CompanyArgument,
    state: StateOption,
    description: Annotated[str, typer.Option(help=HINTS["description"])] = "",
    scope: Annotated[
        list[str] | None, typer.Option(help=f"{HINTS['scopes']} Repeatable; all but keys:write unless given.")
    ] = None,
    allow_ip: Annotated[
        list[str] | None, typer.Option(metavar="CIDR", help=f"{HINTS['allow_ips']} Repeatable.")
    ] = None,
    expires: Annotated[
        datetime | None, typer.Option(parser=read_moment, metavar="DATE", help=HINTS["expires_at"])
    ] = None,
    rate_limit: Annotated[int, typer.Option(help=HINTS["rate_limit"])] = RATE_LIMIT_DEFAULT,
    spend_order: SpendOption = None,
    spend_day: SpendOption = None,
) -> Output:
    """Make a key and print it, this once."""
    with usage():
        wish = KeyWish(
            description=description,
            scopes=read_scopes(scope) if scope else SCOPES_DEFAULT,
            allow_ips=read_networks(allow_ip or ()),
            rate_limit=rate_limit,
            expires_at=expires,
            spend_order_eur_minor=read_spend("spend-order", spend_order),
            spend_day_eur_minor=read_spend("spend-day", spend_day),
        )
        KeyDraft(**wish)
    async with context.transaction() as tx:
        owner = await company_store.find_company(tx, company)
        key, text = await deeds.add(tx, context.actor, owner.id, state.state, wish)
    return _once(key, text)


@command(app, "list")
async def list_(context: CommandContext, company: CompanyArgument) -> Output:
    """List a company's keys, newest first, without the keys themselves."""
    async with context.connection() as connection:
        owner = await company_store.find_company(connection, company)
        keys = await key_store.list_keys(connection, owner.id)
    now = clock.now()
    view = table(
        [">id", "key", "state", "standing", ">rate", "expires", "?last used", "?description", "?may spend"],
        [
            (
                key.id,
                f"{key.prefix}…",
                key.state.word,
                _standing(key, now),
                key.rate_limit,
                key.expires_at and f"{key.expires_at:%Y-%m-%d}",
                key.last_used_at,
                key.description,
                _spend(key),
            )
            for key in keys
        ],
        empty=f"{owner.name} has no keys yet.",
    )
    return Output([_document(key, now) for key in keys], view)


@command(app, "show")
async def show(context: CommandContext, key_id: Annotated[int, typer.Argument(metavar="ID")]) -> Output:
    """Show all about a key but the key itself."""
    async with context.connection() as connection:
        key = await key_store.find_by_id(connection, key_id)
        [owner] = (await company_store.companies(connection, [key.company_id])).values()
    now = clock.now()
    view = record(
        [
            ("id", key.id),
            ("company", owner.name),
            ("key", f"{key.prefix}…"),
            ("state", key.state.word),
            ("standing", _standing(key, now)),
            ("description", key.description),
            ("scopes", ", ".join(sorted(key.scopes))),
            ("allowed from", ", ".join(map(str, key.allow_ips)) or "anywhere"),
            ("rate limit", f"{key.rate_limit} a minute"),
            ("may spend", spend_words(key.spend_order_eur_minor, key.spend_day_eur_minor)),
            ("made", key.created_at),
            ("last used", key.last_used_at),
            ("expires", key.expires_at),
            ("revoked", key.revoked_at),
        ]
    )
    return Output({"company": owner.name, **_document(key, now)}, view)


@command(app, "rotate")
async def rotate(
    context: CommandContext,
    key_id: Annotated[int, typer.Argument(metavar="ID")],
    overlap: Annotated[
        timedelta, typer.Option(parser=read_duration, metavar="24h", help="How long the old key stays valid.")
    ],
) -> Output:
    """Make a key like this one, print it, and let the old one expire."""
    if overlap > key_store.OVERLAP_MAX:
        raise typer.BadParameter(f"an overlap is at most {key_store.OVERLAP_MAX.days} days")
    async with context.transaction() as tx:
        key, text = await deeds.rotate(tx, context.actor, key_id, overlap)
    return _once(key, text)


@command(app, "limit")
async def limit(
    context: CommandContext,
    key_id: Annotated[int, typer.Argument(metavar="ID")],
    order: SpendOption = None,
    day: SpendOption = None,
) -> Output:
    """Limit what a key may spend on one order and in one day (UTC); what is not given has no limit."""
    amounts = read_spend("order", order), read_spend("day", day)
    wish = KeyWish(spend_order_eur_minor=amounts[0], spend_day_eur_minor=amounts[1])
    async with context.transaction() as tx:
        await deeds.change(tx, context.actor, key_id, wish)
    document = {"id": key_id, "spendOrderEur": _eur(amounts[0]), "spendDayEur": _eur(amounts[1])}
    return Output(document, f"Key {key_id} may spend: {spend_words(*amounts)}.")


@command(app, "revoke")
async def revoke(context: CommandContext, key_id: Annotated[int, typer.Argument(metavar="ID")]) -> Output:
    """End a key's life now."""
    async with context.transaction() as tx:
        await deeds.revoke(tx, context.actor, key_id)
    return Output({"id": key_id, "revoked": True}, f"Key {key_id} is revoked.")


def _once(key: Key, text: str) -> Output:
    view = record([("id", key.id), ("key", text), ("", "It is not shown again.")])
    return Output({"id": key.id, "key": text}, view)


def _standing(key: Key, now: datetime) -> str:
    standing = key.standing(now)
    return f"replaced by {key.replaced_by}" if standing == "replaced" else standing


def _spend(key: Key) -> str | None:
    limits = key.spend_order_eur_minor, key.spend_day_eur_minor
    return None if limits == (None, None) else spend_words(*limits)


def _eur(minor: int | None) -> Decimal | None:
    return None if minor is None else decimal(minor, "EUR")


def _document(key: Key, now: datetime) -> dict[str, Any]:
    return {
        "id": key.id,
        "prefix": key.prefix,
        "state": key.state.word,
        "description": key.description,
        "scopes": sorted(key.scopes),
        "allowIps": [str(network) for network in key.allow_ips],
        "rateLimit": key.rate_limit,
        "spendOrderEur": _eur(key.spend_order_eur_minor),
        "spendDayEur": _eur(key.spend_day_eur_minor),
        "standing": key.standing(now),
        "expiresAt": key.expires_at,
        "revokedAt": key.revoked_at,
        "replacedBy": key.replaced_by,
        "createdAt": key.created_at,
        "lastUsedAt": key.last_used_at,
    }
