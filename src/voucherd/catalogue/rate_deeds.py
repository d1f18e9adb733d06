"""Deeds on exchange rates, margins and VAT rates: each writes its row of the trail, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from voucherd import trail
from voucherd.actors import Actor
from voucherd.catalogue import fx_store, store, vat_store
from voucherd.catalogue.fx import BASE, MARGIN_BP_MAX, BadRates, DayRates
from voucherd.db import Tx
from voucherd.money import RATE_DIGITS, plain


class BadMargin(ValueError):
    """The margin can't be set; says which field, and why."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule


class NoMargin(LookupError):
    """The pair has no margin."""

    def __init__(self, of: str, to: str) -> None:
        super().__init__(f"there is no margin from {of} to {to}")


class VatRateNotFound(LookupError):
    """The country has no rate that begins on that day to come."""


async def set_rate(tx: Tx, actor: Actor, currency: str, eur_e8: int) -> date:
    """Set today's rate of one currency by hand; the day. Refused for the base."""
    if currency == BASE:
        raise BadRates(f"{BASE} is the base and has no rate")
    day = await store.set_rate(tx, currency, eur_e8)
    detail = {"rate": rate_text(eur_e8), "day": day.isoformat()}
    await trail.record(tx, actor, "fx.set", f"currency {currency}", detail)
    return day


async def import_rates(
    tx: Tx, actor: Actor, source: str, days: Sequence[DayRates], *, fetched: bool = False
) -> int:
    """Keep the bank's rates of these days, from a file or (`fetched`) from an address; how many."""
    count = await store.set_rates(tx, days, "ecb")
    if fetched:
        await fx_store.note_feed(tx, None)
    detail = {"source": source[:200], "rates": count}
    await trail.record(tx, actor, "fx.import", "fx", detail)
    return count


async def set_margin(tx: Tx, actor: Actor, of: str, to: str, margin_bp: int) -> None:
    """Add a share to prices in one currency that are paid in another."""
    if of == to:
        raise BadMargin("to", "a currency has no margin against itself")
    if not 1 <= margin_bp <= MARGIN_BP_MAX:
        raise BadMargin("share", f"must be between 0.01% and {share_text(MARGIN_BP_MAX)}")
    await fx_store.set_margin(tx, of, to, margin_bp)
    await trail.record(tx, actor, "fx.margin.set", f"margin {of} {to}", {"share": share_text(margin_bp)})


async def remove_margin(tx: Tx, actor: Actor, of: str, to: str) -> None:
    """Take the margin of a pair away; refused if there is none."""
    if not await fx_store.remove_margin(tx, of, to):
        raise NoMargin(of, to)
    await trail.record(tx, actor, "fx.margin.remove", f"margin {of} {to}")


async def announce_vat(tx: Tx, actor: Actor, country: str, first: date, rate_bp: int) -> None:
    """Let a country have this VAT rate from a day to come; refused for a day that has begun."""
    await vat_store.announce(tx, country, first, rate_bp)
    detail = {"from": first.isoformat(), "rate": share_text(rate_bp)}
    await trail.record(tx, actor, "vat.set", f"country {country}", detail)


async def withdraw_vat(tx: Tx, actor: Actor, country: str, first: date) -> None:
    """Take back a VAT rate that has not begun; refused if there is none."""
    if not await vat_store.withdraw(tx, country, first):
        raise VatRateNotFound
    await trail.record(tx, actor, "vat.remove", f"country {country}", {"from": first.isoformat()})


def rate_text(eur_e8: int) -> str:
    """A rate as people write it."""
    whole, _, part = plain(eur_e8, RATE_DIGITS).partition(".")
    return f"{whole}.{part.rstrip('0').ljust(4, '0')}"


def share_text(bp: int) -> str:
    """A share as people write it: 1.5%."""
    return f"{plain(bp, 2).rstrip('0').rstrip('.')}%"
