"""`voucherd serve`: the API and the pages, until it is told to stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from typer import Option

from voucherd import app as program
from voucherd import processes
from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext, pool_of, refuse_pending, refuse_restored
from voucherd.cli.output import Output
from voucherd.db import Pool, transaction
from voucherd.settings import Settings
from voucherd.setup import deeds, links
from voucherd.setup.deeds import SetUpAlready

app = noun()


@command(app, "serve")
async def serve(
    context: CommandContext,
    host: Annotated[str | None, Option(help="Where to listen; else 127.0.0.1.")] = None,
    port: Annotated[int | None, Option(min=0, max=65_535, help="0 picks a free one; else 8080.")] = None,
    process_count: Annotated[
        int | None, Option("--processes", min=1, max=256, help="Server processes; else 1.")
    ] = None,
    no_worker: Annotated[bool, Option("--no-worker", help="Leave the background work to others.")] = False,
) -> None:
    """Run the API and the pages, and the background work beside them."""
    settings = context.with_flags(host=host, port=port, processes=process_count)

    async with context.database(exclusive=True, wait=True) as url:
        async with pool_of(url) as pool:
            await refuse_pending(pool)
            token = await _setup_token(context, pool)

        def ready(base_url: str) -> None:
            context.say(_listening(base_url, token))

        await serve_until_told(context, settings, url, with_worker=not no_worker, on_ready=ready)


async def _setup_token(context: CommandContext, pool: Pool) -> str | None:
    """The token of the set-up link; None for a shop that is set up."""
    async with pool.acquire() as connection:
        if not await links.is_empty(connection):
            return None
        root = (await context.key_ring(connection)).root
    async with transaction(pool) as tx:
        try:
            return await deeds.open_link(tx, context.actor, root)
        except SetUpAlready:
            return None  # Somebody was quicker.


def _listening(base_url: str, token: str | None) -> Output:
    said = f"Listening on {base_url}"
    if token is None:
        return Output({"baseUrl": base_url}, said)
    link = f"{base_url}/set-up/{token}"
    return Output(
        {"baseUrl": base_url, "setupUrl": link},
        f"{said}\n\nThe shop is empty. Set it up here, in a browser:\n\n    {link}\n\n"
        "The link is good for 24 hours and can be used once; `voucherd setup-link` prints another.\n",
    )


async def serve_until_told(
    context: CommandContext,
    settings: Settings,
    url: str,
    *,
    with_worker: bool,
    on_ready: Callable[[str], None],
) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP."""

    def ready(base_url: str) -> None:
        context.ending.leave_to_server()
        on_ready(base_url)

    async with pool_of(url) as pool:
        await refuse_restored(pool, settings)
    if settings.processes > 1:
        await processes.run(
            settings, url, processes=settings.processes, with_worker=with_worker, on_ready=on_ready
        )
        return
    await program.serve(settings, url, with_worker=with_worker, on_ready=ready)
