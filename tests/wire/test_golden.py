"""What each version sends for an order in every status, byte for byte (OP-55: a version keeps its shape for good).

`VOUCHERD_TEST_UPDATE_GOLDEN=1` writes the files anew; then look at the difference before it is kept.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.wire import gallery
from voucherd.api.wire.order import render
from voucherd.api.wire.templates import TemplateBook
from voucherd.api.wire.versions import SHAPES
from voucherd.orders.model import Order

GOLDEN = Path(__file__).parent / "golden"
UPDATE = os.environ.get("VOUCHERD_TEST_UPDATE_GOLDEN") == "1"

ORDERS: dict[str, Order] = {
    "created": gallery.CREATED,
    "pending": gallery.PENDING,
    "finished": gallery.FINISHED,
    "cancelled": gallery.CANCELLED,
    "sandbox-cancelled": gallery.SANDBOX_CANCELLED,
}

# Where each status can occur: Contract 4, and OP-02 for Find.
FIND = ["find 1.00", "find 1.03", "find Next"]
CONFIRM = ["confirm 1.00", "confirm 1.03"]
RESOLVE = ["resolve 1.03", "resolve Next"]
OCCURS = {
    "created": ["create 1.03", *FIND],
    "pending": [*CONFIRM, *FIND],
    "finished": [*CONFIRM, *RESOLVE, *FIND],
    "cancelled": ["cancel 1.03", *CONFIRM, *FIND],
    "sandbox-cancelled": [*CONFIRM, *RESOLVE, *FIND],
}
CASES = [(status, *where.split()) for status, places in OCCURS.items() for where in places]


def rendered(
    status: str, operation: str, version: str, *, costs: bool = True, templates: TemplateBook | None = None
) -> bytes:
    """The body of that answer."""
    bare = operation in ("confirm", "resolve")
    return render(SHAPES[version], gallery.view(ORDERS[status], bare=bare, costs=costs, templates=templates))


@pytest.mark.parametrize(("status", "operation", "version"), CASES)
def test_an_answer_is_what_it_always_was(status: str, operation: str, version: str) -> None:
    """Contract 2, OP-55: every byte."""
    body = rendered(status, operation, version)
    file = GOLDEN / f"{status}.{operation}.{version}.json"
    if UPDATE:
        file.write_bytes(body)
    assert body == file.read_bytes()


def test_costs_can_be_hidden() -> None:
    """OP-58: a company that may not see the margin gets null, in the serialised product too."""
    body = rendered("finished", "find", "1.03", costs=False)
    file = GOLDEN / "finished.find-without-costs.1.03.json"
    if UPDATE:
        file.write_bytes(body)
    assert body == file.read_bytes()
    assert b"wholesale" not in body
    assert b"second & sons" not in body


def test_what_was_rendered_before_leaves_no_trace() -> None:
    """OP-49, OP-58: templates are shared by all answers, and none shows another's costs, state or shape."""
    book = TemplateBook()
    for costs in (True, False, True):
        for case in [*CASES, *reversed(CASES)]:
            assert rendered(*case, costs=costs, templates=book) == rendered(*case, costs=costs)


def test_a_sandbox_order_without_an_offer_does_not_become_a_live_one() -> None:
    """OP-49: nothing of an order but its number tells its state, so its number must."""
    book = TemplateBook()
    for number, state in ((6_000, "live"), (6_001, "sandbox")):
        shown = gallery.gift(number, 1, offers=((),))
        order = json.loads(render(SHAPES["1.03"], gallery.view(shown, templates=book)))
        assert order["items"][0]["orderLines"][0]["state"] == order["state"] == state


def test_there_is_no_golden_file_that_no_case_compares() -> None:
    """OP-55: what is on the shelf is looked at."""
    wanted = {f"{status}.{operation}.{version}.json" for status, operation, version in CASES}
    assert {file.name for file in GOLDEN.glob("*.json")} == wanted | {"finished.find-without-costs.1.03.json"}


def test_an_unfinished_line_of_confirm_and_resolve_has_only_its_tag_and_status() -> None:
    """Contract 4, OP-05: in every version; Find in 1.03 shows all fields, the code's as null."""
    for status, operation, version in CASES:
        order = json.loads(rendered(status, operation, version))
        short = version != "1.03" or operation in ("confirm", "resolve")
        for line in (line for item in order["items"] for line in item["orderLines"]):
            if line["status"] != "finished" and short:
                assert set(line) == {"tag", "status"}
            elif line["status"] != "finished":
                assert len(line) == 44
                assert line["voucherCode"] is None
            else:
                assert line["voucherCode"].startswith("CODE-")


def test_a_finished_short_line_shows_an_expiry_only_where_there_is_one() -> None:
    """Contract 2: voucherDateExpired is present on some finished lines only."""
    first, second, _ = json.loads(rendered("finished", "find", "1.00"))["items"][0]["orderLines"]
    assert first["voucherDateExpired"] == "2028-02-29T23:59:59.999Z"
    assert set(second) == {"tag", "status", "voucherCode", "voucherSerial"}


def test_the_two_short_versions_say_the_same() -> None:
    """Contract 9: 1.00 and Next both have the short line."""
    for status in ORDERS:
        assert rendered(status, "find", "1.00") == rendered(status, "find", "Next")


def test_lines_completed_counts_the_finished_lines_of_the_item() -> None:
    """Contract 2: whatever the operation and version."""
    for status, operation, version in CASES:
        for item in json.loads(rendered(status, operation, version))["items"]:
            finished = [line for line in item["orderLines"] if line["status"] == "finished"]
            assert item["linesCompleted"] == len(finished)
            assert len(item["orderLines"]) == item["amount"]


def test_timestamps_are_utc_in_milliseconds_and_never_round_up() -> None:
    """OP-08: 123.999 ms is 123."""
    order = json.loads(rendered("created", "create", "1.03"))
    assert order["dateCreated"] == "2026-01-31T09:30:00.123Z"
    assert order["dateExpires"] == "2026-02-01T09:30:00.000Z"


def test_money_has_the_digits_of_its_currency_and_rates_have_eight() -> None:
    """OP-07: JPY none, EUR two, KWD three; the bytes, not what a parser makes of them."""
    body = rendered("created", "create", "1.03")
    for piece in (
        b'"priceCurrency":"JPY","priceAmount":4352,"priceVat":656,"priceInclVat":5008,"priceFx":0.00611808',
        b'"singlePriceAmount":9.50,"totalPriceAmount":19.00,"totalPriceVat":4.00,"totalPriceInclVat":23.00',
        b'"singlePriceAmount":2.530,"totalPriceAmount":2.530,"totalPriceVat":0.005,"totalPriceInclVat":2.535',
        b'"faceValueMin":1.000,"faceValueMax":50.500',
        b'"faceValueFx":3.01204819',
    ):
        assert piece in body
