"""Taking codes in: a file of them (`stock import`), or a few that a supplier sold us.

The file is read once. Each chunk is parsed, blinded and sealed in a thread while the one before it is stored.
Codes that the vault has already are left out; the others get the next positions of their lot, and are sealed
for them. All is one transaction: nothing can be sold from a lot before the whole file is in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from itertools import count
from operator import itemgetter
from typing import BinaryIO, Final, TypeAlias

import asyncpg
from msgspec import Struct

from voucherd.db import Pool, Tx, take_long, transaction
from voucherd.money import Money
from voucherd.vault import serials, store
from voucherd.vault.lines import BadLine, Chunk, CodeFile
from voucherd.vault.seal import Sealer
from voucherd.vault.sources import FileRefused

IMPORT_WAIT_S_MAX: Final = 30
"""How long an import waits for another one of the same brand."""
CHUNK_TRIES_MAX: Final = 3
APPEND_CODES_MAX: Final = 10_000

Progress: TypeAlias = Callable[[int, int], None]
"""Told now and then how many bytes were read and how many codes were taken."""
Note: TypeAlias = "Callable[[Tx, ImportReport], Awaitable[None]]"
"""Writes down what became of a file in the transaction that takes its codes."""
_Lots: TypeAlias = dict[datetime | None, tuple[int, int]]
"""For each expiry its lot, and how many codes that has."""


class StockTarget(Struct, frozen=True):
    """What the codes are codes of."""

    product_id: int
    brand_id: int
    face_minor: int


class ImportReport(Struct, frozen=True):
    """What became of a file; of its bad lines the first ones are kept, all are counted."""

    taken: int
    already_there: int
    bad: list[BadLine]
    bad_count: int
    lots: list[int]
    codes_per_second: int


class ImportRefused(Exception):
    """Nothing was taken; the one line of text says why, and `bad` which lines were at fault."""

    def __init__(self, text: str, bad: Sequence[BadLine] = (), bad_count: int = 0) -> None:
        super().__init__(text)
        self.bad = list(bad)
        self.bad_count = bad_count


class CodesAlreadyThere(Exception):
    """Nothing was taken: the codes at these positions of the list are in the vault already, or twice here."""

    def __init__(self, positions: list[int]) -> None:
        super().__init__(f"{len(positions)} of the codes are in the vault already")
        self.positions = positions


async def import_codes(
    pool: Pool,
    sealer: Sealer,
    stream: BinaryIO,
    *,
    target: StockTarget,
    supplier: str,
    purchase: Money,
    purchase_fx_e8: int,
    skip_bad: bool = False,
    progress: Progress | None = None,
    note: Note | None = None,
) -> ImportReport:
    """Take the codes of a CSV or XLSX file (code, serial, expires) that the vault does not have yet."""
    began = time.perf_counter()
    terms = store.LotTerms(target.product_id, target.face_minor, supplier, purchase, purchase_fx_e8)
    try:
        async with transaction(pool) as tx:
            now = await store.begin_import(tx, target.brand_id, IMPORT_WAIT_S_MAX)
            await take_long(tx)
            file = CodeFile(stream, sealer.blinder(target.brand_id), now)
            intake = _Intake(tx, sealer, terms)
            await _take_all(file, intake, skip_bad, progress or (lambda _bytes, _codes: None))
            await intake.finish()
            report = ImportReport(
                taken=intake.taken,
                already_there=intake.already_there + file.repeated,
                bad=file.bad,
                bad_count=file.bad_count,
                lots=intake.lot_ids(),
                codes_per_second=round(intake.taken / (time.perf_counter() - began)),
            )
            if note is not None:
                await note(tx, report)
    except FileRefused as refusal:
        raise ImportRefused(f"{refusal}; nothing was taken") from None
    except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
        raise ImportRefused("another import of this brand is running; nothing was taken") from None
    return report


async def _take_all(file: CodeFile, intake: _Intake, skip_bad: bool, progress: Progress) -> None:
    reader = _Reader(file, intake)
    try:
        while (ready := await reader.chunk()) is not None:
            # A file that is refused is read to its end, so that all its bad lines are told at once.
            if skip_bad or not file.bad_count:
                await intake.take(*ready, reader.read_ahead)
            progress(file.bytes_read, intake.taken)
    finally:
        await reader.settle()
    if file.bad_count and not skip_bad:
        lines = "1 line is" if file.bad_count == 1 else f"{file.bad_count} lines are"
        raise ImportRefused(f"{lines} bad; nothing was taken", file.bad, file.bad_count)


class _Sealed(Struct, frozen=True):
    """A chunk whose codes are sealed for the positions behind those that the lots had `before`."""

    before: _Lots
    after: _Lots
    rows: bytes
    serials: bytes


_Ready: TypeAlias = tuple[Chunk, _Sealed | None]
"""A chunk, and its seals if they could be made ahead."""


class _Reader:
    """Works in a thread: a slow stream stalls nobody, and the next chunk is ready when the database is."""

    def __init__(self, file: CodeFile, intake: _Intake) -> None:
        self._file = file
        self._intake = intake
        self._reading: asyncio.Task[_Ready | None] | None = None

    def read_ahead(self, lots: _Lots) -> None:
        """Begin with the next chunk, unless that was done; the lots will be these if all goes well until then."""
        self._reading = self._reading or asyncio.create_task(asyncio.to_thread(self._read, lots))

    def _read(self, lots: _Lots) -> _Ready | None:
        chunk = self._file.chunk()
        return None if chunk is None else (chunk, self._intake.seal_ahead(chunk, lots))

    async def chunk(self) -> _Ready | None:
        """The next chunk; None at the end of the file."""
        self.read_ahead({})
        assert self._reading is not None
        ready = await self._reading
        self._reading = None
        return ready

    async def settle(self) -> None:
        """Wait for a read that was begun: nobody may use the caller's stream when we are done with it."""
        if self._reading is not None:
            await asyncio.gather(self._reading, return_exceptions=True)


