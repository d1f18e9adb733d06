"""The company's webhooks: where events go, what was sent, and sending it again."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from msgspec import UNSET

from voucherd import clock
from voucherd.db import transaction
from voucherd.http import HttpError, Response
from voucherd.pages.forms import FormFields
from voucherd.pages.render import qualified, render
from voucherd.pages.visit import Visit, see_other
from voucherd.services import Services
from voucherd.webhooks import deeds, fanout, history
from voucherd.webhooks.deeds import EndpointDisabled, NoOwnAddress
from voucherd.webhooks.endpoints import (
    DESCRIPTION_CHARS_MAX,
    OVERLAP,
    Changes,
    Draft,
    Endpoint,
    EndpointNotFound,
    TooManyEndpoints,
)
from voucherd.webhooks.service import Owner
from voucherd.webhooks.targets import BadTarget, read_target

PATH: Final = "/portal/webhooks"
LOG_SIZE: Final = 25
TYPES: Final = tuple(sorted(fanout.TYPES))
SINCE: Final = {
    "1h": ("the last hour", timedelta(hours=1)),
    "24h": ("the last day", timedelta(days=1)),
    "7d": ("the last week", timedelta(days=7)),
    "30d": ("the last 30 days", history.KEPT - timedelta(minutes=1)),
}
_OFF: Final = "The endpoint is off. Turn it on first."


async def webhooks(services: Services, visit: Visit) -> Response:
    """Every endpoint of this mode."""
    found = await services.webhooks.list_all(_owner(visit))
    rows = [{"endpoint": one, "path": _path(services, one)} for one in found]
    return render("buyer/webhooks.html", visit, rows=rows)


async def new_webhook(_services: Services, visit: Visit) -> Response:
    """The form for a new endpoint."""
    return _new_form(visit, FormFields([]))


async def add(services: Services, visit: Visit) -> Response:
    """Add an endpoint and show its secret, this once."""
    try:
        draft = _draft(services, visit.form)
        async with transaction(services.pool) as tx:
            endpoint, secret = await deeds.add(
                tx, visit.actor, services.sealer, visit.company_id, visit.state, draft
            )
    except TooManyEndpoints as full:
        return _new_form(visit, visit.form, f"{full}."[:1].upper() + f"{full}."[1:])
    except ValueError as wrong:
        return _new_form(visit, visit.form, str(wrong))
    return render(
        "buyer/webhook_secret.html", visit, secret=secret, path=_path(services, endpoint), until=None
    )


async def webhook(services: Services, visit: Visit) -> Response:
    """One endpoint, and the log of what was sent to it."""
    return await _shown(services, visit, await _endpoint(services, visit))


async def change(services: Services, visit: Visit) -> Response:
    """Change where an endpoint is and what it is told."""
    endpoint = await _endpoint(services, visit)
    try:
        draft = _draft(services, visit.form, with_url=endpoint.url is not None)
    except ValueError as wrong:
        return await _shown(services, visit, endpoint, str(wrong))
    changes = Changes(
        UNSET if draft.url is None else draft.url,
        draft.types,
        draft.description,
        enabled="enabled" in visit.form,
    )
    async with transaction(services.pool) as tx:
        await deeds.change(tx, visit.actor, services.sealer, endpoint.id, changes)
    visit.tell("The endpoint is changed.")
    return see_other(_path(services, endpoint))


async def remove(services: Services, visit: Visit) -> Response:
    """Remove an endpoint with its log."""
    endpoint = await _endpoint(services, visit)
    async with transaction(services.pool) as tx:
        await deeds.remove(tx, visit.actor, endpoint.id)
    visit.tell("The endpoint is gone. Nothing is sent there any more.")
    return see_other(PATH)


async def rotate(services: Services, visit: Visit) -> Response:
    """Give an endpoint a new secret and show it, this once."""
    endpoint = await _endpoint(services, visit)
    async with transaction(services.pool) as tx:
        changed, secret = await deeds.rotate(tx, visit.actor, services.sealer, endpoint.id, OVERLAP)
    path, until = _path(services, endpoint), changed.old_until
    return render("buyer/webhook_secret.html", visit, secret=secret, path=path, until=until)


async def ping(services: Services, visit: Visit) -> Response:
    """Send a message that says nothing, to see whether it arrives."""
    endpoint = await _endpoint(services, visit)
    try:
        async with transaction(services.pool) as tx:
            await deeds.test(tx, visit.actor, endpoint.id)
        visit.tell("A test message is on its way. It appears in the log below.")
    except (EndpointDisabled, NoOwnAddress):
        visit.tell("Only an endpoint that is on and has an address of its own can be tried.", "bad")
    return see_other(_path(services, endpoint))


async def replay(services: Services, visit: Visit) -> Response:
    """Send one event to this endpoint once more."""
    endpoint = await _endpoint(services, visit)
    number = services.ids.event_number(visit.parameters["event"])
    event = None if number is None else await services.webhooks.event(_owner(visit), number)
    if event is None:
        raise HttpError(404, "event_not_found", "not found")
    try:
        async with transaction(services.pool) as tx:
            await deeds.replay(tx, visit.actor, event, endpoint.id)
        visit.tell("The event is sent once more.")
    except EndpointDisabled:
        visit.tell(_OFF, "bad")
    return see_other(_path(services, endpoint))


async def recover(services: Services, visit: Visit) -> Response:
    """Send everything that this endpoint did not get."""
    endpoint = await _endpoint(services, visit)
    chosen = SINCE.get(visit.form.get("since"))
    if chosen is None:
        raise HttpError(400, "bad_since", "Choose since when.")
    try:
        found = await deeds.recover(services.pool, visit.actor, endpoint.id, clock.now() - chosen[1])
        visit.tell(f"Events that are sent again: {found.queued}.")
    except EndpointDisabled:
        visit.tell(_OFF, "bad")
    return see_other(_path(services, endpoint))


async def _shown(services: Services, visit: Visit, endpoint: Endpoint, problem: str = "") -> Response:
    before = visit.query.get("before")
    number = services.ids.event_number(before) if before else None
    status = visit.query.get("status")
    if (before and number is None) or (status and status not in history.STATUSES):
        raise HttpError(400, "bad_place", "This place in the log does not exist.")
    log = await services.webhooks.log(endpoint, size=LOG_SIZE, before=number, status=status or None)
    path = _path(services, endpoint)
    rows = [
        {"delivery": one, "event": services.ids.event(one.event_id), "path": f"{path}/replay/"}
        for one in log.deliveries
    ]
    given = visit.form
    return render(
        "buyer/webhook.html",
        visit,
        status=422 if problem else 200,
        endpoint=endpoint,
        path=path,
        rows=rows,
        problem=problem,
        url=given.get("url") if problem else endpoint.url,
        description=given.get("description") if problem else endpoint.description,
        chosen=given.all("type") if problem else endpoint.types,
        types=TYPES,
        since=[(word, text) for word, (text, _) in SINCE.items()],
        statuses=history.STATUSES,
        wanted=status,
        older=qualified(path, {"status": status, "before": rows[-1]["event"]}) if log.more else "",
        newest=qualified(path, {"status": status}) if before else "",
    )


def _new_form(visit: Visit, given: FormFields, problem: str = "") -> Response:
    status = 422 if problem else 200
    chosen = given.all("type")
    return render(
        "buyer/webhook_new.html",
        visit,
        status=status,
        given=given,
        chosen=chosen,
        types=TYPES,
        problem=problem,
    )


def _draft(services: Services, form: FormFields, *, with_url: bool = True) -> Draft:
    """What the form asks for; a ValueError says what is wrong with it."""
    url = form.get("url") if with_url else None
    if url is not None:
        try:
            read_target(url, services.webhooks.own)
        except BadTarget as bad:
            raise ValueError(f"The address {bad}.") from None
    types = form.all("type")
    if not set(types) <= set(TYPES):
        raise ValueError("There is no such event.")
    description = form.get("description")
    if len(description) > DESCRIPTION_CHARS_MAX or not description.isprintable():
        raise ValueError(f"A description has at most {DESCRIPTION_CHARS_MAX} characters.")
    return Draft(url, tuple(sorted(set(types))), description)


async def _endpoint(services: Services, visit: Visit) -> Endpoint:
    number = services.ids.webhook_number(visit.parameters["webhook"])
    try:
        if number is not None:
            return await services.webhooks.find(_owner(visit), number)
    except EndpointNotFound:
        pass
    raise HttpError(404, "webhook_not_found", "not found")


def _path(services: Services, endpoint: Endpoint) -> str:
    return f"{PATH}/{services.ids.webhook(endpoint.id)}"


def _owner(visit: Visit) -> Owner:
    return Owner(visit.company_id, visit.state)
