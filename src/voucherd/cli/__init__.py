"""The command line: one program, one file per noun.

Only the file of the command that was asked for is loaded, so `voucherd --help` answers at once.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final

import typer

PARTS: Final = {
    "demo": "The whole thing at once, with a demo shop to try it on.",
    "serve": "Run the API and the pages.",
    "setup-link": "Print the link to set a new shop up with.",
    "worker": "Run the background work.",
    "migrate": "Bring the database to this program's schema.",
    "audit": "Check every invariant on the live database.",
    "backup": "Back the embedded database up, or try a backup out.",
    "restore": "Put a backup back into an empty data folder.",
    "archive": "Move orders of closed months from the database to files.",
    "recover": "Make a restored database safe to sell from.",
    "version": "Say which version this is.",
}
"""Commands of their own; each file holds one."""

NOUNS: Final = {
    "company": "Who may buy.",
    "key": "The API keys of a company.",
    "user": "The people who sign in to the portal.",
    "wallet": "Balances, top-ups and statements.",
    "product": "What is for sale, and at what price.",
    "brand": "Whose products they are, and their logos.",
    "price": "Prices of a company's own.",
    "stock": "The codes on the shelf.",
    "supplier": "Where codes come from that are not on the shelf.",
    "attempt": "Purchases at suppliers, and what to do when one went wrong.",
    "fx": "Exchange rates.",
    "order": "Every company's orders, for the operator.",
    "webhook": "Where events are sent, and what was sent.",
    "trail": "Who did what: the audit trail.",
    "vault": "The keys that seal codes and secrets.",
    "report": "Sales, margin, VAT and stock.",
}
"""Commands with commands below them; one file per noun."""

PROGRAM: Final = "voucherd"


def main() -> None:
    """Run the program with the arguments of this process."""
    # As most programs are asked which one they are.
    words = ["version" if word == "--version" else word for word in sys.argv[1:2]]
    program("".join(words))(words + sys.argv[2:], prog_name=PROGRAM)


def program(word: str) -> typer.Typer:
    """The program with the command of this name loaded, and the others known by name only."""
    app = typer.Typer(
        name=PROGRAM,
        help="An order service for prepaid codes: create, confirm, resolve, cancel.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    # Without a callback of its own, Typer would take a program with a single command for that command.
    app.callback()(lambda: None)
    for panel, commands in (("Run", PARTS), ("Manage", NOUNS)):
        for name, about in commands.items():
            if name != word:
                app.command(name, help=about, rich_help_panel=panel)(_not_loaded)
            elif name in NOUNS:
                app.add_typer(_load(name), name=name, help=about, no_args_is_help=True)
            else:
                app.add_typer(_load(name))
    return app


def _load(name: str) -> typer.Typer:
    app = import_module(f"voucherd.cli.{name.replace('-', '_')}").app
    assert isinstance(app, typer.Typer)
    return app


def _not_loaded() -> None:
    raise AssertionError("only the command that was named is ever run")
