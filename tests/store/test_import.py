"""Taking codes in from files: what is taken, what is left out, what is refused, and what is never shown."""

from __future__ import annotations

import asyncio
import io
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO, cast

import pytest

from tests.patience import until, until_true
from voucherd.db import Pool, Tx, transaction
from voucherd.money import RATE_ONE, Money
from voucherd.vault import imports, lines, store
from voucherd.vault.imports import ImportRefused, ImportReport, StockTarget, append_codes, import_codes
from voucherd.vault.seal import Sealer
from voucherd.vault.store import read_codes

CANARY = "CANARY-7Q9X-ZZ42"
PRICE = Money.read("46.90 EUR")


class Stock:
    """A product to import codes for, and a look at what is there afterwards."""

    def __init__(self, pool: Pool, sealer: Sealer, target: StockTarget) -> None:
        self.pool = pool
        self.sealer = sealer
        self.target = target

    async def take(self, text: str | bytes | BinaryIO, *, skip_bad: bool = False) -> ImportReport:
        """Import a file."""
        if isinstance(text, str):
            text = text.encode()
        return await import_codes(
            self.pool,
            self.sealer,
            io.BytesIO(text) if isinstance(text, bytes) else text,
            target=self.target,
            supplier="acme",
            purchase=PRICE,
            purchase_fx_e8=RATE_ONE,
            skip_bad=skip_bad,
        )

    async def append(self, *codes: str) -> int:
        """Append codes as a supplier's purchase does."""
        async with transaction(self.pool) as tx:
            return await append_codes(
                tx,
                self.sealer,
                target=self.target,
                supplier="acme",
                purchase=PRICE,
                purchase_fx_e8=RATE_ONE,
                expires=None,
                codes=[(code, "") for code in codes],
            )

    async def codes(self) -> list[tuple[str, str]]:
        """Everything in the vault, opened; fails if a lot has a hole or another size than it says."""
        async with self.pool.acquire() as conn:
            lots = await conn.fetch("SELECT id, size FROM lot WHERE NOT generated ORDER BY id")
            read = await read_codes(conn, self.sealer, [(lot["id"], 0, lot["size"]) for lot in lots])
            assert sum(lot["size"] for lot in lots) == await conn.fetchval("SELECT count(*) FROM code")
        return [pair for part in read for pair in part]


@pytest.fixture
async def stock(pool: Pool, master: bytes) -> Stock:
    """One product of 50 EUR."""
    brand_id = await pool.fetchval("INSERT INTO brand (slug, name) VALUES ('acme', 'Acme') RETURNING id")
    async with transaction(pool) as tx:
        product_id = await tx.fetchval(
            "INSERT INTO product (slug, version_id) VALUES ('acme-50', 0) RETURNING id"
        )
        await tx.execute(
            """
            WITH v AS (
                INSERT INTO product_version (product_id, brand_id, name, product_type, category, redeem_type, region,
                    vat_category, async_delivery, face_currency, face_minor, price_minor, price_currency)
                VALUES ($1, $2, 'Acme 50', 'giftcard', 'shopping', 'currency', 'ww', 'exempt', false,
                        'EUR', 5000, 4810, 'EUR') RETURNING id)
            UPDATE product SET version_id = v.id FROM v WHERE product.id = $1
            """,
            product_id,
            brand_id,
        )
    return Stock(pool, Sealer(master), StockTarget(product_id, brand_id, 5000))


# ── what is taken ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        "code,serial,expires\nA-1,S1,\nB-2,,\n",
        "A-1,S1\nB-2\n",
        "\n\ncode,serial\nA-1,S1\nB-2\n",
        "\ufeffCode, Serial\r\n A-1 , S1 \r\n\r\nB-2,\r\n",
        "serial,expires,code\nS1,,A-1\n,,B-2",
        '"code","serial"\n"A-1","S1"\n"B-2",""\n',
        "\ufeffcode;serial;expires\r\nA-1;S1;\r\nB-2;;\r\n",
        "sep=;\nA-1;S1\nB-2\n",
    ],
)
async def test_a_file_is_read_with_or_without_a_header_and_in_any_column_order(
    stock: Stock, text: str
) -> None:
    """`stock import`: CSV (`code,serial,expires`) from a file or `-`."""
    report = await stock.take(text)
    assert (report.taken, report.already_there, report.bad_count) == (2, 0, 0)
    assert await stock.codes() == [("A-1", "S1"), ("B-2", "")]


