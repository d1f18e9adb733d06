"""The database: a pool of connections, and the transactions of a use case and of a tenant."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import asyncpg

from voucherd.connection import ServiceConnection

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]
    Pool: TypeAlias = asyncpg.Pool[asyncpg.Record]
else:
    Connection = asyncpg.Connection
    Pool = asyncpg.Pool

Tx: TypeAlias = Connection
"""A connection inside a transaction that its caller opened and will end."""

CONNECT_S_MAX: Final = 10.0
COMMAND_S_MAX: Final = 60.0
UNAVAILABLE: Final = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # It starts, shuts down, or was told to stop this query.
    asyncpg.InsufficientResourcesError,  # It is out of connections, memory or disk.
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


async def open_pool(url: str, *, size_max: int = 10, size_min: int = 1, look_ups: bool = False) -> Pool:
    """A pool of connections, each of which keeps its prepared statements; `look_ups` for the service's own."""
    return await asyncpg.create_pool(
        url,
        min_size=size_min,
        max_size=size_max,
        timeout=CONNECT_S_MAX,
        command_timeout=COMMAND_S_MAX,
        max_inactive_connection_lifetime=300,
        reset=_keep,
        connection_class=ServiceConnection,
        server_settings={"application_name": "voucherd", "timezone": "UTC", "jit": "off"}
        | (LOOK_UPS if look_ups else {}),
    )


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


@contextmanager
def nothing_stored() -> Iterator[None]:
    """A part of a batch before it stores anything: an error in it comes out as `Undone`."""
    try:
        yield
    except Exception as error:
        raise Undone from error


@asynccontextmanager
async def within(connection: Connection, *, of_a_batch: bool = False) -> AsyncIterator[Tx]:
    """The same on a connection that goes on to be used afterwards; a batch hears that it is `Undone`."""
    committing = False
    try:
        async with connection.transaction():
            yield connection
            committing = True
    except Exception as error:
        if of_a_batch and not committing:
            raise Undone from error
        raise


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
