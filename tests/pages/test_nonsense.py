"""No page breaks, whatever is sent to it."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from tests.pages.people import someone
from tests.shop import Shop
from voucherd.pages.page import Audience
from voucherd.pages.routes import PAGES

NONSENSE = ("", "-1", "9" * 30, "1e9999999", "' <b>&\"%s{}\\../..", "\u202e\ud7ff€𝔘", "x" * 5000)
NAMES = (
    *(
        "q",
        "page",
        "status",
        "type",
        "from",
        "to",
        "sort",
        "brand",
        "category",
        "currency",
        "amount",
        "face",
        "slug",
    ),
    *(
        "reference",
        "format",
        "outcome",
        "below",
        "state",
        "email",
        "password",
        "next",
        "name",
        "role",
        "url",
        "id",
    ),
    *(
        "kind",
        "after",
        "company",
        "code",
        "token",
        "confirm",
        "note",
        "days",
        "scopes",
        "types",
        "description",
        "vat",
    ),
)


@pytest.mark.parametrize(
    "words",
    [3, pytest.param(len(NONSENSE), marks=pytest.mark.soak)],
    ids=["three words a page", "every word"],
)
async def test_no_page_breaks_on_nonsense(shop: Shop, words: int) -> None:
    """OP-91: nonsense in a path, a query or a form is refused or ignored, and never an error of ours."""
    people = {
        Audience.COMPANY: await someone(shop, "owner", await shop.company(), strong=True),
        Audience.OPERATOR: await someone(shop, "admin", strong=True),
    }
    for number, page in enumerate(PAGES):
        person = people.get(page.audience, people[Audience.COMPANY])
        if page.path == "/sign-out":
            continue
        for word in (NONSENSE[(number + place) % len(NONSENSE)] for place in range(words)):
            path = re.sub(r"\{[a-z_]+\}", quote(word[:150] or "%", safe=""), page.path)
            if page.method == "GET":
                answer = await person.get(path, params=dict.fromkeys(NAMES, word[:300]))
            else:
                answer = await person.post(path, dict.fromkeys(NAMES, word))
            assert answer.status_code < 500, (page.method, path, word, answer.status_code)
