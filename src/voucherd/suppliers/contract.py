"""What the operator says of another service that speaks this contract, and whether its key fits."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from voucherd.ids import State
from voucherd.money import DIGITS
from voucherd.suppliers.description import explained
from voucherd.suppliers.exchange import check_secret, check_url
from voucherd.suppliers.protocol import BULK_MAX

LINES_MAX: Final = 2_000
"""Create answers with extended lines, two kilobytes and more for each code; that of a larger order would be refused."""
_KEY_PREFIXES: Final = {State.LIVE: "vk_live_", State.SANDBOX: "vk_test_"}


class VoucherdConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What the operator says of another voucherd."""

    url: str
    currency: str
    resolve_upto: int = 0
    """Purchases of so many codes or fewer are resolved (now or never); larger ones are confirmed."""
    bulk_max: int = 500
    sandbox_outcome: str = ""
    """For tests of the operator: what becomes of each purchase in the sandbox (OP-49)."""
    plain_http: bool = False


def read_config(config: dict[str, Any]) -> VoucherdConfig:
    """The config; a ValueError of one line that names the key."""
    try:
        found = msgspec.convert(config, VoucherdConfig)
    except msgspec.ValidationError as error:
        raise ValueError(explained(str(error))) from None
    check_url("url", found.url, plain_http=found.plain_http)
    if found.currency not in DIGITS:
        raise ValueError("currency: must be an ISO 4217 code in capitals")
    if not 1 <= found.bulk_max <= LINES_MAX:
        raise ValueError(f"bulk_max: must be between 1 and {LINES_MAX}")
    if not 0 <= found.resolve_upto <= BULK_MAX:
        raise ValueError(f"resolve_upto: must be between 0 and {BULK_MAX}")
    if not found.sandbox_outcome.isascii() or not found.sandbox_outcome.isprintable():
        raise ValueError("sandbox_outcome: must be printable ASCII")
    return found


def key_for(state: State, config: VoucherdConfig, secret: str | None) -> str:
    """The key as it can be sent; a ValueError if it, or the config, is for the other state."""
    key = check_secret(secret)
    other = _KEY_PREFIXES[State.SANDBOX if state is State.LIVE else State.LIVE]
    if key.startswith(other):
        raise ValueError(f"secret: a {other}… key is not for a {state.word} supplier")
    if config.sandbox_outcome and state is State.LIVE:
        raise ValueError("sandbox_outcome: is for sandbox suppliers only")
    return key
