"""The word and the colour of every status that pages show: one word for one thing."""

from __future__ import annotations

from typing import Final

STATUSES: Final[dict[str, tuple[str, str]]] = {
    # ── orders and their lines ──
    "created": ("Not confirmed", "note"),
    "pending": ("In progress", "warn"),
    "finished": ("Delivered", "good"),
    "cancelled": ("Cancelled", ""),
    "deleted": ("Withdrawn", ""),
    "expired": ("Expired", ""),
    # ── payment ──
    "unpaid": ("Not paid", ""),
    "paid": ("Paid", "good"),
    "refunded": ("Refunded", ""),
    "partially_refunded": ("Partly refunded", ""),
    # ── purchases at suppliers ──
    "placed": ("Ordered", "note"),
    "bought": ("Delivered", "good"),
    "failed": ("Failed", "bad"),
    "unknown": ("Needs a decision", "bad"),
    # ── webhooks ──
    "delivered": ("Delivered", "good"),
    "waiting": ("Waiting", "warn"),
    # ── people, companies, keys, suppliers ──
    "active": ("Active", "good"),
    "inactive": ("Inactive", "bad"),
    "invited": ("Invited", "note"),
    "revoked": ("Revoked", "bad"),
    "replaced": ("Replaced", "warn"),
    "verified": ("Verified", "good"),
    "unverified": ("Not verified", "warn"),
    # ── requests for a second person ──
    "open": ("Waiting for approval", "warn"),
    "approved": ("Approved", "good"),
    "rejected": ("Rejected", "bad"),
    "withdrawn": ("Withdrawn", ""),
    "ended": ("Closed", ""),
}
"""By the word of the program: what people read, and its badge. Colour is never all that tells."""
