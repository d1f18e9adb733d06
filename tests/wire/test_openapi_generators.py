"""What generators of clients stumble over is not in the OpenAPI document (OP-149)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import ValidationError  # type: ignore[import-untyped]

from tests.shop import Shop
from tests.wire import samples
from tests.wire.test_openapi import PROBLEM, read, resolved, strictly, whole_document
from voucherd.actors import SYSTEM
from voucherd.catalogue import product_deeds
from voucherd.catalogue.products import ProductChanges
from voucherd.companies import store as company_store
from voucherd.db import transaction
from voucherd.events.kinds import FOR_COMPANIES
from voucherd.ids import State
from voucherd.keys.key_text import SCOPES_DEFAULT, Scope
from voucherd.money import Money
from voucherd.wallet import deeds as wallet_deeds
from voucherd.wallet import low_balance

SCHEMAS = "#/components/schemas/"
TAG = "TAG-" + "0" * 8 + "-0000-0000-0000-" + "0" * 12


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    """The document as a generator reads it."""
    return whole_document()


def operations(described: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every operation of every path."""
    for item in described["paths"].values():
        yield from item.values()


def test_no_field_has_a_default(described: dict[str, Any]) -> None:
    """OP-149: generators take a field with a default for one that must be sent, and a default of null for a type."""
    for name, schema in described["components"]["schemas"].items():
        assert not [field for field, one in schema.get("properties", {}).items() if "default" in one], name


def test_the_number_of_a_page_has_no_default(described: dict[str, Any]) -> None:
    """OP-149: a generated client sends defaults, and a page together with a cursor is refused (OP-03)."""
    pages = [
        parameter
        for operation in operations(described)
        for parameter in operation.get("parameters", ())
        if parameter["name"] in ("page", "offset")
    ]
    assert pages
    assert not [parameter for parameter in pages if "default" in parameter["schema"]]


def test_a_finished_line_has_all_its_fields(described: dict[str, Any]) -> None:
    """OP-05, OP-149: a line is one of its forms, told apart by its status, so whoever asks for that has the rest."""
    schemas = described["components"]["schemas"]
    assert [form["$ref"] for form in schemas["ExtendedLine"]["oneOf"]] == [
        SCHEMAS + name for name in ("FinishedLine", "UnfinishedLine", "BareLine")
    ]
    line = schemas["FinishedLine"]
    assert line["properties"]["status"]["const"] == "finished"
    assert set(line["required"]) == set(line["properties"])
    assert line["properties"]["voucherCode"]["description"] == "The code. Null if the key may not read codes."
    for name in ("UnfinishedLine", "BareLine"):
        assert schemas[name]["properties"]["status"]["enum"] == ["pending", "cancelled"]
    short = schemas["ShortLineWithCode"]
    assert set(short["required"]) == {"tag", "status", "voucherCode", "voucherSerial"}


def test_no_field_is_null_and_nothing_else(described: dict[str, Any]) -> None:
    """OP-149: helpers of TypeScript drop such a field from their types, though it is there."""
    for name, schema in described["components"]["schemas"].items():
        assert not [
            field for field, one in schema.get("properties", {}).items() if one.get("type") == "null"
        ], name


@pytest.mark.parametrize("shape", ["ExtendedLine", "ShortLine"])
def test_a_finished_line_without_its_fields_is_none(shape: str) -> None:
    """OP-05: neither is a line that has some of its fields."""
    validator = strictly({"$ref": SCHEMAS + shape})
    assert validator.is_valid({"tag": TAG, "status": "pending"})
    assert not validator.is_valid({"tag": TAG, "status": "finished", "voucherCode": "A"})
    assert not validator.is_valid({"tag": TAG, "status": "pending", "id": 1})


def test_words_that_may_be_null_are_one_list_of_words_or_null(described: dict[str, Any]) -> None:
    """OP-149: of an enum with null in it generators make several classes."""
    reason = described["components"]["schemas"]["Webhook"]["properties"]["disabledReason"]
    assert reason["anyOf"] == [
        {"title": "DisabledReason", "type": "string", "enum": ["gone", "failing"]},
        {"type": "null"},
    ]
    for schema in described["components"]["schemas"].values():
        assert not [one for one in schema.get("properties", {}).values() if None in one.get("enum", ())]


def test_every_error_is_a_problem_first_and_a_text_second(described: dict[str, Any]) -> None:
    """OP-26, OP-149: generators take the first form that they can read, and that is the one with types."""
    count = 0
    for operation in operations(described):
        for status, answer in operation["responses"].items():
            if int(status) >= 400:
                content = resolved(described, answer)["content"]
                assert list(content) == [PROBLEM, "text/plain"]
                assert content[PROBLEM]["schema"] == {"$ref": SCHEMAS + "Problem"}
                count += 1
    assert count > 100


def test_every_message_that_we_send_is_in_the_document(described: dict[str, Any]) -> None:
    """OP-54: one for every type of event, with the headers of its signature and an example of ours."""
    assert set(described["webhooks"]) == FOR_COMPANIES
    for type_, item in described["webhooks"].items():
        message = item["post"]
        assert [header["name"] for header in message["parameters"] if header["required"]] == [
            *("webhook-id", "webhook-timestamp", "webhook-signature"),
        ]
        content = message["requestBody"]["content"]["application/json"]
        assert content["examples"]["body"]["value"]["type"] == type_
        other = next(body for other, body in samples.MESSAGES.items() if other[:4] != type_[:4])
        with pytest.raises(ValidationError):
            strictly(content["schema"]).validate(read(bytes(other)))


async def test_real_events_are_the_messages_of_the_document(shop: Shop, described: dict[str, Any]) -> None:
    """OP-54, OP-80: of an order, of a balance, of a key and of a product, field by field."""
    company = await shop.company(scopes=SCOPES_DEFAULT | {Scope.KEYS_WRITE, Scope.EVENTS_READ})
    await shop.product("gift-10", stock=1, async_delivery=True)
    await shop.confirm(company, trx := (await shop.create(company, ("gift-10", 2)))["trx"])
    await shop.cancel(company, trx)
    await shop.cancel(company, (await shop.create(company, ("gift-10", 1)))["trx"])
    made = await shop.call("POST", "/api/1.03/key", company, json={"description": "till"})
    await shop.call("POST", f"/api/1.03/key/{made.json()['id']}/rotate", company)
    async with transaction(shop.pool) as tx:
        owner = await company_store.find_company(tx, company.name)
        await wallet_deeds.top_up(tx, SYSTEM, owner, State.LIVE, Money.read("5.00 EUR"), "invoice 7")
        await wallet_deeds.set_alert(tx, SYSTEM, company.id, State.LIVE, Money.read("5000.00 EUR"))
        await product_deeds.change(tx, SYSTEM, "gift-10", ProductChanges(name="Gift"))
    await low_balance.announce(shop.pool)

    answer = await shop.call("GET", "/api/1.03/event?limit=200", company)
    told = read(answer.content)["data"]
    assert {
        *("order.created", "order.pending", "order.cancelled", "order.deleted"),
        *("wallet.topped_up", "wallet.low_balance", "key.rotated", "product.updated"),
    } <= {event["type"] for event in told}
    for event in told:
        message = described["webhooks"][event["type"]]["post"]["requestBody"]
        strictly(message["content"]["application/json"]["schema"]).validate(event)
    await shop.assert_books_balance()
