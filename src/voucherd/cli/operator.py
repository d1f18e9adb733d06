"""Who sits at the command line."""

from __future__ import annotations

import os
import pwd
import socket

from voucherd.actors import Actor, ActorKind


def operator() -> Actor:
    """Who sits at the command line, as the system knows him; the environment could tell anything."""
    number = os.getuid()
    return Actor(ActorKind.COMMAND, f"{_account(number)}@{socket.gethostname()}", number)


def _account(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
