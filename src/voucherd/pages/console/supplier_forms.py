"""A supplier's form: how it is spoken to, tested before it is saved, its key sealed and never shown (OP-158)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from voucherd.db import transaction
from voucherd.http import Response
from voucherd.ids import State
from voucherd.pages.console.pickers import currency_options
from voucherd.pages.forms import sentence, whole
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, see_other
from voucherd.suppliers import deeds, drafts, registry, trial
from voucherd.suppliers import store as supplier_store
from voucherd.suppliers.deeds import SupplierChanges
from voucherd.suppliers.drafts import ON_UNKNOWN, URL_KEYS, BadSupplier
from voucherd.suppliers.registry import KINDS, Spec
from voucherd.suppliers.sandbox import SandboxAnswer
from voucherd.suppliers.store import OfferRow, SupplierDraft, SupplierExists, SupplierRow
from voucherd.suppliers.trial import OFFERS_TRIED, TrialFinding

PATH: Final = "/console/suppliers"
TEST_S_MAX: Final = 25.0
KEY_CHARS_MAX: Final = 4_096

KIND_NAMES: Final = {
    "voucherd": (
        "Another voucherd",
        "A shop that runs this software: its address and an API key of yours there.",
    ),
    "http": ("HTTP API", "Any supplier with a JSON API, described in a file: how to ask, buy and look up."),
    "sandbox": ("Test supplier", "Sells made-up codes to sandbox orders, with the outcome that you choose."),
}
WHAT: Final = {"opens": "Settings", "prices": "Prices", "look-up": "Look-up", "answers": "Answer"}
"""What a finding of a test is about, in words of pages."""

_STATES: Final = {"live": State.LIVE, "sandbox": State.SANDBOX}
_OUTCOMES: Final = [(one.value, one.value.replace("-", " ").capitalize()) for one in SandboxAnswer]
_NUMBERS: Final = {"voucherd": ("resolve_upto", "bulk_max"), "http": (), "sandbox": ("stock",)}
_TEXTS: Final = {"voucherd": (), "http": (), "sandbox": ("outcome", "price")}
_WRITTEN: Final = ("name", "state", "url", "currency", "description", "on_unknown", "resolve_upto", "bulk_max",
                   "outcome", "delay_s", "price", "stock")  # fmt: skip
_FIELDS: Final = {"base_url": "url", "secret": "key"}
"""Keys of a config that the form has under another name."""
_PLACE: Final = b"supplier-form/"


async def new_page(visit: Visit) -> Response:
    """The kinds of suppliers, or the form of the one that was chosen."""
    kind = visit.query.get("kind")
    if kind not in KINDS:
        return render("console/supplier_kinds.html", visit, kinds=KIND_NAMES)
    return _form(visit, kind, dict.fromkeys(_WRITTEN, "") | _first(visit, kind))


async def add(visit: Visit) -> Response:
    """Add a supplier, or only test what would be added."""
    form, problems = visit.form, visit.problems
    kind = form.get("kind")
    if kind not in KINDS:
        return see_other(f"{PATH}/-/new")
    name, state = form.get("name"), _STATES.get(form.get("state"))
    problems.read("name", drafts.check_name, name)
    if state is None or (kind == "sandbox" and state is State.LIVE):
        problems["state"] = "Choose one." if state is None else "Choose sandbox: it sells nothing real."
    config, secret = _config(visit, kind, None), _key(visit)
    if problems or config is None or state is None:
        return _form(visit, kind, _sent(visit), secret=secret)
    spec = Spec(name, kind, state, config, secret, 20.0)
    if not await _opens(visit, spec, secret):
        return _form(visit, kind, _sent(visit), secret=secret)
    if "test" in form:
        found = await speak_with(visit, spec, form.get("on_unknown"))
        return _form(visit, kind, _sent(visit), secret=secret, found=found)
    draft = SupplierDraft(name, kind, state, config, secret, on_unknown=form.get("on_unknown"))
    try:
        await visit.do(deeds.add, draft, visit.services.sealer, visit.services.webhooks.own)
    except SupplierExists:
        problems["name"] = "There is a supplier of that name already."
        return _form(visit, kind, _sent(visit), secret=secret)
    return visit.go(f"{PATH}/{name}", f"{name} is added. Say what it sells next.")


async def edit_page(visit: Visit) -> Response:
    """The form with a supplier's settings as they are; never its key, nor its description."""
    row = await visit.look(supplier_store.supplier, visit.parameters["name"])
    return _form(visit, row.kind, _values(row), row)


async def edit(visit: Visit) -> Response:
    """Change how a supplier is spoken to, or only test what would be changed."""
    async with visit.pool.acquire() as conn:
        row = await supplier_store.supplier(conn, visit.parameters["name"])
        sold = [one for one in await supplier_store.offers(conn, row.id) if one.active]
    config, secret = _config(visit, row.kind, row.config), _key(visit)
    if visit.problems or config is None:
        return _form(visit, row.kind, _sent(visit), row, secret)
    before = row.spec(visit.services.sealer)
    spec = Spec(row.name, row.kind, row.state, config, secret or before.secret, float(row.timeout_s))
    if not await _opens(visit, spec, secret):
        return _form(visit, row.kind, _sent(visit), row, secret)
    on_unknown = visit.form.get("on_unknown")
    if "test" in visit.form:
        found = await speak_with(visit, spec, on_unknown, sold[:OFFERS_TRIED])
        return _form(visit, row.kind, _sent(visit), row, secret, found)
    changes = SupplierChanges(
        config=None if config == row.config else config, secret=secret, on_unknown=on_unknown
    )
    async with transaction(visit.pool) as tx:
        await deeds.change(
            tx, visit.actor, row.name, changes, visit.services.sealer, visit.services.webhooks.own
        )
    said = "Saved. Its prices are asked for anew." if changes.speaks_anew else "Saved."
    return visit.go(f"{PATH}/{row.name}", said)


