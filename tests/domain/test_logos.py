"""Which files may be a brand's logo."""

from __future__ import annotations

import pytest

from voucherd.catalogue.logos import BYTES_MAX, NAME, SIDE_MAX, BadLogo, name_of


def png(width: int, height: int) -> bytes:
    """The beginning of a PNG picture."""
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR" + width.to_bytes(4) + height.to_bytes(4) + bytes(5)


def jpeg(width: int, height: int) -> bytes:
    """The beginning of a JPEG picture: a segment of something else, then the frame."""
    frame = b"\xff\xc2\x00\x11\x08" + height.to_bytes(2) + width.to_bytes(2) + bytes(10)
    return b"\xff\xd8\xff\xe0\x00\x10" + bytes(14) + frame


def webp(kind: bytes, body: bytes) -> bytes:
    """The beginning of a WebP picture."""
    return b"RIFF" + bytes(4) + b"WEBP" + kind + bytes(4) + body + bytes(8)


LOSSY = webp(b"VP8 ", bytes(3) + b"\x9d\x01\x2a" + (300).to_bytes(2, "little") + (200).to_bytes(2, "little"))
LOSSLESS = webp(b"VP8L", b"\x2f" + (299 | 199 << 14).to_bytes(4, "little"))
EXTENDED = webp(b"VP8X", bytes(4) + (299).to_bytes(3, "little") + (199).to_bytes(3, "little"))


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (png(300, 200), "png"),
        (jpeg(300, 200), "jpg"),
        (LOSSY, "webp"),
        (LOSSLESS, "webp"),
        (EXTENDED, "webp"),
    ],
    ids=["png", "jpeg", "lossy", "lossless", "extended"],
)
def test_small_pictures_of_dots_are_logos(content: bytes, kind: str) -> None:
    """OP-57: a name is a hash of the content and its kind, so another picture has another name."""
    assert NAME.fullmatch(name_of(content))
    assert name_of(content).endswith("." + kind)
    assert name_of(content) == name_of(bytes(content)) != name_of(content + b"x")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is none that can be read"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "is none that can be read"),
        (b"GIF89a" + bytes(20), "is none that can be read"),
        (b"\xff\xd8\xff\xe0\xff\xff" + bytes(40), "is none that can be read"),
        (webp(b"VP8?", bytes(20)), "is none that can be read"),
        (png(0, 10), "is none that can be read"),
        (png(10, SIDE_MAX + 1), "has at most 2000 dots a side, and this is 10 by 2001"),
        (jpeg(65_535, 1), "has at most 2000 dots a side"),
        (png(10, 10) + bytes(BYTES_MAX), "has at most 100 KB, and this has 101"),
    ],
    ids=["empty", "svg", "gif", "cut", "unknown", "flat", "tall", "wide", "heavy"],
)
def test_what_is_large_or_no_picture_is_refused(content: bytes, why: str) -> None:
    """OP-57: an SVG can hold scripts, and a page stays light."""
    with pytest.raises(BadLogo, match=why):
        name_of(content)
