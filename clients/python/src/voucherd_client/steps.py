"""A call of the API, step by step: what to send, how long to pause, what the answer means.

Nothing here sends or sleeps. A call is a generator that asks for each step and is told what came of it, so the same
lines serve the client that blocks and the one that awaits.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, TypeAlias, TypeVar

import httpx
import msgspec
from msgspec import Struct

from voucherd_client.errors import ApiError, IdempotencyKeyInUse, NoAnswer, UnreadableAnswer
from voucherd_client.problems import refusal
from voucherd_client.shapes.orders import NO_FLOAT

KEY_HEADER: Final = "Idempotency-Key"
PAUSE_S_MIN: Final = 0.1
"""However little an answer asks for, the service gets so much rest."""

T = TypeVar("T")


class Retries(Struct, frozen=True, kw_only=True):
    """How often and for how long a call is tried again before its failure is raised."""

    attempts_max: int = 5
    """Of a call that fails. One whose first attempt is still running is asked for until the pauses are used up."""
    pauses_s_max: float = 90.0
    """All pauses of a call together; a `Retry-After` beyond that is not waited for."""
    first_pause_s: float = 0.25
    pause_s_max: float = 8.0
    """Without a `Retry-After` pauses double from the first one to this."""


class Request(Struct, frozen=True, kw_only=True):
    """What is sent, and sent again byte for byte."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    wait_s: int = 0
    """So long the service was asked to hold its answer back."""

    @property
    def key(self) -> str | None:
        """The Idempotency-Key, of a request that changes something."""
        return self.headers.get(KEY_HEADER)


class Pause(Struct, frozen=True):
    """A rest before the next step."""

    seconds: float


Outcome: TypeAlias = httpx.Response | httpx.RequestError | None
"""What came of a step: an answer, or why there is none; nothing came of a pause."""
Steps: TypeAlias = Generator[Request | Pause, Outcome, T]


def answered(request: Request, retries: Retries, chance: Callable[[], float] = random.random) -> Steps[bytes]:
    """The body of the answer to a request, which is tried again where that may help and can do no harm."""
    attempts, paused_s = 0, 0.0
    while True:
        outcome = yield request
        if isinstance(outcome, httpx.Response) and outcome.is_success:
            return outcome.content
        failure = failure_of(outcome)
        failure.idempotency_key = request.key
        # The first attempt runs on at the service although its connection broke: that may take as long as a Resolve.
        attempts += not isinstance(failure, IdempotencyKeyInUse)
        rest_s = pause_s(failure, attempts, retries, chance())
        if rest_s is None or attempts >= retries.attempts_max or paused_s + rest_s > retries.pauses_s_max:
            raise failure
        paused_s += rest_s
        yield Pause(rest_s)


def failure_of(outcome: Outcome) -> ApiError | NoAnswer:
    if isinstance(outcome, httpx.Response):
        return refusal(outcome)
    failure = NoAnswer(f"no answer: {outcome!r}")
    failure.__cause__ = outcome
    return failure


def pause_s(failure: ApiError | NoAnswer, attempts: int, retries: Retries, chance: float) -> float | None:
    """How long to rest before the next attempt; None where there should be none."""
    if isinstance(failure, ApiError):
        if not failure.retryable:
            return None
        if failure.retry_after_s is not None:
            # Later than asked for, never earlier; and clients that were refused together come back apart.
            return max(failure.retry_after_s, PAUSE_S_MIN) * (1 + chance / 4)
    doubled_s: float = retries.first_pause_s * 2 ** max(attempts - 1, 0)
    return max(min(doubled_s, retries.pause_s_max) * (0.5 + chance / 2), PAUSE_S_MIN)


# ── what is sent and what comes back ──────────────────────────────────────────────────────────────────────

encode: Final = msgspec.json.Encoder(decimal_format="number").encode
"""JSON in which a Decimal is a number, digit by digit."""

ANYTHING: Final[Any] = Any
"""The type of an answer that is taken as it came."""
_decoders: Final[dict[Any, msgspec.json.Decoder[Any]]] = {}


def decode(body: bytes, kind: type[T], key: str | None = None) -> T:
    """The answer as this type."""
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind, float_hook=Decimal)
    try:
        read: T = decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        failure = UnreadableAnswer(f"the answer can't be read: {error}")
        failure.idempotency_key = key
        raise failure from None
    return read


def query(**given: Any) -> tuple[tuple[str, str], ...]:
    """The parameters of a query: None is not sent, several are repeated."""
    pairs: list[tuple[str, str]] = []
    for name, value in given.items():
        values = value if isinstance(value, list | tuple) else () if value is None else (value,)
        pairs += [(name, _written(name, one)) for one in values]
    return tuple(pairs)


def camel(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a body by the names that the service has for them."""
    return {_camel(name): _sent(name, value) for name, value in fields.items()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _sent(name: str, value: Any) -> Any:
    if isinstance(value, float):
        raise TypeError(f"{name}: {NO_FLOAT}")
    return moment(name, value) if isinstance(value, datetime) else value


def _written(name: str, value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return moment(name, value)
        case date():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case float():
            raise TypeError(f"{name}: {NO_FLOAT}")
        case _:
            return str(value)


def moment(name: str, at: datetime) -> str:
    """A moment as it is sent."""
    if at.tzinfo is None:
        raise ValueError(f"{name}: says no zone; datetime.now(UTC) does")
    return at.isoformat()
