"""The OpenAPI document says what the service does: checked against the routes, the tables and real answers."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

# The library has no types of its own.
from jsonschema import Draft202012Validator, FormatChecker  # type: ignore[import-untyped]
from openapi_spec_validator import validate

from tests.shop import Company, Shop
from voucherd.api.errors import CODES, REFUSALS, Op
from voucherd.api.openapi import document, problems
from voucherd.api.openapi.objects import PLACES
from voucherd.api.operations import OPERATIONS
from voucherd.api.outcomes import OUTCOMES
from voucherd.api.routes import ROUTES
from voucherd.clock import now
from voucherd.ids import State
from voucherd.keys.key_text import SCOPES_DEFAULT, Scope
from voucherd.orders.rules.sandbox import SandboxOutcome

URL = "https://vouchers.example.com"
PROBLEM = "application/problem+json"
FORMATS = FormatChecker(formats=())


def _is_moment(value: object) -> bool:
    """OP-08: UTC, milliseconds, Z."""
    if not isinstance(value, str):
        return True
    datetime.fromisoformat(value)
    return re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", value) is not None


def _is_link(value: object) -> bool:
    return not isinstance(value, str) or httpx.URL(value).is_absolute_url


FORMATS.checkers |= {"date-time": (_is_moment, ValueError), "uri": (_is_link, ())}


def read(body: bytes) -> Any:
    """JSON as plain values."""
    return json.loads(body)


def whole_document() -> dict[str, Any]:
    """The document as a client reads it."""
    whole: dict[str, Any] = read(msgspec.json.encode(document(URL, 262_144)))
    return whole


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    """The same for every test."""
    return whole_document()


def resolved(whole: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """The part itself, or what it refers to."""
    while "$ref" in part:
        found: Any = whole
        for step in part["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        part = found
    return part


@cache
def _strictest() -> Draft202012Validator:
    """A validator that knows every schema of the document; to make it takes a hundred times as long as to use it."""
    closed = whole_document()["components"]["schemas"]
    for one in closed.values():
        if "properties" in one:
            one["additionalProperties"] = False
    return Draft202012Validator({"components": {"schemas": closed}}, format_checker=FORMATS)


def strictly(schema: dict[str, Any]) -> Draft202012Validator:
    """A validator that also refuses fields that the document does not know."""
    return _strictest().evolve(schema=schema)


def assert_described(whole: dict[str, Any], template: str, response: httpx.Response) -> None:
    """The answer is one that the document promises for this path: status, headers, type and body."""
    operation = whole["paths"][template][response.request.method.lower()]
    promised = resolved(whole, operation["responses"][str(response.status_code)])
    assert response.headers["x-request-id"]
    if response.status_code == 204:
        assert "content" not in promised
        return
    content = promised["content"][response.headers["content-type"].partition(";")[0]]
    is_text = response.headers["content-type"].startswith("text/")
    value = response.text if is_text else read(response.content)
    strictly(content["schema"]).validate(value)


def test_the_document_is_valid_openapi(described: dict[str, Any]) -> None:
    """OP-04: clients generate code from it, so it must be what it claims to be."""
    assert described["openapi"].startswith("3.1.")
    validate(described)


def test_every_route_is_in_the_document_and_nothing_else(described: dict[str, Any]) -> None:
    """OP-04: one table lists every pair of operation and version; versions that are served alike are told once."""
    told = {(method.upper(), path) for path, item in described["paths"].items() for method in item}
    served = {
        (route.method, f"/api/{version}/{route.path}") for route in ROUTES for version in route.versions
    }
    assert told == served
    assert not [path for path in described["paths"] if path.startswith("/api/1.02/")]
    assert "`1.02` is another name of `1.03`, on every path" in described["info"]["description"]


def test_operations_have_ids_of_their_own_and_say_which_scope_they_need(described: dict[str, Any]) -> None:
    """OP-29: a key without the scope is refused."""
    parts = [part for item in described["paths"].values() for part in item.values()]
    assert len({part["operationId"] for part in parts}) == len(parts)
    for route in ROUTES:
        for version in route.versions:
            part = described["paths"][f"/api/{version}/{route.path}"][route.method.lower()]
            assert part["security"] == [{"ApiKey": [scope.value for scope in route.scopes]}]
            assert all(f"`{scope.value}`" in part["description"] for scope in route.scopes)


def test_every_operation_and_outcome_has_words() -> None:
    """An operation or a sandbox outcome without words would stop the start; say so here first (OP-49)."""
    assert set(OPERATIONS) == set(Op)
    assert set(OUTCOMES) == set(SandboxOutcome)


def test_every_field_has_words(described: dict[str, Any]) -> None:
    """Contract 2: a field that its struct says nothing about would be in the document without a meaning."""
    schemas = described["components"]["schemas"]
    for name, schema in schemas.items():
        assert schema["description"].endswith("."), name
        assert not [
            field
            for field, one in schema.get("properties", {}).items()
            if not one.get("description", "").endswith(".")
        ], name
    assert not [name for name in schemas if not re.fullmatch("[A-Z][A-Za-z]+", name)]


def test_every_schema_is_on_the_page(described: dict[str, Any]) -> None:
    """A schema without a place on the page could not be linked to."""
    assert set(PLACES) == set(described["components"]["schemas"])


def test_decimals_are_numbers_and_known_words_are_enums(described: dict[str, Any]) -> None:
    """OP-07, OP-11, Contract 3."""
    order = described["components"]["schemas"]["ExtendedOrder"]["properties"]
    assert order["priceAmount"]["type"] == "number"
    assert order["orderStatus"]["enum"] == ["created", "pending", "finished", "cancelled"]
    assert order["paymentStatus"]["enum"] == ["unpaid", "paid", "partially_refunded", "refunded"]
    assert set(order["type"]["enum"]) == {"api", "portal"}
    assert set(order["state"]["enum"]) == {"live", "sandbox"}
    line = described["components"]["schemas"]["ShortLineWithoutCode"]
    assert set(line["properties"]["status"]["enum"]) == {"pending", "finished", "cancelled"}


def test_the_limits_of_create_are_in_its_schema(described: dict[str, Any]) -> None:
    """OP-09, OP-10, OP-14."""
    body = described["components"]["schemas"]["CreateBody"]
    item = described["components"]["schemas"]["CreateItem"]["properties"]
    assert (body["properties"]["items"]["minItems"], body["properties"]["items"]["maxItems"]) == (1, 100)
    assert (item["amount"]["minimum"], item["amount"]["maximum"]) == (1, 10_000)
    assert body["properties"]["reference"]["maxLength"] == 1_000
    assert body["required"] == ["items", "paymentCurrency"]
    assert item["faceValue"]["type"] == ["number", "null"]


def test_every_refusal_is_told_with_its_status_and_words(described: dict[str, Any]) -> None:
    """Contract 7: the whole table, by operation."""
    for (op, kind), (status, template) in REFUSALS.items():
        for route in (route for route in ROUTES if route.op is op):
            for version in route.versions:
                part = described["paths"][f"/api/{version}/{route.path}"][route.method.lower()]
                content = part["responses"][str(status)]["content"]
                text = content["text/plain"]["examples"][CODES[kind]]["value"]
                assert re.fullmatch(
                    re.escape(template).replace(r"\{names\}", ".+").replace(r"\{name\}", ".+"), text
                )
                problem = content[PROBLEM]["examples"][CODES[kind]]["value"]
                assert (problem["status"], problem["title"]) == (status, text)


def test_every_example_validates(described: dict[str, Any]) -> None:
    """An example that its own schema refuses would teach the wrong thing."""
    count = 0
    for item in [*described["paths"].values(), *described["webhooks"].values()]:
        for part in item.values():
            bodies = [resolved(described, answer) for answer in part["responses"].values()]
            for body in [*bodies, part.get("requestBody", {})]:
                for content in body.get("content", {}).values():
                    for example in content["examples"].values():
                        strictly(content["schema"]).validate(example["value"])
                        count += 1
            for parameter in part.get("parameters", ()):
                if "example" in parameter:
                    strictly(parameter["schema"]).validate(parameter["example"])
    assert count > 100


def test_the_product_of_an_extended_line_is_a_product_description(described: dict[str, Any]) -> None:
    """Contract 2: the string holds a JSON description of the product."""
    answer = described["paths"]["/api/1.03/order"]["post"]["responses"]["201"]
    order = answer["content"]["application/json"]["examples"]["created"]["value"]
    line = order["items"][0]["orderLines"][0]
    schema = {"$ref": "#/components/schemas/ProductDescription"}
    strictly(schema).validate(read(line["product"].encode()))


def test_an_extended_line_is_whole_or_bare(described: dict[str, Any]) -> None:
    """OP-05: in Confirm and Resolve an unfinished line carries only its tag and status, and nothing in between."""
    schema = {"$ref": "#/components/schemas/ExtendedLine"}
    bare = {"tag": "TAG-" + "0" * 8 + "-0000-0000-0000-" + "0" * 12, "status": "pending"}
    validator = strictly(schema)
    assert validator.is_valid(bare)
    assert not validator.is_valid(bare | {"id": 1})


def test_the_guide_agrees_with_the_document() -> None:
    """OP-04, OP-26, OP-49: its table of versions, its outcomes and its example of an error are the code's own."""
    guide = (Path(__file__).parents[2] / "docs" / "api-guide.md").read_text("utf-8")
    for op, name in (
        (Op.CREATE, "Create"),
        (Op.CONFIRM, "Confirm"),
        (Op.RESOLVE, "Resolve"),
        (Op.CANCEL, "Cancel"),
    ):
        (route,) = (route for route in ROUTES if route.op is op)
        cells = ["yes" if version in route.versions else "" for version in ("1.00", "1.03", "Next")]
        assert re.search(
            rf"^\| {name} \|" + "".join(rf" *{cell} *\|" for cell in cells), guide, re.MULTILINE
        ), name
    for said in OUTCOMES.values():
        assert f"| `{said.form}` |" in guide
    (example,) = re.findall(r"```json\n(.*?)```", guide, re.DOTALL)
    assert read(example.encode()) in [p.body for p in problems.of_operation(Op.CREATE, 262_144)]


