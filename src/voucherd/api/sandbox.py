"""What an integrator does to the company's sandbox: its play money, its clock, and events that are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from voucherd.api import accounts, errors
from voucherd.api import sandbox_requests as requests
from voucherd.api.errors import ClockStuck, Op, SandboxOnly
from voucherd.api.handlers import Call
from voucherd.api.idempotent import write
from voucherd.api.wire import sandbox as wire
from voucherd.api.wire.templates import encode
from voucherd.db import tenant, transaction
from voucherd.events import kinds
from voucherd.http import JSON, Response
from voucherd.ids import State
from voucherd.money import Money
from voucherd.orders.ageing import TooManyOpen
from voucherd.orders.model import Order
from voucherd.orders.rules.cart import CartLine, Create
from voucherd.orders.rules.decide import Cancel, Finalise
from voucherd.orders.rules.refusals import BadInput, Refusal
from voucherd.orders.rules.sandbox import SandboxOutcome
from voucherd.sandbox import deeds, store
from voucherd.sandbox.deeds import BadStep
from voucherd.services import Services
from voucherd.storefront.listing import ProductFilters, ProductOrder
from voucherd.storefront.service import Shopper
from voucherd.wallet import deeds as wallet_deeds
from voucherd.wallet.deeds import BadPayment

CURRENCY: Final = wallet_deeds.FIRST_PLAY_MONEY.currency
_ONE: Final = Money.parse("1", CURRENCY)
_FINALISED: Final = {
    kinds.ORDER_PENDING: SandboxOutcome.PENDING,
    kinds.ORDER_FINISHED: SandboxOutcome.FINISHED,
    kinds.ORDER_CANCELLED: SandboxOutcome.CANCELLED,
}


async def top_up(services: Services, call: Call) -> Response:
    """Add play money."""
    money = requests.top_up(call.request)
    _require_sandbox(call)
    with _refusals():
        async with write(services, call) as work:
            balance = await wallet_deeds.top_up_play_money(work.tx, call.actor, call.caller.company, money)
            return await work.answered(Response(200, encode(accounts.account(balance)), JSON))


async def clock(services: Services, call: Call) -> Response:
    """The clock of the sandbox."""
    _require_sandbox(call)
    async with tenant(services.pool, call.caller.company_id, State.SANDBOX) as conn:
        shown = await store.read(conn, call.caller.company_id)
    return Response(200, encode(wire.clock(shown)), JSON)


async def advance(services: Services, call: Call) -> Response:
    """Move the clock ahead."""
    by = requests.advance(call.request)
    _require_sandbox(call)
    window = timedelta(seconds=services.settings.confirmation_window_s)
    with _refusals():
        async with write(services, call) as work:
            moved = await deeds.advance(work.tx, call.actor, call.caller.company_id, by, window)
            return await work.answered(Response(200, encode(wire.advanced(moved)), JSON))


async def reset(services: Services, call: Call) -> Response:
    """Let the clock show the real time again."""
    _require_sandbox(call)
    async with write(services, call) as work:
        shown = await deeds.reset(work.tx, call.actor, call.caller.company_id)
        return await work.answered(Response(200, encode(wire.clock(shown)), JSON))


async def trigger(services: Services, call: Call) -> Response:
    """Bring an event about, by doing what it tells of."""
    asked = requests.trigger(call.request)
    _require_sandbox(call)
    if asked.type in {kinds.WALLET_TOPPED_UP, kinds.WALLET_LOW_BALANCE}:
        with _refusals():
            async with write(services, call) as work:
                if asked.type == kinds.WALLET_TOPPED_UP:
                    await wallet_deeds.top_up_play_money(work.tx, call.actor, call.caller.company, _ONE)
                else:
                    await deeds.tell_low_balance(work.tx, call.actor, call.caller.company_id)
                return await work.answered(_triggered(asked.type, None))
    try:
        order = await _ordered(services, call, asked.type, asked.productSlug)
    except BadInput:
        raise
    except Refusal as refusal:
        return errors.refused(Op.CONFIRM, refusal, call.request)
    return _triggered(asked.type, services.ids.trx(order.id))


def _triggered(kind: str, trx: str | None) -> Response:
    return Response(202, encode(wire.TriggeredEvent(kind, trx)), JSON)


async def _ordered(services: Services, call: Call, kind: str, slug: str | None) -> Order:
    """A new order to which this has happened."""
    caller = call.caller
    cart = (CartLine(slug or await _some_product(services, call), 1),)
    create = Create(caller.company_id, caller.state, 0, cart, CURRENCY, f"trigger {kind}")
    order = (await services.orders.create(create)).order
    if kind in _FINALISED:
        await services.orders.confirm(
            Finalise(
                order.id,
                caller.company_id,
                caller.state,
                resolve=False,
                sandbox_outcome=_FINALISED[kind],
                limits=caller.limits,
                approve_from_eur_minor=caller.approve_from_eur_minor,
            )
        )
    elif kind == kinds.ORDER_DELETED:
        await services.orders.cancel(Cancel(order.id, caller.company_id, caller.state))
    elif kind == kinds.ORDER_EXPIRED:
        async with transaction(services.pool) as tx:
            await deeds.expire(tx, call.actor, caller.company_id, order.id, services.ids.trx(order.id))
    return order


async def _some_product(services: Services, call: Call) -> str:
    """The slug of a product whose face value is fixed, in our own currency if there is one."""
    visitor = Shopper(call.caller.company, call.caller.state)
    for currency in (CURRENCY, None):
        filters = ProductFilters(variable=False, currency=currency)
        found = await services.storefront.find_all(
            visitor, filters, ProductOrder(), size=1, skip=None, after=None
        )
        if found.products:
            return found.products[0].version.slug
    raise BadInput("productSlug", "is required: no product with a fixed face value is for sale")


def _require_sandbox(call: Call) -> None:
    """Refuse a live key: nothing here exists for it."""
    if call.caller.state is not State.SANDBOX:
        raise SandboxOnly


@contextmanager
def _refusals() -> Iterator[None]:
    """What is refused in here, as clients are told it."""
    try:
        yield
    except BadPayment as bad:
        raise BadInput(bad.field, bad.rule) from None
    except BadStep as bad:
        raise BadInput("seconds", str(bad)) from None
    except TooManyOpen:
        raise ClockStuck from None
