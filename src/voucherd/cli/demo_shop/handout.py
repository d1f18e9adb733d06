"""What the demo hands out: its keys and passwords, kept in `demo.json` so that a second start can show them again.

Only a demo does this. Elsewhere a key or a password is shown once, and what is stored of it opens nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

FILE_NAME: Final = "demo.json"
_ABOUT: Final = (
    "The demo's own keys and passwords, so that `voucherd demo` can show them again. Never kept elsewhere."
)


class DemoPerson(Struct, frozen=True):
    """Someone who can sign in."""

    email: str
    password: str


class Handout(Struct, frozen=True):
    """What it takes to try the demo."""

    company: str
    live_key: str
    sandbox_key: str
    operator: DemoPerson
    buyer: DemoPerson
    products: list[str]
    voucher: str = ""
    """The path of a link that a recipient would get; empty before there is an order."""
    about: str = _ABOUT

    def document(self, base_url: str) -> dict[str, Any]:
        """The one line of `demo --json`."""
        return {
            "baseUrl": base_url,
            "live": {"company": self.company, "key": self.live_key},
            "sandbox": {"company": self.company, "key": self.sandbox_key},
            "operator": {"email": self.operator.email, "password": self.operator.password},
            "buyer": {"email": self.buyer.email, "password": self.buyer.password},
            "voucher": base_url + self.voucher,
            "products": self.products,
        }


def load(data: Path) -> Handout | None:
    """What an earlier start handed out; None if there is nothing that can be read."""
    try:
        return msgspec.json.decode((data / FILE_NAME).read_bytes(), type=Handout)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def save(data: Path, handout: Handout) -> None:
    """Keep it where only the owner can read it; the old one stays until the new one is whole."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = data / f".{FILE_NAME}.{os.getpid()}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(handout)) + b"\n")
    draft.replace(data / FILE_NAME)
