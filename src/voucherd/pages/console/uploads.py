"""Files that are uploaded in the console: kept sealed, worked on in the background, watched while that lasts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias
from uuid import UUID, uuid4

import msgspec
import structlog

from voucherd.db import UNAVAILABLE, transaction
from voucherd.http import EVENT_STREAM, Response
from voucherd.pages.forms import Upload
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, missing, see_other
from voucherd.services import Services
from voucherd.vault import uploads
from voucherd.vault.uploads import FILE_BYTES_MAX, UploadPhase, UploadRow

logger = structlog.get_logger(__name__)

TICK_S: Final = 1.0
LOOK_EVERY_S: Final = 0.5
LOOKS_MAX: Final = 1_200
BROKEN: Final = "Something went wrong on our side. Nothing was imported; try again."

Far: TypeAlias = Callable[[int, int], None]
"""Told how much is done, of how much."""
Ended: TypeAlias = Awaitable[tuple[UploadPhase, dict[str, Any]] | None]
"""How the work ended, and its report; None if the work has written both down itself."""
Work: TypeAlias = Callable[[Far], Ended]


class FilePages:
    """The pages of one kind of file: the form, the report of its dry run, and how far the work is."""

    def __init__(self, kind: str, path: str, form: str, report: str) -> None:
        self.kind, self.path = kind, path
        self._form, self._report = form, report

    async def form(self, visit: Visit, **facts: Any) -> Response:
        """The form for a file, and the newest files."""
        newest = await visit.look(uploads.newest, self.kind)
        return render(self._form, visit, newest=newest, path=self.path, **facts)

    async def report(self, visit: Visit) -> Response:
        """What a file would do, how far it is, or what it did."""
        row = await self.find(visit)
        return render(self._report, visit, row=row, phase=row.phase.name.lower(), path=self.path)

    async def progress(self, visit: Visit) -> Response:
        """How far the work on a file is, live."""
        return Response(200, _steps(visit, await self.find(visit)), EVENT_STREAM, endless=True)

    async def find(self, visit: Visit) -> UploadRow:
        """The upload that the path names."""
        row = None
        with suppress(ValueError):
            upload_id = UUID(visit.parameters["upload"])
            row = await visit.look(uploads.find, upload_id, self.kind)
        if row is None:
            raise missing()
        return row

    async def keep(self, visit: Visit, file: Upload, terms: dict[str, Any], try_out: Work) -> Response:
        """Keep the file, sealed, and try it out in the background."""
        upload_id = uuid4()
        letters = "".join(letter for letter in file.name if letter.isprintable())
        async with transaction(visit.pool) as tx:
            await uploads.keep(
                tx,
                visit.services.sealer,
                upload_id=upload_id,
                user_id=visit.someone.id,
                kind=self.kind,
                name=letters.replace("\\", "/").rpartition("/")[2],
                content=file.content,
                terms=terms,
            )
        _run(visit.services, upload_id, try_out)
        return see_other(f"{self.path}/{upload_id}")

    async def take(self, visit: Visit, row: UploadRow, take_in: Callable[[bytes, Far], Ended]) -> Response:
        """Take the file in, in the background; refused if it can't be taken any more."""
        async with transaction(visit.pool) as tx:
            content = await uploads.begin_taking(tx, visit.services.sealer, row.id)
        if content is None:
            visit.tell("This file is being imported already, or was kept too long: upload it again.", "bad")
        else:
            _run(visit.services, row.id, partial(take_in, content))
        return see_other(f"{self.path}/{row.id}")


def chosen_file(visit: Visit) -> Upload | None:
    """The file of the form; None, and a problem beside the field, if it can't be used."""
    file = visit.files.get("file")
    if file is None or not file.content:
        visit.problems["file"] = "Choose a file that is not empty."
    elif len(file.content) > FILE_BYTES_MAX:
        visit.problems["file"] = "The file is larger than 32 MiB."
    return None if visit.problems else file


def _run(services: Services, upload_id: UUID, work: Work) -> None:
    """Work on a file in the background; whoever looks at its page sees how far it is."""

    async def job() -> None:
        permille = 0
        over = asyncio.Event()

        def far(done: int, total: int) -> None:
            nonlocal permille
            permille = 1_000 * done // max(total, 1)

        async def tick() -> None:
            while not over.is_set():
                with suppress(*UNAVAILABLE):
                    await uploads.note_progress(services.pool, upload_id, permille)
                with suppress(TimeoutError):
                    async with asyncio.timeout(TICK_S):
                        await over.wait()

        ticking = asyncio.create_task(tick())
        try:
            ended = await work(far)
            if ended is not None:
                await uploads.end(services.pool, upload_id, *ended)
        except Exception as error:  # noqa: BLE001 - Whoever looks at the page is told.
            # Without a traceback: what is at hand there are codes.
            logger.error("upload_failed", upload=str(upload_id), error=repr(error))
            with suppress(*UNAVAILABLE):
                await uploads.end(services.pool, upload_id, UploadPhase.REFUSED, {"problem": BROKEN})
        finally:
            # Whatever it was just saying has been said before the job ends: nobody is at it any more then. It is not
            # cancelled, because a statement that is abandoned may be done later.
            over.set()
            await asyncio.wait([ticking])

    services.jobs.start(job)


async def _steps(visit: Visit, row: UploadRow) -> AsyncIterator[bytes]:
    for _ in range(LOOKS_MAX):
        if visit.services.orders.watch.letting_go:
            return  # The browser asks another process.
        if not row.running:
            yield b"event: reload\ndata: {}\n\n"
            return
        facts = {"permille": row.permille, "percent": f"{row.permille // 10}%"}
        yield b"data: " + msgspec.json.encode(facts) + b"\n\n"
        await asyncio.sleep(LOOK_EVERY_S)
        found = await visit.look(uploads.find, row.id, row.kind)
        if found is None:
            return
        row = found
