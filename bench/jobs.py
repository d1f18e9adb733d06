"""What the load generator is told, and what it tells: both cross a pipe as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class Job(Struct, kw_only=True):
    """One load: so many connections, each asking again as soon as it has its answer."""

    port: int
    keys: list[str]
    """Requests go round these keys; connection i begins with the i-th."""
    connections: int
    operation: str = ""
    """confirm or resolve: lifecycles of Create and this. Empty: the paths are asked for."""
    slug: str = ""
    amount: int = 1
    outcome: str = ""
    """The X-Sandbox-Outcome header, if any."""
    ends_as: str = "finished"
    """The order status that the second answer must show."""
    paths: list[str] = []
    cookie: str = ""
    """Sent with the paths instead of a key."""
    warm_s: float = 0.0
    load_s: float = 0.0
    rounds_max: int = 0
    """Rounds of one connection; 0 for as many as the time allows."""
    together: bool = False
    """Whether all orders are created before the first is finalised."""
    patience_s: float = 30.0
    """How long answers that were asked for in time are waited for."""
    server_pid: int = 0
    database_pid: int = 0


class Spread(Struct):
    """How long calls took, in milliseconds."""

    calls: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    p95_ms: float = 0.0


class Tally(Struct, kw_only=True):
    """What came of a load."""

    rounds: int
    """Whole lifecycles (or single calls, for paths) in the measured time."""
    seconds: float
    first: Spread
    second: Spread
    failures: int
    failure: str
    """The first answer that was not as it should be."""
    bytes_max: int
    rounds_by_key: list[int]
    generator_cpu_s: float
    server_cpu_s: float
    database_cpu_s: float

    @property
    def rate(self) -> float:
        """Rounds a second."""
        return self.rounds / self.seconds if self.seconds else 0.0

    def cpu_us(self, cpu_s: float) -> float:
        """Microseconds of processor time a request."""
        requests = self.first.calls + self.second.calls
        return 1e6 * cpu_s / requests if requests else 0.0


def spread(times_s: Sequence[float]) -> Spread:
    """The usual points of a distribution."""
    if not times_s:
        return Spread(0, 0.0, 0.0, 0.0)
    ranked = sorted(times_s)
    count = len(ranked)
    return Spread(
        count,
        1000 * ranked[(count - 1) // 2],
        1000 * ranked[min(count - 1, -(-99 * count // 100) - 1)],
        1000 * ranked[-1],
        1000 * ranked[min(count - 1, -(-95 * count // 100) - 1)],
    )


def jain(shares: Sequence[int]) -> float:
    """Jain's index of fairness: 1 when all got the same, 1/n when one got everything."""
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 0.0
