"""Our own words and examples as HTML. Pure."""

from __future__ import annotations

import html
import re

import msgspec
from markupsafe import Markup
from msgspec import Raw


def prose(text: str, *, inline: bool = False) -> Markup:
    """Our descriptions as HTML: paragraphs, lists and code are all they use."""
    escaped = html.escape(text, quote=False)
    marked = Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped))  # noqa: S704 - Escaped above.
    if inline:
        return marked
    blocks = []
    for block in marked.split("\n\n"):
        if block.startswith("- "):
            entries = Markup("").join(Markup("<li>{}</li>").format(line[2:]) for line in block.split("\n"))
            blocks.append(Markup("<ul>{}</ul>").format(entries))
        else:
            blocks.append(Markup("<p>{}</p>").format(block))
    return Markup("").join(blocks)


def pretty(body: Raw) -> Markup:
    """JSON, indented, digits untouched, with its keys marked."""
    # Quotes need no escaping between tags, and half of JSON is quotes.
    escaped = html.escape(indented(body), quote=False)
    return Markup(re.sub(r'(?m)^( *)("\w+"):', r"\1<b>\2</b>:", escaped))  # noqa: S704 - Escaped above.


def indented(body: Raw) -> str:
    """JSON, indented, digits untouched."""
    return msgspec.json.format(bytes(body), indent=2).decode()
