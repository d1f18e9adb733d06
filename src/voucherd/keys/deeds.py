"""Deeds on keys: make, change, rotate, keep and revoke them (OP-29, OP-99, OP-100).

Nobody hands on more than he has: neither a key, nor a person, whose role says what a key of his may do; the operator
may hand on everything. Whoever acts is read again in the transaction, so a key that was revoked a moment ago makes no
successor, and what is handed on is measured by what may be done now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from voucherd import trail
from voucherd.actors import Actor, ActorKind
from voucherd.companies import store as company_store
from voucherd.db import Tx
from voucherd.events import kinds, log
from voucherd.ids import State
from voucherd.keys import store as key_store
from voucherd.keys.callers import Forbidden, Unauthorized
from voucherd.keys.grants import (
    KEYS_MAX,
    OWNER,
    BeyondOwn,
    changed_draft,
    new_draft,
    reach_of,
    require_within,
)
from voucherd.keys.key_text import KeyTerms, KeyWish, Scope, told
from voucherd.keys.model import Key, KeyNotFound, KeyNotUsable
from voucherd.people import user_store
from voucherd.people.roles import Right, rights_of


class TooManyKeys(Exception):
    """The company has as many keys in this state as it may have."""


class ExpiredAlready(Exception):
    """The key would have expired before it could be used."""

    def __init__(self) -> None:
        super().__init__("the key would have expired already")


class OwnersOnly(Forbidden):
    """Only an owner of the company, or the operator, does this to a key."""


@dataclass(frozen=True, slots=True)
class _Maker:
    """Who makes or changes keys, as it is now; the operator has no terms and hands on everything."""

    terms: KeyTerms | None = None
    key: Key | None = None
    person: int | None = None
    """The person who acts, or who answers for the key that acts."""
    decides: bool = True
    """Whether it may keep the keys of others, and let a key confirm alone."""


async def add(tx: Tx, actor: Actor, company_id: int, state: State, wish: KeyWish) -> tuple[Key, str]:
    """A new key and its text, which is not to be had again."""
    assert actor.company_id in {None, company_id}, "nobody makes keys of another company"
    maker = await _maker(tx, actor, company_id)
    _refuse_alone(maker, wish)
    draft = new_draft(maker.terms, wish)
    await _require_future(tx, draft.expires_at)
    await _require_room(tx, actor, company_id, state)
    parent_id = None if maker.key is None else maker.key.id
    issued = await key_store.add_key(tx, company_id, state, draft, made_by=maker.person, parent_id=parent_id)
    key = await key_store.find_by_id(tx, issued.id)
    await _record(tx, actor, "key.add", key, told(key.wish))
    return key, issued.text


async def change(tx: Tx, actor: Actor, key_id: int, wish: KeyWish) -> Key:
    """The key as it is from now on; a company does not bring one back that is over, or was replaced."""
    maker, before = await _within_reach(tx, actor, key_id)
    over = before.replaced_by is not None or await key_store.usable_key(tx, key_id) is None
    if over and actor.company_id is not None:
        raise KeyNotUsable(key_id)
    _refuse_alone(maker, wish)
    draft = changed_draft(maker.terms, before.draft, wish)
    await _refuse_ancestor(tx, maker, key_id)
    await _require_future(tx, wish.get("expires_at"))
    await key_store.change_key(tx, key_id, draft)
    key = await key_store.find_by_id(tx, key_id)
    await _record(tx, actor, "key.change", key, told(wish))
    return key


async def rotate(tx: Tx, actor: Actor, key_id: int, overlap: timedelta) -> tuple[Key, str]:
    """The key's successor and its text, which the event `key.rotated` tells (OP-54)."""
    maker, before = await _within_reach(tx, actor, key_id)
    if maker.terms is not None:
        # Whoever acts is shown the successor: that must not be a way to a stronger key.
        require_within(maker.terms, before.given)
    await _refuse_ancestor(tx, maker, key_id)
    await _require_room(tx, actor, before.company_id, before.state)
    # Who has seen the text answers for it, and takes it along when it goes.
    other = None if maker.key is None or maker.key.id == key_id else maker.key.id
    issued = await key_store.rotate_key(tx, key_id, overlap, made_by=maker.person, parent_id=other)
    key = await key_store.find_by_id(tx, issued.id)
    data = {"id": key_id, "replacedBy": key.id}
    await log.append(tx, kinds.KEY_ROTATED, company_id=key.company_id, state=key.state, data=data)
    detail = {"replaced_by": key.id, "overlap_seconds": int(overlap.total_seconds())}
    await _record(tx, actor, "key.rotate", before, detail)
    return key, issued.text


