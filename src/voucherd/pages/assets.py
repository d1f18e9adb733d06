"""Templates and static files, as the package brings them along."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from voucherd.http import NO_SNIFFING, Response

FOR_EVER: Final = b"public, max-age=31536000, immutable"
_TYPES: Final = {
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
    "ico": b"image/x-icon",
    "png": b"image/png",
}
FOR_A_DAY: Final = b"public, max-age=86400"
ICONS: Final = ("favicon.ico", "apple-touch-icon.png")
"""Browsers and telephones ask for these by these very names."""
_FILES: Final = files("voucherd.pages")


@cache
def _static() -> dict[str, tuple[str, bytes]]:
    """Each static file by its name: its path, which holds a hash of the content, and the content."""
    found = {}
    for file in (_FILES / "static").iterdir():
        stem, _, kind = file.name.rpartition(".")
        if kind in _TYPES:
            content = file.read_bytes()
            found[file.name] = f"static/{stem}.{hashlib.sha256(content).hexdigest()[:12]}.{kind}", content
    return found


def static_paths() -> dict[str, str]:
    """The path of each static file, without a slash in front."""
    return {name: path for name, (path, _) in _static().items()}


def static_files() -> dict[str, Response]:
    """The static files by path. A changed file has another path, so a cache may keep one for ever; icons have not."""
    found = {path: (content, FOR_EVER) for path, content in _static().values()}
    found |= {name: (_static()[name][1], FOR_A_DAY) for name in ICONS}
    return {
        f"/{path}": Response(200, content, _TYPES[path.rpartition(".")[2]], [NO_SNIFFING], keep)
        for path, (content, keep) in found.items()
    }


@cache
def icons() -> dict[str, str]:
    """The shapes of each icon by its name, for an `svg` of the page itself."""
    drawn = {file.name: file.read_text("utf-8") for file in (_FILES / "icons").iterdir()}
    return {
        name.removesuffix(".svg"): text.strip()[text.index(">") + 1 :].removesuffix("</svg>")
        for name, text in drawn.items()
        if name.endswith(".svg")
    }


@cache
def templates() -> dict[str, str]:
    """Every template by its name; those in folders by folder and name."""
    return dict(_walk(_FILES / "templates", ""))


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for file in folder.iterdir():
        if file.is_dir():
            found += _walk(file, f"{prefix}{file.name}/")
        else:
            found.append((prefix + file.name, file.read_text("utf-8")))
    return found
