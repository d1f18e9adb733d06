"""`voucherd demo`: the whole service in one process, with a shop to try it on."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network
from typing import Annotated, Final

from msgspec import structs
from typer import Option

from voucherd import bootstrap
from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext, pool_of
from voucherd.cli.demo_shop import handout, seed
from voucherd.cli.demo_shop.handout import FILE_NAME, Handout
from voucherd.cli.output import CommandRefused, Output
from voucherd.cli.serve import serve_until_told
from voucherd.db import transaction
from voucherd.migrate import migrate, service_url
from voucherd.server.listener import CannotListen, listen
from voucherd.settings import Settings
from voucherd.vault.key_ring import open_key_ring

app = noun()


LOOPBACK: Final = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


@command(app, "demo")
async def demo(
    context: CommandContext,
    port: Annotated[int | None, Option(min=0, max=65_535, help="0 picks a free one; else 8080.")] = None,
) -> None:
    """Run the whole service with a demo shop, and print how to try it. Ctrl-C stops it; the data stays."""
    settings = context.with_flags(port=port)
    if settings.log_level == "info":
        # The server's own greetings would bury what the demo has to say.
        settings = replace(settings, log_level="warning")
    # Whoever tries it signs in with what is printed; the page of the account tells of second factors.
    settings = replace(settings, operator_second_factor=False)
    if not settings.webhook_networks:
        # So that `voucherd webhook listen` works beside it.
        settings = replace(settings, webhook_networks=LOOPBACK)
    _refuse_taken_port(settings)
    async with bootstrap.database(settings, exclusive=True) as owner_url:
        await migrate(settings.migration_url or owner_url)
        url = await service_url(owner_url) if settings.database_url is None else owner_url
        given = await prepare(settings, url)

        def ready(base_url: str) -> None:
            context.say(Output(given.document(base_url), _greeting(given, base_url, settings)))

        await serve_until_told(context, settings, url, with_worker=True, on_ready=ready)


async def prepare(settings: Settings, url: str) -> Handout:
    """Open the shop at the first start; at every start, the keys and passwords to try it with."""
    # The machine of somebody who tries it may be slow.
    async with pool_of(url, patient=True) as pool:
        async with transaction(pool) as tx:
            company = await seed.find_shop(tx)
            await seed.freshen_rates(tx)
            given = handout.load(settings.data)
            key_ring = await open_key_ring(tx, settings)
            if company is None or given is None or not await seed.still_valid(tx, given):
                company = company or await seed.open_shop(tx, key_ring.sealer)
                given = await seed.hand_out(tx, company)
                # Before the commit: a crash in between leaves keys without a shop, and the next start makes both anew.
                handout.save(settings.data, given)
        if not given.voucher:
            link = await seed.sample_voucher(pool, settings, key_ring, company)
            given = structs.replace(given, voucher=link)
            handout.save(settings.data, given)
        return given


def _refuse_taken_port(settings: Settings) -> None:
    """Refuse before the database is started, not after."""
    if settings.port == 0:
        return
    try:
        listen(settings).close()
    except CannotListen as refused:
        raise CommandRefused(f"{refused}; another demo? `--port 0` picks a free one") from None


def _greeting(given: Handout, base_url: str, settings: Settings) -> str:
    return f"""\
voucherd is running at {base_url}; Ctrl-C stops it.

  portal       {base_url}/portal
  console      {base_url}/console
  voucher      {base_url}{given.voucher}
  API          {base_url}/docs

  company      {given.company}
  live key     {given.live_key}
  sandbox key  {given.sandbox_key}
  operator     {given.operator.email}  {given.operator.password}
  buyer        {given.buyer.email}     {given.buyer.password}
  data         {settings.data} ({FILE_NAME} there keeps these)

Create an order, then confirm it:

  KEY={given.live_key}
  TRX=$(curl -s {base_url}/api/1.03/order \\
    -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\
    -d '{{"items": [{{"productSlug": "{given.products[0]}", "amount": 2}}],
         "paymentCurrency": "EUR"}}' | sed 's/.*"trx": *"\\([^"]*\\)".*/\\1/')

  curl -s -X PATCH {base_url}/api/1.00/order/confirm/$TRX \\
    -H "Authorization: Bearer $KEY"
"""
