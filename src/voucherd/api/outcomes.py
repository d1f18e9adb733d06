"""What a sandbox call can be told to do, by the header X-Sandbox-Outcome (OP-49, OP-145): a table, and its docs."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from voucherd.api import query
from voucherd.api.errors import Op
from voucherd.api.query import Parameter
from voucherd.http import HttpError, Request
from voucherd.ids import State
from voucherd.orders.rules.refusals import BadInput
from voucherd.orders.rules.sandbox import SANDBOX_PENDING_S, SandboxOutcome

HEADER: Final = b"x-sandbox-outcome"
NAME: Final = "X-Sandbox-Outcome"
SECONDS_MAX: Final = 3_600
_RETRY_AFTER: Final = [(b"retry-after", b"1")]

FINALISING: Final = (Op.CONFIRM, Op.RESOLVE)
PRICING: Final = (Op.CREATE, Op.QUOTE)
EVERYWHERE: Final[tuple[Op, ...]] = ()


class DescribedOutcome(Struct, frozen=True):
    """How an outcome is written, what happens then, and on which calls; on all if none is named."""

    form: str
    words: str
    ops: tuple[Op, ...] = FINALISING

    def fits(self, op: Op | None) -> bool:
        """Whether it does anything on this call."""
        return not self.ops or op in self.ops

    @property
    def told(self) -> str:
        """What happens, and on which calls where these are not Confirm and Resolve."""
        if self.ops == FINALISING:
            return self.words
        calls = ", ".join(op.value.capitalize() for op in self.ops)
        return f"{self.words} On {calls or 'every call'}."


OUTCOMES: Final[dict[SandboxOutcome, DescribedOutcome]] = {
    SandboxOutcome.FINISHED: DescribedOutcome("finished", "Every code is delivered at once."),
    SandboxOutcome.CANCELLED: DescribedOutcome(
        "cancelled", "The order is cancelled at once and not charged."
    ),
    SandboxOutcome.PENDING: DescribedOutcome(
        "pending",
        f"Confirm answers `pending` at once and delivers {SANDBOX_PENDING_S} seconds later. Resolve waits for its "
        "limit and cancels.",
    ),
    SandboxOutcome.SLOW: DescribedOutcome(
        "slow:<seconds>", f"Delivery takes that many seconds, at most {SECONDS_MAX:,}."
    ),
    SandboxOutcome.PARTIAL: DescribedOutcome(
        "partial",
        "Confirm answers `pending` at once with half of the codes, rounded down, and cancels and refunds the others "
        f"{SANDBOX_PENDING_S} seconds later. Resolve, which delivers all or nothing, waits for its limit and cancels.",
    ),
    SandboxOutcome.OUT_OF_STOCK: DescribedOutcome("out-of-stock", "Refused: `Product … is out of stock`."),
    SandboxOutcome.INSUFFICIENT_BALANCE: DescribedOutcome(
        "insufficient-balance", "Refused: `insufficient balance`."
    ),
    SandboxOutcome.WITHDRAWN: DescribedOutcome(
        "offer-withdrawn", "Refused: `some offers not available: …`.", (*PRICING, *FINALISING)
    ),
    SandboxOutcome.EXPIRED: DescribedOutcome("expired", "Refused: `this order has expired, …`."),
    SandboxOutcome.UNVERIFIED: DescribedOutcome("unverified", "Refused: `company not verified`."),
    SandboxOutcome.SLOW_WEBHOOK: DescribedOutcome(
        "slow-webhook:<seconds>",
        f"The events of this order are sent to your webhooks that many seconds late, at most {SECONDS_MAX:,}.",
        (Op.CREATE,),
    ),
    SandboxOutcome.RATE_LIMITED: DescribedOutcome(
        "rate-limited", "Refused with `429` and `Retry-After`, before anything is looked at.", EVERYWHERE
    ),
    SandboxOutcome.UNAVAILABLE: DescribedOutcome(
        "unavailable", "Refused with `503` and `Retry-After`, before anything is looked at.", EVERYWHERE
    ),
}
"""What a sandbox call can ask for: how it is written, and what happens then."""

_TIMED: Final = {SandboxOutcome.SLOW: 0, SandboxOutcome.SLOW_WEBHOOK: 1}
"""Those with a number of seconds, and the least of them."""


class Asked(Struct, frozen=True):
    """What the header asks for."""

    outcome: SandboxOutcome
    seconds: int = 0


def parameter(op: Op) -> Parameter[str | None]:
    """The header as the document has it on a call that it does something to."""
    fitting = {outcome: said for outcome, said in OUTCOMES.items() if said.fits(op)}
    plain = "|".join(outcome.value for outcome in fitting if outcome not in _TIMED)
    timed = "|".join(f"{outcome.value}:[0-9]{{1,4}}" for outcome in fitting if outcome in _TIMED)
    chance = " Without it, half of all sandbox calls are cancelled at once." if op in FINALISING else ""
    return query.in_header(
        NAME,
        f"Sandbox keys only: what is to become of the call.{chance}\n\n"
        + "\n".join(f"- `{said.form}`: {said.words}" for said in fitting.values()),
        next(iter(fitting)).value,
        pattern=f"^({'|'.join(filter(None, (plain, timed)))})$",
    )


def read(request: Request, state: State) -> Asked | None:
    """What the header asks for; None where it was not sent, and refused where it can't be meant."""
    raw = request.headers.get(HEADER)
    if raw is None:
        return None
    if state is State.LIVE:
        raise BadInput(NAME, "is for sandbox keys only")
    word, colon, seconds = raw.decode("latin-1").strip().partition(":")
    found = next((outcome for outcome in SandboxOutcome if outcome.value == word), None)
    if found in _TIMED:
        assert found is not None
        if re.fullmatch("[0-9]{1,4}", seconds) and _TIMED[found] <= int(seconds) <= SECONDS_MAX:
            return Asked(found, int(seconds))
    elif found is not None and not colon:
        return Asked(found)
    raise BadInput(NAME, query.either([said.form for said in OUTCOMES.values()]))


def of_call(request: Request, state: State, op: Op | None) -> Asked | None:
    """The same; an outcome that is for other calls is none here, so that a client may send it with all of them."""
    asked = read(request, state)
    if asked is None or OUTCOMES[asked.outcome].fits(op):
        return asked
    return Asked(SandboxOutcome.FINISHED)


def refuse_by_wish(request: Request, state: State) -> None:
    """Refuse a call that asks to be refused as one that came in a bad moment."""
    asked = read(request, state)
    if asked is None:
        return
    if asked.outcome is SandboxOutcome.RATE_LIMITED:
        raise HttpError(
            429, "rate_limit_exceeded", "rate limit exceeded", headers=_RETRY_AFTER, retryable=True
        )
    if asked.outcome is SandboxOutcome.UNAVAILABLE:
        raise HttpError(503, "unavailable", "service unavailable", headers=_RETRY_AFTER, retryable=True)
