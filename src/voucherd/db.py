"""The database: a pool of connections, and the transactions of a use case and of a tenant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import asyncpg

from voucherd.connections import (
    LONG,
    NAMED,
    STATEMENT_S_MAX,
    Connector,
    Limits,
    ServiceConnection,
)

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]
    Pool: TypeAlias = asyncpg.Pool[asyncpg.Record]
else:
    Connection = asyncpg.Connection
    Pool = asyncpg.Pool

Tx: TypeAlias = Connection
"""A connection inside a transaction that its caller opened and will end."""

CLOSE_S_MAX: Final = 5.0
UNDO_S_MAX: Final = 1.0
"""A session that can't be asked to undo is dropped, and the server undoes what it left."""

UNAVAILABLE: Final = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # The driver lost its place, or no host may be written to.
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # It starts, shuts down, or a statement took too long.
    asyncpg.InsufficientResourcesError,  # It is out of connections, memory or disk.
    asyncpg.PostgresSystemError,  # It can't read or write a file.
    asyncpg.LockNotAvailableError,  # Somebody holds a lock for too long.
    asyncpg.IdleInTransactionSessionTimeoutError,  # We held one, and were thrown out.
    asyncpg.ReadOnlySQLTransactionError,  # It is a standby, or was told to take nothing.
)
"""The database is away, or was lost in the middle: nothing a client did."""


async def _keep(_connection: Any) -> None:
    """Nothing to reset: no code of ours leaves session state behind, and a reset is a round trip a call."""


LOOK_UPS: Final = {
    # Every statement of the service is a handful of index look-ups whatever its values are. Left to itself the server
    # plans the join that locks orders anew at each call (six times as long as running it), and reads whole tables
    # while they are small.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    # What a look-up reads is in memory. Where pages are taken to be far apart, the server gathers all rows of a list
    # and sorts them instead of following the index that has them in order.
    "random_page_cost": "1",
}


async def open_pool(
    url: str, *, size_max: int = 10, size_min: int = 1, look_ups: bool = False, limits: Limits = LONG
) -> Pool:
    """A pool of connections, each of which keeps its prepared statements; `look_ups` for the service's own."""
    connector: Any = Connector(url, limits, LOOK_UPS if look_ups else None)
    return await asyncpg.create_pool(
        url,
        connection_class=ServiceConnection,
        connect=connector,
        min_size=size_min,
        max_size=size_max,
        max_inactive_connection_lifetime=300,
        reset=_keep,
        server_settings=NAMED,
    )


