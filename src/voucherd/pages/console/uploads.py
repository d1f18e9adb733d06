"""Files that are uploaded in the console: kept sealed, worked on in the background, watched while that lasts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TypeAlias
from uuid import UUID, uuid4

import msgspec
import structlog

from voucherd.db import UNAVAILABLE, transaction
from voucherd.http import EVENT_STREAM, Response
from voucherd.pages.forms import Upload
from voucherd.pages.visit import Visit, missing
from voucherd.people import sessions
from voucherd.services import Services
from voucherd.vault import uploads
from voucherd.vault.uploads import FILE_BYTES_MAX, UploadPhase, UploadRow

logger = structlog.get_logger(__name__)

TICK_S: Final = 1.0
LOOK_EVERY_S: Final = 0.5
LOOKS_MAX: Final = 1_200
BROKEN: Final = "Something went wrong on our side. Nothing was taken; try again."

Far: TypeAlias = Callable[[int, int], None]
"""Told how much is done, of how much."""


def chosen_file(visit: Visit) -> Upload | str:
    """The file of the form, or what is wrong with it."""
    file = visit.files.get("file")
    if file is None or not file.content:
        return "Choose a file that is not empty."
    if len(file.content) > FILE_BYTES_MAX:
        return "The file is larger than 32 MiB."
    return file


async def keep(visit: Visit, kind: str, file: Upload, terms: dict[str, Any]) -> UUID:
    """Keep the file, sealed; its id."""
    upload_id = uuid4()
    name = (
        "".join(letter for letter in file.name if letter.isprintable()).replace("\\", "/").rpartition("/")[2]
    )
    async with transaction(visit.pool) as tx:
        await uploads.keep(
            tx,
            visit.services.sealer,
            upload_id=upload_id,
            user_id=visit.someone.id,
            kind=kind,
            name=name,
            content=file.content,
            terms=terms,
        )
    return upload_id


async def find(visit: Visit, kind: str) -> UploadRow:
    """The upload that the path names."""
    row = None
    with suppress(ValueError):
        upload_id = UUID(visit.parameters["upload"])
        async with visit.pool.acquire() as conn:
            row = await uploads.find(conn, upload_id, kind)
    if row is None:
        raise missing()
    return row


async def take_out(services: Services, row: UploadRow) -> bytes | None:
    """Begin to take the file in: what is in it, or None if it can't be taken (any more)."""
    async with transaction(services.pool) as tx:
        return await uploads.begin_taking(tx, services.sealer, row.id)


def run(services: Services, upload_id: UUID, work: Callable[[Far], Awaitable[None]]) -> None:
    """Work on a file in the background; whoever looks at its page sees how far it is."""

    async def job() -> None:
        permille = 0

        def far(done: int, total: int) -> None:
            nonlocal permille
            permille = 1_000 * done // max(total, 1)

        async def tick() -> None:
            while True:
                with suppress(*UNAVAILABLE):
                    await uploads.note_progress(services.pool, upload_id, permille)
                await asyncio.sleep(TICK_S)

        ticking = asyncio.create_task(tick())
        try:
            await work(far)
        except Exception as error:  # noqa: BLE001 - Whoever looks at the page is told.
            # Without a traceback: what is at hand there are codes.
            logger.error("upload_failed", upload=str(upload_id), error=repr(error))
            with suppress(*UNAVAILABLE):
                await uploads.end(services.pool, upload_id, UploadPhase.REFUSED, {"problem": BROKEN})
        finally:
            # Whatever it was just saying has been said before the job ends: nobody is at it any more then.
            ticking.cancel()
            await asyncio.wait([ticking])

    services.jobs.start(job)


async def stock_progress(visit: Visit) -> Response:
    """How far an import of codes is, live."""
    return await _progress(visit, "stock")


async def product_progress(visit: Visit) -> Response:
    """How far an import of products is, live."""
    return await _progress(visit, "products")


async def _progress(visit: Visit, kind: str) -> Response:
    row = await find(visit, kind)
    return Response(200, _steps(visit, row), EVENT_STREAM, endless=True)


async def _steps(visit: Visit, row: UploadRow) -> AsyncIterator[bytes]:
    assert visit.session is not None, "only whoever signed in gets here"
    for _ in range(LOOKS_MAX):
        if visit.services.orders.watch.letting_go or not await sessions.is_open(
            visit.pool, visit.session.key
        ):
            return  # The browser asks another process, or signs in first.
        if not row.running:
            yield b"event: reload\ndata: {}\n\n"
            return
        facts = {"permille": row.permille, "percent": f"{row.permille // 10}%"}
        yield b"data: " + msgspec.json.encode(facts) + b"\n\n"
        await asyncio.sleep(LOOK_EVERY_S)
        async with visit.pool.acquire() as conn:
            found = await uploads.find(conn, row.id, row.kind)
        if found is None:
            return
        row = found
