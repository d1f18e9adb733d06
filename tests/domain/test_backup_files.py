"""What a backup is made of and read from: addresses that libpq reads, and members of a copy that are let in."""

from __future__ import annotations

import tarfile

import pytest

from voucherd.backups import _without_password
from voucherd.backups.base_backups import _leads_away


def test_a_password_is_handed_over_apart_and_as_it_is_meant() -> None:
    """OP-122: with several hosts, IPv6 among them, and signs that an address writes in another way."""
    url = "postgresql://ann:p%40ss@a,[::1]:6432/shop?search_path=mine"
    assert _without_password(url) == (
        "postgresql://ann@a,[::1]:6432/shop?options=-csearch_path%3Dmine",
        "p@ss",
    )
    assert _without_password("postgresql://ann@a/shop") == ("postgresql://ann@a/shop", "")


@pytest.mark.parametrize(
    ("name", "kind", "away"),
    [
        ("base/1/1259", tarfile.REGTYPE, False),
        ("pg_wal", tarfile.DIRTYPE, False),
        ("../../etc/passwd", tarfile.REGTYPE, True),
        ("/etc/passwd", tarfile.REGTYPE, True),
        ("pg_tblspc/1", tarfile.SYMTYPE, True),
        ("device", tarfile.CHRTYPE, True),
    ],
)
def test_a_copy_is_unpacked_into_its_own_folder_alone(name: str, kind: bytes, away: bool) -> None:
    """OP-122: whatever Python is there, no file of a backup is written elsewhere."""
    member = tarfile.TarInfo(name)
    member.type = kind
    assert _leads_away(member) is away
