"""`voucherd-client`: live events at a program of yours (`listen`), and events of the sandbox on demand (`trigger`)."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Final

import httpx
import msgspec

from voucherd_client.client import Client
from voucherd_client.engine import VERSION
from voucherd_client.errors import VoucherdError
from voucherd_client.shapes.events import Event
from voucherd_client.signatures import secret_of, signature_headers
from voucherd_client.steps import decode

URL: Final = "VOUCHERD_URL"
KEY: Final = "VOUCHERD_KEY"
FORWARD_S_MAX: Final = 15.0
"""As long as the service itself waits for an endpoint."""
LIVE_PREFIX: Final = "vk_live_"
TRIGGERS: Final = (
    "order.created",
    "order.pending",
    "order.finished",
    "order.cancelled",
    "order.deleted",
    "order.expired",
    "wallet.topped_up",
    "wallet.low_balance",
)
"""What can happen on demand."""


class Refused(Exception):
    """The command can't be done; the text says why."""


def main(words: Sequence[str] | None = None) -> None:
    """Run a command; one line says what went wrong."""
    given = _parser().parse_args(words)
    try:
        if not given.url or not given.key:
            raise Refused(f"say where the service is and who you are: --url and --key, or {URL} and {KEY}")
        with Client(given.url, given.key, allow_http=given.allow_http) as client:
            given.run(client, given)
    except KeyboardInterrupt:
        _say("")
    except (VoucherdError, Refused, ValueError) as error:
        sys.stderr.write(f"voucherd-client: {error}\n")
        sys.exit(1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "voucherd-client", description="The client of voucherd on a command line."
    )
    parser.add_argument("--version", action="version", version=f"voucherd-client {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="listen|trigger")
    listen = commands.add_parser(
        "listen", help="print events as they happen, and hand them to a program of yours"
    )
    listen.add_argument("--forward", metavar="URL", help="where to send each event, signed as in production")
    listen.add_argument("--type", action="append", help="only events of this type; may be repeated")
    listen.add_argument(
        "--secret", help="what to sign with; one that goes with the key, and is printed, unless you say"
    )
    listen.set_defaults(run=_listen)
    trigger = commands.add_parser("trigger", help="let an event happen in the sandbox")
    trigger.add_argument("event", choices=TRIGGERS, help="the event that is to happen")
    trigger.add_argument("--product", metavar="SLUG", help="what to order; any product unless you say")
    trigger.set_defaults(run=_trigger)
    for command in (listen, trigger):
        command.add_argument("--url", default=os.environ.get(URL), help=f"address of the service ({URL})")
        command.add_argument("--key", default=os.environ.get(KEY), help=f"API key, better in {KEY}")
        command.add_argument("--allow-http", action="store_true", help="send the key unencrypted, too")
    return parser


def _say(line: str) -> None:
    # What others chose must not move the cursor of a terminal.
    sys.stdout.write("".join(c if c.isprintable() else "?" for c in line) + "\n")
    sys.stdout.flush()


# ── listen ────────────────────────────────────────────────────────────────────────────────────────────────


def _listen(client: Client, given: argparse.Namespace) -> None:
    """Print every event, and hand it on, until Ctrl-C."""
    # A process that a shell started in the background would not hear Ctrl-C's signal otherwise.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    secret = given.secret or secret_of(given.key)
    target = _target(given.forward)
    if target is not None:
        signature_headers(secret, "", b"")
        _say(f"Events go to {target}, signed with {secret}")
    _say("Listening; Ctrl-C stops it.")
    with httpx.Client(timeout=FORWARD_S_MAX) as http:
        for body in client.events.stream_bytes(type=given.type):
            event = decode(body, Event)
            outcome = "" if target is None else _forwarded(http, target, secret, event, body)
            data = msgspec.json.encode(event.data).decode()
            _say("  ".join(filter(None, (time.strftime("%H:%M:%S"), event.type, event.id, outcome, data))))


def _target(forward: str | None) -> str | None:
    """The address to send to; a host alone is one of http."""
    if forward is None or "://" in forward:
        return forward
    return f"http://{forward}"


def _forwarded(http: httpx.Client, target: str, secret: str, event: Event, body: bytes) -> str:
    """Send an event on as the service would; what came of it, in a word."""
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"voucherd-client/{VERSION}",
        **signature_headers(secret, event.id, body),
    }
    try:
        return str(http.post(target, content=body, headers=headers).status_code)
    except httpx.HTTPError as error:
        return f"not delivered: {error}"
    except httpx.InvalidURL as error:
        raise Refused(f"--forward: {error}") from None


# ── trigger ───────────────────────────────────────────────────────────────────────────────────────────────


def _trigger(client: Client, given: argparse.Namespace) -> None:
    """Have the service do what the event tells of."""
    if given.key.startswith(LIVE_PREFIX):
        raise Refused("trigger is for sandbox keys (vk_test_…): a live one would buy")
    told = client.sandbox.trigger(given.event, product_slug=given.product)
    _say("  ".join(filter(None, (told.type, told.trx))))