async def test_a_quoted_code_may_hold_commas_quotes_and_letters_of_any_alphabet(stock: Stock) -> None:
    """`stock import`: it is CSV, so quoting works."""
    await stock.take('"A,""1",S\nпривет 1,é\n')
    assert await stock.codes() == [('A,"1', "S"), ("привет 1", "é")]


async def test_every_expiry_becomes_a_lot_and_a_date_lasts_until_its_end(stock: Stock) -> None:
    """A lot is (product, supplier, purchase price, expiry, seq range)."""
    report = await stock.take(
        "A,,2090-01-31\nB,,\nC,,2090-01-31T12:00:00+02:00\nD,,2090-01-31\nE,,2090-01-31 10:00\n"
    )
    lots = await stock.pool.fetch("SELECT * FROM lot ORDER BY expires_at")
    assert [(lot["expires_at"], lot["size"]) for lot in lots] == [
        (datetime(2090, 1, 31, 10, tzinfo=UTC), 2),
        (datetime(2090, 1, 31, 23, 59, 59, tzinfo=UTC), 2),
        (None, 1),
    ]
    assert report.lots == sorted(lot["id"] for lot in lots)
    for lot in lots:
        assert (lot["id"] & 1, lot["state"], lot["cursor"], lot["face_minor"]) == (0, 0, 0, 5000)
        assert (lot["supplier"], lot["purchase_minor"], lot["purchase_currency"]) == ("acme", 4690, "EUR")
    assert sorted(code for code, _ in await stock.codes()) == list("ABCDE")


