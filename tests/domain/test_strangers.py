"""Requests without a valid key: how many an address may send, and how little is kept of it."""

from __future__ import annotations

import pytest

from voucherd.limits import strangers
from voucherd.limits.rate_limits import Taken, policy, standing
from voucherd.limits.strangers import Strangers, TooManyStrangers
from voucherd.networks import UNKNOWN, network_of


def test_an_address_that_keeps_failing_waits_for_its_minute_to_end() -> None:
    """OP-27: 429 after so many failures, for that address alone, until a minute after the first."""
    now = [100.0]
    counted = Strangers(3, lambda: now[0])
    for _ in range(3):
        counted.check("192.0.2.1")
        counted.count("192.0.2.1")
    now[0] += 20.5

    with pytest.raises(TooManyStrangers) as refused:
        counted.check("192.0.2.1")
    assert refused.value.wait_s == 40
    counted.check("192.0.2.2")
    now[0] += refused.value.wait_s
    counted.check("192.0.2.1")


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:0:1::1", "2001:db8::/56"),
        ("2001:db8:0:ff:ffff::9%eth0", "2001:db8::/56"),
        ("2001:db8:0:100::1", "2001:db8:0:100::/56"),
        ("not:an:address", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_an_ipv6_customer_is_one_address(address: str, network: str) -> None:
    """OP-27: a /56 counts as one, or its 2⁷² addresses would each have an allowance."""
    assert network_of(address) == network


def test_what_is_kept_of_strangers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """OP-27: calls from everywhere at once fill no memory; the oldest is forgotten first."""
    monkeypatch.setattr(strangers, "ADDRESSES_MAX", 100)
    counted = Strangers(1, lambda: 100.0)
    for number in range(1_000):
        counted.count(f"10.0.{number // 250}.{number % 250}")

    assert len(counted) == 100
    counted.check("10.0.0.0")
    with pytest.raises(TooManyStrangers):
        counted.check("10.0.3.249")


def test_the_headers_are_structured_fields() -> None:
    """OP-27: `RateLimit` and `RateLimit-Policy` as the IETF draft writes them."""
    assert policy(600) == b'"default";q=600;w=60'
    assert standing(Taken(True, 599, 60)) == b'"default";r=599;t=60'
