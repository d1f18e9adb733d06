"""People: who signs in to the portal. Passwords are kept as argon2id, checked off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from voucherd import email_address
from voucherd.people import passwords

OPERATOR_ROLES: Final = frozenset({"admin", "support", "stock", "finance"})
COMPANY_ROLES: Final = frozenset({"owner", "buyer", "finance", "viewer", "developer"})
CHECKS_AT_ONCE_MAX: Final = 2
"""Each check takes 64 MiB and some 50 ms of a core: sign-ins wait for each other rather than for memory."""
CHECKS_WAITING_MAX: Final = 32
"""So many wait for their turn; the next one is told to come again, not left to wait for minutes."""

_hasher: Final = PasswordHasher()  # RFC 9106's second choice: 64 MiB, 3 passes, 4 lanes.
_checkers: Final = ThreadPoolExecutor(CHECKS_AT_ONCE_MAX, thread_name_prefix="password")
_turns: Final[set[object]] = set()
T = TypeVar("T")


class PasswordChecksBusy(Exception):
    """Too many passwords are being checked just now."""


class UserExists(ValueError):
    """There is a person with that address already."""

    def __init__(self, email: str) -> None:
        super().__init__(f"there is a user {email} already")
        self.email = email


@dataclass(frozen=True, slots=True)
class User:
    """A person; without a company one of the operator's own."""

    id: int
    email: str
    company_id: int | None
    role: str
    name: str = ""
    """Empty for who has told none."""


@dataclass(frozen=True, slots=True)
class Login:
    """A person and the hash of the password."""

    user: User
    password_hash: str | None = field(repr=False)
    """None: invited, and no password chosen yet."""


@dataclass(frozen=True, slots=True)
class UserDraft:
    """A person before it is stored; refuses what the database would refuse, in words."""

    email: str
    company_id: int | None
    role: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "email", email_address.read(self.email))
        roles = OPERATOR_ROLES if self.company_id is None else COMPANY_ROLES
        if self.role not in roles:
            whose = "the operator's people" if self.company_id is None else "a company's people"
            raise ValueError(f"{self.role!r} is not a role of {whose}: {', '.join(sorted(roles))}")


async def hash_password(password: str, known: Collection[str]) -> str:
    """What to store of a new password; refuses a weak one, also for what is known of the person."""
    passwords.refuse_weak(password, known)
    return await hash_again(password)


async def hash_again(password: str) -> str:
    """What to store of a password that was right and is stored with weaker parameters than today's."""
    return await _in_turn(_hasher.hash, password)


async def verified(login: Login | None, password: str) -> User | None:
    """The person, if the password is right. For an unknown person it takes as long as for a known one."""
    if len(password) > passwords.CHARACTERS_MAX:
        return None
    right = await _in_turn(_matches, login, password)
    return login.user if login is not None and right else None


def outdated(login: Login) -> bool:
    """Whether the password was stored with weaker parameters than today's and should be hashed again."""
    return login.password_hash is not None and _hasher.check_needs_rehash(login.password_hash)


async def _in_turn(work: Callable[..., T], *arguments: object) -> T:
    """What the work gives, off the event loop; refused while too many wait."""
    if len(_turns) >= CHECKS_AT_ONCE_MAX + CHECKS_WAITING_MAX:
        raise PasswordChecksBusy
    turn = asyncio.get_running_loop().run_in_executor(_checkers, work, *arguments)
    _turns.add(turn)
    try:
        return await turn
    finally:
        _turns.discard(turn)


def _matches(login: Login | None, password: str) -> bool:
    if login is None or login.password_hash is None:
        # The time must not tell which addresses exist.
        _hasher.hash(password)
        return False
    try:
        return _hasher.verify(login.password_hash, password)
    except (VerificationError, InvalidHashError):
        return False
