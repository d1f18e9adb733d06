"""A receiver for a developer's machine: shows what comes in, and says whether its signature is right."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused, Output
from voucherd.companies import store as company_store
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.vault.seal import Sealer
from voucherd.webhooks import deeds, endpoints, signing
from voucherd.webhooks.endpoints import Draft
from voucherd.webhooks.signing import NotGenuine

HOST: Final = "127.0.0.1"
READ_S_MAX: Final = 30.0
BODY_BYTES_MAX: Final = 1024 * 1024
_DONE: Final = b"HTTP/1.1 204 No Content\r\n\r\n"
_REFUSED: Final = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class WebhookListener:
    """Takes requests, one after another on each connection."""

    def __init__(self) -> None:
        self.arrived: asyncio.Queue[tuple[dict[str, str], bytes]] = asyncio.Queue(1_000)
        self.port = 0
        self._server: asyncio.Server | None = None

    async def start(self, port: int) -> None:
        """Listen."""
        try:
            self._server = await asyncio.start_server(self._serve, HOST, port)
        except OSError as error:
            raise CommandRefused(f"can't listen on {HOST}:{port}: {error.strerror}") from None
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                async with asyncio.timeout(READ_S_MAX):
                    request = await _read(reader)
                if request is None:
                    writer.write(_REFUSED)
                    break
                await self.arrived.put(request)
                writer.write(_DONE)
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        except asyncio.CancelledError:
            pass  # The command ends, and this connection with it; to say so is nobody's business.
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> tuple[dict[str, str], bytes] | None:
    head = await reader.readuntil(b"\r\n\r\n")
    line, *rest = head.decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (one.partition(":") for one in rest)}
    length = headers.get("content-length", "0")
    if not line.startswith("POST ") or not length.isdigit() or int(length) > BODY_BYTES_MAX:
        return None
    return headers, await reader.readexactly(int(length))


@contextlib.asynccontextmanager
async def endpoint(
    context: CommandContext, company: str | None, state: State, port: int
) -> AsyncIterator[tuple[WebhookListener, list[str]]]:
    """A listener and, for a company, an endpoint that leads to it and is gone afterwards; with its secret."""
    listener = WebhookListener()
    await listener.start(port)
    try:
        if company is None:
            yield listener, []
            return
        url = f"http://{HOST}:{listener.port}/"
        async with context.pool() as pool:
            async with transaction(pool) as tx:
                sealer: Sealer = await context.sealer(tx)
                owner = await company_store.find_company(tx, company)
                draft = Draft(url, description="voucherd webhook listen")
                made, secret = await deeds.add(tx, context.actor, sealer, owner.id, state, draft)
            try:
                yield listener, [secret]
            finally:
                async with transaction(pool) as tx:
                    with contextlib.suppress(endpoints.EndpointNotFound):
                        await deeds.remove(tx, context.actor, made.id)
    finally:
        listener.stop()


async def listen(context: CommandContext, listener: WebhookListener, secrets: Sequence[str]) -> None:
    """Show what arrives until it is told to stop."""
    url = f"http://{HOST}:{listener.port}/"
    hint = f"A service sends here if its VOUCHERD_WEBHOOK_NETWORKS holds {HOST}/32; `voucherd demo` does."
    context.say(Output({"listening": url}, f"Listening on {url}; Ctrl-C stops it.\n{hint}\n"))
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            headers, body = await listener.arrived.get()
            context.say(_told(headers, body, secrets))


def _told(headers: dict[str, str], body: bytes, secrets: Sequence[str]) -> Output:
    verdict = _verdict(headers, body, secrets)
    message: Any = None
    with contextlib.suppress(ValueError):
        message = json.loads(body)
    kind = message.get("type") or message.get("event", "?") if isinstance(message, dict) else "not JSON"
    data = message.get("data") if isinstance(message, dict) else body.decode("utf-8", "replace")
    shown = json.dumps(data, ensure_ascii=True)
    view = f"{time.strftime('%H:%M:%S')}  {verdict}  {kind}  {headers.get('webhook-id', 'no id')}\n          {shown}"
    document = {"id": headers.get("webhook-id"), "verdict": verdict, "message": message}
    return Output(document, "".join(c if c.isprintable() or c == "\n" else "?" for c in view))


def _verdict(headers: dict[str, str], body: bytes, secrets: Sequence[str]) -> str:
    """Whether one of the secrets signed it."""
    if not secrets:
        return "unverified"
    given = [headers.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature")]
    for secret in secrets:
        with contextlib.suppress(NotGenuine):
            signing.verify(secret, given[0], given[1], given[2], body, now_s=time.time())
            return "verified"
    return "NOT GENUINE"
