"""A company that moves to another cell: the file that goes along with it (OP-133).

The file has the company's terms and its keys as hashes, so clients keep their keys, and nobody can use the file as one.
Money does not go this way: it leaves one ledger and enters the other as a payment in each.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from voucherd import trail
from voucherd.actors import Actor
from voucherd.companies import deeds as company_deeds
from voucherd.companies import store as company_store
from voucherd.companies.model import Company, CompanyDraft, CompanyNotFound, Policy
from voucherd.db import Connection, Tx
from voucherd.keys import store as key_store
from voucherd.keys.key_text import KeyDraft, Scope, read_networks, state_of
from voucherd.keys.model import KeyNotUsable
from voucherd.people import policy

FORMAT: Final = "voucherd company 1"
FILE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Room for 20,000 keys; a file is read as a whole."""


class BadCompanyFile(ValueError):
    """The file is not one that `company export` wrote; the text says where."""


class CompanyActive(ValueError):
    """The company sells in this cell already, so nobody moves in over it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} is active here: a company is active in one cell alone")


class KeyTaken(ValueError):
    """A key of the file is revoked here, or belongs to another company."""

    def __init__(self, known_by: str) -> None:
        super().__init__(f"the key with the hash {known_by[:12]}… is revoked here, or another company's")


class MovingKey(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A key as it goes from cell to cell: what it may do, and the hash by which it is known."""

    hash: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    prefix: Annotated[str, Meta(pattern="^vk_(live|test)_[0-9A-Za-z]{6}$")]
    made_with: str | None
    """The hash of the key that it was made with."""
    description: str
    scopes: frozenset[Scope]
    allow_ips: tuple[str, ...]
    rate_limit: int
    expires_at: Annotated[datetime, Meta(tz=True)] | None
    spend_order_eur_minor: Annotated[int, Meta(gt=0)] | None
    spend_day_eur_minor: Annotated[int, Meta(gt=0)] | None
    confirms_alone: bool

    def __post_init__(self) -> None:
        self.draft()

    def draft(self) -> KeyDraft:
        """The key before it is stored; refuses bad values in words."""
        return KeyDraft(
            description=self.description,
            scopes=self.scopes,
            allow_ips=read_networks(self.allow_ips),
            rate_limit=self.rate_limit,
            expires_at=self.expires_at,
            spend_order_eur_minor=self.spend_order_eur_minor,
            spend_day_eur_minor=self.spend_day_eur_minor,
            confirms_alone=self.confirms_alone,
        )


