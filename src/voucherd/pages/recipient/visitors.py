"""Who opens a link: a person, or a program that looks at it for one. And who opens links that lead nowhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from time import monotonic
from typing import Final

from voucherd.http import Request

UNKNOWN_MAX: Final = 60
"""Links without a voucher that one address may open in a window."""
WINDOW_S: Final = 600.0
ADDRESSES_MAX: Final = 100_000

_AGENT_CHARS_MAX: Final = 1_000
# Programs that fetch the links of chats, mails and posts to show a preview or to look for harm, and those that collect
# pages. Browsers inside of apps carry the app's name, too, and a person looks through them: the names are no shorter
# than they must be. CUBOT makes telephones.
_PROGRAMS: Final = re.compile(
    r"(?<!cu)bot\b|crawler|spider|slurp|preview|prefetch|prerender|headless|externalhit|facebookcatalog|meta-external"
    r"|^whatsapp/|slack-imgproxy|pinterest/0|viber|line-poker|kakaotalk-scrap|mastodon|embedly|iframely|google-|googleother"
    r"|googleimageproxy|mediapartners|favicons|safelinks|microsoft office|ms-office|outlook|exchangewebservices"
    r"|proofpoint|mimecast|barracuda|trendmicro|symantec|virustotal|urlscan|phishtank|zscaler|cloudmark|netcraft"
    r"|^python|^curl/|^wget|libwww|httpclient|http-client|^okhttp|^java/|^go-http|node-fetch|^axios|^undici|^ruby|^php",
    re.IGNORECASE,
)


def is_person(request: Request) -> bool:
    """Whether a person looks at this page. In doubt not: what does not count can be opened again."""
    headers = request.headers
    if not request.body_wanted:
        return False
    ahead = headers.get(b"sec-purpose", b"") + headers.get(b"purpose", b"") + headers.get(b"x-moz", b"")
    if b"prefetch" in ahead.lower() or b"preview" in ahead.lower() or b"prerender" in ahead.lower():
        return False
    agent = headers.get(b"user-agent", b"").decode("latin-1")[:_AGENT_CHARS_MAX]
    if not agent:
        return False
    return _PROGRAMS.search(agent) is None


class Allowance:
    """Counts links that lead nowhere, by address: nobody tries many by mistake."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._counts: dict[str, tuple[float, int]] = {}

    def spent(self, address: str) -> bool:
        """Whether this address has tried too many."""
        began, count = self._counts.get(address, (0.0, 0))
        return count >= UNKNOWN_MAX and self._clock() - began < WINDOW_S

    def note(self, address: str) -> None:
        """One more link of this address led nowhere."""
        now = self._clock()
        began, count = self._counts.pop(address, (now, 0))
        if now - began >= WINDOW_S:
            began, count = now, 0
        if len(self._counts) >= ADDRESSES_MAX:
            del self._counts[next(iter(self._counts))]
        self._counts[address] = (began, count + 1)
