"""What a key does with the keys of its company: make, change, rotate and revoke them (OP-29).

Each takes the caller's transaction. The calling key is read again in it, so one that was revoked a moment ago makes no
successor, and what it hands on is measured by what it may do now.
"""

from __future__ import annotations

from datetime import timedelta

from voucherd.db import Tx
from voucherd.keys import store as key_store
from voucherd.keys.callers import Caller, Unauthorized
from voucherd.keys.grants import KEYS_MAX, Wishes, changed_draft, new_draft, require_within
from voucherd.keys.model import Key, KeyNotUsable


class TooManyKeys(Exception):
    """The company has as many keys in this state as it may have."""


class ExpiredAlready(Exception):
    """The key would have expired before it could be used."""


async def add(tx: Tx, caller: Caller, wishes: Wishes) -> tuple[Key, str]:
    """A new key and its text, which is not to be had again."""
    own = await _own(tx, caller)
    draft = new_draft(own.draft, wishes)
    await _require_future(tx, draft.expires_at)
    await _require_room(tx, caller)
    issued = await key_store.add_key(tx, caller.company_id, caller.state, draft)
    return await _found(tx, caller, issued.id), issued.text


async def change(tx: Tx, caller: Caller, key_id: int, wishes: Wishes) -> Key:
    """The key as it is from now on; one that is over, or was replaced, is not brought back."""
    own = await _own(tx, caller)
    before = await _found(tx, caller, key_id)
    if before.replaced_by is not None or await key_store.usable_key(tx, key_id) is None:
        raise KeyNotUsable(key_id)
    draft = changed_draft(own.draft, before.draft, wishes)
    if wishes.expires_at == draft.expires_at:
        await _require_future(tx, draft.expires_at)
    await key_store.change_key(tx, key_id, draft)
    return await _found(tx, caller, key_id)


async def rotate(tx: Tx, caller: Caller, key_id: int, overlap: timedelta) -> tuple[Key, str]:
    """The key's successor and its text; a key that may do more than the caller has none for it."""
    own = await _own(tx, caller)
    before = await _found(tx, caller, key_id)
    # Whoever rotates a key gets to know its successor: that must not be a way to a stronger one.
    require_within(own.draft, before.draft)
    await _require_room(tx, caller)
    issued = await key_store.rotate_key(tx, key_id, overlap)
    return await _found(tx, caller, issued.id), issued.text


async def revoke(tx: Tx, caller: Caller, key_id: int) -> Key:
    """End the key's life now, the caller's own included; to revoke it again changes nothing."""
    await _own(tx, caller)
    await _found(tx, caller, key_id)
    await key_store.revoke_key(tx, key_id)
    return await _found(tx, caller, key_id)


async def _own(tx: Tx, caller: Caller) -> Key:
    await key_store.lock_keys(tx, caller.company_id)
    own = await key_store.usable_key(tx, caller.key_id)
    if own is None:
        raise Unauthorized(token_sent=True)
    return own


async def _found(tx: Tx, caller: Caller, key_id: int) -> Key:
    return await key_store.own_key(tx, key_id, caller.company_id, caller.state)


async def _require_room(tx: Tx, caller: Caller) -> None:
    if await key_store.count_usable(tx, caller.company_id, caller.state) >= KEYS_MAX:
        raise TooManyKeys


async def _require_future(tx: Tx, expires_at: object) -> None:
    if expires_at is not None and not await tx.fetchval("SELECT $1::timestamptz > now()", expires_at):
        raise ExpiredAlready
