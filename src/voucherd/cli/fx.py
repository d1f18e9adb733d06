"""`voucherd fx`: what one unit of each currency is worth in EUR (OP-50), and margins on it."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, TypeAlias

import typer
from typer import Argument, Option

from voucherd.catalogue import fx_feed, fx_store, rate_deeds, store
from voucherd.catalogue.fx import FILE_BYTES_MAX, parse_ecb, parse_rate
from voucherd.catalogue.rate_deeds import BadMargin, share_text
from voucherd.catalogue.rules import BadProduct
from voucherd.catalogue.store import FxRate
from voucherd.catalogue.texts import read_share
from voucherd.cli.command import command, noun, usage
from voucherd.cli.context import CommandContext
from voucherd.cli.files import name_of
from voucherd.cli.output import Output, facts, listed, stacked
from voucherd.cli.words import read_currency
from voucherd.money import RATE_DIGITS
from voucherd.setting_values import feed_url

app = noun()
margin = noun()
app.add_typer(
    margin,
    name="margin",
    help="What is added when a price is paid in another currency.",
    no_args_is_help=True,
)

Currency: TypeAlias = Annotated[str, Argument(metavar="CURRENCY", parser=read_currency)]
From: TypeAlias = Annotated[str, Argument(metavar="FROM", parser=read_currency, help="Of the price.")]
To: TypeAlias = Annotated[str, Argument(metavar="TO", parser=read_currency, help="Of the payment.")]


@command(app, "import")
async def import_(
    context: CommandContext,
    file: Annotated[
        typer.FileBinaryRead | None,
        Argument(help="The ECB's daily, 90-day or historical XML or CSV; - for stdin."),
    ] = None,
    url: Annotated[str | None, Option(metavar="URL", help="Take it from here; else from fx_url.")] = None,
) -> Output:
    """Take the rates of one of the European Central Bank's files, or of the address that serves it."""
    if file is not None and url is not None:
        raise typer.BadParameter("give a file or an address, not both")
    if file is not None:
        source, content = name_of(file), file.read(FILE_BYTES_MAX + 1)
    else:
        address = await _address(context, url)
        source, content = fx_feed.host_of(address), await fx_feed.fetch(address)
    days = parse_ecb(content)
    async with context.transaction() as tx:
        count = await rate_deeds.import_rates(tx, context.actor, source, days, fetched=file is None)
    first, last = min(day.day for day in days), max(day.day for day in days)
    span = f"{last}" if first == last else f"{first} to {last}"
    return Output(
        {"rates": count, "days": len(days), "from": first, "to": last}, f"{count} rates of {span} are set."
    )


async def _address(context: CommandContext, url: str | None) -> str:
    if url is None:
        async with context.connection() as connection:
            chosen = (await context.running_settings(connection)).fx_url
        if chosen is None:
            raise typer.BadParameter("give a file, or --url, or the setting fx_url")
        return chosen
    try:
        return feed_url(url)
    except ValueError as wrong:
        raise typer.BadParameter(f"--url: must be {wrong}") from None


@command(app, "set")
async def set_(
    context: CommandContext,
    currency: Currency,
    rate: Annotated[str, Argument(metavar="RATE", help="What one unit is worth in EUR, such as 0.92.")],
) -> Output:
    """Set today's rate of one currency by hand."""
    with usage():
        eur_e8 = parse_rate(rate)
    async with context.transaction() as tx:
        day = await rate_deeds.set_rate(tx, context.actor, currency, eur_e8)
    worth = _eur(eur_e8)
    return Output(
        {"currency": currency, "eur": worth, "day": day}, f"1 {currency} = {worth} EUR from {day} on."
    )


@command(app, "list")
async def list_(
    context: CommandContext,
    history: Annotated[
        str | None,
        Option(
            "--history", metavar="CURRENCY", parser=read_currency, help="All that this one had, newest first."
        ),
    ] = None,
) -> Output:
    """List the rates in force today, or every rate that one currency had."""
    async with context.connection() as connection:
        if history is not None:
            return _rates(await fx_store.history(connection, history), empty=f"{history} never had a rate.")
        rates = await store.list_rates(connection)
        standing = await fx_store.feed(connection)
    shown = _rates(rates, empty="No rates yet: take the ECB's with `voucherd fx import`.")
    if standing.problem is None:
        return shown
    failed = f"The last refresh, at {standing.attempted_at:%Y-%m-%d %H:%M} UTC, failed: {standing.problem}"
    return Output(shown.document, stacked(shown.view, "", failed))


@command(margin, "set")
async def set_margin(
    context: CommandContext,
    from_: From,
    to: To,
    share: Annotated[str, Argument(metavar="SHARE", help="Of the converted price, such as 1.5%.")],
) -> Output:
    """Add a share to every price in one currency that is paid in another."""
    with usage(BadMargin, BadProduct):
        margin_bp = read_share("share", share)
        async with context.transaction() as tx:
            await rate_deeds.set_margin(tx, context.actor, from_, to, margin_bp)
    return Output(
        _margin(from_, to, margin_bp),
        f"Prices in {from_} that are paid in {to} cost {share_text(margin_bp)} more.",
    )


@command(margin, "remove")
async def remove_margin(context: CommandContext, from_: From, to: To) -> Output:
    """Take the margin of a pair away."""
    async with context.transaction() as tx:
        await rate_deeds.remove_margin(tx, context.actor, from_, to)
    return Output(
        {"from": from_, "to": to}, f"Prices in {from_} that are paid in {to} are converted as they are."
    )


@command(margin, "list")
async def list_margins(context: CommandContext) -> Output:
    """List the margins."""
    async with context.connection() as connection:
        found = await fx_store.margins(connection)
    return listed(
        [_margin(*pair, margin_bp) for pair, margin_bp in found.items()],
        ["from", "to", (">margin", lambda one: share_text(int(one["marginPercent"].scaleb(2))))],
        empty="No margins: prices are converted at the plain rate.",
    )


def _margin(from_: str, to: str, margin_bp: int) -> dict[str, Any]:
    return {"from": from_, "to": to, "marginPercent": Decimal(margin_bp).scaleb(-2)}


def _rates(rates: Sequence[FxRate], *, empty: str) -> Output:
    documents = [facts(rate, "currency eur day source", eur=_eur(rate.eur_e8)) for rate in rates]
    return listed(documents, ["currency", (">in EUR", "eur"), "day", "source"], empty=empty)


def _eur(eur_e8: int) -> Decimal:
    return Decimal(eur_e8).scaleb(-RATE_DIGITS)