class CompanyFile(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A company as it goes from cell to cell."""

    format: Literal["voucherd company 1"]
    name: str
    country: str
    vat_number: str | None
    verified: bool
    expose_costs: bool
    spend_order_eur_minor: Annotated[int, Meta(gt=0)] | None
    spend_day_eur_minor: Annotated[int, Meta(gt=0)] | None
    second_factor: bool
    approve_from_eur_minor: Annotated[int, Meta(gt=0)] | None
    keys: tuple[MovingKey, ...]

    def __post_init__(self) -> None:
        self.draft()

    def draft(self) -> CompanyDraft:
        """The company before it is stored: it may not order yet; refuses bad values in words."""
        terms = {"verified": self.verified, "expose_costs": self.expose_costs}
        return CompanyDraft(self.name, self.country, self.vat_number, active=False, **terms)


@dataclass(frozen=True, slots=True)
class MovedIn:
    """What an import did."""

    company: Company
    new: bool
    keys: int
    ended: int
    """Keys of the company that are not in the file: they were revoked in the other cell."""


def read_file(content: bytes) -> CompanyFile:
    """The file; refuses one that is not whole, or says what no company or key can be."""
    try:
        file = msgspec.json.decode(content, type=CompanyFile)
    except (msgspec.MsgspecError, ValueError) as wrong:
        raise BadCompanyFile(f"this is no file of `voucherd company export`: {wrong}") from None
    known = {key.hash: key.prefix for key in file.keys}
    if len(known) < len(file.keys) or any(
        key.made_with is not None and known.get(key.made_with, "")[:8] != key.prefix[:8] for key in file.keys
    ):
        raise BadCompanyFile("the file has a key twice, or one that was made with a key that is not in it")
    _parents_first(file.keys)
    return file


async def file_of(connection: Connection, name: str) -> CompanyFile:
    """The company and its keys that can be used, each as far as it reaches now."""
    company = await company_store.find_company(connection, name)
    asked = await company_store.policy(connection, company.id)
    # In this order: a key that is made in between is in neither, and comes with the next export.
    hashes = {one.id: one.hash.hex() for one in await key_store.usable_hashes(connection, company.id)}
    keys = {key.id: key for key in await key_store.list_keys(connection, company.id)}
    moving = []
    for number, known_by in hashes.items():
        key = keys[number]
        if key.parent_id is not None and key.parent_id not in hashes:
            raise KeyNotUsable(key.parent_id)
        moving.append(
            MovingKey(
                known_by,
                key.prefix,
                None if key.parent_id is None else hashes[key.parent_id],
                key.description,
                key.scopes,
                tuple(map(str, key.allow_ips)),
                key.rate_limit,
                key.expires_at,
                key.spend_order_eur_minor,
                key.spend_day_eur_minor,
                key.confirms_alone,
            )
        )
    return CompanyFile(
        FORMAT,
        company.name,
        company.country,
        company.vat_number,
        company.verified,
        company.expose_costs,
        company.spend_order_eur_minor,
        company.spend_day_eur_minor,
        asked.second_factor,
        asked.approve_from_eur_minor,
        tuple(moving),
    )


async def move_in(tx: Tx, actor: Actor, file: CompanyFile) -> MovedIn:
    """Let the company be here, inactive, with the keys of the file and no others; refused while it is active here."""
    try:
        company, new = await company_store.find_company(tx, file.name), False
    except CompanyNotFound:
        company, new = await _added(tx, actor, file), True
    await company_store.lock_company(tx, company.id)
    # Read again, under the lock: somebody may have let it order a moment ago.
    company = await company_store.find_company(tx, file.name)
    if company.active:
        raise CompanyActive(company.name)
    numbers: dict[str, int] = {}
    for key in _parents_first(file.keys):
        parent_id = None if key.made_with is None else numbers[key.made_with]
        number = await key_store.put_key(
            tx, company.id, state_of(key.prefix), key.prefix, bytes.fromhex(key.hash), key.draft(), parent_id
        )
        if number is None:
            raise KeyTaken(key.hash)
        numbers[key.hash] = number
    ended = await key_store.revoke_all_but(tx, company.id, list(numbers.values()))
    detail = {"keys": sorted(key.prefix for key in file.keys), "ended": ended}
    await trail.record(tx, actor, "company.import", f"company {company.name}", detail, company_id=company.id)
    return MovedIn(company, new, len(numbers), len(ended))


async def _added(tx: Tx, actor: Actor, file: CompanyFile) -> Company:
    company = await company_deeds.add(tx, actor, file.draft(), moved=True)
    if file.spend_order_eur_minor is not None or file.spend_day_eur_minor is not None:
        limits = {"order_eur_minor": file.spend_order_eur_minor, "day_eur_minor": file.spend_day_eur_minor}
        company = await company_deeds.limit(tx, actor, company.name, **limits)
    asked = Policy(file.second_factor, file.approve_from_eur_minor)
    if asked != Policy():
        await policy.set_policy(tx, actor, company, asked)
    return company


def _parents_first(keys: tuple[MovingKey, ...]) -> list[MovingKey]:
    """The keys in such an order that each comes after the one that it was made with."""
    placed: dict[str, MovingKey] = {}
    while len(placed) < len(keys):
        ready = [
            key
            for key in keys
            if key.hash not in placed and (key.made_with is None or key.made_with in placed)
        ]
        if not ready:
            raise BadCompanyFile("the file has keys that were made with one another")
        placed |= {key.hash: key for key in ready}
    return list(placed.values())
