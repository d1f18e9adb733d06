"""Access in the database: keys and their rotation, companies, people."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.patience import HANG_S
from voucherd.actors import SYSTEM
from voucherd.companies import store as company_store
from voucherd.companies.model import Company, CompanyDraft, CompanyExists, CompanyNotFound
from voucherd.db import Pool, transaction
from voucherd.ids import State
from voucherd.keys import deeds as key_deeds
from voucherd.keys import store as key_store
from voucherd.keys.key_text import KeyDraft, KeyWish, Scope, read_networks
from voucherd.keys.store import IssuedKey, KeyNotFound, KeyNotUsable
from voucherd.people import user_store, users
from voucherd.people.users import UserDraft, UserExists


@pytest.fixture
async def company(pool: Pool) -> Company:
    """A company that buys."""
    async with transaction(pool) as tx:
        return await company_store.add_company(tx, CompanyDraft("Acme", "NL", verified=True))


async def issue(pool: Pool, company: Company, draft: KeyDraft | None = None) -> IssuedKey:
    """A key of this company."""
    async with transaction(pool) as tx:
        return await key_store.add_key(tx, company.id, State.LIVE, draft or KeyDraft())


async def test_rotation_leaves_the_old_key_valid_for_the_overlap(pool: Pool, company: Company) -> None:
    """OP-29: rotation leaves the old one valid for a chosen overlap; the new one may do the same."""
    draft = KeyDraft("till 3", frozenset({Scope.ORDERS_READ}), read_networks(["192.0.2.0/24"]), 7)
    old = await issue(pool, company, draft)

    async with transaction(pool) as tx:
        new = await key_store.rotate_key(tx, old.id, timedelta(hours=24))
        listed = await key_store.list_keys(tx, company.id)
        now = await tx.fetchval("SELECT now()")

    assert [key.id for key in listed] == [new.id, old.id]
    assert listed[1].replaced_by == new.id
    assert listed[1].expires_at == now + timedelta(hours=24)
    assert listed[0].expires_at is None
    assert listed[0].state is listed[1].state
    assert replace(listed[0].draft, expires_at=None) == replace(listed[1].draft, expires_at=None)
    with pytest.raises(KeyNotUsable):
        async with transaction(pool) as tx:
            await key_store.rotate_key(tx, old.id, timedelta())


async def test_rotation_never_gives_a_key_more_time_than_it_had(pool: Pool, company: Company) -> None:
    """OP-29: the overlap ends what lives on; it does not lengthen it."""
    soon = datetime.now(UTC) + timedelta(hours=1)
    old = await issue(pool, company, KeyDraft(expires_at=soon))

    async with transaction(pool) as tx:
        await key_store.rotate_key(tx, old.id, timedelta(hours=24))
        listed = await key_store.list_keys(tx, company.id)

    assert [key.expires_at for key in listed] == [soon, soon]


@pytest.mark.parametrize("overlap", [timedelta(seconds=-1), timedelta(days=91)])
async def test_an_overlap_has_bounds(pool: Pool, company: Company, overlap: timedelta) -> None:
    """An old key that lives for years was not rotated."""
    key = await issue(pool, company)

    with pytest.raises(ValueError, match="an overlap is between 0 and 90 days"):
        async with transaction(pool) as tx:
            await key_store.rotate_key(tx, key.id, overlap)


async def test_a_key_that_does_not_exist_or_has_ended_is_not_rotated(pool: Pool, company: Company) -> None:
    """Refusals carry facts."""
    revoked = await issue(pool, company)
    expired = await issue(pool, company, KeyDraft(expires_at=datetime.now(UTC) - timedelta(seconds=1)))
    async with transaction(pool) as tx:
        await key_store.revoke_key(tx, revoked.id)
        await key_store.revoke_key(tx, revoked.id)
        for key in (revoked, expired):
            with pytest.raises(KeyNotUsable):
                await key_store.rotate_key(tx, key.id, timedelta())
        for missing in (
            key_store.rotate_key(tx, 0, timedelta()),
            key_store.revoke_key(tx, 0),
            key_deeds.change(tx, SYSTEM, 0, KeyWish(allow_ips=())),
        ):
            with pytest.raises(KeyNotFound):
                await missing


async def test_only_a_hash_of_the_key_is_stored(pool: Pool, company: Company) -> None:
    """OP-29: shown once, stored as a hash."""
    key = await issue(pool, company)

    row = str(await pool.fetchrow("SELECT * FROM api_key"))

    assert key.text[len(key.prefix) :] not in row
    assert key.text not in repr(key)


async def test_last_use_does_not_wait_for_a_row_that_someone_holds(pool: Pool, company: Company) -> None:
    """Two processes that write the same keys down can't deadlock."""
    held, free = await issue(pool, company), await issue(pool, company)
    now = datetime.now(UTC)
    async with transaction(pool) as tx:
        await tx.execute("SELECT FROM api_key WHERE id = $1 FOR UPDATE", held.id)
        await asyncio.wait_for(key_store.record_last_use(pool, {held.id: now, free.id: now}), HANG_S)

    async with pool.acquire() as connection:
        listed = await key_store.list_keys(connection, company.id)
    assert [key.last_used_at for key in listed] == [now, None]


