"""Every change leaves a row in the trail: looked up in the source, for every function that writes."""

from __future__ import annotations

import ast
from functools import cache
from typing import Final

from tests.store.deeds_in_code import Code, modules

NO_DEED: Final = {
    "worker:": "a round of the background: what the service does by itself is told by events and metrics",
    "heartbeat:": "a process says that it is there",
    "webhooks.sender:": "deliveries under way: each attempt is a row of its own",
    "request_log.": "a log of calls, which are deeds themselves or change nothing",
    "idempotency.": "answers are kept in the transaction of what they answer",
    "limits.": "counters of tries, of calls and of what was spent",
    "recipients.pins:Pins.tried": "a counter of wrong PINs",
    "keys.store:record_last_use": "when a key was used last",
    "people.sessions:find": "when a session was used last",
    "people.sessions:leave_flash": "what the next page says once",
    "people.passkeys:begin_": "a challenge that waits for its answer",
    "people.links:request_reset": "a wish of somebody who is not known yet; the letter follows",
    "orders.carts:": "a cart is a note of one's own: nothing is bought by it",
    "orders.store:": "the hot path: called by the batches alone",
    "recipients.service:Recipients.reveal": "that a code was shown is in the book of reveals",
    "suppliers.sandbox:": "what the sandbox's own supplier remembers",
    "cli.demo_shop.": "the demo's own shop: its first rows, before anybody could do anything",
    "vault.rotation:reseal_all": "the same codes under a key whose deed is written",
    "vault.imports:_Intake.": "a part of the import, which is a deed; other objects have methods of these names",
    "vault.rotation:begin": "a key that seals nothing yet; its deed is written when it becomes active",
    "vault.uploads:": "a file that is kept for a quarter of an hour; taking its codes is the deed",
    "vault.key_ring:": "the keys of a database that is opened for the first time",
}
"""Where writes begin that are nobody's deed, and why."""


@cache
def _code() -> Code:
    return Code(modules())


def test_every_function_that_changes_a_table_is_called_by_a_deed() -> None:
    """OP-94: a new write needs a deed around it, or a reason why there is none."""
    code = _code()
    assert len(code.changes) > 150, "the search itself finds what there is"
    assert code.unseen(tuple(NO_DEED)) == set()


def test_a_write_without_a_deed_would_be_noticed() -> None:
    """The check itself: a page that stores something past the deeds is found, and so is a function nobody calls."""
    trees = modules()
    trees["pages.past"] = ast.parse(
        "from voucherd.companies import store\n\nasync def forget(tx):\n    await store.set_policy(tx, 1, None)\n"
    )
    trees["keys.loose"] = ast.parse("async def drop(tx):\n    await tx.execute('DELETE FROM api_key')\n")
    found = Code(trees).unseen(tuple(NO_DEED))
    assert found == {"companies.store:set_policy", "keys.loose:drop"}


def test_every_exception_is_needed() -> None:
    """A reason that stands for nothing any more goes."""
    code = _code()
    for name in NO_DEED:
        others = tuple(other for other in NO_DEED if other != name)
        assert code.unseen(others), name
