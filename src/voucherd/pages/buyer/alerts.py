"""Alerts: from which balance on the company wants to hear of it."""

from __future__ import annotations

from voucherd.db import transaction
from voucherd.http import HttpError, Response
from voucherd.money import DIGITS, BadAmount, Money
from voucherd.pages import deeds
from voucherd.pages.buyer.funds import purses_of
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, see_other
from voucherd.people.roles import Right
from voucherd.services import Services
from voucherd.wallet import low_balance


async def alerts(services: Services, visit: Visit) -> Response:
    """Every balance, and below how much it is low."""
    return await _page(services, visit)


async def set_alert(services: Services, visit: Visit) -> Response:
    """Be told when a balance falls below this; an empty amount ends the alert."""
    currency, text = visit.form.get("currency"), visit.form.get("below").replace(",", ".")
    if currency not in DIGITS:
        raise HttpError(400, "bad_currency", "There is no such currency.")
    if not text:
        async with transaction(services.pool) as tx:
            if await low_balance.remove_alert(tx, visit.company_id, visit.state, currency):
                await deeds.record(tx, visit, "alert.remove", f"balance in {currency}")
        visit.tell(f"No alert for {currency} any more.")
        return see_other("/portal/alerts")
    try:
        below = Money.parse(text, currency)
    except BadAmount:
        return await _page(services, visit, wrong=currency, problem="Write an amount such as 250.00")
    if below.minor <= 0:
        return await _page(services, visit, wrong=currency, problem="An alert is above zero")
    async with transaction(services.pool) as tx:
        await low_balance.set_alert(tx, visit.company_id, visit.state, below)
        await deeds.record(tx, visit, "alert.set", f"balance in {currency}", {"below": str(below)})
    visit.tell(f"You will see an alert when there is less than {below}.")
    return see_other("/portal/alerts")


async def _page(services: Services, visit: Visit, *, wrong: str = "", problem: str = "") -> Response:
    purses = await purses_of(services, visit)
    return render(
        "buyer/alerts.html",
        visit,
        status=422 if problem else 200,
        purses=purses,
        wrong=wrong,
        problem=problem,
        may_set=visit.may(Right.ORDERS_PLACE),
    )
