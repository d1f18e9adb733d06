"""Connections to PostgreSQL: which host serves, what a session may cost the others, and when a link is dead."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, quote, urlencode

import asyncpg
from asyncpg import connect_utils

if TYPE_CHECKING:
    Session: TypeAlias = asyncpg.Connection[asyncpg.Record]

    class _Connection(asyncpg.Connection[asyncpg.Record]):
        """The driver's connection, with what it tells nobody."""

        _loop: asyncio.AbstractEventLoop
        _addr: Any
        _params: Any
        _protocol: Any

        def _abort(self) -> None: ...

        def _on_release(self, stacklevel: int = 1) -> None: ...

        async def _introspect_types(self, typeoids: Iterable[int], *limit: Any) -> Any: ...

else:
    Session = asyncpg.Connection
    _Connection = asyncpg.Connection

_cancels: set[asyncio.Task[None]] = set()
_types: dict[frozenset[int], Any] = {}
"""What a server said of types of its own, by their numbers."""

CONNECT_S_MAX: Final = 10.0
"""For the only host of an address."""
HOST_S_MAX: Final = 3.0
"""For each of several hosts, from the first packet until it is ready for a statement."""
NEXT_HOST_S: Final = 0.3
"""A host that has not answered after this long no longer keeps the next one waiting."""
LATE_S: Final = 5.0
"""The server ends a statement first, and says so. We stop waiting this much later, if it can't even do that."""

OWN_TYPES_MAX: Final = 10_000
"""Types below this number are PostgreSQL's own, and the same in every database of every version."""

CANCEL_S_MAX: Final = 1.0
"""How long the server is asked to stop a statement whose connection is gone."""

LINK_IDLE_S: Final = 5
LINK_PROBE_S: Final = 1
LINK_PROBES_MAX: Final = 3
LINK_S_MAX: Final = 5
"""A link on which nothing is acknowledged for so long is cut."""


class Limits(NamedTuple):
    """How long a session may run a statement, wait for a lock, and do nothing in a transaction; 0 is without end."""

    statement_s: float
    lock_s: float
    idle_s: float

    @classmethod
    def of_service(cls, transaction_s_max: float) -> Limits:
        """For sales, and all that shares rows with them.

        A process that freezes in a transaction loses it before those that wait for its locks give up, and so early that
        of its own sessions that wait behind it only one gets the lock. PostgreSQL has no limit of a whole transaction
        before version 17: a batch bounds each of its statements (`db.within`), so that once its process is frozen the
        transaction is over when that time has passed and the session has been idle for too long.
        """
        return cls(STATEMENT_S_MAX, transaction_s_max, transaction_s_max / 2)

    @property
    def settings(self) -> dict[str, str]:
        """The same as the server reads it."""
        return {
            "statement_timeout": f"{self.statement_s * 1000:.0f}",
            "lock_timeout": f"{self.lock_s * 1000:.0f}",
            "idle_in_transaction_session_timeout": f"{self.idle_s * 1000:.0f}",
        }


STATEMENT_S_MAX: Final = 30.0
"""Of the service. A sale is long over by then: this is for reports, lists and sweeps."""

COMMAND: Final = Limits(statement_s=900.0, lock_s=30.0, idle_s=5.0)
"""For a person at a terminal, who may stop a command in the middle; an audit reads every row."""

LONG: Final = Limits(statement_s=900.0, lock_s=60.0, idle_s=600.0)
"""For work that holds no row that a sale wants: an import, say, whose file may come through a pipe."""

MIGRATION: Final = Limits(statement_s=0, lock_s=0, idle_s=3.0)
"""A migration may take as long as it needs; each says for itself how long it waits for a table. The server ends one
whose process is frozen or cut off: it may have the tables of sales."""

_LINK: Final = {
    "tcp_keepalives_idle": str(LINK_IDLE_S),
    "tcp_keepalives_interval": str(LINK_PROBE_S),
    "tcp_keepalives_count": str(LINK_PROBES_MAX),
    "tcp_user_timeout": str(LINK_S_MAX * 1000),
}

