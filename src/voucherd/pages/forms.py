"""Reading a form or an address: fields, numbers, days, and files where the form has them."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from math import inf
from typing import Final, TypeVar
from urllib.parse import parse_qsl

from msgspec import Struct
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import Field, File, FormParser, parse_options_header

from voucherd.http import HttpError, Request
from voucherd.words import Words, phrase

FIELDS_MAX: Final = 1_000
FILES_MAX: Final = 20
SECRET_WITHIN_BYTES: Final = 16 * 1024
"""A form that is larger has its secret among the first so many bytes."""
T = TypeVar("T")

_EARLIEST: Final = date(2000, 1, 1)
_LATEST: Final = date(2999, 12, 31)
_URLENCODED: Final = b"application/x-www-form-urlencoded"
_MULTIPART: Final = b"multipart/form-data"


class FormFields:
    """The fields of a form or of a query; one may be there several times."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    def get(self, name: str, default: str = "") -> str:
        """The first value of a field without spaces around it."""
        values = self._values.get(name)
        return values[0].strip() if values else default

    def raw(self, name: str) -> str:
        """The first value of a field just as it was sent: passwords may begin with a space."""
        values = self._values.get(name)
        return values[0] if values else ""

    def all(self, name: str) -> list[str]:
        """Every value of a field."""
        return [value.strip() for value in self._values.get(name, ())]

    def single(self) -> dict[str, str]:
        """Every field with its first value."""
        return {name: self.get(name) for name in self._values}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)


class Problems(dict[str, str]):
    """The problems of a form, by field; empty for a good form."""

    def read(self, field: str, parse: Callable[[str], T], text: str) -> T | None:
        """The field's value; None, and a problem beside the field, if it can't be read."""
        try:
            return parse(text)
        except ValueError as wrong:
            # A refusal of ours names its field: here it stands beside it.
            self[field] = sentence(getattr(wrong, "rule", None) or wrong)
            return None


def whole(text: str, low: int = 0, high: int = 10**18 - 1) -> int | None:
    """The whole number that a text is, if it lies between these two; else None."""
    if not text.isascii() or not text.isdecimal() or len(text) > len(str(high)):
        return None
    return int(text) if low <= int(text) <= high else None


def sentence(text: object) -> str:
    """A refusal with a capital letter and a full stop."""
    words = str(text)
    return f"{words[:1].upper()}{words[1:]}{'' if words.endswith('.') else '.'}"


class Period(Struct, frozen=True):
    """From the first moment of one day up to the last of another, where the reader is; either end may be open."""

    words: Words
    first: date | None = None
    last: date | None = None
    problem: str = ""

    @property
    def begins(self) -> datetime | None:
        """The first moment of it."""
        return None if self.first is None else self.words.midnight(self.first)

    @property
    def ends(self) -> datetime | None:
        """The last moment of it."""
        if self.last is None:
            return None
        return self.words.midnight(self.last + timedelta(days=1)) - timedelta(microseconds=1)


class Upload(Struct, frozen=True):
    """A file that came with a form."""

    name: str
    content: bytes


def read_query(request: Request) -> FormFields:
    """What stands after the question mark."""
    return FormFields(_pairs(request.query))


def read_day(text: str) -> date | None:
    """The day that a field of dates holds; None for an empty one, refused if it is none."""
    if not text:
        return None
    day = date.fromisoformat(text)
    if not _EARLIEST <= day <= _LATEST:
        raise ValueError(text)
    return day


def read_period(given: FormFields, words: Words) -> Period:
    """The period of a filter; one that can't be read lets everything through and says so."""
    try:
        first, last = read_day(given.get("from")), read_day(given.get("to"))
    except ValueError:
        return Period(words, problem=words.text("A day looks like 2026-01-31."))
    if first is not None and last is not None and last < first:
        return Period(words, problem=words.text("The last day is before the first."))
    return Period(words, first, last)


