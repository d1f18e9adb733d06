"""Answers of suppliers: whatever they say is an outcome that a purchase knows."""

from __future__ import annotations

import contextlib
import tomllib
from pathlib import Path
from typing import Final, get_args

from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.bounded import bounded, briefly
from tests.fuzz.inputs import around, kept
from voucherd.money import Money
from voucherd.suppliers import description, remote_orders, untrusted
from voucherd.suppliers.answers import AnswerReader
from voucherd.suppliers.exchange import Reply
from voucherd.suppliers.patterns import compile_code_pattern
from voucherd.suppliers.protocol import SURPLUS_MAX, Bought, Finding, Sku, WantedCodes
from voucherd.suppliers.untrusted import Garbled

FACE: Final = Money(1_000, "EUR")
WANTED: Final = WantedCodes("gift", FACE, 2, Money(900, "EUR"))
DESCRIBED: Final = description.read(
    tomllib.loads((Path(__file__).parents[1] / "suppliers" / "wholesale.toml").read_text("utf-8"))
)
OPERATIONS: Final = ("quote", "buy", "look_up", "cancel")
READERS: Final = {
    name: AnswerReader(getattr(DESCRIBED, name), "EUR", compile_code_pattern(DESCRIBED.code_pattern or ".*"))
    for name in OPERATIONS
}
STATUSES: Final = (200, 201, 204, 302, 400, 402, 404, 409, 422, 429, 500, 503)


def checked(finding: object) -> None:
    """It is one of the outcomes, and no more codes are believed than may be."""
    assert isinstance(finding, get_args(Finding))
    if isinstance(finding, Bought):
        assert 0 < len(finding.codes) <= WANTED.count + SURPLUS_MAX
        assert all(code.code.strip() and code.code.isprintable() for code in finding.codes)
        assert finding.price is None or finding.price.minor > 0


def believed(body: bytes, status: int) -> None:
    """What each operation of a described supplier makes of an answer."""
    for name, reader in READERS.items():
        reply = Reply(status, body)
        with bounded():
            if name != "quote":
                checked(reader.finding(reply, "r", WANTED))
                continue
            with contextlib.suppress(Garbled):
                for quote in reader.quotes(reply, [Sku("gift", FACE)], 1):
                    assert quote.price.minor > 0
                    assert 0 <= quote.stock <= untrusted.STOCK_MAX


@briefly
@given(body=around(kept("answers")), status=st.sampled_from(STATUSES))
def test_an_answer_of_a_described_supplier_is_an_outcome(body: bytes, status: int) -> None:
    """Purchases: what can't be understood is unclear; it is never raised, and never taken for codes."""
    believed(body, status)


@briefly
@given(body=around(kept("answers")), status=st.sampled_from(STATUSES))
def test_an_order_of_another_service_of_this_contract_is_an_outcome(body: bytes, status: int) -> None:
    """Contract 2 read from the other side: an order that can't be believed is garbled, and nothing else is raised."""
    with bounded():
        remote_orders.created(Reply(status, body))
        refused = remote_orders.refused(Reply(status, body), "secret")
        assert "secret" not in refused.text
        with contextlib.suppress(Garbled):
            seen = remote_orders.order(untrusted.tree(body))
            remote_orders.stock(seen)
            for read in (lambda: remote_orders.price(seen), lambda: remote_orders.has_face(seen, FACE)):
                with contextlib.suppress(Garbled):
                    read()
            checked(remote_orders.finding(seen, WANTED))
