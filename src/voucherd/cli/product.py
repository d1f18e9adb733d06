"""`voucherd product`: what is for sale, and at what price."""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal
from textwrap import shorten
from typing import Annotated, Any, Final, TypeAlias

import typer
from rich.console import RenderableType
from typer import Argument, Option

from voucherd.catalogue import files, product_deeds, search, store
from voucherd.catalogue.columns import COLUMNS, PRICE_COLUMNS, Value
from voucherd.catalogue.files import ImportPlan, ProductFileChange
from voucherd.catalogue.products import Leaflet, Listing, ProductChanges, ProductDraft, ProductVersion
from voucherd.catalogue.texts import face_text, read_face, read_selling
from voucherd.cli.command import command, noun, usage
from voucherd.cli.context import CommandContext
from voucherd.cli.files import FormatOption, InFile, OutFile, name_of, read_rows, save
from voucherd.cli.output import CommandRefused, Output, facts, listed, progress, record, stacked, table
from voucherd.cli.words import amount, decimal, priced
from voucherd.money import RATE_DIGITS, Money, plain

TEXT_CHARS_SHOWN: Final = 200
"""Of a long text the beginning is enough to recognise it; `--json` has all of it."""
CELL_CHARS_SHOWN: Final = 60

app = noun()

Slug: TypeAlias = Annotated[str, Argument(metavar="SLUG", help="Its name in orders.")]
Name = Option("--name", help="Its name for people.")
Brand = Option("--brand", help="Whose it is.")
Type = Option("--type", help="giftcard, gamecard, topup, paymentcard or subscription.")
Category = Option("--category", help="A word of your own, such as games.")
RedeemType = Option("--redeem-type", help="currency, product or subscription.")
Region = Option("--region", help="Where it can be used: ww, eu, nl …")
FaceValue: TypeAlias = Annotated[str | None, Option("--face-value", metavar="'50 EUR'")]
FaceValueRange: TypeAlias = Annotated[
    str | None, Option("--face-value-range", metavar="'5-500 EUR'", help="The client picks one.")
]
Price: TypeAlias = Annotated[str | None, Option("--price", metavar="'48.10 EUR'")]
Fee: TypeAlias = Annotated[
    str | None, Option("--fee", metavar="1.02+0.10", help="× the face value, plus; instead of a price.")
]
VatCategory = Option("--vat-category", help="single_purpose, multi_purpose or exempt.")
Instructions = Option("--redeem-instructions", help="How a code is redeemed.")
Terms = Option("--terms", help="What its user agrees to.")
ImageUrl = Option("--image-url", metavar="https://…", help="A picture of it.")


@command(app, "add")
async def add(
    context: CommandContext,
    slug: Slug,
    name: Annotated[str, Name],
    brand: Annotated[str, Brand],
    product_type: Annotated[str, Type],
    category: Annotated[str, Category],
    redeem_type: Annotated[str, RedeemType],
    region: Annotated[str, Region],
    face_value: FaceValue = None,
    face_value_range: FaceValueRange = None,
    price: Price = None,
    fee: Fee = None,
    vat_category: Annotated[str, VatCategory] = "multi_purpose",
    async_delivery: Annotated[bool, Option("--async-delivery", help="May be delivered later.")] = False,
    incentive: Annotated[bool, Option("--incentive", help="Given away, not sold on.")] = False,
    redeem_instructions: Annotated[str, Instructions] = "",
    terms: Annotated[str, Terms] = "",
    image_url: Annotated[str, ImageUrl] = "",
    inactive: Annotated[bool, Option("--inactive", help="Not for sale yet.")] = False,
) -> Output:
    """Add a product, at a fixed price or at face value plus a fee."""
    with usage():
        draft = ProductDraft(
            slug=slug,
            name=name,
            brand=brand,
            product_type=product_type,
            category=category,
            redeem_type=redeem_type,
            region=region,
            face=read_face(face_value, face_value_range),
            selling=read_selling(price, fee),
            vat_category=vat_category,
            async_delivery=async_delivery,
            incentive=incentive,
            redeem_instructions=redeem_instructions,
            terms=terms,
            image_url=image_url,
        )
    async with context.transaction() as tx:
        added = await product_deeds.add(tx, context.actor, draft, active=not inactive)
    return _whole(added, Leaflet(redeem_instructions, terms, image_url))


