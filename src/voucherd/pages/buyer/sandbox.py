"""The company's sandbox: play money and the test clock. It is the same whichever of live and sandbox the pages show."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from babel.units import format_unit

from voucherd.db import tenant
from voucherd.http import HttpError, Response
from voucherd.ids import State
from voucherd.money import DIGITS, BadAmount, Money
from voucherd.orders.ageing import OPEN_MAX, TooManyOpen
from voucherd.pages.render import render
from voucherd.pages.visit import Visit
from voucherd.sandbox import deeds, store
from voucherd.sandbox.deeds import AHEAD_MAX, BadStep
from voucherd.wallet.deeds import FIRST_PLAY_MONEY, PLAY_MONEY_MAX, BadPayment, top_up_play_money
from voucherd.words import Words, phrase

PATH: Final = "/portal/sandbox"
STEPS: Final = {
    "60": phrase("one minute"),
    "3600": phrase("one hour"),
    "86400": phrase("one day"),
    "259200": phrase("three days"),
    "604800": phrase("one week"),
}
"""How far the clock can be moved with one choice, in seconds."""


async def page(visit: Visit) -> Response:
    """What there is to play with."""
    found = await visit.services.statements.balances(visit.company_id, State.SANDBOX)
    async with tenant(visit.pool, visit.company_id, State.SANDBOX) as conn:
        clock = await store.read(conn, visit.company_id)
    return render(
        "buyer/sandbox.html",
        visit,
        clock=clock,
        ahead=_ahead(visit.words, clock.ahead),
        balances=[Money(one.balance_minor, one.currency) for one in found],
        steps=[(seconds, visit.words.text(text)) for seconds, text in STEPS.items()],
        currencies=[(code, code) for code in sorted(DIGITS)],
        currency=visit.form.get("currency") or FIRST_PLAY_MONEY.currency,
        amount=visit.form.get("amount") or f"{FIRST_PLAY_MONEY.decimal():f}",
    )


def _ahead(speak: Words, ahead: timedelta) -> str:
    """A span such as "2 days, 1 hour"; nothing for none."""
    minutes, seconds = divmod(int(ahead.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = (("day", days), ("hour", hours), ("minute", minutes), ("second", seconds))
    return ", ".join(
        format_unit(count, f"duration-{unit}", locale=speak.locale) for unit, count in parts if count
    )


async def top_up(visit: Visit) -> Response:
    """Add play money."""
    currency = visit.form.get("currency")
    if currency not in DIGITS:
        raise HttpError(400, "bad_currency", visit.words.text("There is no such currency."))
    try:
        money = Money.parse(visit.form.get("amount").replace(",", "."), currency)
        balance = await visit.do(top_up_play_money, visit.company, money)
    except BadAmount:
        visit.problems["amount"] = visit.words.text("Write an amount such as 250.00")
        return await page(visit)
    except BadPayment:
        most = visit.words.amount(Money.parse(str(PLAY_MONEY_MAX), currency))
        visit.problems["amount"] = (
            visit.words.text("The balance can be at most {amount}.", amount=most)
            if money.minor > 0
            else visit.words.text("The amount is above zero")
        )
        return await page(visit)
    amount = visit.words.amount(Money(balance.balance_minor, currency))
    return visit.go(PATH, visit.words.text("The sandbox has {amount} now.", amount=amount))


async def advance(visit: Visit) -> Response:
    """Move the clock ahead."""
    seconds = visit.form.get("seconds")
    if seconds not in STEPS:
        raise HttpError(400, "bad_step", visit.words.text("Choose how far to move the clock."))
    window = timedelta(seconds=visit.services.settings.confirmation_window_s)
    try:
        moved = await visit.do(deeds.advance, visit.company_id, timedelta(seconds=int(seconds)), window)
    except BadStep:
        visit.problems["seconds"] = visit.words.text(
            "The clock can be at most {days} days ahead. Reset it first.",
            days=visit.words.number(AHEAD_MAX.days),
        )
        return await page(visit)
    except TooManyOpen:
        visit.problems["seconds"] = visit.words.text(
            "More than {most} orders of your sandbox are open.", most=visit.words.number(OPEN_MAX)
        )
        return await page(visit)
    text = visit.words.text(
        "The clock moved ahead by {span}. Open orders: {orders}, expired: {expired}.",
        span=visit.words.text(STEPS[seconds]),
        orders=moved.orders,
        expired=moved.expired,
    )
    return visit.go(PATH, text)


async def reset(visit: Visit) -> Response:
    """Let the clock show the real time again."""
    await visit.do(deeds.reset, visit.company_id)
    return visit.go(PATH, visit.words.text("The clock shows the real time again. What happened stays."))
