"""Descriptions of suppliers: what can be written in them, and which mistakes are found before money depends on them."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from typing import Any

import pytest

from tests.docs import pages
from tests.suppliers.warehouse import DESCRIPTION
from voucherd.money import Money
from voucherd.suppliers import description, paths, templates
from voucherd.suppliers.answers import AnswerReader
from voucherd.suppliers.description import Means
from voucherd.suppliers.exchange import Reply
from voucherd.suppliers.patterns import compile_code_pattern
from voucherd.suppliers.protocol import (
    CODE_CHARS_MAX,
    Bought,
    Code,
    NotFound,
    Sku,
    SupplierRefused,
    Unclear,
    UnderWay,
    WantedCodes,
    Why,
)
from voucherd.suppliers.registry import check_config

WHOLESALE = tomllib.loads(DESCRIPTION.read_text(encoding="utf-8"))
TEN = Money.read("10.00 EUR")
WANTED = WantedCodes("gift-10", TEN, 2, Money.read("9.50 EUR"))
PAGE = pages.DOCS / "suppliers.md"


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """The wholesaler's description with some keys, written with dots, set or (None) taken out."""
    config: dict[str, Any] = tomllib.loads(DESCRIPTION.read_text(encoding="utf-8"))
    for key, value in changes.items():
        *tables, last = key.split(".")
        table = config
        for name in tables:
            table = table.setdefault(name, {})
        if value is None:
            del table[last]
        else:
            table[last] = value
    return config


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"base_url": None}, "base_url: is required"),
        ({"base_url": "http://api.example.com"}, "base_url: must be https"),
        ({"base_url": "https://api.example.com?key=1"}, "base_url: must have no user, password, query"),
        ({"buy": None}, "buy: is required"),
        ({"buy.path": None}, "buy.path: is required"),
        ({"buy.speed": 3}, "buy.speed: is not a key that there is"),
        ({"buy.method": "BREW"}, "buy.method: invalid enum value 'BREW'"),
        ({"buy.path": "orders"}, "buy.path: must start with /"),
        ({"buy.path": "/orders?x=1"}, "buy.path: must have no query; that is buy.query"),
        ({"buy.body.sku": "{product}"}, "buy.body: has {product}; there are count, currency"),
        ({"buy.body.sku": "{sku"}, "buy.body: has a '{' that stands alone"),
        ({"buy.body": {"sku": "{sku}", "max": "{price_max}"}, "buy.headers": {}}, "buy: must send {reference}"),
        ({"buy.headers.Host": "example.com"}, "buy.headers.Host: is not a header that can be set"),
        ({"buy.headers.X-Name": "naïve"}, "buy.headers.X-Name: must be printable ASCII"),
        ({"look_up.body": {"a": "{reference}"}}, "look_up.body: a GET has none"),
        ({"quote.path": "/products/{reference}"}, "quote.path: has {reference}; there are currency, face"),
        ({"quote.fields.price": None}, "quote.fields.price: is required"),
        ({"quote.fields.price_currency": None}, "quote.fields.price_currency: is required where there is no"),
        ({"quote.errors": [{"http": 402, "means": "funds"}]}, "quote.errors[0].means: must be not_found or"),
        ({"answer.fields.codes": None}, "buy.fields.codes: is required"),
        ({"answer.fields.codes": "items[.pin"}, "buy.fields.codes: must be a path such as"),
        ({"answer.fields.serials": "serials[]"}, "buy.fields.serials: must lie in the same list as the codes"),
        ({"answer.fields.pins": "x"}, "buy.fields.pins: is not a key that there is"),
        ({"answer.statuses.done": "delighted"}, "buy.statuses: invalid enum value 'delighted'"),
        ({"answer.statuses.gone": "not_found"}, "buy.statuses: a purchase just made can't be not_found"),
        ({"answer.fields.status": None}, "buy.fields.status: is required where there are statuses"),
        ({"buy.errors": [{"means": "funds"}]}, "buy.errors[0]: must have http, code or both"),
        ({"buy.errors": [{"http": 200, "means": "bought"}]}, "buy.errors[0].means: only an answer with codes"),
        ({"buy.errors": [{"http": 404, "means": "not_found"}]}, "buy.errors[0].means: a purchase just made"),
        ({"buy.ok": [404]}, "buy.ok: must be statuses between 200 and 299"),
        ({"look_up.root": "orders[]", "answer.fields.reference": None}, "look_up.fields.reference: is required"),
        ({"auth.type": "header"}, "auth.name: must name the header that carries the secret"),
        ({"auth": {"type": "header", "name": "Host"}}, "auth.name: is a header that belongs to the connection"),
        ({"auth": {"type": "basic", "user": "a:b"}}, "auth.user: must be printable ASCII without a colon"),
        ({"guard": "supplier", "buy.body.max_price": None}, "guard: supplier needs {price_max}"),
        ({"quote": None}, "guard: without a quote it must be supplier"),
        ({"bulk_max": 0}, "bulk_max: must be between 1 and 10000"),
        ({"currency": "eur"}, "currency: must be an ISO 4217 code in capitals"),
        ({"code_pattern": "(a+)+"}, "code_pattern: has something at character 3"),
        ({"answer": 7}, "answer: must be a table"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_mistake_is_told_in_one_line_that_names_the_key(changes: dict[str, Any], said: str) -> None:
    """The operator sees what to change, before anything is bought."""
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - The text is looked at below.
        check_config("http", changed(changes))
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


def test_the_example_in_the_documentation_is_a_description_that_works() -> None:
    """It is the one of the tests' own wholesaler, at another address."""
    (example,) = [block for block in pages.blocks(PAGE, "toml") if "base_url" in block]
    config = tomllib.loads(example)
    check_config("http", config)
    assert config | {"base_url": ""} == WHOLESALE | {"base_url": ""}


def test_every_key_of_a_description_is_documented() -> None:
    """And every name of a blank and of a meaning."""
    told = set(pages.quoted(PAGE))
    for struct in (
        description.Description,
        description.DescribedCall,
        description.AnswerFields,
        description.Auth,
    ):
        assert set(struct.__struct_fields__) <= told, struct.__name__
    assert {f"{{{blank}}}" for blank in templates.BLANKS} <= told
    assert {means.value for means in Means} <= told


def test_numbers_stay_numbers_in_a_body() -> None:
    """A text that is one blank becomes its value; `:text` makes it a text."""
    values = templates.values_for("r-1", WANTED)
    filled = templates.fill_body(
        {
            "count": "{count}", "face": "{face}", "minor": "{face_minor}", "as_text": "{count:text}",
            "mixed": "{sku}/{count} {{x}}", "list": ["{reference}", 7, True],
        },
        values,
    )  # fmt: skip
    assert filled == {
        "count": 2, "face": Decimal("10.00"), "minor": 1000, "as_text": "2", "mixed": "gift-10/2 {x}",
        "list": ["r-1", 7, True],
    }  # fmt: skip
    assert str(filled["face"]) == "10.00"


def test_values_can_not_leave_their_place() -> None:
    """A product's name is one segment of a path and one value of a query, whatever characters it has."""
    values = templates.values_for("r", Sku("a/b?c&d=é", TEN))
    assert templates.fill_path("/p/{sku}/x", values) == "/p/a%2Fb%3Fc%26d%3D%C3%A9/x"
    assert templates.fill_query({"sku": "{sku}", "n": "1"}, values) == "sku=a%2Fb%3Fc%26d%3D%C3%A9&n=1"
    with pytest.raises(templates.Unsendable):
        templates.fill_headers({"X-Sku": "{sku}"}, values)


def test_paths_lead_through_lists_and_keep_them_in_step() -> None:
    """A value that is missing in one element is None there, so that no serial moves to another code."""
    document = {"data": {"items": [{"pin": "A", "serial": "1"}, {"pin": "B"}, "odd"]}, "pins": ["C", "D"]}
    assert paths.values(document, paths.parse("data.items[].pin")) == ["A", "B", None]
    assert paths.values(document, paths.parse("data.items[].serial")) == ["1", None, None]
    assert paths.values(document, paths.parse("pins[]")) == ["C", "D"]
    assert paths.value(document, paths.parse("data.items[0].pin")) == "A"
    assert paths.value(document, paths.parse("data.items[9].pin")) is None
    assert paths.value(document, paths.parse("pins.x.y")) is None
    assert paths.values([[{"a": 1}], [{"a": 2}]], paths.parse("[][].a")) == [1, 2]
    for wrong in ("", ".", "a..b", "a[", "a[x]", "[]a", "a.[0]", "a" * 201, "a.b.c.d.e.f.g.h.i.j.k"):
        with pytest.raises(ValueError, match="must "):
            paths.parse(wrong)


def test_patterns_of_codes_can_not_run_for_ever() -> None:
    """The operator writes the pattern and the supplier the code: together they can't stop the worker."""
    assert compile_code_pattern("[0-9A-F]{4}(-[0-9A-F]{4}){3}").fullmatch("0A1B-2C3D-4E5F-6789")
    assert compile_code_pattern(r"\d{16}|[A-Z]{2}\d{8,10}").fullmatch("AB123456789")
    assert not compile_code_pattern(r"\d{16}").fullmatch("1" * 17)
    for wrong in (
        "(a+)+", "a*", "a+", "(a|a){30}", "(a?){30}", "(a{1,9}){9}", "(a)?", r"(a)\1", "(?=a)a", "[a", "(a", "a)",
        "a{501}", "a{1,501}", "a{1,2}b{1,2}c{1,2}", "(((a){9}){9}){9}", "", "x" * 201, "a{9,1}", "^a$",
        "(?i)a", "a??", "a{2}{3}", "(?P<n>a)", "|{3}",
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"must |has |is not "):
            compile_code_pattern(wrong)
    # One that took more than a square of steps would not end.
    assert not compile_code_pattern("[a-z]{0,500}[a-z]{0,500}[A-Z]").fullmatch("a" * CODE_CHARS_MAX)


def read(changes: dict[str, Any], body: str, status: int = 200, operation: str = "look_up") -> Any:
    """What an answer means by a changed description."""
    described = description.read(changed(changes))
    pattern = compile_code_pattern("[A-Z0-9]{1,9}")
    reader = AnswerReader(getattr(described, operation), described.currency, pattern)
    return reader.finding(Reply(status, body.encode()), "r-1", WANTED)


def test_answers_are_read_as_described() -> None:
    """Lists of purchases, a date for all codes, prices of the whole purchase in minor units."""
    changes = {
        "look_up.root": "orders[]",
        "answer.fields.expires": "valid_until",
        "answer.fields.price": "total",
        "answer.fields.price_unit": "minor",
        "answer.fields.price_of": "purchase",
        "answer.fields.never": ["0000-00-00"],
    }
    ours = """{"reference": "r-1", "id": 7, "status": "done", "valid_until": "0000-00-00", "total": 1801,
               "unit_price": {"currency": "EUR"}, "items": [{"pin": "A1", "serial": "1"}, {"pin": 22}]}"""
    found = read(changes, f'{{"orders": [{{"reference": "other"}}, {ours}]}}')
    assert found == Bought((Code("A1", "1"), Code("22")), "7", Money.read("9.01 EUR"))
    assert (
        read(changes, '{"orders": []}') == read(changes, '{"orders": [{"reference": "other"}]}') == NotFound()
    )
    assert isinstance(read(changes, f'{{"orders": [{ours}, {ours}]}}'), Unclear)
    assert isinstance(read(changes, '{"orders": [[]]}'), Unclear)


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (404, '{"error": {"code": "UNKNOWN_REFERENCE"}}', NotFound),
        (404, '{"error": {"code": "UNKNOWN_ROUTE"}}', Unclear),
        (404, "<p>not found", Unclear),
        (418, "{}", Unclear),
        (200, '{"reference": "r-2", "status": "done", "items": [{"pin": "A"}]}', Unclear),
        (200, '{"reference": "r-1", "status": "done", "items": []}', Unclear),
        (200, '{"reference": "r-1", "status": "done", "items": [{"pin": "a-small"}]}', Unclear),
        (
            200,
            '{"reference": "r-1", "status": "done", "items": [{"pin": "A", "valid_until": "0000-00-00"}]}',
            Unclear,
        ),
        (
            200,
            '{"reference": "r-1", "status": "done", "items": [{"pin": "A"}], "unit_price": "dear"}',
            Bought,
        ),
        (200, '{"reference": "r-1", "status": "happy", "items": [{"pin": "A"}]}', Unclear),
        (200, '{"reference": "r-1", "items": [{"pin": "A"}]}', Unclear),
        (200, '{"reference": "r-1", "status": "processing"}', UnderWay),
        (200, '{"reference": "r-1", "status": "failed"}', SupplierRefused),
        (200, '{"reference": "r-1", "status": "failed", "items": [{"pin": "A"}]}', Unclear),
        (200, '{"reference": "r-1", "status": "cancelled"}', SupplierRefused),
        (200, '{"reference": "r-1", "status": "cancelled", "items": [{"pin": "A"}]}', Bought),
    ],
)
def test_only_what_is_foreseen_means_something(status: int, body: str, expected: type) -> None:
    """All else is unclear: codes without a word for it, a word without codes, somebody else's purchase."""
    assert isinstance(read({}, body, status), expected)


def test_refusals_are_found_by_status_and_by_code() -> None:
    """The first rule that fits wins, and an operation's own rules come before those of all."""
    changes = {
        "answer.errors": [
            {"http": [409, 410], "means": "rejected"},
            {"code": [7, "EMPTY"], "means": "funds"},
        ],
        "buy.errors": [{"http": 409, "code": "NO_STOCK", "means": "out_of_stock"}],
    }
    for status, body, why in (
        (409, '{"error": {"code": "NO_STOCK"}}', Why.OUT_OF_STOCK),
        (409, '{"error": {"code": "OTHER"}}', Why.REJECTED),
        (410, "gone", Why.REJECTED),
        (200, '{"error": {"code": 7}}', Why.FUNDS),
        (500, '{"error": {"code": "EMPTY"}}', Why.FUNDS),
    ):
        found = read(changes, body, status, "buy")
        assert isinstance(found, SupplierRefused)
        assert found.why is why
