"""What every field about redemption links means."""

from __future__ import annotations

from typing import Any, Final

from voucherd.recipients.pins import PIN_DIGITS_MAX, PIN_DIGITS_MIN

_PIN: Final[dict[str, Any]] = {"pattern": f"^[0-9]{{{PIN_DIGITS_MIN},{PIN_DIGITS_MAX}}}$"}

FIELDS: Final[dict[str, dict[str, tuple[str, dict[str, Any]]]]] = {
    "RedemptionBody": {
        "pin": (f"{PIN_DIGITS_MIN} to {PIN_DIGITS_MAX} digits, or `null` to ask for none any more.", _PIN),
    },
    "Redemption": {
        "trx": ("Identifier of the order.", {"pattern": "^TRX[0-9A-Z]{26}$"}),
        "hasPin": ("Whether the order's links ask for a PIN.", {}),
    },
}
