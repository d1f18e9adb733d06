"""Logos of brands: small pictures that the operator gives, shown from our own address under a name that holds a hash.

Only pictures made of dots: an SVG is a document that can hold scripts and links.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from typing import Final

from voucherd.catalogue.store import find_brand
from voucherd.db import Connection, Pool, Tx

BYTES_MAX: Final = 100 * 1024
SIDE_MAX: Final = 2_000
NAME: Final = re.compile(r"[0-9a-f]{32}\.(png|jpg|webp)", re.ASCII)
TYPES: Final = {"png": b"image/png", "jpg": b"image/jpeg", "webp": b"image/webp"}

_JPEG_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


class BadLogo(Exception):
    """The file can't be a logo; the text says why."""


class BrandNotFound(LookupError):
    """No brand has that slug."""

    def __init__(self, slug: str) -> None:
        super().__init__(f"there is no brand {slug[:100]!a}")


def name_of(content: bytes) -> str:
    """The name of the logo: a hash of it, and its kind. Refuses a file that is too large, or no picture of dots."""
    if len(content) > BYTES_MAX:
        raise BadLogo(f"a logo has at most {BYTES_MAX // 1024} KB, and this has {-(-len(content) // 1024)}")
    kind, sides = _looked_at(content)
    if kind is None or sides is None or not all(sides):
        raise BadLogo("a logo is a PNG, JPEG or WebP picture, and this is none that can be read")
    if max(sides) > SIDE_MAX:
        raise BadLogo(f"a logo has at most {SIDE_MAX} dots a side, and this is {sides[0]} by {sides[1]}")
    return f"{hashlib.sha256(content).hexdigest()[:32]}.{kind}"


async def set_logo(tx: Tx, slug: str, content: bytes) -> str:
    """Give the brand this logo, in place of the one it had; its name."""
    name = name_of(content)
    brand_id = await _brand(tx, slug)
    await tx.execute(
        """
        INSERT INTO brand_logo (brand_id, name, content) VALUES ($1, $2, $3)
        ON CONFLICT (brand_id) DO UPDATE SET name = excluded.name, content = excluded.content, set_at = now()
        """,
        brand_id,
        name,
        content,
    )
    return name


async def remove_logo(tx: Tx, slug: str) -> bool:
    """Take the brand's logo away; whether it had one."""
    done: str = await tx.execute("DELETE FROM brand_logo WHERE brand_id = $1", await _brand(tx, slug))
    return done != "DELETE 0"


async def logos(conn: Connection) -> dict[int, str]:
    """The name of each logo, by brand."""
    return {row[0]: row[1] for row in await conn.fetch("SELECT brand_id, name FROM brand_logo")}


async def logos_of(conn: Connection | Pool, slugs: Collection[str]) -> dict[str, str]:
    """The names of these brands' logos, by the brand's slug, of those that have one."""
    rows = await conn.fetch(
        "SELECT b.slug, l.name FROM brand b JOIN brand_logo l ON l.brand_id = b.id WHERE b.slug = ANY($1::text[])",
        list(slugs),
    )
    return {row[0]: row[1] for row in rows}


async def find_logo(conn: Connection, name: str) -> bytes | None:
    """The picture of this name."""
    content: bytes | None = await conn.fetchval("SELECT content FROM brand_logo WHERE name = $1", name)
    return content


async def _brand(tx: Tx, slug: str) -> int:
    brand_id = await find_brand(tx, slug)
    if brand_id is None:
        raise BrandNotFound(slug)
    return brand_id


def _looked_at(content: bytes) -> tuple[str | None, tuple[int, int] | None]:
    """The kind of a picture and its sides, from its first bytes; None for what they don't tell."""
    if content.startswith(b"\x89PNG\r\n\x1a\n") and content[12:16] == b"IHDR":
        return "png", (int.from_bytes(content[16:20]), int.from_bytes(content[20:24]))
    if content.startswith(b"\xff\xd8\xff"):
        return "jpg", _jpeg_sides(content)
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp", _webp_sides(content)
    return None, None


def _jpeg_sides(content: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(content) and content[at] == 0xFF:
        marker = content[at + 1]
        if marker in _JPEG_FRAMES:
            return int.from_bytes(content[at + 7 : at + 9]), int.from_bytes(content[at + 5 : at + 7])
        at += 2 + int.from_bytes(content[at + 2 : at + 4])
    return None


def _webp_sides(content: bytes) -> tuple[int, int] | None:
    kind, body = content[12:16], content[20:]
    if len(body) < 10:
        return None
    if kind == b"VP8X":
        return int.from_bytes(body[4:7], "little") + 1, int.from_bytes(body[7:10], "little") + 1
    if kind == b"VP8L":
        bits = int.from_bytes(body[1:5], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        return int.from_bytes(body[6:8], "little") & 0x3FFF, int.from_bytes(body[8:10], "little") & 0x3FFF
    return None
