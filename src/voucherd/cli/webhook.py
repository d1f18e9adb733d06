"""`voucherd webhook`: where companies have their events sent, what was sent, and sending it again (OP-54)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import msgspec
import typer
from msgspec import UNSET
from typer import Argument, Option

from voucherd.api.wire import webhooks as wire
from voucherd.cli import webhook_listener
from voucherd.cli.command import command, noun, refusing, usage
from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused, Document, Output, listed, once, shown
from voucherd.cli.words import CompanyArgument, StateOption, StateWord, read_duration, read_moment
from voucherd.companies import store as company_store
from voucherd.db import Connection
from voucherd.events import feed
from voucherd.ids import Identifiers
from voucherd.webhooks import deeds, endpoints, fanout, history, signing
from voucherd.webhooks.deeds import EndpointDisabled, NoOwnAddress
from voucherd.webhooks.endpoints import Changes, Draft, Endpoint, EndpointNotFound
from voucherd.webhooks.headers import read_headers
from voucherd.webhooks.history import Logged
from voucherd.webhooks.messages import MessageFormat
from voucherd.webhooks.targets import read_target

DELIVERIES_SHOWN: Final = 20
DELIVERIES_SHOWN_MAX: Final = 1_000
_WHY: Final = {"gone": "disabled: 410", "failing": "disabled: failing"}

app = noun()

Id = Annotated[str, Argument(metavar="ID", help="The endpoint's id: wh_…")]
Events = Annotated[
    list[str] | None,
    Option("--event", metavar="TYPE", help="Which events; repeatable. All unless given."),
]
Headers = Annotated[
    list[str] | None, Option("--header", metavar="'NAME: VALUE'", help="Sent along; repeatable.")
]


@command(app, "add")
async def add(
    context: CommandContext,
    company: CompanyArgument,
    url: Annotated[str | None, Argument(help="Where to send; left out with --per-order.")] = None,
    state: StateOption = StateWord.LIVE,
    event: Events = None,
    header: Headers = None,
    description: Annotated[str, Option(help="What it is for.")] = "",
    format_: Annotated[
        MessageFormat, Option("--format", help="How events are written to it.")
    ] = MessageFormat.STANDARD,
    per_order: Annotated[bool, Option("--per-order", help="For addresses that single orders name.")] = False,
    secret: Annotated[
        str | None, Option(metavar="whsec_…", help="A secret that exists; else one is made.")
    ] = None,
) -> Output:
    """Make an endpoint and print its secret, this once."""
    with usage():
        if per_order == (url is not None):
            raise ValueError("an endpoint has an address, or --per-order")
        if len(description) > endpoints.DESCRIPTION_CHARS_MAX:
            raise ValueError(f"a description has at most {endpoints.DESCRIPTION_CHARS_MAX} characters")
        draft = Draft(
            _url(context, url),
            _types(event),
            description,
            headers=_headers(header),
            secret=None if secret is None else signing.check_secret(secret),
            format=format_,
        )
    async with context.transaction() as tx:
        owner = await company_store.find_company(tx, company)
        sealer = await context.sealer(tx)
        made, text = await deeds.add(tx, context.actor, sealer, owner.id, state.state, draft)
        ids = await context.identifiers(tx)
    return once({"id": ids.webhook(made.id), "secret": text})


@command(app, "list")
async def list_(
    context: CommandContext, company: Annotated[str | None, Argument(metavar="COMPANY")] = None
) -> Output:
    """List the endpoints of a company, or of all."""
    async with context.connection() as conn:
        owner = None if company is None else await company_store.find_company(conn, company)
        found = await endpoints.list_all(conn, None if owner is None else owner.id)
        names = await _company_names(conn)
        ids = await context.identifiers(conn)
    return listed(
        [_document(ids, one, names) for one in found],
        [
            *("id", "state", ("standing", _standing), ("~address", _address)),
            *(("?events", lambda one: len(one["eventTypes"]) or "all"), "?company"),
        ],
        empty="No endpoints.",
    )


@command(app, "show")
async def show(context: CommandContext, number: Id) -> Output:
    """Show one endpoint, without its secret."""
    async with context.connection() as conn:
        ids = await context.identifiers(conn)
        found = await _endpoint(conn, ids, number)
        names = await _company_names(conn)
    return _shown(ids, found, names)


@command(app, "set")
async def set_(
    context: CommandContext,
    number: Id,
    url: Annotated[str | None, Option(help="Where to send from now on.")] = None,
    event: Events = None,
    all_events: Annotated[bool, Option("--all-events", help="Send every type of event.")] = False,
    header: Headers = None,
    description: Annotated[str | None, Option(help="What it is for.")] = None,
    format_: Annotated[MessageFormat | None, Option("--format", help="How events are written to it.")] = None,
    enabled: Annotated[bool | None, Option("--enabled/--disabled")] = None,
) -> Output:
    """Change an endpoint; what is not given stays. One that is enabled goes on with what waits."""
    with usage():
        changes = Changes(
            UNSET if url is None else (_url(context, url) or UNSET),
            _types(event) if event or all_events else UNSET,
            UNSET if description is None else description[: endpoints.DESCRIPTION_CHARS_MAX],
            UNSET if enabled is None else enabled,
            UNSET if header is None else _headers(header),
            UNSET if format_ is None else format_,
        )
    async with context.transaction() as tx:
        ids = await context.identifiers(tx)
        sealer = await context.sealer(tx)
        changed = await deeds.change(tx, context.actor, sealer, _number(ids, number), changes)
        names = await _company_names(tx)
    return _shown(ids, changed, names)


@command(app, "remove")
async def remove(context: CommandContext, number: Id) -> Output:
    """Remove an endpoint, what waits for it, and its log."""
    async with context.transaction() as tx:
        ids = await context.identifiers(tx)
        await deeds.remove(tx, context.actor, _number(ids, number))
    return Output({"id": number, "removed": True}, f"Endpoint {number} is removed.")


@command(app, "rotate")
async def rotate(
    context: CommandContext,
    number: Id,
    overlap: Annotated[
        timedelta, Option(parser=read_duration, metavar="24h", help="How long both secrets sign.")
    ],
) -> Output:
    """Give an endpoint a new secret and print it, this once."""
    if overlap > endpoints.OVERLAP_MAX:
        raise typer.BadParameter(f"an overlap is at most {endpoints.OVERLAP_MAX.days} days")
    async with context.transaction() as tx:
        ids = await context.identifiers(tx)
        sealer = await context.sealer(tx)
        found, secret = await deeds.rotate(tx, context.actor, sealer, _number(ids, number), overlap)
    return once({"id": ids.webhook(found.id), "secret": secret})


@command(app, "deliveries")
async def deliveries(
    context: CommandContext,
    number: Annotated[str | None, Argument(metavar="ID")] = None,
    status: Annotated[str | None, Option(help="waiting, delivered or failed.")] = None,
    limit: Annotated[int, Option(min=1, max=DELIVERIES_SHOWN_MAX)] = DELIVERIES_SHOWN,
) -> Output:
    """Show what was sent, newest events first: to one endpoint, or to all."""
    if status is not None and status not in history.STATUSES:
        raise typer.BadParameter("--status is waiting, delivered or failed")
    async with context.connection() as conn:
        ids = await context.identifiers(conn)
        chosen = None if number is None else (await _endpoint(conn, ids, number)).id
        found: list[Logged] = []
        onward: int | None = None
        while len(found) < limit:
            rows, onward = await history.deliveries(
                conn, chosen, size=limit - len(found), before=onward, status=status
            )
            found += rows
            if onward is None:
                break
        about = await feed.these(conn, [one.event_id for one in found])
        owners = {one.id: one for one in await endpoints.list_all(conn)}
    documents = [
        {"webhookId": ids.webhook(one.webhook_id)}
        | _plain(wire.delivery(ids, one, about.get(one.event_id), owners[one.webhook_id]))
        for one in found
        if one.webhook_id in owners
    ]
    return listed(
        documents,
        [
            *(("event", "eventId"), "type", "status", (">tries", lambda one: len(one["attempts"]))),
            ("~last answer", _last),
            (">ms", lambda one: one["attempts"][-1]["durationMs"] if one["attempts"] else None),
            *(("?next", _moment("dateNextAttempt")), ("?endpoint", "webhookId")),
        ],
        empty="Nothing was sent yet.",
    )


@command(app, "test")
async def test(context: CommandContext, number: Id) -> Output:
    """Send a ping to an endpoint; `deliveries` tells what came of it."""
    async with context.transaction() as tx:
        ids = await context.identifiers(tx)
        no = "only an endpoint with an address that is enabled can be tested"
        with refusing({EndpointDisabled: no, NoOwnAddress: no}):
            event = ids.event(await deeds.test(tx, context.actor, _number(ids, number)))
    return Output({"eventId": event}, f"A ping is on its way: {event}")


@command(app, "replay")
async def replay(
    context: CommandContext,
    event: Annotated[str, Argument(metavar="EVENT", help="The event's id: evt_…")],
    webhook: Annotated[
        str | None, Option(metavar="ID", help="The one endpoint to send to; else all that want it.")
    ] = None,
) -> Output:
    """Send an event once more, with the same id."""
    async with context.transaction() as tx:
        ids = await context.identifiers(tx)
        number = ids.event_number(event)
        found = {} if number is None else await feed.these(tx, [number])
        if number not in found:
            raise CommandRefused(f"there is no event {event}")
        only = None if webhook is None else (await _endpoint(tx, ids, webhook)).id
        no = "the event is not for this endpoint, or the endpoint is disabled"
        with refusing({EndpointDisabled: no, EndpointNotFound: no}):
            count = await deeds.replay(tx, context.actor, found[number], only)
    return Output({"queued": count}, f"On its way to {'1 endpoint' if count == 1 else f'{count} endpoints'}.")


@command(app, "recover")
async def recover(
    context: CommandContext,
    number: Id,
    since: Annotated[
        datetime, Option(parser=read_moment, metavar="DATE", help="From when on; 30 days at most.")
    ],
) -> Output:
    """Send what an endpoint did not get since then: what failed, and what happened while it was disabled."""
    async with context.pool() as pool:
        async with pool.acquire() as conn:
            ids = await context.identifiers(conn)
        found = await deeds.recover(pool, context.actor, _number(ids, number), since)
    text = "1 event is on its way." if found.queued == 1 else f"{found.queued} events are on their way."
    if found.next_since is not None:
        text += f" There are more: recover again since {found.next_since:%Y-%m-%dT%H:%M:%SZ}."
    return Output({"queued": found.queued, "dateNext": found.next_since}, text)


@command(app, "listen")
async def listen(
    context: CommandContext,
    port: Annotated[int, Option(min=0, max=65_535, help="0 picks a free one.")] = 4242,
    secret: Annotated[
        list[str] | None, Option(metavar="whsec_…", help="Verifies with this; repeatable.")
    ] = None,
    company: Annotated[
        str | None, Option(metavar="COMPANY", help="Makes an endpoint for the time it listens.")
    ] = None,
    state: StateOption = StateWord.SANDBOX,
) -> None:
    """Receive webhooks on this machine, for development: prints each one and whether its signature is right."""
    with usage():
        secrets = [signing.check_secret(one) for one in secret or ()]
    async with webhook_listener.endpoint(context, company, state.state, port) as (listener, made):
        await webhook_listener.listen(context, listener, [*secrets, *made])


def _url(context: CommandContext, url: str | None) -> str | None:
    if url is not None:
        try:
            read_target(url, context.settings.webhook_networks)
        except ValueError as rule:
            raise ValueError(f"the address {rule}") from None
    return url


def _types(words: list[str] | None) -> tuple[str, ...]:
    for word in words or ():
        if word not in fanout.TYPES:
            raise ValueError(f"{word!r} is no type of event; the types are {', '.join(sorted(fanout.TYPES))}")
    return tuple(sorted(set(words or ())))


def _headers(lines: list[str] | None) -> dict[str, str]:
    pairs = [line.partition(":") for line in lines or ()]
    try:
        return read_headers({name.strip(): value.strip() for name, _, value in pairs})
    except ValueError as rule:
        raise ValueError(f"the headers {rule}") from None


def _number(ids: Identifiers, name: str) -> int:
    number = ids.webhook_number(name)
    if number is None:
        raise CommandRefused(f"there is no endpoint {name}")
    return number


async def _endpoint(conn: Connection, ids: Identifiers, name: str) -> Endpoint:
    return await endpoints.find_any(conn, _number(ids, name))


async def _company_names(conn: Connection) -> dict[int, str]:
    rows = await conn.fetch("SELECT id, name FROM company WHERE id IN (SELECT company_id FROM webhook)")
    return {row["id"]: row["name"] for row in rows}


def _shown(ids: Identifiers, one: Endpoint, names: Mapping[int, str]) -> Output:
    return shown(
        _document(ids, one, names),
        [
            *("id", "company", "state", ("address", _address), "format"),
            ("events", lambda one: ", ".join(one["eventTypes"]) or "all"),
            ("headers", lambda one: ", ".join(one["headerNames"])),
            *("description", ("standing", _standing), ("failing since", _moment("dateFailingSince"))),
            *(("old secret until", _moment("dateOldSecretExpires")), ("made", _moment("dateCreated"))),
        ],
    )


def _document(ids: Identifiers, one: Endpoint, names: Mapping[int, str]) -> dict[str, Any]:
    return {"company": names.get(one.company_id)} | _plain(wire.webhook(ids, one))


def _plain(shape: msgspec.Struct) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(shape))
    return found


def _moment(field: str) -> Callable[[Document], datetime | None]:
    return lambda one: None if one[field] is None else datetime.fromisoformat(one[field])


def _address(one: Document) -> str:
    return one["url"] or "of each order"


def _standing(one: Document) -> str:
    if not one["enabled"]:
        return _WHY.get(one["disabledReason"], "disabled")
    return f"{one['failures']} failures" if one["failures"] else "fine"


def _last(one: Document) -> object:
    last = one["attempts"][-1] if one["attempts"] else {"httpStatus": None, "error": None}
    return last["httpStatus"] or last["error"]
