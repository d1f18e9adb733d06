"""The Python client without a service: its shapes, its errors, when it tries again, how it reads a stream."""

from __future__ import annotations

import ast
import pickle
import re
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

import voucherd_client
from tests.docs.pages import PACKAGE
from voucherd.api.errors import CODES
from voucherd.api.wire import catalogue, events, keys, quote, shapes, webhooks
from voucherd.webhooks import signing
from voucherd_client import errors, problems, signatures
from voucherd_client.engine import Address
from voucherd_client.errors import ApiError
from voucherd_client.shapes import accounts as own_accounts
from voucherd_client.shapes import catalogue as own_catalogue
from voucherd_client.shapes import events as own_events
from voucherd_client.shapes import keys as own_keys
from voucherd_client.shapes import orders as own_orders
from voucherd_client.shapes import pages as own_pages
from voucherd_client.steps import Pause, Request, Retries, Steps, answered, camel, encode, query
from voucherd_client.stream import ATTEMPTS_MAX, Stream

FOLDER = Path(voucherd_client.__file__).parent
PAIRS: list[tuple[type[Struct], type[Struct]]] = [
    (shapes.ExtendedOrder, own_orders.Order),
    (shapes.ExtendedItem, own_orders.Item),
    (shapes.ExtendedLine, own_orders.Line),
    (shapes.Product, own_orders.ItemProduct),
    (shapes.ProductDescription, own_orders.ProductDescription),
    (shapes.Offer, own_orders.Offer),
    (shapes.Redemption, own_orders.Redemption),
    (quote.QuotedOrder, own_orders.Quote),
    (quote.QuotedItem, own_orders.QuotedItem),
    (shapes.Account, own_accounts.Account),
    (shapes.AccountEntry, own_accounts.AccountEntry),
    (shapes.PageMetadata, own_pages.PageMetadata),
    (shapes.WalkMetadata, own_pages.PageMetadata),
    (events.EventMetadata, own_pages.PageMetadata),
    (catalogue.FeedMetadata, own_pages.PageMetadata),
    (catalogue.ListMetadata, own_pages.PageMetadata),
    (webhooks.WebhookListMetadata, own_pages.PageMetadata),
    (catalogue.CatalogueProduct, own_catalogue.Product),
    (catalogue.ProductChange, own_catalogue.ProductChange),
    (catalogue.Brand, own_catalogue.Brand),
    (catalogue.Category, own_catalogue.Category),
    (catalogue.FxRate, own_catalogue.FxRate),
    (events.Event, own_events.Event),
    (webhooks.Webhook, own_events.Webhook),
    (webhooks.WebhookAttempt, own_events.WebhookAttempt),
    (webhooks.WebhookDelivery, own_events.WebhookDelivery),
    (webhooks.QueuedEvent, own_events.QueuedEvent),
    (webhooks.QueuedEvents, own_events.QueuedEvents),
    (keys.ApiKey, own_keys.ApiKey),
]


# ── shapes and errors ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("told", "read"), PAIRS, ids=lambda kind: kind.__name__)
def test_the_client_knows_every_field_and_needs_none_that_may_be_missing(
    told: type[Struct], read: type[Struct]
) -> None:
    """Contract 2: fields may be added; whoever adds one adds it to the client, too."""
    sent = {field.encode_name: field for field in msgspec.structs.fields(told)}
    known = {field.encode_name: field for field in msgspec.structs.fields(read)}
    assert sent.keys() <= known.keys()
    always = {name for name, field in sent.items() if field.required}
    assert {name for name, field in known.items() if field.required} <= always


def test_every_code_of_the_service_has_a_class_of_its_own_status() -> None:
    """OP-26: programs decide by the code; the class of each is below the class of the status that it comes with."""
    folders = (PACKAGE / "api", PACKAGE / "server")
    sources = [
        file.read_text(encoding="utf-8") for folder in folders for file in sorted(folder.rglob("*.py"))
    ]
    raised = {
        (int(status), code)
        for source in sources
        for status, code in re.findall(
            r'(?:HttpError|errors\.error)\(\s*(?:request, )?(\d{3}), "(\w+)"', source
        )
    }
    assert len(raised) > 15
    # A request that came too slowly was not done, and a client meets it like an answer that came too slowly.
    for status, code in raised - {(408, "too_slow")}:
        assert issubclass(problems.BY_CODE[code], problems.class_of(status, None)), code
    assert set(CODES.values()) <= problems.BY_CODE.keys()