async def speak_with(
    visit: Visit, spec: Spec, on_unknown: str, sold: Sequence[OfferRow] = ()
) -> list[TrialFinding]:
    """What came of speaking with a supplier; nothing is bought."""
    try:
        async with asyncio.timeout(TEST_S_MAX):
            return await trial.try_spec(visit.pool, spec, on_unknown, sold)
    except TimeoutError:
        return [TrialFinding("answers", False, f"it took longer than {TEST_S_MAX:.0f} seconds")]


def _first(visit: Visit, kind: str) -> dict[str, str]:
    """What a new form begins with."""
    state = "sandbox" if kind == "sandbox" else visit.state.word
    return {"state": state, "on_unknown": "wait", "outcome": "finished"}


def _values(row: SupplierRow) -> dict[str, str]:
    """The settings of a stored supplier as the form has them: plain keys alone, in whose texts no secret hides."""
    values = dict.fromkeys(_WRITTEN, "")
    values |= {name: str(row.config[name]) for name in values.keys() & row.config.keys() - {"description"}}
    values["url"] = str(row.config.get(URL_KEYS.get(row.kind, ""), ""))
    return values | {"name": row.name, "state": row.state.word, "on_unknown": row.on_unknown}


def _sent(visit: Visit) -> dict[str, str]:
    return {name: visit.form.get(name) for name in _WRITTEN}


def _config(visit: Visit, kind: str, before: dict[str, Any] | None) -> dict[str, Any] | None:
    """The config that the form describes, checked; None, and problems beside the fields, if it can't be used."""
    form, problems = visit.form, visit.problems
    if form.get("on_unknown") not in ON_UNKNOWN:
        problems["on_unknown"] = "Choose one."
    try:
        config = _described(visit, kind, before)
        if kind in URL_KEYS and (url := form.get("url")):
            config[URL_KEYS[kind]] = url
        if currency := form.get("currency"):
            config["currency"] = currency.upper()
        for name in _NUMBERS[kind]:
            if form.get(name) and (number := whole(form.get(name))) is None:
                raise BadSupplier(name, "must be a whole number")
            if form.get(name):
                config[name] = number
        for name in _TEXTS[kind]:
            config[name] = form.get(name)
        if kind == "sandbox":
            config["delay_s"] = _seconds(form.get("delay_s"))
        drafts.check_config(kind, config)
    except BadSupplier as bad:
        _note(visit, bad)
        return None
    return config


def _described(visit: Visit, kind: str, before: dict[str, Any] | None) -> dict[str, Any]:
    """What the config begins with: a new description, or what was stored."""
    if kind == "http":
        upload = visit.files.get("file")
        content = visit.form.get("description").encode() or (b"" if upload is None else upload.content)
        if content:
            return drafts.read_description(content)
        if before is None:
            raise BadSupplier("description", "paste it, or choose a file")
    return dict(before or {})


def _seconds(text: str) -> float:
    try:
        return float(text or "0")
    except ValueError:
        raise BadSupplier("delay_s", "must be a number of seconds") from None


def _key(visit: Visit) -> str | None:
    """The key that was typed, or the one that the form brings back sealed after a test."""
    typed = visit.form.get("key")
    if len(typed) > KEY_CHARS_MAX:
        visit.problems["key"] = f"Must be at most {KEY_CHARS_MAX} characters."
    if typed or not visit.form.get("sealed_key"):
        return typed or None
    try:
        return visit.services.sealer.open_text(_place(visit), bytes.fromhex(visit.form.get("sealed_key")))
    except ValueError:
        visit.problems["key"] = "Write the key again."
        return None


async def _opens(visit: Visit, spec: Spec, new_key: str | None) -> bool:
    """Whether an adapter could work with this; if not, a problem stands beside its field."""
    try:
        if new_key is not None and not registry.needs_secret(spec.kind, spec.config):
            raise BadSupplier("secret", "this supplier takes none")
        drafts.check_reach(spec.kind, spec.config, visit.services.webhooks.own)
        adapter = registry.open_supplier(spec, visit.pool)
    except ValueError as wrong:
        _note(visit, wrong if isinstance(wrong, BadSupplier) else drafts.named(wrong))
        return False
    await adapter.close()
    return True


def _note(visit: Visit, bad: BadSupplier) -> None:
    """Put a refusal beside its field; what the form has no field for is in the description, under its key."""
    field = _FIELDS.get(bad.field, bad.field)
    if field in (*_WRITTEN, "key"):
        visit.problems[field] = sentence(bad.rule)
    else:
        visit.problems["description"] = f"{bad}."


def _place(visit: Visit) -> bytes:
    return _PLACE + str(visit.someone.id).encode()


def _form(
    visit: Visit,
    kind: str,
    values: dict[str, str],
    row: SupplierRow | None = None,
    secret: str | None = None,
    found: Sequence[TrialFinding] | None = None,
) -> Response:
    sealed = "" if secret is None else visit.services.sealer.seal_text(_place(visit), secret).hex()
    return render(
        "console/supplier_form.html",
        visit,
        kind=kind,
        kind_name=KIND_NAMES[kind][0],
        row=row,
        values=values,
        sealed=sealed,
        found=found,
        what=WHAT,
        outcomes=_OUTCOMES,
        currencies=[
            ("", "As the description says" if kind == "http" else "Choose …"),
            *currency_options(["EUR"]),
        ],
    )