@command(app, "set")
async def set_(
    context: CommandContext,
    slug: Slug,
    name: Annotated[str | None, Name] = None,
    brand: Annotated[str | None, Brand] = None,
    product_type: Annotated[str | None, Type] = None,
    category: Annotated[str | None, Category] = None,
    redeem_type: Annotated[str | None, RedeemType] = None,
    region: Annotated[str | None, Region] = None,
    face_value: FaceValue = None,
    face_value_range: FaceValueRange = None,
    price: Price = None,
    fee: Fee = None,
    vat_category: Annotated[str | None, VatCategory] = None,
    async_delivery: Annotated[bool | None, Option("--async-delivery/--no-async-delivery")] = None,
    incentive: Annotated[bool | None, Option("--incentive/--no-incentive")] = None,
    redeem_instructions: Annotated[str | None, Instructions] = None,
    terms: Annotated[str | None, Terms] = None,
    image_url: Annotated[str | None, ImageUrl] = None,
    active: Annotated[bool | None, Option("--active/--inactive", help="For sale.")] = None,
    allow_loss: Annotated[
        bool | None, Option("--allow-loss/--no-allow-loss", help="May sell below its cost.")
    ] = None,
) -> Output:
    """Change a product; orders made before keep their prices. An empty text removes it."""
    with usage():
        changes = ProductChanges(
            name=name,
            brand=brand,
            product_type=product_type,
            category=category,
            redeem_type=redeem_type,
            region=region,
            face=read_face(face_value, face_value_range) if face_value or face_value_range else None,
            selling=read_selling(price, fee) if price or fee else None,
            vat_category=vat_category,
            async_delivery=async_delivery,
            incentive=incentive,
            redeem_instructions=redeem_instructions,
            terms=terms,
            image_url=image_url,
            active=active,
            allow_loss=allow_loss,
        )
    if all(getattr(changes, field.name) is None for field in fields(changes)):
        raise typer.BadParameter("nothing to change: give at least one option")
    async with context.transaction() as tx:
        after = await product_deeds.change(tx, context.actor, slug, changes)
        leaflets = await store.leaflets(tx, [after.version.version_id])
    return _whole(after, leaflets[after.version.version_id])


@command(app, "list")
async def list_(
    context: CommandContext,
    brand: Annotated[str | None, Option(help="Only this brand's, by its slug.")] = None,
    active: Annotated[bool | None, Option("--active/--inactive", help="Only these.")] = None,
) -> Output:
    """List the products."""
    async with context.connection() as connection:
        listings = await search.every_product(connection, brand=brand, active=active)
    texts = {one.version.slug: (face_text(one.version), _selling_text(one.version)) for one in listings}
    return listed(
        [_document(listing) for listing in listings],
        [
            *("slug", (">face value", lambda one: texts[one["slug"]][0])),
            *((">price", lambda one: texts[one["slug"]][1]), "active", "?region", "?type", "?name"),
        ],
        empty="No products.",
    )


@command(app, "export")
async def export(
    context: CommandContext,
    file: OutFile,
    format_: FormatOption = None,
    prices: Annotated[bool, Option("--prices", help="Only slug, price, price-currency and fee.")] = False,
) -> Output | None:
    """Write all products to a file that `product import` reads."""
    columns = PRICE_COLUMNS if prices else COLUMNS
    rows: list[list[Value]] = []
    after: str | None = ""
    async with context.connection() as connection:
        while after is not None:
            page, after = await search.sheet_page(connection, columns, after)
            rows += page
    return save(context, file, format_, "products", columns, rows)


@command(app, "import")
async def import_(
    context: CommandContext,
    file: InFile,
    dry_run: Annotated[bool, Option("--dry-run", help="Show what would change, and change nothing.")] = False,
) -> Output:
    """Add and change products as a file says: all of it, or nothing if it has an error."""
    rows = files.read(await read_rows(context, file))
    if dry_run:
        async with context.connection() as connection:
            plan = files.plan(rows, *await product_deeds.planned_from(connection, rows))
    else:
        async with context.transaction() as tx:
            with progress("products") as move:
                plan = await product_deeds.import_file(
                    tx,
                    context.actor,
                    name_of(file),
                    rows,
                    lambda done, total: move(completed=done, total=total),
                )
    if plan.error_count:
        cells = "1 cell is" if plan.error_count == 1 else f"{plan.error_count} cells are"
        raise CommandRefused(f"{cells} wrong; nothing was changed", _imported(plan, dry_run=dry_run))
    return _imported(plan, dry_run=dry_run)