# ── real answers ──────────────────────────────────────────────────────────────────────────────────────────


async def _ordered(shop: Shop, described: dict[str, Any], company: Company, **options: Any) -> str:
    """A new order, its answer checked."""
    made = await shop.try_create(company, ("gift-10", 2), reference='{"order": 7}', **options)
    assert_described(described, "/api/1.03/order", made)
    assert made.headers["location"].startswith("/api/1.03/order/TRX")
    return str(made.json()["trx"])


async def test_real_orders_are_as_described(shop: Shop, described: dict[str, Any]) -> None:
    """Sections 3 and 4: created, finished, pending, cancelled and deleted, in every version that shows them."""
    company = await shop.company()
    await shop.product("gift-10", stock=3, async_delivery=True, expires=now() + timedelta(days=90))
    for version, operation in (("1.03", "confirm"), ("1.00", "confirm"), ("1.03", "cancel")):
        trx = await _ordered(shop, described, company)
        if operation == "cancel":
            await shop.finalise("confirm", company, trx)
        answer = await shop.finalise(operation, company, trx, version=version)
        assert answer.status_code == 200
        assert_described(described, f"/api/{version}/order/{operation}/{{trx}}", answer)
        for shown in ("1.00", "1.03", "Next"):
            found = await shop.call("GET", f"/api/{shown}/order/{trx}", company)
            assert_described(described, f"/api/{shown}/order/{{trx}}", found)
    deleted = await shop.cancel(company, await _ordered(shop, described, company))
    assert deleted.status_code == 204
    assert_described(described, "/api/1.03/order/cancel/{trx}", deleted)
    for shown in ("1.00", "1.03", "Next"):
        for query in ("", "?cursor=&limit=1"):
            page = await shop.call("GET", f"/api/{shown}/order{query}", company)
            assert page.status_code == 200
            assert_described(described, f"/api/{shown}/order", page)


