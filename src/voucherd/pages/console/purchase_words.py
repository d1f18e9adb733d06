"""Purchases in words: what became of one, what is wrong with it, and why. Pure."""

from __future__ import annotations

import re
from typing import Final

from voucherd.purchasing.attempts import AttemptPhase
from voucherd.purchasing.records import PurchaseProblem
from voucherd.suppliers.protocol import Why

PHASES: Final[dict[AttemptPhase, tuple[str, str]]] = {
    AttemptPhase.CALLING: ("Ordering", "note"),
    AttemptPhase.ASKING: ("Checking", "warn"),
    AttemptPhase.UNKNOWN: ("Needs a decision", "bad"),
    AttemptPhase.BOUGHT: ("Delivered", "good"),
    AttemptPhase.FAILED: ("Failed", "warn"),
}
"""The word of each, and the kind of its badge."""
PROBLEMS: Final[dict[PurchaseProblem, str]] = {
    PurchaseProblem.UNKNOWN: "Needs a decision",
    PurchaseProblem.LATE: "Late codes",
    PurchaseProblem.SHORT: "Codes missing",
    PurchaseProblem.SURPLUS: "Too many codes",
    PurchaseProblem.QUARANTINED: "Codes in quarantine",
}
_WHY: Final = {
    Why.OUT_OF_STOCK: "Out of stock at the supplier",
    Why.PRICE: "The supplier’s price is above our limit",
    Why.FUNDS: "Our balance at the supplier is too low",
    Why.REJECTED: "The supplier refused it",
    Why.UNREACHABLE: "The supplier could not be reached",
    Why.CANCELLED: "Cancelled at the supplier",
}
_HTTP: Final = re.compile(r"(?:Supplier error: )?HTTP (\d{3})(?:, which .* description.*)?")
_SENTENCES: Final = (
    (_HTTP, r"Supplier error (HTTP \1)"),
    (re.compile(r"lost during the call: .*", re.DOTALL), "The connection was lost during the call"),
    (re.compile("never bought"), "The supplier knows nothing of it"),
    (re.compile(r"still not known after (\d+) look-ups"), r"Still unknown after \1 checks"),
    (re.compile("settled by hand(.*)", re.DOTALL), r"Decided by hand\1"),
)
"""How the program writes a reason down, and how people read it."""


def reason_words(reason: str | None) -> str:
    """Why a purchase is as it is, as a sentence without its stop; nothing where nothing is known."""
    why, _, rest = (reason or "").partition(": ")
    if why in set(Why):
        # A bare status says nothing more than the reason does.
        return _WHY[Why(why)] + (f" ({rest})" if rest and not _HTTP.fullmatch(rest) else "")
    for written, sentence in _SENTENCES:
        if found := written.fullmatch(reason or ""):
            return found.expand(sentence)
    return reason[0].upper() + reason[1:] if reason else ""
