"""E-mail addresses are read in one place, and nothing that is not one address passes any way in."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from tests.store.deeds_in_code import modules
from voucherd import email_address
from voucherd.people.users import UserDraft
from voucherd.setting_values import sender

NONE = (
    "a@b.c, d@e.f",
    "a@b.example,c@d.example",
    "a@b.example;c@d.example",
    "-oQ/tmp@x.y",
    "-f@shop.example",
    "ann",
    "@shop.example",
    "ann@",
    "ann@shop",
    "ann@@shop.example",
    "ann@shop..example",
    "ann@-shop.example",
    "ann@shop.example\r\nBcc: eve@x.example",
    "ann@shop.example\x00",
    "ann smith@shop.example",
    '"ann, eve"@shop.example',
    "ann@[127.0.0.1]",
    "<ann@shop.example>, <eve@x.example>",
    "a" * 65 + "@shop.example",
    "ann@" + "a" * 250 + ".example",
    "",
)
WAYS_IN: dict[str, Callable[[str], object]] = {
    "read": email_address.read,
    "a company's person": lambda text: UserDraft(text, 1, "owner"),
    "the operator's person": lambda text: UserDraft(text, None, "admin"),
    "the sender of mail": sender,
}


@pytest.mark.parametrize("way", WAYS_IN)
@pytest.mark.parametrize("text", NONE)
def test_what_is_not_one_address_is_refused(way: str, text: str) -> None:
    """OP-92: people of both sides, by page and command, and the setting of the sender."""
    with pytest.raises(ValueError, match=r"is not an e-mail address|a sender such as"):
        WAYS_IN[way](text)


def test_an_address_is_stored_in_one_form() -> None:
    """OP-92: whoever types it otherwise is the same person; what can't be read is looked for as it is."""
    for typed in (" Ann@Shop.Example ", "ann@shop.example"):
        assert email_address.read(typed) == email_address.looked_up(typed) == "ann@shop.example"
    assert email_address.read("Ann+x@Bücher.example") == "ann+x@xn--bcher-kva.example"
    assert email_address.looked_up("ann@bücher.example") == email_address.read("ann@xn--bcher-kva.example")
    assert email_address.looked_up(" -oQ/tmp@X.y ") == "-oq/tmp@x.y"
    assert sender("Shop <No-Reply@shop.example>") == "Shop <no-reply@shop.example>"
    assert sender("voucherd <no-reply@localhost>") == "voucherd <no-reply@localhost>"


def test_nobody_else_reads_addresses() -> None:
    """OP-92: the library is asked in one file, and no other module splits or tidies addresses by itself."""
    asked, tidied = set(), set()
    for module, tree in modules().items():
        for part in ast.walk(tree):
            if isinstance(part, ast.ImportFrom) and part.module == "email_validator":
                asked.add(module)
            if isinstance(part, ast.Attribute) and part.attr in {"lower", "partition", "strip"}:
                owner = ast.unparse(part.value)
                if "email" in owner and module.startswith(("people.", "pages.", "mail.", "api.", "settings")):
                    tidied.add(f"{module}: {owner}")
    assert asked == {"email_address"}
    assert tidied == set()
