"""`voucherd product`: what is for sale, and at what price."""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal
from textwrap import shorten
from typing import Annotated, Any, Final, TypeAlias

import typer

from voucherd.catalogue import product_deeds, store
from voucherd.catalogue.products import Leaflet, Listing, ProductChanges, ProductDraft, ProductVersion
from voucherd.catalogue.search import every_product
from voucherd.catalogue.texts import face_text, read_face, read_selling
from voucherd.cli import product_files
from voucherd.cli.command import command, noun, usage
from voucherd.cli.context import CommandContext
from voucherd.cli.output import Output, record, table
from voucherd.cli.words import decimal
from voucherd.money import RATE_DIGITS, Money, plain

TEXT_CHARS_SHOWN: Final = 200
"""Of a long text the beginning is enough to recognise it; `--json` has all of it."""

app = noun()

Slug: TypeAlias = Annotated[str, typer.Argument(metavar="SLUG", help="Its name in orders.")]
Name = typer.Option("--name", help="Its name for people.")
Brand = typer.Option("--brand", help="Whose it is.")
Type = typer.Option("--type", help="giftcard, gamecard, topup, paymentcard or subscription.")
Category = typer.Option("--category", help="A word of your own, such as games.")
RedeemType = typer.Option("--redeem-type", help="currency, product or subscription.")
Region = typer.Option("--region", help="Where it can be used: ww, eu, nl …")
FaceValue: TypeAlias = Annotated[str | None, typer.Option("--face-value", metavar="'50 EUR'")]
FaceValueRange: TypeAlias = Annotated[
    str | None, typer.Option("--face-value-range", metavar="'5-500 EUR'", help="The client picks one.")
]
Price: TypeAlias = Annotated[str | None, typer.Option("--price", metavar="'48.10 EUR'")]
Fee: TypeAlias = Annotated[
    str | None, typer.Option("--fee", metavar="1.02+0.10", help="× the face value, plus; instead of a price.")
]
VatCategory = typer.Option("--vat-category", help="single_purpose, multi_purpose or exempt.")
Instructions = typer.Option("--redeem-instructions", help="How a code is redeemed.")
Terms = typer.Option("--terms", help="What its user agrees to.")
ImageUrl = typer.Option("--image-url", metavar="https://…", help="A picture of it.")


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
    async_delivery: Annotated[bool, typer.Option("--async-delivery", help="May be delivered later.")] = False,
    incentive: Annotated[bool, typer.Option("--incentive", help="Given away, not sold on.")] = False,
    redeem_instructions: Annotated[str, Instructions] = "",
    terms: Annotated[str, Terms] = "",
    image_url: Annotated[str, ImageUrl] = "",
    inactive: Annotated[bool, typer.Option("--inactive", help="Not for sale yet.")] = False,
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
    async_delivery: Annotated[bool | None, typer.Option("--async-delivery/--no-async-delivery")] = None,
    incentive: Annotated[bool | None, typer.Option("--incentive/--no-incentive")] = None,
    redeem_instructions: Annotated[str | None, Instructions] = None,
    terms: Annotated[str | None, Terms] = None,
    image_url: Annotated[str | None, ImageUrl] = None,
    active: Annotated[bool | None, typer.Option("--active/--inactive", help="For sale.")] = None,
    allow_loss: Annotated[
        bool | None, typer.Option("--allow-loss/--no-allow-loss", help="May sell below its cost.")
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
    brand: Annotated[str | None, typer.Option(help="Only this brand's, by its slug.")] = None,
    active: Annotated[bool | None, typer.Option("--active/--inactive", help="Only these.")] = None,
) -> Output:
    """List the products."""
    async with context.connection() as connection:
        listings = await every_product(connection, brand=brand, active=active)
    view = table(
        ["slug", ">face value", ">price", "active", "?region", "?type", "?name"],
        [_row(listing) for listing in listings],
        empty="No products.",
    )
    return Output([_document(listing) for listing in listings], view)


command(app, "export")(product_files.export)
command(app, "import")(product_files.import_)


def _row(listing: Listing) -> tuple[object, ...]:
    version = listing.version
    return (
        version.slug,
        face_text(version),
        _selling_text(version),
        listing.active,
        version.region,
        version.product_type,
        version.name,
    )


def _selling_text(version: ProductVersion) -> str:
    if version.price_minor is not None and version.price_currency is not None:
        return str(Money(version.price_minor, version.price_currency))
    times = plain(version.fee_variable_e8 or 0, RATE_DIGITS).rstrip("0").rstrip(".")
    fixed = decimal(version.fee_fixed_minor or 0, version.face_currency)
    return f"×{times} + {fixed}" if fixed else f"×{times}"


def _whole(listing: Listing, leaflet: Leaflet) -> Output:
    """One product with its texts, which a list leaves out."""
    texts = {
        "redeemInstructions": leaflet.redeem_instructions or None,
        "terms": leaflet.terms or None,
        "imageUrl": leaflet.image_url or None,
    }
    return Output(_document(listing) | texts, _view(listing, leaflet))


def _view(listing: Listing, leaflet: Leaflet) -> Any:
    version = listing.version
    texts = [
        ("redeem", leaflet.redeem_instructions),
        ("terms", leaflet.terms),
        ("image", leaflet.image_url),
    ]
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
        *((name, shorten(text, TEXT_CHARS_SHOWN, placeholder=" …")) for name, text in texts if text),
        ("active", listing.active),
        *([("sells", "below its cost, too")] if listing.allow_loss else []),
    ]
    return record(pairs)


def _document(listing: Listing) -> dict[str, Any]:
    version, face, fee_e8 = listing.version, listing.version.face_currency, listing.version.fee_variable_e8

    def amount(minor: int | None, currency: str | None) -> Any:
        return None if minor is None or currency is None else decimal(minor, currency)

    return {
        "slug": version.slug,
        "name": version.name,
        "brand": version.brand_name,
        "type": version.product_type,
        "category": version.category,
        "redeemType": version.redeem_type,
        "region": version.region,
        "faceValueCurrency": face,
        "faceValue": amount(version.face_minor, face),
        "faceValueMin": amount(version.face_min_minor, face),
        "faceValueMax": amount(version.face_max_minor, face),
        "price": amount(version.price_minor, version.price_currency),
        "priceCurrency": version.price_currency,
        "feeVariable": None if fee_e8 is None else Decimal(fee_e8).scaleb(-RATE_DIGITS),
        "feeFixed": amount(version.fee_fixed_minor, face),
        "vatCategory": version.vat_category,
        "asyncDelivery": version.async_delivery,
        "incentive": version.incentive,
        "active": listing.active,
        "allowLoss": listing.allow_loss,
    }
