"""What a company's people do with its keys: make, rotate and revoke them (OP-29). A person may hand on everything."""

from __future__ import annotations

from datetime import timedelta

from voucherd.db import Tx
from voucherd.ids import State
from voucherd.keys import store as key_store
from voucherd.keys.deeds import ExpiredAlready, TooManyKeys
from voucherd.keys.grants import KEYS_MAX
from voucherd.keys.key_text import KeyDraft
from voucherd.keys.store import IssuedKey


async def issue(tx: Tx, company_id: int, state: State, draft: KeyDraft) -> IssuedKey:
    """A new key and its text, which is not to be had again."""
    await _require_room(tx, company_id, state)
    if draft.expires_at is not None and not await tx.fetchval(
        "SELECT $1::timestamptz > now()", draft.expires_at
    ):
        raise ExpiredAlready
    return await key_store.add_key(tx, company_id, state, draft)


async def rotate(tx: Tx, company_id: int, state: State, key_id: int, overlap: timedelta) -> IssuedKey:
    """The key's successor and its text."""
    await _require_room(tx, company_id, state)
    await key_store.own_key(tx, key_id, company_id, state)
    return await key_store.rotate_key(tx, key_id, overlap)


async def revoke(tx: Tx, company_id: int, state: State, key_id: int) -> None:
    """End the key's life now; to revoke it again changes nothing."""
    await key_store.own_key(tx, key_id, company_id, state)
    await key_store.revoke_key(tx, key_id)


async def _require_room(tx: Tx, company_id: int, state: State) -> None:
    await key_store.lock_keys(tx, company_id)
    if await key_store.count_usable(tx, company_id, state) >= KEYS_MAX:
        raise TooManyKeys