class _Intake:
    """Stores chunk after chunk inside one transaction."""

    def __init__(self, tx: Tx, sealer: Sealer, terms: store.LotTerms) -> None:
        self.taken = 0
        self.already_there = 0
        self._tx = tx
        self._sealer = sealer
        self._terms = terms
        self._lots: _Lots = {}
        self._look_first = False

    def lot_ids(self) -> list[int]:
        """The lots that were made."""
        return sorted(lot_id for lot_id, _ in self._lots.values())

    async def take(self, chunk: Chunk, sealed: _Sealed | None, meanwhile: Callable[[_Lots], None]) -> None:
        """Store what the vault does not have yet; `meanwhile` is called when only the database has work left."""
        for _ in range(CHUNK_TRIES_MAX):
            if self._look_first and (known := set(await store.known_blinds(self._tx, chunk.blinds))):
                chunk, sealed = chunk.without(known), None
                self.already_there += len(known)
            if not chunk:
                return
            try:
                async with self._tx.transaction():
                    # Seals that were made ahead hold only if the chunk before was stored as a whole.
                    if sealed is None or sealed.before is not self._lots:
                        sealed = await self._seal_now(chunk)
                    meanwhile(sealed.after)
                    await store.copy_codes(self._tx, sealed.rows)
                    await serials.note(self._tx, sealed.serials)
            except asyncpg.UniqueViolationError:
                # Most files are all new, and a look costs 2 µs a code: it waits for the first double.
                self._look_first, sealed = True, None
            else:
                self._lots = sealed.after
                self.taken += len(chunk)
                return
        raise ImportRefused("the same codes keep coming in from elsewhere; nothing was taken")

    def seal_ahead(self, chunk: Chunk, lots: _Lots) -> _Sealed | None:
        """The chunk sealed for positions in these lots; None if one is missing, or codes may have to be left out."""
        return None if self._look_first or set(chunk.expiries) - lots.keys() else self._seal(chunk, lots)

    async def _seal_now(self, chunk: Chunk) -> _Sealed:
        """The chunk sealed for positions in the lots as they are, and in new ones."""
        lots = self._lots
        if fresh := set(chunk.expiries) - lots.keys():
            opened = await store.open_lots(self._tx, self._terms, fresh, key_version=self._sealer.version)
            lots = lots | {expires: (lot_id, 0) for expires, lot_id in opened.items()}
        return await asyncio.to_thread(self._seal, chunk, lots)

    def _seal(self, chunk: Chunk, lots: _Lots) -> _Sealed:
        free = {expires: count(size) for expires, (_, size) in lots.items()}
        lot_ids = [lots[expires][0] for expires in chunk.expiries]
        seqs = [next(free[expires]) for expires in chunk.expiries]
        sealed = self._sealer.seal_many(lot_ids, seqs, chunk.codes, chunk.serials)
        after = {expires: (lot_id, next(free[expires])) for expires, (lot_id, _) in lots.items()}
        found = serials.encoded(self._sealer, zip(lot_ids, seqs, chunk.serials, strict=True))
        return _Sealed(lots, after, store.encode_codes(lot_ids, seqs, sealed, chunk.blinds), found)

    async def finish(self) -> None:
        """Give the lots their sizes."""
        await store.resize_lots(self._tx, dict(self._lots.values()))


