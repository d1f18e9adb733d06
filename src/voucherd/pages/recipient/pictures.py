"""Codes as pictures that a till can read, and the card of a brand. Inline SVG without a style: the pages allow none."""

from __future__ import annotations

import hashlib
from typing import Final

import segno
from barcode.codex import Code128
from barcode.errors import BarcodeError
from markupsafe import Markup

TONES: Final = 12
"""Gradients of the style sheet; each carries white text."""
BARCODE_CHARS_MAX: Final = 40
"""A longer one is wider than a telephone, and no scanner reads it there."""
_QUIET: Final = 10
"""Modules of white that Code 128 wants at each end."""


def qr_code(code: str) -> Markup:
    """The code as a QR code, black on white."""
    made = segno.make_qr(code, error="m")
    drawn = made.svg_inline(border=4, svgclass=None, lineclass=None, omitsize=True, dark="#000", light="#fff")
    return Markup(drawn.replace("<svg ", '<svg role="img" aria-labelledby="qr-name" ', 1))  # noqa: S704 - Squares.


def barcode(code: str) -> Markup | None:
    """The code as Code 128; None where that can't write it, or it would be too wide."""
    if len(code) > BARCODE_CHARS_MAX:
        return None
    try:
        (modules,) = Code128(code).build()
    except BarcodeError:
        return None
    bars, at = [], _QUIET
    for bar in modules.split("0"):
        if bar:
            bars.append(f"M{at} 0h{len(bar)}v40h-{len(bar)}z")
        at += len(bar) + 1
    width = len(modules) + 2 * _QUIET
    return Markup(  # noqa: S704 - Numbers and constants only.
        f'<svg viewBox="0 0 {width} 40" preserveAspectRatio="none" role="img" aria-labelledby="bars-name">'
        f'<path fill="#fff" d="M0 0h{width}v40h-{width}z"/><path fill="#000" d="{"".join(bars)}"/></svg>'
    )


def tone(brand_slug: str) -> int:
    """The gradient of a brand: always the same one."""
    return _digest(brand_slug)[0] % TONES


def ornament(brand_slug: str) -> Markup:
    """Circles of light behind a brand's card: always the same ones."""
    digest = _digest(brand_slug)
    circles = "".join(
        f'<circle cx="{digest[at] * 340 // 255}" cy="{digest[at + 1] * 214 // 255}" r="{60 + digest[at + 2] // 2}" '
        f'fill="#fff" fill-opacity="{("0.10", "0.06", "0.08")[at % 3]}"/>'
        for at in (1, 5, 9)
    )
    return Markup(  # noqa: S704 - Numbers and constants only.
        '<svg class="ornament" viewBox="0 0 340 214" preserveAspectRatio="xMidYMid slice" aria-hidden="true">'
        f"{circles}</svg>"
    )


def _digest(brand_slug: str) -> bytes:
    return hashlib.blake2b(brand_slug.encode(), digest_size=16).digest()