async def test_progress_ends_at_the_size_of_the_file(stock: Stock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long work shows a progress bar."""
    monkeypatch.setattr(lines, "CHUNK_LINES", 2)
    seen: list[tuple[int, int]] = []
    await import_codes(
        stock.pool,
        stock.sealer,
        io.BytesIO(b"A\nB\nC\nD\nE\n"),
        target=stock.target,
        supplier="acme",
        purchase=PRICE,
        purchase_fx_e8=RATE_ONE,
        progress=lambda bytes_read, taken: seen.append((bytes_read, taken)),
    )
    assert seen == sorted(seen)
    assert seen[-1] == (10, 5)


# ── what is there already ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("chunk_lines", [2, 3, 10_000])
async def test_a_code_twice_in_a_file_is_taken_once(
    stock: Stock, monkeypatch: pytest.MonkeyPatch, chunk_lines: int
) -> None:
    """`stock import`: says how many were there already; never an error."""
    monkeypatch.setattr(lines, "CHUNK_LINES", chunk_lines)
    report = await stock.take("A\nB\nA\nC\n B \nA\nD\na\n")
    assert (report.taken, report.already_there) == (5, 3)
    assert [code for code, _ in await stock.codes()] == ["A", "B", "C", "D", "a"]


async def test_a_second_import_of_a_file_takes_nothing_and_makes_no_lot(stock: Stock) -> None:
    """`stock import`: an import that was repeated by mistake changes nothing."""
    text = "".join(f"C{number},,2090-01-{number % 3 + 1:02}\n" for number in range(100))
    first = await stock.take(text)
    again = await stock.take(text)
    assert (first.taken, again.taken, again.already_there, again.lots) == (100, 0, 100, [])
    assert await stock.pool.fetchval("SELECT count(*) FROM lot") == 3


async def test_an_overlapping_file_fills_its_lot_without_gaps(
    stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 3: a lot's positions are 0 to size - 1, whatever was left out between them."""
    monkeypatch.setattr(lines, "CHUNK_LINES", 10)
    await stock.take("".join(f"C{number}\n" for number in range(0, 100, 7)))
    report = await stock.take("".join(f"C{number}\n" for number in range(100)))
    assert (report.taken, report.already_there) == (85, 15)
    assert len({code for code, _ in await stock.codes()}) == 100


async def test_every_lot_keeps_the_order_of_the_file_whatever_was_sealed_ahead(
    stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 3: doubles, and expiries that come late, leave every code readable at the place it has."""
    monkeypatch.setattr(lines, "CHUNK_LINES", 10)
    known = {"C35", "C36", "C71"}
    await stock.append(*known)
    days = [number % 2 if number < 50 else number % 3 for number in range(100)]
    report = await stock.take(
        "".join(f"C{number},S{number},209{day}-01-01\n" for number, day in enumerate(days))
    )
    assert (report.taken, report.already_there) == (97, 3)
    places = await stock.pool.fetch(
        """
        SELECT extract(year FROM expires_at)::int - 2090 AS day, l.id, size FROM lot l WHERE id = ANY($1)
        ORDER BY expires_at
        """,
        report.lots,
    )
    for day, lot_id, size in places:
        expected = [
            (f"C{number}", f"S{number}")
            for number in range(100)
            if days[number] == day and f"C{number}" not in known
        ]
        async with stock.pool.acquire() as conn:
            assert await read_codes(conn, stock.sealer, [(lot_id, 0, size)]) == [expected]
    assert [day for day, _, _ in places] == [0, 1, 2]


async def test_a_chunk_is_sealed_while_the_one_before_it_is_stored(
    stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 3: the database never waits for seals, unless a chunk opens a lot."""
    monkeypatch.setattr(lines, "CHUNK_LINES", 10)
    happened: list[str] = []
    seal_many, copy_codes = stock.sealer.seal_many, store.copy_codes

    def sealing(*columns: Any) -> list[bytes]:
        happened.append("sealed")
        return seal_many(*columns)

    async def storing(tx: Tx, encoded: bytes) -> None:
        # The chunk behind this one is sealed although this call has not ended.
        ahead = min(happened.count("stored") + 2, 10)
        await until_true(lambda: happened.count("sealed") >= ahead, "no chunk is sealed ahead")
        await copy_codes(tx, encoded)
        happened.append("stored")

    monkeypatch.setattr(stock.sealer, "seal_many", sealing)
    monkeypatch.setattr(store, "copy_codes", storing)
    report = await stock.take("".join(f"C{number}\n" for number in range(100)))
    assert report.taken == 100
    assert happened.count("sealed") == 10


async def test_a_key_that_changes_during_an_import_leaves_every_code_readable(
    stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 25: a seal names its own key, and a lot the oldest key of its codes."""
    monkeypatch.setattr(lines, "CHUNK_LINES", 10)
    stock.sealer.learn(2, b"2" * 32)

    def changing() -> Iterator[bytes]:
        for number in range(100):
            if number == 55:
                stock.sealer.use(2)
            yield b"C%d,,%s\n" % (number, b"2090-01-01" if number < 75 else b"2091-01-01")

    await stock.take(streamed(changing()))
    assert [code for code, _ in await stock.codes()] == [f"C{number}" for number in range(100)]
    versions = await stock.pool.fetch(
        """
        SELECT key_version, array_agg(DISTINCT substring(sealed FOR 3) = '\\xe50002') AS newer
        FROM lot JOIN code ON lot_id = id GROUP BY id, key_version ORDER BY expires_at
        """
    )
    assert [tuple(row) for row in versions] == [(1, [False, True]), (2, [True])]


async def test_the_same_code_may_exist_for_two_brands(stock: Stock) -> None:
    """Decision 3: codes are unique for one brand; two brands may use the same numbers."""
    await stock.take("1234-5678\n")
    brand_id = await stock.pool.fetchval("INSERT INTO brand (slug, name) VALUES ('b', 'B') RETURNING id")
    stock.target = StockTarget(stock.target.product_id, brand_id, 5000)
    assert (await stock.take("1234-5678\n")).taken == 1


async def test_imports_of_the_same_codes_at_once_take_each_code_once(
    stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 3: two people importing one file, in different orders, get neither doubles nor a deadlock."""
    monkeypatch.setattr(lines, "CHUNK_LINES", 50)
    numbers = range(1000)
    reports = await asyncio.gather(
        stock.take("".join(f"C{number}\n" for number in numbers)),
        stock.take("".join(f"C{number}\n" for number in reversed(numbers))),
        stock.take("".join(f"C{number}\n" for number in range(500, 1500))),
    )
    assert sum(report.taken for report in reports) == 1500
    assert sum(report.already_there for report in reports) == 1500
    assert len(set(await stock.codes())) == 1500


async def test_a_suppliers_code_that_arrives_during_an_import_is_there_already(stock: Stock) -> None:
    """OP-46: purchases append codes at any time, and never wait for a whole import."""
    async with transaction(stock.pool) as tx:
        await append_codes(
            tx,
            stock.sealer,
            target=stock.target,
            supplier="acme",
            purchase=PRICE,
            purchase_fx_e8=RATE_ONE,
            expires=None,
            codes=[("B", "")],
        )
        running = asyncio.create_task(stock.take("A\nB\nC\n"))
        await _until_waiting(stock.pool)
    report = await running
    assert (report.taken, report.already_there) == (2, 1)
    assert [code for code, _ in await stock.codes()] == ["B", "A", "C"]


async def test_an_import_does_not_wait_for_ever_for_another(
    stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every wait has a named maximum."""
    monkeypatch.setattr(imports, "IMPORT_WAIT_S_MAX", 1)
    async with transaction(stock.pool) as tx:
        await store.begin_import(tx, stock.target.brand_id, 1)
        with pytest.raises(ImportRefused, match="another import of this brand is running"):
            await stock.take("A\n")


# ── what is bad ──────────────────────────────────────────────────────────────────────────────────────

BAD = [
    (f",{CANARY}", "code: missing"),
    (f"{CANARY}{'x' * 200}", "code: longer than 200 characters"),
    (f"{CANARY}\x07", "code: has characters that can't be printed"),
    (f"{CANARY}\u200b", "code: has characters that can't be printed"),
    (f"{CANARY},{'s' * 201}", "serial: longer than 200 characters"),
    (f"{CANARY},a\x00b", "serial: has characters that can't be printed"),
    (f"{CANARY},,31/12/2090", "expires: not an ISO date or date-time"),
    (f"{CANARY},,{CANARY}", "expires: not an ISO date or date-time"),
    (f"{CANARY},,0001-01-01T00:00:00+23:00", "expires: not an ISO date or date-time"),
    (f"{CANARY},,2020-01-01", "expires: already past"),
    (f"{CANARY},,,", "more than 3 columns"),
    (f'"{CANARY}', "quotes don't match"),
    ("1.23E+15", "code: looks like a number that a spreadsheet has shortened, so its digits are lost"),
    (f"{CANARY}{'x' * 9000}", "longer than 4096 bytes"),
]


@pytest.mark.parametrize(("line", "reason"), BAD)
async def test_a_bad_line_refuses_the_file_and_is_named_by_number_and_rule(
    stock: Stock, line: str, reason: str
) -> None:
    """`stock import`: which lines were bad; all or nothing. The code itself is never told."""
    with pytest.raises(ImportRefused) as refusal:
        await stock.take(f"code,serial,expires\nA\n{line}\nB\n")
    assert refusal.value.bad == [(3, reason)]
    assert str(refusal.value) == "1 line is bad; nothing was taken"
    assert CANARY not in repr(refusal.value) + repr(refusal.value.bad)
    assert await stock.codes() == []
    assert await stock.pool.fetchval("SELECT count(*) FROM lot") == 0


async def test_bytes_that_are_not_utf8_are_a_bad_line(stock: Stock) -> None:
    """`stock import`: a file in another encoding is refused, not guessed at."""
    with pytest.raises(ImportRefused) as refusal:
        await stock.take(b"A\n\xff\xfeB\n")
    assert refusal.value.bad == [(2, "not UTF-8")]


async def test_bad_lines_can_be_skipped(stock: Stock) -> None:
    """`stock import`: all or nothing unless `--skip-bad`."""
    text = "".join(f"C{number}\n{line}\n" for number, (line, _) in enumerate(BAD))
    report = await stock.take(text, skip_bad=True)
    assert (report.taken, report.bad_count) == (len(BAD), len(BAD))
    assert report.bad == [(2 * number + 2, reason) for number, (_, reason) in enumerate(BAD)]
    assert [code for code, _ in await stock.codes()] == [f"C{number}" for number in range(len(BAD))]


async def test_all_bad_lines_are_counted_and_the_first_hundred_told(
    stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every list has a named maximum; an operator fixes a file once, not line after line."""
    monkeypatch.setattr(lines, "CHUNK_LINES", 50)
    with pytest.raises(ImportRefused, match="250 lines are bad") as refusal:
        await stock.take("A\n" + ",x\n" * 250 + "B\n")
    assert refusal.value.bad_count == 250
    assert [line for line, _ in refusal.value.bad] == list(range(2, 102))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("A;S1\nB;S2\n", "separated by commas"),
        ("code,pin\nA,1\n", "column 2 must be one of code, serial, expires"),
        ("code,code\nA,1\n", "column 2 must be one of"),
        ("voucher,serial\nA,1\n", "the header has no column `code`"),
        (
            "".join(f"C{n},,2090-01-01T00:{n // 60:02}:{n % 60:02}\n" for n in range(1001)),
            "different expiries",
        ),
    ],
)
async def test_a_file_of_another_shape_is_refused_as_a_whole(stock: Stock, text: str, rule: str) -> None:
    """Refused with one clear line. Codes can't be taken back, so doubt is a refusal."""
    with pytest.raises(ImportRefused, match=rule) as refusal:
        await stock.take(text, skip_bad=True)
    assert "\n" not in str(refusal.value)
    assert await stock.codes() == []


async def test_a_stream_that_breaks_off_leaves_nothing_behind(
    stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 6: a refused call changed nothing."""
    monkeypatch.setattr(lines, "CHUNK_LINES", 10)

    def broken() -> Iterator[bytes]:
        yield from (b"C%d\n" % number for number in range(95))
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await stock.take(streamed(broken()))
    assert await stock.codes() == []
    assert (await stock.take("C1\n")).taken == 1


# ── what is never shown, and how much it costs ───────────────────────────────────────────────────────


async def test_a_code_is_nowhere_in_the_database_in_clear(stock: Stock) -> None:
    """Decision 3: codes are sealed; a copy of the database alone gives none away."""
    await stock.take(f"{CANARY},SERIAL-{CANARY}\n")
    with pytest.raises(ImportRefused):
        await stock.take(f"X{CANARY}\n{CANARY},,never\n")
    with pytest.raises(imports.CodesAlreadyThere) as refusal:
        await stock.append(CANARY)
    assert CANARY not in repr(refusal.value)

    assert (CANARY, f"SERIAL-{CANARY}") in await stock.codes()
    tables = await stock.pool.fetch("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
    assert {"code", "lot"} <= {name for (name,) in tables}
    for (name,) in tables:
        # Bytes are hex in a row's text, so both spellings are looked for.
        found = await stock.pool.fetchval(
            f'SELECT count(*) FROM "{name}" t WHERE t::text ILIKE ANY ($1)',  # noqa: S608 - The catalogue's names.
            [f"%{CANARY}%", f"%{CANARY.encode().hex()}%"],
        )
        assert found == 0, name


async def test_fifty_thousand_codes_take_the_memory_of_a_few_thousand(stock: Stock) -> None:
    """Decision 3: an import streams; a million codes fit where ten thousand do."""
    await stock.take("WARM-UP\n")
    tracemalloc.start()
    report = await stock.take(streamed(b"CODE-%08d,SN-%08d\n" % (number, number) for number in range(50_000)))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert report.taken == 50_000
    # Measured at 7 MB; with all 50,000 in hand at once it was 25.
    assert peak_bytes < 14_000_000
    assert (await stock.codes())[-1] == ("CODE-00049999", "SN-00049999")


class _Lines(io.RawIOBase):
    def __init__(self, source: Iterator[bytes]) -> None:
        self._source = source

    def readline(self, _size: int | None = -1, /) -> bytes:
        return next(self._source, b"")


def streamed(source: Iterator[bytes]) -> BinaryIO:
    """A stream that makes its lines up as it goes."""
    return cast(BinaryIO, _Lines(source))


async def _until_waiting(pool: Pool) -> None:
    """Until some session of this schema waits for another one's transaction."""
    await until(
        lambda: pool.fetchval(
            """
            SELECT EXISTS (SELECT FROM pg_locks w JOIN pg_locks mine USING (pid)
                           WHERE NOT w.granted AND w.locktype = 'transactionid'
                             AND mine.relation = 'code'::regclass)
            """
        ),
        "nobody waits",
    )