def midnight(day: date) -> datetime:
    """The first moment of a day in UTC, as the books count days."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


class FormReader:
    """Reads a form while it arrives. A form that needs a secret brings it along early, or is read no further."""

    def __init__(self, request: Request, secret: str | None) -> None:
        content_type = request.headers.get(b"content-type", b"")
        self._kind = content_type.partition(b";")[0].strip().lower()
        if self._kind not in (_URLENCODED, _MULTIPART, b""):
            raise _not_a_form()
        self._secret = secret
        self._proven = secret is None
        self._size = 0
        self._collected = bytearray()
        self._pairs: list[tuple[str, str]] = []
        self._files: dict[str, Upload] = {}
        self._parser = self._of_parts(content_type) if self._kind == _MULTIPART else None

    def write(self, part: bytes) -> None:
        """The next part of the form; refused if no browser would send it, or not its page's form."""
        if not self._kind:
            raise _not_a_form()
        self._size += len(part)
        if self._parser is None:
            self._collected += part
        else:
            with _understood():
                self._parser.write(part)
        if not self._proven and self._size > SECRET_WITHIN_BYTES:
            if self._parser is None:
                early = bytes(self._collected[:SECRET_WITHIN_BYTES]).rpartition(b"&")[0]
                self._prove(FormFields(_pairs(early)).get("csrf"))
            else:
                raise _forged()

    def finish(self) -> tuple[FormFields, dict[str, Upload]]:
        """The fields and files of the whole form."""
        if self._parser is None:
            self._pairs = _pairs(bytes(self._collected))
        else:
            with _understood():
                self._parser.finalize()
        form = FormFields(self._pairs)
        if self._secret is not None:
            self._prove(form.get("csrf"))
        return form, self._files

    def _prove(self, given: str) -> None:
        assert self._secret is not None
        if not hmac.compare_digest(given.encode(), self._secret.encode()):
            raise _forged()
        self._proven = True

    def _of_parts(self, content_type: bytes) -> FormParser:
        boundary = parse_options_header(content_type)[1].get(b"boundary")
        if not boundary:
            raise _bad()
        # Files may hold codes, which lie on no disk in clear.
        config = {"MAX_MEMORY_FILE_SIZE": inf}
        with _understood():
            return FormParser(
                "multipart/form-data", self._on_field, self._on_file, boundary=boundary, config=config
            )

    def _on_field(self, field: Field) -> None:
        if len(self._pairs) >= FIELDS_MAX:
            raise _bad()
        name, value = _text(field.field_name), _text(field.value)
        self._pairs.append((name, value))
        if name == "csrf" and not self._proven:
            self._prove(value.strip())

    def _on_file(self, file: File) -> None:
        if len(self._files) >= FILES_MAX:
            raise _bad()
        if file.file_name:  # A field for a file that was left empty comes without a name.
            file.file_object.seek(0)
            self._files[_text(file.field_name)] = Upload(_text(file.file_name), file.file_object.read())
        file.close()


def _pairs(encoded: bytes) -> list[tuple[str, str]]:
    try:
        pairs = parse_qsl(
            encoded.decode("ascii"), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict"
        )
    except ValueError:
        raise _bad() from None
    return [(_clean(name), _clean(value)) for name, value in pairs]


@contextmanager
def _understood() -> Iterator[None]:
    """Refuse parts that their reader does not understand."""
    try:
        yield
    except (FormParserError, ValueError):
        raise _bad() from None


def _text(given: bytes | None) -> str:
    try:
        return _clean((given or b"").decode("utf-8"))
    except UnicodeDecodeError:
        raise _bad() from None


def _clean(text: str) -> str:
    if "\0" in text or any(0xD800 <= ord(c) < 0xE000 for c in text):
        raise _bad()
    return text


def _not_a_form() -> HttpError:
    return HttpError(415, "not_a_form", "this page takes forms")


def _forged() -> HttpError:
    return HttpError(403, "csrf", phrase("This form is too old. Load the page again."))


def _bad() -> HttpError:
    return HttpError(400, "bad_form", "this form could not be read")
