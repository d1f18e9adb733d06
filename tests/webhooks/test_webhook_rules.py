"""The small rules of webhooks: which headers may be added, and when a delivery is tried again."""

from __future__ import annotations

import pytest

from voucherd.webhooks.headers import read_headers
from voucherd.webhooks.retries import PAUSES_S, pause_s, rest_s


def test_headers_that_belong_to_the_connection_or_the_signature_can_not_be_added() -> None:
    """OP-54: an integrator's own headers ride along; they can't forge a signature or split a request."""
    assert read_headers({"Authorization": "Bearer x", "X-Tenant": "a b"}) == {
        "authorization": "Bearer x",
        "x-tenant": "a b",
    }
    for name in (
        *(
            "Host",
            "Content-Length",
            "content-type",
            "Transfer-Encoding",
            "Connection",
            "Keep-Alive",
            "TE",
            "Trailer",
        ),
        *(
            "Upgrade",
            "Expect",
            "Via",
            "Forwarded",
            "User-Agent",
            "Webhook-Id",
            "webhook-signature",
            "Svix-Id",
        ),
        *("Proxy-Authorization", "X-Forwarded-For", "Accept-Encoding", "Sec-Fetch-Site"),
    ):
        with pytest.raises(ValueError, match=f"must not hold {name.lower()}"):
            read_headers({name: "x"})
    for name in ("", "a b", "a:b", "é", "a\n", "-a", "x" * 101):
        with pytest.raises(ValueError, match="must have names"):
            read_headers({name: "x"})
    for value in ("", " x", "x ", "a\r\nb: c", "\x00", "é", "x" * 1001):
        with pytest.raises(ValueError, match="must have values"):
            read_headers({"x-a": value})
    with pytest.raises(ValueError, match="must hold x-a once"):
        read_headers({"X-A": "1", "x-a": "2"})
    with pytest.raises(ValueError, match="at most 10"):
        read_headers({f"x-{at}": "x" for at in range(11)})


def test_pauses_grow_to_a_day_and_end_after_three() -> None:
    """OP-54: 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h, each with a little jitter, then no more."""
    hours = [pause_s(tries, 0.0) for tries in range(1, 10)]
    assert hours == [5, 300, 1800, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600]
    assert 3 * 86_400 < sum(PAUSES_S) < 3.2 * 86_400
    assert pause_s(1, 1.0) == 5.5
    assert pause_s(10, 0.5) is None


def test_a_dead_endpoint_is_asked_once_a_minute() -> None:
    """OP-54: one that keeps failing is left alone for longer and longer, a minute at most."""
    assert [rest_s(failures) for failures in (0, 1, 4, 5, 6, 8, 10, 11, 50)] == [0, 0, 0, 1, 2, 8, 32, 60, 60]
    assert rest_s(2**31) == 60
