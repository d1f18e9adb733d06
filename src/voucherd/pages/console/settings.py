"""The shop's profile and settings: what may change while the program runs, and what it was started with (OP-152)."""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple

from voucherd.catalogue import logos
from voucherd.catalogue.logos import BadLogo
from voucherd.companies.places import countries
from voucherd.db import transaction
from voucherd.http import Response
from voucherd.pages.forms import sentence
from voucherd.pages.render import render
from voucherd.pages.visit import Visit
from voucherd.settings import RUNNING, Settings, written
from voucherd.setup import deeds, store
from voucherd.setup.deeds import BadSetting
from voucherd.setup.running import HIDDEN

PATH: Final = "/console/settings"
BODY_BYTES_MAX: Final = logos.BYTES_MAX + 64 * 1024
_SCALES: Final = {"hours": 3_600, "days": 86_400, "%": 100}
"""What people write these settings in, and how much of the program's own unit that is."""


class Field(NamedTuple):
    """One setting as the page asks for it."""

    name: str
    label: str
    hint: str = ""
    unit: str = ""


RULES: Final = (
    Field("operator_second_factor", "Your staff need a second factor"),
    Field(
        "mail_from", "Sender of letters", "A name and an address, such as Shop <no-reply@shop.example.com>."
    ),
    Field("fx_url", "Exchange rates from", "Fetched once a day. Leave it empty to set rates by hand."),
    Field("fx_age_s_max", "Use an exchange rate for at most", "0 for any age.", "days"),
    Field("margin_min_bp", "Smallest margin", "Nothing is sold for less than its cost and this.", "%"),
    Field(
        "confirmation_window_s", "A price is kept for", "Then an order can't be confirmed any more.", "hours"
    ),
    Field("delivery_window_s", "Late codes may take", "Then the order is cancelled and refunded.", "hours"),
    Field(
        "archive_months", "Months that stay in the database", "voucherd archive moves older ones to files."
    ),
)
_PROFILE: Final = (Field("operator_name", "Name"), Field("operator_country", "Country"))


async def page(visit: Visit) -> Response:
    """What holds now, and what the program was started with."""
    services = visit.services
    stored = await store.stored(visit.pool)
    now, _ = services.running.started_with.changed(stored)
    return render(
        "console/settings.html",
        visit,
        name=_again(visit, "operator_name", now.operator_name),
        country=_again(visit, "operator_country", now.operator_country),
        countries=list(countries().items()),
        logo=stored.get("operator_logo"),
        logo_bytes_max=logos.BYTES_MAX,
        rules=[_row(visit, field, now, stored) for field in RULES],
        fixed=_fixed(now),
        hidden=HIDDEN in stored,
    )


async def save(visit: Visit) -> Response:
    """Choose what holds from now on; what is as the program was started with is not stored."""
    given = [field for field in (*_PROFILE, *RULES) if field.name in visit.form]
    started = visit.services.running.started_with
    chosen: dict[str, str | None] = {}
    for field in given:
        text = visit.form.get(field.name)
        as_started = field not in _PROFILE and text == _shown(field, started)
        chosen[field.name] = None if as_started else visit.problems.read(field.name, field_text(field), text)
    logo = visit.files.get("logo")
    if not visit.problems:
        try:
            async with transaction(visit.pool) as tx:
                await deeds.choose(tx, visit.actor, chosen)
                if logo is not None:
                    await deeds.set_logo(tx, visit.actor, logo.content)
                elif "remove_logo" in visit.form:
                    await deeds.remove_logo(tx, visit.actor)
        except BadSetting as bad:
            visit.problems[bad.name] = sentence(bad.rule.partition(", not ")[0])
        except BadLogo as bad:
            visit.problems["logo"] = sentence(bad)
    if visit.problems:
        return await page(visit)
    await visit.services.running.refresh()
    return visit.go(PATH, "Saved. It holds everywhere within seconds.")


def field_text(field: Field) -> Any:
    """What reads the field: a text as the environment would write it, from what people write."""
    scale = _SCALES.get(field.unit)

    def read(text: str) -> str:
        if scale is None:
            return text
        try:
            value = Decimal(text) * scale
        except InvalidOperation:
            raise ValueError("A number, such as 24.") from None
        if not value.is_finite() or value.adjusted() > 15:
            raise ValueError("A number, such as 24.")
        whole = value == value.to_integral_value()
        return str(int(value)) if whole else f"{value:f}"

    return read


def _row(visit: Visit, field: Field, now: Settings, stored: dict[str, str]) -> dict[str, Any]:
    started = visit.services.running.started_with
    return {
        "field": field,
        "value": _again(visit, field.name, _shown(field, now)),
        "started": _shown(field, started) if field.name in stored else None,
    }


def _shown(field: Field, settings: Settings) -> str:
    """A setting in the unit that people write it in."""
    value, scale = getattr(settings, field.name), _SCALES.get(field.unit)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if scale is None:
        return written(value)
    plain = Decimal(str(value)) / scale
    return f"{plain.normalize():f}"


def _fixed(now: Settings) -> list[tuple[str, str]]:
    """The settings that are read at the start alone, by the names of their variables; no secret among them."""
    names = [one.name for one in fields(Settings) if one.name not in RUNNING and one.name != "warnings"]
    return [(f"VOUCHERD_{name.upper()}", now.told(name)) for name in names]


def _again(visit: Visit, name: str, stored: str) -> str:
    """The field as it was sent, where this form was; else as it is."""
    return visit.form.get(name, stored) if visit.problems else stored
