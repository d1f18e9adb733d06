"""Dates at the ends of the calendar, in every parameter that takes one."""

from __future__ import annotations

from urllib.parse import quote

import pytest
import typer

from tests.pages.people import someone
from tests.shop import Shop
from voucherd.api import query
from voucherd.api.operations import OPERATIONS
from voucherd.api.routes import ROUTES, Route
from voucherd.cli import report, words
from voucherd.pages.page import Audience
from voucherd.pages.routes import PAGES

FAR = (
    "0001-01-01",
    "0001-01-01T00:00:00Z",
    "9999-12-31",
    "9999-12-31T23:59:59.999999Z",
)
BEYOND = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999-14:00")
FILTERS = ("from", "to", "since", "until", "day", "expires")


@pytest.fixture
async def shop(quiet_shop: Shop) -> Shop:
    """A shop in which nothing happens by itself."""
    return quiet_shop


def dated() -> list[tuple[Route, str]]:
    """Every operation with every parameter of it that is a date."""
    found = [
        (route, parameter.name)
        for route in ROUTES
        for parameter in OPERATIONS[route.op].parameters
        if parameter.parse in (query._moment, query._last_moment)
    ]
    named = {
        (route.op, parameter.name)
        for route in ROUTES
        for parameter in OPERATIONS[route.op].parameters
        if parameter.name.startswith("date")
    }
    assert named <= {(route.op, name) for route, name in found}
    assert len(found) >= 7
    return found


async def test_a_date_at_the_end_of_the_calendar_breaks_no_operation(shop: Shop) -> None:
    """OP-25: the first and the last day there are mean everything; beyond them there is no date."""
    company = await shop.company(balance="5.00 EUR")
    shop.stop_the_minute()
    for route, name in dated():
        for version in route.versions:
            path = f"/api/{version}/{route.path}".replace("{currency}", "EUR").replace("{id}", "WH1")
            for text in FAR + BEYOND:
                answer = await shop.call(route.method, f"{path}?{name}={quote(text)}", company)
                good = (400,) if text in BEYOND else (200, 202, 400, 404)
                assert answer.status_code in good, (path, name, text, answer.text)
                if text in BEYOND:
                    assert answer.text == f"{name}: must be an ISO 8601 date or date-time"


@pytest.mark.parametrize("audience", [Audience.COMPANY, Audience.OPERATOR])
async def test_a_date_at_the_end_of_the_calendar_breaks_no_page(shop: Shop, audience: Audience) -> None:
    """OP-91: every page, with every filter of days that any page has."""
    company = await shop.company(balance="5.00 EUR")
    of_company = audience is Audience.COMPANY
    visitor = await someone(shop, "owner", company) if of_company else await someone(shop, "admin")
    fill = {"{currency}": "EUR", "{company}": company.name, "{report}": "sales"}
    for page in PAGES:
        if page.method != "GET" or page.audience is not audience:
            continue
        path = page.path
        for name, value in fill.items():
            path = path.replace(name, value)
        for text in FAR + BEYOND:
            everywhere = "&".join(f"{name}={quote(text)}" for name in FILTERS)
            for asked in (everywhere, f"to={quote(text)}", f"from={quote(text)}"):
                answer = await visitor.get(f"{path}?{asked}")
                assert answer.status_code < 500, (path, asked)


@pytest.mark.parametrize("read", [report.read_day, words.read_day])
def test_a_day_at_the_end_of_the_calendar_is_refused_by_commands(read: object) -> None:
    """A day after the last one can't be counted."""
    assert callable(read)
    assert str(read("1970-01-01")) == "1970-01-01"
    for text in ("0001-01-01", "9999-12-31"):
        with pytest.raises(typer.BadParameter):
            read(text)