_OUR_LINK: Final = [
    (level, getattr(socket, name), value)
    for level, name, value in (
        (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
        (socket.IPPROTO_TCP, "TCP_KEEPIDLE", LINK_IDLE_S),
        (socket.IPPROTO_TCP, "TCP_KEEPINTVL", LINK_PROBE_S),
        (socket.IPPROTO_TCP, "TCP_KEEPCNT", LINK_PROBES_MAX),
        (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", LINK_S_MAX * 1000),
    )
    if hasattr(socket, name)  # Some systems know fewer of them.
]


class _NotAsked(NamedTuple):
    """In place of the statement that asked for types: it has a name, so the driver takes no other for lost."""

    name: str = "none"


_NOT_ASKED: Final = _NotAsked()


class ServiceConnection(_Connection):
    """Ends together with a statement that is abandoned, so that its pool opens another one at once.

    The driver would ask the server to stop the statement, over a second connection, and keep the first one until the
    server has done so. A server that hangs does not even take the second one. Here it is asked, too, so that a server
    that lives does no work for nobody; but nobody waits for its answer.

    It is never asked to stop a COMMIT. One that waits for a standby would end at once, on the leader alone, and others
    would be told of a sale that a failover forgets.
    """

    __slots__ = ("_abandoned", "_commits", "_given_back")

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._abandoned = self._commits = self._given_back = False

    def execute(self, query: str, *arguments: Any, timeout: float | None = None) -> Coroutine[Any, Any, str]:
        """Run a statement; the transaction of an abandoned one is over by itself.

        A ROLLBACK that fails would hide from the task that it was cancelled, and it would go on.
        """
        if self._abandoned and query.startswith("ROLLBACK"):
            return _nothing()
        if query.startswith("COMMIT"):
            return self._commit(super().execute(query, timeout=timeout))
        return super().execute(query, *arguments, timeout=timeout)

    async def _commit(self, statement: Coroutine[Any, Any, str]) -> str:
        self._commits = True
        try:
            return await statement
        finally:
            # The driver has cancelled by now what it wants to cancel.
            self._commits = False

    def _on_release(self, stacklevel: int = 1) -> None:
        """It is given back to its pool, which looks at it in the next turn of the loop."""
        self._given_back = True
        super()._on_release(stacklevel + 1)

    async def _introspect_types(self, typeoids: Iterable[int], *limit: Any) -> Any:
        """What types such as arrays are made of: asked once, and not by the first sale of each connection."""
        wanted = frozenset(typeoids)
        if wanted in _types:
            return _types[wanted], _NOT_ASKED
        found, statement = await super()._introspect_types(wanted, *limit)
        if max(wanted) < OWN_TYPES_MAX:
            _types[wanted] = found
        return found, statement

    def _abort(self) -> None:
        """A statement between two of its messages still asks the protocol, which says that the connection is closed."""
        protocol = self._protocol
        super()._abort()
        self._protocol = protocol

    def _drop(self) -> None:
        # A pool that has not looked yet would find somebody else's connection, or none.
        if self._given_back:
            self._given_back = False
            self._loop.call_soon(self._drop)
        else:
            self.terminate()

    def _cancel_current_command(self, *_waiters: Any) -> None:
        """The statement under way was cancelled, or took too long."""
        self._abandoned = True
        # The protocol is not done with its own work when it says so.
        self._loop.call_soon(self._drop)
        if self._commits:
            return
        task = self._loop.create_task(
            _ask_to_stop(self._addr, self._params, self._protocol.backend_pid, self._protocol.backend_secret)
        )
        _cancels.add(task)
        task.add_done_callback(_cancels.discard)


class Connector:
    """Opens sessions at whichever host of an address serves; the last good one is asked first."""

    def __init__(self, url: str, limits: Limits | None, settings: Mapping[str, str] | None = None) -> None:
        """Without limits a session is left as it comes, to be looked at."""
        self._addresses = addresses_of(url)
        # Set by a statement and not when the session begins: a pooler between us would ignore what it does not know.
        wanted = {} if limits is None else limits.settings | _LINK | {"jit": "off"} | dict(settings or {})
        self._settings = "; ".join(f"SET {name} = '{value}'" for name, value in wanted.items())
        statement_s = HOST_S_MAX if limits is None else limits.statement_s
        self._command_s_max = statement_s + LATE_S if statement_s else None

    async def __call__(self, *_address: str, **options: Any) -> Session:
        """A new session, ready for statements."""
        options["command_timeout"] = self._command_s_max
        if len(self._addresses) == 1:
            return await self._open(self._addresses[0], CONNECT_S_MAX, options)
        if "target_session_attrs" not in self._addresses[0]:
            # A standby may answer sooner than the leader, and nothing can be sold there.
            options["target_session_attrs"] = "read-write"
        waiting = list(self._addresses)
        tried: dict[asyncio.Task[Session], str] = {}
        failures: list[BaseException] = []
        try:
            while waiting or tried:
                if waiting:
                    address = waiting.pop(0)
                    tried[asyncio.create_task(self._open(address, HOST_S_MAX, options))] = address
                answered, _ = await asyncio.wait(
                    tried, timeout=NEXT_HOST_S if waiting else None, return_when=asyncio.FIRST_COMPLETED
                )
                for task in answered:
                    address = tried.pop(task)
                    failure = task.exception()
                    if failure is None:
                        self._prefer(address)
                        return task.result()
                    failures.append(failure)
        finally:
            for task in tried:
                task.cancel()
                task.add_done_callback(_give_up)
        raise max(failures, key=_telling)

    async def _open(self, address: str, s_max: float, options: Mapping[str, Any]) -> Session:
        async with asyncio.timeout(s_max):
            session: Session = await asyncpg.connect(address, **options)
            try:
                _watch_link(session)
                if self._settings:
                    await session.execute(self._settings)
            except BaseException:
                session.terminate()
                raise
        return session

    def _prefer(self, address: str) -> None:
        if self._addresses[0] != address:
            self._addresses.remove(address)
            self._addresses.insert(0, address)


def _give_up(task: asyncio.Task[Session]) -> None:
    """Close the session of a host that answered after another one had."""
    if not task.cancelled() and task.exception() is None:
        task.result().terminate()


def _telling(failure: BaseException) -> int:
    """What tells an operator most: a server's own words, then that none may be written to, then silence."""
    kinds = (TimeoutError, OSError, asyncpg.InternalClientError, asyncpg.PostgresError)
    return max((at for at, kind in enumerate(kinds) if isinstance(failure, kind)), default=0)


def _watch_link(session: Session) -> None:
    """Let the system notice that the other end is gone; the driver has no option for it."""
    line = session._transport.get_extra_info("socket")  # type: ignore[attr-defined]
    if line is not None and line.family in (socket.AF_INET, socket.AF_INET6):
        for level, option, value in _OUR_LINK:
            line.setsockopt(level, option, value)


async def connect(
    url: str, limits: Limits | None, settings: Mapping[str, str] | None = None, *, name: str = "voucherd"
) -> Session:
    """One session, for work that needs no pool."""
    named = NAMED | {"application_name": name}
    return await Connector(url, limits, settings)(server_settings=named, connection_class=ServiceConnection)


NAMED: Final = {"application_name": "voucherd", "timezone": "UTC"}
"""These two every pooler hands on."""


class Address(NamedTuple):
    """The parts of an address. To `urlsplit` of newer Pythons, a list of hosts with an IPv6 address is none."""

    scheme: str
    user: str
    """With the password, as it is written."""
    hosts: str
    rest: str
    """Path and query."""

    @classmethod
    def read(cls, url: str) -> Address:
        """An address as libpq writes it."""
        scheme, _, behind = url.partition("://")
        place = _PLACE_END.split(behind, maxsplit=1)[0]
        user, _, hosts = place.rpartition("@")
        return cls(scheme, user, hosts, behind[len(place) :])


_PLACE_END: Final = re.compile("[/?#]")


def addresses_of(url: str) -> list[str]:
    """The same address for each of its hosts, in their order."""
    parts = Address.read(url)
    if parts.hosts:
        user = f"{parts.user}@" if parts.user else ""
        return [f"{parts.scheme}://{user}{host}{parts.rest}" for host in parts.hosts.split(",")]
    query = dict(parse_qsl(url.partition("?")[2], keep_blank_values=True))
    listed = query.pop("host", "").split(",")
    if listed == [""]:
        return [url]
    ports = query.pop("port", "").split(",")
    ports = ports if len(ports) == len(listed) else ports[:1] * len(listed)
    before = url.partition("?")[0]
    return [
        f"{before}?{urlencode(query | _place(host, port), quote_via=quote)}"
        for host, port in zip(listed, ports, strict=True)
    ]


def _place(host: str, port: str) -> dict[str, str]:
    return {"host": host} | ({"port": port} if port else {})


async def _nothing() -> str:
    return ""


async def _ask_to_stop(addr: Any, params: Any, pid: int, secret: int) -> None:
    try:
        async with asyncio.timeout(CANCEL_S_MAX):
            await connect_utils._cancel(  # type: ignore[attr-defined]
                loop=asyncio.get_running_loop(),
                addr=addr,
                params=params,
                backend_pid=pid,
                backend_secret=secret,
            )
    except OSError:
        # TimeoutError is one, too: the server is away, and so is the statement.
        return