def answer(status: int, body: bytes = b"", **headers: str) -> httpx.Response:
    """An answer as the transport gives it."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, content=body, headers=named)


def problem(status: int, code: str, *, retryable: bool = False, **headers: str) -> httpx.Response:
    """A refusal of the service."""
    said = {
        **{"type": "about:blank", "title": "no", "status": status, "detail": "no", "code": code},
        **{"retryable": retryable, "requestId": "req_1", "field": "items", "novel": [1]},
    }
    return answer(status, msgspec.json.encode(said), content_type="application/problem+json", **headers)


def test_a_refusal_is_of_the_class_of_its_code_or_else_of_its_status() -> None:
    """OP-26: a code that is newer than the client is caught by what it has to do with."""
    refused = problems.refusal(problem(402, "insufficient_balance"))
    assert type(refused) is errors.InsufficientBalance
    assert (refused.status, refused.code, refused.field) == (402, "insufficient_balance", "items")
    assert str(refused) == "no [402, insufficient_balance, request req_1]"
    assert type(problems.refusal(problem(402, "moon_debt"))) is errors.NotPaid
    assert type(problems.refusal(problem(418, "teapot"))) is errors.BadRequest
    assert type(problems.refusal(answer(502, b"<html>"))) is errors.Unavailable
    assert type(problems.refusal(answer(302, b""))) is ApiError
    assert (
        type(problems.refusal(answer(404, b"{", content_type="application/problem+json"))) is errors.NotFound
    )
    again = pickle.loads(pickle.dumps(refused))  # noqa: S301 - Our own; a worker of a pool hands failures on so.
    assert (type(again), again.__dict__) == (type(refused), refused.__dict__)


def test_a_status_that_is_new_is_kept_as_it_came() -> None:
    """Contract 2: a word that the client does not know must not make an order unreadable."""
    word = msgspec.json.decode(b'"paused"', type=voucherd_client.OrderStatus)
    assert word == "paused"
    assert (
        msgspec.json.decode(b'"finished"', type=voucherd_client.OrderStatus)
        is voucherd_client.OrderStatus.FINISHED
    )


def test_what_is_printed_shows_no_code_and_no_secret() -> None:
    """Contract 6: a code is money, and orders are printed into logs."""
    line = own_orders.Line(
        tag="TAG-1",
        status=voucherd_client.LineStatus.FINISHED,
        voucher_code="SECRET",
        voucher_url="SECRET",
        token="SECRET",
        redemption_link="SECRET",
    )
    address = Address.of("https://shop.example.com/", "vk_live_SECRET", allow_http=False)
    client = voucherd_client.Client(address.url, address.key)
    assert "SECRET" not in f"{line!r} {[line]} {address!r} {client!r}"
    assert "vk_live_SECRET" in address.headers()["Authorization"]
    client.close()


def test_only_httpx_and_msgspec_are_imported() -> None:
    """The client's own promise: nothing else comes with it, and nothing of the service."""
    found = set()
    for file in sorted(FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add((node.module or "").partition(".")[0])
    assert found - sys.stdlib_module_names == {"httpx", "msgspec", "voucherd_client"}


# ── what is sent ──────────────────────────────────────────────────────────────────────────────────────────


def test_money_is_sent_digit_by_digit_and_a_float_is_refused() -> None:
    """OP-07: an amount is never a binary float, on neither side."""
    cart = [voucherd_client.CartItem("gift", 2, Decimal("25.10")), voucherd_client.CartItem("card")]
    assert encode(cart) == (
        b'[{"productSlug":"gift","amount":2,"faceValue":25.10},{"productSlug":"card","amount":1}]'
    )
    with pytest.raises(TypeError, match="face_value: a float"):
        voucherd_client.CartItem("gift", 1, 25.1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="faceValue: a float"):
        query(faceValue=25.1)
    with pytest.raises(TypeError, match="spend_day_eur: a float"):
        camel({"spend_day_eur": 25.1})
    assert query(faceValue=Decimal("1E+2"), isStocked=True, type=["a", "b"], limit=None) == (
        ("faceValue", "100"),
        ("isStocked", "true"),
        ("type", "a"),
        ("type", "b"),
    )


def test_a_moment_without_a_zone_is_refused() -> None:
    """OP-08: what is meant by 9 o'clock depends on where it is said."""
    assert query(dateFrom=datetime(2026, 1, 31, 9, tzinfo=UTC)) == (
        ("dateFrom", "2026-01-31T09:00:00+00:00"),
    )
    assert query(dateFrom=date(2026, 1, 31)) == (("dateFrom", "2026-01-31"),)
    for sent in (query, lambda **named: camel(named)):
        with pytest.raises(ValueError, match="dateFrom: says no zone"):
            sent(dateFrom=datetime(2026, 1, 31, 9))  # noqa: DTZ001 - What is refused.


def test_a_key_does_not_travel_in_the_open_unless_told_to() -> None:
    """OP-24: a key is a bearer secret."""
    for url in (
        "http://shop.example.com",
        "http://10.0.0.1:8080",
        "ftp://localhost",
        "shop.example.com",
        "https://",
    ):
        with pytest.raises(ValueError, match="url: "):
            Address.of(url, "vk_test_x", allow_http=False)
    with pytest.raises(ValueError, match="key: "):
        Address.of("https://shop.example.com", "vk_test_x\nX-Evil: 1", allow_http=False)
    for url in ("http://127.0.0.1:8080", "http://localhost", "http://[::1]:1", "https://shop.example.com/"):
        assert not Address.of(url, "vk_test_x", allow_http=False).url.endswith("/")
    assert Address.of("http://shop.internal", "vk_test_x", allow_http=True)


def test_a_name_that_leads_elsewhere_and_a_key_that_is_none_are_refused_before_anything_is_sent() -> None:
    """OP-28: a call whose key got lost on the way could be done twice."""
    with voucherd_client.Client("https://shop.example.com", "vk_test_x") as client:
        for trx in ("", ".", ".."):
            with pytest.raises(ValueError, match="is the name of nothing"):
                client.orders.confirm(trx)
        for key in ("", "PO-7\r\nX-Evil: 1", "é"):
            with pytest.raises(ValueError, match="Idempotency-Key: must be"):
                client.orders.confirm("TRX1", idempotency_key=key)
        with pytest.raises(ValueError, match="X-Sandbox-Outcome: must be"):
            client.orders.confirm("TRX1", sandbox_outcome="finished\n")


# ── when it tries again ───────────────────────────────────────────────────────────────────────────────────

ASKED = Request(method="POST", path="order", headers={"Idempotency-Key": "k"}, body=b"{}")
BROKEN = httpx.ConnectError("refused")
IN_USE = problem(409, "idempotency_key_in_use", retryable=True, retry_after="1")


def driven(
    steps: Steps[bytes], outcomes: list[httpx.Response | httpx.RequestError]
) -> tuple[bytes | Exception, list[float]]:
    """What comes of a call to which these things happen, and its pauses; the last outcome goes on for ever."""
    pauses: list[float] = []
    left = list(outcomes)
    outcome: httpx.Response | httpx.RequestError | None = None
    for _ in range(1_000):
        try:
            step = steps.send(outcome)
        except StopIteration as end:
            return end.value, pauses
        except (ApiError, errors.NoAnswer) as failure:
            return failure, pauses
        if isinstance(step, Pause):
            pauses.append(step.seconds)
            outcome = None
        else:
            assert step is ASKED, "every attempt sends the same bytes under the same key"
            outcome = left.pop(0) if len(left) > 1 else left[0]
    raise AssertionError("it never ends")


@pytest.mark.parametrize(
    "trouble",
    [
        BROKEN,
        httpx.ReadTimeout("silence"),
        httpx.RemoteProtocolError("half an answer"),
        IN_USE,
        problem(429, "rate_limit_exceeded", retryable=True, retry_after="30"),
        problem(503, "busy", retryable=True),
        problem(503, "late", retryable=True, retry_after="1"),
        problem(503, "done_but_unseen"),
        problem(500, "internal_error", retryable=True),
        answer(502, b"<html>"),
        answer(503, b"<html>", retry_after="Fri, 31 Jan 2020 09:00:00 GMT"),
    ],
    ids=str,
)
def test_what_may_pass_is_tried_again(trouble: httpx.Response | httpx.RequestError) -> None:
    """OP-28: with its key a call can be repeated, however it failed."""
    got, pauses = driven(answered(ASKED, Retries()), [trouble, trouble, answer(201, b"done")])
    assert (got, len(pauses)) == (b"done", 2)


@pytest.mark.parametrize(
    "refused",
    [
        problem(400, "bad_input"),
        problem(402, "insufficient_balance"),
        problem(409, "too_many_keys"),
        problem(422, "idempotency_key_reused"),
        problem(429, "too_many_streams"),
        answer(404, b"nothing here"),
        answer(302, b"", location="https://elsewhere.example.com"),
    ],
    ids=str,
)
def test_a_refusal_for_good_is_raised_at_once(refused: httpx.Response) -> None:
    """OP-26: the same call would be refused again."""
    got, pauses = driven(answered(ASKED, Retries()), [refused, answer(201, b"done")])
    assert isinstance(got, ApiError)
    assert (got.idempotency_key, pauses) == ("k", [])


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 8))
def test_attempts_and_pauses_are_bounded_and_vary(chance: float, attempts_max: int) -> None:
    """OP-28: clients that failed together come back apart, and not for ever."""
    retries = Retries(attempts_max=attempts_max)
    got, pauses = driven(answered(ASKED, retries, lambda: chance), [BROKEN])
    assert isinstance(got, errors.NoAnswer)
    assert (got.idempotency_key, got.__cause__) == ("k", BROKEN)
    assert len(pauses) == attempts_max - 1
    for at, pause_s in enumerate(pauses):
        full_s = min(0.25 * 2**at, 8.0)
        assert full_s / 2 <= pause_s <= full_s

    polite, waits = driven(
        answered(ASKED, retries, lambda: chance),
        [problem(429, "rate_limit_exceeded", retryable=True, retry_after="20")],
    )
    assert isinstance(polite, errors.RateLimitExceeded)
    assert all(20 <= pause_s <= 25 for pause_s in waits)
    assert sum(waits) <= retries.pauses_s_max


