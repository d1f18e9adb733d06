"""Files that people upload, forms that browsers send: read, or refused in one line."""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, TypeAlias

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.fuzz.bounded import bounded, briefly
from tests.fuzz.inputs import around, kept
from tests.workbooks import repacked
from voucherd.catalogue import files, logos, price_list_files
from voucherd.catalogue.fx import BadRates, parse_ecb
from voucherd.catalogue.logos import BadLogo
from voucherd.http import HttpError, Request
from voucherd.pages.forms import FormReader, read_period, read_query
from voucherd.reports.charges import BadStatement, Reading, Statement
from voucherd.sheets import reading
from voucherd.sheets.model import SheetRefused
from voucherd.vault.lines import CodeFile
from voucherd.vault.sources import FileRefused
from voucherd.words import ENGLISH

NOW: Final = datetime(2030, 1, 1, tzinfo=UTC)
PICTURES: Final = (
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0",
    b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xc0\0\x11\x08\0\x01\0\x01\x03",
    b"RIFF\x1a\0\0\0WEBPVP8L\r\0\0\0/\0\0\0\x10\x07\x10\x11",
    b"RIFF\x1a\0\0\0WEBPVP8X\r\0\0\0/\0\0\0\x10\x07\x10\x11\0\0\0\0",
)


def _codes(content: bytes) -> None:
    file = CodeFile(io.BytesIO(content), lambda code: code, NOW)
    while file.chunk() is not None:
        pass


def _statement(content: bytes) -> None:
    list(Statement(Reading(currency="EUR")).charges(reading.streamed(io.BytesIO(content))))


def _products(content: bytes) -> None:
    files.plan(files.read(reading.rows(io.BytesIO(content))), {}, {})


TableReader: TypeAlias = tuple[Callable[[bytes], object], type[Exception]]
READERS: Final[tuple[TableReader, ...]] = (
    (lambda content: list(reading.rows(io.BytesIO(content))), SheetRefused),
    (lambda content: list(reading.streamed(io.BytesIO(content))), SheetRefused),
    (lambda content: price_list_files.read_file(list(reading.rows(io.BytesIO(content)))), SheetRefused),
    (_products, SheetRefused),
    (_codes, FileRefused),
    (_statement, BadStatement),
)
"""Each way into a table in a file, and how it refuses one as a whole."""


def read_by_all(content: bytes) -> None:
    """No reader of tables raises anything else than its own refusal."""
    for reader in READERS:
        read_by(reader, content)


def read_by(reader: TableReader, content: bytes) -> None:
    """The reader ends with rows, or with its own refusal."""
    read, refusal = reader
    with bounded(), contextlib.suppress(refusal):
        read(content)


def read_forms(body: bytes, content_type: bytes) -> None:
    """A form of this kind, and the same bytes behind a question mark."""
    request = Request("POST", "/", body, {b"content-type": content_type}, body, "192.0.2.1", "req_1")
    with bounded():
        for secret in (None, "secret"):
            with contextlib.suppress(HttpError):
                reader = FormReader(request, secret)
                for part in (body[: len(body) // 2], body[len(body) // 2 :]):
                    reader.write(part)
                fields, _files = reader.finish()
                read_period(fields, ENGLISH)
        with contextlib.suppress(HttpError):
            read_period(read_query(request), ENGLISH)


def parts_of(content: bytes) -> dict[str, bytes]:
    """What lies in a workbook."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@st.composite
def workbooks(draw: st.DrawFn) -> bytes:
    """A workbook of the corpus with one part of it altered, or one more: what a zip's checksum would else hide."""
    content = draw(st.sampled_from(kept("workbooks")))
    parts = parts_of(content)
    name = draw(st.sampled_from(sorted(parts)))
    altered = draw(around((parts[name],)))
    return repacked(content, {draw(st.sampled_from((name, name, "xl/extra.xml", "../x", "xl\\a"))): altered})


def tables() -> SearchStrategy[bytes]:
    """Tables of the corpus, altered."""
    return around(kept("tables"))


@briefly
@given(content=tables())
def test_a_table_in_text_is_read_or_refused(content: bytes) -> None:
    """OP-25 in spirit, for files: every reader of CSV ends with rows or with its own refusal."""
    read_by_all(content)


@briefly
@given(content=st.one_of(workbooks(), around(kept("workbooks"))), reader=st.sampled_from(READERS))
def test_a_workbook_is_read_or_refused(content: bytes, reader: TableReader) -> None:
    """The same for XLSX: parts that are altered inside, and archives that are broken outside. One reader at a time."""
    read_by(reader, content)


@briefly
@given(
    body=around(kept("forms")),
    kind=around((b"multipart/form-data; boundary=xYzZY", b"application/x-www-form-urlencoded")),
)
def test_a_form_is_read_or_refused(body: bytes, kind: bytes) -> None:
    """Forms: with files or without, and what stands behind a question mark."""
    for content_type in (kind, b"multipart/form-data; boundary=xYzZY"):
        read_forms(body, content_type)


@briefly
@given(content=st.one_of(around(PICTURES), around(kept("answers"))))
def test_a_picture_and_a_file_of_rates_are_read_or_refused(content: bytes) -> None:
    """Logos of brands, and the exchange rates of the central bank."""
    with bounded():
        with contextlib.suppress(BadLogo):
            logos.name_of(content)
        with contextlib.suppress(BadRates):
            parse_ecb(content)