async def close(pool: Pool) -> None:
    """Close a pool; connections that can't even say goodbye are dropped."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_S_MAX):
            await pool.close()
    pool.terminate()


def numbers(values: Iterable[int]) -> str:
    """An array of whole numbers as PostgreSQL reads it, for a parameter that is cast (`$1::text::bigint[]`).

    The driver looks twice at every element of a list before it encodes it; on the money path that was a third of the
    server's time.
    """
    return "{" + repr(list(values))[1:-1] + "}"


def sparse_numbers(values: Iterable[int | None]) -> str:
    """The same where some elements may be missing."""
    return numbers(values).replace("None", "NULL")  # type: ignore[arg-type]


def words(values: Iterable[str]) -> str:
    """An array of plain words: nothing in them needs a quote."""
    return "{" + ",".join(values) + "}"


@asynccontextmanager
async def transaction(pool: Pool) -> AsyncIterator[Tx]:
    """One use case, one transaction: committed when the block ends, undone when it raises."""
    async with pool.acquire() as connection, within(connection) as tx:
        yield tx


class Undone(Exception):
    """A batch failed before its COMMIT was sent, so nothing of it is stored; the cause tells why."""


class OutcomeUnknown(Exception):
    """COMMIT was sent and its answer did not come: the batch is stored or not, and a look at its orders tells."""


@contextmanager
def nothing_stored() -> Iterator[None]:
    """A part of a batch before it stores anything: an error in it comes out as `Undone`."""
    try:
        yield
    except Exception as error:
        raise Undone from error


@asynccontextmanager
async def within(
    connection: Connection, *, of_a_batch: bool = False, s_max: float = STATEMENT_S_MAX
) -> AsyncIterator[Tx]:
    """The same on a connection that is used afterwards, too; a batch has `s_max`, and hears that it is `Undone`."""
    if not of_a_batch:
        async with connection.transaction():
            yield connection
        return
    try:
        with TimeLimit(connection, s_max), kept_if_writable(connection):
            # A process that is cut off can't end its statement, which may wait for one lock after another, each for as
            # long as `lock_timeout` allows. So the server ends it. Both in one message: that costs no round trip.
            await connection.execute(f"BEGIN; SET LOCAL statement_timeout = {s_max * 1000:.0f};")
            yield connection
    except BaseException as error:
        await _undo(connection)
        if isinstance(error, Exception):
            raise Undone from error
        raise
    try:
        # Its time is over with the batch's: from here on only the server ends the transaction, and keeps no lock.
        await connection.execute("COMMIT;")
    except (asyncio.CancelledError, *UNAVAILABLE) as error:
        raise OutcomeUnknown from error


async def _undo(connection: Connection) -> None:
    try:
        async with asyncio.timeout(UNDO_S_MAX):
            await connection.execute("ROLLBACK;")
    except (*UNAVAILABLE, asyncpg.PostgresError):
        _drop(connection)


class TimeLimit:
    """Drops a connection whose work takes longer; whoever waits for an answer there hears so at once."""

    __slots__ = ("_connection", "_s_max", "_timer")

    def __init__(self, connection: Connection, s_max: float) -> None:
        self._connection = connection
        self._s_max = s_max

    def __enter__(self) -> None:
        # A plain timer: asyncio's own way, which cancels the task, costs every sale several times as much.
        self._timer = asyncio.get_running_loop().call_later(self._s_max, _drop, self._connection)

    def __exit__(self, *_error: object) -> None:
        self._timer.cancel()


@contextmanager
def kept_if_writable(connection: Connection) -> Iterator[None]:
    """Drops a connection whose server takes nothing, such as a standby: another host may."""
    try:
        yield
    except asyncpg.ReadOnlySQLTransactionError:
        _drop(connection)
        raise


def _drop(connection: Connection) -> None:
    with suppress(asyncpg.InterfaceError):  # It is gone already.
        connection.terminate()


async def take_long(tx: Tx) -> None:
    """Let the rest of this transaction take its time: it holds no row that a sale wants."""
    await tx.execute(
        "SELECT set_config('statement_timeout', $1, true),"
        " set_config('idle_in_transaction_session_timeout', $2, true)",
        f"{LONG.statement_s:.0f}s",
        f"{LONG.idle_s:.0f}s",
    )


TENANTS_NOT_LOCKED: Final = (
    "the role voucherd_tenant is missing, so row-level security does not stand behind the queries: "
    "let a superuser create it, grant it to this user, and run `voucherd migrate`"
)

TABLES_OWNED: Final = (
    "the service owns its tables, so whoever has its password can switch the guards of the books off: let it use the "
    "role voucherd_service, and give the owner's address to `voucherd migrate` as VOUCHERD_MIGRATION_URL"
)

_BECOME: Final = (
    "SELECT set_config('voucherd.company', $1, true), set_config('voucherd.state', $2, true),"
    " set_config('role', tenant_role(), true)"
)


@asynccontextmanager
async def as_tenant(
    connection: Connection, company_id: int, state: int, *, snapshot: bool = False
) -> AsyncIterator[Connection]:
    """A transaction that sees this company's rows in this state and no others, and can change nothing.

    All of it ends with the transaction: a connection never goes back to its pool as a tenant.
    """
    assert not connection.is_in_transaction(), "it would stay a tenant until that one ends"
    isolation: Literal["repeatable_read"] | None = "repeatable_read" if snapshot else None
    async with connection.transaction(isolation=isolation, readonly=True):
        await become_tenant(connection, company_id, state)
        yield connection


async def become_tenant(tx: Tx, company_id: int, state: int) -> None:
    """See no other company's rows for the rest of the transaction.

    Under a policy the planner leads with such conditions only as can tell nobody anything, so a search by an expression
    becomes a walk. Such a search runs before this, for the places alone, and the rows there are read afterwards.
    """
    await tx.execute(_BECOME, str(company_id), str(int(state)))


@asynccontextmanager
async def tenant(pool: Pool, company_id: int, state: int) -> AsyncIterator[Connection]:
    """A connection for reads that serve one company; row-level security is the second lock."""
    async with pool.acquire() as connection, as_tenant(connection, company_id, state):
        yield connection


async def tenants_locked(connection: Connection) -> bool:
    """Whether row-level security stands behind the conditions of the queries."""
    return bool(await connection.fetchval("SELECT tenant_role() <> 'none'"))


async def owns_tables(connection: Connection) -> bool:
    """Whether this user could alter the tables and switch off what guards them."""
    return bool(
        await connection.fetchval(
            "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'entry'::regclass"
        )
    )
