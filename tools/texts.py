"""`make texts`: the list of all texts of pages and letters, and the catalogue of each language brought up to it.

A text that is new has no translation yet, one that is gone is gone from the catalogues, too.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.pofile import read_po, write_po
from jinja2.ext import babel_extract

from voucherd.pages.nav import BUYER, NavGroup
from voucherd.pages.page import Audience
from voucherd.pages.routes import PAGES
from voucherd.pages.statuses import STATUSES
from voucherd.words import LANGUAGES, SOURCE

PACKAGE: Final = Path(__file__).parents[1] / "src" / "voucherd"
FOLDER: Final = PACKAGE / "languages"
LIST: Final = FOLDER / f"{SOURCE}.pot"

PLURALS: Final = {
    "nl": "nplurals=2; plural=(n != 1);",
    "de": "nplurals=2; plural=(n != 1);",
    "fr": "nplurals=2; plural=(n > 1);",
    "es": "nplurals=2; plural=(n != 1);",
}
_IN_CODE: Final = {"text": None, "phrase": None, "plural": (1, 2), "SheetRefused": None}
_IN_TEMPLATES: Final = ("_", "gettext", "ngettext")
_SILENT: Final = ("templates/console/", "templates/docs/")
"""The console and the docs speak English."""
_PLACE: Final = re.compile(r"\{[a-z_]*\}")

Text = str | tuple[str, str]


def texts() -> Iterator[tuple[str, Text]]:
    """Every text with the file that says it, in the order of reading."""
    for path in sorted((PACKAGE / "pages" / "templates").rglob("*.html")):
        name = path.relative_to(PACKAGE / "pages").as_posix()
        if not name.startswith(_SILENT):
            with path.open("rb") as file:
                for _line, function, said, _ in babel_extract(
                    file, _IN_TEMPLATES, [], {"silent": "false", "trimmed": "true"}
                ):
                    if said:  # A value instead of words is translated by whoever named it.
                        yield f"pages/{name}", _read(function, said)
    yield from (("pages/nav.py", text) for group in BUYER for text in _named(group) if text)
    yield from (("pages/statuses.py", word) for word, _ in STATUSES.values())
    asking = [page for page in PAGES if page.asks and page.audience is not Audience.OPERATOR]
    yield from (("pages/routes.py", text) for page in asking for text in (page.asks, page.sure))
    for path in _code():
        with path.open("rb") as file:
            for _line, found, _comments, _context in extract("python", file, _IN_CODE):
                yield path.relative_to(PACKAGE).as_posix(), _read(None, found)


def _named(group: NavGroup) -> list[str]:
    return [group.title, *(entry.label for entry in group.entries)]


def _code() -> list[Path]:
    """The files of the program that speak to people who have a language."""
    pages = [path for path in (PACKAGE / "pages").rglob("*.py") if "console" not in path.parts]
    others = [*(PACKAGE / "people").rglob("*.py"), *PACKAGE.rglob("letters.py")]
    others += [*(PACKAGE / "sheets").rglob("*.py"), PACKAGE / "orders" / "bulk.py"]
    return sorted({*pages, *others})


def _read(function: str | None, said: object) -> Text:
    """The words of a call: its first text, of a count its first two."""
    if isinstance(said, str):
        return said
    assert isinstance(said, tuple | list)
    words = [one for one in said if isinstance(one, str)]
    return (words[0], words[1]) if function in {None, "ngettext"} else words[0]


def listed() -> Catalog:
    """All texts, each with the files that say it."""
    found = Catalog(charset="utf-8")
    for place, text in texts():
        words = text if isinstance(text, str) else text[0]
        flags = ["python-brace-format"] if _PLACE.search(words) else []
        found.add(text, locations=[(place, 0)], flags=flags)
    for message in found:
        message.flags.discard("python-format")
        message.locations = sorted(set(message.locations))
    return found


def written(catalogue: Catalog, language: str) -> str:
    """A catalogue as the file that holds it."""
    title = "The list of all texts" if language == SOURCE else LANGUAGES[language]
    head = f"# {title}. `make texts` writes this file.\n"
    head += f'msgid ""\nmsgstr ""\n"Language: {language}\\n"\n"MIME-Version: 1.0\\n"\n'
    head += '"Content-Type: text/plain; charset=utf-8\\n"\n"Content-Transfer-Encoding: 8bit\\n"\n'
    if language in PLURALS:
        head += f'"Plural-Forms: {PLURALS[language]}\\n"\n'
    body = io.BytesIO()
    write_po(body, catalogue, width=0, omit_header=True, ignore_obsolete=True, include_lineno=False)
    return f"{head}\n{body.getvalue().decode().strip()}\n"


def translated(language: str) -> Catalog:
    """The list with what the catalogue of this language has for it."""
    path = FOLDER / f"{language}.po"
    known = read_po(io.BytesIO(path.read_bytes())) if path.exists() else Catalog()
    found = listed()
    for message in found:
        old = known.get(message.id) if message.id else None
        if old is not None and old.pluralizable == message.pluralizable:
            message.string = old.string
    return found


def main() -> None:
    """Write the list and bring every catalogue up to it."""
    LIST.write_text(written(listed(), SOURCE), encoding="utf-8")
    for language in LANGUAGES:
        if language != SOURCE:
            text = written(translated(language), language)
            (FOLDER / f"{language}.po").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
