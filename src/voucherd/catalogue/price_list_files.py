"""Reads what an operator writes about prices of a company's own: terms, and files of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from typing import Final

from msgspec import Struct

from voucherd.catalogue.products import Fee, ProductDraft, ProductVersion, draft_of
from voucherd.catalogue.rules import BadProduct
from voucherd.catalogue.terms import DISCOUNT_BP_MAX, PriceEntry, PriceTerms
from voucherd.catalogue.texts import read_selling, read_share
from voucherd.money import RATE_DIGITS, Money, digits, plain
from voucherd.sheets.model import CellKind, SheetRefused, SheetRow

COLUMNS: Final = ("product", "brand", "discount", "price", "fee", "from", "until")
FILE_ROWS_MAX: Final = 20_000


class PriceChange(Struct, frozen=True):
    """One row of a file of prices, or one command, before anyone looked at the product."""

    product: str | None = None
    brand: str | None = None
    discount: str | None = None
    price: str | None = None
    fee: str | None = None
    from_: date | None = None
    until: date | None = None


class ListedEntry(Struct, frozen=True):
    """An entry as an operator sees it."""

    slug: str | None
    brand_slug: str | None
    entry: PriceEntry
    valid_from: date | None
    valid_until: date | None

    @property
    def said(self) -> tuple[str | None, str | None, str | None]:
        """Discount, price and fee, as they are written; all but one are None."""
        return _discount_text(self.entry.terms), _price_text(self.entry.terms), _fee_text(self.entry)


def rows(entries: Iterable[ListedEntry]) -> list[tuple[str | None, ...]]:
    """The rows of a file that says what these entries say."""
    return [
        (one.slug, one.brand_slug, *one.said, _written(one.valid_from), _written(one.valid_until))
        for one in entries
    ]


def _written(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def entry_of(wanted: PriceChange, version: ProductVersion | None) -> PriceEntry:
    """The entry that is meant; the version is its product's, None for a brand or a whole list."""
    given = [name for name in ("discount", "price", "fee") if getattr(wanted, name) is not None]
    if len(given) != 1:
        raise BadProduct("discount", "give one of discount, price and fee")
    if wanted.from_ and wanted.until and wanted.until < wanted.from_:
        raise BadProduct("until", "must not be before from")
    if wanted.product is not None and wanted.brand is not None:
        raise BadProduct("brand", "give a product or a brand, not both")
    if wanted.discount is not None:
        discount_bp = read_share("discount", wanted.discount)
        if not 1 <= discount_bp <= DISCOUNT_BP_MAX:
            raise BadProduct("discount", "must be between 0.01% and 99.99%")
        return PriceEntry(PriceTerms(discount_bp))
    if version is None:
        raise BadProduct(given[0], "is for a product; a brand or a whole list has a discount")
    # The same rules as for the product's own price: a range needs a fee, a fee leaves something to pay …
    draft = replace(draft_of(version), selling=read_selling(wanted.price, wanted.fee))
    return _fixed(draft, version)


def _fixed(draft: ProductDraft, version: ProductVersion) -> PriceEntry:
    *_, price_minor, price_currency, fee_variable_e8, fee_fixed_minor = draft.figures()
    terms = PriceTerms(0, price_minor, price_currency, fee_variable_e8, fee_fixed_minor)  # type: ignore[arg-type]
    return PriceEntry(
        terms, version.face_currency, None if isinstance(draft.selling, Fee) else version.face_minor
    )


def _discount_text(terms: PriceTerms) -> str | None:
    """The discount as it is written: 2%."""
    return f"{plain(terms.discount_bp, 2).rstrip('0').rstrip('.')}%" if terms.discount_bp else None


def _price_text(terms: PriceTerms) -> str | None:
    """The fixed price as it is written: 47.50 EUR."""
    if terms.price_minor is None or terms.price_currency is None:
        return None
    return str(Money(terms.price_minor, terms.price_currency))


def _fee_text(entry: PriceEntry) -> str | None:
    """The fee as it is written: 1.01+0.05."""
    terms = entry.terms
    if terms.fee_variable_e8 is None or entry.face_currency is None:
        return None
    times = plain(terms.fee_variable_e8, RATE_DIGITS).rstrip("0").rstrip(".")
    fixed_minor = terms.fee_fixed_minor or 0
    return f"{times}+{plain(fixed_minor, digits(entry.face_currency))}" if fixed_minor else times


def read_file(lines: Iterable[SheetRow]) -> list[tuple[int, PriceChange]]:
    """The rows of a file of prices, each with its number; refused at the first that can't be read."""
    found = iter(lines)
    header = next(found, None)
    if header is None:
        raise SheetRefused("the file is empty: its first row must name the columns")
    names = [cell.text.strip().lower() for cell in header.cells]
    unknown = [name for name in names if name not in COLUMNS]
    if unknown or len(set(names)) != len(names):
        raise SheetRefused(f"row {header.number}: the columns must be of {', '.join(COLUMNS)}, each once")
    wanted = [(row.number, _wanted(row, names)) for row in found]
    if len(wanted) > FILE_ROWS_MAX:
        raise SheetRefused(f"the file has more than {FILE_ROWS_MAX:,} rows")
    return wanted


def _wanted(row: SheetRow, names: Sequence[str]) -> PriceChange:
    if len(row.cells) > len(names):
        raise SheetRefused(f"row {row.number}: has more cells than the header")
    texts: dict[str, str | None] = {}
    for name, cell in zip(names, row.cells, strict=False):
        if cell.kind not in (CellKind.TEXT, CellKind.MOMENT) and not (
            cell.kind is CellKind.NUMBER and name == "fee"
        ):
            raise SheetRefused(f"row {row.number}, column {name}: is {cell.kind.value}, and must be text")
        texts[name] = cell.text or None
    days = {name: _day(row.number, name, texts.pop(name, None)) for name in ("from", "until")}
    return PriceChange(**texts, from_=days["from"], until=days["until"])


def _day(number: int, name: str, text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        raise SheetRefused(
            f"row {number}, column {name}: {text[:40]!a} is not a day such as 2027-12-31"
        ) from None
