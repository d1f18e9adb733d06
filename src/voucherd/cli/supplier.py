"""`voucherd supplier`: where codes come from that are not on the shelf."""

from __future__ import annotations

from typing import Annotated

import typer

from voucherd.cli import supplier_reconcile, supplier_trial
from voucherd.cli.command import command, noun, usage
from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused, Output
from voucherd.cli.supplier_options import (
    Concurrency,
    Config,
    Currency,
    File,
    Key,
    KeyFile,
    KindWord,
    Name,
    QuoteAge,
    Settle,
    Slack,
    Timeout,
    Unknown,
    Url,
    check_key_options,
    check_name,
    new_config,
    read_key,
)
from voucherd.cli.supplier_views import OFFERS_SHOWN, described, listed, offer_line, shown
from voucherd.cli.words import StateWord, read_money
from voucherd.db import Pool, transaction
from voucherd.suppliers import deeds, overview, registry
from voucherd.suppliers import store as supplier_store
from voucherd.suppliers.deeds import BadSku, SupplierChanges
from voucherd.suppliers.registry import Spec
from voucherd.suppliers.store import SupplierDraft

app = noun()

Slug = Annotated[str, typer.Argument(metavar="SLUG", help="Our product.")]
Face = Annotated[
    str | None, typer.Option("--face", metavar="'25 EUR'", help="One face value of a variable product.")
]


@command(app, "add")
async def add(
    context: CommandContext,
    name: Name,
    kind: Annotated[KindWord, typer.Option("--kind", help="Who is behind it.")],
    state: Annotated[
        StateWord | None, typer.Option("--state", help="For real orders, or for the sandbox's.")
    ] = None,
    url: Url = None,
    currency: Currency = None,
    file: File = None,
    config: Config = None,
    key_file: KeyFile = None,
    key: Key = None,
    timeout_s: Annotated[int, Timeout] = 20,
    settle_s: Annotated[int, Settle] = 120,
    quote_age_s: Annotated[int, QuoteAge] = 300,
    concurrency: Annotated[int, Concurrency] = 8,
    price_slack: Annotated[str, Slack] = "1%",
    on_unknown: Unknown = None,
) -> Output:
    """Add a supplier. Its key is asked for, or read from a file or stdin, and stored sealed."""
    check_name(name)
    check_key_options(key_file, key)
    state = state or (StateWord.SANDBOX if kind is KindWord.SANDBOX else StateWord.LIVE)
    with usage():
        slack_bp = deeds.read_slack(price_slack)
        deeds.check_state(kind, state.state)
    found = new_config(kind, None, file=file, url=url, currency=currency, more=config) or {}
    deeds.declare_risk(kind, found, on_unknown)
    needed = registry.needs_secret(kind, found)
    if not needed and (key or key_file):
        raise typer.BadParameter("--key: this supplier takes none")
    secret = read_key(context, key_file, key, needed=needed)
    draft = SupplierDraft(
        name,
        kind.value,
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
        await _try_out(pool, Spec(name, draft.kind, draft.state, found, secret, draft.timeout_s))
        async with transaction(pool) as tx:
            row = await deeds.add(tx, context.actor, draft, await context.sealer(tx))
    return described(row, hint=f"Say what it sells: voucherd supplier offer {name} SLUG")


@command(app, "set")
async def set_(
    context: CommandContext,
    name: Name,
    url: Url = None,
    currency: Currency = None,
    file: File = None,
    config: Config = None,
    key_file: KeyFile = None,
    key: Key = None,
    timeout_s: Annotated[int | None, Timeout] = None,
    settle_s: Annotated[int | None, Settle] = None,
    quote_age_s: Annotated[int | None, QuoteAge] = None,
    concurrency: Annotated[int | None, Concurrency] = None,
    price_slack: Annotated[str | None, Slack] = None,
    on_unknown: Unknown = None,
    active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="Whether anything is bought there.")
    ] = None,
) -> Output:
    """Change a supplier. A new address or key makes its prices be asked for anew."""
    check_key_options(key_file, key)
    secret = read_key(context, key_file, key, needed=False)
    with usage():
        slack_bp = None if price_slack is None else deeds.read_slack(price_slack)
    async with context.pool() as pool:
        async with pool.acquire() as connection:
            before = await supplier_store.supplier(connection, name)
            sealer = await context.sealer(connection)
        found = new_config(before.kind, before.config, file=file, url=url, currency=currency, more=config)
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
            trial = Spec(
                name, spec.kind, spec.state, after, secret or spec.secret, timeout_s or spec.timeout_s
            )
            await _try_out(pool, trial)
        async with transaction(pool) as tx:
            row = await deeds.change(tx, context.actor, name, made, sealer)
    return described(row)


@command(app, "offer")
async def offer(
    context: CommandContext,
    name: Name,
    slug: Slug,
    sku: Annotated[str | None, typer.Option("--sku", help="Its own name for it; else our slug.")] = None,
    face: Face = None,
) -> Output:
    """Say that a supplier sells a product; of a variable one every face value, unless you name one."""
    wanted = None if face is None else read_money("face", face)
    with usage(BadSku):
        async with context.transaction() as tx:
            row, made = await deeds.offer(tx, context.actor, name, slug, sku, wanted)
    return offer_line(row, made)


@command(app, "withdraw")
async def withdraw(context: CommandContext, name: Name, slug: Slug, face: Face = None) -> Output:
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
    return listed([(row, counted.get(row.id, overview.SupplierFigures())) for row in found])


@command(app, "show")
async def show(
    context: CommandContext,
    name: Name,
    offers: Annotated[int, typer.Option("--offers", min=0, help="How many offers to print.")] = OFFERS_SHOWN,
) -> Output:
    """Show a supplier and what it sells, with price, stock and age. Its key is shown nowhere."""
    async with context.connection() as connection:
        row = await supplier_store.supplier(connection, name)
        counted = (await overview.figures(connection))[row.id]
        sold = await supplier_store.offers(connection, row.id)
    return shown(row, counted, sold, offers)


command(app, "test")(supplier_trial.try_out)
command(app, "reconcile")(supplier_reconcile.reconcile)


async def _try_out(pool: Pool, spec: Spec) -> None:
    """Refuse what no adapter could work with, such as a live key for a sandbox supplier."""
    try:
        adapter = registry.open_supplier(spec, pool)
    except ValueError as wrong:
        raise CommandRefused(str(wrong)) from None
    await adapter.close()