@pytest.mark.parametrize("outcome", ["finished", "cancelled", "slow:60"])
async def test_real_resolved_orders_are_as_described(
    shop: Shop, described: dict[str, Any], outcome: str
) -> None:
    """Contract 4: finished or cancelled, with extended and with short lines."""
    company = await shop.company(expose_costs=False)
    await shop.product("gift-10", stock=10)
    for version in ("1.03", "Next"):
        trx = await _ordered(shop, described, company, state=State.SANDBOX)
        resolving = asyncio.create_task(
            shop.finalise("resolve", company, trx, version=version, state=State.SANDBOX, outcome=outcome)
        )
        if outcome == "slow:60":
            await shop.time_is_up(trx)
        answer = await resolving
        assert answer.status_code == 200
        assert_described(described, f"/api/{version}/order/resolve/{{trx}}", answer)


async def test_real_accounts_lines_and_files_are_as_described(shop: Shop, described: dict[str, Any]) -> None:
    """OP-56, OP-59, OP-60: as JSON, as CSV, and with the codes withheld; and what is refused."""
    company = await shop.company()
    blind = Company(company.id, company.name, await shop.keys(company, SCOPES_DEFAULT - {Scope.CODES_READ}))
    await shop.product("gift-10", stock=2, expires=now() + timedelta(days=90))
    trx = await _ordered(shop, described, company)
    await shop.confirm(company, trx)
    account, statement = "/api/1.03/account", "/api/1.03/account/{currency}/entry"
    lines, codes = "/api/1.03/order/{trx}/line", "/api/1.03/order/{trx}/codes.csv"
    for status, template, query, who in (
        (200, account, "", company),
        (200, account, "?currency=eur", blind),
        (400, account, "?currency=euro", company),
        (200, statement, "?limit=1", company),
        (200, statement, "?format=csv", company),
        (400, statement, "?kind=purchase", company),
        (200, lines, "?limit=1", company),
        (400, lines, "?limit=5000", company),
        (403, lines, "", blind),
        (200, codes, "", company),
        (403, codes, "", blind),
    ):
        path = template.replace("{currency}", "EUR").replace("{trx}", trx) + query
        answer = await shop.call("GET", path, who)
        assert answer.status_code == status, (path, answer.text)
        assert_described(described, template, answer)
        assert ("content-disposition" in answer.headers) == answer.headers["content-type"].startswith(
            "text/csv"
        )
    for template, path in (
        (statement, "/api/1.03/account/USD/entry"),
        (lines, "/api/1.03/order/TRX0/line"),
        (codes, "/api/1.03/order/TRX0/codes.csv"),
    ):
        answer = await shop.call("GET", path, company, headers={"accept": PROBLEM})
        assert answer.status_code == 404
        assert_described(described, template, answer)
    for version in ("1.00", "1.03"):
        answer = await shop.call("GET", f"/api/{version}/order/{trx}", blind)
        assert_described(described, f"/api/{version}/order/{{trx}}", answer)


