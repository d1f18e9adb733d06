"""Logs: one JSON object a line on stderr (readable on a terminal), and never a secret in any of them."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TextIO

import structlog

from voucherd.http import Request
from voucherd.settings import without_passwords

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor, WrappedLogger

_REQUEST: Final[ContextVar[Request | None]] = ContextVar("request", default=None)

HIDDEN: Final = "***"
DEPTH_MAX: Final = 6
"""How deep a logged value is walked; what lies deeper is hidden, not trusted."""

_SECRET_NAME: Final = re.compile(
    r"(?:.*[_-])?(?:codes?|serials?|pins?|tokens?|passwords?|secrets?|authorization|cookie|master_key|api_key)"
    r"|(?:voucher|redemption)_?(?:code|link|pin)|master|sealed",
    re.IGNORECASE,
)
_HARMLESS_NAMES: Final = frozenset({"status_code", "exit_code", "error_code"})

# What a secret looks like in the middle of a text, such as a traceback or another library's message.
_SECRET_TEXTS: Final = (
    (re.compile(r"\b(vk_(?:live|test)_)\w+"), r"\1" + HIDDEN),
    (re.compile(r"\b(whsec_)[\w+/=]+"), r"\1" + HIDDEN),
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]+", re.IGNORECASE), r"\1 " + HIDDEN),
    # Colours are for terminals: a line of JSON that holds them can't be searched.
    (re.compile(r"\x1b\[[0-9;]*[A-Za-z]"), ""),
    # A redemption link opens a code (OP-57), and the links of mail an account.
    (re.compile(r"(/(?:r|reset|invitation)/)[0-9A-Za-z_-]{16,}"), r"\1" + HIDDEN),
    (re.compile(r"\$argon2\w*\$\S+"), HIDDEN),
    (re.compile(r"(Failing row contains )\(.*", re.DOTALL), r"\1" + HIDDEN),  # PostgreSQL's own words.
    (
        re.compile(
            r"(?<![\w-])((?:\w+_)?(?:code|serial|pin|token|password|secret|authorization)['\"]?\s*"
            r"(?:=|(?<=['\"]):)\s*)(?:b?\"[^\"]*\"|b?'[^']*'|[^\s,;)}\]]+)",
            re.IGNORECASE,
        ),
        r"\1" + HIDDEN,
    ),
)


def configure(level: str = "info", form: str = "auto", stream: TextIO | None = None) -> None:
    """Send our logs, and those of uvicorn, asyncio and every other library, through one chain."""
    out = sys.stderr if stream is None else stream
    number = logging.getLevelNamesMapping()[level.upper()]
    plain = form == "plain" or (form == "auto" and out.isatty())
    chain: list[Processor] = [
        _with_request,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
        structlog.processors.StackInfoRenderer(),
        # Tracebacks become text here, without local variables, so that the next step sees all of it.
        structlog.processors.format_exc_info,
        redact,
    ]
    render: Processor = structlog.processors.JSONRenderer(ensure_ascii=False)
    if plain:
        render = structlog.dev.ConsoleRenderer(
            colors=out.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    structlog.configure(
        processors=[*chain, render],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=out),
        cache_logger_on_first_use=stream is None,
    )
    _adopt_other_loggers(number, [structlog.stdlib.ExtraAdder(), *chain], render, out)


def bind_request(request: Request | None) -> None:
    """Put the request's id on every line that is logged while it is served; None for what is of no single request."""
    _REQUEST.set(request)


current_request: Final = _REQUEST.get
"""The request that is served here; None for what is of no single request."""


def _with_request(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    request = _REQUEST.get()
    if request is not None:
        event.setdefault("request_id", request.id)
        traceparent = request.traceparent
        if traceparent is not None:
            event.setdefault("trace_id", trace_id(traceparent))
    # uvicorn says everything twice, once for terminals.
    event.pop("color_message", None)
    return event


def trace_id(traceparent: str) -> str:
    """The trace's own part of a `traceparent`."""
    return traceparent[3:35]


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """The event with everything secret in it replaced."""
    return {name: _safe(name, value, DEPTH_MAX) for name, value in event.items()}


def scrub(text: str) -> str:
    """The text with everything that looks like a secret replaced."""
    text = without_passwords(text)
    for pattern, replacement in _SECRET_TEXTS:
        text = pattern.sub(replacement, text)
    return text


def _safe(name: str, value: Any, depth: int) -> Any:
    if _is_secret(name) and value is not None and not isinstance(value, bool):
        return HIDDEN
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return _safe_inside(value, depth - 1) if depth else HIDDEN
    return scrub(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value))


def _safe_inside(values: Any, depth: int) -> Any:
    if isinstance(values, Mapping):
        return {str(name): _safe(str(name), value, depth) for name, value in values.items()}
    return [_safe("", value, depth) for value in values]


def _is_secret(name: str) -> bool:
    return _SECRET_NAME.fullmatch(name) is not None and name not in _HARMLESS_NAMES


def _adopt_other_loggers(number: int, chain: list[Processor], render: Processor, out: TextIO) -> None:
    """Make the standard library's root logger speak our form, and uvicorn's loggers pass theirs up to it."""
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=chain,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, render],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(number)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers = []
        logger.propagate = True
