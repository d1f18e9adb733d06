"""The changes that a file of products would make: every row against the catalogue, every error told. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from voucherd.catalogue.cells import FLAGS, BadCell, RowCells
from voucherd.catalogue.columns import COLUMNS, FIELDS, TEXTS, several_lines, text, values
from voucherd.catalogue.products import Fee, Leaflet, Listing, ProductChanges, ProductDraft, draft_of, slugify
from voucherd.catalogue.rules import BadProduct
from voucherd.money import RATE_ONE, Money
from voucherd.sheets.model import SheetRefused, SheetRow

FILE_ROWS_MAX: Final = 20_000
ERRORS_KEPT_MAX: Final = 100

_REQUIRED: Final = ("name", "brand", "type", "category", "redeem-type", "region")
_DEFAULTS: Final[dict[str, object]] = {
    "vat-category": "multi_purpose",
    "async-delivery": False,
    "incentive": False,
    "redeem-instructions": "",
    "terms": "",
    "image-url": "",
}
"""What clearing a column means; the others can't be cleared."""
_DRAFT_FIELDS: Final = FIELDS | {
    "slug": "slug",
    "face-value": "face",
    "face-value-range": "face",
    "price": "selling",
    "fee": "selling",
}
_BLANK: Final = ProductDraft(
    slug="blank",
    name="blank",
    brand="blank",
    product_type="giftcard",
    category="blank",
    redeem_type="currency",
    region="ww",
    face=Money(100, "EUR"),
    selling=Fee(RATE_ONE, Money(0, "EUR").decimal()),
)
"""What a new product is before its row has said anything, so that a row's errors are found like any other's."""


class FieldChange(NamedTuple):
    """A column of a product that would change."""

    column: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ProductFileChange:
    """A product that a row adds or changes."""

    row: int
    added: bool
    draft: ProductDraft
    active: bool
    fields: list[FieldChange]

    def changes(self) -> ProductChanges:
        """The whole product as changes: what is the same changes nothing."""
        kept = {name: getattr(self.draft, name) for name in FIELDS.values()}
        return ProductChanges(**kept, face=self.draft.face, selling=self.draft.selling, active=self.active)


@dataclass(slots=True)
class ImportPlan:
    """What a file would change, in the order of its rows; if it has errors, nothing."""

    changes: list[ProductFileChange] = field(default_factory=list)
    unchanged: int = 0
    errors: list[BadCell] = field(default_factory=list)
    error_count: int = 0

    @property
    def added(self) -> int:
        """How many products are new."""
        return sum(change.added for change in self.changes)

    @property
    def changed(self) -> int:
        """How many known products change."""
        return len(self.changes) - self.added

    def note(self, errors: Iterable[BadCell]) -> None:
        """Count the errors, and keep the first ones."""
        for error in errors:
            self.error_count += 1
            if len(self.errors) < ERRORS_KEPT_MAX:
                self.errors.append(error)


def read(rows: Iterable[SheetRow]) -> list[RowCells]:
    """The rows below the header, by its names; refused if it is not the header of such a file."""
    found = iter(rows)
    header = next(found, None)
    if header is None:
        raise SheetRefused("the file is empty: its first row must name the columns")
    names = ["-".join(cell.text.lower().replace("_", " ").replace("-", " ").split()) for cell in header.cells]
    for at, name in enumerate(names):
        shown = ascii(header.cells[at].text[:40])
        if name not in COLUMNS:
            raise SheetRefused(f"row {header.number}, column {shown}: is none of {', '.join(COLUMNS)}")
        if names.index(name) != at:
            raise SheetRefused(f"row {header.number}, column {shown}: is there twice")
    if "slug" not in names:
        raise SheetRefused(f"row {header.number}: there is no column slug")
    read_rows: list[RowCells] = []
    for row in found:
        if len(read_rows) == FILE_ROWS_MAX:
            raise SheetRefused(f"the file has more than {FILE_ROWS_MAX:,} rows")
        read_rows.append(RowCells(row, names))
    return read_rows


def plan(
    rows: Iterable[RowCells], listings: Mapping[str, Listing], leaflets: Mapping[int, Leaflet]
) -> ImportPlan:
    """What the rows change of these listings and their texts; a slug that is none of them is a new product."""
    planned = ImportPlan()
    seen: dict[str, int] = {}
    for row in rows:
        slug = row.slug
        change = None
        if not slug:
            row.note("slug", "is needed")
        elif slug in seen:
            row.note("slug", f"is in row {seen[slug]} already")
        else:
            seen[slug] = row.number
            change = _change(row, slug, listings.get(slug), leaflets)
        planned.note(row.bad)
        if change is not None and not row.bad:
            if change.fields:
                planned.changes.append(change)
            else:
                planned.unchanged += 1
    return planned


def _change(
    row: RowCells, slug: str, before: Listing | None, leaflets: Mapping[int, Leaflet]
) -> ProductFileChange | None:
    base = _BLANK if before is None else draft_of(before.version, leaflets[before.version.version_id])
    wanted = _wanted(row, base, before)
    if before is None:
        wanted["slug"] = slug
    active = row.flag("active")
    was_active = before is None or before.active
    draft = _amended(row, base, wanted)
    if draft is None:
        return None
    active = was_active if active is None else active
    then = {} if before is None else values(base, was_active)
    fields = [
        FieldChange(column, text(then.get(column)), text(value))
        for column, value in values(draft, active).items()
        if text(then.get(column)) != text(value)
    ]
    return ProductFileChange(row.number, before is None, draft, active, fields)


def _wanted(row: RowCells, base: ProductDraft, before: Listing | None) -> dict[str, object]:
    """The fields of the draft that the row fills."""
    wanted: dict[str, object] = {}
    for column, name in FIELDS.items():
        if row.cleared(column):
            if column in _DEFAULTS:
                wanted[name] = _DEFAULTS[column]
            else:
                row.note(column, "can't be cleared")
        elif column in FLAGS:
            if (flag := row.flag(column)) is not None:
                wanted[name] = flag
        elif (word := row.word(column)) is not None:
            wanted[name] = several_lines(word) if column in TEXTS else word
        elif before is None and column in _REQUIRED and not row.has_error(column):
            row.note(column, "is needed for a new product")
    face = row.face(None if before is None else base)
    selling = row.selling(None if before is None else base)
    wanted |= {} if face is None else {"face": face}
    wanted |= {} if selling is None else {"selling": selling}
    brand = wanted.get("brand")
    if isinstance(brand, str) and before is not None and _same_brand(brand, before.version.brand_slug):
        del wanted["brand"]  # The first spelling of a brand's name stays.
    return wanted


def _same_brand(name: str, slug: str) -> bool:
    try:
        return slugify(name) == slug
    except BadProduct:
        return False


def _amended(row: RowCells, base: ProductDraft, wanted: dict[str, object]) -> ProductDraft | None:
    """The product with what the row wants; each field that breaks a rule is noted, and the rest tried without it."""
    while True:
        try:
            return replace(base, **wanted)  # type: ignore[arg-type]
        except BadProduct as bad:
            row.note(bad.field, bad.rule)
            if wanted.pop(_DRAFT_FIELDS[bad.field], None) is None:
                return None