def test_a_first_attempt_that_still_runs_is_waited_for_as_long_as_a_resolve_may_take() -> None:
    """OP-28, Contract 3: its connection broke and it goes on for 30 seconds: five attempts would be over before."""
    got, pauses = driven(answered(ASKED, Retries()), [BROKEN, *[IN_USE] * 30, answer(200, b"done")])
    assert got == b"done"
    assert sum(pauses) > 30
    never, pauses = driven(answered(ASKED, Retries()), [IN_USE])
    assert isinstance(never, errors.IdempotencyKeyInUse)
    assert 60 < sum(pauses) <= Retries().pauses_s_max


def test_a_pause_that_is_too_long_is_not_begun() -> None:
    """OP-27: whoever is told to come back in an hour is told so, and decides himself."""
    hour = problem(429, "rate_limit_exceeded", retryable=True, retry_after="3600")
    got, pauses = driven(answered(ASKED, Retries()), [hour, answer(201)])
    assert isinstance(got, errors.RateLimitExceeded)
    assert (got.retry_after_s, pauses) == (3600.0, [])


# ── streams ───────────────────────────────────────────────────────────────────────────────────────────────

HEARD = (
    b"retry: 2000\nid: evt_0\n\n"
    b'id: evt_1\nevent: a\ndata: {"n":1}\n\n'
    b": still here\nid: evt_2\n\n"
    b'id: evt_3\r\nevent: b\r\ndata: {"n":"\xe2\x80\xa8\xc2\x85"}\r\n\r\n'
    b"id: evt_4\ndata: one\ndata: two\n\n"
    b"id: evt_5\ndata: not yet whole"
)
STREAM = Stream(Request(method="GET", path="event/stream"), bytes, Retries())