async def append_codes(
    tx: Tx,
    sealer: Sealer,
    *,
    target: StockTarget,
    supplier: str,
    purchase: Money,
    purchase_fx_e8: int,
    expires: datetime | None,
    codes: Sequence[tuple[str, str]],
) -> int:
    """A new lot with these (code, serial), in this order; refused, and nothing changed, if one is known."""
    if not 0 < len(codes) <= APPEND_CODES_MAX:
        raise ValueError(f"between 1 and {APPEND_CODES_MAX} codes can be appended at once")
    terms = store.LotTerms(target.product_id, target.face_minor, supplier, purchase, purchase_fx_e8)
    blind = sealer.blinder(target.brand_id)
    blinds = [blind(code.strip().encode()) for code, _ in codes]
    await _refuse_known(tx, blinds)
    try:
        async with tx.transaction():
            opened = await store.open_lots(tx, terms, [expires], key_version=sealer.version)
            lot_id = opened[expires]
            rows = [
                (lot_id, seq, sealer.seal(lot_id, seq, code.strip(), serial.strip()), blinds[seq])
                for seq, (code, serial) in enumerate(codes)
            ]
            # In one order everywhere, so that two purchases with the same codes can't deadlock.
            await store.add_codes(tx, sorted(rows, key=itemgetter(3)))
            found = ((lot_id, seq, serial.strip().encode()) for seq, (_, serial) in enumerate(codes))
            await serials.note(tx, serials.encoded(sealer, found))
            await store.resize_lots(tx, {lot_id: len(codes)})
    except asyncpg.UniqueViolationError:
        await _refuse_known(tx, blinds)
        raise
    return lot_id


async def _refuse_known(tx: Tx, blinds: list[bytes]) -> None:
    seen = set(await store.known_blinds(tx, blinds))
    positions = []
    for position, blind in enumerate(blinds):
        if blind in seen:
            positions.append(position)
        seen.add(blind)
    if positions:
        raise CodesAlreadyThere(positions)


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
                known = set(await store.known_blinds(conn, chunk.blinds))
            halves = {int.from_bytes(blind[:8]) for blind in chunk.blinds if blind not in known} - seen
            seen |= halves
            fresh += len(halves)
            already_there += len(chunk) - len(halves)
            progress(file.bytes_read, fresh)
    except FileRefused as refusal:
        raise ImportRefused(f"{refusal}; nothing was taken") from None
    return Rehearsed(fresh, already_there + file.repeated, file.bad, file.bad_count)
