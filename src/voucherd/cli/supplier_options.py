"""What `voucherd supplier add` and `set` are told: options, a description in TOML, and a key that nobody else sees."""

from __future__ import annotations

import sys
import termios
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, BinaryIO, Final, Literal, TypeAlias

import typer
from typer import Argument, Option

from voucherd.cli.command import usage
from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused
from voucherd.suppliers import drafts, registry
from voucherd.suppliers.deeds import LIMITS
from voucherd.suppliers.drafts import URL_KEYS, BadSupplier

KEY_BYTES_MAX: Final = 4_096
STDIN: Final = "-"


Kind: TypeAlias = Literal["voucherd", "http", "sandbox"]
OnUnknown: TypeAlias = Literal["wait", "rebuy"]
Name: TypeAlias = Annotated[str, Argument(metavar="NAME", help="Its name, such as wholesale-eu.")]
Url: TypeAlias = Annotated[str | None, Option("--url", metavar="URL", help="Its address.")]
Currency: TypeAlias = Annotated[str | None, Option("--currency", metavar="EUR", help="What we pay in.")]
File: TypeAlias = Annotated[
    typer.FileBinaryRead | None,
    Option("--file", metavar="DESC.toml", help="Its description; see docs/suppliers.md."),
]
Config: TypeAlias = Annotated[
    list[str] | None,
    Option("--config", metavar="KEY=VALUE", help="One key of its description; repeatable."),
]
KeyFile: TypeAlias = Annotated[
    typer.FileBinaryRead | None, Option("--key-file", metavar="FILE", help="Holds its key.")
]
Key: TypeAlias = Annotated[
    str | None,
    Option("--key", metavar="-", help="Only -: read the key from stdin, or ask for it."),
]
Slack: Final = Option("--price-slack", metavar="1%", help="Dearer than quoted by this much.")
Unknown: TypeAlias = Annotated[
    OnUnknown | None,
    Option("--on-unknown", help="Lines of a purchase that nobody can tell of wait, or are bought again."),
]


def _number(flag: str, field: str, about: str, metavar: str | None = "SECONDS") -> Any:
    """An option for one of a supplier's numbers."""
    low, high = LIMITS[field]
    return Option(flag, metavar=metavar, min=low, max=high, help=about)


Timeout: Final = _number("--timeout", "timeout_s", "For one call.")
Settle: Final = _number("--settle", "settle_s", "How long after its call a purchase may turn up.")
QuoteAge: Final = _number("--quote-age", "quote_age_s", "How long a price may be used.")
Concurrency: Final = _number("--concurrency", "concurrency_max", "Calls at once.", None)


def check_name(name: str) -> None:
    """Refuse what is no name."""
    with usage():
        drafts.check_name(name)


def new_config(
    kind: str,
    before: dict[str, Any] | None,
    *,
    file: BinaryIO | None,
    url: str | None,
    currency: str | None,
    more: list[str] | None,
) -> dict[str, Any] | None:
    """The config as it is to be, checked: a file replaces it, options change keys of it; None for no change."""
    if before is not None and file is None and url is None and currency is None and not more:
        return None
    config = dict(before or {}) if file is None else _description(file)
    if url is not None:
        if kind not in URL_KEYS:
            raise typer.BadParameter(f"--url: a {kind} supplier has no address")
        config[URL_KEYS[kind]] = url
    if currency is not None:
        config["currency"] = currency.upper()
    for text in more or ():
        name, value = _pair(text)
        config[name] = value
    if kind == "http" and "buy" not in config:
        raise typer.BadParameter("--file: an http supplier needs a description")
    try:
        registry.check_config(kind, config)
    except ValueError as wrong:
        raise CommandRefused(str(wrong)) from None
    return config


def _description(file: BinaryIO) -> dict[str, Any]:
    try:
        return drafts.read_description(file.read(registry.CONFIG_BYTES_MAX + 1))
    except BadSupplier as bad:
        raise CommandRefused(f"the description {bad.rule}") from None


def _pair(text: str) -> tuple[str, Any]:
    """A key and its value, which is TOML where it can be and a text elsewhere."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise typer.BadParameter(f"--config: {text[:40]!r} is not KEY=VALUE")
    try:
        return name.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name.strip(), value.strip()


def check_key_options(key_file: BinaryIO | None, key: str | None) -> None:
    """Refuse a key on the command line, and two places to read one from."""
    if key is not None and key != STDIN:
        raise typer.BadParameter(
            "--key takes - alone: what stands on a command line can be read by others. "
            "Use --key-file, or --key - with the key on stdin"
        )
    if key is not None and key_file is not None:
        raise typer.BadParameter("--key and --key-file: give one of them")


def read_key(
    context: CommandContext, key_file: BinaryIO | None, key: str | None, *, needed: bool
) -> str | None:
    """The key from a file, from stdin or from a person; None where none was offered, unless it is needed."""
    if key_file is not None:
        return _clean(key_file.read(KEY_BYTES_MAX + 1))
    if key is None and (not needed or not sys.stdin.isatty()):
        if needed:
            raise CommandRefused("it needs a key: give --key-file FILE, or --key - with the key on stdin")
        return None
    descriptor = sys.stdin.fileno()
    stream = context.stream(sys.stdin.buffer)
    if not sys.stdin.isatty():
        return _clean(stream.read(KEY_BYTES_MAX + 1))
    sys.stderr.write("Its key (not shown): ")
    sys.stderr.flush()
    try:
        with _without_echo(descriptor):
            return _clean(stream.readline(KEY_BYTES_MAX + 1))
    finally:
        sys.stderr.write("\n")


@contextmanager
def _without_echo(descriptor: int) -> Iterator[None]:
    before = termios.tcgetattr(descriptor)
    quiet = list(before)
    quiet[3] &= ~termios.ECHO
    termios.tcsetattr(descriptor, termios.TCSAFLUSH, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)


def _clean(content: bytes) -> str:
    if len(content) > KEY_BYTES_MAX:
        raise CommandRefused(f"the key is longer than {KEY_BYTES_MAX} bytes")
    try:
        text = content.decode().strip("\r\n")
    except UnicodeDecodeError:
        raise CommandRefused("the key is not text") from None
    if not text:
        raise CommandRefused("the key is empty")
    return text