@pytest.mark.parametrize("accept", ["*/*", PROBLEM])
async def test_real_refusals_are_as_described(shop: Shop, described: dict[str, Any], accept: str) -> None:
    """Contract 7, OP-24, OP-25, OP-26: every kind of error, as text and as RFC 9457."""
    company = await shop.company(balance=None)
    reader = await shop.company(scopes=frozenset({Scope.ORDERS_READ}))
    shop.stop_the_minute()
    hurried = await shop.company(rate_limit=1)
    await shop.product("gift-10", stock=10)
    trx = await _ordered(shop, described, company)
    confirm, create = f"/api/1.03/order/confirm/{trx}", "/api/1.03/order"
    attempts: list[tuple[int, str, str, Company, dict[str, Any]]] = [
        (400, "POST", create, company, {"json": {"items": [], "paymentCurrency": "EUR"}}),
        (400, "POST", create, company, {"content": b"{", "headers": {"content-type": "application/json"}}),
        (400, "GET", create + "?limit=0", company, {}),
        (400, "PATCH", confirm, company, {"headers": {"x-sandbox-outcome": "finished"}}),
        (402, "PATCH", confirm, company, {}),
        (403, "PATCH", confirm, reader, {}),
        (404, "PATCH", "/api/1.03/order/confirm/TRX0", company, {}),
        (413, "POST", create, company, {"content": b" " * 300_000}),
        (415, "POST", create, company, {"content": b"{}", "headers": {"content-type": "text/xml"}}),
        (422, "POST", create, company, {"json": _cart("no-such-product")}),
        (404, "GET", "/api/1.03/order/TRX0", hurried, {}),
        (429, "GET", create, hurried, {}),
    ]
    for status, method, path, who, arguments in attempts:
        sent = {"accept": accept} | arguments.pop("headers", {})
        answer = await shop.call(method, path, who, headers=sent, **arguments)
        assert answer.status_code == status, answer.text
        template = re.sub("TRX[0-9A-Z]+", "{trx}", path.partition("?")[0])
        assert_described(described, template, answer)
    nobody = await shop.client.get(create, headers={"accept": accept})
    assert_described(described, create, nobody)
    assert (nobody.status_code, nobody.headers["www-authenticate"]) == (401, "Bearer")


