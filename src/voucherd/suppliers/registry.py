"""From a supplier's row in the database to an adapter that speaks with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct

from voucherd.db import Pool
from voucherd.ids import State
from voucherd.suppliers import contract, description, sandbox
from voucherd.suppliers.http import HttpSupplier
from voucherd.suppliers.protocol import Supplier
from voucherd.suppliers.sandbox import SandboxSupplier
from voucherd.suppliers.voucherd import VoucherdSupplier

KINDS: Final = ("voucherd", "http", "sandbox")
"""The kinds that an operator can add. Our own stock needs none: it is sold with the order (`vault.shelf`)."""
CONFIG_BYTES_MAX: Final = 65_536


class Spec(Struct, frozen=True):
    """All that an adapter needs to know. The secret is opened for it, and shown nowhere."""

    name: str
    kind: str
    """One of KINDS."""
    state: State
    config: dict[str, Any]
    """As the operator wrote it; each kind checks its own (`check_config`)."""
    secret: str | None
    timeout_s: float
    """No call of the adapter takes longer, whatever the supplier does."""

    def __repr__(self) -> str:
        return f"Spec({self.name}, {self.kind})"


def check_config(kind: str, config: dict[str, Any]) -> None:
    """Nothing if an adapter could work with this; else a ValueError of one line that names the key."""
    if kind not in KINDS:
        raise ValueError(f"kind: must be one of {', '.join(KINDS)}")
    try:
        size = len(msgspec.json.encode(config))
    except (TypeError, ValueError, RecursionError):
        raise ValueError("config: has a value that JSON does not have") from None
    if size > CONFIG_BYTES_MAX:
        raise ValueError(f"config: must be at most {CONFIG_BYTES_MAX} bytes")
    _CHECKS[kind](config)


_CHECKS: Final[dict[str, Callable[[dict[str, Any]], object]]] = {
    "voucherd": contract.read_config,
    "http": description.read,
    "sandbox": sandbox.read_config,
}


def can_look_up(kind: str, config: dict[str, Any]) -> bool:
    """Whether such a supplier can be asked what became of a purchase; one with a useless config can't."""
    try:
        return kind != "http" or description.read(config).look_up is not None
    except ValueError:
        return False


def needs_secret(kind: str, config: dict[str, Any]) -> bool:
    """Whether such a supplier wants a key; the config is one that was checked."""
    return kind == "voucherd" or (kind == "http" and description.read(config).auth.type != "none")


def open_supplier(spec: Spec, pool: Pool) -> Supplier:
    """The adapter of a supplier; a ValueError of one line if its config or secret can't be used."""
    check_config(spec.kind, spec.config)
    if spec.kind == "voucherd":
        return VoucherdSupplier(spec.config, spec.secret, spec.state, spec.timeout_s)
    if spec.kind == "http":
        return HttpSupplier(spec.config, spec.secret, spec.timeout_s)
    if spec.state is not State.SANDBOX:
        raise ValueError("kind: a sandbox supplier is for sandbox orders only")
    return SandboxSupplier(spec.name, spec.config, pool, spec.timeout_s)
