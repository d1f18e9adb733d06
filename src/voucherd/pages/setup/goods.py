"""The set-up's steps about what is sold: currencies, a first product, and its codes."""

from __future__ import annotations

import io
from typing import Final

from voucherd.catalogue import product_deeds, rate_deeds, store
from voucherd.catalogue import search as register
from voucherd.catalogue.fx import BASE, BadRates, parse_rate
from voucherd.catalogue.products import ProductDraft, slugify
from voucherd.catalogue.rules import BadProduct
from voucherd.catalogue.search import ProductSearch
from voucherd.catalogue.store import ProductExists
from voucherd.catalogue.texts import read_amount
from voucherd.http import Response
from voucherd.money import DIGITS
from voucherd.pages.console.inputs import currency_of
from voucherd.pages.console.stock import read_terms
from voucherd.pages.forms import sentence
from voucherd.pages.setup import wizard
from voucherd.pages.visit import Visit
from voucherd.setup import deeds
from voucherd.suppliers import stocking
from voucherd.vault.imports import ImportRefused

BANK_URL: Final = "https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml"
"""The European Central Bank's rates of the day."""
CODES_BYTES_MAX: Final = 1024 * 1024
"""Codes that the step takes at once; the page for imports takes larger files."""
PRODUCTS_OFFERED_MAX: Final = 100
_KINDS: Final = {
    "giftcard": ("Gift card", "gift-cards", "currency"),
    "gamecard": ("Game card", "games", "currency"),
    "topup": ("Phone top-up", "top-ups", "currency"),
    "paymentcard": ("Payment card", "payment-cards", "currency"),
    "subscription": ("Subscription", "subscriptions", "subscription"),
}
"""For each type of product its name, and what a first one of it says where nobody asks."""
_FIELDS: Final = {
    "face-value": "face",
    "type": "product_type",
    "slug": "name",
    "price": "price",
    "brand": "brand",
}
"""Where the step asks for what a rule of products is about."""


async def currencies_page(visit: Visit) -> Response:
    """In which currencies the shop sells."""
    found = await visit.look(store.list_rates)
    return wizard.draw(
        visit,
        "currencies",
        rates=[(one.currency, rate_deeds.rate_text(one.eur_e8)) for one in found if one.currency != BASE],
        currencies=[(code, code) for code in sorted(DIGITS) if code != BASE],
        bank=visit.services.settings.fx_url is not None,
    )


async def currencies(visit: Visit) -> Response:
    """Sell in euros alone, by the bank's rates, or by a rate of one's own."""
    way = visit.form.get("way")
    if way == "euros":
        await visit.do(deeds.sell_in_euros_only)
        said = "Your shop sells in euros. Other currencies can follow under Exchange rates."
    elif way == "bank":
        await visit.do(deeds.choose, {"fx_url": BANK_URL})
        said = (
            "The rates of the European Central Bank are fetched once a day, the first time within a minute."
        )
    elif way == "own":
        currency, eur_e8 = visit.read("currency", currency_of), visit.read("rate", parse_rate)
        if currency is not None and eur_e8 is not None:
            try:
                await visit.do(rate_deeds.set_rate, currency, eur_e8)
            except BadRates as bad:
                visit.problems["currency"] = sentence(bad)
        said = f"1 {currency} is {visit.form.get('rate')} EUR."
    else:
        visit.problems["way"] = "Choose one."
    if visit.problems:
        return await currencies_page(visit)
    await visit.services.running.refresh()
    return wizard.go_on(visit, "currencies", said)


async def product_page(visit: Visit) -> Response:
    """The form for the first product."""
    return wizard.draw(
        visit,
        "product",
        kinds=[(kind, name) for kind, (name, _, _) in _KINDS.items()],
        currencies=_currencies(),
    )


async def product(visit: Visit) -> Response:
    """Add the product, for sale at once."""
    form, problems = visit.form, visit.problems
    currency = visit.read("currency", currency_of) or BASE
    kind = form.get("product_type")
    name, category, redeem_type = _KINDS.get(kind, ("", "", ""))
    if not name:
        problems["product_type"] = "Choose one."
    else:
        try:
            draft = ProductDraft(
                slug=slugify(form.get("name")),
                name=form.get("name"),
                brand=form.get("brand"),
                product_type=kind,
                category=category,
                redeem_type=redeem_type,
                region="ww",
                face=read_amount("face-value", f"{form.get('face')} {currency}"),
                selling=read_amount("price", f"{form.get('price')} {currency}"),
                redeem_instructions=form.get("redeem_instructions").replace("\r\n", "\n"),
            )
            await visit.do(product_deeds.add, draft, active=True)
        except BadProduct as bad:
            field = "name" if not form.get("name") else _FIELDS.get(bad.field, bad.field.replace("-", "_"))
            problems[field] = _words(bad)
        except ProductExists:
            problems["name"] = "There is a product of that name already."
    if problems:
        return await product_page(visit)
    return wizard.go_on(visit, "product", f"{draft.name} is for sale.")


async def codes_page(visit: Visit) -> Response:
    """The form for codes: pasted, or in a file."""
    async with visit.pool.acquire() as conn:
        found = await register.page_of_products(conn, ProductSearch(), size=PRODUCTS_OFFERED_MAX)
    form = visit.form
    return wizard.draw(
        visit,
        "codes",
        products=[(one.version.slug, one.version.name) for one in found if not one.version.is_variable],
        currencies=_currencies(),
        supplier=form.get("supplier") if visit.problems else "Own stock",
        # Codes are worth money: a page that is shown again does not repeat them.
        pasted=bool(form.get("codes")),
    )


async def codes(visit: Visit) -> Response:
    """Take the codes in: all that are new, or none."""
    form, problems, file = visit.form, visit.problems, visit.files.get("file")
    content = form.raw("codes").encode() if file is None else file.content
    currency = visit.read("currency", currency_of) or BASE
    purchase = f"{form.get('purchase')} {currency}"
    values = {"slug": form.get("slug"), "supplier": form.get("supplier"), "purchase": purchase, "face": ""}
    terms = await read_terms(visit, values)
    if file is None and not form.get("codes"):
        problems["codes"] = "Paste at least one code, or choose a file."
    if problems or terms is None:
        return await codes_page(visit)
    try:
        done = await stocking.import_file(
            visit.pool,
            visit.actor,
            visit.services.sealer,
            terms,
            "pasted codes" if file is None else file.name,
            io.BytesIO(content),
            skip_bad=False,
            progress=lambda _done, _codes: None,
        )
    except ImportRefused as refused:
        lines = "".join(f" Line {bad.line}: {bad.reason}." for bad in refused.bad[:3])
        problems["codes" if file is None else "file"] = f"{sentence(refused)}{lines}"
        return await codes_page(visit)
    return wizard.go_on(visit, "codes", f"{_counted(done.taken)} on the shelf, sealed.")


def _counted(count: int) -> str:
    return "1 code is" if count == 1 else f"{count} codes are"


def _currencies() -> list[tuple[str, str]]:
    return [(code, code) for code in (BASE, *(code for code in sorted(DIGITS) if code != BASE))]


def _words(bad: BadProduct) -> str:
    if bad.field in ("face-value", "price") and "such as" in bad.rule:
        return "An amount, such as 10 or 9.50."
    return sentence(bad.rule)
