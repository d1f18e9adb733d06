"""The frame of every command: its three options, its exit codes, and one line instead of a traceback."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Concatenate, Final, NoReturn, ParamSpec, TypeAlias

import asyncpg
import typer
import uvloop
from typer import Option

from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused, Output, show
from voucherd.logs import scrub
from voucherd.settings import SettingsError

EXIT_REFUSED: Final = 1
"""Such as `voucherd key add`; the others have two."""
SIGNALLED: Final = 128
"""A command that a signal ended exits with this plus the signal's number, as shells expect it."""

P = ParamSpec("P")
Handler: TypeAlias = Callable[Concatenate[CommandContext, P], Coroutine[Any, Any, Output | None]]

DatabaseUrl: TypeAlias = Annotated[
    str | None,
    Option("--database-url", metavar="URL", help="The PostgreSQL to use; else the embedded one."),
]
Data: TypeAlias = Annotated[
    str | None,
    Option("--data", metavar="DIR", help="The folder of the embedded database; else ./.voucherd."),
]
Json: TypeAlias = Annotated[bool, Option("--json", help="Answer with one JSON document.")]


def noun() -> typer.Typer:
    """An empty group of commands."""
    return typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def command(app: typer.Typer, name: str) -> Callable[[Handler[P]], Handler[P]]:
    """Make a coroutine function a command: its parameters, and the three options that every command takes."""

    def register(handler: Handler[P]) -> Handler[P]:
        _, *own = inspect.signature(handler, eval_str=True).parameters.values()

        def run(**arguments: Any) -> None:
            flags = {"database_url": arguments.pop("database_url"), "data": arguments.pop("data")}
            _run(handler, flags, arguments.pop("json"), arguments)

        _describe(run, own)
        app.command(name, help=inspect.getdoc(handler))(run)
        return handler

    return register


def _describe(run: Callable[..., None], own: list[inspect.Parameter]) -> None:
    """Give the function the signature that Typer reads."""
    shared = {"database_url": (DatabaseUrl, None), "data": (Data, None), "json": (Json, False)}
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, (kind, default) in shared.items()
    ]
    named = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own] + options
    run.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in named}


def _run(
    handler: Handler[...],
    flags: Mapping[str, object],
    as_json: bool,
    arguments: dict[str, Any],
) -> None:
    try:
        context = CommandContext(flags, as_json=as_json)
    except SettingsError as wrong:
        _refuse(wrong)
    for warning in context.settings.warnings:
        sys.stderr.write(f"voucherd: warning: {warning}\n")
    try:
        # Not asyncio.run: Python 3.11's can't be told which loop to use.
        with context.ending.watch(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            answer = runner.run(_begun(handler, context, arguments))
    except (Exception, asyncio.CancelledError) as error:
        if context.ending.number is not None:
            sys.exit(SIGNALLED + context.ending.number)
        if _is_typers(error) or isinstance(error, asyncio.CancelledError):
            raise  # Wrong usage: Typer says it, with the usage line.
        if isinstance(error, CommandRefused) and error.report is not None:
            show(error.report, as_json=as_json)
        _refuse(error)
    if answer is not None:
        show(answer, as_json=as_json)


async def _begun(handler: Handler[...], context: CommandContext, arguments: dict[str, Any]) -> Output | None:
    context.ending.begin()
    return await handler(context, **arguments)


def _refuse(error: Exception) -> NoReturn:
    line = " ".join(scrub(_words(error)).split())
    sys.stderr.write(f"voucherd: {line}\n")
    sys.exit(EXIT_REFUSED)


def _is_typers(error: BaseException) -> bool:
    return isinstance(error, typer.BadParameter | typer.Exit | typer.Abort)


def _words(error: Exception) -> str:
    """One line for the operator. What our own modules raise is written for people already."""
    if type(error).__module__.startswith("voucherd."):
        return str(error)
    if isinstance(error, asyncpg.PostgresError | asyncpg.InterfaceError):
        return f"the {_database_words(error)}: {error}"
    if isinstance(error, TimeoutError):
        return "the database did not answer in time"
    if isinstance(error, OSError):
        return f"the system refused: {error.strerror or error}" + (
            f" ({error.filename})" if error.filename else ""
        )
    return f"this is a bug: {type(error).__name__}: {error}"


def _database_words(error: asyncpg.PostgresError | asyncpg.InterfaceError) -> str:
    if isinstance(error, asyncpg.InvalidPasswordError | asyncpg.InvalidAuthorizationSpecificationError):
        return "database refused the sign-in"
    if type(error) is asyncpg.InterfaceError or isinstance(error, asyncpg.PostgresConnectionError):
        return "connection to the database was lost, so look what was done before you run it again"
    return "database refused"


@contextmanager
def refusing(words: Mapping[type[Exception], str]) -> Iterator[None]:
    """Each of these exceptions refuses the command, in the words that stand beside it."""
    try:
        yield
    except tuple(words) as refused:
        raise CommandRefused(words[type(refused)]) from None


@contextmanager
def usage(*kinds: type[ValueError]) -> Iterator[None]:
    """A ValueError in here, or one of these kinds, says that something was written wrongly: exit 2, and the usage."""
    try:
        yield
    except ValueError as unreadable:
        if kinds and not isinstance(unreadable, kinds):
            raise
        raise typer.BadParameter(str(unreadable)) from None
