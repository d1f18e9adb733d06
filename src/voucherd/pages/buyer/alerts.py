"""Alerts: from which balance on the company wants to hear of it."""

from __future__ import annotations

from contextlib import suppress

from voucherd.http import HttpError, Response
from voucherd.money import DIGITS, BadAmount, Money
from voucherd.pages.buyer.funds import purses_of
from voucherd.pages.render import render
from voucherd.pages.visit import Visit
from voucherd.people.roles import Right
from voucherd.wallet import deeds
from voucherd.wallet.deeds import BadPayment, NoAlert


async def alerts(visit: Visit) -> Response:
    """Every balance, and below how much it is low."""
    return await _page(visit)


async def set_alert(visit: Visit) -> Response:
    """Be told when a balance falls below this; an empty amount ends the alert."""
    currency, text = visit.form.get("currency"), visit.form.get("below").replace(",", ".")
    if currency not in DIGITS:
        raise HttpError(400, "bad_currency", "There is no such currency.")
    if not text:
        with suppress(NoAlert):
            await visit.do(deeds.remove_alert, visit.company_id, visit.state, currency)
        return visit.go("/portal/alerts", f"No alert for {currency} any more.")
    try:
        below = Money.parse(text, currency)
        await visit.do(deeds.set_alert, visit.company_id, visit.state, below)
    except BadAmount:
        return await _page(visit, wrong=currency, problem="Write an amount such as 250.00")
    except BadPayment:
        return await _page(visit, wrong=currency, problem="An alert is above zero")
    return visit.go("/portal/alerts", f"You will see an alert when there is less than {below}.")


async def _page(visit: Visit, *, wrong: str = "", problem: str = "") -> Response:
    purses = await purses_of(visit)
    return render(
        "buyer/alerts.html",
        visit,
        status=422 if problem else 200,
        purses=purses,
        wrong=wrong,
        problem=problem,
        may_set=visit.may(Right.ORDERS_PLACE),
    )
