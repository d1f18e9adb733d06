"""The checklist of a new shop, above the overview until everything on it is done or somebody hides it."""

from __future__ import annotations

from typing import Final, NamedTuple

from voucherd.http import HttpError, Response
from voucherd.pages.setup import wizard
from voucherd.pages.visit import Visit
from voucherd.people.roles import Right
from voucherd.setup import deeds
from voucherd.setup.running import HIDDEN

PATH: Final = "/console/checklist"


class ChecklistItem(NamedTuple):
    """One thing to do, whether it is done, and where."""

    label: str
    done: bool
    path: str
    right: Right | None


_ITEMS: Final = {
    "profile": ("Name your shop", "/console/settings", Right.SETTINGS_MANAGE),
    "second_factor": ("Protect your account with a second factor", "/console/set-up/second-factor", None),
    "rates": ("Choose currencies and exchange rates", "/console/set-up/currencies", Right.CATALOGUE_MANAGE),
    "product": ("Add a product", "/console/set-up/product", Right.CATALOGUE_MANAGE),
    "codes": ("Add codes to sell", "/console/set-up/codes", Right.STOCK_MANAGE),
    "company": ("Add a company that buys", "/console/set-up/company", Right.COMPANIES_MANAGE),
    "owner": ("Its owner joins", "/console/set-up/sale", Right.COMPANIES_VIEW),
    "key": ("Make an API key", "/console/companies", Right.COMPANIES_VIEW),
    "balance": ("Top up its balance", "/console/set-up/balance", Right.MONEY_PROPOSE),
    "sale": ("Make the first sale", "/console/set-up/sale", Right.COMPANIES_VIEW),
}


async def items(visit: Visit) -> list[ChecklistItem]:
    """What a new shop has and lacks; nothing where it lacks nothing, or the list is hidden."""
    running = visit.services.running
    if running.complete or HIDDEN in running.stored or not visit.may(Right.COMPANIES_VIEW):
        return []
    done = await wizard.done(visit)
    if all(done.values()):
        # What was done once stays done, so nobody need look again.
        running.complete = True
        return []
    return [ChecklistItem(label, done[what], path, right) for what, (label, path, right) in _ITEMS.items()]


async def hide(visit: Visit) -> Response:
    """Show the checklist no more, or again."""
    shown = visit.form.get("shown")
    if shown not in ("yes", "no"):
        raise HttpError(400, "bad_shown", "Say whether the checklist is to be shown.")
    await visit.do(deeds.hide_checklist, hidden=shown == "no")
    await visit.services.running.refresh()
    if shown == "yes":
        return visit.go("/console", "The checklist is shown again.")
    return visit.go("/console", "The checklist is hidden. The settings show it again.", "note")
