"""The beginning of a shop: by the one-time link, a name and a first person; then a second factor (OP-150)."""

from __future__ import annotations

from typing import Final

from voucherd.catalogue import logos
from voucherd.catalogue.logos import BadLogo
from voucherd.companies.places import countries
from voucherd.db import transaction
from voucherd.http import HttpError, Response
from voucherd.pages.forms import sentence
from voucherd.pages.people import security
from voucherd.pages.people.links import password_hint
from voucherd.pages.render import render
from voucherd.pages.setup import wizard
from voucherd.pages.visit import Visit, device_cookie, see_other, session_cookie
from voucherd.people import second_factors
from voucherd.people.users import UserDraft, UserExists, hash_password
from voucherd.settings import SettingsError, read
from voucherd.setup import deeds, links
from voucherd.setup.deeds import Beginning, LinkOver, SetUpAlready

LOGO_BYTES_MAX: Final = 40 * 1024
"""Nobody is known on this page, so nobody may send much; the settings take a larger one."""


async def page(visit: Visit) -> Response:
    """The first form: the shop, and its first person."""
    refusal = await _refused(visit)
    if refusal is not None:
        return refusal
    return wizard.draw(
        visit,
        "begin",
        path=visit.request.path,
        countries=list(countries().items()),
        country=visit.form.get("country") or visit.services.settings.operator_country,
        hint=password_hint(visit.words),
        logo_bytes_max=LOGO_BYTES_MAX,
    )


async def begin(visit: Visit) -> Response:
    """Let the first person in, and name the shop: the link is used up."""
    refusal = await _refused(visit)
    if refusal is not None:
        return refusal
    wish = await _read(visit)
    if wish is None:
        return await page(visit)
    services = visit.services
    try:
        async with transaction(visit.pool) as tx:
            signed_in = await deeds.begin(tx, services.root, visit.parameters["token"], wish, visit.origin)
    except UserExists:
        visit.problems["email"] = "This address belongs to a company's person. Take another one."
        return await page(visit)
    except (LinkOver, SetUpAlready):
        return await _over(visit)
    await services.running.refresh()
    visit.cookies.append(session_cookie(services.settings, signed_in.token))
    visit.cookies.append(device_cookie(services.settings, services.sign_in.devices.issue(wish.email)))
    return see_other(wizard.path_after("begin"))


async def second_factor_page(visit: Visit) -> Response:
    """The square for an authenticator app."""
    if (await second_factors.factors(visit.pool, visit.someone.id)).any:
        return see_other(wizard.path_after("second-factor"))
    facts = await security.app_facts(visit)
    if facts is None:
        return see_other(wizard.path_after("second-factor"))
    must = visit.services.settings.operator_second_factor
    return wizard.draw(visit, "second-factor", skippable=not must, **facts)


async def second_factor(visit: Visit) -> Response:
    """Take the app as second factor, and show the recovery codes."""
    strengthened = await security.confirmed_app(visit)
    if strengthened is None:
        return await second_factor_page(visit)
    visit.cookies.append(session_cookie(visit.services.settings, strengthened.token))
    following = wizard.path_after("second-factor")
    return render("people/codes.html", visit, groups=[], codes=strengthened.codes or [], path=following)


async def _refused(visit: Visit) -> Response | None:
    """The page for a link that leads nowhere; None for the good one. Whoever tries many waits."""
    services, address = visit.services, visit.request.client_ip
    if services.unknown_links.spent(address):
        raise HttpError(429, "too_many_tries", "Too many tries in vain. Wait ten minutes, then try again.")
    if await links.is_empty(visit.pool) and await links.is_good(
        visit.pool, services.root, visit.parameters["token"]
    ):
        return None
    services.unknown_links.note(address)
    return await _over(visit)


async def _over(visit: Visit) -> Response:
    """Why the link leads nowhere, and what to do about it."""
    return render("setup/over.html", visit, status=410, empty=await links.is_empty(visit.pool))


async def _read(visit: Visit) -> Beginning | None:
    """What the form says; None, and problems beside its fields, where something is wrong."""
    form, problems = visit.form, visit.problems
    name, country, email, password = (
        form.get("name"),
        form.get("country"),
        form.get("email"),
        form.raw("password"),
    )
    try:
        read("operator_name", name)
    except SettingsError:
        problems["name"] = "A name of 1 to 60 characters."
    if country not in countries():
        problems["country"] = "Choose a country."
    try:
        email = UserDraft(email, None, "admin").email
    except ValueError as wrong:
        problems["email"] = sentence(wrong)
    logo = visit.files.get("logo")
    if logo is not None:
        try:
            if len(logo.content) > LOGO_BYTES_MAX:
                raise BadLogo(f"is larger than {LOGO_BYTES_MAX // 1024} KB: add it in the settings later")
            logos.name_of(logo.content)
        except BadLogo as bad:
            problems["logo"] = sentence(bad)
    if problems:
        return None
    try:
        password_hash = await hash_password(password, [email, name])
    except ValueError as weak:
        problems["password"] = sentence(weak)
        return None
    return Beginning(name, country, email, password_hash, None if logo is None else logo.content)
