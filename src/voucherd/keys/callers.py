"""Callers: who is behind a request, once its key was recognised; and why one is turned away."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Final

from voucherd.companies.model import Company
from voucherd.ids import State
from voucherd.keys.key_text import KeyTerms, Scope
from voucherd.limits.rate_limits import RateWindow
from voucherd.limits.spending import SpendLimit

_ANYTHING: Final = KeyTerms()


class Unauthorized(Exception):
    """No key, or none that is valid (OP-24)."""

    def __init__(self, *, token_sent: bool) -> None:
        super().__init__("unauthorized")
        self.token_sent = token_sent


class Forbidden(Exception):
    """The key is valid but not for this: from this address, or without this scope (OP-24)."""


@dataclass(frozen=True, slots=True, eq=False)
class Caller:
    """A recognised key and its company. One object for each key, shared by all its requests."""

    key_id: int
    company_id: int
    state: State
    scopes: frozenset[Scope]
    company: Company
    rate_limit: int
    window: RateWindow = field(repr=False)
    terms: KeyTerms = _ANYTHING
    limits: tuple[SpendLimit, ...] = ()
    """What orders that it finalises may cost; empty for nearly everybody."""
    counter_id: int = 0
    """The first of the keys that rotations made of one another: they count and are known again as one."""
    expires_at_s: float = inf  # Seconds since 1970, for a cheap comparison on every request.

    @property
    def approve_from_eur_minor(self) -> int | None:
        """From here on an order needs a second person, whom a key is not; None where the rule does not bind it."""
        return None if self.terms.confirms_alone else self.company.approve_from_eur_minor

    @property
    def sees_codes(self) -> bool:
        """Whether orders are shown with their codes (OP-59)."""
        return Scope.CODES_READ in self.scopes

    def require(self, scope: Scope) -> None:
        """Refuse a key that lacks this scope."""
        if scope not in self.scopes:
            raise Forbidden(scope.value)
