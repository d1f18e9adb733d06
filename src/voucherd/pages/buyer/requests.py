"""The request log: what the company's keys sent, and what they were answered."""

from __future__ import annotations

from typing import Final

import msgspec

from voucherd.db import tenant
from voucherd.http import HttpError, Response
from voucherd.pages.forms import whole
from voucherd.pages.render import qualified, render
from voucherd.pages.visit import Visit, missing
from voucherd.request_log import store
from voucherd.request_log.store import Answered, Filters
from voucherd.sorting import OLDEST, by_time

PATH: Final = "/portal/requests"
PAGE_SIZE: Final = 25


async def requests(visit: Visit) -> Response:
    """A page of calls, newest first unless the address says otherwise."""
    asked = {name: visit.query.get(name) for name in ("id", "path", "status", "key")}
    before, sort = visit.query.get("before"), by_time(visit.query.get("sort"))
    status, place = whole(asked["status"], 100, 599), whole(before)
    key = visit.services.ids.key_number(asked["key"]) if asked["key"] else None
    if before and place is None:
        raise HttpError(400, "bad_filter", visit.words.text("There is no such place in the log."))
    if asked["status"] and status is None:
        visit.problems["status"] = visit.words.text("A number from 100 to 599")
    if asked["key"] and key is None:
        visit.problems["key"] = visit.words.text("A key’s number begins with key_")
    filters = Filters(asked["id"] or None, asked["path"] or None, status, key)
    found: list[Answered] = []
    if not visit.problems:
        oldest = sort == OLDEST
        found = await _page(visit, filters, size=PAGE_SIZE + 1, before=place, oldest=oldest)
    rows = [{"call": one, "key": visit.services.ids.key(one.key_id)} for one in found[:PAGE_SIZE]]
    onward = found[PAGE_SIZE - 1].seq if len(found) > PAGE_SIZE else None
    return render(
        "buyer/requests.html",
        visit,
        rows=rows,
        asked=asked,
        kept_days=store.KEPT.days,
        sort=sort,
        first=qualified(PATH, asked | {"sort": sort}) if before else "",
        after=qualified(PATH, asked | {"sort": sort, "before": onward}) if onward is not None else "",
    )


async def request(visit: Visit) -> Response:
    """One call, with what was sent and answered."""
    number = whole(visit.parameters["number"])
    found = [] if number is None else await _page(visit, Filters(), size=1, before=number + 1)
    if not found or found[0].seq != number:
        raise missing()
    call = found[0]
    return render(
        "buyer/request.html",
        visit,
        call=call,
        key=visit.services.ids.key(call.key_id),
        sent=_indented(call.request),
        answered=_indented(call.answer),
    )


def _indented(text: str) -> str:
    """JSON that is whole, in lines of its own; any other text as it is."""
    try:
        return msgspec.json.format(text, indent=2)
    except msgspec.DecodeError:
        return text


async def _page(
    visit: Visit, filters: Filters, *, size: int, before: int | None, oldest: bool = False
) -> list[Answered]:
    company_id, state = visit.company_id, visit.state
    async with tenant(visit.pool, company_id, state) as conn:
        return await store.page(conn, company_id, state, filters, size=size, before=before, oldest=oldest)