def _selling_text(version: ProductVersion) -> str:
    if version.price_minor is not None and version.price_currency is not None:
        return str(Money(version.price_minor, version.price_currency))
    times = plain(version.fee_variable_e8 or 0, RATE_DIGITS).rstrip("0").rstrip(".")
    fixed = decimal(version.fee_fixed_minor or 0, version.face_currency)
    return f"×{times} + {fixed}" if fixed else f"×{times}"


def _whole(listing: Listing, leaflet: Leaflet) -> Output:
    """One product with its texts, which a list leaves out."""
    version = listing.version
    texts = {
        "redeemInstructions": leaflet.redeem_instructions or None,
        "terms": leaflet.terms or None,
        "imageUrl": leaflet.image_url or None,
    }
    said = zip(("redeem", "terms", "image"), texts.values(), strict=True)
    pairs = [
        ("product", version.slug),
        ("name", version.name),
        ("brand", version.brand_name),
        ("type", f"{version.product_type}, {version.category}, redeemed as {version.redeem_type}"),
        ("region", version.region),
        ("face value", face_text(version)),
        ("price", _selling_text(version)),
        ("VAT", version.vat_category),
        ("delivery", "may be later" if version.async_delivery else "at once or not at all"),
        *((name, _short(text, TEXT_CHARS_SHOWN)) for name, text in said if text),
        ("active", listing.active),
        *([("sells", "below its cost, too")] if listing.allow_loss else []),
    ]
    return Output(_document(listing) | texts, record(pairs))


def _document(listing: Listing) -> dict[str, Any]:
    version, face, fee_e8 = listing.version, listing.version.face_currency, listing.version.fee_variable_e8
    return facts(
        version,
        "slug name brand type category redeemType region faceValueCurrency faceValue faceValueMin faceValueMax price"
        " priceCurrency feeVariable feeFixed vatCategory asyncDelivery incentive",
        brand=version.brand_name,
        type=version.product_type,
        **priced("faceValue", version.face_minor, face),
        faceValueMin=amount(version.face_min_minor, face),
        faceValueMax=amount(version.face_max_minor, face),
        price=amount(version.price_minor, version.price_currency),
        feeVariable=None if fee_e8 is None else Decimal(fee_e8).scaleb(-RATE_DIGITS),
        feeFixed=amount(version.fee_fixed_minor, face),
        active=listing.active,
        allowLoss=listing.allow_loss,
    )


def _imported(plan: ImportPlan, *, dry_run: bool) -> Output:
    failed = plan.error_count > 0
    document = {
        "dryRun": dry_run,
        **({"added": 0, "changed": 0, "unchanged": 0} if failed else facts(plan, "added changed unchanged")),
        "changes": [] if failed else [_change(change) for change in plan.changes],
        "errorCount": plan.error_count,
        "errors": [facts(bad, "row column rule") for bad in plan.errors],
    }
    if failed:
        more = plan.error_count - len(plan.errors)
        lines = [*map(str, plan.errors), *([f"… and {more} more"] if more else [])]
        return Output(document, "\n".join(lines))
    counts = f"{plan.added} added, {plan.changed} changed, {plan.unchanged} unchanged"
    if not dry_run:
        return Output(document, f"{counts}.")
    said = f"This would be {counts}. Nothing was changed."
    return Output(document, stacked(_changes(plan), "", said) if plan.changes else said)


def _changes(plan: ImportPlan) -> RenderableType:
    rows: list[tuple[object, ...]] = []
    for change in plan.changes:
        if change.added:
            rows.append((change.row, change.draft.slug, "new", "", _new(change)))
        else:
            for column, *texts in change.fields:
                rows.append(
                    (change.row, change.draft.slug, column, *(_short(one, CELL_CHARS_SHOWN) for one in texts))
                )
    return table([">row", "slug", "what", "~from", "~to"], rows, empty="")


def _short(text: str, most: int) -> str:
    return shorten(text, most, placeholder=" …")


def _new(change: ProductFileChange) -> str:
    told = {field.column: field.after for field in change.fields}
    face = (
        f"{told['face-value']} {told['face-currency']}" if "face-value" in told else told["face-value-range"]
    )
    paid = f"for {told['price']} {told['price-currency']}" if "price" in told else f"at ×{told['fee']}"
    return f"{change.draft.name}: {face} {paid}" + ("" if change.active else ", inactive")


def _change(change: ProductFileChange) -> dict[str, Any]:
    fields = [
        {"column": name, "from": before or None, "to": after or None} for name, before, after in change.fields
    ]
    return {
        "row": change.row,
        "slug": change.draft.slug,
        "action": "add" if change.added else "change",
        "fields": fields,
    }
