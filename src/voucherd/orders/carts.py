"""Carts: what a person is about to buy. Only this file touches `cart` and `cart_item`; nothing here is a promise."""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct

from voucherd.db import Connection, Pool, Tx
from voucherd.ids import State
from voucherd.money import Money
from voucherd.orders.model import AMOUNT_MAX, ITEMS_MAX
from voucherd.orders.rules.cart import CartLine


class CartFull(ValueError):
    """The cart has as many products as an order may have."""

    def __init__(self) -> None:
        super().__init__(f"an order has at most {ITEMS_MAX} products")


class NotForSale(LookupError):
    """No such product is for sale."""


class CartItem(Struct, frozen=True):
    """One product of a cart."""

    product_id: int
    slug: str
    name: str
    brand: str
    brand_slug: str
    face_minor: int
    """0 where the product has a face value of its own."""
    face_currency: str
    amount: int

    @property
    def face(self) -> Money:
        """The face value that was picked."""
        return Money(self.face_minor, self.face_currency)

    @property
    def face_value(self) -> Decimal | None:
        """The face value that was picked, for a product that lets one pick."""
        return self.face.decimal() if self.face_minor else None

    @property
    def line(self) -> CartLine:
        """The same, as Create asks for it."""
        return CartLine(self.slug, self.amount, self.face_value)


class Cart(Struct, frozen=True):
    """A person's cart."""

    payment_currency: str | None
    items: tuple[CartItem, ...] = ()

    @property
    def codes(self) -> int:
        """How many codes are in it."""
        return sum(item.amount for item in self.items)


async def read(conn: Connection | Pool, user_id: int, state: State) -> Cart:
    """The person's cart in this state, in the order in which things were put in."""
    rows = await conn.fetch(
        """
        SELECT c.payment_currency, i.product_id, p.slug, v.name, b.name, b.slug, i.face_minor, v.face_currency, i.amount
        FROM cart c
        LEFT JOIN cart_item i ON i.user_id = c.user_id AND i.state = c.state
        LEFT JOIN product p ON p.id = i.product_id
        LEFT JOIN product_version v ON v.id = p.version_id
        LEFT JOIN brand b ON b.id = v.brand_id
        WHERE c.user_id = $1 AND c.state = $2 ORDER BY i.added_at, i.product_id, i.face_minor
        """,
        user_id,
        int(state),
    )
    if not rows:
        return Cart(None)
    items = [CartItem(*item) for _, *item in rows if item[0] is not None]
    return Cart(rows[0]["payment_currency"], tuple(items))


async def choose_currency(tx: Tx | Pool, user_id: int, state: State, currency: str) -> None:
    """What the cart will be paid in; the cart is there from now on, and locked until the transaction ends."""
    await tx.execute(
        """
        INSERT INTO cart (user_id, state, payment_currency) VALUES ($1, $2, $3)
        ON CONFLICT (user_id, state) DO UPDATE SET payment_currency = excluded.payment_currency
        """,
        user_id,
        int(state),
        currency,
    )


async def add(tx: Tx, user_id: int, state: State, slug: str, face_minor: int, amount: int) -> None:
    """Put so many more into the cart, up to what an order may hold; the caller holds the cart's lock."""
    product_id = await tx.fetchval("SELECT id FROM product WHERE slug = $1 AND active", slug)
    if product_id is None:
        raise NotForSale(slug)
    await tx.execute(
        """
        INSERT INTO cart_item (user_id, state, product_id, face_minor, amount, added_at)
        VALUES ($1, $2, $3, $4, $5, clock_timestamp())
        ON CONFLICT (user_id, state, product_id, face_minor)
        DO UPDATE SET amount = least(cart_item.amount + excluded.amount, $6)
        """,
        user_id,
        int(state),
        product_id,
        face_minor,
        amount,
        AMOUNT_MAX,
    )
    count = await tx.fetchval(
        "SELECT count(*) FROM cart_item WHERE user_id = $1 AND state = $2", user_id, int(state)
    )
    if count > ITEMS_MAX:
        raise CartFull


async def change(
    tx: Tx | Pool, user_id: int, state: State, product_id: int, face_minor: int, amount: int
) -> None:
    """Have this many of a product that is in the cart; 0 takes it out."""
    key = (user_id, int(state), product_id, face_minor)
    where = "user_id = $1 AND state = $2 AND product_id = $3 AND face_minor = $4"
    if amount == 0:
        await tx.execute(f"DELETE FROM cart_item WHERE {where}", *key)  # noqa: S608 - A constant of ours.
    else:
        await tx.execute(f"UPDATE cart_item SET amount = $5 WHERE {where}", *key, amount)  # noqa: S608 - As above.


async def clear(tx: Tx | Pool, user_id: int, state: State) -> None:
    """Empty the cart; what it is paid in stays."""
    await tx.execute("DELETE FROM cart_item WHERE user_id = $1 AND state = $2", user_id, int(state))
