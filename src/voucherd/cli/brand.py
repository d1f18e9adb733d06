"""`voucherd brand`: the brands of products, and their logos."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer
from typer import Argument

from voucherd.catalogue import brand_deeds, logos, store
from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext
from voucherd.cli.output import Output, facts, listed

app = noun()

Slug: TypeAlias = Annotated[str, Argument(metavar="SLUG", help="The brand, by its slug.")]


@command(app, "list")
async def list_(context: CommandContext) -> Output:
    """List the brands, and who has a logo."""
    async with context.connection() as connection:
        brands = await store.list_brands(connection)
        named = await logos.logos(connection)
    return listed(
        [facts(brand, "slug name", logo=named.get(brand.brand_id)) for brand in brands],
        ["slug", "name", ("logo", lambda brand: brand["logo"] is not None)],
        empty="No brands.",
    )


@command(app, "add")
async def add(
    context: CommandContext,
    name: Annotated[str, Argument(metavar="NAME", help="What it is called; its slug is made of it.")],
) -> Output:
    """Add a brand, before its first product."""
    async with context.transaction() as tx:
        brand = await brand_deeds.add(tx, context.actor, name)
    return Output({"slug": brand.slug, "name": brand.name, "logo": None}, f"{brand.name} is {brand.slug}.")


@command(app, "rename")
async def rename(
    context: CommandContext, slug: Slug, name: Annotated[str, Argument(metavar="NAME", help="Its new name.")]
) -> Output:
    """Give a brand another name; its slug stays."""
    async with context.transaction() as tx:
        brand = await brand_deeds.rename(tx, context.actor, slug, name)
    return Output({"slug": slug, "name": brand.name}, f"{slug} is called {brand.name}.")


@command(app, "set-logo")
async def set_logo(
    context: CommandContext,
    slug: Slug,
    file: Annotated[typer.FileBinaryRead, Argument(metavar="FILE", help="PNG, JPEG or WebP, up to 100 KB.")],
) -> Output:
    """Give a brand a logo, for the cards that recipients see."""
    content = file.read(logos.BYTES_MAX + 1)
    async with context.transaction() as tx:
        name = await brand_deeds.set_logo(tx, context.actor, slug, content)
    return Output({"slug": slug, "logo": name}, f"{slug} has a logo of {len(content):,} bytes.")


@command(app, "remove-logo")
async def remove_logo(context: CommandContext, slug: Slug) -> Output:
    """Take a brand's logo away; its card shows the name again."""
    async with context.transaction() as tx:
        had = await brand_deeds.remove_logo(tx, context.actor, slug)
    said = f"{slug} has no logo any more." if had else f"{slug} had none."
    return Output({"slug": slug, "logo": None}, said)
