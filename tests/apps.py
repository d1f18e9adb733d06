"""Authenticator apps of people, set up without a page."""

from __future__ import annotations

import time
from typing import NamedTuple

from voucherd.db import Tx
from voucherd.people import second_factors, sessions, totp
from voucherd.people.second_factors import TextSealer
from voucherd.people.sessions import Browser


class App(NamedTuple):
    """The app of a person: its secret, the step of the code that was used, and the recovery codes."""

    secret: bytes
    step: int
    codes: list[str]


async def set_up(tx: Tx, sealer: TextSealer, user_id: int) -> App:
    """An app that this person has confirmed."""
    session = sessions.key_of(await sessions.begin(tx, user_id, Browser("127.0.0.1", "tests")))
    begun = await second_factors.begin_totp(tx, sealer, user_id, session)
    step = int(time.time()) // totp.STEP_S
    code = totp.code(begun.secret, step)
    codes = await second_factors.confirm_totp(tx, sealer, user_id, session, begun.word, code)
    assert codes is not None, "the code was right"
    return App(begun.secret, step, codes)