async def revoke(tx: Tx, actor: Actor, key_id: int, *, children_stay: bool = False) -> Key:
    """End the key's life now, the caller's own included, and that of the keys that were made with it.

    A person revokes every key of the company, so that nobody has to look for an owner while a key is abused.
    """
    maker, key = await _within_reach(tx, actor, key_id)
    if maker.key is not None and maker.key.id != key_id:
        require_within(maker.key, key.given)
        await _refuse_ancestor(tx, maker, key_id)
    if children_stay:
        await key_store.let_go_of_children(tx, key)
    children = await key_store.revoke_key(tx, key_id)
    detail = {"prefix": key.prefix} | ({"children": children} if children else {})
    await _record(tx, actor, "key.revoke", key, detail)
    return key


async def keep(tx: Tx, actor: Actor, key_id: int) -> Key:
    """Answer for a key that lost something with the person who made it, and for those that were made with it."""
    maker, before = await _within_reach(tx, actor, key_id)
    if not maker.decides:
        raise OwnersOnly
    await key_store.answer_for(tx, before, maker.person)
    key = await key_store.find_by_id(tx, key_id)
    await _record(tx, actor, "key.keep", key, {"scopes": sorted(key.scopes)})
    return key


async def _maker(tx: Tx, actor: Actor, company_id: int) -> _Maker:
    """Who acts, as it is now. One at a time for a company, and not while one of its people gains or loses a right."""
    await company_store.lock_company(tx, company_id)
    if actor.kind is ActorKind.KEY:
        assert actor.id is not None, "a key has a number"
        own = await key_store.usable_key(tx, actor.id)
        if own is None:
            raise Unauthorized(token_sent=True)
        if Scope.KEYS_WRITE not in own.scopes:
            raise Forbidden(Scope.KEYS_WRITE.value)
        return _Maker(own, own, own.made_by, decides=False)
    if actor.kind is ActorKind.PERSON:
        assert actor.id is not None, "a person has a number"
        role = await user_store.role_now(tx, actor.id)
        reach = reach_of(role)
        if Scope.KEYS_WRITE not in reach.scopes:
            raise Forbidden(Scope.KEYS_WRITE.value)
        return _Maker(reach, None, actor.id, decides=role == OWNER)
    if actor.kind is ActorKind.OPERATOR:
        assert actor.id is not None, "a person has a number"
        role = await user_store.role_now(tx, actor.id)
        if Right.COMPANIES_MANAGE not in rights_of(role, of_company=False):
            raise Forbidden(Right.COMPANIES_MANAGE.value)
    return _Maker()


async def _within_reach(tx: Tx, actor: Actor, key_id: int) -> tuple[_Maker, Key]:
    """Who acts, and on which key; nobody reaches another company's."""
    key = await _reached(tx, actor, key_id)
    maker = await _maker(tx, actor, key.company_id)
    # Read again, under the lock.
    return maker, await _reached(tx, actor, key_id)


async def _refuse_ancestor(tx: Tx, maker: _Maker, key_id: int) -> None:
    """Refuse a key to touch those that it was made with: they decide about it, not the other way round."""
    if maker.key is not None and await key_store.descends(tx, maker.key.id, key_id):
        raise BeyondOwn("id", "must not be a key that the calling key was made with")


def _refuse_alone(maker: _Maker, wish: KeyWish) -> None:
    """Refuse everybody but owners and the operator to let a key confirm alone (OP-101)."""
    if wish.get("confirms_alone") and not maker.decides:
        raise OwnersOnly


async def _reached(tx: Tx, actor: Actor, key_id: int) -> Key:
    """The key, if it is within the actor's company and state; the operator reaches all."""
    key = await key_store.find_by_id(tx, key_id)
    if actor.company_id is not None and (key.company_id, key.state) != (actor.company_id, actor.state):
        raise KeyNotFound(key_id)
    return key


async def _require_room(tx: Tx, actor: Actor, company_id: int, state: State) -> None:
    """Refuse a company one key too many; the operator may give it more."""
    if actor.company_id is not None and await key_store.count_usable(tx, company_id, state) >= KEYS_MAX:
        raise TooManyKeys


async def _require_future(tx: Tx, expires_at: datetime | None) -> None:
    if expires_at is not None and not await tx.fetchval("SELECT $1::timestamptz > now()", expires_at):
        raise ExpiredAlready


async def _record(tx: Tx, actor: Actor, action: str, key: Key, detail: Mapping[str, Any]) -> None:
    await trail.record(tx, actor, action, f"key {key.id}", detail, company_id=key.company_id, state=key.state)
