"""Who opens a link: a person, or a program that looks at it for one. And who opens links that lead nowhere."""

from __future__ import annotations

import re
from typing import Final

from voucherd.http import Request

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
