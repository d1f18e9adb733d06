"""A dry run of an import: the file is read and its codes are looked for, and nothing is stored."""

from __future__ import annotations

import asyncio
from typing import BinaryIO

from msgspec import Struct

from voucherd.db import Pool
from voucherd.vault import store
from voucherd.vault.imports import ImportRefused, Progress
from voucherd.vault.lines import BadLine, CodeFile
from voucherd.vault.seal import Sealer
from voucherd.vault.sources import FileRefused


class Rehearsed(Struct, frozen=True):
    """What an import of the file would do now; of its bad lines the first ones are kept, all are counted."""

    fresh: int
    already_there: int
    bad: list[BadLine]
    bad_count: int


async def rehearse(
    pool: Pool, sealer: Sealer, stream: BinaryIO, brand_id: int, progress: Progress
) -> Rehearsed:
    """How many codes of the file are new, how many the vault has already, and which lines are bad."""
    now = await pool.fetchval("SELECT now()")
    file = CodeFile(stream, sealer.blinder(brand_id), now)
    # Half of a blinded code tells it from any other, and a number takes half the room.
    seen: set[int] = set()
    fresh = already_there = 0
    try:
        while (chunk := await asyncio.to_thread(file.chunk)) is not None:
            async with pool.acquire() as conn:
                known = set(await store.known_blinds(conn, chunk))
            halves = {int.from_bytes(blind[:8]) for blind in chunk if blind not in known} - seen
            seen |= halves
            fresh += len(halves)
            already_there += len(chunk) - len(halves)
            progress(file.bytes_read, fresh)
    except FileRefused as refusal:
        raise ImportRefused(f"{refusal}; nothing was taken") from None
    return Rehearsed(fresh, already_there + file.repeated, file.bad, file.bad_count)
