"""A timeline, in the portal and in the console: its rows, and how they name people. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from markupsafe import Markup


class TimelineRow(NamedTuple):
    """One thing that happened: when, what, more of it, by whom, and the kind of its mark."""

    at: datetime
    title: str
    text: str = ""
    by: str = ""
    kind: str = ""


def person_words(name: str, email: str) -> str:
    """A person by the name, with the address where the pointer rests; by the address, if it has told no name."""
    return Markup('<span title="{}">{}</span>').format(email, name) if name else email