@given(st.lists(st.integers(0, len(HEARD)), max_size=20))
def test_a_stream_is_read_the_same_however_it_is_cut(cuts: list[int]) -> None:
    """OP-80: bytes come in pieces of any size; lines end where the standard says, not at every Unicode line end."""
    reading, places = STREAM.begin(), sorted({0, *cuts, len(HEARD)})
    heard = [one for start, end in pairwise(places) for one in reading.heard(HEARD[start:end])]
    assert heard == [b'{"n":1}', b'{"n":"\xe2\x80\xa8\xc2\x85"}', b"one\ntwo"]
    assert reading.pause_s(None) <= 2.0
    assert reading.request.headers == {"Last-Event-ID": "evt_4"}, "the event that was cut off comes again"
    assert list(reading.heard(b"id: evt_5\ndata: whole\n\n")) == [b"whole"]


def test_an_event_that_was_not_taken_is_asked_for_again() -> None:
    """OP-80: the place moves on when the next event is asked for, not before."""
    reading = STREAM.begin()
    taken = reading.heard(b"id: evt_1\ndata: one\n\nid: evt_2\ndata: two\n\n")
    assert (next(taken), next(taken)) == (b"one", b"two")
    assert reading.request.headers == {"Last-Event-ID": "evt_1"}


