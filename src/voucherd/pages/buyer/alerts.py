"""Alerts: from which balance on the company wants to hear of it."""

from __future__ import annotations

from contextlib import suppress

from voucherd.db import transaction
from voucherd.http import HttpError, Response
from voucherd.money import DIGITS, BadAmount, Money
from voucherd.pages.buyer.funds import purses_of
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, see_other
from voucherd.people.roles import Right
from voucherd.services import Services
from voucherd.wallet import deeds
from voucherd.wallet.deeds import BadPayment, NoAlert


async def alerts(services: Services, visit: Visit) -> Response:
    """Every balance, and below how much it is low."""
    return await _page(services, visit)


async def set_alert(services: Services, visit: Visit) -> Response:
    """Be told when a balance falls below this; an empty amount ends the alert."""
    currency, text = visit.form.get("currency"), visit.form.get("below").replace(",", ".")
    if currency not in DIGITS:
        raise HttpError(400, "bad_currency", "There is no such currency.")
    if not text:
        with suppress(NoAlert):
            async with transaction(services.pool) as tx:
                await deeds.remove_alert(tx, visit.actor, visit.company_id, visit.state, currency)
        visit.tell(f"No alert for {currency} any more.")
        return see_other("/portal/alerts")
    try:
        below = Money.parse(text, currency)
        async with transaction(services.pool) as tx:
            await deeds.set_alert(tx, visit.actor, visit.company_id, visit.state, below)
    except BadAmount:
        return await _page(services, visit, wrong=currency, problem="Write an amount such as 250.00")
    except BadPayment:
        return await _page(services, visit, wrong=currency, problem="An alert is above zero")
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
