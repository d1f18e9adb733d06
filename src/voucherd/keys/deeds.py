"""Deeds on keys: make, change, rotate and revoke them (OP-29).

A key never hands on more than it has itself; a company's people, and the operator, may hand on everything. The calling
key is read again in the transaction, so one that was revoked a moment ago makes no successor, and what it hands on is
measured by what it may do now.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from voucherd import trail
from voucherd.actors import Actor, ActorKind
from voucherd.db import Tx
from voucherd.events import kinds, log
from voucherd.ids import State
from voucherd.keys import store as key_store
from voucherd.keys.callers import Unauthorized
from voucherd.keys.grants import KEYS_MAX, changed_draft, new_draft, require_within
from voucherd.keys.key_text import KeyWish, told
from voucherd.keys.model import Key, KeyNotFound, KeyNotUsable


class TooManyKeys(Exception):
    """The company has as many keys in this state as it may have."""


class ExpiredAlready(Exception):
    """The key would have expired before it could be used."""

    def __init__(self) -> None:
        super().__init__("the key would have expired already")


async def add(tx: Tx, actor: Actor, company_id: int, state: State, wish: KeyWish) -> tuple[Key, str]:
    """A new key and its text, which is not to be had again."""
    assert actor.company_id in {None, company_id}, "nobody makes keys of another company"
    own = await _own(tx, actor)
    draft = new_draft(own, wish)
    await _require_future(tx, draft.expires_at)
    await _require_room(tx, actor, company_id, state)
    issued = await key_store.add_key(tx, company_id, state, draft)
    key = await key_store.find_by_id(tx, issued.id)
    await _record(tx, actor, "key.add", key, told(key.wish))
    return key, issued.text


async def change(tx: Tx, actor: Actor, key_id: int, wish: KeyWish) -> Key:
    """The key as it is from now on; a company does not bring one back that is over, or was replaced."""
    own = await _own(tx, actor)
    before = await _reached(tx, actor, key_id)
    over = before.replaced_by is not None or await key_store.usable_key(tx, key_id) is None
    if over and actor.company_id is not None:
        raise KeyNotUsable(key_id)
    draft = changed_draft(own, before.draft, wish)
    await _require_future(tx, wish.get("expires_at"))
    await key_store.change_key(tx, key_id, draft)
    key = await key_store.find_by_id(tx, key_id)
    await _record(tx, actor, "key.change", key, told(wish))
    return key


async def rotate(tx: Tx, actor: Actor, key_id: int, overlap: timedelta) -> tuple[Key, str]:
    """The key's successor and its text, which the event `key.rotated` tells (OP-54)."""
    own = await _own(tx, actor)
    before = await _reached(tx, actor, key_id)
    if own is not None:
        # The caller is shown the successor: that must not be a way to a stronger key.
        require_within(own, before)
    await _require_room(tx, actor, before.company_id, before.state)
    issued = await key_store.rotate_key(tx, key_id, overlap)
    key = await key_store.find_by_id(tx, issued.id)
    data = {"id": key_id, "replacedBy": key.id}
    await log.append(tx, kinds.KEY_ROTATED, company_id=key.company_id, state=key.state, data=data)
    detail = {"replaced_by": key.id, "overlap_seconds": int(overlap.total_seconds())}
    await _record(tx, actor, "key.rotate", before, detail)
    return key, issued.text


async def revoke(tx: Tx, actor: Actor, key_id: int) -> Key:
    """End the key's life now, the caller's own included; to revoke it again changes nothing."""
    await _own(tx, actor)
    key = await _reached(tx, actor, key_id)
    await key_store.revoke_key(tx, key_id)
    await _record(tx, actor, "key.revoke", key, {"prefix": key.prefix})
    return key


async def _own(tx: Tx, actor: Actor) -> Key | None:
    """The key that acts, as it is now; None for people, who may hand on everything. One at a time for a company."""
    if actor.company_id is not None:
        await key_store.lock_keys(tx, actor.company_id)
    if actor.kind is not ActorKind.KEY:
        return None
    assert actor.id is not None, "a key has a number"
    own = await key_store.usable_key(tx, actor.id)
    if own is None:
        raise Unauthorized(token_sent=True)
    return own


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
