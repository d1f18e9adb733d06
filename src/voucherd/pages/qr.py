"""QR codes."""

from __future__ import annotations

from typing import Final

import segno

_MASK: Final = 3
"""Every mask can be read; to look for the prettiest takes ten times as long as to draw one."""


def square(text: str) -> segno.QRCode:
    """The text as a QR code, which can be read with up to 15 % of it hidden."""
    return segno.make_qr(text, error="m", mask=_MASK)
