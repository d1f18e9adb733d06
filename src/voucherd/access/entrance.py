"""The entrance: a password, then whatever else this person has to prove; each try is counted before it is looked at."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from voucherd.access import allowances, links, second_factors, store, throttle, users
from voucherd.access.allowances import Allowance, Devices
from voucherd.access.second_factors import Sealing
from voucherd.access.users import User
from voucherd.db import Pool, transaction

Tries: TypeAlias = dict[bytes, Allowance]


class Where(Struct, frozen=True):
    """Where a try comes from."""

    address: str
    device: str | None = None
    """The cookie of a device that signed in before, whatever it says."""


class Entrance:
    """Lets people in who prove who they are."""

    def __init__(self, pool: Pool, sealing: Sealing, devices: Devices) -> None:
        self._pool = pool
        self._sealing = sealing
        self._devices = devices

    async def password(self, email: str, password: str, where: Where) -> User | None:
        """The person with this address and password; refused while too many tries failed from there.

        It takes as long, and counts as much, for an address that is nobody's.
        """
        account = email.strip().lower()
        tries = self._tries(account, where)
        await throttle.take(self._pool, tries)
        try:
            login = await store.find_login(self._pool, account)
            user = await users.verified(login, password)
        except users.Busy:
            # Nobody looked at it.
            await throttle.forgive(self._pool, (), tries)
            raise
        if user is None or login is None:
            return None
        await throttle.forgive(
            self._pool,
            [key for key, allowance in tries.items() if allowance is not allowances.NETWORK],
            [key for key, allowance in tries.items() if allowance is allowances.NETWORK],
        )
        if users.outdated(login):
            await store.set_password(self._pool, user.id, await users.hash_password(password))
        return user

    async def second_factor(self, user_id: int, text: str) -> str | None:
        """How the person proved it, by a code of the app or a recovery code; None if the code is neither."""
        key = allowances.key_of(allowances.SECOND_FACTOR, str(user_id))
        await throttle.take(self._pool, {key: allowances.SECOND_FACTOR})
        async with transaction(self._pool) as tx:
            if await second_factors.use_totp(tx, self._sealing, user_id, text):
                used = "totp"
            elif await second_factors.use_recovery_code(tx, user_id, text):
                used = "recovery code"
            else:
                return None
        await throttle.forgive(self._pool, [key])
        return used

    async def forgotten(self, email: str, where: Where) -> None:
        """Note that somebody wants a new password; the same for every address, known or not."""
        network = allowances.network_of(where.address)
        key = allowances.key_of(allowances.RESET, network)
        await throttle.take(self._pool, {key: allowances.RESET})
        await links.request_reset(self._pool, email)

    def device(self, email: str) -> str:
        """The cookie for a device that has just signed in."""
        return self._devices.issue(email)

    def _tries(self, account: str, where: Where) -> Tries:
        device = self._devices.known(where.device, account)
        if device is not None:
            # What strangers do behind the same address is no concern of a device that is known.
            return {allowances.key_of(allowances.DEVICE, account, device): allowances.DEVICE}
        network = allowances.network_of(where.address)
        return {
            allowances.key_of(allowances.HERE, account, network): allowances.HERE,
            allowances.key_of(allowances.NETWORK, network): allowances.NETWORK,
        }