def test_a_stream_comes_back_until_that_is_hopeless() -> None:
    """OP-80: a break is waited out, a revoked key and a cursor that is too old are raised."""
    reading = STREAM.begin()
    for _ in range(ATTEMPTS_MAX - 1):
        assert 0 < reading.pause_s(BROKEN) <= 8.0
    with pytest.raises(errors.NoAnswer):
        reading.pause_s(BROKEN)
    list(reading.heard(b": back\n"))
    assert reading.pause_s(BROKEN) <= 0.25
    for status, code, kind in (
        (401, "unauthorized", errors.Unauthorized),
        (410, "cursor_too_old", errors.CursorTooOld),
        (429, "too_many_streams", errors.TooManyStreams),
    ):
        with pytest.raises(kind):
            STREAM.begin().pause_s(problem(status, code))
    with pytest.raises(errors.UnreadableAnswer):
        list(reading.heard(b"x" * (1024 * 1024 + 1)))


# ── webhooks ──────────────────────────────────────────────────────────────────────────────────────────────

NOW_S = 1_769_851_920
BODY = (
    b'{"id":"evt_1","type":"order.finished","timestamp":"2026-01-31T09:32:00.000Z",'
    b'"data":{"trx":"TRX1","x":0.10}}'
)
CLASSIC = b'{"event":"ORDER_FINISHED"}'
OLD, NEW, OTHER = signing.new_secret(), signing.new_secret(), signatures.secret_of("vk_test_x")


def signed(*secrets: str, body: bytes = BODY, age_s: int = 0) -> dict[str, str]:
    """The headers of a message that the service signs."""
    return {
        "Webhook-Id": "evt_1",
        "WEBHOOK-TIMESTAMP": str(NOW_S - age_s),
        "webhook-signature": signing.sign(secrets, "evt_1", NOW_S - age_s, body),
    }


def test_a_message_of_the_service_is_verified_with_either_secret_while_one_replaces_the_other() -> None:
    """OP-54: neither side has to change its secret at the same moment as the other."""
    for secrets, held in (
        ([NEW], NEW),
        ([NEW, OLD], OLD),
        ([NEW, OLD], NEW),
        ([OLD], [OLD, NEW]),
        ([NEW], [OLD, NEW]),
    ):
        event = voucherd_client.verify_webhook(BODY, signed(*secrets), held, now_s=NOW_S)
        assert (event.type, event.trx, event.data["x"]) == ("order.finished", "TRX1", Decimal("0.10"))
    assert OTHER == signatures.secret_of("vk_test_x") != signatures.secret_of("vk_test_y")
    own = signatures.signature_headers(OTHER, "evt_1", BODY, now_s=NOW_S)
    name, timestamp, signature = own.values()
    signing.verify(OTHER, name, timestamp, signature, BODY, now_s=NOW_S)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (BODY, {}),
        (BODY, signed(OTHER)),
        (BODY + b" ", signed(NEW)),
        (BODY, signed(NEW, age_s=400)),
        (BODY, signed(NEW, age_s=-400)),
        (BODY, signed(NEW) | {"Webhook-Id": "evt_2"}),
        (BODY, signed(NEW) | {"webhook-signature": "v1,"}),
        (BODY, signed(NEW) | {"webhook-signature": "v1," + "é"}),
        (BODY, signed(NEW) | {"WEBHOOK-TIMESTAMP": "soon"}),
        (CLASSIC, signed(NEW, body=CLASSIC)),
    ],
)
def test_any_other_message_is_not_genuine(body: bytes, headers: dict[str, str]) -> None:
    """OP-54: without a signature, by another, changed, too old, from the future, or no event at all."""
    with pytest.raises(errors.NotGenuine):
        voucherd_client.verify_webhook(body, headers, [NEW, OLD], now_s=NOW_S)


def test_a_message_of_the_classic_format_is_verified_without_being_read() -> None:
    """OP-54: signed like any other."""
    headers = signed(NEW, body=CLASSIC)
    voucherd_client.verify_signature(CLASSIC, headers, NEW, now_s=NOW_S)
    for secret in ("", "whsec_", "whsec_%", "c2VjcmV0"):
        with pytest.raises(ValueError, match=r"secret: (must|is empty)") as refused:
            voucherd_client.verify_signature(CLASSIC, headers, secret, now_s=NOW_S)
        assert "c2VjcmV0" not in str(refused.value)
    text: Any = CLASSIC.decode()
    with pytest.raises(TypeError, match="body: take the bytes"):
        voucherd_client.verify_signature(text, headers, NEW, now_s=NOW_S)