def _cart(slug: str) -> dict[str, Any]:
    return {"items": [{"productSlug": slug, "amount": 1}], "paymentCurrency": "EUR"}


async def test_messages_that_are_repeated_in_the_document_are_the_real_ones(shop: Shop) -> None:
    """OP-24, OP-25, OP-27: what is said in the middle of a request's way, compared with what is told."""
    shop.stop_the_minute()
    hurried = await shop.company(rate_limit=1)
    await shop.call("GET", "/api/1.03/order", hurried)
    heard = [
        await shop.client.get("/api/1.03/order"),
        await shop.call("GET", "/api/1.03/order", hurried),
        await shop.client.get("/api/2.00/order"),
        await shop.client.delete("/api/1.03/order"),
    ]
    told = {p.status: p.text for p in (*problems.ANYWHERE, *problems.OFF_THE_MAP) if p.status < 500}
    assert {answer.status_code: answer.text for answer in heard} == {s: told[s] for s in (401, 429, 404, 405)}
    too_large = await shop.call("POST", "/api/1.03/order", await shop.company(), content=b" " * 300_000)
    create = problems.of_operation(Op.CREATE, shop.settings.body_bytes_max)
    assert too_large.text in [p.text for p in create if p.status == 413]


async def test_counted_answers_carry_the_rate_limit_and_refused_ones_say_when_to_return(
    shop: Shop, described: dict[str, Any]
) -> None:
    """OP-27: the headers that the document promises are sent."""
    shop.stop_the_minute()
    company = await shop.company(rate_limit=1)
    answers = [await shop.call("GET", "/api/1.03/order", company) for _ in range(2)]
    for answer in answers:
        part = described["paths"]["/api/1.03/order"]["get"]["responses"][str(answer.status_code)]
        promised = resolved(described, part)["headers"]
        assert {"RateLimit", "RateLimit-Policy", "X-Request-Id"} <= set(promised)
        assert not [name for name in promised if name.lower() not in answer.headers]
    assert answers[1].status_code == 429
    assert int(answers[1].headers["retry-after"]) >= 1
