"""`voucherd supplier`: where codes come from that are not on the shelf."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, Final

import typer
from rich.console import RenderableType
from typer import Argument, Option

from voucherd.cli import supplier_options as given
from voucherd.cli import supplier_reconcile
from voucherd.cli.command import command, noun, usage
from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused, Document, Output, facts, listed, record, stacked, table_of
from voucherd.cli.words import StateWord, amount, priced, read_money, span
from voucherd.db import Pool, transaction
from voucherd.suppliers import deeds, overview, registry, trial
from voucherd.suppliers import store as supplier_store
from voucherd.suppliers.deeds import BadSku, SupplierChanges
from voucherd.suppliers.overview import SupplierFigures
from voucherd.suppliers.registry import Spec
from voucherd.suppliers.store import OfferRow, SupplierDraft, SupplierRow
from voucherd.suppliers.trial import OFFERS_TRIED, OFFERS_TRIED_MAX, TrialFinding

app = noun()

OFFERS_SHOWN: Final = 50

Slug = Annotated[str, Argument(metavar="SLUG", help="Our product.")]
Face = Annotated[
    str | None, Option("--face", metavar="'25 EUR'", help="One face value of a variable product.")
]


@command(app, "add")
async def add(
    context: CommandContext,
    name: given.Name,
    kind: Annotated[given.Kind, Option(help="Who is behind it.")],
    state: Annotated[StateWord | None, Option(help="For real orders, or for the sandbox's.")] = None,
    url: given.Url = None,
    currency: given.Currency = None,
    file: given.File = None,
    config: given.Config = None,
    key_file: given.KeyFile = None,
    key: given.Key = None,
    timeout_s: Annotated[int, given.Timeout] = 20,
    settle_s: Annotated[int, given.Settle] = 120,
    quote_age_s: Annotated[int, given.QuoteAge] = 300,
    concurrency: Annotated[int, given.Concurrency] = 8,
    price_slack: Annotated[str, given.Slack] = "1%",
    on_unknown: given.Unknown = None,
) -> Output:
    """Add a supplier. Its key is asked for, or read from a file or stdin, and stored sealed."""
    given.check_name(name)
    given.check_key_options(key_file, key)
    state = state or (StateWord.SANDBOX if kind == "sandbox" else StateWord.LIVE)
    with usage():
        slack_bp = deeds.read_slack(price_slack)
        deeds.check_state(kind, state.state)
    found = given.new_config(kind, None, file=file, url=url, currency=currency, more=config) or {}
    deeds.declare_risk(kind, found, on_unknown)
    needed = registry.needs_secret(kind, found)
    if not needed and (key or key_file):
        raise typer.BadParameter("--key: this supplier takes none")
    secret = given.read_key(context, key_file, key, needed=needed)
    draft = SupplierDraft(
        name,
        kind,
        state.state,
        found,
        secret,
        timeout_s=timeout_s,
        settle_s=settle_s,
        quote_age_s=quote_age_s,
        concurrency_max=concurrency,
        price_slack_bp=slack_bp,
        on_unknown=on_unknown or "wait",
    )
    async with context.pool() as pool:
        await _open(pool, Spec(name, draft.kind, draft.state, found, secret, draft.timeout_s))
        async with transaction(pool) as tx:
            row = await deeds.add(tx, context.actor, draft, await context.sealer(tx))
    return _described(row, hint=f"Say what it sells: voucherd supplier offer {name} SLUG")


@command(app, "set")
async def set_(
    context: CommandContext,
    name: given.Name,
    url: given.Url = None,
    currency: given.Currency = None,
    file: given.File = None,
    config: given.Config = None,
    key_file: given.KeyFile = None,
    key: given.Key = None,
    timeout_s: Annotated[int | None, given.Timeout] = None,
    settle_s: Annotated[int | None, given.Settle] = None,
    quote_age_s: Annotated[int | None, given.QuoteAge] = None,
    concurrency: Annotated[int | None, given.Concurrency] = None,
    price_slack: Annotated[str | None, given.Slack] = None,
    on_unknown: given.Unknown = None,
    active: Annotated[
        bool | None, Option("--active/--inactive", help="Whether anything is bought there.")
    ] = None,
) -> Output:
    """Change a supplier. A new address or key makes its prices be asked for anew."""
    given.check_key_options(key_file, key)
    secret = given.read_key(context, key_file, key, needed=False)
    with usage():
        slack_bp = None if price_slack is None else deeds.read_slack(price_slack)
    async with context.pool() as pool:
        async with pool.acquire() as connection:
            before = await supplier_store.supplier(connection, name)
            sealer = await context.sealer(connection)
        found = given.new_config(
            before.kind, before.config, file=file, url=url, currency=currency, more=config
        )
        if found is not None:
            deeds.declare_risk(before.kind, found, on_unknown)
        made = SupplierChanges(
            config=found,
            secret=secret,
            active=active,
            timeout_s=timeout_s,
            settle_s=settle_s,
            quote_age_s=quote_age_s,
            concurrency_max=concurrency,
            price_slack_bp=slack_bp,
            on_unknown=on_unknown,
        )
        if made == SupplierChanges():
            raise typer.BadParameter("nothing to change: give at least one option")
        after = before.config if found is None else found
        if made.speaks_anew:
            spec = before.spec(sealer)
            await _open(
                pool,
                Spec(name, spec.kind, spec.state, after, secret or spec.secret, timeout_s or spec.timeout_s),
            )
        async with transaction(pool) as tx:
            row = await deeds.change(tx, context.actor, name, made, sealer)
    return _described(row)


@command(app, "offer")
async def offer(
    context: CommandContext,
    name: given.Name,
    slug: Slug,
    sku: Annotated[str | None, Option(help="Its own name for it; else our slug.")] = None,
    face: Face = None,
) -> Output:
    """Say that a supplier sells a product; of a variable one every face value, unless you name one."""
    wanted = None if face is None else read_money("face", face)
    with usage(BadSku):
        async with context.transaction() as tx:
            row, made = await deeds.offer(tx, context.actor, name, slug, sku, wanted)
    told = {"supplier": row.name} | _offer(row, made)
    text = f"{row.name} sells {made.slug} ({_ends(told, 'faceValue')}) as {made.sku}."
    return Output(told, f"{text} Its price is asked for in a moment.")


@command(app, "withdraw")
async def withdraw(context: CommandContext, name: given.Name, slug: Slug, face: Face = None) -> Output:
    """Buy a product at a supplier no more; what is under way there goes on."""
    wanted = None if face is None else read_money("face", face)
    async with context.transaction() as tx:
        ended = await deeds.withdraw(tx, context.actor, name, slug, wanted)
    return Output(
        {"supplier": name, "product": slug, "withdrawn": ended}, f"{slug} is bought at {name} no more."
    )


@command(app, "list")
async def list_(context: CommandContext) -> Output:
    """List the suppliers: what is under way at each, and whether its prices are fresh."""
    async with context.connection() as connection:
        found = await supplier_store.suppliers(connection)
        counted = await overview.figures(connection)
    until = {row.name: _breaker(row) for row in found}
    return listed(
        [_document(row) | _figures(counted.get(row.id, SupplierFigures())) for row in found],
        [
            *("supplier", "kind", "state", "active", ("breaker", lambda one: until[one["supplier"]])),
            *(">calls", (">queue", _queue), ">unknown", ("quotes", _quotes), "?~last error"),
        ],
        empty="No suppliers.",
    )


@command(app, "show")
async def show(
    context: CommandContext,
    name: given.Name,
    offers: Annotated[int, Option(min=0, help="How many offers to print.")] = OFFERS_SHOWN,
) -> Output:
    """Show a supplier and what it sells, with price, stock and age. Its key is shown nowhere."""
    async with context.connection() as connection:
        row = await supplier_store.supplier(connection, name)
        counted = (await overview.figures(connection))[row.id]
        sold = await supplier_store.offers(connection, row.id)
    offered = [_offer(row, one) for one in sold]
    told = _document(row) | _figures(counted) | {"offers": offered}
    pairs = [
        *_pairs(row),
        ("breaker", _breaker(row)),
        ("calls", f"{counted.calls} under way, {_queue(told)} lines wait, {counted.unknown} unknown"),
        ("quotes", _quotes(told)),
        ("last error", row.quote_error),
    ]
    view: list[RenderableType] = [record(pairs), "", _offers(row, offered[:offers])]
    if len(sold) > offers:
        view.append(f"… and {len(sold) - offers:,} more (--offers {len(sold)})")
    return Output(told, stacked(*view))


@command(app, "test")
async def try_out(
    context: CommandContext,
    name: given.Name,
    offers: Annotated[
        int, Option(min=1, max=OFFERS_TRIED_MAX, help="How many to ask prices of.")
    ] = OFFERS_TRIED,
) -> Output:
    """Speak with a supplier: open it, ask for prices, look up a purchase that never was. Buys nothing."""
    async with context.pool() as pool:
        async with pool.acquire() as connection:
            row = await supplier_store.supplier(connection, name)
            sealer = await context.sealer(connection)
        found, untried = await trial.try_out(pool, sealer, row, offers)
    if untried:
        found.append(TrialFinding("prices", None, f"{untried:,} more offers were not tried (--offers)"))
    marks = {True: "ok", False: "failed", None: "note"}
    findings = [facts(one, "what result text", result=marks[one.good]) for one in found]
    failed = sum(one.good is False for one in found)
    view = table_of(findings, ["result", "what", ("~found", "text")])
    answer = Output({"supplier": row.name, "ok": not failed, "findings": findings}, view)
    if failed:
        things = "1 thing" if failed == 1 else f"{failed} things"
        raise CommandRefused(f"{things} failed at {row.name}; nothing was bought", answer)
    return answer


command(app, "reconcile")(supplier_reconcile.reconcile)


async def _open(pool: Pool, spec: Spec) -> None:
    """Refuse what no adapter could work with, such as a live key for a sandbox supplier."""
    try:
        adapter = registry.open_supplier(spec, pool)
    except ValueError as wrong:
        raise CommandRefused(str(wrong)) from None
    await adapter.close()


def _described(row: SupplierRow, hint: str | None = None) -> Output:
    """A supplier as the operator wrote it down."""
    view = record(_pairs(row))
    return Output(_document(row), view if hint is None else stacked(view, "", hint))


def _document(row: SupplierRow) -> dict[str, Any]:
    """A supplier for programs."""
    return facts(
        row,
        "supplier kind state active config hasKey looksUp onUnknown timeoutS settleS quoteAgeS concurrency"
        " priceSlackPercent breaker lastError",
        supplier=row.name,
        config=_plain(row),
        hasKey=row.secret is not None,
        looksUp=registry.can_look_up(row.kind, row.config),
        concurrency=row.concurrency_max,
        priceSlackPercent=Decimal(row.price_slack_bp).scaleb(-2),
        breaker=row.health.word(row.now),
        lastError=row.quote_error,
    )


def _plain(row: SupplierRow) -> dict[str, Any]:
    """The plain keys of the config: not its tables, in whose headers somebody may have put a secret after all."""
    return {name: value for name, value in row.config.items() if isinstance(value, str | int | float | bool)}


def _pairs(row: SupplierRow) -> list[tuple[str, object]]:
    looks_up = registry.can_look_up(row.kind, row.config)
    lines = "wait for you" if row.on_unknown == "wait" else "are bought again"
    return [
        ("supplier", row.name),
        ("kind", f"{row.kind}, {row.state.word}"),
        ("active", row.active),
        *((name, value) for name, value in _plain(row).items()),
        ("key", "stored, sealed" if row.secret is not None else None),
        (
            "limits",
            f"{row.timeout_s} s a call, {row.concurrency_max} calls at once, prices for {row.quote_age_s} s",
        ),
        ("settling time", f"{row.settle_s} s"),
        ("price slack", f"{Decimal(row.price_slack_bp).scaleb(-2).normalize():f}%"),
        ("look-up", "yes" if looks_up else "no: nobody can tell what became of a purchase"),
        ("if unknown", f"its lines {lines}"),
    ]


def _figures(counted: SupplierFigures) -> dict[str, Any]:
    return {
        "calls": counted.calls,
        "queueLines": counted.lines,
        "queueIsLonger": counted.many,
        "unknown": counted.unknown,
        "quotes": facts(counted, "fresh stale none"),
    }


def _queue(one: Document) -> str:
    return f"{one['queueLines']:,}" + ("+" if one["queueIsLonger"] else "")


def _quotes(one: Document) -> str:
    return ", ".join(f"{count} {word}" for word, count in one["quotes"].items() if count) or "no offers"


def _breaker(row: SupplierRow) -> str:
    word, until = row.health.word(row.now), row.health.open_until
    return f"{word} until {until:%H:%M:%S}" if word == "open" and until is not None else word


def _offers(row: SupplierRow, offers: Sequence[Document]) -> RenderableType:
    return table_of(
        offers,
        [
            "product",
            (">face value", lambda one: _ends(one, "faceValue")),
            (">price", lambda one: _ends(one, "price")),
            (">stock", lambda one: None if one["price"] is None else one["stock"]),
            (">age", lambda one: one["quotedAt"] and span(row.now - one["quotedAt"])),
            *("standing", "?sku"),
        ],
        empty=f"It sells nothing yet: voucherd supplier offer {row.name} SLUG",
    )


def _ends(offer: Document, name: str) -> str | None:
    """An amount of an offer, or both ends of its range."""
    if offer[name] is None:
        return None
    return (
        "–".join(str(one) for one in (offer[name], offer[f"{name}To"]) if one is not None)
        + f" {offer[f'{name}Currency']}"
    )


def _standing(row: SupplierRow, offer: OfferRow) -> str:
    """Whether the offer can serve now, and why not."""
    if not offer.active:
        return "withdrawn"
    if offer.quoted_at is None:
        return "not quoted yet"
    if offer.quote_id is None:
        return "not sold there"
    if row.now - offer.quoted_at >= timedelta(seconds=row.quote_age_s):
        return "stale"
    if offer.refused_until is not None:
        return "refused"
    return "fresh" if offer.stock else "out of stock"


def _offer(row: SupplierRow, offer: OfferRow) -> dict[str, Any]:
    return facts(
        offer,
        "product sku active standing faceValue faceValueTo faceValueCurrency price priceTo priceCurrency stock"
        " quotedAt",
        product=offer.slug,
        standing=_standing(row, offer),
        **priced("faceValue", offer.face_minor, offer.face_currency),
        faceValueTo=amount(offer.face_to_minor, offer.face_currency),
        **priced("price", offer.price_minor, offer.currency),
        priceTo=amount(offer.price_to_minor, offer.currency),
    )
