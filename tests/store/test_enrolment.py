"""Setting an authenticator app up: its secret is fresh, lives for minutes, and ends with session and password."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import pytest

from tests.apps import set_up
from tests.mailed import mailed
from voucherd.actors import Actor, ActorKind
from voucherd.db import Pool, Tx, transaction
from voucherd.people import account, deeds, members, second_factors, sessions, totp, user_store
from voucherd.people.links import LinkKind
from voucherd.people.second_factors import ENROLMENT_S, Enrolment
from voucherd.people.sessions import Browser
from voucherd.people.sign_in import Origin
from voucherd.people.users import User, UserDraft
from voucherd.vault.seal import Sealer

HERE = Browser("127.0.0.1", "tests")
COMMAND = Actor(ActorKind.COMMAND, "operator")


class Enrolling:
    """Somebody who is signed in and has the square on the page."""

    def __init__(self, pool: Pool, sealer: Sealer, user: User, token: str) -> None:
        self.pool, self.sealer, self.user, self.token = pool, sealer, user, token
        self.key = sessions.key_of(token)
        self.actor = Actor(ActorKind.OPERATOR, user.email, user.id)

    async def begin(self) -> Enrolment:
        """What the page shows."""
        return await second_factors.begin_totp(self.pool, self.sealer, self.user.id, self.key)

    async def confirm(self, begun: Enrolment, key: bytes | None = None) -> bool:
        """Whether the app's first code is taken."""
        code = totp.code(begun.secret, int(time.time()) // totp.STEP_S)
        async with transaction(self.pool) as tx:
            session = key or self.key
            made = await second_factors.confirm_totp(tx, self.sealer, self.user.id, session, begun.word, code)
        return made is not None


@pytest.fixture
async def ann(pool: Pool, master: bytes) -> Enrolling:
    """An admin in her browser."""
    async with transaction(pool) as tx:
        await user_store.add_user(tx, UserDraft("bob@shop.example", None, "admin"), "x")
        user = await user_store.add_user(tx, UserDraft("ann@shop.example", None, "admin"), "x")
        token = await sessions.begin(tx, user.id, HERE)
    return Enrolling(pool, Sealer(master), user, token)


async def test_every_try_has_a_secret_of_its_own_that_is_kept_nowhere(ann: Enrolling) -> None:
    """OP-92: what somebody saw once, who knew the password then, is nobody's second factor later."""
    seen = [await ann.begin() for _ in range(3)]
    assert len({one.secret for one in seen}) == 3
    assert await ann.pool.fetchval("SELECT count(*) FROM totp") == 0
    async with transaction(ann.pool) as tx:
        elsewhere = sessions.key_of(await sessions.begin(tx, ann.user.id, HERE))
    assert not await ann.confirm(seen[0], elsewhere)
    assert not await ann.confirm(Enrolment(seen[0].secret, "00" * 60))
    assert not await ann.confirm(Enrolment(seen[0].secret, "no word at all"))
    assert await ann.confirm(seen[2])
    # There is one app: another one that was begun before is too late.
    assert not await ann.confirm(seen[1])


async def test_a_square_is_good_for_minutes(ann: Enrolling, monkeypatch: pytest.MonkeyPatch) -> None:
    """OP-92: the database's clock decides."""
    begun = await ann.begin()
    later = f"extract(epoch FROM clock_timestamp())::bigint + {ENROLMENT_S}"
    with monkeypatch.context() as patch:
        patch.setattr(second_factors, "_NOW_S", later)
        assert not await ann.confirm(begun)
    assert await ann.confirm(begun)


async def _change(tx: Tx, ann: Enrolling) -> None:
    found = await sessions.find(ann.pool, ann.token)
    assert found is not None
    await account.change_password(tx, ann.actor, "another", found)


async def _reset_by_link(tx: Tx, ann: Enrolling) -> None:
    token = await mailed(tx, ann.user.id, LinkKind.RESET)
    assert await account.choose_password(tx, token, LinkKind.RESET, "another", Origin(HERE))


async def _sign_out(tx: Tx, ann: Enrolling) -> None:
    await sessions.end(tx, ann.key)


async def _reset_password(tx: Tx, ann: Enrolling) -> None:
    await deeds.reset_password(tx, COMMAND, ann.user, "another")


async def _reset_factor(tx: Tx, ann: Enrolling) -> None:
    await deeds.reset_second_factor(tx, COMMAND, await members.member(tx, ann.user.id, None))


async def _deactivate(tx: Tx, ann: Enrolling) -> None:
    await deeds.deactivate(tx, COMMAND, await members.member(tx, ann.user.id, None))


ENDS = (_change, _reset_by_link, _sign_out, _reset_password, _reset_factor, _deactivate)


@pytest.mark.parametrize("end", ENDS, ids=lambda one: one.__name__.strip("_"))
async def test_another_password_a_sign_out_and_a_reset_void_the_square(
    ann: Enrolling, end: Callable[[Tx, Enrolling], Awaitable[None]]
) -> None:
    """OP-92: whoever had the square before has nothing afterwards, even where the session goes on."""
    begun = await ann.begin()
    async with transaction(ann.pool) as tx:
        await end(tx, ann)
    assert not await ann.confirm(begun)
    assert await ann.pool.fetchval("SELECT count(*) FROM totp") == 0


async def test_a_secret_that_an_older_program_left_unconfirmed_counts_for_nothing(ann: Enrolling) -> None:
    """OP-92: the row makes way for the app that is really set up."""
    old = ann.sealer.seal_bytes(second_factors.totp_place(ann.user.id), b"o" * 20)
    await ann.pool.execute("INSERT INTO totp (user_id, secret) VALUES ($1, $2)", ann.user.id, old)
    async with transaction(ann.pool) as tx:
        app = await set_up(tx, ann.sealer, ann.user.id)
    assert app.secret != b"o" * 20
    following = totp.code(app.secret, app.step + 1)
    assert await second_factors.use_totp(ann.pool, ann.sealer, ann.user.id, following)
