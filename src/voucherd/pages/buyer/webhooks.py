"""The company's webhooks: where events go, what was sent, and sending it again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from msgspec import UNSET

from voucherd import clock
from voucherd.http import HttpError, Response
from voucherd.pages.render import qualified, render
from voucherd.pages.statuses import STATUSES
from voucherd.pages.visit import Visit, missing, see_other
from voucherd.sorting import OLDEST, by_time, chosen, in_order
from voucherd.webhooks import deeds, fanout, history
from voucherd.webhooks.deeds import EndpointDisabled, NoOwnAddress
from voucherd.webhooks.endpoints import (
    DESCRIPTION_CHARS_MAX,
    ENDPOINTS_MAX,
    OVERLAP,
    Changes,
    Draft,
    Endpoint,
    TooManyEndpoints,
)
from voucherd.webhooks.letters import WHY_DISABLED
from voucherd.webhooks.messages import MessageFormat
from voucherd.webhooks.service import Owner
from voucherd.webhooks.targets import PORTS, URL_CHARS_MAX, BadTarget, TargetRule, read_target
from voucherd.words import phrase

PATH: Final = "/portal/webhooks"
LOG_SIZE: Final = 25
TYPES: Final = tuple(sorted(fanout.TYPES))
SINCE: Final = {
    "1h": (phrase("The last hour"), timedelta(hours=1)),
    "24h": (phrase("The last day"), timedelta(days=1)),
    "7d": (phrase("The last week"), timedelta(days=7)),
    "30d": (phrase("The last 30 days"), history.KEPT - timedelta(minutes=1)),
}
FORMATS: Final = (
    (MessageFormat.STANDARD.value, phrase("Standard")),
    (MessageFormat.CLASSIC.value, phrase("Classic")),
)
EACH_ORDERS: Final = phrase("Each order’s own address")
_NOT_PUBLIC: Final = phrase("The address must lead to a host on the public internet.")
_REFUSED: Final = {
    TargetRule.LENGTH: phrase("The address has at most {most} characters, without spaces or accents."),
    TargetRule.FORM: phrase("This is not a valid address."),
    TargetRule.SCHEME: phrase("The address must start with https://."),
    TargetRule.USER: phrase("The address must not contain a user name or password."),
    TargetRule.FRAGMENT: phrase("The address must not contain a #."),
    TargetRule.HOST: phrase("The address needs a host name, such as shop.example.com."),
    TargetRule.NUMBER: phrase("Write the IP address in its usual form."),
    TargetRule.NAME: _NOT_PUBLIC,
    TargetRule.PUBLIC: _NOT_PUBLIC,
    TargetRule.PORT: phrase("The address must use one of the ports {ports}."),
}
assert set(_REFUSED) == set(TargetRule)
_SORTS: Final[dict[str, Callable[[Endpoint], Any]]] = {
    "url": lambda one: one.url,
    "status": lambda one: (not one.enabled, one.failures > 0),
}
_OFF: Final = phrase("The endpoint is off. Turn it on first.")


async def webhooks(visit: Visit) -> Response:
    """Every endpoint of this mode."""
    sort = chosen(visit.query.get("sort"), _SORTS, "")
    found = in_order(await visit.services.webhooks.list_all(_owner(visit)), _SORTS, sort)
    rows = [{"endpoint": one, "path": _path(visit, one)} for one in found]
    return render("buyer/webhooks.html", visit, rows=rows, sort=sort, why=WHY_DISABLED)


async def new_webhook(visit: Visit) -> Response:
    """The form for a new endpoint."""
    return _form(visit, Draft(""), "", PATH)


def _form(visit: Visit, draft: Draft, title: str, path: str, *, enabled: bool | None = None) -> Response:
    """The form of an endpoint: what was sent where something is wrong with it, else what holds."""
    given, again = visit.form, bool(visit.problems)
    return render(
        "buyer/webhook_form.html",
        visit,
        title=title,
        path=path,
        url=given.get("url") if again else draft.url,
        has_url=draft.url is not None,
        description=given.get("description") if again else draft.description,
        chosen=given.all("type") if again else draft.types,
        format=given.get("format") if again else draft.format.value,
        enabled="enabled" in given if again and enabled is not None else enabled,
        types=TYPES,
        formats=[(key, visit.words.text(label)) for key, label in FORMATS],
        description_max=DESCRIPTION_CHARS_MAX,
    )


async def add(visit: Visit) -> Response:
    """Add an endpoint and show its secret, this once."""
    draft = _draft(visit)
    if visit.problems:
        return await new_webhook(visit)
    try:
        endpoint, secret = await visit.do(
            deeds.add, visit.services.sealer, visit.company_id, visit.state, draft
        )
    except TooManyEndpoints:
        visit.problems["form"] = visit.words.text(
            "You have {most} endpoints, the most possible.", most=ENDPOINTS_MAX
        )
        return await new_webhook(visit)
    return render("buyer/webhook_secret.html", visit, secret=secret, path=_path(visit, endpoint), until=None)


async def webhook(visit: Visit) -> Response:
    """One endpoint, and the log of what was sent to it."""
    endpoint = await _endpoint(visit)
    before = visit.query.get("before")
    number = visit.services.ids.event_number(before) if before else None
    status = visit.query.get("status")
    if (before and number is None) or (status and status not in history.STATUSES):
        raise HttpError(400, "bad_place", visit.words.text("This place in the log does not exist."))
    sort = by_time(visit.query.get("sort"))
    kept = {"status": status, "sort": sort}
    log = await visit.services.webhooks.log(
        endpoint, size=LOG_SIZE, before=number, status=status or None, oldest=sort == OLDEST
    )
    onward = "" if log.before is None else visit.services.ids.event(log.before)
    path = _path(visit, endpoint)
    rows = [
        {"delivery": one, "event": visit.services.ids.event(one.event_id), "path": f"{path}/replay/"}
        for one in log.deliveries
    ]
    return render(
        "buyer/webhook.html",
        visit,
        endpoint=endpoint,
        why=WHY_DISABLED,
        path=path,
        rows=rows,
        format=visit.words.text(dict(FORMATS)[endpoint.format.value]),
        since=[(word, visit.words.text(text)) for word, (text, _) in SINCE.items()],
        statuses=[
            ("", visit.words.text("All statuses")),
            *((one, visit.words.text(STATUSES[one][0])) for one in history.STATUSES),
        ],
        wanted=status,
        sort=sort,
        first=qualified(path, kept) if before else "",
        after=qualified(path, kept | {"before": onward}) if onward else "",
    )


async def edit(visit: Visit) -> Response:
    """The form of an endpoint that is there."""
    endpoint = await _endpoint(visit)
    draft = Draft(endpoint.url, tuple(endpoint.types), endpoint.description, format=endpoint.format)
    title = endpoint.url or visit.words.text(EACH_ORDERS)
    return _form(visit, draft, title, _path(visit, endpoint), enabled=endpoint.enabled)


async def change(visit: Visit) -> Response:
    """Change where an endpoint is and what it is told."""
    endpoint = await _endpoint(visit)
    draft = _draft(visit, with_url=endpoint.url is not None)
    if visit.problems:
        return await edit(visit)
    changes = Changes(
        UNSET if draft.url is None else draft.url,
        draft.types,
        draft.description,
        enabled="enabled" in visit.form,
        format=draft.format if "format" in visit.form else UNSET,
    )
    await visit.do(deeds.change, visit.services.sealer, endpoint.id, changes)
    return visit.go(_path(visit, endpoint), visit.words.text("The endpoint is saved."))


async def remove(visit: Visit) -> Response:
    """Remove an endpoint with its log."""
    endpoint = await _endpoint(visit)
    await visit.do(deeds.remove, endpoint.id)
    return visit.go(PATH, visit.words.text("The endpoint is removed. Nothing is sent there any more."))


async def rotate(visit: Visit) -> Response:
    """Give an endpoint a new secret and show it, this once."""
    endpoint = await _endpoint(visit)
    changed, secret = await visit.do(deeds.rotate, visit.services.sealer, endpoint.id, OVERLAP)
    path, until = _path(visit, endpoint), changed.old_until
    return render("buyer/webhook_secret.html", visit, secret=secret, path=path, until=until)


async def ping(visit: Visit) -> Response:
    """Send a message that says nothing, to see whether it arrives."""
    endpoint = await _endpoint(visit)
    try:
        await visit.do(deeds.test, endpoint.id)
        visit.tell(visit.words.text("A test message is sent. It appears in the log below."))
    except (EndpointDisabled, NoOwnAddress):
        visit.tell(
            visit.words.text("Only an active endpoint with an address of its own can be tested."), "bad"
        )
    return see_other(_path(visit, endpoint))


async def replay(visit: Visit) -> Response:
    """Send one event to this endpoint once more."""
    endpoint = await _endpoint(visit)
    number = visit.services.ids.event_number(visit.parameters["event"])
    event = None if number is None else await visit.services.webhooks.event(_owner(visit), number)
    if event is None:
        raise missing()
    try:
        await visit.do(deeds.replay, event, endpoint.id)
        visit.tell(visit.words.text("The event is sent again."))
    except EndpointDisabled:
        visit.tell(visit.words.text(_OFF), "bad")
    return see_other(_path(visit, endpoint))


async def recover(visit: Visit) -> Response:
    """Send everything that this endpoint did not get."""
    endpoint = await _endpoint(visit)
    chosen = SINCE.get(visit.form.get("since"))
    if chosen is None:
        raise HttpError(400, "bad_since", visit.words.text("Choose since when."))
    try:
        found = await deeds.recover(visit.pool, visit.actor, endpoint.id, clock.now() - chosen[1])
        visit.tell(visit.words.text("Events sent again: {events}.", events=found.queued))
    except EndpointDisabled:
        visit.tell(visit.words.text(_OFF), "bad")
    return see_other(_path(visit, endpoint))


def _draft(visit: Visit, *, with_url: bool = True) -> Draft:
    """What the form asks for; what is wrong with it stands beside its field."""
    form, problems = visit.form, visit.problems
    url = form.get("url") if with_url else None
    if url is not None:
        try:
            read_target(url, visit.services.webhooks.own)
        except BadTarget as bad:
            ports = ", ".join(map(str, PORTS))
            problems["url"] = visit.words.text(_REFUSED[bad.rule], most=URL_CHARS_MAX, ports=ports)
    types = form.all("type")
    if not set(types) <= set(TYPES):
        problems["type"] = visit.words.text("There is no such event.")
    description = form.get("description")
    if len(description) > DESCRIPTION_CHARS_MAX or not description.isprintable():
        problems["description"] = visit.words.text(
            "A description has at most {most} characters.", most=DESCRIPTION_CHARS_MAX
        )
    word = form.get("format") or MessageFormat.STANDARD.value
    if word not in dict(FORMATS):
        problems["format"] = visit.words.text("There is no such format.")
    if problems:
        return Draft(url)
    return Draft(url, tuple(sorted(set(types))), description, format=MessageFormat(word))


async def _endpoint(visit: Visit) -> Endpoint:
    number = visit.services.ids.webhook_number(visit.parameters["webhook"])
    if number is None:
        raise missing()
    return await visit.services.webhooks.find(_owner(visit), number)


def _path(visit: Visit, endpoint: Endpoint) -> str:
    return f"{PATH}/{visit.services.ids.webhook(endpoint.id)}"


def _owner(visit: Visit) -> Owner:
    return Owner(visit.company_id, visit.state)
