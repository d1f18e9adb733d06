"""Whoever changes something leaves a row in the trail: looked up in the source, for every function that writes."""

from __future__ import annotations

import ast
from functools import cache
from typing import Final

from tests.store.deeds_in_code import Code, modules

NO_DEED: Final = {
    "worker:": "a round of the background: what the service does by itself is told by events and metrics",
    "webhooks.sender:": "deliveries under way: each attempt is a row of its own",
    "events.log:append": "events are appended by what happened, and never changed",
    "idempotency:": "answers are kept in the transaction of what they answer",
    "limits.": "counters of tries, of calls and of what was spent",
    "heartbeat:": "a worker's sign of life",
    "trail:": "the trail itself",
    "recipients.pins:Pins.tried": "a counter of wrong PINs",
    "vault.reveals:": "the book of reveals is a trail of its own, sealed like this one",
    "backups:record": "the command that takes a backup writes the row: backups stand below the trail",
    "keys.store:record_last_use": "when a key was used last",
    "people.sessions:find": "when a session was used last",
    "people.sessions:leave_flash": "what the next page says once",
    "people.sessions:look_at": "whether a browser shows live or the sandbox",
    "people.second_factors:begin_totp": "a secret that counts for nothing until it is confirmed",
    "people.passkeys:begin_": "a challenge that waits for its answer",
    "people.links:request_reset": "a wish of somebody who is not known yet; the letter follows",
    "orders.carts:": "a cart is a note of one's own: nothing is bought by it",
    "orders.store:": "the hot path: called by the batches alone",
    "orders.export:": "a file of codes is in the book of reveals",
    "recipients.service:Recipients.open": "that a link was opened is noted on its line",
    "recipients.service:Recipients.reveal": "that a code was shown is in the book of reveals",
    "suppliers.sandbox:": "what the sandbox's own supplier remembers",
    "vault.key_ring:": "the keys of a database that is opened for the first time",
}
"""Where writes begin that are nobody's deed, and why."""

AWAITED: Final = frozenset(
    {
        *("approvals.store:decide", "approvals.store:end", "approvals.store:propose"),
        *(
            "catalogue.fx_store:note_feed",
            "catalogue.fx_store:remove_margin",
            "catalogue.fx_store:set_margin",
        ),
        *("catalogue.logos:remove_logo", "catalogue.logos:set_logo"),
        *("catalogue.price_store:add_list", "catalogue.price_store:assign", "catalogue.price_store:clear"),
        *("catalogue.price_store:remove_entry", "catalogue.price_store:remove_list"),
        *("catalogue.price_store:set_entry", "catalogue.price_store:unassign"),
        *("catalogue.store:add_or_get_brand", "catalogue.store:add_product", "catalogue.store:set_product"),
        *("catalogue.store:set_rates", "catalogue.vat_store:announce", "catalogue.vat_store:withdraw"),
        *("purchasing.attempts:ask_anew", "purchasing.attempts:note", "recipients.vouchers:take_back"),
        *("suppliers.changes:close_breaker", "suppliers.changes:set_supplier"),
        *("suppliers.changes:withdraw_offers", "suppliers.store:add_offer", "suppliers.store:add_supplier"),
        *("suppliers.store:note_call", "vault.purchased:add_bought_lots", "vault.purchased:quarantine"),
        *("vault.resealing:_replace_codes", "vault.resealing:reseal_codes", "vault.rotation:activate"),
        *("vault.rotation:begin", "vault.rotation:replace_master", "vault.rotation:retire"),
        *("vault.store:open_lots", "vault.store:resize_lots", "vault.uploads:begin_taking"),
        *("vault.uploads:end", "vault.uploads:keep", "vault.uploads:note_progress"),
        *("wallet.low_balance:remove_alert", "wallet.low_balance:set_alert"),
        *("wallet.store:ensure", "wallet.store:entries_sql"),
    }
)
"""What has no deed yet: goes when its noun has them."""


@cache
def _code() -> Code:
    return Code(modules())


def test_every_function_that_changes_a_table_is_called_by_a_deed() -> None:
    """OP-94: a new write needs a deed around it, or a reason why there is none."""
    code = _code()
    assert len(code.changes) > 150, "the search itself finds what there is"
    assert code.unseen(tuple(NO_DEED)) == AWAITED


def test_a_write_without_a_deed_would_be_noticed() -> None:
    """The check itself: a page that stores something past the deeds is found, and so is a function nobody calls."""
    trees = modules()
    trees["pages.past"] = ast.parse(
        "from voucherd.companies import store\n\nasync def forget(tx):\n    await store.set_policy(tx, 1, None)\n"
    )
    trees["keys.loose"] = ast.parse("async def drop(tx):\n    await tx.execute('DELETE FROM api_key')\n")
    found = Code(trees).unseen(tuple(NO_DEED)) - AWAITED
    assert found == {"companies.store:set_policy", "keys.loose:drop"}


def test_every_exception_is_needed() -> None:
    """A reason that stands for nothing any more goes."""
    code = _code()
    assert set(code.changes) >= AWAITED
    for name in NO_DEED:
        others = tuple(other for other in NO_DEED if other != name)
        assert code.unseen(others) > AWAITED, name