async def test_companies_are_added_changed_and_listed(pool: Pool, company: Company) -> None:
    """What is not said stays as it was; a name is taken once."""
    async with transaction(pool) as tx:
        changed = await company_store.set_company(tx, "Acme", expose_costs=False)
        other = await company_store.add_company(tx, CompanyDraft("Aaa", "DE", "DE123456789", active=False))
        assert await company_store.list_companies(tx) == [other, changed]
        assert await company_store.find_company(tx, "Acme") == changed
        with pytest.raises(CompanyExists):
            await company_store.add_company(tx, CompanyDraft("Acme", "NL"))
        with pytest.raises(CompanyNotFound):
            await company_store.set_company(tx, "Nobody", active=True)
        with pytest.raises(CompanyNotFound):
            await company_store.find_company(tx, "Nobody")

    assert (changed.active, changed.verified, changed.expose_costs) == (True, True, False)
    assert (other.country, other.vat_number, other.active, other.verified) == (
        "DE",
        "DE123456789",
        False,
        False,
    )


@pytest.mark.parametrize(
    "draft", [("", "NL", None), ("x" * 201, "NL", None), ("A", "nl", None), ("A", "NL", "1")]
)
def test_a_company_that_the_database_would_refuse_is_refused_in_words(
    draft: tuple[str, str, str | None],
) -> None:
    """One clear line instead of a database's error."""
    with pytest.raises(ValueError, match=r"company's name|is not a country|VAT number"):
        CompanyDraft(*draft)


async def test_a_password_opens_the_door_for_its_person_only(pool: Pool, company: Company) -> None:
    """Passwords are kept as argon2id."""
    password = "correct horse battery"
    stored = await users.hash_password(password, [])
    assert stored.startswith("$argon2id$")
    async with transaction(pool) as tx:
        buyer = await user_store.add_user(tx, UserDraft("Buyer@Example.com ", company.id, "buyer"), stored)
        with pytest.raises(UserExists):
            await user_store.add_user(tx, UserDraft("buyer@example.com", None, "admin"), stored)
        assert await user_store.list_users(tx, company.id) == [buyer]
        assert await user_store.list_users(tx, None) == []

    login = await user_store.find_login(pool, "BUYER@example.com")

    assert login is not None
    assert await users.verified(login, password) == buyer
    assert await users.verified(login, password + "!") is None
    assert await users.verified(None, password) is None
    assert not users.outdated(login)
    assert stored not in repr(login)
    assert await user_store.find_login(pool, "nobody@example.com") is None


async def test_a_password_can_be_replaced(pool: Pool) -> None:
    """`user reset-password`."""
    async with transaction(pool) as tx:
        admin = await user_store.add_user(tx, UserDraft("admin@example.com", None, "admin"), "nothing")
        login = await user_store.find_login(pool, "admin@example.com")
        assert login is None, "not before it is committed"
        await user_store.set_password(tx, admin.id, await users.hash_password("another password", []))

    login = await user_store.find_login(pool, "admin@example.com")
    assert await users.verified(login, "another password") == admin


@pytest.mark.parametrize("password", ["short", "x" * 257])
async def test_a_password_has_bounds(password: str) -> None:
    """Too short to be safe, or long enough to keep the server busy."""
    with pytest.raises(ValueError, match="a password has 12 to 256 characters"):
        await users.hash_password(password, [])


@pytest.mark.parametrize(
    ("email", "company_id", "role"),
    [
        ("nobody", 1, "buyer"),
        ("a@b.example", 1, "admin"),
        ("a@b.example", None, "owner"),
        ("@b.example", 1, "buyer"),
    ],
)
def test_a_person_that_the_database_would_refuse_is_refused_in_words(
    email: str, company_id: int | None, role: str
) -> None:
    """Roles of the operator are not roles of a company."""
    with pytest.raises(ValueError, match="is not"):
        UserDraft(email, company_id, role)
